//! Boots a machine for a plan, and keeps what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use disktime_vm::{Progress, Status, VmCase};

use crate::plan::{Event, PLAN_PATH, Phase, Plan, Program, Run, Stop};

/// What goes into the machine.
#[derive(Debug, Clone)]
pub struct Parts {
    /// Name of the kernel.
    pub kernel: String,
    /// Folder of `disktime.ko` and `disktime-iosched.ko`.
    pub modules: PathBuf,
    /// Folder of `dt-bench` and `disktime`, statically linked.
    pub guest: PathBuf,
}

/// What a machine left.
#[derive(Debug)]
pub struct Left {
    /// Its events in order.
    pub events: Vec<Event>,
    /// What the program said that is no event.
    pub said: String,
    /// By index of run and phase: which part of the host's CPU time was idle in the window.
    pub host_idle: BTreeMap<(usize, usize), f64>,
    /// Why the machine did not end well.
    pub failure: Option<String>,
    /// From start to end.
    pub total_ms: u64,
    /// `tcg` or `kvm`.
    pub accel: &'static str,
}

/// Something that is not there yet, and how to make it.
#[derive(Debug, thiserror::Error)]
#[error("{what} is missing: {}", path.display())]
pub struct Missing {
    what: &'static str,
    path: PathBuf,
    /// One thing to do.
    pub hint: String,
}

fn need(what: &'static str, path: PathBuf, hint: &str) -> Result<PathBuf, Missing> {
    match path.is_file() {
        true => Ok(path),
        false => Err(Missing {
            what,
            path,
            hint: hint.to_owned(),
        }),
    }
}

/// Whether the run's disk has to be served by a program.
#[must_use]
pub fn needs_ublk(run: &Run) -> bool {
    run.disk.capacity().is_none()
}

/// A program that the host has.
fn of_the_host(name: &str) -> Result<PathBuf, Missing> {
    let folders = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
    let mut found = folders.iter().map(|f| Path::new(f).join(name));
    found.find(|path| path.is_file()).ok_or_else(|| Missing {
        what: "a program of the host",
        path: name.into(),
        hint: "install e2fsprogs, xfsprogs and util-linux: make setup".to_owned(),
    })
}

/// How long a plan takes if nothing is in the way.
#[must_use]
pub fn estimate(plan: &Plan) -> Duration {
    // Setting up and taking down, and starting fio, under emulation.
    const EACH_RUN: Duration = Duration::from_millis(1500);
    const EACH_PHASE: Duration = Duration::from_millis(1000);
    // Copying a thousand files to a slow disk, and beginning to serve.
    const EACH_DATABASE: Duration = Duration::from_secs(30);
    const BOOT: Duration = Duration::from_secs(6);
    // A second of a machine that counts instructions and is busy.
    const COUNTED: u32 = 18;
    let window = |phase: &Phase| match phase.stop {
        Stop::Time => Duration::from_nanos(phase.duration_ns),
        // The duration is a limit, chosen with room.
        Stop::FirstJobDone | Stop::AllJobsDone => Duration::from_nanos(phase.duration_ns / 4),
    };
    if plan.instructions {
        let phases = plan.runs.iter().flat_map(|run| &run.phases);
        let windows = phases.map(|p| Duration::from_nanos(p.settle_ns) + window(p));
        return 2 * BOOT + windows.sum::<Duration>() * COUNTED;
    }
    let runs = plan.runs.iter().map(|run| {
        let phases = run
            .phases
            .iter()
            .map(|p| EACH_PHASE + Duration::from_nanos(p.settle_ns) + window(p));
        let databases = run.jobs.iter().filter(|job| job.program != Program::Fio);
        EACH_RUN + phases.sum::<Duration>() + EACH_DATABASE * databases.count() as u32
    });
    BOOT + runs.sum::<Duration>()
}

/// The same in words. A machine that counts instructions is quicker wherever its CPUs wait for disks.
#[must_use]
pub fn takes(plan: &Plan) -> String {
    let about = if plan.instructions {
        "at most"
    } else {
        "about"
    };
    format!("{about} {} s", estimate(plan).as_secs())
}

