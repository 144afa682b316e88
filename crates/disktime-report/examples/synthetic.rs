//! Prints made-up results with all fields that a result may have, to look at the report of:
//!
//!     cargo run -p disktime-report --example synthetic >made-up.jsonl
//!     cargo run -p disktime-report -- made-up.jsonl --out report.html

#[path = "../tests/common/mod.rs"]
mod common;

fn main() {
    print!("{}", common::lines(&common::difficult()));
}
