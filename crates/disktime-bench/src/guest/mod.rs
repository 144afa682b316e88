//! What runs inside the machine.

mod counters;
mod disk;
mod files;
mod groups;
mod load;
mod postgres;
mod tracer;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::time::{ClockId, clock_gettime};

use crate::plan::{
    Controller, Event, OUT_DIR, PLAN_PATH, Phase, Plan, Run, Snapshot, Stop, TRACE_FILE, VERSION,
};

use disk::Disk;
use files::Files;
use groups::Groups;
use load::Load;
use tracer::Tracer;

/// Longest time from the start of a job to its first I/Os: the machine is emulated and may share
/// its host.
const START_LIMIT: Duration = Duration::from_secs(60);
/// How often a snapshot is sent while a phase runs.
const TICK_NS: u64 = 500_000_000;

/// CLOCK_MONOTONIC, which is also the trace's clock.
fn now_ns() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).context("cannot read CLOCK_MONOTONIC")?;
    Ok(Duration::from(now).as_nanos() as u64)
}

/// The time of day, which programs write into their logs.
fn unix_ns() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).context("cannot read CLOCK_REALTIME")?;
    Ok(Duration::from(now).as_nanos() as u64)
}

fn write(path: impl AsRef<Path>, text: impl AsRef<str>) -> Result<()> {
    let (path, text) = (path.as_ref(), text.as_ref());
    // One write(2): that is what files of the kernel take for a command.
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {text:?} to {}", path.display()))
}

