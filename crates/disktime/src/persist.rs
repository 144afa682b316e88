//! What outlives a reboot.
//!
//! `/etc/disktime/devices.d/ID.toml` holds a disk that is to run disktime, `/etc/disktime/groups.d/NAME.toml` the
//! settings of a cgroup. From the first, `/etc/udev/rules.d/65-disktime.rules` is generated, so that disks are switched
//! when they appear, without a daemon; its number lies behind udev's `60-persistent-storage.rules`, which finds the
//! serial numbers that the rules match. cgroups come and go with their units and systemd knows nothing of
//! `io.disktime.*`: `disktime apply` writes the groups' settings again, at boot and whenever it is run.
//! `/run/disktime/DEV.json` remembers what a disk had before `enable`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use disktime_sys::{Class, Device, Root, Weight, read_file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::failure::{Exit, failure};
use crate::plan::{Op, Plan};

const DEVICES: &str = "/etc/disktime/devices.d";
const GROUPS: &str = "/etc/disktime/groups.d";
const RULES: &str = "/etc/udev/rules.d/65-disktime.rules";
const HEADER: &str = "# Written by disktime. Lasting settings of";

/// What a disk had before disktime was enabled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Former {
    /// Its scheduler.
    pub scheduler: String,
    /// Its nr_requests.
    pub nr_requests: Option<u32>,
}

/// `/run/disktime/DEV.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    disktime_former: u32,
    device: String,
    devno: String,
    #[serde(flatten)]
    former: Former,
}

/// A disk that is to run disktime.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceConfig {
    /// `KEY=value`, one of the disk's identities.
    #[serde(rename = "match")]
    pub id: String,
    /// The name it had, for people.
    pub name: String,
    /// nr_requests to set; unset leaves it alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<u32>,
    /// What it had before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub former: Option<Former>,
    /// The scheduler's attributes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub iosched: BTreeMap<String, String>,
}

/// The settings of a cgroup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupConfig {
    /// The path from the cgroup root.
    pub cgroup: String,
    /// The default weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<Weight>,
    /// The default class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
    /// Overrides for single disks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<GroupDevice>,
}

/// A cgroup's settings on one disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupDevice {
    /// `KEY=value`, one of the disk's identities.
    #[serde(rename = "match")]
    pub id: String,
    /// The name it had, for people.
    pub name: String,
    /// The weight there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<Weight>,
    /// The class there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<Class>,
}

impl GroupConfig {
    /// Settings of `path` that say nothing yet.
    pub fn of(path: &str) -> Self {
        GroupConfig {
            cgroup: path.to_owned(),
            ..GroupConfig::default()
        }
    }

    /// The override for `device`, made under the name `id` if there is none.
    pub fn on(&mut self, device: &Device, id: String) -> &mut GroupDevice {
        let ids = device.identities();
        let at = match self.device.iter().position(|entry| ids.contains(&entry.id)) {
            Some(at) => at,
            None => {
                self.device.push(GroupDevice {
                    id,
                    name: device.name.clone(),
                    weight: None,
                    class: None,
                });
                self.device.len() - 1
            }
        };
        &mut self.device[at]
    }

    /// Whether nothing is set.
    fn says_nothing(&self) -> bool {
        self.weight.is_none() && self.class.is_none() && self.device.is_empty()
    }
}

fn folder<T: DeserializeOwned>(root: &Root, folder: &str) -> Result<Vec<(PathBuf, T)>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(root.path(folder))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let config = toml::from_str(&read_file(&path)?).map_err(|why| {
                failure(
                    Exit::Failed,
                    format!("cannot understand {}: {}", path.display(), why.message()),
                )
                .hint("correct the file or remove it")
            })?;
            Ok((path, config))
        })
        .collect()
}

/// The disks that are to run disktime.
pub fn devices(root: &Root) -> Result<Vec<(PathBuf, DeviceConfig)>> {
    folder(root, DEVICES)
}

/// The settings of cgroups.
pub fn groups(root: &Root) -> Result<Vec<(PathBuf, GroupConfig)>> {
    folder(root, GROUPS)
}

/// The lasting settings of `device`.
pub fn device(root: &Root, device: &Device) -> Result<Option<(PathBuf, DeviceConfig)>> {
    let ids = device.identities();
    Ok(devices(root)?
        .into_iter()
        .find(|(_, config)| ids.contains(&config.id)))
}

/// The lasting settings of the cgroup at `path`.
pub fn group(root: &Root, path: &str) -> Result<Option<GroupConfig>> {
    Ok(groups(root)?
        .into_iter()
        .map(|(_, config)| config)
        .find(|config| config.cgroup == path))
}

/// A file name for any text: letters, digits and `:_.` stay, `/` becomes `-`, the rest `\xHH`, as systemd-escape does.
fn file_name(text: &str) -> String {
    let text = text.trim_matches('/');
    if text.is_empty() {
        return "-".to_owned();
    }
    let mut out = String::new();
    for (n, byte) in text.bytes().enumerate() {
        match byte {
            b'/' => out.push('-'),
            b'.' if n == 0 => out.push_str("\\x2e"),
            b if b.is_ascii_alphanumeric() || b":_.=".contains(&b) => out.push(char::from(b)),
            b => {
                let _ = write!(out, "\\x{b:02x}");
            }
        }
    }
    out
}

