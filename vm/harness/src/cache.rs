//! Where things that can be fetched or made again are kept, and the locks on them.
//!
//! ```text
//! $DISKTIME_CACHE (or $XDG_CACHE_HOME/disktime, or ~/.cache/disktime)
//!   kernels/NAME/       an unpacked kernel: kernel.json, root/, vmlinux, btf, ko/
//!   apt/SUITE/          apt state of our own, for suites that the host does not list
//!   guest/              the part of the initramfs that all cases share
//!   debs/               programs for the guest that the host does not have
//!   run/                one folder for each machine that runs now
//! ```

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::error::{At, Error, Result};

/// The folder of everything that is cached.
pub fn dir() -> Result<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let dir = set("DISKTIME_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|d| d.join("disktime")))
        .or_else(|| set("HOME").map(|d| d.join(".cache/disktime")))
        .ok_or_else(|| {
            Error::new("no place for the cache: HOME is not set")
                .hint("set DISKTIME_CACHE to a folder")
        })?;
    let dir = std::path::absolute(&dir).at("resolve", &dir)?;
    make(&dir)?;
    Ok(dir)
}

/// A subfolder of the cache, made if it is missing.
pub(crate) fn sub(name: &str) -> Result<PathBuf> {
    let path = dir()?.join(name);
    make(&path)?;
    Ok(path)
}

pub(crate) fn make(path: &Path) -> Result<()> {
    fs::create_dir_all(path).at("create", path)
}

/// A lock on a file, held until dropped (or until the process ends, however it ends).
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits until nobody else holds the lock.
    pub(crate) fn exclusive(path: &Path) -> Result<Self> {
        Self::take(path, FlockOperation::LockExclusive)
    }

    /// Waits until nobody holds it exclusively.
    pub(crate) fn shared(path: &Path) -> Result<Self> {
        Self::take(path, FlockOperation::LockShared)
    }

    /// Takes the lock if it is free.
    pub(crate) fn attempt(path: &Path) -> Option<Self> {
        Self::take(path, FlockOperation::NonBlockingLockExclusive).ok()
    }

    fn take(path: &Path, how: FlockOperation) -> Result<Self> {
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .at("open", path)?;
        loop {
            match flock(&file, how) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(rustix::io::Errno::INTR) if !crate::cancelled() => {}
                Err(e) => {
                    return Err(Error::new(format!("cannot lock {}: {e}", path.display())));
                }
            }
        }
    }
}

/// Writes a file so that readers see the old content or the new, never a part.
pub(crate) fn write_atomic(path: &Path, content: &[u8]) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    let temp = tempfile::NamedTempFile::new_in(parent).at("create a file in", parent)?;
    fs::write(temp.path(), content).at("write", temp.path())?;
    temp.persist(path).map_err(|e| e.error).at("write", path)?;
    Ok(())
}
