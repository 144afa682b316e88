//! The page cache: writers that are held back, flushers, readers that read ahead.
#![allow(clippy::unwrap_used)]

use disktime_core::{Dir, Nanos, Weight};
use disktime_model::{Disk, Model, Spec};
use disktime_sim::{
    Charge, Controller, Dirty, Group, Invalid, Mix, Observer, Op, Pattern, Proc, Setup, Silent, Sim,
};

const MS: u64 = 1_000_000;
const SEC: u64 = 1_000 * MS;
const MIB: u64 = 1 << 20;
/// Sectors of one.
const SECTORS: u64 = MIB / 512;
/// What a writer writes before it looks at the limits.
const CHUNK: u64 = MIB / 8;

fn hdd() -> Box<dyn Disk> {
    Spec::new(Model::St3250620as).make().unwrap()
}

fn limits(background_mib: u64, limit_mib: u64) -> Dirty {
    Dirty {
        background: background_mib * MIB,
        limit: limit_mib * MIB,
    }
}

fn group(weight: u32, dirty: Option<Dirty>) -> Group {
    Group {
        weight: Weight::new(weight).unwrap(),
        dirty,
        ..Group::default()
    }
}

/// A sequential writer in `mib` MiB from `at_mib` on.
fn writer(group: usize, at_mib: u64, mib: u64) -> Proc {
    Proc {
        mix: Mix::Write,
        buffered: true,
        ..Proc::new(group, at_mib * SECTORS, (at_mib + mib) * SECTORS)
    }
}

