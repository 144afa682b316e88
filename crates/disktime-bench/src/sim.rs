//! Runs a plan in the simulator, which says and leaves what a machine would: the same events,
//! counters and traces, and so the same analysis and the same checks.
//!
//! What it does not know is what a kernel costs: but for waking a process up events take no time,
//! and a run always counts.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result, bail};
use disktime_core::{Class, Dir, Nanos, Order, Weight};
use disktime_sim::{
    self as sim, Charge, Controller as Policy, Dirty, Mix, Observer, Op, Pattern, Setup, Sim,
};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::fio::Latencies;
use crate::plan::{Controller, Event, Job, Plan, Program, Run, Snapshot, Stop, TRACE_FILE};
use crate::trace::{self, Kind, Record};
use crate::transactions::Transaction;

/// Whom the simulator can run: disktime's core, and the same with true charges, and `none`, which is
/// order of arrival.
#[must_use]
pub fn knows(controller: Controller) -> bool {
    controller.is_disktime() || controller == Controller::None
}

/// What a simulated plan left, besides files.
#[derive(Debug, Default)]
pub struct Left {
    /// As a machine's.
    pub events: Vec<Event>,
    /// By run and job.
    pub latencies: BTreeMap<(usize, String), Latencies>,
    /// By run and job, of jobs that do some.
    pub transactions: BTreeMap<(usize, String), Vec<Transaction>>,
}

/// Runs all of the plan; traces go to `out`. Same plan and seed: same events.
pub fn run(plan: &Plan, out: &Path, seed: u64) -> Result<Left> {
    run_scattered(plan, out, seed, 0)
}

/// The same with processes that begin at random within so long. Those that begin together keep
/// their order for ever where nobody schedules, and on a disk with a head it is the shortest way.
pub fn run_scattered(plan: &Plan, out: &Path, seed: u64, scatter_ns: u64) -> Result<Left> {
    let mut left = Left::default();
    left.events.push(Event::Hello {
        release: "simulator".into(),
    });
    for (index, run) in plan.runs.iter().enumerate() {
        let title = || format!("{} {} with {}", run.scenario, run.variant, run.controller);
        simulate(index, run, out, (seed, scatter_ns), &mut left).with_context(title)?;
    }
    Ok(left)
}

/// Records what happens, by process.
#[derive(Default)]
struct Recorder {
    records: Option<Vec<Record>>,
    /// Of a process's I/Os, from being asked for to being done.
    latencies: Vec<Latencies>,
    /// Of a process's writes, each with its sync.
    transactions: Vec<Vec<Transaction>>,
}

impl Recorder {
    fn record(&mut self, kind: Kind, op: &Op, at_ns: u64) {
        if let Some(records) = &mut self.records {
            records.push(Record {
                at_ns,
                sector: op.sector,
                sectors: op.sectors,
                kind,
                op: match op.dir {
                    Dir::Read => b'R',
                    Dir::Write => b'W',
                },
            });
        }
    }
}

impl Observer for Recorder {
    fn issued(&mut self, op: &Op, at: u64) {
        self.record(Kind::Issue, op, at);
    }

    fn completed(&mut self, op: &Op, at: u64) {
        self.record(Kind::Complete, op, at);
        self.latencies[op.proc].count(at - op.asked);
    }

    fn synced(&mut self, proc: usize, since: u64, at: u64) {
        self.transactions[proc].push(Transaction {
            begin_ns: since,
            end_ns: Some(at),
        });
    }
}

/// The value of one of fio's arguments.
pub(crate) fn arg<'a>(job: &'a Job, name: &str) -> Option<&'a str> {
    job.args.iter().find_map(|arg| {
        arg.strip_prefix("--")?
            .strip_prefix(name)?
            .strip_prefix('=')
    })
}

fn number(job: &Job, name: &str, default: u64) -> Result<u64> {
    arg(job, name).map_or(Ok(default), |text| {
        text.parse()
            .with_context(|| format!("job {}: {name} is {text:?}, no number", job.name))
    })
}

/// CFQ's weights of the levels of a class.
fn level_weight(level: u64) -> Result<Weight> {
    let weights = [180, 160, 140, 120, 100, 80, 60, 40];
    let weight = weights.get(level as usize).copied();
    Ok(Weight::new(weight.context("an ioprio level is 0 to 7")?)?)
}

