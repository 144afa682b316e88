//! `dt-bench` carries out a plan of runs inside a machine.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    match disktime_bench::guest::run_plan() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: dt-bench: {e:#}");
            ExitCode::FAILURE
        }
    }
}
