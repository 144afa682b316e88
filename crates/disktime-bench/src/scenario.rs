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

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, de};
use thiserror::Error;
use toml::Spanned;

use crate::plan::{self, Class, Controller, Phase, Plan, Run, Stop};

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

/// A time in nanoseconds, written like `10s`, `250ms`, `40us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Nanos(pub u64);

impl FromStr for Nanos {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no time; write it like 10s, 250ms or 40us");
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit: f64 = match &text[digits.len()..] {
            "ns" => 1.0,
            "us" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            _ => return Err(bad()),
        };
        let number: f64 = digits.parse().map_err(|_| bad())?;
        let ns = number * unit;
        if !(0.0..=86_400e9).contains(&ns) || digits.starts_with('+') {
            return Err(bad());
        }
        Ok(Self(ns.round() as u64))
    }
}

/// A size in bytes, written like fio's: `4k`, `1m`, `512`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no size; write it like 512, 4k, 1m or 2g");
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let shift = match text[digits.len()..].to_ascii_lowercase().as_str() {
            "" => 0,
            "k" => 10,
            "m" => 20,
            "g" => 30,
            _ => return Err(bad()),
        };
        let number: u64 = digits.parse().map_err(|_| bad())?;
        let bytes = number.checked_mul(1 << shift).ok_or_else(bad)?;
        if bytes == 0 || bytes % 512 != 0 {
            return Err(format!("{text:?} is no multiple of a sector of 512 bytes"));
        }
        Ok(Self(bytes))
    }
}

/// An I/O priority: a class and, but for idle, a level, written like `be/4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoPrio {
    class: Class,
    level: u8,
}

impl FromStr for IoPrio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("{text:?} is no I/O priority; write it like be/4, rt/0 or idle");
        if text == "idle" {
            return Ok(Self {
                class: Class::Idle,
                level: 7,
            });
        }
        let (class, level) = text.split_once('/').ok_or_else(bad)?;
        let class = match class {
            "rt" => Class::Rt,
            "be" => Class::Be,
            _ => return Err(bad()),
        };
        let level = level.parse().ok().filter(|l| *l <= 7).ok_or_else(bad)?;
        Ok(Self { class, level })
    }
}

macro_rules! deserialize_from_str {
    ($($t:ty),*) => {$(
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    )*};
}
deserialize_from_str!(Nanos, Bytes, IoPrio);

fn in_range<T: PartialOrd + std::fmt::Display>(
    value: T,
    range: std::ops::RangeInclusive<T>,
) -> Result<T, String> {
    if range.contains(&value) {
        return Ok(value);
    }
    Err(format!(
        "{value} is not within {} to {}",
        range.start(),
        range.end()
    ))
}

fn weight<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    in_range(u32::deserialize(from)?, 1..=10_000).map_err(de::Error::custom)
}

fn servers<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    in_range(u32::deserialize(from)?, 1..=1024).map_err(de::Error::custom)
}

fn servers_opt<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    servers(from).map(Some)
}

fn service_us<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    in_range(u64::deserialize(from)?, 1..=10_000_000).map_err(de::Error::custom)
}

fn service_us_opt<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    service_us(from).map(Some)
}

fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    in_range(u32::deserialize(from)?, 1..=1024).map_err(de::Error::custom)
}

fn share<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    in_range(f64::deserialize(from)?, 0.0..=1.0)
        .map(Some)
        .map_err(de::Error::custom)
}

fn name<'de, D: Deserializer<'de>>(from: D) -> Result<Spanned<String>, D::Error> {
    let name = Spanned::<String>::deserialize(from)?;
    let text = name.get_ref();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    if text.is_empty() || text.starts_with('.') || text.len() > 60 || !text.chars().all(plain) {
        return Err(de::Error::custom(format!(
            "{text:?} is no name: letters, digits, - _ + and . make one"
        )));
    }
    Ok(name)
}

