//! A disk of `k` equal servers: each takes one request at a time, and every request as long as the
//! next.
//!
//! The plainest device on which sharing is hard: parallelism without seeks, sizes or lies.
//! `null_blk` with `hw_queue_depth` and `completion_nsec` is this disk. Where it takes more
//! requests than it has servers, the rest wait inside: in order of arrival, or in any order, which
//! is what accounting by completions cannot see.
//!
//! A request's true time is the time of its server. Flushes pass through: there is no cache.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::error::Error;
use std::fmt;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{Disk, Event, Op, Request};

/// Which of the requests that wait inside a free server takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inside {
    #[default]
    Fifo,
    Random,
}

/// How long a request keeps its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// Every request.
    pub base_ns: u64,
    /// And each of its sectors.
    pub sector_ns: u64,
    /// A write as many times as long, in hundredths.
    pub write_percent: u32,
    /// At random by up to this much either way, in hundredths, uniformly: 0 to 100.
    pub spread_percent: u32,
}

impl Service {
    /// The same for all requests.
    pub fn constant(ns: u64) -> Self {
        Service {
            base_ns: ns,
            sector_ns: 0,
            write_percent: 100,
            spread_percent: 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    pub sectors: u64,
    pub servers: u32,
    /// At least as many as servers.
    pub slots: u32,
    pub service: Service,
    pub inside: Inside,
    pub rotational: bool,
    pub seed: u64,
}

/// Why parameters make no disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    NoSectors,
    NoServers,
    FewSlots,
    NoTime,
    Spread,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Invalid::NoSectors => "a disk needs at least one sector",
            Invalid::NoServers => "a disk needs at least one server",
            Invalid::FewSlots => "a disk needs at least as many slots as servers",
            Invalid::NoTime => "a request must take at least one nanosecond",
            Invalid::Spread => "service times spread by 100 % at most",
        })
    }
}

impl Error for Invalid {}

/// See the module.
pub struct Servers {
    params: Params,
    rng: ChaCha8Rng,
    now: u64,
    /// By when they end, then by when they began.
    busy: BinaryHeap<Reverse<(u64, u64, Running)>>,
    waiting: VecDeque<(u64, Request)>,
    begun: u64,
    /// Flushes that the next [`Disk::run`] reports.
    flushed: Vec<Event>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Running {
    id: u64,
    time: u64,
}

impl Servers {
    pub fn new(params: Params) -> Result<Self, Invalid> {
        if params.sectors == 0 {
            return Err(Invalid::NoSectors);
        }
        if params.servers == 0 {
            return Err(Invalid::NoServers);
        }
        if params.slots < params.servers {
            return Err(Invalid::FewSlots);
        }
        if params.service.base_ns + params.service.sector_ns == 0
            || params.service.write_percent == 0
        {
            return Err(Invalid::NoTime);
        }
        if params.service.spread_percent > 100 {
            return Err(Invalid::Spread);
        }
        Ok(Servers {
            params,
            rng: ChaCha8Rng::seed_from_u64(params.seed),
            now: 0,
            busy: BinaryHeap::with_capacity(params.servers as usize),
            waiting: VecDeque::new(),
            begun: 0,
            flushed: Vec::new(),
        })
    }

    fn service(&mut self, request: &Request) -> u64 {
        let Service {
            base_ns,
            sector_ns,
            write_percent,
            spread_percent,
        } = self.params.service;
        let mut time = base_ns + sector_ns * u64::from(request.sectors);
        if request.op == Op::Write && write_percent != 100 {
            time = time * u64::from(write_percent) / 100;
        }
        if spread_percent > 0 {
            let spread = time * u64::from(spread_percent) / 100;
            time = time - spread + self.rng.random_range(0..=2 * spread);
        }
        time.max(1)
    }

    fn begin(&mut self, id: u64, request: &Request, now: u64) {
        let time = self.service(request);
        let running = Running { id, time };
        self.busy.push(Reverse((now + time, self.begun, running)));
        self.begun += 1;
    }

