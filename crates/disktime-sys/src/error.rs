//! One error type; each variant carries what a person needs to act on it.

use std::io;
use std::path::PathBuf;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong while reading or writing the kernel's files.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {path}: {why}", path = path.display(), why = describe(source))]
    Read {
        /// The file, below the root in use.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write '{value}' to {path}: {why}", path = path.display(), why = describe(source))]
    Write {
        /// The file, below the root in use.
        path: PathBuf,
        /// What was to be written, without the newline.
        value: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A file holds something that its format does not allow.
    #[error("cannot understand {path}: {why}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong, quoting the text.
        why: String,
    },
    /// No block device goes by this name.
    #[error("no block device '{asked}'")]
    NoDevice {
        /// What was asked for.
        asked: String,
        /// The disks there are.
        known: Vec<String>,
    },
    /// A folder that is not a mount point was given as a device.
    #[error("{path} is not a mount point", path = path.display())]
    NotMountPoint {
        /// What was asked for.
        path: PathBuf,
        /// The mount point that holds it.
        mount: Option<PathBuf>,
    },
    /// The file system mounted there is not on a block device.
    #[error("{path} holds a {fstype} file system, which is not on a block device", path = path.display())]
    NoBlockDevice {
        /// The mount point.
        path: PathBuf,
        /// Its file system's type.
        fstype: String,
    },
    /// No cgroup has this path.
    #[error("no cgroup '{path}'")]
    NoCgroup {
        /// The path from the cgroup root.
        path: String,
    },
    /// cgroup v2 is not mounted.
    #[error("no cgroup v2 tree at {path}", path = path.display())]
    NoCgroupTree {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// No such process, or one without a v2 cgroup.
    #[error("no process {pid}")]
    NoProcess {
        /// The process.
        pid: u32,
    },
}

impl Error {
    /// The system error behind this one, where there is one.
    pub fn io(&self) -> Option<&io::Error> {
        match self {
            Error::Read { source, .. } | Error::Write { source, .. } => Some(source),
            _ => None,
        }
    }

    /// Whether the caller lacked the permission.
    pub fn is_permission(&self) -> bool {
        use nix::errno::Errno;
        self.io()
            .and_then(io::Error::raw_os_error)
            .map(Errno::from_raw)
            .is_some_and(|errno| matches!(errno, Errno::EACCES | Errno::EPERM | Errno::EROFS))
    }

    /// Whether a file was absent.
    pub fn is_absent(&self) -> bool {
        self.io()
            .is_some_and(|e| e.kind() == io::ErrorKind::NotFound)
    }
}

/// The errno's name, `EACCES` for instance, where the error has one.
pub fn errno_name(error: &io::Error) -> Option<String> {
    error
        .raw_os_error()
        .map(|raw| format!("{:?}", nix::errno::Errno::from_raw(raw)))
}

fn describe(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(raw) => {
            let errno = nix::errno::Errno::from_raw(raw);
            format!("{} ({errno:?})", errno.desc())
        }
        None => error.to_string(),
    }
}
