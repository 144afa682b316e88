//! File systems on the disk, and the files that are read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::plan::{DISK, Fs, MOUNTS, Program, Run};

use super::{command, postgres, write};

/// The first partition begins here, in sectors.
const FIRST: u64 = 2048;

/// What is mounted, last first.
#[derive(Default)]
pub(super) struct Files {
    mounts: Vec<PathBuf>,
    partitions: Vec<u32>,
}

fn make(fs: &Fs, device: &str) -> Result<()> {
    match fs.kind.as_str() {
        "ext4" => {
            let lazy = "lazy_itable_init=0,lazy_journal_init=1,nodiscard";
            // Few inodes, made at once: nothing is to be written behind the load's back.
            command(
                "mkfs.ext4",
                &[
                    "-q",
                    "-F",
                    "-T",
                    "largefile4",
                    "-J",
                    "size=16",
                    "-E",
                    lazy,
                    device,
                ],
            )
        }
        // Discarding a disk that is new is of no use.
        "xfs" => command("mkfs.xfs", &["-q", "-f", "-K", device]),
        other => bail!("there is no way to make {other}"),
    }
}

impl Files {
    /// Makes what the run wants.
    pub(super) fn set_up(&mut self, run: &Run) -> Result<()> {
        let Some(fs) = &run.fs else { return Ok(()) };
        write("/sys/fs/cgroup/cgroup.subtree_control", "+memory")?;
        let disk = fs::canonicalize(Path::new("/dev").join(DISK))?;
        let disk = disk.to_string_lossy();
        let names = run.loaded_groups().into_iter().map(|g| &run.groups[g].name);
        if !fs.partitions {
            let shared = Path::new(MOUNTS);
            self.mount(fs, &disk, shared)?;
            for name in names {
                fs::create_dir_all(shared.join(name))?;
            }
            return Ok(());
        }
        for (index, name) in names.enumerate() {
            let number = index as u32 + 1;
            let from = (FIRST + index as u64 * fs.partition_sectors).to_string();
            let sectors = fs.partition_sectors.to_string();
            command("addpart", &[&disk, &number.to_string(), &from, &sectors])?;
            self.partitions.push(number);
            let dash = if disk.ends_with(|c: char| c.is_ascii_digit()) {
                "p"
            } else {
                ""
            };
            let device = format!("{disk}{dash}{number}");
            let start = Instant::now();
            while !Path::new(&device).exists() {
                if start.elapsed() > Duration::from_secs(10) {
                    bail!("{device} does not appear");
                }
                std::thread::sleep(Duration::from_millis(5));
            }
            let at = Path::new(MOUNTS).join(name);
            fs::create_dir_all(&at)?;
            self.mount(fs, &device, &at)?;
        }
        Ok(())
    }

    fn mount(&mut self, fs: &Fs, device: &str, at: &Path) -> Result<()> {
        make(fs, device)?;
        fs::create_dir_all(at)?;
        let target = at.to_string_lossy();
        command("mount", &["-t", &fs.kind, device, &target])?;
        self.mounts.push(at.to_owned());
        Ok(())
    }

    /// Lays out what will be read, and forgets it again.
    pub(super) fn lay_out(&self, run: &Run) -> Result<()> {
        if run.fs.is_none() {
            return Ok(());
        }
        let used: BTreeSet<usize> = run.phases.iter().flat_map(|p| p.jobs.clone()).collect();
        for job in used.into_iter().map(|j| &run.jobs[j]) {
            if let Program::Pgbench { scale } = job.program {
                postgres::lay_out(run, job, scale)?;
            }
            if !job
                .args
                .iter()
                .any(|a| a.starts_with("--rw=") && a.contains("read"))
            {
                continue;
            }
            let name = format!("--name={}", job.name);
            let mut args = vec![name.as_str(), "--create_only=1", "--output=/dev/null"];
            args.extend(job.args.iter().map(String::as_str));
            command("fio", &args).context("laying out files")?;
        }
        command("sync", &[])?;
        write("/proc/sys/vm/drop_caches", "3")
    }

    /// Unmounts all of it.
    pub(super) fn remove(&mut self) -> Result<()> {
        while let Some(at) = self.mounts.last() {
            command("umount", &[&at.to_string_lossy()])?;
            self.mounts.pop();
        }
        for number in self.partitions.drain(..) {
            let disk = fs::canonicalize(Path::new("/dev").join(DISK))?;
            command("delpart", &[&disk.to_string_lossy(), &number.to_string()])?;
        }
        Ok(())
    }
}
