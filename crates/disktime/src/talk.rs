//! What is said to the person, on stderr. Data goes to stdout and never comes through here.

use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::{AnsiColor, Style};

static QUIET: AtomicBool = AtomicBool::new(false);

const RED: Style = AnsiColor::Red.on_default().bold();
const CYAN: Style = AnsiColor::Cyan.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();

/// Silences [`note`].
pub fn set_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// What was understood or done.
pub fn note(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        anstream::eprintln!("{text}");
    }
}

/// Something odd that does not stop the command.
pub fn warning(text: &str) {
    anstream::eprintln!("{YELLOW}warning:{YELLOW:#} {text}");
}

/// What failed.
pub fn error(text: &str) {
    anstream::eprintln!("{RED}error:{RED:#} {text}");
}

/// One thing to do.
pub fn hint(text: &str) {
    anstream::eprintln!("{CYAN}hint:{CYAN:#} {text}");
}
