//! A volume behind a network, which does all in order: what is in there is in everybody's way.
#![allow(clippy::unwrap_used)]

use disktime_core::Weight;
use disktime_model::{Model, Spec};
use disktime_sim::{Charge, Controller, Dirty, Group, Mix, Pattern, Proc, Setup, Silent, Sim};

const SEC: u64 = 1_000_000_000;
/// All fit into the volume.
const REQUESTS: u32 = 256;

/// Weight, sectors, and how many at a time.
type Load = (u32, u32, u32);

/// What each does a second after the first two, of `secs`; each begins `apart_ns` after the one before.
fn run_on(spec: &Spec, loads: &[Load], secs: u64, apart_ns: u64) -> Vec<f64> {
    run_mixed(spec, loads, Mix::Read, secs, apart_ns)
}

/// disktime on that disk; groups by their weights.
fn setup(spec: &Spec, weights: impl Iterator<Item = u32>, procs: Vec<Proc>) -> Setup {
    Setup {
        disk: spec.make().unwrap(),
        controller: Controller::Disktime {
            slice: None,
            idle: None,
            depth: None,
            order: None,
            strict: false,
            charge: Charge::Own,
        },
        nr_requests: Some(REQUESTS),
        groups: weights
            .map(|weight| Group {
                weight: Weight::new(weight).unwrap(),
                ..Group::default()
            })
            .collect(),
        procs,
        dirty: Dirty::default(),
        wake_ns: 5_000,
        seed: spec.seed.max(1),
        checked: true,
    }
}

/// A process of a group of its own, in a region of its own.
fn random(n: usize, mix: Mix, (_, sectors, depth): Load) -> Proc {
    Proc {
        pattern: Pattern::Random,
        mix,
        sectors,
        depth,
        ..Proc::new(n, (n as u64) << 22, (n as u64 + 1) << 22)
    }
}

/// The same where all but the first do `rest`.
fn run_mixed(spec: &Spec, loads: &[Load], rest: Mix, secs: u64, apart_ns: u64) -> Vec<f64> {
    let mixes: Vec<Mix> = (0..loads.len())
        .map(|n| if n > 0 { rest } else { Mix::Read })
        .collect();
    run_each(spec, loads, &mixes, [2, 2 + secs], apart_ns)
}

/// What each does a second between two seconds.
fn run_each(
    spec: &Spec,
    loads: &[Load],
    mixes: &[Mix],
    [from, to]: [u64; 2],
    apart_ns: u64,
) -> Vec<f64> {
    let procs = loads.iter().zip(mixes).enumerate();
    let procs = procs.map(|(n, (&load, &mix))| random(n, mix, load));
    let setup = setup(
        spec,
        loads.iter().map(|&(weight, ..)| weight),
        procs.collect(),
    );
    let mut sim = Sim::new(setup, Silent).unwrap();
    for n in 0..loads.len() {
        sim.start(n);
        sim.run((n as u64 + 1) * apart_ns).unwrap();
    }
    let ios = |sim: &Sim| -> Vec<u64> {
        (0..loads.len())
            .map(|n| sim.tally(n).ios.iter().sum())
            .collect()
    };
    sim.run(from * SEC).unwrap();
    let before = ios(&sim);
    sim.run(to * SEC).unwrap();
    let after = ios(&sim);
    let rates = (0..loads.len()).map(|n| (after[n] - before[n]) as f64 / (to - from) as f64);
    let rates = rates.collect();
    println!("{loads:?}: {rates:.0?} a second");
    rates
}

fn run_apart(loads: &[Load], secs: u64, apart_ns: u64) -> Vec<f64> {
    run_on(&Spec::new(Model::Gp3), loads, secs, apart_ns)
}

fn run(loads: &[Load], secs: u64) -> Vec<f64> {
    run_apart(loads, secs, 0)
}

/// Of what fits into the volume as much waits here as weights need. Who comes later was never alone, and
/// has not seen how quick its requests can be.
#[test]
fn weights_hold_though_all_would_fit_into_the_volume() {
    for apart_ms in [0, 1, 10, 30, 100, 300] {
        let rates = run_apart(&[(300, 8, 64), (100, 8, 64)], 8, apart_ms * 1_000_000);
        let all = rates[0] + rates[1];
        let share = rates[0] / all;
        assert!((share - 0.75).abs() < 0.01, "{apart_ms} ms: {rates:?}");
        // The volume's 3000.
        assert!(all > 2970.0, "{apart_ms} ms: {rates:?}");
    }
}

#[test]
fn a_small_reader_does_not_wait_for_a_quarter_of_a_second_of_large_ones() {
    let small = (500, 8, 2);
    let large = (100, 2048, 32);
    let alone = run(&[small], 8)[0];
    let both = run(&[small, large], 8);
    assert!(both[0] > 0.25 * alone, "{both:?}, alone {alone}");
    // Nor is the other kept from what it is due, a sixth of 125 a second.
    assert!(both[1] > 20.0, "{both:?}");
}

