//! Writes cpio archives in the "newc" format, the one the kernel unpacks as initramfs. Archives
//! may follow one another in one file; later ones overwrite files of earlier ones.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{At, Result};

const DIR: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHAR: u32 = 0o020_000;

/// An archive in memory. Paths are written without the leading slash; parents are made.
#[derive(Default)]
pub(crate) struct Cpio {
    bytes: Vec<u8>,
    inode: u32,
    dirs: BTreeSet<String>,
}

impl Cpio {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    fn entry(&mut self, path: &str, mode: u32, rdev: (u32, u32), data: &[u8]) {
        self.inode += 1;
        let header = [
            self.inode,
            mode,
            0,
            0,
            1,
            0,
            data.len() as u32,
            0,
            0,
            rdev.0,
            rdev.1,
            path.len() as u32 + 1,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in header {
            self.bytes
                .extend_from_slice(format!("{field:08X}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn parents(&mut self, path: &str) {
        for (at, _) in path.match_indices('/') {
            self.dir(&path[..at]);
        }
    }

    pub(crate) fn dir(&mut self, path: &str) {
        let path = path.trim_matches('/');
        if path.is_empty() || self.dirs.contains(path) {
            return;
        }
        self.parents(path);
        self.dirs.insert(path.to_owned());
        self.entry(path, DIR | 0o755, (0, 0), &[]);
    }

    pub(crate) fn file(&mut self, path: &str, mode: u32, data: &[u8]) {
        let path = path.trim_matches('/');
        self.parents(path);
        self.entry(path, FILE | mode & 0o7777, (0, 0), data);
    }

    pub(crate) fn symlink(&mut self, path: &str, target: &str) {
        let path = path.trim_matches('/');
        self.parents(path);
        self.entry(path, LINK | 0o777, (0, 0), target.as_bytes());
    }

    pub(crate) fn char_device(&mut self, path: &str, major: u32, minor: u32) {
        let path = path.trim_matches('/');
        self.parents(path);
        self.entry(path, CHAR | 0o600, (major, minor), &[]);
    }

    /// Copies a file of the host, with its permissions.
    pub(crate) fn host_file(&mut self, path: &str, host: &Path) -> Result<()> {
        let data = fs::read(host).at("read", host)?;
        let mode = fs::metadata(host).at("read", host)?.permissions().mode();
        self.file(path, mode, &data);
        Ok(())
    }

    /// Copies a file or a whole folder of the host.
    pub(crate) fn host_tree(&mut self, path: &str, host: &Path) -> Result<()> {
        let kind = fs::metadata(host).at("read", host)?;
        if !kind.is_dir() {
            return self.host_file(path, host);
        }
        self.dir(path);
        let mut names = Vec::new();
        for entry in fs::read_dir(host).at("read", host)? {
            names.push(entry.at("read", host)?.file_name());
        }
        names.sort();
        for name in names {
            let inner = format!("{}/{}", path.trim_end_matches('/'), name.to_string_lossy());
            self.host_tree(&inner, &host.join(&name))?;
        }
        Ok(())
    }

    /// The archive's bytes, padded so that another archive may follow.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes.resize(self.bytes.len().next_multiple_of(512), 0);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(bytes: &[u8], n: usize) -> u32 {
        let text = std::str::from_utf8(&bytes[6 + 8 * n..14 + 8 * n]).unwrap();
        u32::from_str_radix(text, 16).unwrap()
    }

    #[test]
    fn entries_are_aligned_and_parents_come_first() {
        let mut archive = Cpio::new();
        archive.file("/a/b/c.txt", 0o644, b"hello");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 512, 0);
        let mut names = Vec::new();
        let mut at = 0;
        loop {
            assert_eq!(&bytes[at..at + 6], b"070701");
            let (size, name_size) = (field(&bytes[at..], 6), field(&bytes[at..], 11));
            let name = &bytes[at + 110..at + 110 + name_size as usize - 1];
            names.push(String::from_utf8(name.to_vec()).unwrap());
            let data = (at + 110 + name_size as usize).next_multiple_of(4);
            if names.last().unwrap() == "TRAILER!!!" {
                break;
            }
            if names.last().unwrap() == "a/b/c.txt" {
                assert_eq!(&bytes[data..data + 5], b"hello");
                assert_eq!(field(&bytes[at..], 1), FILE | 0o644);
            }
            at = (data + size as usize).next_multiple_of(4);
        }
        assert_eq!(names, ["a", "a/b", "a/b/c.txt", "TRAILER!!!"]);
    }
}
