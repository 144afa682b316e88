//! What a name on the command line stands for. Names are taken in this order: `pid:N`, a path below `/dev` or a device
//! number, a path below the cgroup tree, a path from the cgroup root, a mount point, a disk or partition, a systemd
//! unit, a relative cgroup path.

use anyhow::Result;
use disktime_sys::{Blocks, Cgroup, Cgroups, Device, Error, ResolvedDevice, Root, Step};

use crate::failure::{Exit, failure, nearest};
use crate::talk;

/// Units of these kinds have cgroups.
const UNIT_KINDS: [&str; 6] = [".service", ".slice", ".scope", ".mount", ".socket", ".swap"];

/// What was meant.
pub enum Target {
    /// A cgroup, and how the name led to it.
    Cgroup(Cgroup, String),
    /// A disk.
    Device(ResolvedDevice),
}

/// How a disk was found, in words.
pub fn describe_device(found: &ResolvedDevice) -> String {
    let device = &found.device;
    let mut text = format!("device {} ({})", device.name, device.devno);
    for step in found.steps.iter().rev() {
        text.push_str(&match step {
            Step::Partition { name } => format!(", the disk of partition {name}"),
            Step::Mount { at, source } => format!(", mounted at {} as {source}", at.display()),
        });
    }
    text
}

/// Finds a disk and says which.
pub fn device(root: &Root, asked: &str) -> Result<Device> {
    let found = Blocks::new(root).resolve(asked)?;
    talk::note(&describe_device(&found));
    Ok(found.device)
}

/// Finds a target and says which.
pub fn target(root: &Root, asked: &str) -> Result<Target> {
    let target = find(root, asked)?;
    talk::note(&match &target {
        Target::Device(found) => describe_device(found),
        Target::Cgroup(cgroup, via) if via.is_empty() => format!("cgroup {}", cgroup.path),
        Target::Cgroup(cgroup, via) => format!("cgroup {} ({via})", cgroup.path),
    });
    Ok(target)
}

fn find(root: &Root, asked: &str) -> Result<Target> {
    let blocks = Blocks::new(root);
    if asked.is_empty() {
        return Err(failure(Exit::Usage, "the target is empty").into());
    }
    if let Some(pid) = asked.strip_prefix("pid:") {
        let pid = pid.parse().map_err(|_| {
            failure(
                Exit::Usage,
                format!("'{asked}': '{pid}' is not a process number"),
            )
            .hint("write it like pid:1234")
        })?;
        return Ok(Target::Cgroup(
            Cgroups::open(root)?.of_process(pid)?,
            format!("process {pid}"),
        ));
    }
    if Blocks::looks_like_device(asked) {
        return Ok(Target::Device(blocks.resolve(asked)?));
    }
    if asked.starts_with('/') {
        let absent = match Cgroups::open(root).and_then(|cgroups| cgroups.get(asked)) {
            Ok(cgroup) => return Ok(Target::Cgroup(cgroup, String::new())),
            Err(error) => error,
        };
        return match blocks.resolve(asked) {
            Ok(found) => Ok(Target::Device(found)),
            Err(Error::NoDevice { .. } | Error::NotMountPoint { .. }) => Err(absent.into()),
            Err(error) => Err(error.into()),
        };
    }
    match blocks.resolve(asked) {
        Ok(found) => return Ok(Target::Device(found)),
        Err(Error::NoDevice { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let cgroups = Cgroups::open(root)?;
    if asked.contains('/') {
        return Ok(Target::Cgroup(cgroups.get(asked)?, String::new()));
    }
    unit(&blocks, &cgroups, asked)
}

/// Finds a unit by its folder's name. systemd could be asked over D-Bus for a unit's ControlGroup property, and that is
/// the way once units that have no cgroup yet are to be handled; the tree itself is enough for those that run, works
/// without a bus (containers, initramfs, other service managers) and cannot be out of date.
fn unit(blocks: &Blocks, cgroups: &Cgroups, asked: &str) -> Result<Target> {
    let all = cgroups.all();
    let is_unit_name = UNIT_KINDS.iter().any(|kind| asked.ends_with(kind));
    let matches = |cgroup: &&Cgroup| {
        cgroup.path != "/"
            && (cgroup.name() == asked
                || !is_unit_name
                    && cgroup
                        .name()
                        .strip_prefix(asked)
                        .is_some_and(|kind| UNIT_KINDS.contains(&kind)))
    };
    let found: Vec<&Cgroup> = all.iter().filter(matches).collect();
    match found[..] {
        [cgroup] => Ok(Target::Cgroup(
            cgroup.clone(),
            format!("unit {}", cgroup.name()),
        )),
        [] => {
            let disks = blocks.all()?;
            let known = disks
                .iter()
                .map(|disk| disk.name.as_str())
                .chain(all.iter().map(Cgroup::name));
            let hint = match nearest(asked, known.filter(|name| !name.is_empty())) {
                Some(near) => format!("did you mean {near}?"),
                None => "give a cgroup path, a running systemd unit, pid:N or a disk".into(),
            };
            Err(failure(
                Exit::NotFound,
                format!("no disk, unit or cgroup is called '{asked}'"),
            )
            .hint(hint)
            .into())
        }
        _ => {
            let paths: Vec<&str> = found.iter().map(|cgroup| cgroup.path.as_str()).collect();
            Err(failure(
                Exit::NotFound,
                format!(
                    "'{asked}' stands for {} cgroups: {}",
                    paths.len(),
                    paths.join(", ")
                ),
            )
            .hint(format!("give one of the paths: {}", paths[0]))
            .into())
        }
    }
}
