//! Measures on a disk of this machine, and on no disk that holds anything unless that was named.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::guest::{Ground, carry_out};
use crate::plan::{self, Class, DISK, Event, Plan, Run};

/// A disk that cannot be used, and what to do about it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{why}")]
pub struct Refused {
    why: String,
    /// One thing to do.
    pub hint: String,
}

fn refused(why: impl Into<String>, hint: impl Into<String>) -> Refused {
    Refused {
        why: why.into(),
        hint: hint.into(),
    }
}

/// The cgroup below which all groups are made: those of the machine stay as they are.
const ABOVE: &str = "disktime-bench";
const O_EXCL: i32 = 0o200;

/// A whole disk that nobody uses.
#[derive(Debug)]
pub struct Device {
    /// As in `/sys/block`.
    name: String,
    sectors: u64,
}

/// What the disk holds, by the names under which it may be given up: labels and numbers of file
/// systems and partition tables, or where there are none, their kind.
fn holds(blkid: &str) -> Option<(String, Vec<String>)> {
    let value = |key: &str| {
        let mut lines = blkid.lines().filter_map(|l| l.split_once('='));
        lines.find(|(k, _)| *k == key).map(|(_, v)| v.to_owned())
    };
    let kind = value("TYPE").or_else(|| value("PTTYPE"))?;
    let what = match value("TYPE") {
        Some(kind) => format!("a file system or the like ({kind})"),
        None => format!("a partition table ({kind})"),
    };
    let mut names: Vec<String> = ["UUID", "LABEL", "PTUUID"]
        .into_iter()
        .filter_map(value)
        .collect();
    if names.is_empty() {
        names.push(kind);
    }
    Some((what, names))
}

impl Device {
    /// Looks at `/dev/x`. What is in use, is a part of a disk or holds data is refused, the latter
    /// unless `destroy` names the data.
    pub fn check(path: &Path, destroy: &[String]) -> Result<Self> {
        let shown = path.display();
        let real = path
            .canonicalize()
            .with_context(|| format!("cannot find {shown}"))?;
        let whole = "name a whole disk, like /dev/sdb";
        if !fs::metadata(&real)?.file_type().is_block_device() {
            return Err(refused(format!("{shown} is no block device"), whole).into());
        }
        let name = real
            .file_name()
            .context("no name")?
            .to_string_lossy()
            .into_owned();
        let sysfs = PathBuf::from("/sys/block").join(&name);
        if !sysfs.exists() {
            return Err(refused(format!("{shown} is a part of a disk"), whole).into());
        }
        if let Err(e) = fs::OpenOptions::new()
            .read(true)
            .custom_flags(O_EXCL)
            .open(&real)
        {
            let why = match e.kind() {
                ErrorKind::ResourceBusy => format!("{shown} is in use"),
                _ => format!("cannot open {shown}: {e}"),
            };
            return Err(refused(why, "unmount it, and take it out of arrays and volumes").into());
        }
        let output = Command::new("blkid")
            .args(["-p", "-o", "export"])
            .arg(&real)
            .output()
            .context("cannot run blkid, which tells what a disk holds")?;
        if let Some((what, names)) = holds(&String::from_utf8_lossy(&output.stdout)) {
            if !names.iter().any(|name| destroy.contains(name)) {
                let hint = format!("if it may be destroyed, name it: --destroy {}", names[0]);
                return Err(refused(format!("{shown} holds {what}"), hint).into());
            }
        }
        let read = fs::read_to_string(sysfs.join("size"))?;
        let sectors = read.trim().parse().context("a disk without size")?;
        Ok(Self { name, sectors })
    }

