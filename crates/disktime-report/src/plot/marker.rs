//! Markers.

use plotters::element::{Circle, PathElement, Polygon};
use plotters::style::Color;

use super::Error;
use super::palette::{Form, Look, PAPER};
use super::sheet::{Sheet, at, fine, stroke};

impl Sheet<'_> {
    /// A marker, on a rim of paper that parts it from others.
    pub fn marker(&self, (x, y): (f64, f64), look: Look, size: f64) -> Result<(), Error> {
        let shape = |points: &[(f64, f64)]| -> Vec<(i32, i32)> {
            points
                .iter()
                .map(|(dx, dy)| at((x + dx * size, y + dy * size)))
                .collect()
        };
        let fill = |points: &[(f64, f64)]| -> Result<(), Error> {
            let mut rim = shape(points);
            rim.push(rim[0]);
            self.area.draw(&PathElement::new(rim, stroke(PAPER, 2.0)))?;
            Ok(self
                .area
                .draw(&Polygon::new(shape(points), look.colour.filled()))?)
        };
        let outline = |points: &[(f64, f64)]| -> Result<(), Error> {
            self.area
                .draw(&Polygon::new(shape(points), PAPER.filled()))?;
            let mut rim = shape(points);
            rim.push(rim[0]);
            Ok(self
                .area
                .draw(&PathElement::new(rim, stroke(look.colour, 1.8)))?)
        };
        let strokes = |lines: [[(f64, f64); 2]; 2]| -> Result<(), Error> {
            for (colour, width) in [(PAPER, 4.0), (look.colour, 2.2)] {
                for line in &lines {
                    self.area
                        .draw(&PathElement::new(shape(line), stroke(colour, width)))?;
                }
            }
            Ok(())
        };
        const SQUARE: [(f64, f64); 4] = [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)];
        const DIAMOND: [(f64, f64); 4] = [(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)];
        match look.form {
            Form::Circle => {
                self.area
                    .draw(&Circle::new(at((x, y)), fine(size + 1.0), PAPER.filled()))?;
                self.area
                    .draw(&Circle::new(at((x, y)), fine(size), look.colour.filled()))?;
                Ok(())
            }
            Form::Ring => {
                self.area
                    .draw(&Circle::new(at((x, y)), fine(size), PAPER.filled()))?;
                self.area.draw(&Circle::new(
                    at((x, y)),
                    fine(size),
                    stroke(look.colour, 1.8),
                ))?;
                Ok(())
            }
            Form::Square => fill(&SQUARE),
            Form::Frame => outline(&SQUARE),
            Form::Diamond => fill(&DIAMOND),
            Form::HollowDiamond => outline(&DIAMOND),
            Form::Up => fill(&[(0.0, -1.15), (1.15, 0.95), (-1.15, 0.95)]),
            Form::Down => fill(&[(0.0, 1.15), (1.15, -0.95), (-1.15, -0.95)]),
            Form::Cross => strokes([[(-0.9, -0.9), (0.9, 0.9)], [(-0.9, 0.9), (0.9, -0.9)]]),
            Form::Plus => strokes([[(-1.15, 0.0), (1.15, 0.0)], [(0.0, -1.15), (0.0, 1.15)]]),
        }
    }
}