/// Two that begin at once, so that nobody has ever seen how quick a large one can be.
#[test]
fn unlike_requests_that_begin_at_once_have_their_shares() {
    for weights in [(300, 100), (100, 100), (100, 300)] {
        let rates = run(&[(weights.0, 8, 32), (weights.1, 256, 32)], 8);
        // Of 3000 a second, or of 125 MiB.
        let parts = [rates[0] / 3000.0, rates[1] / 1000.0];
        let all = parts[0] + parts[1];
        let due = f64::from(weights.0) / f64::from(weights.0 + weights.1);
        assert!(
            (parts[0] / all - due).abs() < 0.03,
            "{weights:?}: {parts:?}"
        );
        assert!(all > 0.97, "{weights:?}: {parts:?}");
    }
}

/// One read at a time stands behind all that others have in there, and has turns. Who comes next pays for
/// what a throttle lets through, which is not to be on its account.
#[test]
fn one_read_at_a_time_has_its_share_beside_large_ones() {
    let alone = run(&[(100, 8, 1)], 8)[0];
    for (sectors, depth) in [(2048, 4), (2048, 32), (128, 64), (32, 64)] {
        // It takes some of these seconds until there are turns.
        let both = run(&[(100, 8, 1), (100, sectors, depth)], 8);
        let part = both[0] / alone;
        assert!(part > 0.42, "{sectors} by {depth}: {part} of {alone}");
        let other = both[1] * (f64::from(sectors) / 2048.0 / 125.0).max(1.0 / 3000.0);
        assert!(other > 0.42, "{sectors} by {depth}: {other}");
    }
}

/// Whoever is held to be late, and whatever he could use, nobody is without any for long.
#[test]
fn nobody_starves_beside_large_writes() {
    let gp3 = Spec::new(Model::Gp3);
    for (sectors, depth) in [(8, 1), (8, 8), (32, 8), (128, 4)] {
        let alone = run(&[(100, sectors, depth)], 8)[0];
        for large in [(100, 2048, 16), (100, 2048, 32), (100, 512, 64)] {
            let both = run_mixed(&gp3, &[(100, sectors, depth), large], Mix::Write, 12, 0);
            let part = both[0] / alone;
            assert!(part > 0.15, "{sectors} by {depth} beside {large:?}: {part}");
        }
    }
}

/// A part of the volume's second: of its 3000 I/Os, or of its 125 MiB.
fn part((_, sectors, _): Load, rate: f64) -> f64 {
    rate * (f64::from(sectors) / 2048.0 / 125.0).max(1.0 / 3000.0)
}

/// Readers and writers by turns are for drives that serve side by side. A volume has turns of groups, whatever they
/// do, and however small those requests are that none of a few was alone in there.
#[test]
fn who_reads_and_who_writes_have_their_parts_of_a_volume() {
    const R: Mix = Mix::Read;
    const W: Mix = Mix::Write;
    let gp3 = Spec::new(Model::Gp3);
    for (mixes, loads) in [
        ([W, R, R], [(100, 8, 32), (100, 1024, 64), (100, 1024, 8)]),
        (
            [W, R, R],
            [(100, 128, 128), (100, 256, 64), (100, 512, 128)],
        ),
        ([W, W, R], [(100, 8, 8), (100, 32, 128), (100, 32, 32)]),
        ([R, W, W], [(100, 256, 8), (100, 8, 128), (100, 8, 32)]),
        ([R, R, W], [(200, 2048, 64), (100, 1024, 64), (100, 8, 32)]),
    ] {
        let rates = run_each(&gp3, &loads, &mixes, [10, 30], 20_000_000);
        let parts: Vec<f64> = loads
            .iter()
            .zip(&rates)
            .map(|(&l, &r)| part(l, r))
            .collect();
        let all: f64 = parts.iter().sum();
        let weights: u32 = loads.iter().map(|load| load.0).sum();
        for (part, load) in parts.iter().zip(loads) {
            let due = f64::from(load.0) / f64::from(weights);
            assert!(part / all > 0.8 * due, "{mixes:?} {loads:?}: {parts:?}");
        }
        assert!(all > 0.95, "{mixes:?} {loads:?}: {parts:?}");
    }
}

/// A throttle lets the first of several pass at once, and that is no measure of what all of them take alone: who has 16 of
/// 1 MB is not late if they take an eighth of a second.
#[test]
fn what_passes_a_throttle_at_once_is_no_measure_of_who_is_late() {
    let loads = [(100, 8, 128), (100, 2048, 16)];
    for seed in [1, 2, 49, 50, 51, 52, 53, 54] {
        let gp3 = Spec {
            seed,
            ..Spec::new(Model::Gp3)
        };
        let rates = run_each(&gp3, &loads, &[Mix::Read; 2], [10, 30], 20_000_000);
        let parts = [part(loads[0], rates[0]), part(loads[1], rates[1])];
        assert!(
            parts.iter().all(|&part| part > 0.36),
            "seed {seed}: {parts:.2?}"
        );
    }
}

