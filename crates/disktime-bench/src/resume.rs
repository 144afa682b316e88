//! Long measurements that can be stopped and gone on with: one file of results for each scenario, and
//! beside it what they depend on.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use disktime_bench::machine::Parts;
use disktime_bench::scenario::{On, Options, Scenario};
use serde_json::Value;

/// What results depend on: the scenario, how it is run, and who schedules: in a machine the modules,
/// in the simulator this program, which has the core in it.
fn key(file: &Path, options: &Options, parts: &Parts) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    let read =
        |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    read(file)?.hash(&mut hasher);
    format!("{options:?}").hash(&mut hasher);
    if options.on == On::Sim {
        read(&std::env::current_exe().context("cannot find this program")?)?.hash(&mut hasher);
    } else if options.on == On::Vm {
        parts.kernel.hash(&mut hasher);
        for name in ["disktime.ko", "disktime-iosched.ko"] {
            read(&parts.modules.join(name))?.hash(&mut hasher);
        }
    }
    Ok(format!("{:016x}\n", hasher.finish()))
}

/// The worst exit status that results stand for.
fn status(file: &Path) -> Result<u8> {
    let text = fs::read_to_string(file)?;
    for line in text.lines() {
        let result: Value = serde_json::from_str(line)?;
        let checks = result["checks"].as_array().into_iter().flatten();
        if checks.into_iter().any(|c| c["ok"] == Value::Bool(false)) {
            return Ok(6);
        }
    }
    Ok(0)
}

/// Measures what is not in `dir` yet; `files` are those of the scenarios. What fails does not keep
/// the others from being measured.
pub fn run(
    dir: &Path,
    files: &[PathBuf],
    scenarios: &[Scenario],
    options: &Options,
    parts: &Parts,
    mut measure: impl FnMut(&Scenario, &Path) -> Result<u8>,
) -> Result<u8> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let mut worst = 0;
    for (number, (file, scenario)) in files.iter().zip(scenarios).enumerate() {
        let name = scenario.name.get_ref();
        let (out, mark) = (
            dir.join(format!("{name}.jsonl")),
            dir.join(format!("{name}.key")),
        );
        let key = key(file, options, parts)?;
        let there = fs::read_to_string(&mark).is_ok_and(|old| old == key) && out.is_file();
        let place = format!("{} of {}, {name}", number + 1, files.len());
        let code = if there {
            eprintln!("{place}: measured before");
            status(&out)?
        } else {
            eprintln!("{place}");
            let _ = fs::remove_file(&mark);
            match measure(scenario, &out) {
                Ok(code @ (0 | 6)) => {
                    fs::write(&mark, &key)?;
                    code
                }
                Ok(code) => code,
                Err(e) => {
                    eprintln!("error: {name}: {e:#}");
                    1
                }
            }
        };
        if disktime_vm::cancelled() {
            eprintln!("the same command goes on from here");
            return Ok(130);
        }
        worst = match (worst, code) {
            (1, _) | (_, 0) => worst,
            (_, code) => code,
        };
    }
    Ok(worst)
}
