//! Newtypes for what the core measures.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use crate::Error;

/// Nanoseconds: an instant on the caller's clock, or a length of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    pub const ZERO: Nanos = Nanos(0);

    pub const fn from_micros(micros: u64) -> Self {
        Nanos(micros * 1_000)
    }
    pub const fn from_millis(millis: u64) -> Self {
        Nanos(millis * 1_000_000)
    }
    pub const fn from_secs(secs: u64) -> Self {
        Nanos(secs * 1_000_000_000)
    }
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    pub fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}
impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0 - other.0)
    }
}
impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}
impl Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(iter: I) -> Nanos {
        iter.fold(Nanos::ZERO, Add::add)
    }
}
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

/// A weight, 1 to 10000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight(u32);

impl Weight {
    pub const MIN: Weight = Weight(1);
    pub const MAX: Weight = Weight(10_000);

    pub const fn new(weight: u32) -> Result<Self, Error> {
        if weight >= Weight::MIN.0 && weight <= Weight::MAX.0 {
            Ok(Weight(weight))
        } else {
            Err(Error::Weight(weight))
        }
    }
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for Weight {
    fn default() -> Self {
        Weight(100)
    }
}

impl TryFrom<u32> for Weight {
    type Error = Error;
    fn try_from(weight: u32) -> Result<Self, Error> {
        Weight::new(weight)
    }
}

/// Class of an entity, best first. `Writeback` is for queues inside a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    Rt = 0,
    #[default]
    Be = 1,
    Writeback = 2,
    Idle = 3,
}

impl Class {
    pub const ALL: [Class; 4] = [Class::Rt, Class::Be, Class::Writeback, Class::Idle];
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dir {
    #[default]
    Read = 0,
    Write = 1,
}

/// By what rule items are charged; see core/account.c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// As the device is: by gap, overlap or learned costs.
    Auto = 0,
    /// By overlap alone; and the depth is not looked after.
    Overlap = 1,
    /// An item keeps the estimate made at its dispatch; what items took is said by
    /// [`crate::Device::charge`] alone.
    Given = 2,
}

/// Order among the items of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Cfq = 0,
    Deadline = 1,
    Fifo = 2,
}

impl Order {
    pub const ALL: [Order; 3] = [Order::Cfq, Order::Deadline, Order::Fifo];
}

/// Why a device runs in plain arrival order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Lost = 1,
    Count = 2,
    Stuck = 3,
    Asked = 4,
}

impl Fault {
    pub(crate) fn from_raw(raw: u64) -> Option<Fault> {
        match raw {
            1 => Some(Fault::Lost),
            2 => Some(Fault::Count),
            3 => Some(Fault::Stuck),
            4 => Some(Fault::Asked),
            _ => None,
        }
    }
}

/// What the operator may set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// Length of a turn; 0: automatic.
    pub slice: Nanos,
    /// Longest anticipation; 0: never.
    pub idle: Nanos,
    /// Items in flight at most; 0: what the device takes.
    pub depth: u32,
    pub order: Order,
    /// Exact shares before throughput.
    pub strict: bool,
}

/// One request, as the core sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub dir: Dir,
    /// First sector, and how many; 512 bytes each.
    pub sector: u64,
    pub sectors: u32,
    /// First inside its group.
    pub head: bool,
    /// Holds up others: goes at once, booked as debt.
    pub express: bool,
}

/// Monotonic counters of one group's own requests, reads before writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    pub time: [Nanos; 2],
    pub sectors: [u64; 2],
    pub ios: [u64; 2],
    pub wait_share: Nanos,
    pub wait_class: Nanos,
    pub wait_idle: Nanos,
    pub wait_depth: Nanos,
    pub wait_tag: Nanos,
    pub wait_max: Nanos,
    pub idle: Nanos,
    pub dequeues: u64,
    pub slices: u64,
    pub express: u64,
}

impl Stats {
    pub(crate) const LEN: usize = 16;

    pub(crate) fn from_raw(raw: &[u64; Self::LEN]) -> Self {
        Stats {
            time: [Nanos(raw[0]), Nanos(raw[3])],
            sectors: [raw[1], raw[4]],
            ios: [raw[2], raw[5]],
            wait_share: Nanos(raw[6]),
            wait_class: Nanos(raw[7]),
            wait_idle: Nanos(raw[8]),
            wait_depth: Nanos(raw[9]),
            wait_tag: Nanos(raw[10]),
            wait_max: Nanos(raw[11]),
            idle: Nanos(raw[12]),
            dequeues: raw[13],
            slices: raw[14],
            express: raw[15],
        }
    }

    /// Disk time of both directions.
    pub fn total_time(&self) -> Nanos {
        self.time[0] + self.time[1]
    }
    pub fn total_ios(&self) -> u64 {
        self.ios[0] + self.ios[1]
    }
}

