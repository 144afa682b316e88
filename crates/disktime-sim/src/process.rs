//! What a process does next: the loop of fio's job, or of a program that reads and writes through
//! the page cache.

use std::collections::VecDeque;

use disktime_core::Dir;
use rand::Rng;
use rand_chacha::ChaCha8Rng;

use crate::cache::{Balance, CHUNK, COPY_NS, Cache};
use crate::load::{Mix, Pattern, Proc};

/// Sectors of a read-ahead window: `read_ahead_kb` 128. The kernel works up to it from smaller ones
/// (mm/readahead.c); here the first is as long.
const WINDOW: u32 = 256;

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An I/O of the process, as it asked for it.
    Own,
    /// A window that is read ahead.
    Ahead,
    /// Dirty sectors of a file.
    Clean,
    /// A flush of the disk's cache.
    Flush,
}

/// What somebody wants of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub kind: Kind,
    pub dir: Dir,
    pub sector: u64,
    pub sectors: u32,
}

/// What a process does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing, until something of it completes.
    Nothing,
    /// It is to be asked again.
    Again,
    Request(Wish),
    Flush,
    /// It sleeps, copies or computes until then.
    At(u64),
    /// It thinks until then: [`Process::woke`].
    Think(u64),
}

/// A read() or write() through the page cache that has not returned.
#[derive(Clone, Copy)]
struct Call {
    dir: Dir,
    sector: u64,
    /// Sectors that are not copied yet.
    left: u32,
    /// Sectors that it is copying; 0: it is not.
    copying: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sync {
    Idle,
    Cleaning,
    Flushing,
}

struct Window {
    sector: u64,
    sectors: u32,
    done: bool,
}

/// What a sequential reader has read ahead. When it enters a window, the one behind it is asked
/// for: the first page of each is marked for that (PG_readahead).
struct Ahead {
    windows: VecDeque<Window>,
    /// Where the next window begins.
    next: u64,
    /// Sectors to its end, as if that were the file's.
    left: u64,
    /// Sectors that have been read of the first window.
    used: u32,
    /// The process waits for the first window.
    waits: bool,
}

pub(crate) struct Process {
    pub spec: Proc,
    /// In the page cache, if it writes there.
    pub file: Option<usize>,
    on: bool,
    /// When it began, or will.
    begin: u64,
    finished_at: Option<u64>,
    /// I/Os that have begun and are not complete.
    outstanding: u32,
    /// I/Os that it will begin when it has woken up and thought.
    thinking: u32,
    next_sector: u64,
    left: u64,
    moved: u64,
    /// Left of the burst, and whether it thinks because nothing is.
    burst: u32,
    rests: bool,
    /// I/Os since it began, and how long it will sleep once none is outstanding.
    begun: u64,
    early: Option<u64>,
    /// Until then it does nothing.
    busy: Option<u64>,
    call: Option<Call>,
    ahead: Ahead,
    sync: Sync,
    /// Writes since it synced last.
    unsynced: u64,
    /// When it began with the first of them.
    unsynced_since: u64,
    /// Sectors that it has written too fast, and until when that was reckoned.
    owing: u64,
    reckoned: u64,
    /// The page cache counts it among the writers.
    counted: bool,
}

impl Process {
    pub fn new(spec: Proc, file: Option<usize>) -> Self {
        let left = spec.limit.unwrap_or(u64::MAX);
        Process {
            spec,
            file,
            on: false,
            begin: 0,
            finished_at: None,
            outstanding: 0,
            thinking: 0,
            next_sector: spec.from,
            left,
            moved: 0,
            burst: spec.burst,
            rests: false,
            begun: 0,
            early: None,
            busy: None,
            call: None,
            ahead: Ahead {
                windows: VecDeque::new(),
                next: spec.from,
                left: left - left % u64::from(spec.sectors),
                used: 0,
                waits: false,
            },
            sync: Sync::Idle,
            unsynced: 0,
            unsynced_since: 0,
            owing: 0,
            reckoned: 0,
            counted: false,
        }
    }

    /// Lets it begin I/Os; returns from when on, if it was not let already.
    pub fn start(&mut self, now: u64) -> Option<u64> {
        if self.on {
            return None;
        }
        self.on = true;
        self.begin = now + self.spec.start_ns;
        self.begun = 0;
        self.early = None;
        Some(self.begin)
    }

    /// Lets it begin no more.
    pub fn stop(&mut self, cache: &mut Cache) {
        self.on = false;
        self.count(cache);
    }

    /// Whether it has done all that it was to.
    pub fn finished(&self) -> bool {
        self.left < u64::from(self.spec.sectors)
            && self.outstanding == 0
            && self.sync == Sync::Idle
            && !self.sync_is_due()
    }

    /// Since when.
    pub fn finished_at(&self) -> Option<u64> {
        self.finished_at
    }

    /// Bytes that it has read or written.
    pub fn moved(&self) -> u64 {
        self.moved
    }

