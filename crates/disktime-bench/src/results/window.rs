//! What each group had between two looks at the counters, and by the trace.

use std::collections::BTreeSet;

use disktime_model::Region;

use crate::analyse::{Rule, Tally, analyse};
use crate::plan::{Job, Run, Snapshot};
use crate::scenario::{On, entitled};
use crate::trace;

use super::outcome::{
    Directions, Format, GroupResult, JobResult, Outcome, Series, Total, TraceFacts,
};
use super::{Heard, part};

/// A counter's growth in a window.
pub(super) struct Window<'a> {
    pub(super) run: &'a Run,
    pub(super) begin: &'a Snapshot,
    pub(super) end: &'a Snapshot,
}

fn counter(snapshot: &Snapshot, group: &str, key: &str) -> u64 {
    snapshot
        .groups
        .get(group)
        .and_then(|pairs| pairs.get(key))
        .copied()
        .unwrap_or(0)
}

impl Window<'_> {
    fn grown(&self, group: &str, key: &str) -> u64 {
        counter(self.end, group, key).saturating_sub(counter(self.begin, group, key))
    }

    /// A counter's growth where there is such a counter.
    fn known(&self, group: &str, key: &str) -> Option<u64> {
        let has = self.end.groups.get(group)?.contains_key(key);
        has.then(|| self.grown(group, key))
    }

    /// Disk time of the root's own requests, in microseconds.
    fn root_time(&self) -> Option<u64> {
        if !self.run.controller.is_disktime() {
            return None;
        }
        let of = |snapshot: &Snapshot| snapshot.root.get("time_usec").copied();
        Some(of(self.end)?.saturating_sub(of(self.begin).unwrap_or(0)))
    }

    fn cpu(&self) -> Option<f64> {
        let all = self.end.mono_ns.checked_sub(self.begin.mono_ns)? * u64::from(self.end.cpus);
        let idle = self.end.idle_ns.checked_sub(self.begin.idle_ns)?;
        part(all.saturating_sub(idle) as f64, all as f64)
    }

    /// Of a group's own processes: `io.stat` counts those of the groups below it, too.
    fn own_io(&self, index: usize, key: &str) -> u64 {
        let group = &self.run.groups[index];
        let below: u64 = self
            .run
            .groups
            .iter()
            .filter(|g| {
                g.path
                    .rsplit_once('/')
                    .is_some_and(|(above, _)| above == group.path)
            })
            .map(|g| self.grown(&g.name, key))
            .sum();
        self.grown(&group.name, key).saturating_sub(below)
    }

    /// With disktime, requests that were completed; else I/Os that were asked for.
    fn ios(&self, index: usize) -> Directions {
        let name = &self.run.groups[index].name;
        match self.run.controller.is_disktime() {
            true => Directions {
                read: self.grown(name, "rios"),
                write: self.grown(name, "wios"),
            },
            false => Directions {
                read: self.own_io(index, "io.rios"),
                write: self.own_io(index, "io.wios"),
            },
        }
    }

    fn bytes(&self, index: usize) -> Directions {
        let name = &self.run.groups[index].name;
        match self.run.controller.is_disktime() {
            true => Directions {
                read: self.grown(name, "rsectors") * 512,
                write: self.grown(name, "wsectors") * 512,
            },
            false => Directions {
                read: self.own_io(index, "io.rbytes"),
                write: self.own_io(index, "io.wbytes"),
            },
        }
    }
}

fn backlogged(snapshot: &Snapshot, group: &str) -> bool {
    ["queued", "waiting", "inflight"]
        .iter()
        .any(|key| counter(snapshot, group, key) > 0)
}

