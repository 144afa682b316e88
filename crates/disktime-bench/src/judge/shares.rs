//! Shares of true time, and what sharing leaves of what each group does alone.
//!
//! Everything that scenarios say about shares is run under disktime, under disktime with charges by
//! the model's account, and in order of arrival; each group besides alone, in order of arrival, on
//! the same disk. A group's *progress* is its I/Os a second by those that it does alone; the
//! progress of all groups together is the normalised total, 1 where sharing costs nothing and gains
//! nothing, whoever has how much of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use disktime_model::Model;
use serde::Serialize;

use super::{Spread, Task, Verdict, each, table};
use crate::plan::{self, Controller, Phase, Plan, Run};
use crate::results::{self, Evidence, Outcome};
use crate::scenario::{self, Metric, On, Options, Scenario};
use crate::sim;

/// One phase of one variant of a scenario, over all seeds. Errors are in points (hundredths).
#[derive(Debug, Serialize)]
pub struct Row {
    /// The scenario's name.
    pub scenario: String,
    /// The variant's, empty if there is one only.
    pub variant: String,
    /// The phase's, empty if there is one only.
    pub phase: String,
    /// In words.
    pub disk: String,
    /// Of which each stands for a run.
    pub seeds: Vec<u64>,
    /// How far the group that is worst off, or best, is from its share of the true time.
    pub error: Spread,
    /// The same with charges by the model's account.
    pub error_true: Spread,
    /// How far the share of some group by disktime's own charges is from that of its true time.
    pub error_charge: Spread,
    /// The normalised total.
    pub total: Spread,
    /// The same with charges by the model's account.
    pub total_true: Spread,
    /// In order of arrival.
    pub total_none: Spread,
    /// disktime's by that.
    pub ratio: Spread,
    /// What must hold.
    pub verdicts: Vec<Verdict>,
}

/// Of which the worst and the middle are shown.
#[derive(Debug, Default)]
struct Values {
    error: Vec<f64>,
    error_true: Vec<f64>,
    error_charge: Vec<f64>,
    total: Vec<f64>,
    total_true: Vec<f64>,
    total_none: Vec<f64>,
    ratio: Vec<f64>,
}

/// Whom each variant is run with.
const CONTROLLERS: [Controller; 3] = [
    Controller::Disktime,
    Controller::DisktimeTrue,
    Controller::None,
];

/// Whether the scenario says what some groups' shares are to be, in this phase.
fn is_about_shares(scenario: &Scenario, run: &Run, phase: &Phase) -> bool {
    let shares = [
        Metric::Share,
        Metric::IoShare,
        Metric::TraceShare,
        Metric::TrueShare,
        Metric::Ratio,
        Metric::TraceRatio,
    ];
    let among = |list: &[toml::Spanned<String>], name: &str| {
        list.is_empty() || list.iter().any(|l| l.get_ref() == name)
    };
    let says = scenario.checks.iter().any(|check| {
        check.within.is_some()
            && shares.contains(check.metric.get_ref())
            && check.controllers.contains(&Controller::Disktime)
            && (check.on.is_empty() || check.on.contains(&On::Sim))
            && among(&check.variants, &run.variant)
            && among(&check.phases, &phase.name)
    });
    says && scenario.shares && busy(run, phase).len() > 1
}

/// Groups that have jobs.
fn busy(run: &Run, phase: &Phase) -> BTreeSet<usize> {
    phase.jobs.iter().map(|&j| run.jobs[j].group).collect()
}

fn turns(run: &Run) -> bool {
    match run.disk.model {
        Model::Servers { rotational, .. } => rotational,
        model => matches!(model, Model::Wd2500js | Model::St3250620as),
    }
}

/// Whether a request of one group costs what one of another does.
fn alike(run: &Run, phase: &Phase) -> bool {
    if matches!(run.disk.model, Model::Servers { .. }) {
        return true;
    }
    let kinds = |group: usize| {
        let jobs = phase.jobs.iter().map(|&j| &run.jobs[j]);
        let kind = |job: &plan::Job| {
            let rw = sim::arg(job, "rw").unwrap_or_default().to_owned();
            // How often a sequential process is interrupted depends on how many there are.
            let many = if rw.starts_with("rand") {
                0
            } else {
                job.processes
            };
            (rw, sim::arg(job, "bs").map(str::to_owned), many)
        };
        let mut kinds: Vec<_> = jobs.filter(|job| job.group == group).map(kind).collect();
        kinds.sort();
        kinds
    };
    let mut all = busy(run, phase).into_iter().map(kinds);
    let first = all.next();
    all.all(|kinds| Some(kinds) == first)
}

