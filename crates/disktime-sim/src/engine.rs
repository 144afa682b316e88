//! The event loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use disktime_core::{
    Counts, Device, Dir, Engine, Entity, GroupId, ItemId, Nanos, Request, Stats, Tunables,
    WaiterId, Weight,
};
use disktime_model::{Disk, Event};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::cache::Cache;
use crate::issuers::{Ask, Issuer, populate};
use crate::observe::{Observer, Op, Silent, Tally};
use crate::process::{Kind, Next, Process, Wish};
use crate::setup::{Charge, Controller, Invalid, Setup, check};

/// As the elevator has it: with so many tags, all but the last quarter go without formalities.
const PLENTY: u32 = 64;
/// As the block layer has it: twice what the device takes, of which it counts so many.
const DEFAULT_TAGS: u32 = 128;

#[derive(Clone, Copy)]
struct InFlight {
    ask: Ask,
    item: Option<ItemId>,
}

/// With charges by the model's account: what is on its way to the core.
struct Given {
    /// By a request's id, until the model first says what it took: what its dispatch was charged.
    estimates: HashMap<u64, Nanos>,
    /// By group, and the root: true time that was not a whole nanosecond of the device's.
    rests: Vec<u64>,
    parallelism: u64,
}

enum Gate {
    /// Waiters of the core, by their index the issuer.
    Core(Vec<usize>),
    Fifo(VecDeque<usize>),
}

/// A run.
pub struct Sim<O: Observer = Silent> {
    now: u64,
    disk: Box<dyn Disk>,
    core: Device,
    scheduled: bool,
    given: Option<Given>,
    procs: Vec<Process>,
    issuers: Vec<Issuer>,
    cache: Cache,
    /// By group: the part of the page cache that it writes to.
    domains: Vec<Option<usize>>,
    groups: Vec<GroupId>,
    /// By group, and the root.
    tallies: Vec<Tally>,
    rng: ChaCha8Rng,
    /// Issuers that may have something to do, by when; whether a process has then thought.
    timers: BinaryHeap<Reverse<(u64, u32, bool)>>,
    /// Issuers that may have something to do now.
    ready: VecDeque<usize>,
    gate: Gate,
    wake_ns: u64,
    tags: u32,
    tags_used: u32,
    waiting: u32,
    /// By the core's item index.
    items: Vec<Ask>,
    /// By disk slot; the rest of a request's id is its issuer and a serial number.
    slots: Vec<Option<InFlight>>,
    free: Vec<u16>,
    /// Without a scheduler: waiting for a slot.
    fifo: VecDeque<Ask>,
    /// Processes whose flush the disk does, and those who have asked since. As in the kernel
    /// (block/blk-flush.c) there is one at a time, and the next is for all who have asked.
    flushing: Vec<usize>,
    to_flush: Vec<usize>,
    flush_begun: u64,
    serial: u64,
    events: Vec<Event>,
    pub observer: O,
}

fn id_of(serial: u64, dir: Dir, issuer: u32, slot: u16) -> u64 {
    serial << 33 | (dir as u64) << 32 | u64::from(issuer) << 16 | u64::from(slot)
}

fn dir_of(id: u64) -> Dir {
    match id >> 32 & 1 {
        0 => Dir::Read,
        _ => Dir::Write,
    }
}

fn issuer_of(id: u64) -> usize {
    (id >> 16 & 0xffff) as usize
}

fn slot_of(id: u64) -> usize {
    (id & 0xffff) as usize
}

