//! Records when requests go to the disk and come back.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::ring::{Layout, read_page};
use crate::trace::{self, Kind};

use super::disk::Disk;
use super::{read, write};

const TRACING: &str = "/sys/kernel/tracing";
/// Space for each CPU: some 90 bytes for each event, 4000 events a second for half a minute.
const BUFFER_KIB: u32 = 12 << 10;
const O_NONBLOCK: i32 = 0o4000;

const EVENTS: [(Kind, &str); 3] = [
    (Kind::Issue, "block_rq_issue"),
    (Kind::Complete, "block_rq_complete"),
    (Kind::Requeue, "block_rq_requeue"),
];

/// A trace buffer of our own.
pub(super) struct Tracer {
    dir: PathBuf,
    layouts: Vec<Layout>,
}

impl Tracer {
    pub(super) fn start(disk: &Disk) -> Result<Self> {
        let dir = Path::new(TRACING).join("instances/dt-bench");
        fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let mut tracer = Self {
            dir,
            layouts: Vec::new(),
        };
        tracer.set_up(disk).inspect_err(|_| {
            let _ = fs::remove_dir(&tracer.dir);
        })?;
        Ok(tracer)
    }

    fn set_up(&mut self, disk: &Disk) -> Result<()> {
        let dir = &self.dir;
        write(dir.join("tracing_on"), "0")?;
        write(dir.join("trace_clock"), "mono")?;
        write(dir.join("buffer_size_kb"), BUFFER_KIB.to_string())?;
        let filter = format!("dev == {}", disk.kernel_number()?);
        for (kind, name) in EVENTS {
            let event = dir.join("events/block").join(name);
            self.layouts
                .push(Layout::parse(kind, &read(event.join("format"))?)?);
            write(event.join("filter"), &filter)?;
            write(event.join("enable"), "1")?;
        }
        write(dir.join("tracing_on"), "1")
    }

    /// Writes what was recorded to `path`; returns how many events were lost.
    pub(super) fn finish(self, path: &Path) -> Result<u64> {
        let result = self.save(path);
        for (_, name) in EVENTS {
            let _ = write(self.dir.join("events/block").join(name).join("enable"), "0");
        }
        fs::remove_dir(&self.dir)
            .with_context(|| format!("cannot remove {}", self.dir.display()))?;
        result
    }

    fn save(&self, path: &Path) -> Result<u64> {
        write(self.dir.join("tracing_on"), "0")?;
        let mut records = Vec::new();
        let mut lost = 0;
        for entry in fs::read_dir(self.dir.join("per_cpu"))? {
            let cpu = entry?.path();
            let raw = cpu.join("trace_pipe_raw");
            let mut pipe = OpenOptions::new()
                .read(true)
                .custom_flags(O_NONBLOCK)
                .open(&raw)
                .with_context(|| format!("cannot open {}", raw.display()))?;
            let mut page = [0; 4096];
            loop {
                match pipe.read(&mut page) {
                    Ok(0) => break,
                    Ok(n) => lost += u64::from(read_page(&page[..n], &self.layouts, &mut records)?),
                    Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                    Err(e) => {
                        return Err(e).with_context(|| format!("cannot read {}", raw.display()));
                    }
                }
            }
            lost += overruns(&read(cpu.join("stats"))?);
        }
        // The CPUs' buffers, one after the other until here.
        records.sort_by_key(|r| (r.at_ns, r.kind));
        let mut file = BufWriter::new(File::create(path)?);
        trace::write(&mut file, &records)?;
        file.flush()?;
        Ok(lost)
    }
}

/// Events that a buffer had no room for, from its `stats`.
fn overruns(stats: &str) -> u64 {
    stats
        .lines()
        .filter_map(|line| {
            let (key, value) = line.split_once(": ")?;
            ["overrun", "commit overrun", "dropped events"]
                .contains(&key)
                .then(|| value.trim().parse::<u64>().ok())?
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overruns_of_all_kinds_count() {
        let stats = "entries: 5\noverrun: 2\ncommit overrun: 1\nbytes: 400\ndropped events: 4\nread events: 5\n";
        assert_eq!(overruns(stats), 7);
    }
}
