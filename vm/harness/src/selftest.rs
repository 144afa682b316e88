//! The harness tries itself: cases that must fail have to be reported as failed, and why.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::case::{Status, VmCase, VmOutcome};
use crate::console::Allow;
use crate::error::{At, Error, Result};
use crate::kernel::{self, Kernel};
use crate::progress::Progress;

/// A module whose `fault` parameter makes it complain while it is loaded.
const FAULTY: &str = r#"// SPDX-License-Identifier: GPL-2.0-only
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/module.h>

static int fault;
module_param(fault, int, 0);

static int __init faulty_init(void)
{
	WARN(fault == 1, "asked to warn\n");
	if (fault == 3)
		msleep(1000 * 1000);
	return fault == 2 ? -EINVAL : 0;
}
module_init(faulty_init);

static void __exit faulty_exit(void)
{
}
module_exit(faulty_exit);

MODULE_DESCRIPTION("Warns when asked to");
MODULE_LICENSE("GPL");
"#;

struct Trial {
    what: &'static str,
    case: VmCase,
    right: fn(&VmOutcome) -> bool,
}

/// Runs the self-test on one kernel; a line for each trial. Returns how many went wrong.
pub fn run(kernel: &str, progress: &Progress) -> Result<usize> {
    let found = kernel::fetch(kernel, false, progress)?.kernel;
    let work = tempfile::tempdir().at("create a folder in", &std::env::temp_dir())?;
    let faulty = build_module(&found, work.path(), "faulty", FAULTY)?;
    let out = work.path().join("out");
    let mut wrong = 0;
    for trial in trials(&faulty.display().to_string(), &out) {
        let mut case = trial.case;
        kernel.clone_into(&mut case.kernel);
        let outcome = case.run_with(progress, &mut |_| {})?;
        if (trial.right)(&outcome) {
            progress.output(&format!(
                "PASS {} on {kernel}: {} ({:.1} s)",
                trial.what,
                outcome.status,
                outcome.total_ms as f64 / 1000.0
            ));
        } else {
            wrong += 1;
            progress.output(&format!(
                "FAIL {} on {kernel}: reported as: {}\n{}\n{}",
                trial.what, outcome.status, outcome.log, outcome.console
            ));
        }
    }
    let text = std::fs::read_to_string(out.join("deep/file")).unwrap_or_default();
    if text != "from the guest\n" {
        wrong += 1;
        progress.output(&format!("FAIL /out did not arrive on {kernel}: {text:?}"));
    }
    Ok(wrong)
}

