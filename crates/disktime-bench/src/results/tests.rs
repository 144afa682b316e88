use super::window::worst_error;
use super::*;
use crate::scenario::{Options, parse, plan};
use crate::trace::{Kind, Record};

const FILE: &str = r#"
name = "t"
duration = "1s"
controllers = ["disktime", "none"]
disk = { servers = 1, service_us = 1000 }
[[group]]
name = "A"
weight = 200
[[group]]
name = "a"
parent = "A"
weight = 300
published = 0.7
job = [{ rw = "randread" }]
[[group]]
name = "b"
parent = "A"
weight = 100
job = [{ rw = "randread" }, { rw = "randread" }]
[[check]]
metric = "share"
within = 0.01
[[check]]
metric = "ratio"
groups = ["a", "b"]
expect = 3.0
within = 0.1
[[check]]
metric = "part"
groups = ["b", "a"]
max = 0.3
[[check]]
metric = "rate"
baseline = { controller = "none" }
min = 0.95
[[check]]
metric = "union-error"
max = 0.01
[[check]]
metric = "job-share"
groups = ["b.2"]
min = 0.5
[[check]]
metric = "gap-max-ms"
groups = ["a"]
max = 10.0
[[check]]
metric = "wait-max-ms"
groups = ["a"]
max = 1.0
"#;

const MS: u64 = 1_000_000;

struct Bed {
    dir: tempfile::TempDir,
    scenario: Scenario,
    plan: Plan,
    events: Vec<Event>,
}

fn snapshot(mono_ns: u64, groups: &[(&str, &[(&str, u64)])]) -> Snapshot {
    let pairs = |list: &[(&str, u64)]| list.iter().map(|&(k, v)| (k.to_owned(), v)).collect();
    Snapshot {
        mono_ns,
        unix_ns: mono_ns,
        idle_ns: mono_ns / 2,
        cpus: 2,
        root: BTreeMap::from([("time_usec".to_owned(), mono_ns / 4000)]),
        groups: groups
            .iter()
            .map(|&(g, list)| (g.to_owned(), pairs(list)))
            .collect(),
    }
}

/// Requests of 1 ms one after the other: three of a, then one of the first or second job of b.
fn requests(plan: &Plan, count: u64) -> Vec<Record> {
    let regions: Vec<u64> = plan.runs[0].jobs.iter().map(|j| j.from_sector).collect();
    (0..count)
        .flat_map(|n| {
            let job = if n % 4 < 3 {
                0
            } else {
                1 + (n / 4 % 2) as usize
            };
            let sector = regions[job] + n * 8;
            let record = |at_ns, kind| Record {
                at_ns,
                sector,
                sectors: 8,
                kind,
                op: b'R',
            };
            [
                record(n * MS, Kind::Issue),
                record((n + 1) * MS, Kind::Complete),
            ]
        })
        .collect()
}

