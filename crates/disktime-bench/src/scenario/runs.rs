//! From a scenario to the runs that it is made of.

use std::collections::{BTreeMap, BTreeSet};

use disktime_model::Spec;

use super::{
    Attr, Each, Engine, Fs, Group, IoPrio, Job, NrRequests, On, PhaseSpec, Scenario, Variant,
};
use super::{names, of};
use crate::plan::{self, Class, Controller, Phase, Plan, Run, Stop};

/// To what `disktime enable` raises the number of requests, and the others have theirs raised.
pub const RAISED: u32 = 256;
/// The same for flash drives that take more than that at a time.
const RAISED_DEEP: u32 = 1024;

fn raised_for(disk: &Spec) -> u32 {
    match disk.make() {
        Ok(made) if made.slots() > RAISED && !made.rotational() => RAISED_DEEP,
        _ => RAISED,
    }
}

/// How a run departs from its file.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where.
    pub on: On,
    /// Instead of the file's.
    pub controllers: Option<Vec<Controller>>,
    /// Only variants whose name contains one of these.
    pub variants: Vec<String>,
    /// Instead of the file's.
    pub rounds: Option<u32>,
    /// For fio's random numbers.
    pub seed: u64,
    /// Multiplies durations.
    pub scale: f64,
    /// Whether the machine's clock counts instructions for scenarios that do not ask for it, too.
    pub instructions: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            on: On::Vm,
            controllers: None,
            variants: Vec::new(),
            rounds: None,
            seed: 1,
            scale: 1.0,
            instructions: false,
        }
    }
}

/// The runs of a scenario, in the order in which they are made.
#[must_use]
pub fn runs(scenario: &Scenario, options: &Options) -> Vec<Run> {
    let mut runs = Vec::new();
    let unnamed = [None];
    let all: Vec<Option<&Variant>> = scenario.variants.iter().map(Some).collect();
    let variants = if all.is_empty() { &unnamed[..] } else { &all };
    let rounds = options.rounds.unwrap_or(scenario.rounds);
    for variant in variants {
        let name = variant.map_or("", |v| v.name.get_ref());
        let wanted = |text: &String| name.contains(text.as_str());
        let on = variant.and_then(|v| v.on.as_ref()).unwrap_or(&scenario.on);
        let here = on.is_empty() || on.contains(&options.on);
        if options.variants.is_empty() {
            if !here {
                continue;
            }
        } else if !options.variants.iter().any(wanted) {
            continue;
        }
        let own = variant
            .and_then(|v| v.controllers.as_ref())
            .unwrap_or(&scenario.controllers);
        let controllers = options.controllers.as_ref().unwrap_or(own);
        let best = scenario.nr_requests_of(*variant) == NrRequests::Best;
        for round in 1..=rounds {
            for &controller in controllers {
                if controller == Controller::DisktimeTrue && options.on != On::Sim {
                    continue;
                }
                runs.push(scenario.run(*variant, round, controller, false, options));
                if best && controller.has_own_tags() && !controller.is_disktime() {
                    runs.push(scenario.run(*variant, round, controller, true, options));
                }
            }
        }
    }
    runs
}

/// The plan of several scenarios, which go by the same clock.
#[must_use]
pub fn plan(scenarios: &[Scenario], options: &Options) -> Plan {
    let runs = scenarios.iter().flat_map(|s| runs(s, options)).collect();
    Plan {
        version: plan::VERSION,
        instructions: options.on == On::Vm
            && (options.instructions || scenarios.iter().any(|s| s.instructions)),
        runs,
    }
}

