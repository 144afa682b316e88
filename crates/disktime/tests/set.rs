//! `set`, `get` and `apply`.

mod common;

use common::Tree;

const DB: &str = "sys/fs/cgroup/system.slice/db.service";

#[test]
fn every_name_of_a_target_leads_to_it() {
    for (target, file) in [
        ("/a", "sys/fs/cgroup/a"),
        ("/sys/fs/cgroup/a", "sys/fs/cgroup/a"),
        ("/system.slice/db.service", DB),
        ("system.slice/db.service", DB),
        ("db.service", DB),
        ("db", DB),
        ("a", "sys/fs/cgroup/a"),
        ("pid:77", "sys/fs/cgroup/a"),
        ("/", "sys/fs/cgroup"),
    ] {
        let tree = Tree::new();
        let ran = tree.ok(&["set", target, "weight=250"]);
        assert_eq!(
            tree.get(&format!("{file}/io.disktime.weight")),
            "default 250\n",
            "{target}"
        );
        assert!(ran.err.contains("cgroup /"), "{target}: {}", ran.err);
        assert_eq!(ran.out, "");
    }
}

#[test]
fn weight_and_class_are_set_in_one_go() {
    let tree = Tree::new();
    tree.ok(&["set", "db.service", "weight=400", "class=rt"]);
    assert_eq!(
        tree.get(&format!("{DB}/io.disktime.weight")),
        "default 400\n"
    );
    assert_eq!(tree.get(&format!("{DB}/io.disktime.class")), "default rt\n");
    let kept = tree.get("etc/disktime/groups.d/system.slice-db.service.toml");
    assert!(
        kept.contains("cgroup = \"/system.slice/db.service\"")
            && kept.contains("weight = 400")
            && kept.contains("class = \"rt\""),
        "{kept}"
    );
}

#[test]
fn overrides_are_for_one_disk() {
    let tree = Tree::active();
    let ran = tree.ok(&["set", "/a", "weight=50", "--device", "/srv"]);
    assert!(
        ran.err
            .contains("device sda (8:0), the disk of partition sda1, mounted at /srv"),
        "{}",
        ran.err
    );
    assert_eq!(tree.get("sys/fs/cgroup/a/io.disktime.weight"), "8:0 50\n");
    tree.ok(&["set", "/a", "class@sda=idle"]);
    assert_eq!(tree.get("sys/fs/cgroup/a/io.disktime.class"), "8:0 idle\n");
    let kept = tree.get("etc/disktime/groups.d/a.toml");
    assert!(
        kept.contains("match = \"ID_SERIAL=QEMU_DISK_1\"")
            && kept.contains("weight = 50")
            && kept.contains("class = \"idle\""),
        "{kept}"
    );
    tree.ok(&["set", "/a", "weight=default", "class=default", "-d", "sda"]);
    assert_eq!(
        tree.get("sys/fs/cgroup/a/io.disktime.weight"),
        "8:0 default\n"
    );
    assert!(
        !tree.exists("etc/disktime/groups.d/a.toml"),
        "settings that say nothing are forgotten"
    );
}

#[test]
fn an_override_needs_disktime_on_the_disk() {
    let tree = Tree::new();
    let before = tree.snapshot();
    tree.fails(
        3,
        &["set", "/a", "weight=5", "-d", "sda"],
        &["disktime is not active on sda", "hint: disktime enable sda"],
    );
    tree.fails(
        3,
        &["set", "/a", "weight=5", "-d", "sdq"],
        &["no block device 'sdq'"],
    );
    assert_eq!(tree.snapshot(), before);
}

#[test]
fn default_resets() {
    let tree = Tree::new();
    tree.put("sys/fs/cgroup/a/io.disktime.weight", "default 700\n");
    tree.ok(&["set", "/a", "weight=default", "class=default"]);
    assert_eq!(
        tree.get("sys/fs/cgroup/a/io.disktime.weight"),
        "default 100\n"
    );
    assert_eq!(
        tree.get("sys/fs/cgroup/a/io.disktime.class"),
        "default be\n"
    );
    assert!(!tree.exists("etc"));
}

