//! The page cache as far as the disk sees it: what is dirty, who has to wait for that, and what is
//! written back when.
//!
//! # Model
//! A *file* is what one process writes. A *domain* has limits, a flusher, and the files of the
//! processes that the limits hold for: a memory cgroup with its writeback structure, or the
//! machine.
//!
//! *Dirty limits* (mm/page-writeback.c). Sectors are dirty from being written to until a request
//! for them is made, then under writeback until that completes. The sum of both decides about
//! writers: up to the middle between background and limit (the "freerun ceiling") they are free.
//! Above, each is to write at
//!
//! ```text
//! rate = bandwidth / writers * (1 + ((setpoint - sum) / (limit - setpoint))^3)
//! ```
//!
//! with the setpoint in the middle between ceiling and limit: twice its part of the bandwidth at
//! the ceiling, its part at the setpoint, nothing at the limit. It sleeps for what it wrote too
//! fast, at most 200 ms at a time and never for more than an eighth of the time that it takes to
//! write back all there is, as the flusher would run dry. The kernel finds out bandwidth / writers
//! by feedback; here the writers are counted, which is where its feedback ends.
//!
//! *Bandwidth* is what completes in intervals of 200 ms and more, smoothed over 3 s, 100 MB/s
//! before anything is known.
//!
//! *The flusher* (fs/fs-writeback.c) is one thread. It works while there is more dirty than the
//! background limit, and on files that have been dirty for longer than 30 s, for which it looks
//! every 5 s. It takes the files in turn, oldest first, each for a quarter to half a second's worth
//! of writing, at least 4 MiB, and in a file goes on where it stopped, around its end. It makes
//! requests of as many contiguous dirty sectors as one can have, and sleeps when there is no tag
//! for it.
//!
//! *Sync.* Who syncs writes its file's dirty sectors itself and waits for all that are under
//! writeback. So these requests are the process's own, not the flusher's.
//!
//! # Left out, and why
//! - Memory. Nothing is reclaimed, and pages do not stay: a workload that reads again what it has
//!   read would find it here no faster.
//! - Metadata and journals. They are a file system's, and differ.
//! - The machine's limits where a group has its own. Both hold in the kernel; here a group's are
//!   taken to be the tighter ones.
//!
//! Amounts are in sectors of 512 bytes, times in nanoseconds.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};

use crate::load::Dirty;

const SECTOR: u64 = 512;
const MS: u64 = 1_000_000;
const SEC: u64 = 1_000 * MS;

/// What copying a sector to or from the cache takes: 1 us for 4 KiB, as on a machine of today.
pub(crate) const COPY_NS: u64 = 125;
/// A writer looks at the limits after so much: the kernel's `ratelimit_pages`, 128 KiB.
pub(crate) const CHUNK: u32 = 256;
/// Longest sleep of a writer at a time: `MAX_PAUSE`.
const MAX_PAUSE_NS: u64 = 200 * MS;
/// Shorter sleeps are saved up: the kernel aims at 10 ms and more.
const MIN_PAUSE_NS: u64 = 10 * MS;
/// Bandwidth is measured over this much at least: `BANDWIDTH_INTERVAL`.
const MEASURE_NS: u64 = 200 * MS;
/// And smoothed over this much.
const SMOOTH_NS: u64 = 3 * SEC;
/// A pause of this length is not a part of it.
const QUIET_NS: u64 = SEC;
/// Taken for it before anything is known, in sectors a second: `INIT_BW`.
const FIRST_BANDWIDTH: u64 = 100 * 2048;
/// How long a file may be dirty: `dirty_expire_interval`.
const EXPIRE_NS: u64 = 30 * SEC;
/// How often the flusher looks for such files: `dirty_writeback_interval`.
const LOOK_NS: u64 = 5 * SEC;
/// A turn of a file is a multiple of this: `MIN_WRITEBACK_PAGES`, 4 MiB.
const MIN_TURN: u64 = 8192;
/// And at most this part of the machine's limit, before rounding: `DIRTY_SCOPE`.
const TURN_PART: u64 = 8;
/// The longest request: 1 MiB. The block layer's own bound is 1280 KiB, and hardware's often less.
const MAX_REQUEST: u64 = 2048;

/// A part of a file that is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The process whose file it is a part of.
    pub proc: usize,
    pub sector: u64,
    pub sectors: u32,
}

/// What a writer may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Balance {
    /// Go on, owing nothing.
    Free,
    /// Go on, still owing so many sectors.
    Later(u64),
    /// Sleep so long, then ask again, owing so many sectors.
    Pause { ns: u64, owing: u64 },
}

#[derive(Default)]
struct File {
    proc: usize,
    domain: usize,
    /// First sectors and ends, disjoint and not touching.
    dirty: BTreeMap<u64, u64>,
    writing: u64,
    /// When it became dirty; `None`: nothing is, and it stands in no line.
    since: Option<u64>,
    /// Where the flusher goes on.
    cursor: u64,
}

