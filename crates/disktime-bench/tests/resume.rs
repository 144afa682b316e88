//! `run --resume`: what was measured is not measured again, unless what it depends on has changed.
#![allow(clippy::unwrap_used)]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Whether it says that the scenario was measured before.
fn measured_before(program: &Path, kept: &Path) -> bool {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/burst.toml");
    let output = Command::new(program)
        .arg("run")
        .arg(scenario)
        .args(["--on", "sim", "--controller", "disktime", "--resume"])
        .arg(kept)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("1 of 1, burst"), "{said}");
    said.contains("measured before")
}

/// The simulator's core is a part of the program.
#[test]
fn another_program_measures_again_in_the_simulator() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let own = Path::new(env!("CARGO_BIN_EXE_disktime-bench"));
    assert!(!measured_before(own, &kept));
    assert!(measured_before(own, &kept));
    let other = dir.path().join("other");
    fs::copy(own, &other).unwrap();
    let mut file = OpenOptions::new().append(true).open(&other).unwrap();
    file.write_all(b"x").unwrap();
    drop(file);
    assert!(!measured_before(&other, &kept));
}
