//! A 7200 rpm SATA disk: one head that seeks and waits for the platter, with read-ahead, native
//! command queueing (NCQ) and a write cache that lies about completions.
//!
//! # Model
//! *Mechanics* (see `mechanics`). A request takes the time to seek, to wait until its first sector
//! comes around, and to let its sectors pass, with all switches of tracks among them. The platter's
//! angle is a function of model time alone. In front of it stands the controller's overhead, which
//! runs from the request's arrival: a request that has waited longer than this for the head does
//! not pay it again.
//!
//! *Queue.* Whenever the head becomes free the disk takes the request whose first sector it can
//! reach soonest (shortest access time first). That alone would starve: requests close to each
//! other keep the head while a distant one waits for ever. So a request that has waited longer than
//! the age bound goes first, the oldest before others. Nothing is chosen early, and nothing that
//! has begun is interrupted. A bound below the time that a full queue takes in order of arrival
//! (31 random reads: 0.4 s) makes it serve in order of arrival: once all are over it, all stay so.
//!
//! *Read-ahead.* After a read the disk keeps what was read in a segment of its cache, and goes on
//! reading behind it until the segment is full or the head is wanted elsewhere. A read of sectors
//! that have passed is answered at once; one whose sectors the head is about to reach completes
//! when the last has passed. So a sequential reader that thinks between requests gets the streaming
//! rate and does not miss a revolution each time. The segments are replaced in turn; a write drops
//! those that it overlaps.
//!
//! *Write cache*, if there is one. A write is acknowledged as soon as the cache has room for it and
//! written later (destaged). One that finds the cache full waits for room, on its slot. Cached
//! writes compete for the head:
//! - with at least `high_water` of them, all compete with the waiting reads by access time. Since
//!   cached writes can be many more than 32, most of the nearest are writes: behind a large cache,
//!   writers get most of the head;
//! - with fewer they wait until no other request does and the host has been quiet for a while;
//! - a flush puts those it waits for before everything else, even before the age bound: an ATA
//!   flush cannot be queued, the disk does nothing else meanwhile.
//!
//! A newer write that covers a cached one replaces it, and the older took no time. A read that lies
//! in one cached write is answered from it. A write with `fua` bypasses the cache.
//!
//! # True time
//! The head's time from when it became free for a request until it was done with it, overhead
//! included where the head stood still for it. Head time for sectors that were read ahead is
//! counted to the request that uses them. What nobody used is [`Hdd::unused_ns`]; it and the true
//! times add up to the time that the head was busy.
//!
//! # Left out, and why
//! - The time of the interface: 300 MB/s are faster than any track, and a request's share of it is
//!   in the overhead.
//! - Data. Two cached writes that overlap in part may reach the medium in either order; it takes as
//!   long either way.
//! - Read errors, remapped sectors, recalibration, spin-up, acoustic and power management: rare, or
//!   off under load.
//! - Resuming read-ahead of several streams at the same time while others wait: firmware differs
//!   too much.
//! - Misjudged seeks. Real firmware takes a margin for them, and gains less from its queue; here
//!   the age bound alone keeps it from the optimum.
//!
//! # How true it is
//! The tests hold it to data sheets and published measurements: a random read takes what the sheet
//! adds up to, sequential rates are the sheet's outside and inside, and 31 requests in the queue do
//! 2.3 to 2.4 times as many random reads as one, where disks have been measured from 2.0 to 2.9.

mod mechanics;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;

use crate::{Disk, Event, Op, Request};
use mechanics::{Mechanics, Place};

const SECTOR_BYTES: u64 = 512;