fn to_toml<T: Serialize>(what: &str, config: &T) -> Result<String> {
    let body = toml::to_string(config).context("cannot write the settings as TOML")?;
    Ok(format!("{HEADER} {what}.\n{body}"))
}

/// Plans that `device` runs disktime from now on after each boot.
pub fn keep_device(root: &Root, config: &DeviceConfig) -> Result<Plan> {
    let mut all = devices(root)?;
    let path = match all.iter().position(|(_, other)| other.id == config.id) {
        Some(at) => all.remove(at).0,
        None => root
            .path(DEVICES)
            .join(format!("{}.toml", file_name(&config.id))),
    };
    let mut plan = Plan::default();
    plan.push(Op::Replace {
        path: path.clone(),
        text: to_toml(&format!("the disk {}", config.name), config)?,
    });
    all.push((path, config.clone()));
    plan.push(rules(root, all));
    Ok(plan)
}

/// Plans that the disk of the file `path` is left alone after the next boot.
pub fn drop_device(root: &Root, path: PathBuf) -> Result<Plan> {
    let mut all = devices(root)?;
    all.retain(|(other, _)| *other != path);
    let mut plan = Plan::default();
    plan.push(Op::Remove { path });
    plan.push(rules(root, all));
    Ok(plan)
}

/// Plans that a cgroup's settings last, or are forgotten where nothing is set any more.
pub fn keep_group(root: &Root, mut config: GroupConfig) -> Result<Plan> {
    config
        .device
        .retain(|entry| entry.weight.is_some() || entry.class.is_some());
    let existing = groups(root)?
        .into_iter()
        .find(|(_, other)| other.cgroup == config.cgroup);
    let mut plan = Plan::default();
    match existing {
        None if config.says_nothing() => {}
        Some((path, _)) if config.says_nothing() => plan.push(Op::Remove { path }),
        existing => {
            let path = existing.map_or_else(
                || {
                    root.path(GROUPS)
                        .join(format!("{}.toml", file_name(&config.cgroup)))
                },
                |(path, _)| path,
            );
            plan.push(Op::Replace {
                path,
                text: to_toml(&format!("the cgroup {}", config.cgroup), &config)?,
            });
        }
    }
    Ok(plan)
}

fn rules(root: &Root, mut all: Vec<(PathBuf, DeviceConfig)>) -> Op {
    let path = root.path(RULES);
    if all.is_empty() {
        return Op::Remove { path };
    }
    all.sort_by(|a, b| a.1.id.cmp(&b.1.id));
    let mut text =
        format!("# Written by disktime from {DEVICES}: disktime enable and disable rewrite it.\n");
    for (_, config) in all {
        let (key, value) = config.id.split_once('=').unwrap_or(("KERNEL", &config.id));
        // Device mapper tables are loaded after the device was added. Elsewhere a change event is no reason to undo
        // what somebody set since.
        let action = if key == "DM_UUID" {
            "add|change"
        } else {
            "add"
        };
        let matching = match key {
            "KERNEL" => format!("KERNEL==\"{}\"", value.replace('/', "!")),
            key => format!("ENV{{{key}}}==\"{value}\""),
        };
        let _ = write!(
            text,
            "# {}\nACTION==\"{action}\", SUBSYSTEM==\"block\", ENV{{DEVTYPE}}==\"disk\", {matching}, \
             ATTR{{queue/scheduler}}=\"disktime\"",
            config.name
        );
        if let Some(n) = config.nr_requests {
            let _ = write!(text, ", ATTR{{queue/nr_requests}}=\"{n}\"");
        }
        for (name, value) in &config.iosched {
            let _ = write!(text, ", ATTR{{queue/iosched/{name}}}=\"{value}\"");
        }
        text.push('\n');
    }
    Op::Replace { path, text }
}

fn record_path(root: &Root, device: &Device) -> PathBuf {
    root.path("/run/disktime")
        .join(format!("{}.json", device.name.replace('/', "!")))
}

/// Plans to remember what `device` had.
pub fn remember(root: &Root, device: &Device, former: &Former) -> Result<Op> {
    let record = Record {
        disktime_former: 1,
        device: device.name.clone(),
        devno: device.devno.to_string(),
        former: former.clone(),
    };
    let text = serde_json::to_string(&record).context("cannot write the record as JSON")? + "\n";
    Ok(Op::Replace {
        path: record_path(root, device),
        text,
    })
}

/// Plans to forget it.
pub fn forget(root: &Root, device: &Device) -> Op {
    Op::Remove {
        path: record_path(root, device),
    }
}

/// What `device` had before, as far as somebody wrote it down.
pub fn former(root: &Root, device: &Device) -> Option<Former> {
    let record: Record = serde_json::from_str(&read_file(&record_path(root, device)).ok()?).ok()?;
    // The name may have gone to another disk since.
    (record.devno == device.devno.to_string()).then_some(record.former)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_plain_and_distinct() {
        assert_eq!(file_name("/"), "-");
        assert_eq!(
            file_name("/system.slice/a-b.service"),
            "system.slice-a\\x2db.service"
        );
        assert_eq!(
            file_name("/system.slice/a/b.service"),
            "system.slice-a-b.service"
        );
        assert_eq!(file_name("/.hidden"), "\\x2ehidden");
        assert_eq!(file_name("ID_SERIAL=QEMU_1"), "ID_SERIAL=QEMU_1");
    }
}
