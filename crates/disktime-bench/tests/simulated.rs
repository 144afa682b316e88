//! The repository's scenarios in the simulator.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use disktime_bench::plan::{Controller, Event, Plan};
use disktime_bench::report::{self, Evidence, Outcome};
use disktime_bench::scenario::{self, On, Options, Scenario};
use disktime_bench::sim;

fn scenarios() -> Vec<Scenario> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<PathBuf> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "toml"))
        // What it measures is not modelled.
        .filter(|path| path.file_stem().unwrap() != "overhead")
        .collect();
    files.sort();
    assert!(files.len() >= 8, "{files:?}");
    files.iter().map(|f| scenario::load(f).unwrap()).collect()
}

fn options(seed: u64, scale: f64) -> Options {
    Options {
        on: On::Sim,
        controllers: Some(vec![Controller::Disktime, Controller::None]),
        seed,
        scale,
        ..Options::default()
    }
}

fn simulate(scenarios: &[Scenario], options: &Options) -> (Plan, Vec<Event>, Vec<Outcome>) {
    let plan = scenario::plan(scenarios, options);
    let dir = tempfile::tempdir().unwrap();
    let left = sim::run(&plan, dir.path(), options.seed).unwrap();
    let evidence = Evidence {
        on: On::Sim,
        dir: Some(dir.path()),
        host_idle: &BTreeMap::new(),
        latencies: Some(&left.latencies),
        seed: options.seed,
    };
    let mut outcomes = report::collect(&plan, scenarios, &left.events, &evidence);
    report::check(&mut outcomes, scenarios);
    (plan, left.events, outcomes)
}

/// A result line for each outcome.
fn lines(outcomes: &[Outcome]) -> Vec<String> {
    let line = |outcome| serde_json::to_string(outcome).unwrap();
    outcomes.iter().map(line).collect()
}

#[test]
fn every_check_holds_in_the_simulator() {
    let (_, _, outcomes) = simulate(&scenarios(), &options(1, 1.0));
    let mut held = 0;
    for outcome in &outcomes {
        assert_eq!(outcome.error, None, "{}", outcome.scenario);
        for check in &outcome.checks {
            let (scenario, variant) = (&outcome.scenario, &outcome.variant);
            assert_eq!(check.ok, Some(true), "{scenario} {variant}: {check:?}");
            held += 1;
        }
    }
    assert!(held > 100, "only {held} checks");
}

#[test]
fn group_s_disk_time_is_its_true_time_where_requests_are_alike() {
    let (_, _, outcomes) = simulate(&scenarios(), &options(1, 0.5));
    let mut seen = 0;
    for outcome in outcomes
        .iter()
        .filter(|o| o.controller == Controller::Disktime)
    {
        let truth: u64 = outcome.groups.iter().filter_map(|g| g.true_time_ns).sum();
        for group in &outcome.groups {
            let mine = group.true_time_ns.unwrap() as f64 / truth as f64;
            let got = group.got.unwrap_or(0.0);
            let (scenario, name) = (&outcome.scenario, &group.name);
            assert!(
                (mine - got).abs() < 0.01,
                "{scenario} {name}: {got} is {mine}"
            );
            seen += 1;
        }
    }
    assert!(seen > 30, "only {seen} groups");
}

#[test]
fn same_seed_gives_the_same_bytes_and_another_does_not() {
    let some: Vec<Scenario> = scenarios().into_iter().take(3).collect();
    let (_, _, one) = simulate(&some, &options(1, 0.1));
    let (_, _, two) = simulate(&some, &options(1, 0.1));
    let (_, _, other) = simulate(&some, &options(2, 0.1));
    assert_eq!(lines(&one), lines(&two));
    assert_ne!(lines(&one), lines(&other));
}

#[test]
fn controller_that_is_not_modelled_is_refused() {
    let some: Vec<Scenario> = scenarios().into_iter().take(1).collect();
    let options = Options {
        controllers: Some(vec![Controller::Bfq]),
        ..options(1, 0.1)
    };
    let plan = scenario::plan(&some, &options);
    let dir = tempfile::tempdir().unwrap();
    let why = sim::run(&plan, dir.path(), 1).unwrap_err();
    assert!(format!("{why:#}").contains("knows no bfq"), "{why:#}");
}
