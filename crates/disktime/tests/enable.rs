//! `enable` and `disable`.

mod common;

use common::Tree;

const RULES: &str = "etc/udev/rules.d/65-disktime.rules";
const CONFIG: &str = "etc/disktime/devices.d/ID_SERIAL=QEMU_DISK_1.toml";

#[test]
fn enable_switches_raises_and_persists() {
    let tree = Tree::new();
    let ran = tree.ok(&["enable", "sda"]);
    assert_eq!(ran.out, "");
    assert!(ran.err.contains("device sda (8:0)"), "{}", ran.err);
    assert_eq!(tree.get("sys/block/sda/queue/scheduler"), "disktime\n");
    assert_eq!(tree.get("sys/block/sda/queue/nr_requests"), "256\n");
    let record: serde_json::Value =
        serde_json::from_str(&tree.get("run/disktime/sda.json")).expect("JSON");
    assert_eq!(record["scheduler"], "mq-deadline");
    assert_eq!(record["nr_requests"], 64);
    assert!(
        tree.get(CONFIG)
            .contains("match = \"ID_SERIAL=QEMU_DISK_1\"")
    );
    let rules = tree.get(RULES);
    assert!(
        rules.contains(
            "ACTION==\"add\", SUBSYSTEM==\"block\", ENV{DEVTYPE}==\"disk\", ENV{ID_SERIAL}==\"QEMU_DISK_1\", \
             ATTR{queue/scheduler}=\"disktime\", ATTR{queue/nr_requests}=\"256\"\n"
        ),
        "{rules}"
    );
}

#[test]
fn who_takes_many_at_a_time_has_more_requests() {
    // (disk, tags of each queue, rotational, requests of each queue)
    let cases = [
        ("nvme0n1", 1023, 0, 512),
        ("nvme0n1", 128, 0, 256),
        ("sda", 1000, 0, 1024),
        ("sda", 1000, 1, 256),
        ("sda", 256, 0, 256),
    ];
    for (disk, tags, rotational, wanted) in cases {
        let tree = Tree::new();
        for queue in 0..if disk == "sda" { 1 } else { 2 } {
            tree.put(
                &format!("sys/block/{disk}/mq/{queue}/nr_tags"),
                &format!("{tags}\n"),
            );
        }
        tree.put(
            &format!("sys/block/{disk}/queue/rotational"),
            &format!("{rotational}\n"),
        );
        tree.ok(&["enable", disk]);
        assert_eq!(
            tree.get(&format!("sys/block/{disk}/queue/nr_requests")),
            format!("{wanted}\n"),
            "{disk} of {tags}, rotational {rotational}"
        );
        let rule = format!("ATTR{{queue/nr_requests}}=\"{wanted}\"");
        assert!(tree.get(RULES).contains(&rule), "{}", tree.get(RULES));
    }
}

#[test]
fn enable_says_how_the_disk_was_found() {
    for (asked, words) in [
        ("/dev/sda1", "the disk of partition sda1"),
        ("sda1", "the disk of partition sda1"),
        ("8:1", "the disk of partition sda1"),
        ("/srv", "mounted at /srv as /dev/sda1"),
        ("/dev/sda", "device sda (8:0)"),
        ("8:0", "device sda (8:0)"),
    ] {
        let tree = Tree::new();
        let ran = tree.ok(&["enable", asked]);
        assert!(
            ran.err.contains(words) && ran.err.contains("device sda"),
            "{asked}: {}",
            ran.err
        );
        assert_eq!(tree.get("sys/block/sda/queue/scheduler"), "disktime\n");
    }
}

#[test]
fn disable_brings_everything_back() {
    let tree = Tree::new();
    tree.ok(&["enable", "sda"]);
    let ran = tree.ok(&["disable", "sda"]);
    assert!(ran.err.contains("sda runs mq-deadline now"), "{}", ran.err);
    assert_eq!(tree.get("sys/block/sda/queue/scheduler"), "mq-deadline\n");
    assert_eq!(tree.get("sys/block/sda/queue/nr_requests"), "64\n");
    for gone in [RULES, CONFIG, "run/disktime/sda.json"] {
        assert!(!tree.exists(gone), "{gone}");
    }
}

