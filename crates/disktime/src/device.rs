//! `enable`, `disable`, and a disk's own settings.

use std::path::PathBuf;

use anyhow::{Context, Result};
use disktime_sys::{Blocks, Device, Root, Schedulers};

use crate::cli::NrRequests;
use crate::failure::{Exit, Failure, failure, nearest};
use crate::persist::{self, DeviceConfig, Former};
use crate::plan::{Op, Plan};
use crate::talk;

/// The scheduler's name in the kernel.
pub const SCHEDULER: &str = "disktime";
/// The module that the kernel loads when that name is written to a `scheduler` file.
const MODULE: &str = "disktime-iosched";
/// nr_requests bounds all groups together. The kernel's default, twice the depth of the disk, leaves light groups
/// without a tag to ask with; 256 is what the kernel gives to disks of 128 tags and more.
pub const NR_REQUESTS: u32 = 256;
/// All hardware queues of a drive that takes more than that at a time have so many together, so that more can be in
/// flight than usual while as many wait to be chosen from.
const NR_REQUESTS_DEEP: u32 = 1024;
/// The kernel raises less to this (BLKDEV_MIN_RQ) and refuses more (MAX_SCHED_RQ).
pub const NR_REQUESTS_RANGE: std::ops::RangeInclusive<u32> = 4..=2048;

/// How a disk's setting is checked.
enum Rule {
    /// Microseconds up to so many; 0 means what the text says.
    Usec(&'static str, u32),
    /// A count up to so much; 0 means what the text says.
    Count(&'static str, u32),
    /// One of these words.
    Words(&'static [&'static str]),
    /// 0 or 1.
    Switch,
}

/// The documented attributes of `queue/iosched`, with the module's own bounds.
const ATTRIBUTES: &[(&str, Rule)] = &[
    ("slice_usec", Rule::Usec("auto", 10_000_000)),
    ("idle_usec", Rule::Usec("off", 1_000_000)),
    ("depth", Rule::Count("auto", 65_536)),
    ("order", Rule::Words(&["cfq", "deadline", "fifo"])),
    ("strict", Rule::Switch),
    ("health", Rule::Words(&["rearm", "fifo"])),
];

/// Whether `key` is a setting of disks.
pub fn is_device_key(key: &str) -> bool {
    key == "nr_requests" || ATTRIBUTES.iter().any(|(name, _)| *name == key)
}

/// The names of all settings of disks.
pub fn device_keys() -> impl Iterator<Item = &'static str> {
    ATTRIBUTES
        .iter()
        .map(|(name, _)| *name)
        .chain(["nr_requests"])
}

/// A setting of a disk as `status` and `get` show it: 0 by the word for it.
pub fn in_words<'a>(key: &str, value: &'a str) -> &'a str {
    match ATTRIBUTES.iter().find(|(name, _)| *name == key) {
        Some((_, Rule::Usec(zero, _) | Rule::Count(zero, _))) if value == "0" => zero,
        _ => value,
    }
}

/// The error for a disk that does not run disktime.
pub fn not_active(device: &Device) -> Failure {
    failure(
        Exit::NotFound,
        format!("disktime is not active on {}", device.name),
    )
    .hint(format!("disktime enable {}", device.name))
}

/// Whether `device` runs disktime.
pub fn is_active(device: &Device) -> Result<bool> {
    Ok(device.schedulers()?.current == SCHEDULER)
}

fn checked_schedulers(device: &Device) -> Result<Schedulers> {
    let schedulers = device.schedulers()?;
    if schedulers.supported {
        return Ok(schedulers);
    }
    let name = &device.name;
    let slaves = device.slaves();
    Err(match slaves.first() {
        Some(below) => failure(
            Exit::NotFound,
            format!(
                "{name} has no I/O scheduler: it passes bios on to {}",
                slaves.join(", ")
            ),
        )
        .hint(format!("enable it below instead: disktime enable {below}")),
        None => failure(
            Exit::NotFound,
            format!("{name} has no I/O scheduler: its driver takes no queued requests"),
        )
        .hint("disktime status --all shows which disks can have one"),
    }
    .into())
}

