//! Worst share errors of all cases and controllers.

use super::axis::{Axis, Frame};
use super::legend::Mark;
use super::palette::{GRID, look};
use super::sheet::{HEIGHT, Sheet, Side, WIDTH};
use super::words::fit;
use super::{Error, Plot, legend, sheet};
use crate::compose::{controllers, full_name};
use crate::reduce::{Case, Measure};

const LEFT: f64 = 372.0;
const LANE: f64 = 11.0;
const GAP: f64 = 10.0;
/// Errors below are as good as none: a window's last request may be as much.
const FLOOR: f64 = -2.0;

/// A case, and the lanes that its markers take so that they do not hide each other.
struct Line<'a> {
    case: &'a Case,
    marks: Vec<(&'a str, f64, usize)>,
    lanes: usize,
}

fn exponent(points: f64) -> f64 {
    if points > 0.0 {
        points.log10().max(FLOOR)
    } else {
        FLOOR
    }
}

fn axis() -> Axis<'static> {
    Axis {
        range: (FLOOR - 0.08, 2.0),
        ticks: vec![-2.0, -1.0, 0.0, 1.0, 2.0],
        label: &|v| match v {
            v if v <= FLOOR => "0.01 or less".into(),
            v => format!("{}", (10_f64.powf(v) * 100.0).round() / 100.0),
        },
        title: "worst share error, in points of percent, logarithmic",
    }
}

fn lay_out<'a>(case: &'a Case, frame: Frame, axis: &Axis<'_>) -> Line<'a> {
    let mut ends: Vec<f64> = Vec::new();
    let mut all: Vec<_> = case
        .contestants(Measure::Got)
        .map(|(row, error)| (row.controller.as_str(), frame.x(axis, exponent(error))))
        .collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut marks = Vec::new();
    for (name, x) in all {
        let free = ends.iter().position(|end| x - end >= LANE);
        let lane = free.unwrap_or(ends.len());
        match ends.get_mut(lane) {
            Some(end) => *end = x,
            None => ends.push(x),
        }
        marks.push((name, x, lane));
    }
    Line {
        case,
        marks,
        lanes: ends.len().max(1),
    }
}

impl Line<'_> {
    fn height(&self) -> f64 {
        self.lanes as f64 * LANE + GAP
    }
}

/// One plot, or more where cases are many.
pub fn draw(cases: &[Case]) -> Result<Vec<Plot>, Error> {
    let axis = axis();
    let frame = Frame {
        left: LEFT,
        top: 0.0,
        right: WIDTH - 26.0,
        bottom: 0.0,
    };
    let lines = cases
        .iter()
        .filter(|c| c.contestants(Measure::Got).count() > 0);
    let mut pages: Vec<Vec<Line<'_>>> = Vec::new();
    let mut used = f64::INFINITY;
    for line in lines.map(|c| lay_out(c, frame, &axis)) {
        if used + line.height() > HEIGHT - 120.0 {
            pages.push(Vec::new());
            used = 0.0;
        }
        used += line.height();
        if let Some(page) = pages.last_mut() {
            page.push(line);
        }
    }
    let legend: Vec<_> = controllers(cases)
        .into_iter()
        .map(|name| (Mark::Point(look(&name)), name))
        .collect();
    let several = cases.iter().any(|c| c.place != cases[0].place);
    pages
        .iter()
        .map(|page| draw_page(page, frame, &axis, &legend, several))
        .collect()
}

fn draw_page(
    page: &[Line<'_>],
    frame: Frame,
    axis: &Axis<'_>,
    legend: &[(Mark, String)],
    places: bool,
) -> Result<Plot, Error> {
    let head = legend::height(legend) + 4.0;
    let frame = Frame {
        top: head,
        bottom: head + page.iter().map(Line::height).sum::<f64>(),
        ..frame
    };
    let title = "Worst share errors.";
    let caption = "Further to the left is nearer to what weights promise; markers that would hide each other \
                   stand below each other.";
    let svg = sheet::draw(
        frame.bottom + 52.0,
        &format!("{title} {caption}"),
        |sheet| {
            sheet.legend(legend)?;
            sheet.axes(frame, axis, None)?;
            let mut top = frame.top;
            for line in page {
                draw_line(sheet, frame, top, line, places)?;
                top += line.height();
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

fn draw_line(
    sheet: &Sheet<'_>,
    frame: Frame,
    top: f64,
    line: &Line<'_>,
    places: bool,
) -> Result<(), Error> {
    let middle = top + line.height() / 2.0;
    sheet.line(&[(0.0, top), (frame.right, top)], GRID, 0.6)?;
    let mut name = full_name(line.case);
    if places {
        name = format!("{name}, {}", line.case.place);
    }
    sheet.text(
        (frame.left - 10.0, middle),
        &fit(&name, frame.left - 12.0, 12.0),
        12.0,
        Side::Right,
    )?;
    for (controller, x, lane) in &line.marks {
        let y = top + GAP / 2.0 + LANE * (*lane as f64 + 0.5);
        sheet.marker((*x, y), look(controller), 4.2)?;
    }
    Ok(())
}
