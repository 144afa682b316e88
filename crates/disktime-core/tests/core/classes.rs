//! Classes: better ones first, and nobody starves.

use disktime_core::{Class, Entity};

use crate::bed::*;

/// RT, BE and IDLE all with deep queues.
#[test]
fn better_class_takes_nearly_all_and_lower_ones_still_move() {
    for (servers, depth, tags) in [(8, 8, 256), (8, 8, 16), (1, 1, 16), (1, 1, 2)] {
        let mut bed = Bed::new(Disk::new(servers, depth, tags), constant(4 * MS), 1);
        let root = bed.root();
        let groups = [Class::Rt, Class::Be, Class::Idle]
            .map(|class| bed.group_of(&format!("{class:?}"), root, 100, class));
        for group in groups {
            bed.job(Job::new(group).depth(32));
        }
        bed.run_until(2 * SEC);
        bed.reset_gaps();
        let got = bed.shares(&groups, 2 * SEC, 62 * SEC);
        let gaps = groups.map(|group| bed.longest_gap(group));
        let of_rest = got[1] / (got[1] + got[2]);
        report(&format!(
            "k={servers} depth={depth} tags={tags}: RT {:.2} %, BE {:.2} % of the rest; longest without: BE {} ms, IDLE {} ms",
            got[0] * 100.0,
            of_rest * 100.0,
            gaps[1] / MS,
            gaps[2] / MS
        ));
        // With few requests the bound is paid twice: for the request, and for the device.
        let times = if tags < 64 { 2 } else { 1 };
        assert!(gaps[1] <= 508 * MS * times, "BE waited {} ms", gaps[1] / MS);
        assert!(
            gaps[2] <= 1550 * MS * times,
            "IDLE waited {} ms",
            gaps[2] / MS
        );
        if servers == 8 {
            assert!(got[0] >= 0.97, "RT has {:.2} %", got[0] * 100.0);
            assert!(
                of_rest >= 0.97,
                "BE has {:.2} % of the rest",
                of_rest * 100.0
            );
        }
    }
}

/// One process a class, waiting for each of its requests: a request's own wait is bounded.
#[test]
fn lone_request_of_a_lower_class_waits_no_longer_than_the_bound() {
    for (servers, depth, tags) in [(8, 8, 256), (8, 8, 16), (1, 1, 16), (1, 1, 2)] {
        let mut bed = Bed::new(Disk::new(servers, depth, tags), constant(4 * MS), 2);
        let root = bed.root();
        let rt = bed.group_of("rt", root, 100, Class::Rt);
        let be = bed.group_of("be", root, 100, Class::Be);
        let idle = bed.group_of("idle", root, 100, Class::Idle);
        bed.job(Job::new(rt).depth(32));
        let be_proc = bed.job(Job::new(be));
        let idle_proc = bed.job(Job::new(idle));
        bed.run_until(60 * SEC);
        let waits = [be_proc, idle_proc].map(|proc| bed.longest_wait(proc) / MS);
        report(&format!(
            "k={servers} depth={depth} tags={tags}: BE {} ms, IDLE {} ms",
            waits[0], waits[1]
        ));
        // With few requests the bound is paid twice: for the request, and for the device.
        let times = if tags < 64 { 2 } else { 1 };
        assert!(waits[0] <= 508 * times, "BE waited {} ms", waits[0]);
        assert!(waits[1] <= 1550 * times, "IDLE waited {} ms", waits[1]);
    }
}

/// RT with one request at a time under BE load: it waits for what is in flight, no more.
#[test]
fn lone_rt_request_goes_next() {
    for (servers, depth) in [(1, 1), (8, 8)] {
        let mut bed = Bed::new(Disk::new(servers, depth, 256), constant(4 * MS), 3);
        let root = bed.root();
        let rt = bed.group_of("rt", root, 100, Class::Rt);
        let be = bed.group_of("be", root, 100, Class::Be);
        let proc = bed.job(Job::new(rt).think(3 * MS));
        bed.job(Job::new(be).depth(64));
        let got = bed.shares(&[rt, be], SEC, 31 * SEC);
        report(&format!(
            "k={servers}: RT QD1 {:.2} % of the time, latency P50 {} us, max {} us",
            got[0] * 100.0,
            bed.latency(proc, 0.5) / 1000,
            bed.latency(proc, 1.0) / 1000
        ));
        // One service of the request before it, its own, and a floor's request now and then.
        assert!(
            bed.latency(proc, 1.0) <= 3 * 4 * MS,
            "{} us",
            bed.latency(proc, 1.0) / 1000
        );
    }
}

/// An RT reader that waits for each of its requests, where there are turns: RT's part is its own
/// also while it thinks.
#[test]
fn lone_rt_reader_keeps_its_part_where_there_are_turns() {
    for (rotational, strict) in [(true, false), (true, true), (false, true)] {
        let mut disk = Disk::new(1, 1, 256);
        disk.rotational = rotational;
        let mut bed = Bed::new(disk, constant(4 * MS), 6);
        bed.tune(|tunables| tunables.strict = strict);
        let root = bed.root();
        let rt = bed.group_of("rt", root, 100, Class::Rt);
        let be = bed.group("be", root, 100);
        bed.job(Job::new(rt).think(200 * US).sequential(0));
        bed.job(Job::new(be).depth(32));
        let got = bed.shares(&[rt, be], SEC, 31 * SEC);
        report(&format!(
            "rotational {rotational} strict {strict}: RT QD1 {:.2} %, longest without: BE {} ms",
            got[0] * 100.0,
            bed.longest_gap(be) / MS
        ));
        assert!(got[0] >= 0.97, "RT has {:.2} %", got[0] * 100.0);
        assert!(
            bed.longest_gap(be) <= 508 * MS,
            "BE waited {} ms",
            bed.longest_gap(be) / MS
        );
    }
}

/// Two groups of one class divide what the class has by weight, whatever the class.
#[test]
fn weights_hold_inside_a_lower_class() {
    let mut bed = Bed::new(Disk::new(8, 8, 256), constant(MS), 4);
    let root = bed.root();
    let rt = bed.group_of("rt", root, 100, Class::Rt);
    let be = [300, 100].map(|weight| bed.group(&format!("be{weight}"), root, weight));
    bed.job(Job::new(rt).depth(64));
    for group in be {
        bed.job(Job::new(group).depth(64));
    }
    let got = bed.shares(&be, 2 * SEC, 122 * SEC);
    assert_shares("BE 300:100 under RT", &got, &[0.75, 0.25], 0.01);
}

#[test]
fn class_change_takes_effect_at_once() {
    let mut bed = Bed::new(Disk::new(8, 8, 16), constant(4 * MS), 5);
    let root = bed.root();
    let groups = [bed.group("a", root, 100), bed.group("b", root, 100)];
    for group in groups {
        bed.job(Job::new(group).depth(32));
    }
    let steps: [(Class, [f64; 2]); 4] = [
        (Class::Rt, [0.98, 0.02]),
        (Class::Be, [0.5, 0.5]),
        (Class::Idle, [0.02, 0.98]),
        (Class::Be, [0.5, 0.5]),
    ];
    let mut at = 5 * SEC;
    bed.run_until(at);
    for (class, want) in steps {
        bed.dev
            .set_class(Entity::Group(groups[0]), class, disktime_core::Nanos(at))
            .unwrap();
        let got = bed.shares(&groups, at + 100 * MS, at + 2100 * MS);
        assert_shares(&format!("a becomes {class:?}"), &got, &want, 0.02);
        at += 5 * SEC;
        bed.run_until(at);
    }
}
