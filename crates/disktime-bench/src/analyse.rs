//! Who had the disk, from a trace of requests alone.
//!
//! This program shares nothing with the scheduler but the definition of disk time: a disk with one
//! head has spent the time between two ends on the request that ended last; elsewhere, while N
//! requests are in the device, each has a N-th of it. Whose request it is follows from where on the
//! disk it lies, as every load has a region of its own.

use std::collections::{BTreeMap, VecDeque};

use disktime_model::Region;

use crate::trace::{Kind, Record};

/// How busy time is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Each moment equally among the requests in the device.
    Overlap,
    /// The time since the end before, or since the device was idle, to the request that ends.
    Gap,
}

/// What one region's requests had in the window.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Part {
    /// Disk time.
    pub time_ns: f64,
    /// Requests that ended.
    pub ios: u64,
    /// Sectors of these.
    pub sectors: u64,
    /// The longest time without any of them in the device.
    pub longest_gap_ns: u64,
}

/// What was seen in a window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    /// By region.
    pub parts: Vec<Part>,
    /// Requests elsewhere, flushes among them.
    pub other: Part,
    /// Time in which at least one request was in the device.
    pub busy_ns: u64,
    /// Most requests in the device at a time.
    pub most_inflight: u64,
    /// Ends without a beginning in the trace. Each is taken for a request that was there from the
    /// start.
    pub orphans: u64,
    /// Beginnings without an end in the trace. Each is taken for a request that is there to the end.
    pub unfinished: u64,
}

impl Tally {
    /// The part of a region of the disk time of all regions.
    #[must_use]
    pub fn share(&self, region: usize) -> f64 {
        let all: f64 = self.parts.iter().map(|p| p.time_ns).sum();
        self.parts[region].time_ns / all
    }
}

/// A request's time in the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stay {
    from_ns: u64,
    to_ns: u64,
    /// Index of its region, the number of regions for elsewhere.
    owner: usize,
    sectors: u32,
    /// Whether it ended there, rather than being given back or cut off.
    ended: bool,
}

/// A request that is in the device.
#[derive(Debug, Clone, Copy)]
struct Open {
    since_ns: u64,
    sector: u64,
    sectors: u32,
    /// How many of them are done.
    done: u32,
}

impl Open {
    fn next_sector(&self) -> u64 {
        self.sector + u64::from(self.done)
    }
}

