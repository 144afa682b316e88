//! Where `/` is, and how the kernel's files are read and written.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

use crate::{Error, Result};

/// No file of sysfs or cgroupfs that is read here is anywhere near this long, in bytes.
const LONGEST_FILE: u64 = 64 << 20;

/// The folder that stands for `/`. `Root::system()` is the running system's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    prefix: PathBuf,
}

impl Root {
    /// The running system.
    pub fn system() -> Self {
        Root {
            prefix: PathBuf::from("/"),
        }
    }

    /// A tree that looks like a system, below `prefix`.
    pub fn at(prefix: impl Into<PathBuf>) -> Self {
        Root {
            prefix: prefix.into(),
        }
    }

    /// Whether this is the running system.
    pub fn is_system(&self) -> bool {
        self.prefix == Path::new("/")
    }

    /// The real path of `inside`, a path as seen from within the root.
    pub fn path(&self, inside: impl AsRef<Path>) -> PathBuf {
        let inside = inside.as_ref();
        self.prefix.join(inside.strip_prefix("/").unwrap_or(inside))
    }

    /// The inverse of [`Root::path`]: how a real path looks from within the root.
    pub fn inside(&self, real: &Path) -> PathBuf {
        real.strip_prefix(&self.prefix)
            .map_or_else(|_| real.to_path_buf(), |rest| Path::new("/").join(rest))
    }

    /// Follows symbolic links of `inside`'s last component without leaving the root. Gives a path as seen from within.
    pub fn follow(&self, inside: &Path) -> PathBuf {
        let mut at = clean(inside);
        // 40 is the kernel's own limit on links in a path.
        for _ in 0..40 {
            let Ok(target) = fs::read_link(self.path(&at)) else {
                break;
            };
            at = clean(&at.parent().unwrap_or(Path::new("/")).join(target));
        }
        at
    }
}

/// Takes `.` and `..` out of a path by its letters alone.
fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// Reads a whole text file. Bytes that are not UTF-8 are replaced.
pub fn read_file(path: &Path) -> Result<String> {
    let fail = |source| Error::Read {
        path: path.to_path_buf(),
        source,
    };
    let mut bytes = Vec::new();
    fs::File::open(path)
        .map_err(fail)?
        .take(LONGEST_FILE)
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Like [`read_file`], with `None` for a file that is not there or has nothing to say (a device that went away, an
/// attribute that this device has no use for).
pub(crate) fn read_optional(path: &Path) -> Result<Option<String>> {
    match read_file(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) => match error
            .io()
            .and_then(std::io::Error::raw_os_error)
            .map(nix::errno::Errno::from_raw)
        {
            Some(
                nix::errno::Errno::ENOENT
                | nix::errno::Errno::ENOTDIR
                | nix::errno::Errno::ENODEV
                | nix::errno::Errno::EINVAL
                | nix::errno::Errno::EOPNOTSUPP,
            ) => Ok(None),
            _ => Err(error),
        },
    }
}

/// Writes `value` and a newline with one `write` call, which is what the kernel's files expect. Never creates a file.
pub fn write_file(path: &Path, value: &str) -> Result<()> {
    let fail = |source| Error::Write {
        path: path.to_path_buf(),
        value: value.to_owned(),
        source,
    };
    let mut file = OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)
        .map_err(fail)?;
    let line = format!("{value}\n");
    match file.write(line.as_bytes()) {
        Ok(n) if n == line.len() => Ok(()),
        Ok(_) => Err(fail(std::io::Error::from(std::io::ErrorKind::WriteZero))),
        Err(error) => Err(fail(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_the_root() {
        let root = Root::at("/some/where");
        assert_eq!(root.path("/sys/block"), Path::new("/some/where/sys/block"));
        assert_eq!(root.path("sys"), Path::new("/some/where/sys"));
        assert_eq!(
            root.inside(Path::new("/some/where/dev/sda")),
            Path::new("/dev/sda")
        );
        assert!(!root.is_system());
        assert!(Root::system().is_system());
    }

    #[test]
    fn links_are_followed_below_the_root() {
        let dir = tempfile::tempdir().expect("tempdir");
        fs::create_dir_all(dir.path().join("dev/mapper")).expect("mkdir");
        fs::write(dir.path().join("dev/dm-0"), "").expect("write");
        std::os::unix::fs::symlink("../dm-0", dir.path().join("dev/mapper/data")).expect("symlink");
        std::os::unix::fs::symlink("/dev/mapper/data", dir.path().join("dev/alias"))
            .expect("symlink");
        let root = Root::at(dir.path());
        assert_eq!(root.follow(Path::new("/dev/alias")), Path::new("/dev/dm-0"));
        std::os::unix::fs::symlink("/dev/loop", dir.path().join("dev/loop")).expect("symlink");
        assert_eq!(root.follow(Path::new("/dev/loop")), Path::new("/dev/loop"));
    }

    #[test]
    fn writing_creates_nothing() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("absent");
        let error = write_file(&path, "1").expect_err("must fail");
        assert!(error.is_absent());
        assert!(error.to_string().contains("(ENOENT)"), "{error}");
        assert!(!path.exists());
    }
}
