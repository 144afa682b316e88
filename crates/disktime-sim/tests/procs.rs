//! What processes do with direct I/O: bursts, rates, delays and syncs.
#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::rc::Rc;

use disktime_model::servers::{Inside, Params, Servers, Service};
use disktime_model::{Disk, Event, Model, Op as What, Request, Spec};
use disktime_sim::{
    Controller, Dirty, Group, Invalid, Mix, Observer, Op, Pattern, Proc, Setup, Silent, Sim,
};

const MS: u64 = 1_000_000;
const SEC: u64 = 1_000 * MS;

fn servers(service_ns: u64) -> Box<dyn Disk> {
    let params = Params {
        sectors: 1 << 21,
        servers: 8,
        slots: 8,
        service: Service::constant(service_ns),
        inside: Inside::Fifo,
        rotational: false,
        seed: 7,
    };
    Box::new(Servers::new(params).unwrap())
}

fn setup(disk: Box<dyn Disk>, procs: Vec<Proc>) -> Setup {
    Setup {
        disk,
        controller: Controller::DISKTIME,
        nr_requests: None,
        groups: vec![Group::default()],
        procs,
        dirty: Dirty::default(),
        wake_ns: 0,
        seed: 1,
        checked: true,
    }
}

/// When requests were issued, in ms.
#[derive(Default)]
struct Issues(Vec<u64>);

impl Observer for Issues {
    fn issued(&mut self, _: &Op, at: u64) {
        assert_eq!(at % MS, 0);
        self.0.push(at / MS);
    }
    fn completed(&mut self, _: &Op, _: u64) {}
}

#[test]
fn processes_issue_when_fio_would() {
    let proc = Proc::new(0, 0, 1 << 21);
    let writer = Proc {
        mix: Mix::Write,
        ..proc
    };
    // What it does, what a request takes in ms, when it issues, how many flushes there were.
    type Case<'a> = (&'a str, Proc, u64, &'a [u64], u64);
    let cases: [Case; 15] = [
        ("as it can", Proc { depth: 2, ..proc }, 1, &[0, 0, 1, 1], 0),
        (
            "thinks after each",
            Proc {
                think_ns: 3 * MS,
                ..proc
            },
            1,
            &[0, 4, 8, 12],
            0,
        ),
        (
            "each place thinks",
            Proc {
                think_ns: 3 * MS,
                depth: 2,
                ..proc
            },
            1,
            &[0, 0, 4, 4, 8, 8],
            0,
        ),
        (
            "thinks after four at depth two",
            Proc {
                think_ns: 10 * MS,
                burst: 4,
                depth: 2,
                ..proc
            },
            1,
            &[0, 0, 1, 1, 12, 12, 13, 13, 24, 24],
            0,
        ),
        (
            "a burst below the depth",
            Proc {
                think_ns: 10 * MS,
                burst: 3,
                depth: 8,
                ..proc
            },
            1,
            &[0, 0, 0, 11, 11, 11, 22],
            0,
        ),
        (
            "a burst without thought waits for all of it",
            Proc {
                burst: 3,
                depth: 2,
                ..proc
            },
            1,
            &[0, 0, 1, 2, 2, 3, 4],
            0,
        ),
        (
            "a rate",
            Proc {
                rate_iops: Some(100),
                ..proc
            },
            1,
            &[0, 10, 20, 30],
            0,
        ),
        (
            "a rate that it cannot reach",
            Proc {
                rate_iops: Some(1000),
                ..proc
            },
            3,
            &[0, 3, 6, 9],
            0,
        ),
        (
            "catches up after having thought",
            Proc {
                rate_iops: Some(500),
                think_ns: 10 * MS,
                burst: 4,
                ..proc
            },
            1,
            &[0, 2, 4, 6, 17, 18, 19, 20, 31, 32],
            0,
        ),
        (
            "waits for what is outstanding, then as long as it was early",
            Proc {
                rate_iops: Some(500),
                depth: 2,
                ..proc
            },
            3,
            &[0, 5, 5, 8, 8, 11, 15],
            0,
        ),
        (
            "a delay",
            Proc {
                start_ns: 5 * MS,
                rate_iops: Some(250),
                ..proc
            },
            1,
            &[5, 9, 13],
            0,
        ),
        (
            "syncs after each two",
            Proc {
                fsync_every: Some(2),
                limit: Some(8 * 4),
                ..writer
            },
            1,
            &[0, 1, 2, 3],
            2,
        ),
        (
            "waits for all to sync",
            Proc {
                fsync_every: Some(3),
                depth: 2,
                limit: Some(8 * 6),
                ..writer
            },
            1,
            &[0, 0, 1, 2, 2, 3],
            2,
        ),
        (
            "syncs at its end, what it has not yet",
            Proc {
                fsync_every: Some(2),
                sync_at_end: true,
                limit: Some(8 * 3),
                ..writer
            },
            1,
            &[0, 1, 2],
            2,
        ),
        (
            "reads nothing to sync",
            Proc {
                fsync_every: Some(1),
                sync_at_end: true,
                limit: Some(8 * 3),
                ..proc
            },
            1,
            &[0, 1, 2],
            0,
        ),
    ];
    for (name, proc, service, want, flushes) in cases {
        for controller in [Controller::DISKTIME, Controller::Fifo] {
            let setup = Setup {
                controller,
                ..setup(servers(service * MS), vec![proc])
            };
            let mut sim = Sim::new(setup, Issues::default()).unwrap();
            sim.start(0);
            sim.run(50 * MS).unwrap();
            let got = &sim.observer.0;
            assert_eq!(&got[..want.len().min(got.len())], want, "{name}");
            assert_eq!(sim.tally(0).flushes, flushes, "{name}");
            if proc.limit.is_some() {
                let last = want.last().unwrap() + service;
                assert_eq!(sim.finished_at(0), Some(last * MS), "{name}");
                assert_eq!(got.len(), want.len(), "{name}");
                assert_eq!(sim.moved(0), want.len() as u64 * 4096, "{name}");
            }
            assert_eq!(sim.finished(0), proc.limit.is_some(), "{name}");
        }
    }
}

