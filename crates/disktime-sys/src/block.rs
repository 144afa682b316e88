//! Block devices as sysfs shows them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::root::read_optional;
use crate::{DevNo, Error, GroupLine, Mounts, Result, Root, parse_groups, read_file};

/// Sectors of sysfs have this many bytes, whatever the device's own block size is.
const SECTOR_BYTES: u64 = 512;

/// The disks of `/sys/block`.
#[derive(Debug, Clone)]
pub struct Blocks {
    root: Root,
}

/// What `queue/scheduler` says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schedulers {
    /// The one in use.
    pub current: String,
    /// All that the kernel offers for this device now.
    pub available: Vec<String>,
    /// Whether the device can have a scheduler at all. The kernel puts brackets around the current one only then.
    pub supported: bool,
}

/// A disk: a block device with a request queue, not a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The kernel's name, as in `/dev`.
    pub name: String,
    /// The device number.
    pub devno: DevNo,
    dir: PathBuf,
    root: Root,
}

/// How a name led to a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A mount point holds what is on this device.
    Mount {
        /// The mount point.
        at: PathBuf,
        /// The device that is mounted.
        source: String,
    },
    /// The device is a partition of the disk.
    Partition {
        /// The partition's name.
        name: String,
    },
}

/// A disk and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedDevice {
    /// The disk.
    pub device: Device,
    /// The way there, in order.
    pub steps: Vec<Step>,
}

impl Schedulers {
    /// Parses the kernel's list, `none [mq-deadline] disktime`.
    pub fn parse(text: &str) -> Self {
        let mut schedulers = Schedulers::default();
        for word in text.split_ascii_whitespace() {
            let name = match word
                .strip_prefix('[')
                .and_then(|word| word.strip_suffix(']'))
            {
                Some(name) => {
                    schedulers.current = name.to_owned();
                    schedulers.supported = true;
                    name
                }
                None => word,
            };
            schedulers.available.push(name.to_owned());
        }
        if let ([only], true) = (&schedulers.available[..], schedulers.current.is_empty()) {
            schedulers.current = only.clone();
            schedulers.supported = only != "none";
        }
        schedulers
    }

    /// Whether the kernel knows the scheduler `name`.
    pub fn offers(&self, name: &str) -> bool {
        self.available.iter().any(|available| available == name)
    }
}

impl Device {
    fn open(root: &Root, name: &str) -> Result<Option<Self>> {
        let dir = root.path("/sys/block").join(name);
        let Some(text) = read_optional(&dir.join("dev"))? else {
            return Ok(None);
        };
        let devno = text.trim_ascii().parse().map_err(|why| Error::Format {
            path: dir.join("dev"),
            why: format!("{why}"),
        })?;
        Ok(Some(Device {
            name: name.replace('!', "/"),
            devno,
            dir,
            root: root.clone(),
        }))
    }

    /// A file below the device's folder in sysfs.
    pub fn file(&self, below: &str) -> PathBuf {
        self.dir.join(below)
    }

    /// The path of `queue/scheduler`.
    pub fn scheduler_file(&self) -> PathBuf {
        self.file("queue/scheduler")
    }

    /// The path of `queue/nr_requests`.
    pub fn nr_requests_file(&self) -> PathBuf {
        self.file("queue/nr_requests")
    }

    /// The path of an attribute of the scheduler in use.
    pub fn iosched_file(&self, name: &str) -> PathBuf {
        self.file("queue/iosched").join(name)
    }

    /// The schedulers on offer; none for a device without a request queue.
    pub fn schedulers(&self) -> Result<Schedulers> {
        Ok(read_optional(&self.scheduler_file())?
            .map(|text| Schedulers::parse(&text))
            .unwrap_or_default())
    }

    /// How many requests the scheduler may hold.
    pub fn nr_requests(&self) -> Result<Option<u32>> {
        let path = self.nr_requests_file();
        let Some(text) = read_optional(&path)? else {
            return Ok(None);
        };
        let text = text.trim_ascii();
        text.parse().map(Some).map_err(|_| Error::Format {
            path,
            why: format!("'{text}' is not a number"),
        })
    }

    /// An attribute of the scheduler in use, without the newline.
    pub fn iosched(&self, name: &str) -> Result<Option<String>> {
        Ok(read_optional(&self.iosched_file(name))?.map(|text| text.trim_ascii_end().to_owned()))
    }

