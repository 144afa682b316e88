//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};

use crate::device::{NR_REQUESTS, NR_REQUESTS_RANGE};

/// Gives every group of processes its share of disk time.
#[derive(Debug, Parser)]
#[command(
    name = "disktime",
    version,
    max_term_width = 100,
    args_conflicts_with_subcommands = false,
    after_help = "Examples:
  disktime enable sda                            share the disk time of sda from now on
  disktime set postgresql.service weight=400     four times the usual weight
  disktime status sda --interval 5s              who got what in the next five seconds

Without a verb, disktime prints the status.
Exit status: 0 ok, 1 failed, 2 usage, 3 not active or not found, 4 module missing or of another
kernel, 5 not permitted."
)]
pub struct Cli {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub verb: Option<Verb>,
}

/// Options of every verb.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Form of the data on stdout
    #[arg(
        short,
        long,
        global = true,
        value_name = "FORM",
        default_value = "text",
        hide_possible_values = false
    )]
    pub output: Form,
    /// Short for -o json
    #[arg(long, global = true, conflicts_with = "output")]
    pub json: bool,
    /// Say nothing but errors, warnings and data
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Take DIR for the root of the system: for tests, and to look into a container
    #[arg(long, global = true, hide = true, value_name = "DIR", env = "DISKTIME_ROOT", value_hint = ValueHint::DirPath)]
    pub root: Option<PathBuf>,
    /// The program that loads modules: for tests, and for images without kmod
    #[arg(long, global = true, hide = true, value_name = "PROGRAM", env = "DISKTIME_MODPROBE", value_hint = ValueHint::CommandName)]
    pub modprobe: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// Tables
    Text,
    /// One document
    Json,
    /// One object a line
    Jsonl,
    /// One row a group
    Csv,
    /// For Prometheus and others
    Openmetrics,
}

impl Global {
    pub fn form(&self) -> Form {
        if self.json { Form::Json } else { self.output }
    }
}

#[derive(Debug, Subcommand)]
pub enum Verb {
    Status(Status),
    Enable(Enable),
    Disable(Disable),
    Set(Set),
    Get(Get),
    Apply(Apply),
    Bench(Bench),
    Completions(Completions),
    #[command(hide = true)]
    Man(Man),
}

/// Show what each disk runs and what each group got
///
/// Shows every disk, and for each that runs disktime what its groups are entitled to and what they got.
///
/// The got share is a group's part of all disk time given in the window: since disktime was enabled, or during
/// --interval. The entitled share is what the weights promise, given who asked: classes come in order, siblings of a
/// class divide by weight, and whoever asked for less leaves the rest to the others. A group is taken to have asked for
/// more than it got where it has requests queued, or where its requests waited, in sum, for a tenth of the disk's busy
/// time or more.
#[derive(Debug, Default, Args)]
#[command(after_help = "Examples:
  disktime status
  disktime status sda --interval 5s
  disktime status -o openmetrics")]
pub struct Status {
    /// Disks: /dev/x, x, MAJ:MIN or a mount point [default: all that can have a scheduler]
    #[arg(value_name = "DEV", value_hint = ValueHint::AnyPath)]
    pub devices: Vec<String>,
    /// Measure for so long, like 500ms, 5s or 1m [default: totals since disktime was enabled]
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    pub interval: Option<Duration>,
    /// Show also disks without a scheduler and groups that never asked for anything
    #[arg(short, long)]
    pub all: bool,
}

