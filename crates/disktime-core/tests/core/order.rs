//! Order among the requests of one process.

use disktime_core::{Class, Device, Dir, ItemId, Nanos, Order, QueueId, Request, Tunables, Weight};

use crate::bed::*;

fn device(order: Order) -> (Device, QueueId) {
    let mut dev = Device::new(1, 64, false, Nanos(0)).unwrap();
    dev.set_checked(true);
    let tunables = dev.tunables();
    dev.tune(Tunables { order, ..tunables }, Nanos(0));
    let queue = dev
        .add_queue(dev.root(), true, Weight::default(), Class::Be, Nanos(0))
        .unwrap();
    (dev, queue)
}

fn at(sector: u64) -> Request {
    Request {
        sector,
        sectors: 8,
        ..Request::default()
    }
}

/// Sectors in the order in which they are dispatched.
fn sweep(dev: &mut Device, mut now: u64) -> Vec<u64> {
    let mut sectors = Vec::new();
    while let Some(item) = dev.dispatch(Nanos(now)) {
        sectors.push(dev.item_state(item).unwrap().request.sector);
        now += MS;
        dev.complete(item, Nanos(now)).unwrap();
    }
    sectors
}

#[test]
fn order_is_by_sector_one_way_or_by_arrival() {
    let arrivals = [500, 100, 900, 300, 108];
    for (order, want) in [
        (Order::Cfq, [100, 108, 300, 500, 900]),
        (Order::Deadline, [100, 108, 300, 500, 900]),
        (Order::Fifo, arrivals),
    ] {
        let (mut dev, queue) = device(order);
        for sector in arrivals {
            dev.insert(queue, at(sector), Nanos(0)).unwrap();
        }
        assert_eq!(sweep(&mut dev, MS), want, "{order:?}");
    }
    // From where the last one ended, and around.
    let (mut dev, queue) = device(Order::Cfq);
    dev.insert(queue, at(600), Nanos(0)).unwrap();
    assert_eq!(sweep(&mut dev, MS), [600]);
    for sector in arrivals {
        dev.insert(queue, at(sector), Nanos(10 * MS)).unwrap();
    }
    assert_eq!(sweep(&mut dev, 11 * MS), [900, 100, 108, 300, 500]);
}

#[test]
fn request_past_its_expiry_goes_first() {
    for (order, dir, expiry) in [
        (Order::Cfq, Dir::Read, 250),
        (Order::Cfq, Dir::Write, 500),
        (Order::Deadline, Dir::Read, 500),
        (Order::Deadline, Dir::Write, 5000),
    ] {
        for late in [false, true] {
            let (mut dev, queue) = device(order);
            dev.insert(queue, Request { dir, ..at(900) }, Nanos(0))
                .unwrap();
            dev.insert(queue, at(100), Nanos(expiry * MS)).unwrap();
            let now = expiry * MS + u64::from(late) * MS;
            let first = dev.dispatch(Nanos(now)).unwrap();
            let sector = dev.item_state(first).unwrap().request.sector;
            assert_eq!(sector, if late { 900 } else { 100 }, "{order:?} {dir:?}");
        }
    }
}

/// At the head means first in the queue, and not first on the device.
#[test]
fn at_head_is_first_of_its_own() {
    let mut dev = Device::new(1, 64, false, Nanos(0)).unwrap();
    let groups = [0, 1].map(|_| {
        dev.add_group(dev.root(), Weight::default(), Class::Be)
            .unwrap()
    });
    let queues = groups.map(|group| {
        dev.add_queue(group, true, Weight::default(), Class::Be, Nanos(0))
            .unwrap()
    });
    let mut insert = |queue: QueueId, request| dev.insert(queue, request, Nanos(0)).unwrap();
    let other = insert(queues[1], at(0));
    let plain = insert(queues[0], at(8));
    let head = insert(
        queues[0],
        Request {
            head: true,
            ..at(512)
        },
    );
    let mut served: Vec<ItemId> = Vec::new();
    while let Some(item) = dev.dispatch(Nanos(0)) {
        served.push(item);
        dev.complete(item, Nanos(MS)).unwrap();
    }
    assert_eq!(served, [other, head, plain]);
}