impl<O: Observer> Sim<O> {
    pub fn new(setup: Setup, observer: O) -> Result<Self, Invalid> {
        check(&setup)?;
        let slots = setup.disk.slots();
        let scheduled = matches!(setup.controller, Controller::Disktime { .. });
        let tags = match (scheduled, setup.nr_requests) {
            (false, _) => slots,
            (true, Some(nr)) => nr,
            (true, None) => 2 * slots.min(DEFAULT_TAGS),
        };
        let zero = Nanos(0);
        let mut core = Device::new(slots, tags, setup.disk.rotational(), zero)?;
        core.set_checked(setup.checked);
        if let Controller::Disktime {
            slice,
            idle,
            depth,
            order,
            strict,
            charge,
        } = setup.controller
        {
            if charge == Charge::True {
                core.set_engine(Engine::Given);
            }
            let usual = core.tunables();
            let tunables = Tunables {
                slice: slice.unwrap_or(usual.slice),
                idle: idle.unwrap_or(usual.idle),
                depth: depth.unwrap_or(usual.depth),
                order: order.unwrap_or(usual.order),
                strict,
            };
            core.tune(tunables, zero);
        }
        let mut groups = Vec::with_capacity(setup.groups.len());
        for group in &setup.groups {
            let parent = group.parent.map_or(core.root(), |above| groups[above]);
            groups.push(core.add_group(parent, group.weight, group.class)?);
        }
        let (procs, issuers, cache, domains) = populate(&setup, &mut core, &groups)?;
        let given = match setup.controller {
            Controller::Disktime {
                charge: Charge::True,
                ..
            } => Some(Given {
                estimates: HashMap::new(),
                rests: vec![0; groups.len() + 1],
                parallelism: setup.disk.parallelism().into(),
            }),
            _ => None,
        };
        let slot_count = u16::try_from(slots).map_err(|_| Invalid::Tags)?;
        Ok(Sim {
            now: 0,
            tallies: vec![Tally::default(); groups.len() + 1],
            gate: if scheduled {
                Gate::Core(Vec::new())
            } else {
                Gate::Fifo(VecDeque::new())
            },
            disk: setup.disk,
            core,
            scheduled,
            given,
            procs,
            issuers,
            cache,
            domains,
            groups,
            rng: ChaCha8Rng::seed_from_u64(setup.seed),
            timers: BinaryHeap::new(),
            ready: VecDeque::new(),
            wake_ns: setup.wake_ns,
            tags,
            tags_used: 0,
            waiting: 0,
            items: Vec::new(),
            flushing: Vec::new(),
            to_flush: Vec::new(),
            flush_begun: 0,
            slots: vec![None; usize::from(slot_count)],
            free: (0..slot_count).rev().collect(),
            fifo: VecDeque::new(),
            serial: 0,
            events: Vec::new(),
            observer,
        })
    }

    pub fn now(&self) -> u64 {
        self.now
    }

    /// Size of the tag set.
    pub fn tags(&self) -> u32 {
        self.tags
    }

    /// Lets a process begin I/Os.
    pub fn start(&mut self, proc: usize) {
        if let Some(at) = self.procs[proc].start(self.now) {
            self.procs[proc].note(self.now);
            self.at(at, proc, false);
            self.settle();
        }
    }

    /// Lets it begin no more; what it has outstanding completes.
    pub fn stop(&mut self, proc: usize) {
        self.procs[proc].stop(&mut self.cache);
    }

    /// Whether the process has done all that it was to, and all of it has completed: its last
    /// write() has returned, or the sync at its end.
    pub fn finished(&self, proc: usize) -> bool {
        self.procs[proc].finished()
    }

    /// When it had.
    pub fn finished_at(&self, proc: usize) -> Option<u64> {
        self.procs[proc].finished_at()
    }

    /// Bytes that the process has read and written: what has completed of its direct I/O, what it
    /// has copied to or from the page cache.
    pub fn moved(&self, proc: usize) -> u64 {
        self.procs[proc].moved()
    }

    /// What the process has begun and not got back: requests, calls, a sync, what is read ahead for
    /// it. Not what it has left dirty in the page cache.
    pub fn outstanding(&self, proc: usize) -> u32 {
        self.procs[proc].outstanding()
    }

    /// Bytes dirty or being written back in the page cache that the group writes to: its own, that
    /// of a group above, or the machine's.
    pub fn dirty(&self, group: usize) -> u64 {
        self.domains[group].map_or(0, |domain| self.cache.held(domain))
    }

    /// What a group had. Requests that a flusher makes are its group's.
    pub fn tally(&self, group: usize) -> Tally {
        self.tallies[group]
    }

    /// What the root itself had: what is written back for groups without limits.
    pub fn root_tally(&self) -> Tally {
        self.tallies[self.groups.len()]
    }

    /// The core's own account of the root's own requests.
    pub fn root_stats(&self) -> Result<Stats, Invalid> {
        Ok(self.core.stats(self.core.root())?)
    }

    /// The core's own account of a group.
    pub fn stats(&self, group: usize) -> Result<Stats, Invalid> {
        Ok(self.core.stats(self.groups[group])?)
    }

    /// Whether anything of the group is queued, in the device or waits for a tag.
    pub fn backlogged(&self, group: usize) -> Result<bool, Invalid> {
        let state = self.core.entity_state(Entity::Group(self.groups[group]))?;
        Ok(state.queued > 0 || state.inflight > 0)
    }

