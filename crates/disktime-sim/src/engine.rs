//! The event loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use disktime_core::{
    Class, Counts, Device, Dir, Entity, GroupId, ItemId, Nanos, Order, QueueId, Request, Stats,
    Tunables, WaiterId, Weight,
};
use disktime_model::{Disk, Event};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use thiserror::Error;

use crate::load::{Group, Mix, Pattern, Proc};

/// As the elevator has it: with so many tags, all but the last quarter go without formalities.
const PLENTY: u32 = 64;
/// As the elevator has it: no more than this is handed to a device at once.
const DEPTH_CAP: u32 = 128;
/// As the block layer has it: twice what the device takes, of which it counts so many.
const DEFAULT_TAGS: u32 = 128;

/// Who decides which request the disk gets.
#[derive(Clone, Copy, Debug)]
pub enum Controller {
    /// The core; `None` leaves a tunable at its default.
    Disktime {
        slice: Option<Nanos>,
        idle: Option<Nanos>,
        depth: Option<u32>,
        order: Option<Order>,
        strict: bool,
    },
    /// Nobody: requests go to the disk in order of arrival.
    Fifo,
}

impl Controller {
    /// The core with all defaults.
    pub const DISKTIME: Controller = Controller::Disktime {
        slice: None,
        idle: None,
        depth: None,
        order: None,
        strict: false,
    };
}

/// What is simulated.
pub struct Setup {
    pub disk: Box<dyn Disk>,
    pub controller: Controller,
    /// Size of the scheduler's tag set; `None`: the block layer's default.
    pub nr_requests: Option<u32>,
    /// Parents before children.
    pub groups: Vec<Group>,
    pub procs: Vec<Proc>,
    /// From a completion until its process runs and can issue again: what a wake-up takes. At 0 a
    /// process that waits for each of its requests would never be found without one.
    pub wake_ns: u64,
    /// For where requests go and which are reads. The disk has a seed of its own.
    pub seed: u64,
    /// Verify the core's invariants after each event: slow.
    pub checked: bool,
}

/// Why a setup cannot be simulated.
#[derive(Debug, Error)]
pub enum Invalid {
    #[error("process {0} belongs to a group that there is not")]
    NoGroup(usize),
    #[error("group {0} stands before the group that it belongs to")]
    Parent(usize),
    #[error("the region of process {0} is too small for its requests, or reaches past the disk")]
    Region(usize),
    #[error("process {0} keeps no request outstanding")]
    Depth(usize),
    #[error("a tag set has at least one request and at most 2048")]
    Tags,
    #[error(transparent)]
    Core(#[from] disktime_core::Error),
}

/// A request, as an observer sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Index of the process.
    pub proc: usize,
    pub dir: Dir,
    pub sector: u64,
    pub sectors: u32,
    /// When the process asked for it: before it had a tag.
    pub asked: u64,
}

/// Sees what a tracer of the block layer would.
pub trait Observer {
    fn issued(&mut self, op: &Op, at: u64);
    fn completed(&mut self, op: &Op, at: u64);
}

/// Looks away.
pub struct Silent;

impl Observer for Silent {
    fn issued(&mut self, _: &Op, _: u64) {}
    fn completed(&mut self, _: &Op, _: u64) {}
}

/// What one group had, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Completed, reads before writes.
    pub ios: [u64; 2],
    pub sectors: [u64; 2],
    /// Device time that its requests took by the model's account, which no scheduler sees.
    pub true_ns: u64,
}

struct Running {
    spec: Proc,
    queue: Option<QueueId>,
    on: bool,
    outstanding: u32,
    /// Requests that it will issue when it has woken up and thought.
    thinking: u32,
    /// It sleeps for a tag, since then.
    asleep: Option<u64>,
    next_sector: u64,
    sectors_left: u64,
}

#[derive(Clone, Copy)]
struct InFlight {
    op: Op,
    item: Option<ItemId>,
}

enum Gate {
    /// Waiters of the core, by their index the process.
    Core(Vec<usize>),
    Fifo(VecDeque<usize>),
}

