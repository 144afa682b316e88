//! A flash drive: channels that serve one page operation each, behind one interface.
//!
//! # The model
//! A request is cut at page boundaries. Each piece is an operation of one *channel*, which takes
//! them one at a time, first come first served: a read keeps it for `read_ns`, a program for
//! `write_ns`, both for `sector_ns` more a sector that is moved. Data sheets count as channels the
//! buses to the flash; what works at the same time is a die, and it is dies that the presets count.
//!
//! Every command waits `latency_ns` for firmware and link, which any number can do at once, and
//! holds the interface for `command_ns` and the time of its bytes, which they do one after another:
//! writes before the flash is touched, reads page by page as the pages come.
//!
//! **Without a cache** a page of the disk lives on the channel that a seeded hash gives it, for
//! reads and writes, and a write completes when all of its pages are programmed.
//!
//! **With a cache** a write completes when the cache has taken its data; when full, writes wait in
//! order of arrival. Written sectors are packed into flash pages as they come, whoever wrote them,
//! and a page goes to the channel that has been without a program for longest. None has two at a
//! time, so a read waits for one program at most, and for the collection that follows it. A page
//! that is not full is programmed when its oldest sector is `linger_ns` old, or when a flush or a
//! write with FUA asks for it; both return when theirs is programmed, or at once where power loss
//! is survived (`plp`). Reads stay with the hash: there is no table of where a page was written,
//! and a random read of a large disk seldom meets the little that was written last. For the same
//! reason the cache answers no reads.
//!
//! **Garbage collection.** After every [`Gc::pages`] programs a channel is busy for an erase and
//! for the copying of pages still in use. How many there are depends on how the disk was written:
//! what was written together is overwritten together and leaves blocks that need no copying.
//! Therefore copies are counted in proportion to *scattered* sectors: the first page's worth of
//! each write that does not begin where the write before it ended.
//!
//! **What a request took** is the time of channels: its reads; its share, by sectors, of the
//! programs that carried it; and the collections that its page set off, whoever made the garbage.
//! The interface's time is not in it. The sum over all requests is the time that channels were
//! busy, to the nanosecond.
//!
//! # What it comes to
//! With `c` channels, `t` a page operation and enough requests in flight the drive does `c / t`
//! operations a second, or as many as the interface moves, if that is less. Fewer in flight leave
//! channels idle while others have a queue: 32 reads of a page keep 78 % of 16 channels busy.
//!
//! # What was left out
//! Mapping tables and their misses, wear, read retries, SLC regions that run full, discards, heat.
//! Each makes single requests slower and none changes who used how much of the drive.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::error::Error;
use std::fmt;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{Disk, Event, Op, Request};

const SECTOR_BYTES: u64 = 512;
const NS_PER_S: u64 = 1_000_000_000;

/// Garbage collection, channel by channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gc {
    /// Programs from one collection to the next.
    pub pages: u32,
    /// Pages that it copies if all that was programmed since the last was scattered: the write
    /// amplification of small random writes is `1 + copies / pages`.
    pub copies: u32,
    /// Its share of the erase of a block.
    pub erase_ns: u64,
}

/// The cache that acknowledges writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// Its size in pages of flash.
    pub pages: u32,
    /// How long sectors wait for others to fill their page.
    pub linger_ns: u64,
    /// Its content survives a loss of power: flush and FUA need not wait for the flash.
    pub plp: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    pub sectors: u64,
    pub slots: u32,
    /// Units that work at the same time.
    pub channels: u32,
    /// Of a page of flash: 8, 16 or 32.
    pub page_sectors: u32,
    /// The array read of a page.
    pub read_ns: u64,
    /// The program of a page.
    pub write_ns: u64,
    /// The transfer of a sector between flash and controller.
    pub sector_ns: u64,
    /// Of each command, any number at once.
    pub latency_ns: u64,
    /// Of each command, one at a time.
    pub command_ns: u64,
    /// Of the interface; 0 for one that takes no time.
    pub bytes_per_s: u64,
    pub cache: Option<Cache>,
    pub gc: Option<Gc>,
    /// How many reads may go before a program that has begun; 0: they wait for its end.
    pub suspends: u32,
    pub seed: u64,
}

impl Params {
    /// 16 channels, pages of 16 KiB at random places, 60 us a read and 300 us a write of a page or
    /// less; no cache, no collection, no interface.
    ///
    /// Saturated, a read of 4 KiB takes `60 us / 16 = 3.75 us` of the drive, one of 256 KiB 60 us
    /// and a write of 4 KiB 18.75 us. Its 32 slots do not saturate it: 4.8 us and 63 us a read.
    pub fn plain() -> Self {
        Params {
            sectors: 1 << 29,
            slots: 32,
            channels: 16,
            page_sectors: 32,
            read_ns: 60_000,
            write_ns: 300_000,
            sector_ns: 0,
            latency_ns: 0,
            command_ns: 0,
            bytes_per_s: 0,
            cache: None,
            gc: None,
            suspends: 0,
            seed: 0,
        }
    }

    /// A SATA drive for consumers, after the Samsung V-NAND SSD 860 EVO data sheet, 1 TB: 550 and
    /// 520 MB/s sequential read and write; of 4 KB at random 98,000 reads and 90,000 writes a
    /// second at queue depth 32, 10,000 and 42,000 at depth 1.
    ///
    /// These hold for a drive that is not full: copies are few. Its cache does not survive a loss
    /// of power.
    pub fn sata() -> Self {
        Params {
            sectors: 1_953_525_168,
            slots: 31,
            channels: 16,
            page_sectors: 32,
            read_ns: 70_000,
            write_ns: 475_000,
            sector_ns: 750,
            latency_ns: 13_500,
            command_ns: 2_750,
            bytes_per_s: 550_000_000,
            cache: Some(Cache {
                pages: 512,
                linger_ns: 1_000_000,
                plp: false,
            }),
            gc: Some(Gc {
                pages: 16,
                copies: 6,
                erase_ns: 100_000,
            }),
            suspends: 0,
            seed: 0,
        }
    }

    /// A PCIe 3.0 x4 drive for servers, after the Intel SSD DC P4500, 2.0 TB, as Lenovo's product
    /// guide lists it: 3.2 and 1.05 GB/s sequential read and write; of 4 KB at random 490,000 reads
    /// and 38,000 writes a second (taken for queue depth 128), and 85 and 20 us for one alone.
    ///
    /// These hold in steady state, on a full drive: a small random write is amplified more than six
    /// times. Its cache survives a loss of power.
    pub fn nvme() -> Self {
        Params {
            sectors: 3_907_029_168,
            slots: 1023,
            channels: 38,
            page_sectors: 32,
            read_ns: 60_600,
            write_ns: 570_000,
            sector_ns: 600,
            latency_ns: 18_000,
            command_ns: 300,
            bytes_per_s: 3_250_000_000,
            cache: Some(Cache {
                pages: 1024,
                linger_ns: 1_000_000,
                plp: true,
            }),
            gc: Some(Gc {
                pages: 5,
                copies: 27,
                erase_ns: 25_000,
            }),
            suspends: 0,
            seed: 0,
        }
    }
}