    /// What the core knows, as text: a line for the device, each group and each queue.
    pub fn state(&self) -> String {
        self.core.dump()
    }

    pub fn counts(&self) -> Counts {
        self.core.counts()
    }

    /// Changes a group's weight.
    pub fn set_weight(&mut self, group: usize, weight: Weight) -> Result<(), Invalid> {
        Ok(self
            .core
            .set_weight(Entity::Group(self.groups[group]), weight)?)
    }

    /// Lets everything happen up to and including `until`.
    pub fn run(&mut self, until: u64) -> Result<(), Invalid> {
        while let Some(at) = self.next_at().filter(|&at| at <= until) {
            self.now = at;
            self.step()?;
        }
        self.now = until;
        let mut events = std::mem::take(&mut self.events);
        self.disk.run(until, &mut events);
        self.events = events;
        Ok(())
    }

    fn next_at(&self) -> Option<u64> {
        let timer = self.timers.peek().map(|Reverse((at, _, _))| *at);
        let wake = self.core.wake_at().map(|at| at.0.max(self.now));
        [self.disk.next_at(), timer, wake]
            .into_iter()
            .flatten()
            .min()
    }

    fn step(&mut self) -> Result<(), Invalid> {
        let now = self.now;
        let mut events = std::mem::take(&mut self.events);
        self.disk.run(now, &mut events);
        for event in events.drain(..) {
            match event {
                Event::Took { id, time, .. } => self.took(id, time)?,
                Event::Done { id, .. } => self.complete(id)?,
            }
        }
        self.events = events;
        if self.core.wake_at().is_some_and(|at| at.0 <= now) {
            self.core.tick(Nanos(now));
        }
        while let Some(&Reverse((at, issuer, thought))) = self.timers.peek() {
            if at > now {
                break;
            }
            self.timers.pop();
            if thought {
                self.procs[issuer as usize].woke();
            } else if let Some(flusher) = self.flusher(issuer as usize) {
                if let Some(at) = self.cache.look(flusher, now) {
                    self.at(at, issuer as usize, false);
                }
            }
            self.ready.push_back(issuer as usize);
        }
        self.try_settle()
    }

    /// The issuer's turn comes then; `thought`: when a process has thought.
    fn at(&mut self, at: u64, issuer: usize, thought: bool) {
        if at > self.now {
            self.timers.push(Reverse((at, issuer as u32, thought)));
        } else {
            self.ready.push_back(issuer);
        }
    }

    /// Index of the flusher, if that is one.
    fn flusher(&self, issuer: usize) -> Option<usize> {
        issuer.checked_sub(self.procs.len())
    }

    /// Whoever may issue does, and the device gets what it is to have.
    fn try_settle(&mut self) -> Result<(), Invalid> {
        loop {
            self.flush();
            self.grant()?;
            let Some(issuer) = self.ready.pop_front() else {
                break;
            };
            self.issue(issuer)?;
        }
        self.dispatch()
    }

    fn settle(&mut self) {
        // Starting a process meets no error that the setup had not met.
        self.try_settle().expect("the core knows its own queues");
    }

    /// A process or a flusher asks for all that it wants, until it has to sleep for a tag.
    fn issue(&mut self, issuer: usize) -> Result<(), Invalid> {
        while self.issuers[issuer].asleep.is_none() {
            let Some(ask) = self.next(issuer) else {
                break;
            };
            if self.tag_at_once() {
                self.tags_used += 1;
                self.make(ask, None)?;
            } else {
                self.sleep(ask)?;
                self.grant()?;
            }
        }
        self.wake_flushers();
        Ok(())
    }

    /// What it wants next.
    fn next(&mut self, issuer: usize) -> Option<Ask> {
        let now = self.now;
        if let Some(flusher) = self.flusher(issuer) {
            let extent = self.cache.write_back(flusher, now)?;
            let wish = Wish {
                kind: Kind::Clean,
                dir: Dir::Write,
                sector: extent.sector,
                sectors: extent.sectors,
            };
            return Some(self.ask(issuer, extent.proc, wish));
        }
        loop {
            let process = &mut self.procs[issuer];
            match process.next(now, &mut self.rng, &mut self.cache) {
                Next::Nothing => return None,
                Next::Again => {}
                Next::Request(wish) => return Some(self.ask(issuer, issuer, wish)),
                Next::Flush => {
                    self.to_flush.push(issuer);
                    self.flush();
                    return None;
                }
                Next::At(at) | Next::Think(at) if at <= now => {}
                Next::At(at) => {
                    self.at(at, issuer, false);
                    return None;
                }
                Next::Think(at) => {
                    self.at(at, issuer, true);
                    return None;
                }
            }
        }
    }

