//! Progress on a terminal, plain lines elsewhere, both on standard error.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Where progress is shown.
#[derive(Debug, Clone)]
pub struct Progress {
    bars: Option<MultiProgress>,
    quiet: bool,
}

impl Progress {
    /// Bars if standard error is a terminal, else a line for each step.
    #[must_use]
    pub fn auto() -> Self {
        let bars = std::io::stderr().is_terminal().then(MultiProgress::new);
        Self { bars, quiet: false }
    }

    /// Shows nothing.
    #[must_use]
    pub fn none() -> Self {
        Self {
            bars: None,
            quiet: true,
        }
    }

    /// A line that does not disturb the bars.
    pub fn line(&self, text: &str) {
        match &self.bars {
            Some(bars) => {
                let _ = bars.println(text);
            }
            None if self.quiet => {}
            None => eprintln!("{text}"),
        }
    }

    /// A line of results, on standard output.
    pub(crate) fn output(&self, text: &str) {
        match &self.bars {
            Some(bars) => bars.suspend(|| println!("{text}")),
            None => println!("{text}"),
        }
    }

    fn add(&self, template: &str, length: Option<u64>, what: &str) -> Step {
        let Some(bars) = &self.bars else {
            if !self.quiet {
                eprintln!("{what} ...");
            }
            return Step { bar: None };
        };
        let bar = match length {
            Some(length) => ProgressBar::new(length),
            None => ProgressBar::new_spinner(),
        };
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        let bar = bars.add(bar.with_style(style).with_message(what.to_owned()));
        bar.enable_steady_tick(Duration::from_millis(100));
        Step { bar: Some(bar) }
    }

    pub(crate) fn spinner(&self, what: &str) -> Step {
        self.add("{spinner} {msg} {elapsed}", None, what)
    }

    pub(crate) fn bytes(&self, what: &str, total: u64) -> Step {
        let template = "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec}, {eta} to go";
        self.add(template, Some(total), what)
    }

    pub(crate) fn count(&self, what: &str, total: u64) -> Step {
        self.add("[{bar:30}] {pos}/{len} {elapsed} {msg}", Some(total), what)
    }
}

/// One step that runs; its bar disappears when it is dropped.
#[derive(Debug)]
pub(crate) struct Step {
    bar: Option<ProgressBar>,
}

impl Step {
    pub(crate) fn set(&self, position: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(position);
        }
    }

    pub(crate) fn inc(&self) {
        if let Some(bar) = &self.bar {
            bar.inc(1);
        }
    }

    pub(crate) fn message(&self, text: String) {
        if let Some(bar) = &self.bar {
            bar.set_message(text);
        }
    }

    pub(crate) fn finish(self) {}
}

impl Drop for Step {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