/// Why parameters make no drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    NoSectors,
    NoSlots,
    NoChannels,
    PageSize,
    NoTime,
    TooLong,
    SlowInterface,
    NoCache,
    NoLinger,
    NoPages,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Invalid::NoSectors => "a drive needs at least one sector",
            Invalid::NoSlots => "a drive needs at least one slot",
            Invalid::NoChannels => "a drive needs at least one channel",
            Invalid::PageSize => "a page has 8, 16 or 32 sectors",
            Invalid::NoTime => "reads and programs must take at least one nanosecond",
            Invalid::TooLong => "no step of an operation may take longer than a second",
            Invalid::SlowInterface => "an interface moves at least a million bytes a second",
            Invalid::NoCache => "a cache needs at least one page",
            Invalid::NoLinger => "a page must wait at least one nanosecond to be filled",
            Invalid::NoPages => "there must be at least one program between collections",
        })
    }
}

impl Error for Invalid {}

/// See the module.
pub struct Ssd {
    params: Params,
    /// What makes one hash of pages differ from another.
    salt: u64,
    now: u64,
    in_flight: u32,
    /// By time, then by when they were made.
    steps: BinaryHeap<Reverse<(u64, u64, Step)>>,
    made: u64,
    channels: Vec<Channel>,
    /// When the interface will have moved all that it was given.
    interface_free: u64,
    /// Requests that are not completed or whose channel time is not complete.
    entries: Vec<Entry>,
    unused: Vec<usize>,
    /// One past the last write.
    write_end: u64,

    /// Sectors in the cache.
    cached: u64,
    /// Writes that have reached the drive and wait for room in the cache.
    entering: VecDeque<usize>,
    /// The page being filled.
    open: Page,
    /// Pages that wait for a channel.
    closed: VecDeque<Page>,
    /// Channels without a program, longest first.
    writable: VecDeque<usize>,
    /// Serial numbers of pages that are not programmed, the open one's too if it is not empty.
    dirty: BTreeSet<u64>,
    pages: u64,
    /// Flushes, each with the serial number before which all must be programmed.
    flushes: VecDeque<(u64, usize)>,

    /// Time that all channels have worked.
    #[cfg(test)]
    busy: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A command has reached the drive.
    Arrive { key: usize },
    /// The data of a write have.
    Land { key: usize },
    /// Stale unless it is the channel's latest.
    Channel { channel: usize, serial: u64 },
    /// The data of a read have reached the host.
    Deliver { key: usize },
    /// Stale unless that page is still open.
    Linger { page: u64 },
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u64,
    request: Request,
    /// Sectors that the cache has not taken.
    to_cache: u32,
    /// Scattered sectors among those that are in no page yet.
    scattered: u32,
    /// Pages to be read or programmed, as far as known.
    pages: u32,
    /// Collections that it set off.
    collections: u32,
    time: u64,
    commanded: bool,
    done: bool,
    took: bool,
}

/// Sectors of one request in a page of flash.
#[derive(Clone, Copy, Debug)]
struct Part {
    key: usize,
    sectors: u32,
}

#[derive(Debug, Default)]
struct Page {
    serial: u64,
    parts: Vec<Part>,
    sectors: u32,
    scattered: u32,
}

#[derive(Debug)]
enum Work {
    Read(Part),
    Program(Page),
    Collect { key: usize },
}

#[derive(Debug)]
struct Job {
    work: Work,
    time: u64,
    /// What remains of it.
    left: u64,
    /// How many reads may still go before it.
    suspends: u32,
}

#[derive(Debug, Default)]
struct Channel {
    running: Option<Job>,
    ends: u64,
    serial: u64,
    /// A program that reads have gone before.
    suspended: Option<Job>,
    queue: VecDeque<Job>,
    /// Since the last collection.
    programs: u32,
    scattered: u64,
}

impl Ssd {
    pub fn new(params: Params) -> Result<Self, Invalid> {
        if params.sectors == 0 {
            return Err(Invalid::NoSectors);
        }
        if params.slots == 0 {
            return Err(Invalid::NoSlots);
        }
        if params.channels == 0 {
            return Err(Invalid::NoChannels);
        }
        if ![8, 16, 32].contains(&params.page_sectors) {
            return Err(Invalid::PageSize);
        }
        if params.read_ns == 0 || params.write_ns == 0 {
            return Err(Invalid::NoTime);
        }
        let erase_ns = params.gc.map_or(0, |gc| gc.erase_ns);
        let copies_ns = params.gc.map_or(0, |gc| {
            u64::from(gc.copies).saturating_mul(params.read_ns.saturating_add(params.write_ns))
        });
        let linger_ns = params.cache.map_or(0, |cache| cache.linger_ns);
        let steps = [
            params.read_ns,
            params.write_ns,
            params.sector_ns,
            params.latency_ns,
            params.command_ns,
            erase_ns,
            copies_ns,
            linger_ns,
        ];
        if steps.iter().any(|&ns| ns > NS_PER_S) {
            return Err(Invalid::TooLong);
        }
        if (1..1_000_000).contains(&params.bytes_per_s) {
            return Err(Invalid::SlowInterface);
        }
        if let Some(cache) = params.cache {
            if cache.pages == 0 {
                return Err(Invalid::NoCache);
            }
            if cache.linger_ns == 0 {
                return Err(Invalid::NoLinger);
            }
        }
        if params.gc.is_some_and(|gc| gc.pages == 0) {
            return Err(Invalid::NoPages);
        }

        let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
        let salt = rng.random();
        // Channels do not collect in step.
        let channel = |_| Channel {
            programs: params.gc.map_or(0, |gc| rng.random_range(0..gc.pages)),
            ..Channel::default()
        };
        let channels: Vec<Channel> = (0..params.channels).map(channel).collect();
        Ok(Ssd {
            params,
            salt,
            now: 0,
            in_flight: 0,
            steps: BinaryHeap::new(),
            made: 0,
            writable: (0..channels.len()).collect(),
            channels,
            interface_free: 0,
            entries: Vec::new(),
            unused: Vec::new(),
            write_end: 0,
            cached: 0,
            entering: VecDeque::new(),
            open: Page::default(),
            closed: VecDeque::new(),
            dirty: BTreeSet::new(),
            pages: 0,
            flushes: VecDeque::new(),
            #[cfg(test)]
            busy: 0,
        })
    }

