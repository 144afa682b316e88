//! A disk behind a network, as clouds sell volumes: a latency, and caps.
//!
//! # The model
//! Requests pass a throttle in order of arrival and are answered a latency later, any number at
//! once. The latency is a floor and a jitter that is distributed exponentially. The throttle has
//! two caps, one of I/Os and one of bytes, and lets a request pass when both do. A request of more
//! than `io_sectors` counts as several I/Os.
//!
//! Each [`Cap`] is two buckets. The first paces: a request passes when all before it have been paid
//! for at the rate `peak`, however long the disk was idle before. The second holds credit: it fills
//! at `rate` up to `credit`, is full at first, and a request takes its cost out of it, or waits
//! until it can. One that costs more than the bucket holds takes all and leaves a debt. A cap
//! without burst has `peak == rate` and needs no second bucket.
//!
//! **What a request took** is its share of the volume's second: `max(I/Os / rate, bytes / rate)`
//! of the cap that it uses more of, known when it passes the throttle. Where all requests are bound
//! by the same cap and no credit is spent, the sum is the time that passed. Spending credit takes
//! more than a second a second: it is time saved up. Where some requests are bound by one cap and
//! some by the other, a second may be sold twice, since the caps work side by side.
//!
//! A completed write is on the medium: a flush has nothing to wait for but the network, and FUA
//! makes no difference.
//!
//! # What was left out
//! Neighbours on the same host, lazy loading of snapshots, the instance's own caps, and the merging
//! of small requests that some volumes do before they count.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::fmt;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{Disk, Event, Op, Request};

const SECTOR_BYTES: u64 = 512;
const NS_PER_S: u64 = 1_000_000_000;

/// The exponential distribution with mean 1024: `-1024 ln(1 - (i + 1/2) / 64)`, the last raised
/// until the mean is exact. The tail ends at 5.2 times the mean.
const EXPONENTIAL: [u64; 64] = [
    8, 24, 41, 58, 75, 92, 110, 128, 146, 165, 184, 203, 223, 243, 263, 284, 305, 327, 349, 372,
    395, 419, 444, 469, 494, 520, 547, 575, 603, 633, 663, 694, 726, 759, 793, 828, 865, 903, 942,
    983, 1026, 1070, 1117, 1166, 1217, 1271, 1328, 1388, 1452, 1520, 1594, 1672, 1758, 1851, 1953,
    2067, 2195, 2342, 2513, 2719, 2976, 3320, 3844, 5322,
];

/// How much of something passes in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// In the long run.
    pub rate: u64,
    /// While there is credit; at least `rate`.
    pub peak: u64,
    /// The most that idle times save up; not used where `peak` is `rate`.
    pub credit: u64,
}

impl Cap {
    /// The same at all times.
    pub fn constant(rate: u64) -> Self {
        Cap {
            rate,
            peak: rate,
            credit: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    pub sectors: u64,
    pub slots: u32,
    /// I/Os a second.
    pub ios: Cap,
    /// Bytes a second.
    pub bytes: Cap,
    /// The largest request that counts as one I/O.
    pub io_sectors: u32,
    pub latency_ns: u64,
    /// The mean of what comes on top.
    pub jitter_ns: u64,
    pub seed: u64,
}

impl Params {
    /// A volume of 100 GiB after "Amazon EBS volume types", gp3: 3,000 IOPS and 125 MiB/s whatever
    /// its size, no burst; an I/O is 256 KiB at most.
    ///
    /// The document promises single-digit milliseconds; 0.5 ms and 0.25 ms of jitter are what such
    /// volumes are commonly seen to take.
    pub fn gp3() -> Self {
        Params {
            sectors: 100 << 21,
            slots: 128,
            ios: Cap::constant(3_000),
            bytes: Cap::constant(125 << 20),
            io_sectors: 512,
            latency_ns: 500_000,
            jitter_ns: 250_000,
            seed: 0,
        }
    }

    /// A volume of 100 GiB after "Amazon EBS volume types", gp2: 3 IOPS a GiB, bursts of 3,000 on
    /// a credit of 5.4 million I/Os, full at first; 128 MiB/s up to 170 GiB.
    pub fn gp2() -> Self {
        Params {
            ios: Cap {
                rate: 300,
                peak: 3_000,
                credit: 5_400_000,
            },
            bytes: Cap::constant(128 << 20),
            ..Params::gp3()
        }
    }
}

/// Why parameters make no volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    NoSectors,
    NoSlots,
    NoRate,
    LowPeak,
    NoCredit,
    NoIo,
    TooLong,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Invalid::NoSectors => "a volume needs at least one sector",
            Invalid::NoSlots => "a volume needs at least one slot",
            Invalid::NoRate => "a cap must let at least one unit a second pass",
            Invalid::LowPeak => "a cap's peak must not be lower than its rate",
            Invalid::NoCredit => "a cap whose peak is above its rate needs credit",
            Invalid::NoIo => "an I/O has at least one sector",
            Invalid::TooLong => "latency and jitter must not be longer than a second",
        })
    }
}