/// What the data sheet says, and what firmware does that no sheet tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    pub sectors: u64,
    /// Revolutions a minute.
    pub rpm: u32,
    /// Surfaces that hold data.
    pub heads: u32,
    /// 8 to 256; sectors per track fall evenly from the first to the last.
    pub zones: u32,
    /// Sustained bytes a second in the outermost zone, switches of tracks included.
    pub outer_rate: u64,
    /// And in the innermost.
    pub inner_rate: u64,
    /// Seek to the next cylinder.
    pub track_to_track_ns: u64,
    /// Mean over seeks between random cylinders.
    pub average_read_seek_ns: u64,
    /// What this exceeds the read average by is the time a write needs to settle.
    pub average_write_seek_ns: u64,
    /// Seek from the outermost cylinder to the innermost.
    pub full_stroke_ns: u64,
    /// To another head of the same cylinder.
    pub head_switch_ns: u64,
    /// From a request's arrival until the head may move for it.
    pub overhead_ns: u64,
    /// From a request's arrival until it is answered from the cache, which needs no head.
    pub interface_ns: u64,
    /// Read-ahead segments; 0 reads nothing ahead.
    pub segments: u32,
    pub segment_sectors: u32,
    /// Requests that the disk takes at once: 1 without NCQ, up to 32 with it.
    pub slots: u32,
    /// A request that has waited this long goes before nearer ones; cached writes do not age.
    pub age_bound_ns: u64,
    /// How many writes of whatever size the volatile cache holds; 0 is no cache.
    pub write_cache: u32,
    /// With this many of them, cached writes compete with reads; 1 to `write_cache`.
    pub high_water: u32,
    /// With fewer, they are written once the host has been quiet for so long.
    pub quiet_ns: u64,
}

impl Params {
    /// Western Digital Caviar SE WD2500JS: 250 GB, 8 MB of cache, no NCQ.
    ///
    /// Seek times (8.9 ms reading, 10.9 ms writing, 2.0 ms track to track, 21 ms full stroke) and
    /// 0.3 ms of overhead are those of an older Caviar, the WD400BB (its specifications, copied at
    /// lyberty.com). From memory of the WD2500JS's data sheet, not checked: that it has the same,
    /// and the number of sectors. From memory of published curves, not checked: 65 MB/s outside and
    /// 37 inside. Assumed: six heads, and 1 ms to switch them, which loses 12 % of a sequential
    /// read (15 % on the Hitachi Deskstar 7K500, 76.3 against 64.8 MB/s: its specification, table
    /// 10); the times for answers from the cache and for the quiet before destaging; 16 segments of
    /// half a megabyte; and the age bound, which no sheet tells.
    ///
    /// The write cache is off, to be asked for. 8 MB would hold some hundred writes.
    pub fn wd2500js() -> Self {
        Params {
            sectors: 488_397_168,
            rpm: 7200,
            heads: 6,
            zones: 16,
            outer_rate: 65_000_000,
            inner_rate: 37_000_000,
            track_to_track_ns: 2_000_000,
            average_read_seek_ns: 8_900_000,
            average_write_seek_ns: 10_900_000,
            full_stroke_ns: 21_000_000,
            head_switch_ns: 1_000_000,
            overhead_ns: 300_000,
            interface_ns: 100_000,
            segments: 16,
            segment_sectors: 1024,
            slots: 1,
            age_bound_ns: 500_000_000,
            write_cache: 0,
            high_water: 0,
            quiet_ns: 10_000_000,
        }
    }

