//! PID 1 of a test machine.
//!
//! It prepares the machine (mounts, modules, cgroup controllers), runs one command, hands its
//! output, its files and its exit status to the host over virtio ports, and powers off.
//!
//! What the host wrote for it lies in `/case`:
//!
//! | file | content |
//! |---|---|
//! | `token` | a word that the status port repeats, so that no other output passes for a status |
//! | `boot` | modules that init needs itself, one a line, in the order to load: path, then parameters |
//! | `modules` | those of the case, loaded after them |
//! | `argv`, `env` | NUL-separated |
//! | `shell` | if present: run the command on the console, as a terminal |
//!
//! Ports, by name: `log` gets the command's output, `org.disktime.out` a tar archive of `/out`,
//! `org.disktime.status` lines that begin with `disktime-vm TOKEN`: `up` before the first of the case's
//! modules is loaded, `ready` after the last, then `taint N exit N` or `taint N error TEXT`.

use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::kmod::{ModuleInitFlags, finit_module};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

/// A case whose command prints without end must not fill the host's disk.
const LOG_LIMIT: u64 = 64 << 20;
/// virtio ports appear a little after their driver was loaded; past this they never will.
const PORT_WAIT: Duration = Duration::from_secs(10);

fn main() {
    if std::process::id() != 1 {
        eprintln!("dt-init is PID 1 of a test machine and does nothing elsewhere.");
        std::process::exit(2);
    }
    mounts();
    let token = read_trimmed("/case/token");
    let booted = load_modules("/case/boot");
    let mut status = open_port("org.disktime.status");
    let mut say = |what: &str| {
        let line = format!("disktime-vm {token} {what}\n");
        match status.as_mut() {
            Ok(port) => port.write_all(line.as_bytes()).is_ok(),
            Err(_) => false,
        }
    };
    say("up");
    let loaded = booted.and_then(|()| load_modules("/case/modules"));
    say("ready");
    let shell = Path::new("/case/shell").exists();
    let outcome = loaded.and_then(|()| {
        controllers();
        sysctls(shell);
        run(shell)
    });
    let taint = read_trimmed("/proc/sys/kernel/tainted");
    let sent = send_out();
    let last = match (&outcome, &sent) {
        (Err(why), _) | (Ok(_), Err(why)) => format!("taint {taint} error {why}"),
        (Ok(code), Ok(())) => format!("taint {taint} exit {code}"),
    };
    if !say(&last) {
        eprintln!("dt-init: the status port is missing; the status was: {last}");
    }
    // No sync(2): a scheduler that lost a request would keep the machine here for ever, and
    // whoever wants data on a disk of this machine has said so before.
    let _ = reboot(RebootMode::RB_POWER_OFF);
    loop {
        thread::park();
    }
}

