//! A sheet to draw on: sizes in CSS pixels, words that fit, axes.

use std::ops::Range;

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::element::{PathElement, Rectangle, Text};
use plotters::prelude::{Cartesian2d, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontFamily, FontStyle, IntoFont, RGBColor, ShapeStyle, TextStyle};

use super::Error;
use super::axis::{Axis, Frame};
use super::palette::{GRID, INK, PAPER, SOFT};

/// As wide as the text beside it.
pub const WIDTH: f64 = 960.0;
/// Higher ones are cut, for a printed page to hold them.
pub const HEIGHT: f64 = 1150.0;

/// `plotters` knows whole pixels only; the sheet has this many of them in one.
const FINE: f64 = 4.0;
/// `plotters` divides a font's size by this, without saying why.
const FONT: f64 = 1.24;

const FAMILY: &str =
    "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif";

/// Stands for dashes of ink until the drawing is done: `plotters` would draw each of them by itself.
const DASHED: RGBColor = RGBColor(0x1a, 0x1a, 0x1b);

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Scale, Scale>>;

/// An axis as `plotters` wants it. Its own one of floats with chosen ticks has no mesh.
struct Scale {
    range: (f64, f64),
    ticks: Vec<f64>,
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let part = (value - self.range.0) / (self.range.1 - self.range.0);
        from + (part * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Lines between those of the ticks would be light ones; there are none.
        match hint.weight().allow_light_points() {
            true => Vec::new(),
            false => self.ticks.clone(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.0..self.range.1
    }
}

/// Where a text stands from its point.
#[derive(Debug, Clone, Copy)]
pub enum Side {
    Left,
    Right,
}

/// What is drawn.
pub struct Sheet<'a> {
    pub(super) area: Area<'a>,
}

pub fn fine(value: f64) -> i32 {
    (value * FINE).round() as i32
}

pub fn at((x, y): (f64, f64)) -> (i32, i32) {
    (fine(x), fine(y))
}

pub fn stroke(colour: RGBColor, width: f64) -> ShapeStyle {
    colour.stroke_width(fine(width) as u32)
}

fn font(size: f64, bold: bool) -> TextStyle<'static> {
    let style = if bold {
        FontStyle::Bold
    } else {
        FontStyle::Normal
    };
    let font = (FontFamily::Name(FAMILY), size * FINE * FONT).into_font();
    TextStyle::from(font.style(style)).color(&INK)
}

/// Draws on a sheet of a height; `words` tell those who cannot see it what it shows.
pub fn draw(
    height: f64,
    words: &str,
    on: impl FnOnce(&Sheet<'_>) -> Result<(), Error>,
) -> Result<String, Error> {
    let mut svg = String::new();
    {
        let size = (fine(WIDTH) as u32, fine(height) as u32);
        let sheet = Sheet {
            area: SVGBackend::with_string(&mut svg, size).into_drawing_area(),
        };
        on(&sheet)?;
        sheet.area.present()?;
    }
    // The size is the page's to decide. What all elements have in common is said once, which makes
    // pages half as long.
    let begin = svg.find('>').map_or(0, |end| end + 1);
    let (wide, high) = (fine(WIDTH), fine(height));
    let head = maud::html! { title { (words) } }.into_string();
    let font = format!(" font-family=\"{}\"", FAMILY.replace('\'', "&apos;"));
    let body = svg[begin..]
        .replace(&font, "")
        .replace(" opacity=\"1\"", "")
        .replace(
            "stroke=\"#1A1A1B\"",
            "stroke=\"#1A1A1A\" stroke-dasharray=\"20 14\"",
        )
        .replace(">\n", ">");
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" \
         font-family=\"{FAMILY}\" role=\"img\">{head}{body}"
    ))
}

