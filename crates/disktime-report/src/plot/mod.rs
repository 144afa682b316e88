//! Plots as SVG, for HTML.
//!
//! The labels of rows and panels are placed by this module and its axes by `plotters`: names of
//! scenarios are long, and what does not fit is shortened here rather than cut off there.

mod axis;
mod latency;
mod legend;
mod marker;
mod overview;
mod palette;
mod rows;
mod series;
mod shares;
mod sheet;
mod words;

use crate::document::Figure;

/// A plot that cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl<E: std::error::Error + Send + Sync> From<plotters::drawing::DrawingAreaErrorKind<E>>
    for Error
{
    fn from(error: plotters::drawing::DrawingAreaErrorKind<E>) -> Self {
        Self(error.to_string())
    }
}

/// A drawing and the words to it.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Plot {
    pub title: String,
    pub caption: String,
    pub svg: String,
}

/// Draws a figure, in several pieces where it would not fit on a page.
///
/// # Errors
/// If `plotters` says so.
pub fn draw(figure: Figure<'_>) -> Result<Vec<Plot>, Error> {
    match figure {
        Figure::Overview(cases) => overview::draw(cases),
        Figure::Shares(case) => shares::draw(case),
        Figure::Latency(case) => latency::draw(case),
        Figure::Series(case) => series::draw(case),
    }
}
