//! The disk: a null_blk made through configfs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::plan::{self, Controller, DISK, Run};

use super::{command, read, write};

const CONFIG: &str = "/sys/kernel/config/nullb";

/// The disk while it exists.
pub(super) struct Disk {
    config: PathBuf,
    sysfs: PathBuf,
    /// `MAJ:MIN`.
    pub(super) dev: String,
}

impl Disk {
    pub(super) fn make(model: &plan::Disk) -> Result<Self> {
        let config = Path::new(CONFIG).join(DISK);
        fs::create_dir(&config)
            .with_context(|| format!("cannot make {}; is null_blk loaded?", config.display()))?;
        for (key, value) in [
            ("size", model.size_mib),
            ("memory_backed", 0),
            ("queue_mode", 2),
            ("irqmode", 2),
            ("completion_nsec", model.service_ns),
            ("submit_queues", 1),
            ("hw_queue_depth", model.servers.into()),
            ("power", 1),
        ] {
            write(config.join(key), value.to_string())?;
        }
        let sysfs = Path::new("/sys/block").join(DISK);
        let node = Path::new("/dev").join(DISK);
        let start = Instant::now();
        while !node.exists() || !sysfs.exists() {
            if start.elapsed() > Duration::from_secs(20) {
                bail!("{} does not appear", node.display());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let dev = read(sysfs.join("dev"))?.trim().to_owned();
        let disk = Self { config, sysfs, dev };
        write(disk.queue("scheduler"), "none")?;
        write(
            disk.queue("rotational"),
            u8::from(model.rotational).to_string(),
        )?;
        Ok(disk)
    }

    fn queue(&self, file: &str) -> PathBuf {
        self.sysfs.join("queue").join(file)
    }

    /// As the kernel packs device numbers, for trace filters.
    pub(super) fn kernel_number(&self) -> Result<u64> {
        let (major, minor) = self
            .dev
            .split_once(':')
            .context("a device number without colon")?;
        Ok(major.parse::<u64>()? << 20 | minor.parse::<u64>()?)
    }

    /// Hands the disk to the run's controller.
    pub(super) fn schedule_by(&self, run: &Run) -> Result<()> {
        match run.controller {
            Controller::Disktime => {
                let wanted = run.nr_requests.map_or("keep".into(), |n| n.to_string());
                let enable = [
                    "enable",
                    DISK,
                    "--runtime",
                    "--quiet",
                    "--nr-requests",
                    &wanted,
                ];
                command("disktime", &enable)?;
                if !run.iosched.is_empty() {
                    let pairs: Vec<_> = run
                        .iosched
                        .iter()
                        .map(|(k, v)| format!("{k}={v}"))
                        .collect();
                    let mut set = vec!["set", DISK, "--runtime", "--quiet"];
                    set.extend(pairs.iter().map(String::as_str));
                    command("disktime", &set)?;
                }
            }
            other => {
                write(self.queue("scheduler"), other.name())?;
                // Without a scheduler there are the device's own tags only.
                if let Some(wanted) = run.nr_requests.filter(|_| other != Controller::None) {
                    write(self.queue("nr_requests"), wanted.to_string())?;
                }
                if other == Controller::Bfq {
                    write(self.queue("iosched/low_latency"), "0")?;
                }
            }
        }
        let active = read(self.queue("scheduler"))?;
        if !active.contains(&format!("[{}]", run.controller)) {
            bail!(
                "the kernel did not take {}: {}",
                run.controller,
                active.trim()
            );
        }
        Ok(())
    }

    pub(super) fn unschedule(&self) -> Result<()> {
        write(self.queue("scheduler"), "none")
    }

    pub(super) fn nr_requests(&self) -> Result<u32> {
        Ok(read(self.queue("nr_requests"))?.trim().parse()?)
    }

    pub(super) fn health(&self) -> Option<String> {
        Some(read(self.queue("iosched/health")).ok()?.trim().to_owned())
    }

    /// disktime's own counters.
    pub(super) fn counters(&self) -> BTreeMap<String, u64> {
        let path = Path::new("/sys/kernel/debug/block")
            .join(DISK)
            .join("sched/counters");
        let text = read(path).unwrap_or_default();
        text.lines()
            .filter_map(|line| {
                let (key, value) = line.split_once(' ')?;
                Some((key.to_owned(), value.trim().parse().ok()?))
            })
            .collect()
    }

    pub(super) fn remove(&self) -> Result<()> {
        write(self.config.join("power"), "0")?;
        fs::remove_dir(&self.config)
            .with_context(|| format!("cannot remove {}", self.config.display()))
    }
}