/// A group's jobs as a variant has them.
fn changed(job: &Job, group: &str, spec: &Group, variant: Option<&Variant>) -> Job {
    let mut job = job.clone();
    let Some(variant) = variant else { return job };
    // Those made by one entry go by its name, too.
    let entry = spec.name.get_ref();
    fn either<'a, T>(
        map: &'a BTreeMap<toml::Spanned<String>, T>,
        group: &str,
        entry: &str,
    ) -> Option<&'a T> {
        of(map, group).or_else(|| of(map, entry))
    }
    if let Some(depth) = either(&variant.iodepth, group, entry) {
        job.iodepth = depth.get();
    }
    if let Some(nr) = either(&variant.numjobs, group, entry) {
        job.numjobs = nr.get();
    }
    if let Some(size) = either(&variant.size, group, entry) {
        job.size = Some(*size);
    }
    if let Some(bs) = either(&variant.bs, group, entry) {
        job.bs = *bs;
    }
    let each = variant.rw.as_ref().map(toml::Spanned::get_ref);
    let rw = each.and_then(|rw: &Each| rw.of(group).or_else(|| rw.of(entry)));
    if let Some(rw) = rw {
        job.rw = toml::Spanned::new(job.rw.span(), rw.clone());
    }
    job
}

/// Where on the disk the processes of all jobs lie.
struct Layout {
    region: u64,
    /// Of all jobs: how many processes.
    counts: Vec<u32>,
    interleave: bool,
}

impl Layout {
    /// First byte of a job's first region, and from one of its regions to the next.
    fn place(&self, job: usize) -> (u64, u64) {
        if self.interleave {
            let jobs = self.counts.len() as u64;
            return (job as u64 * self.region, jobs * self.region);
        }
        let before: u64 = self.counts[..job].iter().map(|&n| u64::from(n)).sum();
        (before * self.region, self.region)
    }

    /// The first byte after all of them.
    fn end(&self) -> u64 {
        let regions = match self.interleave {
            true => {
                let most = self.counts.iter().max().copied().unwrap_or(0);
                u64::from(most) * self.counts.len() as u64
            }
            false => self.counts.iter().map(|&n| u64::from(n)).sum(),
        };
        regions * self.region
    }
}

/// Smaller ones are a nuisance to file systems.
const PARTITION_ALIGN: u64 = 1 << 20;
/// What a file system needs beside its files.
const FS_SPARE: u64 = 512 << 20;

impl Scenario {
    fn nr_requests_of(&self, variant: Option<&Variant>) -> NrRequests {
        variant
            .and_then(|v| v.nr_requests)
            .unwrap_or(self.nr_requests)
    }

    /// The disk that a variant has. Equal servers are as large as the jobs need.
    pub(super) fn disk_of(&self, variant: Option<&Variant>) -> Result<Spec, String> {
        let change = variant.and_then(|v| v.disk.as_ref());
        let disk = match change {
            Some(change) => self.disk.get_ref().with(change.get_ref()),
            None => self.disk.get_ref().clone(),
        };
        let model = disk.model()?;
        let servers = matches!(model, disktime_model::Model::Servers { .. });
        let needed = servers.then(|| self.needed_sectors(variant).div_ceil(2048));
        Ok(Spec {
            size_mib: disk.size.map(|s| s.0 >> 20).or(needed),
            write_cache: disk.write_cache.map_or(0, super::Within::get),
            slower: disk.slower.map_or(1, super::Within::get),
            ..Spec::new(model)
        })
    }

    fn layout(&self, variant: Option<&Variant>) -> Layout {
        let counts = self.groups().flat_map(|(name, group)| {
            group
                .jobs
                .iter()
                .map(move |job| changed(job, &name, group, variant).numjobs)
        });
        Layout {
            counts: counts.collect(),
            region: self.region.0,
            interleave: self.interleave,
        }
    }

    /// Each partition's size in bytes.
    fn partition(&self, layout: &Layout) -> u64 {
        let most = layout.counts.iter().max().copied().unwrap_or(0);
        (u64::from(most) * self.region.0 + FS_SPARE).next_multiple_of(PARTITION_ALIGN)
    }

