//! Who asks for several at once and then thinks, as most programs do, beside who always asks.
//!
//! A group of that kind has nothing outstanding for much of the time, so that whoever looks at an
//! instant sees one that asks for nothing.
#![allow(clippy::unwrap_used)]

use disktime_core::{Nanos, Weight};
use disktime_model::{Model, Spec};
use disktime_sim::{Charge, Controller, Dirty, Group, Mix, Pattern, Proc, Setup, Silent, Sim};

const SEC: u64 = 1_000_000_000;
/// More than all have outstanding.
const REQUESTS: u32 = 1024;

/// Mix, KiB, depth, and µs that it thinks after as many, or 0.
type Load = (Mix, u32, u32, u64);

const LARGE_WRITES: Load = (Mix::Write, 128, 64, 0);
const SMALL_WRITES: Load = (Mix::Write, 4, 256, 0);
const LARGE_READS: Load = (Mix::Read, 128, 64, 0);

struct Bed {
    model: Model,
    slower: u32,
    /// Of the first; the second has 100.
    weight: u32,
    idle: Option<Nanos>,
    /// So long before what is done is counted, for two seconds.
    settle: u64,
}

impl Bed {
    fn new(model: Model) -> Self {
        Self {
            model,
            slower: 1,
            weight: 100,
            idle: None,
            settle: SEC,
        }
    }

    fn run(&self, loads: [Option<Load>; 2]) -> [u64; 2] {
        let proc = |n: usize, (mix, kib, depth, think_us): Load| Proc {
            pattern: Pattern::Random,
            mix,
            sectors: kib * 2,
            depth,
            think_ns: think_us * 1000,
            burst: if think_us > 0 { depth } else { 1 },
            ..Proc::new(n, (n as u64) << 24, (n as u64 + 1) << 24)
        };
        let group = |weight| Group {
            weight: Weight::new(weight).unwrap(),
            ..Group::default()
        };
        let mut disk = Spec::new(self.model);
        disk.slower = self.slower;
        let setup = Setup {
            disk: disk.make().unwrap(),
            controller: Controller::Disktime {
                slice: None,
                idle: self.idle,
                depth: None,
                order: None,
                strict: false,
                charge: Charge::Own,
            },
            nr_requests: Some(REQUESTS),
            groups: vec![group(self.weight), group(100)],
            procs: (0..2)
                .map(|n| proc(n, loads[n].unwrap_or(LARGE_WRITES)))
                .collect(),
            dirty: Dirty::default(),
            wake_ns: 5_000,
            seed: 1,
            checked: true,
        };
        let mut sim = Sim::new(setup, Silent).unwrap();
        for (n, load) in loads.iter().enumerate() {
            if load.is_some() {
                sim.start(n);
            }
        }
        let ios = |sim: &Sim| [0, 1].map(|g| sim.tally(g).ios.iter().sum::<u64>());
        let slower = u64::from(self.slower);
        sim.run(self.settle * slower).unwrap();
        let before = ios(&sim);
        sim.run((self.settle + 2 * SEC) * slower).unwrap();
        let after = ios(&sim);
        [0, 1].map(|g| after[g] - before[g])
    }

    /// What each does beside the other by what it does alone.
    fn progress(&self, first: Load, second: Load) -> [f64; 2] {
        let both = self.run([Some(first), Some(second)]);
        let alone = [
            self.run([Some(first), None])[0],
            self.run([None, Some(second)])[1],
        ];
        let progress = [0, 1].map(|n| both[n] as f64 / alone[n] as f64);
        println!(
            "{:?}: {first:?} beside {second:?}: {progress:.3?}",
            self.model
        );
        progress
    }
}

fn assert_keeps(progress: [f64; 2], least: [f64; 2]) {
    assert!(
        progress[0] > least[0] && progress[1] > least[1],
        "{progress:.3?}, not {least:?}"
    );
}