    fn at(&mut self, at: u64, step: Step) {
        self.steps.push(Reverse((at, self.made, step)));
        self.made += 1;
    }

    /// A step that came too late: its operation was suspended, its page closed.
    fn is_stale(&self, step: Step) -> bool {
        match step {
            Step::Channel { channel, serial } => self.channels[channel].serial != serial,
            Step::Linger { page } => self.open.sectors == 0 || self.open.serial != page,
            _ => false,
        }
    }

    /// The channel on which a page of the disk lives: the finaliser of splitmix64, scaled.
    fn place(&self, page: u64) -> usize {
        let mut z = page ^ self.salt;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        ((u128::from(z) * self.channels.len() as u128) >> 64) as usize
    }

    /// Gives the interface something to move, and says when it will have.
    fn transfer(&mut self, key: usize, sectors: u32, now: u64) -> u64 {
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        let mut time = match self.params.bytes_per_s {
            0 => 0,
            rate => (u128::from(bytes) * u128::from(NS_PER_S)).div_ceil(u128::from(rate)) as u64,
        };
        if !self.entries[key].commanded {
            self.entries[key].commanded = true;
            time += self.params.command_ns;
        }
        self.interface_free = self.interface_free.max(now) + time;
        self.interface_free
    }

    fn arrive(&mut self, key: usize, now: u64, events: &mut Vec<Event>) {
        let request = self.entries[key].request;
        match request.op {
            Op::Read => self.spread(key, now),
            Op::Write => {
                let at = self.transfer(key, request.sectors, now);
                if at == now {
                    self.land(key, now, events);
                } else {
                    self.at(at, Step::Land { key });
                }
            }
            Op::Flush => {
                if self.params.cache.is_some_and(|cache| !cache.plp) {
                    self.close(now);
                    self.flushes.push_back((self.pages, key));
                    self.answer_flushes(now, events);
                } else {
                    self.done(key, now, events);
                }
            }
        }
    }

    fn land(&mut self, key: usize, now: u64, events: &mut Vec<Event>) {
        if self.params.cache.is_some() {
            self.entering.push_back(key);
            self.fill(now, events);
        } else {
            self.spread(key, now);
        }
    }

    /// Gives the pages of a request to the channels on which they live.
    fn spread(&mut self, key: usize, now: u64) {
        let Request {
            op,
            sector,
            sectors,
            ..
        } = self.entries[key].request;
        let page_sectors = u64::from(self.params.page_sectors);
        let end = sector + u64::from(sectors);
        let mut from = sector;
        while from < end {
            let page = from / page_sectors;
            let to = end.min((page + 1) * page_sectors);
            let part = Part {
                key,
                sectors: (to - from) as u32,
            };
            let job = if op == Op::Read {
                self.read(part)
            } else {
                let scattered = self.take_scattered(part);
                self.program(Page {
                    serial: 0,
                    parts: vec![part],
                    sectors: part.sectors,
                    scattered,
                })
            };
            self.enqueue(self.place(page), job, now);
            from = to;
        }
    }

    fn read(&self, part: Part) -> Job {
        let time = self.params.read_ns + self.params.sector_ns * u64::from(part.sectors);
        Job {
            work: Work::Read(part),
            time,
            left: time,
            suspends: 0,
        }
    }

    fn program(&self, page: Page) -> Job {
        let time = self.params.write_ns + self.params.sector_ns * u64::from(page.sectors);
        Job {
            work: Work::Program(page),
            time,
            left: time,
            suspends: self.params.suspends,
        }
    }

    fn take_scattered(&mut self, part: Part) -> u32 {
        let entry = &mut self.entries[part.key];
        let scattered = part.sectors.min(entry.scattered);
        entry.scattered -= scattered;
        scattered
    }

    /// Gives a channel something to do; one that runs nothing has nothing that waits.
    fn enqueue(&mut self, at: usize, job: Job, now: u64) {
        let channel = &mut self.channels[at];
        match &mut channel.running {
            None => self.start(at, job, now),
            Some(running) if running.suspends > 0 && matches!(job.work, Work::Read(_)) => {
                #[cfg(test)]
                {
                    self.busy += running.left - (channel.ends - now);
                }
                running.suspends -= 1;
                running.left = channel.ends - now;
                channel.suspended = channel.running.take();
                self.start(at, job, now);
            }
            Some(_) => channel.queue.push_back(job),
        }
    }

    fn start(&mut self, at: usize, job: Job, now: u64) {
        let channel = &mut self.channels[at];
        channel.ends = now + job.left;
        channel.serial += 1;
        channel.running = Some(job);
        let (ends, serial) = (channel.ends, channel.serial);
        let step = Step::Channel {
            channel: at,
            serial,
        };
        self.at(ends, step);
    }

    /// A suspended program goes on when no read waits or it has let pass as many as it may.
    fn start_next(&mut self, at: usize, now: u64) {
        let channel = &mut self.channels[at];
        let read_waits = matches!(
            channel.queue.front(),
            Some(Job {
                work: Work::Read(_),
                ..
            })
        );
        let next = match &mut channel.suspended {
            Some(program) if read_waits && program.suspends > 0 => {
                program.suspends -= 1;
                channel.queue.pop_front()
            }
            Some(_) => channel.suspended.take(),
            None => channel.queue.pop_front(),
        };
        if let Some(job) = next {
            self.start(at, job, now);
        }
    }

    fn channel_ends(&mut self, at: usize, now: u64, events: &mut Vec<Event>) {
        let Some(job) = self.channels[at].running.take() else {
            return;
        };
        #[cfg(test)]
        {
            self.busy += job.left;
        }
        let wrote = match job.work {
            Work::Read(part) => {
                self.has_read(part, job.time, now, events);
                false
            }
            Work::Program(page) => {
                let last = page.parts[page.parts.len() - 1].key;
                let collection = self.collection(at, last, &page);
                self.has_programmed(page, job.time, now, events);
                if let Some(collection) = collection {
                    self.start(at, collection, now);
                    self.fill(now, events);
                    return;
                }
                true
            }
            Work::Collect { key } => {
                let entry = &mut self.entries[key];
                entry.time += job.time;
                entry.collections -= 1;
                self.settle(key, now, events);
                true
            }
        };
        if wrote && self.params.cache.is_some() {
            match self.closed.pop_front() {
                Some(page) => {
                    let job = self.program(page);
                    self.channels[at].queue.push_back(job);
                }
                None => self.writable.push_back(at),
            }
        }
        self.start_next(at, now);
        if wrote {
            self.fill(now, events);
        }
    }

