//! The core on disks that seek, cache and queue, judged by the time that requests truly take.
#![allow(clippy::unwrap_used)]

use disktime_core::Weight;
use disktime_model::Disk;
use disktime_model::hdd::{Hdd, Params};
use disktime_model::servers::{Inside, Params as ServerParams, Servers, Service};
use disktime_model::ssd::{self, Ssd};
use disktime_sim::{Charge, Controller, Dirty, Group, Mix, Pattern, Proc, Setup, Silent, Sim};

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

fn given() -> Controller {
    Controller::Disktime {
        slice: None,
        idle: None,
        depth: None,
        order: None,
        strict: false,
        charge: Charge::True,
    }
}

/// Readers and writers behind a write cache, which says that a write is done long before it is.
fn behind_a_cache(controller: Controller) -> Setup {
    let own = Params::st3250620as();
    let params = Params {
        write_cache: 128,
        high_water: 64,
        ..own
    };
    Setup {
        controller,
        ..uchida(params, [Mix::Write, Mix::Read, Mix::Read], 1)
    }
}

#[test]
fn true_charges_are_the_model_s_time_to_the_nanosecond() {
    let flash = Setup {
        disk: Box::new(Ssd::new(ssd::Params::sata()).unwrap()),
        nr_requests: None,
        ..behind_a_cache(given())
    };
    let slow = ServerParams {
        sectors: 1 << 21,
        servers: 3,
        slots: 8,
        service: Service {
            base_ns: 1_000_001,
            sector_ns: 1_000,
            write_percent: 150,
            spread_percent: 50,
        },
        inside: Inside::Random,
        rotational: false,
        seed: 3,
    };
    let mut servers = Setup {
        disk: Box::new(Servers::new(slow).unwrap()),
        nr_requests: None,
        ..behind_a_cache(given())
    };
    for proc in &mut servers.procs {
        proc.to = 1 << 21;
    }
    for (mut setup, parallelism) in [(behind_a_cache(given()), 1), (flash, 16), (servers, 3)] {
        setup.checked = true;
        assert_eq!(setup.disk.parallelism(), parallelism);
        let mut sim = Sim::new(setup, Silent).unwrap();
        for proc in 0..75 {
            sim.start(proc);
        }
        for look in 1..10 {
            sim.run(look * SEC / 9).unwrap();
            for group in 0..3 {
                let charged = sim.stats(group).unwrap().total_time().0;
                let truth = sim.tally(group).true_ns;
                assert!(truth > 0 || look < 9);
                assert_eq!(charged, truth / u64::from(parallelism));
            }
        }
    }
}

#[test]
fn with_true_charges_a_write_cache_changes_no_shares() {
    let off = |controller| {
        let (shares, _) = run(behind_a_cache(controller));
        let want = [8.0 / 13.0, 4.0 / 13.0, 1.0 / 13.0];
        let far = shares
            .iter()
            .zip(want)
            .map(|(got, want)| (got - want).abs());
        far.fold(0.0, f64::max)
    };
    let (own, told) = (off(Controller::DISKTIME), off(given()));
    assert!(told < 0.02, "{told}");
    assert!(told < own, "{told} {own}");
}