/// How a verb that changes something does it.
#[derive(Debug, Clone, Copy, Args)]
pub struct Manner {
    /// Until reboot only: write nothing to /etc
    #[arg(long)]
    pub runtime: bool,
    /// Print the changes as shell commands and make none
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// Let a disk share its time by disktime, now and after each boot
///
/// Switches a disk to disktime, loading the module if need be, and raises nr_requests so that light groups find a tag.
///
/// To last, the disk is written to /etc/disktime/devices.d and a udev rule is made from it in
/// /etc/udev/rules.d/65-disktime.rules, which knows the disk by its serial number where udev has one.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  disktime enable sda
  disktime enable /srv --runtime
  disktime enable nvme0n1 --nr-requests 512 --dry-run")]
pub struct Enable {
    /// The disk: /dev/x, x, MAJ:MIN or a mount point
    #[arg(value_name = "DEV", value_hint = ValueHint::AnyPath)]
    pub device: String,
    /// Requests the scheduler may hold for all groups together, 4 to 2048, or keep [default: at least
    /// 256, and 1024 by all hardware queues of a flash drive that takes more than that]
    #[arg(long, value_name = "N|keep", value_parser = parse_nr_requests, default_value = "raise", hide_default_value = true)]
    pub nr_requests: NrRequests,
    #[command(flatten)]
    pub manner: Manner,
}

/// Give a disk back the scheduler it had
///
/// Gives a disk back the scheduler and nr_requests that it had before enable, and forgets its lasting settings.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  disktime disable sda
  disktime disable sda --runtime      back to disktime at the next boot
  disktime disable sda --dry-run")]
pub struct Disable {
    /// The disk: /dev/x, x, MAJ:MIN or a mount point
    #[arg(value_name = "DEV", value_hint = ValueHint::AnyPath)]
    pub device: String,
    #[command(flatten)]
    pub manner: Manner,
}

/// Set a cgroup's weight and class, or a disk's attributes
///
/// Sets what TARGET gets. Several settings are made all together or not at all.
///
/// For a cgroup: weight=1..10000 (default 100) and class=rt|be|idle (default be), for all disks or for one with
/// --device or as weight@DEV=N; default clears what was set. For a disk: slice_usec (0 = auto), idle_usec (longest
/// anticipation, 0 = off), depth (0 = auto), order=cfq|deadline|fifo, strict=0|1, nr_requests=4..2048, health=rearm|fifo.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  disktime set postgresql.service weight=400 class=rt
  disktime set pid:1234 weight@sda=10
  disktime set sda order=deadline idle_usec=4000")]
pub struct Set {
    /// A cgroup path, a systemd unit, pid:N or a disk
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub target: String,
    /// Settings
    #[arg(value_name = "KEY=VALUE", required = true, value_parser = parse_pair)]
    pub pairs: Vec<(String, String)>,
    /// Set a cgroup's weight and class on this disk only
    #[arg(short, long, value_name = "DEV", value_hint = ValueHint::AnyPath)]
    pub device: Option<String>,
    #[command(flatten)]
    pub manner: Manner,
}

/// Show settings and counters in the form that set takes
///
/// Prints a cgroup's or a disk's settings as KEY=VALUE lines, which set takes back, and a cgroup's counters.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  disktime get postgresql.service
  disktime get sda depth
  disktime set b.service $(disktime get --settings a.service)")]
pub struct Get {
    /// A cgroup path, a systemd unit, pid:N or a disk
    #[arg(value_name = "TARGET", value_hint = ValueHint::AnyPath)]
    pub target: String,
    /// Only these keys, on all disks unless given as KEY@DEV
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,
    /// Only what set accepts, no counters
    #[arg(short, long)]
    pub settings: bool,
}

/// Write all kept settings again, as is done at boot
///
/// Writes again what /etc/disktime holds: disks that are present are switched to disktime, cgroups that exist get their
/// weight and class. What is absent is skipped and named.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  disktime apply
  disktime apply --dry-run
  disktime apply --quiet")]
pub struct Apply {
    /// Print the changes as shell commands and make none
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// Measure shares, rates and latencies, and report them
///
/// Hands over to disktime-bench: runs scenario files in the simulator, in a machine or on a disk of this one, under
/// every controller that one might choose, turns results into reports, and serves models as disks.
#[derive(Debug, Args)]
#[command(
    disable_help_flag = true,
    after_help = "Examples:
  disktime bench run scenarios/tree.toml --on sim
  disktime bench report results.jsonl -o html --out report.html
  disktime bench modeldisk hdd --size 250G"
)]
pub struct Bench {
    /// Its verb and options: see `disktime bench --help`
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    pub args: Vec<std::ffi::OsString>,
}

/// Print completions for a shell
///
/// Prints a completion script.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  disktime completions bash > /etc/bash_completion.d/disktime
  disktime completions zsh > \"${fpath[1]}/_disktime\"
  disktime completions fish > ~/.config/fish/completions/disktime.fish")]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Write the man pages into a folder
///
/// Writes disktime.1 and a page for each verb.
#[derive(Debug, Args)]
pub struct Man {
    /// The folder, made if there is none
    #[arg(value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
}

/// What to do with nr_requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NrRequests {
    /// At least the usual number.
    Raise,
    /// Leave it.
    Keep,
    /// This number.
    Set(u32),
}

fn parse_nr_requests(text: &str) -> Result<NrRequests, String> {
    match text {
        "keep" => Ok(NrRequests::Keep),
        "raise" => Ok(NrRequests::Raise),
        _ => match text.parse() {
            Ok(n) if NR_REQUESTS_RANGE.contains(&n) => Ok(NrRequests::Set(n)),
            _ => Err(format!(
                "it is keep, or a count from {} to {} (without the option at least {NR_REQUESTS})",
                NR_REQUESTS_RANGE.start(),
                NR_REQUESTS_RANGE.end()
            )),
        },
    }
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value))
            if !key.is_empty() && !value.is_empty() && !value.contains(char::is_control) =>
        {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err("it is not KEY=VALUE".into()),
    }
}

/// A time like `500ms`, `1.5s`, `2m`; a bare number is seconds.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        unit => return Err(format!("'{unit}' is not one of ms, s, m, h")),
    };
    let seconds = digits.parse::<f64>().ok().map(|number| number * factor);
    // Below 10 ms the two reads themselves would be measured; a day is more than anybody waits for.
    match seconds.filter(|seconds| (0.01..=86_400.0).contains(seconds)) {
        Some(seconds) => Ok(Duration::from_secs_f64(seconds)),
        None => Err("it is a time from 10ms to 24h, like 500ms, 5s or 1m".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_has_three_examples_on_one_screen() {
        let mut command = Cli::command();
        command.build();
        let verbs = command
            .get_subcommands_mut()
            .filter(|verb| !verb.is_hide_set() && verb.get_name() != "help");
        for verb in verbs {
            let help = verb.render_help().to_string();
            let examples = help
                .lines()
                .skip_while(|line| *line != "Examples:")
                .filter(|l| l.starts_with("  disktime"));
            assert_eq!(examples.count(), 3, "{}", verb.get_name());
            assert!(help.lines().count() <= 40, "{}", verb.get_name());
        }
    }

    #[test]
    fn times_have_bounds_and_units() {
        for (text, ms) in [
            ("1s", 1000),
            ("500ms", 500),
            ("1.5", 1500),
            ("2m", 120_000),
            ("10ms", 10),
        ] {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_millis(ms)),
                "{text}"
            );
        }
        for bad in ["", "s", "-1s", "0", "1x", "9ms", "25h", "nan", "inf", "1 s"] {
            assert!(parse_duration(bad).is_err(), "{bad:?}");
        }
    }
}
