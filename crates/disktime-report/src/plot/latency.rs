//! How long requests took: the part that took longer, or a few percentiles where no more is known.

use super::axis::{Axis, Frame, latency_label, latency_ticks};
use super::legend::Mark;
use super::palette::{Form, INK, Look, look};
use super::rows::{self, Block, Manner};
use super::sheet::{Sheet, Side, WIDTH};
use super::words::fit;
use super::{Error, Plot, legend, sheet};
use crate::number::time;
use crate::reduce::{Case, GroupRow, Row, Spread};

/// Curves of all groups, ranges for whoever has none.
pub fn draw(case: &Case) -> Result<Vec<Plot>, Error> {
    let curves = rows::blocks(case, |g| g.curve.len() > 1);
    let mut plots = Vec::new();
    if !curves.is_empty() {
        for page in curves.chunks(12) {
            plots.push(draw_curves(page)?);
        }
    }
    let groups = || case.rows.iter().flat_map(|r| &r.groups);
    let known = |g: &GroupRow| g.curve.len() < 2 && g.p50.or(g.p99).or(g.longest).is_some();
    if groups().any(known) {
        for page in rows::pages(rows::blocks(case, known)) {
            plots.push(draw_ranges(&page)?);
        }
    }
    Ok(plots)
}

/// The part of the requests that took longer, at each latency.
fn slower(curve: &[(f64, f64)]) -> impl Iterator<Item = (f64, f64)> + '_ {
    curve
        .iter()
        .filter(|(ns, part)| ns.is_finite() && part.is_finite())
        .map(|(ns, part)| (ns.max(1.0), (1.0 - part).clamp(0.0, 1.0)))
}

fn part_label(exponent: f64) -> String {
    let percent = 10_f64.powf(exponent + 2.0);
    let decimals = (-(exponent.round() + 2.0)).max(0.0) as usize;
    format!("{percent:.decimals$} %")
}

