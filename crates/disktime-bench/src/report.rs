//! From what a machine left to results: one for each phase of each run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;

use serde::Serialize;

use crate::analyse::{Region, Tally, analyse};
use crate::fio::{Latencies, Percentiles};
use disktime_model::Spec;

use crate::plan::{Class, Controller, Event, Job, Plan, Run, Snapshot, TRACE_FILE};
use crate::scenario::{Check, Metric, On, Scenario, entitled};
use crate::trace;

/// Reads and writes apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Directions {
    pub read: u64,
    pub write: u64,
}

impl Directions {
    fn total(self) -> u64 {
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
    /// As fio saw them, over its whole life.
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
    fn union_error(&self) -> Option<f64> {
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

/// What `none` must reach of a disk's capacity for a run to count.
pub const NONE_FLOOR: f64 = 0.9;

/// What was heard of one run.
#[derive(Debug, Clone, Default)]
struct Heard {
    nr_requests: u32,
    settings: BTreeMap<String, String>,
    windows: BTreeMap<usize, Seen>,
    last: Snapshot,
    lost: u64,
    counters: BTreeMap<String, u64>,
    health: Option<String>,
    error: Option<String>,
    done: bool,
}

/// What was heard of a window.
#[derive(Debug, Clone, Default)]
struct Seen {
    begin: Snapshot,
    ticks: Vec<Snapshot>,
    end: Option<Snapshot>,
    finished_ns: BTreeMap<String, u64>,
}

fn listen(events: &[Event]) -> (String, BTreeMap<usize, Heard>) {
    let mut kernel = String::new();
    let mut runs: BTreeMap<usize, Heard> = BTreeMap::new();
    for event in events.iter().cloned() {
        match event {
            Event::Hello { release } => kernel = release,
            Event::Start {
                run,
                nr_requests,
                settings,
                ..
            } => {
                let heard = runs.entry(run).or_default();
                heard.nr_requests = nr_requests;
                heard.settings = settings;
            }
            Event::Tick {
                run,
                phase,
                snapshot,
            } => {
                // Those before the window's begin are of no interest.
                let heard = runs.entry(run).or_default();
                if let Some(seen) = heard.windows.get_mut(&phase) {
                    seen.ticks.push(snapshot);
                }
            }
            Event::Begin {
                run,
                phase,
                snapshot,
            } => {
                let seen = Seen {
                    begin: snapshot,
                    ..Seen::default()
                };
                runs.entry(run).or_default().windows.insert(phase, seen);
            }
            Event::End {
                run,
                phase,
                snapshot,
                finished_ns,
            } => {
                let heard = runs.entry(run).or_default();
                if let Some(seen) = heard.windows.get_mut(&phase) {
                    seen.end = Some(snapshot);
                    seen.finished_ns = finished_ns;
                }
            }
            Event::Done {
                run,
                error,
                last,
                lost,
                counters,
                health,
            } => {
                let heard = runs.entry(run).or_default();
                *heard = Heard {
                    last,
                    lost,
                    counters,
                    health,
                    done: true,
                    ..heard.clone()
                };
                heard.error = error;
            }
        }
    }
    (kernel, runs)
}

/// A counter's growth in a window.
struct Window<'a> {
    run: &'a Run,
    begin: &'a Snapshot,
    end: &'a Snapshot,
}

fn counter(snapshot: &Snapshot, group: &str, key: &str) -> u64 {
    snapshot
        .groups
        .get(group)
        .and_then(|pairs| pairs.get(key))
        .copied()
        .unwrap_or(0)
}

impl Window<'_> {
    fn grown(&self, group: &str, key: &str) -> u64 {
        counter(self.end, group, key).saturating_sub(counter(self.begin, group, key))
    }

    /// A counter's growth where there is such a counter.
    fn known(&self, group: &str, key: &str) -> Option<u64> {
        let has = self.end.groups.get(group)?.contains_key(key);
        has.then(|| self.grown(group, key))
    }

    fn cpu(&self) -> Option<f64> {
        let all = self.end.mono_ns.checked_sub(self.begin.mono_ns)? * u64::from(self.end.cpus);
        let idle = self.end.idle_ns.checked_sub(self.begin.idle_ns)?;
        part(all.saturating_sub(idle) as f64, all as f64)
    }

    /// Of a group's own processes: `io.stat` counts those of the groups below it, too.
    fn own_io(&self, index: usize, key: &str) -> u64 {
        let group = &self.run.groups[index];
        let below: u64 = self
            .run
            .groups
            .iter()
            .filter(|g| {
                g.path
                    .rsplit_once('/')
                    .is_some_and(|(above, _)| above == group.path)
            })
            .map(|g| self.grown(&g.name, key))
            .sum();
        self.grown(&group.name, key).saturating_sub(below)
    }

    /// With disktime, requests that were completed; else I/Os that were asked for.
    fn ios(&self, index: usize) -> Directions {
        let name = &self.run.groups[index].name;
        match self.run.controller {
            Controller::Disktime => Directions {
                read: self.grown(name, "rios"),
                write: self.grown(name, "wios"),
            },
            _ => Directions {
                read: self.own_io(index, "io.rios"),
                write: self.own_io(index, "io.wios"),
            },
        }
    }

    fn bytes(&self, index: usize) -> Directions {
        let name = &self.run.groups[index].name;
        match self.run.controller {
            Controller::Disktime => Directions {
                read: self.grown(name, "rsectors") * 512,
                write: self.grown(name, "wsectors") * 512,
            },
            _ => Directions {
                read: self.own_io(index, "io.rbytes"),
                write: self.own_io(index, "io.wbytes"),
            },
        }
    }
}

/// Of what, what was measured, what the weights promise.
type Value = (String, Option<f64>, Option<f64>);

/// Forgets the promised shares of values that are no shares.
fn unpromised(values: Vec<Value>) -> Vec<Value> {
    values
        .into_iter()
        .map(|(name, value, _)| (name, value, None))
        .collect()
}

fn part(value: f64, all: f64) -> Option<f64> {
    (all > 0.0).then(|| value / all)
}

fn backlogged(snapshot: &Snapshot, group: &str) -> bool {
    ["queued", "waiting", "inflight"]
        .iter()
        .any(|key| counter(snapshot, group, key) > 0)
}

/// fio's reports of a job, of all times it was started.
fn latencies(dir: &Path, jobs: &[&str]) -> Result<Latencies, String> {
    let mut all = Latencies::default();
    let entries = fs::read_dir(dir).map_err(|e| format!("cannot read {}: {e}", dir.display()))?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(rest) = name
            .strip_prefix("fio-")
            .and_then(|n| n.strip_suffix(".json"))
        else {
            continue;
        };
        let job = rest.split_once('-').map_or("", |(_, job)| job);
        if jobs.contains(&job) {
            let text = fs::read_to_string(entry.path()).map_err(|e| format!("{name}: {e}"))?;
            all.add(&text).map_err(|e| format!("{name}: {e}"))?;
        }
    }
    Ok(all)
}

