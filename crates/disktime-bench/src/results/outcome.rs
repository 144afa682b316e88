//! What is said about one phase of one run: a line of the results' file.

use std::collections::BTreeMap;

use disktime_model::Spec;
use serde::Serialize;

use crate::fio::Percentiles;
use crate::plan::{Class, Controller, Run};
use crate::scenario::On;

/// Reads and writes apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Directions {
    pub read: u64,
    pub write: u64,
}

impl Directions {
    pub(super) fn total(self) -> u64 {
        self.read + self.write
    }
}

/// What one group had in a window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupResult {
    /// Its name.
    pub name: String,
    /// Its cgroup.
    pub path: String,
    /// Its weight.
    pub weight: u32,
    /// Its class.
    pub class: Class,
    /// What the weights promise, given which groups ran jobs.
    pub entitled: f64,
    /// Share of disk time by the kernel's counters; of I/Os where the controller has no such
    /// notion.
    pub got: Option<f64>,
    /// Disk time by the kernel's counters, with disktime.
    pub disk_time_ns: Option<u64>,
    /// Known to models only.
    pub true_time_ns: Option<u64>,
    /// Share of it.
    pub true_share: Option<f64>,
    /// I/Os by the kernel's counters.
    pub ios: Directions,
    /// Bytes by the kernel's counters.
    pub bytes: Directions,
    /// Share of the I/Os.
    pub io_share: Option<f64>,
    /// Share of disk time by the trace.
    pub trace_share: Option<f64>,
    /// Share of the requests that ended, by the trace.
    pub trace_io_share: Option<f64>,
    /// The longest time without any of its requests in the device, by the trace; of groups with one
    /// job.
    pub longest_gap_ns: Option<u64>,
    /// Transactions a second, of groups whose jobs do some.
    pub transactions_per_s: Option<f64>,
    /// Of its transactions in the window; of I/Os as fio saw them, over its whole life.
    pub latency_ns: Option<Percentiles>,
    /// The same: which part of them took no longer than how many nanoseconds.
    pub latency_curve: Vec<(u64, f64)>,
    /// When all that it was to do was done, from the window's begin.
    pub finished_ns: Option<u64>,
    /// The longest that a request waited in disktime, since the run began.
    pub wait_max_ns: Option<u64>,
    /// Whether requests waited or were served at both snapshots, with disktime.
    pub backlogged: Option<bool>,
    /// The share that was published.
    pub published: Option<f64>,
}

/// What one job had in a window, by the trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JobResult {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// Share of its group's disk time.
    pub trace_share: Option<f64>,
    /// Requests that ended.
    pub ios: u64,
}

/// All groups together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Total {
    pub ios: u64,
    pub bytes: u64,
    /// Time with at least one request in the device, by the trace.
    pub busy_ns: Option<u64>,
}

/// What the trace says about itself and about the whole run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TraceFacts {
    /// Events that found no room: the trace is worth nothing.
    pub lost: u64,
    /// Ends without a beginning.
    pub orphans: u64,
    /// Beginnings without an end.
    pub unfinished: u64,
    /// Most requests in the device at a time.
    pub most_inflight: u64,
    /// Requests outside of all regions.
    pub other_ios: u64,
    /// Time with at least one request in the device, over the whole run.
    pub union_ns: u64,
    /// Disk time of all groups over the whole run by disktime's counters.
    pub charged_ns: Option<u64>,
}

impl TraceFacts {
    /// How far the charged time is from the union.
    pub(super) fn union_error(&self) -> Option<f64> {
        Some((self.charged_ns? as f64 / self.union_ns as f64 - 1.0).abs())
    }
}

/// A check and how it went.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckResult {
    /// What must hold.
    pub name: String,
    /// Whether it does; `None` where the run does not count.
    pub ok: Option<bool>,
    /// What was measured.
    pub value: Option<f64>,
}

/// The format's number in each line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Format;

impl Serialize for Format {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(1)
    }
}