/// Joins what began with what ended. A request may end in several parts, first sectors first; equal
/// requests at a time (two reads of one sector) are taken to end in the order of their beginning.
fn stays(records: &[Record], regions: &[Region]) -> (Vec<Stay>, u64, u64) {
    let owner = |sector: u64, sectors: u32| {
        let inside = |r: &Region| sectors > 0 && r.contains(sector);
        regions.iter().position(inside).unwrap_or(regions.len())
    };
    let start_ns = records.first().map_or(0, |r| r.at_ns);
    let end_ns = records.last().map_or(0, |r| r.at_ns);
    let (mut orphans, mut unfinished) = (0, 0);
    let mut stays = Vec::new();
    // By the sector that is done next.
    let mut open: BTreeMap<(u8, u64), VecDeque<Open>> = BTreeMap::new();
    let take =
        |open: &mut BTreeMap<(u8, u64), VecDeque<Open>>, key, fits: &dyn Fn(&Open) -> bool| {
            let list = open.get_mut(&key)?;
            let at = list.iter().position(fits)?;
            let found = list.remove(at);
            if list.is_empty() {
                open.remove(&key);
            }
            found
        };
    for record in records {
        let key = (record.op, record.sector);
        match record.kind {
            Kind::Issue => {
                open.entry(key).or_default().push_back(Open {
                    since_ns: record.at_ns,
                    sector: record.sector,
                    sectors: record.sectors,
                    done: 0,
                });
            }
            Kind::Requeue => {
                let whole = |o: &Open| o.done == 0 && o.sectors == record.sectors;
                match take(&mut open, key, &whole) {
                    Some(o) => stays.push(Stay {
                        from_ns: o.since_ns,
                        to_ns: record.at_ns,
                        owner: owner(o.sector, o.sectors),
                        sectors: o.sectors,
                        ended: false,
                    }),
                    None => orphans += 1,
                }
            }
            Kind::Complete => {
                let exact = |o: &Open| o.sectors - o.done == record.sectors;
                let more = |o: &Open| o.sectors - o.done > record.sectors;
                let found = take(&mut open, key, &exact).or_else(|| take(&mut open, key, &more));
                let Some(mut o) = found else {
                    orphans += 1;
                    stays.push(Stay {
                        from_ns: start_ns,
                        to_ns: record.at_ns,
                        owner: owner(record.sector, record.sectors),
                        sectors: record.sectors,
                        ended: true,
                    });
                    continue;
                };
                o.done += record.sectors;
                if o.done < o.sectors {
                    open.entry((record.op, o.next_sector()))
                        .or_default()
                        .push_front(o);
                    continue;
                }
                stays.push(Stay {
                    from_ns: o.since_ns,
                    to_ns: record.at_ns,
                    owner: owner(o.sector, o.sectors),
                    sectors: o.sectors,
                    ended: true,
                });
            }
        }
    }
    for o in open.into_values().flatten() {
        unfinished += 1;
        stays.push(Stay {
            from_ns: o.since_ns,
            to_ns: end_ns,
            owner: owner(o.sector, o.sectors),
            sectors: o.sectors,
            ended: false,
        });
    }
    (stays, orphans, unfinished)
}