    /// I/Os, windows and syncs that have begun and are not complete.
    pub fn outstanding(&self) -> u32 {
        let windows = self.ahead.windows.iter();
        self.outstanding
            + windows.filter(|window| !window.done).count() as u32
            + u32::from(self.sync != Sync::Idle)
    }

    fn depth(&self) -> u32 {
        if self.spec.buffered {
            1
        } else {
            self.spec.depth
        }
    }

    fn reads_ahead(&self) -> bool {
        let spec = &self.spec;
        spec.buffered && spec.mix == Mix::Read && spec.pattern == Pattern::Sequential
    }

    fn sync_is_due(&self) -> bool {
        let ended = self.left < u64::from(self.spec.sectors);
        self.unsynced > 0
            && (self.spec.sync_at_end && ended
                || self
                    .spec
                    .fsync_every
                    .is_some_and(|n| self.unsynced >= u64::from(n)))
    }

    /// What it does now. To be asked until that is nothing, or to wait.
    pub fn next(&mut self, now: u64, rng: &mut ChaCha8Rng, cache: &mut Cache) -> Next {
        if let Some(until) = self.busy {
            if now < until {
                return Next::Nothing;
            }
            self.busy = None;
        }
        if self.sync != Sync::Idle {
            return self.go_on_syncing(now, cache);
        }
        if let Some(call) = self.call.take() {
            return self.go_on(call, now, cache);
        }
        if !self.on || now < self.begin || self.rests {
            return Next::Nothing;
        }
        if self.sync_is_due() {
            if self.outstanding + self.thinking > 0 {
                return Next::Nothing;
            }
            self.sync = Sync::Cleaning;
            return self.go_on_syncing(now, cache);
        }
        let idle = self.outstanding + self.thinking < self.depth();
        if !idle || self.left < u64::from(self.spec.sectors) || self.burst == 0 {
            return Next::Nothing;
        }
        if let Some(next) = self.keep_rate(now) {
            return next;
        }
        self.begin_one(now, rng, cache)
    }

    /// What the rate makes it do before the next I/O.
    fn keep_rate(&mut self, now: u64) -> Option<Next> {
        let rate = u64::from(self.spec.rate_iops?);
        let due = self.begin + self.begun * 1_000_000_000 / rate;
        let early = self.early.take().or_else(|| due.checked_sub(now))?;
        if self.outstanding + self.thinking > 0 && early > 0 {
            self.early = Some(early);
            return Some(Next::Nothing);
        }
        (early > 0).then(|| self.until(now + early))
    }

    fn until(&mut self, at: u64) -> Next {
        self.busy = Some(at);
        Next::At(at)
    }

    fn begin_one(&mut self, now: u64, rng: &mut ChaCha8Rng, cache: &mut Cache) -> Next {
        let spec = &self.spec;
        let sectors = u64::from(spec.sectors);
        let sector = match spec.pattern {
            Pattern::Sequential => {
                let at = self.next_sector;
                let next = at + sectors;
                self.next_sector = if next + sectors > spec.to {
                    spec.from
                } else {
                    next
                };
                at
            }
            Pattern::Random => {
                let places = (spec.to - spec.from) / sectors;
                spec.from + rng.random_range(0..places) * sectors
            }
        };
        let dir = match spec.mix {
            Mix::Read => Dir::Read,
            Mix::Write => Dir::Write,
            Mix::Both if rng.random() => Dir::Write,
            Mix::Both => Dir::Read,
        };
        self.outstanding += 1;
        self.left -= sectors;
        self.begun += 1;
        if dir == Dir::Write {
            if self.unsynced == 0 {
                self.unsynced_since = now;
            }
            self.unsynced += 1;
        }
        if self.spec.burst > 1 {
            self.burst -= 1;
        }
        if self.reads_ahead() || self.spec.buffered && dir == Dir::Write {
            let call = Call {
                dir,
                sector,
                left: self.spec.sectors,
                copying: 0,
            };
            self.count(cache);
            return self.go_on(call, now, cache);
        }
        Next::Request(Wish {
            kind: Kind::Own,
            dir,
            sector,
            sectors: self.spec.sectors,
        })
    }

    /// Has the page cache count it among those that write, while it does.
    fn count(&mut self, cache: &mut Cache) {
        let writes = self.on && (self.left >= u64::from(self.spec.sectors) || self.outstanding > 0);
        if let Some(file) = self.file
            && writes != self.counted
        {
            cache.set_writing(file, writes);
            self.counted = writes;
        }
    }

    /// Goes on with a call from where it stood.
    fn go_on(&mut self, mut call: Call, now: u64, cache: &mut Cache) -> Next {
        let copied = call.copying;
        call.left -= copied;
        call.copying = 0;
        self.moved += u64::from(copied) * 512;
        let next = match call.dir {
            Dir::Read => self.read(&mut call, copied, now),
            Dir::Write => self.write(&mut call, copied, now, cache),
        };
        if let Some(next) = next {
            self.call = Some(call);
            return next;
        }
        let wait = self.complete(now, 0);
        self.count(cache);
        match wait {
            Some(at) => Next::Think(at),
            None => Next::Again,
        }
    }

