//! Good and bad files.

use super::*;

const GOOD: &str = r#"
name = "t"
duration = "10s"
disk = { servers = 8, service_us = 4000 }
[[variant]]
name = "eight"
[[variant]]
name = "one"
disk = { servers = 1 }
nr_requests = 256
silent = ["b"]
[[group]]
name = "a"
weight = 40
job = [{ rw = "randread", iodepth = 32 }]
[[group]]
name = "b"
parent = "a"
job = [{ rw = "write", ioengine = "psync", ioprio = "be/0" }, { name = "w2", rw = "write", numjobs = 2 }]
[[check]]
metric = "share"
within = 0.01
"#;

fn good() -> Scenario {
    parse(GOOD, Path::new("f.toml")).unwrap()
}

#[test]
fn a_good_file_becomes_runs() {
    let runs = runs(&good(), &Options::default());
    let seen: Vec<_> = runs
        .iter()
        .map(|r| (r.variant.as_str(), r.controller))
        .collect();
    use Controller::{Bfq, Disktime, None};
    let expect = ["eight", "one"]
        .map(|v| [(v, Disktime), (v, Bfq), (v, None)])
        .concat();
    assert_eq!(seen, expect);
    assert_eq!(runs[0].disk.to_string(), "8 servers of 4 ms");
    assert_eq!(runs[0].nr_requests, Option::None);
    assert_eq!(runs[0].phases[0].jobs, [0, 1, 2]);
    assert_eq!(runs[0].groups[1].path, "a/b");
    assert_eq!(runs[3].disk.to_string(), "1 server of 4 ms");
    assert_eq!(runs[3].nr_requests, Some(256));
    assert_eq!(runs[3].phases[0].jobs, [0]);
    let names: Vec<_> = runs[0].jobs.iter().map(|j| j.name.as_str()).collect();
    assert_eq!(names, ["a", "b.1", "w2"]);
    assert_eq!(runs[0].jobs[2].depth, 2);
    assert!(runs[0].jobs[1].args.contains(&"--prioclass=2".to_owned()));
}

#[test]
fn regions_of_jobs_do_not_overlap() {
    let run = &runs(&good(), &Options::default())[0];
    let mut end = 0;
    for job in &run.jobs {
        assert_eq!(job.from_sector, end);
        assert!(job.region_sectors > 0);
        end = job.from_sector + u64::from(job.processes) * job.stride_sectors;
    }
    assert_eq!(Some(end), run.disk.size_mib.map(|mib| mib << 11));
}

#[test]
fn options_change_what_is_run() {
    let options = Options {
        controllers: Some(vec![Controller::Kyber]),
        variants: vec!["on".into()],
        rounds: Some(3),
        scale: 0.5,
        ..Options::default()
    };
    let runs = runs(&good(), &options);
    assert_eq!(runs.len(), 3);
    assert_eq!(runs[2].round, 3);
    assert_eq!(runs[2].phases[0].duration_ns, 5_000_000_000);
}

