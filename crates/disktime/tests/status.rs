//! `status` and what every verb shares.

mod common;

use common::Tree;
use serde_json::Value;

const GROUPS: &str = "sys/block/sda/queue/iosched/groups";

/// Three groups of 40:20:10 that contend.
fn contended() -> Tree {
    let tree = Tree::active();
    tree.put(
        GROUPS,
        "/ weight=100 class=be time_usec=0 sectors=0 ios=0 queued=0 wait_usec=0 idle_usec=0 dequeues=0 slices=0\n\
         /a weight=40 class=be time_usec=5600000 sectors=800 ios=100 queued=3 wait_usec=9000000 idle_usec=5 dequeues=1 slices=7 extra_usec=4 kind=x\n\
         /b weight=20 class=be time_usec=2900000 sectors=400 ios=50 queued=2 wait_usec=9000000 idle_usec=0 dequeues=1 slices=7\n\
         /c\\040d weight=10 class=be time_usec=1500000 sectors=200 ios=25 queued=1 wait_usec=9000000 idle_usec=0 dequeues=1 slices=7\n",
    );
    tree
}

fn json(tree: &Tree, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&tree.ok(&args).out).expect("JSON")
}

fn group<'a>(status: &'a Value, device: &str, path: &str) -> &'a Value {
    let devices = status["devices"].as_array().expect("devices");
    let device = devices
        .iter()
        .find(|d| d["device"] == device)
        .expect("device");
    device["groups"]
        .as_array()
        .expect("groups")
        .iter()
        .find(|g| g["group"] == path)
        .expect("group")
}

#[test]
fn the_bare_call_is_status() {
    let tree = contended();
    let (bare, named) = (tree.ok(&[]), tree.ok(&["status"]));
    assert_eq!(bare.out, named.out);
    assert!(
        bare.out.contains("sda") && bare.out.contains("disktime") && bare.out.contains("/c d"),
        "{}",
        bare.out
    );
}

#[test]
fn text_is_plain_columns_off_a_terminal() {
    let tree = contended();
    let ran = tree.ok(&["status"]);
    assert_eq!(
        ran.out,
        "\
DEVICE   NUMBER  SCHEDULER  NR_REQUESTS  DEPTH  ORDER  SLICE_USEC  IDLE_USEC  HEALTH
nvme0n1  259:0   none              1023      -  -               -          -  -
sda      8:0     disktime           256   auto  cfq          auto       8000  ok

sda: since disktime was enabled, busy 10.000 s
GROUP  CLASS  WEIGHT  ENTITLED     GOT  DISK TIME  IOS  QUEUED     WAIT
/a     be         40    57.1 %  56.0 %    5.600 s  100       3  9.000 s
/b     be         20    28.6 %  29.0 %    2.900 s   50       2  9.000 s
/c d   be         10    14.3 %  15.0 %    1.500 s   25       1  9.000 s
"
    );
    assert!(
        ran.err.contains("one silent group is not shown"),
        "{}",
        ran.err
    );
    assert!(!ran.out.contains('\x1b'));
    let all = tree.ok(&["status", "--all"]).out;
    assert!(
        all.contains("loop0")
            && all.contains("dm-0")
            && all.lines().any(|line| line.starts_with("/  ")),
        "{all}"
    );
}

