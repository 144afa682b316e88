//! Asks apt for packages without installing any: which version the archive offers now, download,
//! unpack. No version is ever named: kernel packages are superseded and vanish.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::cache;
use crate::error::{At, Error, Result};
use crate::progress::Progress;

/// One package as the archive offers it now.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) depends: Vec<String>,
    pub(crate) size: u64,
}

/// A view of the archive: the host's own apt, or a state of ours for another suite.
#[derive(Debug, Clone)]
pub(crate) struct Apt {
    config: Option<PathBuf>,
    pub(crate) label: String,
    /// What reading the package lists took.
    pub(crate) lists: Duration,
}

impl Apt {
    /// The host's own sources and lists, as they are.
    pub(crate) fn host() -> Self {
        Self {
            config: None,
            label: "the host's apt".into(),
            lists: Duration::ZERO,
        }
    }

    /// A state of our own for a Debian suite, on the mirrors that the host uses. Touches
    /// nothing of the host's apt; updates its lists.
    pub(crate) fn suite(suite: &str, progress: &Progress) -> Result<Self> {
        let mirrors = mirrors()?;
        let root = cache::sub(&format!("apt/{suite}"))?;
        for sub in ["lists/partial", "archives/partial"] {
            cache::make(&root.join(sub))?;
        }
        let keyring = Path::new("/usr/share/keyrings/debian-archive-keyring.gpg");
        let signed = match &mirrors.signed_by {
            Some(key) => format!(" [signed-by={key}]"),
            None if keyring.exists() => format!(" [signed-by={}]", keyring.display()),
            None => String::new(),
        };
        let mut list = format!("deb{signed} {} {suite} main\n", mirrors.archive);
        if let Some(security) = mirrors.security.as_ref().filter(|_| suite != "sid") {
            list += &format!("deb{signed} {security} {suite}-security main\n");
        }
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            fs::write(&path, text).at("write", &path).map(|()| path)
        };
        let sources = write("sources.list", &list)?;
        let status = write("status", "")?;
        let root_text = root.display();
        let config = write(
            "apt.conf",
            &format!(
                "#clear APT::Update::Post-Invoke;\n\
                 #clear APT::Update::Post-Invoke-Success;\n\
                 #clear Acquire::IndexTargets::deb::DEP-11;\n\
                 Dir::Etc::SourceList \"{}\";\n\
                 Dir::Etc::SourceParts \"/dev/null\";\n\
                 Dir::State \"{root_text}\";\n\
                 Dir::State::Lists \"{root_text}/lists\";\n\
                 Dir::State::Status \"{}\";\n\
                 Dir::Cache \"{root_text}\";\n\
                 Dir::Cache::Archives \"{root_text}/archives\";\n\
                 Acquire::Languages \"none\";\n",
                sources.display(),
                status.display()
            ),
        )?;
        let mut apt = Self {
            lists: Duration::ZERO,
            config: Some(config),
            label: format!("{suite} on the host's mirror"),
        };
        let spin = progress.spinner(&format!("reading {suite}'s package lists"));
        let start = Instant::now();
        let result = apt
            .tool("apt-get")
            .args(["-q", "update"])
            .stdin(Stdio::null())
            .output();
        spin.finish();
        apt.lists = start.elapsed();
        let output = result.map_err(|e| no_tool("apt-get", &e))?;
        if !output.status.success() {
            return Err(failed("apt-get update", &output.stderr)
                .hint("check the network and the mirrors in /etc/apt/sources.list.d"));
        }
        Ok(apt)
    }

    fn tool(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.env("LC_ALL", "C");
        if let Some(config) = &self.config {
            command.arg("-c").arg(config);
        }
        command
    }

    /// What the archive offers under that name, if anything.
    pub(crate) fn show(&self, name: &str) -> Result<Option<Package>> {
        let output = self
            .tool("apt-cache")
            .args(["show", "--no-all-versions", name])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| no_tool("apt-cache", &e))?;
        if !output.status.success() {
            return Ok(None);
        }
        Ok(parse_record(&String::from_utf8_lossy(&output.stdout)).filter(|p| p.name == name))
    }

    /// That package and what it depends on, as far as `wanted` accepts a name.
    pub(crate) fn closure(
        &self,
        first: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<Package>> {
        let mut found: BTreeMap<String, Package> = BTreeMap::new();
        let mut todo = vec![first.to_owned()];
        while let Some(name) = todo.pop() {
            if found.contains_key(&name) {
                continue;
            }
            let package = self.show(&name)?.ok_or_else(|| {
                Error::new(format!("{} does not offer the package {name}", self.label))
                    .hint("run `apt-get update`, then try again")
            })?;
            todo.extend(package.depends.iter().filter(|d| wanted(d)).cloned());
            found.insert(name, package);
        }
        Ok(found.into_values().collect())
    }

    /// Downloads the packages into `into` and returns the time it took.
    pub(crate) fn download(
        &self,
        packages: &[Package],
        into: &Path,
        progress: &Progress,
    ) -> Result<Duration> {
        cache::make(into)?;
        let total = packages.iter().map(|p| p.size).sum();
        let bar = progress.bytes("downloading", total);
        let log = tempfile::NamedTempFile::new().at("create a temporary file in", into)?;
        let errors = log.reopen().at("open", log.path())?;
        let start = Instant::now();
        let mut child = self
            .tool("apt-get")
            .args(["-q", "-o", "APT::Sandbox::User=root", "download"])
            .args(packages.iter().map(|p| format!("{}={}", p.name, p.version)))
            .current_dir(into)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .map_err(|e| no_tool("apt-get", &e))?;
        let status = loop {
            match child.try_wait().at("wait for apt-get in", into)? {
                Some(status) => break status,
                None if crate::cancelled() => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(Error::new("interrupted while downloading"));
                }
                None => std::thread::sleep(Duration::from_millis(50)),
            }
            bar.set(folder_size(into));
        };
        bar.finish();
        if !status.success() {
            let text = fs::read(log.path()).unwrap_or_default();
            return Err(failed("apt-get download", &text).hint(
                "check the network; if the archive has moved on, run `apt-get update` first",
            ));
        }
        Ok(start.elapsed())
    }
}