/// Whether shares are bought with time that the disk waits for somebody.
fn waits(run: &Run, phase: &Phase) -> bool {
    let jobs = || phase.jobs.iter().map(|&j| &run.jobs[j]);
    let alone = |group: usize| {
        let depth: u32 = jobs().filter(|j| j.group == group).map(|j| j.depth).sum();
        depth == 1
    };
    turns(run)
        && (jobs().any(|job| sim::arg(job, "rw") == Some("read"))
            || busy(run, phase).into_iter().any(alone))
}

/// The most that a share may be off, in points, and the least that the total may be by that of none.
fn limits(run: &Run, phase: &Phase) -> (f64, f64) {
    let points = match run.disk.write_cache {
        0 if alike(run, phase) => 0.7,
        0..=128 => 2.0,
        _ => 4.0,
    };
    (points, if waits(run, phase) { 0.93 } else { 0.97 })
}

/// What the simulator does not look at, and what differs between groups that do the same.
const IDLE_ARGS: [&str; 2] = ["--randseed=", "--offset="];

/// The group alone in order of arrival. Names and all that makes no difference then are the same for
/// all, so that groups and variants that do the same are run once.
fn alone(run: &Run, group: usize, phase: &Phase) -> Run {
    let servers = matches!(run.disk.model, Model::Servers { .. });
    let mine = phase.jobs.iter().map(|&j| &run.jobs[j]);
    let jobs: Vec<plan::Job> = mine
        .filter(|job| job.group == group)
        .enumerate()
        .map(|(number, job)| plan::Job {
            name: format!("job{number}"),
            group: 0,
            user: None,
            args: job
                .args
                .iter()
                .filter(|arg| !IDLE_ARGS.iter().any(|idle| arg.starts_with(idle)))
                .cloned()
                .collect(),
            from_sector: if servers { 0 } else { job.from_sector },
            ..job.clone()
        })
        .collect();
    Run {
        scenario: "alone".into(),
        variant: String::new(),
        nr_requests: None,
        iosched: BTreeMap::new(),
        groups: vec![plan::Group {
            name: "alone".into(),
            path: "alone".into(),
            weight: 100,
            on_device: false,
            class: plan::Class::Be,
            memory: run.groups[group].memory,
        }],
        phases: vec![Phase {
            name: String::new(),
            jobs: (0..jobs.len()).collect(),
            ..phase.clone()
        }],
        jobs,
        ..run.clone()
    }
}

/// Simulations, each once.
#[derive(Default)]
struct Runs {
    list: Vec<(Run, u64)>,
    known: BTreeMap<String, usize>,
}

impl Runs {
    /// Its place in the list.
    fn add(&mut self, mut run: Run, seed: u64) -> Result<usize> {
        run.trace = false;
        let key = format!("{seed} {}", serde_json::to_string(&run)?);
        let list = &mut self.list;
        Ok(*self.known.entry(key).or_insert_with(|| {
            list.push((run, seed));
            list.len() - 1
        }))
    }
}

/// Within which processes begin.
const SCATTER_NS: u64 = 100_000_000;

/// An outcome for each phase.
fn simulate(run: &Run, seed: u64) -> Result<Vec<Outcome>> {
    let plan = Plan {
        instructions: false,
        version: plan::VERSION,
        runs: vec![run.clone()],
    };
    // Without a trace it writes nothing.
    let left = sim::run_scattered(&plan, Path::new("."), seed, SCATTER_NS)?;
    let evidence = Evidence {
        on: On::Sim,
        dir: None,
        host_idle: &BTreeMap::new(),
        latencies: Some(&left.latencies),
        transactions: None,
        seed,
    };
    Ok(results::collect(&plan, &[], &left.events, &evidence))
}

/// The places of one seed's simulations.
struct Placed {
    /// In the order of [`CONTROLLERS`].
    shared: Vec<usize>,
    /// By phase, then by the group's name.
    alone: Vec<BTreeMap<String, usize>>,
}

/// I/Os a second, by group.
fn rates(outcome: &Outcome) -> BTreeMap<&str, f64> {
    let seconds = outcome.duration_ns.max(1) as f64 / 1e9;
    let rate = |g: &results::GroupResult| (g.ios.read + g.ios.write) as f64 / seconds;
    outcome
        .groups
        .iter()
        .map(|g| (g.name.as_str(), rate(g)))
        .collect()
}

/// The progress of all groups together.
fn normalised(shared: &BTreeMap<&str, f64>, alone: &BTreeMap<&str, f64>) -> Option<f64> {
    let part = |(name, all): (&&str, &f64)| (*all > 0.0).then(|| shared.get(name).map(|r| r / all));
    alone.iter().map(part).map(Option::flatten).sum()
}

