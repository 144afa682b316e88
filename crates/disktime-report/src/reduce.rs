//! Runs become cases: for each controller the median of its runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::input::{Group, Outcome};

/// Groups that a table or a plot shows at most.
pub const SHOWN: usize = 12;

/// Controllers in the order of all tables and plots; others follow by name.
pub const ORDER: [&str; 8] = [
    "disktime",
    "none",
    "mq-deadline",
    "mq-deadline+ioprio",
    "kyber",
    "bfq",
    "iocost",
    "fifo",
];

/// The place of a controller among others.
#[must_use]
pub fn rank(controller: &str) -> (usize, &str) {
    let known = ORDER.iter().position(|c| *c == controller);
    (known.unwrap_or(ORDER.len()), controller)
}

/// A value that was measured several times.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// Of values that are numbers; nothing of nothing.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = match values.len() % 2 {
            0 => f64::midpoint(values[middle - 1], values[middle]),
            _ => values[middle],
        };
        Some(Self { median, min, max })
    }
}

/// Which share is compared with what the weights promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// What the kernel's counters say.
    Got,
    /// What the model of the disk spent.
    Truth,
}

impl Measure {
    fn of(self, group: &Group) -> Option<f64> {
        match self {
            Self::Got => group.got,
            Self::Truth => group.true_share,
        }
    }
}

/// How far the group that is worst off is from what it should have, in points.
#[must_use]
pub fn worst_error(groups: &[Group], measure: Measure) -> Option<f64> {
    groups
        .iter()
        .filter_map(|g| Some((measure.of(g)? - g.entitled?).abs() * 100.0))
        .filter(|e| e.is_finite())
        .max_by(f64::total_cmp)
}

/// A group, all runs of one controller together.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "as in the input")]
pub struct GroupRow {
    pub name: String,
    pub weight: Option<u64>,
    pub class: String,
    pub entitled: Option<f64>,
    pub got: Option<Spread>,
    pub truth: Option<Spread>,
    pub traced: Option<Spread>,
    pub io_share: Option<Spread>,
    pub ios_per_s: Option<Spread>,
    pub transactions_per_s: Option<Spread>,
    pub p50: Option<Spread>,
    pub p99: Option<Spread>,
    pub p999: Option<Spread>,
    pub longest: Option<Spread>,
    pub finished: Option<Spread>,
    pub published: Option<f64>,
    pub published_note: Option<String>,
    /// Of the first run that has one.
    pub curve: Vec<(f64, f64)>,
}

impl GroupRow {
    /// By which groups are put in order: what they got of what they should have.
    fn ratio(&self) -> Option<f64> {
        let (got, entitled) = (self.got?.median, self.entitled?);
        match entitled > 0.0 {
            true => Some(got / entitled),
            false if got > 0.0 => Some(f64::INFINITY),
            false => Some(1.0),
        }
    }
}

/// One controller in one case.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name.
    pub controller: String,
    /// The runs that the numbers are of.
    pub runs: Vec<Outcome>,
    /// Runs that do not count or are not whole, beside those.
    pub failed: Vec<Outcome>,
    /// Whether the numbers may be compared; if not, `runs` are those that do not count.
    pub counts: bool,
    /// By group.
    pub groups: Vec<GroupRow>,
    /// Worst share error of each run, in points.
    pub worst: Option<Spread>,
    /// The same by the model's own time.
    pub worst_true: Option<Spread>,
    /// I/Os a second, all groups together.
    pub ios_per_s: Option<Spread>,
    /// The same by that of `none`.
    pub vs_none: Option<f64>,
}

impl Row {
    /// The worst share error.
    #[must_use]
    pub fn error(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Got => self.worst,
            Measure::Truth => self.worst_true,
        }
        .map(|s| s.median)
    }

    /// All runs, those that count first.
    pub fn all(&self) -> impl Iterator<Item = &Outcome> {
        self.runs.iter().chain(&self.failed)
    }

    /// All runs with a number each: the round's, unless files of several measurements repeat them.
    #[must_use]
    pub fn numbered(&self) -> Vec<(u32, &Outcome)> {
        let rounds: BTreeSet<_> = self.all().map(|r| r.round).collect();
        let unique = rounds.len() == self.all().count();
        let mut number = 0;
        let runs = self.all().map(|run| {
            number += 1;
            (if unique { run.round } else { number }, run)
        });
        runs.collect()
    }

    /// A group by name.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<&GroupRow> {
        self.groups.iter().find(|g| g.name == name)
    }
}

