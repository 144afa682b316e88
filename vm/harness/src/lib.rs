//! Boots stock Debian kernels under QEMU and runs cases in them.
//!
//! ```no_run
//! use disktime_vm::VmCase;
//!
//! let outcome = VmCase::new("hello", &["sh", "-c", "echo hello; uname -r > /out/release"])
//!     .module("null_blk", "nr_devices=1")
//!     .run()?;
//! assert!(outcome.passed(), "{}\n{}", outcome.status, outcome.console);
//! # Ok::<(), disktime_vm::Error>(())
//! ```
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod apt;
pub mod cache;
mod case;
pub mod console;
mod cpio;
mod error;
mod initramfs;
pub mod kernel;
mod modules;
mod programs;
mod progress;
pub mod selftest;
pub mod suite;

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

pub use case::{Load, Status, VmCase, VmOutcome};
pub use console::Allow;
pub use error::{Error, Result};
pub use kernel::{Kernel, fetch};
pub use progress::Progress;

static CANCELLED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Whether the process was asked to end; running machines then end, and their folders go.
#[must_use]
pub fn cancelled() -> bool {
    CANCELLED.load(Ordering::Relaxed)
}

/// Makes SIGINT, SIGTERM and SIGHUP end running machines in good order instead of the process
/// at once. A second signal ends the process.
pub fn cancel_on_signals() -> std::io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&CANCELLED))?;
        signal_hook::flag::register(signal, Arc::clone(&CANCELLED))?;
    }
    Ok(())
}
