//! What idling earns and what it costs.

use crate::bed::*;

/// After ten seconds of sleep a group is no further ahead than its credit and one round.
#[test]
fn credit_of_a_sleeper_is_bounded() {
    for (servers, depth) in [(1, 1), (1, 8), (8, 8)] {
        for weight in [10, 100, 1000] {
            let mut bed = Bed::new(Disk::new(servers, depth, 256), constant(4 * MS), 1);
            let root = bed.root();
            let groups = [
                bed.group("sleeper", root, weight),
                bed.group("busy", root, weight),
            ];
            bed.job(Job::new(groups[0]).depth(32).between(0, SEC));
            bed.job(Job::new(groups[0]).depth(32).between(11 * SEC, u64::MAX));
            bed.job(Job::new(groups[1]).depth(32));
            bed.run_until(11 * SEC - MS);
            let before = bed.snapshot(&groups);
            let mut lead = 0;
            for step in 0..400 {
                bed.run_until(11 * SEC + step * 5 * MS);
                let after = bed.snapshot(&groups);
                let got = [0, 1].map(|i| (after[i].total_time() - before[i].total_time()).0);
                lead = lead.max(got[0] as i64 - got[1] as i64);
            }
            let cost = 4 * MS / u64::from(servers.min(depth));
            let bound = 20 * MS + u64::from(depth + 2) * cost;
            report(&format!(
                "k={servers} depth={depth} weight={weight}: lead {} us",
                lead / 1000
            ));
            assert!(lead <= bound as i64, "lead {lead} ns > {bound} ns");
        }
    }
}

/// A process that waits for each of its requests is inactive whenever one is in flight. Where its
/// share is less than it asks for, it must still have all of it.
#[test]
fn flipping_between_idle_and_busy_loses_nothing() {
    for servers in [1, 2, 8] {
        for (weight, other) in [(100, 100), (100, 300), (50, 450)] {
            for think in [5 * US, 200 * US] {
                let mut bed = Bed::new(Disk::new(servers, servers, 256), constant(4 * MS), 2);
                let root = bed.root();
                let groups = [
                    bed.group("flips", root, weight),
                    bed.group("busy", root, other),
                ];
                bed.jobs(servers, &Job::new(groups[0]).think(think));
                bed.job(Job::new(groups[1]).depth(64));
                let got = bed.shares(&groups, SEC, 41 * SEC);
                // Waiting for a free server every time it asks for 1/2 at most.
                let want = entitled(&[weight, other]);
                let what = format!("k={servers} QD1 x {servers} think {think} {weight}:{other}");
                assert_shares(&what, &got, &want, 0.015);
            }
        }
    }
}

/// Busy for 30 ms and silent for 3, on average within its share: what was owed is not lost.
#[test]
fn short_silences_are_made_good() {
    let mut bed = Bed::new(Disk::new(8, 8, 256), constant(MS), 3);
    let root = bed.root();
    let groups = [bed.group("flips", root, 100), bed.group("busy", root, 100)];
    bed.job(Job::new(groups[0]).depth(32).flips(30 * MS, 3 * MS));
    bed.job(Job::new(groups[1]).depth(64));
    let got = bed.shares(&groups, SEC, 41 * SEC);
    assert_shares("30 ms busy, 3 ms silent", &got, &[0.5, 0.5], 0.02);
}

/// A light group in a heavy one's company has what it asks for, at low latency.
#[test]
fn light_group_below_its_share_hardly_waits() {
    for depth in [1, 8] {
        let mut bed = Bed::new(Disk::new(8, depth, 256), constant(4 * MS), 4);
        let root = bed.root();
        let groups = [bed.group("light", root, 100), bed.group("heavy", root, 100)];
        let light = bed.job(Job::new(groups[0]).think(40 * MS));
        bed.job(Job::new(groups[1]).depth(64));
        bed.run_until(20 * SEC);
        let p99 = bed.latency(light, 0.99);
        report(&format!("depth={depth}: light P99 {} us", p99 / 1000));
        assert!(p99 <= 2 * 4 * MS + 200 * US, "P99 {p99} ns");
    }
}

/// 39 hours of disk time at weight 1 are half of what virtual time can count. Beyond, newcomers
/// and the others share as ever.
#[test]
fn virtual_time_may_wrap() {
    let mut bed = Bed::new(Disk::new(1, 1, 0), constant(10 * SEC), 5);
    bed.check_every = 64;
    let root = bed.root();
    let old = bed.group("old", root, 1);
    bed.job(Job::new(old).depth(4));
    for hours in [1, 30, 50, 70, 79, 90] {
        let at = hours * 3600 * SEC;
        bed.run_until(at);
        let new = bed.group("new", root, 1);
        let end = at + 7200 * SEC;
        bed.job(Job::new(new).depth(4).between(at, end));
        // From its first request on, of which there are 40 in this time.
        let got = bed.shares(&[old, new], at, at + 400 * SEC);
        assert_shares(
            &format!("newcomer after {hours} h"),
            &got,
            &[0.5, 0.5],
            0.04,
        );
        let got = bed.shares(&[old, new], at + 400 * SEC, end);
        assert_shares(&format!("later, after {hours} h"), &got, &[0.5, 0.5], 0.01);
    }
}
