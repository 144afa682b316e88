//! What a scenario says must hold, and whether it does.

use crate::scenario::{Check, Metric, Scenario};

use super::outcome::{CheckResult, GroupResult, Outcome, TraceFacts};
use super::paired;
use super::{jain, median, part};

/// What was measured.
struct Value {
    of: String,
    value: Option<f64>,
    /// What the weights promise.
    promised: Option<f64>,
    /// Where it is with some confidence; bounds are for both ends.
    interval: Option<(f64, f64)>,
}

impl Value {
    fn new(of: String, value: Option<f64>, promised: Option<f64>) -> Self {
        Self {
            of,
            value,
            promised,
            interval: None,
        }
    }
}

/// Forgets the promised shares of values that are no shares.
fn unpromised(mut values: Vec<Value>) -> Vec<Value> {
    for value in &mut values {
        value.promised = None;
    }
    values
}

/// Runs all checks of the scenarios. Each result goes to the outcome that it is about; those over
/// several rounds to the last.
pub fn check(outcomes: &mut [Outcome], scenarios: &[Scenario]) {
    for scenario in scenarios {
        for check in &scenario.checks {
            for index in 0..outcomes.len() {
                let outcome = &outcomes[index];
                if outcome.scenario != *scenario.name.get_ref() || !check.is_about(outcome) {
                    continue;
                }
                let results = check.results(outcome, outcomes);
                outcomes[index].checks.extend(results);
            }
        }
    }
    for outcome in outcomes {
        let sound = CheckResult {
            name: "the run went through".into(),
            ok: None,
            value: None,
        };
        if outcome.error.is_some() {
            outcome.checks.push(CheckResult {
                ok: Some(false),
                ..sound
            });
        }
        if let Some(trace) = &outcome.trace {
            let broken = trace.lost + trace.orphans + trace.unfinished;
            if broken > 0 {
                let name = "every request of the trace has a beginning and an end".into();
                let value = Some(broken as f64);
                outcome.checks.push(CheckResult {
                    name,
                    ok: Some(false),
                    value,
                });
            }
        }
        if outcome.health.as_ref().is_some_and(|h| h != "ok") {
            let name = "health is ok".into();
            outcome.checks.push(CheckResult {
                name,
                ok: Some(false),
                value: None,
            });
        }
    }
}

/// Why not one check has an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unchecked {
    /// The machine could not load the disk in any run that would have been checked.
    TooSlow,
    /// The variants or controllers that the checks compare with were not run.
    NothingToCompare,
}

/// Why none of the checks of `outcomes` has an answer; nothing where one has, or where there are none.
#[must_use]
pub fn unchecked(outcomes: &[Outcome]) -> Option<Unchecked> {
    let mut checked = outcomes.iter().filter(|o| !o.checks.is_empty()).peekable();
    checked.peek()?;
    let mut too_slow = false;
    for outcome in checked {
        if outcome.checks.iter().any(|c| c.ok.is_some()) {
            return None;
        }
        too_slow |= outcome.counted == Some(false);
    }
    Some(match too_slow {
        true => Unchecked::TooSlow,
        false => Unchecked::NothingToCompare,
    })
}

impl Check {
    fn is_about(&self, outcome: &Outcome) -> bool {
        let among = |list: &[toml::Spanned<String>], name: &str| {
            list.is_empty() || list.iter().any(|l| l.get_ref() == name)
        };
        self.controllers.contains(&outcome.controller)
            && (self.on.is_empty() || self.on.contains(&outcome.on))
            && among(&self.variants, &outcome.variant)
            && among(&self.phases, &outcome.phase)
    }