#[test]
fn bad_settings_are_refused_and_change_nothing() {
    let tree = Tree::active();
    let before = tree.snapshot();
    for (args, words) in [
        (
            &["/a", "weight=0"][..],
            &["'0' is not a weight from 1 to 10000"][..],
        ),
        (&["/a", "weight=10001"], &["not a weight"]),
        (&["/a", "weight=-5"], &["not a weight"]),
        (&["/a", "weight=ten"], &["not a weight"]),
        (&["/a", "weight=99999999999999999999"], &["not a weight"]),
        (&["/a", "weight=1e3"], &["not a weight"]),
        (&["/a", "weight="], &["KEY=VALUE"]),
        (&["/a", "=5"], &["KEY=VALUE"]),
        (&["/a", "weight"], &["KEY=VALUE"]),
        (&["/a", "weight=1\n2"], &["KEY=VALUE"]),
        (&["/a"], &["KEY=VALUE"]),
        (
            &["/a", "class=idel"],
            &["not a class", "hint: did you mean class=idle?"],
        ),
        (
            &["/a", "class=RT"],
            &["not a class", "hint: did you mean class=rt?"],
        ),
        (
            &["/a", "wieght=5"],
            &["no setting 'wieght'", "hint: did you mean weight=5?"],
        ),
        (
            &["/a", "zzz=5"],
            &["no setting 'zzz'", "hint: there are weight"],
        ),
        (
            &["/a", "depth=5"],
            &[
                "depth is a setting of disks",
                "hint: disktime set DEV depth=5",
            ],
        ),
        (&["/a", "time_usec=5"], &["is a counter"]),
        (&["/a", "weight=5", "class=no"], &["not a class"]),
        (
            &["sda", "weight=5"],
            &["weight is a setting of cgroups", "--device sda"],
        ),
        (
            &["sda", "ordre=cfq"],
            &["no setting 'ordre'", "hint: did you mean order=cfq?"],
        ),
        (&["sda", "order=cqf"], &["hint: did you mean order=cfq?"]),
        (&["sda", "order=bfq2"], &["cfq, deadline, fifo"]),
        (
            &["sda", "depth=-1"],
            &["it is a count up to 65536, 0 for auto"],
        ),
        (&["sda", "depth=65537"], &["up to 65536"]),
        (&["sda", "depth=+1"], &["up to 65536"]),
        (&["sda", "slice_usec=10000001"], &["up to 10000000"]),
        (&["sda", "idle_usec=auto"], &["0 for off"]),
        (&["sda", "slice_usec=5ms"], &["microseconds"]),
        (&["sda", "idle_usec=4294967296"], &["microseconds"]),
        (&["sda", "strict=2"], &["0 or 1"]),
        (&["sda", "nr_requests=1"], &["4 to 2048"]),
        (&["sda", "health=ok"], &["rearm"]),
        (&["sda", "groups=1"], &["no setting 'groups'"]),
        (&["sda", "order=fifo", "depth=x"], &["count"]),
        (
            &["sda", "order=fifo", "-d", "sda"],
            &["--device is for cgroups"],
        ),
        (&["pid:x", "weight=5"], &["not a process number"]),
        (&["", "weight=5"], &["empty"]),
    ] {
        let args: Vec<&str> = ["set"].into_iter().chain(args.iter().copied()).collect();
        tree.fails(2, &args, words);
        assert_eq!(tree.snapshot(), before, "{args:?}");
    }
}

#[test]
fn absent_targets_are_exit_3() {
    let tree = Tree::new();
    for (target, words) in [
        (
            "db.servise",
            &["no disk, unit or cgroup", "hint: did you mean db.service?"][..],
        ),
        ("/nowhere", &["no cgroup '/nowhere'", "hint: "]),
        ("pid:78", &["no process 78"]),
        ("/dev/sdz", &["no block device"]),
        ("quite-other", &["hint: give a cgroup path"]),
    ] {
        tree.fails(3, &["set", target, "weight=5"], words);
        tree.fails(3, &["get", target], words);
    }
}

#[test]
fn a_name_of_several_cgroups_is_not_guessed() {
    let tree = Tree::new();
    tree.cgroup("user.slice/db.service");
    tree.fails(
        3,
        &["set", "db.service", "weight=5"],
        &[
            "stands for 2 cgroups",
            "/user.slice/db.service",
            "hint: give one",
        ],
    );
}