fn one_line<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(String::deserialize(from)?
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" "))
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
    /// How often each is measured, in turn.
    #[serde(default = "one", deserialize_with = "count")]
    pub rounds: u32,
    /// Of a phase's window.
    pub duration: Nanos,
    /// From when all jobs run until the window begins.
    #[serde(default = "usual_settle")]
    pub settle: Nanos,
    /// What ends a window.
    #[serde(default)]
    pub stop: Stop,
    /// Whether requests are recorded.
    #[serde(default = "yes")]
    pub trace: bool,
    /// Whether the load fills the disk: a run then counts only where `none` reaches nine tenths of
    /// what the disk can do.
    #[serde(default = "yes")]
    pub saturates: bool,
    /// The disk.
    pub disk: DiskModel,
    /// Size of the scheduler's tag set.
    #[serde(default)]
    pub nr_requests: NrRequests,
    /// disktime's attributes.
    #[serde(default)]
    pub iosched: BTreeMap<String, Attr>,
    /// The groups.
    #[serde(rename = "group")]
    pub groups: Vec<Group>,
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

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

/// A disk in a file.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskModel {
    #[serde(deserialize_with = "servers")]
    servers: u32,
    #[serde(deserialize_with = "service_us")]
    service_us: u64,
    #[serde(default)]
    rotational: bool,
}

/// What a variant has otherwise about the disk.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskChange {
    #[serde(default, deserialize_with = "servers_opt")]
    servers: Option<u32>,
    #[serde(default, deserialize_with = "service_us_opt")]
    service_us: Option<u64>,
    rotational: Option<bool>,
}

/// A number from 1 to 1024.
#[derive(Debug, Clone, Copy)]
struct Count(u32);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        count(from).map(Self)
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

/// `"default"` or a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NrRequests(Option<u32>);

impl<'de> Deserialize<'de> for NrRequests {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match Attr::deserialize(from).map_err(|_| de::Error::custom("write default or a number"))? {
            Attr::Word(word) if word == "default" => Ok(Self(None)),
            Attr::Number(n @ 4..=2048) => Ok(Self(Some(n as u32))),
            other => Err(de::Error::custom(format!(
                "nr_requests is default or 4 to 2048, not {other}"
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

const RW: [&str; 6] = ["read", "write", "randread", "randwrite", "rw", "randrw"];

/// The scenario with something else.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name.
    #[serde(deserialize_with = "name")]
    pub name: Spanned<String>,
    #[serde(default)]
    disk: DiskChange,
    nr_requests: Option<NrRequests>,
    #[serde(default)]
    iosched: BTreeMap<String, Attr>,
    rw: Option<Spanned<String>>,
    #[serde(default)]
    iodepth: BTreeMap<Spanned<String>, Count>,
    #[serde(default)]
    size: BTreeMap<Spanned<String>, Bytes>,
    on_device: Option<bool>,
    #[serde(default)]
    silent: Vec<Spanned<String>>,
    controllers: Option<Vec<Controller>>,
    duration: Option<Nanos>,
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
    /// Each job's share of its group's disk time, by the trace.
    JobShare,
    /// What the first of the groups got, by what the second got.
    Ratio,
    /// The same by the trace.
    TraceRatio,
    /// What the first of the groups got, of what all the listed got.
    Part,
    /// I/Os a second, by those of the baseline.
    Rate,
    /// The longest wait of a request so far, in milliseconds.
    WaitMaxMs,
    /// The longest time without any of the group's requests in the device, in milliseconds, by the
    /// trace.
    GapMaxMs,
    /// Disk time of all groups, by the time at least one request was in the device, less 1.
    UnionError,
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
    /// For `rate`.
    pub baseline: Option<Baseline>,
    /// Of which controllers.
    #[serde(default = "only_disktime")]
    pub controllers: Vec<Controller>,
    /// In which variants; all if not said.
    #[serde(default)]
    pub variants: Vec<Spanned<String>>,
    /// In which phases; all if not said.
    #[serde(default)]
    pub phases: Vec<Spanned<String>>,
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

/// How a run departs from its file.
#[derive(Debug, Clone)]
pub struct Options {
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
}

impl Default for Options {
    fn default() -> Self {
        Self {
            controllers: None,
            variants: Vec::new(),
            rounds: None,
            seed: 1,
            scale: 1.0,
        }
    }
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
        let group_names = names(self.groups.iter().map(|g| &g.name));
        let variant_names = names(self.variants.iter().map(|v| &v.name));
        let phase_names = names(self.phases.iter().map(|p| &p.name));
        let job_names: BTreeSet<_> = self
            .groups
            .iter()
            .flat_map(|g| g.named_jobs())
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
                    before.insert(g.name.get_ref().clone());
                    fault
                })
            })
            .or_else(|| {
                let mut rw = self
                    .groups
                    .iter()
                    .flat_map(|g| &g.jobs)
                    .map(|j| &j.rw)
                    .chain(self.variants.iter().filter_map(|v| v.rw.as_ref()));
                let wrong = rw.find(|rw| !RW.contains(&rw.get_ref().as_str()))?;
                let why = format!("rw is {:?}, not one of {}", wrong.get_ref(), RW.join(", "));
                Some((wrong.span(), why))
            })
            .or_else(|| {
                self.groups.iter().flat_map(|g| &g.jobs).find_map(|job| {
                    if self.stop == Stop::FirstJobDone && job.size.is_none() {
                        let why = "a job without size is never done, and stop is first-job-done";
                        return Some((job.rw.span(), why.into()));
                    }
                    let deep = job.ioengine == Engine::Psync && job.iodepth > 1;
                    let why = "psync does one I/O at a time: iodepth is 1, or use numjobs";
                    deep.then(|| (job.rw.span(), why.into()))
                })
            })
            .or_else(|| {
                let of_variants = self
                    .variants
                    .iter()
                    .flat_map(|v| v.silent.iter().chain(v.iodepth.keys()).chain(v.size.keys()));
                let of_phases = self.phases.iter().flat_map(|p| &p.silent);
                missing(of_variants.chain(of_phases), &group_names, "group")
            })
            .or_else(|| {
                let none = self.groups.iter().all(|g| g.jobs.is_empty());
                none.then(|| (self.name.span(), "no group has a job".into()))
            })
            .or_else(|| {
                let none = self.controllers.is_empty();
                none.then(|| (self.name.span(), "controllers is empty".into()))
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
                        .or_else(|| check.fault())
                })
            })
    }
}

