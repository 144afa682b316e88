//! What host and guest say to each other: the plan of runs, and the events that come back.

use std::collections::BTreeMap;

use disktime_model::{Region, Spec};
use serde::{Deserialize, Serialize};

/// Host and guest must agree on this number.
pub const VERSION: u32 = 3;
/// Where the guest finds the plan.
pub const PLAN_PATH: &str = "/case/plan.json";
/// Where the guest leaves traces and fio's reports, a folder `rN` for each run.
pub const OUT_DIR: &str = "/out";
/// The disk's name in the guest.
pub const DISK: &str = "dtdisk";
/// Where the guest mounts file systems: a folder in it for each group's files.
pub const MOUNTS: &str = "/mnt";
/// Whose processes PostgreSQL's are, which refuses to be root's.
pub const POSTGRES_USER: u32 = 70;
/// File of the trace in a run's folder; see [`crate::trace`].
pub const TRACE_FILE: &str = "trace";

/// All runs of one boot, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`VERSION`] of the host.
    pub version: u32,
    /// Whether the machine's clock counts instructions.
    #[serde(default)]
    pub instructions: bool,
    /// The runs.
    pub runs: Vec<Run>,
}

/// One disk, one controller, one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Scenario's name.
    pub scenario: String,
    /// Variant's name; empty if the scenario has none.
    pub variant: String,
    /// Which repetition, from 1.
    pub round: u32,
    /// Whose turn it is.
    pub controller: Controller,
    /// Whether its tag set is raised, where the same is measured at the default, too.
    pub raised: bool,
    /// The disk, made anew.
    pub disk: Spec,
    /// io.cost's coefficients for it, as `io.cost.model` takes them.
    pub cost_model: Option<String>,
    /// The file systems on it.
    pub fs: Option<Fs>,
    /// Size of the scheduler's tag set; `None` leaves the kernel's default.
    pub nr_requests: Option<u32>,
    /// Attributes of disktime's `queue/iosched`, set with `disktime set`.
    pub iosched: BTreeMap<String, String>,
    /// Groups, parents before children.
    pub groups: Vec<Group>,
    /// Load generators.
    pub jobs: Vec<Job>,
    /// Phases, one after the other.
    pub phases: Vec<Phase>,
    /// Whether to record requests.
    pub trace: bool,
}

/// What schedules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "host", derive(clap::ValueEnum))]
pub enum Controller {
    /// This project's.
    Disktime,
    /// The same with what requests took by the model's account: in the simulator only.
    #[serde(rename = "disktime+true")]
    #[cfg_attr(feature = "host", value(name = "disktime+true"))]
    DisktimeTrue,
    /// BFQ with `io.bfq.weight`, `low_latency` off.
    Bfq,
    /// The same with `strict_guarantees`: one request in the disk at a time.
    #[serde(rename = "bfq+strict")]
    #[cfg_attr(feature = "host", value(name = "bfq+strict"))]
    BfqStrict,
    /// No scheduler; in the simulator, order of arrival.
    #[cfg_attr(feature = "host", value(alias = "fifo"))]
    None,
    /// Deadline, no shares.
    MqDeadline,
    /// Deadline, with classes of I/O priority for weights.
    #[serde(rename = "mq-deadline+ioprio")]
    #[cfg_attr(feature = "host", value(name = "mq-deadline+ioprio"))]
    MqDeadlineIoprio,
    /// Kyber, no shares.
    Kyber,
    /// io.cost with `io.weight`, over no scheduler, told the disk's coefficients.
    Iocost,
}

impl Controller {
    /// As results have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Disktime => "disktime",
            Self::DisktimeTrue => "disktime+true",
            Self::Bfq => "bfq",
            Self::BfqStrict => "bfq+strict",
            Self::None => "none",
            Self::MqDeadline => "mq-deadline",
            Self::MqDeadlineIoprio => "mq-deadline+ioprio",
            Self::Kyber => "kyber",
            Self::Iocost => "iocost",
        }
    }

    /// The I/O scheduler, as the kernel writes it.
    #[must_use]
    pub fn scheduler(self) -> &'static str {
        match self {
            Self::DisktimeTrue => "disktime",
            Self::BfqStrict => "bfq",
            Self::MqDeadlineIoprio => "mq-deadline",
            Self::Iocost => "none",
            other => other.name(),
        }
    }

    /// Whether it is this project's, by whatever account it charges.
    #[must_use]
    pub fn is_disktime(self) -> bool {
        matches!(self, Self::Disktime | Self::DisktimeTrue)
    }

    /// Whether it has a tag set whose size can be chosen.
    #[must_use]
    pub fn has_own_tags(self) -> bool {
        self.scheduler() != "none"
    }
}

impl std::fmt::Display for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

impl Run {
    /// Indices of the groups that have jobs, in the order of their partitions.
    #[must_use]
    pub fn loaded_groups(&self) -> Vec<usize> {
        let mut groups: Vec<usize> = self.jobs.iter().map(|j| j.group).collect();
        groups.dedup();
        groups
    }
}

/// File systems on the disk, made anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fs {
    /// As mkfs knows it.
    pub kind: String,
    /// Whether each group with jobs has one in a partition of its own.
    pub partitions: bool,
    /// Sectors of each partition; the first begins at 1 MiB.
    pub partition_sectors: u64,
}

