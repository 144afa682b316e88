//! The load: fio processes, each put into its group before it becomes fio.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::plan::{Job, Program, Run, Snapshot, Stop};

use super::groups::Groups;
use super::{START_LIMIT, postgres};

/// How long fio may take to end when it was asked to.
const STOP_LIMIT: Duration = Duration::from_secs(20);
/// Beyond the run's own times, for a fio that nobody stops.
const SPARE_SECONDS: u64 = 120;

/// The processes of a run.
pub(super) struct Load {
    run: Run,
    out: PathBuf,
    /// The limit of a job's time; none where jobs end by themselves.
    runtime: Option<u64>,
    running: Vec<Option<Child>>,
    starts: usize,
}

impl Load {
    pub(super) fn new(run: &Run, out: &Path) -> Self {
        let ends = run.phases.iter().any(|p| p.stop != Stop::Time);
        let total: u64 = run.phases.iter().map(|p| p.settle_ns + p.duration_ns).sum();
        Self {
            run: run.clone(),
            out: out.to_owned(),
            runtime: (!ends).then_some(total / 1_000_000_000 + SPARE_SECONDS),
            running: run.jobs.iter().map(|_| None).collect(),
            starts: 0,
        }
    }

    /// Starts those of `jobs` that do not run.
    pub(super) fn start(&mut self, jobs: &[usize], groups: &Groups) -> Result<()> {
        for &index in jobs {
            if self.running[index].is_some() {
                continue;
            }
            let job = &self.run.jobs[index];
            let left = |end: &str| {
                let name = format!("fio-{}-{}{end}", self.starts, job.name);
                self.out.join(name)
            };
            let (report, said, times) = (left(".json"), left(".log"), left(""));
            self.starts += 1;
            let mut command = Command::new("/bin/sh");
            // The shell enters the group; what it becomes is there from its first instruction.
            command
                .args(["-c", "echo 0 > \"$0\"/cgroup.procs && exec \"$@\""])
                .arg(groups.path(job.group))
                .args(become_user(job))
                .args(match job.program {
                    Program::Fio => self.fio(job, &report, &times),
                    Program::Pgbench { .. } => postgres::serve(&self.run, job, &times)?,
                });
            let log =
                File::create(&said).with_context(|| format!("cannot make {}", said.display()))?;
            let log2 = log.try_clone()?;
            let child = command
                .stdin(Stdio::null())
                .stdout(log)
                .stderr(log2)
                .current_dir("/tmp")
                .spawn()
                .context("cannot run /bin/sh")?;
            self.running[index] = Some(child);
            if job.program != Program::Fio {
                // Before others come: who begins beside them measures his beginning.
                self.await_server(index, &postgres::ready(&times))?;
            }
        }
        Ok(())
    }