    /// The names of the scheduler's attributes.
    pub fn iosched_names(&self) -> Vec<String> {
        names(&self.file("queue/iosched"))
    }

    /// All groups at once, where the scheduler lists them: in `queue/iosched/groups`, or in debugfs where that is
    /// mounted and may be read.
    pub fn groups(&self) -> Result<Option<Vec<GroupLine>>> {
        let debug = self
            .root
            .path("/sys/kernel/debug/block")
            .join(self.name.replace('/', "!"))
            .join("sched/groups");
        for path in [self.iosched_file("groups"), debug] {
            let text = match read_optional(&path) {
                // Only root may enter debugfs, and a locked down kernel lets nobody.
                Err(error) if error.is_permission() => continue,
                other => other?,
            };
            if let Some(text) = text {
                return parse_groups(&text).map(Some).map_err(|why| Error::Format {
                    path,
                    why: why.to_string(),
                });
            }
        }
        Ok(None)
    }

    /// The devices this one stands on (device mapper, md).
    pub fn slaves(&self) -> Vec<String> {
        names(&self.file("slaves"))
    }

    /// The number of hardware queues.
    pub fn hw_queues(&self) -> usize {
        names(&self.file("mq")).len()
    }

    /// How many requests a hardware queue takes; `None` where the kernel does not say.
    pub fn hw_tags(&self) -> Result<Option<u32>> {
        Ok(read_optional(&self.file("mq/0/nr_tags"))?
            .and_then(|text| text.trim_ascii().parse().ok()))
    }

    /// Whether the kernel takes it for a disk with a head.
    pub fn rotational(&self) -> Result<bool> {
        Ok(read_optional(&self.file("queue/rotational"))?
            .is_some_and(|text| text.trim_ascii() == "1"))
    }

    /// The size in bytes, 0 for a loop device without a file or a drive without a medium.
    pub fn bytes(&self) -> Result<Option<u64>> {
        let sectors = read_optional(&self.file("size"))?
            .and_then(|text| text.trim_ascii().parse::<u64>().ok());
        Ok(sectors.map(|sectors| sectors.saturating_mul(SECTOR_BYTES)))
    }