/// Where a plan was run, and what is known besides its events.
#[derive(Debug)]
pub struct Evidence<'a> {
    /// Where it was run.
    pub on: On,
    /// Where traces and fio's reports are.
    pub dir: Option<&'a Path>,
    /// By run and phase: which part of the host's CPU time was idle.
    pub host_idle: &'a BTreeMap<(usize, usize), f64>,
    /// By run and job; `None`: they are in fio's reports.
    pub latencies: Option<&'a BTreeMap<(usize, String), Latencies>>,
    /// For random numbers.
    pub seed: u64,
}

/// Turns the events of a plan, and the files that it left, into outcomes. Phases that did not come
/// to their end have none.
#[must_use]
pub fn collect(
    plan: &Plan,
    scenarios: &[Scenario],
    events: &[Event],
    evidence: &Evidence<'_>,
) -> Vec<Outcome> {
    let dir = evidence.dir;
    let (kernel, heard) = listen(events);
    let mut outcomes = Vec::new();
    for (index, heard) in heard {
        let Some(run) = plan.runs.get(index) else {
            continue;
        };
        let folder = dir.map(|d| d.join(format!("r{index}")));
        let mut error = heard.error.clone();
        if !heard.done {
            error.get_or_insert("the run did not come to its end".into());
        }
        let records = folder
            .as_ref()
            .filter(|_| run.trace && heard.done)
            .and_then(|folder| {
                let path = folder.join(TRACE_FILE);
                let read = File::open(&path).and_then(|mut file| trace::read(&mut file));
                read.inspect_err(|e| {
                    error.get_or_insert(format!("cannot read the trace: {e}"));
                })
                .ok()
            });
        for (number, phase) in run.phases.iter().enumerate() {
            let Some(seen) = heard.windows.get(&number) else {
                continue;
            };
            let Some(end) = &seen.end else { continue };
            let window = Window {
                run,
                begin: &seen.begin,
                end,
            };
            let mut outcome = window.outcome(number, records.as_deref(), &heard);
            outcome.series = window.series(&outcome, &seen.ticks);
            outcome.kernel.clone_from(&kernel);
            outcome.seed = evidence.seed;
            outcome.on = evidence.on;
            outcome.host_idle = evidence.host_idle.get(&(index, number)).copied();
            outcome.error.clone_from(&error);
            let scenario = scenarios.iter().find(|s| s.name.get_ref() == &run.scenario);
            if let Some(scenario) = scenario {
                outcome.promises_shares &= scenario.shares;
                outcome.about.clone_from(&scenario.about);
                outcome.source.clone_from(&scenario.source);
            }
            for group in &mut outcome.groups {
                group.published = scenario.and_then(|s| s.published(&run.variant, &group.name));
                group.finished_ns = seen.finished_ns.get(&group.name).copied();
                let jobs: Vec<_> = phase
                    .jobs
                    .iter()
                    .map(|&j| &run.jobs[j])
                    .filter(|j| run.groups[j.group].name == group.name)
                    .map(|j| j.name.as_str())
                    .collect();
                if let Some(known) = evidence.latencies {
                    let mut all = Latencies::default();
                    for &job in &jobs {
                        if let Some(one) = known.get(&(index, job.to_owned())) {
                            all.merge(one);
                        }
                    }
                    group.latency_ns = all.percentiles();
                    group.latency_curve = all.curve();
                } else if let Some(folder) = &folder {
                    match latencies(folder, &jobs) {
                        Ok(all) => {
                            group.latency_ns = all.percentiles();
                            group.latency_curve = all.curve();
                        }
                        Err(why) => outcome.error = outcome.error.take().or(Some(why)),
                    }
                }
            }
            outcomes.push(outcome);
        }
    }
    compare_with_none(&mut outcomes, scenarios);
    keep_the_better(&mut outcomes);
    outcomes
}