/// A run.
pub struct Sim<O: Observer = Silent> {
    now: u64,
    disk: Box<dyn Disk>,
    core: Device,
    scheduled: bool,
    procs: Vec<Running>,
    groups: Vec<GroupId>,
    tallies: Vec<Tally>,
    rng: ChaCha8Rng,
    /// Processes that wake up or stop thinking, by when.
    timers: BinaryHeap<Reverse<(u64, usize)>>,
    /// Processes that may issue now.
    ready: VecDeque<usize>,
    gate: Gate,
    wake_ns: u64,
    tags: u32,
    tags_used: u32,
    waiting: u32,
    /// By the core's item index.
    items: Vec<Op>,
    /// By disk slot; the rest of a request's id is its process and a serial number.
    slots: Vec<Option<InFlight>>,
    free: Vec<u16>,
    /// Without a scheduler: waiting for a slot.
    fifo: VecDeque<Op>,
    serial: u64,
    events: Vec<Event>,
    pub observer: O,
}

fn id_of(serial: u64, proc: usize, slot: u16) -> u64 {
    serial << 32 | (proc as u64) << 16 | u64::from(slot)
}

fn proc_of(id: u64) -> usize {
    (id >> 16 & 0xffff) as usize
}

fn slot_of(id: u64) -> usize {
    (id & 0xffff) as usize
}