#[test]
fn a_failing_write_takes_back_the_earlier_ones() {
    let tree = Tree::new();
    tree.put("sys/fs/cgroup/a/io.disktime.class", "default idle\n");
    // Reads as a number, 40 or so; no write is permitted.
    tree.forbid(
        "sys/fs/cgroup/a/io.disktime.weight",
        "/proc/sys/kernel/cap_last_cap",
    );
    let ran = tree.fails(
        5,
        &["set", "/a", "class=rt", "weight=50"],
        &[
            "cannot set /a: ",
            "'default 50'",
            "(EACCES)",
            "hint: run it as root",
        ],
    );
    assert!(!ran.err.contains("could not all be restored"));
    assert_eq!(
        tree.get("sys/fs/cgroup/a/io.disktime.class"),
        "default idle\n"
    );
    assert!(!tree.exists("etc"));
}

#[test]
fn a_cgroup_without_the_io_controller_is_explained() {
    let tree = Tree::new();
    tree.put("sys/fs/cgroup/user.slice/cgroup.subtree_control", "\n");
    tree.put("sys/fs/cgroup/user.slice/job/cgroup.subtree_control", "\n");
    tree.fails(
        3,
        &["set", "/user.slice/job", "weight=5"],
        &[
            "the io controller is not on there, it stops at /user.slice",
            "hint: echo +io > /sys/fs/cgroup/user.slice/cgroup.subtree_control",
        ],
    );
    tree.put(
        "sys/fs/cgroup/user.slice/x.service/cgroup.subtree_control",
        "\n",
    );
    tree.fails(
        3,
        &["get", "x.service"],
        &["hint: systemctl set-property x.service IOAccounting=yes"],
    );
}

#[test]
fn without_the_module_the_files_are_missing_everywhere() {
    let tree = Tree::new();
    tree.remove("sys/fs/cgroup/io.disktime.weight");
    tree.remove("sys/fs/cgroup/a/io.disktime.weight");
    tree.fails(
        3,
        &["set", "/a", "weight=5"],
        &["the module disktime is not loaded", "hint: disktime enable"],
    );
}

#[test]
fn without_cgroup_v2_the_reason_is_said() {
    let tree = Tree::new();
    tree.remove("sys/fs/cgroup");
    tree.fails(
        3,
        &["set", "db.service", "weight=5"],
        &["no cgroup v2 tree", "hint: "],
    );
}

#[test]
fn runtime_and_dry_run_persist_nothing() {
    let tree = Tree::active();
    let ran = tree.ok(&["set", "/a", "weight=7", "--dry-run"]);
    assert_eq!(
        tree.get("sys/fs/cgroup/a/io.disktime.weight"),
        "default 100\n"
    );
    assert!(
        ran.out.contains(&format!(
            "echo 'default 7' > {}",
            tree.path("sys/fs/cgroup/a/io.disktime.weight").display()
        )),
        "{}",
        ran.out
    );
    assert!(ran.out.contains("groups.d/a.toml"), "{}", ran.out);
    let ran = tree.ok(&["set", "/a", "weight=7", "--runtime"]);
    assert_eq!(ran.out, "");
    assert_eq!(
        tree.get("sys/fs/cgroup/a/io.disktime.weight"),
        "default 7\n"
    );
    assert!(!tree.exists("etc"));
}

#[test]
fn scopes_are_not_kept() {
    let tree = Tree::new();
    tree.cgroup("session-3.scope");
    let ran = tree.ok(&["set", "session-3.scope", "weight=7"]);
    assert!(ran.err.contains("not kept"), "{}", ran.err);
    assert!(!tree.exists("etc"));
}

#[test]
fn a_disks_attributes_are_set_and_kept_with_the_disk() {
    let tree = Tree::new();
    tree.ok(&["enable", "sda"]);
    tree.activate("sda");
    tree.ok(&[
        "set",
        "/dev/sda",
        "order=deadline",
        "depth=auto",
        "idle_usec=off",
        "strict=on",
        "nr_requests=512",
    ]);
    let attr = |name: &str| tree.get(&format!("sys/block/sda/queue/{name}"));
    assert_eq!(attr("iosched/order"), "deadline\n");
    assert_eq!(attr("iosched/depth"), "0\n");
    assert_eq!(attr("iosched/idle_usec"), "0\n");
    assert_eq!(attr("iosched/strict"), "1\n");
    assert_eq!(attr("nr_requests"), "512\n");
    let rules = tree.get("etc/udev/rules.d/65-disktime.rules");
    assert!(
        rules.contains("ATTR{queue/nr_requests}=\"512\"")
            && rules.contains("ATTR{queue/iosched/order}=\"deadline\""),
        "{rules}"
    );
    tree.ok(&["set", "sda", "health=rearm"]);
    assert_eq!(attr("iosched/health"), "rearm\n");
    assert!(
        !tree
            .get("etc/udev/rules.d/65-disktime.rules")
            .contains("health")
    );
}

