//! Changes are planned first and made afterwards. A plan can be shown as a shell transcript instead of being run, and
//! one that fails half way is taken back.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use disktime_sys::{Schedulers, read_file, write_file};
use serde::Serialize;

use crate::failure::{Exit, failure};
use crate::talk;

/// One change.
#[derive(Debug, Clone)]
pub enum Op {
    /// Load the module through `program`, which is told its name.
    Load { program: PathBuf, module: String },
    /// Write a kernel file. `undo` holds the writes that bring back what was there.
    Attr {
        path: PathBuf,
        value: String,
        undo: Vec<(PathBuf, String)>,
        must: bool,
    },
    /// Make sure that the kernel took the scheduler: where a switch fails it falls back to `none` and reports success.
    Selected { path: PathBuf, scheduler: String },
    /// Write a file of our own, in one piece.
    Replace { path: PathBuf, text: String },
    /// Remove a file of our own.
    Remove { path: PathBuf },
}

/// Changes in their order.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    ops: Vec<Op>,
}

/// A kernel write, as reported in JSON.
#[derive(Debug, Serialize)]
pub struct Written<'a> {
    path: &'a Path,
    value: &'a str,
}

enum Undo {
    Attr(Vec<(PathBuf, String)>),
    File(PathBuf, Option<Vec<u8>>),
}

impl Plan {
    /// Adds a change.
    pub fn push(&mut self, op: Op) {
        self.ops.push(op);
    }

    /// Adds a kernel write that is taken back by writing `undo` to the same file.
    pub fn attr(&mut self, path: PathBuf, value: impl Into<String>, undo: Option<String>) {
        let undo = undo.map(|undo| (path.clone(), undo)).into_iter().collect();
        self.push(Op::Attr {
            path,
            value: value.into(),
            undo,
            must: true,
        });
    }

    /// Adds the changes of another plan.
    pub fn append(&mut self, mut other: Plan) {
        self.ops.append(&mut other.ops);
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The kernel writes in the plan.
    pub fn writes(&self) -> Vec<Written<'_>> {
        self.ops
            .iter()
            .filter_map(|op| match op {
                Op::Attr { path, value, .. } => Some(Written { path, value }),
                _ => None,
            })
            .collect()
    }

    /// The plan as commands for a shell.
    pub fn transcript(&self) -> String {
        let mut out = String::new();
        for op in &self.ops {
            // Writing to a String cannot fail.
            let _ = match op {
                Op::Load { program, module } => writeln!(
                    out,
                    "{} {}",
                    quote(&program.to_string_lossy()),
                    quote(module)
                ),
                Op::Attr {
                    path, value, must, ..
                } => {
                    let end = if *must { "" } else { " || true" };
                    writeln!(
                        out,
                        "echo {} > {}{end}",
                        quote(value),
                        quote(&path.to_string_lossy())
                    )
                }
                Op::Selected { .. } => Ok(()),
                Op::Replace { path, text } => {
                    let folder = path
                        .parent()
                        .unwrap_or(Path::new("/"))
                        .to_string_lossy()
                        .into_owned();
                    let path = quote(&path.to_string_lossy());
                    writeln!(
                        out,
                        "mkdir -p {}\ncat > {path} <<'END'\n{}\nEND",
                        quote(&folder),
                        text.trim_end_matches('\n')
                    )
                }
                Op::Remove { path } => writeln!(out, "rm -f {}", quote(&path.to_string_lossy())),
            };
        }
        out
    }

    /// Makes the changes. Where one fails, those before it are taken back.
    pub fn run(&self) -> Result<()> {
        let mut done = Vec::new();
        for op in &self.ops {
            match perform(op) {
                Ok(undo) => done.extend(undo),
                Err(error) => {
                    return Err(match take_back(done) {
                        Some(trouble) => error.context(trouble),
                        None => error,
                    });
                }
            }
        }
        Ok(())
    }
}

