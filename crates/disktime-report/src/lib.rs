//! Turns measured results into a report: text for a terminal, Markdown, or HTML with plots.
//!
//! The seam to the program that measures is its file of results, one JSON object a line. What is read
//! becomes cases (`reduce`), cases become a document (`compose`), and a document takes one of three
//! shapes.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod compose;
pub mod document;
pub mod html;
pub mod input;
pub mod markdown;
mod number;
pub mod plot;
pub mod reduce;
pub mod terminal;
pub mod verdict;

use std::fs;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

pub use crate::input::Error;
use crate::input::Input;
use crate::terminal::Screen;

/// What a report looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    /// Tables in lines that fit
    Terminal,
    /// GitHub's Markdown
    Markdown,
    /// One self-contained file with plots
    Html,
}

/// Turn result files into a report
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "Examples:\n  \
    disktime bench report results.jsonl\n  \
    disktime bench report sim.jsonl vm.jsonl --out report.html\n  \
    disktime bench report results.jsonl -o markdown --out docs/RESULTS.md\n\n\
    Exit status: 0 ok, 1 failed, 2 usage, or a line that is not a result.")]
pub struct Args {
    /// Files with one result object a line, - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// What to make [default: by the end of --out's name, else terminal]
    #[arg(short, long, value_enum, value_name = "SHAPE")]
    output: Option<Shape>,
    /// Write to FILE instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The report's heading
    #[arg(long, value_name = "TEXT", default_value = "disktime: results")]
    title: String,
    /// Paragraphs to begin with, divided by empty lines: how the figures came about
    #[arg(long, value_name = "FILE")]
    notes: Option<PathBuf>,
}

/// The shape that a file's name asks for.
fn shape_of(file: &Path) -> Option<Shape> {
    match file.extension()?.to_str()? {
        "html" | "htm" => Some(Shape::Html),
        "md" | "markdown" => Some(Shape::Markdown),
        _ => None,
    }
}

/// A text's paragraphs, each in one line.
fn paragraphs(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let blocks = lines.split(|l| l.is_empty());
    blocks
        .map(|b| b.join(" "))
        .filter(|b| !b.is_empty())
        .collect()
}

/// Makes a report; `notes` are paragraphs that it begins with.
///
/// # Errors
/// If a plot cannot be drawn.
pub fn report(
    input: &Input,
    title: &str,
    notes: &[String],
    shape: Shape,
    screen: Screen,
) -> Result<String> {
    let cases = reduce::cases(&input.outcomes);
    let document = compose::compose(title, notes, &cases, input.repeated);
    Ok(match shape {
        Shape::Terminal => terminal::render(&document, screen),
        Shape::Markdown => markdown::render(&document),
        Shape::Html => html::render(&document).context("cannot draw a plot")?,
    })
}

/// The hint and the exit status that an error of this crate comes with.
#[must_use]
pub fn advice(error: &anyhow::Error) -> (Option<&'static str>, u8) {
    error
        .downcast_ref::<Error>()
        .map_or((None, 1), |e| (Some(e.hint()), e.exit_code()))
}

impl Args {
    /// Reads, makes the report, writes it. The exit status is 0: checks that failed are what it tells
    /// of, not what failed here.
    ///
    /// # Errors
    /// If a file cannot be read or written, or is not of results; `advice` says what to do.
    pub fn run(self) -> Result<u8> {
        let input = input::read(&self.files)?;
        let by_name = self.out.as_deref().and_then(shape_of);
        let shape = self.output.or(by_name).unwrap_or(Shape::Terminal);
        let screen = self.screen();
        let notes = match &self.notes {
            Some(file) => paragraphs(
                &fs::read_to_string(file)
                    .with_context(|| format!("cannot read {}", file.display()))?,
            ),
            None => Vec::new(),
        };
        let text = report(&input, &self.title, &notes, shape, screen)?;
        match &self.out {
            Some(file) => {
                fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?
            }
            None => print(&text)?,
        }
        Ok(0)
    }

    fn screen(&self) -> Screen {
        let terminal = self.out.is_none() && io::stdout().is_terminal();
        let asked = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
        let found = || terminal_size::terminal_size().map(|(w, _)| usize::from(w.0));
        let plain = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Screen {
            width: asked.or_else(|| if terminal { found() } else { None }),
            colour: terminal && !plain,
        }
    }
}

/// Prints data. A reader that has seen enough is no error.
fn print(text: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to stdout")
        }
        _ => Ok(()),
    }
}