#[test]
fn runtime_writes_nothing_to_etc() {
    let tree = Tree::new();
    tree.ok(&["enable", "sda", "--runtime"]);
    assert!(!tree.exists("etc"));
    assert_eq!(tree.get("sys/block/sda/queue/scheduler"), "disktime\n");
}

#[test]
fn disable_for_now_keeps_the_lasting_settings() {
    let tree = Tree::new();
    tree.ok(&["enable", "sda"]);
    tree.ok(&["disable", "sda", "--runtime"]);
    assert!(tree.exists(RULES) && tree.exists(CONFIG));
    tree.fails(3, &["disable", "sda", "--runtime"], &["not active on sda"]);
    tree.ok(&["disable", "sda"]);
    assert!(!tree.exists(RULES) && !tree.exists(CONFIG));
}

#[test]
fn nr_requests_is_kept_or_set_on_demand() {
    let tree = Tree::new();
    tree.ok(&["enable", "sda", "--nr-requests", "keep"]);
    assert_eq!(tree.get("sys/block/sda/queue/nr_requests"), "64\n");
    assert!(!tree.get(RULES).contains("nr_requests"));
    let tree = Tree::new();
    tree.ok(&["enable", "sda", "--nr-requests", "512"]);
    assert_eq!(tree.get("sys/block/sda/queue/nr_requests"), "512\n");
    for bad in ["0", "3", "2049", "many", "-1"] {
        let ran = tree.fails(2, &["enable", "sda", "--nr-requests", bad], &[]);
        assert!(ran.err.contains("4 to 2048") || bad == "-1", "{}", ran.err);
    }
}

#[test]
fn enable_twice_changes_nothing_and_loses_no_record() {
    let tree = Tree::new();
    // Without a number this one would have 1024.
    tree.put("sys/block/sda/mq/0/nr_tags", "1000\n");
    tree.ok(&["enable", "sda", "--nr-requests", "512"]);
    let before = tree.snapshot();
    let ran = tree.ok(&["enable", "sda"]);
    assert!(ran.err.contains("already active"), "{}", ran.err);
    assert_eq!(tree.snapshot(), before);
    tree.ok(&["disable", "sda"]);
    assert_eq!(tree.get("sys/block/sda/queue/scheduler"), "mq-deadline\n");
}

#[test]
fn an_active_disk_can_be_made_to_last() {
    let tree = Tree::new();
    tree.ok(&["enable", "sda", "--runtime"]);
    tree.ok(&["enable", "sda"]);
    assert!(tree.get(CONFIG).contains("scheduler = \"mq-deadline\""));
    // /run is empty after a reboot; the lasting settings remember too.
    tree.remove("run/disktime");
    tree.ok(&["disable", "sda"]);
    assert_eq!(tree.get("sys/block/sda/queue/scheduler"), "mq-deadline\n");
    assert_eq!(tree.get("sys/block/sda/queue/nr_requests"), "64\n");
}

#[test]
fn a_dry_run_prints_what_a_run_does() {
    let (dry, wet) = (Tree::new(), Tree::new());
    let before = dry.snapshot();
    let ran = dry.ok(&["enable", "sda", "--dry-run"]);
    assert_eq!(dry.snapshot(), before);
    assert!(ran.out.contains("echo disktime > "), "{}", ran.out);
    let status = std::process::Command::new("sh")
        .arg("-ec")
        .arg(&ran.out)
        .status()
        .expect("sh");
    assert!(status.success());
    wet.ok(&["enable", "sda"]);
    let strip = |tree: &Tree| -> Vec<(String, String)> {
        let root = tree.path("");
        tree.snapshot()
            .into_iter()
            .map(|(path, text)| {
                (
                    path.strip_prefix(&root)
                        .expect("prefix")
                        .display()
                        .to_string(),
                    text,
                )
            })
            .collect()
    };
    assert_eq!(strip(&dry), strip(&wet));
}

