//! The naive scheduler: the model that the core's comments state, written down as plainly as it can
//! be, without trees, lists or running integrals. Everything is looked for in vectors each time.
//! It must choose the same item at every dispatch.
//!
//! - Start-time fair queueing: every entity has a virtual time, the disk time charged to it by its
//!   weight; the least is served; a level's virtual time is where the entity stood that was picked
//!   last (and of equal ones, who came to that place first).
//! - One virtual time a class; lower classes are owed 1/DIV of what the next better one has.
//! - A charge is the sum, over the moments that a request was in flight, of dt / N.
//! - Turns and anticipation as select.c's first comment says.
//! - With a head, of a group's queues that seek and stand within 4 ms of the first the nearest is
//!   chosen: whose next item lies nearest to where the item that was done last ended.
//! - With a head, what a queue's items usually take is what it is charged for each among its group's;
//!   the rest over the next 64. For a whole turn it is charged a turn, the rest off its next.

use std::collections::BTreeMap;

use disktime_core::{
    Class, Device, Dir, Engine, Entity, GroupId, ItemId, Nanos, Order, QueueId, Request, Tunables,
    Weight,
};
use proptest::prelude::*;

use crate::bed::{MS, SEC, US};
use crate::cases;

const CHARGE_MAX: u64 = 10 * SEC;
const LEAD_MAX: u64 = 60 * SEC;
const CREDIT: u64 = 20 * MS;
const NEAR: u64 = 4 * MS;
/// Divisor and cap of each class's floor.
const FLOORS: [(u64, u64); 4] = [(1, 0), (48, 500 * MS), (8, 100 * MS), (48, 1500 * MS)];

/// a lies before b on a circle.
fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

fn later(a: u64, b: u64) -> u64 {
    if before(a, b) { b } else { a }
}

fn virt(time: u64, weight: u64) -> u64 {
    (time << 16) / weight
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Group(usize),
    Leaf(usize),
    Queue(usize),
}

/// An entity, and what competes below it.
struct Ent {
    kind: Kind,
    parent: Option<usize>,
    weight: u64,
    class: usize,
    vdisktime: u64,
    /// What the divisions of its charges have left, in 2^-16 ns.
    rest: u64,
    /// When it came to where it stands.
    came: u64,
    queued: u32,
    inflight: u32,
    /// Of its children's level, by class.
    vtime: [u64; 4],
    owed: [i64; 4],
    since: [u64; 4],
}

impl Ent {
    fn is_busy(&self) -> bool {
        self.queued + self.inflight > 0
    }
}

#[derive(Default, Clone)]
struct Think {
    last_end: u64,
    mean: u64,
    dev: u64,
    samples: u32,
}

struct Group {
    leaf: usize,
    think: Think,
    usual: u64,
    /// It had nothing queued or in flight when its last turn ended.
    paused: bool,
    /// It did not wait for its links: so often, and it is taken to do so again from then on.
    apart: u32,
    apart_until: u64,
}

struct Queue {
    ent: usize,
    group: usize,
    sync: bool,
    next_sector: u64,
    last_sectors: u64,
    cost: [u64; 2],
    seek_mean: u64,
    follow: u64,
    think: Think,
    usual: u64,
    /// Time that it had and is still to be charged for in its group.
    owing: u64,
    /// What its turns were beyond what it was charged for them there.
    over: i64,
    /// So many of its items in flight are part of a turn that has been charged for.
    settled: usize,
}

#[derive(Clone)]
struct Item {
    queue: usize,
    request: Request,
    express: bool,
    arrived: u64,
    /// Order of arrival, and of coming to its sector.
    serial: u64,
    placed: u64,
    // In flight only:
    dispatched: u64,
    estimate: u64,
    /// The device had just served its queue, and nothing else was in it.
    follows: bool,
    /// Which chain it is a link of.
    chain: Option<u32>,
    /// What it was charged so far, in 2^-16 ns.
    shares: u64,
}

struct Model {
    tun: Tunables,
    rotational: bool,
    depth_hw: u32,
    ents: Vec<Ent>,
    groups: Vec<Group>,
    queues: Vec<Queue>,
    waiting: BTreeMap<ItemId, Item>,
    flying: BTreeMap<ItemId, Item>,
    now: u64,
    serial: u64,
    cost: [u64; 2],
    service: u64,
    /// Groups of which anything is queued or in the device, in the order in which they came to be.
    busy_groups: Vec<usize>,
    turn_grp: Option<usize>,
    turn_queue: Option<usize>,
    /// It paused, and has issued since.
    back: Option<usize>,
    back_until: u64,
    back_soon: bool,
    turn_used: u64,
    /// What `turn_queue` was charged for reading since it has been that.
    turn_queue_had: i64,
    /// Idle time in which it was waited for.
    turn_queue_idle: i64,
    /// Who waits for what others send express, which of its chains that is, and its links in flight.
    chain_grp: Option<usize>,
    chain: u32,
    links: u32,
    /// It wrote last, and was idle then.
    wrote: Option<usize>,
    holding: bool,
    hold_until: u64,
    hold_idle: u64,
    work: bool,
    last_queue: Option<usize>,
    /// Where the item that was done last ended.
    head: u64,
    busy: u64,
    charged: u64,
}

fn mean_of(mean: u64, sample: u64) -> u64 {
    if mean == 0 {
        sample.max(1)
    } else {
        mean.wrapping_add(((sample.max(1).wrapping_sub(mean)) as i64).div_euclid(8) as u64)
    }
}

fn drift(mean: u64, sample: u64) -> u64 {
    mean.wrapping_add(((sample.wrapping_sub(mean)) as i64 / 8) as u64)
}

impl Think {
    fn sample(&mut self, sample: u64) {
        if self.samples == 0 {
            self.mean = sample;
            self.dev = sample / 2;
        } else {
            let off = sample.abs_diff(self.mean);
            self.mean = drift(self.mean, sample);
            self.dev = drift(self.dev, off);
        }
        self.samples = (self.samples + 1).min(4);
    }
}

