//! Shares over time: a panel for each controller.

use super::axis::{Axis, Frame, share_label, share_ticks};
use super::legend::Mark;
use super::palette::{GROUP_FORMS, Look, look};
use super::sheet::{HEIGHT, Sheet, Side, WIDTH};
use super::words::{fit, fit_apart};
use super::{Error, Plot, legend, sheet};
use crate::input::{Outcome, Series};
use crate::reduce::{Case, Row};

const HIGH: f64 = 218.0;
const ACROSS: usize = 2;
const NAMES: f64 = 124.0;

type Panel<'a> = (&'a Row, &'a Outcome, &'a Series);

/// Of each controller, the first run that has one.
fn panels(case: &Case) -> Vec<Panel<'_>> {
    case.rows
        .iter()
        .filter_map(|row| {
            let mut runs = row
                .runs
                .iter()
                .filter_map(|r| Some((r, r.series.as_ref()?)));
            let (run, series) = runs.find(|(_, s)| s.t_ns.len() > 1)?;
            Some((row, run, series))
        })
        .collect()
}

/// As many groups as there are markers for.
fn groups(case: &Case) -> Vec<String> {
    let (shown, _) = case.shown();
    if shown.len() <= GROUP_FORMS.len() {
        return shown;
    }
    let last = shown.len() - 1;
    let step = GROUP_FORMS.len() - 1;
    (0..=step).map(|n| shown[n * last / step].clone()).collect()
}

/// Steps of time that give about six ticks.
fn time_ticks(seconds: f64) -> Vec<f64> {
    let rough = (seconds / 6.0).max(1e-6);
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power);
    let step = step.into_iter().find(|s| *s >= rough).unwrap_or(rough);
    (0..=(seconds / step) as u32)
        .map(|n| f64::from(n) * step)
        .collect()
}

/// One plot, or more where controllers are many.
pub fn draw(case: &Case) -> Result<Vec<Plot>, Error> {
    let all = panels(case);
    let names = groups(case);
    let values = || {
        let got = |(_, _, s): &Panel<'_>| {
            names
                .iter()
                .filter_map(|n| s.got.get(n))
                .flatten()
                .copied()
                .collect::<Vec<_>>()
        };
        all.iter().flat_map(got).flatten()
    };
    let entitled = || {
        case.rows
            .iter()
            .flat_map(|r| &r.groups)
            .filter(|g| names.contains(&g.name))
            .filter_map(|g| g.entitled)
    };
    let most = values()
        .chain(entitled())
        .filter(|v| v.is_finite())
        .fold(0.0, f64::max);
    let seconds = all
        .iter()
        .flat_map(|(_, _, s)| &s.t_ns)
        .fold(0.0_f64, |a, b| a.max(*b))
        / 1e9;
    let (end, ticks) = share_ticks(most.min(1.0));
    let x = Axis {
        range: (0.0, seconds.max(1e-6)),
        ticks: time_ticks(seconds),
        label: &|s| format!("{s}"),
        title: "time from the begin, s",
    };
    let y = Axis {
        range: (0.0, end),
        ticks,
        label: &share_label,
        title: "share",
    };
    let lines = ((HEIGHT - 40.0) / HIGH) as usize;
    let pages = all.chunks(lines * ACROSS);
    pages
        .map(|page| draw_page(page, &names, (&x, &y)))
        .collect()
}