fn read_trimmed(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn mounts() {
    let none = MsFlags::empty();
    for (kind, target, data) in [
        ("devtmpfs", "/dev", "mode=0755"),
        ("proc", "/proc", ""),
        ("sysfs", "/sys", ""),
        ("tmpfs", "/tmp", "mode=1777"),
        ("tmpfs", "/run", "mode=0755"),
        ("tmpfs", "/out", "mode=0777"),
        ("devpts", "/dev/pts", "mode=0620,ptmxmode=0666"),
        ("tmpfs", "/dev/shm", "mode=1777"),
        ("cgroup2", "/sys/fs/cgroup", ""),
        ("debugfs", "/sys/kernel/debug", ""),
        ("tracefs", "/sys/kernel/tracing", ""),
    ] {
        let _ = fs::create_dir_all(target);
        if let Err(errno) = mount(Some(kind), target, Some(kind), none, Some(data)) {
            eprintln!("dt-init: mount {kind} on {target}: {errno}");
        }
    }
    for (to, name) in [
        ("/proc/self/fd", "/dev/fd"),
        ("/proc/self/fd/0", "/dev/stdin"),
        ("/proc/self/fd/1", "/dev/stdout"),
        ("/proc/self/fd/2", "/dev/stderr"),
    ] {
        let _ = symlink(to, name);
    }
    let _ = fs::write("/proc/sys/kernel/hostname", "disktime-vm");
    let _ = setrlimit(Resource::RLIMIT_NOFILE, 65536, 65536);
    let _ = setrlimit(Resource::RLIMIT_MEMLOCK, u64::MAX, u64::MAX);
}

/// Loads the listed modules. One that is loaded already, or built in, is no error.
fn load_modules(list: &str) -> Result<(), String> {
    for line in fs::read_to_string(list).unwrap_or_default().lines() {
        let (path, params) = line.split_once(' ').unwrap_or((line, ""));
        if path.is_empty() {
            continue;
        }
        let file = File::open(path).map_err(|e| format!("module {path}: {e}"))?;
        let params = CString::new(params).map_err(|e| format!("module {path}: {e}"))?;
        match finit_module(&file, &params, ModuleInitFlags::empty()) {
            Ok(()) | Err(Errno::EEXIST) => {}
            Err(errno) => {
                return Err(format!(
                    "module {path} {}: {errno}; the console says why",
                    params.to_string_lossy()
                ));
            }
        }
    }
    // configfs is a module in stock kernels: it can be mounted only now.
    let target = "/sys/kernel/config";
    if Path::new(target).exists() {
        let _ = mount(
            Some("configfs"),
            target,
            Some("configfs"),
            MsFlags::empty(),
            None::<&str>,
        );
    }
    Ok(())
}

/// Makes the io, memory and cpu controllers available to the root's children.
fn controllers() {
    let have = read_trimmed("/sys/fs/cgroup/cgroup.controllers");
    for name in ["cpu", "io", "memory", "pids"] {
        if have.split(' ').any(|c| c == name) {
            let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", format!("+{name}"));
        }
    }
}

fn sysctls(shell: bool) {
    for (name, value) in [
        ("hung_task_timeout_secs", "30"),
        ("hung_task_check_interval_secs", "10"),
        ("hung_task_warnings", "-1"),
        ("hung_task_panic", if shell { "0" } else { "1" }),
    ] {
        let _ = fs::write(format!("/proc/sys/kernel/{name}"), value);
    }
}

/// Opens the virtio port of that name, waiting for it to appear.
fn open_port(name: &str) -> io::Result<File> {
    let start = Instant::now();
    loop {
        if let Some(dev) = find_port(name) {
            match OpenOptions::new().write(true).open(&dev) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                other => return other,
            }
        }
        if start.elapsed() > PORT_WAIT {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("no virtio port {name}"),
            ));
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn find_port(name: &str) -> Option<PathBuf> {
    fs::read_dir("/sys/class/virtio-ports")
        .ok()?
        .flatten()
        .find_map(|entry| {
            let found = fs::read_to_string(entry.path().join("name")).ok()?;
            (found.trim() == name).then(|| Path::new("/dev").join(entry.file_name()))
        })
}

fn nul_separated(path: &str) -> Vec<String> {
    let bytes = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// Runs the command to its end and returns its exit code, 128 + N when signal N ended it.
fn run(shell: bool) -> Result<i32, String> {
    let argv = nul_separated("/case/argv");
    let (program, args) = argv.split_first().ok_or("the case names no command")?;
    let mut command = Command::new(program);
    command.args(args).current_dir("/tmp").env_clear();
    for pair in nul_separated("/case/env") {
        if let Some((key, value)) = pair.split_once('=') {
            command.env(key, value);
        }
    }
    let relay = if shell {
        let tty = || OpenOptions::new().read(true).write(true).open("/dev/ttyS0");
        let opened = (tty(), tty(), tty());
        let (Ok(stdin), Ok(stdout), Ok(stderr)) = opened else {
            return Err("cannot open /dev/ttyS0".into());
        };
        command.stdin(stdin).stdout(stdout).stderr(stderr);
        None
    } else {
        let (reader, writer) =
            nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(|e| format!("pipe: {e}"))?;
        let reader = File::from(reader);
        let second = writer.try_clone().map_err(|e| format!("pipe: {e}"))?;
        command
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(second)
            .process_group(0);
        let port = open_port("log").map_err(|e| e.to_string())?;
        Some(thread::spawn(move || forward(reader, port)))
    };
    let child = command
        .spawn()
        .map_err(|e| format!("cannot run {program}: {e}"))?;
    // The command holds the pipe's write ends; without ours the relay sees its end.
    drop(command);
    let code = reap(Pid::from_raw(child.id() as i32))?;
    // What the case left running must neither hold the log open nor write into /out.
    let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
    if let Some(relay) = relay {
        let start = Instant::now();
        while !relay.is_finished() && start.elapsed() < Duration::from_secs(5) {
            let _ = waitpid(None, Some(nix::sys::wait::WaitPidFlag::WNOHANG));
            thread::sleep(Duration::from_millis(1));
        }
        if !relay.is_finished() {
            return Err("a process of the case survived SIGKILL (stuck in the kernel?)".into());
        }
    }
    Ok(code)
}

fn forward(mut from: impl Read, mut to: File) {
    let mut buffer = vec![0; 1 << 16];
    let mut left = LOG_LIMIT;
    while let Ok(n) = from.read(&mut buffer) {
        if n == 0 {
            break;
        }
        if left == 0 {
            continue;
        }
        let _ = to.write_all(&buffer[..n]);
        left = left.saturating_sub(n as u64);
        if left == 0 {
            let _ = to.write_all(b"\n[dt-init: log limit reached, the rest is dropped]\n");
        }
    }
}

/// Collects dead processes, the machine's orphans among them, until `main` is one of them.
fn reap(main: Pid) -> Result<i32, String> {
    loop {
        match waitpid(None, None) {
            Ok(WaitStatus::Exited(pid, code)) if pid == main => return Ok(code),
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == main => {
                return Ok(128 + signal as i32);
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return Err(format!("waitpid: {errno}")),
        }
    }
}

/// Sends `/out` as a tar archive, nothing if it is empty.
fn send_out() -> Result<(), String> {
    let empty = fs::read_dir("/out")
        .map(|mut d| d.next().is_none())
        .unwrap_or(true);
    if empty {
        return Ok(());
    }
    let port = open_port("org.disktime.out").map_err(|e| e.to_string())?;
    let mut archive = tar::Builder::new(io::BufWriter::with_capacity(1 << 16, port));
    archive.follow_symlinks(false);
    archive
        .append_dir_all(".", "/out")
        .and_then(|()| archive.into_inner())
        .and_then(|mut writer| writer.flush())
        .map_err(|e| format!("sending /out: {e}"))
}
