//! Errors as the person at the terminal meets them: what failed and why, one thing to do, and an exit status.

use std::fmt;

use disktime_sys as sys;

/// The documented exit statuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Something failed that no other status names.
    Failed = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// disktime is not active there, or there is no such thing.
    NotFound = 3,
    /// The kernel module is missing or was built for another kernel.
    Module = 4,
    /// The kernel did not permit it.
    NotPermitted = 5,
}

/// An error with its way out.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub exit: Exit,
    /// What failed, and why.
    pub what: String,
    /// One thing to do.
    pub hint: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Failure {}

/// An error without a hint.
pub fn failure(exit: Exit, what: impl Into<String>) -> Failure {
    Failure {
        exit,
        what: what.into(),
        hint: None,
    }
}

impl Failure {
    /// Adds what to do.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The one of `known` that `word` was probably meant to be.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()),
                candidate,
            )
        })
        // A third of the letters may be wrong, and at least one.
        .filter(|(distance, candidate)| *distance <= (candidate.len().max(lower.len()) / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn of_sys(error: &sys::Error) -> (Exit, Option<String>) {
    match error {
        _ if error.is_permission() => (
            Exit::NotPermitted,
            Some("run it as root, with sudo for instance".into()),
        ),
        sys::Error::NoDevice { asked, known } => {
            let name = asked.strip_prefix("/dev/").unwrap_or(asked);
            let hint = match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean {near}?"),
                None if known.is_empty() => "this system shows no disks in /sys/block".into(),
                None => "disktime status --all lists the disks".into(),
            };
            (Exit::NotFound, Some(hint))
        }
        sys::Error::NotMountPoint { mount, .. } => (
            Exit::NotFound,
            mount
                .as_ref()
                .map(|mount| format!("it lies in the file system at {}", mount.display())),
        ),
        sys::Error::NoBlockDevice { .. } => {
            (Exit::NotFound, Some("name a disk, like /dev/sda".into()))
        }
        sys::Error::NoCgroup { .. } => (
            Exit::NotFound,
            Some("systemd-cgls shows the cgroups there are".into()),
        ),
        sys::Error::NoCgroupTree { .. } => (
            Exit::NotFound,
            Some("disktime needs cgroup v2: boot with systemd.unified_cgroup_hierarchy=1".into()),
        ),
        sys::Error::NoProcess { .. } => (Exit::NotFound, Some("ps -e lists the processes".into())),
        sys::Error::Format { .. } => (
            Exit::Failed,
            Some("is the module of another version than this command?".into()),
        ),
        sys::Error::Read { .. } if error.is_absent() => (
            Exit::NotFound,
            Some("is /proc or /sys mounted, or did it just go away?".into()),
        ),
        sys::Error::Write { .. } if error.is_absent() => (
            Exit::NotFound,
            Some("it just went away, or the module is older than this command".into()),
        ),
        sys::Error::Write { .. } => (
            Exit::Failed,
            Some("dmesg may have the kernel's reason".into()),
        ),
        sys::Error::Read { .. } => (Exit::Failed, None),
    }
}

/// Prints the error on stderr. Gives the exit status.
pub fn report(error: &anyhow::Error) -> u8 {
    let mut exit = Exit::Failed;
    let mut hint = None;
    let mut parts: Vec<String> = Vec::new();
    for cause in error.chain() {
        let text = cause.to_string();
        // An error that already tells its source's story ends the chain.
        if !parts.last().is_some_and(|last| last.ends_with(&text)) {
            parts.push(text);
        }
        if let Some(failure) = cause.downcast_ref::<Failure>() {
            (exit, hint) = (failure.exit, failure.hint.clone());
            break;
        }
        if let Some(error) = cause.downcast_ref::<sys::Error>() {
            (exit, hint) = of_sys(error);
            break;
        }
    }
    crate::talk::error(&parts.join(": "));
    if let Some(hint) = hint {
        crate::talk::hint(&hint);
    }
    exit as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_near() {
        let known = ["rt", "be", "idle"];
        assert_eq!(nearest("idel", known), Some("idle"));
        assert_eq!(nearest("RT", known), Some("rt"));
        assert_eq!(nearest("best-effort", known), None);
        assert_eq!(nearest("wieght", ["weight", "class"]), Some("weight"));
        assert_eq!(nearest("sdaa", ["sda", "sdb"]), Some("sda"));
    }
}