impl Group {
    /// Its jobs and their names.
    fn named_jobs(&self) -> impl Iterator<Item = (String, &Job)> {
        self.jobs.iter().enumerate().map(|(number, job)| {
            let name = match &job.name {
                Some(name) => name.get_ref().clone(),
                None if self.jobs.len() == 1 => self.name.get_ref().clone(),
                None => format!("{}.{}", self.name.get_ref(), number + 1),
            };
            (name, job)
        })
    }
}

impl Check {
    fn fault(&self) -> Option<Fault> {
        let metric = *self.metric.get_ref();
        let shares = matches!(metric, Metric::Share | Metric::IoShare | Metric::TraceShare);
        let why = if self.within.is_none() && self.min.is_none() && self.max.is_none() {
            "the check has no bound: give within, min or max"
        } else if self.expect.is_some() && self.within.is_none() {
            "expect says nothing without within"
        } else if self.within.is_some() && self.expect.is_none() && !shares {
            "within needs expect: only the shares of groups have a value that the weights promise"
        } else if matches!(metric, Metric::Ratio | Metric::TraceRatio) && self.groups.len() != 2 {
            "a ratio is between two groups"
        } else if metric == Metric::Part && self.groups.len() < 2 {
            "a part is of two groups or more"
        } else if (metric == Metric::Rate) != self.baseline.is_some() {
            "baseline goes with the metric rate, and rate with a baseline"
        } else if self
            .baseline
            .as_ref()
            .is_some_and(|b| b.controller.is_none() && b.variant.is_none())
        {
            "the baseline names neither a controller nor a variant"
        } else {
            return None;
        };
        Some((self.metric.span(), why.into()))
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
        if !options.variants.is_empty() && !options.variants.iter().any(wanted) {
            continue;
        }
        let own = variant
            .and_then(|v| v.controllers.as_ref())
            .unwrap_or(&scenario.controllers);
        let controllers = options.controllers.as_ref().unwrap_or(own);
        for round in 1..=rounds {
            for &controller in controllers {
                runs.push(scenario.run(*variant, round, controller, options));
            }
        }
    }
    runs
}

/// The plan of several scenarios.
#[must_use]
pub fn plan(scenarios: &[Scenario], options: &Options) -> Plan {
    let runs = scenarios.iter().flat_map(|s| runs(s, options)).collect();
    Plan {
        version: plan::VERSION,
        runs,
    }
}

/// Part of the disk that one fio process has for itself.
const REGION_MIB: u64 = 1024;

