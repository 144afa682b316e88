//! `disktime-bench`: measures shares of disk time on stock kernels under QEMU.
#![forbid(unsafe_code)]

mod resume;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Parser, Subcommand};
use disktime_bench::cost;
use disktime_bench::host::{Device, Refused};
use disktime_bench::judge;
use disktime_bench::live::Live;
use disktime_bench::machine::{self, Left, Missing, Parts};
use disktime_bench::plan::{Controller, Event, Plan, Run};
use disktime_bench::results::{self, Evidence, Outcome, Unchecked};
use disktime_bench::scenario::{self, On, Options, Scenario};
use disktime_bench::sim;
use disktime_vm::Progress;

#[derive(Parser)]
#[command(
    name = "disktime-bench",
    version,
    about = "Measures shares of disk time on stock Debian kernels under QEMU",
    after_help = "Examples:\n  disktime-bench demo\n  \
                  disktime-bench run scenarios/tree.toml --controller disktime,none\n  \
                  disktime-bench run scenarios/*.toml --json results.jsonl --keep traces\n\n\
                  Exit status: 0 ok, 1 failed, 2 usage, 6 a check failed, 130 interrupted."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run scenarios in a machine, analyse, check
    Run {
        /// Scenario files
        #[arg(required = true, value_name = "SCENARIO.toml")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        choice: Choice,
        #[command(flatten)]
        place: Place,
        /// Where to run
        #[arg(long, value_enum, default_value_t = On::Vm)]
        on: On,
        /// Write a result object a line to FILE, - for standard output
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Keep what the machines left (traces, fio's reports, disktime's state) in DIR, a folder for
        /// each boot
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
        /// Boot anew for each scenario
        #[arg(long)]
        split: bool,
        /// Measure again, N times in all at most, what did not count because the machine was too slow
        #[arg(long, value_name = "N", default_value_t = 1)]
        attempts: u32,
        /// The disk of --on host; what lies on it is overwritten
        #[arg(long, value_name = "DEV")]
        device: Option<PathBuf>,
        /// Data on that disk that may be destroyed: a file system's or partition table's UUID or label
        #[arg(long, value_name = "NAME", requires = "device")]
        destroy: Vec<String>,
        /// Keep each scenario's results in DIR, and measure only those that are not there yet; after an
        /// interruption the same command goes on
        #[arg(long, value_name = "DIR", conflicts_with_all = ["json", "keep"])]
        resume: Option<PathBuf>,
        /// Before each boot, wait until the host is idle, so many seconds at most
        #[arg(long, value_name = "SECONDS", default_value_t = 0)]
        await_quiet: u64,
    },
    Judge(judge::Args),
    Report(disktime_report::Args),
    Modeldisk(disktime_modeldisk::Args),
    /// dm-band's tests 1 and 2 with disktime, bfq and none, live
    Demo {
        #[command(flatten)]
        place: Place,
        /// Where the results go
        #[arg(long, value_name = "DIR", default_value = "target/demo")]
        out: PathBuf,
    },
    /// Analyse again what run --keep kept
    Analyse {
        /// A folder of one boot
        #[arg(value_name = "DIR")]
        dir: PathBuf,
        /// The scenario files
        #[arg(required = true, value_name = "SCENARIO.toml")]
        files: Vec<PathBuf>,
        /// Write a result object a line to FILE, - for standard output
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Say what run would do
    Plan {
        /// Scenario files
        #[arg(required = true, value_name = "SCENARIO.toml")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        choice: Choice,
        /// Where it would be run
        #[arg(long, value_enum, default_value_t = On::Vm)]
        on: On,
    },
}

#[derive(Args)]
struct Choice {
    /// Whom to measure, instead of whom the files name
    #[arg(long, value_delimiter = ',', value_name = "NAME,...")]
    controller: Option<Vec<Controller>>,
    /// Only variants whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    variant: Vec<String>,
    /// Measure each that often, in turn, instead of as often as the files say
    #[arg(long, value_name = "N")]
    runs: Option<u32>,
    /// For fio's random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Multiply the windows' durations
    #[arg(long, value_name = "F", default_value_t = 1.0)]
    duration_scale: f64,
    /// A machine whose clock counts instructions, one a nanosecond, for scenarios that do not ask for
    /// it, too: what the host does has no part in the figures
    #[arg(long)]
    instructions: bool,
}

