//! What every disk runs and what every group got: the model behind `status`, made from two samples or one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::Result;
use disktime_sys::{Blocks, Cgroups, Class, DevNo, Device, GroupLine, Kind, Root, Stat, Weight};

use crate::device::{SCHEDULER, first_word};
use crate::share::{self, Asker};

/// A group contends where its requests waited, in sum, for at least this part of the disk's busy time.
const CONTENDS: f64 = 0.1;

/// A disk.
#[derive(Debug)]
pub struct DeviceStatus {
    /// The kernel's name.
    pub name: String,
    /// The device number.
    pub devno: DevNo,
    /// The scheduler in use, empty for a device without a request queue.
    pub scheduler: String,
    /// Whether the disk can have a scheduler.
    pub supported: bool,
    /// The size, where sysfs tells.
    pub bytes: Option<u64>,
    /// Its nr_requests.
    pub nr_requests: Option<u32>,
    /// The scheduler's attributes, where it is disktime.
    pub iosched: BTreeMap<String, String>,
    /// The groups, where it is disktime.
    pub groups: Vec<GroupStatus>,
    /// The disk time of all groups in the window, in microseconds.
    pub busy_usec: u64,
    /// The length of the window; none for the totals since disktime was enabled.
    pub interval: Option<Duration>,
}

/// A group on a disk. The numbers are those of the window.
#[derive(Debug)]
pub struct GroupStatus {
    /// The cgroup's path.
    pub path: String,
    /// The weight in force there.
    pub weight: Weight,
    /// The class in force there.
    pub class: Class,
    /// Whether it contended in the window.
    pub contends: bool,
    /// What the weights promise it; see the module `share`.
    pub entitled: f64,
    /// Its part of the disk time that all groups got; none where there was none to divide.
    pub got: Option<f64>,
    /// Its counters.
    pub stat: Stat,
    /// What else the kernel says of it.
    pub text: BTreeMap<String, String>,
}

impl DeviceStatus {
    /// Whether the disk runs disktime.
    pub fn active(&self) -> bool {
        self.scheduler == SCHEDULER
    }
}

impl GroupStatus {
    /// Whether it never asked for anything and nobody set anything.
    pub fn is_dull(&self) -> bool {
        self.weight == Weight::default()
            && self.class == Class::default()
            && self.stat.iter().all(|(_, value)| value == 0)
    }
}

/// The groups of the active disks at one instant.
struct Sample {
    at: Instant,
    groups: BTreeMap<String, Vec<GroupLine>>,
}

struct Reader {
    devices: Vec<Device>,
    cgroups: Option<Cgroups>,
}

impl Reader {
    /// Takes a disk's own list of groups where there is one: on a machine of thousands of cgroups that is one file
    /// instead of a walk.
    fn sample(&self) -> Result<Sample> {
        let mut groups = BTreeMap::new();
        let mut walk = Vec::new();
        for device in &self.devices {
            match device.groups()? {
                Some(lines) => drop(groups.insert(device.name.clone(), lines)),
                None => walk.push(device),
            }
        }
        if let (Some(cgroups), false) = (&self.cgroups, walk.is_empty()) {
            for cgroup in cgroups.all() {
                let Some(stats) = cgroup.stat()? else {
                    continue;
                };
                let (weights, classes) = (cgroup.weights()?, cgroup.classes()?);
                for device in &walk {
                    let lines: &mut Vec<GroupLine> = groups.entry(device.name.clone()).or_default();
                    lines.push(GroupLine {
                        path: cgroup.path.clone(),
                        weight: weights.as_ref().map(|weights| weights.on(device.devno)),
                        class: classes.as_ref().map(|classes| classes.on(device.devno)),
                        stat: stats.get(&device.devno).cloned().unwrap_or_default(),
                        text: BTreeMap::new(),
                    });
                }
            }
        }
        Ok(Sample {
            at: Instant::now(),
            groups,
        })
    }

    /// A cgroup's settings from its own files, for what the disk's list leaves out.
    fn settings(&self, path: &str, devno: DevNo) -> share::Settings {
        let cgroup = self
            .cgroups
            .as_ref()
            .and_then(|cgroups| cgroups.get(path).ok());
        let weights = cgroup
            .as_ref()
            .and_then(|cgroup| cgroup.weights().ok().flatten());
        let classes = cgroup
            .as_ref()
            .and_then(|cgroup| cgroup.classes().ok().flatten());
        (
            weights.map_or(Weight::default(), |weights| weights.on(devno)),
            classes.map_or(Class::default(), |classes| classes.on(devno)),
        )
    }
}

