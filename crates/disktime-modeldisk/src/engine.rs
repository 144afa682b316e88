//! The disk without its device: data, model and books.
//!
//! Times are nanoseconds since the start, and never decrease from call to call.

use disktime_model::{Disk, Event, Op, Request};

use crate::Region;
use crate::memory::Memory;
use crate::tally::{Account, Book, Tally};

const SECTOR: usize = 512;

/// An id for the model has the tag of the request, the index of its region, so that device time
/// that becomes known after the tag has gone to another request goes to the right account, and a
/// number that makes it unique.
const TAG_BITS: u32 = 10;
const REGION_BITS: u32 = 14;

/// Requests at once, whatever the model could take.
pub(crate) const MAX_DEPTH: u32 = 1 << TAG_BITS;
/// One index is for what is in no region.
pub(crate) const MAX_REGIONS: usize = (1 << REGION_BITS) - 1;

fn id_of(serial: u64, region: usize, tag: u16) -> u64 {
    serial << (REGION_BITS + TAG_BITS) | (region as u64) << TAG_BITS | u64::from(tag)
}

fn region_of(id: u64) -> usize {
    (id >> TAG_BITS & ((1 << REGION_BITS) - 1)) as usize
}

fn tag_of(id: u64) -> u16 {
    (id & ((1 << TAG_BITS) - 1)) as u16
}

/// A request as the kernel sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    pub kind: Kind,
    pub sector: u64,
    pub sectors: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Read,
    Write {
        fua: bool,
    },
    /// Sector and length are ignored.
    Flush,
    /// Discard or write zeroes. The models know neither: done at once, and in no account.
    Zero,
}

impl Io {
    /// Bytes of data that go with it.
    pub fn bytes(&self) -> usize {
        match self.kind {
            Kind::Read | Kind::Write { .. } => self.sectors as usize * SECTOR,
            Kind::Flush | Kind::Zero => 0,
        }
    }
}

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub tag: u16,
    pub io: Io,
    /// When, by the model.
    pub at: u64,
}

/// Why a request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("there is no such tag")]
    NoTag,
    #[error("the tag is in use")]
    TagInUse,
    #[error("the request is empty or reaches past the end of the disk")]
    NotOnDisk,
    #[error("the request has more or less data than sectors")]
    WrongData,
}

/// See the module.
pub struct Engine {
    disk: Box<dyn Disk>,
    memory: Memory,
    regions: Vec<Region>,
    book: Book,
    /// By tag, with the id that the model knows it by.
    taken: Vec<Option<(u64, Io)>>,
    serial: u64,
    /// Done without the model.
    at_once: Vec<Done>,
    /// For use in `run`.
    events: Vec<Event>,
}

impl Engine {
    /// # Panics
    /// If there are more than 16383 regions.
    pub fn new(disk: Box<dyn Disk>, regions: Vec<Region>) -> Self {
        assert!(regions.len() <= MAX_REGIONS, "too many regions");
        let depth = disk.slots().clamp(1, MAX_DEPTH);
        Engine {
            memory: Memory::default(),
            book: Book::new(regions.len()),
            taken: vec![None; depth as usize],
            serial: 0,
            at_once: Vec::new(),
            events: Vec::new(),
            disk,
            regions,
        }
    }

    /// Requests that it takes at once; tags are below.
    pub fn depth(&self) -> u16 {
        self.taken.len() as u16
    }

    /// When something will happen next, if nothing is submitted before; in the past, if it has and
    /// waits for `run`.
    pub fn next_at(&self) -> Option<u64> {
        let at_once = self.at_once.first().map(|done| done.at);
        let happened = self.events.first().map(Event::at);
        let next = [at_once, happened, self.disk.next_at()];
        next.into_iter().flatten().min()
    }

    /// Takes a request; `data` is what a write writes, and empty for others.
    ///
    /// Data are written at once, whatever the model says: who reads a sector before the write of it
    /// is done may get either.
    pub fn submit(&mut self, tag: u16, io: Io, data: &[u8], now: u64) -> Result<(), Refused> {
        match self.taken.get(usize::from(tag)) {
            None => return Err(Refused::NoTag),
            Some(Some(_)) => return Err(Refused::TagInUse),
            Some(None) => {}
        }
        if io.kind != Kind::Flush {
            let end = io.sector.checked_add(u64::from(io.sectors));
            if io.sectors == 0 || end.is_none_or(|end| end > self.disk.sectors()) {
                return Err(Refused::NotOnDisk);
            }
        }
        let writes = matches!(io.kind, Kind::Write { .. });
        if data.len() != if writes { io.bytes() } else { 0 } {
            return Err(Refused::WrongData);
        }

        let (op, fua) = match io.kind {
            Kind::Zero => {
                self.memory.zero(io.sector, io.sectors.into());
                self.at_once.push(Done { tag, io, at: now });
                self.taken[usize::from(tag)] = Some((0, io));
                return Ok(());
            }
            Kind::Read => (Op::Read, false),
            Kind::Write { fua } => (Op::Write, fua),
            Kind::Flush => (Op::Flush, false),
        };
        if writes {
            self.memory.write(io.sector, data);
        }
        let region = self
            .regions
            .iter()
            .position(|region| region.contains(io.sector))
            .unwrap_or(self.regions.len());
        self.serial += 1;
        let id = id_of(self.serial, region, tag);
        self.taken[usize::from(tag)] = Some((id, io));
        // The model is to have lived until then before it takes something.
        self.disk.run(now, &mut self.events);
        let request = Request {
            op,
            sector: io.sector,
            sectors: io.sectors,
            fua,
        };
        self.disk.submit(id, request, now);
        Ok(())
    }