impl Window<'_> {
    fn outcome(&self, number: usize, records: Option<&[trace::Record]>, heard: &Heard) -> Outcome {
        let run = self.run;
        let phase = &run.phases[number];
        let busy: BTreeSet<usize> = phase.jobs.iter().map(|&j| run.jobs[j].group).collect();
        let promised = entitled(&run.groups, &busy);
        let own = run.controller == Controller::Disktime;

        let regions: Vec<Region> = run.jobs.iter().map(Job::region).collect();
        let tally: Option<Tally> =
            records.map(|r| analyse(r, &regions, self.begin.mono_ns, self.end.mono_ns));
        let of_group = |tally: &Tally, group: usize| {
            let jobs = run
                .jobs
                .iter()
                .enumerate()
                .filter(|(_, j)| j.group == group);
            jobs.fold((0.0, 0), |(time, ios), (j, _)| {
                (time + tally.parts[j].time_ns, ios + tally.parts[j].ios)
            })
        };

        // Groups that only hold others have nothing of their own.
        let shown: Vec<usize> = (0..run.groups.len())
            .filter(|&g| {
                let prefix = format!("{}/", run.groups[g].path);
                run.jobs.iter().any(|j| j.group == g)
                    || !run
                        .groups
                        .iter()
                        .any(|other| other.path.starts_with(&prefix))
            })
            .collect();
        let time = |g: usize| self.grown(&run.groups[g].name, "time_usec") * 1000;
        let all_time: u64 = shown.iter().map(|&g| time(g)).sum();
        let all_ios: u64 = shown.iter().map(|&g| self.ios(g).total()).sum();
        let all_bytes: u64 = shown.iter().map(|&g| self.bytes(g).total()).sum();
        let traced: Option<(f64, u64)> = tally.as_ref().map(|t| {
            (
                t.parts.iter().map(|p| p.time_ns).sum(),
                t.parts.iter().map(|p| p.ios).sum(),
            )
        });

        let truth = |g: usize| self.known(&run.groups[g].name, "true_nsec");
        let all_truth: Option<u64> = shown.iter().map(|&g| truth(g)).sum();

        let groups: Vec<GroupResult> = shown
            .iter()
            .map(|&g| {
                let group = &run.groups[g];
                let ios = self.ios(g);
                let io_share = part(ios.total() as f64, all_ios as f64);
                let mine = tally.as_ref().map(|t| of_group(t, g));
                GroupResult {
                    name: group.name.clone(),
                    path: group.path.clone(),
                    weight: group.weight,
                    class: group.class,
                    entitled: promised[g],
                    got: if own {
                        part(time(g) as f64, all_time as f64)
                    } else {
                        io_share
                    },
                    disk_time_ns: own.then(|| time(g)),
                    true_time_ns: truth(g),
                    true_share: truth(g)
                        .zip(all_truth)
                        .and_then(|(mine, all)| part(mine as f64, all as f64)),
                    ios,
                    bytes: self.bytes(g),
                    io_share,
                    trace_share: mine.zip(traced).and_then(|(m, all)| part(m.0, all.0)),
                    trace_io_share: mine
                        .zip(traced)
                        .and_then(|(m, all)| part(m.1 as f64, all.1 as f64)),
                    longest_gap_ns: tally.as_ref().and_then(|t| {
                        let mut jobs = (0..run.jobs.len()).filter(|&j| run.jobs[j].group == g);
                        let gap = jobs.next().map(|j| t.parts[j].longest_gap_ns);
                        gap.filter(|_| jobs.next().is_none())
                    }),
                    latency_ns: None,
                    latency_curve: Vec::new(),
                    finished_ns: None,
                    wait_max_ns: own
                        .then(|| counter(self.end, &group.name, "wait_max_usec") * 1000),
                    backlogged: own.then(|| {
                        backlogged(self.begin, &group.name) && backlogged(self.end, &group.name)
                    }),
                    published: None,
                }
            })
            .collect();

        let several = |g: usize| run.jobs.iter().filter(|j| j.group == g).count() > 1;
        let jobs = run
            .jobs
            .iter()
            .enumerate()
            .filter(|(j, job)| several(job.group) && phase.jobs.contains(j))
            .filter_map(|(j, job)| {
                let tally = tally.as_ref()?;
                Some(JobResult {
                    name: job.name.clone(),
                    group: run.groups[job.group].name.clone(),
                    trace_share: part(tally.parts[j].time_ns, of_group(tally, job.group).0),
                    ios: tally.parts[j].ios,
                })
            })
            .collect();

        let trace = records.zip(tally.as_ref()).map(|(records, tally)| {
            let whole = analyse(records, &regions, 0, u64::MAX);
            let charged = |g: &String| counter(&heard.last, g, "time_usec") * 1000;
            TraceFacts {
                lost: heard.lost,
                orphans: whole.orphans,
                unfinished: whole.unfinished,
                most_inflight: tally.most_inflight,
                other_ios: whole.other.ios,
                union_ns: whole.busy_ns,
                charged_ns: own.then(|| heard.last.groups.keys().map(charged).sum()),
            }
        });
        let duration_ns = self.end.mono_ns.saturating_sub(self.begin.mono_ns);
        Outcome {
            disktime_result: Format,
            scenario: run.scenario.clone(),
            variant: run.variant.clone(),
            phase: phase.name.clone(),
            round: run.round,
            on: On::Vm,
            controller: run.controller,
            raised: run.raised,
            kept: true,
            // Who is alone gets everything, whoever schedules.
            promises_shares: busy.len() > 1,
            about: String::new(),
            source: String::new(),
            kernel: String::new(),
            seed: 0,
            duration_ns,
            disk: run.disk,
            disk_title: run.disk.to_string(),
            settings: heard.settings.clone(),
            nr_requests: heard.nr_requests,
            worst_error: worst_error(&groups),
            series: Series::default(),
            groups,
            jobs,
            total: Total {
                ios: all_ios,
                bytes: all_bytes,
                busy_ns: tally.as_ref().map(|t| t.busy_ns),
            },
            ios_per_s: all_ios as f64 * 1e9 / duration_ns.max(1) as f64,
            none_fraction: None,
            none_ratio: None,
            cpu: self.cpu(),
            host_idle: None,
            counted: None,
            trace,
            health: heard.health.clone(),
            counters: heard.counters.clone(),
            error: None,
            checks: Vec::new(),
        }
    }
}

