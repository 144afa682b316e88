//! The cgroups of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::plan::{Class, Controller, DISK, Run, Snapshot};

use super::counters::add_pairs;
use super::disk::Disk;
use super::{command, now_ns, read, unix_ns, write};

/// From `/proc/stat`: time idle in all CPUs, and how many CPUs there are.
fn idle(stat: &str) -> (u64, u32) {
    /// USER_HZ is 100 on every architecture that Debian builds for.
    const TICK_NS: u64 = 10_000_000;
    let ticks = |line: &str| -> u64 {
        line.split_ascii_whitespace()
            .skip(4)
            .take(2)
            .filter_map(|w| w.parse::<u64>().ok())
            .sum()
    };
    let idle = stat
        .lines()
        .find(|l| l.starts_with("cpu "))
        .map_or(0, ticks);
    let cpus = stat
        .lines()
        .filter(|l| l.starts_with("cpu") && !l.starts_with("cpu "))
        .count();
    (idle * TICK_NS, cpus as u32)
}

const ROOT: &str = "/sys/fs/cgroup";

/// The cgroups while they exist, parents first.
pub(super) struct Groups {
    dev: String,
    /// Of each group: indices of its jobs, whose true time the disk may know.
    jobs: Vec<Vec<usize>>,
    by_index: Vec<(String, PathBuf)>,
}

impl Groups {
    pub(super) fn make(run: &Run, disk: &Disk) -> Result<Self> {
        let mut groups = Self {
            dev: disk.dev.clone(),
            jobs: (0..run.groups.len())
                .map(|g| {
                    (0..run.jobs.len())
                        .filter(|&j| run.jobs[j].group == g)
                        .collect()
                })
                .collect(),
            by_index: Vec::new(),
        };
        // What was made is removed even where the rest fails.
        groups.fill(run).inspect_err(|_| {
            let _ = groups.remove_dirs();
        })?;
        Ok(groups)
    }

    fn fill(&mut self, run: &Run) -> Result<()> {
        // A service manager may have it on already.
        write(Path::new(ROOT).join("cgroup.subtree_control"), "+io")?;
        for group in &run.groups {
            let path = Path::new(ROOT).join(&group.path);
            if let Some(parent) = path.parent().filter(|p| *p != Path::new(ROOT)) {
                write(parent.join("cgroup.subtree_control"), "+io")?;
                if run.fs.is_some() {
                    write(parent.join("cgroup.subtree_control"), "+memory")?;
                }
            }
            fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
            self.by_index.push((group.name.clone(), path.clone()));
            match run.controller {
                Controller::Disktime | Controller::DisktimeTrue => {
                    let weight = match group.on_device {
                        true => format!("weight@{DISK}={}", group.weight),
                        false => format!("weight={}", group.weight),
                    };
                    let class = match group.on_device {
                        true => format!("class@{DISK}={}", group.class.name()),
                        false => format!("class={}", group.class.name()),
                    };
                    let target = path.to_string_lossy();
                    let mut args = vec!["set", &target, &weight];
                    if group.class != Class::Be {
                        args.push(&class);
                    }
                    args.extend(["--runtime", "--quiet"]);
                    command("disktime", &args)?;
                }
                Controller::Bfq | Controller::BfqStrict => {
                    write(path.join("io.bfq.weight"), group.weight.to_string())?;
                }
                Controller::Iocost => {
                    write(path.join("io.weight"), group.weight.to_string())?;
                }
                // Classes, where they mean something, belong to the processes.
                Controller::None
                | Controller::MqDeadline
                | Controller::MqDeadlineIoprio
                | Controller::Kyber => {}
            }
            if let Some(bytes) = group.memory {
                write(path.join("memory.max"), bytes.to_string())?;
            }
        }
        Ok(())
    }

    pub(super) fn path(&self, index: usize) -> &Path {
        &self.by_index[index].1
    }

    pub(super) fn name(&self, index: usize) -> &str {
        &self.by_index[index].0
    }

    /// Counters as they are; `true_ns` is the disk's own account by job, where it keeps one.
    pub(super) fn snapshot(&self, true_ns: Option<&[u64]>) -> Result<Snapshot> {
        let (idle_ns, cpus) = idle(&read("/proc/stat")?);
        let mut snapshot = Snapshot {
            mono_ns: now_ns()?,
            unix_ns: unix_ns()?,
            idle_ns,
            cpus,
            ..Snapshot::default()
        };
        if let Ok(text) = fs::read_to_string(Path::new(ROOT).join("io.disktime.stat")) {
            add_pairs(&text, &self.dev, "", &mut snapshot.root);
        }
        for (index, (name, path)) in self.by_index.iter().enumerate() {
            let pairs = snapshot.groups.entry(name.clone()).or_default();
            if let Some(times) = true_ns {
                let mine = self.jobs[index].iter().filter_map(|&j| times.get(j));
                pairs.insert("true_nsec".into(), mine.sum());
            }
            let own = path.join("io.disktime.stat");
            if let Ok(text) = fs::read_to_string(own) {
                add_pairs(&text, &self.dev, "", pairs);
            }
            add_pairs(&read(path.join("io.stat"))?, &self.dev, "io.", pairs);
        }
        Ok(snapshot)
    }

    /// Waits until no process is left in any group, and ends those that stay: a fio that goes away
    /// in the middle of something leaves its workers behind, which would load the next run's disk.
    pub(super) fn empty(&self) -> Result<()> {
        for (name, path) in &self.by_index {
            let start = Instant::now();
            let mut killed = false;
            while let Some(pid) = read(path.join("cgroup.procs"))?.lines().next() {
                if start.elapsed() > Duration::from_secs(20) {
                    bail!("process {pid} of group {name} does not end");
                }
                if !killed && start.elapsed() > Duration::from_secs(2) {
                    killed = true;
                    let what = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                    eprintln!("dt-bench: ending what its fio left in group {name}: {what}");
                    write(path.join("cgroup.kill"), "1")?;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }

    /// Children before parents. Processes that end may linger a little.
    fn remove_dirs(&mut self) -> Result<()> {
        let start = Instant::now();
        while let Some((_, path)) = self.by_index.last() {
            match fs::remove_dir(path) {
                Ok(()) => {
                    self.by_index.pop();
                }
                Err(_) if start.elapsed() < Duration::from_secs(5) => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(e) => {
                    return Err(e).with_context(|| format!("cannot remove {}", path.display()));
                }
            }
        }
        Ok(())
    }

    pub(super) fn remove(mut self) -> Result<()> {
        self.remove_dirs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_idle_and_waiting_for_io() {
        let stat = "cpu  10 0 5 100 20 0 0 0 0 0\ncpu0 5 0 2 50 10\ncpu1 5 0 3 50 10\nintr 1\n";
        assert_eq!(idle(stat), (1_200_000_000, 2));
        assert_eq!(idle(""), (0, 0));
    }
}
