//! One reader that waits for each of its 4 KB, beside 256 requests of somebody else: its latency,
//! and what that costs the other. How many requests are in the device decides both, so that there is
//! no best, but a front of what can be had: for each total depth, the reader always first. A point is
//! judged by its distance from that.

use anyhow::{Error, Result};
use disktime_model::{Model, Spec};
use disktime_sim::Charge;
use serde::Serialize;

use super::direct::{Had, Limits, Order, Window, drive};
use super::pairs::{DISKS, Kind, alone, rate, shared};
use super::{Spread, Task, Verdict, each, table};
use crate::sim::WAKE_NS;

const READER: Kind = Kind {
    write: false,
    kib: 4,
    depth: 1,
};
/// Total depths of the front, and all between them that are half as large again.
const DEPTHS: [u32; 20] = [
    1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
];

/// Of what the neighbour does alone.
const ENOUGH: f64 = 0.9;

/// How far from the front a point may be.
const FACTOR: f64 = 1.1;
/// Two values are the same if they differ by less than this part.
const SAME: f64 = 0.01;

fn window(model: Model) -> Window {
    let ms = |settle: u64, ns: u64| Window {
        settle_ns: settle * 1_000_000,
        ns: ns * 1_000_000,
    };
    match model {
        Model::Nvme => ms(400, 500),
        _ => ms(200, 2_000),
    }
}

/// What the reader has, and what is left to its neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Of the reader, in microseconds.
    pub mean_us: f64,
    /// Half of the reads take no longer.
    pub p50_us: f64,
    /// 99 of 100 reads take no longer.
    pub p99_us: f64,
    /// The neighbour's I/Os, by what it does alone.
    pub neighbour: f64,
}

impl Point {
    fn of(had: &[Had], window: Window, alone: f64) -> Option<Self> {
        let [reader, neighbour] = had else {
            return None;
        };
        let percentiles = reader.latencies.percentiles()?;
        Some(Self {
            mean_us: reader.latency_ns as f64 / reader.ios as f64 / 1e3,
            p50_us: percentiles.p50 as f64 / 1e3,
            p99_us: percentiles.p99 as f64 / 1e3,
            neighbour: rate(neighbour, window) / alone,
        })
    }

    /// How much worse it is than another, in each of the three.
    fn each_by(&self, other: &Self) -> [f64; 3] {
        [
            self.mean_us / other.mean_us,
            self.p99_us / other.p99_us,
            other.neighbour / self.neighbour,
        ]
    }

    /// The same where it is worst beside it.
    fn by(&self, other: &Self) -> f64 {
        self.each_by(other).into_iter().fold(0.0, f64::max)
    }
}

/// The least factor by which a point is worse than some point of the front in mean, P99 and what is
/// left to the neighbour; below 1 it is better in all three. And that point's place.
fn distance(point: &Point, front: &[Point]) -> Option<(f64, usize)> {
    let all = front.iter().enumerate().map(|(n, at)| (point.by(at), n));
    all.min_by(|a, b| a.0.total_cmp(&b.0))
}

/// How much worse a point is, where it is worst, than some point of the front that is as good in all
/// the rest; 1 if there is none. A point may be near one end of the front, where next to nothing more
/// is left to the neighbour for ten times the latency, and far from what could be had instead.
fn behind(point: &Point, front: &[Point]) -> f64 {
    let as_good = |at: &&Point| point.each_by(at).iter().all(|by| *by >= 1.0 - SAME);
    let all = front.iter().filter(as_good).map(|at| point.by(at));
    all.fold(1.0, f64::max)
}

/// One neighbour on one drive, over all seeds.
#[derive(Debug, Serialize)]
pub struct Row {
    /// The drive.
    pub disk: String,
    /// What the neighbour does: kilobytes, r or w, how many at a time.
    pub neighbour: String,
    /// Of which each stands for a run.
    pub seeds: Vec<u64>,
    /// The reader alone, in microseconds.
    pub alone_us: f64,
    /// Under disktime, by seed.
    pub points: Vec<Point>,
    /// How far these are from the front.
    pub factor: Spread,
    /// How much worse they are than points of it that are as good in all the rest.
    pub behind: Spread,
    /// The total depth of the point of the front that the first seed's is nearest to.
    pub nearest_depth: u32,
    /// The least total depth of the front that leaves the neighbour nine tenths, if any does.
    pub enough_depth: Option<u32>,
    /// Total depths, and what can be had with each.
    pub front: Vec<(u32, Point)>,
    /// How its distance compares with its limit.
    pub verdicts: Vec<Verdict>,
}

