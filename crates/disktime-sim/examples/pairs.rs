//! Pairs of groups made at random: what each does by what it does alone, and by its half of that.
//!
//! ```text
//! cargo run --release -p disktime-sim --example pairs -- nvme 1 1024 0 120
//! cargo run --release -p disktime-sim --example pairs -- nvme 1 1024 0 40 3
//! cargo run --release -p disktime-sim --example pairs -- nvme 1 1024 4w64+4w16 1
//! ```
//!
//! The drive, how many times slower it is, the block layer's requests, and the first pair and the one
//! after the last, and how many groups, if there are to be more than two; or one pair or more than a pair, KB by how many at
//! a time, `4w8t50` in bursts of that many with 50 us between two, and its seed, of which the core's state is shown as well, in the middle of each window and at its end. A line for
//! each pair: of the group that is worst off the median of three windows, and all groups in each of these; 0.50 is a half of
//! what it does alone. The last lines sum it up for those that only read and for the others.

use std::error::Error;

use disktime_model::{Model, Spec};
use disktime_sim::{Controller, Dirty, Group, Mix, Pattern, Proc, Setup, Silent, Sim};

const SEC: u64 = 1_000_000_000;
/// After two seconds three windows of two; on a drive that is slower, and on a volume, of ten.
const MARKS: [u64; 4] = [2, 4, 6, 8];
const SLOW: u64 = 5;

#[derive(Clone, Copy)]
struct Load {
    mix: Mix,
    kib: u32,
    depth: u32,
    /// Between bursts of `depth`; 0: there are none.
    think_us: u64,
}

/// Marsaglia's xorshift: the pairs are the same for ever.
struct Xorshift(u64);

impl Xorshift {
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        of[(self.0 >> 11) as usize % of.len()]
    }
}

