//! Commits beside who writes behind: who is held back for them.

use disktime_core::{Dir, Nanos};

use crate::bed::*;

/// A flusher of one group, and commits whose flushes take long: how often something was parked.
fn parked(with_appends: bool, seed: u64) -> u32 {
    let mut bed = Bed::new(Disk::new(8, 32, 256), constant(MS), seed);
    let root = bed.root();
    let behind = bed.group("behind", root, 100);
    let commits = bed.group("commits", root, 100);
    bed.job(Job::new(behind).depth(64).writeback());
    // Who reads waits for no commit.
    bed.job(Job::new(commits).think(3 * MS));
    if with_appends {
        bed.job(Job {
            dir: Dir::Write,
            ..Job::new(commits).think(20 * MS)
        });
    }
    let mut parked = 0;
    for number in 0..200 {
        let begun = bed.now;
        bed.dev.commit_begin(Nanos(begun));
        // Mostly slow, or it would not be known that they need not be.
        let took = if number % 10 == 0 { MS } else { 30 * MS };
        bed.run_until(begun + took);
        bed.dev.commit_end(Nanos(begun), Nanos(bed.now));
        parked += u32::from(bed.dev.state().parked > 0);
        bed.run_until(bed.now + 5 * MS);
    }
    parked
}

#[test]
fn who_writes_behind_is_held_back_for_others_commits_only() {
    for seed in 1..4 {
        let (alone, beside) = (parked(false, seed), parked(true, seed));
        report(&format!(
            "parked {alone} times alone, {beside} beside appends"
        ));
        assert_eq!(alone, 0, "held back for the file system's own commits");
        assert!(beside > 20, "not held back: {beside}");
    }
}

/// The most requests in the device while a flusher writes 1 MB at a time in bursts, beside appends
/// of another group, which may be committed; and how many the flusher had done.
fn in_bursts(commits: bool, seed: u64) -> (u32, u64) {
    let mut bed = Bed::new(Disk::new(8, 32, 256), constant(10 * MS), seed);
    let root = bed.root();
    let behind = bed.group("behind", root, 100);
    let appends = bed.group("appends", root, 100);
    let burst = Job::new(behind).depth(64).sectors(2048).flips(SEC, SEC);
    // It is known by then that somebody waits for commits.
    let burst = burst.between(SEC / 2, u64::MAX);
    let flusher = bed.job(burst.writeback());
    bed.job(Job {
        dir: Dir::Write,
        ..Job::new(appends).think(20 * MS)
    });
    let mut most = 0;
    for _ in 0..1000 {
        let begun = bed.now;
        if commits {
            bed.dev.commit_begin(Nanos(begun));
        }
        bed.run_until(begun + MS);
        if commits {
            // Never slow: the flusher has no turns, but those that are tried.
            bed.dev.commit_end(Nanos(begun), Nanos(bed.now));
        }
        bed.run_until(bed.now + 9 * MS);
        most = most.max(bed.dev.state().inflight);
    }
    (most, bed.done(flusher))
}

#[test]
fn a_burst_of_a_flusher_is_let_in_little_by_little_while_somebody_commits() {
    for seed in 1..4 {
        let (all, _) = in_bursts(false, seed);
        let (few, done) = in_bursts(true, seed);
        report(&format!(
            "in the device {all} without commits, {few} beside them"
        ));
        assert!(all >= 24, "a burst is no burst: {all}");
        // Two megabytes, and one append.
        assert!(few <= 3, "all of a burst at once: {few}");
        assert!(done > 300, "the flusher hardly goes on: {done}");
    }
}
