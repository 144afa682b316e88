//! A device that is kept idle for who is about to issue again, and nobody who waits for ever.

use disktime_core::{Fault, GroupId, Nanos, Request};

use crate::bed::{Bed, Disk, Job, MS, SEC, Service, US};

/// One after the other: 4 KB take a tenth of a millisecond, all else one.
fn by_size() -> Service {
    Box::new(
        |request: &Request, _, _| {
            if request.sectors <= 8 { 100 * US } else { MS }
        },
    )
}

/// One small request at a time beside many large ones, until the device is kept idle for the first of these.
fn kept_idle() -> (Bed, GroupId, usize) {
    let mut bed = Bed::new(Disk::new(1, 64, 0), by_size(), 1);
    let root = bed.root();
    let small = bed.group("small", root, 1000);
    let large = bed.group("large", root, 100);
    bed.job(
        Job::new(large)
            .depth(100)
            .sectors(256)
            .between(SEC / 10, u64::MAX),
    );
    let proc = bed.job(Job::new(small).think(80 * US));

    for _ in 0..400_000 {
        bed.run_until(bed.now + 10 * US);
        if bed.dev.state().holding {
            return (bed, small, proc);
        }
    }
    panic!("the device was never kept idle: {}", bed.dev.dump());
}

/// So much of what waits is dispatched when its time has come.
fn goes_on(bed: &mut Bed) {
    let before = bed.dev.counts().completed;
    bed.dev.set_checked(true);
    bed.run_until(bed.now + SEC);
    assert!(bed.dev.counts().completed > before + 100);
    bed.drain();
}

#[test]
fn idle_time_is_bounded_and_on_the_account_of_who_it_is_for() {
    let (mut bed, small, _) = kept_idle();
    let most = bed.dev.tunables().idle.0;
    let end = bed.dev.wake_at().unwrap().0;
    assert!(end <= bed.now + most, "until {end} at {}", bed.now);
    goes_on(&mut bed);
    let ids: Vec<_> = bed.names.keys().copied().collect();
    let stats = bed.snapshot(&ids);
    for (&id, stats) in ids.iter().zip(&stats) {
        assert_eq!(stats.idle > Nanos(0), id == small, "{id:?}: {stats:?}");
    }
}

#[test]
fn who_does_not_come_is_waited_for_once() {
    let (mut bed, small, proc) = kept_idle();
    bed.end(proc);
    let idle = |bed: &Bed| bed.dev.stats(small).unwrap().idle.0;
    let before = idle(&bed);
    bed.run_until(bed.now + SEC);
    let after = idle(&bed);
    let most = bed.dev.tunables().idle.0.min(300 * US);
    assert!(after <= before + most, "{before} {after}");
}

#[test]
fn nobody_waits_for_a_group_that_is_gone() {
    let (mut bed, small, proc) = kept_idle();
    bed.end(proc);
    bed.dev.remove_group(small).unwrap();
    assert!(!bed.dev.state().holding);
    goes_on(&mut bed);
}

#[test]
fn nobody_waits_where_that_is_no_longer_wanted() {
    let (mut bed, ..) = kept_idle();
    bed.tune(|tunables| tunables.idle = Nanos(0));
    assert!(!bed.dev.state().holding);
    goes_on(&mut bed);
}

#[test]
fn a_failed_device_keeps_nothing_idle() {
    let (mut bed, ..) = kept_idle();
    bed.dev.fail(Fault::Asked, Nanos(bed.now));
    assert!(!bed.dev.state().holding);
    goes_on(&mut bed);
}
