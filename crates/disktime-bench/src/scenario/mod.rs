//! Scenario files: a disk, groups with their loads, and what must hold.
//!
//! ```toml
//! name = "dm-band-test1"
//! duration = "10s"
//! disk = { servers = 8, service_us = 4000 }
//!
//! [[group]]
//! name = "sdb5"
//! weight = 40
//! published = 0.564
//! job = [{ rw = "randread", bs = "4k", iodepth = 32 }]
//!
//! [[check]]
//! metric = "share"
//! within = 0.01
//! ```
//!
//! This module is the format and what makes a file bad; [`runs`] turns a file into runs.

mod entitled;
mod runs;
#[cfg(test)]
mod tests;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use disktime_model::Model;
use serde::{Deserialize, Deserializer, de};
use thiserror::Error;
use toml::Spanned;

use crate::plan::{Class, Controller, Stop};

pub use entitled::entitled;
pub use runs::{Options, RAISED, plan, runs};
pub use values::{Bytes, IoPrio, Nanos};
use values::{Count, Weight, Within, count, name, one_line, share, weight};

/// A scenario file that cannot be used: where, and why.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{}:{line}: {why}", file.display())]
pub struct Bad {
    /// The file.
    pub file: PathBuf,
    /// Line in it, from 1.
    pub line: usize,
    /// One sentence.
    pub why: String,
}

/// Where a scenario can be run.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Deserialize,
    serde::Serialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum On {
    /// In a machine, with a kernel and the module
    Vm,
    /// In the simulator, with the scheduler's core and a model of the disk
    Sim,
    /// On this machine, with a disk of its own
    Host,
}

impl On {
    /// As results have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Vm => "vm",
            Self::Sim => "sim",
            Self::Host => "host",
        }
    }
}

/// A scenario as its file has it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Names it in results.
    #[serde(deserialize_with = "name")]
    pub name: Spanned<String>,
    /// What it shows.
    #[serde(default, deserialize_with = "one_line")]
    pub about: String,
    /// Who published it, and where.
    #[serde(default)]
    pub source: String,
    /// Whom to measure unless told otherwise.
    #[serde(default = "usual_controllers")]
    pub controllers: Vec<Controller>,
    /// Where it is run unless a variant is asked for by name; everywhere if not said.
    #[serde(default)]
    on: Vec<On>,
    /// How often each is measured, in turn.
    #[serde(default = "one", deserialize_with = "count")]
    pub rounds: u32,
    /// Of a phase's window.
    pub duration: Nanos,
    /// The same in a machine, where time is real.
    duration_vm: Option<Nanos>,
    /// From when all jobs run until the window begins.
    #[serde(default = "usual_settle")]
    pub settle: Nanos,
    /// What ends a window.
    #[serde(default)]
    pub stop: Stop,
    /// Whether requests are recorded.
    #[serde(default = "yes")]
    pub trace: bool,
    /// Whether shares over the whole window are what the weights promise.
    #[serde(default = "yes")]
    pub shares: bool,
    /// Whether the load fills the disk: a run then counts only where `none` reaches nine tenths of
    /// what the disk can do.
    #[serde(default = "yes")]
    pub saturates: bool,
    /// Whether the machine's clock counts instructions, one a nanosecond, rather than time.
    #[serde(default)]
    pub instructions: bool,
    /// The disk.
    disk: Spanned<DiskModel>,
    /// The part of the disk that one process has for itself.
    #[serde(default = "usual_region")]
    region: Bytes,
    /// Whether the processes of all groups lie among each other on the disk, rather than each
    /// group's in a part of its own.
    #[serde(default)]
    interleave: bool,
    /// A file system on the disk: jobs use files on it.
    fs: Option<Fs>,
    /// Whether each group has a partition and a file system of its own.
    #[serde(default)]
    partitions: bool,
    /// Size of the scheduler's tag set.
    #[serde(default)]
    pub nr_requests: NrRequests,
    /// disktime's attributes.
    #[serde(default)]
    pub iosched: BTreeMap<String, Attr>,
    /// The groups.
    #[serde(rename = "group")]
    groups: Vec<Group>,
    /// The same with something else; none is one variant without a name.
    #[serde(default, rename = "variant")]
    pub variants: Vec<Variant>,
    /// Parts of a run, one after the other; none is one phase without a name.
    #[serde(default, rename = "phase")]
    pub phases: Vec<PhaseSpec>,
    /// What must hold.
    #[serde(default, rename = "check")]
    pub checks: Vec<Check>,
}