    fn ask(&self, issuer: usize, proc: usize, wish: Wish) -> Ask {
        Ask {
            op: Op {
                proc,
                dir: wish.dir,
                sync: self.flusher(issuer).is_none(),
                sector: wish.sector,
                sectors: wish.sectors,
                asked: self.now,
            },
            kind: wish.kind,
            issuer: issuer as u32,
        }
    }

    /// The page cache has found work for flushers.
    fn wake_flushers(&mut self) {
        while let Some(flusher) = self.cache.woken.pop() {
            self.ready.push_back(self.procs.len() + flusher);
        }
        while let Some((at, flusher)) = self.cache.looks.pop() {
            self.at(at, self.procs.len() + flusher, false);
        }
    }

    /// The disk gets a flush, if it is to have one and none is under way.
    fn flush(&mut self) {
        if !self.flushing.is_empty() || self.to_flush.is_empty() || self.free.is_empty() {
            return;
        }
        std::mem::swap(&mut self.flushing, &mut self.to_flush);
        let wish = Wish {
            kind: Kind::Flush,
            dir: Dir::Write,
            sector: 0,
            sectors: 0,
        };
        if self.scheduled {
            self.core.commit_begin(Nanos(self.now));
            self.flush_begun = self.now;
        }
        let first = self.flushing[0];
        self.hand_over(self.ask(first, first, wish), None);
    }

    fn tag_at_once(&self) -> bool {
        let room = self.tags.saturating_sub(self.tags_used);
        if self.waiting > 0 {
            return false;
        }
        match self.gate {
            Gate::Fifo(_) => room > 0,
            Gate::Core(_) => self.tags >= PLENTY && room > self.tags / 4,
        }
    }

    fn sleep(&mut self, ask: Ask) -> Result<(), Invalid> {
        let issuer = ask.issuer as usize;
        self.issuers[issuer].asleep = Some(ask);
        self.waiting += 1;
        match &mut self.gate {
            Gate::Fifo(line) => line.push_back(issuer),
            Gate::Core(waiters) => {
                let queue = self.issuers[issuer].queue;
                let waiter = self.core.gate_wait(queue, Nanos(self.now))?;
                let index = waiter.index();
                if waiters.len() <= index {
                    waiters.resize(index + 1, 0);
                }
                waiters[index] = issuer;
            }
        }
        Ok(())
    }

    /// Hands out tags that are free.
    fn grant(&mut self) -> Result<(), Invalid> {
        while self.waiting > 0 && self.tags_used < self.tags {
            let (issuer, waiter): (usize, Option<WaiterId>) = match &mut self.gate {
                Gate::Fifo(line) => match line.pop_front() {
                    Some(issuer) => (issuer, None),
                    None => return Ok(()),
                },
                Gate::Core(waiters) => match self.core.gate_grant(Nanos(self.now)) {
                    Some(waiter) => (waiters[waiter.index()], Some(waiter)),
                    None => return Ok(()),
                },
            };
            self.waiting -= 1;
            self.tags_used += 1;
            let ask = self.issuers[issuer].asleep.take();
            self.make(ask.expect("who waits wants something"), waiter)?;
            self.ready.push_back(issuer);
        }
        Ok(())
    }

    /// A request exists.
    fn make(&mut self, ask: Ask, waiter: Option<WaiterId>) -> Result<(), Invalid> {
        if !self.scheduled {
            self.fifo.push_back(ask);
            return Ok(());
        }
        let queue = self.issuers[ask.issuer as usize].queue;
        let request = Request {
            dir: ask.op.dir,
            sector: ask.op.sector,
            sectors: ask.op.sectors,
            ..Request::default()
        };
        let now = Nanos(self.now);
        // The core does not know of flushes, which take a slot as well.
        let passed = match self.free.is_empty() {
            true => None,
            false => self.core.pass(queue, request, now)?,
        };
        match passed {
            Some(item) => self.hand_over(ask, Some(item)),
            None => {
                let index = self.core.insert(queue, request, now)?.index();
                if self.items.len() <= index {
                    self.items.resize(index + 1, ask);
                }
                self.items[index] = ask;
            }
        }
        if let Some(waiter) = waiter {
            self.core.gate_settle(waiter)?;
        }
        Ok(())
    }