impl Scenario {
    fn run(
        &self,
        variant: Option<&Variant>,
        round: u32,
        controller: Controller,
        options: &Options,
    ) -> Run {
        let scaled = |t: Nanos| (t.0 as f64 * options.scale).round() as u64;
        let change = variant.map_or_else(DiskChange::default, |v| v.disk);
        let mut iosched = self.iosched.clone();
        iosched.extend(variant.iter().flat_map(|v| v.iosched.clone()));
        let silent = names(variant.iter().flat_map(|v| &v.silent));

        let mut groups: Vec<plan::Group> = Vec::new();
        let mut jobs = Vec::new();
        let mut regions = 0;
        for spec in &self.groups {
            let name = spec.name.get_ref().clone();
            let above = spec.parent.as_ref().and_then(|parent| {
                groups
                    .iter()
                    .find(|g| g.name == *parent.get_ref())
                    .map(|g| g.path.clone())
            });
            groups.push(plan::Group {
                path: above.map_or(name.clone(), |above| format!("{above}/{name}")),
                name,
                weight: spec.weight,
                on_device: variant.and_then(|v| v.on_device).unwrap_or(spec.on_device),
                class: spec.class,
            });
            for (name, job) in spec.named_jobs() {
                let mut job = job.clone();
                if let Some(variant) = variant {
                    let group = spec.name.get_ref();
                    let own = |n: &Spanned<String>| n.get_ref() == group;
                    if let Some((_, depth)) = variant.iodepth.iter().find(|(n, _)| own(n)) {
                        job.iodepth = depth.0;
                    }
                    if let Some((_, size)) = variant.size.iter().find(|(n, _)| own(n)) {
                        job.size = Some(*size);
                    }
                }
                let seed = options.seed * 1000 + jobs.len() as u64;
                let rw = variant
                    .and_then(|v| v.rw.as_ref())
                    .unwrap_or(&job.rw)
                    .get_ref();
                let place = regions;
                regions += u64::from(job.numjobs);
                jobs.push(job.plan(
                    name,
                    groups.len() - 1,
                    place,
                    rw,
                    spec.class,
                    controller,
                    seed,
                ));
            }
        }

        let duration = variant.and_then(|v| v.duration).unwrap_or(self.duration);
        let phase = |spec: Option<&PhaseSpec>| {
            let more = names(spec.iter().flat_map(|p| &p.silent));
            let runs = |job: &plan::Job| {
                let group = &groups[job.group].name;
                !silent.contains(group) && !more.contains(group)
            };
            Phase {
                name: spec.map_or(String::new(), |p| p.name.get_ref().clone()),
                jobs: (0..jobs.len()).filter(|&j| runs(&jobs[j])).collect(),
                settle_ns: spec.and_then(|p| p.settle).unwrap_or(self.settle).0,
                duration_ns: scaled(spec.and_then(|p| p.duration).unwrap_or(duration)),
                stop: self.stop,
            }
        };
        let phases = match self.phases.is_empty() {
            true => vec![phase(None)],
            false => self.phases.iter().map(|p| phase(Some(p))).collect(),
        };
        Run {
            scenario: self.name.get_ref().clone(),
            variant: variant.map_or(String::new(), |v| v.name.get_ref().clone()),
            round,
            controller,
            disk: plan::Disk {
                servers: change.servers.unwrap_or(self.disk.servers),
                service_ns: change.service_us.unwrap_or(self.disk.service_us) * 1000,
                rotational: change.rotational.unwrap_or(self.disk.rotational),
                size_mib: regions * REGION_MIB,
            },
            nr_requests: variant
                .and_then(|v| v.nr_requests)
                .unwrap_or(self.nr_requests)
                .0,
            iosched: iosched
                .into_iter()
                .map(|(k, v)| (k, v.to_string()))
                .collect(),
            groups,
            jobs,
            phases,
            trace: self.trace,
        }
    }
}

