//! What processes ask for, in fio's vocabulary.
//!
//! Direct I/O is a closed loop: so many requests outstanding, each issued when another has
//! completed. Buffered I/O is one call after another; what the disk sees of it, and when, is for
//! the page cache to decide (see `cache`).

use disktime_core::{Class, Weight};

/// How much may be dirty in the page cache, under writeback included.
///
/// The kernel has these as parts of memory, `dirty_background_ratio` 10 and `dirty_ratio` 20, for
/// the machine and for each memory cgroup (mm/page-writeback.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dirty {
    /// Bytes above which writing back begins; below `limit`.
    pub background: u64,
    /// Bytes at which writers wait.
    pub limit: u64,
}

impl Dirty {
    /// The kernel's defaults for so many bytes of memory.
    pub const fn of_memory(bytes: u64) -> Self {
        Dirty {
            background: bytes / 10,
            limit: bytes / 5,
        }
    }
}

impl Default for Dirty {
    /// A machine with 8 GiB that can be dirty.
    fn default() -> Self {
        Dirty::of_memory(8 << 30)
    }
}

/// A group; see the core.
#[derive(Clone, Copy, Debug, Default)]
pub struct Group {
    /// Index of the group above it, which comes before it; `None`: the root.
    pub parent: Option<usize>,
    pub weight: Weight,
    pub class: Class,
    /// What the group and those below it may have dirty, as with a memory limit and cgroup
    /// writeback: the group then has a flusher of its own, whose requests are the group's. `None`:
    /// as the nearest group above that has limits. Where none has, it is [`crate::Setup::dirty`],
    /// and what is written back is the root's, whoever wrote it, as on a file system without
    /// cgroup writeback: the flusher is a kernel thread, and those live in the root group.
    pub dirty: Option<Dirty>,
}

/// Where the next request goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// On from the last one, and around.
    #[default]
    Sequential,
    /// Anywhere in the region, aligned to its own size.
    Random,
}

/// Which requests are reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    #[default]
    Read,
    Write,
    /// Each with even odds.
    Both,
}

/// A process.
///
/// ```
/// # use disktime_sim::{Mix, Proc};
/// let dd = Proc { mix: Mix::Write, buffered: true, sync_at_end: true, ..Proc::new(0, 0, 1 << 20) };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Proc {
    /// Index of its group.
    pub group: usize,
    pub pattern: Pattern,
    pub mix: Mix,
    /// Sectors of an I/O.
    pub sectors: u32,
    /// I/Os that it keeps outstanding. A buffered process has one: its calls return one by one.
    pub depth: u32,
    /// How long it thinks, from the completion of a burst to the I/O that follows it.
    pub think_ns: u64,
    /// I/Os after which it thinks (`thinktime_blocks`). With more than one it issues so many at its
    /// depth, waits for all of them, and thinks. With 1 each of its `depth` places thinks for
    /// itself, as so many processes would; fio's own do so only at depth 1.
    pub burst: u32,
    /// At most so many I/Os a second, reads and writes together (fio limits each by itself).
    ///
    /// The n-th is due n intervals after the beginning, however late the others were: who falls
    /// behind issues as fast as it can until it has caught up. As in fio, who is early waits for
    /// all that it has outstanding, then sleeps for as long as it was early.
    pub rate_iops: Option<u32>,
    /// From being started to its first I/O.
    pub start_ns: u64,
    /// Writes after which it syncs and waits for that: once they are complete, or what they left
    /// in the page cache has been written, the disk gets a flush.
    pub fsync_every: Option<u32>,
    /// It syncs after its last I/O (`end_fsync`, dd's `conv=fdatasync`), if there was any write
    /// since it last did, and has finished when that is done.
    pub sync_at_end: bool,
    /// Through the page cache. Reading on, it reads ahead; with [`Mix::Both`] or at random it waits
    /// for each read. What has been read is not found in the cache again.
    pub buffered: bool,
    /// Its region of the disk: first sector, and the first after it. To the page cache it is a file
    /// of the process's own.
    pub from: u64,
    pub to: u64,
    /// It ends after so many sectors; `None`: never.
    pub limit: Option<u64>,
    /// How it stands among the processes of its group where the order is by process.
    pub class: Class,
    pub weight: Weight,
}

impl Proc {
    /// One that reads on through a region, 4 KiB at a time, for ever.
    pub fn new(group: usize, from: u64, to: u64) -> Self {
        Proc {
            group,
            from,
            to,
            ..Proc::default()
        }
    }
}

impl Default for Proc {
    /// As [`Proc::new`], with an empty region in the first group.
    fn default() -> Self {
        Proc {
            group: 0,
            pattern: Pattern::default(),
            mix: Mix::default(),
            sectors: 8,
            depth: 1,
            think_ns: 0,
            burst: 1,
            rate_iops: None,
            start_ns: 0,
            fsync_every: None,
            sync_at_end: false,
            buffered: false,
            from: 0,
            to: 0,
            limit: None,
            class: Class::default(),
            weight: Weight::default(),
        }
    }
}