#[test]
fn several_disks_share_one_file_of_rules() {
    let tree = Tree::new();
    tree.ok(&["enable", "sda"]);
    tree.ok(&["enable", "nvme0n1"]);
    let rules = tree.get(RULES);
    assert!(
        rules.contains("ENV{ID_SERIAL}==\"QEMU_DISK_1\"") && rules.contains("KERNEL==\"nvme0n1\""),
        "{rules}"
    );
    tree.ok(&["disable", "sda"]);
    let rules = tree.get(RULES);
    assert!(
        !rules.contains("QEMU_DISK_1") && rules.contains("KERNEL==\"nvme0n1\""),
        "{rules}"
    );
    tree.ok(&["disable", "nvme0n1"]);
    assert!(!tree.exists(RULES));
    assert_eq!(tree.get("sys/block/nvme0n1/queue/scheduler"), "none\n");
    assert_eq!(tree.get("sys/block/nvme0n1/queue/nr_requests"), "1023\n");
}

#[test]
fn without_a_record_the_kernels_choice_comes_back() {
    for (disk, scheduler) in [("sda", "mq-deadline\n"), ("nvme0n1", "none\n")] {
        let tree = Tree::new();
        tree.activate(disk);
        let ran = tree.ok(&["disable", disk]);
        assert!(ran.err.contains("nobody wrote down"), "{}", ran.err);
        assert_eq!(
            tree.get(&format!("sys/block/{disk}/queue/scheduler")),
            scheduler
        );
    }
}

#[test]
fn the_record_of_another_disk_of_that_name_is_not_believed() {
    let tree = Tree::active();
    tree.put(
        "run/disktime/sda.json",
        "{\"disktime_former\":1,\"device\":\"sda\",\"devno\":\"8:16\",\"scheduler\":\"kyber\",\"nr_requests\":9}",
    );
    tree.ok(&["disable", "sda"]);
    assert_eq!(tree.get("sys/block/sda/queue/scheduler"), "mq-deadline\n");
}

#[test]
fn unknown_disks_are_not_found() {
    let tree = Tree::new();
    tree.fails(
        3,
        &["enable", "sdaa"],
        &["no block device 'sdaa'", "hint: did you mean sda?"],
    );
    tree.fails(3, &["enable", "/dev/sdx9"], &["no block device", "hint: "]);
    tree.fails(3, &["enable", "9:9"], &["no block device '9:9'", "hint: "]);
    tree.fails(3, &["enable", "/tmp"], &["/tmp holds a tmpfs", "hint: "]);
    tree.fails(3, &["enable", "/nowhere"], &["no block device", "hint: "]);
    tree.put("srv/www/index", "");
    tree.fails(
        3,
        &["enable", "/srv/www"],
        &[
            "not a mount point",
            "hint: it lies in the file system at /srv",
        ],
    );
}

#[test]
fn devices_without_a_scheduler_are_refused() {
    let tree = Tree::new();
    let before = tree.snapshot();
    tree.fails(
        3,
        &["enable", "dm-0"],
        &[
            "passes bios on to sda",
            "hint: enable it below instead: disktime enable sda",
        ],
    );
    tree.fails(3, &["enable", "loop0"], &["no I/O scheduler", "hint: "]);
    assert_eq!(tree.snapshot(), before);
}

#[test]
fn a_kernel_that_does_not_know_disktime_is_given_the_module() {
    let tree = Tree::new();
    tree.put("sys/block/sda/queue/scheduler", "none [mq-deadline] \n");
    let loader = tree.modprobe(&format!("echo \"$@\" > {}", tree.path("loaded").display()));
    tree.ok(&["--modprobe", &loader, "enable", "sda"]);
    assert_eq!(tree.get("loaded"), "disktime-iosched\n");
    assert_eq!(tree.get("sys/block/sda/queue/scheduler"), "disktime\n");
}