/// nr_requests where nobody names it: what was asked for earlier, or enough.
fn usual(root: &Root, device: &Device) -> Result<u32> {
    let existing = persist::device(root, device)?.and_then(|(_, config)| config.nr_requests);
    existing.map_or_else(|| ample(device), Ok)
}

/// Enough for each hardware queue.
fn ample(device: &Device) -> Result<u32> {
    let queues = u32::try_from(device.hw_queues().max(1)).unwrap_or(u32::MAX);
    let takes = device.hw_tags()?.unwrap_or(0).saturating_mul(queues);
    if takes <= NR_REQUESTS || device.rotational()? {
        return Ok(NR_REQUESTS);
    }
    Ok((NR_REQUESTS_DEEP / queues).max(NR_REQUESTS))
}

/// Plans to switch `device` to disktime. `config` receives what is to last.
fn switch_on(
    root: &Root,
    device: &Device,
    nr_requests: NrRequests,
    modprobe: Option<PathBuf>,
    plan: &mut Plan,
) -> Result<Option<Former>> {
    let schedulers = checked_schedulers(device)?;
    let nr_before = device.nr_requests()?;
    let scheduler_file = device.scheduler_file();
    let active = schedulers.current == SCHEDULER;
    let mut former = None;
    if !active {
        if !schedulers.offers(SCHEDULER) {
            let program = match modprobe {
                Some(program) => program,
                // A module can only be loaded into the running system.
                None if !root.is_system() => {
                    return Err(failure(Exit::Module, format!("the kernel does not know {SCHEDULER} and the tree is not the running system's"))
                        .hint(format!("modprobe {MODULE} on the host first"))
                        .into());
                }
                None => PathBuf::from("modprobe"),
            };
            plan.push(Op::Load {
                program,
                module: MODULE.into(),
            });
        }
        let was = Former {
            scheduler: schedulers.current,
            nr_requests: nr_before,
        };
        plan.push(persist::remember(root, device, &was)?);
        let mut undo = vec![(scheduler_file.clone(), was.scheduler.clone())];
        undo.extend(nr_before.map(|n| (device.nr_requests_file(), n.to_string())));
        plan.push(Op::Attr {
            path: scheduler_file.clone(),
            value: SCHEDULER.into(),
            undo,
            must: true,
        });
        plan.push(Op::Selected {
            path: scheduler_file,
            scheduler: SCHEDULER.into(),
        });
        former = Some(was);
    }
    let wanted = match nr_requests {
        NrRequests::Keep => None,
        NrRequests::Set(n) => Some(n).filter(|n| !active || nr_before != Some(*n)),
        // A switch sets nr_requests to at most 256, so this raises it; where disktime is active already, more may
        // have been asked for.
        NrRequests::Raise => {
            let usual = usual(root, device)?;
            Some(usual).filter(|n| !active || nr_before.is_some_and(|before| before < *n))
        }
    };
    if let Some(n) = wanted {
        plan.attr(
            device.nr_requests_file(),
            n.to_string(),
            nr_before.map(|n| n.to_string()).filter(|_| active),
        );
    }
    Ok(former)
}

/// Plans `enable`.
pub fn enable(
    root: &Root,
    device: &Device,
    nr: NrRequests,
    runtime: bool,
    modprobe: Option<PathBuf>,
) -> Result<Plan> {
    let mut plan = Plan::default();
    let former = switch_on(root, device, nr, modprobe, &mut plan)?;
    if !runtime {
        let existing = persist::device(root, device)?.map(|(_, config)| config);
        let mut config = match existing.clone() {
            Some(config) => config,
            None => DeviceConfig {
                id: Blocks::new(root).lasting_identity(device)?,
                name: String::new(),
                nr_requests: None,
                former: None,
                iosched: Default::default(),
            },
        };
        config.name = device.name.clone();
        config.nr_requests = match nr {
            NrRequests::Keep => None,
            NrRequests::Set(n) => Some(n),
            NrRequests::Raise => Some(usual(root, device)?),
        };
        config.former = config
            .former
            .or(former)
            .or_else(|| persist::former(root, device));
        if existing.as_ref() != Some(&config) {
            plan.append(persist::keep_device(root, &config)?);
        }
    }
    Ok(plan)
}