    /// The size of disk that the jobs need.
    pub(super) fn needed_sectors(&self, variant: Option<&Variant>) -> u64 {
        let layout = self.layout(variant);
        let bytes = match (self.fs, self.partitions) {
            (Some(_), true) => {
                let partitions = self.groups().filter(|(_, g)| !g.jobs.is_empty()).count();
                PARTITION_ALIGN + partitions as u64 * self.partition(&layout)
            }
            (Some(_), false) => layout.end() + FS_SPARE,
            (None, _) => layout.end(),
        };
        bytes >> 9
    }

    fn run(
        &self,
        variant: Option<&Variant>,
        round: u32,
        controller: Controller,
        raised: bool,
        options: &Options,
    ) -> Run {
        let layout = self.layout(variant);
        let (groups, jobs) = self.groups_and_jobs(variant, controller, options, &layout);
        let mut iosched = self.iosched.clone();
        iosched.extend(variant.iter().flat_map(|v| v.iosched.clone()));
        let disk = self
            .disk_of(variant)
            .expect("a file whose disk is none was refused");
        let nr_requests = match self.nr_requests_of(variant) {
            NrRequests::Default => None,
            NrRequests::Best => (raised || controller.is_disktime()).then(|| raised_for(&disk)),
            NrRequests::Fixed(n) => Some(n),
        };
        Run {
            scenario: self.name.get_ref().clone(),
            variant: variant.map_or(String::new(), |v| v.name.get_ref().clone()),
            round,
            controller,
            raised,
            disk,
            cost_model: None,
            fs: self.fs.map(|fs| plan::Fs {
                kind: match fs {
                    Fs::Ext4 => "ext4".into(),
                    Fs::Xfs => "xfs".into(),
                },
                partitions: self.partitions,
                partition_sectors: self.partition(&layout) >> 9,
            }),
            nr_requests,
            iosched: iosched
                .into_iter()
                .map(|(k, v): (String, Attr)| (k, v.to_string()))
                .collect(),
            phases: self.phases_of(variant, options, &groups, &jobs),
            groups,
            jobs,
            // On a file system that groups share, nothing tells whose a sector is; in the simulator
            // each process's file is where it was put.
            trace: self.trace && (self.fs.is_none() || self.partitions || options.on == On::Sim),
        }
    }

    fn groups_and_jobs(
        &self,
        variant: Option<&Variant>,
        controller: Controller,
        options: &Options,
        layout: &Layout,
    ) -> (Vec<plan::Group>, Vec<plan::Job>) {
        let mut groups: Vec<plan::Group> = Vec::new();
        let mut jobs: Vec<plan::Job> = Vec::new();
        let mut partition = 0;
        for (name, spec) in self.groups() {
            let above = spec.parent.as_ref().and_then(|parent| {
                groups
                    .iter()
                    .find(|g| g.name == *parent.get_ref())
                    .map(|g| g.path.clone())
            });
            let entry = spec.name.get_ref();
            let weight =
                variant.and_then(|v| of(&v.weight, &name).or_else(|| of(&v.weight, entry)));
            let class = variant.and_then(|v| of(&v.class, &name).or_else(|| of(&v.class, entry)));
            groups.push(plan::Group {
                path: above.map_or(name.clone(), |above| format!("{above}/{name}")),
                name: name.clone(),
                weight: weight.map_or(spec.weight, |w| w.get()),
                on_device: variant.and_then(|v| v.on_device).unwrap_or(spec.on_device),
                class: class.copied().unwrap_or(spec.class),
                memory: spec.memory.map(|m| m.0),
            });
            for (job_name, job) in spec.named_jobs(name.clone()) {
                let job = changed(job, &name, spec, variant);
                let (from, stride) = layout.place(jobs.len());
                let mut made = job.plan(job_name, groups.len() - 1, layout.region);
                made.seed(options.seed * 1000 + jobs.len() as u64);
                made.user = spec.user.map(super::Within::get).or(made.user);
                made.from_sector = from >> 9;
                made.stride_sectors = stride >> 9;
                if self.fs.is_none() {
                    made.on_device();
                } else {
                    made.args
                        .push(format!("--directory={}/{name}", plan::MOUNTS));
                    if self.partitions {
                        let size = self.partition(layout);
                        made.from_sector = (PARTITION_ALIGN + partition * size) >> 9;
                        made.stride_sectors = made.region_sectors;
                        made.whole_sectors = Some(size >> 9);
                    }
                }
                jobs.push(made);
            }
            partition += u64::from(!spec.jobs.is_empty());
        }
        let classes = Classes::of(controller, &groups, &jobs);
        for job in &mut jobs {
            job.prioritise(classes.prio(job.group));
        }
        (groups, jobs)
    }