fn read(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Runs a program to its end; an error carries what it said.
fn command(program: &str, args: &[&str]) -> Result<()> {
    let shown = || format!("{program} {}", args.join(" "));
    let output = Command::new(program)
        .args(args)
        .output()
        .with_context(|| format!("cannot run {}", shown()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", shown(), output.status, said.trim());
    }
    Ok(())
}

/// Somebody who hears of what happens.
pub type Hear<'a> = dyn FnMut(&Event) -> Result<()> + 'a;

/// Where a plan is carried out, and who hears of it.
pub struct Ground<'a> {
    /// Takes traces and fio's reports.
    out: PathBuf,
    /// A device that is there, `/dev/` left away; else the disk of each run is made.
    device: Option<&'a str>,
    hear: RefCell<&'a mut Hear<'a>>,
}

impl<'a> Ground<'a> {
    /// On a device of this machine, rather than on disks that are made.
    pub fn device(out: &Path, device: &'a str, hear: &'a mut Hear<'a>) -> Self {
        Self {
            out: out.to_owned(),
            device: Some(device),
            hear: RefCell::new(hear),
        }
    }

    fn send(&self, event: &Event) -> Result<()> {
        (self.hear.borrow_mut())(event)
    }

    fn folder(&self, index: usize) -> PathBuf {
        self.out.join(format!("r{index}"))
    }
}

/// Carries out the plan that was put into a machine, and prints events; says whether all runs went
/// through.
pub fn run_plan() -> Result<bool> {
    let plan: Plan = serde_json::from_str(&read(PLAN_PATH)?).context("cannot read the plan")?;
    ensure!(
        plan.version == VERSION,
        "the plan has version {}, this program speaks {VERSION}: build both from the same sources",
        plan.version
    );
    let mut print = |event: &Event| {
        let mut line = serde_json::to_string(event)?;
        line.push('\n');
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(line.as_bytes())?;
        stdout.flush()?;
        Ok(())
    };
    let ground = Ground {
        out: OUT_DIR.into(),
        device: None,
        hear: RefCell::new(&mut print),
    };
    carry_out(&plan, &ground)
}

/// Carries out a plan; says whether all runs went through.
pub fn carry_out(plan: &Plan, ground: &Ground<'_>) -> Result<bool> {
    let release = read("/proc/sys/kernel/osrelease")?.trim().to_owned();
    ground.send(&Event::Hello { release })?;
    let mut ok = true;
    for (index, run) in plan.runs.iter().enumerate() {
        let mut trial = Trial::new(ground);
        let mut error = trial.measure(index, run).err().map(|e| format!("{e:#}"));
        let last = trial.finish(index, run);
        let (last, lost, counters, health) = match last {
            Ok(end) => end,
            Err(e) => {
                error.get_or_insert(format!("{e:#}"));
                Default::default()
            }
        };
        ok &= error.is_none();
        let stuck = error.is_some() && trial.disk.is_some();
        ground.send(&Event::Done {
            run: index,
            error,
            last,
            lost,
            counters,
            health,
        })?;
        if stuck {
            bail!("the disk of run {index} cannot be taken away: giving up");
        }
    }
    Ok(ok)
}

/// What the end of a run yields: last snapshot, lost events, the scheduler's counters, its health.
type End = (Snapshot, u64, BTreeMap<String, u64>, Option<String>);

/// What there is of a run so far; [`Trial::finish`] takes it away, whatever came before.
struct Trial<'g, 'h> {
    ground: &'g Ground<'h>,
    disk: Option<Disk>,
    groups: Option<Groups>,
    tracer: Option<Tracer>,
    load: Option<Load>,
    files: Files,
}

impl<'g, 'h> Trial<'g, 'h> {
    fn new(ground: &'g Ground<'h>) -> Self {
        Self {
            ground,
            disk: None,
            groups: None,
            tracer: None,
            load: None,
            files: Files::default(),
        }
    }

    fn measure(&mut self, index: usize, run: &Run) -> Result<()> {
        let out = self.ground.folder(index);
        fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
        // Users write their reports there.
        fs::set_permissions(&out, fs::Permissions::from_mode(0o777))?;
        self.disk = Some(Disk::make(run, self.ground.device)?);
        self.files.set_up(run)?;
        self.files.lay_out(run)?;
        let disk = self.disk.as_ref().context("no disk")?;
        let settings = disk.schedule_by(run)?;
        self.groups = Some(Groups::make(run, disk)?);
        if run.trace {
            self.tracer = Some(Tracer::start(disk)?);
        }
        self.load = Some(Load::new(run, &out));
        self.ground.send(&Event::Start {
            run: index,
            nr_requests: disk.nr_requests()?,
            mono_ns: now_ns()?,
            settings,
        })?;
        for (number, phase) in run.phases.iter().enumerate() {
            self.phase(index, run, number, phase)
                .with_context(|| format!("phase {number} of run {index}"))?;
        }
        Ok(())
    }

    fn phase(&mut self, index: usize, run: &Run, number: usize, phase: &Phase) -> Result<()> {
        let (Some(groups), Some(load), Some(disk)) = (&self.groups, &mut self.load, &self.disk)
        else {
            bail!("the run was not set up");
        };
        let look = || groups.snapshot(disk.true_ns(run).as_deref());
        load.stop_all_but(&phase.jobs)?;
        let before = look()?;
        load.start(&phase.jobs, groups)?;
        // Others may let a group starve, which is what a scenario is to show.
        let (limit, must) = match run.controller {
            Controller::Disktime => (START_LIMIT, true),
            _ => (START_LIMIT / 4, false),
        };
        load.await_start(&phase.jobs, groups, &before, limit, must)?;

        let tick = |snapshot| {
            self.ground.send(&Event::Tick {
                run: index,
                phase: number,
                snapshot,
            })
        };
        wait(now_ns()? + phase.settle_ns, || tick(look()?))?;
        load.check_alive(&phase.jobs)?;
        let begin = look()?;
        let until = begin.mono_ns + phase.duration_ns;
        self.ground.send(&Event::Begin {
            run: index,
            phase: number,
            snapshot: begin.clone(),
        })?;
        let mut finished_ns = BTreeMap::new();
        let end = match phase.stop {
            Stop::Time => {
                wait(until, || tick(look()?))?;
                let end = look()?;
                load.check_alive(&phase.jobs)?;
                end
            }
            Stop::FirstJobDone | Stop::AllJobsDone => {
                // The whole size was to be moved since the job began, not since the window did.
                let mut next = begin.mono_ns + TICK_NS;
                loop {
                    let seen = groups.snapshot(None)?;
                    for name in load::done(run, &phase.jobs, &before, &seen) {
                        let at = seen.mono_ns - begin.mono_ns;
                        finished_ns.entry(name.to_owned()).or_insert(at);
                    }
                    let busy: BTreeSet<usize> =
                        phase.jobs.iter().map(|&j| run.jobs[j].group).collect();
                    let over = match phase.stop {
                        Stop::AllJobsDone => finished_ns.len() == busy.len(),
                        _ => !finished_ns.is_empty(),
                    };
                    if over {
                        break look()?;
                    }
                    ensure!(
                        seen.mono_ns < until,
                        "the jobs were not done within the duration"
                    );
                    if seen.mono_ns >= next {
                        next += TICK_NS;
                        tick(look()?)?;
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        };
        if let Some(state) = disk.state() {
            let path = self.ground.folder(index).join(format!("state{number}"));
            std::fs::write(&path, state)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        self.ground.send(&Event::End {
            run: index,
            phase: number,
            snapshot: end,
            finished_ns,
        })
    }

    fn finish(&mut self, index: usize, run: &Run) -> Result<End> {
        let mut lost = 0;
        let mut last = Snapshot::default();
        if let Some(load) = &mut self.load {
            load.stop_all_but(&[])?;
        }
        if let Some(groups) = &self.groups {
            groups.empty()?;
            if run.fs.is_some() {
                // What was left in the page cache belongs to the trace.
                command("sync", &[])?;
            }
            last = groups.snapshot(self.disk.as_ref().and_then(|d| d.true_ns(run)).as_deref())?;
        }
        if let Some(tracer) = self.tracer.take() {
            let path = self.ground.folder(index).join(TRACE_FILE);
            lost = tracer.finish(&path)?;
        }
        let mut counters = Default::default();
        let mut health = None;
        self.files.remove()?;
        if let Some(disk) = &self.disk {
            if run.controller == Controller::Disktime {
                counters = disk.counters();
                health = disk.health();
            }
            disk.unschedule(run)?;
        }
        if let Some(groups) = self.groups.take() {
            groups.remove()?;
        }
        if let Some(disk) = &mut self.disk {
            disk.remove()?;
        }
        self.disk = None;
        Ok((last, lost, counters, health))
    }
}

/// Sleeps until the time is `until`, calling `tick` now and then.
fn wait(until: u64, mut tick: impl FnMut() -> Result<()>) -> Result<()> {
    loop {
        let left = until.saturating_sub(now_ns()?);
        if left == 0 {
            return Ok(());
        }
        if left > TICK_NS * 3 / 2 {
            std::thread::sleep(Duration::from_nanos(TICK_NS));
            tick()?;
        } else {
            std::thread::sleep(Duration::from_nanos(left));
        }
    }
}
