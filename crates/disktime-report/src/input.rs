//! Results as they are written: one JSON object a line.
//!
//! Whoever writes them may know more than this program, or less: unknown fields are skipped, and
//! nearly all that is known may be absent. What is not a result at all is refused with its place.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// The format's number that is understood here.
const FORMAT: u64 = 1;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {file}: {why}")]
    Unreadable {
        /// Its name.
        file: String,
        /// As the system said it.
        why: std::io::Error,
    },
    /// A line is not a result.
    #[error("{file}:{line}: {why}")]
    Broken {
        /// Whose line.
        file: String,
        /// From 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// There is nothing to report.
    #[error("no results in {0}")]
    Empty(String),
}

impl Error {
    /// One thing to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "name files that `disktime bench run --json FILE` wrote",
            Self::Broken { .. } => {
                "the files hold one result object a line, as `disktime bench run --json FILE` \
                 writes them; remove the line if its run was interrupted"
            }
            Self::Empty(_) => "write results first: disktime bench run SCENARIO.toml --json FILE",
        }
    }

    /// The exit status that tells it apart.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        2
    }
}

/// Takes null for what is absent.
fn lenient<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn yes() -> bool {
    true
}

fn once() -> u32 {
    1
}

/// Reads and writes apart.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Directions {
    pub read: u64,
    pub write: u64,
}

/// Latencies that a part of the requests did not exceed.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Latency {
    pub p50: Option<u64>,
    pub p99: Option<u64>,
    pub p999: Option<u64>,
    pub max: Option<u64>,
}

/// What one group had.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its weight.
    pub weight: Option<u64>,
    /// Its class.
    #[serde(default, deserialize_with = "lenient")]
    pub class: String,
    /// What the weights promise.
    pub entitled: Option<f64>,
    /// Its share of disk time, or of the I/Os where the controller knows no disk time.
    pub got: Option<f64>,
    /// Its share of the time that the model of the disk spent.
    pub true_share: Option<f64>,
    /// Its share of disk time by the trace.
    pub trace_share: Option<f64>,
    /// Its share of the I/Os.
    pub io_share: Option<f64>,
    /// I/Os.
    #[serde(default, deserialize_with = "lenient")]
    pub ios: Directions,
    /// Transactions a second.
    pub transactions_per_s: Option<f64>,
    /// Latencies.
    pub latency_ns: Option<Latency>,
    /// Latency in ns and which fraction of the requests did not exceed it, ascending.
    #[serde(default, deserialize_with = "lenient")]
    pub latency_curve: Vec<(f64, f64)>,
    /// When its jobs were done, from the begin.
    pub finished_ns: Option<u64>,
    /// The share that was published.
    pub published: Option<f64>,
    /// What to know about the published share.
    pub published_note: Option<String>,
}

/// A check and how it went.
#[derive(Debug, Clone, Deserialize)]
pub struct Check {
    /// What must hold.
    pub name: String,
    /// Whether it does; nothing where the run does not count.
    pub ok: Option<bool>,
    /// What was measured.
    pub value: Option<f64>,
}

/// Shares over time.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Series {
    /// The ends of the intervals, from the begin of the window.
    pub t_ns: Vec<f64>,
    /// The share of each group in each interval.
    pub got: BTreeMap<String, Vec<Option<f64>>>,
}

