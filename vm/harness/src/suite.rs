//! Suites: TOML files that list cases, and what runs them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde::Deserialize;

use crate::case::{Load, VmCase, VmOutcome};
use crate::console::{self, Allow};
use crate::error::{At, Error, Result};
use crate::kernel::KERNELS;
use crate::progress::Progress;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Suite {
    #[serde(rename = "case", default)]
    cases: Vec<Entry>,
}

/// One `[[case]]` of a suite file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    /// What holds if it passes; for readers.
    #[serde(default)]
    #[allow(dead_code)]
    about: String,
    /// The kernels it runs on, one after the other.
    #[serde(default = "default_kernels")]
    kernels: Vec<String>,
    /// The command; or
    #[serde(default)]
    cmd: Vec<String>,
    /// a shell script beside the suite file.
    script: Option<PathBuf>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    modules: Vec<String>,
    #[serde(default)]
    provide: Vec<String>,
    #[serde(default)]
    bins: Vec<String>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    disks: Vec<String>,
    #[serde(default)]
    append: Vec<String>,
    cpus: Option<u32>,
    #[serde(default)]
    instructions: bool,
    mem: Option<String>,
    /// Seconds.
    timeout: Option<u64>,
    #[serde(default)]
    allow: Vec<Allow>,
    skip: Option<Skip>,
}

fn default_kernels() -> Vec<String> {
    vec![KERNELS[0].0.to_owned()]
}

/// Why a case is not run: everywhere, or by kernel.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Skip {
    Always(String),
    Kernel(BTreeMap<String, String>),
}

impl Skip {
    fn on(&self, kernel: &str) -> Option<&str> {
        match self {
            Self::Always(why) => Some(why),
            Self::Kernel(by_kernel) => by_kernel.get(kernel).map(String::as_str),
        }
    }
}

/// A case of a suite on one kernel.
#[derive(Debug)]
pub struct Planned {
    /// The case, named `NAME` or, where it runs on several kernels, `NAME@KERNEL`.
    pub case: VmCase,
    /// Why it is not run.
    pub skip: Option<String>,
}

/// What is run of a suite, and how.
#[derive(Debug, Default)]
pub struct Options {
    /// Only these kernels; empty for all.
    pub kernels: Vec<String>,
    /// Only cases whose name contains one of these; empty for all.
    pub filter: Vec<String>,
    /// `KEY` of `{KEY}` in a suite file, and what it stands for. Known without being given: `dir`
    /// (of the suite file), `kernel`, `release`.
    pub vars: BTreeMap<String, String>,
    /// Machines at a time.
    pub jobs: usize,
    /// Where each case's `/out` goes, in a folder of the case's name.
    pub out_dir: Option<PathBuf>,
}

/// The counts of a suite that ran.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Ended with 0 on a healthy kernel.
    pub passed: usize,
    /// Everything else that ran.
    pub failed: usize,
    /// Listed, not run.
    pub skipped: usize,
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed, self.failed, self.skipped
        )
    }
}

/// The cases of a suite file, or of all suite files in a folder.
pub fn load(path: &Path, options: &Options) -> Result<Vec<Planned>> {
    let mut files = Vec::new();
    if path.is_dir() {
        for entry in fs::read_dir(path).at("read", path)? {
            let file = entry.at("read", path)?.path();
            if file.extension().is_some_and(|e| e == "toml") {
                files.push(file);
            }
        }
        files.sort();
    } else {
        files.push(path.to_owned());
    }
    let mut planned = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).at("read", &file)?;
        planned.extend(parse(&text, &file, options)?);
    }
    Ok(planned)
}