    /// Seagate Barracuda 7200.10 ST3250620AS: 250 GB, 16 MB of cache, NCQ.
    ///
    /// From memory of the data sheet, not checked: sectors, seek times (8.5 ms reading, 10 ms
    /// writing, 0.8 ms track to track) and 78 MB/s outside. The inner rate, 42 MB/s, is that which
    /// with rates falling evenly makes the mean over all sectors 62 MB/s, measured with HD Tune on
    /// the 320 GB model (Gough Lui, The Hard Disk Corner, Seagate ST3320620A). Assumed: three
    /// heads, 18 ms full stroke, head switches as long as track to track, segments of a megabyte,
    /// and the rest as in the WD2500JS.
    pub fn st3250620as() -> Self {
        Params {
            heads: 3,
            outer_rate: 78_000_000,
            inner_rate: 42_000_000,
            track_to_track_ns: 800_000,
            average_read_seek_ns: 8_500_000,
            average_write_seek_ns: 10_000_000,
            full_stroke_ns: 18_000_000,
            head_switch_ns: 800_000,
            segment_sectors: 2048,
            slots: 31,
            ..Params::wd2500js()
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        let turn_ns = 60_000_000_000 / u64::from(self.rpm.max(1));
        let valid = [
            (self.sectors > 0, Invalid::NoSectors),
            ((600..=60_000).contains(&self.rpm), Invalid::Speed),
            ((1..=64).contains(&self.heads), Invalid::Heads),
            ((8..=256).contains(&self.zones), Invalid::Zones),
            (
                self.head_switch_ns < turn_ns && self.track_to_track_ns < turn_ns,
                Invalid::Switches,
            ),
            (
                0 < self.track_to_track_ns
                    && self.track_to_track_ns < self.average_read_seek_ns
                    && self.average_read_seek_ns < self.full_stroke_ns
                    && self.full_stroke_ns <= 1_000_000_000,
                Invalid::Seeks,
            ),
            (
                self.average_write_seek_ns >= self.average_read_seek_ns,
                Invalid::WriteSeek,
            ),
            (
                self.segments == 0 || self.segment_sectors > 0,
                Invalid::Segments,
            ),
            ((1..=32).contains(&self.slots), Invalid::Slots),
            (
                self.write_cache == 0 || (1..=self.write_cache).contains(&self.high_water),
                Invalid::HighWater,
            ),
        ];
        match valid.into_iter().find(|(ok, _)| !ok) {
            Some((_, why)) => Err(why),
            None => Ok(()),
        }
    }
}

/// Why parameters make no disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    NoSectors,
    Speed,
    Heads,
    Zones,
    Rates,
    Cylinders,
    Switches,
    Seeks,
    WriteSeek,
    Segments,
    Slots,
    HighWater,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Invalid::NoSectors => "a disk needs at least one sector",
            Invalid::Speed => "a disk turns 600 to 60000 times a minute",
            Invalid::Heads => "a disk has 1 to 64 heads",
            Invalid::Zones => "a disk has 8 to 256 zones",
            Invalid::Rates => {
                "the outer rate must be at least the inner, and that at least a sector a track"
            }
            Invalid::Cylinders => "the disk is too large for its rates: more than 2^22 cylinders",
            Invalid::Switches => "a switch of tracks must take less than a revolution",
            Invalid::Seeks => {
                "no seek curve has these times: the average must lie between a straight line and \
                 a square root from track to track to full stroke, and that within 1 s"
            }
            Invalid::WriteSeek => "the average seek of writes is at least that of reads",
            Invalid::Segments => "a read-ahead segment needs at least one sector",
            Invalid::Slots => "a disk has 1 to 32 slots",
            Invalid::HighWater => "the high-water mark lies between 1 and the size of the cache",
        })
    }
}

impl Error for Invalid {}

/// See the module.
pub struct Hdd {
    params: Params,
    mechanics: Mechanics,
    now: u64,
    /// Orders what is in the cache and the flushes that wait for it.
    sequence: u64,
    /// Slots taken.
    held: u32,
    /// What waits for the head, in order of arrival: reads, and writes past the cache.
    queue: Vec<Queued>,
    /// Writes that found the cache full, in order of arrival.
    roomless: VecDeque<Queued>,
    /// Acknowledged and not yet begun to be written, in any order.
    cache: Vec<Cached>,
    /// In order of arrival.
    flushes: Vec<Flush>,
    /// What the head is busy with.
    busy: Option<Busy>,
    /// The last sector's that was under the head, for its track. Out of date while reading ahead.
    head: Place,
    /// Reading on behind the first segment.
    ahead: Option<Ahead>,
    /// The newest first.
    segments: VecDeque<Segment>,
    /// Head time for segments that were dropped before anyone used them.
    dropped_ns: u64,
    /// When the host last submitted a request or got one from the head.
    last_active: u64,
    /// What needs no head, in order of time: all of it takes `interface_ns`.
    answers: VecDeque<Answer>,
}