#[derive(Args)]
struct Place {
    /// 6.12 or 6.1
    #[arg(long, default_value = "6.12")]
    kernel: String,
    /// Folder of disktime.ko and disktime-iosched.ko [default: target/kernel/KERNEL]
    #[arg(long, value_name = "DIR")]
    modules: Option<PathBuf>,
    /// Folder of dt-bench and disktime, statically linked
    #[arg(
        long,
        value_name = "DIR",
        default_value = "target/x86_64-unknown-linux-gnu/release"
    )]
    guest: PathBuf,
}

impl Choice {
    fn options(self, on: On) -> Result<Options> {
        if !(0.01..=100.0).contains(&self.duration_scale) {
            bail!(
                "--duration-scale is {}, not within 0.01 to 100",
                self.duration_scale
            );
        }
        let told = Controller::DisktimeTrue;
        if on != On::Sim && self.controller.iter().flatten().any(|&c| c == told) {
            bail!("nobody but a model knows what requests truly took: {told} is for --on sim");
        }
        if self.runs == Some(0) {
            bail!("--runs is 0: nothing would be measured");
        }
        if self.instructions && on != On::Vm {
            bail!(
                "only a machine has a clock that counts instructions: --instructions is for --on vm"
            );
        }
        Ok(Options {
            on,
            controllers: self.controller,
            variants: self.variant,
            rounds: self.runs,
            seed: self.seed,
            scale: self.duration_scale,
            instructions: self.instructions,
        })
    }
}

impl Place {
    fn parts(self) -> Parts {
        let modules = self
            .modules
            .unwrap_or_else(|| Path::new("target/kernel").join(&self.kernel));
        Parts {
            kernel: self.kernel,
            modules,
            guest: self.guest,
        }
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
            let (hint, code) = advice(&e);
            if let Some(hint) = hint {
                eprintln!("hint: {hint}");
            }
            ExitCode::from(code)
        }
    }
}

/// One thing to do about an error, and the exit status that it stands for.
fn advice(error: &anyhow::Error) -> (Option<&str>, u8) {
    if let Some(missing) = error.downcast_ref::<Missing>() {
        return (Some(&missing.hint), 1);
    }
    if let Some(refused) = error.downcast_ref::<Refused>() {
        return (Some(&refused.hint), 1);
    }
    if let Some(machine) = error.downcast_ref::<disktime_vm::Error>() {
        return (machine.advice(), 1);
    }
    if let Some(disk) = error.downcast_ref::<disktime_modeldisk::Error>() {
        return (Some(disk.hint()), disk.exit_code());
    }
    disktime_report::advice(error)
}

