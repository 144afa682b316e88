//! What is simulated, and what cannot be.

use disktime_core::{Nanos, Order};
use disktime_model::Disk;
use thiserror::Error;

use crate::load::{Dirty, Group, Proc};

/// Who says what a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Charge {
    /// The core, by what it sees.
    #[default]
    Own,
    /// The model, when it is known there: what is wrong then is not the accounting. A device that
    /// serves several requests at a time has as much time to give as passes: what a request took is
    /// divided by their number.
    True,
}

/// Who decides which request the disk gets.
#[derive(Clone, Copy, Debug)]
pub enum Controller {
    /// The core; `None` leaves a tunable at its default.
    Disktime {
        slice: Option<Nanos>,
        idle: Option<Nanos>,
        depth: Option<u32>,
        order: Option<Order>,
        strict: bool,
        charge: Charge,
    },
    /// Nobody: requests go to the disk in order of arrival.
    Fifo,
}

impl Controller {
    /// The core with all defaults.
    pub const DISKTIME: Controller = Controller::Disktime {
        slice: None,
        idle: None,
        depth: None,
        order: None,
        strict: false,
        charge: Charge::Own,
    };
}

/// What is simulated.
pub struct Setup {
    pub disk: Box<dyn Disk>,
    pub controller: Controller,
    /// Size of the scheduler's tag set; `None`: the block layer's default.
    pub nr_requests: Option<u32>,
    /// Parents before children.
    pub groups: Vec<Group>,
    pub procs: Vec<Proc>,
    /// What the groups may have dirty together that have no limits of their own.
    pub dirty: Dirty,
    /// From a completion until its process runs and can issue again: what a wake-up takes. At 0 a
    /// process that waits for each of its requests would never be found without one.
    pub wake_ns: u64,
    /// For where requests go and which are reads. The disk has a seed of its own.
    pub seed: u64,
    /// Verify the core's invariants after each event: slow.
    pub checked: bool,
}

/// Why a setup cannot be simulated.
#[derive(Debug, Error)]
pub enum Invalid {
    #[error("process {0} belongs to a group that there is not")]
    NoGroup(usize),
    #[error("more than 32767 processes")]
    Many,
    #[error("group {0} stands before the group that it belongs to")]
    Parent(usize),
    #[error("the region of process {0} is too small for its requests, or reaches past the disk")]
    Region(usize),
    #[error("process {0} keeps no request outstanding")]
    Depth(usize),
    #[error("a burst, a rate or a number of writes of process {0} is nothing")]
    Nothing(usize),
    #[error("writing back is to begin below the limit, and there is to be one")]
    Dirty,
    #[error("a tag set has at least one request and at most 2048")]
    Tags,
    #[error(transparent)]
    Core(#[from] disktime_core::Error),
}

pub(crate) fn check(setup: &Setup) -> Result<(), Invalid> {
    let cannot_be = |dirty: Dirty| dirty.background >= dirty.limit;
    if cannot_be(setup.dirty) {
        return Err(Invalid::Dirty);
    }
    // A request's id has room for so many, and each process may bring a flusher.
    if setup.procs.len() > usize::from(u16::MAX / 2) {
        return Err(Invalid::Many);
    }
    for (index, group) in setup.groups.iter().enumerate() {
        if group.parent.is_some_and(|parent| parent >= index) {
            return Err(Invalid::Parent(index));
        }
        if group.dirty.is_some_and(cannot_be) {
            return Err(Invalid::Dirty);
        }
    }
    for (index, proc) in setup.procs.iter().enumerate() {
        if proc.group >= setup.groups.len() {
            return Err(Invalid::NoGroup(index));
        }
        let room = proc.to.saturating_sub(proc.from);
        if proc.sectors == 0 || room < u64::from(proc.sectors) || proc.to > setup.disk.sectors() {
            return Err(Invalid::Region(index));
        }
        if proc.depth == 0 {
            return Err(Invalid::Depth(index));
        }
        if proc.burst == 0 || proc.rate_iops == Some(0) || proc.fsync_every == Some(0) {
            return Err(Invalid::Nothing(index));
        }
    }
    if setup.nr_requests.is_some_and(|nr| nr == 0 || nr > 2048) {
        return Err(Invalid::Tags);
    }
    Ok(())
}
