//! A tree that looks like a system with the module loaded.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use tempfile::TempDir;

pub struct Tree {
    dir: TempDir,
}

pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Tree {
    /// sda (8:0) with the partition sda1 on /srv, nvme0n1 (259:0) with two queues, dm-0 (253:0) on sda and loop0;
    /// cgroups `/`, `/a`, `/b` and two services. disktime is known to the kernel and active nowhere.
    pub fn new() -> Self {
        let tree = Tree {
            dir: tempfile::tempdir().expect("tempdir"),
        };
        tree.disk("sda", "8:0", "none [mq-deadline] disktime ", 64);
        tree.put("sys/block/sda/sda1/dev", "8:1\n");
        tree.put("sys/block/sda/sda1/partition", "1\n");
        tree.put("sys/block/sda/mq/0/nr_tags", "32\n");
        tree.disk("nvme0n1", "259:0", "[none] mq-deadline disktime ", 1023);
        tree.put("sys/block/nvme0n1/mq/0/nr_tags", "1023\n");
        tree.put("sys/block/nvme0n1/mq/1/nr_tags", "1023\n");
        tree.disk("dm-0", "253:0", "none", 128);
        tree.put("sys/block/dm-0/slaves/sda/dev", "8:0\n");
        tree.put("sys/block/loop0/dev", "7:0\n");
        tree.put("dev/sda", "");
        tree.put("dev/sda1", "");
        tree.put("srv/.keep", "");
        tree.put(
            "proc/self/mountinfo",
            "1 1 8:1 / /srv rw - ext4 /dev/sda1 rw\n2 1 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
             3 1 0:30 / /tmp rw - tmpfs tmpfs rw\n",
        );
        tree.put("proc/77/cgroup", "0::/a\n");
        tree.put("sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
        tree.put("sys/fs/cgroup/cgroup.subtree_control", "cpu io\n");
        for path in [
            "",
            "a",
            "b",
            "system.slice",
            "system.slice/db.service",
            "system.slice/web@1.service",
        ] {
            tree.cgroup(path);
        }
        tree.put("sys/fs/cgroup/system.slice/cgroup.subtree_control", "io\n");
        tree.put(
            "run/udev/data/b8:0",
            "E:ID_SERIAL=QEMU_DISK_1\nE:ID_WWN=0x5000\n",
        );
        tree
    }

    /// The same with disktime active on sda.
    pub fn active() -> Self {
        let tree = Tree::new();
        tree.activate("sda");
        tree
    }

    pub fn activate(&self, name: &str) {
        self.put(
            &format!("sys/block/{name}/queue/scheduler"),
            "none mq-deadline [disktime] \n",
        );
        self.put(&format!("sys/block/{name}/queue/nr_requests"), "256\n");
        for (attr, value) in [
            ("slice_usec", "0"),
            ("idle_usec", "8000"),
            ("depth", "0"),
            ("order", "[cfq] deadline fifo"),
            ("strict", "0"),
            ("health", "ok"),
        ] {
            self.put(
                &format!("sys/block/{name}/queue/iosched/{attr}"),
                &format!("{value}\n"),
            );
        }
    }

    pub fn disk(&self, name: &str, dev: &str, schedulers: &str, nr_requests: u32) {
        self.put(&format!("sys/block/{name}/dev"), &format!("{dev}\n"));
        self.put(
            &format!("sys/block/{name}/queue/scheduler"),
            &format!("{schedulers}\n"),
        );
        self.put(
            &format!("sys/block/{name}/queue/nr_requests"),
            &format!("{nr_requests}\n"),
        );
    }

    pub fn cgroup(&self, path: &str) {
        let at = |file: &str| format!("sys/fs/cgroup/{path}/{file}").replace("//", "/");
        self.put(&at("io.disktime.weight"), "default 100\n");
        self.put(&at("io.disktime.class"), "default be\n");
        self.put(&at("io.disktime.stat"), "");
        if !path.is_empty() {
            self.put(&at("cgroup.subtree_control"), "\n");
        }
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("parent")).expect("mkdir");
        fs::write(path, text).expect("write");
    }

    /// Makes `path` a link to a file that nobody may write, not even root.
    pub fn forbid(&self, path: &str, target: &str) {
        let path = self.path(path);
        let _ = fs::remove_file(&path);
        symlink(target, path).expect("symlink");
    }

    pub fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        }
        .expect("remove");
    }

    pub fn get(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.path(path).exists()
    }

    /// A program that stands for modprobe.
    pub fn modprobe(&self, script: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        self.put("bin/modprobe", &format!("#!/bin/sh\n{script}\n"));
        let path = self.path("bin/modprobe");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("chmod");
        path.to_str().expect("UTF-8").to_owned()
    }

    pub fn command(&self) -> Command {
        let mut command = Command::cargo_bin("disktime").expect("binary");
        command
            .env_remove("DISKTIME_ROOT")
            .env_remove("DISKTIME_MODPROBE")
            .env("NO_COLOR", "1");
        command.arg("--root").arg(self.dir.path());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ran {
        let output = self.command().args(args).output().expect("run");
        Ran {
            code: output.status.code().expect("exit status"),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }

    /// Runs a command that must succeed.
    pub fn ok(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
        ran
    }

    /// Runs a command that must fail with `code` and say all of `words`. It must print no data.
    pub fn fails(&self, code: i32, args: &[&str], words: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}{}", ran.out, ran.err);
        for word in words {
            assert!(
                ran.err.contains(word),
                "{args:?}: no {word:?} in\n{}",
                ran.err
            );
        }
        assert!(ran.err.contains("error: "), "{args:?}: {}", ran.err);
        ran
    }

    /// All files with their contents, to see that nothing changed.
    pub fn snapshot(&self) -> Vec<(PathBuf, String)> {
        fn walk(dir: &Path, out: &mut Vec<(PathBuf, String)>) {
            for entry in fs::read_dir(dir).expect("read_dir").flatten() {
                let path = entry.path();
                if entry.file_type().expect("type").is_dir() {
                    walk(&path, out);
                } else {
                    out.push((path.clone(), fs::read_to_string(&path).expect("read")));
                }
            }
        }
        let mut out = Vec::new();
        walk(self.dir.path(), &mut out);
        out.sort();
        out
    }
}
