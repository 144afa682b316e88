//! Shares of disk time between groups that always have something to do.

use disktime_core::{Class, Entity, GroupId};
use proptest::prelude::*;

use crate::bed::*;
use crate::cases;

/// Every kind of disk and of request shortage that a case is tried on: servers, depth, tags.
const DISKS: [(u32, u32, u32); 12] = [
    (1, 1, 2),
    (1, 1, 16),
    (1, 1, 256),
    (1, 8, 2),
    (1, 8, 16),
    (1, 8, 256),
    (8, 1, 2),
    (8, 1, 16),
    (8, 1, 256),
    (8, 8, 2),
    (8, 8, 16),
    (8, 8, 256),
];

fn three(bed: &mut Bed, weights: [u32; 3]) -> [GroupId; 3] {
    let root = bed.root();
    let mut number = 0;
    weights.map(|weight| {
        number += 1;
        bed.group(&format!("g{number}"), root, weight)
    })
}

#[test]
fn share_is_proportional_under_backlog() {
    for (servers, depth, tags) in DISKS {
        let mut bed = Bed::new(Disk::new(servers, depth, tags), constant(4 * MS), 1);
        let groups = three(&mut bed, [40, 20, 10]);
        for group in groups {
            bed.job(Job::new(group).depth(32));
        }
        let got = bed.shares(&groups, 2 * SEC, 32 * SEC);
        let what = format!("k={servers} depth={depth} tags={tags}");
        assert_shares(&what, &got, &entitled(&[40, 20, 10]), 0.01);
        bed.drain();
    }
}

#[test]
fn share_of_a_silent_group_goes_to_the_others_in_proportion() {
    for (servers, depth, tags) in DISKS {
        let mut bed = Bed::new(Disk::new(servers, depth, tags), constant(4 * MS), 2);
        let groups = three(&mut bed, [40, 20, 10]);
        bed.job(Job::new(groups[0]).depth(32));
        bed.job(Job::new(groups[1]).depth(32).between(0, 10 * SEC));
        bed.job(Job::new(groups[2]).depth(32));
        let what = format!("k={servers} depth={depth} tags={tags}");
        let got = bed.shares(&groups, 2 * SEC, 10 * SEC);
        assert_shares(
            &format!("{what}, all"),
            &got,
            &entitled(&[40, 20, 10]),
            0.01,
        );
        let got = bed.shares(&groups, 11 * SEC, 31 * SEC);
        assert_shares(&format!("{what}, b silent"), &got, &[0.8, 0.0, 0.2], 0.01);
        bed.drain();
    }
}

#[test]
fn share_in_a_tree_is_the_product_along_the_path() {
    for (servers, depth, tags) in DISKS {
        let mut bed = Bed::new(Disk::new(servers, depth, tags), constant(4 * MS), 3);
        let root = bed.root();
        let a = bed.group("a", root, 200);
        let a1 = bed.group("a1", a, 100);
        let a2 = bed.group("a2", a, 300);
        let b = bed.group("b", root, 100);
        bed.job(Job::new(a1).depth(32));
        bed.job(Job::new(a2).depth(32).between(0, 15 * SEC));
        bed.job(Job::new(b).depth(32));
        let groups = [a1, a2, b];
        let what = format!("k={servers} depth={depth} tags={tags}");
        let got = bed.shares(&groups, 2 * SEC, 15 * SEC);
        assert_shares(&what, &got, &[2.0 / 3.0 * 0.25, 0.5, 1.0 / 3.0], 0.01);
        let got = bed.shares(&groups, 16 * SEC, 36 * SEC);
        assert_shares(
            &format!("{what}, a2 silent"),
            &got,
            &[2.0 / 3.0, 0.0, 1.0 / 3.0],
            0.01,
        );
        bed.drain();
    }
}

/// A group's own processes form a leaf of weight 100 beside its child groups.
#[test]
fn share_of_a_groups_own_processes_is_that_of_a_child_of_weight_100() {
    for (servers, depth, tags) in [(1, 1, 16), (8, 8, 256)] {
        let mut bed = Bed::new(Disk::new(servers, depth, tags), constant(4 * MS), 3);
        let root = bed.root();
        let a = bed.group("a", root, 300);
        for group in [root, a] {
            bed.job(Job::new(group).depth(32));
        }
        let got = bed.shares(&[root, a], 2 * SEC, 22 * SEC);
        assert_shares("own : child 300", &got, &[0.25, 0.75], 0.01);
        bed.set_weight(Entity::Leaf(root), 900);
        let got = bed.shares(&[root, a], 23 * SEC, 43 * SEC);
        assert_shares("own 900 : child 300", &got, &[0.75, 0.25], 0.01);
    }
}

