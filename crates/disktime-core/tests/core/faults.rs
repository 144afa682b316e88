//! When something is wrong: arrival order, nothing lost, and back again.

use disktime_core::{
    Class, Device, Dir, Entity, Fault, GroupId, Nanos, QueueId, Request, Tunables, Weight,
};

use crate::bed::*;

fn device(depth: u32, rotational: bool) -> (Device, Vec<GroupId>, Vec<QueueId>) {
    let mut dev = Device::new(depth, 64, rotational, Nanos(0)).unwrap();
    dev.set_checked(true);
    let weight = Weight::default();
    let groups: Vec<GroupId> = (0..3)
        .map(|_| dev.add_group(dev.root(), weight, Class::Be).unwrap())
        .collect();
    let queues = groups
        .iter()
        .map(|&group| {
            dev.add_queue(group, true, weight, Class::Be, Nanos(0))
                .unwrap()
        })
        .collect();
    (dev, groups, queues)
}

/// The same, each group with an idle child, so that its own queues stand below a leaf.
fn device_of_parents(depth: u32, rotational: bool) -> (Device, Vec<GroupId>, Vec<QueueId>) {
    let (mut dev, groups, queues) = device(depth, rotational);
    for &group in &groups {
        dev.add_group(group, Weight::default(), Class::Be).unwrap();
    }
    (dev, groups, queues)
}

fn at(sector: u64) -> Request {
    Request {
        sector,
        sectors: 8,
        ..Request::default()
    }
}

#[test]
fn failed_device_serves_in_arrival_order_and_loses_nothing() {
    for rotational in [false, true] {
        let (mut dev, _, queues) = device(4, rotational);
        let mut rng = Rng(1);
        let mut items = Vec::new();
        for number in 0..60 {
            let queue = queues[rng.below(3) as usize];
            items.push(
                dev.insert(queue, at(rng.below(1 << 20)), Nanos(number * US))
                    .unwrap(),
            );
        }
        dev.fail(Fault::Asked, Nanos(MS));
        // Later ones stand behind.
        for number in 0..20 {
            let queue = queues[rng.below(3) as usize];
            items.push(
                dev.insert(queue, at(rng.below(1 << 20)), Nanos(MS + number))
                    .unwrap(),
            );
        }
        let mut now = 2 * MS;
        let mut served = Vec::new();
        while let Some(item) = dev.dispatch(Nanos(now)) {
            served.push(item);
            now += MS;
            dev.complete(item, Nanos(now)).unwrap();
        }
        assert_eq!(served, items);
        assert_eq!(dev.state().fault, Some(Fault::Asked));
        assert_eq!(dev.counts().faults, 1);
        assert!(Device::fault_name(Some(Fault::Asked)).contains("fifo"));
    }
}

/// Express requests that waited when the device failed are not forgotten.
#[test]
fn express_requests_survive_a_fault() {
    let (mut dev, _, queues) = device(1, false);
    let first = dev.insert(queues[0], at(0), Nanos(0)).unwrap();
    let plain = dev.insert(queues[1], at(8), Nanos(0)).unwrap();
    let express = dev
        .insert(
            queues[2],
            Request {
                express: true,
                ..at(16)
            },
            Nanos(0),
        )
        .unwrap();
    assert_eq!(dev.dispatch(Nanos(1)), Some(express));
    let again = dev
        .insert(
            queues[2],
            Request {
                express: true,
                ..at(24)
            },
            Nanos(1),
        )
        .unwrap();
    dev.fail(Fault::Asked, Nanos(2));
    dev.complete(express, Nanos(3)).unwrap();
    for expected in [again, first, plain] {
        let item = dev.dispatch(Nanos(4)).unwrap();
        assert_eq!(item, expected);
        dev.complete(item, Nanos(5)).unwrap();
    }
}