/// Runs the plan in one machine. `out` gets what the runs leave; `on_event` hears events as they
/// come.
pub fn run(
    parts: &Parts,
    plan: &Plan,
    out: &Path,
    progress: &Progress,
    on_event: &mut dyn FnMut(&Event),
) -> Result<Left> {
    let guest = "build the programs for the machine first: make tools";
    let ko = "build the modules first: make modules";
    let trial = need(
        "the program that measures",
        parts.guest.join("dt-bench"),
        guest,
    )?;
    let command = need(
        "the command disktime for the machine",
        parts.guest.join("disktime"),
        guest,
    )?;
    let provide = ["disktime.ko", "disktime-iosched.ko"]
        .map(|name| need("a kernel module", parts.modules.join(name), ko));
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let plan_file = scratch.path().join("plan.json");
    fs::write(&plan_file, serde_json::to_vec(plan)?).context("cannot write the plan")?;

    let mut case = VmCase::new("trial", &["dt-bench"]).module("null_blk", "nr_devices=0");
    case.kernel.clone_from(&parts.kernel);
    case.instructions = plan.instructions;
    for module in provide {
        case.provide.push(module?.display().to_string());
    }
    case.bins = vec![(trial, None), (command, None)];
    if plan.runs.iter().any(needs_ublk) {
        let server = parts.guest.join("disktime-modeldisk");
        case.bins.push((
            need("the program that serves model disks", server, guest)?,
            None,
        ));
        case = case.module("ublk_drv", "");
    }
    let users = |run: &Run| run.jobs.iter().any(|job| job.user.is_some());
    if plan.runs.iter().any(users) {
        case.bins.push((of_the_host("setpriv")?, None));
    }
    let kinds: BTreeSet<&str> = plan
        .runs
        .iter()
        .filter_map(|run| Some(run.fs.as_ref()?.kind.as_str()))
        .collect();
    if !kinds.is_empty() {
        for name in ["addpart", "delpart"] {
            case.bins.push((of_the_host(name)?, None));
        }
        // File systems would ask for it in vain, where they load it themselves.
        case = case.module("crc32c_generic", "");
    }
    for kind in kinds {
        case.bins
            .push((of_the_host(&format!("mkfs.{kind}"))?, None));
        case = case.module(kind, "");
    }
    let postgres = |run: &Run| {
        let mut jobs = run.jobs.iter();
        jobs.any(|job| matches!(job.program, Program::Pgbench { .. }))
    };
    case.postgres = plan.runs.iter().any(postgres);
    case.files = vec![(plan_file, PLAN_PATH.to_owned())];
    case.out_dir = Some(out.to_owned());
    case.mem = match plan.runs.iter().any(|run| run.fs.is_some()) {
        true => "3072M".into(),
        false => "1536M".into(),
    };
    // A host that is busy with other things makes everything but the windows slow.
    case.timeout = estimate(plan) * 4 + Duration::from_secs(120);

    let mut host = Host::default();
    let mut lines = Lines::default();
    let mut events = Vec::new();
    let mut said = String::new();
    let outcome = case.run_with(progress, &mut |bytes| {
        for line in lines.add(bytes) {
            match serde_json::from_str::<Event>(&line) {
                Ok(event) => {
                    if matches!(event, Event::Hello { .. }) {
                        // A machine that fell over by no fault of its own is booted again.
                        events.clear();
                        host = Host::default();
                    }
                    host.hear(&event);
                    on_event(&event);
                    events.push(event);
                }
                Err(_) => {
                    said.push_str(&line);
                    said.push('\n');
                }
            }
        }
    });
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(_) if disktime_vm::cancelled() && !events.is_empty() => {
            let failure = Some("interrupted".to_owned());
            let host_idle = host.idle;
            return Ok(Left {
                events,
                said,
                host_idle,
                failure,
                total_ms: 0,
                accel: "",
            });
        }
        Err(e) => bail!(e),
    };
    let failure = match &outcome.status {
        Status::Exited(0) => None,
        status => {
            let mut text = format!("the machine ended with: {status}");
            if !matches!(status, Status::Exited(_)) {
                let tail = disktime_vm::console::tail(&outcome.console, 60);
                text = format!("{text}\n--- the end of its console\n{tail}\n---");
            }
            Some(text)
        }
    };
    Ok(Left {
        events,
        said,
        host_idle: host.idle,
        failure,
        total_ms: outcome.total_ms,
        accel: outcome.accel,
    })
}

