//! What stands at the end: rows that were left out, and the circumstances of the measurements.

use std::collections::{BTreeMap, BTreeSet};

use super::groups::controller_name;
use super::remarks::settings;
use super::{all_runs, full_name, plain};
use crate::document::{Cell, NOTHING, Section, Table};
use crate::input::Outcome;
use crate::number::{median, points, rate};
use crate::reduce::{Case, rank};

pub fn appendix(cases: &[Case]) -> Option<Section<'_>> {
    if cases.iter().all(|c| c.discarded.is_empty()) {
        return None;
    }
    let mut section = Section::new(2, "Appendix: settings that served worse");
    section.note(
        "Controllers ran with the kernel's default number of requests and with a raised one; the tables \
         above hold the better of the two, this one the other.",
    );
    let mut table = Table::default();
    for (title, number, rank) in [
        ("case", false, 0),
        ("on", false, 2),
        ("controller", false, 0),
        ("settings", false, 1),
        ("runs", true, 3),
        ("worst share error", true, 0),
        ("I/Os per s", true, 0),
        ("of none", true, 1),
    ] {
        table.column(title, number, rank);
    }
    for case in cases {
        for row in &case.discarded {
            let settings = settings(row).unwrap_or(NOTHING.into());
            let cells = [
                full_name(case),
                case.place.clone(),
                controller_name(row),
                settings,
                row.runs.len().to_string(),
                median(row.worst, points),
                median(row.ios_per_s, rate),
                row.vs_none
                    .map_or(NOTHING.into(), |r| format!("{:.1} %", r * 100.0)),
            ];
            table.rows.push(cells.into_iter().map(Cell::from).collect());
        }
    }
    section.table(table);
    Some(section)
}

/// Numbers as few ranges as they fit in.
fn ranges(numbers: &BTreeSet<u64>) -> String {
    let mut parts: Vec<(u64, u64)> = Vec::new();
    for n in numbers {
        match parts.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(*n) => *end = *n,
            _ => parts.push((*n, *n)),
        }
    }
    let parts = parts.into_iter().map(|(a, b)| match a == b {
        true => a.to_string(),
        false => format!("{a} to {b}"),
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn dates(runs: &[&Outcome]) -> String {
    // RFC 3339 in one time zone sorts as text does, and results are written in one.
    let mut dates: Vec<&str> = runs.iter().filter_map(|r| r.date.as_deref()).collect();
    dates.sort_unstable();
    match (dates.first(), dates.last()) {
        (Some(first), Some(last)) if first == last => (*first).into(),
        (Some(first), Some(last)) => format!("{first} to {last}"),
        _ => NOTHING.into(),
    }
}

pub fn colophon(cases: &[Case]) -> Section<'_> {
    let mut section = Section::new(2, "Colophon");
    let mut places: BTreeMap<(bool, String, String), Vec<&Outcome>> = BTreeMap::new();
    for run in cases.iter().flat_map(all_runs) {
        let key = (run.on != "sim", run.on.clone(), run.kernel.clone());
        places.entry(key).or_default().push(run);
    }
    let mut table = Table::default();
    for (title, number) in [
        ("on", false),
        ("kernel", false),
        ("runs", true),
        ("seeds", true),
        ("measured", false),
    ] {
        table.column(title, number, 0);
    }
    for ((_, on, kernel), runs) in places {
        let seeds = runs.iter().filter_map(|r| r.seed).collect();
        let cells = [
            on,
            kernel,
            runs.len().to_string(),
            ranges(&seeds),
            dates(&runs),
        ];
        table.rows.push(cells.into_iter().map(Cell::from).collect());
    }
    section.table(table.without_empty());
    let mut settings: BTreeMap<(usize, &str), BTreeSet<String>> = BTreeMap::new();
    for row in cases.iter().flat_map(|c| c.rows.iter().chain(&c.discarded)) {
        for (key, value) in row.all().flat_map(|r| &r.settings) {
            let all = settings.entry(rank(&row.controller)).or_default();
            all.insert(format!("{key} {}", plain(value)));
        }
    }
    let facts = settings.into_iter().map(|((_, controller), all)| {
        let all: Vec<_> = all.into_iter().collect();
        (format!("Settings of {controller}"), all.join("; "))
    });
    section.facts(facts.collect());
    section
}
