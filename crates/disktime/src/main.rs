//! The command `disktime`: shows, switches on and sets the disktime I/O scheduler through its documented files.

#![forbid(unsafe_code)]

mod bench;
mod cli;
mod device;
mod failure;
mod group;
mod persist;
mod plan;
mod render;
mod share;
mod status;
mod talk;
mod target;

use std::io::{ErrorKind, IsTerminal, Write};
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser};
use disktime_sys::{Blocks, Cgroups, Device, Root};
use serde_json::json;

use crate::cli::{Cli, Form, Global, Verb};
use crate::failure::{Exit, failure};
use crate::plan::Plan;
use crate::target::Target;

fn main() -> ExitCode {
    let cli = Cli::parse();
    talk::set_quiet(cli.global.quiet);
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => ExitCode::from(failure::report(&error)),
    }
}

fn run(cli: Cli) -> Result<()> {
    let global = cli.global;
    let root = global.root.clone().map_or_else(Root::system, Root::at);
    match cli
        .verb
        .unwrap_or_else(|| Verb::Status(cli::Status::default()))
    {
        Verb::Status(args) => run_status(&root, &global, args),
        Verb::Enable(args) => {
            let device = target::device(&root, &args.device)?;
            let plan = device::enable(
                &root,
                &device,
                args.nr_requests,
                args.manner.runtime,
                global.modprobe.clone(),
            )
            .with_context(|| format!("cannot enable disktime on {}", device.name))?;
            let done = if plan.is_empty() {
                "disktime was already active"
            } else {
                "disktime is active"
            };
            let lasts = if args.manner.runtime {
                "until reboot or disable"
            } else {
                "now and after each boot"
            };
            carry_out(
                &global,
                "enable",
                args.manner.dry_run,
                &plan,
                device_name(&device),
            )
            .with_context(|| format!("cannot enable disktime on {}", device.name))?;
            if !args.manner.dry_run {
                talk::note(&format!("{done} on {}, {lasts}", device.name));
            }
            Ok(())
        }
        Verb::Disable(args) => {
            let device = target::device(&root, &args.device)?;
            let plan = device::disable(&root, &device, args.manner.runtime)?;
            carry_out(
                &global,
                "disable",
                args.manner.dry_run,
                &plan,
                device_name(&device),
            )
            .with_context(|| format!("cannot disable disktime on {}", device.name))?;
            if !args.manner.dry_run {
                talk::note(&format!(
                    "{} runs {} now",
                    device.name,
                    device.schedulers()?.current
                ));
            }
            Ok(())
        }
        Verb::Set(args) => {
            let (plan, what, name) = match target::target(&root, &args.target)? {
                Target::Cgroup(cgroup, _) => {
                    let plan = group::set(
                        &root,
                        &cgroup,
                        &args.pairs,
                        args.device.as_deref(),
                        args.manner.runtime,
                    )?;
                    (plan, json!({ "cgroup": cgroup.path }), cgroup.path)
                }
                Target::Device(found) => {
                    if args.device.is_some() {
                        return Err(failure(
                            Exit::Usage,
                            "--device is for cgroups, and the target is a disk",
                        )
                        .hint("leave --device out")
                        .into());
                    }
                    let device = found.device;
                    let plan = device::set(&root, &device, &args.pairs, args.manner.runtime)?;
                    (plan, device_name(&device), device.name)
                }
            };
            carry_out(&global, "set", args.manner.dry_run, &plan, what)
                .with_context(|| format!("cannot set {name}"))
        }
        Verb::Get(args) => run_get(&root, &global, &args),
        Verb::Apply(args) => run_apply(&root, &global, args.dry_run),
        Verb::Bench(args) => bench::run(&args.args),
        Verb::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut Cli::command(), "disktime", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
        Verb::Man(args) => std::fs::create_dir_all(&args.folder)
            .and_then(|()| clap_mangen::generate_to(Cli::command(), &args.folder))
            .with_context(|| format!("cannot write man pages to {}", args.folder.display())),
    }
}

/// Prints data. A reader that has seen enough is no error.
fn print(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to stdout")
        }
        _ => Ok(()),
    }
}

/// Makes the changes of a plan and says so on stdout in the form asked for.
fn carry_out(
    global: &Global,
    verb: &str,
    dry_run: bool,
    plan: &Plan,
    target: serde_json::Value,
) -> Result<()> {
    check_form(global, verb)?;
    if !dry_run {
        plan.run()?;
    }
    match global.form() {
        Form::Text if dry_run => print(&plan.transcript()),
        Form::Text => Ok(()),
        _ => print(&(change_json(verb, dry_run, plan, target).to_string() + "\n")),
    }
}