    fn dispatch(&mut self) -> Result<(), Invalid> {
        if self.scheduled {
            while !self.free.is_empty() && self.core.has_work() {
                let Some(item) = self.core.dispatch(Nanos(self.now)) else {
                    break;
                };
                self.hand_over(self.items[item.index()], Some(item));
            }
        } else {
            while !self.free.is_empty()
                && let Some(ask) = self.fifo.pop_front()
            {
                self.hand_over(ask, None);
            }
        }
        Ok(())
    }

    fn hand_over(&mut self, ask: Ask, item: Option<ItemId>) {
        let slot = self.free.pop().expect("there is a free slot");
        let id = id_of(self.serial, ask.op.dir, ask.issuer, slot);
        self.serial += 1;
        self.slots[usize::from(slot)] = Some(InFlight { ask, item });
        if let Some(given) = &mut self.given
            && let Some(item) = item
        {
            let state = self.core.item_state(item).expect("it was just dispatched");
            given.estimates.insert(id, state.estimate);
        }
        let op = &ask.op;
        if ask.kind != Kind::Flush {
            self.observer.issued(op, self.now);
        }
        let request = disktime_model::Request {
            op: match (ask.kind, op.dir) {
                (Kind::Flush, _) => disktime_model::Op::Flush,
                (_, Dir::Read) => disktime_model::Op::Read,
                (_, Dir::Write) => disktime_model::Op::Write,
            },
            sector: op.sector,
            sectors: op.sectors,
            fua: false,
        };
        self.disk.submit(id, request, self.now);
    }

    /// The model says what a request took, or a part of it.
    fn took(&mut self, id: u64, time: u64) -> Result<(), Invalid> {
        let issuer = issuer_of(id);
        let Issuer { queue, group, .. } = self.issuers[issuer];
        self.tallies[group].true_ns += time;
        let Some(given) = &mut self.given else {
            return Ok(());
        };
        let rest = &mut given.rests[group];
        let time = time + *rest;
        *rest = time % given.parallelism;
        let took = Nanos(time / given.parallelism);
        let estimate = given.estimates.remove(&id).unwrap_or(Nanos::ZERO);
        let now = Nanos(self.now);
        Ok(self.core.charge(queue, dir_of(id), took, estimate, now)?)
    }

    fn complete(&mut self, id: u64) -> Result<(), Invalid> {
        let slot = slot_of(id);
        let InFlight { ask, item } = self.slots[slot].take().expect("it is in flight");
        self.free.push(slot as u16);
        if ask.kind == Kind::Flush {
            if self.scheduled {
                let begun = Nanos(self.flush_begun);
                self.core.commit_end(begun, Nanos(self.now));
            }
            self.flushed();
            return Ok(());
        }
        if let Some(item) = item {
            self.core.complete(item, Nanos(self.now))?;
        }
        let op = &ask.op;
        self.observer.completed(op, self.now);
        self.tags_used -= 1;
        let tally = &mut self.tallies[self.issuers[ask.issuer as usize].group];
        tally.ios[op.dir as usize] += 1;
        tally.sectors[op.dir as usize] += u64::from(op.sectors);
        let process = &mut self.procs[op.proc];
        let woken_at = self.now + self.wake_ns;
        match ask.kind {
            Kind::Own => match process.own_done(op.sectors, self.now, self.wake_ns) {
                Some(at) => self.timers.push(Reverse((at, op.proc as u32, true))),
                None => self.ready.push_back(op.proc),
            },
            Kind::Ahead => {
                if process.ahead_done(op.sector) {
                    self.at(woken_at, op.proc, false);
                }
            }
            // Flushes are not among these.
            Kind::Clean | Kind::Flush => {
                if let Some(file) = process.file {
                    self.cache.cleaned(file, op.sectors, self.now);
                    if process.cleans() && self.cache.is_clean(file) {
                        self.at(woken_at, op.proc, false);
                    }
                }
            }
        }
        Ok(())
    }

    /// A flush is complete.
    fn flushed(&mut self) {
        let mut done = std::mem::take(&mut self.flushing);
        for proc in done.drain(..) {
            let since = self.procs[proc].flush_done(self.now);
            self.observer.synced(proc, since, self.now);
            self.tallies[self.issuers[proc].group].flushes += 1;
            self.at(self.now + self.wake_ns, proc, false);
        }
        self.flushing = done;
    }
}
