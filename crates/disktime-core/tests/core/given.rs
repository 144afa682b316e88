//! Charges that come from outside.

use disktime_core::{Class, Device, Dir, Engine, ItemId, Nanos, QueueId, Request, Weight};

const MS: u64 = 1_000_000;

/// Two equal groups with a queue each, and a device that takes one item at a time.
struct Pair {
    dev: Device,
    queues: [QueueId; 2],
    items: Vec<(ItemId, usize)>,
    now: u64,
}

impl Pair {
    fn new() -> Self {
        let mut dev = Device::new(1, 256, false, Nanos::ZERO).unwrap();
        dev.set_engine(Engine::Given);
        dev.set_checked(true);
        let root = dev.root();
        let queues = [(); 2].map(|()| {
            let group = dev.add_group(root, Weight::default(), Class::Be).unwrap();
            dev.add_queue(group, true, Weight::default(), Class::Be, Nanos::ZERO)
                .unwrap()
        });
        let mut items = Vec::new();
        for number in 0..80 {
            let whose = number % 2;
            let request = Request {
                sectors: 8,
                ..Request::default()
            };
            let item = dev.insert(queues[whose], request, Nanos::ZERO).unwrap();
            items.push((item, whose));
        }
        Pair {
            dev,
            queues,
            items,
            now: 0,
        }
    }

    /// Serves an item for a millisecond; whose it was, and what was charged for it.
    fn serve(&mut self) -> (usize, Nanos) {
        let item = self.dev.dispatch(Nanos(self.now)).unwrap();
        let estimate = self.dev.item_state(item).unwrap().estimate;
        self.now += MS;
        let charge = self.dev.complete(item, Nanos(self.now)).unwrap();
        assert_eq!(charge, estimate, "a completion says nothing");
        let (_, whose) = self.items.iter().find(|(id, _)| *id == item).unwrap();
        (*whose, estimate)
    }

    fn took(&mut self, whose: usize, took: u64, estimate: Nanos) {
        let (queue, now) = (self.queues[whose], Nanos(self.now));
        self.dev
            .charge(queue, Dir::Read, Nanos(took), estimate, now)
            .unwrap();
    }

    fn time(&self, whose: usize) -> u64 {
        let group = self.dev.queue_group(self.queues[whose]).unwrap();
        self.dev.stats(group).unwrap().total_time().0
    }
}

#[test]
fn who_took_more_than_was_charged_waits_until_the_other_has_had_as_much() {
    let mut pair = Pair::new();
    // All take what they seem to, so that this is what is expected of the next.
    let mut had = [0, 0];
    for _ in 0..20 {
        let (whose, estimate) = pair.serve();
        had[whose] += MS;
        pair.took(whose, MS, estimate);
    }
    assert_eq!(had, [10 * MS, 10 * MS]);
    let (slow, estimate) = pair.serve();
    assert_eq!(estimate, Nanos(MS));
    let (fast, other) = pair.serve();
    assert_eq!(fast, 1 - slow);
    pair.took(fast, MS, other);
    // Long after its completion it is known to have taken more, and then more again.
    pair.took(slow, 4 * MS, estimate);
    pair.took(slow, 7 * MS, Nanos::ZERO);
    had[slow] += 11 * MS;
    had[fast] += MS;
    let mut in_a_row = 0;
    loop {
        let (whose, estimate) = pair.serve();
        if whose == slow {
            break;
        }
        pair.took(whose, MS, estimate);
        had[whose] += MS;
        in_a_row += 1;
    }
    assert!((10..=11).contains(&in_a_row), "{in_a_row}");
    assert_eq!([pair.time(0), pair.time(1)], had);
}