/// After any length of service: those who stood far ahead and those who stood behind start even.
#[test]
fn rearm_restores_shares() {
    for rotational in [false, true] {
        let disk = Disk::new(1, 1, 64);
        let disk = if rotational { disk.rotational() } else { disk };
        let mut bed = Bed::new(disk, constant(4 * MS), 1);
        let root = bed.root();
        let groups = [40, 20, 10].map(|weight| bed.group(&format!("w{weight}"), root, weight));
        for group in groups {
            bed.job(Job::new(group).depth(32));
        }
        bed.check_every = 64;
        // Longer than any lead that is kept.
        let mut at = 250 * SEC;
        let got = bed.shares(&groups, 2 * SEC, at);
        assert_shares("before", &got, &entitled(&[40, 20, 10]), 0.01);
        bed.dev.fail(Fault::Asked, Nanos(at));
        at += 10 * SEC;
        let got = bed.shares(&groups, at - 8 * SEC, at);
        report(&format!("in arrival order: {got:.3?}"));
        assert!(
            (got[0] - 40.0 / 70.0).abs() > 0.02,
            "the fault changed nothing"
        );
        assert!(bed.dev.rearm(Nanos(at)));
        let got = bed.shares(&groups, at + SEC, at + 31 * SEC);
        assert_shares("rearmed", &got, &entitled(&[40, 20, 10]), 0.01);
        bed.drain();
    }
}

/// An entity vanishes from its ready line: the device notices, serves on, and can be rearmed.
#[test]
fn damaged_ready_line_is_survived() {
    for level in 0..3 {
        for rotational in [false, true] {
            let (mut dev, groups, queues) = device_of_parents(2, rotational);
            let mut expected = Vec::new();
            for number in 0..30u64 {
                expected.push(
                    dev.insert(queues[(number % 3) as usize], at(number * 64), Nanos(0))
                        .unwrap(),
                );
            }
            dev.set_checked(false);
            let damaged: Vec<Entity> = match level {
                0 => groups.iter().map(|&group| Entity::Group(group)).collect(),
                1 => vec![Entity::Leaf(groups[1])],
                _ => vec![Entity::Queue(queues[1])],
            };
            for entity in damaged {
                assert!(dev.corrupt_line(entity, false).unwrap());
            }
            let mut served = Vec::new();
            let mut now = 0;
            let mut rearmed = false;
            for round in 0.. {
                assert!(round < 200, "{}", dev.dump());
                let Some(item) = dev.dispatch(Nanos(now)) else {
                    match dev.wake_at() {
                        Some(wake) => {
                            now = wake.0;
                            dev.tick(Nanos(now));
                            continue;
                        }
                        None => break,
                    }
                };
                served.push(item);
                now += MS;
                dev.complete(item, Nanos(now)).unwrap();
                if served.len() == 25 {
                    assert_eq!(dev.state().fault, Some(Fault::Lost), "level {level}");
                    assert!(dev.rearm(Nanos(now)), "{:?}", dev.check());
                    dev.set_checked(true);
                    rearmed = true;
                }
            }
            assert!(rearmed);
            served.sort_unstable();
            expected.sort_unstable();
            assert_eq!(served, expected, "level {level}: lost");
            assert_eq!(dev.counts().empty, 0);
            assert_eq!(dev.state().queued, 0);
        }
    }
}

/// Those who wait at the gate when its lines are damaged get their requests all the same.
#[test]
fn damaged_gate_line_is_survived() {
    for level in 0..3 {
        let (mut dev, groups, queues) = device_of_parents(2, false);
        let mut waiters = Vec::new();
        for number in 0..12 {
            waiters.push(dev.gate_wait(queues[number % 3], Nanos(0)).unwrap());
        }
        dev.set_checked(false);
        let damaged: Vec<Entity> = match level {
            0 => groups.iter().map(|&group| Entity::Group(group)).collect(),
            1 => groups.iter().map(|&group| Entity::Leaf(group)).collect(),
            _ => vec![Entity::Queue(queues[1])],
        };
        for entity in damaged {
            assert!(dev.corrupt_line(entity, true).unwrap());
        }
        let mut granted = Vec::new();
        let mut now = 0;
        for _ in 0..100 {
            now += MS;
            if let Some(waiter) = dev.gate_grant(Nanos(now)) {
                granted.push(waiter);
                let queue = dev.waiter_queue(waiter).unwrap();
                dev.insert(queue, at(now), Nanos(now)).unwrap();
                dev.gate_settle(waiter).unwrap();
            }
            while let Some(item) = dev.dispatch(Nanos(now)) {
                dev.complete(item, Nanos(now)).unwrap();
            }
        }
        granted.sort_unstable();
        waiters.sort_unstable();
        assert_eq!(
            granted,
            waiters,
            "level {level}: somebody waits for ever\n{}",
            dev.dump()
        );
        assert_eq!(dev.state().fault, Some(Fault::Lost));
        assert!(dev.rearm(Nanos(now)), "{:?}", dev.check());
        dev.check().unwrap();
    }
}

