//! Medians, errors, and who is best.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use std::collections::BTreeSet;

use common::lines;
use disktime_report::input::Input;
use disktime_report::reduce::{Case, Measure, Spread, cases};
use disktime_report::verdict::{Loss, agreements, farthest, losses};
use serde_json::{Value, json};

fn reduced(results: &[Value]) -> Vec<Case> {
    let mut input = Input::default();
    input
        .add("made-up", &lines(results), &mut BTreeSet::new())
        .unwrap();
    cases(&input.outcomes)
}

/// A result of groups with what they are entitled to and what they got.
fn result(controller: &str, round: u32, rate: f64, groups: &[(f64, f64)]) -> Value {
    let groups: Vec<_> = groups
        .iter()
        .enumerate()
        .map(|(n, (entitled, got))| json!({"name": format!("g{n}"), "entitled": entitled, "got": got}))
        .collect();
    json!({"disktime_result": 1, "scenario": "s", "on": "sim", "controller": controller,
           "round": round, "ios_per_s": rate, "groups": groups})
}

#[test]
fn medians_are_the_middle_or_between_the_middles() {
    for (values, expected) in [
        (vec![], None),
        (vec![f64::NAN, f64::INFINITY], None),
        (vec![3.0], Some((3.0, 3.0, 3.0))),
        (vec![4.0, 1.0], Some((2.5, 1.0, 4.0))),
        (vec![9.0, 1.0, 2.0], Some((2.0, 1.0, 9.0))),
        (vec![9.0, 1.0, 2.0, 4.0], Some((3.0, 1.0, 9.0))),
        (vec![5.0, f64::NAN, 7.0, 6.0], Some((6.0, 5.0, 7.0))),
    ] {
        let spread = Spread::of(values.clone()).map(|s| (s.median, s.min, s.max));
        assert_eq!(spread, expected, "{values:?}");
    }
}

#[test]
fn transactions_are_shown_where_there_are_some() {
    let with = |rate: Option<f64>| {
        let mut result = result("disktime", 1, 10.0, &[(0.5, 0.5), (0.5, 0.5)]);
        if let Some(rate) = rate {
            result["groups"][0]["transactions_per_s"] = json!(rate);
        }
        reduced(&[result]).swap_remove(0).rows[0].groups.clone()
    };
    let groups = with(Some(12.5));
    let of = |n: usize| groups[n].transactions_per_s.map(|s| s.median);
    assert_eq!((of(0), of(1)), (Some(12.5), None));
    assert!(with(None).iter().all(|g| g.transactions_per_s.is_none()));
}

#[test]
fn the_worst_error_is_that_of_the_group_farthest_off() {
    type Groups = Vec<(f64, f64)>;
    let table: Vec<(Vec<Groups>, f64)> = vec![
        (vec![vec![(0.5, 0.5), (0.5, 0.5)]], 0.0),
        (vec![vec![(0.6, 0.55), (0.4, 0.45)]], 5.0),
        (vec![vec![(0.6, 0.62), (0.3, 0.3), (0.1, 0.08)]], 2.0),
        (vec![vec![(0.0, 0.07), (1.0, 0.99)]], 7.0),
        // Errors in opposite directions do not cancel each other over the runs.
        (vec![vec![(0.5, 0.6)], vec![(0.5, 0.4)]], 10.0),
        (
            vec![vec![(0.5, 0.51)], vec![(0.5, 0.9)], vec![(0.5, 0.53)]],
            3.0,
        ),
    ];
    for (runs, expected) in table {
        let results: Vec<_> = runs
            .iter()
            .enumerate()
            .map(|(n, groups)| result("disktime", n as u32 + 1, 1.0, groups))
            .collect();
        let worst = reduced(&results)[0].rows[0].worst.unwrap().median;
        assert!(
            (worst - expected).abs() < 1e-9,
            "{runs:?}: {worst}, not {expected}"
        );
    }
}