struct Domain {
    background: u64,
    limit: u64,
    dirty: u64,
    writing: u64,
    /// Processes that write.
    writers: u64,
    /// Dirty files, oldest first; the first has the turn.
    line: VecDeque<usize>,
    /// What is left of the turn; 0: it has not begun.
    turn: u64,
    /// The flusher has been told to work and has not found that it need not.
    working: bool,
    looks: bool,
    /// Sectors a second.
    bandwidth: u64,
    measured_at: u64,
    /// Written since then.
    written: u64,
}

pub(crate) struct Cache {
    domains: Vec<Domain>,
    files: Vec<File>,
    turn_most: u64,
    /// Flushers that have been given work.
    pub woken: Vec<usize>,
    /// Flushers that are to look for old files, and when.
    pub looks: Vec<(u64, usize)>,
}

impl Domain {
    fn sum(&self) -> u64 {
        self.dirty + self.writing
    }

    /// Sectors a second that one writer is to write; `None`: as it likes.
    fn rate(&self) -> Option<u64> {
        let ceiling = (self.background + self.limit) / 2;
        let sum = self.sum();
        if sum <= ceiling {
            return None;
        }
        if sum >= self.limit {
            return Some(0);
        }
        // In 1/1024; at most one in size, as the sum lies between ceiling and limit.
        let setpoint = (ceiling + self.limit) / 2;
        let room = (self.limit - setpoint).max(1) as i64;
        let x = ((setpoint as i64 - sum as i64) * 1024 / room).clamp(-1024, 1024);
        let factor = (1024 + x * x * x / (1024 * 1024)) as u64;
        Some(self.bandwidth * factor / 1024 / self.writers.max(1))
    }

    fn longest_pause(&self) -> u64 {
        (self.sum() * SEC / 8 / self.bandwidth.max(1)).clamp(MIN_PAUSE_NS, MAX_PAUSE_NS)
    }

    fn measure(&mut self, sectors: u64, now: u64) {
        self.written += sectors;
        let took = now - self.measured_at;
        if took < MEASURE_NS {
            return;
        }
        let sample = (u128::from(self.written) * u128::from(SEC) / u128::from(took)) as u64;
        let part = took.min(SMOOTH_NS);
        // In parts of a millisecond nothing overflows.
        let (part, whole) = (part / MS, SMOOTH_NS / MS);
        self.bandwidth = (self.bandwidth * (whole - part) + sample * part) / whole;
        self.measured_at = now;
        self.written = 0;
    }
}

impl File {
    /// Makes sectors dirty; returns how many were not.
    fn add(&mut self, mut from: u64, mut to: u64) -> u64 {
        let mut had = 0;
        while let Some((&start, &end)) = self.dirty.range(..=to).next_back() {
            if end < from {
                break;
            }
            self.dirty.remove(&start);
            had += end - start;
            from = from.min(start);
            to = to.max(end);
        }
        self.dirty.insert(from, to);
        to - from - had
    }

    fn is_old(&self, now: u64) -> bool {
        self.since.is_some_and(|since| since + EXPIRE_NS <= now)
    }

    /// Takes up to `most` contiguous sectors, the first at or after `at`, or the first of all.
    fn take(&mut self, at: u64, most: u64) -> Option<(u64, u64)> {
        let inside = self.dirty.range(..at).next_back();
        let (start, end) = inside
            .filter(|&(_, &end)| end > at)
            .or_else(|| self.dirty.range(at..).next())
            .or_else(|| self.dirty.iter().next())
            .map(|(&start, &end)| (start, end))?;
        let from = if start < at && at < end { at } else { start };
        let to = end.min(from + most);
        self.dirty.remove(&start);
        if start < from {
            self.dirty.insert(start, from);
        }
        if to < end {
            self.dirty.insert(to, end);
        }
        Some((from, to - from))
    }
}

impl Cache {
    /// `machine`: the limits of the machine as a whole.
    pub fn new(machine: Dirty) -> Self {
        Cache {
            domains: Vec::new(),
            files: Vec::new(),
            turn_most: machine.limit / SECTOR / TURN_PART,
            woken: Vec::new(),
            looks: Vec::new(),
        }
    }

    pub fn add_domain(&mut self, limits: Dirty) -> usize {
        self.domains.push(Domain {
            background: limits.background / SECTOR,
            limit: limits.limit / SECTOR,
            dirty: 0,
            writing: 0,
            writers: 0,
            line: VecDeque::new(),
            turn: 0,
            working: false,
            looks: false,
            bandwidth: FIRST_BANDWIDTH,
            measured_at: 0,
            written: 0,
        });
        self.domains.len() - 1
    }

    pub fn add_file(&mut self, domain: usize, proc: usize) -> usize {
        self.files.push(File {
            proc,
            domain,
            ..File::default()
        });
        self.files.len() - 1
    }

    /// A process begins to write to the file, or ceases to.
    pub fn set_writing(&mut self, file: usize, writes: bool) {
        let writers = &mut self.domains[self.files[file].domain].writers;
        if writes {
            *writers += 1;
        } else {
            *writers -= 1;
        }
    }

    /// Bytes that are dirty or under writeback.
    pub fn held(&self, domain: usize) -> u64 {
        self.domains[domain].sum() * SECTOR
    }

