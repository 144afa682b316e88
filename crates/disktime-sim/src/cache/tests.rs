//! The page cache by itself, held to a naive one.
#![allow(clippy::unwrap_used)]

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

const MIB: u64 = 2048;

fn limits(background: u64, limit: u64) -> Dirty {
    Dirty {
        background: background * SECTOR,
        limit: limit * SECTOR,
    }
}

/// One domain with so many files; limits in sectors.
fn cache(background: u64, limit: u64, files: usize) -> Cache {
    let mut cache = Cache::new(limits(1, 2));
    let domain = cache.add_domain(limits(background, limit));
    for file in 0..files {
        cache.add_file(domain, file);
    }
    cache
}

#[test]
fn a_files_dirty_sectors_are_those_written_and_not_taken() {
    for seed in 0..50 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut file = File::default();
        let mut naive = [false; 200];
        for _ in 0..300 {
            let at = rng.random_range(0..190);
            let n = rng.random_range(1..=10);
            if rng.random() {
                let fresh = (at..at + n).filter(|&i| !naive[i]).count();
                naive[at..at + n].fill(true);
                assert_eq!(file.add(at as u64, (at + n) as u64), fresh as u64);
            } else {
                let first = (at..200).chain(0..at).find(|&i| naive[i]);
                let got = file.take(at as u64, n as u64);
                assert_eq!(got.map(|(from, _)| from), first.map(|i| i as u64));
                if let Some(from) = first {
                    let long = (from..200.min(from + n)).take_while(|&i| naive[i]).count();
                    naive[from..from + long].fill(false);
                    assert_eq!(got.unwrap().1, long as u64);
                }
            }
            let extents: Vec<_> = file.dirty.iter().collect();
            for pair in extents.windows(2) {
                assert!(pair[0].1 < pair[1].0, "{extents:?}");
            }
            let held = extents.iter().map(|(from, to)| *to - *from).sum::<u64>();
            assert_eq!(held, naive.iter().filter(|&&dirty| dirty).count() as u64);
        }
    }
}

#[test]
fn a_writers_rate_falls_from_twice_its_part_to_nothing() {
    // Ceiling 1500, setpoint 1750.
    let cases = [
        (0, None),
        (1500, None),
        (1501, Some(2.0)),
        (1625, Some(1.125)),
        (1750, Some(1.0)),
        (1875, Some(0.875)),
        (1999, Some(0.0)),
        (2000, Some(0.0)),
        (3000, Some(0.0)),
    ];
    for writers in [1, 4] {
        let mut cache = cache(1000, 2000, 1);
        for _ in 0..writers {
            cache.set_writing(0, true);
        }
        let domain = &mut cache.domains[0];
        for (sum, want) in cases {
            // Which of both it is does not matter.
            (domain.dirty, domain.writing) = (sum / 3, sum - sum / 3);
            let part = FIRST_BANDWIDTH as f64 / f64::from(writers);
            let got = domain.rate().map(|rate| rate as f64 / part);
            match (got, want) {
                (Some(got), Some(want)) => assert!((got - want).abs() < 0.03, "{sum}: {got}"),
                _ => assert_eq!(got, want, "{sum}"),
            }
        }
    }
}

#[test]
fn who_has_written_too_fast_sleeps_for_it_and_not_for_long() {
    let mut cache = cache(1000 * MIB, 2000 * MIB, 1);
    cache.set_writing(0, true);
    cache.domains[0].dirty = 1750 * MIB;
    // 100 MB a second are its part.
    let second = FIRST_BANDWIDTH;
    let cases = [
        (second / 200, 0, Balance::Later(second / 200)),
        (second / 200, 4 * MS, Balance::Later(second / 1000 + 1)),
        (second / 50, SEC, Balance::Later(0)),
        (
            second / 10,
            20 * MS,
            Balance::Pause {
                ns: 80 * MS,
                owing: 0,
            },
        ),
        (
            second,
            0,
            Balance::Pause {
                ns: MAX_PAUSE_NS,
                owing: second * 4 / 5,
            },
        ),
    ];
    for (owing, elapsed, want) in cases {
        assert_eq!(cache.balance(0, owing, elapsed), want, "{owing} {elapsed}");
    }
    cache.domains[0].dirty = 2000 * MIB;
    let ns = MAX_PAUSE_NS;
    assert_eq!(
        cache.balance(0, 256, SEC),
        Balance::Pause { ns, owing: 256 }
    );
    cache.domains[0].dirty = 1000 * MIB;
    assert_eq!(cache.balance(0, 256, 0), Balance::Free);
}

/// Everything that the flusher has to do now: files, and sectors of each turn.
fn turns(cache: &mut Cache, now: u64) -> Vec<(usize, u64)> {
    let mut turns: Vec<(usize, u64)> = Vec::new();
    let mut end = 0;
    while let Some(extent) = cache.write_back(0, now) {
        assert!(u64::from(extent.sectors) <= MAX_REQUEST);
        match turns.last_mut() {
            Some((proc, sectors)) if *proc == extent.proc => {
                assert_eq!(extent.sector, end, "it goes on where it stopped");
                *sectors += u64::from(extent.sectors);
            }
            _ => turns.push((extent.proc, u64::from(extent.sectors))),
        }
        end = extent.sector + u64::from(extent.sectors);
    }
    turns
}