fn change_json(
    verb: &str,
    dry_run: bool,
    plan: &Plan,
    target: serde_json::Value,
) -> serde_json::Value {
    json!({
        "disktime_change": 1, "verb": verb, "target": target, "dry_run": dry_run, "writes": plan.writes(),
        "transcript": plan.transcript(),
    })
}

fn device_name(device: &Device) -> serde_json::Value {
    json!({ "device": device.name, "devno": device.devno.to_string() })
}

/// Refuses the forms that only `status` has.
fn check_form(global: &Global, verb: &str) -> Result<()> {
    match global.form() {
        Form::Csv | Form::Openmetrics => Err(no_such_form(verb).into()),
        _ => Ok(()),
    }
}

fn no_such_form(verb: &str) -> failure::Failure {
    failure(Exit::Usage, format!("{verb} has no output of that form"))
        .hint("it has text, json and jsonl")
}

fn run_status(root: &Root, global: &Global, args: cli::Status) -> Result<()> {
    let form = global.form();
    if form == Form::Openmetrics && args.interval.is_some() {
        return Err(failure(
            Exit::Usage,
            "OpenMetrics counters are totals: they have no interval",
        )
        .hint("leave --interval out, and let the data base take rates")
        .into());
    }
    let blocks = Blocks::new(root);
    let mut only: Vec<Device> = Vec::new();
    for asked in &args.devices {
        let found = blocks.resolve(asked)?;
        if !found.steps.is_empty() {
            talk::note(&target::describe_device(&found));
        }
        if !only.contains(&found.device) {
            only.push(found.device);
        }
    }
    let mut devices = status::collect(root, &only, args.interval, wait)?;
    if only.is_empty() && !args.all {
        devices.retain(|device| device.supported && (device.bytes != Some(0) || device.active()));
    }
    let look = render::Look {
        terminal: std::io::stdout().is_terminal(),
        all: args.all,
    };
    print(&match form {
        Form::Text => render::text(&devices, look),
        Form::Json => render::json(&devices)?,
        Form::Jsonl => render::jsonl(&devices)?,
        Form::Csv => render::csv(&devices)?,
        Form::Openmetrics => render::openmetrics(&devices),
    })?;
    if form == Form::Text && !args.all {
        match render::left_out(&devices) {
            0 => {}
            1 => talk::note("one silent group is not shown (--all shows it)"),
            n => talk::note(&format!(
                "{n} silent groups are not shown (--all shows them)"
            )),
        }
    }
    for device in devices.iter().filter(|device| device.active()) {
        if let Some(health) = device
            .iosched
            .get("health")
            .filter(|health| *health != "ok")
        {
            talk::warning(&format!("{} does not share: {health}", device.name));
            talk::hint(&format!("disktime set {} health=rearm", device.name));
        }
    }
    // Asked for by name, a disk without disktime is a failure; the bare call only shows what there is.
    if let Some(device) = only
        .iter()
        .find(|only| devices.iter().any(|d| d.name == only.name && !d.active()))
    {
        return Err(device::not_active(device).into());
    }
    if devices.iter().all(|device| !device.active()) {
        talk::note("disktime is not active on any disk");
        // The disk that most probably is meant.
        match devices
            .iter()
            .filter(|device| device.supported)
            .max_by_key(|device| device.bytes)
        {
            Some(device) => talk::hint(&format!("disktime enable {}", device.name)),
            None => {
                talk::hint("disktime status --all shows also devices that cannot have a scheduler")
            }
        }
    }
    Ok(())
}

