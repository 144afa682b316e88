//! What marks mean, in lines above a plot.

use super::Error;
use super::palette::{INK, Look};
use super::sheet::{Sheet, Side, WIDTH};
use super::words::{fit, width};

/// What a legend explains.
#[derive(Debug, Clone, Copy)]
pub enum Mark {
    Controller(Look),
    Point(Look),
    Upright(f64, f64),
    Dashes,
    Hollow,
    Range,
}

/// Where each mark stands: from the left, in which line.
fn places(entries: &[(Mark, String)]) -> Vec<(f64, f64)> {
    let (mut x, mut line) = (0.0, 0.0);
    let place = |(_, name): &(Mark, String)| {
        let need = 48.0 + width(&short(name), 12.0);
        if x > 0.0 && x + need > WIDTH {
            x = 0.0;
            line += 1.0;
        }
        let here = (x, line);
        x += need;
        here
    };
    entries.iter().map(place).collect()
}

fn short(name: &str) -> String {
    fit(name, WIDTH - 60.0, 12.0)
}

/// How high a legend is.
pub fn height(entries: &[(Mark, String)]) -> f64 {
    let lines = places(entries).last().map_or(1.0, |(_, line)| line + 1.0);
    lines * LINE + 6.0
}

const LINE: f64 = 20.0;

impl Sheet<'_> {
    /// Explains marks, from the sheet's top.
    pub fn legend(&self, entries: &[(Mark, String)]) -> Result<(), Error> {
        for ((mark, name), (x, line)) in entries.iter().zip(places(entries)) {
            let y = line * LINE + 9.0;
            self.mark((x + 14.0, y), *mark)?;
            self.text((x + 32.0, y), &short(name), 12.0, Side::Left)?;
        }
        Ok(())
    }

    fn mark(&self, (x, y): (f64, f64), mark: Mark) -> Result<(), Error> {
        match mark {
            Mark::Controller(look) => {
                self.line(&[(x - 12.0, y), (x + 12.0, y)], look.colour, 2.0)?;
                self.marker((x, y), look, 4.5)
            }
            Mark::Point(look) => self.marker((x, y), look, 4.5),
            Mark::Upright(high, wide) => self.line(&[(x, y - high), (x, y + high)], INK, wide),
            Mark::Hollow => self.bar((x - 11.0, y - 5.0), (x + 11.0, y + 5.0), INK, false),
            Mark::Dashes => self.dashes((x - 12.0, y), (x + 12.0, y), 1.4),
            Mark::Range => {
                self.line(&[(x - 11.0, y), (x + 11.0, y)], INK, 1.2)?;
                self.line(&[(x - 11.0, y - 3.5), (x - 11.0, y + 3.5)], INK, 1.2)?;
                self.line(&[(x + 11.0, y - 3.5), (x + 11.0, y + 3.5)], INK, 1.2)
            }
        }
    }
}