#[test]
fn rounds_become_their_median() {
    let results: Vec<_> = [(1, 0.30, 100.0), (2, 0.50, 300.0), (3, 0.34, 110.0)]
        .map(|(round, got, rate)| result("disktime", round, rate, &[(0.4, got)]))
        .into();
    let cases = reduced(&results);
    let row = &cases[0].rows[0];
    let got = row.groups[0].got.unwrap();
    assert_eq!((got.median, got.min, got.max), (0.34, 0.30, 0.50));
    assert_eq!(row.ios_per_s.unwrap().median, 110.0);
    assert_eq!(row.runs.len(), 3);
}

#[test]
fn throughput_is_told_by_that_of_none() {
    let mut results = vec![
        result("disktime", 1, 90.0, &[(1.0, 1.0)]),
        result("none", 1, 100.0, &[(1.0, 1.0)]),
        result("none", 2, 200.0, &[(1.0, 1.0)]),
    ];
    assert_eq!(
        reduced(&results)[0].row("disktime").unwrap().vs_none,
        Some(0.6)
    );
    // Without none in the files, the measuring program may have known it.
    results.truncate(1);
    assert_eq!(reduced(&results)[0].rows[0].vs_none, None);
    results[0]["none_ratio"] = json!(0.75);
    assert_eq!(reduced(&results)[0].rows[0].vs_none, Some(0.75));
}

#[test]
fn runs_that_do_not_count_change_no_number() {
    let mut bad = Value::Null;
    for (key, value) in [("counted", json!(false)), ("error", json!("it broke"))] {
        let good = result("disktime", 1, 100.0, &[(0.5, 0.5)]);
        bad = result("disktime", 2, 9.0, &[(0.5, 0.9)]);
        bad[key] = value;
        let cases = reduced(&[good, bad.clone()]);
        let row = &cases[0].rows[0];
        assert!(row.counts);
        assert_eq!((row.runs.len(), row.failed.len()), (1, 1));
        assert_eq!(row.error(Measure::Got), Some(0.0));
    }
    // Alone, they are shown, but not compared.
    let cases = reduced(&[bad, result("none", 1, 100.0, &[(0.5, 0.6)])]);
    assert!(!cases[0].rows[0].counts);
    assert_eq!(cases[0].contestants(Measure::Got).count(), 1);
}

#[test]
fn the_best_is_named_only_where_somebody_is_worse() {
    for (errors, best) in [
        (vec![0.0], None),
        (vec![0.01, 0.01], None),
        (vec![0.0100, 0.010_000_1], None),
        (vec![0.02, 0.01], Some(1.0)),
        (vec![0.02, 0.01, 0.01], Some(1.0)),
    ] {
        let names = ["disktime", "none", "bfq"];
        let results: Vec<_> = errors
            .iter()
            .zip(names)
            .map(|(e, name)| result(name, 1, 1.0, &[(0.5, 0.5 + e)]))
            .collect();
        let found = reduced(&results)[0].best(Measure::Got);
        let close = found.zip(best).is_some_and(|(a, b)| (a - b).abs() < 1e-6);
        assert!(close || found == best, "{errors:?}: {found:?}");
    }
}

#[test]
fn losses_are_named_from_their_margin_on() {
    // Error in points and I/Os a second: of disktime, then of a peer; whether each is named.
    for (ours, theirs, share, throughput) in [
        ((0.2, 100.0), (20.0, 500.0), false, false),
        ((0.6, 100.0), (0.2, 100.0), false, false),
        ((0.8, 100.0), (0.2, 100.0), true, false),
        ((0.2, 100.0), (2.1, 101.0), false, true),
        ((0.2, 100.0), (2.3, 101.0), false, false),
        ((0.2, 100.0), (0.1, 100.01), false, false),
        ((3.0, 100.0), (1.0, 200.0), true, true),
    ] {
        let of =
            |name, (error, rate): (f64, f64)| result(name, 1, rate, &[(0.5, 0.5 - error / 100.0)]);
        let cases = reduced(&[of("disktime", ours), of("bfq", theirs)]);
        let found = losses(&cases[0], Measure::Got);
        let has = |what: fn(&Loss) -> bool| found.iter().any(what);
        assert_eq!(
            has(|l| matches!(l, Loss::Share { .. })),
            share,
            "{ours:?} {theirs:?}"
        );
        assert_eq!(
            has(|l| matches!(l, Loss::Throughput { .. })),
            throughput,
            "{ours:?} {theirs:?}"
        );
    }
}