/// The largest distance of a group from what the weights promise it.
fn worst_error(groups: &[GroupResult]) -> Option<f64> {
    let busy = || groups.iter().filter(|g| g.entitled > 0.0);
    let worst = |share: &dyn Fn(&GroupResult) -> Option<f64>| {
        let errors: Option<Vec<f64>> = busy()
            .map(|g| share(g).map(|s| (s - g.entitled).abs()))
            .collect();
        errors?.into_iter().max_by(f64::total_cmp)
    };
    worst(&|g| g.true_share)
        .or_else(|| worst(&|g| g.trace_share))
        .or_else(|| worst(&|g| g.got))
}

impl Window<'_> {
    /// What each group had between a look and the next.
    fn series(&self, outcome: &Outcome, ticks: &[Snapshot]) -> Series {
        let mut series = Series::default();
        let mut from = self.begin;
        for to in ticks.iter().chain([self.end]) {
            let step = Window {
                run: self.run,
                begin: from,
                end: to,
            };
            let had = |name: &str| {
                let index = self.run.groups.iter().position(|g| g.name == name);
                match self.run.controller {
                    Controller::Disktime => step.grown(name, "time_usec"),
                    _ => index.map_or(0, |g| step.ios(g).total()),
                }
            };
            from = to;
            let all: u64 = outcome.groups.iter().map(|g| had(&g.name)).sum();
            if all == 0 {
                continue;
            }
            series
                .t_ns
                .push(to.mono_ns.saturating_sub(self.begin.mono_ns));
            for group in &outcome.groups {
                let share = had(&group.name) as f64 / all as f64;
                let list = series.got.entry(group.name.clone()).or_default();
                // Four digits are more than such an interval can know.
                list.push((share * 1e4).round() / 1e4);
            }
        }
        series
    }
}