#[derive(Clone, Copy)]
struct Queued {
    id: u64,
    request: Request,
    arrived: u64,
    place: Place,
}

#[derive(Clone, Copy)]
struct Cached {
    id: u64,
    request: Request,
    place: Place,
    /// When it entered the cache.
    sequence: u64,
    /// When the oldest that it replaced did, or itself: flushes after that wait for it.
    oldest: u64,
}

#[derive(Clone, Copy)]
struct Flush {
    id: u64,
    /// Waits for what is cached with a lower `oldest`.
    sequence: u64,
}

#[derive(Clone, Copy)]
struct Busy {
    id: u64,
    request: Request,
    until: u64,
    took: u64,
    work: Work,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// A read, or a write past the cache: it replaces what is cached with a lower sequence.
    Host { sequence: u64 },
    /// A read that the head was about to reach.
    ReadOn,
    /// A cached write.
    Destage { oldest: u64 },
}

/// Sectors `start..end` in the cache.
#[derive(Clone, Copy)]
struct Segment {
    start: u64,
    end: u64,
    /// Head time for the sectors from `unpaid_from` on, that no request has been charged for.
    unpaid_ns: u64,
    unpaid_from: u64,
}

/// Sector `from` began to pass at `at`, those behind it follow up to `limit`.
#[derive(Clone, Copy)]
struct Ahead {
    from: u64,
    at: u64,
    limit: u64,
    /// When `limit` is reached.
    limit_at: u64,
    /// Head time until then is charged, or in the segment's `unpaid_ns`.
    paid_until: u64,
}

struct Answer {
    event: Event,
    frees_slot: bool,
}

enum Choice {
    Queued(usize),
    Cached(usize),
}

impl Request {
    fn end(&self) -> u64 {
        self.sector + u64::from(self.sectors)
    }

    fn covers(&self, other: &Request) -> bool {
        self.sector <= other.sector && other.end() <= self.end()
    }
}

impl Segment {
    /// Charges a request up to `end` for its part of the sectors that nobody has paid for.
    fn pay(&mut self, end: u64) -> u64 {
        if end <= self.unpaid_from {
            return 0;
        }
        let time = if end < self.end {
            let part = u128::from(end - self.unpaid_from);
            let whole = u128::from(self.end - self.unpaid_from);
            (u128::from(self.unpaid_ns) * part / whole) as u64
        } else {
            self.unpaid_ns
        };
        self.unpaid_ns -= time;
        self.unpaid_from = end;
        time
    }
}

impl Hdd {
    pub fn new(params: Params) -> Result<Self, Invalid> {
        params.check()?;
        let mechanics = Mechanics::new(&params)?;
        Ok(Hdd {
            head: mechanics.place(0),
            params,
            mechanics,
            now: 0,
            sequence: 0,
            held: 0,
            queue: Vec::with_capacity(params.slots as usize),
            roomless: VecDeque::new(),
            cache: Vec::new(),
            flushes: Vec::new(),
            busy: None,
            ahead: None,
            segments: VecDeque::new(),
            dropped_ns: 0,
            last_active: 0,
            answers: VecDeque::new(),
        })
    }