    fn next_waiting(&mut self) -> Option<(u64, Request)> {
        match self.params.inside {
            Inside::Fifo => self.waiting.pop_front(),
            Inside::Random if self.waiting.is_empty() => None,
            Inside::Random => {
                let at = self.rng.random_range(0..self.waiting.len());
                self.waiting.swap_remove_back(at)
            }
        }
    }
}

impl Disk for Servers {
    fn sectors(&self) -> u64 {
        self.params.sectors
    }

    fn slots(&self) -> u32 {
        self.params.slots
    }

    fn rotational(&self) -> bool {
        self.params.rotational
    }

    fn parallelism(&self) -> u32 {
        self.params.servers
    }

    fn submit(&mut self, id: u64, request: Request, now: u64) {
        assert!(now >= self.now, "time runs back");
        self.now = now;
        if request.op == Op::Flush {
            self.flushed.push(Event::Done { id, at: now });
            return;
        }
        request.end_within(self.params.sectors);
        assert!(
            self.busy.len() + self.waiting.len() < self.params.slots as usize,
            "all slots are taken"
        );
        if self.busy.len() < self.params.servers as usize {
            self.begin(id, &request, now);
        } else {
            self.waiting.push_back((id, request));
        }
    }

    fn next_at(&self) -> Option<u64> {
        self.flushed
            .first()
            .map(Event::at)
            .or_else(|| self.busy.peek().map(|Reverse((at, ..))| *at))
    }