/// A cgroup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// Its name, unique in the run.
    pub name: String,
    /// Path below the cgroup root.
    pub path: String,
    /// Weight among siblings.
    pub weight: u32,
    /// Set for this disk only, over another default.
    pub on_device: bool,
    /// `rt`, `be` or `idle`.
    pub class: Class,
    /// What its memory is limited to, in bytes.
    pub memory: Option<u64>,
}

/// A class of disktime's.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// First.
    Rt,
    /// The usual.
    #[default]
    Be,
    /// Last.
    Idle,
}

impl Class {
    /// As the kernel writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rt => "rt",
            Self::Be => "be",
            Self::Idle => "idle",
        }
    }
}

/// What a job is done by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Program {
    /// fio.
    #[default]
    Fio,
    /// PostgreSQL and pgbench, whose `depth` clients do one transaction after the other.
    Pgbench {
        /// Of its tables: so many times 100,000 rows.
        scale: u32,
    },
}

/// One fio process (and its children) in one group, each on a region of the disk of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its name, unique in the run.
    pub name: String,
    /// Index of its group.
    pub group: usize,
    /// What does it.
    pub program: Program,
    /// The user whose process it is; root's if none is named.
    pub user: Option<u32>,
    /// fio's arguments but for output and the time limit.
    pub args: Vec<String>,
    /// First sector of its first process's region.
    pub from_sector: u64,
    /// Sectors of a region.
    pub region_sectors: u64,
    /// From one process's region to the next one's.
    pub stride_sectors: u64,
    /// How many processes.
    pub processes: u32,
    /// So many sectors from the first on belong to this job, whatever lies in them.
    pub whole_sectors: Option<u64>,
    /// Bytes to move, where a window ends when that is done.
    pub bytes: Option<u64>,
    /// I/Os that it keeps outstanding: it counts as started when it has done twice as many.
    pub depth: u32,
    /// Whether it does transactions, one at a time: writes that are synced one by one. When each
    /// began and ended is recorded.
    pub transacts: bool,
}

impl Job {
    /// Where its requests lie.
    #[must_use]
    pub fn region(&self) -> Region {
        let (len, stride, count) = match self.whole_sectors {
            Some(all) => (all, all, 1),
            None => (self.region_sectors, self.stride_sectors, self.processes),
        };
        Region {
            from: self.from_sector,
            len,
            stride,
            count: count.into(),
        }
    }
}

/// A part of a run in which the same jobs run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name; empty if the run has one phase only.
    pub name: String,
    /// Indices of the jobs that run. Others are stopped before, missing ones started.
    pub jobs: Vec<usize>,
    /// From when all have started until the first snapshot.
    pub settle_ns: u64,
    /// From the first snapshot to the second, at most.
    pub duration_ns: u64,
    /// What ends it.
    pub stop: Stop,
}

/// What ends a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// Its duration.
    #[default]
    Time,
    /// That one job has moved all of its bytes; the duration is the limit.
    FirstJobDone,
    /// That all jobs have; the duration is the limit.
    AllJobsDone,
}

/// Counters of all groups, read one after the other at about `mono_ns`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// The time of day, since 1970.
    #[serde(default)]
    pub unix_ns: u64,
    /// Time that all CPUs of the machine together were idle.
    pub idle_ns: u64,
    /// Number of CPUs.
    pub cpus: u32,
    /// The same of the root's own processes and the kernel's threads: `io.disktime.stat` only.
    #[serde(default)]
    pub root: BTreeMap<String, u64>,
    /// By group: the device's pairs of `io.disktime.stat` as they are, and those of `io.stat`
    /// with `io.` before.
    pub groups: BTreeMap<String, BTreeMap<String, u64>>,
}

/// One line of the guest's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// The guest is there.
    Hello {
        /// `uname -r`.
        release: String,
    },
    /// A run begins.
    Start {
        /// Its index in the plan.
        run: usize,
        /// `nr_requests` as the kernel has it now.
        nr_requests: u32,
        /// CLOCK_MONOTONIC.
        mono_ns: u64,
        /// What was set for the controller, and to what.
        #[serde(default)]
        settings: BTreeMap<String, String>,
    },
    /// Now and then while a phase runs.
    Tick {
        /// Index of the run.
        run: usize,
        /// Index of the phase.
        phase: usize,
        /// Counters.
        snapshot: Snapshot,
    },
    /// A phase's window begins.
    Begin {
        /// Index of the run.
        run: usize,
        /// Index of the phase.
        phase: usize,
        /// Counters.
        snapshot: Snapshot,
    },
    /// A phase's window ends.
    End {
        /// Index of the run.
        run: usize,
        /// Index of the phase.
        phase: usize,
        /// Counters.
        snapshot: Snapshot,
        /// By group: when it had moved all of its bytes, from the window's begin.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        finished_ns: BTreeMap<String, u64>,
    },
    /// A run is over.
    Done {
        /// Its index in the plan.
        run: usize,
        /// Why it failed, if it did.
        error: Option<String>,
        /// Counters when no job was left.
        last: Snapshot,
        /// Trace events that were lost.
        lost: u64,
        /// disktime's debugfs counters.
        counters: BTreeMap<String, u64>,
        /// `iosched/health`, with disktime.
        health: Option<String>,
    },
}
