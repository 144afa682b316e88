//! What processes ask for: closed loops of direct I/O, in fio's vocabulary.

use disktime_core::{Class, Weight};

/// A group; see the core.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Index of the group above it, which comes before it; `None`: the root.
    pub parent: Option<usize>,
    pub weight: Weight,
    pub class: Class,
}

/// Where the next request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// On from the last one, and around.
    Sequential,
    /// Anywhere in the region, aligned to its own size.
    Random,
}

/// Which requests are reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mix {
    Read,
    Write,
    /// Each with even odds.
    Both,
}

/// A process that keeps `depth` requests outstanding, each issued when another has completed.
#[derive(Clone, Copy, Debug)]
pub struct Proc {
    /// Index of its group.
    pub group: usize,
    pub pattern: Pattern,
    pub mix: Mix,
    /// Sectors of a request.
    pub sectors: u32,
    pub depth: u32,
    /// From a completion to the request that follows it.
    pub think_ns: u64,
    /// Its region of the disk: first sector, and the first after it.
    pub from: u64,
    pub to: u64,
    /// It ends after so many sectors; `None`: never.
    pub limit: Option<u64>,
    /// How it stands among the processes of its group where the order is by process.
    pub class: Class,
    pub weight: Weight,
}