/// An express request goes at once, until its group is half a second in debt; that is paid back.
#[test]
fn express_is_booked_as_debt_and_bounded() {
    let mut dev = Device::new(1, 64, false, Nanos(0)).unwrap();
    let groups = [0, 1].map(|_| {
        dev.add_group(dev.root(), Weight::default(), Class::Be)
            .unwrap()
    });
    let queues = groups.map(|group| {
        dev.add_queue(group, true, Weight::default(), Class::Be, Nanos(0))
            .unwrap()
    });
    let mut now = 0;
    for _ in 0..300 {
        dev.insert(queues[1], at(0), Nanos(now)).unwrap();
    }
    let mut serve = |dev: &mut Device| {
        let item = dev.dispatch(Nanos(now)).unwrap();
        let queue = dev.item_queue(item).unwrap();
        now += 4 * MS;
        dev.complete(item, Nanos(now)).unwrap();
        queue
    };
    let mut ahead = 0;
    let last = loop {
        let item = dev
            .insert(
                queues[0],
                Request {
                    express: true,
                    ..at(8)
                },
                Nanos(0),
            )
            .unwrap();
        if !dev.item_state(item).unwrap().request.express {
            break item;
        }
        assert_eq!(serve(&mut dev), queues[0]);
        ahead += 1;
        assert!(ahead < 1000, "no end of debt");
    };
    assert_eq!(
        ahead, 125,
        "requests of 4 ms before the debt is half a second"
    );
    assert_eq!(dev.stats(groups[0]).unwrap().express, 125);
    // Nobody else was served meanwhile: now they are, until both are even.
    for number in 0..125 {
        assert_eq!(serve(&mut dev), queues[1], "request {number}");
    }
    assert_eq!(serve(&mut dev), queues[0]);
    assert!(dev.item_state(last).is_err());
}

/// What merging needs: the item that begins at a sector, and those beside it.
#[test]
fn neighbours_are_found_by_sector() {
    let (mut dev, queue) = device(Order::Cfq);
    let mut insert = |request| dev.insert(queue, request, Nanos(0)).unwrap();
    let [a, b, c] = [at(16), at(8), at(24)].map(&mut insert);
    let head = insert(Request {
        head: true,
        ..at(32)
    });
    assert_eq!(dev.find(queue, 8), Ok(Some(b)));
    assert_eq!(dev.find(queue, 9), Ok(None));
    assert_eq!(
        dev.find(queue, 32),
        Ok(None),
        "no merging with what stands at the head"
    );
    assert_eq!(dev.neighbours(a), Ok([Some(b), Some(c)]));
    assert_eq!(dev.neighbours(b), Ok([None, Some(a)]));
    assert_eq!(dev.neighbours(head), Ok([None, None]));
    // b takes a in: a goes, b grows; then c grows to the front.
    dev.remove(a, Nanos(1)).unwrap();
    dev.grow(b, 8, 16).unwrap();
    dev.grow(c, 20, 12).unwrap();
    assert_eq!(dev.find(queue, 20), Ok(Some(c)));
    assert_eq!(dev.neighbours(b), Ok([None, Some(c)]));
}

/// What came while the order was by arrival goes before what came since, and is found by nobody.
#[test]
fn order_may_change_while_requests_are_queued() {
    for order in [Order::Cfq, Order::Deadline] {
        let (mut dev, queue) = device(Order::Fifo);
        for sector in [500, 100] {
            dev.insert(queue, at(sector), Nanos(0)).unwrap();
        }
        assert_eq!(dev.find(queue, 100).unwrap(), None);
        let tunables = dev.tunables();
        dev.tune(Tunables { order, ..tunables }, Nanos(0));
        for sector in [900, 50, 300] {
            dev.insert(queue, at(sector), Nanos(0)).unwrap();
        }
        assert!(dev.find(queue, 50).unwrap().is_some());
        // Back and forth: some in the tree, some not.
        dev.tune(tunables, Nanos(0));
        dev.insert(queue, at(400), Nanos(0)).unwrap();
        dev.tune(Tunables { order, ..tunables }, Nanos(0));
        assert_eq!(
            sweep(&mut dev, MS),
            [500, 100, 300, 900, 50, 400],
            "{order:?}"
        );
    }
}
