//! Turns and anticipation.

use disktime_core::{GroupId, Nanos};

use crate::bed::*;

const DISK: fn() -> Disk = || Disk::new(1, 1, 256).rotational();

/// One request of a QD1 reader takes 4 ms and 0.2 ms of thinking.
fn two_readers(idle: Option<u64>, bases: [u64; 2]) -> (f64, f64) {
    let mut bed = Bed::new(DISK(), constant(4 * MS), 1);
    if let Some(idle) = idle {
        bed.tune(|tunables| tunables.idle = Nanos(idle));
    }
    let root = bed.root();
    let groups = [bed.group("a", root, 1000), bed.group("b", root, 500)];
    for (group, base) in groups.into_iter().zip(bases) {
        bed.job(Job::new(group).think(200 * US).sequential(base));
    }
    let before = SEC;
    let ios = bed.ios(&groups, before, 31 * SEC);
    let one = 30.0 * SEC as f64 / (4.2 * MS as f64);
    let ratio = ios[0] as f64 / ios[1] as f64;
    let speed = (ios[0] + ios[1]) as f64 / one;
    report(&format!(
        "idle {idle:?}: ratio {ratio:.3}, throughput {:.1} % of one reader's",
        speed * 100.0
    ));
    bed.drain();
    (ratio, speed)
}

#[test]
fn anticipation_keeps_the_ratio_of_two_readers() {
    for bases in [[0, 1 << 20], [1 << 32, 1 << 31], [10_000, 20_000]] {
        let (ratio, speed) = two_readers(None, bases);
        assert!((1.94..=2.06).contains(&ratio), "ratio {ratio:.3}");
        assert!(speed >= 0.93, "{:.1} %", speed * 100.0);
    }
}

/// A reader is known for one from its first requests on, wherever on the disk its file lies.
#[test]
fn reader_is_anticipated_from_its_start() {
    for bases in [[0, 1 << 20], [1 << 32, 1 << 31]] {
        let mut bed = Bed::new(DISK(), constant(4 * MS), 1);
        let root = bed.root();
        let groups = [bed.group("a", root, 1000), bed.group("b", root, 500)];
        for (group, base) in groups.into_iter().zip(bases) {
            bed.job(Job::new(group).think(200 * US).sequential(base));
        }
        bed.run_until(SEC);
        let turns = groups.map(|group| bed.dev.stats(group).unwrap().slices);
        report(&format!("{bases:?}: {turns:?} turns in the first second"));
        // Six of 160 ms; taken in turns, request by request, there would be hundreds.
        assert!(turns.iter().sum::<u64>() <= 8, "{turns:?} turns");
    }
}

#[test]
fn without_anticipation_the_ratio_is_lost() {
    let (ratio, _) = two_readers(Some(0), [0, 1 << 20]);
    assert!(ratio < 1.3, "ratio {ratio:.3}");
}

/// Where changing the reader costs a seek, turns keep most of what one reader alone has.
#[test]
fn turns_save_seeks() {
    let seeks: fn() -> Service = || {
        Box::new(|request, last, _| {
            if request.sector == last {
                500 * US
            } else {
                8 * MS
            }
        })
    };
    let run = |readers: u64, idle: bool| {
        let mut bed = Bed::new(DISK(), seeks(), 2);
        if !idle {
            bed.tune(|tunables| tunables.idle = Nanos(0));
        }
        let root = bed.root();
        let groups: Vec<GroupId> = (0..readers)
            .map(|number| bed.group(&format!("g{number}"), root, 100))
            .collect();
        for (number, &group) in groups.iter().enumerate() {
            bed.job(
                Job::new(group)
                    .think(200 * US)
                    .sequential((number as u64) << 24),
            );
        }
        let ios = bed.ios(&groups, SEC, 31 * SEC);
        (
            ios.iter().sum::<u64>() as f64,
            *ios.iter().min().unwrap() as f64,
        )
    };
    let (one, _) = run(1, true);
    for readers in [2, 4, 16] {
        let (all, least) = run(readers, true);
        let (without, _) = run(readers, false);
        report(&format!(
            "{readers} readers: {:.1} % of one's throughput, {:.1} % without; least share {:.3} of {:.3}",
            all / one * 100.0,
            without / one * 100.0,
            least / all,
            1.0 / readers as f64
        ));
        assert!(all / one >= 0.85, "{:.1} %", all / one * 100.0);
        assert!(least / all >= 0.9 / readers as f64);
    }
}