fn usual_controllers() -> Vec<Controller> {
    vec![Controller::Disktime, Controller::Bfq, Controller::None]
}

fn usual_settle() -> Nanos {
    Nanos(2_000_000_000)
}

fn usual_region() -> Bytes {
    Bytes(1 << 30)
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

/// A file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fs {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
}

/// A disk in a file, or what a variant has otherwise about it: a model by name, or equal servers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskModel {
    model: Option<String>,
    servers: Option<Count>,
    service_us: Option<Within<1, 10_000_000>>,
    rotational: Option<bool>,
    size: Option<Bytes>,
    write_cache: Option<Within<0, 100_000>>,
    slower: Option<Within<1, 10_000>>,
}

impl DiskModel {
    /// The disk with what `change` says otherwise.
    fn with(&self, change: &Self) -> Self {
        // A model by name takes the place of servers, and servers that of a model.
        let (own, named) = (change.model.is_some(), change.servers.is_some());
        Self {
            model: change
                .model
                .clone()
                .or_else(|| self.model.clone().filter(|_| !named)),
            servers: change.servers.or(self.servers.filter(|_| !own)),
            service_us: change.service_us.or(self.service_us.filter(|_| !own)),
            rotational: change.rotational.or(self.rotational.filter(|_| !own)),
            size: change.size.or(self.size),
            write_cache: change.write_cache.or(self.write_cache.filter(|_| !own)),
            slower: change.slower.or(self.slower.filter(|_| !own)),
        }
    }

    /// What it is; an error says in a sentence why it is nothing.
    fn model(&self) -> Result<Model, String> {
        if let Some(name) = &self.model {
            if self.servers.is_some() || self.service_us.is_some() || self.rotational.is_some() {
                return Err("a disk is a model or servers, not both".into());
            }
            return name.parse();
        }
        let (Some(servers), Some(service)) = (self.servers, self.service_us) else {
            return Err("a disk needs a model, or servers and service_us".into());
        };
        Ok(Model::Servers {
            servers: servers.get(),
            service_ns: service.get::<u64>() * 1000,
            rotational: self.rotational.unwrap_or(false),
        })
    }
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Attr {
    /// A number.
    Number(u64),
    /// A word.
    Word(String),
}

impl std::fmt::Display for Attr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(n) => write!(f, "{n}"),
            Self::Word(w) => f.write_str(w),
        }
    }
}

/// Size of a scheduler's tag set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NrRequests {
    /// `"default"`: the kernel leaves it at twice the disk's depth.
    #[default]
    Default,
    /// `"best"`: disktime as `disktime enable` sets it up; the others both at the default and
    /// raised, and the better of both stands for them.
    Best,
    /// For all of them the same.
    Fixed(u32),
}

impl<'de> Deserialize<'de> for NrRequests {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = "write default, best or a number";
        match Attr::deserialize(from).map_err(|_| de::Error::custom(text))? {
            Attr::Word(word) if word == "default" => Ok(Self::Default),
            Attr::Word(word) if word == "best" => Ok(Self::Best),
            Attr::Number(n @ 4..=2048) => Ok(Self::Fixed(n as u32)),
            other => Err(de::Error::custom(format!(
                "nr_requests is default, best or 4 to 2048, not {other}"
            ))),
        }
    }
}

/// A group in a file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    #[serde(deserialize_with = "name")]
    pub name: Spanned<String>,
    /// So many of them, numbered from 1.
    count: Option<Count>,
    /// The group above it.
    pub parent: Option<Spanned<String>>,
    /// Its weight.
    #[serde(default = "usual_weight", deserialize_with = "weight")]
    pub weight: u32,
    /// Set for the device only.
    #[serde(default)]
    pub on_device: bool,
    /// Its class.
    #[serde(default)]
    pub class: Class,
    /// Whose processes its jobs are: a user's number.
    user: Option<Within<1, 65_533>>,
    /// What its memory is limited to.
    memory: Option<Bytes>,
    /// The share that was published.
    #[serde(default, deserialize_with = "share")]
    pub published: Option<f64>,
    /// Its loads; none is a silent group.
    #[serde(default, rename = "job")]
    pub jobs: Vec<Job>,
}