impl Error for Invalid {}

/// See the module.
pub struct Net {
    params: Params,
    rng: ChaCha8Rng,
    now: u64,
    in_flight: u32,
    /// By time, then by when they were made.
    steps: BinaryHeap<Reverse<(u64, u64, Step)>>,
    made: u64,
    ios: Bucket,
    bytes: Bucket,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Took { id: u64, time: u64 },
    Done { id: u64 },
}

/// The state of a cap.
#[derive(Debug)]
struct Bucket {
    cap: Cap,
    /// When all that passed is paid for at the peak rate, and the rest of a nanosecond beyond, in
    /// parts of `peak`.
    paid_at: u64,
    rest: u128,
    /// Credit in parts of a unit, [`NS_PER_S`] each, at a time; negative for a debt.
    credit: i128,
    as_of: u64,
}

impl Bucket {
    fn new(cap: Cap) -> Self {
        Bucket {
            cap,
            paid_at: 0,
            rest: 0,
            credit: i128::from(cap.credit) * i128::from(NS_PER_S),
            as_of: 0,
        }
    }

    fn bursts(&self) -> bool {
        self.cap.peak > self.cap.rate
    }

    /// When something of this cost can pass, `now` at the earliest.
    fn ready(&self, cost: u64, now: u64) -> u64 {
        let paid_at = self.paid_at + u64::from(self.rest > 0);
        let mut ready = now.max(paid_at);
        if self.bursts() {
            let needed = i128::from(cost.min(self.cap.credit)) * i128::from(NS_PER_S);
            let missing = (needed - self.credit).max(0) as u128;
            let wait = missing.div_ceil(u128::from(self.cap.rate)) as u64;
            ready = ready.max(self.as_of + wait);
        }
        ready
    }

    /// Lets it pass, at a time not before it is ready.
    fn take(&mut self, cost: u64, at: u64) {
        // Who waits for the end of a nanosecond is not late: its rest is carried on.
        if at > self.paid_at + u64::from(self.rest > 0) {
            self.paid_at = at;
            self.rest = 0;
        }
        let peak = u128::from(self.cap.peak);
        let parts = u128::from(cost) * u128::from(NS_PER_S) + self.rest;
        self.paid_at += (parts / peak) as u64;
        self.rest = parts % peak;
        if self.bursts() {
            let full = i128::from(self.cap.credit) * i128::from(NS_PER_S);
            let earned = i128::from(self.cap.rate) * i128::from(at - self.as_of);
            self.credit = full.min(self.credit + earned);
            self.credit -= i128::from(cost) * i128::from(NS_PER_S);
            self.as_of = at;
        }
    }
}

impl Net {
    pub fn new(params: Params) -> Result<Self, Invalid> {
        if params.sectors == 0 {
            return Err(Invalid::NoSectors);
        }
        if params.slots == 0 {
            return Err(Invalid::NoSlots);
        }
        for cap in [params.ios, params.bytes] {
            if cap.rate == 0 {
                return Err(Invalid::NoRate);
            }
            if cap.peak < cap.rate {
                return Err(Invalid::LowPeak);
            }
            if cap.peak > cap.rate && cap.credit == 0 {
                return Err(Invalid::NoCredit);
            }
        }
        if params.io_sectors == 0 {
            return Err(Invalid::NoIo);
        }
        if params.latency_ns.max(params.jitter_ns) > NS_PER_S {
            return Err(Invalid::TooLong);
        }
        Ok(Net {
            params,
            rng: ChaCha8Rng::seed_from_u64(params.seed),
            now: 0,
            in_flight: 0,
            steps: BinaryHeap::new(),
            made: 0,
            ios: Bucket::new(params.ios),
            bytes: Bucket::new(params.bytes),
        })
    }

    fn at(&mut self, at: u64, step: Step) {
        self.steps.push(Reverse((at, self.made, step)));
        self.made += 1;
    }

    fn latency(&mut self) -> u64 {
        let draw = self.rng.random_range(0..EXPONENTIAL.len());
        self.params.latency_ns + self.params.jitter_ns * EXPONENTIAL[draw] / 1024
    }

