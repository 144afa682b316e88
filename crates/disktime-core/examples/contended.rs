//! What a request costs natively, core and lock together: insertion, dispatch and completion, each
//! under one spin lock as in the kernel, on 1, 2 and 4 threads, beside a plain list under the same
//! lock. The clock is read where the kernel's module reads it: before an insertion and a completion
//! for both (the block layer does), and at a dispatch under the lock for the core alone.
//!
//! ```text
//! cargo run --release -p disktime-core --example contended
//! ```
//!
//! Arguments: groups (10), requests queued in each (16), requests in a round (200000), rounds (9).
//! A line of JSON for each number of threads: nanoseconds from one request to the next on the whole
//! machine, the medians of rounds that alternate between the two, and what all rounds took. Threads
//! beyond the CPUs yield when they do not get the lock, as no kernel's do: look there at both
//! together.

use std::cell::Cell;
use std::sync::Barrier;
use std::time::Instant;

use disktime_core::Error;
use disktime_core::bare::{Core, List};
use spin::mutex::SpinMutex;
use spin::relax::RelaxStrategy;

/// In flight at most; more than there are threads, so that a dispatch always finds room.
const DEPTH: u32 = 32;

/// Spins for about as long as the lock is held by a few others, then lets them run.
struct Patience;

impl RelaxStrategy for Patience {
    fn relax() {
        thread_local!(static SPINS: Cell<u32> = const { Cell::new(0) });
        std::hint::spin_loop();
        SPINS.with(|spins| {
            spins.set(spins.get() + 1);
            if spins.get() % 256 == 0 {
                std::thread::yield_now();
            }
        });
    }
}

trait Scheduler: Send {
    fn insert(&mut self, item: usize, sector: u64, now: u64);
    fn dispatch(&mut self, start: Instant) -> Option<usize>;
    fn complete(&mut self, item: usize, now: u64);
}

impl Scheduler for Core {
    fn insert(&mut self, item: usize, sector: u64, now: u64) {
        Core::insert(self, item, sector, now);
    }
    fn dispatch(&mut self, start: Instant) -> Option<usize> {
        Core::dispatch(self, nanos(start))
    }
    fn complete(&mut self, item: usize, now: u64) {
        Core::complete(self, item, now);
    }
}

impl Scheduler for List {
    fn insert(&mut self, item: usize, sector: u64, _now: u64) {
        List::insert(self, item, sector);
    }
    fn dispatch(&mut self, _start: Instant) -> Option<usize> {
        List::dispatch(self)
    }
    fn complete(&mut self, item: usize, _now: u64) {
        List::complete(self, item);
    }
}

fn nanos(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

/// Nanoseconds a request, on so many threads. Each inserts an item, sends what comes next to the
/// device, which takes no time, and goes on with the item that came back.
fn round<S: Scheduler>(
    scheduler: &SpinMutex<S, Patience>,
    start: Instant,
    spare: &mut [usize],
    requests: u64,
) -> f64 {
    let each = requests / spare.len() as u64;
    let barrier = Barrier::new(spare.len());
    let done = requests - requests % spare.len() as u64;
    // Each says when it began and ended: who waits for them may have to wait for a CPU.
    let times: Vec<(Instant, Instant)> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for (thread, item) in spare.iter_mut().enumerate() {
            let barrier = &barrier;
            threads.push(scope.spawn(move || {
                let mut random = 88_172_645_463_325_252u64 + thread as u64;
                barrier.wait();
                let begin = Instant::now();
                for _ in 0..each {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    let now = nanos(start);
                    scheduler.lock().insert(*item, random >> 24, now);
                    let next = scheduler.lock().dispatch(start);
                    let next = next.expect("one is queued for each that is in flight");
                    let now = nanos(start);
                    scheduler.lock().complete(next, now);
                    *item = next;
                }
                (begin, Instant::now())
            }));
        }
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread of the round panicked"))
            .collect()
    });
    let begin = times.iter().map(|time| time.0).min().unwrap_or(start);
    let end = times.iter().map(|time| time.1).max().unwrap_or(start);
    end.duration_since(begin).as_secs_f64() * 1e9 / done as f64
}

/// `items` are all there are but one for each thread, which are returned.
fn fill<S: Scheduler>(
    mut scheduler: S,
    items: usize,
    spare: usize,
) -> (SpinMutex<S, Patience>, Vec<usize>) {
    for item in 0..items {
        scheduler.insert(item, item as u64 * 8, 0);
    }
    (SpinMutex::new(scheduler), (items..items + spare).collect())
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn list(values: &[f64]) -> String {
    let texts: Vec<String> = values.iter().map(|value| format!("{value:.1}")).collect();
    texts.join(",")
}

fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| {
        args.get(index)
            .and_then(|arg| arg.parse().ok())
            .unwrap_or(default)
            .max(1)
    };
    let (groups, queued) = (number(0, 10) as usize, number(1, 16) as usize);
    let (requests, rounds) = (number(2, 200_000), number(3, 9));
    let weights: Vec<u32> = (0..groups as u32).map(|i| 1 + i * 37 % 1000).collect();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let start = Instant::now();
    for threads in [1, 2, 4] {
        let items = groups * queued;
        let core = Core::new(DEPTH, &weights, items + threads)?;
        let (core, mut spare_core) = fill(core, items, threads);
        let (fifo, mut spare_fifo) = fill(List::new(DEPTH, items + threads)?, items, threads);
        let (mut ours, mut plain) = (Vec::new(), Vec::new());
        // What comes first is in no cache, and counts for nothing.
        round(&core, start, &mut spare_core, requests);
        round(&fifo, start, &mut spare_fifo, requests);
        for _ in 0..rounds {
            ours.push(round(&core, start, &mut spare_core, requests));
            plain.push(round(&fifo, start, &mut spare_fifo, requests));
        }
        println!(
            "{{\"contended\":1,\"threads\":{threads},\"cpus\":{cpus},\"groups\":{groups},\"queued\":{queued},\
             \"requests\":{requests},\"core_ns\":{:.1},\"list_ns\":{:.1},\"ratio\":{:.3},\
             \"core_rounds_ns\":[{}],\"list_rounds_ns\":[{}]}}",
            median(&ours),
            median(&plain),
            median(&ours) / median(&plain),
            list(&ours),
            list(&plain)
        );
    }
    Ok(())
}
