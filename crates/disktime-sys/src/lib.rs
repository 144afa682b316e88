//! The files by which Linux and the disktime module speak, as typed values.
//!
//! This crate knows paths and formats: the block devices of sysfs, the cgroup v2 tree, mountinfo, udev's data base.
//! It holds no policy: it neither decides what to write nor how to show it. Every path is taken below a [`Root`], so
//! that a test, or a tool that looks into a container, can point it at another tree.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod block;
mod cgroup;
mod error;
mod fields;
mod mount;
mod root;
mod settings;
mod stat;
mod types;

pub use block::{Blocks, Device, ResolvedDevice, Schedulers, Step};
pub use cgroup::{CLASS_FILE, Cgroup, Cgroups, STAT_FILE, WEIGHT_FILE};
pub use error::{Error, Result, errno_name};
pub use fields::{FIELDS, Field, Kind, Unit, field};
pub use mount::{Mount, Mounts};
pub use root::{Root, read_file, write_file};
pub use settings::Setting;
pub use stat::{GroupLine, Stat, parse_groups, parse_stat, unescape_path};
pub use types::{Class, DevNo, ParseValueError, Weight};
