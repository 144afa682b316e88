//! The disk of a run: a null_blk where the model is equal servers, else a model served through
//! ublk; and which controller has it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use disktime_model::{Model, Spec};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

use crate::plan::{Controller, DISK, Run};

use super::{command, read, write};

const CONFIG: &str = "/sys/kernel/config/nullb";
const CGROUP: &str = "/sys/fs/cgroup";
/// The program that serves models.
const SERVER: &str = "disktime-modeldisk";
/// Where it leaves what only it knows.
const TALLY: &str = "/tmp/tally.json";
/// And what it says.
const SERVER_LOG: &str = "/tmp/modeldisk.log";
/// How long a disk may take to appear, or to go.
const LIMIT: Duration = Duration::from_secs(20);

/// What the disk is made of.
enum Kind {
    NullBlk {
        config: PathBuf,
    },
    Ublk {
        server: Child,
    },
    /// It was there before, with a scheduler and so many requests.
    Found {
        scheduler: String,
        nr_requests: u32,
    },
}

/// The disk while it exists.
pub(super) struct Disk {
    kind: Kind,
    /// Its name in sysfs.
    name: String,
    /// `MAJ:MIN`.
    pub(super) dev: String,
}

/// A server's account, of which only the true times are read.
#[derive(Deserialize)]
struct Account {
    regions: Vec<AccountOfRegion>,
}

#[derive(Deserialize)]
struct AccountOfRegion {
    true_ns: u64,
}