/// One phase of one run; a line of the results' file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// First in the line.
    pub disktime_result: Format,
    /// Scenario's name.
    pub scenario: String,
    /// Variant's name, empty if there are none.
    pub variant: String,
    /// Phase's name, empty if there is one only.
    pub phase: String,
    /// Which repetition, from 1.
    pub round: u32,
    /// `vm`, `sim` or `host`.
    pub on: On,
    /// Who scheduled.
    pub controller: Controller,
    /// Whether its tag set was raised, where the same was measured at the default, too.
    pub raised: bool,
    /// Whether this stands for the controller, rather than the same with another tag set.
    pub kept: bool,
    /// Whether shares over the whole window are what the weights promise.
    pub promises_shares: bool,
    /// What the scenario shows.
    pub about: String,
    /// Who published it.
    pub source: String,
    /// The kernel's release.
    pub kernel: String,
    /// Whether its clock counted instructions, one a nanosecond.
    pub instructions: bool,
    /// For fio's random numbers.
    pub seed: u64,
    /// From one snapshot to the other.
    pub duration_ns: u64,
    /// The disk.
    pub disk: Spec,
    /// The disk in words.
    pub disk_title: String,
    /// What was set for the controller, and to what.
    pub settings: BTreeMap<String, String>,
    /// As the kernel had it.
    pub nr_requests: u32,
    /// By group; those that only hold other groups are left out.
    pub groups: Vec<GroupResult>,
    /// By job, where a group has several.
    pub jobs: Vec<JobResult>,
    /// Which part of all disk time was not the groups' but the root's own, where kernel threads and
    /// journals are; with disktime.
    pub root_share: Option<f64>,
    /// All groups together.
    pub total: Total,
    /// I/Os a second.
    pub ios_per_s: f64,
    /// The same of `none` in this round, as a part of what the disk can do.
    pub none_fraction: Option<f64>,
    /// I/Os a second by those of `none` in this round.
    pub none_ratio: Option<f64>,
    /// How far the group that is worst off, or best, is from what the weights promise: by the
    /// device's own time where a model knows it, else by the trace, else by what it got.
    pub worst_error: Option<f64>,
    /// Shares over the window.
    pub series: Series,
    /// Part of the window in which the machine's CPUs were not idle.
    pub cpu: Option<f64>,
    /// Part of the window in which the host's CPUs were idle.
    pub host_idle: Option<f64>,
    /// Whether `none` could load the disk, so that this run counts.
    pub counted: Option<bool>,
    /// About the trace.
    pub trace: Option<TraceFacts>,
    /// disktime's `health` at the end.
    pub health: Option<String>,
    /// disktime's own counters at the end of the run.
    pub counters: BTreeMap<String, u64>,
    /// Why the run is not whole.
    pub error: Option<String>,
    /// What must hold.
    pub checks: Vec<CheckResult>,
}

/// Shares in intervals of a window.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Series {
    /// Each interval's end, from the window's begin.
    pub t_ns: Vec<u64>,
    /// By group: its share in each, of what `got` is a share of.
    pub got: BTreeMap<String, Vec<f64>>,
}

impl Outcome {
    /// Same scenario, variant, phase and round.
    pub(super) fn beside(&self, other: &Self) -> bool {
        self.round == other.round && self.place() == other.place()
    }

    /// Whether this is the same measurement made again.
    #[must_use]
    pub fn repeats(&self, other: &Self) -> bool {
        self.beside(other) && (self.controller, self.raised) == (other.controller, other.raised)
    }

    /// Whether this is a phase of that run.
    #[must_use]
    pub fn is_of(&self, run: &Run) -> bool {
        (&self.scenario, &self.variant, self.round) == (&run.scenario, &run.variant, run.round)
            && (self.controller, self.raised) == (run.controller, run.raised)
    }

    pub(super) fn place(&self) -> (&str, &str, &str) {
        (&self.scenario, &self.variant, &self.phase)
    }

    pub(super) fn group(&self, name: &str) -> Option<&GroupResult> {
        self.groups.iter().find(|g| g.name == name)
    }
}
