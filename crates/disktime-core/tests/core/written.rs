//! Writes that wait for room in one line: few are let in, what each takes is learned, and nobody is forgotten.

use disktime_core::{Dir, GroupId, Request};
use proptest::prelude::*;

use crate::bed::{Bed, Disk, Job, MS, SEC, Service, US, assert_shares};
use crate::cases;

/// One after the other: what a write takes has a part of its own and one of its sectors.
fn one_line() -> Service {
    Box::new(|request: &Request, _, _| 80 * US + u64::from(request.sectors) * 2 * US)
}

fn writes(group: GroupId, depth: u32, sectors: u32) -> Job {
    Job {
        dir: Dir::Write,
        ..Job::new(group).depth(depth).sectors(sectors)
    }
}

/// Runs on until few are let in.
fn until_written(bed: &mut Bed) {
    for _ in 0..500 {
        if bed.dev.state().written {
            return;
        }
        bed.run_until(bed.now + 10 * MS);
    }
    panic!("all are let in: {}", bed.dev.dump());
}

#[test]
fn unlike_writes_in_one_line_are_shared_by_what_they_take() {
    for (depth, sectors) in [(64, [8, 1024]), (8, [8, 1024]), (4, [32, 512])] {
        let mut bed = Bed::new(Disk::new(1, 128, 0), one_line(), 1);
        let root = bed.root();
        let groups = [bed.group("small", root, 100), bed.group("large", root, 100)];
        bed.job(writes(groups[0], depth, sectors[0]));
        bed.job(writes(groups[1], 100, sectors[1]));
        until_written(&mut bed);
        let from = bed.now + 3 * SEC;
        let ios = bed.ios(&groups, from, from + 5 * SEC);
        let took = [0, 1].map(|n| ios[n] as f64 * f64::from(80 + 2 * sectors[n]));
        let sum: f64 = took.iter().sum();
        let what = format!("{depth} of {sectors:?}");
        assert_shares(&what, &took.map(|took| took / sum), &[0.5, 0.5], 0.04);
    }
}

/// Reads beside them, and all is as ever.
#[test]
fn all_are_let_in_again_when_somebody_reads() {
    let mut bed = Bed::new(Disk::new(1, 128, 0), one_line(), 1);
    let root = bed.root();
    let groups = [bed.group("small", root, 100), bed.group("large", root, 100)];
    bed.job(writes(groups[0], 16, 8));
    bed.job(writes(groups[1], 100, 1024));
    until_written(&mut bed);
    let reader = bed.group("reader", root, 100);
    bed.job(Job::new(reader).depth(16));
    bed.run_until(bed.now + SEC / 2);
    assert!(!bed.dev.state().written);
    bed.drain();
}

/// Who others wait for goes away while they do.
#[test]
fn nobody_waits_for_who_is_gone() {
    let mut bed = Bed::new(Disk::new(1, 128, 0), one_line(), 1);
    bed.check_every = 1;
    let root = bed.root();
    let large = bed.group("large", root, 100);
    bed.job(writes(large, 100, 1024));
    for round in 0..20 {
        let small = bed.group("small", root, 100);
        let proc = bed.job(writes(small, 4, 8).between(0, bed.now + SEC + round * 7 * MS));
        bed.run_until(bed.now + SEC + round * 7 * MS + 100 * MS);
        bed.end(proc);
        bed.dev.remove_group(small).unwrap();
    }
    bed.drain();
}

proptest! {
    #![proptest_config(cases(16))]

    /// Writers of any size, by any number at a time, with pauses or without, that come and go: the
    /// invariants hold at each step, and all that was issued comes to its end.
    #[test]
    fn every_write_is_served_in_the_end(
        jobs in prop::collection::vec(
            (0usize..3, 1u32..40, prop::sample::select(vec![8u32, 32, 128, 1024]), 0u64..3000,
             any::<bool>(), 0u64..1500),
            2..6,
        ),
        depth in 4u32..=64,
        tags in prop::sample::select(vec![0u32, 16, 64]),
        seed: u64,
    ) {
        let mut bed = Bed::new(Disk::new(1, depth, tags), one_line(), seed);
        bed.check_every = 1;
        let root = bed.root();
        let groups = [100, 100, 500].map(|weight| bed.group("g", root, weight));
        for (group, depth, sectors, think_us, flips, start_ms) in jobs {
            let mut job = writes(groups[group], depth, sectors);
            job.start = start_ms * MS;
            if flips {
                job = job.flips(300 * MS, 40 * MS);
            }
            bed.job(job.think(think_us * US));
        }
        bed.run_until(3 * SEC);
        bed.drain();
    }
}