/// A reader that thinks for 50 ms does not hold the disk: its neighbour keeps what it has alone,
/// less the requests that the reader really makes.
#[test]
fn anticipation_stops_where_it_does_not_pay() {
    for depth in [1, 8] {
        let alone = {
            let mut bed = Bed::new(DISK(), constant(4 * MS), 3);
            let root = bed.root();
            let group = bed.group("busy", root, 100);
            bed.job(Job::new(group).depth(depth).think(200 * US).sequential(0));
            bed.ios(&[group], 2 * SEC, 32 * SEC)[0] as f64
        };
        let mut bed = Bed::new(DISK(), constant(4 * MS), 3);
        let root = bed.root();
        let groups = [
            bed.group("busy", root, 100),
            bed.group("thinks", root, 1000),
        ];
        bed.job(
            Job::new(groups[0])
                .depth(depth)
                .think(200 * US)
                .sequential(0),
        );
        bed.job(Job::new(groups[1]).think(50 * MS).sequential(1 << 30));
        let ios = bed.ios(&groups, 2 * SEC, 32 * SEC);
        let kept = (ios[0] + ios[1]) as f64 / alone;
        report(&format!(
            "depth {depth}: both have {:.1} % of what one has alone",
            kept * 100.0
        ));
        assert!(kept >= 0.95, "{:.1} %", kept * 100.0);
    }
}

/// Who thinks for longer than anybody waits for it is served within a quarter of another's turn
/// when it is back, and by no more than its share: with a weight that does not let it be back so
/// soon it waits, as it would have.
#[test]
fn who_pauses_is_served_soon_after_it_is_back() {
    for (weight, most) in [(1000, 60 * MS), (5, 2 * SEC)] {
        let mut bed = Bed::new(DISK(), constant(4 * MS), 7);
        let root = bed.root();
        let groups = [
            bed.group("pauses", root, weight),
            bed.group("deep", root, 100),
        ];
        let pauses = bed.job(Job::new(groups[0]).think(12 * MS).sequential(1 << 30));
        bed.job(Job::new(groups[1]).depth(64).writeback());
        let got = bed.shares(&groups, 4 * SEC, 64 * SEC);
        let longest = bed.latency(pauses, 1.0);
        report(&format!(
            "weight {weight}: {:.1} % of the disk, longest {} ms",
            got[0] * 100.0,
            longest / MS
        ));
        let due = entitled(&[weight, 100])[0];
        assert!(got[0] < due + 0.002, "{:.4} of {due:.4}", got[0]);
        // One of 4 ms, its think time and 40 ms of the other's.
        let each = 4.0 / f64::max(4.0 + 12.0 + 40.0, 4.0 / due);
        assert!(got[0] > 0.9 * each, "{:.4} of {each:.4}", got[0]);
        assert!(longest < most, "{} ms", longest / MS);
        // Who is back and not behind ends nobody's turn.
        let [one, deep] = groups.map(|group| bed.dev.stats(group).unwrap().slices);
        assert!(deep <= one + 64 * SEC / (160 * MS), "{deep} turns, {one}");
        bed.drain();
    }
}

/// Of readers that wait for each request nothing is queued when one is done: that nobody stands in
/// line before who is back does not make it first.
#[test]
fn who_pauses_has_its_share_of_who_waits_for_each_request() {
    for (weight, seed) in [(50, 1), (50, 2), (100, 3)] {
        let mut bed = Bed::new(DISK(), constant(2 * MS), seed);
        let root = bed.root();
        let groups = [
            bed.group("pauses", root, weight),
            bed.group("reads", root, 100),
        ];
        bed.job(
            Job::new(groups[0])
                .flips(90 * MS, 15 * MS)
                .sequential(1 << 30),
        );
        bed.job(Job::new(groups[1]).sequential(0));
        let got = bed.shares(&groups, 4 * SEC, 64 * SEC);
        report(&format!(
            "weight {weight}: {:.1} % of the disk",
            got[0] * 100.0
        ));
        let due = entitled(&[weight, 100])[0];
        // It is not there for a seventh of the time.
        assert!(
            got[0] > 0.85 * due && got[0] < due + 0.005,
            "{:.4} of {due:.4}",
            got[0]
        );
        bed.drain();
    }
}

