//! A cgroup's settings.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Result;
use disktime_sys::{
    Blocks, CLASS_FILE, Cgroup, Cgroups, Class, Device, ParseValueError, Root, Setting,
    WEIGHT_FILE, Weight, field,
};

use crate::device::{is_active, is_device_key, not_active};
use crate::failure::{Exit, Failure, failure, nearest};
use crate::persist::{self, GroupConfig};
use crate::plan::{Plan, quote};
use crate::{talk, target};

/// What is to be set, `None` for `default`.
#[derive(Clone, Copy)]
enum Value {
    Weight(Option<Weight>),
    Class(Option<Class>),
}

/// One `KEY[@DEV]=VALUE`.
struct Change {
    value: Value,
    device: Option<Device>,
}

const KEYS: [&str; 2] = ["weight", "class"];

fn parse_value(key: &str, text: &str) -> Result<Value, Failure> {
    fn value<T: FromStr<Err = ParseValueError>>(
        key: &str,
        text: &str,
        words: &[&str],
    ) -> Result<Option<T>, Failure> {
        if text == "default" {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|why| {
            let refused = failure(Exit::Usage, format!("cannot set {key}: {why}"));
            match nearest(text, words.iter().copied()) {
                Some(near) => refused.hint(format!("did you mean {key}={near}?")),
                None => refused,
            }
        })
    }
    match key {
        "weight" => Ok(Value::Weight(value(key, text, &["default"])?)),
        "class" => Ok(Value::Class(value(
            key,
            text,
            &["rt", "be", "idle", "default"],
        )?)),
        _ if is_device_key(key) => Err(failure(
            Exit::Usage,
            format!("{key} is a setting of disks, and the target is a cgroup"),
        )
        .hint(format!("disktime set DEV {key}={text}"))),
        _ if field(key).is_some() => Err(failure(
            Exit::Usage,
            format!("{key} is a counter: it cannot be set"),
        )
        .hint("disktime get --settings TARGET prints only what set accepts")),
        _ => {
            let unknown = failure(Exit::Usage, format!("cgroups have no setting '{key}'"));
            Err(match nearest(key, KEYS) {
                Some(near) => unknown.hint(format!("did you mean {near}={text}?")),
                None => unknown.hint("there are weight=1..10000 and class=rt|be|idle"),
            })
        }
    }
}

/// The error for a cgroup without disktime's files.
pub fn no_files(cgroups: &Cgroups, cgroup: &Cgroup) -> Failure {
    if !cgroups.top().file(WEIGHT_FILE).exists() {
        return failure(
            Exit::NotFound,
            format!("the kernel has no {WEIGHT_FILE} files: the module disktime is not loaded"),
        )
        .hint("disktime enable DEV loads it");
    }
    let path = &cgroup.path;
    let what = |at: &str| {
        format!("{path} has no {WEIGHT_FILE}: the io controller is not on there, it stops at {at}")
    };
    match cgroups.io_stops_at(cgroup) {
        Some(gap) => {
            let control = cgroups
                .mounted_at()
                .join(gap.path.trim_start_matches('/'))
                .join("cgroup.subtree_control");
            let unit = cgroup.name();
            let by_hand = format!("echo +io > {}", quote(&control.to_string_lossy()));
            failure(Exit::NotFound, what(&gap.path)).hint(
                if unit.ends_with(".service") || unit.ends_with(".slice") {
                    format!(
                        "systemctl set-property {} IOAccounting=yes (without systemd: {by_hand})",
                        quote(unit)
                    )
                } else {
                    by_hand
                },
            )
        }
        None => failure(
            Exit::NotFound,
            format!("{path} has no {WEIGHT_FILE}, though the io controller is on there"),
        )
        .hint("was the cgroup removed meanwhile? systemd-cgls shows those there are"),
    }
}

/// Plans one write to a settings file.
fn write<T: Copy + PartialEq + Display>(
    plan: &mut Plan,
    path: PathBuf,
    now: &Setting<T>,
    unset: T,
    device: Option<&Device>,
    value: Option<T>,
) {
    match device {
        None => plan.attr(
            path,
            format!("default {}", value.unwrap_or(unset)),
            Some(format!("default {}", now.default)),
        ),
        Some(device) => {
            let line = |value: Option<T>| match value {
                Some(value) => format!("{} {value}", device.devno),
                None => format!("{} default", device.devno),
            };
            plan.attr(
                path,
                line(value),
                Some(line(now.devices.get(&device.devno).copied())),
            );
        }
    }
}

fn plan_changes(cgroups: &Cgroups, cgroup: &Cgroup, changes: &[Change]) -> Result<Plan> {
    let absent = || no_files(cgroups, cgroup);
    let (weights, classes) = (
        cgroup.weights()?.ok_or_else(absent)?,
        cgroup.classes()?.ok_or_else(absent)?,
    );
    let mut plan = Plan::default();
    for change in changes {
        let device = change.device.as_ref();
        match change.value {
            Value::Weight(value) => {
                write(
                    &mut plan,
                    cgroup.file(WEIGHT_FILE),
                    &weights,
                    Weight::default(),
                    device,
                    value,
                );
            }
            Value::Class(value) => {
                write(
                    &mut plan,
                    cgroup.file(CLASS_FILE),
                    &classes,
                    Class::default(),
                    device,
                    value,
                );
            }
        }
    }
    Ok(plan)
}