fn controllers<'a>(blocks: &'a [Block<'_>]) -> Vec<&'a Row> {
    let mut rows: Vec<&Row> = Vec::new();
    for (row, _) in blocks.iter().flat_map(|b| &b.lines) {
        if !rows.iter().any(|r| r.controller == row.controller) {
            rows.push(row);
        }
    }
    rows.sort_by(|a, b| {
        crate::reduce::rank(&a.controller).cmp(&crate::reduce::rank(&b.controller))
    });
    rows
}

fn draw_curves(blocks: &[Block<'_>]) -> Result<Plot, Error> {
    const HIGH: f64 = 270.0;
    let across = match blocks.len() {
        0 | 1 => 1,
        2 | 4 => 2,
        _ => 3,
    };
    let wide = WIDTH / across as f64;
    let legend: Vec<_> = controllers(blocks)
        .into_iter()
        .map(|r| (Mark::Controller(look(&r.controller)), r.controller.clone()))
        .collect();
    let points = || {
        blocks
            .iter()
            .flat_map(|b| &b.lines)
            .flat_map(|(_, g)| slower(&g.curve))
    };
    let ns = Spread::of(points().map(|(ns, _)| ns));
    let (least, most) = ns.map_or((1e3, 1e9), |s| (s.min, s.max));
    let rarest = Spread::of(points().map(|(_, part)| part).filter(|p| *p > 1e-9));
    let floor = rarest
        .map_or(-3.0, |s| (s.min.log10() + 1e-6).floor())
        .clamp(-5.0, -2.0);
    let (range, mut ticks) = latency_ticks(least, most);
    // Labels of many powers of ten would touch each other in a narrow panel.
    let room = ((wide - 84.0) / 52.0) as usize;
    let every = ticks.len().div_ceil(room.max(2));
    ticks = ticks.into_iter().step_by(every).collect();
    let x = Axis {
        range,
        ticks,
        label: &latency_label,
        title: "latency",
    };
    let y = Axis {
        range: (floor, 0.0),
        ticks: (0..=-floor as i32).map(|n| floor + f64::from(n)).collect(),
        label: &part_label,
        title: "requests that took longer",
    };
    let head = legend::height(&legend);
    let lines = blocks.len().div_ceil(across) as f64;
    let title = "Latency.";
    let caption = "The part of a group's requests that took longer than the time below, in one run; \
                   further to the left is better. Both axes are logarithmic; markers stand where a half, a \
                   tenth, a hundredth and a thousandth take longer.";
    let svg = sheet::draw(
        head + lines * HIGH,
        &format!("{title} {caption}"),
        |sheet| {
            sheet.legend(&legend)?;
            for (number, block) in blocks.iter().enumerate() {
                let left = (number % across) as f64 * wide;
                let top = head + (number / across) as f64 * HIGH;
                let frame = Frame {
                    left: left + 62.0,
                    top: top + 26.0,
                    right: left + wide - 22.0,
                    bottom: top + HIGH - 54.0,
                };
                sheet.axes(frame, &x, Some(&y))?;
                let name = match block.about.as_str() {
                    "" => block.name.clone(),
                    about => format!("{}, {about}", block.name),
                };
                let name = fit(&name, frame.right - frame.left, 13.5);
                sheet.bold((frame.left, top + 13.0), &name, 13.0, Side::Left)?;
                // The first is drawn last, above all others.
                for (row, group) in block.lines.iter().rev() {
                    draw_curve(sheet, frame, (&x, &y), row, group)?;
                }
            }
            Ok(())
        },
    )?;
    Ok(Plot {
        title: title.into(),
        caption: caption.into(),
        svg,
    })
}

fn draw_curve(
    sheet: &Sheet<'_>,
    frame: Frame,
    (x, y): (&Axis<'_>, &Axis<'_>),
    row: &Row,
    group: &GroupRow,
) -> Result<(), Error> {
    let floor = y.range.0;
    let place = |(ns, part): (f64, f64)| {
        let height = if part > 0.0 { part.log10() } else { floor };
        (frame.x(x, ns.log10()), frame.y(y, height))
    };
    let look = look(&row.controller);
    let points: Vec<_> = slower(&group.curve).map(place).collect();
    sheet.line(&points, look.colour, 2.0)?;
    for part in [0.5, 0.1, 0.01, 0.001] {
        if let Some(point) = slower(&group.curve)
            .find(|(_, p)| *p <= part)
            .filter(|(_, p)| *p > 0.0)
        {
            sheet.marker(place(point), look, 3.6)?;
        }
    }
    Ok(())
}

const LONGEST: Look = Look {
    colour: INK,
    form: Form::Ring,
};

fn draw_ranges(blocks: &[Block<'_>]) -> Result<Plot, Error> {
    let groups = || blocks.iter().flat_map(|b| &b.lines).map(|(_, g)| *g);
    let known = groups()
        .flat_map(|g| [g.p50, g.p99, g.p999, g.longest])
        .flatten();
    let spread = Spread::of(known.map(|s| s.median));
    let (least, most) = spread.map_or((1e3, 1e9), |s| (s.min, s.max));
    let (range, ticks) = latency_ticks(least, most);
    let axis = || Axis {
        range,
        ticks: ticks.clone(),
        label: &latency_label,
        title: "latency, logarithmic",
    };
    rows::draw(
        blocks,
        &Manner {
            title: "Latency.".into(),
            caption: "From the median to the longest.".into(),
            legend: vec![
                (
                    Mark::Point(Look {
                        colour: INK,
                        form: Form::Circle,
                    }),
                    "median".into(),
                ),
                (Mark::Upright(7.0, 2.4), "99 %".into()),
                (Mark::Upright(4.0, 1.4), "99.9 %".into()),
                (Mark::Point(LONGEST), "longest".into()),
            ],
            axis: axis(),
            values: "99 %",
            value: &|g| crate::number::median(g.p99, time),
            line: &|sheet, frame, y, row, group| draw_range(sheet, frame, &axis(), y, row, group),
            over: &|_, _, _| Ok(()),
        },
    )
}

fn draw_range(
    sheet: &Sheet<'_>,
    frame: Frame,
    axis: &Axis<'_>,
    y: f64,
    row: &Row,
    group: &GroupRow,
) -> Result<(), Error> {
    let colour = look(&row.controller).colour;
    let x = |s: Option<Spread>| s.map(|s| frame.x(axis, s.median.max(1.0).log10()));
    let all: Vec<f64> = [group.p50, group.p99, group.p999, group.longest]
        .into_iter()
        .filter_map(x)
        .collect();
    if let Some(ends) = Spread::of(all) {
        sheet.line(&[(ends.min, y), (ends.max, y)], colour, 2.6)?;
    }
    for (value, half, width) in [(group.p999, 4.0, 1.6), (group.p99, 6.0, 2.8)] {
        if let Some(x) = x(value) {
            sheet.line(&[(x, y - half), (x, y + half)], colour, width)?;
        }
    }
    for (value, form) in [(group.longest, Form::Ring), (group.p50, Form::Circle)] {
        if let Some(x) = x(value) {
            sheet.marker((x, y), Look { colour, form }, 4.0)?;
        }
    }
    Ok(())
}