    fn has_read(&mut self, part: Part, time: u64, now: u64, events: &mut Vec<Event>) {
        let key = part.key;
        let at = self.transfer(key, part.sectors, now);
        let entry = &mut self.entries[key];
        entry.time += time;
        entry.pages -= 1;
        if entry.pages == 0 {
            self.at(at, Step::Deliver { key });
        }
        self.settle(key, now, events);
    }

    fn has_programmed(&mut self, page: Page, time: u64, now: u64, events: &mut Vec<Event>) {
        let mut time_left = time;
        let mut sectors_left = u64::from(page.sectors);
        for part in &page.parts {
            let sectors = u64::from(part.sectors);
            let share = time_left * sectors / sectors_left;
            time_left -= share;
            sectors_left -= sectors;
            let entry = &mut self.entries[part.key];
            entry.time += share;
            entry.pages -= 1;
            let on_medium = entry.pages == 0 && entry.to_cache == 0;
            let waits = !entry.done;
            self.settle(part.key, now, events);
            if on_medium && waits {
                self.done(part.key, now, events);
            }
        }
        if self.params.cache.is_some() {
            self.cached -= u64::from(page.sectors);
            self.dirty.remove(&page.serial);
            self.answer_flushes(now, events);
        }
    }

    /// The collection that a program sets off, if it does.
    fn collection(&mut self, at: usize, key: usize, page: &Page) -> Option<Job> {
        let gc = self.params.gc?;
        let channel = &mut self.channels[at];
        channel.programs += 1;
        channel.scattered += u64::from(page.scattered);
        if channel.programs < gc.pages {
            return None;
        }
        let all = u64::from(gc.pages) * u64::from(self.params.page_sectors);
        let copies = u64::from(gc.copies) * (self.params.read_ns + self.params.write_ns);
        let copying = u128::from(copies) * u128::from(channel.scattered) / u128::from(all);
        channel.programs = 0;
        channel.scattered = 0;
        let time = gc.erase_ns + copying as u64;
        self.entries[key].collections += 1;
        Some(Job {
            work: Work::Collect { key },
            time,
            left: time,
            suspends: 0,
        })
    }

    /// Takes into the cache what waits for it, as far as there is room.
    fn fill(&mut self, now: u64, events: &mut Vec<Event>) {
        let Some(cache) = self.params.cache else {
            return;
        };
        let page_sectors = self.params.page_sectors;
        let size = u64::from(cache.pages) * u64::from(page_sectors);
        while let Some(&key) = self.entering.front() {
            let room = size - self.cached;
            if room == 0 {
                break;
            }
            if self.open.sectors == 0 {
                self.open.serial = self.pages;
                self.dirty.insert(self.pages);
                let page = self.pages;
                self.at(now + cache.linger_ns, Step::Linger { page });
                self.pages += 1;
            }
            let sectors = self.entries[key]
                .to_cache
                .min(page_sectors - self.open.sectors)
                .min(u32::try_from(room).unwrap_or(u32::MAX));
            let part = Part { key, sectors };
            self.cached += u64::from(sectors);
            self.open.scattered += self.take_scattered(part);
            self.open.sectors += sectors;
            match self.open.parts.last_mut() {
                Some(last) if last.key == key => last.sectors += sectors,
                _ => {
                    self.open.parts.push(part);
                    self.entries[key].pages += 1;
                }
            }
            let entry = &mut self.entries[key];
            entry.to_cache -= sectors;
            let all = entry.to_cache == 0;
            let through = entry.request.fua && !cache.plp;
            if all {
                self.entering.pop_front();
                if !through {
                    self.done(key, now, events);
                }
            }
            if self.open.sectors == page_sectors || (all && through) {
                self.close(now);
            }
        }
    }

    /// Sends the open page to a channel, full or not.
    fn close(&mut self, now: u64) {
        if self.open.sectors == 0 {
            return;
        }
        let page = std::mem::take(&mut self.open);
        match self.writable.pop_front() {
            Some(at) => {
                let job = self.program(page);
                self.enqueue(at, job, now);
            }
            None => self.closed.push_back(page),
        }
    }

    fn answer_flushes(&mut self, now: u64, events: &mut Vec<Event>) {
        while let Some(&(before, key)) = self.flushes.front() {
            if self.dirty.first().is_some_and(|&serial| serial < before) {
                break;
            }
            self.flushes.pop_front();
            self.done(key, now, events);
        }
    }

    fn done(&mut self, key: usize, now: u64, events: &mut Vec<Event>) {
        let entry = &mut self.entries[key];
        entry.done = true;
        events.push(Event::Done {
            id: entry.id,
            at: now,
        });
        self.in_flight -= 1;
        self.forget(key);
    }

    /// Reports what a request took when there is no more to come.
    fn settle(&mut self, key: usize, now: u64, events: &mut Vec<Event>) {
        let entry = &mut self.entries[key];
        if entry.pages > 0 || entry.to_cache > 0 || entry.collections > 0 {
            return;
        }
        entry.took = true;
        events.push(Event::Took {
            id: entry.id,
            at: now,
            time: entry.time,
        });
        self.forget(key);
    }

    fn forget(&mut self, key: usize) {
        if self.entries[key].done && self.entries[key].took {
            self.unused.push(key);
        }
    }
}

impl Disk for Ssd {
    fn sectors(&self) -> u64 {
        self.params.sectors
    }

    fn slots(&self) -> u32 {
        self.params.slots
    }

    fn rotational(&self) -> bool {
        false
    }

    fn parallelism(&self) -> u32 {
        self.params.channels
    }

