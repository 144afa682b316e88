//! Disk models: what a disk does with its requests, and when.
//!
//! A model is a state machine in model time. It takes requests, as many at once as it has slots,
//! and reports two things about each: when it *completed*, which is all that a host ever learns,
//! and how much device time it truly *took*, which no scheduler sees and every scheduler is judged
//! by. The two differ: a request waits inside the device, shares it with others, or is acknowledged
//! by a write cache long before the head moves.
//!
//! Models are pure: no clock, no threads, no input but requests and a seed. The same calls give the
//! same events, to the bit, on every machine; floating point is used for parameters when a model is
//! made, never after.
//!
//! All times are nanoseconds of model time, sectors are 512 bytes.
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod hdd;
pub mod net;
pub mod region;
pub mod servers;
pub mod spec;
pub mod ssd;

pub use region::Region;
pub use spec::{Model, Spec};

/// What the host asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Read,
    Write,
    /// Completes when all writes completed before it are on the medium; sector and length are
    /// ignored.
    Flush,
}

/// One request as the host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub op: Op,
    pub sector: u64,
    /// At least 1, but for a flush.
    pub sectors: u32,
    /// A write that completes only when it is on the medium.
    pub fua: bool,
}

impl Request {
    /// The first sector after it.
    ///
    /// # Panics
    /// If it is empty, or reaches past a disk of `sectors`.
    fn end_within(&self, sectors: u64) -> u64 {
        assert!(self.sectors > 0, "the request is empty");
        self.sector
            .checked_add(u64::from(self.sectors))
            .filter(|&end| end <= sectors)
            .expect("the request reaches past the end")
    }
}

/// What became of a request; `id` is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The host is told, once for each request.
    Done { id: u64, at: u64 },
    /// Device time that the request has taken, known from `at` on: head time of a disk, channel
    /// time of a flash device, time of one server. One or more for each request but a flush, before
    /// or after its completion; their sum is its true time.
    Took { id: u64, at: u64, time: u64 },
}

impl Event {
    pub fn at(&self) -> u64 {
        match *self {
            Event::Done { at, .. } | Event::Took { at, .. } => at,
        }
    }
}

/// A disk.
///
/// Time does not run back: `now` and `until` never decrease over all calls. Before a call of
/// [`Disk::submit`] the caller has [`Disk::run`] the disk until then.
pub trait Disk {
    /// Its size.
    fn sectors(&self) -> u64;

    /// How many requests it takes at once.
    fn slots(&self) -> u32;

    /// Whether moving from one place to another costs a seek.
    fn rotational(&self) -> bool;

    /// How many requests are served at the same time when it is busiest: heads, channels, servers.
    fn parallelism(&self) -> u32;

    /// Takes a request.
    ///
    /// # Panics
    /// If all slots are taken, the request reaches past the end, or `now` lies before an earlier
    /// call's.
    fn submit(&mut self, id: u64, request: Request, now: u64);

    /// When something will happen next, if nothing is submitted before; `None` while idle.
    fn next_at(&self) -> Option<u64>;

    /// Appends everything that happens up to and including `until`, in order of time.
    fn run(&mut self, until: u64, events: &mut Vec<Event>);
}