/// Reads the state of `only`, or of all disks. With `interval`, `sleep` is called between two samples and may return
/// early.
pub fn collect(
    root: &Root,
    only: &[Device],
    interval: Option<Duration>,
    sleep: impl FnOnce(Duration),
) -> Result<Vec<DeviceStatus>> {
    let devices = if only.is_empty() {
        Blocks::new(root).all()?
    } else {
        only.to_vec()
    };
    let mut statuses = Vec::new();
    let mut active = Vec::new();
    for device in devices {
        let schedulers = device.schedulers()?;
        let mut status = DeviceStatus {
            name: device.name.clone(),
            devno: device.devno,
            scheduler: schedulers.current,
            supported: schedulers.supported,
            bytes: device.bytes()?,
            nr_requests: device.nr_requests()?,
            iosched: BTreeMap::new(),
            groups: Vec::new(),
            busy_usec: 0,
            interval: None,
        };
        if status.active() {
            for name in device.iosched_names() {
                if let (false, Some(text)) = (name == "groups", device.iosched(&name)?) {
                    let value = if name == "health" {
                        text.lines().next().unwrap_or_default().to_owned()
                    } else {
                        first_word(&text)
                    };
                    status.iosched.insert(name, value);
                }
            }
            active.push(device);
        }
        statuses.push(status);
    }
    if active.is_empty() {
        return Ok(statuses);
    }
    let reader = Reader {
        devices: active,
        cgroups: Cgroups::open(root).ok(),
    };
    let first = match interval {
        Some(interval) => {
            let first = reader.sample()?;
            sleep(interval);
            Some(first)
        }
        None => None,
    };
    let mut last = reader.sample()?;
    for status in statuses.iter_mut().filter(|status| status.active()) {
        let lines = last.groups.remove(&status.name).unwrap_or_default();
        let before = first.as_ref().map(|first| {
            first
                .groups
                .get(&status.name)
                .map_or(&[][..], Vec::as_slice)
        });
        let groups = match before {
            Some(before) => differences(before, lines),
            None => lines.into_iter().map(|line| (line, false)).collect(),
        };
        status.interval = first.as_ref().map(|first| last.at - first.at);
        judge(&reader, status, groups);
    }
    Ok(statuses)
}

/// What each group's counters grew by, and whether it had requests queued at the first sample.
fn differences(before: &[GroupLine], now: Vec<GroupLine>) -> Vec<(GroupLine, bool)> {
    let present: BTreeSet<String> = now.iter().map(|line| line.path.clone()).collect();
    let mut base: BTreeMap<&str, Stat> = before
        .iter()
        .map(|line| (line.path.as_str(), line.stat.clone()))
        .collect();
    // A removed group's counters go to its parent, which did not earn them in this window.
    for line in before.iter().filter(|line| !present.contains(&line.path)) {
        let mut heir = line.path.as_str();
        while let Some((parent, _)) = heir.rsplit_once('/') {
            heir = if parent.is_empty() { "/" } else { parent };
            if heir == "/" || present.contains(heir) {
                break;
            }
        }
        if let (true, Some(heir)) = (heir != line.path, base.get_mut(heir)) {
            for (key, value) in line.stat.iter() {
                heir.set(key, heir.or_zero(key).saturating_add(value));
            }
        }
    }
    let was_queued: BTreeSet<&str> = before
        .iter()
        .filter(|line| line.stat.is_backlogged())
        .map(|line| line.path.as_str())
        .collect();
    now.into_iter()
        .map(|mut line| {
            let queued = was_queued.contains(line.path.as_str());
            if let Some(base) = base.get(line.path.as_str()) {
                let grown = |key: &str, value: u64| match disktime_sys::field(key) {
                    Some(field) if field.kind == Kind::Gauge => value,
                    // A counter that went back was started anew: all of it is of this window.
                    _ => value.checked_sub(base.or_zero(key)).unwrap_or(value),
                };
                line.stat = line
                    .stat
                    .iter()
                    .map(|(key, value)| (key.to_owned(), grown(key, value)))
                    .collect();
            }
            (line, queued)
        })
        .collect()
}