    fn submit(&mut self, id: u64, request: Request, now: u64) {
        assert!(now >= self.now, "time runs back");
        assert!(self.in_flight < self.params.slots, "all slots are taken");
        self.now = now;
        let mut entry = Entry {
            id,
            request,
            to_cache: 0,
            scattered: 0,
            pages: 0,
            collections: 0,
            time: 0,
            commanded: false,
            done: false,
            took: request.op == Op::Flush,
        };
        if request.op != Op::Flush {
            let end = request.end_within(self.params.sectors);
            if request.op == Op::Write {
                if request.sector != self.write_end {
                    entry.scattered = request.sectors.min(self.params.page_sectors);
                }
                self.write_end = end;
            }
            if request.op == Op::Write && self.params.cache.is_some() {
                entry.to_cache = request.sectors;
            } else {
                let page_sectors = u64::from(self.params.page_sectors);
                let pages = (end - 1) / page_sectors - request.sector / page_sectors + 1;
                entry.pages = pages as u32;
            }
        }
        let key = match self.unused.pop() {
            Some(key) => {
                self.entries[key] = entry;
                key
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        self.in_flight += 1;
        self.at(now + self.params.latency_ns, Step::Arrive { key });
    }

    fn next_at(&self) -> Option<u64> {
        self.steps.peek().map(|Reverse((at, ..))| *at)
    }

    fn run(&mut self, until: u64, events: &mut Vec<Event>) {
        while let Some(&Reverse((at, _, step))) = self.steps.peek() {
            if at > until {
                break;
            }
            self.steps.pop();
            if self.is_stale(step) {
                continue;
            }
            match step {
                Step::Arrive { key } => self.arrive(key, at, events),
                Step::Land { key } => self.land(key, at, events),
                Step::Channel { channel, .. } => self.channel_ends(channel, at, events),
                Step::Deliver { key } => self.done(key, at, events),
                Step::Linger { .. } => self.close(at),
            }
        }
        while let Some(&Reverse((.., step))) = self.steps.peek() {
            if !self.is_stale(step) {
                break;
            }
            self.steps.pop();
        }
        self.now = self.now.max(until);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;
    const MB: u64 = 1_000_000;

    fn request(op: Op, sector: u64, sectors: u32) -> Request {
        Request {
            op,
            sector,
            sectors,
            fua: false,
        }
    }

    /// With a place and a length that mean nothing.
    const FLUSH: Request = Request {
        op: Op::Flush,
        sector: u64::MAX,
        sectors: 8,
        fua: false,
    };

    /// What became of requests; their ids count up from 0.
    #[derive(Default)]
    struct Log {
        requests: Vec<Request>,
        begun: Vec<u64>,
        done: BTreeMap<u64, u64>,
        /// When it was all known, and how much it is.
        took: BTreeMap<u64, (u64, u64)>,
        events: Vec<Event>,
    }

    impl Log {
        fn submit(&mut self, ssd: &mut Ssd, request: Request, now: u64) {
            ssd.submit(self.begun.len() as u64, request, now);
            self.requests.push(request);
            self.begun.push(now);
        }

        /// Runs the drive and says how many requests it completed.
        fn run(&mut self, ssd: &mut Ssd, until: u64) -> usize {
            let mut events = Vec::new();
            ssd.run(until, &mut events);
            let mut completed = 0;
            for event in &events {
                let last = self.events.last().map_or(0, Event::at);
                assert!(event.at() >= last && event.at() <= until, "out of order");
                match *event {
                    Event::Done { id, at } => {
                        assert_eq!(self.done.insert(id, at), None, "{id} completed twice");
                        completed += 1;
                    }
                    Event::Took { id, at, time } => {
                        let known = self.took.entry(id).or_default();
                        *known = (at, known.1 + time);
                    }
                }
                self.events.push(*event);
            }
            completed
        }

        fn finish(&mut self, ssd: &mut Ssd) {
            while let Some(at) = ssd.next_at() {
                self.run(ssd, at);
            }
        }

        fn latency(&self, id: u64) -> u64 {
            self.done[&id] - self.begun[id as usize]
        }

        fn latencies(&self, op: Op) -> Vec<u64> {
            let mut all: Vec<u64> = (0..self.begun.len() as u64)
                .filter(|&id| self.requests[id as usize].op == op)
                .map(|id| self.latency(id))
                .collect();
            all.sort_unstable();
            all
        }

        fn took(&self) -> u64 {
            self.took.values().map(|&(_, time)| time).sum()
        }

        /// Completions a second between two moments.
        fn rate(&self, from: u64, to: u64) -> u64 {
            let within = self.done.values().filter(|&&at| from < at && at <= to);
            within.count() as u64 * NS_PER_S / (to - from)
        }
    }

    /// Keeps `depth` requests in flight until then, and waits for all of them.
    fn keep(ssd: &mut Ssd, depth: u32, until: u64, mut next: impl FnMut() -> Request) -> Log {
        let mut log = Log::default();
        for _ in 0..depth {
            log.submit(ssd, next(), 0);
        }
        while let Some(at) = ssd.next_at() {
            let completed = log.run(ssd, at);
            if at < until {
                for _ in 0..completed {
                    log.submit(ssd, next(), at);
                }
            }
        }
        assert_eq!(log.done.len(), log.begun.len(), "lost");
        assert_eq!(log.took(), ssd.busy, "channel time");
        log
    }

    fn at_random(params: &Params, op: Op, sectors: u32) -> impl FnMut() -> Request + use<> {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let places = params.sectors / u64::from(sectors);
        move || {
            let sector = rng.random_range(0..places) * u64::from(sectors);
            request(op, sector, sectors)
        }
    }

    fn in_order(op: Op, sectors: u32) -> impl FnMut() -> Request {
        let mut sector = 0;
        move || {
            sector += u64::from(sectors);
            request(op, sector - u64::from(sectors), sectors)
        }
    }

    fn within(measured: u64, cited: u64, percent: u64) -> bool {
        measured.abs_diff(cited) * 100 <= cited * percent
    }

    #[test]
    fn presets_keep_what_the_data_sheets_say() {
        let (sata, nvme) = (Params::sata(), Params::nvme());
        // 4 KB at random, operations a second.
        for (name, params, op, depth, from, to, cited) in [
            ("sata", sata, Op::Read, 31, 50 * MS, 250 * MS, 98_000),
            ("sata", sata, Op::Write, 31, 300 * MS, 600 * MS, 90_000),
            ("sata", sata, Op::Read, 1, 0, 100 * MS, 10_000),
            ("sata", sata, Op::Write, 1, 0, 100 * MS, 42_000),
            ("nvme", nvme, Op::Read, 128, 10 * MS, 60 * MS, 490_000),
            ("nvme", nvme, Op::Write, 128, 200 * MS, 700 * MS, 38_000),
        ] {
            let mut ssd = Ssd::new(params).unwrap();
            let log = keep(&mut ssd, depth, to, at_random(&params, op, 8));
            let rate = log.rate(from, to);
            println!("{name} {op:?} depth {depth}: {rate} of {cited} IOPS");
            assert!(within(rate, cited, 10), "{name} {op:?} {depth}: {rate}");
        }
        // 128 KiB in order, bytes a second, writes when the cache is full.
        for (name, params, op, depth, from, to, cited) in [
            ("sata", sata, Op::Read, 31, 50 * MS, 250 * MS, 550 * MB),
            ("sata", sata, Op::Write, 31, 400 * MS, 700 * MS, 520 * MB),
            ("nvme", nvme, Op::Read, 128, 20 * MS, 120 * MS, 3_200 * MB),
            ("nvme", nvme, Op::Write, 128, 100 * MS, 400 * MS, 1_050 * MB),
        ] {
            let mut ssd = Ssd::new(params).unwrap();
            let log = keep(&mut ssd, depth, to, in_order(op, 256));
            let rate = log.rate(from, to) * 256 * SECTOR_BYTES;
            println!("{name} {op:?} in order: {rate} of {cited} B/s");
            assert!(within(rate, cited, 10), "{name} {op:?}: {rate}");
        }
        // One at a time, 4 KB, before the cache is full.
        for (op, cited) in [(Op::Read, 85 * US), (Op::Write, 20 * US)] {
            let mut ssd = Ssd::new(nvme).unwrap();
            let log = keep(&mut ssd, 1, 10 * MS, at_random(&nvme, op, 8));
            let mean = log.latencies(op).iter().sum::<u64>() / log.begun.len() as u64;
            println!("nvme {op:?} depth 1: {mean} of {cited} ns");
            assert!(within(mean, cited, 10), "nvme {op:?}: {mean}");
        }
    }

    #[test]
    fn plain_drive_does_what_its_channels_can() {
        // Nanoseconds of the whole drive a request, saturated and with 32 in flight.
        for (op, sectors, slots, expected, percent) in [
            (Op::Read, 8, 1023, 3_750, 3),
            (Op::Read, 512, 1023, 60_000, 3),
            (Op::Write, 8, 1023, 18_750, 3),
            (Op::Write, 256, 1023, 150_000, 3),
            (Op::Read, 512, 32, 63_000, 3),
            (Op::Read, 8, 32, 4_825, 1),
        ] {
            let params = Params {
                slots,
                ..Params::plain()
            };
            let mut ssd = Ssd::new(params).unwrap();
            let until = 2000 * expected + 200 * MS;
            let log = keep(&mut ssd, slots, until, at_random(&params, op, sectors));
            let each = NS_PER_S / log.rate(100 * MS, until);
            println!("plain {op:?} {sectors} of {slots}: {each} ns");
            assert!(within(each, expected, percent), "{op:?} {sectors}: {each}");
        }
    }

    #[test]
    fn sector_stays_on_its_channel_and_pages_spread() {
        let mut ssd = Ssd::new(Params::plain()).unwrap();
        let mut log = Log::default();
        log.submit(&mut ssd, request(Op::Read, 64, 8), 0);
        log.submit(&mut ssd, request(Op::Read, 80, 8), 0);
        log.finish(&mut ssd);
        assert_eq!((log.latency(0), log.latency(1)), (60 * US, 120 * US));

        let mut pages = vec![0; 16];
        for page in 0..16_000 {
            pages[ssd.place(page)] += 1;
        }
        assert!(pages.iter().all(|&n| within(n, 1000, 15)), "{pages:?}");
    }

    #[test]
    fn piece_of_a_page_costs_a_page_operation() {
        let mut ssd = Ssd::new(Params::plain()).unwrap();
        let mut log = Log::default();
        for (sector, sectors) in [(0, 1), (0, 32), (31, 2), (16, 32), (0, 512), (1, 512)] {
            log.submit(&mut ssd, request(Op::Read, sector, sectors), 0);
        }
        log.finish(&mut ssd);
        let pages: Vec<u64> = log.took.values().map(|took| took.1 / (60 * US)).collect();
        assert_eq!(pages, [1, 1, 2, 2, 16, 17]);
    }

    /// With a cache of this many pages of 32 sectors, no collections and an interface without time.
    fn cached(pages: u32) -> Params {
        Params {
            slots: 1023,
            sector_ns: 100,
            cache: Some(Cache {
                pages,
                linger_ns: 500 * US,
                plp: false,
            }),
            ..Params::plain()
        }
    }

    const PROGRAM: u64 = 300 * US;

    #[test]
    fn cache_acknowledges_long_before_the_time_is_known() {
        let mut ssd = Ssd::new(cached(8)).unwrap();
        let mut log = Log::default();
        log.submit(&mut ssd, request(Op::Write, 800, 8), 0);
        log.finish(&mut ssd);
        assert_eq!(log.done[&0], 0);
        let program = PROGRAM + 8 * 100;
        assert_eq!(log.took[&0], (500 * US + program, program));
    }

    #[test]
    fn writes_share_the_program_of_their_page() {
        let mut ssd = Ssd::new(cached(8)).unwrap();
        let mut log = Log::default();
        for (sector, sectors) in [(800, 8), (80, 8), (8000, 15), (0, 1)] {
            log.submit(&mut ssd, request(Op::Write, sector, sectors), 0);
        }
        log.finish(&mut ssd);
        let program = PROGRAM + 32 * 100;
        assert_eq!(log.took(), program);
        assert_eq!(log.took[&0], (program, program / 4));
        assert_eq!(log.took[&3].1, program / 32);
        assert_eq!(ssd.now, program, "idle, and yet something was to happen");
    }

    #[test]
    fn page_lingers_from_its_own_first_sector() {
        let mut ssd = Ssd::new(cached(8)).unwrap();
        let mut log = Log::default();
        log.submit(&mut ssd, request(Op::Write, 0, 32), 0);
        log.run(&mut ssd, 100 * US);
        log.submit(&mut ssd, request(Op::Write, 800, 8), 100 * US);
        log.finish(&mut ssd);
        assert_eq!(log.took[&1].0, 600 * US + PROGRAM + 8 * 100);
    }

    #[test]
    fn pages_are_programmed_in_the_order_in_which_they_were_filled() {
        let params = Params {
            channels: 1,
            ..cached(8)
        };
        let mut ssd = Ssd::new(params).unwrap();
        let mut log = Log::default();
        for page in 0..5 {
            log.submit(&mut ssd, request(Op::Write, page * 320, 32), 0);
        }
        log.finish(&mut ssd);
        let known: Vec<u64> = log.took.values().map(|took| took.0).collect();
        assert!(known.is_sorted(), "{known:?}");
    }

    #[test]
    fn full_cache_makes_writes_wait_for_the_flash() {
        let mut ssd = Ssd::new(cached(2)).unwrap();
        let mut log = Log::default();
        for page in 0..3 {
            log.submit(&mut ssd, request(Op::Write, page * 320, 32), 0);
        }
        log.submit(&mut ssd, request(Op::Write, 0, 320), 0);
        log.finish(&mut ssd);
        let program = PROGRAM + 32 * 100;
        assert_eq!((log.latency(0), log.latency(1)), (0, 0));
        assert_eq!(log.latency(2), program);
        // Two pages leave at a time; the third write takes the first place, and ten must follow.
        assert_eq!(log.latency(3), 6 * program);
        assert_eq!(log.took[&3].1, 10 * program);
    }

    #[test]
    fn flush_waits_for_what_was_completed_and_no_more() {
        let mut ssd = Ssd::new(cached(64)).unwrap();
        let mut log = Log::default();
        log.submit(&mut ssd, FLUSH, 0);
        log.run(&mut ssd, 10);
        log.submit(&mut ssd, request(Op::Write, 800, 8), 10);
        log.run(&mut ssd, 20);
        log.submit(&mut ssd, FLUSH, 20);
        log.run(&mut ssd, 30);
        log.submit(&mut ssd, request(Op::Write, 8000, 8), 30);
        log.finish(&mut ssd);
        assert_eq!(log.latency(0), 0, "nothing to wait for");
        assert_eq!(log.done[&2], 20 + PROGRAM + 800, "no lingering");
        assert_eq!(log.done[&2], log.took[&1].0);
        assert!(log.took[&3].0 > log.done[&2], "waited for a later write");
    }

    #[test]
    fn fua_waits_for_its_own_pages() {
        let mut ssd = Ssd::new(cached(64)).unwrap();
        let mut log = Log::default();
        let fua = Request {
            fua: true,
            ..request(Op::Write, 80, 40)
        };
        log.submit(&mut ssd, fua, 0);
        log.submit(&mut ssd, request(Op::Write, 8000, 8), 0);
        log.finish(&mut ssd);
        assert_eq!(log.done[&0], PROGRAM + 32 * 100);
        assert_eq!(log.took[&0], (log.done[&0], 2 * PROGRAM + 40 * 100));
        assert_eq!(log.done[&1], 0);
    }

    #[test]
    fn survivors_of_power_loss_do_not_wait() {
        let mut params = cached(64);
        params.cache = params.cache.map(|cache| Cache { plp: true, ..cache });
        let mut ssd = Ssd::new(params).unwrap();
        let mut log = Log::default();
        let fua = Request {
            fua: true,
            ..request(Op::Write, 80, 40)
        };
        log.submit(&mut ssd, fua, 0);
        log.submit(&mut ssd, FLUSH, 0);
        log.finish(&mut ssd);
        assert_eq!((log.done[&0], log.done[&1]), (0, 0));
        assert_eq!(log.took[&0].1, 2 * PROGRAM + 40 * 100);
    }

    #[test]
    fn read_waits_for_one_program_at_most() {
        let mut ssd = Ssd::new(cached(512)).unwrap();
        let mut log = Log::default();
        log.submit(&mut ssd, request(Op::Write, 0, 32 * 500), 0);
        log.run(&mut ssd, 0);
        log.submit(&mut ssd, request(Op::Read, 0, 32), 0);
        log.finish(&mut ssd);
        assert_eq!(log.latency(1), PROGRAM + 60 * US + 2 * 32 * 100);
    }

    #[test]
    fn suspended_program_lets_as_many_reads_pass_as_it_may() {
        for (suspends, expected) in [
            (0, [360, 420, 480, 300]),
            (1, [160, 420, 480, 360]),
            (2, [160, 220, 480, 420]),
            (9, [160, 220, 280, 480]),
        ] {
            let params = Params {
                suspends,
                ..Params::plain()
            };
            let mut ssd = Ssd::new(params).unwrap();
            let mut log = Log::default();
            log.submit(&mut ssd, request(Op::Write, 0, 8), 0);
            log.run(&mut ssd, 100 * US);
            for _ in 0..3 {
                log.submit(&mut ssd, request(Op::Read, 0, 8), 100 * US);
            }
            log.finish(&mut ssd);
            let at = [1, 2, 3, 0].map(|id| log.done[&id] / US);
            assert_eq!(at, expected, "{suspends}");
            assert_eq!(log.took[&0].1, PROGRAM);
            assert_eq!(log.took(), ssd.busy);
        }
    }

    #[test]
    fn collection_is_charged_to_the_write_that_set_it_off() {
        let params = Params {
            channels: 1,
            gc: Some(Gc {
                pages: 2,
                copies: 3,
                erase_ns: 40 * US,
            }),
            ..Params::plain()
        };
        let mut ssd = Ssd::new(params).unwrap();
        ssd.channels[0].programs = 0;
        let mut log = Log::default();
        // Two of two pages scattered, then one of two, then none.
        log.submit(&mut ssd, request(Op::Write, 320, 32), 0);
        log.submit(&mut ssd, request(Op::Write, 3200, 32), 0);
        log.submit(&mut ssd, request(Op::Read, 0, 1), 0);
        log.finish(&mut ssd);
        let now = ssd.now;
        log.submit(&mut ssd, request(Op::Write, 320, 64), now);
        log.submit(&mut ssd, request(Op::Write, 384, 64), now);
        log.finish(&mut ssd);
        let all = 40 * US + 3 * 360 * US;
        let half = 40 * US + 3 * 360 * US / 2;
        assert_eq!(log.took[&0].1, PROGRAM);
        assert_eq!(log.took[&1].1, PROGRAM + all);
        assert_eq!(log.done[&1], 2 * PROGRAM, "completes when programmed");
        assert_eq!(log.done[&2], 2 * PROGRAM + all + 60 * US, "the pause");
        assert_eq!(log.took[&3].1, 2 * PROGRAM + half);
        assert_eq!(log.took[&4].1, 2 * PROGRAM + 40 * US);
    }

    #[test]
    fn channels_do_not_collect_in_step() {
        let ssd = Ssd::new(Params::nvme()).unwrap();
        let mut phases: Vec<u32> = ssd
            .channels
            .iter()
            .map(|channel| channel.programs)
            .collect();
        phases.sort_unstable();
        phases.dedup();
        assert_eq!(phases, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn collections_show_in_the_tail_of_reads() {
        let [calm, pauses] = [false, true].map(|collects| {
            let params = Params {
                gc: Params::nvme().gc.filter(|_| collects),
                ..Params::nvme()
            };
            let mut ssd = Ssd::new(params).unwrap();
            let mut read = at_random(&params, Op::Read, 8);
            let mut write = at_random(&params, Op::Write, 8);
            let mut n = 0;
            let mixed = || {
                n += 1;
                if n % 10 == 0 { write() } else { read() }
            };
            let log = keep(&mut ssd, 8, 400 * MS, mixed);
            let reads = log.latencies(Op::Read);
            let at = |permille| reads[reads.len() * permille / 1000];
            println!("collects {collects}: P50 {} P99.9 {}", at(500), at(999));
            (at(500), at(999))
        });
        assert!(pauses.0 < 2 * calm.0, "the median hardly moves");
        assert!(pauses.1 > 4 * calm.1, "the tail does");
    }

    /// A drive and its load, of any kind.
    fn any(rng: &mut ChaCha8Rng) -> (Params, Vec<(u64, Request)>) {
        let cache = rng.random_bool(0.7).then(|| Cache {
            pages: rng.random_range(1..40),
            linger_ns: rng.random_range(1..MS),
            plp: rng.random_bool(0.3),
        });
        let gc = rng.random_bool(0.5).then(|| Gc {
            pages: rng.random_range(1..10),
            copies: rng.random_range(0..5),
            erase_ns: rng.random_range(0..MS),
        });
        let params = Params {
            sectors: 10_000,
            slots: 1000,
            channels: rng.random_range(1..20),
            page_sectors: 8 << rng.random_range(0..3),
            read_ns: rng.random_range(1..100 * US),
            write_ns: rng.random_range(1..500 * US),
            sector_ns: rng.random_range(0..US),
            latency_ns: rng.random_range(0..2) * 10 * US,
            command_ns: rng.random_range(0..2) * US,
            bytes_per_s: rng.random_range(0..2) * 500_000_000,
            cache,
            gc,
            suspends: rng.random_range(0..3),
            seed: rng.random(),
        };
        let mut now = 0;
        let load = (0..500).map(|_| {
            now += [0, 0, 10 * US, 300 * US][rng.random_range(0..4)];
            let sectors = [1, 8, 32, 100, 2000][rng.random_range(0..5)];
            let sector = rng.random_range(0..=params.sectors - u64::from(sectors));
            let mut request = match rng.random_range(0..10) {
                0..5 => request(Op::Read, sector, sectors),
                5..9 => request(Op::Write, sector, sectors),
                _ => FLUSH,
            };
            request.fua = request.op == Op::Write && rng.random_bool(0.2);
            (now, request)
        });
        (params, load.collect())
    }

    #[test]
    fn nothing_is_lost_and_nothing_happens_twice() {
        for seed in 0..60 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let (params, load) = any(&mut rng);
            let mut ssd = Ssd::new(params).unwrap();
            let mut log = Log::default();
            for &(now, request) in &load {
                log.run(&mut ssd, now);
                log.submit(&mut ssd, request, now);
            }
            log.finish(&mut ssd);

            assert_eq!(log.done.len(), load.len(), "seed {seed}");
            assert_eq!(log.took(), ssd.busy, "seed {seed}");
            assert_eq!(ssd.in_flight, 0, "seed {seed}");
            assert_eq!(ssd.cached, 0, "seed {seed}");
            assert_eq!(ssd.unused.len(), ssd.entries.len(), "seed {seed}");
            for (id, (_, request)) in (0..).zip(&load) {
                let flush = request.op == Op::Flush;
                assert_eq!(log.took.contains_key(&id), !flush, "seed {seed} id {id}");
            }
            if params.gc.is_some() || params.cache.is_none_or(|cache| cache.plp) {
                continue;
            }
            // Without collections a write has taken its time when it is on the medium.
            for (id, (_, request)) in (0..).zip(&load) {
                let done = log.done[&id];
                if request.fua {
                    assert_eq!(done, log.took[&id].0, "seed {seed} id {id}");
                }
                if request.op != Op::Flush {
                    continue;
                }
                let begun = log.begun[id as usize];
                for (write, &(known, _)) in &log.took {
                    if load[*write as usize].1.op == Op::Write && log.done[write] < begun {
                        assert!(known <= done, "seed {seed} flush {id} left {write}");
                    }
                }
            }
        }
    }

    #[test]
    fn same_calls_give_the_same_events_in_any_steps() {
        let events = |step: u64, salt: u64| {
            let (mut params, load) = any(&mut ChaCha8Rng::seed_from_u64(3));
            params.seed += salt;
            let mut ssd = Ssd::new(params).unwrap();
            let mut log = Log::default();
            let mut at = 0;
            for &(now, request) in &load {
                while at + step < now {
                    at += step;
                    log.run(&mut ssd, at);
                }
                log.run(&mut ssd, now);
                at = now;
                log.submit(&mut ssd, request, now);
            }
            log.run(&mut ssd, NS_PER_S * 100);
            assert_eq!(ssd.next_at(), None);
            log.events
        };
        let first = events(1000 * MS, 0);
        assert_eq!(events(1000 * MS, 0), first);
        assert_eq!(events(7 * US, 0), first);
        assert_ne!(events(1000 * MS, 1), first, "the seed has no part in it");
    }

    #[test]
    #[should_panic(expected = "all slots are taken")]
    fn more_requests_than_slots_are_refused() {
        let mut ssd = Ssd::new(Params::sata()).unwrap();
        for id in 0..=31 {
            ssd.submit(id, request(Op::Read, 0, 8), 0);
        }
    }

    #[test]
    #[should_panic(expected = "the request reaches past the end")]
    fn request_past_the_end_is_refused() {
        let mut ssd = Ssd::new(Params::plain()).unwrap();
        ssd.submit(0, request(Op::Read, Params::plain().sectors - 7, 8), 0);
    }

    #[test]
    fn what_is_no_drive_is_refused() {
        type Spoil = fn(&mut Params);
        fn cache(params: &mut Params) -> &mut Cache {
            params.cache.as_mut().unwrap()
        }
        fn gc(params: &mut Params) -> &mut Gc {
            params.gc.as_mut().unwrap()
        }
        let spoilt: [(Spoil, Invalid); 13] = [
            (|p| p.sectors = 0, Invalid::NoSectors),
            (|p| p.slots = 0, Invalid::NoSlots),
            (|p| p.channels = 0, Invalid::NoChannels),
            (|p| p.page_sectors = 64, Invalid::PageSize),
            (|p| p.page_sectors = 9, Invalid::PageSize),
            (|p| p.read_ns = 0, Invalid::NoTime),
            (|p| p.write_ns = 0, Invalid::NoTime),
            (|p| p.latency_ns = NS_PER_S + 1, Invalid::TooLong),
            (|p| gc(p).copies = u32::MAX, Invalid::TooLong),
            (|p| p.bytes_per_s = 1, Invalid::SlowInterface),
            (|p| cache(p).pages = 0, Invalid::NoCache),
            (|p| cache(p).linger_ns = 0, Invalid::NoLinger),
            (|p| gc(p).pages = 0, Invalid::NoPages),
        ];
        for (spoil, why) in spoilt {
            let mut params = Params::sata();
            spoil(&mut params);
            assert_eq!(Ssd::new(params).err(), Some(why));
            assert!(!why.to_string().is_empty());
        }
    }
}