    /// When it passes the throttle. That can be said at once, since nothing overtakes: all before
    /// it must be paid for.
    fn pass(&mut self, id: u64, sectors: u32, now: u64) -> u64 {
        let ios = u64::from(sectors.div_ceil(self.params.io_sectors));
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        let at = now
            .max(self.ios.ready(ios, now))
            .max(self.bytes.ready(bytes, now));
        self.ios.take(ios, at);
        self.bytes.take(bytes, at);
        let share = |cost: u64, cap: Cap| {
            (u128::from(cost) * u128::from(NS_PER_S) / u128::from(cap.rate)) as u64
        };
        let time = share(ios, self.params.ios).max(share(bytes, self.params.bytes));
        self.at(at, Step::Took { id, time });
        at
    }
}

impl Disk for Net {
    fn sectors(&self) -> u64 {
        self.params.sectors
    }

    fn slots(&self) -> u32 {
        self.params.slots
    }

    fn rotational(&self) -> bool {
        false
    }

    /// All that it has: nothing but the caps makes one request wait for another.
    fn parallelism(&self) -> u32 {
        self.params.slots
    }

    fn submit(&mut self, id: u64, request: Request, now: u64) {
        assert!(now >= self.now, "time runs back");
        assert!(self.in_flight < self.params.slots, "all slots are taken");
        self.now = now;
        self.in_flight += 1;
        let mut at = now;
        if request.op != Op::Flush {
            request.end_within(self.params.sectors);
            at = self.pass(id, request.sectors, now);
        }
        let latency = self.latency();
        self.at(at + latency, Step::Done { id });
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
            events.push(match step {
                Step::Took { id, time } => Event::Took { id, at, time },
                Step::Done { id } => {
                    self.in_flight -= 1;
                    Event::Done { id, at }
                }
            });
        }
        self.now = self.now.max(until);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const MS: u64 = 1_000_000;