/// The scheduler that the kernel itself gives a disk: mq-deadline to one hardware queue, none to several.
fn kernel_default(device: &Device) -> Former {
    let scheduler = if device.hw_queues() > 1 {
        "none"
    } else {
        "mq-deadline"
    };
    Former {
        scheduler: scheduler.into(),
        nr_requests: None,
    }
}

/// Plans `disable`.
pub fn disable(root: &Root, device: &Device, runtime: bool) -> Result<Plan> {
    let mut plan = Plan::default();
    let kept = persist::device(root, device)?;
    let active = is_active(device)?;
    if !active && (kept.is_none() || runtime) {
        return Err(failure(
            Exit::NotFound,
            format!("disktime is not active on {}", device.name),
        )
        .hint("disktime status shows where it is")
        .into());
    }
    if active {
        let former = persist::former(root, device)
            .or_else(|| kept.as_ref().and_then(|(_, config)| config.former.clone()))
            .unwrap_or_else(|| {
                let former = kernel_default(device);
                talk::note(&format!(
                    "nobody wrote down the former scheduler: taking {}, the kernel's choice",
                    former.scheduler
                ));
                former
            });
        let path = device.scheduler_file();
        plan.push(Op::Attr {
            path: path.clone(),
            value: former.scheduler.clone(),
            undo: vec![(path.clone(), SCHEDULER.into())],
            must: true,
        });
        plan.push(Op::Selected {
            path,
            scheduler: former.scheduler,
        });
        if let Some(n) = former.nr_requests {
            // Another scheduler may have other bounds, and being rid of disktime matters more.
            plan.push(Op::Attr {
                path: device.nr_requests_file(),
                value: n.to_string(),
                undo: Vec::new(),
                must: false,
            });
        }
        plan.push(persist::forget(root, device));
    }
    if let (Some((path, _)), false) = (kept, runtime) {
        plan.append(persist::drop_device(root, path)?);
    }
    Ok(plan)
}

/// Checks a disk's setting. Gives the value as the kernel takes it.
pub fn check_value(key: &str, value: &str) -> Result<String, Failure> {
    let refuse = |what: String| {
        failure(
            Exit::Usage,
            format!("cannot set {key} to '{value}': {what}"),
        )
    };
    if key == "nr_requests" {
        return match value.parse::<u32>() {
            Ok(n) if NR_REQUESTS_RANGE.contains(&n) => Ok(n.to_string()),
            _ => Err(refuse(format!(
                "it is a count from {} to {}",
                NR_REQUESTS_RANGE.start(),
                NR_REQUESTS_RANGE.end()
            ))),
        };
    }
    let Some((_, rule)) = ATTRIBUTES.iter().find(|(name, _)| *name == key) else {
        return Ok(value.to_owned());
    };
    match rule {
        Rule::Usec(zero, most) | Rule::Count(zero, most) => {
            let unit = if matches!(rule, Rule::Usec(..)) {
                "a number of microseconds"
            } else {
                "a count"
            };
            let plain = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
            match value.parse::<u32>() {
                _ if value == *zero => Ok("0".into()),
                Ok(n) if plain && n <= *most => Ok(n.to_string()),
                _ => Err(refuse(format!("it is {unit} up to {most}, 0 for {zero}"))),
            }
        }
        Rule::Words(words) if words.contains(&value) => Ok(value.to_owned()),
        Rule::Words(words) => {
            let refused = refuse(format!("it takes {}", words.join(", ")));
            Err(match nearest(value, words.iter().copied()) {
                Some(near) => refused.hint(format!("did you mean {key}={near}?")),
                None => refused,
            })
        }
        Rule::Switch => match value {
            "0" | "off" | "no" => Ok("0".into()),
            "1" | "on" | "yes" => Ok("1".into()),
            _ => Err(refuse("it is 0 or 1".into())),
        },
    }
}