    fn phases_of(
        &self,
        variant: Option<&Variant>,
        options: &Options,
        groups: &[plan::Group],
        jobs: &[plan::Job],
    ) -> Vec<Phase> {
        let scaled = |t: super::Nanos| (t.0 as f64 * options.scale).round() as u64;
        let real = options.on != On::Sim;
        let own = variant.and_then(|v| v.duration_vm.filter(|_| real).or(v.duration));
        let duration = own
            .or(self.duration_vm.filter(|_| real))
            .unwrap_or(self.duration);
        let settle = variant.and_then(|v| v.settle).unwrap_or(self.settle);
        let stop = variant.and_then(|v| v.stop).unwrap_or(self.stop);
        let silent = names(variant.iter().flat_map(|v| &v.silent));
        let phase = |spec: Option<&PhaseSpec>| {
            let more = names(spec.iter().flat_map(|p| &p.silent));
            let runs = |job: &plan::Job| {
                let group = &groups[job.group].name;
                !silent.contains(group) && !more.contains(group)
            };
            Phase {
                name: spec.map_or(String::new(), |p| p.name.get_ref().clone()),
                jobs: (0..jobs.len()).filter(|&j| runs(&jobs[j])).collect(),
                settle_ns: spec.and_then(|p| p.settle).unwrap_or(settle).0,
                duration_ns: match stop {
                    Stop::Time => scaled(spec.and_then(|p| p.duration).unwrap_or(duration)),
                    // A limit: the work does not become less.
                    _ => duration.0,
                },
                stop,
            }
        };
        match self.phases.is_empty() {
            true => vec![phase(None)],
            false => self.phases.iter().map(|p| phase(Some(p))).collect(),
        }
    }
}

/// Which I/O priority the processes of a group get where the controller knows nothing else.
struct Classes(Vec<Option<IoPrio>>);

impl Classes {
    /// mq-deadline knows three classes and nothing of weights: those who weigh most become RT, and
    /// of three kinds or more those who weigh least IDLE. For others a group's class only.
    fn of(controller: Controller, groups: &[plan::Group], jobs: &[plan::Job]) -> Self {
        let prio = |class| IoPrio { class, level: 4 };
        let own = |group: &plan::Group| {
            (!controller.is_disktime() && group.class != Class::Be).then(|| prio(group.class))
        };
        if controller != Controller::MqDeadlineIoprio {
            return Self(groups.iter().map(own).collect());
        }
        let busy: BTreeSet<usize> = jobs.iter().map(|j| j.group).collect();
        let weights: BTreeSet<u32> = busy.iter().map(|&g| groups[g].weight).collect();
        let (least, most) = (weights.first().copied(), weights.last().copied());
        let by_weight = |group: &plan::Group| match weights.len() {
            0 | 1 => None,
            _ if Some(group.weight) == most => Some(prio(Class::Rt)),
            n if n > 2 && Some(group.weight) == least => Some(prio(Class::Idle)),
            _ => Some(prio(Class::Be)),
        };
        Self(
            groups
                .iter()
                .map(|g| own(g).or_else(|| by_weight(g)))
                .collect(),
        )
    }

    fn prio(&self, group: usize) -> Option<IoPrio> {
        self.0[group]
    }
}