/// Divides the window `from_ns <= t < to_ns` of a trace, which is in the order of time, among
/// regions.
#[must_use]
pub fn analyse(
    records: &[Record],
    regions: &[Region],
    from_ns: u64,
    to_ns: u64,
    rule: Rule,
) -> Tally {
    let (stays, orphans, unfinished) = stays(records, regions);
    let mut parts = vec![Part::default(); regions.len() + 1];
    let mut events: Vec<(u64, bool, usize, bool)> = Vec::with_capacity(stays.len() * 2);
    for stay in &stays {
        if stay.ended && (from_ns..to_ns).contains(&stay.to_ns) {
            parts[stay.owner].ios += 1;
            parts[stay.owner].sectors += u64::from(stay.sectors);
        }
        let (from, to) = (stay.from_ns.max(from_ns), stay.to_ns.min(to_ns));
        if from < to {
            let ends = stay.ended && stay.to_ns < to_ns;
            events.push((from, true, stay.owner, false));
            events.push((to, false, stay.owner, ends));
        }
    }
    // At one instant ends come before beginnings.
    events.sort_unstable();
    let mut inside = vec![0_u64; parts.len()];
    let mut absent_since = vec![from_ns; parts.len()];
    let (mut all, mut busy_ns, mut most_inflight, mut before) = (0_u64, 0, 0, from_ns);
    // Since when, by the gap, nobody has had the device's time.
    let mut since = from_ns;
    for (at, begins, owner, ends) in events {
        if all == 0 {
            since = at;
        }
        if ends && rule == Rule::Gap {
            parts[owner].time_ns += (at - since) as f64;
            since = at;
        }
        if all > 0 && at > before {
            let passed = at - before;
            busy_ns += passed;
            for (part, &count) in parts.iter_mut().zip(&inside) {
                if rule == Rule::Overlap {
                    part.time_ns += passed as f64 * count as f64 / all as f64;
                }
            }
        }
        before = at;
        if begins {
            if inside[owner] == 0 {
                let gap = at - absent_since[owner];
                parts[owner].longest_gap_ns = parts[owner].longest_gap_ns.max(gap);
            }
            inside[owner] += 1;
            all += 1;
            most_inflight = most_inflight.max(all);
        } else {
            inside[owner] -= 1;
            all -= 1;
            absent_since[owner] = at;
        }
    }
    // The last gap ends with the trace or the window, whichever is first.
    let end_ns = records
        .last()
        .map_or(from_ns, |r| r.at_ns)
        .clamp(from_ns, to_ns.max(from_ns));
    for ((part, since), count) in parts.iter_mut().zip(absent_since).zip(inside) {
        if count == 0 {
            part.longest_gap_ns = part.longest_gap_ns.max(end_ns.saturating_sub(since));
        }
    }
    let other = parts.pop().unwrap_or_default();
    Tally {
        parts,
        other,
        busy_ns,
        most_inflight,
        orphans,
        unfinished,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Region = region(0);
    const B: Region = region(1000);

    const fn region(from: u64) -> Region {
        Region {
            from,
            len: 1000,
            stride: 1000,
            count: 1,
        }
    }

    fn at(at_ns: u64, kind: Kind, sector: u64, sectors: u32) -> Record {
        Record {
            at_ns,
            sector,
            sectors,
            kind,
            op: b'R',
        }
    }

    fn issue(at_ns: u64, sector: u64) -> Record {
        at(at_ns, Kind::Issue, sector, 8)
    }

    fn done(at_ns: u64, sector: u64) -> Record {
        at(at_ns, Kind::Complete, sector, 8)
    }

    fn times(tally: &Tally) -> Vec<f64> {
        tally.parts.iter().map(|p| p.time_ns).collect()
    }

    #[test]
    fn overlapping_requests_divide_the_time() {
        // a: 0..30, b: 10..40, both alone for 10 and together for 20.
        let trace = [issue(0, 0), issue(10, 1000), done(30, 0), done(40, 1000)];
        let tally = analyse(&trace, &[A, B], 0, 100, Rule::Overlap);
        assert_eq!(times(&tally), [20.0, 20.0]);
        assert_eq!((tally.busy_ns, tally.most_inflight), (40, 2));
        assert_eq!((tally.orphans, tally.unfinished), (0, 0));
        let part = tally.parts[0];
        assert_eq!((part.time_ns, part.ios, part.sectors), (20.0, 1, 8));
        assert_eq!(tally.share(0), 0.5);
    }

    #[test]
    fn three_in_flight_get_a_third_each() {
        let trace = [
            issue(0, 0),
            issue(0, 8),
            issue(0, 1000),
            done(30, 0),
            done(30, 8),
            done(60, 1000),
        ];
        let tally = analyse(&trace, &[A, B], 0, 60, Rule::Overlap);
        assert_eq!(times(&tally), [20.0, 40.0]);
        assert_eq!(tally.parts[1].ios, 0, "it ends where the window does");
    }

    #[test]
    fn idle_time_belongs_to_nobody() {
        let trace = [issue(10, 0), done(20, 0), issue(50, 1000), done(70, 1000)];
        let tally = analyse(&trace, &[A, B], 0, 100, Rule::Overlap);
        assert_eq!(times(&tally), [10.0, 20.0]);
        assert_eq!(tally.busy_ns, 30);
    }

    #[test]
    fn the_longest_absence_of_each_is_found() {
        let trace = [
            issue(10, 0),
            done(20, 0),
            issue(50, 0),
            issue(55, 8),
            done(60, 0),
            done(70, 8),
            issue(80, 1000),
            done(90, 1000),
        ];
        let gaps = |from, to| {
            let tally = analyse(&trace, &[A, B], from, to, Rule::Overlap);
            tally
                .parts
                .iter()
                .map(|p| p.longest_gap_ns)
                .collect::<Vec<_>>()
        };
        assert_eq!(gaps(0, 100), [30, 80]);
        assert_eq!(gaps(15, 86), [30, 65]);
        assert_eq!(gaps(52, 75), [5, 23]);
        let beyond = analyse(&trace, &[A, region(9000)], 5, 75, Rule::Overlap);
        assert_eq!(beyond.parts[1].longest_gap_ns, 70);
    }

    #[test]
    fn one_ends_and_the_next_begins_at_the_same_instant() {
        let trace = [issue(0, 0), done(10, 0), issue(10, 1000), done(20, 1000)];
        let tally = analyse(&trace, &[A, B], 0, 100, Rule::Overlap);
        assert_eq!(times(&tally), [10.0, 10.0]);
        assert_eq!((tally.busy_ns, tally.most_inflight), (20, 1));
    }

    #[test]
    fn the_window_cuts_requests() {
        let trace = [issue(0, 0), issue(10, 1000), done(30, 0), done(40, 1000)];
        let tally = analyse(&trace, &[A, B], 20, 35, Rule::Overlap);
        // Together for 10, then b alone for 5.
        assert_eq!(times(&tally), [5.0, 10.0]);
        assert_eq!(tally.busy_ns, 15);
        assert_eq!((tally.parts[0].ios, tally.parts[1].ios), (1, 0));
        let nothing = analyse(&trace, &[A, B], 50, 60, Rule::Overlap);
        assert_eq!((nothing.busy_ns, times(&nothing)), (0, vec![0.0, 0.0]));
        assert_eq!(analyse(&[], &[A, B], 0, 100, Rule::Overlap).busy_ns, 0);
    }

    #[test]
    fn an_end_without_beginning_counts_from_the_start_of_the_trace() {
        let trace = [issue(100, 0), done(120, 1000), done(140, 0)];
        let tally = analyse(&trace, &[A, B], 100, 200, Rule::Overlap);
        assert_eq!(times(&tally), [30.0, 10.0]);
        assert_eq!((tally.orphans, tally.unfinished), (1, 0));
    }

    #[test]
    fn a_beginning_without_end_counts_to_the_end_of_the_trace() {
        let trace = [issue(0, 0), issue(10, 1000), done(30, 1000)];
        let tally = analyse(&trace, &[A, B], 0, 100, Rule::Overlap);
        assert_eq!(times(&tally), [20.0, 10.0]);
        assert_eq!((tally.orphans, tally.unfinished), (0, 1));
        assert_eq!(tally.parts[0].ios, 0);
    }

    #[test]
    fn merged_requests_are_one_request_of_more_sectors() {
        let trace = [
            at(0, Kind::Issue, 0, 64),
            issue(0, 1000),
            at(40, Kind::Complete, 0, 64),
            done(40, 1000),
        ];
        let tally = analyse(&trace, &[A, B], 0, 100, Rule::Overlap);
        assert_eq!(times(&tally), [20.0, 20.0]);
        let part = tally.parts[0];
        assert_eq!((part.time_ns, part.ios, part.sectors), (20.0, 1, 64));
    }

    #[test]
    fn a_request_may_end_in_parts() {
        let trace = [
            at(0, Kind::Issue, 0, 24),
            issue(0, 1000),
            at(10, Kind::Complete, 0, 8),
            done(20, 1000),
            at(30, Kind::Complete, 8, 8),
            at(40, Kind::Complete, 16, 8),
        ];
        let tally = analyse(&trace, &[A, B], 0, 100, Rule::Overlap);
        assert_eq!(times(&tally), [30.0, 10.0]);
        assert_eq!(tally.parts[0].ios, 1);
        assert_eq!((tally.orphans, tally.unfinished), (0, 0));
    }

    #[test]
    fn equal_requests_end_in_the_order_of_their_beginning() {
        let trace = [issue(0, 0), issue(5, 0), done(10, 0), done(15, 0)];
        let tally = analyse(&trace, &[A, B], 0, 100, Rule::Overlap);
        assert_eq!(times(&tally), [15.0, 0.0]);
        assert_eq!(tally.parts[0].ios, 2);
        assert_eq!(tally.most_inflight, 2);
    }

    #[test]
    fn reads_and_writes_of_one_sector_are_told_apart() {
        let write = |r: Record| Record { op: b'W', ..r };
        let trace = [
            issue(0, 0),
            write(issue(10, 0)),
            write(done(20, 0)),
            done(40, 0),
        ];
        let (stays, orphans, _) = stays(&trace, &[A]);
        assert_eq!(orphans, 0);
        let spans: Vec<_> = stays.iter().map(|s| (s.from_ns, s.to_ns)).collect();
        assert_eq!(spans, [(10, 20), (0, 40)]);
    }

    #[test]
    fn a_request_given_back_was_there_until_then() {
        let trace = [
            issue(0, 0),
            at(10, Kind::Requeue, 0, 8),
            issue(50, 0),
            done(60, 0),
        ];
        let tally = analyse(&trace, &[A, B], 0, 100, Rule::Overlap);
        assert_eq!(
            (times(&tally)[0], tally.parts[0].ios, tally.busy_ns),
            (20.0, 1, 20)
        );
        assert_eq!((tally.orphans, tally.unfinished), (0, 0));
    }

    #[test]
    fn what_lies_elsewhere_takes_time_from_all() {
        let flush = |at_ns, kind| Record {
            at_ns,
            sector: 0,
            sectors: 0,
            kind,
            op: b'F',
        };
        let trace = [
            issue(0, 0),
            flush(0, Kind::Issue),
            issue(0, 5000),
            flush(30, Kind::Complete),
            done(30, 0),
            done(30, 5000),
        ];
        let tally = analyse(&trace, &[A, B], 0, 100, Rule::Overlap);
        assert!((tally.parts[0].time_ns - 10.0).abs() < 1e-9);
        assert!((tally.other.time_ns - 20.0).abs() < 1e-9);
        assert_eq!((tally.busy_ns, tally.other.ios), (30, 2));
    }

    #[test]
    fn disk_time_of_all_adds_up_to_the_busy_time() {
        // Overlaps of all kinds from a small generator.
        let mut state = 7_u64;
        let mut next = |n: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let mut trace = Vec::new();
        for i in 0..2000_u64 {
            let (from, sector) = (next(100_000), i % 250 * 8);
            let record = |at_ns, kind| Record {
                at_ns,
                sector,
                sectors: 8,
                kind,
                op: b'R',
            };
            trace.push(record(from, Kind::Issue));
            trace.push(record(from + 1 + next(90), Kind::Complete));
        }
        trace.sort_by_key(|r| (r.at_ns, r.kind));
        for (from, to) in [(0, 200_000), (30_000, 60_000), (99_950, 100_010)] {
            let tally = analyse(&trace, &[A, B], from, to, Rule::Overlap);
            let sum: f64 = times(&tally).iter().sum::<f64>() + tally.other.time_ns;
            assert!(
                (sum - tally.busy_ns as f64).abs() < 1e-3,
                "{sum} {}",
                tally.busy_ns
            );
            assert!(tally.busy_ns <= to - from);
        }
    }

    #[test]
    fn gap_gives_the_time_between_two_ends_to_the_second() {
        let trace = [
            issue(10, 0),
            issue(20, 1000),
            // The first is served, 20 ns; then the second, 5.
            done(30, 0),
            done(35, 1000),
            // Idle, and one more of the second's.
            issue(50, 1008),
            done(60, 1008),
            // It does not end in the window.
            issue(80, 8),
        ];
        let tally = analyse(&trace, &[A, B], 0, 100, Rule::Gap);
        assert_eq!(times(&tally), vec![20.0, 15.0]);
        assert_eq!(tally.busy_ns, 35);
        // A window that begins while both are in the device.
        let tally = analyse(&trace, &[A, B], 25, 100, Rule::Gap);
        assert_eq!(times(&tally), vec![5.0, 15.0]);
    }
}