fn await_path(path: &Path) -> Result<()> {
    let start = Instant::now();
    while !path.exists() {
        if start.elapsed() > LIMIT {
            bail!("{} does not appear", path.display());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn null_blk(spec: &Spec, run: &Run) -> Result<(Kind, String)> {
    let Model::Servers {
        servers,
        service_ns,
        rotational,
    } = spec.model
    else {
        bail!("a null_blk is no {spec}");
    };
    let config = Path::new(CONFIG).join(DISK);
    fs::create_dir(&config)
        .with_context(|| format!("cannot make {}; is null_blk loaded?", config.display()))?;
    for (key, value) in [
        ("size", spec.size_mib.unwrap_or(1024)),
        // A file system wants its data back.
        ("memory_backed", run.fs.is_some().into()),
        ("queue_mode", 2),
        ("irqmode", 2),
        ("completion_nsec", service_ns * u64::from(spec.slower)),
        ("submit_queues", 1),
        ("hw_queue_depth", servers.into()),
        ("power", 1),
    ] {
        write(config.join(key), value.to_string())?;
    }
    await_path(&Path::new("/dev").join(DISK))?;
    write(
        Path::new("/sys/block").join(DISK).join("queue/rotational"),
        u8::from(rotational).to_string(),
    )?;
    Ok((Kind::NullBlk { config }, DISK.to_owned()))
}

/// Arguments of the server.
fn server_args(spec: &Spec, run: &Run) -> Vec<String> {
    let mut args = vec![
        spec.model.to_string(),
        format!("--cache={}", spec.write_cache),
        format!("--slower={}", spec.slower),
        format!("--seed={}", spec.seed),
        format!("--tally={TALLY}"),
    ];
    if let Some(mib) = spec.size_mib {
        args.push(format!("--size={mib}M"));
    }
    args.extend(
        run.jobs
            .iter()
            .map(|job| format!("--region={}", job.region())),
    );
    args
}

fn ublk(spec: &Spec, run: &Run) -> Result<(Kind, String)> {
    let _ = fs::remove_file(TALLY);
    let mut server = Command::new(SERVER)
        .args(server_args(spec, run))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(SERVER_LOG)?)
        .spawn()
        .with_context(|| format!("cannot run {SERVER}"))?;
    let stdout = server.stdout.take().context("no standard output")?;
    let mut line = String::new();
    // It says where the disk is, or ends and says why.
    BufReader::new(stdout).read_line(&mut line)?;
    let node = PathBuf::from(line.trim());
    let Some(name) = node.file_name().map(|n| n.to_string_lossy().into_owned()) else {
        let status = server.wait()?;
        let said = read(SERVER_LOG)?;
        bail!(
            "{SERVER} served no disk and ended with {status}: {}",
            said.trim()
        );
    };
    await_path(&node)?;
    let link = Path::new("/dev").join(DISK);
    let _ = fs::remove_file(&link);
    std::os::unix::fs::symlink(&node, &link)
        .with_context(|| format!("cannot make {}", link.display()))?;
    Ok((Kind::Ublk { server }, name))
}

fn found(name: &str) -> Result<(Kind, String)> {
    let queue = Path::new("/sys/block").join(name).join("queue");
    let schedulers = read(queue.join("scheduler"))?;
    let active = schedulers.split(['[', ']']).nth(1);
    let kind = Kind::Found {
        scheduler: active.context("the disk has no schedulers")?.to_owned(),
        nr_requests: read(queue.join("nr_requests"))?.trim().parse()?,
    };
    Ok((kind, name.to_owned()))
}

impl Disk {
    /// Makes the run's disk, or takes the one that is there.
    pub(super) fn make(run: &Run, device: Option<&str>) -> Result<Self> {
        let spec = &run.disk;
        let (kind, name) = match (device, spec.model) {
            (Some(name), _) => found(name)?,
            (None, Model::Servers { .. }) => null_blk(spec, run)?,
            (None, _) => ublk(spec, run)?,
        };
        let sysfs = Path::new("/sys/block").join(&name);
        await_path(&sysfs)?;
        let dev = read(sysfs.join("dev"))?.trim().to_owned();
        let disk = Self { kind, name, dev };
        write(disk.queue("scheduler"), "none")?;
        if device.is_none() {
            // Whoever's the load is.
            let node = Path::new("/dev").join(DISK);
            fs::set_permissions(node, fs::Permissions::from_mode(0o666))?;
        }
        Ok(disk)
    }

    fn queue(&self, file: &str) -> PathBuf {
        Path::new("/sys/block")
            .join(&self.name)
            .join("queue")
            .join(file)
    }

    /// As the kernel packs device numbers, for trace filters.
    pub(super) fn kernel_number(&self) -> Result<u64> {
        let (major, minor) = self
            .dev
            .split_once(':')
            .context("a device number without colon")?;
        Ok(major.parse::<u64>()? << 20 | minor.parse::<u64>()?)
    }

    /// Device time that the requests of each job took, where the disk knows it.
    pub(super) fn true_ns(&self, run: &Run) -> Option<Vec<u64>> {
        // It tells jobs by where their sectors lie; on a file system that groups share, they lie
        // anywhere.
        let told_apart = run.fs.as_ref().is_none_or(|fs| fs.partitions);
        if !told_apart || !matches!(self.kind, Kind::Ublk { .. }) {
            return None;
        }
        let account: Account = serde_json::from_str(&read(TALLY).ok()?).ok()?;
        Some(account.regions.iter().map(|r| r.true_ns).collect())
    }

    /// Hands the disk to the run's controller; says what was set, and to what.
    pub(super) fn schedule_by(&self, run: &Run) -> Result<BTreeMap<String, String>> {
        let mut settings = BTreeMap::new();
        let mut note = |key: &str, value: String| {
            settings.insert(key.to_owned(), value);
        };
        let scheduler = run.controller.scheduler();
        if run.controller == Controller::Disktime {
            let wanted = run.nr_requests.map_or("keep".into(), |n| n.to_string());
            let enable = [
                "enable",
                &self.name,
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
                let mut set = vec!["set", &self.name, "--runtime", "--quiet"];
                set.extend(pairs.iter().map(String::as_str));
                command("disktime", &set)?;
            }
            for (key, value) in &run.iosched {
                note(key, value.clone());
            }
        } else {
            write(self.queue("scheduler"), scheduler)?;
            // Without a scheduler there are the device's own tags only.
            if let Some(wanted) = run.nr_requests.filter(|_| run.controller.has_own_tags()) {
                write(self.queue("nr_requests"), wanted.to_string())?;
            }
        }
        if let Controller::Bfq | Controller::BfqStrict = run.controller {
            write(self.queue("iosched/low_latency"), "0")?;
            note("low_latency", "0".into());
            if run.controller == Controller::BfqStrict {
                write(self.queue("iosched/strict_guarantees"), "1")?;
                note("strict_guarantees", "1".into());
            }
        }
        if run.controller == Controller::Iocost {
            self.set_cost(run, &mut note)?;
        }
        note("scheduler", scheduler.to_owned());
        note("nr_requests", self.nr_requests()?.to_string());
        let active = read(self.queue("scheduler"))?;
        if !active.contains(&format!("[{scheduler}]")) {
            bail!("the kernel did not take {scheduler}: {}", active.trim());
        }
        Ok(settings)
    }

    /// io.cost told what the disk costs, and how slow it may become as the kernel has it for such a
    /// disk.
    fn set_cost(&self, run: &Run, note: &mut dyn FnMut(&str, String)) -> Result<()> {
        let root = Path::new(CGROUP);
        if let Some(model) = &run.cost_model {
            let line = format!("ctrl=user model=linear {model}");
            write(root.join("io.cost.model"), format!("{} {line}", self.dev))?;
            note("io.cost.model", line);
        }
        write(root.join("io.cost.qos"), format!("{} enable=1", self.dev))?;
        let text = read(root.join("io.cost.qos"))?;
        let mine = text
            .lines()
            .find_map(|l| l.strip_prefix(&self.dev)?.strip_prefix(' '));
        note("io.cost.qos", mine.unwrap_or_default().to_owned());
        Ok(())
    }

    pub(super) fn unschedule(&self, run: &Run) -> Result<()> {
        if run.controller == Controller::Iocost {
            write(
                Path::new(CGROUP).join("io.cost.qos"),
                format!("{} enable=0", self.dev),
            )?;
        }
        write(self.queue("scheduler"), "none")
    }

    pub(super) fn nr_requests(&self) -> Result<u32> {
        Ok(read(self.queue("nr_requests"))?.trim().parse()?)
    }

    pub(super) fn health(&self) -> Option<String> {
        Some(read(self.queue("iosched/health")).ok()?.trim().to_owned())
    }

    /// A file of disktime's in debugfs.
    fn debug(&self, file: &str) -> Result<String> {
        let folder = Path::new("/sys/kernel/debug/block").join(&self.name);
        read(folder.join("sched").join(file))
    }

    /// What disktime's core knows and has in hand, if it is the scheduler.
    pub(super) fn state(&self) -> Option<String> {
        self.debug("state").ok()
    }

    /// disktime's own counters.
    pub(super) fn counters(&self) -> BTreeMap<String, u64> {
        let text = self.debug("counters").unwrap_or_default();
        text.lines()
            .filter_map(|line| {
                let (key, value) = line.split_once(' ')?;
                Some((key.to_owned(), value.trim().parse().ok()?))
            })
            .collect()
    }

    pub(super) fn remove(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::NullBlk { config } => {
                write(config.join("power"), "0")?;
                fs::remove_dir(&*config)
                    .with_context(|| format!("cannot remove {}", config.display()))
            }
            Kind::Found {
                scheduler,
                nr_requests,
            } => {
                let queue = Path::new("/sys/block").join(&self.name).join("queue");
                write(queue.join("scheduler"), &*scheduler)?;
                if scheduler != "none" {
                    write(queue.join("nr_requests"), nr_requests.to_string())?;
                }
                Ok(())
            }
            Kind::Ublk { server } => {
                let _ = fs::remove_file(Path::new("/dev").join(DISK));
                kill(Pid::from_raw(server.id() as i32), Signal::SIGTERM)?;
                let start = Instant::now();
                while server.try_wait()?.is_none() {
                    if start.elapsed() > LIMIT {
                        bail!("the disk's server does not end");
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                Ok(())
            }
        }
    }
}