    /// Nothing of the file is dirty or under writeback.
    pub fn is_clean(&self, file: usize) -> bool {
        self.files[file].dirty.is_empty() && self.files[file].writing == 0
    }

    /// A process has written to its file.
    pub fn write(&mut self, file: usize, sector: u64, sectors: u32, now: u64) {
        let index = self.files[file].domain;
        let domain = &mut self.domains[index];
        domain.dirty += self.files[file].add(sector, sector + u64::from(sectors));
        if self.files[file].since.is_none() {
            self.files[file].since = Some(now);
            domain.line.push_back(file);
        }
        if !domain.looks {
            domain.looks = true;
            self.looks.push((now + LOOK_NS, index));
        }
        if domain.dirty > domain.background {
            self.begin(index);
        }
    }

    /// Gives the flusher work.
    fn begin(&mut self, index: usize) {
        let domain = &mut self.domains[index];
        if domain.working {
            return;
        }
        domain.working = true;
        self.woken.push(index);
    }

    /// What a process is to do that owes so many sectors and last asked so long ago.
    pub fn balance(&self, file: usize, owing: u64, elapsed_ns: u64) -> Balance {
        let domain = &self.domains[self.files[file].domain];
        let pay = |rate: u64, ns: u64| u128::from(rate) * u128::from(ns) / u128::from(SEC);
        match domain.rate() {
            None => Balance::Free,
            Some(0) => Balance::Pause {
                ns: domain.longest_pause(),
                owing,
            },
            Some(rate) => {
                let owing = owing.saturating_sub(pay(rate, elapsed_ns) as u64);
                let ns = owing * SEC / rate;
                if ns < MIN_PAUSE_NS {
                    return Balance::Later(owing);
                }
                let ns = ns.min(domain.longest_pause());
                Balance::Pause {
                    ns,
                    owing: owing.saturating_sub(pay(rate, ns) as u64),
                }
            }
        }
    }

    /// The flusher looks for old files; returns when it is to look again.
    pub fn look(&mut self, index: usize, now: u64) -> Option<u64> {
        let domain = &mut self.domains[index];
        domain.looks = !domain.line.is_empty();
        let again = domain.looks.then_some(now + LOOK_NS);
        if self.expired(index, now) {
            self.begin(index);
        }
        again
    }

    fn expired(&self, index: usize, now: u64) -> bool {
        let mut line = self.domains[index].line.iter();
        line.any(|&file| self.files[file].is_old(now))
    }

    /// What the flusher writes next; `None`: it has no more to do.
    pub fn write_back(&mut self, index: usize, now: u64) -> Option<Extent> {
        let domain = &self.domains[index];
        let most = (domain.bandwidth / 2).min(self.turn_most);
        let all = domain.dirty > domain.background;
        if !domain.working || !(all || self.expired(index, now)) {
            self.domains[index].working = false;
            return None;
        }
        let domain = &mut self.domains[index];
        if domain.turn == 0 {
            // One of them is old, or all are to be written.
            while let Some(&file) = domain.line.front()
                && !(all || self.files[file].is_old(now))
            {
                domain.line.rotate_left(1);
            }
            domain.turn = (most + MIN_TURN) / MIN_TURN * MIN_TURN;
        }
        let &file = domain.line.front()?;
        let at = self.files[file].cursor;
        let (sector, sectors) = self.files[file].take(at, domain.turn.min(MAX_REQUEST))?;
        self.files[file].cursor = sector + sectors;
        domain.turn -= sectors;
        if domain.turn == 0 {
            domain.line.rotate_left(1);
        }
        Some(self.taken(file, sector, sectors, now))
    }

    /// What a process that syncs its file writes next.
    pub fn sync(&mut self, file: usize, now: u64) -> Option<Extent> {
        let (sector, sectors) = self.files[file].take(0, MAX_REQUEST)?;
        Some(self.taken(file, sector, sectors, now))
    }

    fn taken(&mut self, file: usize, sector: u64, sectors: u64, now: u64) -> Extent {
        let domain = &mut self.domains[self.files[file].domain];
        if domain.writing == 0 && now - domain.measured_at > QUIET_NS {
            // What is measured is the disk, not how long there was nothing to do.
            domain.measured_at = now;
            domain.written = 0;
        }
        domain.dirty -= sectors;
        domain.writing += sectors;
        self.files[file].writing += sectors;
        if self.files[file].dirty.is_empty() {
            if domain.line.front() == Some(&file) {
                domain.turn = 0;
            }
            domain.line.retain(|&other| other != file);
            self.files[file].since = None;
        }
        Extent {
            proc: self.files[file].proc,
            sector,
            sectors: sectors as u32,
        }
    }

    /// A request for dirty sectors is complete.
    pub fn cleaned(&mut self, file: usize, sectors: u32, now: u64) {
        let sectors = u64::from(sectors);
        self.files[file].writing -= sectors;
        let domain = &mut self.domains[self.files[file].domain];
        domain.writing -= sectors;
        domain.measure(sectors, now);
    }
}