impl Model {
    fn new(depth_hw: u32, rotational: bool, tun: Tunables, now: u64) -> Self {
        let mut model = Model {
            tun,
            rotational,
            depth_hw,
            ents: Vec::new(),
            groups: Vec::new(),
            queues: Vec::new(),
            waiting: BTreeMap::new(),
            flying: BTreeMap::new(),
            now,
            serial: 0,
            cost: [0; 2],
            service: 0,
            busy_groups: Vec::new(),
            turn_grp: None,
            turn_queue: None,
            back: None,
            back_until: now,
            back_soon: false,
            turn_used: 0,
            turn_queue_had: 0,
            turn_queue_idle: 0,
            chain_grp: None,
            chain: 0,
            links: 0,
            wrote: None,
            holding: false,
            hold_until: 0,
            hold_idle: 0,
            work: false,
            last_queue: None,
            head: 0,
            busy: 0,
            charged: 0,
        };
        model.add_group(None, 100, Class::Be);
        model
    }

    fn ent(&mut self, kind: Kind, parent: Option<usize>, weight: u32, class: Class) -> usize {
        let vdisktime = parent.map_or(0, |parent| self.ents[parent].vtime[class as usize]);
        self.ents.push(Ent {
            kind,
            parent,
            weight: u64::from(weight),
            class: class as usize,
            vdisktime,
            rest: 0,
            came: 0,
            queued: 0,
            inflight: 0,
            vtime: [0; 4],
            owed: [0; 4],
            since: [0; 4],
        });
        self.ents.len() - 1
    }

    /// The entity of a group's own, given that of its parent.
    fn add_group(&mut self, parent: Option<usize>, weight: u32, class: Class) -> (usize, usize) {
        let number = self.groups.len();
        let ent = self.ent(Kind::Group(number), parent, weight, class);
        let leaf = self.ent(Kind::Leaf(number), Some(ent), 100, Class::Be);
        self.groups.push(Group {
            leaf,
            think: Think::default(),
            usual: 0,
            paused: false,
            apart: 0,
            apart_until: self.now,
        });
        (number, ent)
    }

    fn add_queue(&mut self, group: usize, sync: bool, weight: u32, class: Class) -> usize {
        let number = self.queues.len();
        let ent = self.ent(
            Kind::Queue(number),
            Some(self.groups[group].leaf),
            weight,
            class,
        );
        self.queues.push(Queue {
            ent,
            group,
            sync,
            next_sector: 0,
            last_sectors: 0,
            cost: [0; 2],
            seek_mean: 0,
            follow: 0,
            think: Think {
                last_end: self.now,
                ..Think::default()
            },
            usual: 0,
            owing: 0,
            over: 0,
            settled: 0,
        });
        number
    }

    fn has_children(&self, ent: usize) -> bool {
        self.ents
            .iter()
            .any(|other| other.parent == Some(ent) && matches!(other.kind, Kind::Group(_)))
    }

