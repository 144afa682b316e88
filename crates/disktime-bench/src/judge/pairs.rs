//! Two equal groups on flash, whatever each of them does: small or large, reads or writes, few or
//! many at a time. Half of the drive for each is what the weights promise, and half of what each does
//! alone is what is left of a drive on which nothing but time is shared. Writes and reads disturb
//! each other beyond that, so that a pair is judged beside the best that a fixed division of the
//! device's slots can do for it ([`Split`]).

use anyhow::{Error, Result};
use disktime_core::Dir;
use disktime_model::{Model, Op, Spec};
use disktime_sim::{
    Charge, Controller, Dirty, Group, Mix, Observer, Op as Seen, Pattern, Proc, Setup, Sim,
};
use serde::Serialize;

use super::direct::{Had, Limits, Load, Order, Window, drive};
use super::{Spread, Task, Verdict, each, table};
use crate::results::jain;
use crate::sim::WAKE_NS;

/// The drives, each at its own speed.
pub(super) const DISKS: [Model; 3] = [Model::PlainSsd, Model::SataSsd, Model::Nvme];
/// Each load has a region of its own.
const REGION_SECTORS: u64 = 8 << 21;
/// As many as all loads together have outstanding, and more.
const NR_REQUESTS: u32 = 1024;
/// Slower than this is worse than sharing nothing but time.
const SLOWDOWN: f64 = 2.15;
/// Or than this by the best fixed division of the slots.
const BY_SPLIT: f64 = 1.05;
/// The least that Jain's index may be where both fill the drive.
const JAIN: f64 = 0.99;
/// Who does this part of what more at a time would do fills the drive.
const FULL: f64 = 0.95;

/// What one side does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    pub(super) write: bool,
    pub(super) kib: u32,
    pub(super) depth: u32,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dir = if self.write { 'w' } else { 'r' };
        write!(f, "{}{dir}{}", self.kib, self.depth)
    }
}

impl Kind {
    /// All that are paired.
    fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for depth in [8, 256] {
            all.extend(Self::of_depth(depth));
        }
        all
    }

    /// Small and large, reads and writes.
    pub(super) fn of_depth(depth: u32) -> Vec<Self> {
        let kinds = [(false, 4), (true, 4), (false, 128), (true, 128)];
        kinds
            .map(|(write, kib)| Self { write, kib, depth })
            .to_vec()
    }

    fn from(side: usize) -> u64 {
        side as u64 * REGION_SECTORS
    }

    pub(super) fn load(self, side: usize) -> Load {
        Load {
            op: if self.write { Op::Write } else { Op::Read },
            sectors: self.kib * 2,
            depth: self.depth,
            from: Self::from(side),
            len: REGION_SECTORS,
        }
    }

    fn proc(self, side: usize) -> Proc {
        let from = Self::from(side);
        Proc {
            pattern: Pattern::Random,
            mix: if self.write { Mix::Write } else { Mix::Read },
            sectors: self.kib * 2,
            depth: self.depth,
            ..Proc::new(side, from, from + REGION_SECTORS)
        }
    }
}

/// What is looked at on a drive: faster ones show as much in less, once their caches are full and
/// collections are under way.
pub(super) fn window(model: Model) -> Window {
    let ms = |settle: u64, ns: u64| Window {
        settle_ns: settle * 1_000_000,
        ns: ns * 1_000_000,
    };
    match model {
        Model::Nvme => ms(400, 400),
        _ => ms(200, 1_000),
    }
}

/// The same for one of many.
fn brief(model: Model) -> Window {
    let Window { settle_ns, ns } = window(model);
    Window {
        settle_ns,
        ns: ns / 2,
    }
}

fn disk(model: Model) -> Result<Box<dyn disktime_model::Disk>> {
    Spec::new(model).make().map_err(Error::msg)
}

/// Counts what processes have from an instant on.
pub(super) struct Counter {
    from: u64,
    had: Vec<Had>,
}

impl Observer for Counter {
    fn issued(&mut self, _: &Seen, _: u64) {}

    fn completed(&mut self, op: &Seen, at: u64) {
        debug_assert!(matches!(op.dir, Dir::Read | Dir::Write));
        if at > self.from {
            self.had[op.proc].count(op.asked, at);
        }
    }
}

/// Both kinds in groups of equal weight under disktime.
pub(super) fn shared(
    model: Model,
    kinds: [Kind; 2],
    charge: Charge,
    window: Window,
    seed: u64,
) -> Result<Vec<Had>> {
    let mut controller = Controller::DISKTIME;
    if let Controller::Disktime { charge: own, .. } = &mut controller {
        *own = charge;
    }
    let setup = Setup {
        disk: disk(model)?,
        controller,
        nr_requests: Some(NR_REQUESTS),
        groups: vec![Group::default(); 2],
        procs: vec![kinds[0].proc(0), kinds[1].proc(1)],
        dirty: Dirty::default(),
        wake_ns: WAKE_NS,
        seed,
        checked: false,
    };
    let counter = Counter {
        from: window.settle_ns,
        had: vec![Had::default(); 2],
    };
    let mut sim = Sim::new(setup, counter)?;
    sim.start(0);
    sim.start(1);
    sim.run(window.settle_ns + window.ns)?;
    Ok(sim.observer.had)
}