/// Deep queues on a rotating disk: shares hold with turns too, and the disk is not idle, however
/// few requests there are.
#[test]
fn share_is_proportional_with_turns() {
    for (servers, depth, tags) in [
        (1, 1, 2),
        (1, 1, 16),
        (1, 1, 256),
        (1, 31, 62),
        (8, 8, 16),
        (8, 8, 256),
    ] {
        let mut bed = Bed::new(
            Disk::new(servers, depth, tags).rotational(),
            constant(4 * MS),
            4,
        );
        let root = bed.root();
        let groups = [40, 20, 10].map(|weight| bed.group(&format!("w{weight}"), root, weight));
        for group in groups {
            bed.jobs(8, &Job::new(group).depth(4));
        }
        let before = bed.dev.state();
        let got = bed.shares(&groups, 4 * SEC, 64 * SEC);
        let idle = (bed.dev.state().idle - before.idle).0 as f64 / (64 * SEC) as f64;
        let ios = bed.dev.counts().completed as f64 / (64.0 * 250.0 * f64::from(servers));
        let what = format!("turns, k={servers} depth={depth} tags={tags}");
        report(&format!(
            "{what}: {:.2} % idle, {:.1} % of the disk's IOPS",
            idle * 100.0,
            ios * 100.0
        ));
        assert_shares(&what, &got, &entitled(&[40, 20, 10]), 0.01);
        assert!(ios >= 0.97, "{:.1} % of the disk's IOPS", ios * 100.0);
        bed.drain();
    }
}

/// Beside who has one request at a time, and it in the device, a deep queue is alone in line. It
/// gets its turns and no more, of half the length as it has a tenth of the weight, and fills the
/// device with half a turn's worth at most.
#[test]
fn deep_queue_s_turn_ends_while_the_other_s_request_is_in_the_device() {
    for sync in [false, true] {
        let mut bed = Bed::new(Disk::new(1, 31, 256).rotational(), constant(8 * MS), 6);
        let root = bed.root();
        let groups = [bed.group("one", root, 1000), bed.group("deep", root, 100)];
        let one = bed.job(Job::new(groups[0]).think(50 * US).sequential(0));
        let deep = Job::new(groups[1]).depth(64).sectors(2048);
        bed.job(if sync { deep } else { deep.writeback() });
        let got = bed.shares(&groups, 4 * SEC, 124 * SEC);
        assert_shares("one beside 64", &got, &entitled(&[1000, 100]), 0.01);
        // About one request in a hundred meets a turn of the other's.
        let (p98, most) = (bed.latency(one, 0.98), bed.latency(one, 1.0));
        report(&format!("P98 {} ms, most {} ms", p98 / MS, most / MS));
        assert!(p98 < 10 * MS, "P98 {} ms", p98 / MS);
        assert!(most < 110 * MS, "{} ms", most / MS);
        bed.drain();
    }
}

/// A commit goes from its process to the journal and back; nobody else's requests come between.
#[test]
fn turn_goes_on_while_its_group_waits_for_what_goes_express() {
    use disktime_core::{Class, Device, Dir, Request, Weight};

    let mut dev = Device::new(8, 256, true, Nanos(0)).unwrap();
    dev.set_checked(true);
    let queue = |dev: &mut Device, group| {
        dev.add_queue(group, true, Weight::default(), Class::Be, Nanos(0))
            .unwrap()
    };
    let root = dev.root();
    let [commits, other] = [1000, 100].map(|weight| {
        let weight = Weight::new(weight).unwrap();
        dev.add_group(root, weight, Class::Be).unwrap()
    });
    let (own, journal) = (queue(&mut dev, commits), queue(&mut dev, root));
    let others = queue(&mut dev, other);
    let write = |sector, express| Request {
        dir: Dir::Write,
        sector,
        sectors: 8,
        express,
        ..Request::default()
    };
    let mut now = MS;
    let mut after = |by: u64| {
        now += by;
        Nanos(now)
    };
    // They are served until it is the other's turn.
    for at in 0..64 {
        let request = write((1 << 30) + 4096 * at, false);
        dev.insert(others, request, after(0)).unwrap();
    }
    let mut waited = dev.dispatch(after(0)).unwrap();
    let first = dev.insert(own, write(0, false), after(0)).unwrap();
    while waited != first {
        dev.complete(waited, after(8 * MS)).unwrap();
        waited = dev.dispatch(after(0)).unwrap();
    }
    dev.complete(first, after(8 * MS)).unwrap();
    let mut chain = [(journal, true), (journal, true), (own, false)]
        .into_iter()
        .cycle();
    let mut links = 0;
    while !dev.has_work() {
        let (queue, express) = chain.next().unwrap();
        let request = write(8 * links, express);
        let item = dev.insert(queue, request, after(100 * US)).unwrap();
        assert_eq!(dev.dispatch(after(0)), Some(item), "{}", dev.dump());
        assert!(!dev.has_work(), "{}", dev.dump());
        dev.complete(item, after(8 * MS)).unwrap();
        links += 1;
    }
    // All of it counts as its own: the others had 80 ms, and a tenth of its weight.
    report(&format!("the others' turn after {links} links"));
    assert!((90..=115).contains(&links), "{links} links");
}

