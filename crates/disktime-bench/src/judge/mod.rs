//! Judges the scheduler's algorithm in the simulator, where the truth is known.
//!
//! A change is better if more groups get what the weights promise of the device's *true* time, and if
//! sharing leaves more of what each could do alone: in all that scenarios say of shares ([`shares`]),
//! and for all pairs of unlike loads on flash ([`pairs`]). One reader's latency beside a full device
//! is measured against what can be had ([`front`]). The same scheduler is run with charges by the
//! model's account beside it: what is wrong there is not the accounting. All runs are simulations of
//! their own, so that they are spread over the machine's CPUs; the same arguments give the same
//! bytes.

mod direct;
pub mod front;
pub mod pairs;
pub mod shares;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Style};

use crate::scenario;

/// Judge the scheduler in the simulator: true shares, what sharing costs, flash, latency
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Random numbers: each simulation is made once with each seed
    #[arg(long, value_name = "N-N", default_value = "1-5")]
    seeds: Seeds,
    /// Seed 1 only
    #[arg(long, conflicts_with = "seeds")]
    quick: bool,
    /// Only what has one of these in its name: SCENARIO/VARIANT, pairs/DISK/A+B, front/DISK/NEIGHBOUR
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// A JSON object a line instead of tables
    #[arg(long)]
    json: bool,
    /// Where the scenarios are
    #[arg(long, value_name = "DIR", default_value = "scenarios")]
    scenarios: PathBuf,
}

/// `1-20`, `3`, `1,5-7`: in order, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seeds(Vec<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const MOST: u64 = 1000;
        let number = |text: &str| {
            let bad = || format!("{text:?} is no number: write 1-20, or 1,3,5");
            text.trim().parse::<u64>().map_err(|_| bad())
        };
        let mut seeds = BTreeSet::new();
        for part in text.split(',') {
            let (from, to) = match part.split_once('-') {
                Some((from, to)) => (number(from)?, number(to)?),
                None => (number(part)?, number(part)?),
            };
            if to < from || to - from >= MOST {
                return Err(format!("{part} is no range of at most {MOST} seeds"));
            }
            seeds.extend(from..=to);
        }
        Ok(Self(seeds.into_iter().collect()))
    }
}

/// What is asked for.
#[derive(Debug)]
struct Task {
    seeds: Vec<u64>,
    only: Vec<String>,
}

impl Task {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

/// The worst of several seeds, and the one in the middle.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The one that is furthest from what it should be.
    pub worst: f64,
    /// Half of them are better.
    pub median: f64,
}

impl Spread {
    /// Of values that should be small.
    fn of_small(values: &[f64]) -> Option<Self> {
        Self::of(values, f64::max)
    }

    /// Of values that should be large.
    fn of_large(values: &[f64]) -> Option<Self> {
        Self::of(values, f64::min)
    }

    fn of(values: &[f64], worse: fn(f64, f64) -> f64) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let worst = sorted.iter().copied().reduce(worse)?;
        let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
        Some(Self { worst, median })
    }

    /// The worst, and the median in brackets, with so many decimals.
    fn show(&self, decimals: usize) -> String {
        format!("{:.decimals$} ({:.decimals$})", self.worst, self.median)
    }
}

/// One thing that was judged: a line of the results, a row of a table.
#[derive(Debug, Serialize)]
#[serde(tag = "judge", rename_all = "lowercase")]
enum Line {
    Shares(shares::Row),
    Pair(pairs::Row),
    Front(front::Row),
}

/// How it compares with its limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// What must hold.
    pub name: &'static str,
    /// The value that was looked at.
    pub value: f64,
    /// The most or the least that it may be.
    pub limit: f64,
    /// Whether it does.
    pub ok: bool,
}

impl Verdict {
    /// What a table has for it.
    fn word(&self) -> &'static str {
        if self.ok { "ok" } else { "NOT" }
    }

    fn at_most(name: &'static str, value: f64, limit: f64) -> Self {
        let ok = value <= limit;
        Self {
            name,
            value,
            limit,
            ok,
        }
    }

    fn at_least(name: &'static str, value: f64, limit: f64) -> Self {
        let ok = value >= limit;
        Self {
            name,
            value,
            limit,
            ok,
        }
    }
}

impl Line {
    fn verdicts(&self) -> &[Verdict] {
        match self {
            Self::Shares(row) => &row.verdicts,
            Self::Pair(row) => &row.verdicts,
            Self::Front(row) => &row.verdicts,
        }
    }
}