    fn run(&mut self, until: u64, events: &mut Vec<Event>) {
        events.append(&mut self.flushed);
        while let Some(&Reverse((at, _, Running { id, time }))) = self.busy.peek() {
            if at > until {
                break;
            }
            self.busy.pop();
            events.push(Event::Took { id, at, time });
            events.push(Event::Done { id, at });
            if let Some((id, request)) = self.next_waiting() {
                self.begin(id, &request, at);
            }
        }
        self.now = self.now.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn params(servers: u32, slots: u32) -> Params {
        Params {
            sectors: 1 << 20,
            servers,
            slots,
            service: Service::constant(4 * MS),
            inside: Inside::Fifo,
            rotational: false,
            seed: 1,
        }
    }

    fn read(sectors: u32) -> Request {
        Request {
            op: Op::Read,
            sector: 0,
            sectors,
            fua: false,
        }
    }

    /// Keeps all slots taken with `request` until the disk has run for `until`.
    fn saturate(disk: &mut Servers, request: Request, until: u64) -> Vec<Event> {
        let (mut events, mut all) = (Vec::new(), Vec::new());
        let mut id = 0;
        for _ in 0..disk.slots() {
            disk.submit(id, request, 0);
            id += 1;
        }
        while let Some(at) = disk.next_at().filter(|&at| at <= until) {
            events.clear();
            disk.run(at, &mut events);
            for event in &events {
                if let Event::Done { at, .. } = *event {
                    disk.submit(id, request, at);
                    id += 1;
                }
            }
            all.extend_from_slice(&events);
        }
        all
    }

    fn done(events: &[Event]) -> usize {
        let is_done = |event: &&Event| matches!(event, Event::Done { .. });
        events.iter().filter(is_done).count()
    }

    fn took(events: &[Event]) -> u64 {
        let time = |event: &Event| match *event {
            Event::Took { time, .. } => time,
            Event::Done { .. } => 0,
        };
        events.iter().map(time).sum()
    }

    #[test]
    fn k_servers_do_k_requests_a_service_time() {
        for (servers, slots) in [(1, 1), (1, 31), (8, 8), (8, 32)] {
            let mut disk = Servers::new(params(servers, slots)).unwrap();
            let events = saturate(&mut disk, read(8), 400 * MS);
            assert_eq!(
                done(&events),
                100 * servers as usize,
                "{servers} of {slots}"
            );
            assert_eq!(took(&events), 400 * MS * u64::from(servers));
        }
    }

    #[test]
    fn request_that_waits_inside_takes_no_longer() {
        let mut disk = Servers::new(params(1, 2)).unwrap();
        let mut events = Vec::new();
        disk.submit(1, read(8), 0);
        disk.submit(2, read(8), MS);
        disk.run(100 * MS, &mut events);
        assert_eq!(
            events,
            [
                Event::Took {
                    id: 1,
                    at: 4 * MS,
                    time: 4 * MS
                },
                Event::Done { id: 1, at: 4 * MS },
                Event::Took {
                    id: 2,
                    at: 8 * MS,
                    time: 4 * MS
                },
                Event::Done { id: 2, at: 8 * MS },
            ]
        );
        assert_eq!(disk.next_at(), None);
    }

    #[test]
    fn size_and_direction_count_where_they_are_told_to() {
        let service = Service {
            base_ns: 100,
            sector_ns: 10,
            write_percent: 300,
            spread_percent: 0,
        };
        let mut disk = Servers::new(Params {
            service,
            ..params(2, 2)
        })
        .unwrap();
        let mut events = Vec::new();
        disk.submit(1, read(8), 0);
        let write = Request {
            op: Op::Write,
            ..read(16)
        };
        disk.submit(2, write, 0);
        disk.run(10_000, &mut events);
        assert_eq!(
            events[0],
            Event::Took {
                id: 1,
                at: 180,
                time: 180
            }
        );
        assert_eq!(
            events[2],
            Event::Took {
                id: 2,
                at: 780,
                time: 780
            }
        );
    }

    #[test]
    fn spread_keeps_the_mean_and_its_bounds() {
        let service = Service {
            spread_percent: 50,
            ..Service::constant(MS)
        };
        let mut disk = Servers::new(Params {
            service,
            ..params(4, 4)
        })
        .unwrap();
        let events = saturate(&mut disk, read(8), 5000 * MS);
        let mean = took(&events) / done(&events) as u64;
        assert!(mean.abs_diff(MS) < MS / 100, "mean {mean}");
        for event in &events {
            if let Event::Took { time, .. } = *event {
                assert!((MS / 2..=3 * MS / 2).contains(&time), "{time}");
            }
        }
    }

    #[test]
    fn any_order_inside_serves_everybody_once() {
        let inside = Inside::Random;
        let mut disk = Servers::new(Params {
            inside,
            ..params(1, 32)
        })
        .unwrap();
        let mut events = Vec::new();
        for id in 0..32 {
            disk.submit(id, read(8), 0);
        }
        disk.run(u64::MAX, &mut events);
        let mut order: Vec<u64> = events
            .iter()
            .filter_map(|event| match *event {
                Event::Done { id, .. } => Some(id),
                Event::Took { .. } => None,
            })
            .collect();
        assert!(!order.is_sorted(), "as if in order of arrival");
        order.sort_unstable();
        assert_eq!(order, (0..32).collect::<Vec<_>>());
    }

    #[test]
    fn flush_passes_at_once() {
        let mut disk = Servers::new(params(1, 1)).unwrap();
        let mut events = Vec::new();
        disk.submit(1, read(8), 0);
        let flush = Request {
            op: Op::Flush,
            ..read(0)
        };
        disk.submit(2, flush, 10);
        assert_eq!(disk.next_at(), Some(10));
        disk.run(10, &mut events);
        assert_eq!(events, [Event::Done { id: 2, at: 10 }]);
    }

    #[test]
    #[should_panic(expected = "all slots are taken")]
    fn more_requests_than_slots_are_refused() {
        let mut disk = Servers::new(params(1, 1)).unwrap();
        disk.submit(1, read(8), 0);
        disk.submit(2, read(8), 0);
    }

    #[test]
    fn what_is_no_disk_is_refused() {
        let refused = |params| Servers::new(params).err();
        let good = params(1, 1);
        assert_eq!(
            refused(Params { sectors: 0, ..good }),
            Some(Invalid::NoSectors)
        );
        assert_eq!(
            refused(Params { servers: 0, ..good }),
            Some(Invalid::NoServers)
        );
        assert_eq!(
            refused(Params { servers: 2, ..good }),
            Some(Invalid::FewSlots)
        );
        let service = Service::constant(0);
        assert_eq!(refused(Params { service, ..good }), Some(Invalid::NoTime));
        let service = Service {
            spread_percent: 101,
            ..Service::constant(1)
        };
        assert_eq!(refused(Params { service, ..good }), Some(Invalid::Spread));
    }
}