    /// Appends what is done up to and including `now`. Whether the tally is another than before.
    pub fn run(&mut self, now: u64, done: &mut Vec<Done>) -> bool {
        self.disk.run(now, &mut self.events);
        let news = !self.events.is_empty();
        for finished in &self.at_once {
            self.taken[usize::from(finished.tag)] = None;
        }
        done.append(&mut self.at_once);
        for event in self.events.drain(..) {
            match event {
                Event::Took { id, time, .. } => {
                    self.book.account(region_of(id)).true_ns += time;
                }
                Event::Done { id, at } => {
                    let tag = tag_of(id);
                    let taken = self.taken[usize::from(tag)].take_if(|(known, _)| *known == id);
                    let (_, io) = taken.expect("the model completes a request once");
                    count(self.book.account(region_of(id)), &io);
                    done.push(Done { tag, io, at });
                }
            }
        }
        news
    }

    /// Reads the sectors of a read that is done.
    pub fn read(&self, sector: u64, data: &mut [u8]) {
        self.memory.read(sector, data);
    }

    /// Notes that the kernel learns of it only now.
    pub fn told(&mut self, done: &Done, now: u64) {
        if done.io.kind != Kind::Zero {
            self.book.late(now.saturating_sub(done.at));
        }
    }

    /// What was done so far, with `at_ns` for its time.
    pub fn tally(&self, at_ns: u64) -> Tally {
        self.book.tally(at_ns)
    }

    pub(crate) fn book(&self) -> &Book {
        &self.book
    }
}

fn count(account: &mut Account, io: &Io) {
    match io.kind {
        Kind::Read => {
            account.reads += 1;
            account.read_sectors += u64::from(io.sectors);
        }
        Kind::Write { .. } => {
            account.writes += 1;
            account.write_sectors += u64::from(io.sectors);
        }
        Kind::Flush | Kind::Zero => {}
    }
}

#[cfg(test)]
mod tests {
    use disktime_model::{Model, Spec};
    use proptest::prelude::*;

    use super::*;

    fn servers(servers: u32) -> Spec {
        Spec::new(Model::Servers {
            servers,
            service_ns: 1_000_000,
            rotational: false,
        })
    }

    fn engine(spec: &Spec, regions: &[&str]) -> Engine {
        let regions = regions.iter().map(|text| text.parse().unwrap()).collect();
        Engine::new(spec.make().unwrap(), regions)
    }

    fn io(kind: Kind, sector: u64, sectors: u32) -> Io {
        Io {
            kind,
            sector,
            sectors,
        }
    }

    const WRITE: Kind = Kind::Write { fua: false };

    /// Runs until nothing happens any more; the time then.
    fn settle(engine: &mut Engine, done: &mut Vec<Done>) -> u64 {
        let mut now = 0;
        while let Some(at) = engine.next_at() {
            now = at;
            engine.run(now, done);
        }
        now
    }

    #[test]
    fn an_id_gives_back_what_it_is_made_of() {
        for serial in [0, 1, (1 << 40) - 1] {
            for region in [0, 1, MAX_REGIONS] {
                for tag in [0, 1, (MAX_DEPTH - 1) as u16] {
                    let id = id_of(serial, region, tag);
                    assert_eq!((region_of(id), tag_of(id)), (region, tag));
                    assert_eq!(id >> (TAG_BITS + REGION_BITS), serial);
                }
            }
        }
    }

    #[test]
    fn a_late_wake_up_does_not_delay_the_model() {
        let mut engine = engine(&servers(1), &[]);
        engine.submit(0, io(Kind::Read, 0, 8), &[], 0).unwrap();
        let mut done = Vec::new();
        engine.run(999_999, &mut done);
        assert_eq!(done, []);
        engine.run(7_000_000, &mut done);
        assert_eq!(done[0].at, 1_000_000);
        engine.told(&done[0], 7_500_000);
        assert_eq!(engine.tally(0).late_ns.max, 6_500_000);
        assert_eq!(engine.tally(0).other.true_ns, 1_000_000);
        assert_eq!(engine.next_at(), None);
    }