/// Waits until the host does little else, at most so long.
pub fn await_quiet(limit: Duration, progress: &Progress) {
    /// Both CPUs of a small host together; a machine under load takes about half of them.
    const IDLE_ENOUGH: f64 = 0.85;
    const LOOK: Duration = Duration::from_secs(2);
    const IN_A_ROW: u32 = 3;
    let read = || ticks(&fs::read_to_string("/proc/stat").ok()?);
    let start = Instant::now();
    let mut quiet = 0;
    let mut told = false;
    while start.elapsed() < limit && !disktime_vm::cancelled() {
        let Some(from) = read() else { return };
        std::thread::sleep(LOOK);
        let Some(to) = read() else { return };
        let (idle, all) = (to.0.saturating_sub(from.0), to.1.saturating_sub(from.1));
        quiet = match idle as f64 >= IDLE_ENOUGH * all as f64 {
            true => quiet + 1,
            false => 0,
        };
        if quiet == IN_A_ROW {
            return;
        }
        if !told {
            told = true;
            progress.line(&format!(
                "waiting up to {} s for a quiet host",
                limit.as_secs()
            ));
        }
    }
}

/// Watches how busy the host is. What it takes away from the machine, the machine cannot see.
#[derive(Default)]
struct Host {
    begin: Option<(u64, u64)>,
    idle: BTreeMap<(usize, usize), f64>,
}

/// Ticks idle and ticks in all, from `/proc/stat`.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find(|l| l.starts_with("cpu "))?;
    // Time of guests is part of the user time before it.
    let ticks: Vec<u64> = line
        .split_ascii_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|w| w.parse().ok())
        .collect();
    Some((ticks.get(3)? + ticks.get(4)?, ticks.iter().sum()))
}

impl Host {
    fn hear(&mut self, event: &Event) {
        let now = || ticks(&fs::read_to_string("/proc/stat").ok()?);
        match event {
            Event::Begin { .. } => self.begin = now(),
            Event::End { run, phase, .. } => {
                let Some((from, to)) = self.begin.take().zip(now()) else {
                    return;
                };
                let (idle, all) = (to.0.saturating_sub(from.0), to.1.saturating_sub(from.1));
                if all > 0 {
                    self.idle.insert((*run, *phase), idle as f64 / all as f64);
                }
            }
            _ => {}
        }
    }
}

/// Cuts a stream into lines.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    fn add(&mut self, bytes: &[u8]) -> Vec<String> {
        self.0.extend_from_slice(bytes);
        let Some(end) = self.0.iter().rposition(|b| *b == b'\n') else {
            return Vec::new();
        };
        let rest = self.0.split_off(end + 1);
        let whole = std::mem::replace(&mut self.0, rest);
        String::from_utf8_lossy(&whole)
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_ticks_of_the_host_are_read() {
        let stat = "cpu  100 2 30 500 8 0 3 1 50 0\ncpu0 1 1 1 1 1\n";
        assert_eq!(ticks(stat), Some((508, 644)));
        assert_eq!(ticks("cpu0 1"), None);
    }

    #[test]
    fn lines_come_whole_however_they_are_cut() {
        let mut lines = Lines::default();
        assert!(lines.add(b"a").is_empty());
        assert_eq!(lines.add(b"b\nc\nd"), ["ab", "c"]);
        assert_eq!(lines.add(b"\n"), ["d"]);
        assert!(lines.add(b"").is_empty());
    }
}
