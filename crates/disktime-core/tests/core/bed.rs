//! A machine in virtual time: processes in groups, a disk of parallel servers, and the glue between
//! them and the core, done as the kernel side does it. Everything is drawn from one seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

use disktime_core::{
    Class, Device, Dir, Entity, GroupId, ItemId, Nanos, QueueId, Request, Stats, Tunables,
    WaiterId, Weight,
};

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const SEC: u64 = 1_000_000_000;

/// splitmix64.
#[derive(Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

/// What a request costs the disk: the request, the end of the one before it, and chance.
pub type Service = Box<dyn FnMut(&Request, u64, &mut Rng) -> u64>;

/// The same for every request.
pub fn constant(ns: u64) -> Service {
    Box::new(move |_, _, _| ns)
}

#[derive(Clone, Debug)]
pub struct Disk {
    /// Servers, and requests that the disk takes at once; the rest wait inside it in order.
    pub servers: u32,
    pub depth: u32,
    /// Requests that exist; 0: any number.
    pub tags: u32,
    pub rotational: bool,
}

impl Disk {
    pub fn new(servers: u32, depth: u32, tags: u32) -> Self {
        Disk {
            servers,
            depth,
            tags,
            rotational: false,
        }
    }
    pub fn rotational(self) -> Self {
        Disk {
            rotational: true,
            ..self
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    Random,
    Sequential,
}

/// A closed loop: `depth` requests at a time, each issued `think` after the one before it.
#[derive(Clone, Debug)]
pub struct Job {
    pub group: GroupId,
    pub depth: u32,
    pub think: u64,
    pub dir: Dir,
    pub sectors: u32,
    pub pattern: Pattern,
    pub base: u64,
    pub sync: bool,
    pub weight: u32,
    pub class: Class,
    pub start: u64,
    pub stop: u64,
    /// Busy for .0, then silent for .1, again and again; 0: always busy.
    pub flips: (u64, u64),
    /// What goes on in another group after each request, before the next.
    pub chain: Option<Chain>,
}

/// As many requests of another group's, express, one after another; in every second chain the
/// first so long after the process's own was done.
#[derive(Clone, Copy, Debug)]
pub struct Chain {
    pub group: GroupId,
    pub links: u32,
    pub late: u64,
}

impl Job {
    pub fn new(group: GroupId) -> Self {
        Job {
            group,
            depth: 1,
            think: 5 * US,
            dir: Dir::Read,
            sectors: 8,
            pattern: Pattern::Random,
            base: 0,
            sync: true,
            weight: 100,
            class: Class::Be,
            start: 0,
            stop: u64::MAX,
            flips: (0, 0),
            chain: None,
        }
    }
    pub fn depth(self, depth: u32) -> Self {
        Job { depth, ..self }
    }
    pub fn think(self, think: u64) -> Self {
        Job { think, ..self }
    }
    pub fn sequential(self, base: u64) -> Self {
        Job {
            pattern: Pattern::Sequential,
            base,
            ..self
        }
    }
    pub fn writeback(self) -> Self {
        Job {
            dir: Dir::Write,
            sync: false,
            class: Class::Writeback,
            ..self
        }
    }
    /// Writes, and waits for a journal.
    pub fn commits(self, group: GroupId, links: u32, late: u64) -> Self {
        Job {
            dir: Dir::Write,
            chain: Some(Chain { group, links, late }),
            ..self
        }
    }
    pub fn sectors(self, sectors: u32) -> Self {
        Job { sectors, ..self }
    }
    pub fn weight(self, weight: u32) -> Self {
        Job { weight, ..self }
    }
    pub fn between(self, start: u64, stop: u64) -> Self {
        Job {
            start,
            stop,
            ..self
        }
    }
    pub fn flips(self, busy: u64, silent: u64) -> Self {
        Job {
            flips: (busy, silent),
            ..self
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A server is done with an item.
    Served(ItemId),
    /// A process issues its next request.
    Issue(usize),
    /// A process that was granted a request runs again.
    Woken(WaiterId),
    Tick,
}

struct Proc {
    job: Job,
    queue: QueueId,
    /// Of the group its chain goes on in.
    journal: Option<QueueId>,
    /// Of its chain, 0 being its own request: which it issues next.
    link: u32,
    chains: u32,
    next_sector: u64,
    /// How long its requests waited from being wanted to being dispatched.
    wait_max: u64,
    done: u64,
    /// From being wanted to being done.
    latencies: Vec<u64>,
}

pub struct Bed {
    pub dev: Device,
    pub disk: Disk,
    pub now: u64,
    pub rng: Rng,
    service: Service,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    serial: u64,
    procs: Vec<Proc>,
    /// Process and instant of wanting, of every item.
    owners: BTreeMap<ItemId, (usize, u64)>,
    waiters: BTreeMap<WaiterId, (usize, u64)>,
    /// Of those who were granted a request and do not yet run.
    granted: BTreeSet<WaiterId>,
    used_tags: u32,
    /// Inside the disk.
    serving: u32,
    backlog: VecDeque<ItemId>,
    last_end: u64,
    tick_at: Option<u64>,
    pub names: BTreeMap<GroupId, String>,
    /// Longest time between two dispatches of a group that had something queued or waiting.
    gaps: BTreeMap<GroupId, Gap>,
    pub dispatched: Vec<(u64, GroupId)>,
    pub trace: bool,
    /// Verify all invariants at every n-th event.
    pub check_every: u64,
    steps: u64,
    pub wakeup_ns: u64,
}

#[derive(Clone, Copy, Default)]
struct Gap {
    since: Option<u64>,
    longest: u64,
}

impl Bed {
    pub fn new(disk: Disk, service: Service, seed: u64) -> Self {
        let tags = if disk.tags == 0 { 1 << 20 } else { disk.tags };
        let dev = Device::new(disk.depth, tags, disk.rotational, Nanos(0)).unwrap();
        Bed {
            dev,
            disk,
            now: 0,
            rng: Rng(seed),
            service,
            events: BinaryHeap::new(),
            serial: 0,
            procs: Vec::new(),
            owners: BTreeMap::new(),
            waiters: BTreeMap::new(),
            granted: BTreeSet::new(),
            used_tags: 0,
            serving: 0,
            backlog: VecDeque::new(),
            last_end: 0,
            tick_at: None,
            names: BTreeMap::new(),
            gaps: BTreeMap::new(),
            dispatched: Vec::new(),
            trace: false,
            check_every: 16,
            steps: 0,
            wakeup_ns: 20 * US,
        }
    }

    pub fn group(&mut self, name: &str, parent: GroupId, weight: u32) -> GroupId {
        self.group_of(name, parent, weight, Class::Be)
    }

    pub fn group_of(&mut self, name: &str, parent: GroupId, weight: u32, class: Class) -> GroupId {
        let id = self
            .dev
            .add_group(parent, Weight::new(weight).unwrap(), class)
            .unwrap();
        self.names.insert(id, name.to_owned());
        id
    }

    pub fn root(&self) -> GroupId {
        self.dev.root()
    }

    pub fn tune(&mut self, change: impl FnOnce(&mut Tunables)) {
        let mut tunables = self.dev.tunables();
        change(&mut tunables);
        self.dev.tune(tunables, Nanos(self.now));
    }

    /// Adds a process; returns its number.
    pub fn job(&mut self, job: Job) -> usize {
        let now = Nanos(self.now);
        let weight = Weight::new(job.weight).unwrap();
        let mut queue = |group| {
            self.dev
                .add_queue(group, job.sync, weight, job.class, now)
                .unwrap()
        };
        let journal = job.chain.map(|chain| queue(chain.group));
        let queue = queue(job.group);
        let number = self.procs.len();
        let start = job.start.max(self.now);
        for slot in 0..job.depth {
            // Not all at the same instant: a machine never does that.
            self.at(start + u64::from(slot) * 3 * US, Event::Issue(number));
        }
        self.procs.push(Proc {
            next_sector: job.base,
            job,
            queue,
            journal,
            link: 0,
            chains: 0,
            wait_max: 0,
            done: 0,
            latencies: Vec::new(),
        });
        number
    }

    /// The process issues no more. It has nothing outstanding: its queue goes away.
    pub fn end(&mut self, number: usize) {
        self.procs[number].job.stop = self.now;
        self.dev.remove_queue(self.procs[number].queue).unwrap();
    }

    pub fn jobs(&mut self, number: u32, job: &Job) -> Vec<usize> {
        (0..number).map(|_| self.job(job.clone())).collect()
    }

    fn at(&mut self, time: u64, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((time, self.serial, event)));
    }

    fn issue(&mut self, number: usize) {
        let job = &self.procs[number].job;
        if self.now >= job.stop {
            return;
        }
        let (busy, silent) = job.flips;
        if busy > 0 {
            let phase = (self.now - job.start) % (busy + silent);
            if phase >= busy {
                let again = self.now + busy + silent - phase;
                self.at(again, Event::Issue(number));
                return;
            }
        }
        if self.disk.tags == 0 || (self.used_tags < self.disk.tags && self.waiters_none()) {
            self.used_tags += 1;
            self.insert(number, self.now);
        } else {
            let queue = self.procs[number].queue;
            let waiter = self.dev.gate_wait(queue, Nanos(self.now)).unwrap();
            self.waiters.insert(waiter, (number, self.now));
            self.gap_wanted(number);
        }
    }

    fn waiters_none(&self) -> bool {
        self.dev.state().waiting == 0
    }

    fn insert(&mut self, number: usize, wanted: u64) {
        let proc = &mut self.procs[number];
        let sector = match proc.job.pattern {
            Pattern::Random => self.rng.below(1 << 30) & !7,
            Pattern::Sequential => {
                let sector = proc.next_sector;
                proc.next_sector += u64::from(proc.job.sectors);
                sector
            }
        };
        let request = Request {
            dir: proc.job.dir,
            sector,
            sectors: proc.job.sectors,
            express: proc.link > 0,
            ..Request::default()
        };
        let queue = match proc.link {
            0 => proc.queue,
            _ => proc.journal.unwrap(),
        };
        let item = self.dev.insert(queue, request, Nanos(self.now)).unwrap();
        self.owners.insert(item, (number, wanted));
        self.gap_wanted(number);
    }

    fn gap_wanted(&mut self, number: usize) {
        let group = self.procs[number].job.group;
        let now = self.now;
        self.gaps.entry(group).or_default().since.get_or_insert(now);
    }

    fn gap_dispatched(&mut self, number: usize) {
        let group = self.procs[number].job.group;
        let state = self.dev.entity_state(Entity::Group(group)).unwrap();
        let now = self.now;
        let gap = self.gaps.entry(group).or_default();
        if let Some(since) = gap.since {
            gap.longest = gap.longest.max(now - since);
        }
        gap.since = (state.queued > 0 || state.waiting > 0).then_some(now);
    }

    /// The queue of the device is run: as the kernel does after an insertion, a completion, a tick.
    fn run_queue(&mut self) {
        while self.dev.has_work() {
            let item = self
                .dev
                .dispatch(Nanos(self.now))
                .expect("has_work, yet nothing came");
            let (number, wanted) = self.owners[&item];
            let proc = &mut self.procs[number];
            proc.wait_max = proc.wait_max.max(self.now - wanted);
            if self.trace {
                let group = self.procs[number].job.group;
                self.dispatched.push((self.now, group));
            }
            self.gap_dispatched(number);
            self.backlog.push_back(item);
        }
        assert!(
            self.dev.dispatch(Nanos(self.now)).is_none(),
            "no work, yet an item came"
        );
        while self.serving < self.disk.servers
            && let Some(item) = self.backlog.pop_front()
        {
            let request = self.dev.item_state(item).unwrap().request;
            let cost = (self.service)(&request, self.last_end, &mut self.rng);
            self.last_end = request.sector + u64::from(request.sectors);
            self.serving += 1;
            self.at(self.now + cost, Event::Served(item));
        }
        let wake = self.dev.wake_at().map(|at| at.0);
        if wake != self.tick_at {
            self.tick_at = wake;
            if let Some(at) = wake {
                self.at(at.max(self.now), Event::Tick);
            }
        }
    }

    fn step(&mut self, event: Event) {
        match event {
            Event::Served(item) => {
                self.serving -= 1;
                self.dev.complete(item, Nanos(self.now)).unwrap();
                let (number, wanted) = self.owners.remove(&item).unwrap();
                let now = self.now;
                let proc = &mut self.procs[number];
                let mut think = proc.job.think;
                proc.done += 1;
                proc.latencies.push(now - wanted);
                if let Some(chain) = proc.job.chain {
                    proc.link = (proc.link + 1) % (chain.links + 1);
                    proc.chains += u32::from(proc.link == 1);
                    if proc.link == 1 && proc.chains % 2 == 0 {
                        think = chain.late;
                    }
                }
                self.used_tags -= 1;
                self.grant();
                self.at(self.now + think, Event::Issue(number));
            }
            Event::Issue(number) => self.issue(number),
            Event::Woken(waiter) => {
                let (number, wanted) = self.waiters.remove(&waiter).unwrap();
                self.granted.remove(&waiter);
                self.insert(number, wanted);
                self.dev.gate_settle(waiter).unwrap();
            }
            Event::Tick => {
                if self.tick_at == Some(self.now) {
                    self.tick_at = None;
                    self.dev.tick(Nanos(self.now));
                }
            }
        }
        self.run_queue();
    }

    fn grant(&mut self) {
        while self.disk.tags > 0 && self.used_tags < self.disk.tags {
            let Some(waiter) = self.dev.gate_grant(Nanos(self.now)) else {
                break;
            };
            self.used_tags += 1;
            self.granted.insert(waiter);
            self.at(self.now + self.wakeup_ns, Event::Woken(waiter));
        }
        let state = self.dev.state();
        // Whose turn it is not, who has had his part of it, or has enough in the device, has no use
        // for more.
        let waiting = self
            .waiters
            .iter()
            .filter(|(waiter, _)| !self.granted.contains(waiter))
            .map(|(_, &(number, _))| Entity::Queue(self.procs[number].queue))
            .filter(|&queue| !self.dev.entity_state(queue).unwrap().parked)
            .count();
        assert!(
            self.disk.tags == 0
                || self.used_tags == self.disk.tags
                || waiting == 0
                || state.queued + state.granted + state.inflight >= state.depth,
            "a request is free while {waiting} wait, and the device has room"
        );
    }

    pub fn run_until(&mut self, end: u64) {
        while let Some(&Reverse((time, _, _))) = self.events.peek() {
            if time > end {
                break;
            }
            let Some(Reverse((time, _, event))) = self.events.pop() else {
                break;
            };
            self.now = time;
            self.steps += 1;
            self.dev.set_checked(self.steps % self.check_every == 0);
            self.step(event);
        }
        self.now = end;
        self.dev.set_checked(false);
        assert_eq!(self.dev.counts().empty, 0);
    }

    /// Runs on until every process has ended; the device must then have let go of everything.
    pub fn drain(&mut self) {
        for proc in &mut self.procs {
            proc.job.stop = proc.job.stop.min(self.now);
        }
        self.run_until(self.now + 3600 * SEC);
        let state = self.dev.state();
        assert_eq!(
            (state.queued, state.inflight, state.waiting, state.granted),
            (0, 0, 0, 0),
            "{}",
            self.dev.dump()
        );
        assert!(self.owners.is_empty() && self.waiters.is_empty());
    }

    /// Disk time of each group between two instants.
    pub fn shares(&mut self, groups: &[GroupId], from: u64, to: u64) -> Vec<f64> {
        let before = self.times(groups, from);
        let after = self.times(groups, to);
        let got: Vec<f64> = after
            .iter()
            .zip(&before)
            .map(|(a, b)| (a.total_time() - b.total_time()).0 as f64)
            .collect();
        let total: f64 = got.iter().sum();
        got.iter().map(|time| time / total).collect()
    }

    /// Requests done by each group between two instants.
    pub fn ios(&mut self, groups: &[GroupId], from: u64, to: u64) -> Vec<u64> {
        let before = self.times(groups, from);
        let after = self.times(groups, to);
        after
            .iter()
            .zip(&before)
            .map(|(a, b)| a.total_ios() - b.total_ios())
            .collect()
    }

    fn times(&mut self, groups: &[GroupId], at: u64) -> Vec<Stats> {
        assert!(at >= self.now, "that was before");
        self.run_until(at);
        groups
            .iter()
            .map(|&group| self.dev.stats(group).unwrap())
            .collect()
    }

    /// A measurement from now on.
    pub fn snapshot(&self, groups: &[GroupId]) -> Vec<Stats> {
        groups
            .iter()
            .map(|&group| self.dev.stats(group).unwrap())
            .collect()
    }

    /// Longest that a group with something to do went without a dispatch, up to now.
    pub fn longest_gap(&self, group: GroupId) -> u64 {
        let gap = self.gaps.get(&group).copied().unwrap_or_default();
        gap.longest
            .max(gap.since.map_or(0, |since| self.now - since))
    }

    pub fn reset_gaps(&mut self) {
        let now = self.now;
        for gap in self.gaps.values_mut() {
            gap.longest = 0;
            if gap.since.is_some() {
                gap.since = Some(now);
            }
        }
        for proc in &mut self.procs {
            proc.wait_max = 0;
        }
    }

    /// Longest wait of any request of a process, from being wanted to being dispatched.
    pub fn longest_wait(&self, proc: usize) -> u64 {
        self.procs[proc].wait_max
    }

    pub fn done(&self, proc: usize) -> u64 {
        self.procs[proc].done
    }

    pub fn latency(&self, proc: usize, quantile: f64) -> u64 {
        let mut all = self.procs[proc].latencies.clone();
        all.sort_unstable();
        all[((all.len() - 1) as f64 * quantile) as usize]
    }

    pub fn set_weight(&mut self, entity: Entity, weight: u32) {
        self.dev
            .set_weight(entity, Weight::new(weight).unwrap())
            .unwrap();
    }
}

/// Entitled shares of siblings.
pub fn entitled(weights: &[u32]) -> Vec<f64> {
    let total: u32 = weights.iter().sum();
    weights
        .iter()
        .map(|&weight| f64::from(weight) / f64::from(total))
        .collect()
}

/// Every share within `tolerance` of what was expected, or a message that says all of them.
#[track_caller]
pub fn assert_shares(what: &str, got: &[f64], want: &[f64], tolerance: f64) {
    let text = |shares: &[f64]| {
        shares
            .iter()
            .map(|share| format!("{:.2}", share * 100.0))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let worst = got
        .iter()
        .zip(want)
        .map(|(g, w)| (g - w).abs())
        .fold(0.0, f64::max);
    report(&format!(
        "{what}: got {} want {} (off by {:.2})",
        text(got),
        text(want),
        worst * 100.0
    ));
    assert!(
        worst <= tolerance,
        "{what}: got {} %, entitled {} %, off by {:.2} points",
        text(got),
        text(want),
        worst * 100.0
    );
}

/// Figures, shown with --nocapture.
pub fn report(text: &str) {
    println!("    {text}");
}
