//! What a reader wants to know first: totals, who is best, and where disktime is not.

use std::collections::BTreeSet;

use super::remarks::failed_checks;
use super::{controllers, distinct, full_name};
use crate::document::{Cell, Figure, Item, NOTHING, Section, Table, Tone};
use crate::number::{count, points, rate};
use crate::reduce::{Case, Measure, Row, hundredths};
use crate::verdict::{FAIR_MARGIN, Loss, SHARE_MARGIN, losses};

fn totals(cases: &[Case], repeated: usize) -> Vec<String> {
    let scenarios = distinct(cases.iter().map(|c| c.scenario.as_str())).len();
    let runs: Vec<_> = cases
        .iter()
        .flat_map(|c| &c.rows)
        .flat_map(Row::all)
        .collect();
    let checks = |ok| {
        runs.iter()
            .flat_map(|r| &r.checks)
            .filter(|c| c.ok == ok)
            .count()
    };
    let (ok, failed, open) = (checks(Some(true)), checks(Some(false)), checks(None));
    let discarded: usize = cases
        .iter()
        .flat_map(|c| &c.discarded)
        .map(|r| r.all().count())
        .sum();
    let mut lines = vec![format!(
        "{} in {}, {} of {}; {}: {ok} ok, {failed} failed, {open} not counted.",
        count(scenarios, "scenario", "scenarios"),
        count(cases.len(), "case", "cases"),
        count(runs.len(), "run", "runs"),
        count(controllers(cases).len(), "controller", "controllers"),
        count(ok + failed + open, "check", "checks"),
    )];
    if discarded > 0 {
        let what = count(discarded, "more run", "more runs");
        lines.push(format!(
            "{what}, with settings that served a controller worse, stand in the appendix only."
        ));
    }
    if repeated > 0 {
        let what = count(repeated, "line", "lines");
        lines.push(format!(
            "{what} repeated another word by word and were passed over."
        ));
    }
    lines
}

pub fn summary(cases: &[Case], repeated: usize) -> Vec<Section<'_>> {
    let mut first = Section::new(2, "Summary");
    first.text(totals(cases, repeated).join(" "));
    let failed: Vec<Item> = cases.iter().flat_map(|c| failed_checks(c, true)).collect();
    if !failed.is_empty() {
        first.text("Failed checks:");
        first.list(failed);
    }
    let mut sections = vec![first];
    sections.extend(who_is_best(cases, Measure::Truth));
    sections.extend(who_is_best(cases, Measure::Got));
    sections.extend(throughput(cases));
    sections.extend(not_the_best(cases));
    sections
}

/// Where cases ran, the simulator last.
fn places(cases: &[Case]) -> Vec<&str> {
    let mut places = distinct(cases.iter().map(|c| c.place.as_str()));
    places.sort_by_key(|place| *place == "sim");
    places
}

/// A table for each place: a row for each case, a column for each controller.
fn matrices<'a>(
    cases: &'a [Case],
    cell: impl Fn(&Case, &Row) -> Option<Cell>,
    extra: impl Fn(&Case) -> bool,
) -> Vec<(&'a str, Table)> {
    let of_place = |place: &'a str| {
        let here = cases.iter().filter(|c| c.place == place && extra(c));
        (place, matrix(&here.collect::<Vec<_>>(), &cell))
    };
    let tables = places(cases).into_iter().map(of_place);
    tables.filter(|(_, table)| !table.rows.is_empty()).collect()
}

fn matrix(cases: &[&Case], cell: impl Fn(&Case, &Row) -> Option<Cell>) -> Table {
    let names = controllers(cases.iter().copied());
    let mut table = Table::default();
    table.column("case", false, 0);
    table.matrix = Some(table.columns.len());
    for name in &names {
        table.column(name, true, 0);
    }
    let mut scenario = "";
    for case in cases {
        let mut row = vec![Cell::from(full_name(case))];
        for name in &names {
            let known = case.row(name).and_then(|r| Some((r, cell(case, r)?)));
            row.push(match known {
                Some((row, cell)) if row.counts => cell,
                Some((_, cell)) => Cell::from(format!("({})", cell.text)),
                None => NOTHING.into(),
            });
        }
        if case.scenario != scenario {
            table.begins.push(table.rows.len());
        }
        scenario = &case.scenario;
        table.rows.push(row);
    }
    table
}