    /// Each value that the check is about: of what, the value, what the weights promise.
    fn values(&self, outcome: &Outcome, all: &[Outcome]) -> Vec<Value> {
        let chosen: Vec<&str> = self.groups.iter().map(|g| g.get_ref().as_str()).collect();
        let listed = |name: &str| chosen.is_empty() || chosen.contains(&name);
        let each = |of: &str, value: &dyn Fn(&GroupResult) -> Option<f64>| {
            outcome
                .groups
                .iter()
                .filter(|g| listed(&g.name))
                .map(|g| Value::new(format!("{of} {}", g.name), value(g), Some(g.entitled)))
                .collect::<Vec<_>>()
        };
        let divided = |of: &str, value: &dyn Fn(&GroupResult) -> Option<f64>| {
            let of_group = |n: usize| outcome.group(chosen.get(n)?).and_then(value);
            let ratio = of_group(0).zip(of_group(1)).and_then(|(a, b)| part(a, b));
            let of = format!("{of} {}", chosen.join(" : "));
            vec![Value::new(of, ratio, None)]
        };
        let each_relative = |what: &str, value: &dyn Fn(&Outcome, &GroupResult) -> Option<f64>| {
            let groups = outcome.groups.iter().filter(|g| listed(&g.name));
            groups
                .filter_map(|g| {
                    let name = || format!("{what} of {}", g.name);
                    let of = |o: &Outcome| value(o, o.group(&g.name)?);
                    self.relative(outcome, all, name, &of)
                })
                .collect()
        };
        match self.metric.get_ref() {
            Metric::Share => each("share of", &|g| g.got),
            Metric::IoShare => each("I/O share of", &|g| g.io_share),
            Metric::TraceShare => each("traced share of", &|g| g.trace_share),
            Metric::TrueShare => each("true share of", &|g| g.true_share),
            Metric::P99Ms => {
                let ms = |g: &GroupResult| g.latency_ns.map(|l| l.p99 as f64 / 1e6);
                unpromised(each("99th percentile (ms) of", &ms))
            }
            Metric::LatencyMaxMs => {
                let ms = |g: &GroupResult| g.latency_ns.map(|l| l.max as f64 / 1e6);
                unpromised(each("longest (ms) of", &ms))
            }
            Metric::FinishRatio => {
                divided("time to the end", &|g| g.finished_ns.map(|ns| ns as f64))
            }
            Metric::WaitMaxMs => {
                let ms = |g: &GroupResult| g.wait_max_ns.map(|ns| ns as f64 / 1e6);
                unpromised(each("longest wait (ms) of", &ms))
            }
            Metric::GapMaxMs => {
                let ms = |g: &GroupResult| g.longest_gap_ns.map(|ns| ns as f64 / 1e6);
                unpromised(each("longest time (ms) not served of", &ms))
            }
            Metric::JobShare => outcome
                .jobs
                .iter()
                .filter(|j| listed(&j.name))
                .map(|j| {
                    let of = format!("traced share in {} of {}", j.group, j.name);
                    Value::new(of, j.trace_share, None)
                })
                .collect(),
            Metric::Ratio => divided("ratio", &|g| g.got),
            Metric::TraceRatio => divided("traced ratio", &|g| g.trace_share),
            Metric::Part => {
                let got = |name: &str| outcome.group(name).and_then(|g| g.got);
                let sum: Option<f64> = chosen.iter().map(|n| got(n)).sum();
                let first = chosen.first().and_then(|n| got(n));
                let value = first.zip(sum).and_then(|(a, b)| part(a, b));
                let of = format!("part of {}", chosen.join(" among "));
                vec![Value::new(of, value, None)]
            }
            Metric::Jain => {
                let groups = outcome.groups.iter().filter(|g| listed(&g.name));
                let promised = |g: &GroupResult| part(g.got?, g.entitled);
                let all: Option<Vec<f64>> = groups.map(promised).collect();
                let value = all.filter(|all| !all.is_empty()).map(|all| jain(&all));
                let of = "Jain's index of shares by weights".into();
                vec![Value::new(of, value, None)]
            }
            Metric::UnionError => {
                let value = outcome.trace.as_ref().and_then(TraceFacts::union_error);
                let of = "error of the sum of disk times".into();
                vec![Value::new(of, value, None)]
            }
            Metric::Rate => {
                let name = || "I/Os a second".to_owned();
                self.relative(outcome, all, name, &|o| Some(o.ios_per_s))
                    .into_iter()
                    .collect()
            }
            Metric::Finish => {
                each_relative("time to the end", &|_, g| g.finished_ns.map(|ns| ns as f64))
            }
            Metric::GroupRate => each_relative("bytes a second", &|o, g| {
                part(g.bytes.total() as f64 * 1e9, o.duration_ns as f64)
            }),
            Metric::TransactionRate => {
                each_relative("transactions a second", &|_, g| g.transactions_per_s)
            }
            Metric::P99 => each_relative("99th percentile", &|_, g| {
                g.latency_ns.map(|l| l.p99 as f64)
            }),
        }
    }