#[test]
fn bad_files_are_refused_with_line_and_reason() {
    for (from, to, line, why) in [
        (
            "weight = 40",
            "weight = 0",
            14,
            "0 is not within 1 to 10000",
        ),
        ("weight = 40", "weight = 10001", 14, "not within"),
        ("weight = 40", "wieght = 40", 14, "unknown field"),
        ("weight = 40", "class = \"best\"", 14, "unknown variant"),
        ("weight = 40", "published = 1.5", 14, "not within"),
        ("duration = \"10s\"", "duration = 10", 3, "string"),
        ("duration = \"10s\"", "duration = \"10\"", 3, "is no time"),
        ("duration = \"10s\"", "duration = \"-1s\"", 3, "is no time"),
        ("duration = \"10s\"", "", 1, "missing field `duration`"),
        ("servers = 8", "servers = 0", 4, "not within"),
        (
            "servers = 8, service_us = 4000",
            "servers = 8",
            4,
            "a model, or servers and service_us",
        ),
        (
            "servers = 8, service_us = 4000",
            "model = \"floppy\"",
            4,
            "there is no model \"floppy\", there are: wd2500js",
        ),
        (
            "servers = 8",
            "model = \"hdd\", servers = 8",
            4,
            "a model or servers, not both",
        ),
        (
            "servers = 8, service_us = 4000",
            "model = \"nvme\", write_cache = 8",
            4,
            "no write cache that could be set",
        ),
        (
            "servers = 8, service_us = 4000",
            "model = \"hdd\", size = \"2g\"",
            4,
            "the disk is too small: st3250620as has 2048 MiB, the jobs need 4096",
        ),
        (
            "disk = { servers = 1 }",
            "disk = { model = \"hdd\", size = \"3g\" }",
            9,
            "the disk is too small",
        ),
        (
            "silent = [\"b\"]",
            "weight = { a = 0 }",
            11,
            "not within 1 to 10000",
        ),
        (
            "silent = [\"b\"]",
            "weight = { x = 1 }",
            11,
            "there is no group x",
        ),
        (
            "silent = [\"b\"]",
            "rw = { x = \"read\" }",
            11,
            "there is no group x",
        ),
        (
            "silent = [\"b\"]",
            "rw = { a = \"erase\" }",
            11,
            "not one of read",
        ),
        (
            "silent = [\"b\"]",
            "rw = 7",
            11,
            "one value, or one for each group",
        ),
        ("silent = [\"b\"]", "on = [\"moon\"]", 11, "unknown variant"),
        (
            "iodepth = 32",
            "ioengine = \"psync\", buffered = true",
            15,
            "buffered I/O needs files",
        ),
        ("iodepth = 32", "buffered = true", 15, "ioengine is psync"),
        ("weight = 40", "count = 0", 14, "not within"),
        ("service_us = 4000", "service_us = 0", 4, "not within"),
        (
            "nr_requests = 256",
            "nr_requests = 2",
            10,
            "default, best or 4 to 2048",
        ),
        (
            "nr_requests = 256",
            "nr_requests = \"many\"",
            10,
            "default, best or 4 to 2048",
        ),
        (
            "silent = [\"b\"]",
            "silent = [\"c\"]",
            11,
            "there is no group c",
        ),
        (
            "silent = [\"b\"]",
            "iodepth = { c = 1 }",
            11,
            "there is no group c",
        ),
        ("silent = [\"b\"]", "iodepth = { a = 0 }", 11, "not within"),
        (
            "silent = [\"b\"]",
            "size = { c = \"4k\" }",
            11,
            "there is no group c",
        ),
        (
            "name = \"one\"",
            "name = \"eight\"",
            8,
            "two variants eight",
        ),
        ("name = \"b\"", "name = \"a\"", 17, "two groups a"),
        ("name = \"b\"", "name = \"../b\"", 17, "is no name"),
        (
            "parent = \"a\"",
            "parent = \"x\"",
            18,
            "there is no group above",
        ),
        (
            "parent = \"a\"",
            "parent = \"b\"",
            18,
            "there is no group above",
        ),
        ("iodepth = 32", "bs = \"5\"", 15, "multiple of a sector"),
        ("iodepth = 32", "iodepth = 0", 15, "not within"),
        (
            "iodepth = 32",
            "iodepth = 32, ioengine = \"psync\"",
            15,
            "one I/O at a time",
        ),
        ("iodepth = 32", "thinktime = \"x\"", 15, "is no time"),
        ("rw = \"randread\"", "rw = \"erase\"", 15, "not one of read"),
        (
            "ioprio = \"be/0\"",
            "ioprio = \"be/8\"",
            19,
            "no I/O priority",
        ),
        ("name = \"w2\"", "job = \"w2\"", 19, "unknown field"),
        (
            "metric = \"share\"",
            "metric = \"shares\"",
            21,
            "unknown variant",
        ),
        (
            "metric = \"share\"",
            "metric = \"ratio\"",
            21,
            "within needs expect",
        ),
        (
            "within = 0.01",
            "expect = 0.5\nmax = 1.0",
            21,
            "expect says nothing",
        ),
        ("within = 0.01", "", 21, "no bound"),
        (
            "within = 0.01",
            "min = 1.0\nbaseline = { controller = \"none\" }",
            21,
            "metrics rate",
        ),
        ("metric = \"share\"", "metric = \"p99\"", 21, "within needs"),
        (
            "metric = \"share\"\nwithin = 0.01",
            "metric = \"p99\"\nmax = 3.0",
            21,
            "finish and p99",
        ),
        (
            "disk = { servers = 8, service_us = 4000 }",
            "disk = { servers = 8, service_us = 4000 }\nfs = \"vfat\"",
            5,
            "unknown variant",
        ),
        (
            "within = 0.01",
            "within = 0.01\ngroups = [\"c\"]",
            23,
            "there is no group c",
        ),
        (
            "within = 0.01",
            "within = 0.01\nvariants = [\"c\"]",
            23,
            "there is no variant c",
        ),
        (
            "within = 0.01",
            "within = 0.01\nphases = [\"c\"]",
            23,
            "there is no phase c",
        ),
        (
            "name = \"t\"",
            "name = \"t\"\nstop = \"first-job-done\"",
            16,
            "without size",
        ),
        (
            "name = \"t\"",
            "name = \"t\"\ncontrollers = []",
            2,
            "controllers is empty",
        ),
        ("name = \"t\"", "name = t", 2, ""),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let bad = parse(&GOOD.replacen(from, to, 1), Path::new("f.toml"));
        let bad = bad.map(|_| ()).expect_err(to);
        let text = bad.to_string();
        assert!(text.contains(why), "{to}: {text}");
        assert_eq!(bad.line, line, "{to}: {text}");
        assert!(text.starts_with(&format!("f.toml:{line}: ")), "{text}");
    }
}

