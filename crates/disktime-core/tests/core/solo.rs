//! Groups that have the device for themselves now and then, so that it is seen what their requests
//! take.

use disktime_core::{GroupId, Request};

use crate::bed::*;

/// Eight servers behind sixteen slots, where what a request takes goes by its size: 4 KB by so
/// much, 256 KB by eight times as much.
fn bed(ns: u64, tags: u32, seed: u64) -> Bed {
    let service = move |request: &Request, _, rng: &mut Rng| {
        let ns = if request.sectors > 8 { 8 * ns } else { ns };
        ns * 7 / 8 + rng.below(ns / 4)
    };
    Bed::new(Disk::new(8, 16, tags), Box::new(service), seed)
}

/// Small requests of one group, large ones of another.
fn unlike(bed: &mut Bed, weights: [u32; 2], depths: [u32; 2]) -> [GroupId; 2] {
    let root = bed.root();
    let groups = [
        bed.group("small", root, weights[0]),
        bed.group("large", root, weights[1]),
    ];
    bed.job(Job::new(groups[0]).depth(depths[0]));
    bed.job(Job::new(groups[1]).depth(depths[1]).sectors(512));
    groups
}

/// Runs until `end`, and says in which part of the time from now on somebody was alone, and for
/// how long at most.
fn alone(bed: &mut Bed, end: u64) -> (f64, u64) {
    let begin = bed.now;
    let (mut sum, mut since, mut longest) = (0, None, 0);
    for at in (begin..=end).step_by(MS as usize / 4) {
        bed.run_until(at);
        if bed.dev.state().solo {
            sum += MS / 4;
            longest = longest.max(at - *since.get_or_insert(at));
        } else {
            since = None;
        }
    }
    (sum as f64 / (end - begin) as f64, longest)
}

/// A drive of 80 small requests a second: what is done together teaches little in 20 seconds.
#[test]
fn what_unlike_groups_do_alone_tells_what_their_requests_take() {
    for (weights, seed) in [([100, 100], 1), ([100, 100], 2), ([100, 300], 3)] {
        let mut bed = bed(100 * MS, 256, seed);
        let groups = unlike(&mut bed, weights, [64, 64]);
        let ios = bed.ios(&groups, 20 * SEC, 320 * SEC);
        let time = [ios[0] as f64, 8.0 * ios[1] as f64];
        let got: Vec<f64> = time.iter().map(|t| t / (time[0] + time[1])).collect();
        assert_shares(&format!("{weights:?}"), &got, &entitled(&weights), 0.03);
    }
}

#[test]
fn it_is_seldom_and_short() {
    let mut bed = bed(MS, 256, 1);
    unlike(&mut bed, [100, 100], [64, 64]);
    let (first, _) = alone(&mut bed, 5 * SEC);
    let (part, longest) = alone(&mut bed, 65 * SEC);
    report(&format!(
        "alone {first:.3}, then {part:.3}, {} ms",
        longest / MS
    ));
    assert!(first > 0.02, "{first}");
    assert!(part > 0.005 && part < 0.06, "{part}");
    // At 8 ms a request of eight at a time, 16 in each of three windows.
    assert!(longest < 200 * MS, "{longest}");
}

/// Six large requests do not fill the device. What they take is seen by what the others do when they
/// are alone, for which those wait seldom and not for long. Learned of both together it is as good here
/// (0.47), where nothing is lost between the two; see the simulator's drives for where it is not.
#[test]
fn what_few_requests_take_is_told_by_what_the_others_do_alone() {
    for seed in 1..=3 {
        let mut bed = bed(MS / 10, 256, seed);
        let groups = unlike(&mut bed, [100, 100], [64, 6]);
        let (first, _) = alone(&mut bed, SEC);
        let (part, longest) = alone(&mut bed, 5 * SEC);
        let ios = bed.ios(&groups, 5 * SEC, 10 * SEC);
        let got = 8.0 * ios[1] as f64 / (ios[0] as f64 + 8.0 * ios[1] as f64);
        report(&format!(
            "seed {seed}: alone {first:.4}, then {part:.4}, {} ms; the large ones have {got:.3}",
            longest / MS
        ));
        assert!(first > 0.0 && part < 0.01, "seed {seed}: {first}, {part}");
        assert!(longest < 45 * MS, "seed {seed}: {longest} ns");
        assert!((got - 0.5).abs() < 0.04, "seed {seed}: {got}");
    }
}

/// On a drive that takes too long for that it is given up and not tried again for a while, until it is
/// seen how slow the drive is: no longer than a few of its own requests take, 32 ms each.
#[test]
fn who_asks_for_few_does_not_wait_for_long_on_a_slow_drive() {
    let mut bed = bed(4 * MS, 256, 1);
    unlike(&mut bed, [100, 100], [64, 6]);
    let (part, longest) = alone(&mut bed, 40 * SEC);
    report(&format!("alone {part:.4}, {} ms", longest / MS));
    assert!(part > 0.0 && part < 0.015, "{part}");
    assert!(longest < 4 * 32 * MS, "{longest} ns");
}

/// By what who had it would have to make up for, by who asks for next to nothing or for much smaller
/// requests, and by there being nothing to learn.
#[test]
fn nobody_is_alone_where_it_would_harm_or_tell_nothing() {
    let mut few = bed(MS, 256, 1);
    unlike(&mut few, [100, 100], [64, 2]);
    let mut little = bed(MS, 256, 1);
    unlike(&mut little, [100, 100], [8, 64]);
    let mut light = bed(MS, 256, 1);
    unlike(&mut light, [10, 1000], [64, 64]);
    let mut alike = bed(MS, 256, 1);
    let root = alike.root();
    for name in ["a", "b"] {
        let group = alike.group(name, root, 100);
        alike.job(Job::new(group).depth(64));
    }
    for (what, mut bed) in [
        ("few", few),
        ("little", little),
        ("light", light),
        ("alike", alike),
    ] {
        assert_eq!(alone(&mut bed, 20 * SEC), (0.0, 0), "{what}");
    }
}

/// Somebody who comes in the midst of it is served before long, and all end.
#[test]
fn it_ends_when_somebody_comes() {
    let mut met = 0;
    for seed in 0..64 {
        let mut bed = bed(MS, 256, seed);
        unlike(&mut bed, [100, 100], [64, 64]);
        let root = bed.root();
        let late = bed.group("late", root, 100);
        while !bed.dev.state().solo {
            bed.run_until(bed.now + MS / 4);
        }
        bed.run_until(bed.now + seed * MS);
        met += u32::from(bed.dev.state().solo);
        let from = bed.now;
        let proc = bed.job(Job::new(late).between(from, from + 200 * MS));
        bed.run_until(from + 200 * MS);
        // What is in the device, and one of those that it waits for.
        let wait = bed.longest_wait(proc);
        assert!(wait < 40 * MS, "seed {seed}: {wait} ns");
        bed.drain();
    }
    assert!(met > 16, "{met}");
}

/// With fewer requests than all want, who is alone has those that become free.
#[test]
fn who_is_alone_finds_requests() {
    let mut bed = bed(MS, 32, 1);
    let groups = unlike(&mut bed, [100, 100], [64, 64]);
    let (part, _) = alone(&mut bed, 20 * SEC);
    assert!(part > 0.004, "{part}");
    let ios = bed.ios(&groups, 20 * SEC, 60 * SEC);
    let ratio = ios[0] as f64 / (8.0 * ios[1] as f64);
    report(&format!("{part:.3} {ratio:.3}"));
    assert!((ratio - 1.0).abs() < 0.08, "{ratio}");
}