    /// Median of all rounds, by the baseline's, or of pairs; told with the last round.
    fn relative(
        &self,
        outcome: &Outcome,
        all: &[Outcome],
        name: impl Fn() -> String,
        value: &dyn Fn(&Outcome) -> Option<f64>,
    ) -> Option<Value> {
        let baseline = self.baseline.as_ref()?;
        let controller = baseline.controller.unwrap_or(outcome.controller);
        let variant = baseline
            .variant
            .as_ref()
            .map_or(outcome.variant.as_str(), |v| v.get_ref());
        let same = |o: &&Outcome| {
            o.place() == outcome.place()
                && (o.controller, o.raised) == (outcome.controller, outcome.raised)
        };
        if all.iter().filter(same).any(|o| o.round > outcome.round) {
            return None;
        }
        let base = |o: &&Outcome| {
            o.scenario == outcome.scenario
                && o.phase == outcome.phase
                && o.variant == variant
                && o.controller == controller
                && o.kept
        };
        let by = match (&baseline.controller, &baseline.variant) {
            (Some(c), None) => format!("those of {c}"),
            (None, Some(v)) => format!("those of variant {}", v.get_ref()),
            _ => format!("those of {controller} in variant {variant}"),
        };
        let of = format!("{} by {by}", name());
        if self.paired {
            let ratio = |mine: &Outcome| {
                let base = all.iter().filter(base).find(|o| o.round == mine.round)?;
                part(value(mine)?, value(base)?)
            };
            let ratios: Vec<f64> = all.iter().filter(same).filter_map(ratio).collect();
            let told = |p: &paired::Paired| {
                let (low, high) = p.interval;
                format!("{of} ({} pairs, {low:.3} to {high:.3})", ratios.len())
            };
            let paired = paired::paired(&ratios);
            return Some(Value {
                of: paired.as_ref().map_or(of.clone(), told),
                value: paired.as_ref().map(|p| p.median),
                promised: None,
                interval: paired.map(|p| p.interval),
            });
        }
        let mine = median(all.iter().filter(same).filter_map(value).collect());
        let base = median(all.iter().filter(base).filter_map(value).collect());
        let value = mine.zip(base).and_then(|(m, b)| part(m, b));
        Some(Value::new(of, value, None))
    }

    fn results(&self, outcome: &Outcome, all: &[Outcome]) -> Vec<CheckResult> {
        let values = self.values(outcome, all).into_iter();
        values
            .map(|measured| {
                let value = measured.value;
                let ends = measured.interval.or(value.map(|v| (v, v)));
                let mut name = measured.of;
                let mut ok = value.is_some();
                let middle = self.expect.or(measured.promised);
                if let (Some(within), Some(middle)) = (self.within, middle) {
                    name = format!("{name} within {within} of {middle:.4}");
                    let near = |v: f64| (v - middle).abs() <= within;
                    ok &= ends.is_some_and(|(low, high)| near(low) && near(high));
                }
                if let Some(min) = self.min {
                    name = format!("{name} at least {min}");
                    ok &= ends.is_some_and(|(low, _)| low >= min);
                }
                if let Some(max) = self.max {
                    name = format!("{name} at most {max}");
                    ok &= ends.is_some_and(|(_, high)| high <= max);
                }
                // A rate without its baseline was not asked for: somebody chose the controllers.
                let asked = value.is_some() || self.baseline.is_none();
                let counts = outcome.counted != Some(false) && asked;
                CheckResult {
                    name,
                    ok: counts.then_some(ok),
                    value,
                }
            })
            .collect()
    }
}