impl Window<'_> {
    pub(super) fn outcome(
        &self,
        number: usize,
        records: Option<&[trace::Record]>,
        heard: &Heard,
    ) -> Outcome {
        let run = self.run;
        let phase = &run.phases[number];
        let busy: BTreeSet<usize> = phase.jobs.iter().map(|&j| run.jobs[j].group).collect();
        let promised = entitled(&run.groups, &busy);
        let own = run.controller.is_disktime();

        let regions: Vec<Region> = run.jobs.iter().map(Job::region).collect();
        let rule = match run.disk.rotational() {
            true => Rule::Gap,
            false => Rule::Overlap,
        };
        let tally: Option<Tally> =
            records.map(|r| analyse(r, &regions, self.begin.mono_ns, self.end.mono_ns, rule));
        let of_group = |tally: &Tally, group: usize| {
            let jobs = run
                .jobs
                .iter()
                .enumerate()
                .filter(|(_, j)| j.group == group);
            jobs.fold((0.0, 0), |(time, ios), (j, _)| {
                (time + tally.parts[j].time_ns, ios + tally.parts[j].ios)
            })
        };

        // Groups that only hold others have nothing of their own.
        let shown: Vec<usize> = (0..run.groups.len())
            .filter(|&g| {
                let prefix = format!("{}/", run.groups[g].path);
                run.jobs.iter().any(|j| j.group == g)
                    || !run
                        .groups
                        .iter()
                        .any(|other| other.path.starts_with(&prefix))
            })
            .collect();
        let time = |g: usize| self.grown(&run.groups[g].name, "time_usec") * 1000;
        let all_time: u64 = shown.iter().map(|&g| time(g)).sum();
        let all_ios: u64 = shown.iter().map(|&g| self.ios(g).total()).sum();
        let all_bytes: u64 = shown.iter().map(|&g| self.bytes(g).total()).sum();
        let traced: Option<(f64, u64)> = tally.as_ref().map(|t| {
            (
                t.parts.iter().map(|p| p.time_ns).sum(),
                t.parts.iter().map(|p| p.ios).sum(),
            )
        });

        let truth = |g: usize| self.known(&run.groups[g].name, "true_nsec");
        let all_truth: Option<u64> = shown.iter().map(|&g| truth(g)).sum();

        let groups: Vec<GroupResult> = shown
            .iter()
            .map(|&g| {
                let group = &run.groups[g];
                let ios = self.ios(g);
                let io_share = part(ios.total() as f64, all_ios as f64);
                let mine = tally.as_ref().map(|t| of_group(t, g));
                GroupResult {
                    name: group.name.clone(),
                    path: group.path.clone(),
                    weight: group.weight,
                    class: group.class,
                    entitled: promised[g],
                    got: if own {
                        part(time(g) as f64, all_time as f64)
                    } else {
                        io_share
                    },
                    disk_time_ns: own.then(|| time(g)),
                    true_time_ns: truth(g),
                    true_share: truth(g)
                        .zip(all_truth)
                        .and_then(|(mine, all)| part(mine as f64, all as f64)),
                    ios,
                    bytes: self.bytes(g),
                    io_share,
                    trace_share: mine.zip(traced).and_then(|(m, all)| part(m.0, all.0)),
                    trace_io_share: mine
                        .zip(traced)
                        .and_then(|(m, all)| part(m.1 as f64, all.1 as f64)),
                    longest_gap_ns: tally.as_ref().and_then(|t| {
                        let mut jobs = (0..run.jobs.len()).filter(|&j| run.jobs[j].group == g);
                        let gap = jobs.next().map(|j| t.parts[j].longest_gap_ns);
                        gap.filter(|_| jobs.next().is_none())
                    }),
                    transactions_per_s: None,
                    latency_ns: None,
                    latency_curve: Vec::new(),
                    finished_ns: None,
                    wait_max_ns: own
                        .then(|| counter(self.end, &group.name, "wait_max_usec") * 1000),
                    backlogged: own.then(|| {
                        backlogged(self.begin, &group.name) && backlogged(self.end, &group.name)
                    }),
                    published: None,
                }
            })
            .collect();

        let several = |g: usize| run.jobs.iter().filter(|j| j.group == g).count() > 1;
        let jobs = run
            .jobs
            .iter()
            .enumerate()
            .filter(|(j, job)| several(job.group) && phase.jobs.contains(j))
            .filter_map(|(j, job)| {
                let tally = tally.as_ref()?;
                Some(JobResult {
                    name: job.name.clone(),
                    group: run.groups[job.group].name.clone(),
                    trace_share: part(tally.parts[j].time_ns, of_group(tally, job.group).0),
                    ios: tally.parts[j].ios,
                })
            })
            .collect();

        let trace = records.zip(tally.as_ref()).map(|(records, tally)| {
            let whole = analyse(records, &regions, 0, u64::MAX, rule);
            let charged = |g: &String| counter(&heard.last, g, "time_usec") * 1000;
            TraceFacts {
                lost: heard.lost,
                orphans: whole.orphans,
                unfinished: whole.unfinished,
                most_inflight: tally.most_inflight,
                other_ios: whole.other.ios,
                union_ns: whole.busy_ns,
                charged_ns: own.then(|| heard.last.groups.keys().map(charged).sum()),
            }
        });
        let duration_ns = self.end.mono_ns.saturating_sub(self.begin.mono_ns);
        Outcome {
            disktime_result: Format,
            scenario: run.scenario.clone(),
            variant: run.variant.clone(),
            phase: phase.name.clone(),
            round: run.round,
            on: On::Vm,
            controller: run.controller,
            raised: run.raised,
            kept: true,
            // Who is alone gets everything, whoever schedules.
            promises_shares: busy.len() > 1,
            about: String::new(),
            source: String::new(),
            kernel: String::new(),
            seed: 0,
            duration_ns,
            disk: run.disk,
            disk_title: run.disk.to_string(),
            settings: heard.settings.clone(),
            nr_requests: heard.nr_requests,
            worst_error: worst_error(&groups),
            series: Series::default(),
            groups,
            jobs,
            root_share: self.root_time().and_then(|root| {
                let root = root * 1000;
                part(root as f64, (all_time + root) as f64)
            }),
            total: Total {
                ios: all_ios,
                bytes: all_bytes,
                busy_ns: tally.as_ref().map(|t| t.busy_ns),
            },
            ios_per_s: all_ios as f64 * 1e9 / duration_ns.max(1) as f64,
            instructions: false,
            none_fraction: None,
            none_ratio: None,
            cpu: self.cpu(),
            host_idle: None,
            counted: None,
            trace,
            health: heard.health.clone(),
            counters: heard.counters.clone(),
            error: None,
            checks: Vec::new(),
        }
    }
}