fn parse(text: &str, file: &Path, options: &Options) -> Result<Vec<Planned>> {
    let suite: Suite = toml::from_str(text)
        .map_err(|e| Error::new(format!("{}: {}", file.display(), e.to_string().trim_end())))?;
    let dir = std::path::absolute(file).at("resolve", file)?;
    let dir = dir.parent().unwrap_or(Path::new("/"));
    let mut planned = Vec::new();
    for entry in &suite.cases {
        for kernel in &entry.kernels {
            if !KERNELS.iter().any(|(k, _)| k == kernel) {
                return Err(Error::new(format!(
                    "{}: case {:?} names an unknown kernel {kernel:?}",
                    file.display(),
                    entry.name
                )));
            }
            let case = entry.plan(kernel, dir, options).map_err(|e| {
                Error::new(format!("{}: case {:?}: {e}", file.display(), entry.name))
            })?;
            let kernel_wanted = options.kernels.is_empty() || options.kernels.contains(kernel);
            let name_wanted = options.filter.is_empty()
                || options
                    .filter
                    .iter()
                    .any(|f| case.name.contains(f.as_str()));
            if kernel_wanted && name_wanted {
                let skip = entry
                    .skip
                    .as_ref()
                    .and_then(|s| s.on(kernel))
                    .map(str::to_owned);
                planned.push(Planned { case, skip });
            }
        }
    }
    Ok(planned)
}

impl Entry {
    fn plan(&self, kernel: &str, dir: &Path, options: &Options) -> Result<VmCase> {
        let fill = |text: &str| fill(text, kernel, dir, &options.vars);
        let all = |list: &[String]| list.iter().map(|t| fill(t)).collect::<Result<Vec<_>>>();
        let name = match self.kernels.len() {
            1 => self.name.clone(),
            _ => format!("{}@{kernel}", self.name),
        };
        let mut case = VmCase::new(&name, &[]);
        kernel.clone_into(&mut case.kernel);
        match (&self.script, self.cmd.is_empty()) {
            (None, false) => case.cmd = all(&self.cmd)?,
            (Some(script), true) => {
                let file = script.file_name().unwrap_or_default().to_string_lossy();
                let guest = format!("/case/{file}");
                case.files.push((dir.join(script), guest.clone()));
                case.cmd = vec!["sh".into(), guest];
            }
            _ => return Err(Error::new("give either cmd or script")),
        }
        case.cmd.extend(all(&self.args)?);
        for (key, value) in &self.env {
            case.env.push((key.clone(), fill(value)?));
        }
        // A relative path is one beside the suite file; a bare name is a module of the kernel's.
        let host = |text: &str| dir.join(text);
        let module = |text: &str| match text.contains('/') || text.ends_with(".ko") {
            true => host(text).display().to_string(),
            false => text.to_owned(),
        };
        for text in all(&self.modules)? {
            let (name, params) = text.split_once(' ').unwrap_or((text.as_str(), ""));
            case.modules.push(Load {
                module: module(name),
                params: params.trim().to_owned(),
            });
        }
        case.provide = all(&self.provide)?.iter().map(|t| module(t)).collect();
        for text in all(&self.bins)? {
            let (from, to) = split_dest(&text);
            case.bins.push((host(from), to.map(str::to_owned)));
        }
        for text in all(&self.files)? {
            let (from, to) = split_dest(&text);
            let name = Path::new(from)
                .file_name()
                .unwrap_or_default()
                .to_string_lossy();
            case.files.push((
                host(from),
                to.map_or(format!("/case/{name}"), str::to_owned),
            ));
        }
        for text in &self.disks {
            case.disks.push(parse_size(text)?);
        }
        case.append = all(&self.append)?;
        case.allow.clone_from(&self.allow);
        if let Some(cpus) = self.cpus {
            case.cpus = cpus;
        }
        case.instructions = self.instructions;
        if let Some(mem) = &self.mem {
            case.mem.clone_from(mem);
        }
        if let Some(seconds) = self.timeout {
            case.timeout = Duration::from_secs(seconds);
        }
        case.out_dir = options.out_dir.as_ref().map(|d| d.join(&name));
        Ok(case)
    }
}

/// Splits `SRC:DEST`; the destination is an absolute path of the guest.
pub(crate) fn split_dest(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((from, to)) if to.starts_with('/') => (from, Some(to)),
        _ => (text, None),
    }
}