impl Job {
    #[expect(
        clippy::too_many_arguments,
        reason = "all of them are what a job is made of"
    )]
    fn plan(
        &self,
        name: String,
        group: usize,
        place: u64,
        rw: &str,
        class: Class,
        controller: Controller,
        seed: u64,
    ) -> plan::Job {
        let mib = |n: u64| n << 20;
        let region = mib(REGION_MIB);
        let size = self.size.map_or(region, |s| s.0);
        let engine = match self.ioengine {
            Engine::Libaio => "libaio",
            Engine::IoUring => "io_uring",
            Engine::Psync => "psync",
        };
        let mut args = vec![
            format!("--filename=/dev/{}", plan::DISK),
            format!("--rw={rw}"),
            format!("--bs={}", self.bs.0),
            format!("--ioengine={engine}"),
            format!("--iodepth={}", self.iodepth),
            format!("--numjobs={}", self.numjobs),
            format!("--offset={}", place * region),
            format!("--size={size}"),
            "--direct=1".into(),
            "--thread=0".into(),
            "--norandommap=1".into(),
            format!("--randseed={seed}"),
        ];
        if self.numjobs > 1 {
            args.push(format!("--offset_increment={region}"));
            args.push("--group_reporting=1".into());
        }
        if let Some(think) = self.thinktime {
            args.push(format!("--thinktime={}", think.0 / 1000));
        }
        // Where classes belong to processes, a group's is given to its processes.
        let of_group = (controller != Controller::Disktime && class != Class::Be)
            .then_some(IoPrio { class, level: 4 });
        if let Some(prio) = self.ioprio.or(of_group) {
            let number = match prio.class {
                Class::Rt => 1,
                Class::Be => 2,
                Class::Idle => 3,
            };
            args.push(format!("--prioclass={number}"));
            if prio.class != Class::Idle {
                args.push(format!("--prio={}", prio.level));
            }
        }
        let sectors = |bytes: u64| bytes >> 9;
        plan::Job {
            name,
            group,
            args,
            from_sector: sectors(place * region),
            to_sector: sectors((place + u64::from(self.numjobs)) * region),
            bytes: self.size.map(|s| s.0 * u64::from(self.numjobs)),
            depth: self.iodepth * self.numjobs,
        }
    }
}