fn usual_weight() -> u32 {
    100
}

/// A load, in fio's vocabulary.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Names it in results; by default the group's name and a number.
    #[serde(default)]
    pub name: Option<Spanned<String>>,
    rw: Spanned<String>,
    #[serde(default = "usual_bs")]
    bs: Bytes,
    #[serde(default)]
    ioengine: Engine,
    #[serde(default = "one", deserialize_with = "count")]
    iodepth: u32,
    #[serde(default = "one", deserialize_with = "count")]
    numjobs: u32,
    size: Option<Bytes>,
    thinktime: Option<Nanos>,
    thinktime_blocks: Option<Within<1, 1_000_000>>,
    rate_iops: Option<Within<1, 10_000_000>>,
    startdelay: Option<Nanos>,
    fsync: Option<Within<1, 1_000_000>>,
    #[serde(default)]
    end_fsync: bool,
    #[serde(default)]
    buffered: bool,
    ioprio: Option<IoPrio>,
}

fn usual_bs() -> Bytes {
    Bytes(4096)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Engine {
    #[default]
    Libaio,
    #[serde(rename = "io_uring")]
    IoUring,
    Psync,
}

/// What a job does that is no fio's: transactions of PostgreSQL, for `numjobs` clients.
const PGBENCH: &str = "pgbench";
const RW: [&str; 7] = [
    "read",
    "write",
    "randread",
    "randwrite",
    "rw",
    "randrw",
    PGBENCH,
];

/// One value for all groups, or one for each named.
#[derive(Debug, Clone)]
enum Each {
    All(String),
    By(BTreeMap<String, String>),
}

impl<'de> Deserialize<'de> for Each {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Raw {
            All(String),
            By(BTreeMap<String, String>),
        }
        let raw = Raw::deserialize(from)
            .map_err(|_| de::Error::custom("write one value, or one for each group"))?;
        Ok(match raw {
            Raw::All(value) => Self::All(value),
            Raw::By(map) => Self::By(map),
        })
    }
}

impl Each {
    fn of(&self, group: &str) -> Option<&String> {
        match self {
            Self::All(value) => Some(value),
            Self::By(map) => map.get(group),
        }
    }

    fn groups(&self) -> Vec<&String> {
        match self {
            Self::All(_) => Vec::new(),
            Self::By(map) => map.keys().collect(),
        }
    }

    fn values(&self) -> Vec<&String> {
        match self {
            Self::All(value) => vec![value],
            Self::By(map) => map.values().collect(),
        }
    }
}

/// What a variant says of a group.
fn of<'a, T>(map: &'a BTreeMap<Spanned<String>, T>, group: &str) -> Option<&'a T> {
    map.iter()
        .find(|(n, _)| n.get_ref() == group)
        .map(|(_, v)| v)
}

/// The scenario with something else.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name.
    #[serde(deserialize_with = "name")]
    pub name: Spanned<String>,
    on: Option<Vec<On>>,
    disk: Option<Spanned<DiskModel>>,
    nr_requests: Option<NrRequests>,
    #[serde(default)]
    iosched: BTreeMap<String, Attr>,
    rw: Option<Spanned<Each>>,
    #[serde(default)]
    weight: BTreeMap<Spanned<String>, Weight>,
    #[serde(default)]
    class: BTreeMap<Spanned<String>, Class>,
    #[serde(default)]
    bs: BTreeMap<Spanned<String>, Bytes>,
    #[serde(default)]
    iodepth: BTreeMap<Spanned<String>, Count>,
    #[serde(default)]
    numjobs: BTreeMap<Spanned<String>, Count>,
    #[serde(default)]
    size: BTreeMap<Spanned<String>, Bytes>,
    #[serde(default)]
    published: BTreeMap<Spanned<String>, f64>,
    on_device: Option<bool>,
    #[serde(default)]
    silent: Vec<Spanned<String>>,
    controllers: Option<Vec<Controller>>,
    duration: Option<Nanos>,
    duration_vm: Option<Nanos>,
    settle: Option<Nanos>,
    stop: Option<Stop>,
}