#[test]
fn json_carries_units_and_ratios() {
    let tree = contended();
    let status = json(&tree, &["status"]);
    assert_eq!(status["disktime_status"], 1);
    let a = group(&status, "sda", "/a");
    assert_eq!(a["disk_time_ns"], 5_600_000_000u64);
    assert_eq!(a["wait_ns"], 9_000_000_000u64);
    assert_eq!(a["idle_ns"], 5000);
    assert_eq!(
        (&a["ios"], &a["sectors"], &a["queued"], &a["slices"]),
        (&100.into(), &800.into(), &3.into(), &7.into())
    );
    assert_eq!(a["got"], 0.56);
    assert_eq!(a["entitled"], 0.571429);
    assert_eq!(a["contends"], true);
    assert_eq!(a["extra"]["extra_ns"], 4000);
    assert_eq!(a["extra"]["kind"], "x");
    let idle = group(&status, "sda", "/");
    assert_eq!(
        (&idle["entitled"], &idle["got"]),
        (&0.0.into(), &0.0.into())
    );
    let sda = status["devices"]
        .as_array()
        .expect("devices")
        .iter()
        .find(|d| d["device"] == "sda")
        .expect("sda");
    assert_eq!(sda["busy_ns"], 10_000_000_000u64);
    assert_eq!(sda["interval_ns"], Value::Null);
    assert_eq!(sda["iosched"]["idle_usec"], 8000);
}

#[test]
fn jsonl_is_an_object_a_line() {
    let tree = contended();
    let out = tree.ok(&["status", "-o", "jsonl"]).out;
    let lines: Vec<Value> = out
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(
        lines.iter().filter(|line| line["kind"] == "device").count(),
        2
    );
    assert_eq!(
        lines
            .iter()
            .filter(|line| line["kind"] == "group" && line["device"] == "sda")
            .count(),
        4
    );
}

#[test]
fn csv_has_a_row_a_group() {
    let tree = contended();
    let out = tree.ok(&["status", "-o", "csv"]).out;
    let mut lines = out.lines();
    let header = lines.next().expect("header");
    let start = "device,devno,interval_ns,group,class,weight,contends,entitled,got,\
                 disk_time_ns,sectors,ios,queued,wait_ns,idle_ns,dequeues,slices,read_disk_time_ns,";
    assert!(header.starts_with(start), "{header}");
    assert!(
        out.contains(
            "sda,8:0,,/a,be,40,true,0.571429,0.56,5600000000,800,100,3,9000000000,5000,1,7,,"
        ),
        "{out}"
    );
    assert!(
        out.lines()
            .all(|line| line.matches(',').count() == header.matches(',').count())
    );
    assert_eq!(lines.count(), 4);
}

#[test]
fn openmetrics_counts_in_seconds() {
    let tree = contended();
    let out = tree.ok(&["status", "-o", "openmetrics"]).out;
    for line in [
        "# TYPE disktime_disk_time_seconds counter",
        "# UNIT disktime_disk_time_seconds seconds",
        "disktime_disk_time_seconds_total{device=\"sda\",group=\"/a\"} 5.600000",
        "disktime_queued{device=\"sda\",group=\"/b\"} 2",
        "disktime_ios_total{device=\"sda\",group=\"/c d\"} 25",
        "disktime_active{device=\"nvme0n1\",scheduler=\"none\"} 0",
        "disktime_active{device=\"sda\",scheduler=\"disktime\"} 1",
    ] {
        assert!(
            out.lines().any(|other| other == line),
            "no {line} in\n{out}"
        );
    }
    assert!(out.ends_with("# EOF\n"));
    tree.fails(
        2,
        &["status", "-o", "openmetrics", "-i", "1s"],
        &["no interval"],
    );
}

#[test]
fn without_the_list_of_groups_the_tree_is_walked() {
    let tree = Tree::active();
    tree.put(
        "sys/fs/cgroup/a/io.disktime.weight",
        "default 100\n8:0 300\n",
    );
    tree.put(
        "sys/fs/cgroup/a/io.disktime.stat",
        "8:0 time_usec=700 ios=7 queued=1\n259:0 time_usec=9 ios=9\n",
    );
    tree.put(
        "sys/fs/cgroup/b/io.disktime.class",
        "default idle\n8:0 be\n",
    );
    tree.put(
        "sys/fs/cgroup/b/io.disktime.stat",
        "8:0 time_usec=300 ios=3 queued=1\n",
    );
    let status = json(&tree, &["status", "sda"]);
    let (a, b) = (group(&status, "sda", "/a"), group(&status, "sda", "/b"));
    assert_eq!(
        (&a["weight"], &a["got"], &a["entitled"]),
        (&300.into(), &0.7.into(), &0.75.into())
    );
    assert_eq!(
        (&b["class"], &b["got"], &b["entitled"]),
        (&"be".into(), &0.3.into(), &0.25.into())
    );
}