#[derive(Clone, Copy)]
enum What {
    /// With that seed.
    Shared(u64),
    /// With that total depth.
    Front(u32),
}

fn simulate(model: Model, neighbour: Kind, what: What) -> Result<Vec<Had>> {
    let window = window(model);
    let kinds = [READER, neighbour];
    match what {
        What::Shared(seed) => shared(model, kinds, Charge::Own, window, seed),
        What::Front(depth) => {
            let mut disk = Spec::new(model).make().map_err(Error::msg)?;
            let limits = Limits {
                each: &[depth; 2],
                all: depth,
                order: Order::FirstFirst,
            };
            let loads = [kinds[0].load(0), kinds[1].load(1)];
            Ok(drive(&mut *disk, &loads, limits, window, WAKE_NS, 1))
        }
    }
}

/// Measures all of them.
pub(super) fn judge(task: &Task) -> Result<Vec<Row>> {
    let mut places = Vec::new();
    for model in DISKS {
        for neighbour in Kind::of_depth(256) {
            if task.wants(&format!("front/{model}/{neighbour}")) {
                places.push((model, neighbour));
            }
        }
    }
    let singles = each(&places, |&(model, neighbour)| {
        let window = window(model);
        let reader = alone(model, READER, window)?;
        let other = alone(model, neighbour, window)?;
        let slots = Spec::new(model).make().map_err(Error::msg)?.slots();
        Ok::<_, Error>((reader, rate(&other, window), slots))
    })?;
    let mut runs = Vec::new();
    let mut known = Vec::new();
    for (single, &(model, neighbour)) in singles.into_iter().zip(&places) {
        let (reader, rate, slots) = single?;
        let depths: Vec<u32> = DEPTHS.into_iter().filter(|&d| d <= slots).collect();
        let shared = task.seeds.iter().map(|&seed| What::Shared(seed));
        let front = depths.iter().map(|&depth| What::Front(depth));
        runs.extend(shared.chain(front).map(|what| (model, neighbour, what)));
        known.push((reader, rate, depths));
    }
    let done = each(&runs, |&(model, neighbour, what)| {
        simulate(model, neighbour, what)
    })?;
    let mut done = done.into_iter();
    let mut rows = Vec::new();
    for (&(model, neighbour), (reader, rate, depths)) in places.iter().zip(known) {
        let mut take = |count: usize| -> Result<Vec<Point>> {
            let mut points = Vec::new();
            for had in done.by_ref().take(count) {
                points.extend(Point::of(&had?, window(model), rate));
            }
            anyhow::ensure!(points.len() == count, "{model}: the reader did not read");
            Ok(points)
        };
        let points = take(task.seeds.len())?;
        let front = take(depths.len())?;
        let distances: Vec<(f64, usize)> =
            points.iter().filter_map(|p| distance(p, &front)).collect();
        let factors: Vec<f64> = distances.iter().map(|d| d.0).collect();
        let behinds: Vec<f64> = points.iter().map(|p| behind(p, &front)).collect();
        let (Some(factor), Some(behind), Some(&(_, nearest))) = (
            Spread::of_small(&factors),
            Spread::of_small(&behinds),
            distances.first(),
        ) else {
            continue;
        };
        let enough = front.iter().position(|p| p.neighbour >= ENOUGH);
        rows.push(Row {
            disk: model.to_string(),
            neighbour: neighbour.to_string(),
            seeds: task.seeds.clone(),
            alone_us: reader.latency_ns as f64 / reader.ios.max(1) as f64 / 1e3,
            points,
            factor,
            behind,
            nearest_depth: depths[nearest],
            enough_depth: enough.map(|n| depths[n]),
            front: depths.into_iter().zip(front).collect(),
            verdicts: vec![Verdict::at_most("distance", factor.worst, FACTOR)],
        });
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
        "neighbour",
        "alone us",
        "mean us",
        "P50",
        "P99",
        "neighbour by alone",
        "factor",
        "limit",
        "",
        "behind",
        "nearest depth",
        "0.9 by depth",
        "mean",
        "P99",
        "neighbour",
    ];
    let lines = rows.iter().map(|row| {
        let median = |value: &dyn Fn(&Point) -> f64| {
            let values: Vec<f64> = row.points.iter().map(value).collect();
            Spread::of_small(&values).map_or(f64::NAN, |spread| spread.median)
        };
        let there = row.front.iter().find(|(d, _)| Some(*d) == row.enough_depth);
        let there = |value: &dyn Fn(&Point) -> f64| there.map_or(f64::NAN, |(_, p)| value(p));
        vec![
            row.disk.clone(),
            row.neighbour.clone(),
            format!("{:.0}", row.alone_us),
            format!("{:.0}", median(&|p| p.mean_us)),
            format!("{:.0}", median(&|p| p.p50_us)),
            format!("{:.0}", median(&|p| p.p99_us)),
            format!("{:.3}", median(&|p| p.neighbour)),
            row.factor.show(2),
            row.verdicts[0].limit.to_string(),
            row.verdicts[0].word().into(),
            row.behind.show(2),
            row.nearest_depth.to_string(),
            row.enough_depth
                .map_or("-".into(), |depth| depth.to_string()),
            format!("{:.0}", there(&|p| p.mean_us)),
            format!("{:.0}", there(&|p| p.p99_us)),
            format!("{:.3}", there(&|p| p.neighbour)),
        ]
    });
    format!(
        "\nOne 4 KB reader beside 256 of a neighbour's, equal weights: medians of its latency, and what is left to the\n\
         neighbour. Factor: how much worse than the nearest point of the front that total depths with the reader always\n\
         first draw, in the worst of mean, P99 and the neighbour's part; worst seed and median. Behind: how much worse in one\n\
         of these than some point of it that is as good in the others. Last the front's least depth that leaves the neighbour\n\
         0.9, and what it does there.\n{}",
        table(&head, lines.collect(), 2)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(mean_us: f64, p99_us: f64, neighbour: f64) -> Point {
        Point {
            mean_us,
            p50_us: mean_us,
            p99_us,
            neighbour,
        }
    }

    #[test]
    fn distance_is_from_the_nearest_point_where_it_is_worst() {
        let front = [
            point(100.0, 200.0, 0.1),
            point(150.0, 300.0, 0.3),
            point(400.0, 900.0, 0.9),
        ];
        let at = |p: Point| distance(&p, &front).unwrap();
        for (n, on) in front.iter().enumerate() {
            assert_eq!(at(*on), (1.0, n));
        }
        // Twice the mean, or twice the P99, or half of the neighbour's.
        assert_eq!(at(point(300.0, 300.0, 0.3)), (2.0, 1));
        assert_eq!(at(point(150.0, 600.0, 0.3)), (2.0, 1));
        assert_eq!(at(point(100.0, 200.0, 0.05)), (2.0, 0));
        // Better than all that the front has.
        let (factor, n) = at(point(75.0, 150.0, 0.9));
        assert!(factor < 1.0 && n == 1, "{factor} {n}");
        assert_eq!(distance(&front[0], &[]), None);
    }

    #[test]
    fn who_could_have_less_latency_for_nothing_is_behind() {
        let front = [point(200.0, 400.0, 0.985), point(1800.0, 2000.0, 0.999)];
        let slow = point(220.0, 1600.0, 0.965);
        // Near the one, and yet the other is better in all.
        assert!(distance(&slow, &front).unwrap().0 < 1.04);
        assert_eq!(behind(&slow, &front), 4.0);
        // Who has something for it is not, nor who has as much but for noise.
        assert_eq!(behind(&point(150.0, 1600.0, 0.965), &front), 1.0);
        assert_eq!(behind(&front[1], &front), 1.0);
        assert!(behind(&point(198.5, 402.0, 0.985), &front) < 1.01);
    }

    #[test]
    fn a_reader_on_plain_flash_is_slower_the_deeper_the_device_is_filled() {
        let task = Task {
            seeds: vec![1],
            only: vec!["front/plain-ssd/4r".into()],
        };
        let rows = judge(&task).unwrap();
        assert_eq!(rows.len(), 1);
        let row = &rows[0];
        // A read takes 60 us, alone and where there is one at a time.
        assert!((row.alone_us - 60.0).abs() < 0.1, "{}", row.alone_us);
        let (_, first) = row.front[0];
        let (deepest, last) = *row.front.last().unwrap();
        assert!(first.mean_us < 121.0 && first.neighbour < 0.1, "{first:?}");
        assert_eq!(deepest, 32);
        assert!(last.mean_us > 100.0 && last.neighbour > 0.9, "{last:?}");
        assert!(row.factor.worst >= 0.9, "{:?}", row.factor);
    }
}
