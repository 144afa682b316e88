//! What host and guest say to each other: the plan of runs, and the events that come back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Host and guest must agree on this number.
pub const VERSION: u32 = 1;
/// Where the guest finds the plan.
pub const PLAN_PATH: &str = "/case/plan.json";
/// Where the guest leaves traces and fio's reports, a folder `rN` for each run.
pub const OUT_DIR: &str = "/out";
/// The disk's name in the guest.
pub const DISK: &str = "dtdisk";
/// File of the trace in a run's folder; see [`crate::trace`].
pub const TRACE_FILE: &str = "trace";

/// All runs of one boot, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`VERSION`] of the host.
    pub version: u32,
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
    /// The disk, made anew.
    pub disk: Disk,
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
    /// BFQ with `io.bfq.weight`, `low_latency` off.
    Bfq,
    /// No scheduler; in the simulator, order of arrival.
    #[cfg_attr(feature = "host", value(alias = "fifo"))]
    None,
    /// Deadline, no shares.
    MqDeadline,
    /// Kyber, no shares.
    Kyber,
}

impl Controller {
    /// As the kernel writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Disktime => "disktime",
            Self::Bfq => "bfq",
            Self::None => "none",
            Self::MqDeadline => "mq-deadline",
            Self::Kyber => "kyber",
        }
    }
}

impl std::fmt::Display for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A disk of `servers` servers, each of which takes `service_ns` for any request: a null_blk
/// whose requests end by timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Requests served at a time; the hardware queue's depth.
    pub servers: u32,
    /// Time that a request takes.
    pub service_ns: u64,
    /// Whether it says that it turns.
    pub rotational: bool,
    /// Size in MiB.
    pub size_mib: u64,
}

impl Disk {
    /// Requests a second that it can do.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        f64::from(self.servers) * 1e9 / self.service_ns as f64
    }
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

/// One fio process (and its children) in one group, on a region of the disk of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// Its name, unique in the run.
    pub name: String,
    /// Index of its group.
    pub group: usize,
    /// fio's arguments but for output and the time limit.
    pub args: Vec<String>,
    /// First sector of its region.
    pub from_sector: u64,
    /// First sector after its region.
    pub to_sector: u64,
    /// Bytes to move, for [`Stop::FirstJobDone`].
    pub bytes: Option<u64>,
    /// I/Os that it keeps outstanding: it counts as started when it has done twice as many.
    pub depth: u32,
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
}

/// Counters of all groups, read one after the other at about `mono_ns`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// CLOCK_MONOTONIC.
    pub mono_ns: u64,
    /// Time that all CPUs of the machine together were idle.
    pub idle_ns: u64,
    /// Number of CPUs.
    pub cpus: u32,
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