/// Bytes, with K, M or G for powers of 1024.
pub fn parse_size(text: &str) -> Result<u64> {
    let (digits, shift) = match text.trim().to_ascii_uppercase() {
        t if t.ends_with('K') => (t[..t.len() - 1].to_owned(), 10),
        t if t.ends_with('M') => (t[..t.len() - 1].to_owned(), 20),
        t if t.ends_with('G') => (t[..t.len() - 1].to_owned(), 30),
        t => (t, 0),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(1 << shift))
        .filter(|n| *n > 0)
        .ok_or_else(|| Error::new(format!("{text:?} is no size")).hint("write 512M or 2G"))
}

/// Replaces `{KEY}`. The release is known only of a kernel in the cache, which the runner sees to.
fn fill(text: &str, kernel: &str, dir: &Path, vars: &BTreeMap<String, String>) -> Result<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}').map(|n| n + open) else {
            break;
        };
        let key = &rest[open + 1..close];
        let word = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        // Shell text has braces of its own: ${x}, {a,b}.
        if !word || rest[..open].ends_with('$') {
            out += &rest[..=open];
            rest = &rest[open + 1..];
            continue;
        }
        out += &rest[..open];
        match key {
            "kernel" => out += kernel,
            "dir" => out += &dir.display().to_string(),
            "release" => {
                let found = crate::kernel::cached(kernel)?.ok_or_else(|| {
                    Error::new(format!("kernel {kernel} is not fetched"))
                        .hint(format!("run `disktime-vm fetch {kernel}`"))
                })?;
                out += &found.release;
            }
            _ => {
                let value = vars.get(key).ok_or_else(|| {
                    Error::new(format!("{{{key}}} stands for nothing"))
                        .hint(format!("give --var {key}=VALUE"))
                })?;
                out += value;
            }
        }
        rest = &rest[close + 1..];
    }
    Ok(out + rest)
}

/// Runs the cases, `jobs` at a time, with a line for each on standard output.
pub fn run(planned: &[Planned], jobs: usize, progress: &Progress) -> Tally {
    let bar = progress.count(
        &format!("running {} cases", planned.len()),
        planned.len() as u64,
    );
    let next = AtomicUsize::new(0);
    let tally = Mutex::new(Tally::default());
    let print = |text: &str| progress.output(text);
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(plan) = planned.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if crate::cancelled() {
                        break;
                    }
                    let name = &plan.case.name;
                    let count = |f: &dyn Fn(&mut Tally)| {
                        if let Ok(mut tally) = tally.lock() {
                            f(&mut tally);
                        }
                    };
                    if let Some(why) = &plan.skip {
                        print(&format!("SKIP {name} ({why})"));
                        count(&|t| t.skipped += 1);
                    } else {
                        bar.message(name.clone());
                        let result = plan.case.run_with(progress, &mut |_| {});
                        if crate::cancelled() {
                            break;
                        }
                        if matches!(&result, Ok(outcome) if outcome.passed()) {
                            count(&|t| t.passed += 1);
                        } else {
                            count(&|t| t.failed += 1);
                        }
                        print(&describe(&plan.case, &result));
                    }
                    bar.inc();
                }
            });
        }
    });
    bar.finish();
    tally.into_inner().unwrap_or_default()
}

