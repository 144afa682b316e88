//! Reads what the kernel said and finds complaints in it.

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// A complaint that a case expects, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allow {
    /// A regular expression that the line must match.
    pub pattern: String,
    /// Why that line is no failure in this case.
    pub reason: String,
}

/// Lines that never appear on a healthy machine.
const COMPLAINTS: &str = r"(?x)
      \bWARNING:
    | \bBUG[:\s]
    | \bOops\b
    | kernel\ BUG\ at
    | Kernel\ panic
    | general\ protection\ fault
    | [Uu]nable\ to\ handle\ kernel
    | blocked\ for\ more\ than
    | rcu.*\b(detected|self-detected)\b.*\bstall
    | (soft|hard|HARD)\ (lockup|LOCKUP)
    | \b(KASAN|KCSAN|KMSAN|KFENCE|UBSAN):
    | possible\ (circular|recursive|irq)\ lock
    | INFO:\ (possible|suspicious|inconsistent|trying\ to\ register)
    | inconsistent\ lock\ state
    | suspicious\ RCU\ usage
    | DEBUG_LOCKS_WARN
    | scheduling\ while\ atomic
    | sleeping\ function\ called
    | unreferenced\ object
    | refcount_t:
    | (list_add|list_del)\ corruption
    | stack-protector:
    | Internal\ error:
    | \bCall\ Trace:";

static COMPLAINT: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(COMPLAINTS).ok());

/// The lines of a console that complain and are not allowed.
pub fn complaints(console: &str, allow: &[Allow]) -> Result<Vec<String>> {
    let complaint = COMPLAINT
        .as_ref()
        .ok_or_else(|| Error::new("the pattern of kernel complaints does not compile"))?;
    let allowed = allow
        .iter()
        .map(|a| {
            Regex::new(&a.pattern)
                .map_err(|e| Error::new(format!("allow pattern {:?}: {e}", a.pattern)))
        })
        .collect::<Result<Vec<_>>>()?;
    // What belongs to an allowed complaint (its trace) is allowed with it.
    let mut inside_allowed = false;
    let mut found = Vec::new();
    for line in console.lines() {
        if line.contains("[ cut here ]") || line.contains("---[ end trace") {
            inside_allowed = false;
        }
        if !complaint.is_match(line) {
            continue;
        }
        if allowed.iter().any(|a| a.is_match(line)) {
            inside_allowed = true;
        } else if !(inside_allowed && line.contains("Call Trace:")) {
            found.push(line.trim().to_owned());
        }
    }
    Ok(found)
}

/// A function of a trace.
const FUNCTION: &str = r"\b(?<name>[\w.]+)\+0x[0-9a-f]+/0x[0-9a-f]+(?<module> \[\w+\])?";

/// Functions that whoever does I/O may be in, or that wait for whoever holds a lock.
const IO: &str = r"(?x)
      ^_*(blk|bio_|submit_bio|elv_|elevator|dd_|bfq_|iomap_|sbitmap_|io_schedule)
    | (^|_)(lock|spin|mutex|rwsem|osq)(_|$)
    | slowpath";

/// Whether a CPU stood still, and all that is known of where is the kernel's own code that has nothing
/// to do with I/O.
#[must_use]
pub fn stood_still_outside_of_io(console: &str) -> bool {
    static PATTERNS: LazyLock<Option<(Regex, Regex)>> =
        LazyLock::new(|| Regex::new(FUNCTION).ok().zip(Regex::new(IO).ok()));
    let Some((function, io)) = PATTERNS.as_ref() else {
        return false;
    };
    // Told by the CPU itself, or by another.
    let stalled = |line: &str| {
        ["stall on CPU", "detected stalls on CPUs", "soft lockup"]
            .iter()
            .any(|told| line.contains(told))
    };
    let mut traced = false;
    for line in console.lines().skip_while(|line| !stalled(line)) {
        for found in function.captures_iter(line) {
            if found.name("module").is_some() || io.is_match(&found["name"]) {
                return false;
            }
            traced = true;
        }
    }
    traced
}

/// The lines from the first complaint on, no more than `n`; none if it is among the last `n`.
#[must_use]
pub fn first_complaint(console: &str, n: usize) -> Option<String> {
    let complaint = COMPLAINT.as_ref()?;
    let lines: Vec<_> = console.lines().collect();
    let first = lines.iter().position(|line| complaint.is_match(line))?;
    (first + n < lines.len()).then(|| lines[first..first + n].join("\n"))
}

/// The last `n` lines.
#[must_use]
pub fn tail(text: &str, n: usize) -> String {
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_of_the_kernel_are_found_and_chatter_is_not() {
        for line in [
            "[    3.1] WARNING: CPU: 0 PID: 77 at block/blk-mq.c:1 f+0x1/0x2",
            "[    3.1] BUG: kernel NULL pointer dereference, address: 0000000000000008",
            "[    3.1] BUG kmalloc-64 (Tainted: G): Redzone overwritten",
            "[    3.1] Oops: 0002 [#1] PREEMPT SMP",
            "[    3.1] INFO: task fio:99 blocked for more than 30 seconds.",
            "[    3.1] rcu: INFO: rcu_preempt self-detected stall on CPU",
            "[    3.1] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
            "[    3.1] watchdog: BUG: soft lockup - CPU#0 stuck for 22s! [fio:99]",
            "[    3.1] WARNING: possible circular locking dependency detected",
            "[    3.1] Kernel panic - not syncing: sysrq triggered crash",
            "[    3.1] refcount_t: underflow; use-after-free.",
            "[    3.1] INFO: suspicious RCU usage",
        ] {
            assert_eq!(complaints(line, &[]).unwrap().len(), 1, "{line}");
        }
        for line in [
            "[    0.0] DMI not present or invalid.",
            "[    1.0] mtrr: your CPUs had inconsistent MTRRdefType settings",
            "[    2.0] demo: loading out-of-tree module taints kernel.",
            "[    2.0] demo: module verification failed: signature and/or required key missing",
            "[    2.0] null_blk: disk nullb0 created",
            "[    2.0] DEBUG: nothing",
        ] {
            assert_eq!(
                complaints(line, &[]).unwrap(),
                Vec::<String>::new(),
                "{line}"
            );
        }
    }

    #[test]
    fn the_first_complaint_is_shown_where_it_is_not_at_the_end() {
        let console = "a\nBUG: one\nb\nc\nd\ne";
        assert_eq!(first_complaint(console, 2).as_deref(), Some("BUG: one\nb"));
        assert_eq!(first_complaint(console, 5), None);
        assert_eq!(first_complaint("a\nb", 1), None);
    }

    #[test]
    fn an_allowed_complaint_takes_its_trace_with_it_and_nothing_more() {
        let console = "------------[ cut here ]------------\n\
                       WARNING: CPU: 0 PID: 1 at demo.c:5\n\
                       Call Trace:\n\
                       ---[ end trace 0 ]---\n\
                       ------------[ cut here ]------------\n\
                       WARNING: CPU: 0 PID: 1 at other.c:5\n";
        let allow = [Allow {
            pattern: "demo.c:5".into(),
            reason: "the case wants it".into(),
        }];
        let found = complaints(console, &allow).unwrap();
        assert_eq!(found, ["WARNING: CPU: 0 PID: 1 at other.c:5"]);
    }
}