impl Variant {
    /// The groups that it names.
    fn groups(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.silent
            .iter()
            .chain(self.weight.keys())
            .chain(self.class.keys())
            .chain(self.bs.keys())
            .chain(self.iodepth.keys())
            .chain(self.numjobs.keys())
            .chain(self.size.keys())
            .chain(self.published.keys())
    }
}

/// A part of a run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhaseSpec {
    /// Its name.
    #[serde(deserialize_with = "name")]
    pub name: Spanned<String>,
    /// Groups whose jobs do not run.
    #[serde(default)]
    silent: Vec<Spanned<String>>,
    duration: Option<Nanos>,
    settle: Option<Nanos>,
}

/// What is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Each group's share of disk time, by the kernel's counters.
    Share,
    /// Each group's share of I/Os, by the kernel's counters.
    IoShare,
    /// Each group's share of disk time, by the trace.
    TraceShare,
    /// Each group's share of the device's own time, which a model knows.
    TrueShare,
    /// Each job's share of its group's disk time, by the trace.
    JobShare,
    /// What the first of the groups got, by what the second got.
    Ratio,
    /// The same by the trace.
    TraceRatio,
    /// What the first of the groups got, of what all the listed got.
    Part,
    /// Jain's index of what each group got by what its weight promises.
    Jain,
    /// When the first of the groups was done, by when the second was.
    FinishRatio,
    /// When the group was done, by when it was in the baseline.
    Finish,
    /// Bytes a second of the group, by those in the baseline.
    GroupRate,
    /// I/Os a second, by those of the baseline.
    Rate,
    /// The longest wait of a request so far, in milliseconds.
    WaitMaxMs,
    /// The longest time without any of the group's requests in the device, in milliseconds, by the
    /// trace.
    GapMaxMs,
    /// The 99th percentile of the latency of the group's I/Os, or transactions, in milliseconds.
    P99Ms,
    /// The same, by that in the baseline.
    P99,
    /// The longest of the group's I/Os, or transactions, in milliseconds.
    LatencyMaxMs,
    /// Transactions a second of the group, by those in the baseline.
    TransactionRate,
    /// Disk time of all groups, by the time at least one request was in the device, less 1.
    UnionError,
}

impl Metric {
    /// Whether weights promise a value.
    fn is_share(self) -> bool {
        matches!(
            self,
            Self::Share | Self::IoShare | Self::TraceShare | Self::TrueShare
        )
    }

    /// Whether it compares with another run.
    fn is_relative(self) -> bool {
        matches!(
            self,
            Self::Rate | Self::GroupRate | Self::TransactionRate | Self::Finish | Self::P99
        )
    }
}

/// Something that must hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// What is looked at.
    pub metric: Spanned<Metric>,
    /// Which groups (jobs for `job-share`); all with jobs that run, if not said.
    #[serde(default)]
    pub groups: Vec<Spanned<String>>,
    /// What it is to be; for shares what the weights promise, if not said.
    pub expect: Option<f64>,
    /// How far from that it may be.
    pub within: Option<f64>,
    /// The least that it may be.
    pub min: Option<f64>,
    /// The most that it may be.
    pub max: Option<f64>,
    /// For metrics that compare.
    pub baseline: Option<Baseline>,
    /// Whether each round is compared with the same round of the baseline: the bounds are then for
    /// the 95 % confidence interval of the median over all rounds.
    #[serde(default)]
    pub paired: bool,
    /// Of which controllers.
    #[serde(default = "only_disktime")]
    pub controllers: Vec<Controller>,
    /// In which variants; all if not said.
    #[serde(default)]
    pub variants: Vec<Spanned<String>>,
    /// In which phases; all if not said.
    #[serde(default)]
    pub phases: Vec<Spanned<String>>,
    /// Where; everywhere if not said.
    #[serde(default)]
    pub on: Vec<On>,
}

fn only_disktime() -> Vec<Controller> {
    vec![Controller::Disktime]
}