/// A request that takes longer than any charge counts (a suspended disk) is no fault, and does not
/// stand in the way of rearming.
#[test]
fn endless_request_is_not_charged_in_full_and_breaks_nothing() {
    let (mut dev, groups, queues) = device(1, false);
    let item = dev.insert(queues[0], at(0), Nanos(0)).unwrap();
    assert_eq!(dev.dispatch(Nanos(0)), Some(item));
    let charge = dev.complete(item, Nanos(3600 * SEC)).unwrap();
    assert_eq!(charge, Nanos(10 * SEC));
    dev.check().unwrap();
    dev.fail(Fault::Asked, Nanos(3600 * SEC));
    assert!(dev.rearm(Nanos(3600 * SEC)));
    assert_eq!(dev.stats(groups[0]).unwrap().total_time(), Nanos(10 * SEC));
}

#[test]
fn watch_finds_a_request_that_waits_while_others_are_served() {
    let (mut dev, _, queues) = device(1, false);
    // Sound, but not served: as long as nobody else is, nothing is wrong.
    dev.insert(queues[0], at(0), Nanos(0)).unwrap();
    dev.watch(Nanos(1000 * SEC));
    assert_eq!(dev.state().fault, None);
}

/// Work for an empty device that nobody asks for: whoever had to be told was not.
#[test]
fn watch_counts_when_nobody_asks_for_work() {
    let (mut dev, _, queues) = device(1, false);
    dev.insert(queues[0], at(0), Nanos(0)).unwrap();
    dev.insert(queues[0], at(8), Nanos(0)).unwrap();
    dev.watch(Nanos(MS));
    assert_eq!(dev.counts().unasked, 0, "as good as at once");
    let item = dev.dispatch(Nanos(MS)).unwrap();
    dev.watch(Nanos(10 * SEC));
    assert_eq!(dev.counts().unasked, 0, "the device takes its time");
    dev.complete(item, Nanos(10 * SEC)).unwrap();
    dev.watch(Nanos(11 * SEC));
    assert_eq!(dev.counts().unasked, 1);
    let item = dev.dispatch(Nanos(11 * SEC)).unwrap();
    dev.complete(item, Nanos(11 * SEC)).unwrap();
    dev.watch(Nanos(20 * SEC));
    assert_eq!(dev.counts().unasked, 1, "there is nothing to be done");
}

/// Weights that make one group's turn come once in an hour are legitimate.
#[test]
fn watch_does_not_mistake_a_small_share_for_a_fault() {
    let mut bed = Bed::new(Disk::new(1, 1, 64), constant(20 * MS), 1);
    let root = bed.root();
    let outer = bed.group("outer", root, 1);
    let inner = bed.group("inner", outer, 1);
    let brother = bed.group("brother", outer, 10_000);
    let busy = bed.group("busy", root, 10_000);
    for group in [inner, brother, busy] {
        bed.job(Job::new(group).depth(4));
    }
    bed.check_every = 256;
    for second in 1..1000 {
        bed.run_until(second * SEC);
        bed.dev.watch(Nanos(second * SEC));
        assert_eq!(bed.dev.state().fault, None, "after {second} s");
    }
}