/// A child group comes and goes above queues that are at work: nothing changes for anybody until it
/// works itself, and then its parent's own processes share with it.
#[test]
fn shares_hold_while_a_group_gets_and_loses_children() {
    for (servers, depth, tags) in DISKS {
        let mut bed = Bed::new(Disk::new(servers, depth, tags), constant(4 * MS), 3);
        let root = bed.root();
        let a = bed.group("a", root, 100);
        let b = bed.group("b", root, 200);
        bed.job(Job::new(a).depth(32));
        bed.job(Job::new(b).depth(32));
        let what = format!("k={servers} depth={depth} tags={tags}");
        let before = bed.snapshot(&[a, b]);
        for round in 1..40 {
            bed.run_until(round * 500 * MS);
            let weight = disktime_core::Weight::new(300).unwrap();
            let child = bed
                .dev
                .add_group(a, weight, disktime_core::Class::Be)
                .unwrap();
            bed.run_until(round * 500 * MS + 250 * MS);
            bed.dev.remove_group(child).unwrap();
        }
        let after = bed.snapshot(&[a, b]);
        let time: Vec<u64> = (0..2)
            .map(|i| after[i].time[0].0 - before[i].time[0].0)
            .collect();
        let ratio = time[1] as f64 / time[0] as f64;
        assert!((ratio - 2.0).abs() < 0.06, "{what}: {ratio}");
        let child = bed.group("child", a, 300);
        bed.job(Job::new(child).depth(32));
        let got = bed.shares(&[a, child, b], 22 * SEC, 42 * SEC);
        assert_shares(&what, &got, &[1.0 / 12.0, 0.25, 2.0 / 3.0], 0.01);
        bed.drain();
    }
}

/// Requests that cost 1 ms against requests of 4 ms: it is time that is shared, not requests.
/// `true` is what the servers really spent.
#[test]
fn share_is_of_time_and_not_of_requests() {
    for (servers, depth, tags, tolerance) in [
        (1, 1, 2, 0.01),
        (1, 1, 16, 0.01),
        (1, 1, 256, 0.01),
        (8, 8, 16, 0.01),
        (8, 8, 256, 0.01),
    ] {
        let service: Service =
            Box::new(|request, _, _| if request.sectors > 8 { 4 * MS } else { MS });
        let mut bed = Bed::new(Disk::new(servers, depth, tags), service, 4);
        let root = bed.root();
        let groups = [bed.group("small", root, 100), bed.group("large", root, 100)];
        bed.job(Job::new(groups[0]).depth(64));
        bed.job(Job::new(groups[1]).depth(64).sectors(128));
        let ios = bed.ios(&groups, 2 * SEC, 22 * SEC);
        let times = [ios[0] as f64, ios[1] as f64 * 4.0];
        let total = times[0] + times[1];
        let what = format!("1 ms : 4 ms, true, k={servers} depth={depth} tags={tags}");
        assert_shares(
            &what,
            &times.map(|time| time / total),
            &[0.5, 0.5],
            tolerance,
        );
    }
}

#[test]
fn weight_change_takes_effect_at_once() {
    for (from, to) in [(100, 400), (400, 100), (1, 10_000), (10_000, 1)] {
        let mut bed = Bed::new(Disk::new(1, 1, 256), constant(4 * MS), 5);
        let root = bed.root();
        let groups = [
            bed.group("changed", root, from),
            bed.group("other", root, 100),
        ];
        for group in groups {
            bed.job(Job::new(group).depth(32));
        }
        bed.run_until(20 * SEC + 2 * MS);
        bed.set_weight(Entity::Group(groups[0]), to);
        let want = entitled(&[to, 100]);
        // A second after: off by no more than the round in which it happened.
        let got = bed.shares(&groups, 20 * SEC + 2 * MS, 21 * SEC);
        assert_shares(
            &format!("weight {from} -> {to}, first second"),
            &got,
            &want,
            0.03,
        );
    }
}