/// The largest distance between two shares of a group that is to have any, in points.
fn distance(
    outcome: &Outcome,
    a: impl Fn(&results::GroupResult) -> Option<f64>,
    b: impl Fn(&results::GroupResult) -> Option<f64>,
) -> Option<f64> {
    let groups = outcome.groups.iter().filter(|g| g.entitled > 0.0);
    let off: Option<Vec<f64>> = groups
        .map(|g| Some((a(g)? - b(g)?).abs() * 100.0))
        .collect();
    off?.into_iter().reduce(f64::max)
}

/// Judges all scenarios that say anything of shares.
pub(super) fn judge(scenarios: &[Scenario], task: &Task) -> Result<Vec<Row>> {
    let mut runs = Runs::default();
    // By scenario and variant: a run of it, and by seed where its simulations are.
    let mut places: Vec<(&Scenario, Run, Vec<Placed>)> = Vec::new();
    for scenario in scenarios {
        let first = places.len();
        for &seed in &task.seeds {
            let options = Options {
                on: On::Sim,
                controllers: Some(CONTROLLERS.to_vec()),
                rounds: Some(1),
                seed,
                ..Options::default()
            };
            let all = scenario::runs(scenario, &options);
            let wanted = all.chunks(CONTROLLERS.len()).filter(|same| {
                task.wants(&format!("{}/{}", same[0].scenario, same[0].variant))
                    && same[0]
                        .phases
                        .iter()
                        .any(|phase| is_about_shares(scenario, &same[0], phase))
            });
            for (number, same) in wanted.enumerate() {
                let run = &same[2];
                let mut placed = Placed {
                    shared: Vec::new(),
                    alone: Vec::new(),
                };
                for run in same {
                    placed.shared.push(runs.add(run.clone(), seed)?);
                }
                for phase in &run.phases {
                    let mut alone_at = BTreeMap::new();
                    for group in busy(run, phase) {
                        let at = runs.add(alone(run, group, phase), seed)?;
                        alone_at.insert(run.groups[group].name.clone(), at);
                    }
                    placed.alone.push(alone_at);
                }
                if places.len() <= first + number {
                    places.push((scenario, run.clone(), Vec::new()));
                }
                places[first + number].2.push(placed);
            }
        }
    }
    let done: Vec<Result<Vec<Outcome>>> = each(&runs.list, |(run, seed)| simulate(run, *seed))?;
    let mut outcomes = Vec::new();
    for (done, (run, seed)) in done.into_iter().zip(&runs.list) {
        let title = || format!("{} {}, seed {seed}", run.scenario, run.variant);
        outcomes.push(done.with_context(title)?);
    }
    let mut rows = Vec::new();
    for (scenario, run, seeds) in &places {
        for (number, phase) in run.phases.iter().enumerate() {
            if !is_about_shares(scenario, run, phase) {
                continue;
            }
            let values = values(&outcomes, seeds, number);
            let row = values.and_then(|values| row(run, phase, &task.seeds, &values));
            let what = || format!("{} {}: nothing was done", run.scenario, run.variant);
            rows.push(row.with_context(what)?);
        }
    }
    Ok(rows)
}

/// What each seed showed in a phase.
fn values(outcomes: &[Vec<Outcome>], seeds: &[Placed], phase: usize) -> Option<Values> {
    let mut values = Values::default();
    for placed in seeds {
        let shared: Option<Vec<&Outcome>> = placed
            .shared
            .iter()
            .map(|&at| outcomes[at].get(phase))
            .collect();
        let [own, told, none] = shared?[..] else {
            return None;
        };
        let mut alone = BTreeMap::new();
        for (name, &at) in &placed.alone[phase] {
            let rate = rates(outcomes[at].first()?).into_values().next()?;
            alone.insert(name.as_str(), rate);
        }
        let total = |outcome: &Outcome| normalised(&rates(outcome), &alone);
        let error = |outcome| distance(outcome, |g| g.true_share, |g| Some(g.entitled));
        values.error.push(error(own)?);
        values.error_true.push(error(told)?);
        let charge = distance(own, |g| g.true_share, |g| g.got);
        values.error_charge.push(charge?);
        values.total.push(total(own)?);
        values.total_true.push(total(told)?);
        values.total_none.push(total(none)?);
        values.ratio.push(total(own)? / total(none)?);
    }
    Some(values)
}

