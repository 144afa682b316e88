//! Any sequence of events whatever: the invariants hold after each, and nothing is lost.

use disktime_core::{
    Class, Device, Dir, Entity, Fault, GroupId, ItemId, ItemLife, Nanos, Order, QueueId, Request,
    Tunables, WaiterId, Weight,
};
use proptest::prelude::*;

use crate::cases;

#[derive(Clone, Debug)]
pub enum Op {
    AddGroup(u16, u32, Class),
    RemoveGroup(u16),
    AddQueue(u16, bool, u32, Class),
    RemoveQueue(u16),
    Insert(u16, Request),
    InsertAgain(u16, Request),
    Dispatch,
    DispatchAll,
    Complete(u16),
    Requeue(u16),
    Remove(u16),
    Grow(u16, u8),
    Wait(u16),
    Grant,
    Settle(u16),
    Cancel(u16),
    GroupWeight(u16, u32),
    LeafWeight(u16, u32),
    QueueWeight(u16, u32),
    GroupClass(u16, Class),
    QueueClass(u16, Class),
    Tune(Tunables),
    Resize(u32, u32),
    CommitBegin,
    CommitEnd(u16),
    Advance(u64),
    Tick,
    Fail,
    Rearm,
    Watch,
    Back(u64),
}

fn group_class() -> impl Strategy<Value = Class> {
    prop::sample::select(vec![Class::Rt, Class::Be, Class::Be, Class::Idle])
}

fn queue_class() -> impl Strategy<Value = Class> {
    prop::sample::select(Class::ALL.to_vec())
}

fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![Just(1), Just(100), Just(10_000), 1u32..=10_000]
}

fn request() -> impl Strategy<Value = Request> {
    (any::<bool>(), 0u64..64, 1u32..9, 0u8..20).prop_map(|(write, slot, sectors, flags)| Request {
        dir: if write { Dir::Write } else { Dir::Read },
        // Few enough places for requests to meet, at both ends of the disk.
        sector: if slot < 32 {
            slot * 8
        } else {
            (1 << 40) + slot * 8
        },
        sectors,
        head: flags == 0,
        express: flags == 1,
    })
}

fn advance() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..1_000_000,
        4 => 0u64..20_000_000,
        1 => 0u64..2_000_000_000,
    ]
}

fn tunables() -> impl Strategy<Value = Tunables> {
    (
        prop::sample::select(vec![0u64, 1_000, 1_000_000, 100_000_000]),
        prop::sample::select(vec![0u64, 500_000, 2_000_000, 8_000_000]),
        0u32..6,
        prop::sample::select(Order::ALL.to_vec()),
        any::<bool>(),
    )
        .prop_map(|(slice, idle, depth, order, strict)| Tunables {
            slice: Nanos(slice),
            idle: Nanos(idle),
            depth,
            order,
            strict,
        })
}

fn op(back: bool) -> impl Strategy<Value = Op> {
    let i = any::<u16>;
    prop_oneof![
        3 => (i(), weight(), group_class()).prop_map(|(p, w, c)| Op::AddGroup(p, w, c)),
        2 => i().prop_map(Op::RemoveGroup),
        3 => (i(), any::<bool>(), weight(), queue_class())
            .prop_map(|(g, s, w, c)| Op::AddQueue(g, s, w, c)),
        3 => i().prop_map(Op::RemoveQueue),
        40 => (i(), request()).prop_map(|(q, r)| Op::Insert(q, r)),
        6 => (i(), request()).prop_map(|(q, r)| Op::InsertAgain(q, r)),
        20 => Just(Op::Dispatch),
        10 => Just(Op::DispatchAll),
        30 => i().prop_map(Op::Complete),
        3 => i().prop_map(Op::Requeue),
        3 => i().prop_map(Op::Remove),
        3 => (i(), any::<u8>()).prop_map(|(q, n)| Op::Grow(q, n)),
        6 => i().prop_map(Op::Wait),
        6 => Just(Op::Grant),
        5 => i().prop_map(Op::Settle),
        2 => i().prop_map(Op::Cancel),
        2 => (i(), weight()).prop_map(|(g, w)| Op::GroupWeight(g, w)),
        1 => (i(), weight()).prop_map(|(g, w)| Op::LeafWeight(g, w)),
        1 => (i(), weight()).prop_map(|(q, w)| Op::QueueWeight(q, w)),
        2 => (i(), group_class()).prop_map(|(g, c)| Op::GroupClass(g, c)),
        2 => (i(), queue_class()).prop_map(|(q, c)| Op::QueueClass(q, c)),
        2 => tunables().prop_map(Op::Tune),
        1 => (1u32..9, 1u32..40).prop_map(|(d, t)| Op::Resize(d, t)),
        6 => Just(Op::CommitBegin),
        6 => i().prop_map(Op::CommitEnd),
        30 => advance().prop_map(Op::Advance),
        10 => Just(Op::Tick),
        1 => Just(Op::Fail),
        2 => Just(Op::Rearm),
        1 => Just(Op::Watch),
        1 => (0u64..5_000_000).prop_map(move |by| if back { Op::Back(by) } else { Op::Tick }),
    ]
}