fn perform(op: &Op) -> Result<Option<Undo>> {
    match op {
        Op::Load { program, module } => load(program, module).map(|()| None),
        Op::Attr {
            path,
            value,
            undo,
            must,
        } => match write_file(path, value) {
            Ok(()) => Ok(Some(Undo::Attr(undo.clone()))),
            Err(error) if !must => {
                talk::warning(&error.to_string());
                Ok(None)
            }
            Err(error) => Err(error.into()),
        },
        Op::Selected { path, scheduler } => {
            let now = Schedulers::parse(&read_file(path)?);
            if now.current == *scheduler {
                return Ok(None);
            }
            Err(failure(
                Exit::Failed,
                format!(
                    "the kernel could not switch to {scheduler}: it fell back to {}",
                    now.current
                ),
            )
            .hint("dmesg has the reason")
            .into())
        }
        Op::Replace { path, text } => {
            let before = contents(path)?;
            replace(path, text.as_bytes())?;
            Ok(Some(Undo::File(path.clone(), before)))
        }
        Op::Remove { path } => {
            let before = contents(path)?;
            if before.is_some() {
                fs::remove_file(path).map_err(|source| wrong(path, "cannot remove", &source))?;
            }
            Ok(Some(Undo::File(path.clone(), before)))
        }
    }
}

/// Gives a sentence where something could not be brought back.
fn take_back(done: Vec<Undo>) -> Option<String> {
    let mut lost = Vec::new();
    for undo in done.into_iter().rev() {
        match undo {
            Undo::Attr(writes) => {
                // What already reads as before need not be brought back.
                let is_back = |path: &Path, value: &str| {
                    read_file(path).is_ok_and(|now| now.trim_ascii() == value)
                };
                let failed = |(path, value): &(PathBuf, String)| {
                    write_file(path, value)
                        .err()
                        .filter(|_| !is_back(path, value))
                };
                lost.extend(
                    writes
                        .iter()
                        .filter_map(failed)
                        .map(|error| error.to_string()),
                );
            }
            Undo::File(path, Some(bytes)) => {
                lost.extend(replace(&path, &bytes).err().map(|e| e.to_string()))
            }
            Undo::File(path, None) => {
                lost.extend(
                    fs::remove_file(&path)
                        .err()
                        .map(|e| format!("cannot remove {}: {e}", path.display())),
                );
            }
        }
    }
    (!lost.is_empty()).then(|| {
        format!(
            "what was changed before could not all be restored ({})",
            lost.join("; ")
        )
    })
}

fn wrong(path: &Path, verb: &str, source: &std::io::Error) -> anyhow::Error {
    let exit = match source.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Exit::NotPermitted,
        _ => Exit::Failed,
    };
    let name = disktime_sys::errno_name(source).unwrap_or_default();
    let failed = failure(exit, format!("{verb} {}: {name}", path.display()));
    match exit {
        Exit::NotPermitted => failed
            .hint("run it as root, or with --runtime where /etc is read-only")
            .into(),
        _ => failed.into(),
    }
}

fn contents(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(path, "cannot read", &error)),
    }
}

fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| wrong(folder, "cannot create", &source))?;
    }
    // Neither udev nor we read files of this ending, so a half written one is never seen.
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    fs::write(&temporary, bytes).map_err(|source| wrong(&temporary, "cannot write", &source))?;
    fs::rename(&temporary, path).map_err(|source| wrong(path, "cannot write", &source))
}

fn load(program: &Path, module: &str) -> Result<()> {
    let output = match Command::new(program).arg(module).output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(failure(
                Exit::Module,
                format!(
                    "the kernel does not know disktime and {} is not installed to load it",
                    program.display()
                ),
            )
            .hint(format!(
                "load the modules disktime.ko and {module}.ko with insmod, then try again"
            ))
            .into());
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot run {}", program.display()));
        }
    };
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().last().unwrap_or("it gave no reason").trim();
    let said = said.strip_prefix("modprobe: ").unwrap_or(said);
    let (exit, hint) = if said.contains("not permitted") || said.contains("Permission denied") {
        (
            Exit::NotPermitted,
            "run it as root, with sudo for instance".to_owned(),
        )
    } else if said.contains("Key was rejected") {
        (
            Exit::Module,
            "Secure Boot wants modules signed with an enrolled key: see mokutil(1)".to_owned(),
        )
    } else if said.contains("Exec format")
        || said.contains("version magic")
        || said.contains("Invalid argument")
    {
        (
            Exit::Module,
            "the module is of another kernel: rebuild it with dkms autoinstall".to_owned(),
        )
    } else {
        (
            Exit::Module,
            "install the module for the running kernel (package disktime-dkms, or make install)"
                .to_owned(),
        )
    };
    Err(
        failure(exit, format!("cannot load the module {module}: {said}"))
            .hint(hint)
            .into(),
    )
}

