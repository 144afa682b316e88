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