    /// `None`: the call returns.
    fn read(&mut self, call: &mut Call, copied: u32, now: u64) -> Option<Next> {
        let ahead = &mut self.ahead;
        ahead.used += copied;
        if let Some(first) = ahead.windows.front()
            && ahead.used == first.sectors
        {
            ahead.windows.pop_front();
            ahead.used = 0;
        }
        if call.left == 0 {
            return None;
        }
        if ahead.windows.len() < 2 && ahead.left > 0 {
            let sectors = u64::from(WINDOW)
                .min(self.spec.to - ahead.next)
                .min(ahead.left);
            let sector = ahead.next;
            ahead.left -= sectors;
            ahead.next += sectors;
            if ahead.next == self.spec.to {
                ahead.next = self.spec.from;
            }
            ahead.windows.push_back(Window {
                sector,
                sectors: sectors as u32,
                done: false,
            });
            return Some(Next::Request(Wish {
                kind: Kind::Ahead,
                dir: Dir::Read,
                sector,
                sectors: sectors as u32,
            }));
        }
        let first = ahead.windows.front()?;
        if !first.done {
            ahead.waits = true;
            return Some(Next::Nothing);
        }
        call.copying = call.left.min(first.sectors - ahead.used);
        Some(self.until(now + u64::from(call.copying) * COPY_NS))
    }

    /// `None`: the call returns.
    fn write(&mut self, call: &mut Call, copied: u32, now: u64, cache: &mut Cache) -> Option<Next> {
        let file = self.file?;
        if copied > 0 {
            cache.write(file, call.sector, copied, now);
            call.sector += u64::from(copied);
            self.owing += u64::from(copied);
        }
        let elapsed = now.saturating_sub(self.reckoned);
        self.reckoned = now;
        match cache.balance(file, self.owing, elapsed) {
            Balance::Free => self.owing = 0,
            Balance::Later(owing) => self.owing = owing,
            Balance::Pause { ns, owing } => {
                self.owing = owing;
                self.reckoned = now + ns;
                return Some(self.until(now + ns));
            }
        }
        if call.left == 0 {
            return None;
        }
        call.copying = call.left.min(CHUNK);
        Some(self.until(now + u64::from(call.copying) * COPY_NS))
    }

    fn go_on_syncing(&mut self, now: u64, cache: &mut Cache) -> Next {
        if self.sync == Sync::Flushing {
            return Next::Nothing;
        }
        if let Some(file) = self.file {
            if let Some(extent) = cache.sync(file, now) {
                return Next::Request(Wish {
                    kind: Kind::Clean,
                    dir: Dir::Write,
                    sector: extent.sector,
                    sectors: extent.sectors,
                });
            }
            if !cache.is_clean(file) {
                return Next::Nothing;
            }
        }
        self.sync = Sync::Flushing;
        Next::Flush
    }

    /// An I/O is complete, and the process will have woken up `wake_ns` later. Returns until when
    /// it thinks; `None`: it may go on.
    fn complete(&mut self, now: u64, wake_ns: u64) -> Option<u64> {
        self.outstanding -= 1;
        let mut wait = wake_ns;
        if self.spec.burst <= 1 {
            wait += self.spec.think_ns;
        } else if self.burst == 0 && self.outstanding == 0 {
            self.burst = self.spec.burst;
            self.rests = true;
            wait += self.spec.think_ns;
        }
        self.note(now);
        if wait > 0 {
            self.thinking += 1;
            Some(now + wait)
        } else {
            self.rests = false;
            None
        }
    }

    /// One of the I/Os that it thought before may follow.
    pub fn woke(&mut self) {
        self.thinking -= 1;
        if self.thinking == 0 {
            self.rests = false;
        }
    }

    /// A request of its own is complete. Returns until when it thinks; `None`: it may go on.
    pub fn own_done(&mut self, sectors: u32, now: u64, wake_ns: u64) -> Option<u64> {
        self.moved += u64::from(sectors) * 512;
        self.complete(now, wake_ns)
    }

    /// A window is there. Returns whether the process waited for it.
    pub fn ahead_done(&mut self, sector: u64) -> bool {
        let ahead = &mut self.ahead;
        let mut windows = ahead.windows.iter_mut();
        if let Some(window) = windows.find(|window| window.sector == sector && !window.done) {
            window.done = true;
        }
        let first = ahead.windows.front().is_some_and(|window| window.done);
        first && std::mem::take(&mut ahead.waits)
    }

    /// Whether it waits for its file to be clean.
    pub fn cleans(&self) -> bool {
        self.sync == Sync::Cleaning
    }

    /// What it has written is on the medium. Returns when it began to write that.
    pub fn flush_done(&mut self, now: u64) -> u64 {
        self.sync = Sync::Idle;
        self.unsynced = 0;
        self.note(now);
        self.unsynced_since
    }

    /// Takes down when it finished, if it has.
    pub fn note(&mut self, now: u64) {
        if self.finished_at.is_none() && self.finished() {
            self.finished_at = Some(now);
        }
    }
}