/// How often someone commits, per second, beside a deep reader with a tenth of its weight on a disk
/// that serves 32 in order; and how long the longest of its requests took.
fn commits_beside(depth: u32, late: u64) -> (f64, u64) {
    let mut bed = Bed::new(Disk::new(1, 32, 256).rotational(), constant(8 * MS), 3);
    let root = bed.root();
    let groups = [
        bed.group("commits", root, 1000),
        bed.group("deep", root, 100),
    ];
    let job = Job::new(groups[0]).think(100 * US).commits(root, 3, late);
    let commits = bed.job(job);
    if depth > 0 {
        bed.job(Job::new(groups[1]).depth(depth));
    }
    bed.run_until(SEC);
    let before = bed.done(commits);
    bed.run_until(61 * SEC);
    let rate = (bed.done(commits) - before) as f64 / 4.0 / 60.0;
    let longest = bed.latency(commits, 1.0);
    bed.drain();
    (rate, longest)
}

/// Who commits loses its turn where the journal is late. It has it again after a quarter of the
/// other's, though it issues nothing itself: its next requests meet few of the other's.
#[test]
fn turn_is_had_again_while_its_group_waits_for_what_goes_express() {
    let (alone, _) = commits_beside(0, MS);
    let (rate, longest) = commits_beside(32, MS);
    report(&format!(
        "{rate:.1} of {alone:.1} commits/s, longest wait {} ms",
        longest / MS
    ));
    assert!(rate > 0.8 * alone, "{rate:.1} of {alone:.1} commits/s");
}

/// With fewer requests than readers, a reader that waits at the gate cannot issue: holding the
/// device for it would be time lost.
#[test]
fn device_is_not_held_for_a_reader_without_a_request() {
    for readers in [2, 3, 4] {
        let mut bed = Bed::new(Disk::new(1, 1, 2).rotational(), constant(4 * MS), 5);
        let root = bed.root();
        let groups: Vec<GroupId> = (0..readers)
            .map(|number| bed.group(&format!("g{number}"), root, 100))
            .collect();
        for (number, &group) in groups.iter().enumerate() {
            bed.job(
                Job::new(group)
                    .think(200 * US)
                    .sequential((number as u64) << 24),
            );
        }
        let ios = bed.ios(&groups, SEC, 31 * SEC);
        let one = 30.0 * SEC as f64 / (4.2 * MS as f64);
        let speed = ios.iter().sum::<u64>() as f64 / one;
        report(&format!(
            "{readers} readers, 2 tags: {:.1} % of one's throughput {ios:?}",
            speed * 100.0
        ));
        assert!(speed >= 0.90, "{:.1} %", speed * 100.0);
    }
}

/// A device held for a reader: one request in, done, and somebody else's waits.
fn held(
    tags: u32,
) -> (
    disktime_core::Device,
    [GroupId; 2],
    [disktime_core::QueueId; 2],
    u64,
) {
    use disktime_core::{Class, Device, Request, Weight};

    let mut dev = Device::new(1, tags, true, Nanos(0)).unwrap();
    dev.set_checked(true);
    let weight = Weight::default();
    let groups = [0, 1].map(|_| dev.add_group(dev.root(), weight, Class::Be).unwrap());
    let queues = groups.map(|group| {
        dev.add_queue(group, true, weight, Class::Be, Nanos(0))
            .unwrap()
    });
    let read = |sector| Request {
        sector,
        sectors: 8,
        ..Request::default()
    };
    let item = dev.insert(queues[0], read(0), Nanos(MS)).unwrap();
    assert_eq!(dev.dispatch(Nanos(MS)), Some(item));
    dev.insert(queues[1], read(4096), Nanos(2 * MS)).unwrap();
    dev.complete(item, Nanos(3 * MS)).unwrap();
    assert!(dev.state().holding && !dev.has_work(), "{}", dev.dump());
    (dev, groups, queues, 3 * MS)
}