/// Unpacks every package in `debs` into `root`.
pub(crate) fn unpack(debs: &Path, root: &Path, progress: &Progress) -> Result<()> {
    cache::make(root)?;
    let mut files = Vec::new();
    for entry in fs::read_dir(debs).at("read", debs)? {
        let path = entry.at("read", debs)?.path();
        if path.extension().is_some_and(|e| e == "deb") {
            files.push(path);
        }
    }
    files.sort();
    let spin = progress.spinner("unpacking");
    for file in &files {
        let output = Command::new("dpkg")
            .arg("-x")
            .args([file, root])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| no_tool("dpkg", &e))?;
        if !output.status.success() {
            return Err(failed(
                &format!("dpkg -x {}", file.display()),
                &output.stderr,
            ));
        }
        if crate::cancelled() {
            return Err(Error::new("interrupted while unpacking"));
        }
    }
    spin.finish();
    Ok(())
}

struct Mirrors {
    archive: String,
    security: Option<String>,
    signed_by: Option<String>,
}

/// The Debian mirrors of the host's own configuration.
fn mirrors() -> Result<Mirrors> {
    let output = Command::new("apt-get")
        .args([
            "indextargets",
            // Also those whose lists were never read, as in a fresh container.
            "--no-release-info",
            "--format",
            "$(REPO_URI)|$(RELEASE)|$(SIGNED_BY)",
        ])
        .arg("Created-By: Packages")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| no_tool("apt-get", &e))?;
    parse_mirrors(&String::from_utf8_lossy(&output.stdout)).ok_or_else(|| {
        Error::new("the host's apt names no Debian mirror")
            .hint("add a Debian suite to /etc/apt/sources.list.d")
    })
}