fn loads(number: u64, groups: usize) -> Vec<Load> {
    let mut rng = Xorshift((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for _ in 0..8 {
        rng.pick(&[0]);
    }
    let load = |_| Load {
        kib: rng.pick(&[4, 4, 16, 64, 128, 256, 512, 1024]),
        mix: rng.pick(&[Mix::Read, Mix::Read, Mix::Write]),
        depth: rng.pick(&[8, 16, 32, 64, 128, 256]),
        think_us: 0,
    };
    (0..groups).map(load).collect()
}

/// I/Os of each group in each window, both or only one of them.
fn run(
    spec: &Spec,
    loads: &[Load],
    only: Option<usize>,
    marks: &[u64],
    requests: u32,
    states: bool,
) -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
    let procs = loads.iter().zip(0..).map(|(load, n)| Proc {
        pattern: Pattern::Random,
        mix: load.mix,
        sectors: load.kib * 2,
        depth: load.depth,
        think_ns: load.think_us * 1_000,
        burst: if load.think_us > 0 { load.depth } else { 1 },
        ..Proc::new(n, (n as u64) << 22, (n as u64 + 1) << 22)
    });
    let setup = Setup {
        disk: spec.make()?,
        controller: Controller::DISKTIME,
        nr_requests: Some(requests),
        groups: vec![Group::default(); loads.len()],
        procs: procs.collect(),
        dirty: Dirty::default(),
        wake_ns: 5_000,
        seed: spec.seed,
        checked: false,
    };
    let mut sim = Sim::new(setup, Silent)?;
    for proc in 0..loads.len() {
        if only.is_none_or(|only| only == proc) {
            sim.start(proc);
        }
        sim.run(sim.now() + SEC / 50)?;
    }
    let mut done = Vec::new();
    for &mark in marks {
        if states {
            sim.run(sim.now().midpoint(mark))?;
            println!("{} ms\n{}", sim.now() / 1_000_000, sim.state());
        }
        sim.run(mark)?;
        let groups = 0..loads.len();
        let ios = groups.map(|group| sim.tally(group).ios.iter().sum::<u64>() as f64);
        done.push(ios.collect::<Vec<f64>>());
    }
    let window = |w: &[Vec<f64>]| w[1].iter().zip(&w[0]).map(|(b, a)| b - a).collect();
    Ok(done.windows(2).map(window).collect())
}

fn load(name: &str) -> Result<Load, Box<dyn Error>> {
    let wrong = || format!("{name} is no load; one is 4w64: 64 writes of 4 KB at a time");
    let at = name.find(['r', 'w']).ok_or_else(wrong)?;
    let (depth, think_us) = match name[at + 1..].split_once('t') {
        Some((depth, think)) => (depth, think.parse().map_err(|_| wrong())?),
        None => (&name[at + 1..], 0),
    };
    Ok(Load {
        kib: name[..at].parse().map_err(|_| wrong())?,
        mix: if name[at..].starts_with('r') {
            Mix::Read
        } else {
            Mix::Write
        },
        depth: depth.parse().map_err(|_| wrong())?,
        think_us,
    })
}

fn name(load: Load) -> String {
    let mix = if load.mix == Mix::Read { "r" } else { "w" };
    format!("{}{mix}{}", load.kib, load.depth)
}

struct Drive {
    model: Model,
    slower: u32,
    requests: u32,
}

/// Who is worse off, by what it does alone.
fn try_loads(
    drive: &Drive,
    number: u64,
    loads: &[Load],
    states: bool,
) -> Result<f64, Box<dyn Error>> {
    let spec = Spec {
        slower: drive.slower,
        seed: number,
        ..Spec::new(drive.model)
    };
    let scale =
        if spec.slower > 1 || spec.rotational() || matches!(spec.model, Model::Gp2 | Model::Gp3) {
            SLOW
        } else {
            1
        };
    let marks = MARKS.map(|mark| mark * scale * SEC);
    let mut alone = Vec::new();
    for n in 0..loads.len() {
        let ios = run(&spec, loads, Some(n), &marks[..2], drive.requests, false)?[0][n];
        alone.push(ios.max(1.0));
    }
    let windows: Vec<Vec<f64>> = run(&spec, loads, None, &marks, drive.requests, states)?
        .iter()
        .map(|ios| ios.iter().zip(&alone).map(|(io, of)| io / of).collect())
        .collect();
    let least = |w: &Vec<f64>| w.iter().copied().fold(f64::INFINITY, f64::min);
    let mut least: Vec<f64> = windows.iter().map(least).collect();
    least.sort_by(f64::total_cmp);
    let names: Vec<String> = loads.iter().map(|&load| name(load)).collect();
    println!(
        "{number} {}: {:.2}, {windows:.2?}",
        names.join("+"),
        least[1]
    );
    Ok(least[1])
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [model, slower, requests, which @ ..] = &args[..] else {
        return Err("it takes a drive, how many times slower, requests, and which pairs".into());
    };
    let drive = Drive {
        model: model.parse()?,
        slower: slower.parse()?,
        requests: requests.parse()?,
    };
    let [first, second, groups @ ..] = which else {
        return Err("which pairs: from and to, or one and its seed".into());
    };
    if first.contains('+') {
        let loads: Result<Vec<Load>, _> = first.split('+').map(load).collect();
        try_loads(&drive, second.parse()?, &loads?, true)?;
        return Ok(());
    }
    let groups = groups.first().map_or(Ok(2), |groups| groups.parse())?;
    let (from, to): (u64, u64) = (first.parse()?, second.parse()?);
    let below = 0.8 / groups as f64;
    let mut worst: [Vec<f64>; 2] = Default::default();
    for number in from..to {
        let loads = loads(number, groups);
        let writes = loads.iter().any(|load| load.mix == Mix::Write);
        worst[usize::from(writes)].push(try_loads(&drive, number, &loads, false)?);
    }
    for (what, worst) in ["readers", "with a writer"].iter().zip(&worst) {
        let logs: f64 = worst.iter().map(|w| w.max(0.01).ln()).sum();
        println!(
            "{} {what}: geometric mean {:.3}, worst {:.3}, below {below:.2} {}",
            worst.len(),
            (logs / worst.len() as f64).exp(),
            worst.iter().fold(f64::INFINITY, |a, &b| a.min(b)),
            worst.iter().filter(|&&w| w < below).count(),
        );
    }
    Ok(())
}