#[test]
fn what_newer_modules_count_is_shown_too() {
    let tree = Tree::active();
    tree.put(GROUPS, "/a time_usec=9 rtime_usec=4 wtime_usec=5 wait_class_usec=7 wait_max_usec=3 waiting=2 inflight=1 express=1\n");
    let status = json(&tree, &["status"]);
    let a = group(&status, "sda", "/a");
    assert_eq!(
        (&a["read_disk_time_ns"], &a["write_disk_time_ns"]),
        (&4000.into(), &5000.into())
    );
    assert_eq!(
        (&a["wait_class_ns"], &a["wait_max_ns"], &a["inflight"]),
        (&7000.into(), &3000.into(), &1.into())
    );
    assert_eq!(
        a["contends"], true,
        "a group whose submitters wait for tags contends"
    );
    assert_eq!(a["extra"], serde_json::json!({}));
    assert!(a.get("wait_tag_ns").is_none());
}

#[test]
fn the_list_in_debugfs_serves_too() {
    let tree = Tree::active();
    tree.put("sys/fs/cgroup/a/io.disktime.class", "default idle\n");
    tree.put("sys/fs/cgroup/io.disktime.weight", "default 500\n");
    tree.put(
        "sys/kernel/debug/block/sda/sched/groups",
        "/ weight=100 class=1 time_usec=5 queued=1\n/a weight=40 class=3 time_usec=5 queued=1\n",
    );
    let status = json(&tree, &["status"]);
    let (root, a) = (group(&status, "sda", "/"), group(&status, "sda", "/a"));
    assert_eq!((&a["weight"], &a["class"]), (&40.into(), &"idle".into()));
    assert_eq!(
        (&root["weight"], &root["entitled"]),
        (&500.into(), &1.0.into()),
        "the root's own files tell"
    );
}

#[test]
fn empty_drives_are_left_out() {
    let tree = Tree::active();
    tree.disk("loop1", "7:1", "[none] mq-deadline ", 64);
    tree.put("sys/block/loop1/size", "0\n");
    assert!(!tree.ok(&["status"]).out.contains("loop1"));
    assert!(tree.ok(&["status", "--all"]).out.contains("loop1"));
}

#[test]
fn the_hint_names_the_largest_disk() {
    let tree = Tree::new();
    tree.put("sys/block/nvme0n1/size", "100\n");
    tree.put("sys/block/sda/size", "2000\n");
    assert!(tree.ok(&[]).err.contains("hint: disktime enable sda"));
}

#[test]
fn settings_that_the_list_leaves_out_come_from_the_cgroups() {
    let tree = Tree::active();
    tree.put("sys/fs/cgroup/a/io.disktime.weight", "default 300\n");
    tree.put("sys/fs/cgroup/a/io.disktime.class", "default rt\n");
    tree.put(GROUPS, "/a time_usec=1 queued=1\n/b time_usec=1 queued=1\n");
    let status = json(&tree, &["status"]);
    assert_eq!(group(&status, "sda", "/a")["weight"], 300);
    assert_eq!(group(&status, "sda", "/a")["entitled"], 1.0);
    assert_eq!(group(&status, "sda", "/b")["entitled"], 0.0);
}

