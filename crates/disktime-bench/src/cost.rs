//! io.cost's coefficients for a disk model, by the method of the kernel's own tool
//! (tools/cgroup/iocost_coef_gen.py): six loads one after the other, without a scheduler, of which
//! each is measured alone. The tool's loads at its defaults: blocks of 128 MiB one at a time for
//! bytes a second, and 64 requests of 4 KiB in flight for I/Os a second, sequential and random, on
//! 16 GiB. The kernel cuts the blocks into requests; here they are of 1 MiB, 128 in flight.

use std::fmt;

use anyhow::{Result, ensure};
use disktime_model::Spec;
use disktime_sim::{Controller, Dirty, Group, Mix, Pattern, Proc, Setup, Silent, Sim};

use crate::plan::{self, Plan};

/// What `io.cost.model` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Coefficients {
    /// Bytes a second, reading one after the other.
    pub rbps: u64,
    /// 4 KiB reads a second, one after the other.
    pub rseqiops: u64,
    /// 4 KiB reads a second, anywhere.
    pub rrandiops: u64,
    /// Bytes a second, writing one after the other.
    pub wbps: u64,
    /// 4 KiB writes a second, one after the other.
    pub wseqiops: u64,
    /// 4 KiB writes a second, anywhere.
    pub wrandiops: u64,
}

impl fmt::Display for Coefficients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rbps={} rseqiops={} rrandiops={} wbps={} wseqiops={} wrandiops={}",
            self.rbps, self.rseqiops, self.rrandiops, self.wbps, self.wseqiops, self.wrandiops
        )
    }
}

/// The tool's test file.
const FILE_SECTORS: u64 = 16 << 21;
/// A load is measured until it has done so many requests, of which the first tenth does not count.
const ENOUGH: u64 = 4000;
const STEP_NS: u64 = 100_000_000;
/// And no longer than the tool does.
const LIMIT_NS: u64 = 120_000_000_000;

/// I/Os a second of one load that is alone.
fn rate(spec: &Spec, pattern: Pattern, mix: Mix, sectors: u32, depth: u32) -> Result<f64> {
    let disk = spec.make().map_err(anyhow::Error::msg)?;
    let to = FILE_SECTORS.min(disk.sectors());
    let setup = Setup {
        disk,
        controller: Controller::Fifo,
        nr_requests: None,
        groups: vec![Group::default()],
        procs: vec![Proc {
            pattern,
            mix,
            sectors,
            depth,
            to,
            ..Proc::default()
        }],
        wake_ns: 0,
        dirty: Dirty::default(),
        seed: spec.seed,
        checked: false,
    };
    let mut sim = Sim::new(setup, Silent)?;
    sim.start(0);
    let done = |sim: &Sim| sim.tally(0).ios.iter().sum::<u64>();
    while done(&sim) < ENOUGH / 10 && sim.now() < LIMIT_NS {
        sim.run(sim.now() + STEP_NS)?;
    }
    let (from, at) = (done(&sim), sim.now());
    while done(&sim) < from + ENOUGH && sim.now() < LIMIT_NS {
        sim.run(sim.now() + STEP_NS)?;
    }
    ensure!(sim.now() > at, "{spec} does nothing");
    Ok((done(&sim) - from) as f64 * 1e9 / (sim.now() - at) as f64)
}

/// Measures a model.
pub fn fit(spec: &Spec) -> Result<Coefficients> {
    const MIB: u32 = 2048;
    const PAGE: u32 = 8;
    let bytes = |mix| {
        rate(spec, Pattern::Sequential, mix, MIB, 128).map(|r| (r * f64::from(MIB) * 512.0) as u64)
    };
    let ios = |pattern, mix| rate(spec, pattern, mix, PAGE, 64).map(|r| r.round() as u64);
    Ok(Coefficients {
        rbps: bytes(Mix::Read)?,
        rseqiops: ios(Pattern::Sequential, Mix::Read)?,
        rrandiops: ios(Pattern::Random, Mix::Read)?,
        wbps: bytes(Mix::Write)?,
        wseqiops: ios(Pattern::Sequential, Mix::Write)?,
        wrandiops: ios(Pattern::Random, Mix::Write)?,
    })
}

/// Gives the runs of a plan that need them their coefficients.
pub fn fill(plan: &mut Plan) -> Result<()> {
    let mut known: Vec<(Spec, String)> = Vec::new();
    let with_cost = |run: &&mut plan::Run| run.controller == plan::Controller::Iocost;
    for run in plan.runs.iter_mut().filter(with_cost) {
        let spec = Spec {
            // Only where it lies depends on the size, and the tool uses the first part.
            size_mib: None,
            ..run.disk
        };
        let found = known.iter().find(|(s, _)| *s == spec);
        let line = match found {
            Some((_, line)) => line.clone(),
            None => {
                let line = fit(&spec)?.to_string();
                known.push((spec, line.clone()));
                line
            }
        };
        run.cost_model = Some(line);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use disktime_model::Model;

    #[test]
    fn servers_cost_the_same_whatever_is_asked() {
        let spec = Spec::new(Model::Servers {
            servers: 8,
            service_ns: 4_000_000,
            rotational: false,
        });
        let fitted = fit(&spec).unwrap();
        for iops in [
            fitted.rseqiops,
            fitted.rrandiops,
            fitted.wseqiops,
            fitted.wrandiops,
        ] {
            assert!((1980..=2020).contains(&iops), "{fitted}");
        }
        assert!((1980..=2020).contains(&(fitted.rbps >> 20)), "{fitted}");
    }

    #[test]
    fn a_rotating_disk_is_slow_at_random() {
        let fitted = fit(&Spec::new(Model::St3250620as)).unwrap();
        // On a fifteenth of the disk seeks are short, and the nearest of 31 goes first.
        assert!((300..500).contains(&fitted.rrandiops), "{fitted}");
        assert!(fitted.wrandiops < fitted.rrandiops, "{fitted}");
        assert!(fitted.rseqiops > 20 * fitted.rrandiops, "{fitted}");
        // The first 16 GiB lie outside, where the sheet has 78 MB/s.
        assert!((70_000_000..80_000_000).contains(&fitted.rbps), "{fitted}");
    }
}