    fn stamp(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// From an entity up to below the root.
    fn path(&self, ent: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = ent;
        while let Some(parent) = self.ents[at].parent {
            path.push(at);
            at = parent;
        }
        path
    }

    fn clock(&mut self, now: u64) {
        let dt = now - self.now;
        self.now = now;
        let n = self.flying.len() as u64;
        for item in self.flying.values_mut() {
            item.shares += (dt << 16) / n;
        }
        if n > 0 {
            self.busy += dt;
        }
        if n == 0 && self.holding {
            self.hold_idle += dt;
        }
    }

    // ---- lines ----

    /// Who of a level's children stands in line in this class.
    fn line(&self, parent: usize, class: usize) -> Vec<usize> {
        (0..self.ents.len())
            .filter(|&e| {
                let ent = &self.ents[e];
                ent.parent == Some(parent) && ent.class == class && ent.queued > 0
            })
            .collect()
    }

    fn occupied(&self, parent: usize, class: usize) -> bool {
        !self.line(parent, class).is_empty()
    }

    /// Whether a class is owed service, or has waited too long for any.
    fn due(&self, parent: usize, class: usize) -> bool {
        let level = &self.ents[parent];
        self.occupied(parent, class)
            && (level.owed[class] > 0 || self.now >= level.since[class] + FLOORS[class].1)
    }

    fn pick(&self, parent: usize) -> Option<usize> {
        let best = (0..4).find(|&class| self.occupied(parent, class))?;
        let class = (best + 1..4)
            .rev()
            .find(|&class| self.due(parent, class))
            .unwrap_or(best);
        let mut first: Option<usize> = None;
        for e in self.line(parent, class) {
            let Some(f) = first else {
                first = Some(e);
                continue;
            };
            let (this, other) = (&self.ents[e], &self.ents[f]);
            if before(this.vdisktime, other.vdisktime)
                || (this.vdisktime == other.vdisktime && this.came < other.came)
            {
                first = Some(e);
            }
        }
        first
    }

    /// Which queue goes where `first` would be picked: the nearest of those that are as good.
    fn nearest(&self, first: usize, queue: usize) -> usize {
        let seeks = |queue: usize| self.queues[queue].seek_mean >= 8192;
        if self.slice() == 0 || !self.rotational || self.tun.order != Order::Cfq || !seeks(queue) {
            return queue;
        }
        let ent = &self.ents[first];
        let most = ent.vdisktime.wrapping_add(virt(NEAR, ent.weight));
        let near = self.line(ent.parent.unwrap(), ent.class).into_iter();
        let near = near.filter_map(|e| match self.ents[e].kind {
            Kind::Queue(queue) if seeks(queue) && !before(most, self.ents[e].vdisktime) => {
                let next = &self.waiting[&self.item_of(queue)];
                let gap = next.request.sector.abs_diff(self.head);
                let ahead = self.ents[e].vdisktime.wrapping_sub(ent.vdisktime);
                Some(((gap, ahead, self.ents[e].came), queue))
            }
            _ => None,
        });
        near.min().unwrap().1
    }

    fn started(&mut self, e: usize) {
        let (parent, class, at) = (
            self.ents[e].parent.unwrap(),
            self.ents[e].class,
            self.ents[e].vdisktime,
        );
        let vtime = &mut self.ents[parent].vtime[class];
        *vtime = later(*vtime, at);
    }

    fn served(&mut self, e: usize, cost: u64) {
        let (parent, class) = (self.ents[e].parent.unwrap(), self.ents[e].class);
        let better = (0..class).any(|better| self.occupied(parent, better));
        let lower = (class + 1..4).find(|&lower| self.occupied(parent, lower));
        let now = self.now;
        let level = &mut self.ents[parent];
        level.since[class] = now;
        if better || level.owed[class] > 0 {
            level.owed[class] -= cost as i64;
        }
        if let Some(lower) = lower {
            level.owed[lower] += (cost / FLOORS[lower].0) as i64;
        }
    }

    /// It comes to stand in line: nobody else of its class may have stood there.
    fn enter(&mut self, e: usize, now: u64) {
        let (parent, class) = (self.ents[e].parent.unwrap(), self.ents[e].class);
        if !self.occupied(parent, class) {
            let level = &mut self.ents[parent];
            level.owed[class] = level.owed[class].min(0);
            level.since[class] = now;
        }
        self.ents[e].came = self.stamp();
    }

    fn set_vdisktime(&mut self, e: usize, to: u64) {
        if self.ents[e].vdisktime != to {
            self.ents[e].vdisktime = to;
            self.ents[e].came = self.stamp();
        }
    }

    fn place(&mut self, e: usize) {
        let ent = &self.ents[e];
        let v = self.ents[ent.parent.unwrap()].vtime[ent.class];
        let mut credit = CREDIT.max(self.slice());
        if ent.inflight > 0 {
            credit = credit.max(12 * self.slice());
        }
        let low = v.wrapping_sub(virt(credit, ent.weight));
        let high = v.wrapping_add(virt(LEAD_MAX, ent.weight));
        let to = if before(ent.vdisktime, low) {
            low
        } else if before(high, ent.vdisktime) {
            high
        } else {
            return;
        };
        self.ents[e].vdisktime = to;
        self.ents[e].rest = 0;
    }

    fn charge(&mut self, e: usize, time: i64) {
        let cap = CHARGE_MAX as i64;
        let ent = &mut self.ents[e];
        let amount = (i128::from(time.clamp(-cap, cap)) << 16) + i128::from(ent.rest);
        let weight = i128::from(ent.weight);
        ent.rest = amount.rem_euclid(weight) as u64;
        let to = ent.vdisktime.wrapping_add(amount.div_euclid(weight) as u64);
        self.set_vdisktime(e, to);
    }

    fn charge_path(&mut self, e: usize, time: i64) {
        for e in self.path(e) {
            self.charge(e, time);
        }
    }

    // ---- turns ----

    fn slice(&self) -> u64 {
        match (self.tun.slice.0, self.rotational, self.tun.strict) {
            (0, true, _) => 160 * MS,
            (0, false, true) => 4 * MS,
            (slice, ..) => slice,
        }
    }

    /// How many groups have anything queued or in flight.
    fn busy(&self) -> u64 {
        let busy = |group: &&Group| self.ents[group.leaf].is_busy();
        self.groups.iter().filter(busy).count() as u64
    }

    /// A turn among equals.
    fn full_turn(&self) -> u64 {
        if self.busy() > 3 && self.rotational && self.tun.slice.0 == 0 {
            self.slice() / 2
        } else {
            self.slice()
        }
    }

    /// What the entity is due of the device, in 2^-16, among those that are busy.
    fn share(&self, e: usize) -> u64 {
        self.path(e).iter().fold(65536, |share, &e| {
            let ent = &self.ents[e];
            let beside = |other: &&Ent| other.parent == ent.parent && other.is_busy();
            let others = self.ents.iter().filter(beside);
            if others.clone().any(|other| other.class < ent.class) {
                return 0;
            }
            let alike = others.filter(|other| other.class == ent.class);
            let mut weights: u64 = alike.map(|other| other.weight).sum();
            if !ent.is_busy() {
                weights += ent.weight;
            }
            share * ent.weight / weights
        })
    }

    /// Who is due less than two thirds of an equal share has a shorter turn, by half at most.
    fn turn_length(&self) -> u64 {
        let (full, busy) = (self.full_turn(), self.busy());
        match self.turn_grp {
            Some(group) if self.rotational && self.tun.slice.0 == 0 && busy > 1 => {
                let part = (self.share(self.groups[group].leaf) * busy).min(43690);
                (full * part / 43690).max(full / 2)
            }
            _ => full,
        }
    }

    fn depth(&self) -> u32 {
        let depth = if self.tun.depth > 0 {
            self.tun.depth
        } else {
            self.depth_hw
        };
        depth.min(self.depth_hw).max(1)
    }

    fn stop_holding(&mut self) {
        let idle = std::mem::take(&mut self.hold_idle);
        if let Some(group) = self.turn_grp
            && idle > 0
        {
            self.turn_used += idle;
            if self.turn_queue.is_some() {
                self.turn_queue_idle += idle as i64;
            }
            self.charge_path(self.groups[group].leaf, idle as i64);
        }
        self.holding = false;
    }

    fn end_turn(&mut self) {
        self.stop_holding();
        self.turn_grp = None;
        self.turn_queue = None;
    }

    fn pause_turn(&mut self) {
        if let Some(group) = self.turn_grp {
            let paused = self.ents[self.groups[group].leaf].inflight == 0;
            self.groups[group].paused = paused;
            if paused {
                self.back_until = self.now.wrapping_add(100 * MS);
            }
        }
        self.end_turn();
    }

    /// Who paused and is back, or whose chain goes on; first in line, and this turn is a quarter over.
    fn claimant(&self) -> Option<usize> {
        let turn = self.groups[self.turn_grp.unwrap()].leaf;
        let claims = |&group: &usize| {
            let leaf = self.groups[group].leaf;
            self.turn_used >= self.full_turn() / 4
                && self.goes_before(leaf, turn)
                && self.stands_first(leaf, 0)
        };
        let queued = |&group: &usize| self.ents[self.groups[group].leaf].queued > 0;
        let back = self.back.filter(queued).filter(claims);
        back.or(self.chained().filter(claims))
    }

    /// By class and virtual time where their paths meet, whether or not anything of the other is queued.
    fn goes_before(&self, e: usize, other: usize) -> bool {
        let (own, others) = (self.path(e), self.path(other));
        own.iter()
            .find_map(|&a| {
                let parent = self.ents[a].parent;
                let meet = |b: &&usize| self.ents[**b].parent == parent;
                others.iter().find(meet).map(|&b| (a, b))
            })
            .is_none_or(|(a, b)| {
                let (a, b) = (&self.ents[a], &self.ents[b]);
                if a.class == b.class {
                    before(a.vdisktime, b.vdisktime)
                } else {
                    a.class < b.class
                }
            })
    }

    fn begin_turn(&mut self, group: usize) {
        self.back = self.back.filter(|&back| back != group);
        self.groups[group].paused = false;
        self.turn_grp = Some(group);
        self.turn_queue = None;
        self.turn_used = 0;
    }

    fn reads_on(&self, queue: usize) -> bool {
        let queue = &self.queues[queue];
        let cheap = queue.follow < 4 * MS + queue.last_sectors * 16 * US;
        queue.sync && queue.seek_mean < 8192 && cheap
    }

    /// The queue is the one that goes on; the first of a turn gives back what it had too much.
    fn begin_queue(&mut self, queue: usize) {
        self.turn_queue_had = 0;
        self.turn_queue_idle = 0;
        let over = self.queues[queue].over.max(0) as u64;
        if self.turn_used == 0 {
            self.turn_used = over.min(self.slice() / 4);
        }
    }

    /// The turn is over: for about a whole one of reading the queue pays exactly that.
    fn settle_queue(&mut self, number: usize) {
        let turn = self.turn_length() as i64;
        let had = self.turn_queue_had;
        let queue = &mut self.queues[number];
        let all = had + self.turn_queue_idle + queue.over;
        if self.rotational && had >= turn / 2 && all >= turn - turn / 8 {
            queue.over = (all - turn).min(turn / 4);
            let charge = all - queue.over - had;
            let ent = queue.ent;
            self.turn_queue_had = 0;
            self.turn_queue_idle = 0;
            queue.settled = self.ents[ent].inflight as usize;
            self.charge(ent, charge);
        }
    }

    /// What an item of the queue is charged within its group, where that is not what it took.
    fn within_group(&mut self, item: &Item, actual: u64) -> i64 {
        let group = &mut self.groups[self.queues[item.queue].group];
        let queue = &mut self.queues[item.queue];
        let sample = actual.min(16 * MS + u64::from(item.request.sectors) * 16 * US);
        if group.usual == 0 {
            group.usual = sample.clamp(1, 4 * MS);
        }
        if queue.usual == 0 {
            queue.usual = group.usual;
        }
        for usual in [&mut group.usual, &mut queue.usual] {
            *usual = usual.wrapping_add((sample.wrapping_sub(*usual) as i64 / 16) as u64);
        }
        if queue.settled > 0 {
            queue.settled -= 1;
            queue.over += actual as i64;
            return 0;
        }
        let due = queue.owing + actual;
        let charge = due.min((queue.usual + queue.usual / 2).max(due / 64));
        queue.owing = due - charge;
        charge as i64
    }

    /// Who waits for what this group sends express: who has the turn, or else who wrote last.
    fn who_waits(&self, group: usize) -> Option<usize> {
        let idle = |&other: &usize| {
            let ent = &self.ents[self.groups[other].leaf];
            other != group
                && ent.queued + ent.inflight == 0
                && !before(self.now, self.groups[other].apart_until)
        };
        let waits = self.turn_grp.filter(idle);
        waits
            .or(self.wrote.filter(idle))
            .filter(|_| self.slice() > 0)
    }

    fn links_of(&self, group: usize) -> u32 {
        match self.chain_grp == Some(group) {
            true => self.links,
            false => 0,
        }
    }

    /// Whose chain goes on though it has not the turn.
    fn chained(&self) -> Option<usize> {
        self.chain_grp.filter(|&group| {
            self.links > 0
                && Some(group) != self.turn_grp
                && self.ents[self.groups[group].leaf].queued == 0
        })
    }

    fn comes_first(&self, e: usize, more: u64) -> bool {
        let ent = &self.ents[e];
        match self.pick(ent.parent.unwrap()) {
            None => true,
            Some(first) if first == e => true,
            Some(first) => {
                let first = &self.ents[first];
                if first.class == ent.class {
                    let at = ent.vdisktime.wrapping_add(virt(more, ent.weight));
                    before(at, first.vdisktime)
                } else {
                    ent.class < first.class && !self.due(ent.parent.unwrap(), first.class)
                }
            }
        }
    }

    /// What the longer of the two directions takes, if any of it is in the device.
    fn more(&self, leaf: usize) -> u64 {
        match self.ents[leaf].inflight {
            0 => 0,
            _ => self.cost[0].max(self.cost[1]),
        }
    }

    fn stands_first(&self, e: usize, more: u64) -> bool {
        self.path(e).iter().all(|&e| self.comes_first(e, more))
    }

    /// A group that would be first were it to issue again, with all that it has in the device.
    fn awaited(&self) -> Option<usize> {
        let mut others = self.busy_groups.iter().copied();
        others.find(|&group| {
            let leaf = self.groups[group].leaf;
            Some(group) != self.turn_grp
                && self.busy_groups.len() <= 16
                && self.ents[leaf].queued == 0
                && self.stands_first(leaf, self.more(leaf))
        })
    }

    /// 80 ms and 4 MiB, or more, are in the device, some of it of whose turn it is. A quarter will do
    /// while somebody may be back.
    fn has_plenty(&self) -> bool {
        let estimates = self.flying.values().map(|item| item.estimate);
        let sectors = self.flying.values().map(|item| item.request.sectors);
        let part = if self.back_soon { 4 } else { 1 };
        self.rotational
            && estimates.sum::<u64>() >= 80 * MS / part
            && sectors.map(u64::from).sum::<u64>() >= 8192 / part
            && self
                .turn_grp
                .is_some_and(|group| self.ents[self.groups[group].leaf].inflight > 0)
    }

    fn note_busy_groups(&mut self) {
        let busy = |ent: &Ent| ent.queued + ent.inflight > 0;
        let (ents, groups) = (&self.ents, &self.groups);
        self.busy_groups
            .retain(|&group| busy(&ents[groups[group].leaf]));
        for (group, Group { leaf, .. }) in groups.iter().enumerate() {
            if busy(&ents[*leaf]) && !self.busy_groups.contains(&group) {
                self.busy_groups.push(group);
            }
        }
    }

    fn hold(&mut self, think: &Think, inflight: u32) -> bool {
        let links = self.links_of(self.turn_grp.unwrap());
        let until = self.wait_until(think, inflight + links);
        if until > 0 {
            self.holding = true;
            self.hold_until = until;
        }
        until > 0
    }

    fn wait_until(&self, think: &Think, inflight: u32) -> u64 {
        let idle = self.tun.idle.0;
        if idle == 0 {
            return 0;
        }
        if inflight > 0 {
            return self.now + 2 * SEC;
        }
        let gain = if self.tun.strict {
            idle
        } else {
            idle.min(self.service.max(4 * MS))
        };
        let window = if think.samples < 4 {
            gain
        } else if think.mean >= gain {
            return 0;
        } else {
            idle.min(think.mean + 4 * think.dev + 500 * US)
        };
        let until = think.last_end + window;
        if self.now < until { until } else { 0 }
    }

    fn review_turn(&mut self) {
        self.stop_holding();
        let Some(mut group) = self.turn_grp else {
            return;
        };
        let mut leaf = self.groups[group].leaf;
        let better_waits = |model: &Model, e: usize| {
            let ent = &model.ents[e];
            (0..ent.class).any(|class| model.occupied(ent.parent.unwrap(), class))
        };
        if self.path(leaf).iter().any(|&e| better_waits(self, e)) {
            return self.end_turn();
        }
        if let Some(next) = self.claimant() {
            if self.ents[self.groups[next].leaf].queued > 0 {
                return self.end_turn();
            }
            self.begin_turn(next);
            group = next;
            leaf = self.groups[group].leaf;
        }
        if let Some(queue) = self.turn_queue
            && better_waits(self, self.queues[queue].ent)
        {
            self.turn_queue = None;
        }
        if self.turn_used >= self.turn_length()
            && let Some(queue) = self.turn_queue
        {
            self.settle_queue(queue);
        }
        let first = |&group: &usize| self.stands_first(self.groups[group].leaf, 0);
        let next = self.chained().filter(first).or(self.awaited());
        if self.turn_used >= self.turn_length()
            && let Some(next) = next
        {
            self.begin_turn(next);
            group = next;
            leaf = self.groups[group].leaf;
        } else if self.turn_used >= self.turn_length() {
            if !self.stands_first(leaf, 0) {
                return self.end_turn();
            }
            self.turn_used = 0;
            let mut from = leaf;
            if let Some(queue) = self.turn_queue {
                if self.comes_first(self.queues[queue].ent, 0) {
                    from = self.queues[queue].ent;
                    self.begin_queue(queue);
                } else {
                    self.turn_queue = None;
                }
            }
            for e in self.path(from) {
                self.started(e);
            }
        }
        if let Some(number) = self.turn_queue {
            let queue = &self.queues[number];
            let ent = &self.ents[queue.ent];
            if ent.queued > 0 {
                return;
            }
            let (think, inflight) = (queue.think.clone(), ent.inflight);
            if self.reads_on(number) && self.hold(&think, inflight) {
                return;
            }
            self.turn_queue = None;
        }
        if self.ents[leaf].queued > 0 {
            return;
        }
        let think = self.groups[group].think.clone();
        let first = self.stands_first(leaf, self.more(leaf));
        if (self.tun.strict || first) && self.hold(&think, self.ents[leaf].inflight) {
            return;
        }
        self.pause_turn();
    }

    fn update(&mut self) {
        self.note_busy_groups();
        self.back_soon = before(self.now, self.back_until);
        let room = (self.flying.len() as u32) < self.depth();
        if room && !self.waiting.is_empty() {
            let express = self.waiting.values().any(|item| item.express);
            if express || self.has_plenty() {
                self.stop_holding();
            } else if self.slice() > 0 {
                self.review_turn();
                if self.has_plenty() {
                    self.stop_holding();
                }
            }
            self.work = express || !self.has_plenty() && !self.holding;
        } else {
            if self.holding {
                self.stop_holding();
            }
            self.work = false;
        }
    }

    // ---- events ----

    fn insert(&mut self, id: ItemId, queue: usize, request: Request, now: u64) {
        let turns = self.slice() > 0;
        if turns {
            self.clock(now);
        }
        let group = self.queues[queue].group;
        let leaf = self.groups[group].leaf;
        let grp_ent = self.ents[leaf].parent.unwrap();
        let within_debt = match self.ents[grp_ent].parent {
            None => true,
            Some(parent) => {
                let ent = &self.ents[grp_ent];
                let limit =
                    self.ents[parent].vtime[ent.class].wrapping_add(virt(500 * MS, ent.weight));
                before(ent.vdisktime, limit)
            }
        };
        let longest = (2 * self.tun.idle.0).max(MS);
        let idle = |ent: &Ent| ent.queued == 0 && ent.inflight == 0;
        if turns && idle(&self.ents[self.queues[queue].ent]) {
            let think = &mut self.queues[queue].think;
            if think.last_end > 0 {
                think.sample((now - think.last_end).min(longest));
            }
        }
        if turns && idle(&self.ents[leaf]) {
            let think = &mut self.groups[group].think;
            if think.last_end > 0 {
                think.sample((now - think.last_end).min(longest));
            }
        }
        if turns && self.groups[group].paused && self.queues[queue].sync {
            self.back = Some(group);
        }
        let express = request.express && within_debt;
        if turns
            && express
            && let Some(waits) = self.who_waits(group)
            && self.links_of(waits) == 0
        {
            let think = &mut self.groups[waits].think;
            if think.last_end > 0 {
                think.sample((now - think.last_end).min(longest));
            }
        }
        if turns && !express {
            self.wrote = self.wrote.filter(|&wrote| wrote != group);
        }
        if turns && !express && self.chain_grp == Some(group) {
            let own = &mut self.groups[group];
            if self.links > 0 {
                own.apart_until = now + ((50 * MS) << own.apart);
                own.apart = (own.apart + 1).min(6);
            } else {
                own.apart = 0;
                self.chain_grp = None;
            }
        }
        let serial = self.stamp();
        self.waiting.insert(
            id,
            Item {
                queue,
                request,
                express,
                arrived: now,
                serial,
                placed: serial,
                dispatched: 0,
                estimate: 0,
                follows: false,
                chain: None,
                shares: 0,
            },
        );
        for e in self.path(self.queues[queue].ent) {
            if self.ents[e].queued == 0 {
                self.place(e);
                self.enter(e, now);
            }
            self.ents[e].queued += 1;
        }
        self.update();
    }

    fn remove(&mut self, id: ItemId, now: u64) {
        self.clock(now);
        let item = self.waiting.remove(&id).unwrap();
        for e in self.path(self.queues[item.queue].ent) {
            self.ents[e].queued -= 1;
        }
        self.update();
    }

    fn grow(&mut self, id: ItemId, sector: u64, sectors: u32) {
        let serial = self.stamp();
        let item = self.waiting.get_mut(&id).unwrap();
        if item.request.sector != sector {
            item.placed = serial;
        }
        item.request.sector = sector;
        item.request.sectors = sectors;
    }

    /// Which of a queue's items goes next.
    fn item_of(&self, queue: usize) -> ItemId {
        let mut mine: Vec<(&ItemId, &Item)> = self
            .waiting
            .iter()
            .filter(|(_, item)| item.queue == queue)
            .collect();
        mine.sort_by_key(|(_, item)| item.serial);
        if let Some(&(&id, _)) = mine.iter().find(|entry| entry.1.request.head) {
            return id;
        }
        let (&oldest, item) = mine[0];
        let expiry = match self.tun.order {
            Order::Cfq => [250, 500],
            Order::Deadline => [500, 5000],
            Order::Fifo => return oldest,
        };
        if self.now - item.arrived > expiry[item.request.dir as usize] * MS {
            return oldest;
        }
        mine.sort_by_key(|(_, item)| (item.request.sector, item.placed));
        let next = self.queues[queue].next_sector;
        let ahead = mine.iter().find(|(_, item)| item.request.sector >= next);
        *ahead.unwrap_or(&mine[0]).0
    }

    fn dispatch(&mut self, now: u64) -> Option<ItemId> {
        self.clock(now);
        if !self.work {
            return None;
        }
        let express = self
            .waiting
            .iter()
            .filter(|(_, item)| item.express)
            .min_by_key(|(_, item)| item.serial)
            .map(|(&id, _)| id);
        let id = match express {
            Some(id) => id,
            None => {
                let mut at = 0;
                let mut chosen = None;
                if self.slice() > 0 {
                    chosen = self.turn_queue;
                    if let Some(group) = self.turn_grp {
                        at = self.groups[group].leaf;
                    }
                }
                while chosen.is_none() {
                    let e = self.pick(at).unwrap();
                    self.started(e);
                    match self.ents[e].kind {
                        Kind::Queue(queue) => chosen = Some(self.nearest(e, queue)),
                        _ => at = e,
                    }
                }
                let queue = chosen.unwrap();
                let group = self.queues[queue].group;
                if self.turn_grp != Some(group) {
                    self.begin_turn(group);
                }
                if self.turn_queue != Some(queue) {
                    self.begin_queue(queue);
                }
                self.turn_queue = Some(queue);
                self.item_of(queue)
            }
        };
        let mut item = self.waiting.remove(&id).unwrap();
        let turns = self.slice() > 0;
        if item.express
            && let Some(waits) = self.who_waits(self.queues[item.queue].group)
        {
            if self.chain_grp != Some(waits) {
                self.chain_grp = Some(waits);
                self.chain += 1;
                self.links = 0;
            }
            item.chain = Some(self.chain);
            self.links += 1;
        }
        let queue = &mut self.queues[item.queue];
        let dir = item.request.dir as usize;
        let gap = item.request.sector.abs_diff(queue.next_sector);
        if turns && queue.last_sectors > 0 {
            queue.seek_mean = drift(queue.seek_mean, gap);
        }
        queue.next_sector = item.request.sector + u64::from(item.request.sectors);
        queue.last_sectors = u64::from(item.request.sectors);
        item.follows = self.last_queue == Some(item.queue) && self.flying.is_empty();
        if !item.follows {
            queue.follow -= queue.follow / 1024;
        }
        self.last_queue = Some(item.queue);
        item.dispatched = now;
        item.estimate = match (queue.cost[dir], self.cost[dir], self.cost[1 - dir]) {
            (0, 0, other) => other.max(100 * US),
            (0, device, _) => device,
            (own, ..) => own,
        };
        let (group, ent, estimate) = (queue.group, queue.ent, item.estimate);
        self.flying.insert(id, item);
        for e in self.path(ent) {
            self.served(e, estimate);
            self.ents[e].inflight += 1;
            self.ents[e].queued -= 1;
            self.charge(e, estimate as i64);
        }
        if self.turn_grp == Some(group) {
            self.turn_used += estimate;
        }
        self.update();
        Some(id)
    }

    /// Back from the device, done or not; returns the charge.
    fn back(&mut self, id: ItemId, now: u64, done: bool) -> u64 {
        self.clock(now);
        let item = self.flying.remove(&id).unwrap();
        // Whoever leaves the device idle has what is left.
        let left = self.busy - self.charged;
        let actual = match self.flying.is_empty() {
            true => left,
            false => left.min(item.shares >> 16),
        };
        self.charged += actual;
        let actual = actual.min(CHARGE_MAX);
        let (ent, group) = (self.queues[item.queue].ent, self.queues[item.queue].group);
        for e in self.path(ent) {
            self.ents[e].inflight -= 1;
            self.charge(e, actual as i64 - item.estimate as i64);
        }
        if self.turn_grp == Some(group) {
            self.turn_used = (self.turn_used + actual).saturating_sub(item.estimate);
        }
        self.queues[item.queue].think.last_end = now;
        self.groups[group].think.last_end = now;
        if item.chain == Some(self.chain)
            && let Some(waits) = self.chain_grp
        {
            self.links -= 1;
            if self.turn_grp == Some(waits) {
                self.turn_used += actual;
            }
            self.charge_path(self.groups[waits].leaf, actual as i64);
            self.groups[waits].think.last_end = now;
        }
        if done {
            self.head = item.request.sector + u64::from(item.request.sectors);
            let leaf = &self.ents[self.groups[group].leaf];
            let sync = self.queues[item.queue].sync;
            let idle = leaf.queued + leaf.inflight == 0;
            if self.slice() > 0 && item.request.dir == Dir::Write && sync && !item.express && idle {
                self.wrote = Some(group);
            }
            let dir = item.request.dir as usize;
            let own = &mut self.queues[item.queue].cost[dir];
            *own = mean_of(*own, actual);
            self.cost[dir] = mean_of(self.cost[dir], actual);
            if item.follows {
                let follow = &mut self.queues[item.queue].follow;
                *follow = mean_of(*follow, actual);
            }
            self.service = mean_of(self.service, now - item.dispatched);
            if self.rotational {
                let charge = self.within_group(&item, actual);
                self.charge(ent, charge - actual as i64);
                if item.request.dir == Dir::Read && self.turn_queue == Some(item.queue) {
                    self.turn_queue_had += charge;
                }
            }
        }
        self.update();
        actual
    }

    fn tick(&mut self, now: u64) {
        self.clock(now);
        if self.holding && now >= self.hold_until {
            let nobody = 2 * self.tun.idle.0;
            if let Some(queue) = self.turn_queue {
                self.queues[queue].think.sample(nobody);
                self.turn_queue = None;
            } else if let Some(group) = self.turn_grp {
                self.groups[group].think.sample(nobody);
            }
            self.pause_turn();
        }
        self.update();
    }

    fn set_weight(&mut self, e: usize, weight: u32) {
        let weight = u128::from(weight);
        let Some(parent) = self.ents[e].parent else {
            self.ents[e].weight = weight as u64;
            return;
        };
        let ent = &self.ents[e];
        let v = self.ents[parent].vtime[ent.class];
        let behind = before(ent.vdisktime, v);
        let lag = if behind {
            v.wrapping_sub(ent.vdisktime)
        } else {
            ent.vdisktime.wrapping_sub(v)
        };
        let lag = lag.min(virt(LEAD_MAX, ent.weight));
        let lag = (u128::from(lag) * u128::from(ent.weight) / weight) as u64;
        let to = if behind {
            v.wrapping_sub(lag)
        } else {
            v.wrapping_add(lag)
        };
        self.set_vdisktime(e, to);
        self.ents[e].rest = 0;
        self.ents[e].weight = weight as u64;
    }

    fn set_class(&mut self, e: usize, class: Class, now: u64) {
        let class = class as usize;
        let Some(parent) = self.ents[e].parent else {
            self.ents[e].class = class;
            return;
        };
        let old = self.ents[e].class;
        if old == class {
            return;
        }
        let lag = self.ents[e]
            .vdisktime
            .wrapping_sub(self.ents[parent].vtime[old]);
        self.ents[e].vdisktime = self.ents[parent].vtime[class].wrapping_add(lag);
        let queued = std::mem::take(&mut self.ents[e].queued);
        self.ents[e].class = class;
        if queued > 0 {
            self.enter(e, now);
        }
        self.ents[e].queued = queued;
    }

    fn wake_at(&self) -> Option<Nanos> {
        self.holding.then_some(Nanos(self.hold_until))
    }
}

// ---- both at once ----

#[derive(Clone, Debug)]
enum Op {
    Insert(u8, Request),
    Pass(u8, Request),
    Dispatch,
    DispatchAll,
    Complete(u8),
    Requeue(u8),
    Remove(u8),
    Grow(u8, u8),
    Weight(u8, u32),
    Class(u8, Class),
    Advance(u64),
    Tick,
}

fn weight() -> impl Strategy<Value = u32> {
    prop_oneof![Just(1), Just(100), Just(10_000), 1u32..=10_000]
}

fn op() -> impl Strategy<Value = Op> {
    let sectors = prop_oneof![6 => 1u32..9, 1 => 4096u32..=8192];
    let request =
        (any::<bool>(), 0u64..40, sectors, 0u8..40).prop_map(|(write, slot, sectors, flags)| {
            Request {
                dir: if write { Dir::Write } else { Dir::Read },
                sector: if slot < 20 {
                    slot * 8
                } else {
                    (1 << 30) + slot * 8
                },
                sectors,
                head: flags == 0,
                express: flags == 1,
            }
        });
    prop_oneof![
        30 => (any::<u8>(), request.clone())
            .prop_map(|(queue, request)| Op::Insert(queue, request)),
        15 => (any::<u8>(), request).prop_map(|(queue, request)| Op::Pass(queue, request)),
        20 => Just(Op::Dispatch),
        10 => Just(Op::DispatchAll),
        30 => any::<u8>().prop_map(Op::Complete),
        2 => any::<u8>().prop_map(Op::Requeue),
        2 => any::<u8>().prop_map(Op::Remove),
        2 => (any::<u8>(), any::<u8>()).prop_map(|(item, by)| Op::Grow(item, by)),
        1 => (any::<u8>(), weight()).prop_map(|(ent, weight)| Op::Weight(ent, weight)),
        1 => (any::<u8>(), prop::sample::select(Class::ALL.to_vec()))
            .prop_map(|(ent, class)| Op::Class(ent, class)),
        30 => prop_oneof![0u64..MS, 0u64..20 * MS, 0u64..600 * MS].prop_map(Op::Advance),
        10 => Just(Op::Tick),
    ]
}

/// Parent, weight and class of each group; group, sync, weight and class of each queue.
type Setup = (Vec<(u8, u32, Class)>, Vec<(u8, bool, u32, Class)>);

fn setup() -> impl Strategy<Value = Setup> {
    let class = || {
        prop::sample::select(vec![
            Class::Be,
            Class::Be,
            Class::Be,
            Class::Rt,
            Class::Idle,
        ])
    };
    let queue_class = || {
        prop::sample::select(vec![
            Class::Be,
            Class::Be,
            Class::Writeback,
            Class::Rt,
            Class::Idle,
        ])
    };
    (
        prop::collection::vec((any::<u8>(), weight(), class()), 0..5),
        prop::collection::vec((any::<u8>(), any::<bool>(), weight(), queue_class()), 1..7),
    )
}

struct Both {
    dev: Device,
    model: Model,
    queues: Vec<QueueId>,
    /// Entities of the core and of the model, alike.
    ents: Vec<(Entity, usize)>,
    now: u64,
    choices: u64,
}

impl Both {
    fn new(depth: u32, rotational: bool, tun: Tunables, setup: &Setup) -> Self {
        let now = SEC;
        let mut dev = Device::new(depth, 1 << 20, rotational, Nanos(now)).unwrap();
        dev.tune(tun, Nanos(now));
        dev.set_engine(Engine::Overlap);
        dev.set_checked(true);
        let mut model = Model::new(depth, rotational, tun, now);
        let mut groups: Vec<(GroupId, usize, usize)> = vec![(dev.root(), 0, 0)];
        let mut ents = Vec::new();
        for &(parent, weight, class) in &setup.0 {
            let (above, _, above_ent) = groups[usize::from(parent) % groups.len()];
            let id = dev
                .add_group(above, Weight::new(weight).unwrap(), class)
                .unwrap();
            let (number, ent) = model.add_group(Some(above_ent), weight, class);
            groups.push((id, number, ent));
            ents.push((Entity::Group(id), ent));
        }
        // Without children the core has no leaf in any line, and it must make no difference.
        for &(id, _, ent) in &groups {
            if model.has_children(ent) {
                ents.push((Entity::Leaf(id), ent + 1));
            }
        }
        let mut queues = Vec::new();
        for &(group, sync, weight, class) in &setup.1 {
            let (id, number, _) = groups[usize::from(group) % groups.len()];
            let queue = dev
                .add_queue(id, sync, Weight::new(weight).unwrap(), class, Nanos(now))
                .unwrap();
            let number = model.add_queue(number, sync, weight, class);
            ents.push((Entity::Queue(queue), model.queues[number].ent));
            queues.push(queue);
        }
        Both {
            dev,
            model,
            queues,
            ents,
            now,
            choices: 0,
        }
    }

