//! What can be seen of a run.

use disktime_core::Dir;

/// A request, as an observer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Index of the process: for what is written back, the one whose file it is.
    pub proc: usize,
    pub dir: Dir,
    /// It is the process's own request. Else a flusher made it, and no process waits for it.
    pub sync: bool,
    pub sector: u64,
    pub sectors: u32,
    /// When it was asked for: before it had a tag.
    pub asked: u64,
}

/// Sees what a tracer of the block layer would, but for flushes.
pub trait Observer {
    fn issued(&mut self, op: &Op, at: u64);
    fn completed(&mut self, op: &Op, at: u64);
    /// A process's sync is complete: of writes the first of which it began at `since`.
    fn synced(&mut self, _proc: usize, _since: u64, _at: u64) {}
}

/// Looks away.
pub struct Silent;

impl Observer for Silent {
    fn issued(&mut self, _: &Op, _: u64) {}
    fn completed(&mut self, _: &Op, _: u64) {}
}

/// What one group had, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Completed, reads before writes.
    pub ios: [u64; 2],
    pub sectors: [u64; 2],
    /// Times that a process of it had the disk's cache flushed.
    pub flushes: u64,
    /// Device time that its requests took by the model's account, which no scheduler sees.
    pub true_ns: u64,
}
