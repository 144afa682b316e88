//! Readers and writers that have a flash drive by turns.

use std::cell::Cell;
use std::rc::Rc;

use disktime_core::{Class, Dir, Entity, Fault, GroupId, Nanos, Request, Spell};

use crate::bed::*;

const READ: u64 = 100 * US;
const WRITE: u64 = 5 * MS;

/// Eight servers behind so many slots: reads wait in the device for writes that take fifty times
/// as long.
fn bed(tags: u32, seed: u64) -> Bed {
    let service = |request: &Request, _, rng: &mut Rng| {
        let ns = match request.dir {
            Dir::Read => READ,
            Dir::Write => WRITE,
        };
        ns * 7 / 8 + rng.below(ns / 4)
    };
    Bed::new(Disk::new(8, 64, tags), Box::new(service), seed)
}

fn writes(group: GroupId) -> Job {
    Job {
        dir: Dir::Write,
        ..Job::new(group)
    }
}

fn groups(bed: &mut Bed, weights: [u32; 2]) -> [GroupId; 2] {
    let root = bed.root();
    [
        bed.group("reader", root, weights[0]),
        bed.group("writer", root, weights[1]),
    ]
}

/// Runs until `end`, and says in which part of the time from now on it was somebody's turn, and in
/// which the readers'.
fn turns(bed: &mut Bed, end: u64) -> (f64, f64) {
    let begin = bed.now;
    let (mut all, mut readers, mut looks) = (0, 0, 0);
    for at in (begin..=end).step_by(MS as usize / 4) {
        bed.run_until(at);
        let spell = bed.dev.state().spell;
        looks += 1;
        all += u32::from(spell.is_some());
        readers += u32::from(spell == Some(Spell::Readers));
    }
    (
        f64::from(all) / f64::from(looks),
        f64::from(readers) / f64::from(looks),
    )
}

/// By what each does alone, which is the time of the servers, and by what they are charged.
#[test]
fn each_has_its_part_by_weight() {
    for (weights, seed) in [
        ([100, 100], 1),
        ([100, 100], 2),
        ([300, 100], 3),
        ([100, 300], 4),
    ] {
        let mut bed = bed(256, seed);
        let groups = groups(&mut bed, weights);
        bed.job(Job::new(groups[0]).depth(32));
        bed.job(writes(groups[1]).depth(64));
        bed.run_until(2 * SEC);
        let before = bed.snapshot(&groups);
        let (_, readers) = turns(&mut bed, 12 * SEC);
        let after = bed.snapshot(&groups);
        let had = |of: usize| (after[of].total_ios() - before[of].total_ios()) as f64;
        let time = [had(0) * READ as f64, had(1) * WRITE as f64];
        let sum = time[0] + time[1];
        let got = time.map(|time| time / sum);
        let paid = [0, 1].map(|of| (after[of].total_time() - before[of].total_time()).0 as f64);
        let charged = paid[0] + paid[1];
        let paid = paid.map(|time| time / charged);
        let used = sum / (8 * 10 * SEC) as f64;
        report(&format!(
            "{weights:?}: {got:.3?}, charged {paid:.3?}, used {used:.3}, readers' {readers:.3}"
        ));
        assert!(readers > 0.05, "{weights:?}: no turns");
        assert_shares(&format!("{weights:?}"), &got, &entitled(&weights), 0.07);
        assert_shares(
            &format!("{weights:?}, charged"),
            &paid,
            &entitled(&weights),
            0.08,
        );
        assert!(used > 0.85, "{weights:?}: {used:.3} of the device is used");
    }
}

/// What is written in a turn is divided by weight, whoever could send more of it.
#[test]
fn each_of_two_writers_has_its_part_by_weight() {
    for (weights, seed) in [([100, 100], 1), ([300, 100], 2), ([100, 200], 3)] {
        let mut bed = bed(256, seed);
        let root = bed.root();
        let reader = bed.group("reader", root, weights[0] + weights[1]);
        let writers = [
            bed.group("many", root, weights[0]),
            bed.group("few", root, weights[1]),
        ];
        bed.job(Job::new(reader).depth(32));
        bed.job(writes(writers[0]).depth(64));
        bed.job(writes(writers[1]).depth(16));
        bed.run_until(2 * SEC);
        let before = bed.snapshot(&writers);
        let (_, readers) = turns(&mut bed, 12 * SEC);
        let after = bed.snapshot(&writers);
        let had = [0, 1].map(|of| (after[of].total_ios() - before[of].total_ios()) as f64);
        let got = had.map(|ios| ios / (had[0] + had[1]));
        report(&format!("{weights:?}: {got:.3?}, readers' {readers:.3}"));
        assert!(readers > 0.05, "{weights:?}: no turns");
        assert_shares(&format!("{weights:?}"), &got, &entitled(&weights), 0.07);
    }
}