fn changed(from: &str, to: &str) -> Scenario {
    assert!(GOOD.contains(from), "{from}");
    parse(&GOOD.replacen(from, to, 1), Path::new("f.toml")).unwrap()
}

#[test]
fn interleaved_regions_lie_among_each_other_and_do_not_overlap() {
    let scenario = changed(
        "name = \"t\"",
        "name = \"t\"\ninterleave = true\nregion = \"1m\"",
    );
    let run = &runs(&scenario, &Options::default())[0];
    let mut starts: Vec<(u64, usize)> = Vec::new();
    for (index, job) in run.jobs.iter().enumerate() {
        assert_eq!((job.region_sectors, job.stride_sectors), (2048, 3 * 2048));
        let places =
            (0..u64::from(job.processes)).map(|p| job.from_sector + p * job.stride_sectors);
        starts.extend(places.map(|at| (at, index)));
    }
    starts.sort_unstable();
    let expect = [(0, 0), (2048, 1), (2 * 2048, 2), (5 * 2048, 2)];
    assert_eq!(starts, expect);
    let offset = run.jobs[2]
        .args
        .iter()
        .find(|a| a.starts_with("--offset_increment="));
    assert_eq!(offset.unwrap(), &format!("--offset_increment={}", 3 << 20));
}

#[test]
fn the_best_of_the_others_is_sought_at_two_tag_sets() {
    use Controller::{Bfq, Disktime, Iocost, MqDeadlineIoprio, None};
    let scenario = changed(
        "name = \"t\"",
        "name = \"t\"\nnr_requests = \"best\"\n\
         controllers = [\"disktime\", \"bfq\", \"iocost\", \"mq-deadline+ioprio\", \"none\"]",
    );
    let runs = runs(
        &scenario,
        &Options {
            variants: vec!["eight".into()],
            ..Options::default()
        },
    );
    let seen: Vec<_> = runs
        .iter()
        .map(|r| (r.controller, r.raised, r.nr_requests))
        .collect();
    let raised = Some(RAISED);
    let expect = [
        (Disktime, false, raised),
        (Bfq, false, Option::None),
        (Bfq, true, raised),
        (Iocost, false, Option::None),
        (MqDeadlineIoprio, false, Option::None),
        (MqDeadlineIoprio, true, raised),
        (None, false, Option::None),
    ];
    assert_eq!(seen, expect);
}