#[test]
fn the_flusher_takes_files_in_turn_down_to_the_background() {
    let mut cache = cache(10 * MIB, 100 * MIB, 3);
    let write = |cache: &mut Cache, file: usize, mib: u64| {
        cache.write(file, 0, (mib * MIB) as u32, 0);
    };
    write(&mut cache, 1, 6);
    write(&mut cache, 0, 4);
    assert_eq!(cache.write_back(0, 0), None, "nobody has told it to");
    assert!(cache.woken.is_empty());
    write(&mut cache, 2, 20);
    assert_eq!(std::mem::take(&mut cache.woken), [0]);
    let turns = turns(&mut cache, 0);
    let of = |mib: u64| mib * MIB;
    assert_eq!(
        turns,
        [(1, of(4)), (0, of(4)), (2, of(4)), (1, of(2)), (2, of(6))]
    );
    assert_eq!(cache.domains[0].dirty, of(10));
    assert_eq!(cache.domains[0].writing, of(20));
    // Told again, it goes on.
    write(&mut cache, 0, 1);
    assert_eq!(cache.woken, [0]);
}

#[test]
fn a_file_goes_on_where_it_stopped_and_only_then_from_its_beginning() {
    let mut cache = cache(0, 100 * MIB, 1);
    cache.write(0, 0, (6 * MIB) as u32, 0);
    let first: Vec<_> = (0..4).map(|_| cache.write_back(0, 0).unwrap()).collect();
    assert_eq!(first[3].sector, 3 * MIB);
    cache.write(0, 0, 8, 0);
    let rest = std::iter::from_fn(|| cache.write_back(0, 0));
    let rest: Vec<_> = rest.map(|extent| extent.sector).collect();
    assert_eq!(rest, [4 * MIB, 5 * MIB, 0]);
}

#[test]
fn a_turn_that_a_sync_ends_is_not_the_next_files() {
    let mut cache = cache(0, 100 * MIB, 3);
    for file in 0..3 {
        cache.write(file, 0, (6 * MIB) as u32, 0);
    }
    assert_eq!(cache.write_back(0, 0).unwrap().proc, 0);
    while cache.sync(0, 0).is_some() {}
    let of = |mib: u64| mib * MIB;
    assert_eq!(
        turns(&mut cache, 0),
        [(1, of(4)), (2, of(4)), (1, of(2)), (2, of(2))]
    );
}

#[test]
fn old_files_are_written_and_young_ones_not() {
    let mut cache = cache(10 * MIB, 100 * MIB, 2);
    cache.write(0, 0, 8, 0);
    assert_eq!(cache.looks, [(LOOK_NS, 0)]);
    cache.write(1, 0, 8, 20 * SEC);
    assert_eq!(cache.looks.len(), 1, "once is enough");
    let mut at = LOOK_NS;
    let mut wrote = Vec::new();
    while let Some(next) = cache.look(0, at) {
        assert!(at < 60 * SEC, "it looks for nothing");
        wrote.extend(turns(&mut cache, at).iter().map(|(file, _)| (*file, at)));
        at = next;
    }
    assert_eq!(wrote, [(0, 30 * SEC), (1, 50 * SEC)]);
    cache.write(1, 0, 8, 60 * SEC);
    assert_eq!(cache.looks.len(), 2, "it had ceased to look");
}

#[test]
fn a_sync_leaves_the_flusher_nothing_and_is_over_when_both_are() {
    let mut cache = cache(MIB, 100 * MIB, 2);
    cache.write(0, 0, (3 * MIB) as u32, 0);
    cache.write(1, 0, 8, 0);
    assert_eq!(cache.write_back(0, 0).unwrap().sector, 0);
    let mut synced = 0;
    while let Some(extent) = cache.sync(0, 0) {
        assert_eq!(extent.proc, 0);
        synced += u64::from(extent.sectors);
    }
    assert_eq!(synced, 2 * MIB);
    assert_eq!(cache.write_back(0, 0), None, "a few sectors are left");
    cache.cleaned(0, (2 * MIB) as u32, SEC);
    assert!(!cache.is_clean(0), "the flusher's are under way");
    cache.cleaned(0, MIB as u32, SEC);
    assert!(cache.is_clean(0) && !cache.is_clean(1));
    assert_eq!(cache.held(0), 8 * SECTOR);
    assert_eq!(cache.domains[0].line, [1]);
}

#[test]
fn bandwidth_becomes_what_the_disk_does() {
    let mut cache = cache(MIB, 1000 * MIB, 1);
    let mut now = 0;
    for n in 0..2000 {
        cache.write(0, n * MIB, MIB as u32, now);
        let sectors = cache.sync(0, now).unwrap().sectors;
        now += 20 * MS;
        cache.cleaned(0, sectors, now);
        let rate = cache.domains[0].bandwidth / MIB;
        assert!(n < 1000 || (48..=52).contains(&rate), "{n}: {rate} MiB/s");
        if n % 500 == 499 {
            now += 60 * SEC;
        }
    }
}