pub struct World {
    pub dev: Device,
    pub now: u64,
    groups: Vec<GroupId>,
    queues: Vec<QueueId>,
    queued: Vec<ItemId>,
    inflight: Vec<ItemId>,
    given_back: Vec<ItemId>,
    waiting: Vec<WaiterId>,
    granted: Vec<WaiterId>,
    commits: Vec<Nanos>,
    last_charged: u64,
}

/// One of many, or nothing of nothing.
fn pick<T: Copy>(from: &[T], index: u16) -> Option<T> {
    (!from.is_empty()).then(|| from[usize::from(index) % from.len()])
}

fn take<T>(from: &mut Vec<T>, index: u16) -> Option<T> {
    (!from.is_empty()).then(|| from.swap_remove(usize::from(index) % from.len()))
}

impl World {
    pub fn new(depth: u32, tags: u32, rotational: bool, start: u64) -> Self {
        let mut dev = Device::new(depth, tags, rotational, Nanos(start)).unwrap();
        dev.set_checked(true);
        let root = dev.root();
        World {
            dev,
            now: start,
            groups: vec![root],
            queues: Vec::new(),
            queued: Vec::new(),
            inflight: Vec::new(),
            given_back: Vec::new(),
            waiting: Vec::new(),
            granted: Vec::new(),
            commits: Vec::new(),
            last_charged: 0,
        }
    }

    fn t(&self) -> Nanos {
        Nanos(self.now)
    }

    fn dispatch(&mut self) -> bool {
        let Some(item) = self.dev.dispatch(self.t()) else {
            return false;
        };
        let place = self.queued.iter().position(|&other| other == item);
        self.queued
            .swap_remove(place.expect("an item came that was not queued"));
        assert_eq!(
            self.dev.item_state(item).unwrap().life,
            ItemLife::Dispatched
        );
        self.inflight.push(item);
        true
    }

