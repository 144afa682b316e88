//! `bench` is a program of its own, beside this one: what measures needs a hundred times the code of
//! what sets weights, and is not wanted on every machine.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::failure::{Exit, failure};

const PROGRAM: &str = "disktime-bench";
/// Where packages put it.
const LIBEXEC: &str = "/usr/libexec/disktime";

/// The program, if there is one: beside this one, where packages put it, or in the path.
fn find(beside: Option<&Path>, path: Option<OsString>) -> Option<PathBuf> {
    let own = beside.and_then(Path::parent).map(Path::to_owned);
    let in_path = path
        .iter()
        .flat_map(std::env::split_paths)
        .collect::<Vec<_>>();
    own.into_iter()
        .chain([PathBuf::from(LIBEXEC)])
        .chain(in_path)
        .map(|folder| folder.join(PROGRAM))
        .find(|program| program.is_file())
}

/// Becomes it; returns only where that fails.
pub fn run(args: &[OsString]) -> Result<()> {
    let own = std::env::current_exe().ok();
    let Some(program) = find(own.as_deref(), std::env::var_os("PATH")) else {
        let missing = format!("there is no {PROGRAM} on this machine");
        return Err(failure(Exit::NotFound, missing)
            .hint("install the package disktime-bench, or build it with `make tools`")
            .into());
    };
    let error = Command::new(&program).args(args).exec();
    Err(error).with_context(|| format!("cannot run {}", program.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_beside_goes_before_the_one_in_the_path() {
        let folder = tempfile::tempdir().expect("a folder");
        let (own, other) = (folder.path().join("own"), folder.path().join("other"));
        for dir in [&own, &other] {
            std::fs::create_dir(dir).expect("a folder");
        }
        let path = || Some(other.clone().into_os_string());
        let me = own.join("disktime");
        assert_eq!(find(Some(&me), path()), None);
        std::fs::write(other.join(PROGRAM), "").expect("a file");
        assert_eq!(find(Some(&me), path()), Some(other.join(PROGRAM)));
        std::fs::write(own.join(PROGRAM), "").expect("a file");
        assert_eq!(find(Some(&me), path()), Some(own.join(PROGRAM)));
        assert_eq!(find(None, None), None);
    }
}
