//! What the fastest drives gain by more requests in flight than usual, and that it costs nobody else.
#![allow(clippy::unwrap_used)]

use disktime_core::Weight;
use disktime_model::{Model, Spec};
use disktime_sim::{
    Charge, Controller, Dirty, Group, Mix, Observer, Op, Pattern, Proc, Setup, Sim,
};

const SEC: u64 = 1_000_000_000;
/// The usual depth, which is no limit if it is asked for.
const USUAL: u32 = 256;
/// More than all have outstanding.
const REQUESTS: u32 = 2048;
/// Long enough to know that all are alike.
const FROM: u64 = SEC;

/// The latencies of one process.
struct Latencies {
    proc: usize,
    ns: Vec<u64>,
}

impl Observer for Latencies {
    fn issued(&mut self, _: &Op, _: u64) {}
    fn completed(&mut self, op: &Op, at: u64) {
        if op.proc == self.proc && at > FROM {
            self.ns.push(at - op.asked);
        }
    }
}

fn deep(group: usize) -> Proc {
    Proc {
        pattern: Pattern::Random,
        sectors: 8,
        depth: 256,
        ..Proc::new(group, (group as u64) << 20, (group as u64 + 1) << 20)
    }
}

/// By group, the I/Os of so many seconds; and the latencies of the last one.
fn run(weights: &[u32], procs: Vec<Proc>, secs: u64, depth: Option<u32>) -> (Vec<u64>, Vec<u64>) {
    let last = procs.len() - 1;
    let setup = Setup {
        disk: Spec::new(Model::Nvme).make().unwrap(),
        controller: Controller::Disktime {
            slice: None,
            idle: None,
            depth,
            order: None,
            strict: false,
            charge: Charge::Own,
        },
        nr_requests: Some(REQUESTS),
        groups: weights
            .iter()
            .map(|&weight| Group {
                weight: Weight::new(weight).unwrap(),
                ..Group::default()
            })
            .collect(),
        procs,
        dirty: Dirty::default(),
        wake_ns: 5_000,
        seed: 1,
        checked: false,
    };
    let observer = Latencies {
        proc: last,
        ns: Vec::new(),
    };
    let mut sim = Sim::new(setup, observer).unwrap();
    (0..=last).for_each(|n| sim.start(n));
    let ios = |sim: &Sim<Latencies>| -> Vec<u64> {
        (0..weights.len())
            .map(|g| sim.tally(g).ios.iter().sum())
            .collect()
    };
    sim.run(FROM).unwrap();
    let before = ios(&sim);
    sim.run(FROM + secs * SEC).unwrap();
    let done = ios(&sim).iter().zip(&before).map(|(a, b)| a - b).collect();
    (done, std::mem::take(&mut sim.observer.ns))
}

#[test]
fn who_all_do_the_same_have_more_of_a_fast_drive_than_with_the_usual_depth() {
    let weights = [100, 100, 200, 400];
    let procs = || (0..weights.len()).map(deep).collect();
    let (wide, _) = run(&weights, procs(), 1, None);
    let (usual, _) = run(&weights, procs(), 1, Some(USUAL));
    let sum = |ios: &[u64]| ios.iter().sum::<u64>() as f64;
    let gain = sum(&wide) / sum(&usual);
    println!("{wide:?}, with the usual depth {usual:?}: {gain:.4}");
    assert!(gain > 1.025, "{gain:.4}");
    for (ios, weight) in wide.iter().zip(weights) {
        let off = *ios as f64 / sum(&wide) - f64::from(weight) / 800.0;
        assert!(off.abs() < 0.002, "{wide:?}");
    }
}

/// What is in the drive already is in the way of whoever comes: of who comes again and again, seldom.
#[test]
fn who_comes_now_and_then_waits_no_longer_for_what_is_in_the_drive() {
    let weights = [100; 5];
    let comer = Proc {
        depth: 64,
        burst: 64,
        think_ns: 7 * SEC / 10,
        ..deep(4)
    };
    let procs = || (0..4).map(deep).chain([comer]).collect();
    let p99 = |(_, mut ns): (Vec<u64>, Vec<u64>)| {
        ns.sort_unstable();
        ns[ns.len() * 99 / 100]
    };
    let wide = p99(run(&weights, procs(), 5, None));
    let usual = p99(run(&weights, procs(), 5, Some(USUAL)));
    println!("P99 {wide} ns, with the usual depth {usual}");
    assert!(wide < 3 * usual / 2, "{wide} ns, {usual}");
}

/// Where costs have to be learned, or weighed against each other, nothing changes.
#[test]
fn unlike_requests_are_not_let_in_beyond_the_usual() {
    let weights = [100; 4];
    for (sectors, mix) in [(16, Mix::Read), (8, Mix::Write)] {
        let other = Proc {
            sectors,
            mix,
            ..deep(3)
        };
        let procs = || (0..3).map(deep).chain([other]).collect();
        let wide = run(&weights, procs(), 1, None);
        assert_eq!(wide, run(&weights, procs(), 1, Some(USUAL)), "{other:?}");
    }
}
