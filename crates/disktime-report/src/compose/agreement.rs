//! The simulator beside machines.

use super::full_name;
use crate::document::{Cell, NOTHING, Section, Table, Tone};
use crate::number::{count, percent, points, signed_points};
use crate::reduce::{Case, SHOWN};
use crate::verdict::{AGREEMENT, Agreement, Pair, agreements, farthest};

/// At most as many pairs as a table shows: the farthest ones, in the order of groups.
fn farthest_pairs(pairs: &[Pair]) -> Vec<&Pair> {
    let mut order: Vec<usize> = (0..pairs.len()).collect();
    order.sort_by(|a, b| {
        pairs[*b]
            .points()
            .abs()
            .total_cmp(&pairs[*a].points().abs())
    });
    order.truncate(SHOWN);
    order.sort_unstable();
    order.into_iter().map(|n| &pairs[n]).collect()
}

fn verdict(worst: Option<f64>) -> Cell {
    match worst {
        None => NOTHING.into(),
        Some(w) if w <= AGREEMENT => Cell::toned("ok", Tone::Good),
        Some(_) => Cell::toned("NOT OK", Tone::Bad),
    }
}

fn agreement_rows(table: &mut Table, of: &Agreement<'_>, what: &str, pairs: &[Pair]) {
    let shown = farthest_pairs(pairs);
    let worst = farthest(pairs);
    for (number, pair) in shown.iter().enumerate() {
        let first = number == 0;
        let once = |cell: Cell| if first { cell } else { Cell::default() };
        if first {
            table.begins.push(table.rows.len());
        }
        table.rows.push(vec![
            once(full_name(of.case).into()),
            once(of.case.place.clone().into()),
            once(what.into()),
            pair.group.clone().into(),
            percent(Some(pair.simulated)).into(),
            percent(Some(pair.measured)).into(),
            signed_points(pair.points()).into(),
            once(worst.map_or(NOTHING.into(), points).into()),
            once(verdict(worst)),
        ]);
    }
    if shown.len() < pairs.len() {
        let rest = count(pairs.len() - shown.len(), "group", "groups");
        let mut row = vec![Cell::default(); table.columns.len()];
        row[3] = format!("({rest} nearer)").into();
        table.rows.push(row);
    }
}

pub fn agreement(cases: &[Case]) -> Option<Section<'_>> {
    let all = agreements(cases);
    if all.is_empty() {
        return None;
    }
    let mut section = Section::new(2, "Simulator against machine");
    let agrees = |a: &&Agreement<'_>| {
        let mut worst = [farthest(&a.got), farthest(&a.truth)].into_iter().flatten();
        worst.all(|w| w <= AGREEMENT)
    };
    section.text(format!(
        "They agree in {} of {}: with disktime, no group's share on the machine is more than {AGREEMENT} \
         points off the simulated one.",
        all.iter().filter(agrees).count(),
        count(all.len(), "case", "cases"),
    ));
    let mut table = Table::default();
    for (title, number, rank) in [
        ("case", false, 0),
        ("on", false, 2),
        ("share", false, 0),
        ("group", false, 0),
        ("sim", true, 0),
        ("machine", true, 0),
        ("points", true, 0),
        ("worst", true, 0),
        ("", false, 0),
    ] {
        table.column(title, number, rank);
    }
    for of in &all {
        agreement_rows(&mut table, of, "got", &of.got);
        agreement_rows(&mut table, of, "true", &of.truth);
    }
    section.table(table);
    Some(section)
}
