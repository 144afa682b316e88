//! From what a run left to results: one for each phase of each run.
//!
//! [`mod@window`] turns counters and a trace into a result, [`mod@checks`] looks whether what must
//! hold does; what lies between them, comparing results with each other, is here.

mod checks;
mod outcome;
mod paired;
#[cfg(test)]
mod tests;
mod window;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use crate::fio::Latencies;
use crate::plan::{Controller, Event, Job, Plan, Snapshot, TRACE_FILE};
use crate::scenario::{On, Scenario};
use crate::trace;
use crate::transactions::{self, Transaction, within};

pub use checks::{Unchecked, check, unchecked};
pub use outcome::{
    CheckResult, Directions, Format, GroupResult, JobResult, Outcome, Series, Total, TraceFacts,
};
use window::Window;

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

fn part(value: f64, all: f64) -> Option<f64> {
    (all > 0.0).then(|| value / all)
}

/// Jain's index: 1 where all have the same, 1/n where one of n has everything.
pub(crate) fn jain(values: &[f64]) -> f64 {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|v| v * v).sum();
    match squares > 0.0 {
        true => sum * sum / (values.len() as f64 * squares),
        false => 0.0,
    }
}

/// What a job left, of all times it was started: the files whose names go on with something
/// that `is_it`. Each goes to `take`.
fn left_by_job(
    dir: &Path,
    job: &str,
    is_it: impl Fn(&str) -> bool,
    mut take: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), String> {
    let entries = fs::read_dir(dir).map_err(|e| format!("cannot read {}: {e}", dir.display()))?;
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let rest = name.strip_prefix("fio-").and_then(|n| n.split_once('-'));
        if rest.is_some_and(|(_, rest)| rest.strip_prefix(job).is_some_and(&is_it)) {
            let text = fs::read_to_string(entry.path()).map_err(|e| format!("{name}: {e}"))?;
            take(&text).map_err(|e| format!("{name}: {e}"))?;
        }
    }
    Ok(())
}

fn latencies(dir: &Path, job: &str) -> Result<Latencies, String> {
    let mut all = Latencies::default();
    left_by_job(dir, job, |end| end == ".json", |text| all.add(text))?;
    Ok(all)
}

fn transactions_of(dir: &Path, job: &str) -> Result<Vec<Transaction>, String> {
    let mut all = Vec::new();
    // One for each of its processes.
    let of_fio = |end: &str| end.starts_with("_lat.") && end.ends_with(".log");
    left_by_job(dir, job, of_fio, |text| {
        all.extend(transactions::of_fio(text)?);
        Ok(())
    })?;
    let of_pgbench = |end: &str| {
        let number = end.strip_prefix('.');
        number.is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
    };
    left_by_job(dir, job, of_pgbench, |text| {
        all.extend(transactions::of_pgbench(text)?);
        Ok(())
    })?;
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
    /// The same of jobs that do transactions.
    pub transactions: Option<&'a BTreeMap<(usize, String), Vec<Transaction>>>,
    /// For random numbers.
    pub seed: u64,
}

impl Evidence<'_> {
    /// How many transactions of these jobs ended in a window, if they do any, and how long all took
    /// that the jobs did.
    fn of_jobs<'j>(
        &self,
        run: usize,
        jobs: impl Iterator<Item = &'j Job>,
        window: &Window<'_>,
    ) -> Result<(Option<u64>, Latencies), String> {
        let (mut ended, mut latencies) = (None, Latencies::default());
        let folder = self.dir.map(|dir| dir.join(format!("r{run}")));
        for job in jobs {
            let key = (run, job.name.clone());
            let ios = match (self.latencies, &folder) {
                (Some(known), _) => known.get(&key).cloned().unwrap_or_default(),
                (None, Some(folder)) => self::latencies(folder, &job.name)?,
                (None, None) => continue,
            };
            if !job.transacts {
                latencies.merge(&ios);
                continue;
            }
            let all = match (self.transactions, &folder) {
                (Some(known), _) => known.get(&key).cloned().unwrap_or_default(),
                (None, Some(folder)) => transactions_of(folder, &job.name)?,
                (None, None) => continue,
            };
            let (n, took) = within(&all, window.begin.unix_ns, window.end.unix_ns);
            *ended.get_or_insert(0) += n;
            latencies.merge(&took);
        }
        Ok((ended, latencies))
    }
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
            outcome.instructions = plan.instructions;
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
                let jobs = phase.jobs.iter().map(|&j| &run.jobs[j]);
                let mine = jobs.filter(|j| run.groups[j.group].name == group.name);
                match evidence.of_jobs(index, mine, &window) {
                    Ok((ended, all)) => {
                        let seconds = outcome.duration_ns.max(1) as f64 / 1e9;
                        group.transactions_per_s = ended.map(|n| n as f64 / seconds);
                        group.latency_ns = all.percentiles();
                        group.latency_curve = all.curve();
                    }
                    Err(why) => outcome.error = outcome.error.take().or(Some(why)),
                }
            }
            outcomes.push(outcome);
        }
    }
    compare_with_none(&mut outcomes, scenarios);
    keep_the_better(&mut outcomes);
    outcomes
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
