//! The simulator on disks of equal servers, where everything can be known.
#![allow(clippy::unwrap_used)]

use disktime_core::{Dir, Nanos, Weight};
use disktime_model::servers::{Inside, Params, Servers, Service};
use disktime_sim::{
    Controller, Dirty, Group, Invalid, Mix, Observer, Op, Pattern, Proc, Setup, Silent, Sim,
};

const MS: u64 = 1_000_000;
const SEC: u64 = 1_000 * MS;
const GIB: u64 = 1 << 21;

fn servers(servers: u32, slots: u32, service_ns: u64) -> Box<Servers> {
    let params = Params {
        sectors: GIB,
        servers,
        slots,
        service: Service::constant(service_ns),
        inside: Inside::Fifo,
        rotational: false,
        seed: 7,
    };
    Box::new(Servers::new(params).unwrap())
}

fn group(weight: u32) -> Group {
    Group {
        weight: Weight::new(weight).unwrap(),
        ..Group::default()
    }
}

fn reader(group: usize, depth: u32) -> Proc {
    Proc {
        pattern: Pattern::Random,
        mix: Mix::Both,
        sectors: 8,
        depth,
        ..Proc::new(group, 0, GIB)
    }
}

/// A group of each weight, with one process of that depth.
fn setup(disk: Box<Servers>, weights: &[u32], depth: u32) -> Setup {
    Setup {
        disk,
        controller: Controller::DISKTIME,
        nr_requests: None,
        groups: weights.iter().map(|&weight| group(weight)).collect(),
        procs: (0..weights.len()).map(|g| reader(g, depth)).collect(),
        dirty: Dirty::default(),
        wake_ns: 0,
        seed: 1,
        checked: true,
    }
}

fn start_all<O: Observer>(sim: &mut Sim<O>, procs: usize) {
    for proc in 0..procs {
        sim.start(proc);
    }
}

/// Shares of true time from `from` to `to`.
fn true_shares(setup: Setup, from: u64, to: u64) -> Vec<f64> {
    let (groups, procs) = (setup.groups.len(), setup.procs.len());
    let mut sim = Sim::new(setup, Silent).unwrap();
    start_all(&mut sim, procs);
    sim.run(from).unwrap();
    let before: Vec<u64> = (0..groups).map(|g| sim.tally(g).true_ns).collect();
    sim.run(to).unwrap();
    let had: Vec<f64> = (0..groups)
        .map(|g| (sim.tally(g).true_ns - before[g]) as f64)
        .collect();
    let counts = sim.counts();
    assert_eq!((counts.empty, counts.faults, counts.clamped), (0, 0, 0));
    let all: f64 = had.iter().sum();
    had.iter().map(|had| had / all).collect()
}

fn assert_near(got: &[f64], want: &[f64], within: f64) {
    for (got, want) in got.iter().zip(want) {
        assert!((got - want).abs() <= within, "{got:?} is not {want:?}");
    }
}

#[test]
fn groups_get_their_shares_of_true_time_with_many_requests_and_few() {
    for nr in [None, Some(256)] {
        for k in [1, 8] {
            let setup = Setup {
                nr_requests: nr,
                ..setup(servers(k, k, 4 * MS), &[40, 20, 10], 32)
            };
            let got = true_shares(setup, SEC, 21 * SEC);
            assert_near(&got, &[0.5714, 0.2857, 0.1429], 0.005);
        }
    }
}

#[test]
fn without_a_scheduler_who_asks_more_gets_more() {
    let mut setup = setup(servers(8, 8, 4 * MS), &[40, 10], 4);
    setup.controller = Controller::Fifo;
    setup.procs.extend([reader(1, 4), reader(1, 4)]);
    let got = true_shares(setup, SEC, 11 * SEC);
    assert_near(&got, &[0.25, 0.75], 0.01);
}

#[test]
fn parent_divides_what_it_gets_among_its_children() {
    let mut setup = setup(servers(8, 8, MS), &[200, 100, 100, 300], 16);
    setup.groups[2].parent = Some(0);
    setup.groups[3].parent = Some(0);
    setup.procs.remove(0);
    let got = true_shares(setup, SEC, 11 * SEC);
    assert_near(&got, &[0.0, 0.3333, 0.1667, 0.5], 0.005);
}

#[test]
fn silent_group_leaves_its_share_to_the_others() {
    let mut setup = setup(servers(8, 8, MS), &[40, 20, 10], 16);
    setup.procs.remove(1);
    let got = true_shares(setup, SEC, 6 * SEC);
    assert_near(&got, &[0.8, 0.0, 0.2], 0.005);
}

#[test]
fn disk_is_kept_as_busy_as_without_a_scheduler() {
    let total = |controller| {
        let setup = Setup {
            controller,
            ..setup(servers(8, 8, 4 * MS), &[40, 20, 10], 32)
        };
        let mut sim = Sim::new(setup, Silent).unwrap();
        start_all(&mut sim, 3);
        sim.run(10 * SEC).unwrap();
        (0..3)
            .map(|g| sim.tally(g).ios.iter().sum::<u64>())
            .sum::<u64>()
    };
    assert_eq!(total(Controller::Fifo), 20_000);
    assert_eq!(total(Controller::DISKTIME), 20_000);
}

