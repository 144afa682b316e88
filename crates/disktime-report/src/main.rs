//! `disktime-report`: the report of `disktime bench report` as a program of its own.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(
    name = "disktime-report",
    version,
    about = "Turns result files into a report"
)]
struct Cli {
    #[command(flatten)]
    args: disktime_report::Args,
}

fn main() -> ExitCode {
    match Cli::parse().args.run() {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("error: {error:#}");
            let (hint, code) = disktime_report::advice(&error);
            if let Some(hint) = hint {
                eprintln!("hint: {hint}");
            }
            ExitCode::from(code)
        }
    }
}
