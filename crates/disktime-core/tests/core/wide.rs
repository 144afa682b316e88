//! More in flight than usual while all requests are alike.

use std::cell::Cell;
use std::rc::Rc;

use crate::bed::*;

/// What is in flight at a time as a rule.
const USUAL: u32 = 256;

/// 64 servers behind 1023 slots that do a request a microsecond together, and how long each takes.
fn bed(seed: u64) -> (Bed, Rc<Cell<u64>>) {
    let ns = Rc::new(Cell::new(60 * US));
    let takes = Rc::clone(&ns);
    let service = move |_: &_, _, rng: &mut Rng| takes.get() * 7 / 8 + rng.below(takes.get() / 4);
    let mut bed = Bed::new(Disk::new(64, 1023, 2048), Box::new(service), seed);
    // A million requests a second.
    bed.check_every = 1024;
    (bed, ns)
}

/// Two groups that ask for as much as there are requests.
fn deep(bed: &mut Bed, start: u64) {
    let root = bed.root();
    for name in ["a", "b"] {
        let group = bed.group(name, root, 100);
        bed.job(Job::new(group).depth(1024).between(start, u64::MAX));
    }
}

/// The most that may be at any of the next instants.
fn most(bed: &mut Bed, end: u64) -> u32 {
    let mut most = 0;
    while bed.now < end {
        bed.run_until(bed.now + MS / 4);
        most = most.max(bed.dev.state().depth);
    }
    most
}

#[test]
fn more_is_in_flight_when_all_has_been_alike_for_half_a_second() {
    let (mut bed, _) = bed(1);
    deep(&mut bed, 0);
    assert!(most(&mut bed, 500 * MS) <= USUAL);
    assert!(most(&mut bed, 600 * MS) > 3 * USUAL);
    assert!(bed.dev.state().inflight > 3 * USUAL);
}

/// As long as in a device whose cache of writes has filled.
#[test]
fn it_ends_when_all_takes_much_longer() {
    let (mut bed, takes) = bed(2);
    deep(&mut bed, 0);
    assert!(most(&mut bed, 600 * MS) > 3 * USUAL);
    takes.set(20 * takes.get());
    bed.run_until(800 * MS);
    assert!(most(&mut bed, 900 * MS) <= USUAL);
}

#[test]
fn it_ends_when_another_group_comes() {
    let (mut bed, _) = bed(3);
    deep(&mut bed, 0);
    let root = bed.root();
    let late = bed.group("late", root, 100);
    // So many that it is not light.
    bed.job(Job::new(late).depth(256).between(600 * MS, u64::MAX));
    assert!(most(&mut bed, 600 * MS) > 3 * USUAL);
    bed.run_until(620 * MS);
    assert!(most(&mut bed, 750 * MS) <= USUAL);
}

#[test]
fn it_ends_when_somebody_asks_for_another_size() {
    let (mut bed, _) = bed(4);
    let root = bed.root();
    let group = bed.group("both", root, 100);
    deep(&mut bed, 0);
    bed.job(Job::new(group).depth(256));
    assert!(most(&mut bed, 600 * MS) > 3 * USUAL);
    let other = Job::new(group).depth(256).sectors(16);
    bed.job(other.between(600 * MS, u64::MAX));
    bed.run_until(620 * MS);
    assert!(most(&mut bed, 750 * MS) <= USUAL);
}