impl Sheet<'_> {
    /// A line through points.
    pub fn line(&self, points: &[(f64, f64)], colour: RGBColor, width: f64) -> Result<(), Error> {
        let points: Vec<_> = points.iter().copied().map(at).collect();
        Ok(self
            .area
            .draw(&PathElement::new(points, stroke(colour, width)))?)
    }

    /// A line of dashes.
    pub fn dashes(&self, from: (f64, f64), to: (f64, f64), width: f64) -> Result<(), Error> {
        self.line(&[from, to], DASHED, width)
    }

    /// A filled or hollow rectangle.
    pub fn bar(
        &self,
        from: (f64, f64),
        to: (f64, f64),
        colour: RGBColor,
        filled: bool,
    ) -> Result<(), Error> {
        let style = if filled {
            colour.filled()
        } else {
            stroke(colour, 1.2)
        };
        Ok(self.area.draw(&Rectangle::new([at(from), at(to)], style))?)
    }

    /// A text beside a point, at half of its height.
    pub fn text(&self, (x, y): (f64, f64), text: &str, size: f64, side: Side) -> Result<(), Error> {
        self.words((x, y), text, font(size, false), side)
    }

    /// The same for what is less important.
    pub fn soft(&self, (x, y): (f64, f64), text: &str, size: f64, side: Side) -> Result<(), Error> {
        self.words((x, y), text, font(size, false).color(&SOFT), side)
    }

    /// The same for headings.
    pub fn bold(&self, (x, y): (f64, f64), text: &str, size: f64, side: Side) -> Result<(), Error> {
        self.words((x, y), text, font(size, true), side)
    }

    fn words(
        &self,
        (x, y): (f64, f64),
        text: &str,
        style: TextStyle<'_>,
        side: Side,
    ) -> Result<(), Error> {
        let from = match side {
            Side::Left => HPos::Left,
            Side::Right => HPos::Right,
        };
        let style = style.pos(Pos::new(from, VPos::Center));
        Ok(self
            .area
            .draw(&Text::new(text.to_owned(), at((x, y)), style))?)
    }

    /// Axes around a frame, which is inside of them. Without `y`, only the lower one.
    pub fn axes(&self, frame: Frame, x: &Axis<'_>, y: Option<&Axis<'_>>) -> Result<(), Error> {
        const BELOW: f64 = 42.0;
        const BESIDE: f64 = 62.0;
        let left = if y.is_some() { BESIDE } else { 0.0 };
        let part = self.area.clone().shrink(
            at((frame.left - left, frame.top)),
            (
                fine(frame.right - frame.left + left),
                fine(frame.bottom - frame.top + BELOW),
            ),
        );
        let scale = |a: &Axis<'_>| Scale {
            range: a.range,
            ticks: a.ticks.clone(),
        };
        let blank = Axis {
            range: (0.0, 1.0),
            ticks: Vec::new(),
            label: &|_| String::new(),
            title: "",
        };
        let upright = y.unwrap_or(&blank);
        let mut chart: Chart<'_> = ChartBuilder::on(&part)
            .x_label_area_size(fine(BELOW))
            .y_label_area_size(fine(left))
            .build_cartesian_2d(scale(x), scale(upright))?;
        let small = font(11.0, false).color(&SOFT);
        let mut mesh = chart.configure_mesh();
        mesh.bold_line_style(stroke(GRID, 0.8))
            .light_line_style(PAPER.mix(0.0))
            .axis_style(stroke(SOFT, 0.8))
            .label_style(small.clone())
            .axis_desc_style(font(11.5, false))
            .set_all_tick_mark_size(fine(3.0))
            .x_desc(x.title)
            .y_desc(upright.title);
        let (x_label, y_label) = (|v: &f64| (x.label)(*v), |v: &f64| (upright.label)(*v));
        mesh.x_label_formatter(&x_label).y_label_formatter(&y_label);
        if y.is_none() {
            mesh.disable_y_mesh().disable_y_axis();
        }
        Ok(mesh.draw()?)
    }
}