/// With what a rate is compared: the same but for this.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Baseline {
    /// Another controller.
    pub controller: Option<Controller>,
    /// Another variant.
    pub variant: Option<Spanned<String>>,
}

fn line_at(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())]
        .iter()
        .filter(|b| **b == b'\n')
        .count()
        + 1
}

/// Reads a scenario's text; `file` is for messages.
pub fn parse(text: &str, file: &Path) -> Result<Scenario, Bad> {
    let bad = |at: usize, why: String| Bad {
        file: file.to_owned(),
        line: line_at(text, at),
        why,
    };
    let scenario: Scenario = toml::from_str(text).map_err(|e| {
        let at = e.span().map_or(0, |s| s.start);
        bad(at, e.message().lines().collect::<Vec<_>>().join(" "))
    })?;
    match scenario.fault() {
        Some((span, why)) => Err(bad(span.start, why)),
        None => Ok(scenario),
    }
}

/// Reads a scenario file.
pub fn load(file: &Path) -> Result<Scenario, Bad> {
    let text = std::fs::read_to_string(file).map_err(|e| Bad {
        file: file.to_owned(),
        line: 1,
        why: format!("cannot read it: {e}"),
    })?;
    parse(&text, file)
}

type Fault = (Range<usize>, String);

fn twice<'a>(names: impl Iterator<Item = &'a Spanned<String>>, what: &str) -> Option<Fault> {
    let mut seen = BTreeSet::new();
    names
        .into_iter()
        .find(|n| !seen.insert(n.get_ref().clone()))
        .map(|n| (n.span(), format!("there are two {what} {}", n.get_ref())))
}

fn missing<'a>(
    names: impl IntoIterator<Item = &'a Spanned<String>>,
    known: &BTreeSet<String>,
    what: &str,
) -> Option<Fault> {
    let wrong = names.into_iter().find(|n| !known.contains(n.get_ref()))?;
    let list = known.iter().cloned().collect::<Vec<_>>().join(", ");
    Some((
        wrong.span(),
        format!("there is no {what} {}, there are: {list}", wrong.get_ref()),
    ))
}

fn names<'a>(of: impl Iterator<Item = &'a Spanned<String>>) -> BTreeSet<String> {
    of.map(|n| n.get_ref().clone()).collect()
}

impl Scenario {
    /// What no field shows by itself.
    fn fault(&self) -> Option<Fault> {
        self.fault_of_names()
            .or_else(|| self.fault_of_jobs())
            .or_else(|| self.fault_of_disks())
            .or_else(|| {
                let none = self.groups.iter().all(|g| g.jobs.is_empty());
                none.then(|| (self.name.span(), "no group has a job".into()))
            })
            .or_else(|| {
                let none = self.controllers.is_empty();
                none.then(|| (self.name.span(), "controllers is empty".into()))
            })
            .or_else(|| self.checks.iter().find_map(Check::fault))
    }

    /// The groups, those with a count as many as they are.
    pub fn groups(&self) -> impl Iterator<Item = (String, &Group)> {
        self.groups.iter().flat_map(|group| {
            let name = group.name.get_ref();
            let names = match group.count {
                None => vec![name.clone()],
                Some(count) => (1..=count.get::<u32>())
                    .map(|n| format!("{name}{n}"))
                    .collect(),
            };
            names.into_iter().map(move |name| (name, group))
        })
    }

    /// The share that was published of a group in a variant.
    #[must_use]
    pub fn published(&self, variant: &str, group: &str) -> Option<f64> {
        let own = self.variants.iter().find(|v| v.name.get_ref() == variant);
        let own = own.filter(|v| !v.published.is_empty());
        match own {
            Some(variant) => of(&variant.published, group).copied(),
            None => self.groups().find(|(name, _)| name == group)?.1.published,
        }
    }