/// Two readers that are unlike and a writer: each has its part of the servers by weight, though the requests of one
/// take eight times as long.
#[test]
fn each_of_two_readers_has_its_part_by_weight() {
    for (weights, seed) in [([100, 100], 1), ([200, 100], 2), ([100, 200], 3)] {
        let (mut bed, groups) = three(256, weights, seed, Rc::default());
        bed.run_until(2 * SEC);
        let before = bed.snapshot(&groups);
        let (_, readers) = turns(&mut bed, 12 * SEC);
        let after = bed.snapshot(&groups);
        let had = |of: usize| (after[of].total_ios() - before[of].total_ios()) as f64;
        let time = [had(0), had(1) * 8.0];
        let sum = time[0] + time[1];
        let got = time.map(|time| time / sum);
        report(&format!("{weights:?}: {got:.3?}, readers' {readers:.3}"));
        assert!(readers > 0.05, "{weights:?}: no turns");
        assert_shares(&format!("{weights:?}"), &got, &entitled(&weights), 0.1);
    }
}

/// A drive that stands still says nothing of how quick it can be, whenever that begins.
#[test]
fn a_drive_that_stands_still_is_not_known() {
    for from in (0..400).step_by(14) {
        let more = Rc::new(Cell::new(0));
        let (mut bed, groups) = three(256, [100, 100], from, more.clone());
        bed.run_until(from * MS);
        more.set(1500 * MS);
        bed.run_until((from + 20) * MS);
        more.set(0);
        let ios = bed.ios(&groups, 4 * SEC, 5 * SEC);
        assert!(ios.iter().all(|&ios| ios > 100), "{from} ms: {ios:?}");
        bed.drain();
    }
}

/// Whatever becomes of readers while one of them has the drive for itself and others wait: they come, go, are of
/// another class or weight, and write; the device is tuned, and fails. Nobody is left waiting.
#[test]
fn nobody_is_left_waiting_where_readers_change_in_their_turn() {
    for seed in 1..=12 {
        // No lack of requests: who waits for one while it is not its slice is passed over (gate.c).
        let (mut bed, groups) = three(0, [100, 100], seed, Rc::default());
        let root = bed.root();
        let mut rng = Rng(seed);
        for n in 0..10 {
            let own = bed.group(&format!("other{n}"), root, 50 + rng.below(300) as u32);
            let group = if rng.below(3) > 0 { own } else { groups[n % 2] };
            let start = rng.below(3 * SEC);
            let dir = if rng.below(5) > 0 {
                Dir::Read
            } else {
                Dir::Write
            };
            let depth = 1 + rng.below(48) as u32;
            let job = Job::new(group).depth(depth).sectors(8 << rng.below(6));
            let stop = start + rng.below(SEC);
            bed.job(Job { dir, ..job }.between(start, stop));
        }
        for step in 1..150 {
            bed.run_until(step * 20 * MS);
            let entity = Entity::Group(groups[rng.below(2) as usize]);
            match rng.below(24) {
                0..4 => bed.set_weight(entity, 10 + rng.below(900) as u32),
                4 | 5 => {
                    let class = [Class::Rt, Class::Be, Class::Idle][rng.below(3) as usize];
                    bed.dev.set_class(entity, class, Nanos(bed.now)).unwrap();
                }
                6 => bed.tune(|tunables| tunables.strict = !tunables.strict),
                7 => {
                    bed.dev.fail(Fault::Lost, Nanos(bed.now));
                    bed.run_until(step * 20 * MS + 5 * MS);
                    bed.dev.rearm(Nanos(bed.now));
                }
                _ => {}
            }
        }
        for group in groups {
            let class = bed
                .dev
                .set_class(Entity::Group(group), Class::Be, Nanos(bed.now));
            class.unwrap();
        }
        let ios = bed.ios(&groups, 6 * SEC, 7 * SEC);
        assert!(ios.iter().all(|&ios| ios > 100), "seed {seed}: {ios:?}");
        bed.drain();
    }
}