/// One that reads `mib` MiB once.
fn reader(group: usize, at_mib: u64, mib: u64) -> Proc {
    Proc {
        buffered: true,
        limit: Some(mib * SECTORS),
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

/// Seconds until the process has finished.
fn finish<O: Observer>(sim: &mut Sim<O>, proc: usize, within: u64) -> f64 {
    let begin = sim.now();
    while sim.finished_at(proc).is_none() && sim.now() < begin + within {
        sim.run(sim.now() + 10 * MS).unwrap();
    }
    let end = sim.finished_at(proc).unwrap_or(u64::MAX);
    (end - begin) as f64 / 1e9
}

/// Keeps everything, as a tracer would.
#[derive(Default)]
struct Tape(Vec<(bool, u64, Op)>);

impl Observer for Tape {
    fn issued(&mut self, op: &Op, at: u64) {
        self.0.push((false, at, *op));
    }
    fn completed(&mut self, op: &Op, at: u64) {
        self.0.push((true, at, *op));
    }
}

/// Two groups of weights 2:1 with 50 writers each and limits of their own, whose files alternate on
/// the disk: so all see the same rates.
fn hundred() -> Setup {
    let groups = [1000, 500].map(|weight| group(weight, Some(limits(100, 200))));
    let procs = (0..100).map(|n| writer(n % 2, n as u64 * 2000, 2000));
    setup(groups.into(), procs.collect())
}

#[test]
fn groups_of_writers_get_their_shares_while_both_flushers_are_backlogged() {
    let mut sim = start(hundred(), Silent);
    sim.run(30 * SEC).unwrap();
    let time = |sim: &Sim| [0, 1].map(|g| sim.stats(g).unwrap().total_time().0);
    let before = time(&sim);
    for ms in 0..60_000 {
        sim.run(30 * SEC + ms * MS).unwrap();
        assert!(sim.backlogged(0).unwrap() && sim.backlogged(1).unwrap());
    }
    let after = time(&sim);
    let had = [0, 1].map(|g| (after[g] - before[g]) as f64);
    let ratio = had[0] / had[1];
    assert!((ratio - 2.0).abs() < 0.1, "{ratio}");
}

/// Writers of all kinds in groups with limits and without.
fn medley(seed: u64) -> Setup {
    let pick = |n: u64| seed >> n & 1 == 1;
    let groups = vec![
        group(100, Some(limits(20, 40))),
        Group {
            parent: Some(0),
            ..group(300, None)
        },
        group(200, None),
        group(50, pick(0).then_some(limits(10, 30))),
    ];
    let procs = (0..12).map(|n| {
        let proc = writer(n % 4, n as u64 * 5000, 5000);
        Proc {
            sectors: [8, 2048, 200][n / 4],
            fsync_every: (n == 5 && pick(1)).then_some(10),
            rate_iops: (n == 6).then_some(30),
            limit: (n == 7).then_some(10 * SECTORS),
            sync_at_end: pick(2),
            start_ns: n as u64 * 100 * MS,
            ..proc
        }
    });
    Setup {
        controller: if pick(3) {
            Controller::Fifo
        } else {
            Controller::DISKTIME
        },
        seed,
        ..setup(groups, procs.collect())
    }
}

#[test]
fn what_was_written_is_dirty_or_on_the_disk_and_never_is_there_more_than_the_limit() {
    for seed in 0..16 {
        let setup = medley(seed);
        let own = setup.groups[3].dirty;
        let mut sim = start(setup, Silent);
        for step in 1..=400 {
            sim.run(step * 50 * MS).unwrap();
            let sum = |of: &dyn Fn(usize) -> u64, those: &[usize]| -> u64 {
                those.iter().map(|&n| of(n)).sum()
            };
            let on_disk = |sim: &Sim, g: usize| sim.tally(g).sectors[1] * 512;
            // Processes of the groups 0 and 1 share limits, as do those of groups without.
            let moved = sum(&|p| sim.moved(p), &[0, 1, 4, 5, 8, 9]);
            let written = on_disk(&sim, 0) + on_disk(&sim, 1);
            assert_eq!(moved, sim.dirty(0) + written, "seed {seed}");
            assert_eq!(sim.dirty(0), sim.dirty(1));
            assert!(sim.dirty(0) <= 40 * MIB + 6 * CHUNK, "seed {seed}");

            let (mut procs, mut groups) = (vec![2, 6, 10], vec![2]);
            if own.is_none() {
                procs.extend([3, 7, 11]);
                groups.push(3);
            } else {
                assert!(sim.dirty(3) <= 30 * MIB + 3 * CHUNK, "seed {seed}");
            }
            let moved = sum(&|p| sim.moved(p), &procs);
            let root = sim.root_tally().sectors[1] * 512;
            let written = root + sum(&|g| on_disk(&sim, g), &groups);
            assert_eq!(moved, sim.dirty(2) + written, "seed {seed}");
            assert!(sim.dirty(2) <= 80 * MIB + procs.len() as u64 * CHUNK);
        }
        assert!(sim.dirty(0) > 25 * MIB, "it is not much of a test");
    }
}

#[test]
fn invariants_of_the_core_hold_with_flushers_and_flushes() {
    for seed in [0, 2, 5, 7] {
        let mut setup = medley(seed);
        setup.checked = true;
        setup.disk = Spec {
            write_cache: 32,
            ..Spec::new(Model::St3250620as)
        }
        .make()
        .unwrap();
        setup.nr_requests = (seed == 5).then_some(3);
        setup.procs.push(reader(2, 100_000, 64));
        setup.procs.push(Proc {
            pattern: Pattern::Random,
            mix: Mix::Both,
            depth: 4,
            fsync_every: Some(7),
            ..Proc::new(3, 200 * SECTORS, 400 * SECTORS)
        });
        setup.procs.push(Proc {
            mix: Mix::Both,
            sync_at_end: true,
            limit: Some(8 * 8),
            ..writer(0, 110_000, 64)
        });
        let mixed = setup.procs.len() - 1;
        let mut sim = start(setup, Silent);
        sim.run(10 * SEC).unwrap();
        assert!(sim.finished(mixed));
        let counts = sim.counts();
        assert_eq!((counts.empty, counts.faults, counts.clamped), (0, 0, 0));
        assert!(sim.tally(3).flushes > 0);
    }
}

#[test]
fn same_seed_is_the_same_run_to_the_byte() {
    let tape = |seed: u64| {
        let mut setup = medley(2);
        setup.seed = seed;
        for proc in &mut setup.procs[..4] {
            proc.pattern = Pattern::Random;
        }
        let mut sim = start(setup, Tape::default());
        sim.run(10 * SEC).unwrap();
        format!("{:?}", sim.observer.0)
    };
    let one = tape(1);
    assert!(one.len() > 10_000, "{}", one.len());
    assert!(one == tape(1), "two runs differ");
    assert!(one != tape(2), "the seed makes no difference");
}

#[test]
fn what_groups_without_limits_write_back_is_the_roots() {
    let both = |dirty| {
        let procs = vec![writer(0, 0, 4000), writer(1, 8000, 4000)];
        let mut sim = start(setup(vec![group(100, dirty); 2], procs), Silent);
        sim.run(5 * SEC).unwrap();
        let had = [0, 1].map(|g| sim.tally(g).sectors[1]);
        let core = sim.root_stats().unwrap().sectors[1];
        (had, sim.root_tally().sectors[1], core)
    };
    let (had, root, core) = both(None);
    assert_eq!(had, [0, 0]);
    assert!(root > 100 * SECTORS && core == root, "{root} {core}");
    let (had, root, core) = both(Some(limits(20, 40)));
    assert!(had.iter().all(|&had| had > 50 * SECTORS), "{had:?}");
    assert_eq!((root, core), (0, 0));
}

#[test]
fn a_write_returns_at_once_and_old_pages_are_written_by_and_by() {
    let mut proc = writer(0, 0, 32);
    proc.limit = Some(32 * SECTORS);
    let mut sim = start(setup(vec![group(100, None)], vec![proc]), Silent);
    sim.run(SEC).unwrap();
    // 1 us for 4 KiB.
    assert_eq!(sim.finished_at(0), Some(32 * 256 * 1_000));
    assert_eq!(sim.outstanding(0), 0);
    sim.run(30 * SEC - MS).unwrap();
    assert_eq!((sim.dirty(0), sim.root_tally().ios[1]), (32 * MIB, 0));
    sim.run(37 * SEC).unwrap();
    assert_eq!((sim.dirty(0), sim.root_tally().ios[1]), (0, 32));
}

#[test]
fn a_sync_at_the_end_is_waited_for_and_is_the_processs_own() {
    let proc = Proc {
        limit: Some(32 * SECTORS),
        sync_at_end: true,
        ..writer(0, 0, 32)
    };
    let mut sim = start(setup(vec![group(100, None)], vec![proc]), Tape::default());
    let took = finish(&mut sim, 0, 10 * SEC);
    let rate = 32.0 * MIB as f64 / took;
    assert!((60e6..78e6).contains(&rate), "{rate}");
    let tally = sim.tally(0);
    assert_eq!((tally.sectors[1], tally.flushes), (32 * SECTORS, 1));
    assert_eq!((sim.dirty(0), sim.moved(0)), (0, 32 * MIB));
    assert!(sim.observer.0.iter().all(|(_, _, op)| op.sync));
}

#[test]
fn writers_of_a_group_are_held_to_equal_parts_between_ceiling_and_limit() {
    // Few, which sleep briefly, and so many that no sleep may be as long as they would need.
    // The more there are, the more is written at once, and the coarser it is.
    for (writers, background, within) in [(5, 40, 0.03), (200, 400, 0.08)] {
        let mut procs: Vec<Proc> = (0..writers).map(|n| writer(0, n * 1000, 1000)).collect();
        procs[0].sectors = 2048;
        let dirty = limits(background, 2 * background);
        let own = vec![group(100, Some(dirty))];
        let mut sim = start(setup(own, procs), Silent);
        let all = 0..writers as usize;
        sim.run(20 * SEC).unwrap();
        let before: Vec<u64> = all.clone().map(|n| sim.moved(n)).collect();
        let mut sum = 0;
        for step in 0..200 {
            sim.run(20 * SEC + step * 100 * MS).unwrap();
            let held = sim.dirty(0) as f64 / dirty.limit as f64;
            assert!((0.69..1.0).contains(&held), "{held}");
            sum += sim.dirty(0);
        }
        // The ceiling is at three quarters, and the setpoint in the middle above it.
        let mean = sum as f64 / 200.0 / dirty.limit as f64;
        assert!((mean - 0.875).abs() < within, "{writers}: {mean}");
        let moved: Vec<f64> = all.map(|n| (sim.moved(n) - before[n]) as f64).collect();
        let mean = moved.iter().sum::<f64>() / moved.len() as f64;
        for one in &moved {
            assert!(
                (one / mean - 1.0).abs() < 3.0 * within,
                "{writers}: {one} of {mean}"
            );
        }
        // A disk that streams 78 MB/s outside, less seeks between the files.
        let rate = mean * moved.len() as f64 / 20.0;
        assert!((40e6..78e6).contains(&rate), "{rate}");
    }
}

#[test]
fn a_reader_reads_two_windows_ahead_and_a_random_one_what_it_asks_for() {
    let mut sim = start(
        setup(vec![group(100, None)], vec![reader(0, 0, 256)]),
        Tape::default(),
    );
    let took = finish(&mut sim, 0, 60 * SEC);
    assert!((268e6 / 78e6..268e6 / 70e6).contains(&took), "{took}");
    let (mut next, mut inflight, mut most) = (0, 0, 0);
    for (done, _, op) in &sim.observer.0 {
        if *done {
            inflight -= 1;
            continue;
        }
        inflight += 1;
        most = most.max(inflight);
        assert_eq!((op.sector, op.sectors, op.dir), (next, 256, Dir::Read));
        next += 256;
    }
    assert_eq!((next, inflight, most), (256 * SECTORS, 0, 2));

    let short = Proc {
        limit: Some(8000),
        ..reader(0, 0, 256)
    };
    let mut sim = start(setup(vec![group(100, None)], vec![short]), Silent);
    finish(&mut sim, 0, 60 * SEC);
    sim.run(sim.now() + SEC).unwrap();
    assert_eq!(sim.tally(0).sectors[0], 8000, "as much as it reads");

    let random = Proc {
        pattern: Pattern::Random,
        ..reader(0, 0, 1)
    };
    let mut sim = start(setup(vec![group(100, None)], vec![random]), Tape::default());
    finish(&mut sim, 0, 60 * SEC);
    let sizes = sim.observer.0.iter().map(|(_, _, op)| op.sectors);
    assert_eq!(sizes.filter(|&sectors| sectors == 8).count(), 2 * 256);
}

/// Seconds that a reader of 256 MiB takes beside a writer that has filled its part of the cache.
fn reader_beside_writer(controller: Controller, nr_requests: Option<u32>) -> f64 {
    let procs = vec![reader(0, 0, 256), writer(1, 100_000, 100_000)];
    let mut sim = Sim::new(
        Setup {
            controller,
            nr_requests,
            ..setup(vec![group(100, Some(limits(100, 200))); 2], procs)
        },
        Silent,
    )
    .unwrap();
    sim.start(1);
    sim.run(10 * SEC).unwrap();
    sim.start(0);
    finish(&mut sim, 0, 100 * SEC)
}

fn with_depth(depth: u32) -> Controller {
    Controller::Disktime {
        slice: None,
        idle: None,
        depth: Some(depth),
        order: None,
        strict: false,
        charge: Charge::Own,
    }
}

/// What the reader takes alone: 3.45 s. Half of the disk's time is 6.9.
const ALONE: f64 = 3.45;

#[test]
fn a_writer_starves_a_reader_only_without_a_scheduler() {
    let fifo = reader_beside_writer(Controller::Fifo, None);
    assert!(fifo > 20.0 * ALONE, "{fifo}");
    // With few requests in the disk the order is the scheduler's.
    let one = reader_beside_writer(with_depth(1), None);
    assert!(one < 2.5 * ALONE, "{one}");
    // As many tags as the flusher can use: it does not wait for any.
    let four = reader_beside_writer(with_depth(4), Some(256));
    assert!(four < 3.5 * ALONE, "{four}");
}

#[test]
fn a_reader_gets_its_half_beside_a_writer_with_all_defaults() {
    let took = reader_beside_writer(Controller::DISKTIME, None);
    assert!(took < 2.5 * ALONE, "{took}");
}

/// Part of the disk's time, from the twentieth second on, of processes that read 4 KB of 64 MiB at random,
/// beside one that writes behind, equal weights. They begin within a tenth of a second of it.
fn random_readers(readers: u64, write_cache: u32, write: Pattern, seed: u64) -> f64 {
    let random = |at: u64| Proc {
        pattern: Pattern::Random,
        start_ns: seed * 37 % 100 * MS,
        limit: None,
        ..reader(0, at * 64, 64)
    };
    let behind = Proc {
        pattern: write,
        sectors: 128,
        start_ns: seed * 61 % 100 * MS,
        ..writer(1, 10_000, 6 * 1024)
    };
    let mut procs: Vec<Proc> = (0..readers).map(random).collect();
    procs.push(behind);
    let spec = Spec {
        write_cache,
        ..Spec::new(Model::St3250620as)
    };
    let mut sim = start(
        Setup {
            disk: spec.make().unwrap(),
            nr_requests: Some(256),
            seed,
            ..setup(vec![group(100, Some(limits(25, 50))); 2], procs)
        },
        Silent,
    );
    sim.run(20 * SEC).unwrap();
    let before = [0, 1].map(|group| sim.tally(group).true_ns);
    sim.run(60 * SEC).unwrap();
    let had = [0, 1].map(|group| (sim.tally(group).true_ns - before[group]) as f64);
    had[0] / (had[0] + had[1])
}

#[test]
fn what_a_cache_writes_in_one_go_is_its_writers_time() {
    for (readers, write_cache) in [(1, 16), (1, 128), (1, 256), (2, 64), (8, 128)] {
        for seed in 1..=6 {
            let part = random_readers(readers, write_cache, Pattern::Sequential, seed);
            println!("{readers} beside {write_cache}, seed {seed}: {part:.4}");
            assert!(
                (part - 0.5).abs() < 0.03,
                "{readers}, {write_cache}, {seed}"
            );
        }
    }
}

#[test]
fn a_writer_does_not_take_the_last_request_while_a_reader_wakes_up() {
    for seed in 1..=3 {
        let part = random_readers(1, 256, Pattern::Random, seed);
        assert!((part - 0.5).abs() < 0.05, "seed {seed}: {part:.4}");
    }
}

#[test]
fn limits_that_cannot_be_are_refused() {
    let refused = |own, machine| {
        let mut setup = setup(vec![group(100, own)], vec![]);
        setup.dirty = machine;
        matches!(Sim::new(setup, Silent).err(), Some(Invalid::Dirty))
    };
    assert!(!refused(None, limits(1, 2)));
    assert!(refused(None, limits(2, 2)));
    assert!(refused(Some(limits(0, 0)), limits(1, 2)));
}

#[test]
fn a_process_that_is_stopped_returns_from_its_call() {
    let mut sim = start(
        setup(vec![group(100, None)], vec![writer(0, 0, 4000)]),
        Silent,
    );
    sim.run(5 * SEC).unwrap();
    sim.stop(0);
    sim.run(6 * SEC).unwrap();
    let moved = sim.moved(0);
    assert_eq!(sim.outstanding(0), 0);
    sim.run(9 * SEC).unwrap();
    assert_eq!(sim.moved(0), moved);
    assert!(sim.dirty(0) <= 40 * MIB, "the flusher goes on");
    assert!(sim.stats(0).unwrap().total_time() == Nanos(0));
}

/// Flushes and sectors written in ten seconds by who commits 4 KB at a time and who writes as fast as
/// he can, on flash with a cache that is lost with the power.
fn committer_beside_writer(weights: [u32; 2], alone: Option<usize>, seed: u64) -> [f64; 2] {
    let commits = Proc {
        mix: Mix::Write,
        buffered: true,
        fsync_every: Some(1),
        sectors: 8,
        ..Proc::new(0, 0, 4000 * SECTORS)
    };
    let groups = weights.map(|weight| group(weight, Some(limits(32, 64))));
    let mut setup = setup(groups.to_vec(), vec![commits, writer(1, 8000, 400_000)]);
    setup.disk = Spec::new(Model::SataSsd).make().unwrap();
    setup.nr_requests = Some(256);
    setup.seed = seed;
    setup.checked = seed == 1;
    let mut sim = Sim::new(setup, Silent).unwrap();
    for proc in 0..2 {
        if alone.is_none_or(|one| one == proc) {
            sim.start(proc);
        }
    }
    sim.run(2 * SEC).unwrap();
    let had = |sim: &Sim<Silent>| {
        let sectors = sim.tally(1).sectors[1];
        [sim.tally(0).flushes as f64, sectors as f64]
    };
    let before = had(&sim);
    sim.run(12 * SEC).unwrap();
    assert_eq!(sim.counts().faults, 0);
    let after = had(&sim);
    [after[0] - before[0], after[1] - before[1]]
}

#[test]
fn who_commits_and_who_writes_behind_each_have_their_part_of_a_flash_drive() {
    let alone = [0, 1].map(|n| committer_beside_writer([100; 2], Some(n), 1)[n]);
    for weights in [[1000, 100], [300, 100], [100, 100], [100, 300]] {
        let due = [0, 1].map(|n| f64::from(weights[n]) / f64::from(weights[0] + weights[1]));
        for seed in 1..4 {
            let had = committer_beside_writer(weights, None, seed);
            for n in 0..2 {
                let part = had[n] / alone[n];
                assert!(
                    part > 0.8 * due[n],
                    "{weights:?}, seed {seed}: {n} has {part:.3} of what it does alone, {:.3} due",
                    due[n]
                );
            }
        }
    }
}

#[test]
fn a_writer_has_all_of_the_drive_when_nobody_commits_any_more() {
    let commits = Proc {
        mix: Mix::Write,
        buffered: true,
        fsync_every: Some(1),
        sectors: 8,
        limit: Some(8 * 2000),
        ..Proc::new(0, 0, 4000 * SECTORS)
    };
    let groups = [1000, 100].map(|weight| group(weight, Some(limits(32, 64))));
    let mut setup = setup(groups.to_vec(), vec![commits, writer(1, 8000, 400_000)]);
    setup.disk = Spec::new(Model::SataSsd).make().unwrap();
    setup.nr_requests = Some(256);
    let mut sim = start(setup, Silent);
    let begin = sim.now();
    assert!(finish(&mut sim, 0, 10 * SEC) > 0.5);
    let before = sim.tally(1).sectors[1];
    let from = sim.now();
    assert!(from > begin);
    sim.run(from + SEC).unwrap();
    let rate = (sim.tally(1).sectors[1] - before) as f64 * 512.0;
    assert!(rate > 450e6, "{rate}");
}