/// Waits for so long, or until Ctrl-C: what was measured by then is shown.
fn wait(interval: Duration) {
    /// From here on a wait is shown.
    const LONG: Duration = Duration::from_secs(2);
    let (sender, interrupted) = mpsc::channel();
    // Without a handler Ctrl-C ends the command, which is what it did anyway.
    let _ = ctrlc::set_handler(move || sender.send(()).unwrap_or_default());
    let start = Instant::now();
    let terminal = std::io::stderr().is_terminal();
    let bar = (terminal && interval > LONG).then(|| {
        let bar =
            indicatif::ProgressBar::new(u64::try_from(interval.as_millis()).unwrap_or(u64::MAX));
        let style = indicatif::ProgressStyle::with_template(
            "measuring {bar:30} {percent} %, {eta} to go (Ctrl-C: show it now)",
        );
        bar.with_style(style.unwrap_or_else(|_| indicatif::ProgressStyle::default_bar()))
    });
    if !terminal && interval > LONG {
        talk::note(&format!("measuring for {:.0} s", interval.as_secs_f64()));
    }
    loop {
        let left = interval.saturating_sub(start.elapsed());
        if left.is_zero() {
            break;
        }
        match interrupted.recv_timeout(left.min(Duration::from_millis(100))) {
            Ok(()) => {
                talk::note(&format!(
                    "stopped after {:.1} s",
                    start.elapsed().as_secs_f64()
                ));
                break;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            // No handler could be set.
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                std::thread::sleep(left.min(Duration::from_millis(100)))
            }
        }
        if let Some(bar) = &bar {
            bar.set_position(u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
}

fn run_get(root: &Root, global: &Global, args: &cli::Get) -> Result<()> {
    check_form(global, "get")?;
    let form = global.form();
    let (what, mut pairs) = match target::target(root, &args.target)? {
        Target::Cgroup(cgroup, _) => {
            let mut report = group::get(root, &cgroup)?;
            if !args.settings {
                report.settings.append(&mut report.counters);
            }
            (json!({ "cgroup": cgroup.path }), report.settings)
        }
        Target::Device(found) => {
            let mut pairs = device::get(&found.device)?;
            if args.settings {
                pairs.retain(|(key, _)| key != "health");
            }
            (device_name(&found.device), pairs)
        }
    };
    let is_key = |asked: &str, key: &str| {
        asked == key || key.split_once('@').is_some_and(|(base, _)| base == asked)
    };
    if let Some(absent) = args
        .keys
        .iter()
        .find(|asked| !pairs.iter().any(|(key, _)| is_key(asked, key)))
    {
        let error = failure(Exit::NotFound, format!("{} has no '{absent}'", args.target));
        return Err(
            match failure::nearest(absent, pairs.iter().map(|(key, _)| key.as_str())) {
                Some(near) => error.hint(format!("did you mean {near}?")),
                None => error.hint("without a key, get prints all there is"),
            }
            .into(),
        );
    }
    pairs.retain(|(key, _)| {
        args.keys.is_empty() || args.keys.iter().any(|asked| is_key(asked, key))
    });
    if form == Form::Text {
        let lines: Vec<String> = pairs
            .iter()
            .map(|(key, value)| format!("{key}={}\n", plan::quote(value)))
            .collect();
        return print(&lines.concat());
    }
    let values: serde_json::Map<String, serde_json::Value> = pairs
        .into_iter()
        .map(|(key, value)| {
            let value = value
                .parse::<u64>()
                .map_or_else(|_| json!(value), |number| json!(number));
            (key, value)
        })
        .collect();
    print(&(json!({ "disktime_get": 1, "target": what, "values": values }).to_string() + "\n"))
}

fn run_apply(root: &Root, global: &Global, dry_run: bool) -> Result<()> {
    check_form(global, "apply")?;
    let mut first_error = None;
    let mut changes = Vec::new();
    let mut transcript = String::new();
    // One that fails must not keep the others from their settings.
    let mut attempt = |name: &str, target: serde_json::Value, plan: Result<Plan>| {
        let result = plan.and_then(|plan| {
            if !dry_run {
                plan.run()?;
            }
            transcript.push_str(&plan.transcript());
            changes.push(change_json("apply", dry_run, &plan, target));
            Ok(())
        });
        if let Err(error) = result.with_context(|| format!("cannot apply the settings of {name}")) {
            match first_error {
                None => first_error = Some(error),
                Some(_) => talk::warning(&format!("{error:#}")),
            }
        }
    };
    let disks = Blocks::new(root).all()?;
    for (_, config) in persist::devices(root)? {
        let Some(disk) = disks
            .iter()
            .find(|disk| disk.identities().contains(&config.id))
        else {
            talk::note(&format!(
                "{} ({}) is not present, skipped",
                config.name, config.id
            ));
            continue;
        };
        attempt(
            &disk.name,
            device_name(disk),
            device::apply(root, disk, &config, global.modprobe.clone()),
        );
    }
    let groups = persist::groups(root)?;
    if !groups.is_empty() {
        let cgroups = Cgroups::open(root)?;
        for (_, config) in groups {
            match cgroups.get(&config.cgroup) {
                Ok(cgroup) => {
                    attempt(
                        &config.cgroup,
                        json!({ "cgroup": cgroup.path }),
                        group::apply(root, &cgroup, &config),
                    );
                }
                Err(_) => talk::note(&format!("{} does not exist, skipped", config.cgroup)),
            }
        }
    }
    match global.form() {
        Form::Text if dry_run => print(&transcript)?,
        Form::Text => {}
        Form::Jsonl => print(
            &changes
                .iter()
                .map(|change| format!("{change}\n"))
                .collect::<String>(),
        )?,
        _ => print(&(json!({ "disktime_apply": 1, "changes": changes }).to_string() + "\n"))?,
    }
    first_error.map_or(Ok(()), Err)
}