fn draw_page(
    page: &[Panel<'_>],
    names: &[String],
    axes: (&Axis<'_>, &Axis<'_>),
) -> Result<Plot, Error> {
    let legend = vec![(Mark::Dashes, "entitled by weight and class".to_owned())];
    let head = legend::height(&legend);
    let high = head + page.len().div_ceil(ACROSS) as f64 * HIGH;
    let title = "Shares over time.";
    let caption = "One run of each controller; each line is a group and ends at its name.";
    let svg = sheet::draw(high, &format!("{title} {caption}"), |sheet| {
        sheet.legend(&legend)?;
        for (number, panel) in page.iter().enumerate() {
            let left = (number % ACROSS) as f64 * WIDTH / ACROSS as f64;
            let top = head + (number / ACROSS) as f64 * HIGH;
            let frame = Frame {
                left: left + 62.0,
                top: top + 28.0,
                right: left + WIDTH / ACROSS as f64 - NAMES - 20.0,
                bottom: top + HIGH - 54.0,
            };
            draw_panel(sheet, frame, panel, names, axes)?;
        }
        Ok(())
    })?;
    Ok(Plot {
        title: title.into(),
        caption: caption.into(),
        svg,
    })
}

fn draw_panel(
    sheet: &Sheet<'_>,
    frame: Frame,
    (row, run, series): &Panel<'_>,
    names: &[String],
    (x, y): (&Axis<'_>, &Axis<'_>),
) -> Result<(), Error> {
    sheet.axes(frame, x, Some(y))?;
    let name = match row.runs.len() {
        1 => row.controller.clone(),
        _ => {
            let runs = row.numbered();
            let number = runs.iter().find(|(_, r)| std::ptr::eq(*r, *run));
            format!("{}, run {}", row.controller, number.map_or(1, |(n, _)| *n))
        }
    };
    let own = look(&row.controller);
    sheet.marker((frame.left + 5.0, frame.top - 14.0), own, 4.5)?;
    let name = fit(&name, frame.right - frame.left, 13.5);
    sheet.bold(
        (frame.left + 16.0, frame.top - 14.0),
        &name,
        13.0,
        Side::Left,
    )?;
    for name in names {
        if let Some(entitled) = row.group(name).and_then(|g| g.entitled) {
            let height = frame.y(y, entitled);
            sheet.dashes((frame.left, height), (frame.right, height), 1.4)?;
        }
    }
    let mut ends = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let Some(got) = series.got.get(name) else {
            continue;
        };
        let points: Vec<_> = series
            .t_ns
            .iter()
            .zip(got)
            .filter_map(|(t, v)| Some((frame.x(x, t / 1e9), frame.y(y, (*v)?))))
            .collect();
        let form = GROUP_FORMS[number % GROUP_FORMS.len()];
        let look = Look { form, ..own };
        sheet.line(&points, look.colour, 1.8)?;
        // Few markers, and not those of all groups above each other.
        let every = (points.len() / 4).max(1);
        for point in points
            .iter()
            .skip(number * every / names.len().max(1))
            .step_by(every)
        {
            sheet.marker(*point, look, 3.2)?;
        }
        if let Some(end) = points.last() {
            ends.push((*end, name.as_str(), look));
        }
    }
    draw_names(sheet, frame, ends)
}

/// Names beside the ends of lines, moved apart where they would touch.
fn draw_names(
    sheet: &Sheet<'_>,
    frame: Frame,
    mut ends: Vec<((f64, f64), &str, Look)>,
) -> Result<(), Error> {
    const APART: f64 = 14.0;
    ends.sort_by(|a, b| a.0.1.total_cmp(&b.0.1));
    let mut heights: Vec<f64> = ends.iter().map(|e| e.0.1).collect();
    for n in 1..heights.len() {
        heights[n] = heights[n].max(heights[n - 1] + APART);
    }
    // The last ones were pushed down; those that hang below the axis push back up.
    let mut limit = frame.bottom;
    for height in heights.iter_mut().rev() {
        *height = height.min(limit);
        limit = *height - APART;
    }
    let names: Vec<_> = ends.iter().map(|e| e.1).collect();
    let names = fit_apart(&names, NAMES - 18.0, 11.5);
    for (((end, _, look), height), name) in ends.into_iter().zip(heights).zip(names) {
        let x = frame.right + 14.0;
        sheet.line(&[end, (x - 4.0, height)], look.colour, 0.8)?;
        sheet.marker((x, height), look, 3.2)?;
        sheet.text((x + 8.0, height), &name, 11.5, Side::Left)?;
    }
    Ok(())
}