#[test]
fn a_machine_counts_instructions_where_a_scenario_or_its_reader_asks_for_it() {
    let asked = |line: &str, on, instructions| {
        let scenario = changed("duration =", &format!("{line}duration ="));
        let options = Options {
            on,
            instructions,
            ..Options::default()
        };
        plan(&[scenario], &options).instructions
    };
    assert!(!asked("", On::Vm, false));
    assert!(asked("", On::Vm, true));
    assert!(asked("instructions = true\n", On::Vm, false));
    assert!(!asked("instructions = true\n", On::Sim, true));
}

#[test]
fn weights_become_classes_where_there_is_nothing_else() {
    let three = changed(
        "[[check]]",
        "[[group]]\nname = \"c\"\nweight = 500\njob = [{ rw = \"read\" }]\n[[check]]",
    );
    let classes = |controller| {
        let options = Options {
            controllers: Some(vec![controller]),
            ..Options::default()
        };
        let run = &runs(&three, &options)[0];
        let class = |job: &crate::plan::Job| {
            let arg = job.args.iter().find_map(|a| a.strip_prefix("--prioclass="));
            arg.map(str::to_owned)
        };
        run.jobs.iter().map(class).collect::<Vec<_>>()
    };
    let some = |text: &str| Some(text.to_owned());
    // a weighs 40, b 100 (its first job has a priority of its own), c 500.
    let expect = [some("3"), some("2"), some("2"), some("1")];
    assert_eq!(classes(Controller::MqDeadlineIoprio), expect);
    assert_eq!(classes(Controller::Bfq), [None, some("2"), None, None]);
}

#[test]
fn variants_change_groups_one_by_one() {
    let scenario = changed(
        "silent = [\"b\"]",
        "weight = { b = 7 }\nclass = { a = \"rt\" }\nrw = { b = \"randwrite\" }\nbs = { a = \"64k\" }\n\
         numjobs = { b = 3 }\npublished = { a = 0.9, b = 0.1 }",
    );
    let run = &runs(
        &scenario,
        &Options {
            variants: vec!["one".into()],
            ..Options::default()
        },
    )[0];
    assert_eq!((run.groups[0].weight, run.groups[1].weight), (40, 7));
    assert_eq!(
        (run.groups[0].class, run.groups[1].class),
        (Class::Rt, Class::Be)
    );
    let has = |job: usize, arg: &str| run.jobs[job].args.iter().any(|a| a == arg);
    assert!(has(0, "--rw=randread") && has(0, "--bs=65536"));
    assert!(has(1, "--rw=randwrite") && has(2, "--rw=randwrite") && has(1, "--numjobs=3"));
    assert_eq!(scenario.published("one", "a"), Some(0.9));
    assert_eq!(scenario.published("eight", "a"), None);
}

#[test]
fn a_job_that_syncs_each_write_does_transactions() {
    let with = |job: &str| {
        let text = GOOD.replacen("rw = \"randread\", iodepth = 32", job, 1);
        let text = text.replacen("name = \"t\"", "name = \"t\"\nfs = \"xfs\"", 1);
        let scenario = parse(&text, Path::new("f.toml")).unwrap();
        let run = runs(&scenario, &Options::default()).swap_remove(0);
        assert_eq!(run.fs.unwrap().kind, "xfs");
        assert!(!run.jobs[1].transacts);
        run.jobs[0].transacts
    };
    let one = "rw = \"write\", ioengine = \"psync\", buffered = true, fsync = 1";
    assert!(with(one) && with(&one.replace("write", "randwrite")));
    // fio's log shows no syncs where something else lies between the writes.
    assert!(!with(&format!("{one}, thinktime = \"1ms\"")));
    assert!(!with(&one.replace("fsync = 1", "fsync = 2")));
    assert!(!with("rw = \"write\", fsync = 1, iodepth = 4"));
    assert!(!with("rw = \"read\", fsync = 1"));
}