/// A newcomer has its share at once, and the others keep theirs.
#[test]
fn newcomer_gets_its_share_at_once() {
    for (servers, depth, tags) in DISKS {
        let mut bed = Bed::new(Disk::new(servers, depth, tags), constant(4 * MS), 6);
        let root = bed.root();
        let light = bed.group("light", root, 1000);
        let heavy = bed.group("heavy", root, 100);
        bed.job(Job::new(light));
        bed.job(Job::new(heavy).depth(32));
        bed.run_until(10 * SEC);
        let late = bed.group("late", root, 100);
        bed.job(Job::new(late).depth(32));
        let what = format!("k={servers} depth={depth} tags={tags}");
        let before = bed.snapshot(&[heavy, late]);
        // Requests that hold a tag or are in flight when it comes were there first.
        let cost = 4 * MS / u64::from(servers.min(depth));
        let slack = 2 * u64::from(depth + 2) * cost;
        for ms in [50, 100, 200, 500, 1000] {
            bed.run_until(10 * SEC + ms * MS);
            let after = bed.snapshot(&[heavy, late]);
            let got = [0, 1].map(|i| (after[i].total_time() - before[i].total_time()).0);
            report(&format!(
                "{what}: {ms} ms after: heavy {} us, late {} us",
                got[0] / 1000,
                got[1] / 1000
            ));
            assert!(
                got[0].abs_diff(got[1]) <= slack,
                "{what}: {ms} ms after coming the newcomer has {} ns, its equal {} ns",
                got[1],
                got[0]
            );
        }
    }
}

/// ionice levels weigh processes inside one group.
#[test]
fn queues_inside_a_group_share_by_weight() {
    for (servers, depth, tags) in DISKS {
        let mut bed = Bed::new(Disk::new(servers, depth, tags), constant(4 * MS), 7);
        let root = bed.root();
        let group = bed.group("a", root, 100);
        let other = bed.group("b", root, 100);
        let procs = [180, 100, 40].map(|weight| bed.job(Job::new(group).depth(24).weight(weight)));
        bed.job(Job::new(other).depth(32));
        bed.run_until(2 * SEC);
        let before = procs.map(|proc| bed.done(proc));
        bed.run_until(32 * SEC);
        let done: Vec<f64> = procs
            .iter()
            .zip(before)
            .map(|(&proc, before)| (bed.done(proc) - before) as f64)
            .collect();
        let total: f64 = done.iter().sum();
        let got: Vec<f64> = done.iter().map(|done| done / total).collect();
        let what = format!("k={servers} depth={depth} tags={tags}");
        assert_shares(&what, &got, &entitled(&[180, 100, 40]), 0.01);
    }
}

#[test]
fn readers_go_before_writeback_which_keeps_its_floor() {
    for (servers, depth, tags) in DISKS {
        let mut bed = Bed::new(Disk::new(servers, depth, tags), constant(4 * MS), 8);
        let root = bed.root();
        let group = bed.group("a", root, 100);
        let reader = bed.job(Job::new(group).depth(24));
        let flusher = bed.job(Job::new(group).depth(24).writeback());
        bed.run_until(2 * SEC);
        let before = [bed.done(reader), bed.done(flusher)];
        bed.run_until(22 * SEC);
        let done = [bed.done(reader) - before[0], bed.done(flusher) - before[1]];
        let part = done[1] as f64 / (done[0] + done[1]) as f64;
        report(&format!(
            "k={servers} depth={depth} tags={tags}: writeback {:.2} %, longest wait {} ms",
            part * 100.0,
            bed.longest_gap(group) / MS
        ));
        assert!(
            (0.10..=0.13).contains(&part),
            "writeback got {:.2} %",
            part * 100.0
        );
    }
}

proptest! {
    #![proptest_config(cases(24))]

    /// SFQ's bound: two groups' disk times over weights differ by (depth + 1) requests of each.
    #[test]
    fn share_is_proportional_for_any_weights(
        weights in prop::collection::vec(1u32..=1000, 2..7),
        servers in 1u32..=8,
        depth in 1u32..=16,
        tags in prop::sample::select(vec![2u32, 16, 64, 256]),
        service_us in 200u64..4000,
        class in prop::sample::select(vec![Class::Rt, Class::Be, Class::Idle]),
        seed: u64,
    ) {
        let mut bed = Bed::new(Disk::new(servers, depth, tags), constant(service_us * US), seed);
        bed.check_every = 64;
        let root = bed.root();
        let groups: Vec<GroupId> =
            weights.iter().map(|&w| bed.group_of(&format!("w{w}"), root, w, class)).collect();
        for &group in &groups {
            bed.job(Job::new(group).depth(32));
        }
        let cost = service_us * US / u64::from(servers.min(depth));
        let window = 8000 * cost;
        let got = bed.shares(&groups, window / 8, window / 8 + window);
        let tolerance =
            f64::from(2 * (depth + 2)) * weights.len() as f64 * cost as f64 / window as f64;
        assert_shares(
            &format!("k={servers} depth={depth} tags={tags} {weights:?}"),
            &got, &entitled(&weights), tolerance,
        );
    }
}
