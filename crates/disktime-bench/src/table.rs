//! Outcomes as tables.

use std::fmt::Write;

use disktime_bench::results::{CheckResult, Outcome};
use disktime_bench::scenario::Scenario;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Style};

fn percent(value: Option<f64>) -> String {
    value.map_or("-".into(), |v| format!("{:.1} %", v * 100.0))
}

fn millis(ns: Option<u64>) -> String {
    ns.map_or("-".into(), |ns| format!("{:.1} ms", ns as f64 / 1e6))
}

/// The part of all outcomes that one table shows.
fn place(outcome: &Outcome) -> (&str, &str, &str) {
    (&outcome.scenario, &outcome.variant, &outcome.phase)
}

fn heading(outcome: &Outcome, scenario: Option<&Scenario>) -> String {
    let mut heading = outcome.scenario.clone();
    for part in [&outcome.variant, &outcome.phase] {
        if !part.is_empty() {
            let _ = write!(heading, ", {part}");
        }
    }
    let _ = write!(heading, ": {}", outcome.disk_title);
    if let Some(source) = scenario
        .map(|s| s.source.as_str())
        .filter(|s| !s.is_empty())
    {
        let _ = write!(heading, " (published: {source})");
    }
    heading
}

fn table(outcomes: &[&Outcome], brief: bool) -> String {
    let published = outcomes
        .iter()
        .any(|o| o.groups.iter().any(|g| g.published.is_some()));
    let known = outcomes
        .iter()
        .any(|o| o.groups.iter().any(|g| g.true_share.is_some()));
    let traced = outcomes.iter().any(|o| o.trace.is_some());
    let transacts = outcomes
        .iter()
        .any(|o| o.groups.iter().any(|g| g.transactions_per_s.is_some()));
    let rounds = outcomes.iter().any(|o| o.round > 1);
    let mut builder = Builder::default();
    let mut head = vec!["controller", "group", "weight", "entitled", "got"];
    if known {
        head.push("true");
    }
    if traced {
        head.push("got (trace)");
    }
    head.extend(["I/O share", "I/Os per s"]);
    if transacts {
        head.extend(["transactions per s", "p50", "p99", "max"]);
    }
    head.push("all vs none");
    if !brief {
        head.extend(["guest cpu", "host idle"]);
    }
    if published {
        head.push("published");
    }
    builder.push_record(head);
    for outcome in outcomes {
        for (number, group) in outcome.groups.iter().enumerate() {
            let first = number == 0;
            let mut controller = outcome.controller.to_string();
            if outcome.raised {
                let _ = write!(controller, " nr {}", outcome.nr_requests);
            }
            if rounds {
                let _ = write!(controller, " #{}", outcome.round);
            }
            if !first {
                controller.clear();
            }
            let seconds = outcome.duration_ns.max(1) as f64 / 1e9;
            let ios = group.ios.read + group.ios.write;
            let mut row = vec![
                controller,
                group.name.clone(),
                group.weight.to_string(),
                percent(Some(group.entitled)),
                percent(group.got),
            ];
            if known {
                row.push(percent(group.true_share));
            }
            if traced {
                row.push(percent(group.trace_share));
            }
            row.push(percent(group.io_share));
            row.push(format!("{:.0}", ios as f64 / seconds));
            if transacts {
                let latency = group.latency_ns;
                let rate = group.transactions_per_s;
                row.push(rate.map_or("-".into(), |r| format!("{r:.1}")));
                row.extend([latency.map(|l| l.p50), latency.map(|l| l.p99)].map(millis));
                row.push(millis(latency.map(|l| l.max)));
            }
            row.push(match first {
                true => outcome.none_ratio.map_or("-".into(), |r| format!("{r:.3}")),
                false => String::new(),
            });
            if !brief {
                for part in [outcome.cpu, outcome.host_idle] {
                    row.push(match first {
                        true => part.map_or("-".into(), |p| format!("{:.0} %", p * 100.0)),
                        false => String::new(),
                    });
                }
            }
            if published {
                row.push(percent(group.published));
            }
            builder.push_record(row);
        }
    }
    let mut table = builder.build();
    table.with(Style::psql());
    table.modify(Columns::new(2..), Alignment::right());
    table.to_string()
}

fn jobs(outcome: &Outcome) -> Option<String> {
    let list: Vec<_> = outcome
        .jobs
        .iter()
        .map(|j| format!("{} {} of {}", j.name, percent(j.trace_share), j.group))
        .collect();
    (!list.is_empty()).then(|| format!("{}: {}", outcome.controller, list.join(", ")))
}

fn check_line(check: &CheckResult) -> String {
    let verdict = match check.ok {
        Some(true) => "ok",
        Some(false) => "FAILED",
        None => "not counted",
    };
    let value = check
        .value
        .map_or("nothing measured".into(), |v| format!("{v:.4}"));
    format!("  {verdict:<11} {}: {value}", check.name)
}

/// Tables, then what was checked. In `brief`, of the checks only those that failed, and nothing about
/// the circumstances.
pub fn show(outcomes: &[Outcome], scenarios: &[Scenario], brief: bool) -> String {
    let mut text = String::new();
    let mut places = Vec::new();
    for outcome in outcomes {
        if !places.contains(&place(outcome)) {
            places.push(place(outcome));
        }
    }
    for here in places {
        let group: Vec<_> = outcomes.iter().filter(|o| place(o) == here).collect();
        let Some(first) = group.first() else { continue };
        let scenario = scenarios
            .iter()
            .find(|s| *s.name.get_ref() == first.scenario);
        let _ = writeln!(
            text,
            "\n{}\n{}",
            heading(first, scenario),
            table(&group, brief)
        );
        for line in group.iter().filter_map(|o| jobs(o)) {
            let _ = writeln!(text, "{line}");
        }
        for (outcome, share) in group.iter().filter_map(|o| Some((o, o.root_share?))) {
            if share >= 0.005 {
                let share = percent(Some(share));
                let _ = writeln!(
                    text,
                    "{}: {share} of disk time the root's own",
                    outcome.controller
                );
            }
        }
        let mut slow = group.iter().filter(|o| o.counted == Some(false));
        if let Some(slow) = slow.next() {
            let _ = writeln!(
                text,
                "not counted: without a scheduler the machine reached {} of what the disk can do",
                percent(slow.none_fraction)
            );
        }
        for outcome in &group {
            if let Some(error) = &outcome.error {
                let _ = writeln!(text, "{}: {error}", outcome.controller);
            }
            let shown: Vec<_> = outcome
                .checks
                .iter()
                .filter(|c| !brief || c.ok == Some(false))
                .collect();
            if shown.is_empty() {
                continue;
            }
            let round = match outcome.round {
                1 if !group.iter().any(|o| o.round > 1) => String::new(),
                round => format!(" #{round}"),
            };
            let _ = writeln!(text, "checks of {}{round}:", outcome.controller);
            for check in shown {
                let _ = writeln!(text, "{}", check_line(check));
            }
        }
    }
    if outcomes.iter().any(|o| !o.controller.is_disktime()) {
        let _ = writeln!(
            text,
            "\ngot: share of disk time; of I/Os where the controller is not disktime"
        );
    }
    let all: Vec<_> = outcomes.iter().flat_map(|o| &o.checks).collect();
    if !all.is_empty() {
        let count = |ok| all.iter().filter(|c| c.ok == ok).count();
        let _ = writeln!(
            text,
            "{} checks: {} ok, {} failed, {} not counted",
            all.len(),
            count(Some(true)),
            count(Some(false)),
            count(None)
        );
    }
    text
}
