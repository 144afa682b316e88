//! Builds the guest's init, statically linked, so that the harness always carries the init that
//! belongs to it. A nested cargo with a target directory of its own: the flags that make a
//! program static must not reach the rest of the workspace.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let guest = PathBuf::from("../guest");
    for path in ["src", "Cargo.toml"] {
        println!("cargo:rerun-if-changed={}", guest.join(path).display());
    }
    println!("cargo:rerun-if-changed=build.rs");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let target_dir = out.join("guest");
    let cargo = std::env::var_os("CARGO").expect("cargo sets CARGO");
    let triple = std::env::var("TARGET").expect("cargo sets TARGET");

    let mut command = Command::new(cargo);
    command
        .args([
            "rustc",
            "--quiet",
            "--release",
            "--bin",
            "dt-init",
            "--target",
            &triple,
        ])
        .arg("--manifest-path")
        .arg(guest.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target_dir)
        .args([
            "--",
            "-C",
            "target-feature=+crt-static",
            "-C",
            "strip=symbols",
        ]);
    // The outer build's flags and wrappers (sanitizers, clippy) are not for the guest.
    for name in [
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_BUILD_TARGET",
        "CARGO_TARGET_DIR",
    ] {
        command.env_remove(name);
    }
    let status = command.status().expect("cannot run cargo");
    assert!(
        status.success(),
        "building dt-init, the guest's init, failed"
    );
    let built = target_dir.join(&triple).join("release/dt-init");
    std::fs::copy(&built, out.join("dt-init")).expect("copying dt-init");
}
