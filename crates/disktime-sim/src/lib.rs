//! The scheduler core against a disk model, in virtual time.
//!
//! The core is the one that the kernel module is made of, compiled natively; what stands around it
//! here does what the elevator does there: scheduler tags with the gate before them, one queue a
//! process or a group, dispatch while the device has room, a timer. Processes do what fio's jobs do;
//! buffered ones do it through a page cache with dirty limits, flushers and read-ahead.
//!
//! What the kernel costs is not modelled: an event takes no time. So a figure from here is what the
//! *algorithm* does, with the disk's true time known; whether the module does the same is for a
//! machine to show. Only waking up takes time, as it decides what a scheduler finds queued at a
//! completion, and so does copying to and from the page cache.
//!
//! Same setup, same seed: same events, to the bit.
#![forbid(unsafe_code)]

mod cache;
mod engine;
mod issuers;
mod load;
mod observe;
mod process;
mod setup;

pub use engine::Sim;
pub use load::{Dirty, Group, Mix, Pattern, Proc};
pub use observe::{Observer, Op, Silent, Tally};
pub use setup::{Charge, Controller, Invalid, Setup};
