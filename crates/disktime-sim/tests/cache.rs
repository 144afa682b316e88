//! The page cache: writers that are held back, flushers, readers that read ahead.
#![allow(clippy::unwrap_used)]

use disktime_core::Weight;
use disktime_model::servers::{Inside, Params, Servers, Service};
use disktime_model::{Model, Spec};
use disktime_sim::{
    Controller, Dirty, Group, Mix, Observer, Op, Pattern, Proc, Setup, Silent, Sim, Tally,
};

const MS: u64 = 1_000_000;
const SEC: u64 = 1_000 * MS;
const MIB: u64 = 1 << 20;
/// Sectors of it.
const SECTORS: u64 = MIB / 512;

fn hdd() -> Box<dyn disktime_model::Disk> {
    Spec::new(Model::St3250620as).make().unwrap()
}

fn group(weight: u32, dirty: Option<Dirty>) -> Group {
    Group {
        weight: Weight::new(weight).unwrap(),
        dirty,
        ..Group::default()
    }
}

fn limits(background_mib: u64, limit_mib: u64) -> Dirty {
    Dirty {
        background: background_mib * MIB,
        limit: limit_mib * MIB,
    }
}

/// A sequential buffered writer in `mib` MiB from `at_mib` on.
fn writer(group: usize, at_mib: u64, mib: u64) -> Proc {
    Proc {
        mix: Mix::Write,
        buffered: true,
        ..Proc::new(group, at_mib * SECTORS, (at_mib + mib) * SECTORS)
    }
}

fn setup(groups: Vec<Group>, procs: Vec<Proc>) -> Setup {
    Setup {
        disk: hdd(),
        controller: Controller::DISKTIME,
        nr_requests: None,
        groups,
        procs,
        dirty: limits(40, 80),
        wake_ns: 5_000,
        seed: 1,
        checked: false,
    }
}

fn start<O: Observer>(setup: Setup, observer: O) -> Sim<O> {
    let procs = setup.procs.len();
    let mut sim = Sim::new(setup, observer).unwrap();
    for proc in 0..procs {
        sim.start(proc);
    }
    sim
}

/// Two groups of 50 writers, each with limits of its own.
fn hundred() -> Setup {
    let groups = [1000, 500].map(|weight| group(weight, Some(limits(100, 200))));
    let procs = (0..100).map(|n| writer(n / 50, (n % 50 * 2 + n / 50) as u64 * 2000, 2000));
    setup(groups.into(), procs.collect())
}

#[test]
fn groups_of_writers_get_their_shares_while_both_flushers_are_backlogged() {
    let mut sim = start(hundred(), Silent);
    sim.run(30 * SEC).unwrap();
    let before = [0, 1].map(|g| sim.stats(g).unwrap());
    let tallies = [0, 1].map(|g| sim.tally(g));
    let mut empty = [0, 0];
    for ms in 0..120_000 {
        sim.run(30 * SEC + ms * MS).unwrap();
        for g in 0..2 {
            empty[g] += u64::from(!sim.backlogged(g).unwrap());
        }
    }
    let after = [0, 1].map(|g| sim.stats(g).unwrap());
    let had = [0, 1].map(|g| (after[g].total_time() - before[g].total_time()).0 as f64);
    let truly = [0, 1].map(|g| (sim.tally(g).true_ns - tallies[g].true_ns) as f64);
    let sectors = [0, 1].map(|g| sim.tally(g).sectors[1] - tallies[g].sectors[1]);
    println!(
        "{} true {} sectors {:?} empty {empty:?} ms dirty {:?} deq {:?}",
        had[0] / had[1],
        truly[0] / truly[1],
        sectors,
        [0, 1].map(|g| sim.dirty(g) / MIB),
        [0, 1].map(|g| after[g].dequeues - before[g].dequeues)
    );
    let ratio = had[0] / had[1];
    assert!((ratio - 2.0).abs() < 0.1, "{ratio}");
}

#[test]
fn reader() {
    for wc in [0, 32] {
        let time = |controller, writes: bool, own: bool| {
            let spec = Spec {
                write_cache: wc,
                ..Spec::new(Model::St3250620as)
            };
            let dirty = own.then_some(limits(100, 200));
            let mut setup = setup(
                vec![group(100, dirty), group(100, dirty)],
                vec![
                    Proc {
                        buffered: true,
                        limit: Some(256 * SECTORS),
                        ..Proc::new(0, 0, 256 * SECTORS)
                    },
                    Proc {
                        limit: Some(4000 * SECTORS),
                        sync_at_end: true,
                        ..writer(1, 100_000, 4000)
                    },
                ],
            );
            setup.disk = spec.make().unwrap();
            setup.dirty = limits(800, 1600);
            setup.controller = controller;
            let mut sim = Sim::new(setup, Silent).unwrap();
            if writes {
                sim.start(1);
                sim.run(10 * SEC).unwrap();
            }
            let at = sim.now();
            sim.start(0);
            while sim.finished_at(0).is_none() {
                sim.run(sim.now() + 100 * MS).unwrap();
            }
            let took = (sim.finished_at(0).unwrap() - at) as f64 / 1e9;
            (
                took,
                sim.tally(1).sectors[1] / SECTORS,
                sim.root_tally().sectors[1] / SECTORS,
            )
        };
        println!(
            "alone {:?} fifo {:?} disktime {:?} disktime, own limits {:?} fifo own {:?}",
            time(Controller::Fifo, false, false),
            time(Controller::Fifo, true, false),
            time(Controller::DISKTIME, true, false),
            time(Controller::DISKTIME, true, true),
            time(Controller::Fifo, true, true)
        );
    }
}