fn judge(reader: &Reader, status: &mut DeviceStatus, groups: Vec<(GroupLine, bool)>) {
    let busy: u64 = groups.iter().map(|(line, _)| line.stat.time_usec()).sum();
    status.busy_usec = busy;
    let settings: BTreeMap<String, share::Settings> = groups
        .iter()
        .map(|(line, _)| {
            let own = match (line.weight, line.class) {
                // The root has no siblings: what is set there holds for its own leaf, and only its files tell.
                (Some(weight), Some(class)) if line.path != "/" || reader.cgroups.is_none() => {
                    (weight, class)
                }
                _ if line.path == "/" => reader.settings("/", status.devno),
                (weight, class) => {
                    let (file_weight, file_class) = reader.settings(&line.path, status.devno);
                    (weight.unwrap_or(file_weight), class.unwrap_or(file_class))
                }
            };
            (line.path.clone(), own)
        })
        .collect();
    let askers: Vec<Asker> = groups
        .iter()
        .map(|(line, was_queued)| {
            let waited = match line.stat.get("wait_usec") {
                Some(wait) => busy > 0 && wait as f64 >= CONTENDS * busy as f64,
                // A kernel that does not tell: whoever got something is taken to have contended.
                None => line.stat.time_usec() > 0,
            };
            Asker {
                path: line.path.clone(),
                got: if busy > 0 {
                    line.stat.time_usec() as f64 / busy as f64
                } else {
                    0.0
                },
                contends: *was_queued || line.stat.is_backlogged() || waited,
            }
        })
        .collect();
    let entitled = share::entitled(&askers, |path| {
        settings
            .get(path)
            .copied()
            .unwrap_or_else(|| reader.settings(path, status.devno))
    });
    status.groups = groups
        .into_iter()
        .zip(askers)
        .zip(entitled)
        .map(|(((line, _), asker), entitled)| {
            let (weight, class) = settings.get(&line.path).copied().unwrap_or_default();
            GroupStatus {
                path: line.path,
                weight,
                class,
                contends: asker.contends,
                entitled,
                got: (busy > 0).then_some(asker.got),
                stat: line.stat,
                text: line.text,
            }
        })
        .collect();
    status.groups.sort_by(|a, b| a.path.cmp(&b.path));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(path: &str, values: &[(&str, u64)]) -> GroupLine {
        GroupLine {
            path: path.into(),
            stat: values
                .iter()
                .map(|(key, value)| ((*key).to_owned(), *value))
                .collect(),
            ..GroupLine::default()
        }
    }

    #[test]
    fn a_parent_does_not_earn_what_it_inherits() {
        let before = [
            line("/", &[("time_usec", 5)]),
            line("/a", &[("time_usec", 10)]),
            line("/a/b", &[("time_usec", 100)]),
        ];
        let now = vec![
            line("/", &[("time_usec", 6)]),
            line("/a", &[("time_usec", 117)]),
        ];
        let grown: Vec<u64> = differences(&before, now)
            .iter()
            .map(|(line, _)| line.stat.time_usec())
            .collect();
        assert_eq!(grown, [1, 7]);
    }

    #[test]
    fn a_whole_branch_goes_to_the_nearest_that_is_left() {
        let before = [
            line("/", &[("ios", 1)]),
            line("/a", &[("ios", 10)]),
            line("/a/b", &[("ios", 100)]),
        ];
        let grown = differences(&before, vec![line("/", &[("ios", 113)])]);
        assert_eq!(grown[0].0.stat.get("ios"), Some(2));
    }

    #[test]
    fn gauges_are_not_subtracted_and_new_starts_count_in_full() {
        let before = [line("/a", &[("queued", 3), ("ios", 50)])];
        let grown = differences(
            &before,
            vec![
                line("/a", &[("queued", 2), ("ios", 4)]),
                line("/new", &[("ios", 9)]),
            ],
        );
        assert_eq!(grown[0].0.stat.get("queued"), Some(2));
        assert_eq!(grown[0].0.stat.get("ios"), Some(4));
        assert!(grown[0].1 && !grown[1].1);
        assert_eq!(grown[1].0.stat.get("ios"), Some(9));
    }
}