/// Adds tables, each with its place where there are several.
fn put(section: &mut Section<'_>, tables: Vec<(&str, Table)>) {
    let several = tables.len() > 1;
    for (place, table) in tables {
        if several {
            section.text(format!("On {place}:"));
        }
        section.table(table);
    }
}

fn who_is_best(cases: &[Case], measure: Measure) -> Option<Section<'_>> {
    let known = |c: &Case| c.rows.iter().any(|r| r.error(measure).is_some());
    // True shares are interesting where there is something to compare.
    if measure == Measure::Truth && !cases.iter().any(|c| c.contestants(measure).count() > 1) {
        return None;
    }
    let tables = matrices(
        cases,
        |case, row| {
            let error = row.error(measure)?;
            let best = case
                .best(measure)
                .is_some_and(|b| hundredths(b) == hundredths(error));
            let tone = if best && row.counts {
                Tone::Best
            } else {
                Tone::Plain
            };
            Some(Cell::toned(points(error), tone))
        },
        known,
    );
    if tables.is_empty() {
        return None;
    }
    let (title, note) = match measure {
        Measure::Got => (
            "Who is best by its own account: worst share error, in points",
            "For each run, the greatest distance between what a group got and what its weight \
             promises; of several runs, the median. What a group got is its share of disk time by \
             the kernel's counters with disktime, and of I/Os with controllers that know no disk \
             time: where requests cost the same, that is the truth, and where they do not it is \
             what the controller believes. The best of a row is in bold with an asterisk, if there \
             is a difference; numbers in parentheses do not count, because the machine was too slow \
             or the run is not whole.",
        ),
        Measure::Truth => (
            "Who is best: worst share error by the disk's own time, in points",
            "For each run, the greatest distance between a group's share of the time that the model \
             of the disk spent on requests, which no controller sees, and what its weight promises; \
             of several runs, the median. Best and parentheses as in the next table.",
        ),
    };
    let mut section = Section::new(3, title);
    section.note(note);
    put(&mut section, tables);
    if measure == Measure::Got && cases.iter().any(known) {
        section.figure(Figure::Overview(cases));
    }
    Some(section)
}

fn throughput(cases: &[Case]) -> Option<Section<'_>> {
    let tables = matrices(
        cases,
        |_, row| Some(format!("{:.1} %", row.vs_none? * 100.0).into()),
        |c| c.rows.iter().any(|r| r.vs_none.is_some()),
    );
    let mut section = Section::new(3, "Throughput, in percent of none");
    section.note("I/Os a second of all groups together by those without any controller.");
    let any = !tables.is_empty();
    put(&mut section, tables);
    any.then_some(section)
}

fn loss_line(case: &Case, loss: &Loss, measure: Measure) -> String {
    let place = format!("{} on {}", full_name(case), case.place);
    let by = match measure {
        Measure::Got => "",
        Measure::Truth => " by the disk's own time",
    };
    match loss {
        Loss::Share { peer, theirs, ours } => format!(
            "{place}: worst share error{by} {} points, {peer} has {}",
            points(*ours),
            points(*theirs)
        ),
        Loss::Throughput { peer, theirs, ours } => format!(
            "{place}: {} I/Os per s, {peer} does {} ({:+.1} %)",
            rate(*ours),
            rate(*theirs),
            (ours / theirs - 1.0) * 100.0
        ),
    }
}

fn not_the_best(cases: &[Case]) -> Option<Section<'_>> {
    let compared = |c: &Case| {
        let mut others = c
            .contestants(Measure::Got)
            .map(|(r, _)| r.controller != "disktime");
        others.any(|other| other) && c.row("disktime").is_some()
    };
    if !cases.iter().any(compared) {
        return None;
    }
    let mut section = Section::new(3, "Where disktime is not the best");
    section.note(format!(
        "Named are share errors more than {SHARE_MARGIN} points above the best peer's, and throughputs \
         below the best peer's among those whose share error is at most {FAIR_MARGIN} points above \
         that of disktime."
    ));
    let mut items = Vec::new();
    for case in cases {
        let mut lines = Vec::new();
        for measure in [Measure::Got, Measure::Truth] {
            for loss in losses(case, measure) {
                lines.push(loss_line(case, &loss, measure));
            }
        }
        let mut seen = BTreeSet::new();
        lines.retain(|l| seen.insert(l.clone()));
        items.extend(lines.into_iter().map(|text| Item {
            text,
            tone: Tone::Bad,
        }));
    }
    if items.is_empty() {
        section.text("Nowhere in these results.");
    }
    section.list(items);
    Some(section)
}