/// Whether somebody reads was asked at the ends of slots, when the reader thinks as often as not: turns
/// of readers and writers were given up, and the first had 0.02 to 0.47.
#[test]
fn bursts_of_reads_and_writers_have_a_drive_by_turns() {
    for model in [Model::SataSsd, Model::Nvme] {
        for think_us in [50, 150, 500] {
            for writes in [LARGE_WRITES, SMALL_WRITES] {
                let progress = Bed::new(model).progress((Mix::Read, 4, 8, think_us), writes);
                assert_keeps(progress, [0.48, 0.42]);
            }
        }
    }
}

/// One of the large writes began in each thought of the first, which waited for all of it in each
/// round: it had 0.14 to 0.48. What it asks for was looked at when a burst was nearly over.
#[test]
fn bursts_of_small_writes_do_not_wait_for_a_large_one_each() {
    for (think_us, least) in [(50, 0.45), (150, 0.55), (500, 0.8)] {
        let progress =
            Bed::new(Model::SataSsd).progress((Mix::Write, 4, 8, think_us), LARGE_WRITES);
        assert_keeps(progress, [least, 0.6]);
    }
}

/// A drive with a full cache is busy while the first thinks, so that the others wait for him: he had
/// 0.19 to 0.44.
#[test]
fn bursts_of_small_writes_have_their_half_behind_a_full_cache() {
    let late = Bed {
        settle: 3 * SEC,
        ..Bed::new(Model::Nvme)
    };
    for think_us in [50, 150] {
        let progress = late.progress((Mix::Write, 4, 8, think_us), LARGE_WRITES);
        assert_keeps(progress, [0.45, 0.45]);
    }
}

/// The same on a drive where all takes longer, and for who thinks longer than a device is kept idle.
#[test]
fn bursts_on_a_slow_drive_do_not_wait_for_a_large_one_each_as_well() {
    let slow = Bed {
        slower: 20,
        ..Bed::new(Model::SataSsd)
    };
    for (think_us, least) in [(1000, 0.38), (2000, 0.33), (4000, 0.6)] {
        let progress = slow.progress((Mix::Write, 4, 8, think_us), LARGE_WRITES);
        assert_keeps(progress, [least, 0.6]);
    }
}

/// Ten times the weight is worth something to who thinks: without the device kept idle it had 0.41.
#[test]
fn weight_helps_who_thinks() {
    let slow = Bed {
        slower: 20,
        weight: 1000,
        ..Bed::new(Model::SataSsd)
    };
    let progress = slow.progress((Mix::Write, 4, 8, 1000), LARGE_WRITES);
    assert_keeps(progress, [0.7, 0.3]);
}

/// A device is kept idle for nobody where the operator says so.
#[test]
fn no_device_is_kept_idle_if_that_is_not_wanted() {
    let slow = Bed {
        slower: 20,
        ..Bed::new(Model::SataSsd)
    };
    let never = Bed {
        idle: Some(Nanos(0)),
        ..slow
    };
    let loads = [Some((Mix::Write, 4, 8, 1000)), Some(LARGE_WRITES)];
    let (slow, never) = (slow.run(loads), never.run(loads));
    println!("{slow:?}, never idle {never:?}");
    assert!(slow[0] > never[0] * 6 / 5);
    assert!(slow[1] < never[1]);
}

/// Writers' turns are tried again when they did not pay the first time, because the cache had room
/// then: the reader had 0.15 to 0.22 for four seconds.
#[test]
fn turns_that_did_not_pay_at_first_are_tried_again_soon() {
    for think_us in [50, 150, 500] {
        let progress = Bed::new(Model::Nvme).progress((Mix::Write, 4, 8, think_us), LARGE_READS);
        assert_keeps(progress, [0.45, 0.25]);
    }
}

/// When the one who is favoured is as late with nobody in its way, that is no reason to leave all others
/// alone: for ten times as long as it was favoured nobody was, and the first had 0.02.
#[test]
fn who_is_late_is_helped_when_another_could_not_be() {
    let thinks = (Mix::Write, 4, 1, 300);
    let progress = Bed::new(Model::Nvme).progress(thinks, (Mix::Write, 128, 32, 0));
    assert_keeps(progress, [0.2, 0.8]);
}
