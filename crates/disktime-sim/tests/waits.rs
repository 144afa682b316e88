//! How long one process of many waits on a disk with a head, by what its group's share explains.
#![allow(clippy::unwrap_used)]

use disktime_core::Weight;
use disktime_model::{Model, Spec};
use disktime_sim::{Controller, Dirty, Group, Mix, Observer, Op, Pattern, Proc, Setup, Sim, Tally};

const SEC: u64 = 1_000_000_000;
const WEIGHTS: [u32; 3] = [800, 400, 100];
/// Processes of a group.
const PROCS: usize = 25;
/// A group's turn, with three of them.
const TURN: f64 = 0.16;
/// So long the disk keeps a request to itself at most, and somewhat.
const KEPT: f64 = 0.6;

/// By process, the longest time in which nothing of it was done.
struct Gaps {
    from: u64,
    done: Vec<u64>,
    longest: Vec<u64>,
}

impl Gaps {
    fn note(&mut self, proc: usize, at: u64) {
        if at > self.from {
            let since = self.done[proc].max(self.from);
            self.longest[proc] = self.longest[proc].max(at - since);
        }
        self.done[proc] = at;
    }
}

impl Observer for Gaps {
    fn issued(&mut self, _: &Op, _: u64) {}
    fn completed(&mut self, op: &Op, at: u64) {
        self.note(op.proc, at);
    }
}

/// What the processes of each group do.
#[derive(Clone, Copy, Debug)]
enum Does {
    Random(Mix),
    /// 64 KB at a time.
    ReadsOn,
}

/// By group: the longest that a process of it has waited, in seconds, and what a request took.
fn run(disk: Spec, does: [Does; 3], seed: u64, from: u64, until: u64) -> [(f64, f64); 3] {
    let disk = Spec { seed, ..disk }.make().unwrap();
    let size = disk.sectors() / (3 * PROCS) as u64;
    let procs = (0..3 * PROCS).map(|n| {
        let at = (n % PROCS * 3 + n / PROCS) as u64 * size;
        let own = Proc::new(n / PROCS, at, at + size);
        match does[n / PROCS] {
            Does::Random(mix) => Proc {
                pattern: Pattern::Random,
                mix,
                ..own
            },
            Does::ReadsOn => Proc {
                sectors: 128,
                ..own
            },
        }
    });
    let setup = Setup {
        disk,
        controller: Controller::DISKTIME,
        // More than all processes together, so that tags decide nothing.
        nr_requests: Some(128),
        groups: WEIGHTS
            .iter()
            .map(|&weight| Group {
                weight: Weight::new(weight).unwrap(),
                ..Group::default()
            })
            .collect(),
        procs: procs.collect(),
        dirty: Dirty::default(),
        wake_ns: 5_000,
        seed,
        checked: false,
    };
    let gaps = Gaps {
        from,
        done: vec![0; 3 * PROCS],
        longest: vec![0; 3 * PROCS],
    };
    let mut sim = Sim::new(setup, gaps).unwrap();
    for proc in 0..3 * PROCS {
        sim.start(proc);
    }
    sim.run(until).unwrap();
    for proc in 0..3 * PROCS {
        sim.observer.note(proc, until);
    }
    let took = |tally: Tally| tally.true_ns as f64 / tally.ios.iter().sum::<u64>() as f64 / 1e9;
    [0, 1, 2].map(|g| {
        let own = &sim.observer.longest[g * PROCS..(g + 1) * PROCS];
        let longest = *own.iter().max().unwrap() as f64 / 1e9;
        (longest, took(sim.tally(g)))
    })
}

fn share(group: usize) -> f64 {
    f64::from(WEIGHTS[group]) / f64::from(WEIGHTS.iter().sum::<u32>())
}

#[test]
fn who_reads_at_random_waits_for_no_more_than_three_requests_of_each_other() {
    use Does::Random;
    use Mix::{Both, Read, Write};
    for mixes in [
        [Read; 3],
        [Read, Read, Write],
        [Read, Write, Read],
        [Write, Read, Read],
        [Both; 3],
    ] {
        for seed in 1..=3 {
            let disk = Spec::new(Model::Wd2500js);
            let had = run(disk, mixes.map(Random), seed, 3 * SEC, 100 * SEC);
            for (group, (longest, took)) in had.into_iter().enumerate() {
                let most = 3.0 * PROCS as f64 * took / share(group);
                assert!(
                    longest <= most,
                    "{mixes:?}, seed {seed}, group {group}: {longest:.2} s where {most:.2} is most"
                );
            }
        }
    }
}

#[test]
fn who_reads_on_waits_for_one_turn_of_each_other_in_its_group() {
    use Does::{Random, ReadsOn};
    let random = Random(Mix::Read);
    for model in [Model::Wd2500js, Model::St3250620as] {
        for does in [[ReadsOn; 3], [random, random, ReadsOn]] {
            for seed in 1..=3 {
                let had = run(Spec::new(model), does, seed, 0, 170 * SEC);
                for (group, (longest, _)) in had.into_iter().enumerate() {
                    if matches!(does[group], ReadsOn) {
                        let most = 1.25 * PROCS as f64 * TURN / share(group);
                        assert!(
                            longest <= most,
                            "{model}, {does:?}, seed {seed}, group {group}: {longest:.1} s where \
                             {most:.1} is most"
                        );
                    }
                }
            }
        }
    }
}

/// Behind a cache a request may take half a second because of others' writes. Charged with that among
/// its group's processes, one in the last group waited for 10 to 90 s.
#[test]
fn who_has_met_the_emptying_of_a_write_cache_does_not_wait_for_it_again() {
    use Does::Random;
    use Mix::{Both, Read, Write};
    for (model, write_cache, mixes) in [
        (Model::Wd2500js, 128, [Both; 3]),
        (Model::St3250620as, 32, [Read, Write, Read]),
        (Model::St3250620as, 32, [Write, Read, Read]),
        (Model::St3250620as, 128, [Read, Read, Write]),
        (Model::St3250620as, 128, [Read, Write, Read]),
        (Model::St3250620as, 128, [Write, Read, Read]),
    ] {
        for seed in 1..=3 {
            let disk = Spec {
                write_cache,
                ..Spec::new(model)
            };
            let had = run(disk, mixes.map(Random), seed, 20 * SEC, 150 * SEC);
            for (group, (longest, took)) in had.into_iter().enumerate() {
                let most = (5.0 * PROCS as f64 * took + TURN) / share(group) + KEPT;
                println!("{model}, {write_cache}, {mixes:?}, {seed}: {longest:.2} of {most:.2}");
                assert!(
                    longest <= most,
                    "{model}, {write_cache}, {mixes:?}, seed {seed}, group {group}: {longest:.2} s \
                     where {most:.2} is most"
                );
            }
        }
    }
}