impl Bed {
    /// Two runs of one second: disktime has given a and b three to one of 1000 requests, none has
    /// given them the same of `none_ios`.
    fn new(none_ios: u64) -> Self {
        let scenario = parse(FILE, Path::new("t.toml")).unwrap();
        let plan = plan(std::slice::from_ref(&scenario), &Options::default());
        let dir = tempfile::tempdir().unwrap();
        let mut events = vec![Event::Hello {
            release: "6.12-test".into(),
        }];
        for run in 0..2 {
            let folder = dir.path().join(format!("r{run}"));
            fs::create_dir(&folder).unwrap();
            let mut file = File::create(folder.join(TRACE_FILE)).unwrap();
            trace::write(&mut file, &requests(&plan, 1000)).unwrap();
            for job in ["a", "b.1", "b.2"] {
                let report = r#"{"jobs": [{"error": 0, "read": {"lat_ns": {"max": 9, "bins": {"5": 4}}},
                    "write": {"lat_ns": {"max": 0}}}]}"#;
                fs::write(folder.join(format!("fio-0-{job}.json")), report).unwrap();
            }
            let begin = snapshot(0, &[("a", &[("inflight", 1)]), ("b", &[("queued", 2)])]);
            let half = none_ios / 2;
            let end = match run {
                0 => snapshot(
                    1000 * MS,
                    &[
                        ("A", &[("time_usec", 0), ("io.rios", 1000)]),
                        (
                            "a",
                            &[
                                ("time_usec", 750_000),
                                ("rios", 750),
                                ("rsectors", 6000),
                                ("wait_max_usec", 2000),
                                ("queued", 1),
                                ("io.rios", 999),
                            ],
                        ),
                        (
                            "b",
                            &[("time_usec", 250_000), ("rios", 250), ("rsectors", 2000)],
                        ),
                    ],
                ),
                _ => snapshot(
                    1000 * MS,
                    &[
                        ("A", &[("io.rios", none_ios)]),
                        ("a", &[("io.rios", half), ("io.rbytes", 4096 * half)]),
                        ("b", &[("io.rios", half), ("io.rbytes", 4096 * half)]),
                    ],
                ),
            };
            events.push(Event::Start {
                run,
                nr_requests: 256,
                mono_ns: 0,
                settings: BTreeMap::new(),
            });
            events.push(Event::Begin {
                run,
                phase: 0,
                snapshot: begin,
            });
            events.push(Event::End {
                run,
                phase: 0,
                snapshot: end.clone(),
                finished_ns: BTreeMap::new(),
            });
            events.push(Event::Done {
                run,
                error: None,
                last: end,
                lost: 0,
                counters: BTreeMap::new(),
                health: Some("ok".into()),
            });
        }
        Self {
            dir,
            scenario,
            plan,
            events,
        }
    }

    fn outcomes(&self) -> Vec<Outcome> {
        let scenarios = std::slice::from_ref(&self.scenario);
        let evidence = Evidence {
            on: On::Vm,
            dir: Some(self.dir.path()),
            host_idle: &BTreeMap::from([((0, 0), 0.25)]),
            latencies: None,
            transactions: None,
            seed: 7,
        };
        let mut outcomes = collect(&self.plan, scenarios, &self.events, &evidence);
        check(&mut outcomes, scenarios);
        outcomes
    }
}

fn verdicts(outcome: &Outcome) -> Vec<(String, Option<bool>)> {
    outcome
        .checks
        .iter()
        .map(|c| (c.name.clone(), c.ok))
        .collect()
}

