//! Requests: who gets the next free one, and that everybody does.

use disktime_core::{Class, GroupId};
use proptest::prelude::*;

use crate::bed::*;
use crate::cases;

/// A lone process beside others with deep queues finds a request soon, however few there are.
#[test]
fn lone_process_is_not_shut_out_at_the_gate() {
    for (servers, depth, tags) in [(1, 1, 2), (1, 1, 16), (8, 8, 16), (8, 8, 64)] {
        let mut bed = Bed::new(Disk::new(servers, depth, tags), constant(4 * MS), 1);
        let root = bed.root();
        let light = bed.group("light", root, 100);
        let proc = bed.job(Job::new(light).think(20 * MS));
        for number in 0..3 {
            let heavy = bed.group(&format!("heavy{number}"), root, 100);
            bed.job(Job::new(heavy).depth(64));
        }
        bed.run_until(20 * SEC);
        let p99 = bed.latency(proc, 0.99);
        let round = 4 * MS * u64::from(4.max(servers)) / u64::from(servers);
        report(&format!(
            "k={servers} depth={depth} tags={tags}: light P99 {} us",
            p99 / 1000
        ));
        assert!(p99 <= 3 * round + 4 * MS, "P99 {} us", p99 / 1000);
    }
}

/// Requests that cost unlike: with few of them, time is shared all the same.
#[test]
fn few_requests_are_parted_by_time_and_not_by_number() {
    for (servers, depth, tags) in [(1, 1, 2), (1, 1, 16), (8, 8, 16), (8, 8, 24), (8, 8, 256)] {
        let service: Service = Box::new(|request, _, _| {
            if request.sectors > 8 {
                5 * MS
            } else {
                500 * US
            }
        });
        let mut bed = Bed::new(Disk::new(servers, depth, tags), service, 2);
        let root = bed.root();
        let groups = [bed.group("small", root, 100), bed.group("large", root, 100)];
        bed.jobs(16, &Job::new(groups[0]).depth(4));
        bed.jobs(16, &Job::new(groups[1]).depth(4).sectors(1024));
        let ios = bed.ios(&groups, 2 * SEC, 32 * SEC);
        let times = [ios[0] as f64 * 0.5, ios[1] as f64 * 5.0];
        let total = times[0] + times[1];
        let what = format!("0.5 ms : 5 ms, true, k={servers} depth={depth} tags={tags}");
        assert_shares(&what, &times.map(|time| time / total), &[0.5, 0.5], 0.01);
        let util = total / (30_000.0 * f64::from(servers));
        assert!(
            util > 0.97,
            "{what}: the disk is used to {:.1} % only",
            util * 100.0
        );
    }
}

/// Processes of one request each, hardly more of them than requests: whoever finds one free takes
/// it, and yet the requests are parted by share.
#[test]
fn few_requests_are_parted_by_share_among_many_processes() {
    for processes in [12, 16, 24] {
        for think in [5 * US, 500 * US, MS] {
            for wakeup in [20 * US, 500 * US] {
                let mut bed = Bed::new(Disk::new(8, 8, 16), constant(4 * MS), 3);
                bed.wakeup_ns = wakeup;
                let root = bed.root();
                let groups =
                    [40, 20, 10].map(|weight| bed.group(&format!("w{weight}"), root, weight));
                for group in groups {
                    bed.jobs(processes, &Job::new(group).think(think));
                }
                let got = bed.shares(&groups, 2 * SEC, 12 * SEC);
                let what = format!(
                    "{processes} processes, 16 requests, think {} us, wake-up {} us",
                    think / US,
                    wakeup / US
                );
                assert_shares(&what, &got, &entitled(&[40, 20, 10]), 0.01);
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(24))]

    /// Any mix of groups, classes, directions, depths, pauses: everything that was issued comes to
    /// its end, no request of a class waits for longer than weights and floors explain, and the
    /// charges are the busy time (an invariant, looked at on the way).
    #[test]
    fn everything_is_served_in_the_end(
        groups in prop::collection::vec(
            (0u8..4, 1u32..=1000, prop::sample::select(vec![Class::Rt, Class::Be, Class::Be, Class::Idle])),
            1..6,
        ),
        jobs in prop::collection::vec(
            (0u8..8, 1u32..24, 0u64..20_000, 0u8..4, any::<bool>()),
            1..10,
        ),
        servers in 1u32..=8,
        depth in 1u32..=16,
        tags in prop::sample::select(vec![2u32, 7, 16, 64]),
        rotational: bool,
        seed: u64,
    ) {
        let mut disk = Disk::new(servers, depth, tags);
        disk.rotational = rotational;
        let service: Service = Box::new(|_, _, rng| 200 * US + rng.below(4 * MS));
        let mut bed = Bed::new(disk, service, seed);
        let mut ids: Vec<GroupId> = vec![bed.root()];
        for (parent, weight, class) in groups {
            let parent = ids[usize::from(parent) % ids.len()];
            ids.push(bed.group_of("g", parent, weight, class));
        }
        for (group, depth, think_us, kind, flips) in jobs {
            let mut job = Job::new(ids[usize::from(group) % ids.len()]).depth(depth);
            job = job.think(think_us * US);
            job = match kind {
                0 => job.writeback(),
                1 => job.sequential(0),
                _ => job,
            };
            if flips {
                job = job.flips(50 * MS, 30 * MS);
            }
            bed.job(job);
        }
        bed.run_until(3 * SEC);
        bed.drain();
        let charged: u64 =
            bed.snapshot(&ids).iter().map(|stats| stats.total_time().0).sum();
        prop_assert_eq!(charged, bed.dev.state().charged.0);
    }
}