impl Args {
    /// Runs all of it; the exit status.
    pub fn run(self) -> Result<u8> {
        let task = Task {
            seeds: if self.quick { vec![1] } else { self.seeds.0 },
            only: self.only,
        };
        let mut lines = Vec::new();
        let rows = shares::judge(&files(&self.scenarios)?, &task)?;
        lines.extend(rows.into_iter().map(Line::Shares));
        lines.extend(pairs::judge(&task)?.into_iter().map(Line::Pair));
        lines.extend(front::judge(&task)?.into_iter().map(Line::Front));
        if lines.is_empty() {
            bail!("nothing is left to judge: nothing has such a name");
        }
        if self.json {
            for line in &lines {
                println!("{}", serde_json::to_string(line)?);
            }
        } else {
            print!("{}", show(&lines));
        }
        let failed = lines.iter().flat_map(Line::verdicts).any(|v| !v.ok);
        Ok(if failed { 6 } else { 0 })
    }
}

/// All scenarios of a folder, by name.
fn files(dir: &Path) -> Result<Vec<scenario::Scenario>> {
    let cannot = || format!("cannot read {}", dir.display());
    let mut files = Vec::new();
    for entry in dir.read_dir().with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        if path.extension().is_some_and(|ext| ext == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files
        .iter()
        .map(|file| scenario::load(file))
        .collect::<Result<_, _>>()?)
}

fn show(lines: &[Line]) -> String {
    let mut text = String::new();
    let (mut of_shares, mut of_pairs, mut of_front) = (Vec::new(), Vec::new(), Vec::new());
    for line in lines {
        match line {
            Line::Shares(row) => of_shares.push(row),
            Line::Pair(row) => of_pairs.push(row),
            Line::Front(row) => of_front.push(row),
        }
    }
    text += &shares::show(&of_shares);
    text += &pairs::show(&of_pairs);
    text += &front::show(&of_front);
    let all: Vec<_> = lines.iter().flat_map(Line::verdicts).collect();
    let failed = all.iter().filter(|v| !v.ok).count();
    text + &format!("\n{} checks, {failed} do not hold\n", all.len())
}

/// A table with the first columns to the left and the rest to the right.
fn table(head: &[&str], rows: Vec<Vec<String>>, left: usize) -> String {
    let mut builder = Builder::default();
    builder.push_record(head.iter().copied());
    for row in rows {
        builder.push_record(row);
    }
    let mut table = builder.build();
    table.with(Style::psql());
    table.modify(Columns::new(left..), Alignment::right());
    format!("{table}\n")
}

/// Does the work of each item on all CPUs; what becomes of them, in the items' order. An error if
/// somebody has interrupted it.
fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let item = items.get(index).filter(|_| !disktime_vm::cancelled());
            let Some(item) = item else {
                return done;
            };
            done.push((index, work(item)));
        }
    };
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let workers: Vec<_> = (0..cpus).map(|_| scope.spawn(take)).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, Vec<_>>| match worker.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        workers.into_iter().flat_map(join).collect()
    });
    if done.len() < items.len() {
        bail!("interrupted");
    }
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_read_in_order_and_once() {
        let seeds = |text: &str| text.parse::<Seeds>().map(|s| s.0);
        assert_eq!(seeds("1-4").unwrap(), [1, 2, 3, 4]);
        assert_eq!(seeds("7,2-3,3").unwrap(), [2, 3, 7]);
        for bad in ["", "a", "3-1", "1-5000", "-2"] {
            assert!(seeds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn spread_is_the_worst_and_the_middle() {
        let of = |worst, median| Some(Spread { worst, median });
        assert_eq!(Spread::of_small(&[3.0, 1.0, 2.0]), of(3.0, 2.0));
        assert_eq!(Spread::of_large(&[3.0, 1.0, 2.0, 4.0]), of(1.0, 2.5));
        assert_eq!(Spread::of_small(&[]), None);
    }

    #[test]
    fn work_on_all_cpus_keeps_its_order() {
        let items: Vec<u64> = (0..100).collect();
        let done = each(&items, |&n| {
            // The first are the last to be done.
            thread::sleep(std::time::Duration::from_micros(200 - 2 * n));
            n * n
        })
        .unwrap();
        assert_eq!(done, items.iter().map(|n| n * n).collect::<Vec<_>>());
    }
}