#[test]
fn a_rate_begins_anew_when_the_process_does() {
    let proc = Proc {
        rate_iops: Some(100),
        ..Proc::new(0, 0, 1 << 21)
    };
    let mut sim = Sim::new(setup(servers(MS), vec![proc]), Issues::default()).unwrap();
    sim.start(0);
    sim.run(15 * MS).unwrap();
    sim.stop(0);
    sim.run(100 * MS).unwrap();
    sim.start(0);
    sim.run(125 * MS).unwrap();
    assert_eq!(sim.observer.0, [0, 10, 100, 110, 120]);

    // Stopped while it waits, too early, for what is outstanding.
    let proc = Proc { depth: 2, ..proc };
    let mut sim = Sim::new(setup(servers(3 * MS), vec![proc]), Issues::default()).unwrap();
    sim.start(0);
    sim.run(MS).unwrap();
    sim.stop(0);
    sim.run(100 * MS).unwrap();
    sim.start(0);
    sim.run(105 * MS).unwrap();
    assert_eq!(sim.observer.0, [0, 100]);
}

/// Sees what the disk is asked, and fails where a flush comes too early or beside another.
struct Watched {
    disk: Box<dyn Disk>,
    /// Requests in the disk by process, and whether a flush is.
    writes: Vec<u32>,
    flush: Option<u64>,
    flushes: Rc<RefCell<u64>>,
}

fn proc_of(id: u64) -> usize {
    (id >> 16 & 0xffff) as usize
}