/// A word as a POSIX shell reads it back.
pub fn quote(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-./:=@,+%".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        for word in [
            "disktime",
            "default 100",
            "it's",
            "",
            "$HOME",
            "a\\b",
            "/sys/fs/cgroup/x\\x2dy",
            "8:0 idle",
        ] {
            let output = Command::new("sh")
                .arg("-c")
                .arg(format!("printf %s {}", quote(word)))
                .output()
                .expect("sh");
            assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
    }

    #[test]
    fn a_failure_takes_back_what_came_before() {
        let dir = tempfile::tempdir().expect("tempdir");
        let kernel = dir.path().join("attr");
        let kept = dir.path().join("kept");
        let fresh = dir.path().join("new/fresh");
        fs::write(&kernel, "old\n").expect("write");
        fs::write(&kept, "before").expect("write");
        let mut plan = Plan::default();
        plan.attr(kernel.clone(), "new", Some("old".into()));
        plan.push(Op::Replace {
            path: fresh.clone(),
            text: "x".into(),
        });
        plan.push(Op::Replace {
            path: kept.clone(),
            text: "after".into(),
        });
        plan.attr(dir.path().join("absent"), "1", None);
        plan.run().expect_err("the last write must fail");
        assert_eq!(fs::read_to_string(&kernel).expect("read"), "old\n");
        assert_eq!(fs::read_to_string(&kept).expect("read"), "before");
        assert!(!fresh.exists());
    }

    #[test]
    fn a_switch_that_the_kernel_did_not_make_is_noticed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let (attr, list) = (dir.path().join("attr"), dir.path().join("scheduler"));
        fs::write(&attr, "old\n").expect("write");
        fs::write(&list, "[none] mq-deadline disktime \n").expect("write");
        let mut plan = Plan::default();
        plan.attr(attr.clone(), "new", Some("old".into()));
        plan.push(Op::Selected {
            path: list,
            scheduler: "disktime".into(),
        });
        let error = plan.run().expect_err("the switch was not made");
        assert!(
            error.to_string().contains("it fell back to none"),
            "{error}"
        );
        assert_eq!(fs::read_to_string(&attr).expect("read"), "old\n");
    }

    #[test]
    fn a_plan_does_what_its_transcript_does() {
        let trees: Vec<tempfile::TempDir> = (0..2)
            .map(|_| tempfile::tempdir().expect("tempdir"))
            .collect();
        for (n, tree) in trees.iter().enumerate() {
            fs::write(tree.path().join("attr"), "old\n").expect("write");
            fs::write(tree.path().join("gone"), "old\n").expect("write");
            let mut plan = Plan::default();
            plan.attr(tree.path().join("attr"), "default 7", None);
            plan.push(Op::Replace {
                path: tree.path().join("deep/er/file"),
                text: "a = \"$b\"\n\nc\n".into(),
            });
            plan.push(Op::Remove {
                path: tree.path().join("gone"),
            });
            if n == 0 {
                plan.run().expect("run");
            } else {
                let status = Command::new("sh")
                    .arg("-ec")
                    .arg(plan.transcript())
                    .status()
                    .expect("sh");
                assert!(status.success());
            }
        }
        for file in ["attr", "deep/er/file"] {
            let read = |n: usize| fs::read_to_string(trees[n].path().join(file)).expect("read");
            assert_eq!(read(0), read(1), "{file}");
        }
        assert!(trees.iter().all(|tree| !tree.path().join("gone").exists()));
    }
}
