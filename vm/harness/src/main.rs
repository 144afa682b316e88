//! `disktime-vm`: runs cases on stock Debian kernels under QEMU.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Parser, Subcommand};
use disktime_vm::{Allow, Load, Progress, VmCase, kernel, selftest, suite};

#[derive(Parser)]
#[command(
    name = "disktime-vm",
    version,
    about = "Runs cases on stock Debian kernels under QEMU",
    after_help = "Examples:\n  disktime-vm fetch 6.12 6.1\n  \
                  disktime-vm run --module null_blk -- fio --name=x --filename=/dev/nullb0 --size=1M\n  \
                  disktime-vm shell --ko disktime.ko\n\n\
                  Everything is kept in $DISKTIME_CACHE, by default ~/.cache/disktime.\n\
                  DISKTIME_VM_ACCEL=tcg|kvm|auto chooses how the machine is run."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Download kernels (image, modules, headers, BTF) into the cache; prints kernel.json
    Fetch {
        /// 6.12 or 6.1
        #[arg(required = true)]
        kernels: Vec<String>,
        /// Ask the archive again, and replace what is out of date
        #[arg(long)]
        refresh: bool,
    },
    /// Run one command in a machine. Ends with the command's status; 124 time limit,
    /// 125 the kernel complained, 126 the command could not be run
    Run {
        #[command(flatten)]
        machine: Machine,
        /// Names the case in messages
        #[arg(long, default_value = "run")]
        name: String,
        /// Kill the machine after that many seconds
        #[arg(long, default_value_t = 120, value_name = "SECONDS")]
        timeout: u64,
        /// Where what the command leaves in /out goes
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// A kernel complaint (regular expression) that is no failure, and why
        #[arg(long, value_name = "REGEX=REASON", value_parser = allow)]
        allow: Vec<Allow>,
        /// Show the kernel's console at the end even of a case that passed
        #[arg(long)]
        console: bool,
        /// The command, as the guest sees it, and its arguments
        #[arg(last = true, required = true, value_name = "CMD")]
        cmd: Vec<String>,
    },
    /// A shell in a machine, on this terminal; ends on exit
    Shell {
        #[command(flatten)]
        machine: Machine,
    },
    /// Run the cases of a suite file, or of all in a folder
    Suite {
        /// A .toml file, or a folder of them
        path: PathBuf,
        /// Only cases whose name contains TEXT
        #[arg(long, value_name = "TEXT")]
        filter: Vec<String>,
        /// Only on this kernel
        #[arg(long)]
        kernel: Vec<String>,
        /// Machines at a time
        #[arg(long, short, default_value_t = 1)]
        jobs: usize,
        /// What {KEY} stands for in the suite
        #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
        var: Vec<(String, String)>,
        /// Where the cases' /out goes, a folder for each
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
        /// Only list the cases
        #[arg(long)]
        list: bool,
    },
    /// Check that cases which must fail are reported as failed
    Selftest {
        /// Kernels to do it on
        #[arg(default_value = "6.12")]
        kernels: Vec<String>,
    },
}