/// Misuse is an error, never undefined.
#[test]
fn misuse_is_refused() {
    use disktime_core::Error;

    let (mut dev, groups, queues) = device(1, false);
    let item = dev.insert(queues[0], at(0), Nanos(0)).unwrap();
    assert_eq!(
        dev.complete(item, Nanos(0)),
        Err(Error::State("dispatched"))
    );
    assert_eq!(dev.requeue(item, Nanos(0)), Err(Error::State("dispatched")));
    assert_eq!(
        dev.insert_again(item, at(0), Nanos(0)),
        Err(Error::State("free"))
    );
    assert_eq!(dev.remove_queue(queues[0]), Err(Error::Busy("queue")));
    assert_eq!(dev.remove_group(groups[0]), Err(Error::Busy("group")));
    assert_eq!(dev.remove_group(dev.root()), Err(Error::Busy("group")));
    assert_eq!(dev.dispatch(Nanos(1)), Some(item));
    assert_eq!(
        dev.remove(item, Nanos(1)),
        Err(Error::State("queued or free"))
    );
    assert_eq!(dev.grow(item, 0, 16), Err(Error::State("queued")));
    dev.requeue(item, Nanos(2)).unwrap();
    // Given back: its queue must stay for it.
    assert_eq!(dev.remove_queue(queues[0]), Err(Error::Busy("queue")));
    dev.insert_again(
        item,
        Request {
            head: true,
            ..at(0)
        },
        Nanos(2),
    )
    .unwrap();
    assert_eq!(dev.dispatch(Nanos(3)), Some(item));
    dev.complete(item, Nanos(4)).unwrap();
    assert_eq!(dev.complete(item, Nanos(5)), Err(Error::Unknown("item")));
    dev.remove_queue(queues[0]).unwrap();
    assert_eq!(
        dev.insert(queues[0], at(0), Nanos(5)),
        Err(Error::Unknown("queue"))
    );
    dev.remove_group(groups[0]).unwrap();
    assert_eq!(dev.stats(groups[0]), Err(Error::Unknown("group")));
    let waiter = dev.gate_wait(queues[1], Nanos(6)).unwrap();
    assert_eq!(dev.gate_settle(waiter), Err(Error::State("granted")));
    assert_eq!(dev.gate_cancel(waiter, Nanos(7)), Ok(false));
    assert_eq!(
        dev.gate_cancel(waiter, Nanos(7)),
        Err(Error::Unknown("waiter"))
    );
    assert_eq!(Weight::new(0), Err(Error::Weight(0)));
    assert_eq!(Weight::new(10_001), Err(Error::Weight(10_001)));
    let writeback = dev.add_group(dev.root(), Weight::default(), Class::Writeback);
    assert_eq!(writeback, Err(Error::ClassOfGroup(Class::Writeback)));
    let mut deep = dev.root();
    for _ in 0..disktime_core::MAX_DEPTH {
        deep = dev.add_group(deep, Weight::default(), Class::Be).unwrap();
    }
    assert_eq!(
        dev.add_group(deep, Weight::default(), Class::Be),
        Err(Error::TooDeep)
    );
    // As deep as can be, it works.
    let queue = dev
        .add_queue(deep, true, Weight::default(), Class::Be, Nanos(8))
        .unwrap();
    let item = dev
        .insert(
            queue,
            Request {
                dir: Dir::Write,
                ..at(0)
            },
            Nanos(8),
        )
        .unwrap();
    assert_eq!(dev.dispatch(Nanos(9)), Some(item));
    dev.complete(item, Nanos(10)).unwrap();
}

/// Turns end while something is in flight that somebody waits for. Without them nobody is told when it is done, and
/// it was taken to be there for ever when there were turns again.
#[test]
fn what_a_group_waits_for_is_forgotten_with_its_turns() {
    let (mut dev, _, queues) = device(2, false);
    let tunables = dev.tunables();
    let turns = |slice| Tunables {
        slice: Nanos(slice),
        idle: Nanos(8 * MS),
        ..tunables
    };
    dev.tune(turns(10 * MS), Nanos(0));
    let first = dev.insert(queues[0], at(0), Nanos(0)).unwrap();
    assert_eq!(dev.dispatch(Nanos(1)), Some(first));
    dev.complete(first, Nanos(MS)).unwrap();
    let express = Request {
        express: true,
        ..at(16)
    };
    let link = dev.insert(queues[1], express, Nanos(MS + 1)).unwrap();
    assert_eq!(dev.dispatch(Nanos(MS + 2)), Some(link));
    assert!(dev.dump().contains(" links=1"), "{}", dev.dump());
    dev.tune(turns(0), Nanos(MS + 3));
    dev.complete(link, Nanos(2 * MS)).unwrap();
    dev.tune(turns(10 * MS), Nanos(2 * MS + 1));
    assert!(!dev.dump().contains(" links=1"), "{}", dev.dump());
}
