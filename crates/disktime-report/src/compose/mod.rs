//! The report's words and tables, from the reduced cases.

mod agreement;
mod closing;
mod groups;
mod remarks;
mod scenario;
mod summary;

use std::collections::BTreeSet;

use serde_json::Value;

use crate::document::{Document, Section};
use crate::input::Outcome;
use crate::reduce::{Case, Row, rank};

/// A case where its scenario is not told by the surroundings.
pub fn full_name(case: &Case) -> String {
    let part = case.part();
    match part.is_empty() {
        true => case.scenario.clone(),
        false => format!("{}: {part}", case.scenario),
    }
}

/// All controllers of some cases, in order.
pub fn controllers<'a>(cases: impl IntoIterator<Item = &'a Case>) -> Vec<String> {
    let mut names: Vec<String> = cases
        .into_iter()
        .flat_map(|c| &c.rows)
        .map(|r| r.controller.clone())
        .collect();
    names.sort_by(|a, b| rank(a).cmp(&rank(b)));
    names.dedup();
    names
}

fn distinct<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let values = values.into_iter().filter(|v| !v.is_empty());
    values.filter(|v| seen.insert(*v)).collect()
}

fn all_runs(case: &Case) -> impl Iterator<Item = &Outcome> {
    case.rows.iter().chain(&case.discarded).flat_map(Row::all)
}

/// The whole report.
pub fn compose<'a>(
    title: &str,
    notes: &[String],
    cases: &'a [Case],
    repeated: usize,
) -> Document<'a> {
    let mut sections = Vec::new();
    if !notes.is_empty() {
        let mut section = Section::new(2, "About these figures");
        for note in notes {
            section.text(note);
        }
        sections.push(section);
    }
    sections.extend(summary::summary(cases, repeated));
    sections.extend(agreement::agreement(cases));
    let mut begin = 0;
    while begin < cases.len() {
        let same = cases[begin..]
            .iter()
            .take_while(|c| c.scenario == cases[begin].scenario);
        let end = begin + same.count();
        sections.extend(scenario::scenario(&cases[begin..end]));
        begin = end;
    }
    sections.extend(closing::appendix(cases));
    sections.push(closing::colophon(cases));
    Document {
        title: title.into(),
        sections,
    }
}

/// A value without the quotes that it has in JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), Into::into)
}