/// Many side by side need all that they take, and are not asked again and again.
#[test]
fn servers_side_by_side_keep_what_they_do() {
    let servers = Spec::new(Model::Servers {
        servers: 64,
        service_ns: 40_000_000,
        rotational: false,
    });
    let rates = run_on(&servers, &[(100, 8, 16), (100, 8, 64)], 8, 0);
    // 64 in 40 ms.
    assert!(rates[0] + rates[1] > 0.98 * 1600.0, "{rates:?}");
}

/// What is alone has all of it.
#[test]
fn less_in_the_volume_costs_nothing() {
    for (sectors, depth, least) in [(8, 128, 2970.0), (256, 64, 985.0), (2048, 32, 123.0)] {
        let rate = run(&[(100, sectors, depth)], 8)[0];
        assert!(rate > least, "{sectors} sectors by {depth}: {rate}");
    }
}

/// What those who append 4 KB and sync commit in 8 s, each a group of such a weight, beside nobody or
/// `depth` reads of 4 KB of weight 100.
fn commits(weights: &[u32], depth: Option<u32>) -> Vec<f64> {
    let region = 1 << 22;
    let appends = |nr: usize| Proc {
        mix: Mix::Write,
        buffered: true,
        fsync_every: Some(1),
        sectors: 8,
        ..Proc::new(nr, nr as u64 * region, (nr as u64 + 1) * region)
    };
    let who = weights.len();
    let mut procs: Vec<Proc> = (0..who).map(appends).collect();
    procs.extend(depth.map(|depth| Proc {
        pattern: Pattern::Random,
        sectors: 8,
        depth,
        ..Proc::new(who, who as u64 * region, (who as u64 + 1) * region)
    }));
    let nr = procs.len();
    let weights = weights.iter().copied().chain([100]);
    let setup = setup(&Spec::new(Model::Gp3), weights, procs);
    let mut sim = Sim::new(setup, Silent).unwrap();
    (0..nr).for_each(|n| sim.start(n));
    let flushes =
        |sim: &Sim<Silent>| -> Vec<u64> { (0..who).map(|n| sim.tally(n).flushes).collect() };
    sim.run(2 * SEC).unwrap();
    let before = flushes(&sim);
    sim.run(10 * SEC).unwrap();
    assert_eq!(sim.counts().faults, 0);
    flushes(&sim)
        .iter()
        .zip(before)
        .map(|(now, then)| (now - then) as f64)
        .collect()
}

/// Between two of his requests the deep one is alone, and does not ask for little because of that.
#[test]
fn who_commits_beside_a_deep_reader_has_most_of_what_he_has_alone() {
    let alone = commits(&[1000], None)[0];
    for depth in [16, 32, 48, 64, 96, 128] {
        let part = commits(&[1000], Some(depth))[0] / alone;
        println!("beside {depth} reads {part:.3} of {alone} commits");
        assert!(part > 0.8, "beside {depth} reads: {part:.3}");
    }
}

/// A process and its journal are favoured by turns, and at each all of the reads were let in, to see what
/// that is worth.
#[test]
fn two_who_commit_do_not_let_all_in_by_turns() {
    let alone = commits(&[1000, 100], None);
    for depth in [16, 32, 48, 64, 96, 128] {
        let beside = commits(&[1000, 100], Some(depth));
        let part: Vec<f64> = beside
            .iter()
            .zip(&alone)
            .map(|(beside, alone)| beside / alone)
            .collect();
        println!("beside {depth} reads {part:.3?} of {alone:?} commits");
        assert!(part[0] > 0.8, "beside {depth} reads: {part:.3?}");
    }
}

/// Two that read and are unlike beside one who writes.
#[test]
fn unlike_readers_beside_a_writer_have_their_parts() {
    let loads = [
        (Mix::Read, (100, 256, 32)),
        (Mix::Write, (100, 32, 128)),
        (Mix::Read, (100, 8, 16)),
    ];
    let procs = loads.iter().enumerate();
    let procs = procs
        .map(|(n, &(mix, load))| random(n, mix, load))
        .collect();
    let mut sim = Sim::new(
        setup(&Spec::new(Model::Gp3), [100; 3].into_iter(), procs),
        Silent,
    )
    .unwrap();
    for n in 0..3 {
        sim.start(n);
    }
    sim.run(4 * SEC).unwrap();
    // Of 3000 I/Os and 125 MB a second: 953 of the first, and 3000 of the others.
    let done = [0, 1, 2].map(|n| sim.tally(n).ios.iter().sum::<u64>() / 4);
    println!("{done:?} a second");
    assert!(done[0] > 200 && done[1] > 600 && done[2] > 600, "{done:?}");
}
