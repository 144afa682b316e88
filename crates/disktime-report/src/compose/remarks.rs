//! What is to be said of a case beside its numbers: settings, failures, notes.

use std::collections::BTreeSet;

use super::scenario::range;
use super::{full_name, plain};
use crate::document::{Item, Tone};
use crate::input::Outcome;
use crate::number::count;
use crate::reduce::{Case, Row};

/// How controllers were set, those that were set alike in one line.
pub fn settings_facts(rows: &[Row]) -> Vec<(String, String)> {
    let mut facts: Vec<(String, String)> = Vec::new();
    for row in rows {
        let Some(text) = settings(row) else { continue };
        match facts.iter_mut().find(|(_, known)| *known == text) {
            Some((names, _)) => *names = format!("{names}, {}", row.controller),
            None => facts.push((format!("Settings of {}", row.controller), text)),
        }
    }
    facts
}

pub fn settings(row: &Row) -> Option<String> {
    let mut parts = Vec::new();
    let settings: BTreeSet<_> = row
        .runs
        .iter()
        .flat_map(|r| &r.settings)
        .map(|(k, v)| format!("{k} {}", plain(v)))
        .collect();
    parts.extend(settings);
    if !parts.iter().any(|p| p.starts_with("nr_requests")) {
        let depth = range(row.runs.iter().filter_map(|r| r.nr_requests), |v| {
            format!("{v:.0}")
        });
        parts.extend(depth.map(|d| format!("nr_requests {d}")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn run_name(row: &Row, number: u32) -> String {
    match row.all().count() {
        1 => row.controller.clone(),
        _ => format!("{}, run {number}", row.controller),
    }
}

/// Runs with their controller and number.
fn runs(case: &Case) -> impl Iterator<Item = (&Row, u32, &Outcome)> {
    let rows = case.rows.iter();
    rows.flat_map(|row| {
        row.numbered()
            .into_iter()
            .map(move |(n, run)| (row, n, run))
    })
}

/// Whose check, its name, and what was measured in which run.
type Failed<'a> = (&'a Row, &'a str, Vec<(u32, Option<f64>)>);

/// Checks that failed, those of several runs in one line.
pub fn failed_checks(case: &Case, with_case: bool) -> Vec<Item> {
    let mut failed: Vec<Failed<'_>> = Vec::new();
    for (row, number, run) in runs(case) {
        for check in run.checks.iter().filter(|c| c.ok == Some(false)) {
            let value = (number, check.value);
            let same = failed
                .iter_mut()
                .find(|(r, name, _)| r.controller == row.controller && *name == check.name);
            match same {
                Some((_, _, values)) => values.push(value),
                None => failed.push((row, &check.name, vec![value])),
            }
        }
    }
    let lines = failed.into_iter().map(|(row, name, mut values)| {
        values.sort_by_key(|(round, _)| *round);
        let several = row.all().count() > 1;
        let values = values.into_iter().map(|(round, value)| {
            let value = value.map_or("nothing measured".into(), |v| format!("{v:.4}"));
            if several {
                format!("{value} (run {round})")
            } else {
                value
            }
        });
        let place = match with_case {
            true => format!("{} on {}, ", full_name(case), case.place),
            false => String::new(),
        };
        let values = values.collect::<Vec<_>>().join(", ");
        format!("FAILED: {place}{}: {name}: {values}", row.controller)
    });
    lines
        .map(|text| Item {
            text,
            tone: Tone::Bad,
        })
        .collect()
}

/// Runs that do not count or are not whole, and what disktime complained about.
pub fn circumstances(case: &Case) -> Vec<Item> {
    let mut items = Vec::new();
    for (row, number, run) in runs(case) {
        let mut tell = |text: String| {
            items.push(Item {
                text: format!("{}: {text}", run_name(row, number)),
                tone: Tone::Bad,
            });
        };
        if let Some(error) = &run.error {
            tell(format!("not whole: {error}"));
        }
        if run.counted == Some(false) {
            tell("not counted: without a controller, the machine could not load the disk".into());
        }
        if let Some(health) = run
            .health
            .as_ref()
            .filter(|h| !matches!(h.as_str(), "ok" | ""))
        {
            tell(format!("health: {health}"));
        }
        let open = run.checks.iter().filter(|c| c.ok.is_none()).count();
        if open > 0 && run.counted != Some(false) {
            tell(format!("{} not counted", count(open, "check", "checks")));
        }
    }
    items.extend(case.rows.iter().filter(|r| differs(r)).map(|row| Item {
        text: format!(
            "{}: the simulator gave several results for one seed: the files are of several versions",
            row.controller
        ),
        tone: Tone::Bad,
    }));
    items
}

/// Whether a simulation was repeated and did not give what it gave before.
fn differs(row: &Row) -> bool {
    let mut seeds = BTreeSet::new();
    row.all()
        .filter(|run| run.on == "sim" && run.seed.is_some())
        .any(|run| !seeds.insert((run.round, run.seed)))
}

pub fn published_notes(case: &Case) -> Vec<Item> {
    let mut seen = BTreeSet::new();
    let mut items = Vec::new();
    for group in case.rows.iter().flat_map(|r| &r.groups) {
        if let Some(note) = &group.published_note {
            if seen.insert((group.name.as_str(), note.as_str())) {
                items.push(Item {
                    text: format!("Published for {}: {note}", group.name),
                    tone: Tone::Plain,
                });
            }
        }
    }
    items
}