    /// udev's properties of the device; empty where udev does not run.
    pub fn udev_properties(&self) -> BTreeMap<String, String> {
        let path = self.root.path(format!("/run/udev/data/b{}", self.devno));
        let text = read_file(&path).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.strip_prefix("E:")?.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    /// The names that may stand for this device over reboots, `KEY=value`, the most lasting first. The keys are those
    /// of udev rules; the kernel's name comes last because it may go to another disk.
    pub fn identities(&self) -> Vec<String> {
        let properties = self.udev_properties();
        let mut ids: Vec<String> = ["ID_SERIAL", "ID_WWN", "DM_UUID"]
            .into_iter()
            .filter_map(|key| Some((key, properties.get(key)?)))
            // Rules match by shell patterns and quote with '"': values that hold such characters would match wrongly.
            .filter(|(_, value)| {
                !value.is_empty() && !value.contains(['"', '\\', '*', '?', '[', ']', '|', '$', '%'])
            })
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        ids.push(format!("KERNEL={}", self.name));
        ids
    }

    /// The numbers and names of the disk's partitions.
    pub fn partitions(&self) -> Vec<(DevNo, String)> {
        names(&self.dir)
            .into_iter()
            .filter(|name| self.dir.join(name).join("partition").exists())
            .filter_map(|name| {
                let text = read_file(&self.dir.join(&name).join("dev")).ok()?;
                Some((text.trim_ascii().parse().ok()?, name.replace('!', "/")))
            })
            .collect()
    }
}

/// The entries of a folder in order; empty for a folder that is not there.
fn names(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

impl Blocks {
    /// The disks of `root`.
    pub fn new(root: &Root) -> Self {
        Blocks { root: root.clone() }
    }

    /// All disks, by name.
    pub fn all(&self) -> Result<Vec<Device>> {
        let mut devices = Vec::new();
        for name in names(&self.root.path("/sys/block")) {
            devices.extend(Device::open(&self.root, &name)?);
        }
        Ok(devices)
    }

    /// The disk called exactly `name`.
    pub fn named(&self, name: &str) -> Result<Option<Device>> {
        let name = name.replace('/', "!");
        if name.is_empty() || name == "." || name == ".." {
            return Ok(None);
        }
        Device::open(&self.root, &name)
    }

    /// The disk with the number `devno`.
    pub fn numbered(&self, devno: DevNo) -> Result<Option<Device>> {
        Ok(self.all()?.into_iter().find(|device| device.devno == devno))
    }

    /// The most lasting of `device`'s identities that no other present disk shares: the paths to a multipath disk and
    /// the units of a card reader have one serial number.
    pub fn lasting_identity(&self, device: &Device) -> Result<String> {
        let mut ids = device.identities();
        let kernel_name = ids.pop().unwrap_or_default();
        for other in self
            .all()?
            .into_iter()
            .filter(|other| other.devno != device.devno)
        {
            let others = other.identities();
            ids.retain(|id| !others.contains(id));
        }
        Ok(ids.into_iter().next().unwrap_or(kernel_name))
    }

    /// Whether `asked` can only mean a device: a path below `/dev` or a device number.
    pub fn looks_like_device(asked: &str) -> bool {
        asked.starts_with("/dev/") || asked.parse::<DevNo>().is_ok()
    }

    /// The disk meant by `/dev/x`, `x`, `MAJ:MIN` or a mount point. A partition leads to its disk.
    pub fn resolve(&self, asked: &str) -> Result<ResolvedDevice> {
        let mut steps = Vec::new();
        let absent = || -> Error {
            let known = self
                .all()
                .map(|all| all.into_iter().map(|device| device.name).collect());
            Error::NoDevice {
                asked: asked.to_owned(),
                known: known.unwrap_or_default(),
            }
        };
        let found = if let Ok(devno) = asked.parse::<DevNo>() {
            self.disk_of(Some(devno), None, &mut steps)?
        } else if asked.starts_with("/dev/") {
            self.by_dev_path(asked, &mut steps)?
        } else if asked.starts_with('/') {
            let at = match asked.trim_end_matches('/') {
                "" => PathBuf::from("/"),
                rest => PathBuf::from(rest),
            };
            let mounts = Mounts::read(&self.root)?;
            if !self.root.path(&at).exists() && mounts.at(&at).is_none() {
                return Err(absent());
            }
            let mount = mounts.device_of(&at)?;
            steps.push(Step::Mount {
                at,
                source: mount.source.clone(),
            });
            let mut found = None;
            if mount.devno.major != 0 {
                found = self.disk_of(Some(mount.devno), None, &mut steps)?;
            }
            if found.is_none() && mount.source.starts_with("/dev/") {
                found = self.by_dev_path(&mount.source, &mut steps)?;
            }
            found
        } else {
            self.disk_of(None, Some(asked), &mut steps)?
        };
        found
            .map(|device| ResolvedDevice { device, steps })
            .ok_or_else(absent)
    }

    fn by_dev_path(&self, path: &str, steps: &mut Vec<Step>) -> Result<Option<Device>> {
        let real = self.root.follow(Path::new(path));
        let devno = fs::metadata(self.root.path(&real))
            .ok()
            .filter(|meta| meta.file_type().is_block_device())
            .map(|meta| {
                let number = meta.rdev();
                // The kernel's encoding of a 64-bit dev_t (gnu_dev_major and gnu_dev_minor).
                let major = ((number >> 8) & 0xfff) | ((number >> 32) & !0xfff);
                let minor = (number & 0xff) | ((number >> 12) & !0xff);
                DevNo::new(major as u32, minor as u32)
            });
        let name = real.strip_prefix("/dev").ok().and_then(Path::to_str);
        self.disk_of(devno, name, steps)
    }

    /// The disk with this number or, failing a number, this name; or the disk of the partition that has it.
    fn disk_of(
        &self,
        devno: Option<DevNo>,
        name: Option<&str>,
        steps: &mut Vec<Step>,
    ) -> Result<Option<Device>> {
        if let (None, Some(name)) = (devno, name) {
            if let Some(device) = self.named(name)? {
                return Ok(Some(device));
            }
        }
        let all = self.all()?;
        if let Some(device) = all.iter().find(|device| Some(device.devno) == devno) {
            return Ok(Some(device.clone()));
        }
        for device in all {
            let partition =
                device
                    .partitions()
                    .into_iter()
                    .find(|(number, partition)| match devno {
                        Some(devno) => *number == devno,
                        None => Some(partition.as_str()) == name,
                    });
            if let Some((_, name)) = partition {
                steps.push(Step::Partition { name });
                return Ok(Some(device));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_mark_the_scheduler_in_use() {
        let list = Schedulers::parse("none [mq-deadline] disktime \n");
        assert_eq!(
            (list.current.as_str(), list.supported),
            ("mq-deadline", true)
        );
        assert!(list.offers("disktime") && list.offers("mq-deadline") && !list.offers("bfq"));
        assert!(Schedulers::parse("[none] \n").supported);
    }

    #[test]
    fn a_bare_none_means_no_scheduler_is_possible() {
        let list = Schedulers::parse("none\n");
        assert_eq!((list.current.as_str(), list.supported), ("none", false));
        assert!(!Schedulers::parse("").supported);
    }

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("tempdir");
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("parent")).expect("mkdir");
            fs::write(path, text).expect("write");
        };
        put("sys/block/sda/dev", "8:0\n");
        put("sys/block/sda/sda1/dev", "8:1\n");
        put("sys/block/sda/sda1/partition", "1\n");
        put("sys/block/cciss!c0d0/dev", "104:0\n");
        put("sys/block/nvme0c0n1/hidden", "1\n");
        put("dev/sda1", "");
        put("dev/cciss/c0d0", "");
        put("mnt/x/.keep", "");
        put(
            "proc/self/mountinfo",
            "1 1 8:1 / /mnt rw - ext4 /dev/sda1 rw\n2 1 0:9 / /b rw - btrfs /dev/sda1 rw\n",
        );
        put(
            "run/udev/data/b8:0",
            "S:disk/by-id/x\nE:ID_SERIAL=Disk_1\nE:ID_WWN=0x5*\nE:DM_UUID=\n",
        );
        dir
    }

    #[test]
    fn every_way_to_name_a_disk_leads_to_it() {
        let dir = tree();
        let blocks = Blocks::new(&Root::at(dir.path()));
        for (asked, name, steps) in [
            ("sda", "sda", 0),
            ("sda1", "sda", 1),
            ("/dev/sda1", "sda", 1),
            ("8:0", "sda", 0),
            ("8:1", "sda", 1),
            ("/mnt", "sda", 2),
            ("/mnt/", "sda", 2),
            ("/b", "sda", 2),
            ("cciss/c0d0", "cciss/c0d0", 0),
            ("/dev/cciss/c0d0", "cciss/c0d0", 0),
        ] {
            let found = blocks
                .resolve(asked)
                .unwrap_or_else(|error| panic!("{asked}: {error}"));
            assert_eq!(
                (found.device.name.as_str(), found.steps.len()),
                (name, steps),
                "{asked}"
            );
        }
        for absent in ["sdb", "/dev/sdb", "9:9", "/nowhere", "", "..", "nvme0c0n1"] {
            assert!(
                matches!(blocks.resolve(absent), Err(Error::NoDevice { .. })),
                "{absent}"
            );
        }
        assert!(matches!(
            blocks.resolve("/mnt/x"),
            Err(Error::NotMountPoint { .. })
        ));
    }

    #[test]
    fn identities_that_rules_cannot_quote_are_left_out() {
        let dir = tree();
        let device = Blocks::new(&Root::at(dir.path()))
            .named("sda")
            .expect("read")
            .expect("present");
        assert_eq!(device.identities(), ["ID_SERIAL=Disk_1", "KERNEL=sda"]);
    }
    #[test]
    fn an_identity_that_two_disks_share_is_passed_over() {
        let dir = tree();
        let blocks = Blocks::new(&Root::at(dir.path()));
        let device = blocks.named("sda").expect("read").expect("present");
        assert_eq!(
            blocks.lasting_identity(&device).expect("identity"),
            "ID_SERIAL=Disk_1"
        );
        fs::write(
            dir.path().join("run/udev/data/b104:0"),
            "E:ID_SERIAL=Disk_1\n",
        )
        .expect("write");
        assert_eq!(
            blocks.lasting_identity(&device).expect("identity"),
            "KERNEL=sda"
        );
    }
}