#[test]
fn thinking_process_issues_when_it_has_thought() {
    let mut setup = setup(servers(1, 1, MS), &[100], 1);
    setup.procs[0].think_ns = 3 * MS;
    let mut sim = Sim::new(setup, Silent).unwrap();
    sim.start(0);
    sim.run(4 * SEC).unwrap();
    assert_eq!(sim.tally(0).ios.iter().sum::<u64>(), 1000);
}

#[test]
fn process_with_a_limit_ends_there_and_a_stopped_one_drains() {
    let mut setup = setup(servers(2, 2, MS), &[100, 100], 4);
    setup.procs[0].limit = Some(8 * 10);
    let mut sim = Sim::new(setup, Silent).unwrap();
    start_all(&mut sim, 2);
    assert!(!sim.finished(0));
    sim.run(SEC).unwrap();
    assert!(sim.finished(0));
    assert_eq!(sim.tally(0).sectors.iter().sum::<u64>(), 80);
    assert_eq!(sim.outstanding(1), 4);
    sim.stop(1);
    sim.run(2 * SEC).unwrap();
    assert_eq!(sim.outstanding(1), 0);
}

#[test]
fn core_accounts_for_all_the_time_that_the_disk_was_busy() {
    let setup = setup(servers(4, 4, MS), &[300, 100], 3);
    let mut sim = Sim::new(setup, Tape::default()).unwrap();
    start_all(&mut sim, 2);
    sim.run(SEC).unwrap();
    for proc in 0..2 {
        sim.stop(proc);
    }
    sim.run(2 * SEC).unwrap();
    let charged: u64 = (0..2).map(|g| sim.stats(g).unwrap().total_time().0).sum();
    // It was from the start until the last of them was done.
    let busy = sim.observer.0.last().unwrap().1;
    assert!(busy > SEC && busy - charged < 10_000, "{busy} {charged}");
}

/// Keeps everything, as a tracer would.
#[derive(Default)]
struct Tape(Vec<(bool, u64, usize, Dir, u64)>);

impl Observer for Tape {
    fn issued(&mut self, op: &Op, at: u64) {
        self.0.push((false, at, op.proc, op.dir, op.sector));
    }
    fn completed(&mut self, op: &Op, at: u64) {
        self.0.push((true, at, op.proc, op.dir, op.sector));
    }
}

fn tape(seed: u64) -> Tape {
    let setup = Setup {
        seed,
        ..setup(servers(8, 32, MS), &[40, 20, 10], 16)
    };
    let mut sim = Sim::new(setup, Tape::default()).unwrap();
    start_all(&mut sim, 3);
    sim.run(SEC).unwrap();
    sim.observer
}

#[test]
fn same_seed_is_the_same_run_and_another_is_not() {
    let one = tape(1);
    assert!(one.0.len() > 10_000, "{}", one.0.len());
    assert!(one.0 == tape(1).0, "two runs differ");
    assert!(one.0 != tape(2).0, "the seed makes no difference");
}

#[test]
fn nothing_is_lost_and_nothing_comes_twice() {
    let tape = tape(3);
    let issued = tape.0.iter().filter(|entry| !entry.0).count();
    let completed = tape.0.iter().filter(|entry| entry.0).count();
    assert!(issued - completed <= 32, "{issued} {completed}");
    let mut inflight = 0;
    for entry in &tape.0 {
        inflight += if entry.0 { -1 } else { 1 };
        assert!((0..=32).contains(&inflight));
    }
}

#[test]
fn holding_the_device_keeps_the_share_of_who_waits_for_each_request() {
    let params = Params {
        sectors: GIB,
        servers: 1,
        slots: 1,
        service: Service::constant(4 * MS),
        inside: Inside::Fifo,
        rotational: true,
        seed: 7,
    };
    let ratio = |idle| {
        let mut setup = Setup {
            disk: Box::new(Servers::new(params).unwrap()),
            ..setup(servers(1, 1, MS), &[1000, 500], 1)
        };
        if let Controller::Disktime { idle: to, .. } = &mut setup.controller {
            *to = idle;
        }
        setup.wake_ns = MS / 10;
        for proc in &mut setup.procs {
            proc.pattern = Pattern::Sequential;
        }
        setup.procs[1].from = GIB / 2;
        let got = true_shares(setup, SEC, 31 * SEC);
        got[0] / got[1]
    };
    let (held, not) = (ratio(None), ratio(Some(Nanos(0))));
    assert!((held - 2.0).abs() < 0.06, "{held}");
    assert!(not < 1.2, "{not}");
}

#[test]
fn what_cannot_be_run_is_refused() {
    let good = || setup(servers(1, 1, MS), &[100], 1);
    let refused = |change: fn(&mut Setup)| {
        let mut setup = good();
        change(&mut setup);
        Sim::new(setup, Silent).err()
    };
    assert!(refused(|_| ()).is_none());
    assert!(matches!(
        refused(|s| s.procs[0].group = 1),
        Some(Invalid::NoGroup(0))
    ));
    assert!(matches!(
        refused(|s| s.groups[0].parent = Some(0)),
        Some(Invalid::Parent(0))
    ));
    assert!(matches!(
        refused(|s| s.procs[0].to = GIB + 1),
        Some(Invalid::Region(0))
    ));
    assert!(matches!(
        refused(|s| s.procs[0].from = GIB - 7),
        Some(Invalid::Region(0))
    ));
    assert!(matches!(
        refused(|s| s.procs[0].depth = 0),
        Some(Invalid::Depth(0))
    ));
    assert!(matches!(
        refused(|s| s.nr_requests = Some(0)),
        Some(Invalid::Tags)
    ));
}