#[test]
fn attributes_of_a_disk_that_is_not_kept_are_for_now() {
    let tree = Tree::active();
    let ran = tree.ok(&["set", "sda", "order=fifo"]);
    assert!(ran.err.contains("not kept over a reboot"), "{}", ran.err);
    assert!(!tree.exists("etc"));
    tree.fails(
        3,
        &["set", "nvme0n1", "order=fifo"],
        &["not active on nvme0n1", "hint: disktime enable nvme0n1"],
    );
}

#[test]
fn an_attribute_of_a_newer_module_is_passed_through() {
    let tree = Tree::active();
    tree.put("sys/block/sda/queue/iosched/brand_new", "1\n");
    tree.ok(&["set", "sda", "brand_new=7"]);
    assert_eq!(tree.get("sys/block/sda/queue/iosched/brand_new"), "7\n");
}

#[test]
fn get_prints_what_set_accepts() {
    let tree = Tree::active();
    tree.put(
        "sys/fs/cgroup/a/io.disktime.weight",
        "default 40\n8:0 7\n99:1 3\n",
    );
    tree.put(
        "sys/fs/cgroup/a/io.disktime.class",
        "default be\n8:0 idle\n",
    );
    tree.put(
        "sys/fs/cgroup/a/io.disktime.stat",
        "8:0 time_usec=5 ios=2 novel=9\n",
    );
    let ran = tree.ok(&["get", "/a"]);
    assert_eq!(
        ran.out,
        "weight=40\nweight@sda=7\nweight@99:1=3\nclass=be\nclass@sda=idle\nios@sda=2\nnovel@sda=9\ntime_usec@sda=5\n"
    );
    assert_eq!(
        tree.ok(&["get", "/a", "weight"]).out,
        "weight=40\nweight@sda=7\nweight@99:1=3\n"
    );
    assert_eq!(tree.ok(&["get", "/a", "class@sda"]).out, "class@sda=idle\n");
    tree.fails(
        3,
        &["get", "/a", "clas"],
        &["no 'clas'", "hint: did you mean class?"],
    );
    tree.put("sys/fs/cgroup/a/io.disktime.weight", "default 40\n8:0 7\n");
    let settings = tree.ok(&["get", "/a", "--settings"]).out;
    let args: Vec<&str> = ["set", "/b"]
        .into_iter()
        .chain(settings.split_whitespace())
        .collect();
    tree.ok(&args);
    assert_eq!(tree.get("sys/fs/cgroup/b/io.disktime.class"), "8:0 idle\n");
    assert_eq!(tree.get("sys/fs/cgroup/b/io.disktime.weight"), "8:0 7\n");
}

#[test]
fn get_of_a_disk_prints_what_set_accepts() {
    let tree = Tree::active();
    let settings = tree.ok(&["get", "sda", "--settings"]).out;
    assert_eq!(
        settings,
        "nr_requests=256\ndepth=0\nidle_usec=8000\norder=cfq\nslice_usec=0\nstrict=0\n"
    );
    let args: Vec<&str> = ["set", "sda"]
        .into_iter()
        .chain(settings.split_whitespace())
        .collect();
    tree.ok(&args);
    assert_eq!(tree.ok(&["get", "sda", "health"]).out, "health=ok\n");
    tree.fails(3, &["get", "nvme0n1"], &["not active"]);
    let value: serde_json::Value =
        serde_json::from_str(&tree.ok(&["get", "sda", "--json"]).out).expect("JSON");
    assert_eq!(value["values"]["idle_usec"], 8000);
    assert_eq!(value["values"]["order"], "cfq");
    tree.fails(
        2,
        &["get", "sda", "-o", "openmetrics"],
        &["no output of that form"],
    );
}