/// I/Os that it does alone, in order of arrival.
pub(super) fn alone(model: Model, kind: Kind, window: Window) -> Result<Had> {
    let mut disk = disk(model)?;
    let all = disk.slots();
    let limits = Limits {
        each: &[all],
        all,
        order: Order::InTurn,
    };
    let had = drive(&mut *disk, &[kind.load(0)], limits, window, WAKE_NS, 1);
    Ok(had.into_iter().next().unwrap_or_default())
}

/// A fixed division of the slots, and the slowdown of who is worse off with it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Split {
    /// The larger slowdown of both.
    pub slowdown: f64,
    /// How many of each side are in the device at most.
    pub depths: [u32; 2],
}

/// The division under which the side that is worse off is best off, of those in powers of 2.
pub(super) fn best_split(
    slots: u32,
    most: [u32; 2],
    mut slowdowns: impl FnMut([u32; 2]) -> Result<[f64; 2]>,
) -> Result<Option<Split>> {
    let upto = |most: u32| {
        (0..9)
            .map(|n| 1 << n)
            .take_while(move |&depth| depth <= most)
    };
    let mut best: Option<Split> = None;
    for first in upto(most[0]) {
        for second in upto(most[1].min(slots.saturating_sub(first))) {
            let depths = [first, second];
            let [a, b] = slowdowns(depths)?;
            let slowdown = a.max(b);
            if best.is_none_or(|best| slowdown < best.slowdown) {
                best = Some(Split { slowdown, depths });
            }
        }
    }
    Ok(best)
}

/// One pair on one drive, over all seeds.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The drive.
    pub disk: String,
    /// What each side does: kilobytes, r or w, how many at a time.
    pub pair: [String; 2],
    /// Of which each stands for a run.
    pub seeds: Vec<u64>,
    /// By how much each side is slower than alone.
    pub slowdown: [Spread; 2],
    /// The same with charges by the model's account.
    pub slowdown_true: [Spread; 2],
    /// Of the progress of both, each by what it does alone.
    pub jain: Spread,
    /// Whether both fill the drive, so that Jain's index must be near 1.
    pub saturated: bool,
    /// The best that a fixed division of the slots does.
    pub split: Option<Split>,
    /// What must hold.
    pub verdicts: Vec<Verdict>,
}

/// A pair before its best split is known.
struct Pair {
    model: Model,
    kinds: [Kind; 2],
    /// I/Os a second of each alone.
    alone: [f64; 2],
    saturated: bool,
    /// By seed.
    slowdowns: Vec<[f64; 2]>,
    slowdowns_true: Vec<[f64; 2]>,
}

impl Pair {
    fn worst(&self) -> f64 {
        let all = self.slowdowns.iter().flatten().copied();
        all.fold(0.0, f64::max)
    }

    fn split(&self) -> Result<Option<Split>> {
        let window = brief(self.model);
        let slots = disk(self.model)?.slots();
        let loads = [self.kinds[0].load(0), self.kinds[1].load(1)];
        let depths = self.kinds.map(|kind| kind.depth);
        best_split(slots, depths, |each| {
            let limits = Limits {
                each: &each,
                all: slots,
                order: Order::InTurn,
            };
            let had = drive(&mut *disk(self.model)?, &loads, limits, window, WAKE_NS, 1);
            Ok([0, 1].map(|side| self.alone[side] / rate(&had[side], window)))
        })
    }

    fn row(&self, split: Option<Split>, seeds: &[u64]) -> Option<Row> {
        let spreads = |slowdowns: &[[f64; 2]]| {
            let side = |n: usize| {
                let values: Vec<f64> = slowdowns.iter().map(|both| both[n]).collect();
                Spread::of_small(&values)
            };
            Some([side(0)?, side(1)?])
        };
        let progress = |both: &[f64; 2]| jain(&both.map(|slowdown| 1.0 / slowdown));
        let indices: Vec<f64> = self.slowdowns.iter().map(progress).collect();
        let jain = Spread::of_large(&indices)?;
        let limit = split.map_or(SLOWDOWN, |split| SLOWDOWN.max(BY_SPLIT * split.slowdown));
        let mut verdicts = vec![Verdict::at_most("slowdown", self.worst(), limit)];
        if self.saturated {
            verdicts.push(Verdict::at_least("Jain's index", jain.worst, JAIN));
        }
        Some(Row {
            disk: self.model.to_string(),
            pair: self.kinds.map(|kind| kind.to_string()),
            seeds: seeds.to_vec(),
            slowdown: spreads(&self.slowdowns)?,
            slowdown_true: spreads(&self.slowdowns_true)?,
            jain,
            saturated: self.saturated,
            split,
            verdicts,
        })
    }
}