/// Counters that must balance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub inserted: u64,
    pub removed: u64,
    pub dispatched: u64,
    pub completed: u64,
    pub requeued: u64,
    /// Dispatch found nothing though `has_work` said so: never.
    pub empty: u64,
    pub raced: u64,
    pub clamped: u64,
    pub faults: u64,
    /// There was work for an empty device, and nobody asked for it: never.
    pub unasked: u64,
}

impl Counts {
    pub(crate) const LEN: usize = 10;

    pub(crate) fn from_raw(raw: &[u64; Self::LEN]) -> Self {
        Counts {
            inserted: raw[0],
            removed: raw[1],
            dispatched: raw[2],
            completed: raw[3],
            requeued: raw[4],
            empty: raw[5],
            raced: raw[6],
            clamped: raw[7],
            faults: raw[8],
            unasked: raw[9],
        }
    }
}

/// The device as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceState {
    pub clock: Nanos,
    /// Time with at least one item in flight, and the sum of all charges.
    pub busy: Nanos,
    pub charged: Nanos,
    /// Time for which the device was held idle.
    pub idle: Nanos,
    /// Mean time from dispatch to completion.
    pub service: Nanos,
    pub queued: u32,
    pub inflight: u32,
    pub waiting: u32,
    pub granted: u32,
    pub depth: u32,
    pub holding: bool,
    pub fault: Option<Fault>,
    /// Inserted, and in no line while it is the turn of others: of who commits, or of readers.
    pub parked: u32,
    /// One group has it for itself, to see what its requests take.
    pub solo: bool,
    /// Readers and writers have it by turns: whose it is.
    pub spell: Option<Spell>,
    /// Several write, and wait for room in a cache that is full: few are let in, in our order.
    pub written: bool,
}

/// Whose turn it is where readers and writers of a flash drive have turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spell {
    Writers,
    /// Until what they left behind is written.
    Drain,
    Readers,
}

impl DeviceState {
    pub(crate) const LEN: usize = 16;

    pub(crate) fn from_raw(raw: &[u64; Self::LEN]) -> Self {
        DeviceState {
            clock: Nanos(raw[0]),
            busy: Nanos(raw[1]),
            charged: Nanos(raw[2]),
            idle: Nanos(raw[3]),
            service: Nanos(raw[4]),
            queued: raw[5] as u32,
            inflight: raw[6] as u32,
            waiting: raw[7] as u32,
            granted: raw[8] as u32,
            depth: raw[9] as u32,
            holding: raw[10] != 0,
            fault: Fault::from_raw(raw[11]),
            parked: raw[12] as u32,
            solo: raw[13] != 0,
            spell: match raw[14] {
                1 => Some(Spell::Writers),
                2 => Some(Spell::Drain),
                3 => Some(Spell::Readers),
                _ => None,
            },
            written: raw[15] != 0,
        }
    }
}

/// One entity's place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntityState {
    pub vdisktime: u64,
    pub weight: u32,
    pub class: Class,
    pub queued: u32,
    pub inflight: u32,
    pub waiting: u32,
    pub granted: u32,
    /// A queue that is passed over at the gate, and whose items are parked: it is not its turn, or
    /// it had its part of that. Of groups never.
    pub parked: bool,
}

impl EntityState {
    pub(crate) const LEN: usize = 8;

    pub(crate) fn from_raw(raw: &[u64; Self::LEN]) -> Self {
        EntityState {
            vdisktime: raw[0],
            weight: raw[1] as u32,
            class: Class::ALL[raw[2] as usize],
            queued: raw[3] as u32,
            inflight: raw[4] as u32,
            waiting: raw[5] as u32,
            granted: raw[6] as u32,
            parked: raw[7] != 0,
        }
    }
}

/// One item; see [`Request`] for sector and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemState {
    pub life: ItemLife,
    pub request: Request,
    pub inserted: Nanos,
    pub dispatched: Nanos,
    /// What was charged at dispatch.
    pub estimate: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemLife {
    Free,
    Queued,
    Dispatched,
    Done,
}

impl ItemState {
    pub(crate) const LEN: usize = 9;

    pub(crate) fn from_raw(raw: &[u64; Self::LEN]) -> Self {
        ItemState {
            life: match raw[0] {
                0 => ItemLife::Free,
                1 => ItemLife::Queued,
                2 => ItemLife::Dispatched,
                _ => ItemLife::Done,
            },
            request: Request {
                dir: if raw[3] == 0 { Dir::Read } else { Dir::Write },
                sector: raw[1],
                sectors: raw[2] as u32,
                express: raw[4] != 0,
                head: raw[5] != 0,
            },
            inserted: Nanos(raw[6]),
            dispatched: Nanos(raw[7]),
            estimate: Nanos(raw[8]),
        }
    }
}
