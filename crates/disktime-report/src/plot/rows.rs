//! The layout of plots with a block for each group and a line in it for each controller.

use super::axis::{Axis, Frame};
use super::legend::Mark;
use super::sheet::{HEIGHT, Sheet, Side, WIDTH};
use super::words::fit;
use super::{Error, Plot, legend, sheet};
use crate::reduce::{Case, GroupRow, Row};

const LINE: f64 = 17.0;
const GAP: f64 = 13.0;
const NAMES: f64 = 190.0;
const LEFT: f64 = 345.0;
const RIGHT: f64 = 872.0;
const BELOW: f64 = 52.0;

/// A group and what each controller gave it.
pub struct Block<'a> {
    /// Its name.
    pub name: String,
    /// Below its name.
    pub about: String,
    /// Those that know it.
    pub lines: Vec<(&'a Row, &'a GroupRow)>,
}

impl Block<'_> {
    fn height(&self) -> f64 {
        (self.lines.len() as f64 * LINE).max(2.0 * LINE) + GAP
    }
}

/// The groups of a case that are shown and have what is asked for.
pub fn blocks<'a>(case: &'a Case, known: impl Fn(&GroupRow) -> bool) -> Vec<Block<'a>> {
    let (shown, _) = case.shown();
    let block = |name: String| {
        let lines: Vec<_> = case
            .rows
            .iter()
            .filter_map(|r| Some((r, r.group(&name).filter(|g| known(g))?)))
            .collect();
        let (_, group) = lines.first()?;
        let about = group
            .weight
            .map_or(String::new(), |w| format!("weight {w}"));
        Some(Block { name, about, lines })
    };
    shown.into_iter().filter_map(block).collect()
}

/// Parts that fit on a page each.
pub fn pages(blocks: Vec<Block<'_>>) -> Vec<Vec<Block<'_>>> {
    let mut pages: Vec<Vec<Block<'_>>> = Vec::new();
    let mut used = f64::INFINITY;
    for block in blocks {
        let height = block.height();
        if used + height > HEIGHT - 120.0 {
            pages.push(Vec::new());
            used = 0.0;
        }
        used += height;
        if let Some(page) = pages.last_mut() {
            page.push(block);
        }
    }
    pages
}

/// Draws a line: within the block, at a height.
type DrawLine<'a> = dyn Fn(&Sheet<'_>, Frame, f64, &Row, &GroupRow) -> Result<(), Error> + 'a;
/// Draws over a whole block.
type DrawOver<'a> = dyn Fn(&Sheet<'_>, Frame, &GroupRow) -> Result<(), Error> + 'a;

/// How a plot of blocks looks.
pub struct Manner<'a> {
    /// Above the plot.
    pub title: String,
    /// The words after it.
    pub caption: String,
    /// What marks mean.
    pub legend: Vec<(Mark, String)>,
    /// Below the plot.
    pub axis: Axis<'a>,
    /// Above the values at the right.
    pub values: &'a str,
    /// The value at the right.
    pub value: &'a dyn Fn(&GroupRow) -> String,
    /// Draws a controller's line.
    pub line: &'a DrawLine<'a>,
    /// Draws what belongs to the whole block.
    pub over: &'a DrawOver<'a>,
}

/// Draws one page.
pub fn draw(blocks: &[Block<'_>], manner: &Manner<'_>) -> Result<Plot, Error> {
    let head = legend::height(&manner.legend) + 16.0;
    let high: f64 = blocks.iter().map(Block::height).sum();
    let frame = Frame {
        left: LEFT,
        top: head,
        right: RIGHT,
        bottom: head + high,
    };
    let words = format!("{} {}", manner.title, manner.caption);
    let svg = sheet::draw(frame.bottom + BELOW, &words, |sheet| {
        sheet.legend(&manner.legend)?;
        sheet.axes(frame, &manner.axis, None)?;
        sheet.soft((WIDTH - 2.0, head - 9.0), manner.values, 11.0, Side::Right)?;
        let mut top = frame.top;
        for block in blocks {
            draw_block(
                sheet,
                Frame {
                    top,
                    bottom: top + block.height(),
                    ..frame
                },
                block,
                manner,
            )?;
            top += block.height();
        }
        Ok(())
    })?;
    Ok(Plot {
        title: manner.title.clone(),
        caption: manner.caption.clone(),
        svg,
    })
}

fn draw_block(
    sheet: &Sheet<'_>,
    frame: Frame,
    block: &Block<'_>,
    manner: &Manner<'_>,
) -> Result<(), Error> {
    let top = frame.top + GAP / 2.0;
    sheet.line(
        &[(0.0, frame.top), (frame.left, frame.top)],
        super::palette::GRID,
        0.8,
    )?;
    let name = fit(&block.name, NAMES, 13.5);
    sheet.bold((0.0, top + LINE / 2.0), &name, 13.0, Side::Left)?;
    sheet.soft((0.0, top + LINE * 1.45), &block.about, 11.0, Side::Left)?;
    for (number, (row, group)) in block.lines.iter().enumerate() {
        let y = top + LINE * (number as f64 + 0.5);
        let name = match row.counts {
            true => row.controller.clone(),
            false => format!("({})", row.controller),
        };
        let name = fit(&name, LEFT - NAMES - 16.0, 12.0);
        sheet.text((frame.left - 8.0, y), &name, 12.0, Side::Right)?;
        (manner.line)(sheet, frame, y, row, group)?;
        sheet.text((WIDTH - 2.0, y), &(manner.value)(group), 11.5, Side::Right)?;
    }
    let inside = Frame {
        top: top - 3.0,
        bottom: frame.bottom - GAP / 2.0 + 3.0,
        ..frame
    };
    match block.lines.first() {
        Some((_, group)) => (manner.over)(sheet, inside, group),
        None => Ok(()),
    }
}
