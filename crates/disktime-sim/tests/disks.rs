//! The core on disks that seek, cache and queue, judged by the time that requests truly take.
#![allow(clippy::unwrap_used)]

use disktime_core::Weight;
use disktime_model::Disk;
use disktime_model::hdd::{Hdd, Params};
use disktime_sim::{Controller, Dirty, Group, Mix, Pattern, Proc, Setup, Silent, Sim};

const SEC: u64 = 1_000_000_000;

/// 25 processes of a mix for each group of weights 8:4:1, all over the disk, as in the first
/// experiments with groups in CFQ (Uchida 2008).
fn uchida(params: Params, mixes: [Mix; 3], seed: u64) -> Setup {
    let disk = Hdd::new(params).unwrap();
    let sectors = disk.sectors();
    Setup {
        disk: Box::new(disk),
        controller: Controller::DISKTIME,
        // More than all processes together, so that tags decide nothing.
        nr_requests: Some(128),
        groups: [800, 400, 100]
            .iter()
            .map(|&weight| Group {
                weight: Weight::new(weight).unwrap(),
                ..Group::default()
            })
            .collect(),
        procs: (0..75)
            .map(|n| Proc {
                pattern: Pattern::Random,
                mix: mixes[n / 25],
                ..Proc::new(n / 25, 0, sectors)
            })
            .collect(),
        dirty: Dirty::default(),
        wake_ns: 5_000,
        seed,
        checked: false,
    }
}

/// Shares of the head's time in two minutes, and I/Os of all.
fn run(setup: Setup) -> ([f64; 3], u64) {
    let mut sim = Sim::new(setup, Silent).unwrap();
    for proc in 0..75 {
        sim.start(proc);
    }
    sim.run(5 * SEC).unwrap();
    let before = [0, 1, 2].map(|group| sim.tally(group));
    sim.run(125 * SEC).unwrap();
    let after = [0, 1, 2].map(|group| sim.tally(group));
    let had = [0, 1, 2].map(|g| (after[g].true_ns - before[g].true_ns) as f64);
    let all: f64 = had.iter().sum();
    let ios = |tally: &disktime_sim::Tally| tally.ios.iter().sum::<u64>();
    let done = after.iter().map(ios).sum::<u64>() - before.iter().map(ios).sum::<u64>();
    (had.map(|had| had / all), done)
}

#[test]
fn alike_processes_of_a_disk_without_a_write_cache_get_their_shares_of_its_time() {
    use Mix::{Both, Read, Write};
    for mixes in [[Read; 3], [Write; 3], [Both; 3]] {
        let (shares, ios) = run(uchida(Params::st3250620as(), mixes, 1));
        let want = [8.0 / 13.0, 4.0 / 13.0, 1.0 / 13.0];
        for (got, want) in shares.iter().zip(want) {
            assert!((got - want).abs() < 0.01, "{mixes:?}: {shares:?}, {ios}");
        }
    }
}