    /// Makes a plan one for this disk; says what it leaves out, and why.
    pub fn adapt(&self, plan: &mut Plan) -> Vec<String> {
        let mut left_out = Vec::new();
        let mut leave = |run: &Run, why: String| {
            let title = crate::live::title(run);
            let line = format!("{title} left out: {why}");
            if !left_out.contains(&line) {
                left_out.push(line);
            }
            false
        };
        plan.runs.retain(|run| {
            let end = |job: &plan::Job| {
                let last = u64::from(job.processes.max(1)) - 1;
                job.from_sector + last * job.stride_sectors + job.region_sectors
            };
            let needed = run.jobs.iter().map(end).max().unwrap_or(0);
            if run.fs.is_some() {
                return leave(run, "file systems are made in machines only".into());
            }
            if needed > self.sectors {
                let mib = |sectors: u64| sectors >> 11;
                let (has, wants) = (mib(self.sectors), mib(needed));
                return leave(
                    run,
                    format!("the disk has {has} MiB, the jobs need {wants}"),
                );
            }
            true
        });
        for run in &mut plan.runs {
            let above = plan::Group {
                name: ABOVE.into(),
                path: ABOVE.into(),
                weight: 100,
                on_device: false,
                class: Class::Be,
                memory: None,
            };
            for group in &mut run.groups {
                group.path = format!("{ABOVE}/{}", group.path);
            }
            run.groups.insert(0, above);
            for job in &mut run.jobs {
                job.group += 1;
                for arg in &mut job.args {
                    if *arg == format!("--filename=/dev/{DISK}") {
                        *arg = format!("--filename=/dev/{}", self.name);
                    }
                }
            }
        }
        left_out
    }

    /// Carries the plan out here; `out` gets what the runs leave.
    pub fn run(
        &self,
        plan: &Plan,
        out: &Path,
        on_event: &mut dyn FnMut(&Event),
    ) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        let mut hear = |event: &Event| {
            on_event(event);
            events.push(event.clone());
            Ok(())
        };
        carry_out(plan, &Ground::device(out, &self.name, &mut hear))?;
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{On, Options, parse, plan};

    #[test]
    fn what_a_disk_holds_has_a_name() {
        assert_eq!(holds(""), None);
        let ext4 = holds("DEVNAME=/dev/sdb\nUUID=1-2\nLABEL=data\nTYPE=ext4\n").unwrap();
        assert_eq!(ext4.1, ["1-2", "data"]);
        let table = holds("DEVNAME=/dev/sdb\nPTUUID=77\nPTTYPE=gpt\n").unwrap();
        assert!(table.0.contains("partition table (gpt)"), "{table:?}");
        assert_eq!(table.1, ["77"]);
        assert_eq!(holds("TYPE=swap\n").unwrap().1, ["swap"]);
    }

    #[test]
    fn groups_stand_apart_from_the_machine_s_and_jobs_use_the_disk() {
        let text = "name = \"t\"\nduration = \"1s\"\ndisk = { servers = 1, service_us = 10 }\n\
                    [[group]]\nname = \"a\"\n[[group]]\nname = \"b\"\nparent = \"a\"\n\
                    job = [{ rw = \"read\" }, { rw = \"read\", numjobs = 3 }]";
        let scenario = parse(text, Path::new("f.toml")).unwrap();
        let options = Options {
            on: On::Host,
            ..Options::default()
        };
        let make = || plan(std::slice::from_ref(&scenario), &options);
        // Four regions of 1 GiB.
        let device = |sectors| Device {
            name: "sdz".into(),
            sectors,
        };
        let mut fits = make();
        assert!(device(4 << 21).adapt(&mut fits).is_empty());
        let run = &fits.runs[0];
        let paths: Vec<_> = run.groups.iter().map(|g| g.path.as_str()).collect();
        assert_eq!(
            paths,
            ["disktime-bench", "disktime-bench/a", "disktime-bench/a/b"]
        );
        assert!(run.jobs.iter().all(|j| run.groups[j.group].name == "b"));
        assert!(run.jobs[0].args.contains(&"--filename=/dev/sdz".to_owned()));
        let mut small = make();
        let said = device((4 << 21) - 1).adapt(&mut small);
        assert!(
            small.runs.is_empty() && said[0].contains("the jobs need 4096"),
            "{said:?}"
        );
    }
}
