//! What groups got, beside what they should have.

use super::axis::{Axis, Frame, share_label, share_ticks};
use super::legend::Mark;
use super::palette::{Form, INK, Look, look};
use super::rows::{self, Block, Manner};
use super::sheet::Sheet;
use super::{Error, Plot};
use crate::number::{median, percent};
use crate::reduce::{Case, GroupRow, Row};

/// Half of a bar's height.
const HALF: f64 = 5.5;

const PUBLISHED: Look = Look {
    colour: INK,
    form: Form::HollowDiamond,
};

fn most(blocks: &[Block<'_>]) -> f64 {
    let groups = blocks.iter().flat_map(|b| &b.lines).map(|(_, g)| *g);
    groups
        .flat_map(|g| [g.got.map(|s| s.max), g.entitled, g.published])
        .flatten()
        .filter(|v| v.is_finite())
        .fold(0.0, f64::max)
}

fn several(row: &Row) -> bool {
    row.runs.len() > 1
}

fn legend(blocks: &[Block<'_>]) -> Vec<(Mark, String)> {
    let mut legend = vec![(
        Mark::Upright(8.0, 2.2),
        "entitled by weight and class".into(),
    )];
    let lines = || blocks.iter().flat_map(|b| &b.lines);
    if lines().any(|(_, g)| g.published.is_some()) {
        legend.push((Mark::Point(PUBLISHED), "published".into()));
    }
    if lines().any(|(r, _)| several(r)) {
        legend.push((Mark::Range, "least and most of all runs".into()));
    }
    if lines().any(|(r, _)| !r.counts) {
        legend.push((Mark::Hollow, "does not count".into()));
    }
    legend
}

fn bar(
    sheet: &Sheet<'_>,
    frame: Frame,
    axis: &Axis<'_>,
    y: f64,
    row: &Row,
    group: &GroupRow,
) -> Result<(), Error> {
    let Some(got) = group.got else { return Ok(()) };
    let colour = look(&row.controller).colour;
    let to = frame.x(axis, got.median).max(frame.left + 0.8);
    // What does not count is hollow.
    sheet.bar((frame.left, y - HALF), (to, y + HALF), colour, row.counts)?;
    if several(row) {
        let (from, to) = (frame.x(axis, got.min), frame.x(axis, got.max));
        sheet.line(&[(from, y), (to, y)], INK, 1.2)?;
        for x in [from, to] {
            sheet.line(&[(x, y - 3.5), (x, y + 3.5)], INK, 1.2)?;
        }
    }
    Ok(())
}

fn promised(
    sheet: &Sheet<'_>,
    frame: Frame,
    axis: &Axis<'_>,
    group: &GroupRow,
) -> Result<(), Error> {
    if let Some(entitled) = group.entitled {
        let x = frame.x(axis, entitled);
        sheet.line(&[(x, frame.top), (x, frame.bottom)], INK, 2.2)?;
    }
    if let Some(published) = group.published {
        let x = frame.x(axis, published);
        sheet.marker((x, frame.bottom - 1.0), PUBLISHED, 4.0)?;
    }
    Ok(())
}

/// One plot, or more where groups are many.
pub fn draw(case: &Case) -> Result<Vec<Plot>, Error> {
    let blocks = rows::blocks(case, |g| g.got.is_some());
    let (end, ticks) = share_ticks(most(&blocks));
    let mut plots = Vec::new();
    for page in rows::pages(blocks) {
        let axis = || Axis {
            range: (0.0, end),
            ticks: ticks.clone(),
            label: &share_label,
            title: "share of disk time; of I/Os where the controller knows no disk time",
        };
        plots.push(rows::draw(
            &page,
            &Manner {
                title: "Shares.".into(),
                caption:
                    "A bar ends at what the group got, and the upright line stands at what it is entitled to."
                    .into(),
                legend: legend(&page),
                axis: axis(),
                values: "got",
                value: &|g| median(g.got, |v| percent(Some(v))),
                line: &|sheet, frame, y, row, group| bar(sheet, frame, &axis(), y, row, group),
                over: &|sheet, frame, group| promised(sheet, frame, &axis(), group),
            },
        )?);
    }
    Ok(plots)
}