    #[test]
    fn what_happened_before_a_request_arrives_is_told_with_it() {
        let mut engine = engine(&servers(2), &[]);
        engine.submit(0, io(Kind::Read, 0, 8), &[], 0).unwrap();
        engine
            .submit(1, io(Kind::Read, 8, 8), &[], 1_500_000)
            .unwrap();
        let mut done = Vec::new();
        engine.run(1_500_000, &mut done);
        assert_eq!(done.iter().map(|d| d.tag).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn requests_that_make_no_sense_are_refused_and_change_nothing() {
        let spec = Spec {
            size_mib: Some(1),
            ..servers(2)
        };
        let mut engine = engine(&spec, &[]);
        engine.submit(0, io(Kind::Read, 0, 8), &[], 0).unwrap();
        for (tag, io, data, why) in [
            (2, io(Kind::Read, 0, 8), 0, Refused::NoTag),
            (0, io(Kind::Read, 0, 8), 0, Refused::TagInUse),
            (1, io(Kind::Read, 0, 0), 0, Refused::NotOnDisk),
            (1, io(Kind::Read, 2047, 2), 0, Refused::NotOnDisk),
            (1, io(Kind::Zero, u64::MAX, 2), 0, Refused::NotOnDisk),
            (1, io(WRITE, 0, 2), 512, Refused::WrongData),
            (1, io(Kind::Read, 0, 1), 512, Refused::WrongData),
        ] {
            let data = vec![1; data];
            assert_eq!(engine.submit(tag, io, &data, 0), Err(why), "{io:?}");
        }
        let mut done = Vec::new();
        settle(&mut engine, &mut done);
        assert_eq!(done.len(), 1);
        assert_eq!(engine.memory.pages(), 0);
    }

    #[test]
    fn zeroing_takes_no_device_time_and_a_tag_until_it_is_told() {
        let mut engine = engine(&servers(1), &[]);
        engine.submit(0, io(WRITE, 8, 8), &[1; 4096], 0).unwrap();
        let mut done = Vec::new();
        let now = settle(&mut engine, &mut done);
        engine
            .submit(0, io(Kind::Zero, 0, 1 << 20), &[], now)
            .unwrap();
        assert_eq!(engine.next_at(), Some(now));
        let again = engine.submit(0, io(Kind::Read, 0, 8), &[], now);
        assert_eq!(again, Err(Refused::TagInUse));
        done.clear();
        engine.run(now, &mut done);
        assert_eq!((done.len(), done[0].at), (1, now));
        assert_eq!(engine.memory.pages(), 0);
        engine.submit(0, io(Kind::Read, 0, 8), &[], now).unwrap();
        settle(&mut engine, &mut done);
        let tally = engine.tally(0);
        assert_eq!(tally.other.true_ns, 2_000_000);
        assert_eq!((tally.other.reads, tally.other.writes), (1, 1));
    }

    /// The tag of a cached write is another's long before the head writes it.
    #[test]
    fn device_time_of_a_cached_write_goes_to_its_own_region() {
        let spec = Spec {
            write_cache: 8,
            ..Spec::new(Model::St3250620as)
        };
        let far = 400_000_000;
        let mut engine = engine(&spec, &["0:8", &format!("{far}:8")]);
        let mut done = Vec::new();
        engine.submit(3, io(WRITE, far, 8), &[1; 4096], 0).unwrap();
        let acknowledged = engine.next_at().unwrap();
        engine.run(acknowledged, &mut done);
        assert_eq!(done.len(), 1);
        let early = engine.tally(0);
        assert_eq!((early.regions[1].writes, early.regions[1].true_ns), (1, 0));
        engine
            .submit(3, io(Kind::Read, 0, 8), &[], acknowledged)
            .unwrap();
        settle(&mut engine, &mut done);
        let tally = engine.tally(0);
        assert_eq!((tally.regions[0].reads, tally.regions[1].writes), (1, 1));
        // Overhead and half a turn at the least.
        for region in &tally.regions {
            assert!(region.true_ns > 300_000, "{tally:?}");
        }
        assert_eq!(tally.other, Account::default());
    }

    #[derive(Clone, Debug)]
    struct Step {
        wait_ns: u64,
        /// Whether there is a wake-up before the request, or only with it.
        wake: bool,
        tag: u16,
        kind: Kind,
        sector: u64,
        sectors: u32,
        fill: u8,
    }

    fn step() -> impl Strategy<Value = Step> {
        let kind = prop_oneof![
            4 => Just(Kind::Read),
            4 => any::<bool>().prop_map(|fua| Kind::Write { fua }),
            1 => Just(Kind::Flush),
            1 => Just(Kind::Zero),
        ];
        let place = (0..2000u64, 1..48u32);
        (
            0..3_000_000u64,
            any::<bool>(),
            0..31u16,
            kind,
            place,
            any::<u8>(),
        )
            .prop_map(|(wait_ns, wake, tag, kind, (sector, sectors), fill)| Step {
                wait_ns,
                wake,
                tag,
                kind,
                sector,
                sectors,
                fill,
            })
    }

    proptest! {
        /// Against plain bookkeeping: each request is done once, not before it was sent, and is
        /// counted in the region in which it begins; the data are those last written; no device
        /// time is lost.
        #[test]
        fn every_request_is_done_once_and_counted_where_it_belongs(
            model in prop_oneof![
                Just((Model::St3250620as, 0)),
                Just((Model::St3250620as, 4)),
                Just((Model::Nvme, 0)),
            ],
            steps in prop::collection::vec(step(), 1..80),
        ) {
            let spec = Spec { write_cache: model.1, size_mib: Some(1024), ..Spec::new(model.0) };
            let regions = ["0:100:400:2", "300:900"];
            let mut engine = engine(&spec, &regions);
            let regions = regions.map(|text| text.parse::<Region>().unwrap());
            let mut bare = spec.make().unwrap();
            let mut plain = vec![0u8; 2048 * SECTOR];
            let mut sent: Vec<Option<(Io, u64)>> = vec![None; 31];
            let mut expected = vec![Account::default(); 3];
            let (mut now, mut count, mut bare_ns) = (0, 0, 0);
            let mut bare_events = Vec::new();
            let mut done = Vec::new();
            let mut finish = |done: &mut Vec<Done>, sent: &mut Vec<Option<(Io, u64)>>, now| {
                for done in done.drain(..) {
                    let (io, at) = sent[usize::from(done.tag)].take().unwrap();
                    assert_eq!(io, done.io);
                    assert!(at <= done.at && done.at <= now);
                    let region = regions.iter().position(|r| r.contains(io.sector)).unwrap_or(2);
                    let account = &mut expected[region];
                    match io.kind {
                        Kind::Read => {
                            account.reads += 1;
                            account.read_sectors += u64::from(io.sectors);
                        }
                        Kind::Write { .. } => {
                            account.writes += 1;
                            account.write_sectors += u64::from(io.sectors);
                        }
                        Kind::Flush | Kind::Zero => {}
                    }
                    count += 1;
                }
            };
            let mut submitted = 0;
            for step in steps {
                now += step.wait_ns;
                if step.wake {
                    engine.run(now, &mut done);
                    finish(&mut done, &mut sent, now);
                }
                if sent[usize::from(step.tag)].is_some() {
                    continue;
                }
                let io = io(step.kind, step.sector, step.sectors);
                let data = match io.kind {
                    Kind::Write { .. } => vec![step.fill; io.bytes()],
                    _ => Vec::new(),
                };
                engine.submit(step.tag, io, &data, now).unwrap();
                sent[usize::from(step.tag)] = Some((io, now));
                submitted += 1;
                let span = io.sector as usize * SECTOR..;
                match io.kind {
                    Kind::Write { .. } => plain[span][..data.len()].copy_from_slice(&data),
                    Kind::Zero => plain[span][..io.sectors as usize * SECTOR].fill(0),
                    Kind::Read | Kind::Flush => {}
                }
                // The same model alone, told the same.
                bare.run(now, &mut bare_events);
                let op = match io.kind {
                    Kind::Read => Op::Read,
                    Kind::Write { .. } => Op::Write,
                    Kind::Flush => Op::Flush,
                    Kind::Zero => continue,
                };
                let fua = io.kind == Kind::Write { fua: true };
                let request = Request { op, sector: io.sector, sectors: io.sectors, fua };
                bare.submit(submitted, request, now);
            }
            while let Some(at) = engine.next_at() {
                now = now.max(at);
                engine.run(now, &mut done);
                finish(&mut done, &mut sent, now);
            }
            bare.run(now, &mut bare_events);
            for event in bare_events {
                if let Event::Took { time, .. } = event {
                    bare_ns += time;
                }
            }
            prop_assert_eq!(count, submitted);
            let tally = engine.tally(9);
            let got = [&tally.regions[..], &[tally.other]].concat();
            prop_assert_eq!(got.iter().map(|a| a.true_ns).sum::<u64>(), bare_ns);
            for (got, expected) in got.into_iter().zip(expected) {
                prop_assert_eq!(Account { true_ns: 0, ..got }, expected);
            }
            let mut all = vec![0xaa; plain.len()];
            engine.read(0, &mut all);
            prop_assert_eq!(all, plain);
        }
    }
}