#[test]
fn an_interval_shows_what_happened_in_it() {
    let tree = contended();
    let path = tree.path(GROUPS);
    let later = "/ weight=100 class=be time_usec=10000 ios=1 queued=0 wait_usec=0\n\
                 /a weight=40 class=be time_usec=5870000 ios=110 queued=3 wait_usec=9900000\n\
                 /b weight=20 class=be time_usec=2900000 ios=50 queued=0 wait_usec=9000000\n\
                 /c\\040d weight=10 class=be time_usec=1570000 ios=26 queued=1 wait_usec=9400000\n";
    // /b had requests queued at the first sample only.
    let writer = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(400));
        std::fs::write(path, later).expect("write");
    });
    let status = json(&tree, &["status", "sda", "--interval", "1200ms"]);
    writer.join().expect("writer");
    let a = group(&status, "sda", "/a");
    assert_eq!(
        (&a["disk_time_ns"], &a["ios"], &a["queued"]),
        (&270_000_000.into(), &10.into(), &3.into())
    );
    assert_eq!(group(&status, "sda", "/b")["contends"], true);
    let root = group(&status, "sda", "/");
    assert_eq!(
        (&root["contends"], &root["entitled"], &root["got"]),
        (&false.into(), &0.028571.into(), &0.028571.into())
    );
    let interval = status["devices"][0]["interval_ns"]
        .as_u64()
        .expect("interval");
    assert!(
        (1_200_000_000..3_000_000_000).contains(&interval),
        "{interval}"
    );
    assert_eq!(status["devices"][0]["busy_ns"], 350_000_000);
}

#[test]
fn ctrl_c_shows_what_was_measured() {
    let tree = contended();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("disktime"));
    command
        .arg("--root")
        .arg(tree.path(""))
        .args(["status", "--interval", "60s", "--json"]);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let start = std::time::Instant::now();
    let child = command.spawn().expect("spawn");
    std::thread::sleep(std::time::Duration::from_millis(700));
    let kill = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .expect("kill");
    assert!(kill.success());
    let output = child.wait_with_output().expect("wait");
    assert!(start.elapsed().as_secs() < 30);
    assert!(output.status.success());
    let status: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(group(&status, "sda", "/a")["disk_time_ns"], 0);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("measuring for 60 s") && said.contains("stopped after"),
        "{said}"
    );
}

#[test]
fn nothing_active_is_said_and_is_no_error() {
    let tree = Tree::new();
    let ran = tree.ok(&[]);
    assert!(
        ran.err.contains("disktime is not active on any disk")
            && ran.err.contains("hint: disktime enable"),
        "{}",
        ran.err
    );
    assert!(
        ran.out.contains("mq-deadline") && !ran.out.contains("loop0"),
        "{}",
        ran.out
    );
    assert_eq!(tree.ok(&["-q"]).err.matches("not active").count(), 0);
}

#[test]
fn a_disk_asked_for_by_name_that_is_not_active_is_exit_3() {
    let tree = Tree::active();
    let ran = tree.fails(
        3,
        &["status", "nvme0n1"],
        &["not active on nvme0n1", "hint: disktime enable nvme0n1"],
    );
    assert!(
        ran.out.contains("nvme0n1"),
        "the table is printed all the same"
    );
    tree.fails(
        3,
        &["status", "sdc"],
        &["no block device 'sdc'", "did you mean sda?"],
    );
}

#[test]
fn ill_health_is_a_warning() {
    let tree = contended();
    tree.put(
        "sys/block/sda/queue/iosched/health",
        "fifo: invariant 7 failed\nmore\n",
    );
    let ran = tree.ok(&["status"]);
    assert!(
        ran.err
            .contains("warning: sda does not share: fifo: invariant 7 failed"),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("hint: disktime set sda health=rearm"),
        "{}",
        ran.err
    );
}

#[test]
fn a_path_cannot_steer_the_terminal() {
    let tree = Tree::active();
    tree.put(
        GROUPS,
        "/evil\\033[2J weight=1 class=be time_usec=5 queued=1\n",
    );
    let out = tree.ok(&["status"]).out;
    assert!(
        !out.contains('\x1b') && out.contains("/evil\\u{1b}[2J"),
        "{out}"
    );
}

