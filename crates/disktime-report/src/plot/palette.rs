//! How controllers look: always the same, and told apart without colours, too.

use plotters::style::RGBColor;

/// What is neither data nor background.
pub const INK: RGBColor = RGBColor(26, 26, 26);
/// Words beside the data.
pub const SOFT: RGBColor = RGBColor(85, 85, 85);
/// Lines behind the data.
pub const GRID: RGBColor = RGBColor(222, 222, 222);
/// Behind everything.
pub const PAPER: RGBColor = RGBColor(255, 255, 255);

/// A marker's form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Circle,
    Square,
    Diamond,
    Up,
    Down,
    Cross,
    Plus,
    Ring,
    Frame,
    HollowDiamond,
}

/// A controller's colour and marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    pub colour: RGBColor,
    pub form: Form,
}

// Okabe and Ito's colours, but for grey: they differ for the colour-blind, too. Yellow is left out,
// a line of it is not seen on white.
const GREY: RGBColor = RGBColor(118, 118, 118);
const BLACK: RGBColor = RGBColor(0, 0, 0);
const BLUE: RGBColor = RGBColor(0, 114, 178);
const SKY: RGBColor = RGBColor(86, 180, 233);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const ORANGE: RGBColor = RGBColor(230, 159, 0);
const VERMILION: RGBColor = RGBColor(213, 94, 0);
const PURPLE: RGBColor = RGBColor(204, 121, 167);

/// The look of a controller. One that is not known here has a look that follows from its name alone,
/// so that it is the same in all reports.
pub fn look(controller: &str) -> Look {
    let (colour, form) = match controller {
        "disktime" => (BLUE, Form::Circle),
        "none" => (GREY, Form::Cross),
        "mq-deadline" => (SKY, Form::Square),
        "mq-deadline+ioprio" => (PURPLE, Form::Diamond),
        "kyber" => (GREEN, Form::Up),
        "bfq" => (ORANGE, Form::Down),
        "iocost" => (VERMILION, Form::Plus),
        "fifo" => (BLACK, Form::Ring),
        other => {
            let sum: usize = other.bytes().map(usize::from).sum();
            let colours = [BLACK, GREEN, VERMILION, PURPLE, GREY];
            let forms = [Form::Frame, Form::HollowDiamond];
            (colours[sum % colours.len()], forms[sum % forms.len()])
        }
    };
    Look { colour, form }
}

/// Markers of groups, in plots where the colour is the controller's.
pub const GROUP_FORMS: [Form; 6] = [
    Form::Circle,
    Form::Square,
    Form::Up,
    Form::Diamond,
    Form::Down,
    Form::Frame,
];