fn act(verb: Verb) -> Result<u8> {
    match verb {
        Verb::Run {
            files,
            choice,
            place,
            on,
            json,
            keep,
            split,
            attempts,
            device,
            destroy,
            resume,
            await_quiet,
        } => {
            let scenarios = load(&files)?;
            let options = choice.options(on)?;
            if on == On::Host {
                let Some(device) = device else {
                    bail!("--on host needs a disk: --device /dev/x");
                };
                let device = Device::check(&device, &destroy)?;
                return on_host(
                    &scenarios,
                    &options,
                    &device,
                    json.as_deref(),
                    keep.as_deref(),
                );
            }
            let parts = place.parts();
            if let Some(dir) = resume {
                let quiet = Duration::from_secs(await_quiet);
                let measure = |scenario: &Scenario, out: &Path| {
                    let one = std::slice::from_ref(scenario);
                    if on == On::Sim {
                        return simulated(one, &options, Some(out), None);
                    }
                    let mut plan = scenario::plan(one, &options);
                    without_ublk(&mut plan, &parts.kernel);
                    cost::fill(&mut plan)?;
                    if plan.runs.is_empty() {
                        return write_json(Some(out), &[]).map(|()| 0);
                    }
                    machine::await_quiet(quiet, &Progress::auto());
                    measure(one, &plan, &options, &parts, None)?.tell(one, Some(out))
                };
                return resume::run(&dir, &files, &scenarios, &options, &parts, measure);
            }
            if on == On::Sim {
                return simulated(&scenarios, &options, json.as_deref(), keep.as_deref());
            }
            let batches: Vec<&[Scenario]> = if split {
                scenarios.chunks(1).collect()
            } else {
                by_clock(&scenarios, &options).collect()
            };
            let mut all = Finished::default();
            let mut boots = 0;
            for batch in batches {
                let mut plan = scenario::plan(batch, &options);
                without_ublk(&mut plan, &parts.kernel);
                cost::fill(&mut plan)?;
                if plan.runs.is_empty() {
                    bail!("nothing is left to run: no variant has such a name");
                }
                for attempt in 1..=attempts.max(1) {
                    boots += 1;
                    machine::await_quiet(Duration::from_secs(await_quiet), &Progress::auto());
                    let dir = keep.as_ref().map(|k| k.join(format!("boot{boots}")));
                    all.add(measure(batch, &plan, &options, &parts, dir.as_deref())?);
                    plan.runs.retain(|run| all.uncounted(run));
                    if plan.runs.is_empty() || disktime_vm::cancelled() || all.failure.is_some() {
                        break;
                    }
                    if attempt < attempts {
                        eprintln!("{} runs did not count: once more", plan.runs.len());
                    }
                }
            }
            all.tell(&scenarios, json.as_deref())
        }
        Verb::Judge(args) => args.run(),
        Verb::Report(args) => args.run(),
        Verb::Modeldisk(args) => args.run().map(|()| 0),
        Verb::Demo { place, out } => demo(place.parts(), &out),
        Verb::Analyse { dir, files, json } => {
            let scenarios = load(&files)?;
            let read = |name: &str| {
                let path = dir.join(name);
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
            };
            let plan: Plan = serde_json::from_str(&read("plan.json")?)?;
            let events = read("events.jsonl")?
                .lines()
                .map(serde_json::from_str)
                .collect::<Result<Vec<Event>, _>>()?;
            let mut outcomes = results::collect(
                &plan,
                &scenarios,
                &events,
                &Evidence {
                    on: On::Vm,
                    dir: Some(&dir),
                    host_idle: &BTreeMap::new(),
                    latencies: None,
                    transactions: None,
                    seed: 0,
                },
            );
            results::check(&mut outcomes, &scenarios);
            write_json(json.as_deref(), &outcomes)?;
            print!("{}", table::show(&outcomes, &scenarios, false));
            Ok(Finished {
                outcomes,
                failure: None,
            }
            .verdict())
        }
        Verb::Plan { files, choice, on } => {
            let (scenarios, options) = (load(&files)?, choice.options(on)?);
            let plans: Vec<Plan> = by_clock(&scenarios, &options)
                .map(|boot| scenario::plan(boot, &options))
                .collect();
            for (number, run) in plans.iter().flat_map(|plan| &plan.runs).enumerate() {
                println!(
                    "{:3} {} {} round {}",
                    number + 1,
                    disktime_bench::live::title(run),
                    run.controller,
                    run.round
                );
            }
            for plan in &plans {
                println!("{} in one boot", machine::takes(plan));
            }
            Ok(0)
        }
    }
}

/// Scenarios that one machine can run: it has one clock.
fn by_clock<'a>(
    scenarios: &'a [Scenario],
    options: &Options,
) -> impl Iterator<Item = &'a [Scenario]> {
    let all = options.instructions;
    scenarios.chunk_by(move |a, b| all || a.instructions == b.instructions)
}

/// Leaves out what the kernel cannot serve.
fn without_ublk(plan: &mut Plan, kernel: &str) {
    if kernel != "6.1" {
        return;
    }
    let before = plan.runs.len();
    plan.runs.retain(|run| !machine::needs_ublk(run));
    let out = before - plan.runs.len();
    if out > 0 {
        eprintln!("{out} runs left out: Linux 6.1 has no ublk to serve model disks");
    }
}

fn load(files: &[PathBuf]) -> Result<Vec<Scenario>> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for file in files {
        let scenario = scenario::load(file)?;
        if scenarios
            .iter()
            .any(|s| s.name.get_ref() == scenario.name.get_ref())
        {
            bail!(
                "{}: there is another scenario {}",
                file.display(),
                scenario.name.get_ref()
            );
        }
        scenarios.push(scenario);
    }
    Ok(scenarios)
}

/// All that was measured.
#[derive(Default)]
struct Finished {
    outcomes: Vec<Outcome>,
    failure: Option<String>,
}

