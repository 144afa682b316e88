//! Length of the core's path: one insertion, dispatch and completion a cycle, with many groups that
//! each have sixteen requests queued, and 32 in flight.
//!
//! Instructions a request, of the core alone (which is built with -O2 in every profile; the release
//! profile has no symbols to select it by):
//!
//! ```text
//! cargo build -p disktime-core --example path_length
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     --toggle-collect=dt_insert --toggle-collect=dt_dispatch --toggle-collect=dt_complete \
//!     target/debug/examples/path_length 10 16 20000
//! ```
//!
//! Divide what it prints as `Collected` by the number of requests printed here. Without valgrind it
//! prints the time a cycle takes, calls from Rust and all. Arguments: groups, requests queued in
//! each, cycles, and `turns` for a rotating disk.

use std::collections::VecDeque;
use std::time::Instant;

use disktime_core::{Class, Device, Error, Nanos, Request, Weight};

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| {
        args.get(index)
            .and_then(|arg| arg.parse().ok())
            .unwrap_or(default)
    };
    let (groups, queued, cycles) = (number(0, 10), number(1, 16), number(2, 20_000));
    let rotational = args.iter().any(|arg| arg == "turns");
    let (inserted, elapsed) = run(groups, queued, cycles, rotational)?;
    println!(
        "{groups} groups of {queued} queued: {inserted} requests, {:.0} ns each",
        elapsed.as_secs_f64() * 1e9 / cycles as f64
    );
    Ok(())
}

fn run(
    groups: u64,
    queued: u64,
    cycles: u64,
    rotational: bool,
) -> Result<(u64, std::time::Duration), Error> {
    let mut dev = Device::new(32, 1 << 20, rotational, Nanos(0))?;
    let mut queues = Vec::new();
    for number in 0..groups {
        let weight = Weight::new(1 + (number * 37 % 1000) as u32)?;
        let group = dev.add_group(dev.root(), weight, Class::Be)?;
        queues.push(dev.add_queue(group, true, Weight::default(), Class::Be, Nanos(0))?);
    }
    let mut now = 0;
    let mut sector = 0;
    let mut random = 88_172_645_463_325_252u64;
    let mut request = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        sector += 8;
        Request {
            sector: random % (1 << 40) + sector % 8,
            sectors: 8,
            ..Request::default()
        }
    };
    for _ in 0..queued {
        for &queue in &queues {
            dev.insert(queue, request(), Nanos(now))?;
        }
    }
    let mut inflight = VecDeque::new();
    let start = Instant::now();
    let mut done = 0;
    while done < cycles {
        now += 10_000;
        // Whether there is work is asked first, as the block layer does.
        let item = if dev.has_work() {
            dev.dispatch(Nanos(now))
        } else {
            None
        };
        match item {
            Some(item) => inflight.push_back(item),
            None => {
                let Some(item) = inflight.pop_front() else {
                    break;
                };
                let queue = dev.item_queue(item)?;
                dev.complete(item, Nanos(now))?;
                dev.insert(queue, request(), Nanos(now + 1_000))?;
                done += 1;
            }
        }
    }
    Ok((dev.counts().completed, start.elapsed()))
}