    fn fault_of_names(&self) -> Option<Fault> {
        let given: BTreeSet<String> = names(self.groups.iter().map(|g| &g.name));
        let group_names: BTreeSet<String> = self.groups().map(|(n, _)| n).collect();
        let variant_names = names(self.variants.iter().map(|v| &v.name));
        let phase_names = names(self.phases.iter().map(|p| &p.name));
        let job_names: BTreeSet<_> = self
            .groups()
            .flat_map(|(name, g)| g.named_jobs(name))
            .map(|(n, _)| n)
            .collect();
        let given_jobs = || {
            self.groups
                .iter()
                .flat_map(|g| &g.jobs)
                .filter_map(|j| j.name.as_ref())
        };
        twice(self.groups.iter().map(|g| &g.name), "groups")
            .or_else(|| twice(self.variants.iter().map(|v| &v.name), "variants"))
            .or_else(|| twice(self.phases.iter().map(|p| &p.name), "phases"))
            .or_else(|| twice(given_jobs(), "jobs"))
            .or_else(|| {
                // Parents come first: no circle can be written, and groups are made in order.
                let mut before = BTreeSet::new();
                self.groups.iter().find_map(|g| {
                    let fault = missing(&g.parent, &before, "group above (before it in the file)");
                    if g.count.is_none() {
                        before.insert(g.name.get_ref().clone());
                    }
                    fault
                })
            })
            .or_else(|| {
                // A variant speaks of all groups that one entry makes.
                let known: BTreeSet<String> = given.union(&group_names).cloned().collect();
                let of_variants = self.variants.iter().flat_map(Variant::groups);
                let of_phases = self.phases.iter().flat_map(|p| &p.silent);
                missing(of_variants.chain(of_phases), &known, "group").or_else(|| {
                    let mut each = self.variants.iter().filter_map(|v| v.rw.as_ref());
                    each.find_map(|rw| {
                        let wrong = rw
                            .get_ref()
                            .groups()
                            .into_iter()
                            .find(|g| !known.contains(*g));
                        wrong.map(|g| (rw.span(), format!("there is no group {g}")))
                    })
                })
            })
            .or_else(|| {
                self.checks.iter().find_map(|check| {
                    let known = match check.metric.get_ref() {
                        Metric::JobShare => (&job_names, "job"),
                        _ => (&group_names, "group"),
                    };
                    let baseline = check.baseline.as_ref().and_then(|b| b.variant.as_ref());
                    missing(&check.groups, known.0, known.1)
                        .or_else(|| missing(&check.variants, &variant_names, "variant"))
                        .or_else(|| missing(baseline, &variant_names, "variant"))
                        .or_else(|| missing(&check.phases, &phase_names, "phase"))
                })
            })
    }

    fn fault_of_jobs(&self) -> Option<Fault> {
        let jobs = || self.groups.iter().flat_map(|g| &g.jobs);
        let own = jobs().map(|j| (j.rw.span(), j.rw.get_ref()));
        let of_variants = self.variants.iter().filter_map(|v| v.rw.as_ref());
        let changed =
            of_variants.flat_map(|rw| rw.get_ref().values().into_iter().map(|v| (rw.span(), v)));
        if let Some((span, rw)) = own
            .chain(changed)
            .find(|(_, rw)| !RW.contains(&rw.as_str()))
        {
            return Some((span, format!("rw is {rw:?}, not one of {}", RW.join(", "))));
        }
        let database = |rw: &Spanned<Each>| {
            let values = rw.get_ref().values();
            values.into_iter().any(|value| value == PGBENCH)
        };
        let mut of_variants = self.variants.iter().filter_map(|v| v.rw.as_ref());
        if let Some(rw) = of_variants.find(|rw| database(rw)) {
            let why = "a variant makes no database of a job: have a group for it, and be silent";
            return Some((rw.span(), why.into()));
        }
        let with_groups = self
            .groups
            .iter()
            .flat_map(|g| g.jobs.iter().map(move |j| (g, j)));
        with_groups.into_iter().find_map(|(group, job)| {
            let why = if self.stop != Stop::Time && job.size.is_none() {
                "a job without size is never done, and stop waits for one"
            } else if job.ioengine == Engine::Psync && job.iodepth > 1 {
                "psync does one I/O at a time: iodepth is 1, or use numjobs"
            } else if job.buffered && job.ioengine != Engine::Psync {
                "buffered I/O is done one at a time: ioengine is psync"
            } else if job.buffered && self.fs.is_none() {
                "buffered I/O needs files: give fs"
            } else if *job.rw.get_ref() == PGBENCH && (self.fs.is_none() || self.on != [On::Vm]) {
                "a database needs files and a machine: give fs and on = [\"vm\"]"
            } else if *job.rw.get_ref() == PGBENCH && job.has_fio_s_words() {
                "pgbench knows no size, bs, iodepth, rates or times, and syncs by itself"
            } else if *job.rw.get_ref() == PGBENCH && group.user.is_some() {
                "a database has a user of its own"
            } else if self.partitions && group.jobs.len() > 1 {
                "a group with a partition has one job: use numjobs"
            } else {
                return None;
            };
            Some((job.rw.span(), why.into()))
        })
    }