    /// Head time for read-ahead that no request has used, up to when the head last left it.
    pub fn unused_ns(&self) -> u64 {
        self.dropped_ns
            + self
                .segments
                .iter()
                .map(|segment| segment.unpaid_ns)
                .sum::<u64>()
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn queued(&self, id: u64, request: Request, now: u64) -> Queued {
        Queued {
            id,
            request,
            arrived: now,
            place: self.mechanics.place(request.sector),
        }
    }

    /// Tells the host without the head.
    fn answer(&mut self, id: u64, took: Option<u64>, now: u64, frees_slot: bool) {
        let at = now + self.params.interface_ns;
        if let Some(time) = took {
            self.answers.push_back(Answer {
                event: Event::Took { id, at, time },
                frees_slot: false,
            });
        }
        self.answers.push_back(Answer {
            event: Event::Done { id, at },
            frees_slot,
        });
    }

    fn submit_read(&mut self, id: u64, request: Request, now: u64) {
        if self
            .cache
            .iter()
            .any(|cached| cached.request.covers(&request))
        {
            self.answer(id, Some(0), now, true);
        } else if let Some(time) = self.read_from_segment(&request, now) {
            self.answer(id, Some(time), now, true);
        } else if let Some(busy) = self.read_on(id, &request, now) {
            self.busy = Some(busy);
        } else {
            let queued = self.queued(id, request, now);
            self.queue.push(queued);
        }
    }

    fn submit_write(&mut self, id: u64, request: Request, now: u64) {
        self.drop_segments(&request, now);
        let queued = self.queued(id, request, now);
        if request.fua || self.params.write_cache == 0 {
            self.queue.push(queued);
        } else if self.has_room()
            || self
                .cache
                .iter()
                .any(|cached| request.covers(&cached.request))
        {
            self.admit(&queued, now);
        } else {
            self.roomless.push_back(queued);
        }
    }

    fn has_room(&self) -> bool {
        let destaging = matches!(
            self.busy,
            Some(Busy {
                work: Work::Destage { .. },
                ..
            })
        );
        self.cache.len() + usize::from(destaging) < self.params.write_cache as usize
    }

    /// Takes a write into the cache, in place of those that it covers.
    fn admit(&mut self, queued: &Queued, now: u64) {
        let sequence = self.next_sequence();
        let oldest = self.replace(&queued.request, sequence, now);
        self.cache.push(Cached {
            id: queued.id,
            request: queued.request,
            place: queued.place,
            sequence,
            oldest,
        });
        self.answer(queued.id, None, now, true);
    }

    /// Drops cached writes below `sequence` that `request` covers: they took no time. Returns since
    /// when flushes have waited for them, or `sequence`.
    fn replace(&mut self, request: &Request, sequence: u64, now: u64) -> u64 {
        let at = now + self.params.interface_ns;
        let mut oldest = sequence;
        let answers = &mut self.answers;
        self.cache.retain(|cached| {
            let stays = cached.sequence > sequence || !request.covers(&cached.request);
            if !stays {
                oldest = oldest.min(cached.oldest);
                let id = cached.id;
                answers.push_back(Answer {
                    event: Event::Took { id, at, time: 0 },
                    frees_slot: false,
                });
            }
            stays
        });
        oldest
    }

    /// After something left the cache.
    fn fill_room(&mut self, now: u64) {
        while self.has_room() {
            match self.roomless.pop_front() {
                Some(queued) => self.admit(&queued, now),
                None => break,
            }
        }
    }

    fn answer_flushes(&mut self, now: u64) {
        let destaging = match self.busy {
            Some(Busy {
                work: Work::Destage { oldest },
                ..
            }) => Some(oldest),
            _ => None,
        };
        let cached = self.cache.iter().map(|cached| cached.oldest);
        let oldest = cached.chain(destaging).min().unwrap_or(u64::MAX);
        let done = self
            .flushes
            .partition_point(|flush| flush.sequence < oldest);
        for at in 0..done {
            let id = self.flushes[at].id;
            self.answer(id, None, now, false);
        }
        self.flushes.drain(..done);
    }

    /// The time of the request if it lies in a segment.
    fn read_from_segment(&mut self, request: &Request, now: u64) -> Option<u64> {
        if self.busy.is_none() {
            self.note_ahead(now);
        }
        let (start, end) = (request.sector, request.end());
        let found = self
            .segments
            .iter()
            .position(|segment| segment.start <= start && end <= segment.end)?;
        let mut time = self.segments[found].pay(end);
        if found > 0 || self.busy.is_some() {
            return Some(time);
        }
        let Some(mut ahead) = self.ahead.take() else {
            return Some(time);
        };
        if end > ahead.from {
            let passed_at = self.passed_at(&ahead, end);
            time += passed_at.saturating_sub(ahead.paid_until);
            ahead.paid_until = ahead.paid_until.max(passed_at);
        }
        self.ahead = Some(self.extended(ahead, end, now));
        Some(time)
    }

    /// When the last sector before `end` has passed.
    fn passed_at(&self, ahead: &Ahead, end: u64) -> u64 {
        ahead.at + self.mechanics.transfer(ahead.from, end - ahead.from)
    }

    /// `ahead` with room behind `end`. If it had stopped for lack of room, the head waits until the
    /// next sector comes around again.
    fn extended(&mut self, mut ahead: Ahead, end: u64, now: u64) -> Ahead {
        let limit = self.limit(end).max(ahead.limit);
        if now < ahead.limit_at && end > ahead.from {
            self.ahead_of(end, self.passed_at(&ahead, end), limit, ahead.paid_until)
        } else if now < ahead.limit_at {
            ahead.limit = limit;
            ahead.limit_at = self.passed_at(&ahead, limit);
            ahead
        } else if limit > ahead.limit {
            if let Some(segment) = self.segments.front_mut() {
                segment.unpaid_ns += ahead.limit_at.saturating_sub(ahead.paid_until);
            }
            self.ahead_of(ahead.limit, now, limit, now)
        } else {
            ahead
        }
    }

    /// Reading on from `end`, the head being on the track of the sector before it at `now`.
    fn ahead_of(&self, end: u64, now: u64, limit: u64, paid_until: u64) -> Ahead {
        let last = self.mechanics.place(end - 1);
        let next = self.mechanics.place(end);
        let at = now + self.mechanics.access(last, next, false, now);
        Ahead {
            from: end,
            at,
            limit,
            limit_at: at + self.mechanics.transfer(end, limit - end),
            paid_until,
        }
    }

    /// How far to read ahead behind `end`.
    fn limit(&self, end: u64) -> u64 {
        (end + u64::from(self.params.segment_sectors)).min(self.params.sectors)
    }

    /// Keeps the head on the segment if it is about to reach the request's first sector.
    fn read_on(&mut self, id: u64, request: &Request, now: u64) -> Option<Busy> {
        if self.busy.is_some() {
            return None;
        }
        let mut ahead = self.ahead.filter(|ahead| now < ahead.limit_at)?;
        let segment = self.segments.front_mut()?;
        let (start, end) = (request.sector, request.end());
        let ready = now + self.params.interface_ns;
        let reached = if ready < ahead.limit_at {
            ahead.from
                + self
                    .mechanics
                    .passed(ahead.from, ready.saturating_sub(ahead.at))
        } else {
            ahead.limit
        };
        if start < segment.start || start > reached || end <= ahead.from {
            return None;
        }
        let took = segment.pay(end);
        let until = ready.max(self.passed_at(&ahead, end));
        let took = took + until - ahead.paid_until;
        ahead.paid_until = until;
        self.ahead = Some(self.extended(ahead, end, now));
        Some(Busy {
            id,
            request: *request,
            until,
            took,
            work: Work::ReadOn,
        })
    }

    /// Where reading ahead is at `now`: the next sector, and until when the head was busy with it.
    fn reached(&self, ahead: &Ahead, now: u64) -> (u64, u64) {
        if now >= ahead.limit_at {
            (ahead.limit, ahead.limit_at)
        } else {
            let passed = self
                .mechanics
                .passed(ahead.from, now.saturating_sub(ahead.at));
            (ahead.from + passed, now)
        }
    }

    /// Brings the first segment up to date.
    fn note_ahead(&mut self, now: u64) {
        let Some(ahead) = self.ahead else { return };
        let (reached, _) = self.reached(&ahead, now);
        let room = u64::from(self.params.segment_sectors);
        if let Some(segment) = self.segments.front_mut() {
            segment.end = segment.end.max(reached);
            segment.start = segment.start.max(segment.end.saturating_sub(room));
        }
    }

    /// The head leaves what it was reading ahead.
    fn stop_ahead(&mut self, now: u64) {
        self.note_ahead(now);
        let Some(ahead) = self.ahead.take() else {
            return;
        };
        let (reached, busy_until) = self.reached(&ahead, now);
        self.head = self.mechanics.place(reached.min(ahead.limit - 1));
        if let Some(segment) = self.segments.front_mut() {
            segment.unpaid_ns += busy_until.saturating_sub(ahead.paid_until);
        }
    }

    /// Keeps what was read, and reads on.
    fn start_ahead(&mut self, request: &Request, now: u64) {
        if self.params.segments == 0 {
            return;
        }
        let end = request.end();
        let room = u64::from(self.params.segment_sectors);
        self.segments.push_front(Segment {
            start: request.sector.max(end.saturating_sub(room)),
            end,
            unpaid_ns: 0,
            unpaid_from: end,
        });
        if self.segments.len() > self.params.segments as usize {
            let last = self.segments.pop_back();
            self.dropped_ns += last.map_or(0, |segment| segment.unpaid_ns);
        }
        if end < self.params.sectors {
            self.ahead = Some(self.ahead_of(end, now, self.limit(end), now));
        }
    }

    /// Drops the segments that a write overlaps.
    fn drop_segments(&mut self, request: &Request, now: u64) {
        if self.busy.is_none() {
            self.note_ahead(now);
        }
        let overlaps =
            |segment: &Segment| segment.start < request.end() && request.sector < segment.end;
        if self.ahead.is_some() && self.segments.front().is_some_and(overlaps) {
            self.stop_ahead(now);
        }
        let dropped_ns = &mut self.dropped_ns;
        self.segments.retain(|segment| {
            let stays = !overlaps(segment);
            if !stays {
                *dropped_ns += segment.unpaid_ns;
            }
            stays
        });
    }

    /// Puts the head to work if it is free and something waits for it.
    fn dispatch(&mut self, now: u64) {
        let cached = !self.cache.is_empty() && (self.destages(now) || !self.flushes.is_empty());
        if self.busy.is_some() || self.queue.is_empty() && !cached {
            return;
        }
        self.stop_ahead(now);
        if let Some(choice) = self.choose(now) {
            self.busy = Some(self.begin(choice, now));
        }
    }

    /// Whether cached writes compete for the head without a flush.
    fn destages(&self, now: u64) -> bool {
        self.cache.len() >= self.params.high_water as usize
            || self.queue.is_empty() && now >= self.quiet_at()
    }

    fn choose(&self, now: u64) -> Option<Choice> {
        if let Some(last) = self.flushes.last() {
            let waited_for = self.nearest_cached(now, last.sequence);
            if let Some((_, at)) = waited_for {
                return Some(Choice::Cached(at));
            }
        }
        let oldest = self.queue.first();
        if oldest.is_some_and(|oldest| now - oldest.arrived > self.params.age_bound_ns) {
            return Some(Choice::Queued(0));
        }
        let cached = if self.destages(now) {
            self.nearest_cached(now, u64::MAX)
        } else {
            None
        };
        match (self.nearest_queued(now), cached) {
            (Some((near, _)), Some((nearer, at))) if nearer < near => Some(Choice::Cached(at)),
            (Some((_, at)), _) => Some(Choice::Queued(at)),
            (None, Some((_, at))) => Some(Choice::Cached(at)),
            (None, None) => None,
        }
    }

    /// Since when the host has been quiet long enough for destaging.
    fn quiet_at(&self) -> u64 {
        self.last_active + self.params.quiet_ns
    }

    /// The queued request that the head can reach first, and in which time.
    fn nearest_queued(&self, now: u64) -> Option<(u64, usize)> {
        let access = |queued: &Queued| {
            let lead = self.lead(queued, now);
            let write = queued.request.op == Op::Write;
            lead + self
                .mechanics
                .access(self.head, queued.place, write, now + lead)
        };
        let times = self.queue.iter().map(access);
        times.enumerate().map(|(at, time)| (time, at)).min()
    }

    /// The same of the cached writes that a flush with sequence `below` waits for.
    fn nearest_cached(&self, now: u64, below: u64) -> Option<(u64, usize)> {
        let cached = self.cache.iter().enumerate();
        cached
            .filter(|(_, cached)| cached.oldest < below)
            .map(|(at, cached)| {
                (
                    self.mechanics.access(self.head, cached.place, true, now),
                    at,
                )
            })
            .min()
    }

    /// What is left of the controller's overhead at `now`.
    fn lead(&self, queued: &Queued, now: u64) -> u64 {
        (queued.arrived + self.params.overhead_ns).saturating_sub(now)
    }

    fn begin(&mut self, choice: Choice, now: u64) -> Busy {
        let (id, request, place, lead, work) = match choice {
            Choice::Queued(at) => {
                let queued = self.queue.remove(at);
                let sequence = self.next_sequence();
                let lead = self.lead(&queued, now);
                let work = Work::Host { sequence };
                (queued.id, queued.request, queued.place, lead, work)
            }
            Choice::Cached(at) => {
                let cached = self.cache.swap_remove(at);
                let work = Work::Destage {
                    oldest: cached.oldest,
                };
                (cached.id, cached.request, cached.place, 0, work)
            }
        };
        let write = request.op == Op::Write;
        let access = self.mechanics.access(self.head, place, write, now + lead);
        let sectors = u64::from(request.sectors);
        let took = lead + access + self.mechanics.transfer(request.sector, sectors);
        Busy {
            id,
            request,
            until: now + took,
            took,
            work,
        }
    }

    /// The head is done with its request.
    fn complete(&mut self, busy: Busy, events: &mut Vec<Event>) {
        let Busy {
            id,
            request,
            until: now,
            took: time,
            work,
        } = busy;
        self.head = self.mechanics.place(request.end() - 1);
        events.push(Event::Took { id, at: now, time });
        match work {
            Work::Destage { .. } => {}
            Work::Host { .. } | Work::ReadOn => {
                events.push(Event::Done { id, at: now });
                self.held -= 1;
                self.last_active = now;
            }
        }
        match work {
            Work::ReadOn => self.note_ahead(now),
            Work::Host { .. } if request.op == Op::Read => self.start_ahead(&request, now),
            Work::Host { sequence } => {
                self.replace(&request, sequence, now);
            }
            Work::Destage { .. } => {}
        }
        self.fill_room(now);
        self.answer_flushes(now);
        self.dispatch(now);
    }
}

impl Disk for Hdd {
    fn sectors(&self) -> u64 {
        self.params.sectors
    }

