//! What can go wrong, each with one thing to do about it.

use std::io;
use std::path::PathBuf;

use libublk::UblkError;
use nix::errno::Errno;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there can be no such disk: {0}")]
    Options(String),
    #[error("the ublk driver is not loaded: there is no /dev/ublk-control")]
    NotLoaded,
    #[error("kernel {0} has no ublk")]
    NoUblk(String),
    #[error("/dev/ublk-control may not be opened: {0}")]
    NotPermitted(io::Error),
    #[error("/dev/ublk-control cannot be opened: {0}")]
    Control(io::Error),
    #[error("cannot {doing} the block device: {why}")]
    Device { doing: &'static str, why: String },
    #[error("cannot write {path}: {why}", path = path.display())]
    Tally { path: PathBuf, why: io::Error },
    #[error("cannot wait for signals: {0}")]
    Signals(Errno),
    #[error("the device was stopped by someone else")]
    Stopped,
}

impl Error {
    /// One thing to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Error::Options(_) => "--help says what there is",
            Error::NotLoaded => "modprobe ublk_drv",
            Error::NoUblk(_) => {
                "boot Linux 6.0 or newer with CONFIG_BLK_DEV_UBLK, such as Debian's 6.12"
            }
            Error::NotPermitted(_) => "run it as root",
            Error::Control(_) | Error::Device { .. } | Error::Stopped => {
                "dmesg may say more; io_uring must not be disabled (sysctl kernel.io_uring_disabled)"
            }
            Error::Tally { .. } => "give --tally a file in a folder that exists and can be written",
            Error::Signals(_) => "start it again",
        }
    }

    /// The exit status of a command that fails of it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::Options(_) => 2,
            Error::NotLoaded | Error::NoUblk(_) => 4,
            Error::NotPermitted(_) => 5,
            _ => 1,
        }
    }

    /// For `map_err`: the library's error, with the name of the errno.
    pub(crate) fn device(doing: &'static str) -> impl FnOnce(UblkError) -> Error {
        move |e| Error::Device {
            doing,
            why: match e {
                UblkError::UringIOError(errno) | UblkError::OtherError(errno) => {
                    Errno::from_raw(errno.saturating_abs()).to_string()
                }
                e => e.to_string(),
            },
        }
    }
}