impl Finished {
    /// Adds what was measured, in the place of earlier attempts at the same.
    fn add(&mut self, other: Self) {
        self.outcomes
            .retain(|old| !other.outcomes.iter().any(|new| new.repeats(old)));
        self.outcomes.extend(other.outcomes);
        self.failure = self.failure.take().or(other.failure);
    }

    fn uncounted(&self, run: &Run) -> bool {
        self.outcomes
            .iter()
            .any(|o| o.is_of(run) && o.counted == Some(false))
    }

    /// Checks, writes and shows all of it; the exit status.
    fn tell(mut self, scenarios: &[Scenario], json: Option<&Path>) -> Result<u8> {
        results::check(&mut self.outcomes, scenarios);
        write_json(json, &self.outcomes)?;
        // With the results on standard output, the tables are talk.
        let text = table::show(&self.outcomes, scenarios, false);
        match json == Some(Path::new("-")) {
            true => eprint!("{text}"),
            false => print!("{text}"),
        }
        Ok(self.verdict())
    }

    /// The exit status; says why on standard error.
    fn verdict(&self) -> u8 {
        let checks = || self.outcomes.iter().flat_map(|o| &o.checks);
        if disktime_vm::cancelled() {
            eprintln!("interrupted: this is what had been measured");
            return 130;
        }
        if let Some(failure) = &self.failure {
            eprintln!("error: {failure}");
            return 1;
        }
        if self.outcomes.is_empty() {
            eprintln!("error: nothing was measured");
            return 1;
        }
        if checks().any(|c| c.ok == Some(false)) {
            return 6;
        }
        match results::unchecked(&self.outcomes) {
            Some(Unchecked::TooSlow) => {
                eprintln!("error: no run counts: the machine could not load the disk");
                eprintln!("hint: let the host do nothing else meanwhile, or use --await-quiet");
                1
            }
            Some(Unchecked::NothingToCompare) => {
                eprintln!("note: nothing was checked: what the checks compare with was not run");
                0
            }
            None => 0,
        }
    }
}

/// Boots once, runs all of the scenarios.
fn measure(
    scenarios: &[Scenario],
    plan: &Plan,
    options: &Options,
    parts: &Parts,
    keep: Option<&Path>,
) -> Result<Finished> {
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let dir = keep.unwrap_or(scratch.path());
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    fs::write(dir.join("plan.json"), serde_json::to_vec(plan)?)?;
    eprintln!(
        "{} runs in one machine, {}",
        plan.runs.len(),
        machine::takes(plan)
    );
    let mut live = Live::new(plan);
    let left = machine::run(parts, plan, dir, &Progress::auto(), &mut |e| live.hear(e));
    live.finish();
    let Left {
        events,
        said,
        host_idle,
        failure,
        total_ms,
        accel,
    } = left?;
    let mut file = BufWriter::new(File::create(dir.join("events.jsonl"))?);
    for event in &events {
        serde_json::to_writer(&mut file, event)?;
        file.write_all(b"\n")?;
    }
    file.flush()?;
    if !said.is_empty() {
        eprint!("{said}");
    }
    eprintln!(
        "the machine ran for {:.1} s ({accel})",
        total_ms as f64 / 1000.0
    );
    let outcomes = results::collect(
        plan,
        scenarios,
        &events,
        &Evidence {
            on: On::Vm,
            dir: Some(dir),
            host_idle: &host_idle,
            latencies: None,
            transactions: None,
            seed: options.seed,
        },
    );
    Ok(Finished { outcomes, failure })
}

/// Runs all of the scenarios on a disk of this machine.
fn on_host(
    scenarios: &[Scenario],
    options: &Options,
    device: &Device,
    json: Option<&Path>,
    keep: Option<&Path>,
) -> Result<u8> {
    let mut plan = scenario::plan(scenarios, options);
    for line in device.adapt(&mut plan) {
        eprintln!("{line}");
    }
    // What io.cost is told of a disk is measured on a model of it.
    let known = |run: &Run| run.controller != Controller::Iocost;
    if !plan.runs.iter().all(known) {
        eprintln!("iocost left out: it needs the coefficients of this disk");
        plan.runs.retain(known);
    }
    if plan.runs.is_empty() {
        bail!("nothing is left to run");
    }
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let dir = keep.unwrap_or(scratch.path());
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let mut live = Live::new(&plan);
    let events = device.run(&plan, dir, &mut |e| live.hear(e));
    live.finish();
    let outcomes = results::collect(
        &plan,
        scenarios,
        &events?,
        &Evidence {
            on: On::Host,
            dir: Some(dir),
            host_idle: &BTreeMap::new(),
            latencies: None,
            transactions: None,
            seed: options.seed,
        },
    );
    let failure = None;
    Finished { outcomes, failure }.tell(scenarios, json)
}