    fn await_server(&mut self, index: usize, ready: &Path) -> Result<()> {
        let start = Instant::now();
        while !ready.exists() {
            let name = &self.run.jobs[index].name;
            ensure!(
                start.elapsed() < START_LIMIT,
                "the server of job {name} does not begin to serve"
            );
            self.check_alive(&[index])?;
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// fio with all it is told.
    fn fio(&self, job: &Job, report: &Path, times: &Path) -> Vec<String> {
        let mut words = vec!["fio".to_owned(), format!("--name={}", job.name)];
        words.extend(own_args(job).cloned());
        let usual = [
            "--output-format=json+",
            "--eta=never",
            "--lat_percentiles=1",
            "--clat_percentiles=0",
            "--disk_util=0",
        ];
        words.extend(usual.map(str::to_owned));
        words.push(format!("--output={}", report.display()));
        if let Some(seconds) = self.runtime {
            words.push("--time_based".into());
            words.push(format!("--runtime={seconds}"));
        }
        if job.transacts {
            words.push("--log_unix_epoch=1".into());
            words.push(format!("--write_lat_log={}", times.display()));
        }
        words
    }

    /// Waits until the groups of all these jobs do I/O; where they need not, `limit` at most.
    pub(super) fn await_start(
        &mut self,
        jobs: &[usize],
        groups: &Groups,
        before: &Snapshot,
        limit: Duration,
        must: bool,
    ) -> Result<()> {
        let start = Instant::now();
        loop {
            let seen = groups.snapshot(None)?;
            let waiting = jobs.iter().map(|&j| &self.run.jobs[j]).find(|job| {
                let group = groups.name(job.group);
                let beside = jobs
                    .iter()
                    .map(|&j| &self.run.jobs[j])
                    .filter(|j| j.group == job.group);
                let depth: u32 = beside.map(|j| j.depth).sum();
                ios(&seen, group) < ios(before, group) + 2 * u64::from(depth)
            });
            let Some(job) = waiting else { return Ok(()) };
            if start.elapsed() > limit {
                ensure!(!must, "job {} does no I/O", job.name);
                return Ok(());
            }
            self.check_alive(jobs)?;
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// An error if one of these jobs has ended, unless it was to, when all is done.
    pub(super) fn check_alive(&mut self, jobs: &[usize]) -> Result<()> {
        for &index in jobs {
            let Some(child) = &mut self.running[index] else {
                continue;
            };
            if let Some(status) = child.try_wait()? {
                if self.runtime.is_none() && status.success() {
                    continue;
                }
                let name = &self.run.jobs[index].name;
                bail!("job {name} ended early with {status}: {}", self.said(name));
            }
        }
        Ok(())
    }

    /// The last line that fio wrote about a job.
    fn said(&self, name: &str) -> String {
        let Ok(entries) = fs::read_dir(&self.out) else {
            return String::new();
        };
        let text = entries
            .flatten()
            .map(|e| e.path())
            .filter(|p| p.to_string_lossy().ends_with(&format!("-{name}.log")))
            .filter_map(|p| fs::read_to_string(p).ok())
            .last();
        text.and_then(|t| t.lines().next_back().map(str::to_owned))
            .unwrap_or_default()
    }

    /// Ends all jobs but these, in good order if they will.
    pub(super) fn stop_all_but(&mut self, keep: &[usize]) -> Result<()> {
        let ending: Vec<usize> = (0..self.running.len())
            .filter(|i| self.running[*i].is_some() && !keep.contains(i))
            .collect();
        for &index in &ending {
            if let Some(child) = &self.running[index] {
                let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGINT);
            }
        }
        let start = Instant::now();
        for &index in &ending {
            let Some(child) = &mut self.running[index] else {
                continue;
            };
            while child.try_wait()?.is_none() {
                if start.elapsed() > STOP_LIMIT {
                    let _ = child.kill();
                    bail!("job {} does not end", self.run.jobs[index].name);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            self.running[index] = None;
        }
        Ok(())
    }
}

/// What turns into a job's user. A user may not give himself every priority: it is given before.
fn become_user(job: &Job) -> Vec<String> {
    let Some(user) = job.user else {
        return Vec::new();
    };
    let value = |name: &str| {
        let mut found = job.args.iter().filter_map(|a| a.strip_prefix(name));
        found.next().map(str::to_owned)
    };
    let mut words: Vec<String> = Vec::new();
    if let Some(class) = value("--prioclass=") {
        let level = value("--prio=").unwrap_or("7".into());
        words.extend(["ionice", "-c", &class, "-n", &level].map(str::to_owned));
    }
    let ids = [format!("--reuid={user}"), format!("--regid={user}")];
    // By its path: the shell would take busybox's, which can do less.
    words.push("/bin/setpriv".into());
    words.extend(ids);
    words.push("--clear-groups".into());
    words
}

/// fio's arguments, but for what was given to a user before.
fn own_args(job: &Job) -> impl Iterator<Item = &String> {
    let given = |arg: &str| job.user.is_some() && arg.starts_with("--prio");
    job.args.iter().filter(move |arg| !given(arg))
}

fn pair(snapshot: &Snapshot, group: &str, key: &str) -> Option<u64> {
    snapshot.groups.get(group)?.get(key).copied()
}

fn ios(snapshot: &Snapshot, group: &str) -> u64 {
    ["io.rios", "io.wios"]
        .iter()
        .filter_map(|key| pair(snapshot, group, key))
        .sum()
}

/// Bytes moved: those of completed requests where the controller counts them, else those asked for.
fn bytes(snapshot: &Snapshot, group: &str) -> u64 {
    match pair(snapshot, group, "sectors") {
        Some(sectors) => sectors * 512,
        None => ["io.rbytes", "io.wbytes"]
            .iter()
            .filter_map(|key| pair(snapshot, group, key))
            .sum(),
    }
}

/// The groups of these jobs that have moved all that their jobs are to move.
pub(super) fn done<'a>(
    run: &'a Run,
    jobs: &[usize],
    before: &Snapshot,
    seen: &Snapshot,
) -> Vec<&'a str> {
    let groups: BTreeSet<usize> = jobs.iter().map(|&j| run.jobs[j].group).collect();
    groups
        .into_iter()
        .filter(|&group| {
            let name = &run.groups[group].name;
            let mine = jobs
                .iter()
                .map(|&j| &run.jobs[j])
                .filter(|j| j.group == group);
            let all: u64 = mine.filter_map(|j| j.bytes).sum();
            all > 0 && bytes(seen, name) >= bytes(before, name) + all
        })
        .map(|group| run.groups[group].name.as_str())
        .collect()
}
