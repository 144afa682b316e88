//! The cgroup v2 tree.

use std::fs;
use std::path::{Path, PathBuf};

use crate::root::read_optional;
use crate::{
    Class, Error, Mounts, ParseValueError, Result, Root, Setting, Stat, Weight, parse_stat,
    read_file,
};

/// The file of weights in each cgroup.
pub const WEIGHT_FILE: &str = "io.disktime.weight";
/// The file of classes in each cgroup.
pub const CLASS_FILE: &str = "io.disktime.class";
/// The file of counters in each cgroup.
pub const STAT_FILE: &str = "io.disktime.stat";

/// The tree.
#[derive(Debug, Clone)]
pub struct Cgroups {
    root: Root,
    /// The mount point as seen from within the root.
    at: PathBuf,
}

/// One cgroup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    /// The path from the cgroup root; `/` is the root.
    pub path: String,
    /// Its folder.
    pub dir: PathBuf,
}

impl Cgroup {
    /// One of its files.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Its weights; `None` where the file is absent.
    pub fn weights(&self) -> Result<Option<Setting<Weight>>> {
        self.parsed(WEIGHT_FILE, str::parse)
    }

    /// Its classes; `None` where the file is absent.
    pub fn classes(&self) -> Result<Option<Setting<Class>>> {
        self.parsed(CLASS_FILE, str::parse)
    }

    /// Its counters by device; `None` where the file is absent.
    pub fn stat(&self) -> Result<Option<std::collections::BTreeMap<crate::DevNo, Stat>>> {
        self.parsed(STAT_FILE, parse_stat)
    }

    fn parsed<T>(
        &self,
        file: &str,
        parse: impl Fn(&str) -> Result<T, ParseValueError>,
    ) -> Result<Option<T>> {
        let path = self.file(file);
        match read_optional(&path)? {
            None => Ok(None),
            Some(text) => parse(&text).map(Some).map_err(|why| Error::Format {
                path,
                why: why.to_string(),
            }),
        }
    }

    /// Whether the io controller is passed on to its children.
    pub fn passes_io_on(&self) -> bool {
        read_file(&self.file("cgroup.subtree_control")).is_ok_and(|text| {
            text.split_ascii_whitespace()
                .any(|controller| controller == "io")
        })
    }

    /// The last part of the path.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

impl Cgroups {
    /// The tree that mountinfo names, else the one at `/sys/fs/cgroup`.
    pub fn open(root: &Root) -> Result<Self> {
        let mounts = Mounts::read(root).unwrap_or_default();
        let at = mounts
            .cgroup2()
            .unwrap_or(Path::new("/sys/fs/cgroup"))
            .to_path_buf();
        let dir = root.path(&at);
        if !dir.join("cgroup.controllers").exists() {
            return Err(Error::NoCgroupTree { path: dir });
        }
        Ok(Cgroups {
            root: root.clone(),
            at,
        })
    }

    /// Where the tree is mounted, as seen from within the root.
    pub fn mounted_at(&self) -> &Path {
        &self.at
    }

    /// The root cgroup.
    pub fn top(&self) -> Cgroup {
        Cgroup {
            path: "/".to_owned(),
            dir: self.root.path(&self.at),
        }
    }

    /// The cgroup at `path`, given from the cgroup root or with the mount point in front.
    pub fn get(&self, path: &str) -> Result<Cgroup> {
        let below = Path::new(path)
            .strip_prefix(&self.at)
            .unwrap_or(Path::new(path));
        let mut clean = String::new();
        for part in below.components() {
            match part {
                std::path::Component::Normal(name) => {
                    clean.push('/');
                    clean.push_str(&name.to_string_lossy());
                }
                std::path::Component::ParentDir => {
                    clean.truncate(clean.rfind('/').unwrap_or(0));
                }
                _ => {}
            }
        }
        if clean.is_empty() {
            return Ok(self.top());
        }
        let dir = self.root.path(&self.at).join(&clean[1..]);
        if dir.is_dir() {
            Ok(Cgroup { path: clean, dir })
        } else {
            Err(Error::NoCgroup { path: clean })
        }
    }

    /// The cgroup of a process.
    pub fn of_process(&self, pid: u32) -> Result<Cgroup> {
        let text = match read_file(&self.root.path(format!("/proc/{pid}/cgroup"))) {
            Err(error) if error.is_absent() => return Err(Error::NoProcess { pid }),
            other => other?,
        };
        // The v2 tree is hierarchy 0; a removed cgroup keeps its path with a mark behind it.
        let path = text
            .lines()
            .find_map(|line| line.strip_prefix("0::"))
            .ok_or(Error::NoProcess { pid })?;
        self.get(path.strip_suffix(" (deleted)").unwrap_or(path))
    }