    /// Disks that are none, or too small.
    fn fault_of_disks(&self) -> Option<Fault> {
        let unnamed = [None];
        let all: Vec<Option<&Variant>> = self.variants.iter().map(Some).collect();
        let variants = if all.is_empty() { &unnamed[..] } else { &all };
        variants.iter().find_map(|variant| {
            let own = variant.and_then(|v| v.disk.as_ref());
            let span = own.map_or_else(|| self.disk.span(), Spanned::span);
            let why = match self.disk_of(*variant).and_then(|spec| {
                let sectors = spec.make()?.sectors();
                Ok((spec, sectors))
            }) {
                Err(why) => why,
                Ok((spec, sectors)) => {
                    let needed = self.needed_sectors(*variant);
                    if needed <= sectors {
                        return None;
                    }
                    let mib = |sectors: u64| sectors.div_ceil(2048);
                    format!(
                        "the disk is too small: {spec} has {} MiB, the jobs need {}",
                        mib(sectors),
                        mib(needed)
                    )
                }
            };
            Some((span, why))
        })
    }
}

impl Group {
    /// Its jobs and their names, where it is called `group`.
    fn named_jobs(&self, group: String) -> impl Iterator<Item = (String, &Job)> {
        self.jobs.iter().enumerate().map(move |(number, job)| {
            let name = match &job.name {
                Some(name) if self.count.is_none() => name.get_ref().clone(),
                Some(name) => format!("{group}.{}", name.get_ref()),
                None if self.jobs.len() == 1 => group.clone(),
                None => format!("{group}.{}", number + 1),
            };
            (name, job)
        })
    }
}

impl Job {
    /// Whether it says anything that only fio understands.
    fn has_fio_s_words(&self) -> bool {
        let amounts = [
            self.size.is_some(),
            self.thinktime.is_some(),
            self.thinktime_blocks.is_some(),
            self.rate_iops.is_some(),
            self.startdelay.is_some(),
            self.fsync.is_some(),
        ];
        let usual = (usual_bs(), Engine::default(), 1);
        amounts.contains(&true)
            || self.end_fsync
            || self.buffered
            || (self.bs, self.ioengine, self.iodepth) != usual
    }
}

impl Check {
    fn fault(&self) -> Option<Fault> {
        let metric = *self.metric.get_ref();
        let ratio = matches!(
            metric,
            Metric::Ratio | Metric::TraceRatio | Metric::FinishRatio
        );
        let why = if self.within.is_none() && self.min.is_none() && self.max.is_none() {
            "the check has no bound: give within, min or max"
        } else if self.expect.is_some() && self.within.is_none() {
            "expect says nothing without within"
        } else if self.within.is_some() && self.expect.is_none() && !metric.is_share() {
            "within needs expect: only the shares of groups have a value that the weights promise"
        } else if ratio && self.groups.len() != 2 {
            "a ratio is between two groups"
        } else if metric == Metric::Part && self.groups.len() < 2 {
            "a part is of two groups or more"
        } else if metric.is_relative() != self.baseline.is_some() {
            "baseline goes with the metrics rate, group-rate, transaction-rate, finish and p99, and \
             they with a baseline"
        } else if self
            .baseline
            .as_ref()
            .is_some_and(|b| b.controller.is_none() && b.variant.is_none())
        {
            "the baseline names neither a controller nor a variant"
        } else if self.paired && self.baseline.is_none() {
            "paired needs a baseline, the rounds of which are the others of the pairs"
        } else {
            return None;
        };
        Some((self.metric.span(), why.into()))
    }
}