impl Job {
    /// Whether a process of it writes, syncs, writes, and does nothing in between.
    fn transacts(&self) -> bool {
        let synced = self.fsync.is_some_and(|n| n.get::<u32>() == 1);
        let pauses = self.thinktime.is_some() || self.rate_iops.is_some();
        synced && self.iodepth == 1 && !pauses && self.rw.get_ref().ends_with("write")
    }

    /// All but where it lies, and the priority of a group that has one.
    fn plan(&self, name: String, group: usize, region: u64) -> plan::Job {
        let size = self.size.map_or(region, |s| s.0);
        let engine = match self.ioengine {
            Engine::Libaio => "libaio",
            Engine::IoUring => "io_uring",
            Engine::Psync => "psync",
        };
        let mut args = vec![
            format!("--rw={}", self.rw.get_ref()),
            format!("--bs={}", self.bs.0),
            format!("--ioengine={engine}"),
            format!("--iodepth={}", self.iodepth),
            format!("--numjobs={}", self.numjobs),
            format!("--size={size}"),
            format!("--direct={}", u8::from(!self.buffered)),
            "--thread=0".into(),
            "--norandommap=1".into(),
        ];
        if self.buffered {
            // What is written is of no interest, and would only fill the disk model's memory.
            args.push("--zero_buffers=1".into());
            args.push("--fallocate=none".into());
        }
        if self.numjobs > 1 {
            args.push("--group_reporting=1".into());
        }
        let micros = |t: super::Nanos| t.0 / 1000;
        let optional = [
            ("thinktime", self.thinktime.map(micros)),
            (
                "thinktime_blocks",
                self.thinktime_blocks.map(super::Within::get),
            ),
            ("rate_iops", self.rate_iops.map(super::Within::get)),
            ("fsync", self.fsync.map(super::Within::get)),
            ("end_fsync", self.end_fsync.then_some(1)),
        ];
        for (name, value) in optional {
            args.extend(value.map(|value| format!("--{name}={value}")));
        }
        if let Some(delay) = self.startdelay {
            args.push(format!("--startdelay={}us", micros(delay)));
        }
        let database = self.rw.get_ref() == super::PGBENCH;
        let mut job = plan::Job {
            name,
            group,
            program: plan::Program::Fio,
            user: database.then_some(plan::POSTGRES_USER),
            args,
            from_sector: 0,
            region_sectors: region >> 9,
            stride_sectors: region >> 9,
            processes: self.numjobs,
            whole_sectors: None,
            bytes: self.size.map(|s| s.0 * u64::from(self.numjobs)),
            depth: self.iodepth * self.numjobs,
            transacts: self.transacts() || database,
        };
        if database {
            // Of these, it shares with fio who it is.
            job.args.clear();
            job.program = plan::Program::Pgbench {
                scale: self.numjobs,
            };
        }
        job.prioritise(self.ioprio);
        job
    }
}

impl plan::Job {
    fn seed(&mut self, seed: u64) {
        self.args.push(format!("--randseed={seed}"));
    }

    /// Lets it work on the disk itself.
    fn on_device(&mut self) {
        self.args.push(format!("--filename=/dev/{}", plan::DISK));
        self.args
            .push(format!("--offset={}", self.from_sector << 9));
        if self.processes > 1 {
            let stride = self.stride_sectors << 9;
            self.args.push(format!("--offset_increment={stride}"));
        }
    }

    /// Gives it a priority, unless it has one.
    fn prioritise(&mut self, prio: Option<IoPrio>) {
        if self.args.iter().any(|arg| arg.starts_with("--prioclass=")) {
            return;
        }
        let Some(prio) = prio else { return };
        let number = match prio.class {
            Class::Rt => 1,
            Class::Be => 2,
            Class::Idle => 3,
        };
        self.args.push(format!("--prioclass={number}"));
        if prio.class != Class::Idle {
            self.args.push(format!("--prio={}", prio.level));
        }
    }
}
