//! `/proc/self/mountinfo`.

use std::path::{Path, PathBuf};

use crate::{DevNo, Error, Result, Root, read_file, unescape_path};

/// One mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The device number, anonymous (major 0) for file systems of several devices or of none.
    pub devno: DevNo,
    /// Where it is mounted.
    pub at: PathBuf,
    /// Its type.
    pub fstype: String,
    /// What is mounted, a device's path as a rule.
    pub source: String,
}

/// The mounts of this process, in the order they were made.
#[derive(Debug, Clone, Default)]
pub struct Mounts {
    all: Vec<Mount>,
}

impl Mounts {
    /// Reads them.
    pub fn read(root: &Root) -> Result<Self> {
        Ok(Mounts::parse(&read_file(
            &root.path("/proc/self/mountinfo"),
        )?))
    }

    /// Parses them; lines of another shape are skipped.
    pub fn parse(text: &str) -> Self {
        Mounts {
            all: text.lines().filter_map(parse_line).collect(),
        }
    }

    /// What is mounted at exactly `path`: the last one made hides the others.
    pub fn at(&self, path: &Path) -> Option<&Mount> {
        self.all.iter().rev().find(|mount| mount.at == path)
    }

    /// The mount that holds `path`.
    pub fn holding(&self, path: &Path) -> Option<&Mount> {
        path.ancestors().find_map(|ancestor| self.at(ancestor))
    }

    /// Where cgroup v2 is mounted.
    pub fn cgroup2(&self) -> Option<&Path> {
        self.all
            .iter()
            .find(|mount| mount.fstype == "cgroup2")
            .map(|mount| mount.at.as_path())
    }

    /// Where file systems of the device `devno` or with the source `/dev/name` are mounted.
    pub fn of_device(&self, devno: DevNo, name: &str) -> Vec<&Mount> {
        let source = format!("/dev/{name}");
        self.all
            .iter()
            .filter(|mount| mount.devno == devno || mount.source == source)
            .collect()
    }
}

fn parse_line(line: &str) -> Option<Mount> {
    let (head, tail) = line.split_once(" - ")?;
    let mut head = head.split(' ');
    let devno = head.nth(2)?.parse().ok()?;
    let at = PathBuf::from(unescape_path(head.nth(1)?));
    let mut tail = tail.split(' ');
    Some(Mount {
        devno,
        at,
        fstype: tail.next()?.to_owned(),
        source: unescape_path(tail.next()?),
    })
}

impl Mounts {
    /// The device behind the mount point `path`: its number, or its source's path where the number is anonymous.
    pub(crate) fn device_of(&self, path: &Path) -> Result<&Mount> {
        let mount = self.at(path).ok_or_else(|| Error::NotMountPoint {
            path: path.to_path_buf(),
            mount: self.holding(path).map(|mount| mount.at.clone()),
        })?;
        if mount.devno.major == 0 && !mount.source.starts_with("/dev/") {
            return Err(Error::NoBlockDevice {
                path: path.to_path_buf(),
                fstype: mount.fstype.clone(),
            });
        }
        Ok(mount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw
24 22 0:40 / /data\\040one rw - btrfs /dev/sdb1 rw
25 22 0:41 / /tmp rw master:1 propagate_from:2 - tmpfs tmpfs rw
junk
";

    #[test]
    fn the_mount_point_decides() {
        let mounts = Mounts::parse(TEXT);
        assert_eq!(
            mounts.device_of(Path::new("/")).expect("root").devno,
            DevNo::new(8, 1)
        );
        assert_eq!(
            mounts
                .device_of(Path::new("/data one"))
                .expect("btrfs")
                .source,
            "/dev/sdb1"
        );
        assert!(matches!(
            mounts.device_of(Path::new("/tmp")),
            Err(Error::NoBlockDevice { .. })
        ));
        let Err(Error::NotMountPoint { mount, .. }) = mounts.device_of(Path::new("/data one/x"))
        else {
            panic!("not a mount point")
        };
        assert_eq!(mount.as_deref(), Some(Path::new("/data one")));
        assert_eq!(mounts.cgroup2(), Some(Path::new("/sys/fs/cgroup")));
        assert_eq!(mounts.of_device(DevNo::new(8, 1), "sda1").len(), 1);
    }
}