    pub fn step(&mut self, op: &Op) {
        let now = self.t();
        match *op {
            Op::AddGroup(parent, weight, class) => {
                let parent = pick(&self.groups, parent).unwrap();
                if let Ok(id) = self
                    .dev
                    .add_group(parent, Weight::new(weight).unwrap(), class)
                {
                    self.groups.push(id);
                }
            }
            Op::RemoveGroup(group) => {
                let group = pick(&self.groups, group).unwrap();
                if self.dev.remove_group(group).is_ok() {
                    self.groups.retain(|&other| other != group);
                }
            }
            Op::AddQueue(group, sync, weight, class) => {
                let group = pick(&self.groups, group).unwrap();
                let weight = Weight::new(weight).unwrap();
                self.queues
                    .push(self.dev.add_queue(group, sync, weight, class, now).unwrap());
            }
            Op::RemoveQueue(queue) => {
                if let Some(queue) = pick(&self.queues, queue)
                    && self.dev.remove_queue(queue).is_ok()
                {
                    self.queues.retain(|&other| other != queue);
                }
            }
            Op::Insert(queue, request) => {
                if let Some(queue) = pick(&self.queues, queue) {
                    self.queued
                        .push(self.dev.insert(queue, request, now).unwrap());
                }
            }
            Op::InsertAgain(item, request) => {
                if let Some(item) = take(&mut self.given_back, item) {
                    self.dev.insert_again(item, request, now).unwrap();
                    self.queued.push(item);
                }
            }
            Op::Dispatch => {
                self.dispatch();
            }
            Op::DispatchAll => while self.dispatch() {},
            Op::Complete(item) => {
                if let Some(item) = take(&mut self.inflight, item) {
                    self.dev.complete(item, now).unwrap();
                }
            }
            Op::Requeue(item) => {
                if let Some(item) = take(&mut self.inflight, item) {
                    self.dev.requeue(item, now).unwrap();
                    self.given_back.push(item);
                }
            }
            Op::Remove(item) => {
                if let Some(item) = take(&mut self.queued, item) {
                    self.dev.remove(item, now).unwrap();
                }
            }
            Op::Grow(item, by) => {
                if let Some(item) = pick(&self.queued, item) {
                    let request = self.dev.item_state(item).unwrap().request;
                    let front = u64::from(by % 8).min(request.sector);
                    self.dev
                        .grow(
                            item,
                            request.sector - front,
                            request.sectors + u32::from(by % 16),
                        )
                        .unwrap();
                }
            }
            Op::Wait(queue) => {
                if let Some(queue) = pick(&self.queues, queue) {
                    self.waiting.push(self.dev.gate_wait(queue, now).unwrap());
                }
            }
            Op::Grant => {
                if let Some(waiter) = self.dev.gate_grant(now) {
                    let place = self.waiting.iter().position(|&other| other == waiter);
                    self.waiting
                        .swap_remove(place.expect("granted to who did not wait"));
                    self.granted.push(waiter);
                }
            }
            Op::Settle(waiter) => {
                if let Some(waiter) = take(&mut self.granted, waiter) {
                    let queue = self.dev.waiter_queue(waiter).unwrap();
                    self.queued
                        .push(self.dev.insert(queue, Request::default(), now).unwrap());
                    self.dev.gate_settle(waiter).unwrap();
                }
            }
            Op::Cancel(waiter) => {
                let from = if waiter % 2 == 0 {
                    &mut self.granted
                } else {
                    &mut self.waiting
                };
                if let Some(waiter) = take(from, waiter) {
                    self.dev.gate_cancel(waiter, now).unwrap();
                }
            }
            Op::GroupWeight(group, weight) => {
                let entity = Entity::Group(pick(&self.groups, group).unwrap());
                self.dev
                    .set_weight(entity, Weight::new(weight).unwrap())
                    .unwrap();
            }
            Op::LeafWeight(group, weight) => {
                let entity = Entity::Leaf(pick(&self.groups, group).unwrap());
                self.dev
                    .set_weight(entity, Weight::new(weight).unwrap())
                    .unwrap();
            }
            Op::QueueWeight(queue, weight) => {
                if let Some(queue) = pick(&self.queues, queue) {
                    self.dev
                        .set_weight(Entity::Queue(queue), Weight::new(weight).unwrap())
                        .unwrap();
                }
            }
            Op::GroupClass(group, class) => {
                let entity = Entity::Group(pick(&self.groups, group).unwrap());
                self.dev.set_class(entity, class, now).unwrap();
            }
            Op::QueueClass(queue, class) => {
                if let Some(queue) = pick(&self.queues, queue) {
                    self.dev
                        .set_class(Entity::Queue(queue), class, now)
                        .unwrap();
                }
            }
            Op::Tune(tunables) => self.dev.tune(tunables, now),
            Op::Resize(depth, tags) => self.dev.resize(depth, tags, now),
            Op::CommitBegin => {
                self.commits.push(now);
                self.dev.commit_begin(now);
            }
            Op::CommitEnd(commit) => {
                if let Some(begun) = take(&mut self.commits, commit) {
                    self.dev.commit_end(begun, now);
                }
            }
            Op::Advance(by) => self.now += by,
            Op::Tick => {
                // As a timer does: at its time or later, never before.
                if let Some(at) = self.dev.wake_at() {
                    self.now = self.now.max(at.0);
                }
                self.dev.tick(self.t());
            }
            Op::Fail => self.dev.fail(Fault::Asked, now),
            Op::Rearm => {
                assert!(
                    self.dev.rearm(now),
                    "a sound state was not rearmed: {:?}",
                    self.dev.check()
                );
            }
            Op::Watch => self.dev.watch(now),
            Op::Back(by) => self.now = self.now.saturating_sub(by),
        }
        self.look();
    }

