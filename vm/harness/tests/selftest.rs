//! Boots machines: `cargo test -p disktime-vm -- --ignored`.

#![allow(clippy::unwrap_used)]

use disktime_vm::{Progress, selftest};

#[test]
#[ignore = "boots a dozen machines; run with --ignored"]
fn failures_are_reported_as_failures_on_6_12() {
    assert_eq!(selftest::run("6.12", &Progress::none()).unwrap(), 0);
}

#[test]
#[ignore = "boots a dozen machines; run with --ignored"]
fn failures_are_reported_as_failures_on_6_1() {
    assert_eq!(selftest::run("6.1", &Progress::none()).unwrap(), 0);
}
