//! Loads on a model without any scheduler's core: what a fixed number of requests in the device
//! makes of them, in turn or one before the others.

use std::collections::VecDeque;

use disktime_model::{Disk, Event, Op, Request};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::fio::Latencies;

/// A closed loop: so many requests outstanding, anywhere in a region, aligned to their size.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) op: Op,
    pub(super) sectors: u32,
    pub(super) depth: u32,
    /// First sector of the region, and its length.
    pub(super) from: u64,
    pub(super) len: u64,
}

/// Who goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// One after the other.
    InTurn,
    /// The first load whenever it wants to.
    FirstFirst,
}

/// How many requests may be in the device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits<'a> {
    /// Of each load.
    pub(super) each: &'a [u32],
    /// Of all together; no more than the device takes.
    pub(super) all: u32,
    pub(super) order: Order,
}

/// What is looked at, and what passes before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) settle_ns: u64,
    pub(super) ns: u64,
}

/// What a load had in the window.
#[derive(Debug, Clone, Default)]
pub(super) struct Had {
    pub(super) ios: u64,
    /// Sum of all times from being asked for to being done.
    pub(super) latency_ns: u64,
    pub(super) latencies: Latencies,
}

impl Had {
    /// One more, asked for and done at these times.
    pub(super) fn count(&mut self, asked: u64, at: u64) {
        self.ios += 1;
        self.latency_ns += at - asked;
        self.latencies.count(at - asked);
    }
}

struct State {
    load: Load,
    /// When those were asked for that wait.
    queued: VecDeque<u64>,
    inflight: u32,
    had: Had,
}

/// Drives the disk; `wake_ns` passes from a completion until the load asks again.
pub(super) fn drive(
    disk: &mut dyn Disk,
    loads: &[Load],
    limits: Limits<'_>,
    window: Window,
    wake_ns: u64,
    seed: u64,
) -> Vec<Had> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut states: Vec<State> = loads
        .iter()
        .map(|&load| State {
            load,
            queued: vec![0; load.depth as usize].into(),
            inflight: 0,
            had: Had::default(),
        })
        .collect();
    let all = limits.all.min(disk.slots()) as usize;
    // By slot: whose, and when it was asked for.
    let mut slots = vec![(0, 0); all];
    let mut free: Vec<usize> = (0..all).rev().collect();
    let mut wakes: VecDeque<(u64, usize)> = VecDeque::new();
    let mut events = Vec::new();
    let (mut now, mut turn) = (0, 0);
    let end = window.settle_ns + window.ns;
    loop {
        while let Some(&slot) = free.last() {
            let count = states.len();
            let first = match limits.order {
                Order::InTurn => turn,
                Order::FirstFirst => 0,
            };
            let may = |&n: &usize| {
                let state: &State = &states[n];
                !state.queued.is_empty() && state.inflight < limits.each[n]
            };
            let Some(next) = (0..count).map(|n| (first + n) % count).find(may) else {
                break;
            };
            let state = &mut states[next];
            let Some(asked) = state.queued.pop_front() else {
                break;
            };
            free.pop();
            slots[slot] = (next, asked);
            state.inflight += 1;
            turn = (next + 1) % count;
            let Load {
                op,
                sectors,
                from,
                len,
                ..
            } = state.load;
            let size = u64::from(sectors);
            let request = Request {
                op,
                sector: from + rng.random_range(0..len / size) * size,
                sectors,
                fua: false,
            };
            disk.submit(slot as u64, request, now);
        }
        let wake = wakes.front().map(|wake| wake.0);
        let next = [disk.next_at(), wake].into_iter().flatten().min();
        let Some(next) = next.filter(|&at| at <= end) else {
            return states.into_iter().map(|state| state.had).collect();
        };
        now = next;
        disk.run(now, &mut events);
        for event in events.drain(..) {
            let Event::Done { id, .. } = event else {
                continue;
            };
            let slot = id as usize;
            let (whose, asked) = slots[slot];
            free.push(slot);
            let state = &mut states[whose];
            state.inflight -= 1;
            if now > window.settle_ns {
                state.had.count(asked, now);
            }
            wakes.push_back((now + wake_ns, whose));
        }
        while let Some(&(_, whose)) = wakes.front().filter(|wake| wake.0 <= now) {
            wakes.pop_front();
            states[whose].queued.push_back(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use disktime_model::servers::{Inside, Params, Servers, Service};

    use super::*;

    const MS: u64 = 1_000_000;

    fn servers(servers: u32, slots: u32) -> Servers {
        Servers::new(Params {
            sectors: 1 << 20,
            servers,
            slots,
            service: Service::constant(MS),
            inside: Inside::Fifo,
            rotational: false,
            seed: 1,
        })
        .unwrap()
    }

    fn load(depth: u32) -> Load {
        Load {
            op: Op::Read,
            sectors: 8,
            depth,
            from: 0,
            len: 1 << 20,
        }
    }

    fn ios(loads: &[Load], limits: Limits<'_>) -> Vec<u64> {
        let window = Window {
            settle_ns: 10 * MS,
            ns: 1000 * MS,
        };
        let had = drive(&mut servers(4, 16), loads, limits, window, 0, 1);
        had.iter().map(|had| had.ios).collect()
    }

    fn in_turn(each: &[u32], all: u32) -> Limits<'_> {
        Limits {
            each,
            all,
            order: Order::InTurn,
        }
    }

    #[test]
    fn equal_servers_are_divided_as_the_limits_are() {
        let both = [load(32), load(32)];
        // Four servers of 1 ms: 4000 a second for whoever keeps them busy.
        assert_eq!(ios(&both[..1], in_turn(&[16], 16)), [4000]);
        assert_eq!(ios(&both[..1], in_turn(&[2], 16)), [2000]);
        assert_eq!(ios(&both, in_turn(&[1, 3], 16)), [1000, 3000]);
        assert_eq!(ios(&both, in_turn(&[4, 12], 16)), [1000, 3000]);
        assert_eq!(ios(&both, in_turn(&[16, 16], 4)), [2000, 2000]);
        // One that has no more than that outstanding.
        assert_eq!(
            ios(&[load(1), load(32)], in_turn(&[8, 3], 16)),
            [1000, 3000]
        );
    }

    #[test]
    fn who_goes_first_waits_only_for_what_is_in_the_device() {
        let window = Window {
            settle_ns: 10 * MS,
            ns: 1000 * MS,
        };
        let had = |first, all| {
            let loads = [load(first), load(32)];
            let limits = Limits {
                each: &[32, 32],
                all,
                order: Order::FirstFirst,
            };
            drive(&mut servers(4, 16), &loads, limits, window, 0, 1)
        };
        let of = |all| {
            let had = had(1, all);
            (had[0].latency_ns / had[0].ios, had[1].ios)
        };
        // As many as there are servers: it takes the place of the one that it has just left.
        assert_eq!(of(4), (MS, 3000));
        // Three more wait in the device before it.
        assert_eq!(of(8), (2 * MS, 3500));
        // Who always wants to leaves nothing.
        assert_eq!([had(8, 4)[0].ios, had(8, 4)[1].ios], [4000, 0]);
    }
}