#[test]
fn broken_kernel_files_are_reported_with_their_path() {
    let tree = Tree::new();
    tree.put("sys/fs/cgroup/a/io.disktime.weight", "default lots\n");
    tree.fails(
        1,
        &["get", "/a"],
        &["cannot understand", "a/io.disktime.weight", "'lots'"],
    );
}

#[test]
fn apply_brings_kept_settings_back_after_a_reboot() {
    let tree = Tree::new();
    tree.ok(&["enable", "sda"]);
    tree.activate("sda");
    tree.ok(&["set", "sda", "order=fifo"]);
    tree.ok(&["set", "db.service", "weight=400", "weight@sda=30"]);
    tree.ok(&["set", "/b", "class=idle"]);
    // The reboot.
    tree.remove("run/disktime");
    tree.disk("sda", "8:0", "none [mq-deadline] disktime ", 64);
    tree.put("sys/block/sda/queue/iosched/order", "cfq\n");
    tree.cgroup("system.slice/db.service");
    tree.remove("sys/fs/cgroup/b");
    let before = tree.snapshot();
    let ran = tree.ok(&["apply", "--dry-run"]);
    assert_eq!(tree.snapshot(), before);
    assert!(
        ran.out.contains("echo disktime > ") && ran.out.contains("'default 400'"),
        "{}",
        ran.out
    );
    let ran = tree.ok(&["apply"]);
    assert!(
        ran.err.contains("/b does not exist, skipped"),
        "{}",
        ran.err
    );
    assert_eq!(tree.get("sys/block/sda/queue/scheduler"), "disktime\n");
    assert_eq!(tree.get("sys/block/sda/queue/nr_requests"), "256\n");
    assert_eq!(tree.get("sys/block/sda/queue/iosched/order"), "fifo\n");
    // The override is the last write to the file.
    assert_eq!(tree.get(&format!("{DB}/io.disktime.weight")), "8:0 30\n");
    tree.ok(&["disable", "sda"]);
    assert_eq!(tree.get("sys/block/sda/queue/scheduler"), "mq-deadline\n");
}

#[test]
fn apply_knows_a_disk_by_its_serial_number() {
    let tree = Tree::new();
    tree.ok(&["enable", "sda"]);
    tree.remove("sys/block/sda");
    let ran = tree.ok(&["apply"]);
    assert!(ran.err.contains("is not present, skipped"), "{}", ran.err);
    tree.disk("sdb", "8:16", "none [mq-deadline] disktime ", 64);
    tree.put("run/udev/data/b8:16", "E:ID_SERIAL=QEMU_DISK_1\n");
    tree.ok(&["apply"]);
    assert_eq!(tree.get("sys/block/sdb/queue/scheduler"), "disktime\n");
}

#[test]
fn apply_goes_on_after_a_failure() {
    let tree = Tree::new();
    tree.ok(&["set", "/a", "weight=7"]);
    tree.ok(&["set", "/b", "weight=8"]);
    tree.cgroup("b");
    tree.remove("sys/fs/cgroup/a/io.disktime.weight");
    tree.fails(3, &["apply"], &["cannot apply the settings of /a"]);
    assert_eq!(
        tree.get("sys/fs/cgroup/b/io.disktime.weight"),
        "default 8\n"
    );
    tree.put("etc/disktime/groups.d/x.toml", "cgroup = 5\n");
    tree.fails(
        1,
        &["apply"],
        &["cannot understand", "x.toml", "hint: correct the file"],
    );
}

#[test]
fn apply_reports_in_one_document() {
    let tree = Tree::new();
    tree.ok(&["enable", "sda"]);
    tree.ok(&["set", "/a", "weight=7"]);
    tree.cgroup("a");
    let report: serde_json::Value =
        serde_json::from_str(&tree.ok(&["apply", "--json"]).out).expect("JSON");
    assert_eq!(report["changes"].as_array().map(Vec::len), Some(2));
    assert_eq!(report["changes"][1]["writes"][0]["value"], "default 7");
    assert_eq!(tree.ok(&["apply", "-o", "jsonl"]).out.lines().count(), 2);
    tree.fails(2, &["apply", "-o", "csv"], &["no output of that form"]);
}

#[test]
fn apply_with_nothing_kept_is_fine() {
    let tree = Tree::new();
    let ran = tree.ok(&["apply"]);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
}