fn describe(case: &VmCase, result: &Result<VmOutcome>) -> String {
    let name = &case.name;
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(e) => {
            let hint = e
                .advice()
                .map_or(String::new(), |h| format!("\n     hint: {h}"));
            return format!("FAIL {name}: {e}{hint}");
        }
    };
    let seconds = outcome.total_ms as f64 / 1000.0;
    if outcome.passed() {
        return format!("PASS {name} ({seconds:.1} s)");
    }
    let indent = |text: String| {
        text.lines()
            .map(|l| format!("     {l}\n"))
            .collect::<String>()
    };
    let first = console::first_complaint(&outcome.console, 40).map_or(String::new(), |text| {
        format!("  console, from the first complaint on:\n{}", indent(text))
    });
    let up = match (outcome.up, outcome.boot_ms) {
        (_, Some(_)) => "",
        (true, None) => ", while the case's modules were loaded",
        (false, None) => ", before init was up",
    };
    format!(
        "FAIL {name} ({seconds:.1} s): {}{up}\n  log, its end:\n{}{first}  console, its end:\n{}  \
         reproduce with: {}",
        outcome.status,
        indent(console::tail(&outcome.log, 25)),
        indent(console::tail(&outcome.console, 25)),
        case.command_line()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load_text(text: &str, options: &Options) -> Result<Vec<Planned>> {
        parse(text, Path::new("/suites/x.toml"), options)
    }

    #[test]
    fn a_case_runs_once_on_each_of_its_kernels() {
        let text = r#"
            [[case]]
            name = "a"
            kernels = ["6.12", "6.1"]
            script = "a.sh"
            modules = ["null_blk nr_devices=0 queue_mode=2", "{ko}/x.ko"]
            files = ["data.txt", "b:/etc/b"]
            skip = { "6.1" = "no ublk there" }
        "#;
        let mut options = Options::default();
        options
            .vars
            .insert("ko".into(), "../build/{kernel}".replace("{kernel}", "k"));
        let planned = load_text(text, &options).unwrap();
        assert_eq!(planned.len(), 2);
        assert_eq!(planned[0].case.name, "a@6.12");
        assert_eq!(planned[0].skip, None);
        assert_eq!(planned[1].skip.as_deref(), Some("no ublk there"));
        let case = &planned[0].case;
        assert_eq!(case.cmd, ["sh", "/case/a.sh"]);
        assert_eq!(case.modules[0].params, "nr_devices=0 queue_mode=2");
        assert_eq!(case.modules[1].module, "/suites/../build/k/x.ko");
        assert_eq!(
            case.files[1],
            (PathBuf::from("/suites/data.txt"), "/case/data.txt".into())
        );
        assert_eq!(case.files[2], (PathBuf::from("/suites/b"), "/etc/b".into()));
    }

    #[test]
    fn bad_suites_are_refused_with_the_case_named() {
        for (text, why) in [
            ("[[case]]\nname = 'a'\n", "give either cmd or script"),
            (
                "[[case]]\nname = 'a'\ncmd = ['x']\nscript = 'y'\n",
                "give either cmd or script",
            ),
            (
                "[[case]]\nname = 'a'\ncmd = ['x']\nkernels = ['2.6']\n",
                "unknown kernel",
            ),
            (
                "[[case]]\nname = 'a'\ncmd = ['{nope}']\n",
                "stands for nothing",
            ),
            ("[[case]]\nname = 'a'\ncmd = ['x']\ntypo = 1\n", "typo"),
            (
                "[[case]]\nname = 'a'\ncmd = ['x']\ndisks = ['0']\n",
                "no size",
            ),
        ] {
            let error = load_text(text, &Options::default())
                .unwrap_err()
                .to_string();
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn braces_of_the_shell_stay() {
        let vars = BTreeMap::from([("x".to_owned(), "1".to_owned())]);
        let filled = fill("${x} {x} {a,b} {", "6.12", Path::new("/d"), &vars).unwrap();
        assert_eq!(filled, "${x} 1 {a,b} {");
    }

    #[test]
    fn filters_choose_by_kernel_and_name() {
        let text = "[[case]]\nname='one'\ncmd=['x']\nkernels=['6.12','6.1']\n\
                    [[case]]\nname='two'\ncmd=['x']\n";
        let names = |kernels: &[&str], filter: &[&str]| {
            let own = |l: &[&str]| l.iter().map(|&s| s.to_owned()).collect();
            let options = Options {
                kernels: own(kernels),
                filter: own(filter),
                ..Options::default()
            };
            let planned = load_text(text, &options).unwrap();
            planned.into_iter().map(|p| p.case.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[], &[]), ["one@6.12", "one@6.1", "two"]);
        assert_eq!(names(&["6.1"], &[]), ["one@6.1"]);
        assert_eq!(names(&[], &["two"]), ["two"]);
    }
}