/// Plans to set a disk's attributes, and to keep them where the disk itself is kept.
pub fn set(
    root: &Root,
    device: &Device,
    pairs: &[(String, String)],
    runtime: bool,
) -> Result<Plan> {
    let mut checked = Vec::new();
    for (key, value) in pairs {
        if matches!(key.as_str(), "weight" | "class") {
            return Err(failure(
                Exit::Usage,
                format!(
                    "{key} is a setting of cgroups, and {} is a disk",
                    device.name
                ),
            )
            .hint(format!(
                "disktime set CGROUP {key}={value} --device {}",
                device.name
            ))
            .into());
        }
        let known = is_device_key(key) || device.iosched_names().contains(key) && key != "groups";
        if !known {
            let unknown = failure(Exit::Usage, format!("disks have no setting '{key}'"));
            return Err(match nearest(key, device_keys()) {
                Some(near) => unknown.hint(format!("did you mean {near}={value}?")),
                None => unknown.hint(format!(
                    "there are {}",
                    device_keys().collect::<Vec<_>>().join(", ")
                )),
            }
            .into());
        }
        checked.push((key.as_str(), check_value(key, value)?));
    }
    if !is_active(device)? {
        return Err(not_active(device).into());
    }
    let mut plan = Plan::default();
    for (key, value) in &checked {
        if *key == "nr_requests" {
            plan.attr(
                device.nr_requests_file(),
                value.clone(),
                device.nr_requests()?.map(|n| n.to_string()),
            );
        } else {
            let before = device
                .iosched(key)?
                .with_context(|| format!("{} has no {key}", device.name))?;
            let undo = Some(first_word(&before)).filter(|_| *key != "health");
            plan.attr(device.iosched_file(key), value.clone(), undo);
        }
    }
    if !runtime {
        match persist::device(root, device)? {
            None => talk::note(&format!(
                "not kept over a reboot: {0} is not enabled to last (disktime enable {0})",
                device.name
            )),
            Some((_, mut config)) => {
                for (key, value) in checked {
                    match key {
                        "health" => {}
                        "nr_requests" => config.nr_requests = value.parse().ok(),
                        key => drop(config.iosched.insert(key.to_owned(), value)),
                    }
                }
                plan.append(persist::keep_device(root, &config)?);
            }
        }
    }
    Ok(plan)
}

/// An attribute that offers choices puts the current one in brackets; else its first word is the value.
pub fn first_word(text: &str) -> String {
    let mut words = text.split_ascii_whitespace();
    let bracketed = words
        .clone()
        .find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    bracketed
        .or_else(|| words.next())
        .unwrap_or_default()
        .to_owned()
}

/// A disk's settings, in the form that `set` takes.
pub fn get(device: &Device) -> Result<Vec<(String, String)>> {
    if !is_active(device)? {
        return Err(not_active(device).into());
    }
    let mut pairs = Vec::new();
    if let Some(n) = device.nr_requests()? {
        pairs.push(("nr_requests".to_owned(), n.to_string()));
    }
    for name in device.iosched_names() {
        if name == "groups" {
            continue;
        }
        if let Some(text) = device.iosched(&name)? {
            let value = if name == "health" {
                text.lines().next().unwrap_or_default().to_owned()
            } else {
                first_word(&text)
            };
            pairs.push((name, value));
        }
    }
    Ok(pairs)
}

/// Plans what `apply` does for one kept disk.
pub fn apply(
    root: &Root,
    device: &Device,
    config: &DeviceConfig,
    modprobe: Option<PathBuf>,
) -> Result<Plan> {
    let mut plan = Plan::default();
    let nr = config.nr_requests.map_or(NrRequests::Keep, NrRequests::Set);
    let switched = switch_on(root, device, nr, modprobe, &mut plan)?.is_some();
    for (key, value) in &config.iosched {
        let before = if switched {
            None
        } else {
            device.iosched(key)?.map(|text| first_word(&text))
        };
        if before.as_ref() != Some(value) {
            plan.attr(device.iosched_file(key), value.clone(), before);
        }
    }
    Ok(plan)
}