/// One phase of one run: a line.
#[derive(Debug, Clone, Deserialize)]
pub struct Outcome {
    /// Scenario's name.
    pub scenario: String,
    /// Variant's name, empty if there are none.
    #[serde(default, deserialize_with = "lenient")]
    pub variant: String,
    /// Phase's name, empty if there is one only.
    #[serde(default, deserialize_with = "lenient")]
    pub phase: String,
    /// Which repetition, from 1.
    #[serde(default = "once")]
    pub round: u32,
    /// `vm`, `sim` or `host`.
    pub on: String,
    /// Who scheduled.
    pub controller: String,
    /// The kernel's release.
    #[serde(default, deserialize_with = "lenient")]
    pub kernel: String,
    /// Whether its clock counted instructions, one a nanosecond.
    #[serde(default)]
    pub instructions: bool,
    /// For random numbers.
    pub seed: Option<u64>,
    /// The window's length.
    pub duration_ns: Option<u64>,
    /// The disk, in whatever terms it was described.
    #[serde(default)]
    pub disk: Value,
    /// The disk, in words.
    pub disk_title: Option<String>,
    /// As the kernel had it.
    pub nr_requests: Option<u64>,
    /// By group.
    #[serde(default, deserialize_with = "lenient")]
    pub groups: Vec<Group>,
    /// I/Os a second, all groups together.
    pub ios_per_s: Option<f64>,
    /// The same by that of `none`.
    pub none_ratio: Option<f64>,
    /// Whether the run counts.
    pub counted: Option<bool>,
    /// What must hold.
    #[serde(default, deserialize_with = "lenient")]
    pub checks: Vec<Check>,
    /// Why the run is not whole.
    pub error: Option<String>,
    /// What disktime said about itself at the end.
    pub health: Option<String>,
    /// The scenario in words.
    #[serde(default, deserialize_with = "lenient")]
    pub about: String,
    /// Who published it.
    #[serde(default, deserialize_with = "lenient")]
    pub source: String,
    /// How the controller was set.
    #[serde(default, deserialize_with = "lenient")]
    pub settings: BTreeMap<String, Value>,
    /// Shares over time.
    pub series: Option<Series>,
    /// Whether shares over the whole window are what the weights promise.
    #[serde(default = "yes")]
    pub promises_shares: bool,
    /// Whether the row is the better one of its controller.
    #[serde(default = "yes")]
    pub kept: bool,
    /// When it was measured.
    pub date: Option<String>,
}

/// All that was read.
#[derive(Debug, Default)]
pub struct Input {
    /// In the order of the files and their lines.
    pub outcomes: Vec<Outcome>,
    /// Lines that were there already, word by word.
    pub repeated: usize,
}

fn parse(line: &str) -> Result<Outcome, String> {
    // Its position is within the line, whose number is told otherwise.
    let plain = |e: serde_json::Error| e.to_string().replace(" at line 1 column ", " at column ");
    let value: Value = serde_json::from_str(line).map_err(plain)?;
    match value.get("disktime_result").map(Value::as_u64) {
        None => return Err("not a result: it has no disktime_result".into()),
        Some(Some(FORMAT)) => {}
        Some(_) => {
            return Err(format!(
                "its disktime_result is {}, and only {FORMAT} is understood",
                value["disktime_result"]
            ));
        }
    }
    let outcome: Outcome = serde_json::from_value(value).map_err(plain)?;
    for (key, text) in [
        ("scenario", &outcome.scenario),
        ("on", &outcome.on),
        ("controller", &outcome.controller),
    ] {
        if text.is_empty() {
            return Err(format!("its {key} is empty"));
        }
    }
    Ok(outcome)
}

impl Input {
    /// Adds the results of one file.
    ///
    /// # Errors
    /// If a line is not a result.
    pub fn add(
        &mut self,
        file: &str,
        text: &str,
        seen: &mut BTreeSet<String>,
    ) -> Result<(), Error> {
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() {
                continue;
            }
            let outcome = parse(line).map_err(|why| Error::Broken {
                file: file.into(),
                line: index + 1,
                why,
            })?;
            // The same file named twice must not look like two runs that agree.
            if seen.insert(line.into()) {
                self.outcomes.push(outcome);
            } else {
                self.repeated += 1;
            }
        }
        Ok(())
    }
}

/// Reads files, `-` being standard input.
///
/// # Errors
/// If a file cannot be read, if a line is not a result, if there are none.
pub fn read(files: &[impl AsRef<Path>]) -> Result<Input, Error> {
    let mut input = Input::default();
    let mut seen = BTreeSet::new();
    for file in files {
        let file = file.as_ref();
        let name = file.display().to_string();
        let text = if name == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        } else {
            fs::read_to_string(file)
        };
        let text = text.map_err(|why| Error::Unreadable {
            file: name.clone(),
            why,
        })?;
        input.add(&name, &text, &mut seen)?;
    }
    if input.outcomes.is_empty() {
        let names: Vec<_> = files
            .iter()
            .map(|f| f.as_ref().display().to_string())
            .collect();
        return Err(Error::Empty(names.join(", ")));
    }
    Ok(input)
}