#[test]
fn the_best_peer_is_the_one_that_losses_name() {
    let cases = reduced(&[
        result("disktime", 1, 100.0, &[(0.5, 0.4)]),
        result("bfq", 1, 150.0, &[(0.5, 0.45)]),
        result("kyber", 1, 120.0, &[(0.5, 0.49)]),
        result("fifo", 1, 900.0, &[(0.5, 0.0)]),
    ]);
    let named: Vec<_> = losses(&cases[0], Measure::Got)
        .into_iter()
        .map(|l| match l {
            Loss::Share { peer, .. } | Loss::Throughput { peer, .. } => peer,
        })
        .collect();
    assert_eq!(named, ["kyber", "bfq"]);
}

#[test]
fn the_simulator_is_compared_with_the_machine_group_by_group() {
    for (measured, worst) in [
        ([0.60, 0.40], 0.0),
        ([0.614, 0.386], 1.4),
        ([0.60, 0.384], 1.6),
    ] {
        let simulated = result("disktime", 1, 1.0, &[(0.6, 0.60), (0.4, 0.40)]);
        let mut vm = result(
            "disktime",
            1,
            1.0,
            &[(0.6, measured[0]), (0.4, measured[1])],
        );
        vm["on"] = json!("vm");
        vm["kernel"] = json!("6.12");
        let cases = reduced(&[vm, simulated]);
        let found = agreements(&cases);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].case.on, "vm");
        assert!(found[0].truth.is_empty());
        let far = farthest(&found[0].got).unwrap();
        assert!((far - worst).abs() < 1e-9, "{far}");
    }
    // Nor does it say anything that who is alone has all of it.
    let alone = result("disktime", 1, 1.0, &[(1.0, 1.0), (0.0, 0.0)]);
    let mut real = alone.clone();
    real["on"] = json!("vm");
    assert!(agreements(&reduced(&[alone, real])).is_empty());
    let other = result("disktime", 1, 1.0, &[(0.5, 0.5), (0.5, 0.5)]);
    let mut variant = other.clone();
    variant["on"] = json!("vm");
    variant["variant"] = json!("another");
    assert!(agreements(&reduced(&[other, variant])).is_empty());
}

#[test]
fn cases_keep_the_order_of_the_files_and_controllers_theirs() {
    let mut results = Vec::new();
    for (scenario, on) in [("z", "vm"), ("a", "vm"), ("z", "sim"), ("a", "sim")] {
        for controller in ["zeta", "bfq", "none", "alpha", "disktime"] {
            let mut result = result(controller, 1, 1.0, &[(1.0, 1.0)]);
            result["scenario"] = json!(scenario);
            result["on"] = json!(on);
            results.push(result);
        }
    }
    let cases = reduced(&results);
    let order: Vec<_> = cases
        .iter()
        .map(|c| (c.scenario.as_str(), c.on.as_str()))
        .collect();
    assert_eq!(
        order,
        [("z", "sim"), ("z", "vm"), ("a", "sim"), ("a", "vm")]
    );
    let names: Vec<_> = cases[0]
        .rows
        .iter()
        .map(|r| r.controller.as_str())
        .collect();
    assert_eq!(names, ["disktime", "none", "bfq", "alpha", "zeta"]);
}

#[test]
fn what_promises_no_shares_is_no_contest() {
    let mut made = result("disktime", 1, 100.0, &[(0.5, 0.4), (0.5, 0.6)]);
    let error = |made: &Value| reduced(std::slice::from_ref(made))[0].rows[0].error(Measure::Got);
    assert_eq!(error(&made).map(f64::round), Some(10.0));
    made["promises_shares"] = json!(false);
    assert_eq!(error(&made), None);
}
