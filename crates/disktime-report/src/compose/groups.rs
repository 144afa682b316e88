//! Tables of groups.

use super::distinct;
use crate::document::{Cell, NOTHING, Table};
use crate::number::{median, percent, rate, time};
use crate::reduce::{Case, Row, Spread, hundredths};

fn spread_text(spread: Option<Spread>) -> String {
    match spread {
        Some(s) if hundredths(s.min * 10.0) != hundredths(s.max * 10.0) => {
            format!("{:.1} to {:.1} %", s.min * 100.0, s.max * 100.0)
        }
        Some(_) => "same".into(),
        None => NOTHING.into(),
    }
}

fn group_columns(table: &mut Table) {
    for (title, number, rank) in [
        ("controller", false, 0),
        ("group", false, 0),
        ("class", false, 3),
        ("weight", true, 2),
        ("entitled", true, 0),
        ("got", true, 0),
        ("got, range", true, 7),
        ("true", true, 1),
        ("traced", true, 6),
        ("I/O share", true, 8),
        ("I/Os per s", true, 2),
        ("transactions per s", true, 2),
        ("p50", true, 9),
        ("p99", true, 3),
        ("max", true, 10),
        ("done after", true, 4),
        ("published", true, 1),
    ] {
        table.column(title, number, rank);
    }
}

pub fn group_table(rows: &[Row], shown: &[String]) -> Table {
    let mut table = Table::default();
    group_columns(&mut table);
    let classes = distinct(
        rows.iter()
            .flat_map(|r| &r.groups)
            .map(|g| g.class.as_str()),
    )
    .len();
    for row in rows {
        table.begins.push(table.rows.len());
        let groups = row.groups.iter().filter(|g| shown.contains(&g.name));
        let mut empty = true;
        for (number, group) in groups.enumerate() {
            empty = false;
            let several = row.runs.len() > 1;
            let cells = [
                if number == 0 {
                    controller_name(row)
                } else {
                    String::new()
                },
                group.name.clone(),
                if classes > 1 {
                    group.class.clone()
                } else {
                    String::new()
                },
                group.weight.map_or(NOTHING.into(), |w| w.to_string()),
                percent(group.entitled),
                median(group.got, |v| percent(Some(v))),
                if several {
                    spread_text(group.got)
                } else {
                    String::new()
                },
                median(group.truth, |v| percent(Some(v))),
                median(group.traced, |v| percent(Some(v))),
                median(group.io_share, |v| percent(Some(v))),
                median(group.ios_per_s, rate),
                median(group.transactions_per_s, rate),
                median(group.p50, time),
                median(group.p99, time),
                median(group.longest, time),
                median(group.finished, time),
                percent(group.published),
            ];
            table.rows.push(cells.into_iter().map(Cell::from).collect());
        }
        if empty {
            let mut cells = vec![Cell::from(NOTHING); table.columns.len()];
            cells[0] = controller_name(row).into();
            table.rows.push(cells);
        }
    }
    table.without_empty()
}

pub fn controller_name(row: &Row) -> String {
    match row.counts {
        true => row.controller.clone(),
        false => format!("({})", row.controller),
    }
}

/// How what groups got lies around what they are entitled to, where there are too many to show.
pub fn quantiles(case: &Case) -> Table {
    let mut table = Table::default();
    table.column("controller", false, 0);
    for title in [
        "groups",
        "least",
        "1st quarter",
        "median",
        "3rd quarter",
        "most",
    ] {
        table.column(title, true, 0);
    }
    for row in &case.rows {
        let mut ratios: Vec<f64> = row
            .groups
            .iter()
            .filter_map(|g| Some(g.got?.median / g.entitled.filter(|e| *e > 0.0)?))
            .collect();
        ratios.sort_by(f64::total_cmp);
        let Some(last) = ratios.len().checked_sub(1) else {
            continue;
        };
        let mut cells = vec![controller_name(row), ratios.len().to_string()];
        for quarter in 0..=4 {
            cells.push(format!("{:.3}", ratios[(last * quarter + 2) / 4]));
        }
        table.rows.push(cells.into_iter().map(Cell::from).collect());
    }
    if let Some(column) = table.columns.get_mut(2) {
        column.title = "got / entitled: least".into();
    }
    table
}