#[test]
fn a_missing_module_is_exit_4_and_changes_nothing() {
    for (said, hint) in [
        (
            "modprobe: FATAL: Module disktime-iosched not found in directory /lib/modules/6.12",
            "hint: install the module",
        ),
        (
            "modprobe: ERROR: could not insert 'disktime': Exec format error",
            "hint: the module is of another kernel",
        ),
        (
            "modprobe: ERROR: could not insert 'disktime': Key was rejected by service",
            "Secure Boot",
        ),
        ("", "hint: install the module"),
    ] {
        let tree = Tree::new();
        tree.put("sys/block/sda/queue/scheduler", "none [mq-deadline] \n");
        let loader = tree.modprobe(&format!("echo \"{said}\" >&2; exit 1"));
        let before = tree.snapshot();
        tree.fails(
            4,
            &["--modprobe", &loader, "enable", "sda"],
            &["cannot load the module disktime-iosched", hint],
        );
        assert_eq!(tree.snapshot(), before);
    }
    let tree = Tree::new();
    tree.put("sys/block/sda/queue/scheduler", "none [mq-deadline] \n");
    tree.fails(
        4,
        &["--modprobe", "/nowhere/modprobe", "enable", "sda"],
        &["is not installed", "insmod"],
    );
    tree.fails(
        4,
        &["enable", "sda"],
        &[
            "not the running system's",
            "hint: modprobe disktime-iosched",
        ],
    );
    let loader = tree
        .modprobe("echo 'modprobe: ERROR: could not insert: Operation not permitted' >&2; exit 1");
    tree.fails(
        5,
        &["--modprobe", &loader, "enable", "sda"],
        &["Operation not permitted", "hint: run it as root"],
    );
}

#[test]
fn a_dry_run_does_not_need_the_module() {
    let tree = Tree::new();
    tree.put("sys/block/sda/queue/scheduler", "none [mq-deadline] \n");
    let ran = tree.ok(&["--modprobe", "modprobe", "enable", "sda", "-n"]);
    assert!(
        ran.out.starts_with("modprobe disktime-iosched\n"),
        "{}",
        ran.out
    );
}

#[test]
fn a_failing_enable_takes_back_what_it_did() {
    let tree = Tree::new();
    // Reads as 65536; no write is permitted.
    tree.forbid(
        "sys/block/sda/queue/nr_requests",
        "/proc/sys/kernel/ngroups_max",
    );
    let ran = tree.fails(
        5,
        &["enable", "sda"],
        &[
            "cannot enable disktime on sda",
            "nr_requests",
            "(EACCES)",
            "hint: run it as root",
        ],
    );
    assert!(!ran.err.contains("restored"), "{}", ran.err);
    assert_eq!(tree.get("sys/block/sda/queue/scheduler"), "mq-deadline\n");
    assert!(!tree.exists("run/disktime/sda.json") && !tree.exists(CONFIG) && !tree.exists(RULES));
}

#[test]
fn persisting_where_etc_cannot_be_written_takes_the_switch_back() {
    let tree = Tree::new();
    tree.put("etc", "a file, not a folder");
    tree.fails(1, &["enable", "sda"], &["etc/disktime", "ENOTDIR"]);
    assert_eq!(tree.get("sys/block/sda/queue/scheduler"), "mq-deadline\n");
    assert_eq!(tree.get("sys/block/sda/queue/nr_requests"), "64\n");
}

#[test]
fn changes_are_reported_in_json() {
    let tree = Tree::new();
    let ran = tree.ok(&["enable", "sda", "--json", "--runtime"]);
    let report: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(report["disktime_change"], 1);
    assert_eq!(report["verb"], "enable");
    assert_eq!(report["target"]["device"], "sda");
    assert_eq!(report["writes"][0]["value"], "disktime");
    assert_eq!(report["writes"][1]["value"], "256");
    tree.fails(
        2,
        &["disable", "sda", "-o", "csv"],
        &["no output of that form"],
    );
    assert_eq!(
        tree.get("sys/block/sda/queue/scheduler"),
        "disktime\n",
        "a refused form must change nothing"
    );
}

#[test]
fn disable_of_what_is_not_active_is_exit_3() {
    let tree = Tree::new();
    tree.fails(
        3,
        &["disable", "sda"],
        &["disktime is not active on sda", "hint: "],
    );
}
