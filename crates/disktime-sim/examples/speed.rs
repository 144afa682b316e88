//! How many requests the simulator does in a second of one processor's time.
//!
//! ```text
//! cargo run --release -p disktime-sim --example speed            # invariants not checked
//! cargo run --release -p disktime-sim --example speed checked
//! ```

use std::time::Instant;

use disktime_core::Weight;
use disktime_model::servers::{Inside, Params, Servers, Service};
use disktime_sim::{Controller, Dirty, Group, Pattern, Proc, Setup, Silent, Sim};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let checked = std::env::args().any(|arg| arg == "checked");
    let sectors = 1 << 30;
    let params = Params {
        sectors,
        servers: 8,
        slots: 8,
        service: Service::constant(100_000),
        inside: Inside::Fifo,
        rotational: false,
        seed: 1,
    };
    let weights = [40, 20, 10];
    let setup = Setup {
        disk: Box::new(Servers::new(params)?),
        controller: Controller::DISKTIME,
        nr_requests: Some(256),
        groups: weights
            .iter()
            .map(|&weight| {
                Ok(Group {
                    weight: Weight::new(weight)?,
                    ..Group::default()
                })
            })
            .collect::<Result<_, disktime_core::Error>>()?,
        procs: (0..weights.len())
            .map(|group| Proc {
                pattern: Pattern::Random,
                depth: 32,
                ..Proc::new(group, 0, sectors)
            })
            .collect(),
        dirty: Dirty::default(),
        wake_ns: 5_000,
        seed: 1,
        checked,
    };
    let mut sim = Sim::new(setup, Silent)?;
    for proc in 0..weights.len() {
        sim.start(proc);
    }
    let start = Instant::now();
    sim.run(if checked {
        2_000_000_000
    } else {
        50_000_000_000
    })?;
    let done: u64 = (0..weights.len())
        .map(|group| sim.tally(group).ios.iter().sum::<u64>())
        .sum();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{done} requests in {seconds:.2} s: {:.0} a second",
        done as f64 / seconds
    );
    Ok(())
}