pub(super) fn rate(had: &Had, window: Window) -> f64 {
    had.ios as f64 * 1e9 / window.ns as f64
}

/// Judges all pairs.
pub(super) fn judge(task: &Task) -> Result<Vec<Row>> {
    let kinds = Kind::all();
    let mut pairs = Vec::new();
    for model in DISKS {
        for (n, &a) in kinds.iter().enumerate() {
            for &b in &kinds[n..] {
                if task.wants(&format!("pairs/{model}/{a}+{b}")) {
                    pairs.push((model, [a, b]));
                }
            }
        }
    }
    let needed: Vec<(Model, Kind)> = DISKS
        .into_iter()
        .filter(|model| pairs.iter().any(|pair| pair.0 == *model))
        .flat_map(|model| kinds.iter().map(move |&kind| (model, kind)))
        .collect();
    let singles = each(&needed, |&(model, kind)| alone(model, kind, window(model)))?;
    let mut rates = Vec::new();
    for (single, &(model, kind)) in singles.into_iter().zip(&needed) {
        rates.push(((model, kind), rate(&single?, window(model))));
    }
    let rate_of = |model: Model, kind: Kind| {
        let found = rates.iter().find(|(of, _)| *of == (model, kind));
        found.map_or(0.0, |(_, rate)| *rate)
    };
    let mut runs = Vec::new();
    for pair in &pairs {
        for charge in [Charge::Own, Charge::True] {
            runs.extend(task.seeds.iter().map(|&seed| (*pair, charge, seed)));
        }
    }
    let done = each(&runs, |&((model, kinds), charge, seed)| {
        shared(model, kinds, charge, window(model), seed)
    })?;
    let mut done = done.into_iter();
    let mut judged = Vec::new();
    for &(model, kinds) in &pairs {
        let alone = kinds.map(|kind| rate_of(model, kind));
        let mut take = || -> Result<Vec<[f64; 2]>> {
            let mut slowdowns = Vec::new();
            for had in done.by_ref().take(task.seeds.len()) {
                let had = had?;
                slowdowns.push([0, 1].map(|side| alone[side] / rate(&had[side], window(model))));
            }
            Ok(slowdowns)
        };
        let (slowdowns, slowdowns_true) = (take()?, take()?);
        let fills = |kind: Kind| {
            let most = Kind { depth: 256, ..kind };
            rate_of(model, kind) >= FULL * rate_of(model, most)
        };
        judged.push(Pair {
            model,
            kinds,
            alone,
            saturated: kinds.into_iter().all(fills),
            slowdowns,
            slowdowns_true,
        });
    }
    let splits = each(&judged, Pair::split)?;
    let mut rows = Vec::new();
    for (pair, split) in judged.iter().zip(splits) {
        rows.extend(pair.row(split?, &task.seeds));
    }
    Ok(rows)
}

/// Rows as a table.
pub(super) fn show(rows: &[&Row]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let head = [
        "disk",
        "first",
        "second",
        "slower",
        "slower",
        "told true",
        "",
        "best split",
        "of",
        "limit",
        "",
        "Jain",
        "",
    ];
    let ok = |verdict: Option<&Verdict>| verdict.map_or("-", Verdict::word);
    let lines = rows.iter().map(|row| {
        let split = row.split.map(|split| {
            let [a, b] = split.depths;
            (format!("{:.2}", split.slowdown), format!("{a}+{b}"))
        });
        let (slowdown, depths) = split.unwrap_or_else(|| ("-".into(), "-".into()));
        vec![
            row.disk.clone(),
            row.pair[0].clone(),
            row.pair[1].clone(),
            row.slowdown[0].show(2),
            row.slowdown[1].show(2),
            format!("{:.2}", row.slowdown_true[0].median),
            format!("{:.2}", row.slowdown_true[1].median),
            slowdown,
            depths,
            format!("{:.2}", row.verdicts[0].limit),
            ok(row.verdicts.first()).into(),
            format!("{:.4}", row.jain.worst),
            ok(row.verdicts.get(1)).into(),
        ]
    });
    format!(
        "\nPairs of equal weight on flash (KB, r or w, how many at a time): by how much each side is slower than alone, worst\n\
         seed and median; with charges by the model's account, medians; the same of the worse side under the best fixed division of the slots, and that division.\n{}",
        table(&head, lines.collect(), 3)
    )
}

#[cfg(test)]
mod tests {
    use disktime_model::servers::{Inside, Params, Servers, Service};