#[test]
fn counters_and_trace_become_shares() {
    let outcomes = Bed::new(1000).outcomes();
    let [own, none] = &outcomes[..] else {
        panic!("{outcomes:?}")
    };
    assert_eq!(
        (own.kernel.as_str(), own.seed, own.nr_requests),
        ("6.12-test", 7, 256)
    );
    assert_eq!((own.host_idle, own.cpu), (Some(0.25), Some(0.75)));
    // A only holds the others.
    let names: Vec<_> = own.groups.iter().map(|g| g.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let a = &own.groups[0];
    assert_eq!(
        (a.entitled, a.got, a.published),
        (0.75, Some(0.75), Some(0.7))
    );
    assert_eq!(a.disk_time_ns, Some(750 * MS));
    assert_eq!(own.root_share, Some(0.2));
    assert_eq!(
        a.ios,
        Directions {
            read: 750,
            write: 0
        }
    );
    assert_eq!(a.bytes.read, 6000 * 512);
    assert_eq!((a.wait_max_ns, a.backlogged), (Some(2 * MS), Some(true)));
    assert_eq!(
        own.groups[1].backlogged,
        Some(false),
        "nothing was queued at the end"
    );
    assert!((a.trace_share.unwrap() - 0.75).abs() < 1e-9);
    assert!((a.trace_io_share.unwrap() - 0.75).abs() < 2e-3);
    assert_eq!(a.longest_gap_ns, Some(MS));
    assert_eq!(own.groups[1].longest_gap_ns, None, "it has two jobs");
    assert_eq!(a.latency_ns.unwrap().p50, 5);
    assert_eq!(own.jobs.len(), 2);
    assert_eq!(own.jobs[1].trace_share, Some(0.5));
    let trace = own.trace.unwrap();
    assert_eq!(
        (
            trace.lost,
            trace.orphans,
            trace.unfinished,
            trace.most_inflight
        ),
        (0, 0, 0, 1)
    );
    assert_eq!(
        (trace.union_ns, trace.charged_ns),
        (1000 * MS, Some(1000 * MS))
    );
    assert_eq!(
        own.total,
        Total {
            ios: 1000,
            bytes: 8000 * 512,
            busy_ns: Some(1000 * MS)
        }
    );
    assert_eq!(
        (own.none_ratio, own.none_fraction, own.counted),
        (Some(1.0), Some(1.0), Some(true))
    );

    let a = &none.groups[0];
    assert_eq!(
        (a.got, a.disk_time_ns, a.backlogged),
        (Some(0.5), None, None)
    );
    assert_eq!(a.ios.read, 500);
    assert_eq!((none.root_share, none.checks.len()), (None, 0));
}

#[test]
fn checks_hold_or_fail_by_what_was_measured() {
    let outcomes = Bed::new(1060).outcomes();
    let expect = [
        ("share of a within 0.01 of 0.7500", true),
        ("share of b within 0.01 of 0.2500", true),
        ("ratio a : b within 0.1 of 3.0000", true),
        ("part of b among a at most 0.3", true),
        ("I/Os a second by those of none at least 0.95", false),
        ("error of the sum of disk times at most 0.01", true),
        ("traced share in b of b.2 at least 0.5", true),
        ("longest time (ms) not served of a at most 10", true),
        ("longest wait (ms) of a at most 1", false),
    ];
    assert_eq!(
        verdicts(&outcomes[0]),
        expect.map(|(n, ok)| (n.to_owned(), Some(ok)))
    );
    assert!((outcomes[0].checks[4].value.unwrap() - 1000.0 / 1060.0).abs() < 1e-9);
}

#[test]
fn where_the_machine_was_too_slow_nothing_counts() {
    let outcomes = Bed::new(880).outcomes();
    assert_eq!(outcomes[0].counted, Some(false));
    assert!(outcomes[0].checks.iter().all(|c| c.ok.is_none()));
    assert_eq!(unchecked(&outcomes), Some(Unchecked::TooSlow));
    let outcomes = Bed::new(900).outcomes();
    assert_eq!(outcomes[0].counted, Some(true));
    assert_eq!(unchecked(&outcomes), None);
}

#[test]
fn a_machine_that_was_fast_enough_is_not_blamed_for_what_was_not_run() {
    let mut outcomes = Bed::new(1000).outcomes();
    for check in &mut outcomes[0].checks {
        check.ok = None;
    }
    assert_eq!(unchecked(&outcomes), Some(Unchecked::NothingToCompare));
    outcomes[0].checks.clear();
    assert_eq!(unchecked(&outcomes), None);
}

#[test]
fn a_rate_is_the_median_of_all_rounds() {
    let mut outcomes = Bed::new(1000).outcomes();
    for round in 2..=3 {
        let mut more = Bed::new(1000).outcomes();
        for outcome in &mut more {
            outcome.round = round;
            // Of disktime 1000, 500, 500; of none 1000, 2000, 3000.
            outcome.ios_per_s = match outcome.controller {
                Controller::Disktime => 500.0,
                _ => 1000.0 * f64::from(round),
            };
        }
        outcomes.extend(more);
    }
    for outcome in &mut outcomes {
        outcome.checks.clear();
    }
    check(&mut outcomes, &[parse(FILE, Path::new("t.toml")).unwrap()]);
    let rates: Vec<_> = outcomes
        .iter()
        .flat_map(|o| o.checks.iter().map(move |c| (o.round, c)))
        .filter(|(_, c)| c.name.starts_with("I/Os"))
        .map(|(round, c)| (round, c.value))
        .collect();
    assert_eq!(rates, [(3, Some(0.25))]);
}

/// The machine is ever slower; of each round alone disktime has 0.98 of none, or less.
#[test]
fn bounds_of_pairs_are_for_the_interval_of_their_median() {
    let file = FILE.replace("min = 0.95", "paired = true\nmin = 0.95");
    let scenario = parse(&file, Path::new("t.toml")).unwrap();
    for (rounds, off, ok, value) in [
        (5, 0, None, None),
        (9, 0, Some(true), Some(0.98)),
        (9, 1, Some(true), Some(0.98)),
        (9, 2, Some(false), Some(0.98)),
    ] {
        let mut outcomes = Vec::new();
        for round in 1..=rounds {
            let mut more = Bed::new(1000).outcomes();
            for outcome in &mut more {
                outcome.round = round;
                outcome.checks.clear();
                outcome.ios_per_s = 1000.0 / f64::from(round);
                if outcome.controller == Controller::Disktime {
                    outcome.ios_per_s *= if round <= off { 0.5 } else { 0.98 };
                }
            }
            outcomes.extend(more);
        }
        check(&mut outcomes, std::slice::from_ref(&scenario));
        let checks = outcomes.iter().flat_map(|o| &o.checks);
        let rates: Vec<_> = checks.filter(|c| c.name.starts_with("I/Os")).collect();
        assert_eq!(rates.len(), 1);
        assert_eq!(rates[0].ok, ok, "{rounds}, {off}: {}", rates[0].name);
        assert_eq!(rates[0].value.map(|v| (v * 1e6).round() / 1e6), value);
    }
}

#[test]
fn faults_of_a_run_are_failed_checks() {
    let names = |outcomes: &[Outcome]| {
        let failed = outcomes[0].checks.iter().filter(|c| c.ok == Some(false));
        failed.map(|c| c.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        names(&Bed::new(1000).outcomes()),
        ["longest wait (ms) of a at most 1"]
    );

    for (change, name) in [
        (
            Box::new(|e: &mut Event| {
                if let Event::Done { run: 0, health, .. } = e {
                    *health = Some("lost".into());
                }
            }) as Box<dyn Fn(&mut Event)>,
            "health is ok",
        ),
        (
            Box::new(|e: &mut Event| {
                if let Event::Done { run: 0, lost, .. } = e {
                    *lost = 3;
                }
            }),
            "every request of the trace has a beginning and an end",
        ),
        (
            Box::new(|e: &mut Event| {
                if let Event::Done { run: 0, error, .. } = e {
                    *error = Some("fio ended".into());
                }
            }),
            "the run went through",
        ),
    ] {
        let mut bed = Bed::new(1000);
        bed.events.iter_mut().for_each(change);
        assert!(names(&bed.outcomes()).contains(&name.to_owned()), "{name}");
    }
}

#[test]
fn transactions_of_the_window_take_the_place_of_writes() {
    let mut bed = Bed::new(1000);
    let job = &mut bed.plan.runs[0].jobs[0];
    job.transacts = true;
    // One of 40 ms before the window's end, none of which begins after it.
    let ends = (0..24).map(|n| n * 40).chain([965, 1100]);
    let log: String = ends.map(|ms| format!("{ms}, 0, 1, 4096, 0\n")).collect();
    let dir = bed.dir.path().join("r0");
    fs::write(dir.join("fio-0-a_lat.1.log"), &log).unwrap();
    fs::write(dir.join("fio-0-a_clat.1.log"), "0, 7, 1, 4096, 0\n").unwrap();
    let outcomes = bed.outcomes();
    let a = &outcomes[0].groups[0];
    assert_eq!(a.transactions_per_s, Some(24.0));
    let latency = a.latency_ns.unwrap();
    assert!((39 * MS..=40 * MS).contains(&latency.p50), "{latency:?}");
    assert_eq!(latency.max, 135 * MS);
    let other = &outcomes[0].groups[1];
    assert_eq!(other.transactions_per_s, None);
    assert_eq!(other.latency_ns.unwrap().max, 9);

    fs::write(dir.join("fio-0-a_lat.1.log"), "broken\n").unwrap();
    let error = bed.outcomes().swap_remove(0).error.unwrap();
    assert!(error.contains("fio-0-a_lat.1.log"), "{error}");
}

#[test]
fn what_was_heard_before_the_end_is_kept() {
    let mut bed = Bed::new(1000);
    // Interrupted in the second run, before its window ended.
    bed.events.truncate(bed.events.len() - 2);
    let outcomes = bed.outcomes();
    assert_eq!(outcomes.len(), 1);
    assert_eq!(
        (outcomes[0].error.as_ref(), outcomes[0].none_ratio),
        (None, None)
    );
    // After the window, but before the trace came.
    let mut bed = Bed::new(1000);
    bed.events.truncate(4);
    fs::remove_dir_all(bed.dir.path().join("r0")).unwrap();
    let outcomes = bed.outcomes();
    assert_eq!(outcomes[0].groups[0].got, Some(0.75));
    assert!(outcomes[0].trace.is_none() && outcomes[0].error.is_some());
}

#[test]
fn a_line_has_the_documented_keys() {
    let line = serde_json::to_value(&Bed::new(1000).outcomes()[0]).unwrap();
    assert_eq!(line["disktime_result"], 1);
    for (key, value) in [
        ("scenario", "t".into()),
        ("on", "vm".into()),
        ("controller", "disktime".into()),
        ("kernel", "6.12-test".into()),
        ("seed", 7.into()),
        ("duration_ns", serde_json::Value::from(1000 * MS)),
    ] {
        assert_eq!(line[key], value, "{key}");
    }
    let group = &line["groups"][0];
    for key in [
        "name",
        "weight",
        "class",
        "entitled",
        "got",
        "disk_time_ns",
        "true_time_ns",
        "ios",
        "bytes",
        "transactions_per_s",
        "latency_ns",
        "published",
    ] {
        assert!(group.get(key).is_some(), "{key}");
    }
    assert!(group["ios"]["read"].is_u64() && group["bytes"]["write"].is_u64());
    for key in ["p50", "p99", "p999", "max"] {
        assert!(group["latency_ns"][key].is_u64(), "{key}");
    }
    for key in ["ios", "bytes", "busy_ns"] {
        assert!(line["total"][key].is_u64(), "{key}");
    }
    for key in ["name", "ok", "value"] {
        assert!(line["checks"][0].get(key).is_some(), "{key}");
    }
}

/// Three rows of one case and one of another: bfq at the default, raised, and disktime.
fn contest(default: (f64, f64), raised: (f64, f64)) -> Vec<bool> {
    let some = Bed::new(1000).outcomes().swap_remove(1);
    let row = |controller, is_raised, (error, rate): (f64, f64)| Outcome {
        controller,
        raised: is_raised,
        worst_error: Some(error),
        ios_per_s: rate,
        ..some.clone()
    };
    let mut rows = vec![
        row(Controller::Bfq, false, default),
        row(Controller::Bfq, true, raised),
        row(Controller::Disktime, false, (0.5, 1.0)),
        Outcome {
            variant: "another".into(),
            ..row(Controller::Bfq, false, (0.9, 1.0))
        },
    ];
    keep_the_better(&mut rows);
    rows.iter().map(|r| r.kept).collect()
}

#[test]
fn the_better_of_two_tag_sets_stands_for_a_controller() {
    // Nearer to the promise, however slow.
    assert_eq!(
        contest((0.10, 900.0), (0.02, 100.0)),
        [false, true, true, true]
    );
    assert_eq!(
        contest((0.02, 100.0), (0.10, 900.0)),
        [true, false, true, true]
    );
    // About as near: the faster; of equals the default.
    assert_eq!(
        contest((0.020, 100.0), (0.023, 900.0)),
        [false, true, true, true]
    );
    assert_eq!(
        contest((0.02, 100.0), (0.02, 100.0)),
        [true, false, true, true]
    );
}

#[test]
fn a_window_s_looks_become_a_series() {
    let mut bed = Bed::new(1000);
    let tick = |at: u64, a: u64, b: u64| Event::Tick {
        run: 0,
        phase: 0,
        snapshot: snapshot(
            at * MS,
            &[
                ("a", &[("time_usec", a * 1000)]),
                ("b", &[("time_usec", b * 1000)]),
            ],
        ),
    };
    let begin = bed
        .events
        .iter()
        .position(|e| matches!(e, Event::Begin { .. }))
        .unwrap();
    // One before the window, two in it, one in which nothing happened.
    bed.events.insert(begin, tick(0, 500, 500));
    for (place, event) in [tick(250, 200, 50), tick(500, 200, 150), tick(600, 200, 150)]
        .into_iter()
        .enumerate()
    {
        bed.events.insert(begin + 2 + place, event);
    }
    let series = bed.outcomes()[0].series.clone();
    assert_eq!(series.t_ns, [250 * MS, 500 * MS, 1000 * MS]);
    assert_eq!(series.got["a"], [0.8, 0.0, 0.8462]);
    assert_eq!(series.got["b"], [0.2, 1.0, 0.1538]);
}

#[test]
fn the_worst_error_is_by_the_best_witness() {
    let mut groups = Bed::new(1000).outcomes().swap_remove(0).groups;
    let set = |groups: &mut [GroupResult], shares: [[Option<f64>; 3]; 2]| {
        for (group, [truth, traced, got]) in groups.iter_mut().zip(shares) {
            (group.true_share, group.trace_share, group.got) = (truth, traced, got);
        }
    };
    let near = |groups: &[GroupResult], expect: f64| {
        let error = worst_error(groups).unwrap();
        assert!((error - expect).abs() < 1e-9, "{error}");
    };
    // Promised are 0.75 and 0.25.
    set(
        &mut groups,
        [
            [Some(0.65), Some(0.75), Some(0.75)],
            [Some(0.35), Some(0.25), Some(0.25)],
        ],
    );
    near(&groups, 0.10);
    // Known of one only is not known.
    set(
        &mut groups,
        [
            [Some(0.65), Some(0.70), Some(0.75)],
            [None, Some(0.30), Some(0.25)],
        ],
    );
    near(&groups, 0.05);
    set(
        &mut groups,
        [[None, None, Some(0.73)], [None, None, Some(0.27)]],
    );
    near(&groups, 0.02);
}

#[test]
fn when_groups_were_done_is_compared() {
    let text = FILE.replacen("[[check]]", "[[check]]\nmetric = \"finish-ratio\"\ngroups = [\"a\", \"b\"]\nexpect = 0.75\nwithin = 0.05\n[[check]]\nmetric = \"finish\"\ngroups = [\"a\"]\nbaseline = { controller = \"none\" }\nmax = 2.2\n[[check]]", 1);
    let mut bed = Bed::new(1000);
    bed.scenario = parse(&text, Path::new("t.toml")).unwrap();
    for event in &mut bed.events {
        if let Event::End {
            run, finished_ns, ..
        } = event
        {
            let ends = if *run == 0 {
                [600 * MS, 800 * MS]
            } else {
                [250 * MS, 800 * MS]
            };
            *finished_ns = ["a", "b"]
                .map(str::to_owned)
                .into_iter()
                .zip(ends)
                .collect();
        }
    }
    let outcomes = bed.outcomes();
    let seen = verdicts(&outcomes[0]);
    assert_eq!(
        seen[0],
        (
            "time to the end a : b within 0.05 of 0.7500".into(),
            Some(true)
        )
    );
    let name = "time to the end of a by those of none at most 2.2".to_owned();
    assert_eq!(seen[1], (name, Some(false)), "600 ms by 250 ms is 2.4");
    assert_eq!(outcomes[0].groups[0].finished_ns, Some(600 * MS));
}