/// What the weights promise: each group's share while exactly the groups in `busy` ask for more
/// than they get. Of siblings (and a group's own processes beside its child groups, which weigh
/// 100) only those of the best class that asks get anything.
#[must_use]
pub fn entitled(groups: &[plan::Group], busy: &BTreeSet<usize>) -> Vec<f64> {
    const OWN_WEIGHT: u32 = 100;
    let mut shares = vec![0.0; groups.len()];
    let below = |path: &str, group: &plan::Group| {
        group.path == path
            || group
                .path
                .strip_prefix(path)
                .is_some_and(|r| r.starts_with('/'))
    };
    // What each group divides: given by its parent, which comes before it.
    let mut given = BTreeMap::from([(String::new(), 1.0)]);
    let mut parents = vec![String::new()];
    parents.extend(groups.iter().map(|g| g.path.clone()));
    for parent in parents {
        let Some(&all) = given.get(&parent) else {
            continue;
        };
        let mut asking: Vec<(Option<usize>, u32, Class)> = groups
            .iter()
            .enumerate()
            .filter(|(_, g)| {
                g.path.rsplit_once('/').map_or("", |(above, _)| above) == parent
                    && busy.iter().any(|&b| below(&g.path, &groups[b]))
            })
            .map(|(i, g)| (Some(i), g.weight, g.class))
            .collect();
        let own = groups
            .iter()
            .position(|g| g.path == parent)
            .filter(|i| busy.contains(i));
        if own.is_some() {
            asking.push((None, OWN_WEIGHT, Class::Be));
        }
        let Some(best) = asking.iter().map(|a| a.2).min() else {
            continue;
        };
        let sum: u32 = asking.iter().filter(|a| a.2 == best).map(|a| a.1).sum();
        for (index, weight, class) in asking {
            let part = match class == best {
                true => all * f64::from(weight) / f64::from(sum),
                false => 0.0,
            };
            match (index, own) {
                (Some(index), _) => {
                    given.insert(groups[index].path.clone(), part);
                }
                (None, Some(own)) => shares[own] = part,
                (None, None) => {}
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
name = "t"
duration = "10s"
disk = { servers = 8, service_us = 4000 }
[[variant]]
name = "eight"
[[variant]]
name = "one"
disk = { servers = 1 }
nr_requests = 256
silent = ["b"]
[[group]]
name = "a"
weight = 40
job = [{ rw = "randread", iodepth = 32 }]
[[group]]
name = "b"
parent = "a"
job = [{ rw = "write", ioengine = "psync", ioprio = "be/0" }, { name = "w2", rw = "write", numjobs = 2 }]
[[check]]
metric = "share"
within = 0.01
"#;

    fn good() -> Scenario {
        parse(GOOD, Path::new("f.toml")).unwrap()
    }

    #[test]
    fn a_good_file_becomes_runs() {
        let runs = runs(&good(), &Options::default());
        let seen: Vec<_> = runs
            .iter()
            .map(|r| (r.variant.as_str(), r.controller))
            .collect();
        use Controller::{Bfq, Disktime, None};
        let expect = ["eight", "one"]
            .map(|v| [(v, Disktime), (v, Bfq), (v, None)])
            .concat();
        assert_eq!(seen, expect);
        assert_eq!(runs[0].disk.servers, 8);
        assert_eq!(runs[0].nr_requests, Option::None);
        assert_eq!(runs[0].phases[0].jobs, [0, 1, 2]);
        assert_eq!(runs[0].groups[1].path, "a/b");
        assert_eq!(runs[3].disk.servers, 1);
        assert_eq!(runs[3].nr_requests, Some(256));
        assert_eq!(runs[3].phases[0].jobs, [0]);
        let names: Vec<_> = runs[0].jobs.iter().map(|j| j.name.as_str()).collect();
        assert_eq!(names, ["a", "b.1", "w2"]);
        assert_eq!(runs[0].jobs[2].depth, 2);
        assert!(runs[0].jobs[1].args.contains(&"--prioclass=2".to_owned()));
    }

    #[test]
    fn regions_of_jobs_do_not_overlap() {
        let run = &runs(&good(), &Options::default())[0];
        let mut end = 0;
        for job in &run.jobs {
            assert_eq!(job.from_sector, end);
            assert!(job.to_sector > job.from_sector);
            end = job.to_sector;
        }
        assert_eq!(end, run.disk.size_mib << 11);
    }

    #[test]
    fn options_change_what_is_run() {
        let options = Options {
            controllers: Some(vec![Controller::Kyber]),
            variants: vec!["on".into()],
            rounds: Some(3),
            scale: 0.5,
            ..Options::default()
        };
        let runs = runs(&good(), &options);
        assert_eq!(runs.len(), 3);
        assert_eq!(runs[2].round, 3);
        assert_eq!(runs[2].phases[0].duration_ns, 5_000_000_000);
    }

    #[test]
    fn bad_files_are_refused_with_line_and_reason() {
        for (from, to, line, why) in [
            (
                "weight = 40",
                "weight = 0",
                14,
                "0 is not within 1 to 10000",
            ),
            ("weight = 40", "weight = 10001", 14, "not within"),
            ("weight = 40", "wieght = 40", 14, "unknown field"),
            ("weight = 40", "class = \"best\"", 14, "unknown variant"),
            ("weight = 40", "published = 1.5", 14, "not within"),
            ("duration = \"10s\"", "duration = 10", 3, "string"),
            ("duration = \"10s\"", "duration = \"10\"", 3, "is no time"),
            ("duration = \"10s\"", "duration = \"-1s\"", 3, "is no time"),
            ("duration = \"10s\"", "", 1, "missing field `duration`"),
            ("servers = 8", "servers = 0", 4, "not within"),
            ("service_us = 4000", "service_us = 0", 4, "not within"),
            (
                "nr_requests = 256",
                "nr_requests = 2",
                10,
                "default or 4 to 2048",
            ),
            (
                "nr_requests = 256",
                "nr_requests = \"many\"",
                10,
                "default or 4 to 2048",
            ),
            (
                "silent = [\"b\"]",
                "silent = [\"c\"]",
                11,
                "there is no group c",
            ),
            (
                "silent = [\"b\"]",
                "iodepth = { c = 1 }",
                11,
                "there is no group c",
            ),
            ("silent = [\"b\"]", "iodepth = { a = 0 }", 11, "not within"),
            (
                "silent = [\"b\"]",
                "size = { c = \"4k\" }",
                11,
                "there is no group c",
            ),
            (
                "name = \"one\"",
                "name = \"eight\"",
                8,
                "two variants eight",
            ),
            ("name = \"b\"", "name = \"a\"", 17, "two groups a"),
            ("name = \"b\"", "name = \"../b\"", 17, "is no name"),
            (
                "parent = \"a\"",
                "parent = \"x\"",
                18,
                "there is no group above",
            ),
            (
                "parent = \"a\"",
                "parent = \"b\"",
                18,
                "there is no group above",
            ),
            ("iodepth = 32", "bs = \"5\"", 15, "multiple of a sector"),
            ("iodepth = 32", "iodepth = 0", 15, "not within"),
            (
                "iodepth = 32",
                "iodepth = 32, ioengine = \"psync\"",
                15,
                "one I/O at a time",
            ),
            ("iodepth = 32", "thinktime = \"x\"", 15, "is no time"),
            ("rw = \"randread\"", "rw = \"erase\"", 15, "not one of read"),
            (
                "ioprio = \"be/0\"",
                "ioprio = \"be/8\"",
                19,
                "no I/O priority",
            ),
            ("name = \"w2\"", "job = \"w2\"", 19, "unknown field"),
            (
                "metric = \"share\"",
                "metric = \"shares\"",
                21,
                "unknown variant",
            ),
            (
                "metric = \"share\"",
                "metric = \"ratio\"",
                21,
                "within needs expect",
            ),
            (
                "within = 0.01",
                "expect = 0.5\nmax = 1.0",
                21,
                "expect says nothing",
            ),
            ("within = 0.01", "", 21, "no bound"),
            (
                "within = 0.01",
                "min = 1.0\nbaseline = { controller = \"none\" }",
                21,
                "metric rate",
            ),
            (
                "within = 0.01",
                "within = 0.01\ngroups = [\"c\"]",
                23,
                "there is no group c",
            ),
            (
                "within = 0.01",
                "within = 0.01\nvariants = [\"c\"]",
                23,
                "there is no variant c",
            ),
            (
                "within = 0.01",
                "within = 0.01\nphases = [\"c\"]",
                23,
                "there is no phase c",
            ),
            (
                "name = \"t\"",
                "name = \"t\"\nstop = \"first-job-done\"",
                16,
                "without size",
            ),
            (
                "name = \"t\"",
                "name = \"t\"\ncontrollers = []",
                2,
                "controllers is empty",
            ),
            ("name = \"t\"", "name = t", 2, ""),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let bad = parse(&GOOD.replacen(from, to, 1), Path::new("f.toml"));
            let bad = bad.map(|_| ()).expect_err(to);
            let text = bad.to_string();
            assert!(text.contains(why), "{to}: {text}");
            assert_eq!(bad.line, line, "{to}: {text}");
            assert!(text.starts_with(&format!("f.toml:{line}: ")), "{text}");
        }
    }

    fn group(path: &str, weight: u32, class: Class) -> plan::Group {
        let name = path.rsplit('/').next().unwrap().to_owned();
        plan::Group {
            name,
            path: path.to_owned(),
            weight,
            on_device: false,
            class,
        }
    }

    fn promised(groups: &[plan::Group], busy: &[usize]) -> Vec<f64> {
        let shares = entitled(groups, &busy.iter().copied().collect());
        shares.iter().map(|s| (s * 1e6).round() / 1e6).collect()
    }

    #[test]
    fn weights_promise_shares_down_the_tree() {
        use Class::{Be, Idle, Rt};
        let tree = [
            group("A", 200, Be),
            group("A/A1", 100, Be),
            group("A/A2", 300, Be),
            group("B", 100, Be),
        ];
        assert_eq!(promised(&tree, &[1, 2, 3]), [0.0, 0.166667, 0.5, 0.333333]);
        assert_eq!(promised(&tree, &[1, 3]), [0.0, 0.666667, 0.0, 0.333333]);
        // A's own processes stand beside A1 with a weight of 100.
        assert_eq!(
            promised(&tree, &[0, 1, 3]),
            [0.333333, 0.333333, 0.0, 0.333333]
        );
        assert_eq!(promised(&tree, &[]), [0.0; 4]);

        let flat = [
            group("ab", 40, Be),
            group("abc", 20, Be),
            group("a", 10, Be),
        ];
        assert_eq!(promised(&flat, &[0, 1, 2]), [0.571429, 0.285714, 0.142857]);
        assert_eq!(promised(&flat, &[0, 2]), [0.8, 0.0, 0.2]);

        let classes = [
            group("r", 10, Rt),
            group("b", 500, Be),
            group("i", 500, Idle),
        ];
        assert_eq!(promised(&classes, &[0, 1, 2]), [1.0, 0.0, 0.0]);
        assert_eq!(promised(&classes, &[1, 2]), [0.0, 1.0, 0.0]);
    }
}