    fn dispatch(&mut self) -> bool {
        let got = self.dev.dispatch(Nanos(self.now));
        let want = self.model.dispatch(self.now);
        assert_eq!(
            got,
            want,
            "core and reference choose differently\n{}",
            self.dev.dump()
        );
        self.choices += u64::from(got.is_some());
        got.is_some()
    }

    fn flying(&self, index: u8) -> Option<ItemId> {
        let all: Vec<ItemId> = self.model.flying.keys().copied().collect();
        (!all.is_empty()).then(|| all[usize::from(index) % all.len()])
    }

    fn waiting(&self, index: u8) -> Option<ItemId> {
        let all: Vec<ItemId> = self.model.waiting.keys().copied().collect();
        (!all.is_empty()).then(|| all[usize::from(index) % all.len()])
    }

    fn complete(&mut self, id: ItemId) {
        let got = self.dev.complete(id, Nanos(self.now)).unwrap();
        assert_eq!(got, Nanos(self.model.back(id, self.now, true)), "charge");
    }

    fn step(&mut self, op: &Op) {
        let now = Nanos(self.now);
        match *op {
            Op::Insert(queue, request) => {
                let number = usize::from(queue) % self.queues.len();
                let id = self.dev.insert(self.queues[number], request, now).unwrap();
                self.model.insert(id, number, request, self.now);
            }
            Op::Pass(queue, request) => {
                let number = usize::from(queue) % self.queues.len();
                let model = &mut self.model;
                let passes = model.slice() == 0
                    && model.waiting.is_empty()
                    && (model.flying.len() as u32) < model.depth();
                let id = self.dev.pass(self.queues[number], request, now).unwrap();
                assert_eq!(id.is_some(), passes, "pass");
                if let Some(id) = id {
                    // With nothing before it there is nothing to go ahead of.
                    let request = Request {
                        express: false,
                        ..request
                    };
                    model.insert(id, number, request, self.now);
                    assert_eq!(model.dispatch(self.now), Some(id));
                    self.choices += 1;
                }
            }
            Op::Dispatch => {
                self.dispatch();
            }
            Op::DispatchAll => while self.dispatch() {},
            Op::Complete(item) => {
                if let Some(id) = self.flying(item) {
                    self.complete(id);
                }
            }
            Op::Requeue(item) => {
                if let Some(id) = self.flying(item) {
                    let item = self.model.flying[&id].clone();
                    self.dev.requeue(id, now).unwrap();
                    self.model.back(id, self.now, false);
                    let request = Request {
                        head: true,
                        ..item.request
                    };
                    self.dev.insert_again(id, request, now).unwrap();
                    self.model.insert(id, item.queue, request, self.now);
                }
            }
            Op::Remove(item) => {
                if let Some(id) = self.waiting(item) {
                    self.dev.remove(id, now).unwrap();
                    self.model.remove(id, self.now);
                }
            }
            Op::Grow(item, by) => {
                if let Some(id) = self.waiting(item) {
                    let request = self.model.waiting[&id].request;
                    let front = u64::from(by % 8).min(request.sector);
                    let sectors = request.sectors + u32::from(by % 16);
                    self.dev.grow(id, request.sector - front, sectors).unwrap();
                    self.model.grow(id, request.sector - front, sectors);
                }
            }
            Op::Weight(ent, weight) => {
                let (entity, e) = self.ents[usize::from(ent) % self.ents.len()];
                self.dev
                    .set_weight(entity, Weight::new(weight).unwrap())
                    .unwrap();
                self.model.set_weight(e, weight);
            }
            Op::Class(ent, class) => {
                let (entity, e) = self.ents[usize::from(ent) % self.ents.len()];
                if class != Class::Writeback || matches!(entity, Entity::Queue(_)) {
                    self.dev.set_class(entity, class, now).unwrap();
                    self.model.set_class(e, class, self.now);
                }
            }
            Op::Advance(by) => self.now += by,
            Op::Tick => {
                if let Some(at) = self.dev.wake_at() {
                    self.now = self.now.max(at.0);
                }
                self.dev.tick(Nanos(self.now));
                self.model.tick(self.now);
            }
        }
        self.compare();
    }

