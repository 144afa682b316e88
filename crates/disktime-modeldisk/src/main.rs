//! `disktime-modeldisk`: see the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use disktime_modeldisk::{Args, Error};

#[derive(Parser)]
#[command(name = "disktime-modeldisk", version)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

fn main() -> ExitCode {
    let Err(e) = Cli::parse().args.run() else {
        return ExitCode::SUCCESS;
    };
    eprintln!("error: {e:#}");
    let Some(known) = e.downcast_ref::<Error>() else {
        return ExitCode::FAILURE;
    };
    eprintln!("hint: {}", known.hint());
    ExitCode::from(known.exit_code())
}