impl Disk for Watched {
    fn sectors(&self) -> u64 {
        self.disk.sectors()
    }
    fn slots(&self) -> u32 {
        self.disk.slots()
    }
    fn rotational(&self) -> bool {
        self.disk.rotational()
    }
    fn parallelism(&self) -> u32 {
        self.disk.parallelism()
    }
    fn submit(&mut self, id: u64, request: Request, now: u64) {
        if request.op == What::Flush {
            assert_eq!(self.writes[proc_of(id)], 0, "it has not waited");
            assert!(self.flush.is_none(), "two flushes");
            self.flush = Some(id);
            *self.flushes.borrow_mut() += 1;
        } else {
            self.writes[proc_of(id)] += 1;
        }
        self.disk.submit(id, request, now);
    }
    fn next_at(&self) -> Option<u64> {
        self.disk.next_at()
    }
    fn run(&mut self, until: u64, events: &mut Vec<Event>) {
        let from = events.len();
        self.disk.run(until, events);
        for event in &events[from..] {
            if let Event::Done { id, .. } = *event {
                if self.flush == Some(id) {
                    self.flush = None;
                } else {
                    self.writes[proc_of(id)] -= 1;
                }
            }
        }
    }
}

#[test]
fn flushes_come_one_at_a_time_after_the_writes_and_serve_all_who_wait() {
    for model in [Model::St3250620as, Model::Nvme] {
        for depth in [1, 5] {
            let spec = match model {
                Model::St3250620as => Spec {
                    write_cache: 32,
                    ..Spec::new(model)
                },
                _ => Spec::new(model),
            };
            let disk = spec.make().unwrap();
            let sectors = disk.sectors();
            let flushes = Rc::new(RefCell::new(0));
            let watched = Watched {
                disk,
                writes: vec![0; 8],
                flush: None,
                flushes: Rc::clone(&flushes),
            };
            let proc = Proc {
                pattern: Pattern::Random,
                mix: Mix::Write,
                depth,
                fsync_every: Some(4),
                ..Proc::new(0, 0, sectors)
            };
            let setup = Setup {
                wake_ns: 5_000,
                ..setup(Box::new(watched), vec![proc; 8])
            };
            let mut sim = Sim::new(setup, Silent).unwrap();
            for proc in 0..8 {
                sim.start(proc);
            }
            sim.run(SEC).unwrap();
            for proc in 0..8 {
                sim.stop(proc);
            }
            sim.run(3 * SEC).unwrap();
            let tally = sim.tally(0);
            assert!(tally.flushes >= 16, "{model} {tally:?}");
            assert!(*flushes.borrow() < tally.flushes, "{model} {tally:?}");
            // Each after four writes, and less than four for each process are not flushed.
            let due = tally.ios[1] / 4;
            assert!(tally.flushes.abs_diff(due) <= 8, "{model} {tally:?}");
        }
    }
}

#[test]
fn who_asks_while_a_flush_has_the_only_slot_waits() {
    let params = Params {
        sectors: 1 << 21,
        servers: 1,
        slots: 1,
        service: Service::constant(MS),
        inside: Inside::Fifo,
        rotational: false,
        seed: 7,
    };
    let writer = Proc {
        mix: Mix::Write,
        limit: Some(8),
        sync_at_end: true,
        ..Proc::new(0, 0, 1 << 21)
    };
    // It begins when the other has written, and is to flush.
    let late = Proc {
        start_ns: MS,
        ..writer
    };
    let disk = Box::new(Servers::new(params).unwrap());
    let mut sim = Sim::new(setup(disk, vec![writer, late]), Silent).unwrap();
    sim.start(0);
    sim.start(1);
    sim.run(10 * MS).unwrap();
    let ends = [0, 1].map(|proc| sim.finished_at(proc));
    assert_eq!(ends, [Some(MS), Some(2 * MS)]);
}

#[test]
fn what_is_nothing_is_refused() {
    let good = Proc::new(0, 0, 1 << 21);
    for (bad, refused) in [
        (good, false),
        (Proc { burst: 0, ..good }, true),
        (
            Proc {
                rate_iops: Some(0),
                ..good
            },
            true,
        ),
        (
            Proc {
                fsync_every: Some(0),
                ..good
            },
            true,
        ),
    ] {
        let sim = Sim::new(setup(servers(MS), vec![bad]), Silent);
        assert_eq!(matches!(sim.err(), Some(Invalid::Nothing(0))), refused);
    }
}