/// The largest distance of a group from what the weights promise it.
pub(super) fn worst_error(groups: &[GroupResult]) -> Option<f64> {
    let busy = || groups.iter().filter(|g| g.entitled > 0.0);
    let worst = |share: &dyn Fn(&GroupResult) -> Option<f64>| {
        let errors: Option<Vec<f64>> = busy()
            .map(|g| share(g).map(|s| (s - g.entitled).abs()))
            .collect();
        errors?.into_iter().max_by(f64::total_cmp)
    };
    worst(&|g| g.true_share)
        .or_else(|| worst(&|g| g.trace_share))
        .or_else(|| worst(&|g| g.got))
}

impl Window<'_> {
    /// What each group had between a look and the next.
    pub(super) fn series(&self, outcome: &Outcome, ticks: &[Snapshot]) -> Series {
        let mut series = Series::default();
        let mut from = self.begin;
        for to in ticks.iter().chain([self.end]) {
            let step = Window {
                run: self.run,
                begin: from,
                end: to,
            };
            let had = |name: &str| {
                let index = self.run.groups.iter().position(|g| g.name == name);
                match self.run.controller.is_disktime() {
                    true => step.grown(name, "time_usec"),
                    false => index.map_or(0, |g| step.ios(g).total()),
                }
            };
            from = to;
            let all: u64 = outcome.groups.iter().map(|g| had(&g.name)).sum();
            if all == 0 {
                continue;
            }
            series
                .t_ns
                .push(to.mono_ns.saturating_sub(self.begin.mono_ns));
            for group in &outcome.groups {
                let share = had(&group.name) as f64 / all as f64;
                let list = series.got.entry(group.name.clone()).or_default();
                // Four digits are more than such an interval can know.
                list.push((share * 1e4).round() / 1e4);
            }
        }
        series
    }
}