#[test]
fn a_database_is_a_job() {
    let text = GOOD
        .replacen(
            "name = \"t\"",
            "name = \"t\"\nfs = \"ext4\"\non = [\"vm\"]",
            1,
        )
        .replacen(
            "rw = \"randread\", iodepth = 32",
            "rw = \"pgbench\", numjobs = 4, ioprio = \"be/2\"",
            1,
        );
    let scenario = parse(&text, Path::new("f.toml")).unwrap();
    let job = runs(&scenario, &Options::default())[0].jobs[0].clone();
    assert_eq!(job.program, crate::plan::Program::Pgbench { scale: 4 });
    assert_eq!((job.depth, job.user), (4, Some(crate::plan::POSTGRES_USER)));
    assert!(job.transacts && !job.args.iter().any(|a| a.starts_with("--rw")));
    assert!(job.args.contains(&"--prio=2".to_owned()));

    for (from, to, why) in [
        ("on = [\"vm\"]", "", "a database needs files and a machine"),
        ("fs = \"ext4\"", "", "a database needs files and a machine"),
        (
            "weight = 40",
            "user = 1000",
            "a database has a user of its own",
        ),
        ("ioprio = \"be/2\"", "size = \"1m\"", "knows no size"),
        (
            "silent = [\"b\"]",
            "rw = { b = \"pgbench\" }",
            "makes no database",
        ),
    ] {
        let bad = parse(&text.replacen(from, to, 1), Path::new("f.toml"));
        let bad = bad.map(|_| ()).expect_err(to);
        assert!(bad.why.contains(why), "{to}: {bad}");
    }
}

#[test]
fn one_entry_may_be_many_groups() {
    let scenario = changed(
        "name = \"b\"\nparent = \"a\"",
        "name = \"b\"\ncount = 3\nparent = \"a\"",
    );
    let run = &runs(&scenario, &Options::default())[0];
    let paths: Vec<_> = run.groups.iter().map(|g| g.path.as_str()).collect();
    assert_eq!(paths, ["a", "a/b1", "a/b2", "a/b3"]);
    let jobs: BTreeSet<_> = run.jobs.iter().map(|j| j.name.as_str()).collect();
    assert_eq!(jobs.len(), run.jobs.len(), "{jobs:?}");
}

#[test]
fn real_time_may_be_shorter() {
    let scenario = changed(
        "duration = \"10s\"",
        "duration = \"10s\"\nduration_vm = \"4s\"",
    );
    let of = |on| {
        let options = Options {
            on,
            ..Options::default()
        };
        runs(&scenario, &options)[0].phases[0].duration_ns
    };
    assert_eq!((of(On::Sim), of(On::Vm)), (10_000_000_000, 4_000_000_000));
}

#[test]
fn a_scenario_may_be_for_one_place_only() {
    let scenario = changed("name = \"eight\"", "name = \"eight\"\non = [\"sim\"]");
    let count = |on, variants: &[&str]| {
        let variants = variants.iter().map(|v| (*v).to_owned()).collect();
        runs(
            &scenario,
            &Options {
                on,
                variants,
                ..Options::default()
            },
        )
        .len()
    };
    assert_eq!((count(On::Sim, &[]), count(On::Vm, &[])), (6, 3));
    // Who names it gets it.
    assert_eq!(count(On::Vm, &["eight"]), 3);
}

#[test]
fn a_disk_may_be_just_large_enough() {
    // Four regions of 1 GiB.
    let with = |size: &str| {
        let disk = format!("disk = {{ model = \"hdd\", size = \"{size}\" }}");
        let text = GOOD.replacen("disk = { servers = 8, service_us = 4000 }", &disk, 1);
        parse(
            &text.replacen("disk = { servers = 1 }\n", "", 1),
            Path::new("f.toml"),
        )
    };
    assert!(with("4g").is_ok());
    let bad = with("4095m").map(|_| ()).unwrap_err();
    assert!(
        bad.why.contains("has 4095 MiB, the jobs need 4096"),
        "{bad}"
    );
}