    /// What the core says must be what was done to it.
    fn look(&mut self) {
        let state = self.dev.state();
        let all = state.queued + state.parked;
        assert_eq!(all as usize, self.queued.len());
        assert_eq!(state.inflight as usize, self.inflight.len());
        assert_eq!(state.waiting as usize, self.waiting.len());
        assert_eq!(state.granted as usize, self.granted.len());
        assert!(state.charged.0 >= self.last_charged, "time ran back");
        self.last_charged = state.charged.0;
        // What groups have, with what removed ones left to their parents, is all that was charged.
        let all: u64 = self
            .groups
            .iter()
            .map(|&id| self.dev.stats(id).unwrap().total_time().0)
            .sum();
        assert_eq!(
            all, state.charged.0,
            "the groups' times are not what was charged"
        );
        assert_eq!(self.dev.counts().empty, 0);
    }

    /// Everything ends, whatever the weights and classes: the bound is generous, and no more.
    pub fn finish(&mut self) {
        for waiter in self.granted.drain(..).chain(self.waiting.drain(..)) {
            self.dev.gate_cancel(waiter, Nanos(self.now)).unwrap();
        }
        for item in self.given_back.drain(..) {
            self.dev.remove(item, Nanos(self.now)).unwrap();
        }
        for begun in self.commits.drain(..) {
            self.dev.commit_end(begun, Nanos(self.now));
        }
        let mut rounds = 0;
        while !self.queued.is_empty() || !self.inflight.is_empty() {
            while self.dispatch() {}
            if let Some(item) = self.inflight.pop() {
                self.now += 100_000;
                self.dev.complete(item, Nanos(self.now)).unwrap();
            } else {
                let at = self
                    .dev
                    .wake_at()
                    .expect("queued, nothing in flight, no timer");
                assert!(at.0 > self.now || self.dev.has_work() || rounds < 1_000_000);
                self.now = self.now.max(at.0);
                self.dev.tick(Nanos(self.now));
            }
            self.look();
            rounds += 1;
            assert!(
                rounds < 20_000,
                "the device does not come to an end\n{}",
                self.dev.dump()
            );
        }
        for queue in self.queues.drain(..) {
            self.dev.remove_queue(queue).unwrap();
        }
        // Children after parents in this list.
        while self.groups.len() > 1 {
            let before = self.groups.len();
            let dev = &mut self.dev;
            self.groups
                .retain(|&group| dev.remove_group(group).is_err());
            assert!(self.groups.len() < before, "a group does not go");
        }
        let total = self.dev.stats(self.dev.root()).unwrap().total_time();
        assert_eq!(
            total,
            self.dev.state().charged,
            "counters were lost on the way to the root"
        );
    }
}

proptest! {
    #![proptest_config(cases(192))]

    #[test]
    fn invariants_hold_after_any_event(
        depth in 1u32..9,
        tags in 1u32..40,
        rotational: bool,
        ops in prop::collection::vec(op(false), 1..300),
    ) {
        let mut world = World::new(depth, tags, rotational, 1_000_000_000);
        for op in &ops {
            world.step(op);
        }
        world.finish();
    }

    /// Stamps taken before the lock was: time never runs back, and nothing else breaks.
    #[test]
    fn stamps_that_run_back_do_no_harm(
        ops in prop::collection::vec(op(true), 1..200),
        rotational: bool,
    ) {
        let mut world = World::new(4, 16, rotational, 1_000_000_000);
        for op in &ops {
            world.step(op);
        }
        world.finish();
    }
}

/// Five groups deep, fully loaded from one seed, ten thousand events: longer than proptest goes.
#[test]
fn long_run_of_all_events() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

    for seed in 0..3u8 {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
        let mut runner = TestRunner::new_with_rng(Config::default(), rng);
        let mut world = World::new(8, 32, seed % 2 == 1, 1);
        let strategy = op(false);
        for _ in 0..4000 {
            let op = strategy.new_tree(&mut runner).unwrap().current();
            world.step(&op);
        }
        world.finish();
    }
}