#[test]
fn a_broken_list_is_reported_with_its_path() {
    let tree = contended();
    tree.put(GROUPS, "/a weight=zero\n");
    tree.fails(
        1,
        &["status"],
        &[
            "cannot understand",
            "iosched/groups",
            "'zero' is not a weight",
        ],
    );
}

#[test]
fn a_system_without_disks_is_no_error() {
    let tree = Tree::new();
    tree.remove("sys/block");
    let ran = tree.ok(&["status"]);
    assert!(ran.err.contains("not active on any disk"), "{}", ran.err);
    assert_eq!(
        json(&tree, &["status"])["devices"],
        Value::Array(Vec::new())
    );
}

#[test]
fn thousands_of_groups_are_shown_in_good_time() {
    let tree = Tree::active();
    let list: String = (0..20_000)
        .map(|n| {
            format!(
                "/s{}/g{n} weight=100 class=be time_usec={n} ios=1 queued=1 wait_usec=5\n",
                n % 100
            )
        })
        .collect();
    tree.put(GROUPS, &list);
    let start = std::time::Instant::now();
    let status = json(&tree, &["status", "-i", "50ms"]);
    assert_eq!(
        status["devices"]
            .as_array()
            .expect("devices")
            .iter()
            .filter(|d| d["active"] == true)
            .count(),
        1
    );
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn usage_errors_are_exit_2() {
    let tree = Tree::new();
    for args in [
        &["frobnicate"][..],
        &["enable"],
        &["status", "-i", "0"],
        &["-o", "xml"],
        &["--json", "-o", "csv"],
    ] {
        let ran = tree.run(args);
        assert_eq!(ran.code, 2, "{args:?}");
        assert!(ran.err.starts_with("error: "), "{}", ran.err);
        assert_eq!(ran.out, "");
    }
    assert!(
        tree.run(&["enabel", "sda"]).err.contains("enable"),
        "near misses of verbs are suggested"
    );
}

#[test]
fn help_and_version_are_data() {
    let tree = Tree::new();
    for args in [
        &["-h"][..],
        &["--help"],
        &["status", "-h"],
        &["set", "--help"],
        &["--version"],
    ] {
        let ran = tree.ok(args);
        assert!(
            ran.out.contains("disktime") && ran.err.is_empty(),
            "{args:?}"
        );
    }
    assert!(tree.ok(&["-h"]).out.lines().count() <= 40);
    assert!(
        tree.ok(&["-h"])
            .out
            .contains("Set a cgroup's weight and class")
    );
    assert!(
        tree.ok(&["set", "--help"])
            .out
            .contains("order=cfq|deadline|fifo"),
        "the settings are explained"
    );
    assert!(
        tree.ok(&["status", "--help"])
            .out
            .contains("The entitled share is"),
        "the terms are explained"
    );
}

#[test]
fn completions_and_man_pages_are_made() {
    let tree = Tree::new();
    for shell in ["bash", "zsh", "fish"] {
        let out = tree.ok(&["completions", shell]).out;
        assert!(
            out.contains("enable") && out.contains("nr-requests"),
            "{shell}"
        );
    }
    let folder = tree.path("man");
    tree.ok(&["man", folder.to_str().expect("UTF-8")]);
    for page in [
        "disktime.1",
        "disktime-status.1",
        "disktime-set.1",
        "disktime-enable.1",
    ] {
        assert!(tree.get(&format!("man/{page}")).contains(".TH"), "{page}");
    }
    tree.fails(2, &["completions", "csh"], &[]);
}

#[test]
fn a_reader_that_closes_early_is_no_error() {
    let tree = contended();
    let script = format!(
        "{} --root {} status --all --json | true",
        assert_cmd::cargo::cargo_bin("disktime").display(),
        tree.path("").display()
    );
    let output = std::process::Command::new("sh")
        .arg("-c")
        .arg(script)
        .output()
        .expect("sh");
    assert!(
        !String::from_utf8_lossy(&output.stderr).contains("error"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
