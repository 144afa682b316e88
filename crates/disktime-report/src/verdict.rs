//! What follows from the numbers: where disktime loses, and whether the simulator tells the truth.

use std::collections::BTreeMap;

use crate::reduce::{Case, GroupRow, Measure, Row, Spread};

/// What disktime is not the best in.
#[derive(Debug, Clone, PartialEq)]
pub enum Loss {
    /// A peer's shares are nearer to what was promised.
    Share {
        /// The best one.
        peer: String,
        /// Its error, in points.
        theirs: f64,
        /// That of disktime.
        ours: f64,
    },
    /// A peer that is nearly as fair, or more so, does more.
    Throughput {
        /// The best one.
        peer: String,
        /// Its I/Os a second.
        theirs: f64,
        /// Those of disktime.
        ours: f64,
    },
}

/// Points that a peer's share error must be better by to be named.
pub const SHARE_MARGIN: f64 = 0.5;
/// Points that a peer's share error may be greater by for its throughput to be held against disktime.
pub const FAIR_MARGIN: f64 = 2.0;
/// Throughputs that differ by less are printed alike.
const RATE_MARGIN: f64 = 0.0005;

/// Where disktime is not the best in a case.
#[must_use]
pub fn losses(case: &Case, measure: Measure) -> Vec<Loss> {
    let mut losses = Vec::new();
    let Some((us, ours)) = case
        .contestants(measure)
        .find(|(r, _)| r.controller == "disktime")
    else {
        return losses;
    };
    let peers = || {
        case.contestants(measure)
            .filter(|(r, _)| r.controller != "disktime")
    };
    if let Some((peer, theirs)) = peers().min_by(|a, b| a.1.total_cmp(&b.1)) {
        if ours > theirs + SHARE_MARGIN {
            losses.push(Loss::Share {
                peer: peer.controller.clone(),
                theirs,
                ours,
            });
        }
    }
    let rate = |row: &Row| row.ios_per_s.map(|s| s.median);
    let fastest = peers()
        .filter(|(_, theirs)| *theirs <= ours + FAIR_MARGIN)
        .filter_map(|(row, _)| Some((row, rate(row)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    if let (Some((peer, theirs)), Some(ours)) = (fastest, rate(us)) {
        if ours < theirs * (1.0 - RATE_MARGIN) {
            losses.push(Loss::Throughput {
                peer: peer.controller.clone(),
                theirs,
                ours,
            });
        }
    }
    losses
}

/// Points that a simulated share may be off the measured one.
pub const AGREEMENT: f64 = 1.5;

/// A group's share simulated and measured.
#[derive(Debug, Clone, PartialEq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Pair {
    pub group: String,
    pub simulated: f64,
    pub measured: f64,
}

impl Pair {
    /// Measured less simulated, in points.
    #[must_use]
    pub fn points(&self) -> f64 {
        (self.measured - self.simulated) * 100.0
    }
}

/// The simulator beside a machine, of disktime.
#[derive(Debug, Clone)]
pub struct Agreement<'a> {
    /// The case on the machine.
    pub case: &'a Case,
    /// Groups' `got`.
    pub got: Vec<Pair>,
    /// Groups' true shares, where both know them.
    pub truth: Vec<Pair>,
}

/// The greatest difference, in points.
#[must_use]
pub fn farthest(pairs: &[Pair]) -> Option<f64> {
    pairs
        .iter()
        .map(|p| p.points().abs())
        .max_by(f64::total_cmp)
}

fn pairs(sim: &Row, real: &Row, value: impl Fn(&GroupRow) -> Option<Spread>) -> Vec<Pair> {
    let pair = |group: &GroupRow| {
        Some(Pair {
            group: group.name.clone(),
            simulated: value(group)?.median,
            measured: value(real.group(&group.name)?)?.median,
        })
    };
    sim.groups.iter().filter_map(pair).collect()
}

/// All cases of several groups that ran in the simulator and elsewhere.
#[must_use]
pub fn agreements(cases: &[Case]) -> Vec<Agreement<'_>> {
    let key = |c: &Case| (c.scenario.clone(), c.variant.clone(), c.phase.clone());
    let ours = |c: &'_ Case| c.row("disktime").filter(|r| r.counts).cloned();
    let sims: BTreeMap<_, _> = cases
        .iter()
        .filter(|c| c.on == "sim")
        .filter_map(|c| Some((key(c), ours(c)?)))
        .collect();
    cases
        .iter()
        .filter(|c| c.on != "sim")
        .filter_map(|case| {
            let (sim, real) = (
                sims.get(&key(case))?,
                case.row("disktime").filter(|r| r.counts)?,
            );
            let got = pairs(sim, real, |g| g.got);
            let truth = pairs(sim, real, |g| g.truth);
            are_shares(&got).then_some(Agreement { case, got, truth })
        })
        .collect()
}

/// Who is alone has all of it, wherever that is.
fn are_shares(pairs: &[Pair]) -> bool {
    let has_any = |p: &&Pair| p.simulated > 0.0 || p.measured > 0.0;
    pairs.iter().filter(has_any).count() > 1
}