fn row(run: &Run, phase: &Phase, seeds: &[u64], values: &Values) -> Option<Row> {
    let (points, least) = limits(run, phase);
    let error = Spread::of_small(&values.error)?;
    let ratio = Spread::of_large(&values.ratio)?;
    Some(Row {
        scenario: run.scenario.clone(),
        variant: run.variant.clone(),
        phase: phase.name.clone(),
        disk: run.disk.to_string(),
        seeds: seeds.to_vec(),
        error,
        error_true: Spread::of_small(&values.error_true)?,
        error_charge: Spread::of_small(&values.error_charge)?,
        total: Spread::of_large(&values.total)?,
        total_true: Spread::of_large(&values.total_true)?,
        total_none: Spread::of_large(&values.total_none)?,
        ratio,
        verdicts: vec![
            Verdict::at_most("true share", error.worst, points),
            Verdict::at_least("normalised total by none's", ratio.worst, least),
        ],
    })
}

/// Rows as a table.
pub(super) fn show(rows: &[&Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head = [
        "scenario",
        "variant",
        "true error",
        "limit",
        "",
        "told true",
        "charge off",
        "total",
        "told true",
        "none",
        "by none",
        "limit",
        "",
    ];
    let lines = rows.iter().map(|row| {
        let place: Vec<&str> = [row.variant.as_str(), row.phase.as_str()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        let verdict = |number: usize| {
            let verdict = &row.verdicts[number];
            [verdict.limit.to_string(), verdict.word().to_owned()]
        };
        let [points_limit, points_ok] = verdict(0);
        let [ratio_limit, ratio_ok] = verdict(1);
        vec![
            row.scenario.clone(),
            place.join(", "),
            row.error.show(2),
            points_limit,
            points_ok,
            row.error_true.show(2),
            row.error_charge.show(2),
            format!("{:.3}", row.total.median),
            format!("{:.3}", row.total_true.median),
            format!("{:.3}", row.total_none.median),
            row.ratio.show(3),
            ratio_limit,
            ratio_ok,
        ]
    });
    format!(
        "Shares: how far the worst group is from its share of the device's true time, in points, under disktime,\n\
         with charges by the model's account (told true), and by disktime's own charges (charge off). Total: progress\n\
         of all groups together, each by what it does alone. Worst of {} seeds, the median in brackets or alone.\n{}",
        rows[0].seeds.len(),
        table(&head, lines.collect(), 2)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> Scenario {
        scenario::parse(text, Path::new("t.toml")).unwrap()
    }

    fn first_run(text: &str) -> Run {
        let options = Options {
            on: On::Sim,
            controllers: Some(vec![Controller::Disktime]),
            ..Options::default()
        };
        scenario::runs(&scenario(text), &options).remove(0)
    }

    fn load(disk: &str, a: &str, b: &str) -> String {
        format!(
            "name = \"t\"\nduration = \"3s\"\nsettle = \"1s\"\ndisk = {{ {disk} }}\n\
             [[group]]\nname = \"a\"\nweight = 300\njob = [{{ {a} }}]\n\
             [[group]]\nname = \"b\"\njob = [{{ {b} }}]\n\
             [[check]]\nmetric = \"share\"\nwithin = 0.01\n"
        )
    }

    #[test]
    fn limits_are_by_what_the_requests_have_in_common() {
        let of = |disk: &str, a: &str, b: &str| {
            let run = first_run(&load(disk, a, b));
            limits(&run, &run.phases[0])
        };
        let hdd = "model = \"hdd\"";
        let reads = "rw = \"randread\", iodepth = 8";
        let writes = "rw = \"randwrite\", iodepth = 8";
        let large = "rw = \"randread\", iodepth = 8, bs = \"64k\"";
        let on = "rw = \"read\", iodepth = 8";
        let many_on = "rw = \"read\", iodepth = 8, numjobs = 2";
        assert_eq!(of(hdd, reads, reads), (0.7, 0.97));
        assert_eq!(of(hdd, reads, writes), (2.0, 0.97));
        assert_eq!(of(hdd, reads, large), (2.0, 0.97));
        assert_eq!(of(hdd, reads, on), (2.0, 0.93));
        assert_eq!(of(hdd, on, on), (0.7, 0.93));
        assert_eq!(of(hdd, on, many_on), (2.0, 0.93));
        assert_eq!(of("model = \"nvme\"", reads, on), (2.0, 0.97));
        let cached = |nr| format!("{hdd}, write_cache = {nr}");
        assert_eq!(of(&cached(128), reads, reads), (2.0, 0.97));
        assert_eq!(of(&cached(1000), reads, writes), (4.0, 0.97));
        let servers = "servers = 2, service_us = 1000";
        assert_eq!(of(servers, reads, writes), (0.7, 0.97));
    }

    #[test]
    fn progress_is_by_what_each_does_alone() {
        let alone = BTreeMap::from([("a", 100.0), ("b", 10.0)]);
        let shared = BTreeMap::from([("a", 25.0), ("b", 5.0)]);
        assert_eq!(normalised(&shared, &alone), Some(0.75));
        assert_eq!(normalised(&BTreeMap::new(), &alone), None);
        let dead = BTreeMap::from([("a", 0.0)]);
        assert_eq!(normalised(&shared, &dead), None);
    }

    #[test]
    fn groups_that_do_the_same_are_run_alone_once() {
        let text = load(
            "servers = 2, service_us = 1000",
            "rw = \"randread\"",
            "rw = \"randread\"",
        );
        let run = first_run(&text);
        let mut runs = Runs::default();
        let at = |runs: &mut Runs, group, seed| {
            let alone = alone(&run, group, &run.phases[0]);
            runs.add(alone, seed).unwrap()
        };
        assert_eq!(at(&mut runs, 0, 1), at(&mut runs, 1, 1));
        assert_ne!(at(&mut runs, 0, 1), at(&mut runs, 0, 2));
        // Where they lie matters on a disk with a head.
        let run = first_run(&text.replace("servers = 2, service_us = 1000", "model = \"hdd\""));
        let first = runs.add(alone(&run, 0, &run.phases[0]), 1).unwrap();
        let second = runs.add(alone(&run, 1, &run.phases[0]), 1).unwrap();
        assert_ne!(first, second);
    }

    #[test]
    fn equal_servers_are_shared_without_loss_and_a_wrong_share_is_seen() {
        let deep = "rw = \"randread\", iodepth = 32";
        let text = load("servers = 4, service_us = 1000", deep, deep);
        let task = Task {
            seeds: vec![1, 2],
            only: Vec::new(),
        };
        let rows = judge(&[scenario(&text)], &task).unwrap();
        assert_eq!(rows.len(), 1);
        assert!(rows[0].verdicts.iter().all(|v| v.ok), "{:?}", rows[0]);
        for total in [rows[0].total, rows[0].total_true, rows[0].total_none] {
            assert!((total.worst - 1.0).abs() < 0.01, "{:?}", rows[0]);
        }
        // A group that does not ask for its share does not get it.
        let lazy = text.replacen(deep, "rw = \"randread\", iodepth = 1", 1);
        let rows = judge(&[scenario(&lazy)], &task).unwrap();
        assert!(rows[0].error.worst > 10.0, "{:?}", rows[0]);
        assert!(!rows[0].verdicts[0].ok);
        // Nobody says anything of shares.
        let silent = text.replace(
            "metric = \"share\"",
            "metric = \"true-share\"\non = [\"vm\"]",
        );
        assert!(judge(&[scenario(&silent)], &task).unwrap().is_empty());
    }

    #[test]
    fn order_in_which_processes_begin_is_no_advantage() {
        let many = "rw = \"randread\", ioengine = \"psync\", numjobs = 25";
        let text = load("model = \"wd2500js\"", many, many);
        let text = text.replace("\"3s\"", "\"30s\"");
        let options = Options {
            on: On::Sim,
            controllers: Some(vec![Controller::None]),
            ..Options::default()
        };
        let mut run = scenario::runs(&scenario(&text), &options).remove(0);
        run.trace = false;
        let scattered = simulate(&run, 1).unwrap()[0].ios_per_s;
        let plan = Plan {
            instructions: false,
            version: plan::VERSION,
            runs: vec![run],
        };
        // One request at a time and each process in its place: from one end of the disk to the other.
        let left = sim::run(&plan, Path::new("."), 1).unwrap();
        let evidence = Evidence {
            on: On::Sim,
            dir: None,
            host_idle: &BTreeMap::new(),
            latencies: Some(&left.latencies),
            transactions: None,
            seed: 1,
        };
        let in_order = results::collect(&plan, &[], &left.events, &evidence)[0].ios_per_s;
        assert!(in_order > 1.05 * scattered, "{in_order} {scattered}");
    }

    #[test]
    fn same_arguments_give_the_same_bytes() {
        let deep = "rw = \"randread\", iodepth = 32";
        let text = load("model = \"hdd\"", deep, deep);
        let bytes = |seeds: &[u64]| {
            let task = Task {
                seeds: seeds.to_vec(),
                only: vec!["t/".into()],
            };
            let rows = judge(&[scenario(&text)], &task).unwrap();
            serde_json::to_string(&rows).unwrap()
        };
        assert_eq!(bytes(&[1, 2]), bytes(&[1, 2]));
        assert_ne!(bytes(&[1, 2]), bytes(&[1, 3]));
    }
}