    fn compare(&self) {
        assert_eq!(self.dev.has_work(), self.model.work, "work");
        assert_eq!(self.dev.wake_at(), self.model.wake_at(), "hold");
        for &(entity, e) in &self.ents {
            let state = self.dev.entity_state(entity).unwrap();
            let ent = &self.model.ents[e];
            assert_eq!(
                (state.vdisktime, state.queued, state.inflight),
                (ent.vdisktime, ent.queued, ent.inflight),
                "{entity:?}\n{}",
                self.dev.dump()
            );
        }
    }

    /// To the last item.
    fn finish(&mut self) {
        for _ in 0..100_000 {
            while self.dispatch() {}
            if let Some(id) = self.flying(0) {
                self.now += MS;
                self.complete(id);
            } else if self.model.waiting.is_empty() {
                return;
            } else {
                self.step(&Op::Tick);
            }
            self.compare();
        }
        panic!("no end");
    }
}

proptest! {
    #![proptest_config(cases(2048))]

    #[test]
    fn core_chooses_as_the_naive_scheduler_does(
        setup in setup(),
        depth in 1u32..9,
        order in prop::sample::select(Order::ALL.to_vec()),
        ops in prop::collection::vec(op(), 1..250),
    ) {
        let tun = Tunables { slice: Nanos(0), idle: Nanos(2 * MS), depth: 0, order, strict: false };
        let mut both = Both::new(depth, false, tun, &setup);
        for op in &ops {
            both.step(op);
        }
        both.finish();
    }

    #[test]
    fn core_takes_turns_and_holds_as_the_naive_scheduler_does(
        setup in setup(),
        depth in 1u32..9,
        rotational: bool,
        strict: bool,
        slice in prop::sample::select(vec![0u64, 2 * MS, 20 * MS]),
        idle in prop::sample::select(vec![0u64, MS, 8 * MS]),
        order in prop::sample::select(Order::ALL.to_vec()),
        ops in prop::collection::vec(op(), 1..250),
    ) {
        let tun = Tunables { slice: Nanos(slice), idle: Nanos(idle), depth: 0, order, strict };
        let mut both = Both::new(depth, rotational, tun, &setup);
        for op in &ops {
            both.step(op);
        }
        both.finish();
    }
}