    fn read(sectors: u32) -> Request {
        Request {
            op: Op::Read,
            sector: 0,
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
        begun: Vec<u64>,
        done: BTreeMap<u64, u64>,
        took: BTreeMap<u64, (u64, u64)>,
        events: Vec<Event>,
    }

    impl Log {
        fn submit(&mut self, net: &mut Net, request: Request, now: u64) {
            net.submit(self.begun.len() as u64, request, now);
            self.begun.push(now);
        }

        /// Runs the volume and says how many requests it completed.
        fn run(&mut self, net: &mut Net, until: u64) -> usize {
            let mut events = Vec::new();
            net.run(until, &mut events);
            let before = self.done.len();
            for event in &events {
                let last = self.events.last().map_or(0, Event::at);
                assert!(event.at() >= last && event.at() <= until, "out of order");
                let known = match *event {
                    Event::Done { id, at } => self.done.insert(id, at).is_some(),
                    Event::Took { id, at, time } => self.took.insert(id, (at, time)).is_some(),
                };
                assert!(!known, "twice: {event:?}");
                self.events.push(*event);
            }
            self.done.len() - before
        }

        fn finish(&mut self, net: &mut Net) {
            while let Some(at) = net.next_at() {
                self.run(net, at);
            }
        }

        fn latency(&self, id: u64) -> u64 {
            self.done[&id] - self.begun[id as usize]
        }

        /// Completions within a time.
        fn completed(&self, from: u64, to: u64) -> u64 {
            let within = self.done.values().filter(|&&at| from < at && at <= to);
            within.count() as u64
        }

        fn took(&self, from: u64, to: u64) -> u64 {
            let within = |&&(at, _): &&(u64, u64)| from < at && at <= to;
            self.took.values().filter(within).map(|took| took.1).sum()
        }
    }

    /// Keeps `depth` requests in flight from one moment to another, and waits for all of them.
    fn keep(log: &mut Log, net: &mut Net, depth: u32, span: (u64, u64), request: Request) {
        let (from, until) = span;
        log.run(net, from);
        for _ in 0..depth {
            log.submit(net, request, from);
        }
        while let Some(at) = net.next_at() {
            let completed = log.run(net, at);
            if at < until {
                for _ in 0..completed {
                    log.submit(net, request, at);
                }
            }
        }
        assert_eq!(log.done.len(), log.begun.len(), "lost");
    }

    fn within(measured: u64, expected: u64, permille: u64) -> bool {
        measured.abs_diff(expected) * 1000 <= expected * permille
    }

    #[test]
    fn long_run_rate_is_the_cap_that_binds() {
        let rates = (3_000, 125 << 20);
        // At 43 KiB both do.
        for (sectors, expected) in [
            (1, rates.0),
            (8, rates.0),
            (64, rates.0),
            (128, rates.1 / (64 << 10)),
            (512, rates.1 / (256 << 10)),
            (2048, rates.1 / (1 << 20)),
        ] {
            let mut net = Net::new(Params::gp3()).unwrap();
            let mut log = Log::default();
            let end = 9000 * MS;
            keep(&mut log, &mut net, 128, (0, end), read(sectors));
            let rate = log.completed(2000 * MS, end) / 7;
            println!("{sectors} sectors: {rate} of {expected} a second");
            assert!(within(rate, expected, 10), "{sectors}: {rate}");
            let took = log.took(2000 * MS, end);
            assert!(within(took, 7000 * MS, 2), "{sectors}: took {took}");
        }
    }

    #[test]
    fn large_request_counts_as_several() {
        let params = Params {
            bytes: Cap::constant(1 << 40),
            ..Params::gp3()
        };
        for (sectors, ios) in [(512, 1), (513, 2), (1024, 2), (1025, 3)] {
            let mut net = Net::new(params).unwrap();
            let mut log = Log::default();
            keep(&mut log, &mut net, 128, (0, 3000 * MS), read(sectors));
            let rate = log.completed(1000 * MS, 3000 * MS) / 2;
            assert!(within(rate, 3000 / ios, 5), "{sectors}: {rate}");
            assert_eq!(log.took[&0].1, ios * NS_PER_S / 3000);
        }
    }

    #[test]
    fn rate_is_exact_to_the_request() {
        // A third of a millisecond is no whole number of nanoseconds.
        let params = Params {
            jitter_ns: 0,
            slots: 10_000,
            ..Params::gp3()
        };
        let mut net = Net::new(params).unwrap();
        let mut log = Log::default();
        for _ in 0..9_001 {
            log.submit(&mut net, read(8), 0);
        }
        log.finish(&mut net);
        assert_eq!(log.took[&9_000].0, 3 * NS_PER_S);
        assert_eq!(log.took[&1].0, 333_334);
    }

    #[test]
    fn latency_is_a_floor_and_a_tail() {
        let params = Params::gp3();
        let mut net = Net::new(params).unwrap();
        let mut log = Log::default();
        keep(&mut log, &mut net, 1, (0, 8000 * MS), read(8));
        let mut all: Vec<u64> = (0..log.begun.len())
            .map(|id| log.latency(id as u64))
            .collect();
        all.sort_unstable();
        let mean = all.iter().sum::<u64>() / all.len() as u64;
        let (median, p99) = (all[all.len() / 2], all[all.len() * 99 / 100]);
        println!("mean {mean} median {median} P99 {p99}");
        assert!(within(mean, 750_000, 20), "{mean}");
        assert!(all[0] >= params.latency_ns, "{}", all[0]);
        // Half of an exponential lies below 0.69 of its mean, one in a hundred above 4.6.
        assert!(within(median, 500_000 + 173_000, 20), "{median}");
        assert!(within(p99, 500_000 + 1_150_000, 200), "{p99}");
    }

    #[test]
    fn idle_time_saves_nothing_without_burst() {
        let mut net = Net::new(Params::gp3()).unwrap();
        let mut log = Log::default();
        log.run(&mut net, 100 * NS_PER_S);
        for _ in 0..100 {
            log.submit(&mut net, read(8), 100 * NS_PER_S);
        }
        log.finish(&mut net);
        assert_eq!(log.took[&0].0, 100 * NS_PER_S);
        assert_eq!(log.took[&99].0, 100 * NS_PER_S + 33 * MS);
    }

    #[test]
    fn credit_is_spent_and_comes_back() {
        let params = Params {
            ios: Cap {
                rate: 300,
                peak: 3_000,
                credit: 2_700,
            },
            ..Params::gp2()
        };
        let mut net = Net::new(params).unwrap();
        let mut log = Log::default();
        // 2700 of credit and 300 a second last for one second of 3000.
        keep(&mut log, &mut net, 128, (0, 5000 * MS), read(8));
        let first = log.completed(0, 1000 * MS);
        let rest = log.completed(1100 * MS, 4100 * MS) / 3;
        assert!(within(first, 3000, 10), "burst: {first}");
        assert!(within(rest, 300, 10), "after: {rest}");
        // Three idle seconds bring back 900, which last for a third of a second.
        let idle_until = net.now + 3000 * MS;
        let end = idle_until + 2000 * MS;
        keep(&mut log, &mut net, 128, (idle_until, end), read(8));
        let again = log.completed(idle_until, idle_until + 300 * MS);
        let late = log.completed(idle_until + 500 * MS, idle_until + 1500 * MS);
        assert!(within(again, 900, 20), "again: {again}");
        assert!(within(late, 300, 20), "late: {late}");
    }

    #[test]
    fn credit_is_no_more_than_the_bucket_holds() {
        let cap = Cap {
            rate: 300,
            peak: 3_000,
            credit: 100,
        };
        let mut bucket = Bucket::new(cap);
        let mut passed = [0; 150];
        for at in &mut passed {
            *at = bucket.ready(1, 1000 * NS_PER_S);
            bucket.take(1, *at);
        }
        // 100 and what comes in while they are spent: 111 at the peak rate.
        let at_peak = passed
            .windows(2)
            .filter(|pair| pair[1] - pair[0] < MS)
            .count();
        assert_eq!(at_peak, 110);
    }

    #[test]
    fn request_larger_than_the_bucket_leaves_a_debt() {
        let cap = Cap {
            rate: 10,
            peak: 1_000_000,
            credit: 5,
        };
        let mut bucket = Bucket::new(cap);
        assert_eq!(bucket.ready(20, 0), 0);
        bucket.take(20, 0);
        assert_eq!(bucket.ready(1, 0), 1600 * MS);
    }

    #[test]
    fn flush_passes_the_throttle() {
        let params = Params {
            jitter_ns: 0,
            ..Params::gp3()
        };
        let mut net = Net::new(params).unwrap();
        let mut log = Log::default();
        for _ in 0..10 {
            log.submit(&mut net, read(512), 0);
        }
        log.submit(&mut net, FLUSH, 0);
        log.finish(&mut net);
        assert_eq!(log.latency(10), params.latency_ns);
        assert_eq!(log.took.get(&10), None);
    }

    #[test]
    fn nothing_is_lost_and_nothing_happens_twice() {
        for seed in 0..50 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut cap = || {
                let rate = rng.random_range(1_000..100_000_000);
                Cap {
                    rate,
                    peak: rate * rng.random_range(1..4),
                    credit: rng.random_range(1..100_000),
                }
            };
            let params = Params {
                ios: cap(),
                bytes: cap(),
                slots: 1000,
                seed,
                ..Params::gp3()
            };
            let load: Vec<(u64, Request)> = (0..1000)
                .scan(0, |now, _| {
                    *now += rng.random_range(0..3) * 100_000;
                    let sectors = rng.random_range(0..1000);
                    let kind = if sectors == 0 { FLUSH } else { read(sectors) };
                    Some((*now, kind))
                })
                .collect();
            let events = |step: u64| {
                let mut net = Net::new(params).unwrap();
                let mut log = Log::default();
                let mut at = 0;
                for &(now, request) in &load {
                    while at + step < now {
                        at += step;
                        log.run(&mut net, at);
                    }
                    log.run(&mut net, now);
                    at = now;
                    log.submit(&mut net, request, now);
                }
                log.finish(&mut net);
                assert_eq!(log.done.len(), load.len(), "seed {seed}");
                assert_eq!(net.in_flight, 0, "seed {seed}");
                for (id, (now, request)) in (0..).zip(&load) {
                    assert!(log.done[&id] >= now + params.latency_ns);
                    assert_eq!(log.took.contains_key(&id), request.op != Op::Flush);
                }
                log.events
            };
            let first = events(1000 * MS);
            assert_eq!(events(1000 * MS), first, "seed {seed}");
            assert_eq!(events(70_000), first, "seed {seed}: by steps");
        }
    }

    #[test]
    #[should_panic(expected = "all slots are taken")]
    fn more_requests_than_slots_are_refused() {
        let mut net = Net::new(Params::gp3()).unwrap();
        for id in 0..=128 {
            net.submit(id, read(8), 0);
        }
    }

    #[test]
    fn what_is_no_volume_is_refused() {
        type Spoil = fn(&mut Params);
        let spoilt: [(Spoil, Invalid); 7] = [
            (|p| p.sectors = 0, Invalid::NoSectors),
            (|p| p.slots = 0, Invalid::NoSlots),
            (|p| p.ios.rate = 0, Invalid::NoRate),
            (|p| p.bytes.peak = 1, Invalid::LowPeak),
            (|p| p.ios.credit = 0, Invalid::NoCredit),
            (|p| p.io_sectors = 0, Invalid::NoIo),
            (|p| p.jitter_ns = NS_PER_S + 1, Invalid::TooLong),
        ];
        for (spoil, why) in spoilt {
            let mut params = Params::gp2();
            spoil(&mut params);
            assert_eq!(Net::new(params).err(), Some(why));
            assert!(!why.to_string().is_empty());
        }
    }
}
