//! Devices that serve one request after the other: turns, found without being told.

use disktime_core::{GroupId, Request};

use crate::bed::*;

const SMALL: u32 = 8;
const LARGE: u32 = 2048;

/// What a volume of 3000 small requests and 125 MiB a second takes for one.
fn takes(sectors: u32) -> u64 {
    (u64::from(sectors) * 4 * US).max(333 * US)
}

/// `servers` that each serve one after the other, behind one line.
fn bed(servers: u32, seed: u64) -> Bed {
    let service = |item: &Request, _: u64, _: &mut Rng| takes(item.sectors);
    Bed::new(Disk::new(servers, 256, 256), Box::new(service), seed)
}

/// One small read at a time and 16 large ones; groups, and the number of the first one's process.
fn unlike(bed: &mut Bed, weights: [u32; 2]) -> ([GroupId; 2], usize) {
    let root = bed.root();
    let small = bed.group("small", root, weights[0]);
    let large = bed.group("large", root, weights[1]);
    let reader = bed.job(Job::new(small).sectors(SMALL));
    bed.job(Job::new(large).sectors(LARGE).depth(16));
    ([small, large], reader)
}

#[test]
fn who_has_one_at_a_time_has_its_share_of_a_server() {
    for weights in [[100, 100], [300, 100], [100, 300]] {
        let mut bed = bed(1, 1);
        let (groups, _) = unlike(&mut bed, weights);
        let shares = bed.shares(&groups, 6 * SEC, 12 * SEC);
        assert_shares(&format!("{weights:?}"), &shares, &entitled(&weights), 0.03);
    }
}

/// Nor does it wait for all of the others, which are 131 ms.
#[test]
fn nobody_waits_for_what_fills_a_line() {
    let mut bed = bed(1, 2);
    let (_, reader) = unlike(&mut bed, [100, 100]);
    bed.run_until(20 * SEC);
    let p99 = bed.latency(reader, 0.99);
    assert!(p99 < 30 * MS, "{} ms", p99 / MS);
}

/// All of them are done in order as well, but it takes many to keep these busy.
#[test]
fn servers_side_by_side_are_not_taken_for_one() {
    let mut bed = bed(8, 3);
    let root = bed.root();
    let groups = ["one", "many"].map(|name| bed.group(name, root, 100));
    bed.job(Job::new(groups[0]).sectors(LARGE));
    bed.job(Job::new(groups[1]).sectors(LARGE).depth(64));
    let done = bed.ios(&groups, 6 * SEC, 12 * SEC);
    let most = 6 * SEC * 8 / takes(LARGE);
    let all: u64 = done.iter().sum();
    assert!(all * 100 > most * 97, "{done:?} of {most}");
}

/// All that are watched are done at once, so that no time is between any two of them.
#[test]
fn what_is_done_at_once_is_looked_at_as_well() {
    for (depth, think) in (4..48).flat_map(|depth| [0, 2 * MS, 20 * MS].map(|think| (depth, think)))
    {
        let mut bed = bed(64, 5);
        let root = bed.root();
        for (name, depth) in [("one", depth), ("other", 16)] {
            let group = bed.group(name, root, 100);
            bed.job(Job::new(group).sectors(LARGE).depth(depth).think(think));
        }
        bed.run_until(4 * SEC);
        bed.drain();
    }
}

/// Whatever becomes of groups and settings meanwhile, nothing is lost; the bed checks all there is.
#[test]
fn turns_end_when_what_they_are_for_does() {
    for end in [900 * MS, 4300 * MS, 4900 * MS, 8 * SEC] {
        let mut bed = bed(1, end);
        let ([small, _], _) = unlike(&mut bed, [100, 100]);
        bed.job(Job::new(small).sectors(SMALL).depth(8).between(0, end));
        bed.run_until(end + 100 * MS);
        bed.tune(|tun| tun.depth = 4);
        bed.run_until(end + 200 * MS);
        bed.tune(|tun| tun.depth = 0);
        bed.run_until(end + 2 * SEC);
        bed.drain();
    }
}