    fn slots(&self) -> u32 {
        self.params.slots
    }

    fn rotational(&self) -> bool {
        true
    }

    fn parallelism(&self) -> u32 {
        1
    }

    /// A flush takes no slot: it is no queued command.
    fn submit(&mut self, id: u64, request: Request, now: u64) {
        assert!(now >= self.now, "time runs back");
        self.now = now;
        self.last_active = now;
        if request.op == Op::Flush {
            let sequence = self.next_sequence();
            self.flushes.push(Flush { id, sequence });
            self.answer_flushes(now);
        } else {
            request.end_within(self.params.sectors);
            assert!(self.held < self.params.slots, "all slots are taken");
            self.held += 1;
            if request.op == Op::Read {
                self.submit_read(id, request, now);
            } else {
                self.submit_write(id, request, now);
            }
        }
        self.dispatch(now);
    }

    fn next_at(&self) -> Option<u64> {
        let answer = self.answers.front().map(|answer| answer.event.at());
        let head = match &self.busy {
            Some(busy) => Some(busy.until),
            None if self.cache.is_empty() => None,
            None => Some(self.quiet_at()),
        };
        answer.into_iter().chain(head).min()
    }

    fn run(&mut self, until: u64, events: &mut Vec<Event>) {
        while let Some(at) = self.next_at().filter(|&at| at <= until) {
            let answer = self.answers.front();
            if answer.is_some_and(|answer| answer.event.at() == at) {
                if let Some(Answer { event, frees_slot }) = self.answers.pop_front() {
                    self.held -= u32::from(frees_slot);
                    events.push(event);
                }
            } else if let Some(busy) = self.busy.take() {
                self.complete(busy, events);
            } else {
                self.dispatch(at);
            }
        }
        self.now = self.now.max(until);
    }
}