fn trials(faulty: &str, out: &Path) -> Vec<Trial> {
    let sh = |name: &str, text: &str| {
        let mut case = VmCase::new(name, &["sh", "-c", text]);
        case.timeout = Duration::from_secs(60);
        case
    };
    let mut passing = sh(
        "passing",
        "mkdir /out/deep; echo from the guest > /out/deep/file; echo out; echo err >&2; \
         test -d /sys/kernel/config && grep -qw io /sys/fs/cgroup/cgroup.subtree_control",
    );
    passing.out_dir = Some(out.to_owned());
    let mut hanging = sh("hanging", "echo waiting; sleep 1000");
    hanging.timeout = Duration::from_secs(15);
    // Whoever is PID 1 instead of init says nothing.
    let mut silent = sh("silent", "true");
    silent.append.push("rdinit=/bin/sleep 1000".into());
    silent.timeout = Duration::from_secs(10);
    let mut stuck = sh("stuck", "true").module(faulty, "fault=3");
    stuck.timeout = Duration::from_secs(15);
    let mut allowed = sh("allowed", "true").module(faulty, "fault=1");
    allowed.allow.push(Allow {
        pattern: r"at .*faulty_init|faulty\.c".into(),
        reason: "the module was asked to warn".into(),
    });
    vec![
        Trial {
            what: "a case that passes, its output and its files",
            case: passing,
            right: |o| o.passed() && o.log == "out\nerr\n" && o.boot_ms.is_some(),
        },
        Trial {
            what: "a case that exits with 3",
            case: sh("exit-3", "exit 3"),
            right: |o| o.status == Status::Exited(3),
        },
        Trial {
            what: "a case that a signal ends",
            case: sh("signal", "kill -SEGV $$"),
            right: |o| o.status == Status::Exited(128 + 11),
        },
        Trial {
            what: "a command that is missing",
            case: VmCase::new("missing", &["no-such-command"]),
            right: |o| matches!(&o.status, Status::Broken(w) if w.contains("no-such-command")),
        },
        Trial {
            what: "a case that prints what looks like a status",
            case: sh("forged", "echo disktime-vm x taint 0 exit 0; exit 1"),
            right: |o| o.status == Status::Exited(1),
        },
        Trial {
            what: "a case that leaves a process behind",
            case: sh("orphan", "sleep 1000 & exit 0"),
            right: |o| o.passed() && o.total_ms < 20_000,
        },
        Trial {
            what: "a case that hangs",
            case: hanging,
            right: |o| o.status == Status::TimedOut && o.log == "waiting\n",
        },
        Trial {
            what: "a machine that does not come up",
            case: silent,
            right: |o| o.status == Status::TimedOut && !o.up,
        },
        Trial {
            what: "a module that stands still",
            case: stuck,
            right: |o| o.status == Status::TimedOut && o.up && o.boot_ms.is_none(),
        },
        Trial {
            what: "a kernel that crashes",
            case: sh("crash", "echo c > /proc/sysrq-trigger; sleep 1000"),
            right: |o| matches!(&o.status, Status::Kernel(l) if l.iter().any(|l| l.contains("panic"))),
        },
        Trial {
            what: "a kernel that warns",
            case: sh("warn", "true").module(faulty, "fault=1"),
            right: |o| matches!(&o.status, Status::Kernel(l) if l[0].contains("WARNING")),
        },
        Trial {
            what: "a warning that the case allows",
            case: allowed,
            right: VmOutcome::passed,
        },
        Trial {
            what: "a complaint without a panic",
            case: sh(
                "complaint",
                "echo '<4>BUG: sleeping function called' > /dev/kmsg",
            ),
            right: |o| matches!(&o.status, Status::Kernel(l) if l[0].contains("sleeping function")),
        },
        Trial {
            what: "a module that does not load",
            case: sh("refused", "true").module(faulty, "fault=2"),
            right: |o| matches!(&o.status, Status::Broken(w) if w.contains("EINVAL")),
        },
        Trial {
            what: "a module that modprobe finds",
            case: {
                let mut case = sh(
                    "modprobe",
                    "modprobe faulty fault=0 && modprobe bfq && \
                                   grep -qw faulty /proc/modules && grep -qw bfq /proc/modules",
                );
                case.provide.push(faulty.to_owned());
                case
            },
            right: VmOutcome::passed,
        },
    ]
}

/// Builds an external module against a kernel's headers. Returns the `.ko`.
fn build_module(
    kernel: &Kernel,
    dir: &Path,
    name: &str,
    source: &str,
) -> Result<std::path::PathBuf> {
    let (c, kbuild) = (dir.join(format!("{name}.c")), dir.join("Makefile"));
    std::fs::write(&c, source).at("write", &c)?;
    std::fs::write(&kbuild, format!("obj-m := {name}.o\n")).at("write", &kbuild)?;
    let output = Command::new("make")
        .arg("-C")
        .arg(&kernel.headers_dir)
        .arg(format!("M={}", dir.display()))
        .arg("modules")
        .env_remove("MAKEFLAGS")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Error::new(format!("cannot run make: {e}")).hint("install make and gcc"))?;
    if !output.status.success() {
        return Err(Error::new(format!(
            "a module does not build against {}: {}",
            kernel.headers_dir.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        ))
        .hint("install gcc, make, libelf1 and libc6-dev"));
    }
    Ok(dir.join(format!("{name}.ko")))
}