#[test]
fn hold_ends_when_the_reader_comes_or_the_timer() {
    use disktime_core::Request;

    let (mut dev, groups, queues, now) = held(16);
    let wake = dev.wake_at().unwrap();
    assert!(wake.0 > now && wake.0 <= now + 8 * MS);
    let item = dev.insert(
        queues[0],
        Request {
            sector: 8,
            sectors: 8,
            ..Request::default()
        },
        Nanos(now + 200 * US),
    );
    assert_eq!(dev.dispatch(Nanos(now + 200 * US)), Some(item.unwrap()));
    assert_eq!(dev.stats(groups[0]).unwrap().idle, Nanos(200 * US));

    let (mut dev, groups, queues, _) = held(16);
    dev.tick(wake);
    let item = dev.dispatch(wake).unwrap();
    assert_eq!(dev.item_queue(item), Ok(queues[1]));
    assert_eq!(dev.stats(groups[0]).unwrap().idle.0, wake.0 - now);
}

/// Whatever ends a hold must leave the device with work to do, or it would stand still.
#[test]
fn hold_ends_when_what_it_is_for_goes_away() {
    use disktime_core::{Class, Entity, Fault, Request, Tunables};

    let express = Request {
        express: true,
        sector: 1 << 20,
        sectors: 8,
        ..Request::default()
    };
    type Event =
        fn(&mut disktime_core::Device, [GroupId; 2], [disktime_core::QueueId; 2], Request, Nanos);
    let events: [(&str, Event); 6] = [
        ("queue removed, then group", |dev, groups, queues, _, _| {
            dev.remove_queue(queues[0]).unwrap();
            dev.remove_group(groups[0]).unwrap();
        }),
        ("express request", |dev, _, queues, express, now| {
            dev.insert(queues[1], express, now).unwrap();
        }),
        ("better class", |dev, groups, queues, express, now| {
            dev.set_class(Entity::Group(groups[1]), Class::Rt, now)
                .unwrap();
            dev.insert(
                queues[1],
                Request {
                    express: false,
                    ..express
                },
                now,
            )
            .unwrap();
        }),
        ("idle tuned away", |dev, _, _, _, now| {
            let tunables = dev.tunables();
            dev.tune(
                Tunables {
                    idle: Nanos(0),
                    ..tunables
                },
                now,
            );
        }),
        ("fault", |dev, _, _, _, now| dev.fail(Fault::Asked, now)),
        ("rearm", |dev, _, _, _, now| {
            dev.fail(Fault::Asked, now);
            assert!(dev.rearm(now));
        }),
    ];
    for (name, event) in events {
        let (mut dev, groups, queues, now) = held(16);
        event(&mut dev, groups, queues, express, Nanos(now + 100 * US));
        assert!(dev.has_work(), "{name}: {}", dev.dump());
        let item = dev.dispatch(Nanos(now + 100 * US)).unwrap();
        assert_eq!(dev.item_queue(item), Ok(queues[1]), "{name}");
    }
}

/// Who waits at the gate ends a hold only if the next free request is not kept for who is held for.
#[test]
fn hold_ends_where_the_next_request_would_go_to_another() {
    for (tags, holds) in [(1, false), (2, true), (16, true)] {
        let (mut dev, _, queues, now) = held(tags);
        dev.gate_wait(queues[1], Nanos(now + 100 * US)).unwrap();
        assert_eq!(dev.state().holding, holds, "{tags} tags: {}", dev.dump());
        assert_eq!(dev.has_work(), !holds, "{tags} tags");
    }
}

/// The same for one process of several: the others of its group have requests queued.
#[test]
fn hold_ends_when_its_process_goes_away() {
    use disktime_core::{Class, Device, Request, Weight};

    let mut dev = Device::new(1, 16, true, Nanos(0)).unwrap();
    dev.set_checked(true);
    let [reader, other] = [0, 1].map(|_| {
        dev.add_queue(dev.root(), true, Weight::default(), Class::Be, Nanos(0))
            .unwrap()
    });
    let read = |sector| Request {
        sector,
        sectors: 8,
        ..Request::default()
    };
    let item = dev.insert(reader, read(0), Nanos(MS)).unwrap();
    assert_eq!(dev.dispatch(Nanos(MS)), Some(item));
    let waits = dev.insert(other, read(4096), Nanos(2 * MS)).unwrap();
    dev.complete(item, Nanos(3 * MS)).unwrap();
    assert!(dev.state().holding && !dev.has_work(), "{}", dev.dump());
    dev.remove_queue(reader).unwrap();
    assert!(dev.has_work(), "{}", dev.dump());
    assert_eq!(dev.dispatch(Nanos(3 * MS)), Some(waits));
}