/// Plans to set a cgroup's weight and class, everywhere or on the disk that `--device` names.
pub fn set(
    root: &Root,
    cgroup: &Cgroup,
    pairs: &[(String, String)],
    on: Option<&str>,
    runtime: bool,
) -> Result<Plan> {
    let mut parsed = Vec::new();
    for (key, text) in pairs {
        let (key, its_own) = match key.split_once('@') {
            Some((key, device)) => (key, Some(device)),
            None => (key.as_str(), None),
        };
        parsed.push((parse_value(key, text)?, its_own.or(on)));
    }
    let mut changes = Vec::new();
    let mut known: Vec<(&str, Device)> = Vec::new();
    for (value, name) in parsed {
        let device = match name {
            None => None,
            Some(name) => match known.iter().find(|(other, _)| *other == name) {
                Some((_, device)) => Some(device.clone()),
                None => {
                    let device = target::device(root, name)?;
                    if !is_active(&device)? {
                        return Err(not_active(&device).into());
                    }
                    known.push((name, device.clone()));
                    Some(device)
                }
            },
        };
        changes.push(Change { value, device });
    }
    let cgroups = Cgroups::open(root)?;
    let mut plan = plan_changes(&cgroups, cgroup, &changes)?;
    if runtime {
        return Ok(plan);
    }
    if cgroup.name().ends_with(".scope") {
        talk::note("not kept over a reboot: scopes are gone with their processes");
        return Ok(plan);
    }
    let mut config =
        persist::group(root, &cgroup.path)?.unwrap_or_else(|| GroupConfig::of(&cgroup.path));
    let blocks = Blocks::new(root);
    for Change { value, device } in &changes {
        match (value, device) {
            (Value::Weight(weight), None) => config.weight = *weight,
            (Value::Class(class), None) => config.class = *class,
            (Value::Weight(weight), Some(device)) => {
                config.on(device, blocks.lasting_identity(device)?).weight = *weight;
            }
            (Value::Class(class), Some(device)) => {
                config.on(device, blocks.lasting_identity(device)?).class = *class;
            }
        }
    }
    plan.append(persist::keep_group(root, config)?);
    Ok(plan)
}

/// Plans what `apply` does for one kept cgroup. Disks that are absent or do not run disktime are left out, and named.
pub fn apply(root: &Root, cgroup: &Cgroup, config: &GroupConfig) -> Result<Plan> {
    let mut changes = Vec::new();
    changes.extend(config.weight.map(|weight| Change {
        value: Value::Weight(Some(weight)),
        device: None,
    }));
    changes.extend(config.class.map(|class| Change {
        value: Value::Class(Some(class)),
        device: None,
    }));
    let disks = Blocks::new(root).all()?;
    for entry in &config.device {
        let disk = disks
            .iter()
            .find(|disk| disk.identities().contains(&entry.id));
        let Some(disk) = disk.filter(|disk| is_active(disk).unwrap_or(false)) else {
            talk::note(&format!(
                "{}: disktime is not active on {} ({}), skipped",
                config.cgroup, entry.name, entry.id
            ));
            continue;
        };
        let on = |value| Change {
            value,
            device: Some(disk.clone()),
        };
        changes.extend(entry.weight.map(|weight| on(Value::Weight(Some(weight)))));
        changes.extend(entry.class.map(|class| on(Value::Class(Some(class)))));
    }
    plan_changes(&Cgroups::open(root)?, cgroup, &changes)
}

/// A cgroup's settings and counters, `key=value` and `key@DEV=value`: the settings in the form that `set` takes.
pub struct Report {
    /// The settings.
    pub settings: Vec<(String, String)>,
    /// The counters.
    pub counters: Vec<(String, String)>,
}

/// Reads them.
pub fn get(root: &Root, cgroup: &Cgroup) -> Result<Report> {
    let cgroups = Cgroups::open(root)?;
    let absent = || no_files(&cgroups, cgroup);
    let (weights, classes) = (
        cgroup.weights()?.ok_or_else(absent)?,
        cgroup.classes()?.ok_or_else(absent)?,
    );
    let disks = Blocks::new(root).all()?;
    let name = |devno| {
        disks
            .iter()
            .find(|disk| disk.devno == devno)
            .map_or(devno.to_string(), |disk| disk.name.clone())
    };
    let mut settings = vec![("weight".to_owned(), weights.default.to_string())];
    settings.extend(
        weights
            .devices
            .iter()
            .map(|(devno, weight)| (format!("weight@{}", name(*devno)), weight.to_string())),
    );
    settings.push(("class".to_owned(), classes.default.to_string()));
    settings.extend(
        classes
            .devices
            .iter()
            .map(|(devno, class)| (format!("class@{}", name(*devno)), class.to_string())),
    );
    let mut counters = Vec::new();
    for (devno, stat) in cgroup.stat()?.unwrap_or_default() {
        let name = name(devno);
        counters.extend(
            stat.iter()
                .map(|(key, value)| (format!("{key}@{name}"), value.to_string())),
        );
    }
    Ok(Report { settings, counters })
}