/// Runs all of the scenarios in the simulator.
fn simulated(
    scenarios: &[Scenario],
    options: &Options,
    json: Option<&Path>,
    keep: Option<&Path>,
) -> Result<u8> {
    let mut plan = scenario::plan(scenarios, options);
    let left_out: BTreeSet<&str> = plan
        .runs
        .iter()
        .filter(|run| !sim::knows(run.controller))
        .map(|run| run.controller.name())
        .collect();
    if !left_out.is_empty() {
        let names: Vec<&str> = left_out.into_iter().collect();
        eprintln!("not in the simulator: {}", names.join(", "));
    }
    plan.runs.retain(|run| sim::knows(run.controller));
    if plan.runs.is_empty() {
        bail!("nothing is left to run: the simulator knows disktime and none (fifo)");
    }
    let scratch = tempfile::tempdir().context("cannot make a temporary folder")?;
    let dir = keep.unwrap_or(scratch.path());
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let left = sim::run(&plan, dir, options.seed)?;
    let outcomes = results::collect(
        &plan,
        scenarios,
        &left.events,
        &Evidence {
            on: On::Sim,
            dir: Some(dir),
            host_idle: &BTreeMap::new(),
            latencies: Some(&left.latencies),
            transactions: Some(&left.transactions),
            seed: options.seed,
        },
    );
    let failure = None;
    Finished { outcomes, failure }.tell(scenarios, json)
}

fn write_json(to: Option<&Path>, outcomes: &[Outcome]) -> Result<()> {
    let Some(path) = to else { return Ok(()) };
    let mut text = String::new();
    for outcome in outcomes {
        text.push_str(&serde_json::to_string(outcome)?);
        text.push('\n');
    }
    if path == Path::new("-") {
        print!("{text}");
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The demo's scenarios: the same files that `run` takes, so that it cannot show anything else.
const DEMO: [(&str, &str); 2] = [
    (
        "dm-band-test1.toml",
        include_str!("../../../scenarios/dm-band-test1.toml"),
    ),
    (
        "dm-band-test2.toml",
        include_str!("../../../scenarios/dm-band-test2.toml"),
    ),
];
/// The variant of them that is shown.
const DEMO_VARIANT: &str = "servers8-nr256";

fn demo(parts: Parts, out: &Path) -> Result<u8> {
    let start = Instant::now();
    let mut scenarios = Vec::new();
    for (name, text) in DEMO {
        let mut scenario = scenario::parse(text, &Path::new("scenarios").join(name))?;
        scenario
            .variants
            .retain(|v| v.name.get_ref() == DEMO_VARIANT);
        scenarios.push(scenario);
    }
    eprintln!(
        "Three groups with weights 40, 20 and 10 share one disk (eight servers, 4 ms a request), first\n\
         all three at work, then the middle one silent, as dm-band was shown in 2008. Each under\n\
         disktime, BFQ and no scheduler, on an unmodified Debian kernel in one machine."
    );
    let options = Options::default();
    let plan = scenario::plan(&scenarios, &options);
    let mut finished = measure(&scenarios, &plan, &options, &parts, None)?;
    results::check(&mut finished.outcomes, &scenarios);
    let results = out.join("results.jsonl");
    write_json(Some(&results), &finished.outcomes)?;
    print!("{}", table::show(&finished.outcomes, &scenarios, true));
    println!(
        "\nTook {:.0} s. Results: {}",
        start.elapsed().as_secs_f64(),
        results.display()
    );
    println!(
        "Next: try it by hand in a machine with `make vm-shell`, or see README.md for installing it."
    );
    if results::unchecked(&finished.outcomes) == Some(Unchecked::TooSlow) {
        // The shares are to be seen all the same: it is a demonstration, not a proof.
        println!(
            "The host was busy with other things, and the machine too slow to keep the disk at work: the shares\n\
             are as they are, but figures that count come from `disktime-bench run --await-quiet 600`."
        );
        return Ok(0);
    }
    Ok(finished.verdict())
}