    /// All cgroups, each before its children, siblings by name. One that vanishes meanwhile is left out.
    pub fn all(&self) -> Vec<Cgroup> {
        let mut out = Vec::new();
        let mut stack = vec![self.top()];
        while let Some(cgroup) = stack.pop() {
            let mut children: Vec<Cgroup> = fs::read_dir(&cgroup.dir)
                .into_iter()
                .flatten()
                .flatten()
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .filter_map(|entry| {
                    let name = entry.file_name().into_string().ok()?;
                    Some(Cgroup {
                        path: format!("{}/{name}", cgroup.path.trim_end_matches('/')),
                        dir: entry.path(),
                    })
                })
                .collect();
            children.sort_by(|a, b| b.path.cmp(&a.path));
            stack.append(&mut children);
            out.push(cgroup);
        }
        out
    }

    /// The highest ancestor of `cgroup` that does not pass the io controller on to its children.
    pub fn io_stops_at(&self, cgroup: &Cgroup) -> Option<Cgroup> {
        let mut at = self.top();
        for part in cgroup.path.split('/').filter(|part| !part.is_empty()) {
            if !at.passes_io_on() {
                return Some(at);
            }
            let path = format!("{}/{part}", at.path.trim_end_matches('/'));
            at = Cgroup {
                dir: at.dir.join(part),
                path,
            };
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("tempdir");
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().expect("parent")).expect("mkdir");
            fs::write(path, text).expect("write");
        };
        put("sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
        put("sys/fs/cgroup/cgroup.subtree_control", "cpu io\n");
        put("sys/fs/cgroup/a/cgroup.subtree_control", "cpu\n");
        put(
            "sys/fs/cgroup/a/b c/io.disktime.weight",
            "default 40\n8:0 7\n",
        );
        put("proc/7/cgroup", "12:cpu:/x\n0::/a/b c\n");
        put("proc/8/cgroup", "12:cpu:/x\n");
        put("proc/9/cgroup", "0::/gone (deleted)\n");
        dir
    }

    #[test]
    fn paths_are_taken_with_and_without_the_mount_point() {
        let dir = tree();
        let cgroups = Cgroups::open(&Root::at(dir.path())).expect("tree");
        for path in [
            "/a/b c",
            "a/b c",
            "/sys/fs/cgroup/a/b c",
            "/sys/fs/cgroup/a/b c/",
            "/a/../a/./b c",
        ] {
            assert_eq!(cgroups.get(path).expect(path).path, "/a/b c");
        }
        for path in ["/", "", "/sys/fs/cgroup", "/a/../..", "/../.."] {
            assert_eq!(cgroups.get(path).expect(path).path, "/");
        }
        assert!(matches!(cgroups.get("/a/c"), Err(Error::NoCgroup { .. })));
        assert!(matches!(
            cgroups.get("/a/cgroup.subtree_control"),
            Err(Error::NoCgroup { .. })
        ));
        assert_eq!(
            cgroups
                .get("/a/b c")
                .expect("cgroup")
                .weights()
                .expect("read")
                .expect("there")
                .default
                .get(),
            40
        );
        assert_eq!(
            cgroups.get("/a").expect("cgroup").weights().expect("read"),
            None
        );
    }

    #[test]
    fn processes_lead_to_their_v2_cgroup() {
        let dir = tree();
        let cgroups = Cgroups::open(&Root::at(dir.path())).expect("tree");
        assert_eq!(cgroups.of_process(7).expect("process").path, "/a/b c");
        assert!(matches!(
            cgroups.of_process(8),
            Err(Error::NoProcess { .. })
        ));
        assert!(matches!(cgroups.of_process(9), Err(Error::NoCgroup { .. })));
        assert!(matches!(
            cgroups.of_process(10),
            Err(Error::NoProcess { .. })
        ));
    }

    #[test]
    fn parents_come_before_children_and_the_io_gap_is_found() {
        let dir = tree();
        let cgroups = Cgroups::open(&Root::at(dir.path())).expect("tree");
        let paths: Vec<String> = cgroups
            .all()
            .into_iter()
            .map(|cgroup| cgroup.path)
            .collect();
        assert_eq!(paths, ["/", "/a", "/a/b c"]);
        let deep = cgroups.get("/a/b c").expect("cgroup");
        assert_eq!(cgroups.io_stops_at(&deep).expect("gap").path, "/a");
        assert_eq!(
            cgroups.io_stops_at(&cgroups.get("/a").expect("cgroup")),
            None
        );
    }

    #[test]
    fn a_tree_of_version_1_is_no_tree() {
        let dir = tempfile::tempdir().expect("tempdir");
        assert!(matches!(
            Cgroups::open(&Root::at(dir.path())),
            Err(Error::NoCgroupTree { .. })
        ));
    }
}
