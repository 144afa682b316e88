//! The scheduler core, driven natively: one module a kind of property.
//!
//! PROPTEST_CASES sets the number of cases of every property; failing seeds are printed.

#![allow(clippy::unwrap_used)]

mod bed;
mod classes;
mod commit;
mod costs;
mod faults;
mod gate;
mod given;
mod lead;
mod order;
mod pace;
mod reference;
mod serial;
mod shares;
mod sleep;
mod solo;
mod spell;
mod stateful;
mod tree;
mod turns;
mod wide;
mod written;

use proptest::test_runner::Config;

/// `number` cases, unless PROPTEST_CASES says otherwise.
fn cases(number: u32) -> Config {
    let number = std::env::var("PROPTEST_CASES")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(number);
    Config {
        cases: number,
        failure_persistence: None,
        max_shrink_iters: 100,
        ..Config::default()
    }
}