fn check(setup: &Setup) -> Result<(), Invalid> {
    for (index, group) in setup.groups.iter().enumerate() {
        if group.parent.is_some_and(|parent| parent >= index) {
            return Err(Invalid::Parent(index));
        }
    }
    for (index, proc) in setup.procs.iter().enumerate() {
        if proc.group >= setup.groups.len() || index > usize::from(u16::MAX) {
            return Err(Invalid::NoGroup(index));
        }
        let room = proc.to.saturating_sub(proc.from);
        if proc.sectors == 0 || room < u64::from(proc.sectors) || proc.to > setup.disk.sectors() {
            return Err(Invalid::Region(index));
        }
        if proc.depth == 0 {
            return Err(Invalid::Depth(index));
        }
    }
    if setup.nr_requests.is_some_and(|nr| nr == 0 || nr > 2048) {
        return Err(Invalid::Tags);
    }
    Ok(())
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
        let depth = slots.min(DEPTH_CAP);
        let mut core = Device::new(depth, tags, setup.disk.rotational(), zero)?;
        core.set_checked(setup.checked);
        if let Controller::Disktime {
            slice,
            idle,
            depth,
            order,
            strict,
        } = setup.controller
        {
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
            let parent = group.parent.map_or(core.root(), |parent| groups[parent]);
            groups.push(core.add_group(parent, group.weight, group.class)?);
        }
        let by_process = core.tunables().order == Order::Cfq;
        let mut shared: Vec<Option<QueueId>> = vec![None; groups.len()];
        let mut procs = Vec::with_capacity(setup.procs.len());
        for spec in setup.procs {
            let group = groups[spec.group];
            let queue = match shared[spec.group] {
                Some(queue) if !by_process => queue,
                _ if by_process => core.add_queue(group, true, spec.weight, spec.class, zero)?,
                _ => core.add_queue(group, true, Weight::default(), Class::Be, zero)?,
            };
            shared[spec.group] = Some(queue);
            procs.push(Running {
                spec,
                queue: Some(queue),
                on: false,
                outstanding: 0,
                thinking: 0,
                asleep: None,
                next_sector: spec.from,
                sectors_left: spec.limit.unwrap_or(u64::MAX),
            });
        }
        let slot_count = u16::try_from(slots).map_err(|_| Invalid::Tags)?;
        Ok(Sim {
            now: 0,
            tallies: vec![Tally::default(); groups.len()],
            gate: if scheduled {
                Gate::Core(Vec::new())
            } else {
                Gate::Fifo(VecDeque::new())
            },
            disk: setup.disk,
            core,
            scheduled,
            procs,
            groups,
            rng: ChaCha8Rng::seed_from_u64(setup.seed),
            timers: BinaryHeap::new(),
            ready: VecDeque::new(),
            wake_ns: setup.wake_ns,
            tags,
            tags_used: 0,
            waiting: 0,
            items: Vec::new(),
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

    /// Lets a process issue.
    pub fn start(&mut self, proc: usize) {
        let running = &mut self.procs[proc];
        if !running.on {
            running.on = true;
            self.ready.push_back(proc);
            self.settle();
        }
    }

    /// Lets it issue no more; what it has outstanding completes.
    pub fn stop(&mut self, proc: usize) {
        self.procs[proc].on = false;
    }

    /// Whether the process has issued all that it was to, and all of it has completed.
    pub fn finished(&self, proc: usize) -> bool {
        let running = &self.procs[proc];
        running.outstanding == 0 && running.sectors_left < u64::from(running.spec.sectors)
    }

    /// Requests that the process has asked for and not got back.
    pub fn outstanding(&self, proc: usize) -> u32 {
        self.procs[proc].outstanding
    }

    pub fn tally(&self, group: usize) -> Tally {
        self.tallies[group]
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
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
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
                Event::Took { id, time, .. } => {
                    let group = self.procs[proc_of(id)].spec.group;
                    self.tallies[group].true_ns += time;
                }
                Event::Done { id, .. } => self.complete(id)?,
            }
        }
        self.events = events;
        if self.core.wake_at().is_some_and(|at| at.0 <= now) {
            self.core.tick(Nanos(now));
        }
        while let Some(&Reverse((at, proc))) = self.timers.peek() {
            if at > now {
                break;
            }
            self.timers.pop();
            self.procs[proc].thinking -= 1;
            self.ready.push_back(proc);
        }
        self.try_settle()
    }

    /// Whoever may issue does, and the device gets what it is to have.
    fn try_settle(&mut self) -> Result<(), Invalid> {
        loop {
            self.grant()?;
            let Some(proc) = self.ready.pop_front() else {
                break;
            };
            self.issue(proc)?;
        }
        self.dispatch()
    }

    fn settle(&mut self) {
        // Starting a process meets no error that the setup had not met.
        self.try_settle().expect("the core knows its own queues");
    }

    /// The process asks for all that it may have outstanding, until it has to sleep for a tag.
    fn issue(&mut self, proc: usize) -> Result<(), Invalid> {
        loop {
            let running = &self.procs[proc];
            if !running.on
                || running.asleep.is_some()
                || running.outstanding + running.thinking >= running.spec.depth
                || running.sectors_left < u64::from(running.spec.sectors)
            {
                return Ok(());
            }
            if self.tag_at_once() {
                self.tags_used += 1;
                self.make(proc, self.now, None)?;
            } else {
                self.sleep(proc)?;
                self.grant()?;
                if self.procs[proc].asleep.is_some() {
                    return Ok(());
                }
            }
        }
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

    fn sleep(&mut self, proc: usize) -> Result<(), Invalid> {
        self.procs[proc].asleep = Some(self.now);
        self.waiting += 1;
        match &mut self.gate {
            Gate::Fifo(line) => line.push_back(proc),
            Gate::Core(waiters) => {
                if let Some(queue) = self.procs[proc].queue {
                    let waiter = self.core.gate_wait(queue, Nanos(self.now))?;
                    let index = waiter.index();
                    if waiters.len() <= index {
                        waiters.resize(index + 1, 0);
                    }
                    waiters[index] = proc;
                }
            }
        }
        Ok(())
    }

    /// Hands out tags that are free.
    fn grant(&mut self) -> Result<(), Invalid> {
        while self.waiting > 0 && self.tags_used < self.tags {
            let (proc, waiter): (usize, Option<WaiterId>) = match &mut self.gate {
                Gate::Fifo(line) => match line.pop_front() {
                    Some(proc) => (proc, None),
                    None => return Ok(()),
                },
                Gate::Core(waiters) => match self.core.gate_grant(Nanos(self.now)) {
                    Some(waiter) => (waiters[waiter.index()], Some(waiter)),
                    None => return Ok(()),
                },
            };
            self.waiting -= 1;
            self.tags_used += 1;
            let asked = self.procs[proc].asleep.take().unwrap_or(self.now);
            self.make(proc, asked, waiter)?;
            self.ready.push_back(proc);
        }
        Ok(())
    }

    /// A request exists.
    fn make(&mut self, proc: usize, asked: u64, waiter: Option<WaiterId>) -> Result<(), Invalid> {
        let running = &mut self.procs[proc];
        let spec = &running.spec;
        let sectors = u64::from(spec.sectors);
        let sector = match spec.pattern {
            Pattern::Sequential => {
                let at = running.next_sector;
                let next = at + sectors;
                running.next_sector = if next + sectors > spec.to {
                    spec.from
                } else {
                    next
                };
                at
            }
            Pattern::Random => {
                let places = (spec.to - spec.from) / sectors;
                spec.from + self.rng.random_range(0..places) * sectors
            }
        };
        let dir = match spec.mix {
            Mix::Read => Dir::Read,
            Mix::Write => Dir::Write,
            Mix::Both if self.rng.random() => Dir::Write,
            Mix::Both => Dir::Read,
        };
        running.outstanding += 1;
        running.sectors_left -= sectors;
        let op = Op {
            proc,
            dir,
            sector,
            sectors: spec.sectors,
            asked,
        };
        let Some(queue) = running.queue.filter(|_| self.scheduled) else {
            self.fifo.push_back(op);
            return Ok(());
        };
        let request = Request {
            dir,
            sector,
            sectors: op.sectors,
            ..Request::default()
        };
        let now = Nanos(self.now);
        match self.core.pass(queue, request, now)? {
            Some(item) => self.hand_over(op, Some(item)),
            None => {
                let index = self.core.insert(queue, request, now)?.index();
                if self.items.len() <= index {
                    self.items.resize(index + 1, op);
                }
                self.items[index] = op;
            }
        }
        if let Some(waiter) = waiter {
            self.core.gate_settle(waiter)?;
        }
        Ok(())
    }

    fn dispatch(&mut self) -> Result<(), Invalid> {
        if self.scheduled {
            while self.core.has_work() {
                let Some(item) = self.core.dispatch(Nanos(self.now)) else {
                    break;
                };
                self.hand_over(self.items[item.index()], Some(item));
            }
        } else {
            while !self.free.is_empty()
                && let Some(op) = self.fifo.pop_front()
            {
                self.hand_over(op, None);
            }
        }
        Ok(())
    }

    fn hand_over(&mut self, op: Op, item: Option<ItemId>) {
        let slot = self.free.pop().expect("the depth is at most the slots");
        let id = id_of(self.serial, op.proc, slot);
        self.serial += 1;
        self.slots[usize::from(slot)] = Some(InFlight { op, item });
        self.observer.issued(&op, self.now);
        let request = disktime_model::Request {
            op: match op.dir {
                Dir::Read => disktime_model::Op::Read,
                Dir::Write => disktime_model::Op::Write,
            },
            sector: op.sector,
            sectors: op.sectors,
            fua: false,
        };
        self.disk.submit(id, request, self.now);
    }

    fn complete(&mut self, id: u64) -> Result<(), Invalid> {
        let slot = slot_of(id);
        let InFlight { op, item } = self.slots[slot].take().expect("it is in flight");
        self.free.push(slot as u16);
        if let Some(item) = item {
            self.core.complete(item, Nanos(self.now))?;
        }
        self.observer.completed(&op, self.now);
        self.tags_used -= 1;
        let running = &mut self.procs[op.proc];
        let tally = &mut self.tallies[running.spec.group];
        tally.ios[op.dir as usize] += 1;
        tally.sectors[op.dir as usize] += u64::from(op.sectors);
        running.outstanding -= 1;
        let pause = self.wake_ns + running.spec.think_ns;
        if pause > 0 {
            running.thinking += 1;
            self.timers.push(Reverse((self.now + pause, op.proc)));
        } else {
            self.ready.push_back(op.proc);
        }
        Ok(())
    }
}
