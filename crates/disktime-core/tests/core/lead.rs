//! Lead: who is ahead waits for who has all in a device that takes more than is asked for.

use disktime_core::Request;

use crate::bed::*;

/// So many servers behind 256 slots, where what a request takes goes by its size: 4 KB 100 us, more
/// eight times as much.
fn bed(servers: u32, seed: u64) -> Bed {
    let service = move |request: &Request, _, rng: &mut Rng| {
        let ns = if request.sectors > 8 { 8 } else { 1 } * MS / 10;
        ns * 7 / 8 + rng.below(ns / 4)
    };
    Bed::new(Disk::new(servers, 256, 1024), Box::new(service), seed)
}

/// 64 of each are 128 of 256, so that nobody ever waits for a slot. By order of arrival the small ones
/// had an eighth of the large ones' device time, and an eighth of what they do alone.
#[test]
fn who_asks_for_less_than_the_device_takes_has_its_share() {
    for seed in 1..=4 {
        let mut bed = bed(8, seed);
        let root = bed.root();
        let groups = ["small", "large"].map(|name| bed.group(name, root, 100));
        bed.job(Job::new(groups[0]).depth(64));
        bed.job(Job::new(groups[1]).depth(64).sectors(512));
        let ios = bed.ios(&groups, SEC, 3 * SEC);
        let ratio = ios[0] as f64 / (8.0 * ios[1] as f64);
        report(&format!("seed {seed}: {ios:?}, {ratio:.2}"));
        assert!(ratio > 0.8 && ratio < 1.25, "seed {seed}: {ios:?}");
    }
}

/// While others wait for it, it ends. They have all that there is as soon as a probe of it is over, if there was one.
#[test]
fn nobody_waits_for_who_has_gone() {
    for seed in 1..=4 {
        let mut bed = bed(8, seed);
        let root = bed.root();
        let groups = ["small", "large"].map(|name| bed.group(name, root, 100));
        bed.job(Job::new(groups[0]).depth(64).between(0, SEC));
        bed.job(Job::new(groups[1]).depth(64).sectors(512));
        let ios = bed.ios(&groups, SEC + 60 * MS, SEC + 260 * MS);
        let full = 8 * 200 * 10 / 8;
        report(&format!("seed {seed}: {ios:?} of {full}"));
        assert!(ios[1] > full * 9 / 10, "seed {seed}: {ios:?}");
    }
}

/// Small requests, to which ten elevenths are due, beside 128 large ones, on 128 servers: what parts of
/// the servers' time each has.
fn parts(seed: u64, depth: u32) -> [f64; 2] {
    let mut bed = bed(128, seed);
    let root = bed.root();
    let groups = [("small", 1000), ("large", 100)].map(|(name, w)| bed.group(name, root, w));
    bed.job(Job::new(groups[0]).depth(depth));
    bed.job(Job::new(groups[1]).depth(128).sectors(512));
    let ios = bed.ios(&groups, SEC / 2, SEC);
    let parts = [ios[0], 8 * ios[1]].map(|n| n as f64 * 2e-4 / 128.0);
    report(&format!(
        "{depth} at a time, seed {seed}: {ios:?}, {parts:.2?}"
    ));
    parts
}

/// 100 at a time keep 100 of 128 servers busy, which is less than is due to them. In order of arrival
/// they had 0.23.
#[test]
fn who_can_not_fill_the_device_has_what_it_can_and_others_their_share() {
    for seed in 1..=2 {
        let [small, large] = parts(seed, 100);
        assert!(small > 0.6 && large > 1.0 / 11.0, "seed {seed}");
    }
}