fn parse_mirrors(text: &str) -> Option<Mirrors> {
    const SUITES: [&str; 9] = [
        "bookworm",
        "trixie",
        "forky",
        "duke",
        "sid",
        "stable",
        "oldstable",
        "testing",
        "unstable",
    ];
    let (mut archive, mut security, mut signed_by) = (None, None, None);
    for line in text.lines() {
        let mut parts = line.split('|');
        let (Some(uri), Some(release)) = (parts.next(), parts.next()) else {
            continue;
        };
        if SUITES.contains(&release) {
            archive.get_or_insert(uri.to_owned());
        } else if release
            .strip_suffix("-security")
            .is_some_and(|s| SUITES.contains(&s))
        {
            security.get_or_insert(uri.to_owned());
        } else {
            continue;
        }
        // An unset field is printed as its own name.
        if let Some(key) = parts.next().filter(|k| k.starts_with('/')) {
            signed_by.get_or_insert(key.to_owned());
        }
    }
    Some(Mirrors {
        archive: archive?,
        security,
        signed_by,
    })
}

fn parse_record(text: &str) -> Option<Package> {
    let (mut name, mut version, mut size, mut depends) = (None, None, 0, Vec::new());
    for line in text.lines().take_while(|l| !l.is_empty()) {
        let Some((key, value)) = line.split_once(": ") else {
            continue;
        };
        match key {
            "Package" => name = Some(value.to_owned()),
            "Version" => version = Some(value.to_owned()),
            "Size" => size = value.trim().parse().unwrap_or(0),
            // Of alternatives the first is taken, as apt does where none is installed.
            "Depends" | "Pre-Depends" => depends.extend(
                value
                    .split(',')
                    .filter_map(|d| d.split(['|', '(']).next())
                    .map(|d| d.trim().split(':').next().unwrap_or_default().to_owned()),
            ),
            _ => {}
        }
    }
    Some(Package {
        name: name?,
        version: version?,
        depends,
        size,
    })
}

fn folder_size(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .flatten()
        .filter_map(|e| e.metadata().ok())
        .map(|m| m.len())
        .sum()
}

fn no_tool(name: &str, error: &std::io::Error) -> Error {
    Error::new(format!("cannot run {name}: {error}"))
        .hint("the kernels come from Debian's archive: run on Debian, or in a Debian container")
}

fn failed(what: &str, stderr: &[u8]) -> Error {
    let text = String::from_utf8_lossy(stderr);
    let mut why: Vec<_> = text
        .lines()
        .filter_map(|l| l.strip_prefix("E: "))
        .take(3)
        .map(str::to_owned)
        .collect();
    if why.is_empty() {
        why.extend(text.lines().last().map(str::to_owned));
    }
    Error::new(format!("{what} failed: {}", why.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_yields_first_alternatives_without_versions() {
        let record = "Package: linux-headers-6.12-amd64\nVersion: 6.12.1-1\nSize: 1408\n\
                      Depends: a (= 1), b | c, d:any (>= 2)\nDescription: x\n\nPackage: other\n";
        let package = parse_record(record).unwrap();
        assert_eq!(package.name, "linux-headers-6.12-amd64");
        assert_eq!(package.depends, ["a", "b", "d"]);
        assert_eq!(package.size, 1408);
    }

    #[test]
    fn mirrors_are_told_from_other_archives() {
        let text = "http://other/|nodistro|$(SIGNED_BY)\n\
                    http://m/debian/|bookworm|/k.gpg\n\
                    http://m/debian/|bookworm-updates|/k.gpg\n\
                    http://m/sec/|bookworm-security|/k.gpg\n";
        let mirrors = parse_mirrors(text).unwrap();
        assert_eq!(mirrors.archive, "http://m/debian/");
        assert_eq!(mirrors.security.as_deref(), Some("http://m/sec/"));
        assert_eq!(mirrors.signed_by.as_deref(), Some("/k.gpg"));
        assert!(parse_mirrors("http://other/|nodistro|\n").is_none());
    }

    #[test]
    #[ignore = "needs the network; run with --ignored"]
    fn a_suite_that_the_host_does_not_list_can_be_asked() {
        let apt = Apt::suite("trixie", &Progress::none()).unwrap();
        let meta = apt.show("linux-image-amd64").unwrap().unwrap();
        assert!(
            meta.depends
                .iter()
                .any(|d| d.starts_with("linux-image-6.12.")),
            "{meta:?}"
        );
        assert!(apt.show("no-such-package").unwrap().is_none());
    }
}