/// How long its processes wait before they begin.
fn delay(job: &Job) -> Result<u64> {
    let Some(text) = arg(job, "startdelay") else {
        return Ok(0);
    };
    let micros = text.strip_suffix("us").and_then(|t| t.parse::<u64>().ok());
    let micros = micros.with_context(|| format!("job {}: startdelay is {text:?}", job.name))?;
    Ok(micros * 1000)
}

/// The processes of a job.
fn processes(job: &Job, stop: Stop) -> Result<Vec<sim::Proc>> {
    if job.program != Program::Fio {
        bail!("job {}: the simulator knows no databases", job.name);
    }
    let (pattern, mix) = match arg(job, "rw").unwrap_or("read") {
        "read" => (Pattern::Sequential, Mix::Read),
        "write" => (Pattern::Sequential, Mix::Write),
        "rw" => (Pattern::Sequential, Mix::Both),
        "randread" => (Pattern::Random, Mix::Read),
        "randwrite" => (Pattern::Random, Mix::Write),
        "randrw" => (Pattern::Random, Mix::Both),
        other => bail!("job {}: the simulator knows no rw={other}", job.name),
    };
    let class = match number(job, "prioclass", 2)? {
        1 => Class::Rt,
        3 => Class::Idle,
        _ => Class::Be,
    };
    let depth = match arg(job, "ioengine") {
        Some("psync") => 1,
        _ => number(job, "iodepth", 1)?,
    };
    let nr = number(job, "numjobs", 1)?;
    let size = number(job, "size", 0)? / 512;
    let region = job.region_sectors;
    (0..nr)
        .map(|n| {
            let from = job.from_sector + n * job.stride_sectors;
            let each = |name: &str| {
                let value = number(job, name, 0)?;
                Ok::<_, anyhow::Error>((value > 0).then(|| u32::try_from(value)).transpose()?)
            };
            Ok(sim::Proc {
                pattern,
                mix,
                sectors: u32::try_from(number(job, "bs", 4096)? / 512)?,
                depth: u32::try_from(depth)?,
                think_ns: number(job, "thinktime", 0)? * 1000,
                burst: each("thinktime_blocks")?.unwrap_or(1),
                rate_iops: each("rate_iops")?,
                start_ns: delay(job)?,
                fsync_every: each("fsync")?,
                sync_at_end: number(job, "end_fsync", 0)? == 1,
                buffered: number(job, "direct", 1)? == 0,
                limit: (stop != Stop::Time).then_some(size),
                class,
                weight: level_weight(number(job, "prio", 4)?)?,
                ..sim::Proc::new(job.group, from, from + size.min(region))
            })
        })
        .collect()
}

fn policy(run: &Run) -> Result<Policy> {
    if !run.controller.is_disktime() {
        return Ok(Policy::Fifo);
    }
    let value = |name: &str| run.iosched.get(name).map(String::as_str);
    let count = |name: &str| {
        value(name)
            .map(|text| {
                text.parse::<u64>()
                    .with_context(|| format!("{name} is {text:?}, no number"))
            })
            .transpose()
    };
    let micros = |name: &str| Ok::<_, anyhow::Error>(count(name)?.map(Nanos::from_micros));
    Ok(Policy::Disktime {
        slice: micros("slice_usec")?,
        idle: micros("idle_usec")?,
        depth: count("depth")?.map(u32::try_from).transpose()?,
        order: value("order")
            .map(|order| match order {
                "cfq" => Ok(Order::Cfq),
                "deadline" => Ok(Order::Deadline),
                "fifo" => Ok(Order::Fifo),
                _ => bail!("there is no order {order:?}"),
            })
            .transpose()?,
        strict: count("strict")? == Some(1),
        charge: match run.controller {
            Controller::DisktimeTrue => Charge::True,
            _ => Charge::Own,
        },
    })
}

/// Index of the group right above each.
fn parents(run: &Run) -> Vec<Option<usize>> {
    let above = |path: &str| {
        let (above, _) = path.rsplit_once('/')?;
        run.groups.iter().position(|group| group.path == above)
    };
    run.groups.iter().map(|group| above(&group.path)).collect()
}

fn class_of(class: crate::plan::Class) -> Class {
    match class {
        crate::plan::Class::Rt => Class::Rt,
        crate::plan::Class::Be => Class::Be,
        crate::plan::Class::Idle => Class::Idle,
    }
}

