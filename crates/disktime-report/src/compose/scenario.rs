//! A scenario and its cases: what was measured on, tables, remarks, plots.

use serde_json::Value;

use super::groups::{group_table, quantiles};
use super::remarks::{circumstances, failed_checks, published_notes, settings_facts};
use super::{all_runs, distinct, plain};
use crate::document::{Figure, Section};
use crate::input::Outcome;
use crate::number::{count, time};
use crate::reduce::{Case, GroupRow, Row, Spread};

fn disk(outcome: &Outcome) -> String {
    if let Some(title) = outcome.disk_title.as_ref().filter(|t| !t.is_empty()) {
        return title.clone();
    }
    let number = |key: &str| outcome.disk.get(key).and_then(Value::as_u64);
    let Some((servers, ns)) = number("servers").zip(number("service_ns")) else {
        return match &outcome.disk {
            Value::Null => String::new(),
            Value::Object(fields) => {
                let pairs = fields.iter().map(|(k, v)| format!("{k} {}", plain(v)));
                pairs.collect::<Vec<_>>().join(", ")
            }
            other => plain(other),
        };
    };
    let turns = outcome.disk.get("rotational").and_then(Value::as_bool) == Some(true);
    format!(
        "{} of {}{}",
        count(servers as usize, "server", "servers"),
        time(ns as f64),
        if turns { ", rotational" } else { "" }
    )
}

pub fn scenario(cases: &[Case]) -> Vec<Section<'_>> {
    let Some(first) = cases.first() else {
        return Vec::new();
    };
    let runs = || cases.iter().flat_map(all_runs);
    let mut head = Section::new(2, first.scenario.clone());
    head.text(distinct(runs().map(|r| r.about.trim())).join(" "));
    let mut facts = Vec::new();
    let source = distinct(runs().map(|r| r.source.trim())).join("; ");
    if !source.is_empty() {
        facts.push(("Source".into(), source));
    }
    let mut disks: Vec<String> = runs().map(disk).filter(|d| !d.is_empty()).collect();
    disks.dedup();
    let one_disk = distinct(disks.iter().map(String::as_str)).len() == 1;
    if one_disk {
        facts.extend(disks.first().map(|d| ("Disk".into(), d.clone())));
    }
    head.facts(facts);
    // A scenario with neither variants nor phases, in one place, needs no heading of its own for it.
    if let ([case], true) = (cases, first.part().is_empty()) {
        fill(&mut head, case, one_disk);
        return vec![head];
    }
    let mut sections = vec![head];
    for case in cases {
        let name = match case.part() {
            part if part.is_empty() => case.place.clone(),
            part => format!("{part}, on {}", case.place),
        };
        let mut section = Section::new(3, format!("{}: {name}", case.scenario));
        fill(&mut section, case, one_disk);
        sections.push(section);
    }
    sections
}

pub fn range(
    values: impl IntoIterator<Item = u64>,
    print: impl Fn(f64) -> String,
) -> Option<String> {
    let spread = Spread::of(values.into_iter().map(|v| v as f64))?;
    let (min, max) = (print(spread.min), print(spread.max));
    Some(if min == max {
        min
    } else {
        format!("{min} to {max}")
    })
}

fn case_facts(case: &Case, one_disk: bool) -> Vec<(String, String)> {
    let runs = || case.rows.iter().flat_map(Row::all);
    let mut facts = Vec::new();
    let disks: Vec<String> = runs().map(disk).filter(|d| !d.is_empty()).collect();
    if !one_disk && !disks.is_empty() {
        facts.push((
            "Disk".into(),
            distinct(disks.iter().map(String::as_str)).join("; "),
        ));
    }
    facts.push((
        "Measured on".into(),
        match case.on.as_str() {
            "sim" => "sim, the scheduler's core with a model of the disk".into(),
            on if case.instructions => format!(
                "{on} {}, whose clock counts instructions, one a nanosecond",
                case.kernel
            ),
            on => format!("{on} {}", case.kernel).trim_end().into(),
        },
    ));
    facts.extend(range(runs().filter_map(|r| r.duration_ns), time).map(|d| ("Window".into(), d)));
    let most = case.rows.iter().map(|r| r.runs.len()).max().unwrap_or(0);
    let least = case.rows.iter().map(|r| r.runs.len()).min().unwrap_or(0);
    facts.push((
        "Runs".into(),
        match (least, most) {
            (1, 1) => "1 of each controller".into(),
            (a, b) if a == b => format!("{a} of each controller, medians are shown"),
            (a, b) => format!("{a} to {b} of each controller, medians are shown"),
        },
    ));
    facts
}

/// What a case's section holds.
fn fill<'a>(section: &mut Section<'a>, case: &'a Case, one_disk: bool) {
    section.facts(case_facts(case, one_disk));
    if case.rows.is_empty() {
        section.text("Its rows stand in the appendix only.");
        return;
    }
    let (shown, hidden) = case.shown();
    section.table(group_table(&case.rows, &shown));
    if hidden > 0 {
        section.note(format!(
            "{} of {} groups are shown, at equal steps from the one that got the least of what it is \
             entitled to, to the one that got the most, with {}; {hidden} are left out. All of them:",
            shown.len(),
            shown.len() + hidden,
            case.rows[0].controller
        ));
        section.table(quantiles(case));
    }
    let mut troubles = failed_checks(case, false);
    troubles.extend(circumstances(case));
    section.list(troubles);
    let notes = published_notes(case);
    section.list(notes);
    for figure in figures(case) {
        section.figure(figure);
    }
    section.facts(settings_facts(&case.rows));
}

/// What there is to draw. A group alone has all, and nothing is seen in that.
fn figures(case: &Case) -> Vec<Figure<'_>> {
    let groups = || case.rows.iter().flat_map(|r| &r.groups);
    let several = case.rows.iter().any(|r| r.groups.len() > 1);
    let mut figures = Vec::new();
    if several && groups().any(|g| g.got.is_some()) {
        figures.push(Figure::Shares(case));
    }
    let timed = |g: &GroupRow| !g.curve.is_empty() || g.p50.or(g.p99).or(g.longest).is_some();
    if groups().any(timed) {
        figures.push(Figure::Latency(case));
    }
    let mut runs = case.rows.iter().flat_map(|r| &r.runs);
    if several && runs.any(|r| r.series.as_ref().is_some_and(|s| s.t_ns.len() > 1)) {
        figures.push(Figure::Series(case));
    }
    figures
}