impl Job {
    /// Where its requests lie.
    fn region(&self) -> Region {
        if let Some(all) = self.whole_sectors {
            return Region {
                from: self.from_sector,
                len: all,
                stride: all,
                count: 1,
            };
        }
        Region {
            from: self.from_sector,
            len: self.region_sectors,
            stride: self.stride_sectors,
            count: self.processes.into(),
        }
    }
}

impl Outcome {
    /// Same scenario, variant, phase and round.
    fn beside(&self, other: &Self) -> bool {
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

    fn place(&self) -> (&str, &str, &str) {
        (&self.scenario, &self.variant, &self.phase)
    }

    fn group(&self, name: &str) -> Option<&GroupResult> {
        self.groups.iter().find(|g| g.name == name)
    }
}

fn compare_with_none(outcomes: &mut [Outcome], scenarios: &[Scenario]) {
    for index in 0..outcomes.len() {
        let outcome = &outcomes[index];
        let none = outcomes
            .iter()
            .find(|o| o.controller == Controller::None && o.beside(outcome))
            .map(|o| o.ios_per_s);
        let saturates = scenarios
            .iter()
            .any(|s| s.name.get_ref() == &outcome.scenario && s.saturates);
        let outcome = &mut outcomes[index];
        outcome.none_fraction = none.zip(outcome.disk.capacity()).map(|(n, all)| n / all);
        outcome.none_ratio = none.and_then(|n| part(outcome.ios_per_s, n));
        // What other disks can do depends on the load.
        outcome.counted = match saturates && outcome.disk.capacity().is_some() {
            true => outcome.none_fraction.map(|f| f >= NONE_FLOOR),
            false => Some(true),
        };
    }
}

/// Where a controller was measured with two tag sets, the better stands for it: the one whose shares
/// are nearer to what the weights promise, of about equal ones the faster. By medians of all rounds.
fn keep_the_better(outcomes: &mut [Outcome]) {
    /// Errors that differ by less are about equal.
    const ABOUT: f64 = 0.005;
    let figure = |outcomes: &[Outcome],
                  of: &Outcome,
                  raised: bool,
                  value: &dyn Fn(&Outcome) -> Option<f64>| {
        let same = outcomes.iter().filter(|o| {
            o.place() == of.place() && o.controller == of.controller && o.raised == raised
        });
        median(same.filter_map(value).collect())
    };
    let kept: Vec<bool> = outcomes
        .iter()
        .map(|of| {
            let both = |value: &dyn Fn(&Outcome) -> Option<f64>| {
                let mine = figure(outcomes, of, of.raised, value);
                mine.zip(figure(outcomes, of, !of.raised, value))
            };
            let Some((error, other)) = both(&|o| o.worst_error) else {
                return true;
            };
            if (error - other).abs() > ABOUT {
                return error < other;
            }
            let rates = both(&|o| Some(o.ios_per_s));
            rates.is_none_or(|(mine, other)| mine > other || (mine == other && !of.raised))
        })
        .collect();
    for (outcome, kept) in outcomes.iter_mut().zip(kept) {
        outcome.kept = kept;
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

/// Runs all checks of the scenarios. Each result goes to the outcome that it is about; those over
/// several rounds to the last.
pub fn check(outcomes: &mut [Outcome], scenarios: &[Scenario]) {
    for scenario in scenarios {
        for check in &scenario.checks {
            for index in 0..outcomes.len() {
                let outcome = &outcomes[index];
                if outcome.scenario != *scenario.name.get_ref() || !check.is_about(outcome) {
                    continue;
                }
                let results = check.results(outcome, outcomes);
                outcomes[index].checks.extend(results);
            }
        }
    }
    for outcome in outcomes {
        let sound = CheckResult {
            name: "the run went through".into(),
            ok: None,
            value: None,
        };
        if outcome.error.is_some() {
            outcome.checks.push(CheckResult {
                ok: Some(false),
                ..sound
            });
        }
        if let Some(trace) = &outcome.trace {
            let broken = trace.lost + trace.orphans + trace.unfinished;
            if broken > 0 {
                let name = "every request of the trace has a beginning and an end".into();
                let value = Some(broken as f64);
                outcome.checks.push(CheckResult {
                    name,
                    ok: Some(false),
                    value,
                });
            }
        }
        if outcome.health.as_ref().is_some_and(|h| h != "ok") {
            let name = "health is ok".into();
            outcome.checks.push(CheckResult {
                name,
                ok: Some(false),
                value: None,
            });
        }
    }
}

impl Check {
    fn is_about(&self, outcome: &Outcome) -> bool {
        let among = |list: &[toml::Spanned<String>], name: &str| {
            list.is_empty() || list.iter().any(|l| l.get_ref() == name)
        };
        self.controllers.contains(&outcome.controller)
            && (self.on.is_empty() || self.on.contains(&outcome.on))
            && among(&self.variants, &outcome.variant)
            && among(&self.phases, &outcome.phase)
    }

    /// Each value that the check is about: of what, the value, what the weights promise.
    fn values(&self, outcome: &Outcome, all: &[Outcome]) -> Vec<Value> {
        let chosen: Vec<&str> = self.groups.iter().map(|g| g.get_ref().as_str()).collect();
        let listed = |name: &str| chosen.is_empty() || chosen.contains(&name);
        let each = |of: &str, value: &dyn Fn(&GroupResult) -> Option<f64>| {
            outcome
                .groups
                .iter()
                .filter(|g| listed(&g.name))
                .map(|g| (format!("{of} {}", g.name), value(g), Some(g.entitled)))
                .collect::<Vec<_>>()
        };
        let divided = |of: &str, value: &dyn Fn(&GroupResult) -> Option<f64>| {
            let of_group = |n: usize| outcome.group(chosen.get(n)?).and_then(value);
            let ratio = of_group(0).zip(of_group(1)).and_then(|(a, b)| part(a, b));
            vec![(format!("{of} {}", chosen.join(" : ")), ratio, None)]
        };
        match self.metric.get_ref() {
            Metric::Share => each("share of", &|g| g.got),
            Metric::IoShare => each("I/O share of", &|g| g.io_share),
            Metric::TraceShare => each("traced share of", &|g| g.trace_share),
            Metric::TrueShare => each("true share of", &|g| g.true_share),
            Metric::P99Ms => {
                let ms = |g: &GroupResult| g.latency_ns.map(|l| l.p99 as f64 / 1e6);
                unpromised(each("99th percentile (ms) of", &ms))
            }
            Metric::FinishRatio => {
                divided("time to the end", &|g| g.finished_ns.map(|ns| ns as f64))
            }
            Metric::WaitMaxMs => {
                let ms = |g: &GroupResult| g.wait_max_ns.map(|ns| ns as f64 / 1e6);
                unpromised(each("longest wait (ms) of", &ms))
            }
            Metric::GapMaxMs => {
                let ms = |g: &GroupResult| g.longest_gap_ns.map(|ns| ns as f64 / 1e6);
                unpromised(each("longest time (ms) not served of", &ms))
            }
            Metric::JobShare => outcome
                .jobs
                .iter()
                .filter(|j| listed(&j.name))
                .map(|j| {
                    (
                        format!("traced share in {} of {}", j.group, j.name),
                        j.trace_share,
                        None,
                    )
                })
                .collect(),
            Metric::Ratio => divided("ratio", &|g| g.got),
            Metric::TraceRatio => divided("traced ratio", &|g| g.trace_share),
            Metric::Part => {
                let got = |name: &str| outcome.group(name).and_then(|g| g.got);
                let sum: Option<f64> = chosen.iter().map(|n| got(n)).sum();
                let first = chosen.first().and_then(|n| got(n));
                let value = first.zip(sum).and_then(|(a, b)| part(a, b));
                vec![(format!("part of {}", chosen.join(" among ")), value, None)]
            }
            Metric::UnionError => {
                let value = outcome.trace.as_ref().and_then(TraceFacts::union_error);
                vec![("error of the sum of disk times".into(), value, None)]
            }
            Metric::Rate => {
                let name = || "I/Os a second".to_owned();
                self.relative(outcome, all, name, &|o| Some(o.ios_per_s))
                    .into_iter()
                    .collect()
            }
            Metric::Finish | Metric::GroupRate => outcome
                .groups
                .iter()
                .filter(|g| listed(&g.name))
                .filter_map(|g| {
                    let finish = *self.metric.get_ref() == Metric::Finish;
                    let what = if finish {
                        "time to the end"
                    } else {
                        "bytes a second"
                    };
                    let value = |o: &Outcome| {
                        let group = o.group(&g.name)?;
                        if finish {
                            return group.finished_ns.map(|ns| ns as f64);
                        }
                        part(group.bytes.total() as f64 * 1e9, o.duration_ns as f64)
                    };
                    self.relative(outcome, all, || format!("{what} of {}", g.name), &value)
                })
                .collect(),
        }
    }

    /// Median of all rounds, by the baseline's; told with the last round.
    fn relative(
        &self,
        outcome: &Outcome,
        all: &[Outcome],
        name: impl Fn() -> String,
        value: &dyn Fn(&Outcome) -> Option<f64>,
    ) -> Option<Value> {
        let baseline = self.baseline.as_ref()?;
        let controller = baseline.controller.unwrap_or(outcome.controller);
        let variant = baseline
            .variant
            .as_ref()
            .map_or(outcome.variant.as_str(), |v| v.get_ref());
        let same = |o: &&Outcome| {
            o.place() == outcome.place()
                && (o.controller, o.raised) == (outcome.controller, outcome.raised)
        };
        if all.iter().filter(same).any(|o| o.round > outcome.round) {
            return None;
        }
        let mine = median(all.iter().filter(same).filter_map(value).collect());
        let base = all.iter().filter(|o| {
            o.scenario == outcome.scenario
                && o.phase == outcome.phase
                && o.variant == variant
                && o.controller == controller
                && o.kept
        });
        let base = median(base.filter_map(value).collect());
        let by = match (&baseline.controller, &baseline.variant) {
            (Some(c), None) => format!("those of {c}"),
            (None, Some(v)) => format!("those of variant {}", v.get_ref()),
            _ => format!("those of {controller} in variant {variant}"),
        };
        let value = mine.zip(base).and_then(|(m, b)| part(m, b));
        Some((format!("{} by {by}", name()), value, None))
    }

    fn results(&self, outcome: &Outcome, all: &[Outcome]) -> Vec<CheckResult> {
        let values = self.values(outcome, all).into_iter();
        values
            .map(|(of, value, promised)| {
                let mut name = of;
                let mut ok = value.is_some();
                let middle = self.expect.or(promised);
                if let (Some(within), Some(middle)) = (self.within, middle) {
                    name = format!("{name} within {within} of {middle:.4}");
                    ok &= value.is_some_and(|v| (v - middle).abs() <= within);
                }
                if let Some(min) = self.min {
                    name = format!("{name} at least {min}");
                    ok &= value.is_some_and(|v| v >= min);
                }
                if let Some(max) = self.max {
                    name = format!("{name} at most {max}");
                    ok &= value.is_some_and(|v| v <= max);
                }
                // A rate without its baseline was not asked for: somebody chose the controllers.
                let asked = value.is_some() || self.baseline.is_none();
                let counts = outcome.counted != Some(false) && asked;
                CheckResult {
                    name,
                    ok: counts.then_some(ok),
                    value,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
