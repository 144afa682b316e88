//! A disk model as a block device: `/dev/ublkbN` takes as long as the model says.
//!
//! The kernel hands each request to this process through ublk. The [`Engine`] keeps the data and
//! asks the model when the request is done; [`serve`] waits until then and tells the kernel. So any
//! scheduler of a stock kernel can be run on a disk whose every millisecond is known: what a request
//! truly took, which the kernel cannot see, is added up by [`Region`] in a [`Tally`].
//!
//! A late wake-up delays the answer, never the model: it goes on from the exact time at which it
//! was done. How late the answers were is part of the tally.
//!
//! Data are kept in memory, and lost at the end.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod args;
mod engine;
mod error;
mod memory;
mod serve;
mod tally;

use std::path::PathBuf;

use disktime_model::Spec;

pub use args::Args;
pub use disktime_model::Region;
pub use engine::{Done, Engine, Io, Kind, Refused};
pub use error::Error;
pub use memory::Memory;
pub use serve::serve;
pub use tally::{Account, Late, Tally};

/// What to serve.
///
/// The rest follows from the model: as many requests at once as it has slots, rotational if it is,
/// and, where it has a write cache, a volatile cache with forced unit access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub spec: Spec,
    /// Parts of the disk whose true time is added up on its own. What begins in none of them is
    /// counted as other; where they overlap, the first counts.
    pub regions: Vec<Region>,
    /// A file for the [`Tally`], rewritten about every 50 ms while there is something new.
    pub tally: Option<PathBuf>,
}