/// Same scenario, variant, phase, place and kernel: what controllers are compared in.
#[derive(Debug, Clone)]
pub struct Case {
    /// Scenario's name.
    pub scenario: String,
    /// Variant's name.
    pub variant: String,
    /// Phase's name.
    pub phase: String,
    /// `vm`, `sim` or `host`.
    pub on: String,
    /// The kernel's release.
    pub kernel: String,
    /// Whether its clock counted instructions, one a nanosecond.
    pub instructions: bool,
    /// Where it ran, in words: the kernel is told where there are several.
    pub place: String,
    /// In the order of all tables.
    pub rows: Vec<Row>,
    /// Rows that another of the same controller is better than.
    pub discarded: Vec<Row>,
}

impl Case {
    /// What it is, without its scenario and where it ran.
    #[must_use]
    pub fn part(&self) -> String {
        let parts = [self.variant.as_str(), self.phase.as_str()];
        let parts: Vec<_> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        parts.join(", ")
    }

    /// A controller's row.
    #[must_use]
    pub fn row(&self, controller: &str) -> Option<&Row> {
        self.rows.iter().find(|r| r.controller == controller)
    }

    /// The rows that have a share error and count.
    pub fn contestants(&self, measure: Measure) -> impl Iterator<Item = (&Row, f64)> {
        self.rows
            .iter()
            .filter(|r| r.counts)
            .filter_map(move |r| Some((r, r.error(measure)?)))
    }

    /// The least share error, where some controller has a greater one.
    #[must_use]
    pub fn best(&self, measure: Measure) -> Option<f64> {
        let errors = Spread::of(self.contestants(measure).map(|(_, e)| e))?;
        // What is printed alike is alike.
        (hundredths(errors.min) < hundredths(errors.max)).then_some(errors.min)
    }

    /// Names of the groups that are shown, and how many are not.
    ///
    /// Of many, those are chosen that lie at equal steps between the one that got the least of its
    /// share and the one that got the most, by the first controller.
    #[must_use]
    pub fn shown(&self) -> (Vec<String>, usize) {
        let mut names: Vec<String> = Vec::new();
        let mut known = BTreeSet::new();
        for group in self
            .rows
            .iter()
            .chain(&self.discarded)
            .flat_map(|r| &r.groups)
        {
            if known.insert(group.name.as_str()) {
                names.push(group.name.clone());
            }
        }
        let all = names.len();
        if all <= SHOWN {
            return (names, 0);
        }
        let row = self
            .rows
            .iter()
            .find(|r| r.groups.iter().any(|g| g.got.is_some()));
        let by_name: BTreeMap<_, _> = row
            .map(|r| {
                r.groups
                    .iter()
                    .map(|g| (g.name.as_str(), g.ratio()))
                    .collect()
            })
            .unwrap_or_default();
        let ratio = |name: &String| by_name.get(name.as_str()).copied().flatten().unwrap_or(1.0);
        let mut order: Vec<&String> = names.iter().collect();
        order.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let chosen = (0..SHOWN).map(|step| order[step * (all - 1) / (SHOWN - 1)]);
        let chosen: BTreeSet<_> = chosen.collect();
        let chosen = names.iter().filter(|n| chosen.contains(n)).cloned();
        (chosen.collect(), all - SHOWN)
    }
}

/// A number as two decimals show it.
#[must_use]
pub fn hundredths(value: f64) -> i64 {
    (value * 100.0).round() as i64
}

fn reduce_group(name: &str, runs: &[Outcome]) -> Option<GroupRow> {
    let all: Vec<(&Outcome, &Group)> = runs
        .iter()
        .filter_map(|run| Some((run, run.groups.iter().find(|g| g.name == name)?)))
        .collect();
    let (_, first) = all.first()?;
    let of = |value: &dyn Fn(&Group) -> Option<f64>| {
        Spread::of(all.iter().filter_map(|(_, g)| value(g)))
    };
    let rate = |(run, group): &(&Outcome, &Group)| {
        let ns = run.duration_ns.filter(|ns| *ns > 0)?;
        Some((group.ios.read + group.ios.write) as f64 * 1e9 / ns as f64)
    };
    Some(GroupRow {
        name: name.into(),
        weight: first.weight,
        class: first.class.clone(),
        entitled: of(&|g| g.entitled).map(|s| s.median),
        got: of(&|g| g.got),
        truth: of(&|g| g.true_share),
        traced: of(&|g| g.trace_share),
        io_share: of(&|g| g.io_share),
        ios_per_s: Spread::of(all.iter().filter_map(rate)),
        transactions_per_s: of(&|g| g.transactions_per_s),
        p50: of(&|g| Some(g.latency_ns?.p50? as f64)),
        p99: of(&|g| Some(g.latency_ns?.p99? as f64)),
        p999: of(&|g| Some(g.latency_ns?.p999? as f64)),
        longest: of(&|g| Some(g.latency_ns?.max? as f64)),
        finished: of(&|g| Some(g.finished_ns? as f64)),
        published: first.published,
        published_note: first.published_note.clone().filter(|n| !n.is_empty()),
        curve: all
            .iter()
            .find(|(_, g)| !g.latency_curve.is_empty())
            .map(|(_, g)| g.latency_curve.clone())
            .unwrap_or_default(),
    })
}