    use super::*;

    #[test]
    fn jain_s_index_is_one_for_equals_and_least_for_one_that_has_all() {
        assert!((jain(&[0.3, 0.3]) - 1.0).abs() < 1e-12);
        assert!((jain(&[1.0, 0.0]) - 0.5).abs() < 1e-12);
        assert!((jain(&[3.0, 1.0]) - 0.8).abs() < 1e-12);
        assert_eq!(jain(&[0.0, 0.0]), 0.0);
    }

    #[test]
    fn best_split_makes_up_for_what_requests_take() {
        // In the place of the first's requests one of the second's takes four times as long: with d1
        // and d2 in the device the first has d1 / (d1 + 4 d2) of it.
        let unlike = |[a, b]: [u32; 2]| {
            let (a, b) = (f64::from(a), 4.0 * f64::from(b));
            Ok([(a + b) / a, (a + b) / b])
        };
        let split = best_split(32, [256, 256], unlike).unwrap().unwrap();
        assert_eq!((split.slowdown, split.depths), (2.0, [4, 1]));
        // No more than it has outstanding, and no more together than there are slots.
        let split = best_split(32, [2, 256], unlike).unwrap().unwrap();
        assert_eq!((split.slowdown, split.depths), (3.0, [2, 1]));
        let split = best_split(3, [256, 256], unlike).unwrap().unwrap();
        assert_eq!(split.depths, [2, 1]);
        assert_eq!(best_split(1, [8, 8], unlike).unwrap(), None);
    }

    #[test]
    fn best_split_of_equal_servers_is_halves() {
        let params = Params {
            sectors: 2 * REGION_SECTORS,
            servers: 4,
            slots: 32,
            service: Service::constant(1_000_000),
            inside: Inside::Fifo,
            rotational: false,
            seed: 1,
        };
        let window = window(Model::PlainSsd);
        let loads = [0, 1].map(|side| Kind::of_depth(256)[0].load(side));
        let had = |each: [u32; 2], all| {
            let mut disk = Servers::new(params).unwrap();
            let limits = Limits {
                each: &each,
                all,
                order: Order::InTurn,
            };
            drive(&mut disk, &loads, limits, window, 0, 1)
        };
        let split = best_split(32, [256, 256], |each| {
            let had = had(each, 32);
            Ok([0, 1].map(|side| 4_000.0 / rate(&had[side], window)))
        });
        let split = split.unwrap().unwrap();
        // The first that leaves no server idle.
        assert_eq!(split.depths, [2, 2]);
        assert!((split.slowdown - 2.0).abs() < 0.01, "{split:?}");
        // Two servers of four do not do for one of two halves.
        assert_eq!(had([1, 1], 2)[0].ios, 1_000);
    }

    #[test]
    fn best_split_of_a_flash_drive_is_found_by_driving_it() {
        let kind = |kib| Kind {
            write: false,
            kib,
            depth: 256,
        };
        let kinds = [kind(4), kind(128)];
        let model = Model::PlainSsd;
        let alone = kinds.map(|kind| {
            let had = alone(model, kind, window(model)).unwrap();
            rate(&had, window(model))
        });
        let pair = Pair {
            model,
            kinds,
            alone,
            saturated: true,
            slowdowns: vec![[3.0, 1.5]],
            slowdowns_true: vec![[2.0, 2.0]],
        };
        let split = pair.split().unwrap().unwrap();
        // A large read keeps eight channels busy: one of them weighs as much as several small ones.
        assert!(split.depths[0] > split.depths[1], "{split:?}");
        assert!((1.5..2.5).contains(&split.slowdown), "{split:?}");
        let row = pair.row(Some(split), &[1]).unwrap();
        let ok: Vec<bool> = row.verdicts.iter().map(|v| v.ok).collect();
        assert_eq!(ok, [false, false]);
    }

    #[test]
    fn a_slow_pair_is_fine_where_no_split_does_better() {
        let kind = Kind::all()[0];
        let pair = |slowdown| Pair {
            model: Model::Nvme,
            kinds: [kind; 2],
            alone: [1.0; 2],
            saturated: false,
            slowdowns: vec![[2.0, slowdown], [1.0, 1.0]],
            slowdowns_true: vec![[2.0, 2.0]],
        };
        let ok = |slowdown, best: f64| {
            let split = Split {
                slowdown: best,
                depths: [1, 1],
            };
            pair(slowdown).row(Some(split), &[1, 2]).unwrap().verdicts[0].ok
        };
        assert!(ok(2.1, 1.0) && !ok(2.2, 1.0));
        assert!(ok(3.1, 3.0) && !ok(3.2, 3.0));
        assert_eq!(pair(2.0).row(None, &[1, 2]).unwrap().verdicts.len(), 1);
    }
}
