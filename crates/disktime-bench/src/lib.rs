//! Measures shares of disk time on stock kernels under QEMU.
//!
//! A scenario file ([`scenario`]) says what disk, which groups with which loads, and what must
//! hold. The host turns it into a plan of runs ([`plan`]), boots a machine, in which `dt-bench`
//! ([`guest`]) carries out the plan and records counters and a trace of requests ([`trace`]).
//! Back on the host the trace is analysed by a program that knows nothing of the scheduler
//! ([`analyse`]), and both are put together, checked and shown ([`results`]).
#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod plan;
pub mod ring;
pub mod trace;

pub mod guest;

#[cfg(feature = "host")]
pub mod analyse;
#[cfg(feature = "host")]
pub mod cost;
#[cfg(feature = "host")]
pub mod fio;
#[cfg(feature = "host")]
pub mod host;
#[cfg(feature = "host")]
pub mod judge;
#[cfg(feature = "host")]
pub mod live;
#[cfg(feature = "host")]
pub mod machine;
#[cfg(feature = "host")]
pub mod results;
#[cfg(feature = "host")]
pub mod scenario;
#[cfg(feature = "host")]
pub mod sim;
#[cfg(feature = "host")]
pub mod transactions;