fn reduce_runs(controller: &str, all: Vec<Outcome>) -> Row {
    let counts = |o: &Outcome| o.counted != Some(false) && o.error.is_none();
    let (mut runs, mut failed): (Vec<_>, Vec<_>) = all.into_iter().partition(counts);
    let counts = !runs.is_empty();
    if !counts {
        runs = std::mem::take(&mut failed);
    }
    let mut names: Vec<&str> = Vec::new();
    let mut known = BTreeSet::new();
    for group in runs.iter().flat_map(|r| &r.groups) {
        if known.insert(group.name.as_str()) {
            names.push(&group.name);
        }
    }
    let worst = |measure| {
        let runs = runs.iter().filter(|r| r.promises_shares);
        Spread::of(runs.filter_map(|r| worst_error(&r.groups, measure)))
    };
    Row {
        controller: controller.into(),
        counts,
        groups: names
            .iter()
            .filter_map(|n| reduce_group(n, &runs))
            .collect(),
        worst: worst(Measure::Got),
        worst_true: worst(Measure::Truth),
        ios_per_s: Spread::of(runs.iter().filter_map(|r| r.ios_per_s)),
        vs_none: Spread::of(runs.iter().filter_map(|r| r.none_ratio)).map(|s| s.median),
        runs,
        failed,
    }
}

fn reduce_case(first: &Outcome, all: Vec<Outcome>) -> Case {
    let rows = |kept: bool| {
        let mut by_controller: BTreeMap<(usize, &str), Vec<Outcome>> = BTreeMap::new();
        for outcome in all.iter().filter(|o| o.kept == kept) {
            let runs = by_controller.entry(rank(&outcome.controller)).or_default();
            runs.push(outcome.clone());
        }
        let rows = by_controller.into_iter();
        rows.map(|((_, controller), runs)| reduce_runs(controller, runs))
            .collect::<Vec<_>>()
    };
    let (mut rows, mut discarded) = (rows(true), rows(false));
    let none = rows.iter().find(|r| r.controller == "none" && r.counts);
    if let Some(none) = none.and_then(|r| r.ios_per_s).filter(|s| s.median > 0.0) {
        for row in rows.iter_mut().chain(&mut discarded) {
            row.vs_none = row.ios_per_s.map(|s| s.median / none.median);
        }
    }
    Case {
        scenario: first.scenario.clone(),
        variant: first.variant.clone(),
        phase: first.phase.clone(),
        on: first.on.clone(),
        kernel: first.kernel.clone(),
        instructions: first.instructions,
        place: String::new(),
        rows,
        discarded,
    }
}

/// Cases in the order in which scenarios, then their variants and phases, first appear; of each, the
/// simulated one is the first.
#[must_use]
pub fn cases(outcomes: &[Outcome]) -> Vec<Case> {
    let mut scenarios = BTreeMap::new();
    let mut parts = BTreeMap::new();
    for (index, o) in outcomes.iter().enumerate() {
        scenarios.entry(o.scenario.as_str()).or_insert(index);
        parts
            .entry((o.scenario.as_str(), o.variant.as_str(), o.phase.as_str()))
            .or_insert(index);
    }
    let mut sorted: BTreeMap<_, Vec<Outcome>> = BTreeMap::new();
    for o in outcomes {
        let key = (
            scenarios[o.scenario.as_str()],
            parts[&(o.scenario.as_str(), o.variant.as_str(), o.phase.as_str())],
            o.on != "sim",
            o.on.as_str(),
            o.kernel.as_str(),
        );
        sorted.entry(key).or_default().push(o.clone());
    }
    let reduced = sorted.into_values();
    let mut cases: Vec<Case> = reduced
        .filter_map(|all| Some(reduce_case(&all.first()?.clone(), all)))
        .collect();
    let kernels: BTreeSet<_> = cases
        .iter()
        .map(|c| (c.on.clone(), c.kernel.clone()))
        .collect();
    for case in &mut cases {
        case.place = match kernels.iter().filter(|(on, _)| *on == case.on).count() {
            1 => case.on.clone(),
            _ => format!("{} {}", case.on, case.kernel).trim_end().into(),
        };
    }
    cases
}