/// Small and large reads, and writes as above; all that begin now take `more`.
fn three(tags: u32, weights: [u32; 2], seed: u64, more: Rc<Cell<u64>>) -> (Bed, [GroupId; 2]) {
    let service = move |request: &Request, _, rng: &mut Rng| {
        let ns = match request.dir {
            Dir::Read if request.sectors > 8 => 8 * READ,
            Dir::Read => READ,
            Dir::Write => WRITE,
        };
        ns * 7 / 8 + rng.below(ns / 4) + more.get()
    };
    let mut bed = Bed::new(Disk::new(8, 64, tags), Box::new(service), seed);
    let root = bed.root();
    let readers = [
        bed.group("small", root, weights[0]),
        bed.group("large", root, weights[1]),
    ];
    let writer = bed.group("writer", root, 100);
    bed.job(Job::new(readers[0]).depth(16));
    bed.job(Job::new(readers[1]).depth(48).sectors(256));
    bed.job(writes(writer).depth(64));
    (bed, readers)
}

/// Whoever waits for a request while the writers' are parked gets the readers' all the same.
#[test]
fn readers_find_requests_while_writers_hold_theirs() {
    for tags in [24, 64, 128] {
        let mut bed = bed(tags, 1);
        let groups = groups(&mut bed, [100, 100]);
        bed.job(Job::new(groups[0]).depth(tags));
        bed.job(writes(groups[1]).depth(tags));
        let ios = bed.ios(&groups, 3 * SEC, 13 * SEC);
        let time = [ios[0] * READ, ios[1] * WRITE].map(|ns| ns as f64 / (8 * 10 * SEC) as f64);
        report(&format!("{tags} requests: {time:.3?}"));
        assert!(
            time.iter().all(|&time| time > 0.35),
            "{tags} requests: {time:.3?}"
        );
        bed.drain();
    }
}

#[test]
fn writers_go_on_when_nobody_reads_any_more() {
    let mut bed = bed(256, 1);
    let groups = groups(&mut bed, [900, 100]);
    bed.job(Job::new(groups[0]).depth(32).between(0, 5 * SEC));
    let writer = bed.job(writes(groups[1]).depth(64));
    let (all, readers) = turns(&mut bed, 5 * SEC);
    assert!(all > 0.9 && readers > 0.5, "{all:.3}, {readers:.3}");
    bed.run_until(5 * SEC + 20 * MS);
    let before = bed.done(writer);
    bed.run_until(7 * SEC + 20 * MS);
    let used = ((bed.done(writer) - before) * WRITE) as f64 / (8 * 2 * SEC) as f64;
    assert!(used > 0.97, "{used:.3}");
    assert_eq!(bed.dev.state().spell, None);
}

/// Who has one read at a time, or two, is looked after by the depth; who has three writes, or has
/// just committed, is nobody to be parked.
#[test]
fn nobody_is_parked_for_little_or_with_little() {
    let mut light = bed(256, 1);
    let both = groups(&mut light, [100, 100]);
    light.job(Job::new(both[0]).depth(2));
    light.job(writes(both[1]).depth(64));
    let (_, readers) = turns(&mut light, 10 * SEC);
    assert!(readers < 0.01, "for two reads: {readers:.3}");

    let mut few = bed(256, 1);
    let both = groups(&mut few, [100, 100]);
    few.job(Job::new(both[0]).depth(32));
    few.job(writes(both[1]).depth(3));
    let (tried, _) = turns(&mut few, 10 * SEC);
    assert!(tried == 0.0, "with three writes: {tried:.3}");

    let mut syncs = bed(256, 1);
    let both = groups(&mut syncs, [100, 100]);
    syncs.job(Job::new(both[0]).depth(32));
    syncs.job(writes(both[1]).depth(64));
    for at in (0..10 * SEC).step_by(100 * MS as usize) {
        syncs.run_until(at);
        syncs.dev.commit_begin(Nanos(at));
        syncs.dev.commit_end(Nanos(at), Nanos(at + 1));
        assert_eq!(syncs.dev.state().parked, 0, "who commits is parked");
        assert_eq!(syncs.dev.state().spell, None, "for nobody it is tried");
    }
}

/// Reads that wait for each other only: it is tried, and then less and less.
#[test]
fn where_writes_harm_nobody_there_are_no_turns() {
    let mut bed = Bed::new(Disk::new(8, 64, 256), constant(200 * US), 1);
    let groups = groups(&mut bed, [100, 100]);
    bed.job(Job::new(groups[0]).depth(48));
    bed.job(writes(groups[1]).depth(64));
    let (first, _) = turns(&mut bed, 20 * SEC);
    let (all, readers) = turns(&mut bed, 120 * SEC);
    report(&format!("tried {first:.3} of the time, then {all:.4}"));
    assert!(first > 0.0, "it was not tried");
    assert!(
        first < 0.05 && all < 0.01 && readers == 0.0,
        "{first:.3}, {all:.4}, {readers:.4}"
    );
}