#[derive(Args)]
struct Machine {
    /// 6.12 or 6.1
    #[arg(long, default_value = "6.12")]
    kernel: String,
    /// Virtual CPUs
    #[arg(long, default_value_t = 2)]
    cpus: u32,
    /// A clock that counts instructions, one a nanosecond: exact on any host, and slow
    #[arg(long)]
    instructions: bool,
    /// Memory
    #[arg(long, default_value = "1024M")]
    mem: String,
    /// Load a module of the kernel's (or a .ko file) first, with what it depends on
    #[arg(long, value_name = "NAME[:PARAMS]", value_parser = load)]
    module: Vec<Load>,
    /// Load a .ko file, after all of --module
    #[arg(long, value_name = "FILE[:PARAMS]", value_parser = load)]
    ko: Vec<Load>,
    /// Only make a module (name or .ko file) known to modprobe and to autoloading
    #[arg(long, value_name = "NAME|FILE")]
    provide: Vec<String>,
    /// Put a program with its libraries into /bin, or to DEST
    #[arg(long, value_name = "FILE[:DEST]", value_parser = dest)]
    bin: Vec<(PathBuf, Option<String>)>,
    /// Put a file or a folder there
    #[arg(long, value_name = "SRC:DEST", value_parser = dest)]
    file: Vec<(PathBuf, Option<String>)>,
    /// Add an empty disk of that size: /dev/vda, /dev/vdb, ...
    #[arg(long, value_name = "SIZE", value_parser = size)]
    disk: Vec<u64>,
    /// Set a variable for the command
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// Add to the kernel's command line
    #[arg(long, value_name = "ARGS", allow_hyphen_values = true)]
    append: Vec<String>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn allow(text: &str) -> Result<Allow, String> {
    let (pattern, reason) = text.rsplit_once('=').ok_or("write REGEX=REASON")?;
    Ok(Allow {
        pattern: pattern.to_owned(),
        reason: reason.to_owned(),
    })
}

fn load(text: &str) -> Result<Load, String> {
    let (module, params) = text.split_once(':').unwrap_or((text, ""));
    Ok(Load {
        module: module.to_owned(),
        params: params.to_owned(),
    })
}

fn dest(text: &str) -> Result<(PathBuf, Option<String>), String> {
    Ok(match text.rsplit_once(':') {
        Some((from, to)) if to.starts_with('/') => (from.into(), Some(to.to_owned())),
        Some(_) => return Err("the destination is an absolute path in the guest".into()),
        None => (text.into(), None),
    })
}

fn size(text: &str) -> Result<u64, String> {
    suite::parse_size(text).map_err(|e| e.to_string())
}

impl Machine {
    fn case(self, name: &str) -> VmCase {
        let mut case = VmCase::new(name, &[]);
        case.kernel = self.kernel;
        case.cpus = self.cpus;
        case.instructions = self.instructions;
        case.mem = self.mem;
        case.modules = self.module;
        case.modules.extend(self.ko);
        case.provide = self.provide;
        case.bins = self.bin;
        for (from, to) in self.file {
            let name = from
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            case.files
                .push((from, to.unwrap_or_else(|| format!("/case/{name}"))));
        }
        case.disks = self.disk;
        case.env = self.env;
        case.append = self.append;
        case
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = disktime_vm::cancel_on_signals()
        .context("cannot handle signals")
        .and_then(|()| act(cli.verb));
    match result {
        Ok(code) => ExitCode::from(code),
        Err(_) if disktime_vm::cancelled() => {
            eprintln!("interrupted");
            ExitCode::from(130)
        }
        Err(e) => {
            eprintln!("error: {e:#}");
            if let Some(hint) = e
                .downcast_ref::<disktime_vm::Error>()
                .and_then(|e| e.advice())
            {
                eprintln!("hint: {hint}");
            }
            ExitCode::from(126)
        }
    }
}

fn act(verb: Verb) -> anyhow::Result<u8> {
    let progress = Progress::auto();
    match verb {
        Verb::Fetch { kernels, refresh } => fetch(&kernels, refresh, &progress),
        Verb::Run {
            machine,
            name,
            timeout,
            out,
            allow,
            console,
            cmd,
        } => {
            let mut case = machine.case(&name);
            case.timeout = Duration::from_secs(timeout);
            case.out_dir = out;
            case.allow = allow;
            case.cmd = cmd;
            run(&case, console, &progress)
        }
        Verb::Shell { machine } => {
            machine.case("shell").shell(&progress)?;
            Ok(0)
        }
        Verb::Suite {
            path,
            filter,
            kernel,
            jobs,
            var,
            out,
            list,
        } => {
            let vars = var.into_iter().collect();
            let options = suite::Options {
                kernels: kernel,
                filter,
                vars,
                jobs,
                out_dir: out,
            };
            run_suite(&path, &options, list, &progress)
        }
        Verb::Selftest { kernels } => {
            let mut wrong = 0;
            for kernel in &kernels {
                wrong += selftest::run(kernel, &progress)?;
            }
            Ok(u8::from(wrong > 0))
        }
    }
}

fn fetch(kernels: &[String], refresh: bool, progress: &Progress) -> anyhow::Result<u8> {
    for name in kernels {
        let fetched = kernel::fetch(name, refresh, progress)?;
        println!("{}", serde_json::to_string_pretty(&fetched.kernel)?);
        if fetched.bytes > 0 {
            eprintln!(
                "{name}: downloaded {} MB in {:.1} s",
                fetched.bytes / 1_000_000,
                fetched.download.as_secs_f64()
            );
        } else {
            eprintln!("{name}: in the cache, downloaded nothing");
        }
    }
    Ok(0)
}

fn run(case: &VmCase, show_console: bool, progress: &Progress) -> anyhow::Result<u8> {
    let outcome = case.run_with(progress, &mut |bytes| {
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(bytes);
        let _ = stdout.flush();
    })?;
    let status = &outcome.status;
    let failed_outside = !matches!(status, disktime_vm::Status::Exited(_));
    if show_console || failed_outside {
        eprintln!("--- console\n{}\n---", outcome.console.trim_end());
    }
    let boot = outcome
        .boot_ms
        .map_or("did not boot".into(), |ms| format!("booted in {ms} ms"));
    eprintln!(
        "disktime-vm: {}: {status} ({boot}, {} ms in all, {})",
        case.name, outcome.total_ms, outcome.accel
    );
    Ok(u8::try_from(status.code()).unwrap_or(255))
}

fn run_suite(
    path: &std::path::Path,
    options: &suite::Options,
    list: bool,
    progress: &Progress,
) -> anyhow::Result<u8> {
    let planned = suite::load(path, options)?;
    if planned.is_empty() {
        bail!("no case of {} matches", path.display());
    }
    if list {
        for plan in &planned {
            match &plan.skip {
                Some(why) => println!("{} (skipped: {why})", plan.case.name),
                None => println!("{}", plan.case.name),
            }
        }
        return Ok(0);
    }
    let tally = suite::run(&planned, options.jobs, progress);
    println!("{tally}");
    if disktime_vm::cancelled() {
        return Ok(130);
    }
    Ok(u8::from(tally.failed > 0))
}