fn setup(run: &Run, (seed, scatter_ns): (u64, u64)) -> Result<(Setup, Vec<Vec<usize>>)> {
    let disk = run.disk.make().map_err(anyhow::Error::msg)?;
    let stop = run.phases.first().map_or(Stop::Time, |phase| phase.stop);
    let mut procs = Vec::new();
    let mut of_job = Vec::new();
    for job in &run.jobs {
        let mine = processes(job, stop)?;
        of_job.push((procs.len()..procs.len() + mine.len()).collect());
        procs.extend(mine);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for proc in &mut procs {
        proc.start_ns += rng.random_range(0..=scatter_ns);
    }
    let groups = run
        .groups
        .iter()
        .zip(parents(run))
        .map(|(group, parent)| {
            Ok(sim::Group {
                parent,
                weight: Weight::new(group.weight)?,
                class: class_of(group.class),
                // With memory and I/O controllers on, what a group has dirtied is written back as
                // its own, whether its memory is limited or not.
                dirty: run
                    .fs
                    .is_some()
                    .then(|| Dirty::of_memory(group.memory.unwrap_or(MEMORY))),
            })
        })
        .collect::<Result<_>>()?;
    let setup = Setup {
        disk,
        controller: policy(run)?,
        nr_requests: run.nr_requests,
        groups,
        procs,
        wake_ns: WAKE_NS,
        dirty: Dirty::of_memory(MEMORY),
        seed,
        checked: false,
    };
    Ok((setup, of_job))
}

fn snapshot(run: &Run, sim: &Sim<Recorder>) -> Result<Snapshot> {
    let mut groups: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    let parents = parents(run);
    for (index, group) in run.groups.iter().enumerate() {
        let (tally, stats) = (sim.tally(index), sim.stats(index)?);
        let mut pairs = BTreeMap::new();
        let mut put = |key: &str, value: u64| pairs.insert(key.to_owned(), value);
        put("true_nsec", tally.true_ns);
        if run.controller.is_disktime() {
            put("time_usec", stats.total_time().0 / 1000);
            put("rios", stats.ios[0]);
            put("wios", stats.ios[1]);
            put("rsectors", stats.sectors[0]);
            put("wsectors", stats.sectors[1]);
            put("wait_max_usec", stats.wait_max.0 / 1000);
            put("queued", u64::from(sim.backlogged(index)?));
        }
        groups.insert(group.name.clone(), pairs);
        // io.stat counts for all groups above as well.
        let mut at = Some(index);
        while let Some(above) = at {
            let pairs = groups.entry(run.groups[above].name.clone()).or_default();
            for (key, value) in [
                ("io.rios", tally.ios[0]),
                ("io.wios", tally.ios[1]),
                ("io.rbytes", tally.sectors[0] * 512),
                ("io.wbytes", tally.sectors[1] * 512),
            ] {
                *pairs.entry(key.to_owned()).or_default() += value;
            }
            at = parents[above];
        }
    }
    let mut root = BTreeMap::new();
    if run.controller == Controller::Disktime {
        let time_usec = sim.root_stats()?.total_time().0 / 1000;
        root.insert("time_usec".to_owned(), time_usec);
    }
    Ok(Snapshot {
        mono_ns: sim.now(),
        unix_ns: sim.now(),
        idle_ns: 0,
        cpus: 0,
        root,
        groups,
    })
}

/// What the page cache may use; about what a machine has left of its memory.
const MEMORY: u64 = 2 << 30;

/// What waking a process up takes on a machine of today, roughly.
pub(crate) const WAKE_NS: u64 = 5_000;

/// Looks at the counters in a window that ends by the clock, and time between them in others.
const TICKS: u64 = 25;
const TICK_NS: u64 = 500_000_000;
/// Steps of a window that ends when a job is done.
const LOOK_NS: u64 = 1_000_000;

fn simulate(
    index: usize,
    run: &Run,
    out: &Path,
    chance: (u64, u64),
    left: &mut Left,
) -> Result<()> {
    if !knows(run.controller) {
        bail!("the simulator knows no {}", run.controller);
    }
    let (setup, of_job) = setup(run, chance)?;
    let nr_procs = setup.procs.len();
    let recorder = Recorder {
        records: run.trace.then(Vec::new),
        latencies: vec![Latencies::default(); nr_procs],
        transactions: vec![Vec::new(); nr_procs],
    };
    let mut sim = Sim::new(setup, recorder)?;
    left.events.push(Event::Start {
        run: index,
        nr_requests: sim.tags(),
        mono_ns: 0,
        settings: run.iosched.clone(),
    });
    for (number, phase) in run.phases.iter().enumerate() {
        for (job, procs) in of_job.iter().enumerate() {
            for &proc in procs {
                match phase.jobs.contains(&job) {
                    true => sim.start(proc),
                    false => sim.stop(proc),
                }
            }
        }
        sim.run(sim.now() + phase.settle_ns)?;
        left.events.push(Event::Begin {
            run: index,
            phase: number,
            snapshot: snapshot(run, &sim)?,
        });
        let begin = sim.now();
        let end = begin + phase.duration_ns;
        // By group: when the last of its processes had done all that it was to do.
        let mut finished_ns: BTreeMap<String, u64> = BTreeMap::new();
        let busy: Vec<usize> = phase.jobs.iter().map(|&j| run.jobs[j].group).collect();
        let mut next_tick = begin;
        while sim.now() < end {
            let step = match phase.stop {
                Stop::Time => phase.duration_ns.div_ceil(TICKS),
                _ => LOOK_NS,
            };
            sim.run((sim.now() + step).min(end))?;
            for &group in &busy {
                let jobs = phase.jobs.iter().filter(|&&j| run.jobs[j].group == group);
                let ends: Option<Vec<u64>> = jobs
                    .flat_map(|&j| &of_job[j])
                    .map(|&proc| sim.finished_at(proc))
                    .collect();
                if let Some(at) = ends.and_then(|e| e.into_iter().max()) {
                    let name = run.groups[group].name.clone();
                    finished_ns.entry(name).or_insert(at.saturating_sub(begin));
                }
            }
            let over = match phase.stop {
                Stop::Time => false,
                Stop::FirstJobDone => !finished_ns.is_empty(),
                Stop::AllJobsDone => busy
                    .iter()
                    .all(|&g| finished_ns.contains_key(&run.groups[g].name)),
            };
            if over || sim.now() >= end {
                break;
            }
            if sim.now() >= next_tick + TICK_NS || phase.stop == Stop::Time {
                next_tick = sim.now();
                left.events.push(Event::Tick {
                    run: index,
                    phase: number,
                    snapshot: snapshot(run, &sim)?,
                });
            }
        }
        left.events.push(Event::End {
            run: index,
            phase: number,
            snapshot: snapshot(run, &sim)?,
            finished_ns,
        });
    }
    for proc in 0..nr_procs {
        sim.stop(proc);
    }
    // What is in the page cache is written back, too.
    let busy = |sim: &Sim<Recorder>| {
        (0..nr_procs).any(|proc| sim.outstanding(proc) > 0)
            || (0..run.groups.len()).any(|group| sim.dirty(group) > 0)
    };
    while busy(&sim) {
        sim.run(sim.now() + 1_000 * LOOK_NS)?;
    }
    let counts = sim.counts();
    left.events.push(Event::Done {
        run: index,
        error: None,
        last: snapshot(run, &sim)?,
        lost: 0,
        counters: BTreeMap::from([
            ("dispatched".to_owned(), counts.dispatched),
            ("completed".to_owned(), counts.completed),
            ("empty".to_owned(), counts.empty),
        ]),
        health: run.controller.is_disktime().then(|| "ok".to_owned()),
    });
    for (job, procs) in run.jobs.iter().zip(&of_job) {
        let all = left.latencies.entry((index, job.name.clone())).or_default();
        for &proc in procs {
            all.merge(&sim.observer.latencies[proc]);
        }
        if job.transacts {
            let all = procs.iter().flat_map(|&p| &sim.observer.transactions[p]);
            let key = (index, job.name.clone());
            left.transactions.insert(key, all.copied().collect());
        }
    }
    if let Some(records) = &sim.observer.records {
        let folder = out.join(format!("r{index}"));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let mut file = BufWriter::new(File::create(folder.join(TRACE_FILE))?);
        trace::write(&mut file, records)?;
    }
    Ok(())
}
