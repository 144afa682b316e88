//! One case: a machine that boots, runs one command, and ends.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::cache::{self, Lock};
use crate::console::{self, Allow};
use crate::error::{At, Error, Result};
use crate::initramfs;
use crate::kernel::{self, Kernel};
use crate::progress::Progress;

/// A module to load before the command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// A name, for one of the kernel's own; a path, for a `.ko` file of the host.
    pub module: String,
    /// Its parameters, separated by blanks.
    pub params: String,
}

/// A case to run. [`VmCase::new`] gives the defaults.
#[derive(Debug, Clone)]
pub struct VmCase {
    /// Names the case in messages and, as `DISKTIME_VM`, in the guest.
    pub name: String,
    /// One of [`kernel::KERNELS`].
    pub kernel: String,
    /// The command and its arguments, as the guest sees them.
    pub cmd: Vec<String>,
    /// Added to the command's environment.
    pub env: Vec<(String, String)>,
    /// Loaded before the command, in order, with what they depend on.
    pub modules: Vec<Load>,
    /// Modules (names or `.ko` files) that modprobe and the kernel's autoloading find.
    pub provide: Vec<String>,
    /// Programs of the host with their libraries, and where they go (`/bin/NAME`).
    pub bins: Vec<(PathBuf, Option<String>)>,
    /// Files or folders of the host, and where they go.
    pub files: Vec<(PathBuf, String)>,
    /// Whether PostgreSQL's server and pgbench are there, in `/usr/lib/postgresql/VERSION/bin`.
    pub postgres: bool,
    /// Sizes in bytes of empty disks, `/dev/vda` and so on.
    pub disks: Vec<u64>,
    /// Where what the case left in `/out` goes on the host; `None` throws it away.
    pub out_dir: Option<PathBuf>,
    /// Added to the kernel's command line.
    pub append: Vec<String>,
    /// Virtual CPUs.
    pub cpus: u32,
    /// Whether the machine's clock counts instructions, one a nanosecond, rather than time: what
    /// it measures then does not depend on the host. Emulated whatever the host has, all CPUs by
    /// turns, and slow: a second of it takes ten or more.
    pub instructions: bool,
    /// Memory as QEMU takes it.
    pub mem: String,
    /// The machine is killed after this.
    pub timeout: Duration,
    /// Kernel complaints that are no failure here. Any entry also switches `panic_on_warn` off.
    pub allow: Vec<Allow>,
}

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    /// The command ended with this code (128 + N after signal N) on a healthy kernel.
    Exited(i32),
    /// The kernel complained; the lines.
    Kernel(Vec<String>),
    /// It ran into its time limit.
    TimedOut,
    /// The command could not be run at all, or the machine ended early; why.
    Broken(String),
}

impl Status {
    /// The exit code that `disktime-vm run` ends with.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Self::Exited(code) => *code,
            Self::TimedOut => 124,
            Self::Kernel(_) => 125,
            Self::Broken(_) => 126,
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit status {code}"),
            Self::TimedOut => f.write_str("ran into its time limit"),
            Self::Kernel(lines) => {
                let more = match lines.len() {
                    0 | 1 => String::new(),
                    n => format!(" (and {} more)", n - 1),
                };
                write!(
                    f,
                    "the kernel complained: {}{more}",
                    lines.first().map_or("", |l| l)
                )
            }
            Self::Broken(why) => f.write_str(why),
        }
    }
}

/// What a case left.
#[derive(Debug, Clone)]
pub struct VmOutcome {
    /// How it ended.
    pub status: Status,
    /// What the command printed.
    pub log: String,
    /// What the kernel printed.
    pub console: String,
    /// The folder of [`VmCase::out_dir`], if the case wrote anything.
    pub out_dir: Option<PathBuf>,
    /// Whether init came as far as to load the case's own modules.
    pub up: bool,
    /// From the start of QEMU until init was ready to run the command.
    pub boot_ms: Option<u64>,
    /// From the start of QEMU to its end.
    pub total_ms: u64,
    /// `tcg` or `kvm`.
    pub accel: &'static str,
}

impl VmOutcome {
    /// Whether the command ended with 0 on a healthy kernel.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.status == Status::Exited(0)
    }

    /// A machine that stands still on its way up, where nothing that is tested here was loaded yet.
    fn never_came_up(&self) -> Option<&'static str> {
        (self.status == Status::TimedOut && !self.up).then_some("did not come up")
    }
}

/// Taint flags that only a fault sets: machine check, bad page, died, warned, soft lockup.
const FAULT_TAINT: u64 = 1 << 4 | 1 << 5 | 1 << 7 | 1 << 9 | 1 << 14;

/// A machine that is not up by then never will be: it takes 2 to 4 s, and ten times as long on a host
/// that is very busy or where instructions are counted.
const BOOT_LIMIT: Duration = Duration::from_secs(120);

/// How often a running machine is looked at.
const POLL: Duration = Duration::from_millis(5);

/// How often a machine is started anew after a fault that can only be the emulator's.
const EMULATOR_RETRIES: usize = 2;

/// Flags that no CPU of this architecture ever sets, whatever a program does (Intel's manual, volume
/// 1, figure 3-8).
const EFLAGS_RESERVED: u32 = 0xffc0_8028;

/// Faults that nothing which runs in a machine can cause, and CPUs that stand still where no module and
/// no I/O is.
///
/// QEMU before 8.1 may go on running translated code that the kernel has patched
/// (ClangBuiltLinux/boot-utils#111 has the discussion and the fix). A CPU then meets a breakpoint
/// that is long gone, and nobody places others in the kernel; or it goes on with registers of
/// something else, which shows where flags are among them that do not exist; or it never leaves a
/// function. That could be somebody's who wrote over the kernel's memory, but then it happens again.
fn emulators_fault(status: &Status, console: &str) -> Option<&'static str> {
    let Status::Kernel(complaints) = status else {
        return None;
    };
    if complaints.iter().any(|line| line.contains("Oops: int3")) {
        return Some("ran a breakpoint that the kernel had removed");
    }
    if console::stood_still_outside_of_io(console) {
        return Some("stood still in the kernel's own code");
    }
    let impossible = |line: &str| {
        let flags = line.split("EFLAGS: ").nth(1)?.split_whitespace().next()?;
        Some(u32::from_str_radix(flags, 16).ok()? & EFLAGS_RESERVED != 0)
    };
    console
        .lines()
        .any(|line| impossible(line) == Some(true))
        .then_some("lost its registers")
}

impl VmCase {
    /// A case on the default kernel with 2 CPUs, 1 GiB and two minutes.
    #[must_use]
    pub fn new(name: &str, cmd: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            kernel: kernel::KERNELS[0].0.to_owned(),
            cmd: cmd.iter().map(|&s| s.to_owned()).collect(),
            env: Vec::new(),
            modules: Vec::new(),
            provide: Vec::new(),
            bins: Vec::new(),
            files: Vec::new(),
            postgres: false,
            disks: Vec::new(),
            out_dir: None,
            append: Vec::new(),
            cpus: 2,
            instructions: false,
            mem: "1024M".into(),
            timeout: Duration::from_secs(120),
            allow: Vec::new(),
        }
    }

    /// Loads a module of the kernel, or a `.ko` file, with parameters.
    #[must_use]
    pub fn module(mut self, module: impl Into<String>, params: &str) -> Self {
        self.modules.push(Load {
            module: module.into(),
            params: params.to_owned(),
        });
        self
    }

    /// Runs the case quietly. An error is a fault of the set-up on this host; whatever happens
    /// in the machine is an outcome.
    pub fn run(&self) -> Result<VmOutcome> {
        self.run_with(&Progress::none(), &mut |_| {})
    }

    /// Runs the case; `on_log` gets the command's output as it comes.
    pub fn run_with(
        &self,
        progress: &Progress,
        on_log: &mut dyn FnMut(&[u8]),
    ) -> Result<VmOutcome> {
        let kernel = kernel::fetch(&self.kernel, false, progress)?.kernel;
        let accel = self.accelerator(&kernel, progress)?;
        let _in_use = kernel::in_use(&self.kernel)?;
        for _ in 0..EMULATOR_RETRIES {
            let outcome = Machine::new(self, &kernel, accel, Mode::Case, progress)?.run(on_log)?;
            let what = emulators_fault(&outcome.status, &outcome.console)
                .or_else(|| outcome.never_came_up());
            match what {
                Some(what) if accel == "tcg" => {
                    progress.line(&format!("{}: the emulator {what}; again", self.name));
                }
                _ => return Ok(outcome),
            }
        }
        Machine::new(self, &kernel, accel, Mode::Case, progress)?.run(on_log)
    }

    /// Boots into an interactive shell on this terminal and returns when it ends. `cmd`, `out_dir`
    /// and `timeout` are not looked at.
    pub fn shell(&self, progress: &Progress) -> Result<()> {
        let kernel = kernel::fetch(&self.kernel, false, progress)?.kernel;
        let accel = self.accelerator(&kernel, progress)?;
        let _in_use = kernel::in_use(&self.kernel)?;
        let mut case = self.clone();
        let size = rustix::termios::tcgetwinsize(std::io::stdin())
            .ok()
            .filter(|s| s.ws_row > 0 && s.ws_col > 0);
        let resize = size.map_or(String::new(), |s| {
            format!("stty rows {} cols {} 2>/dev/null; ", s.ws_row, s.ws_col)
        });
        let start = format!(
            "{resize}cd /root; echo; echo \"Linux $(uname -r). Ends with exit or Ctrl-D; \
             Ctrl-A X kills the machine.\"; exec setsid -c sh -i"
        );
        case.cmd = ["sh", "-c", &start].map(str::to_owned).to_vec();
        case.env.push((
            "PS1".into(),
            format!("disktime-vm {}:\\w# ", kernel.release),
        ));
        if let Ok(term) = std::env::var("TERM") {
            case.env.push(("TERM".into(), term));
        }
        Machine::new(&case, &kernel, accel, Mode::Shell, progress)?.shell()
    }

    /// KVM has no count of instructions to go by.
    fn accelerator(&self, kernel: &Kernel, progress: &Progress) -> Result<&'static str> {
        match self.instructions {
            true => Ok("tcg"),
            false => accelerator(kernel, progress),
        }
    }

    /// A command line that runs this case again.
    #[must_use]
    pub fn command_line(&self) -> String {
        let default = Self::new("", &[]);
        let mut words = vec!["disktime-vm".to_owned(), "run".into()];
        if self.instructions {
            words.push("--instructions".into());
        }
        let mut push = |option: &str, value: String| {
            words.push(option.to_owned());
            words.push(quote(&value));
        };
        push("--kernel", self.kernel.clone());
        push("--name", self.name.clone());
        push("--timeout", self.timeout.as_secs().to_string());
        if self.cpus != default.cpus {
            push("--cpus", self.cpus.to_string());
        }
        if self.mem != default.mem {
            push("--mem", self.mem.clone());
        }
        for Load { module, params } in &self.modules {
            let value = match params.as_str() {
                "" => module.clone(),
                params => format!("{module}:{params}"),
            };
            push("--module", value);
        }
        for module in &self.provide {
            push("--provide", module.clone());
        }
        for (bin, dest) in &self.bins {
            let dest = dest.as_ref().map_or(String::new(), |d| format!(":{d}"));
            push("--bin", format!("{}{dest}", bin.display()));
        }
        for (from, dest) in &self.files {
            push("--file", format!("{}:{dest}", from.display()));
        }
        for bytes in &self.disks {
            push("--disk", bytes.to_string());
        }
        for (key, value) in &self.env {
            push("--env", format!("{key}={value}"));
        }
        for text in &self.append {
            push("--append", text.clone());
        }
        for Allow { pattern, reason } in &self.allow {
            push("--allow", format!("{pattern}={reason}"));
        }
        words.push("--".into());
        words.extend(self.cmd.iter().map(|w| quote(w)));
        words.join(" ")
    }
}

fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Whether KVM works on this host is asked once for each of its boots, by booting: a `/dev/kvm`
/// that opens proves nothing.
fn accelerator(kernel: &Kernel, progress: &Progress) -> Result<&'static str> {
    match std::env::var("DISKTIME_VM_ACCEL").as_deref() {
        Ok("tcg") => return Ok("tcg"),
        Ok("kvm") => return Ok("kvm"),
        Ok("" | "auto") | Err(_) => {}
        Ok(other) => {
            return Err(Error::new(format!("DISKTIME_VM_ACCEL is {other:?}"))
                .hint("set it to tcg, kvm or auto"));
        }
    }
    if File::options()
        .read(true)
        .write(true)
        .open("/dev/kvm")
        .is_err()
    {
        return Ok("tcg");
    }
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let record = cache::dir()?.join("kvm-probe");
    let read = || {
        let text = fs::read_to_string(&record).ok()?;
        let answer = text.strip_prefix(boot.trim())?.trim();
        Some(if answer == "kvm" { "kvm" } else { "tcg" })
    };
    if let Some(known) = read() {
        return Ok(known);
    }
    let _lock = Lock::exclusive(&cache::dir()?.join("kvm-probe.lock"))?;
    if let Some(known) = read() {
        return Ok(known);
    }
    let mut probe = VmCase::new("kvm-probe", &["true"]);
    probe.kernel.clone_from(&kernel.name);
    probe.timeout = Duration::from_secs(8);
    let _in_use = kernel::in_use(&kernel.name)?;
    let spin = progress.spinner("trying whether KVM works here");
    let outcome = Machine::new(&probe, kernel, "kvm", Mode::Case, progress)?.run(&mut |_| {})?;
    spin.finish();
    let answer = if outcome.passed() { "kvm" } else { "tcg" };
    if answer == "tcg" {
        progress.line(&format!(
            "KVM does not work here ({}): using TCG",
            outcome.status
        ));
    }
    cache::write_atomic(&record, format!("{} {answer}\n", boot.trim()).as_bytes())?;
    Ok(answer)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Case,
    Shell,
}

/// The folder of a machine that runs. Removed when dropped; what a killed harness left is removed
/// by the next one, which sees that nobody holds its lock.
struct RunDir {
    path: PathBuf,
    _lock: Lock,
}

impl RunDir {
    fn new() -> Result<Self> {
        let base = cache::sub("run")?;
        let _creating = Lock::exclusive(&cache::dir()?.join("run.lock"))?;
        for entry in fs::read_dir(&base).at("read", &base)?.flatten() {
            if Lock::attempt(&entry.path().join("lock")).is_some() {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let dir = tempfile::Builder::new()
            .prefix("vm-")
            .tempdir_in(&base)
            .at("create a folder in", &base)?
            .keep();
        let lock = Lock::exclusive(&dir.join("lock"))?;
        Ok(Self {
            path: dir,
            _lock: lock,
        })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn text(&self, name: &str) -> String {
        let bytes = fs::read(self.file(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\r', "")
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// A QEMU process that does not outlive this value.
struct Qemu(Child);

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Machine<'a> {
    case: &'a VmCase,
    accel: &'static str,
    dir: RunDir,
    token: String,
    command: Command,
}

impl<'a> Machine<'a> {
    fn new(
        case: &'a VmCase,
        kernel: &Kernel,
        accel: &'static str,
        mode: Mode,
        progress: &Progress,
    ) -> Result<Self> {
        let dir = RunDir::new()?;
        // Nothing that the command prints can pass for a status line of this run.
        let name = dir
            .path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let token = format!("{name}-{}", std::process::id());
        let shell = mode == Mode::Shell;
        let initrd = dir.file("initrd");
        initramfs::write(case, kernel, &token, shell, &initrd, progress)?;
        let command = qemu(case, kernel, accel, mode, &dir)?;
        Ok(Self {
            case,
            accel,
            dir,
            token,
            command,
        })
    }

    fn spawn(&mut self) -> Result<Qemu> {
        let child = self.command.spawn().map_err(|e| {
            Error::new(format!("cannot run setpriv and qemu-system-x86_64: {e}"))
                .hint("install util-linux and qemu-system-x86")
        })?;
        Ok(Qemu(child))
    }

    fn shell(mut self) -> Result<()> {
        let mut qemu = self.spawn()?;
        qemu.0.wait().at("wait for QEMU in", &self.dir.path)?;
        Ok(())
    }

    fn run(mut self, on_log: &mut dyn FnMut(&[u8])) -> Result<VmOutcome> {
        let start = Instant::now();
        let mut qemu = self.spawn()?;
        let mut log = Tail::new(self.dir.file("log"));
        let mut up = false;
        let mut ready = None;
        let mut timed_out = false;
        let to_boot = self.case.timeout.min(BOOT_LIMIT);
        loop {
            let ended = qemu.0.try_wait().at("wait for QEMU in", &self.dir.path)?;
            log.forward(on_log);
            up = up || self.status_lines().any(|l| l == "up");
            if ready.is_none() && self.status_lines().any(|l| l == "ready") {
                ready = Some(start.elapsed());
            }
            if ended.is_some() {
                break;
            }
            if crate::cancelled() {
                return Err(Error::new(format!("{}: interrupted", self.case.name)));
            }
            if start.elapsed() >= if up { self.case.timeout } else { to_boot } {
                timed_out = true;
                break;
            }
            std::thread::sleep(POLL);
        }
        drop(qemu);
        let total = start.elapsed();
        log.forward(on_log);
        let console = self.dir.text("console");
        let status = self.judge(timed_out, &console)?;
        let ms = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        Ok(VmOutcome {
            status,
            log: self.dir.text("log"),
            console,
            out_dir: self.take_out()?,
            up,
            boot_ms: ready.map(ms),
            total_ms: ms(total),
            accel: self.accel,
        })
    }

    /// The status lines of this run's own token, without it.
    fn status_lines(&self) -> impl Iterator<Item = String> + use<> {
        let prefix = format!("disktime-vm {} ", self.token);
        let text = self.dir.text("status");
        let lines: Vec<_> = text
            .split_inclusive('\n')
            .filter_map(|l| {
                l.strip_suffix('\n')?
                    .strip_prefix(&prefix)
                    .map(str::to_owned)
            })
            .collect();
        lines.into_iter()
    }

    fn judge(&self, timed_out: bool, console: &str) -> Result<Status> {
        let complaints = console::complaints(console, &self.case.allow)?;
        if !complaints.is_empty() {
            return Ok(Status::Kernel(complaints));
        }
        if timed_out {
            return Ok(Status::TimedOut);
        }
        let last = self
            .status_lines()
            .find_map(|l| l.strip_prefix("taint ").map(str::to_owned));
        let Some((taint, what)) = last.as_deref().and_then(|l| l.split_once(' ')) else {
            let said = self.dir.text("qemu");
            let why = said.lines().last().unwrap_or("the console may say why");
            return Ok(Status::Broken(format!(
                "the machine ended without a status: {why}"
            )));
        };
        if let Some(why) = what.strip_prefix("error ") {
            return Ok(Status::Broken(why.to_owned()));
        }
        let fault = taint.parse::<u64>().unwrap_or(0) & FAULT_TAINT;
        if fault != 0 && self.case.allow.is_empty() {
            return Ok(Status::Kernel(vec![format!(
                "the kernel's taint is {taint}: it warned"
            )]));
        }
        match what.strip_prefix("exit ").and_then(|c| c.parse().ok()) {
            Some(code) => Ok(Status::Exited(code)),
            None => Ok(Status::Broken(format!(
                "the machine sent a strange status: {what}"
            ))),
        }
    }

    fn take_out(&self) -> Result<Option<PathBuf>> {
        let Some(to) = &self.case.out_dir else {
            return Ok(None);
        };
        let path = self.dir.file("out");
        let file = File::open(&path).at("open", &path)?;
        if file.metadata().at("read", &path)?.len() == 0 {
            return Ok(None);
        }
        cache::make(to)?;
        tar::Archive::new(file)
            .unpack(to)
            .at("unpack the case's /out to", to)?;
        Ok(Some(to.clone()))
    }
}

/// Reads what a growing file got since the last time.
struct Tail {
    path: PathBuf,
    at: u64,
}

impl Tail {
    fn new(path: PathBuf) -> Self {
        Self { path, at: 0 }
    }

    fn forward(&mut self, to: &mut dyn FnMut(&[u8])) {
        let Ok(mut file) = File::open(&self.path) else {
            return;
        };
        let mut bytes = Vec::new();
        let read = file
            .seek(SeekFrom::Start(self.at))
            .and_then(|_| file.read_to_end(&mut bytes));
        if read.is_ok() && !bytes.is_empty() {
            self.at += bytes.len() as u64;
            to(&bytes);
        }
    }
}

fn qemu(case: &VmCase, kernel: &Kernel, accel: &str, mode: Mode, dir: &RunDir) -> Result<Command> {
    // setpriv makes the kernel kill QEMU when the thread that started it dies, however it dies.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
    command.args(["-name", "disktime-vm"]);
    // Only what a case needs: each device costs boot time under TCG. la57 (five-level page
    // tables) makes each page walk longer.
    command.args(["-M", "q35,sata=off,smbus=off,usb=off,vmport=off"]);
    match accel {
        "kvm" => command.args(["-accel", "kvm", "-cpu", "host"]),
        // While all CPUs wait the clock goes on to the next timer at once.
        _ if case.instructions => command.args([
            "-accel",
            "tcg,thread=single",
            "-cpu",
            "max,la57=off",
            "-icount",
            "shift=0,sleep=off",
        ]),
        _ => command.args(["-accel", "tcg,thread=multi", "-cpu", "max,la57=off"]),
    };
    command.args(["-smp", &case.cpus.to_string(), "-m", &case.mem]);
    command.args([
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
    ]);
    // The uncompressed kernel: QEMU enters it directly and nothing is decompressed in the guest.
    command.arg("-kernel").arg(&kernel.vmlinux);
    command.arg("-initrd").arg(dir.file("initrd"));
    command.arg("-append").arg(command_line(case, mode, accel));
    command.args(["-device", "virtio-serial-pci,max_ports=4"]);
    match mode {
        Mode::Shell => command.args(["-serial", "mon:stdio"]),
        Mode::Case => {
            command
                .arg("-chardev")
                .arg(chardev("con", &dir.file("console"))?);
            command.args(["-serial", "chardev:con"])
        }
    };
    for (id, port) in [
        ("status", "org.disktime.status"),
        ("log", "log"),
        ("out", "org.disktime.out"),
    ] {
        command.arg("-chardev").arg(chardev(id, &dir.file(id))?);
        command.args([
            "-device",
            &format!("virtserialport,chardev={id},name={port}"),
        ]);
    }
    for (n, bytes) in case.disks.iter().enumerate() {
        let path = dir.file(&format!("disk{n}"));
        let file = File::create(&path).at("create", &path)?;
        file.set_len(*bytes).at("create", &path)?;
        let text = path_text(&path)?;
        command
            .args([
                "-drive",
                &format!("if=none,id=d{n},format=raw,cache=unsafe,file={text}"),
            ])
            .args(["-device", &format!("virtio-blk-pci,drive=d{n}")]);
    }
    if mode == Mode::Case {
        let path = dir.file("qemu");
        let stderr = File::create(&path).at("create", &path)?;
        let stdout = stderr.try_clone().at("open", &path)?;
        command.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
        // Ctrl-C is for the harness, which then ends the machine in good order.
        use std::os::unix::process::CommandExt;
        command.process_group(0);
    }
    Ok(command)
}

fn path_text(path: &Path) -> Result<String> {
    // QEMU's option parser takes a doubled comma for one.
    path.to_str()
        .map(|p| p.replace(',', ",,"))
        .ok_or_else(|| Error::new(format!("{} is not UTF-8", path.display())))
}

fn chardev(id: &str, path: &Path) -> Result<String> {
    File::create(path).at("create", path)?;
    Ok(format!("file,id={id},path={}", path_text(path)?))
}

fn command_line(case: &VmCase, mode: Mode, accel: &str) -> String {
    let strict = mode == Mode::Case && case.allow.is_empty();
    let mut words = vec![
        "console=ttyS0".to_owned(),
        // Warnings and worse: every character costs time on the serial line.
        "loglevel=5".into(),
        format!("panic_on_warn={}", u8::from(strict)),
        "oops=panic".into(),
        // Who stands still for 20 s will for ever: what the first trace says is at the end then.
        format!(
            "sysctl.kernel.panic_on_rcu_stall={}",
            u8::from(mode == Mode::Case)
        ),
        format!("softlockup_panic={}", u8::from(mode == Mode::Case)),
        // Restart at once on a panic, which -no-reboot turns into the end.
        "panic=-1".into(),
        "mitigations=off".into(),
        // Self-tests and start-up of ciphers that no case uses: half a second of emulation.
        "cryptomgr.notests".into(),
        "initcall_blacklist=jent_mod_init,crypto_kdf108_init,init_encrypted".into(),
    ];
    if accel == "tcg" {
        // The watchdog that compares clocks sees a busy host and would replace the time stamp
        // counter by a timer that costs microseconds to read.
        words.push("tsc=reliable".into());
        // Measuring the delay loop of each further CPU takes most of a second. The guest's time
        // stamp counter is the host's, and delays are counted in it.
        if let Some(lpj) = fs::read_to_string("/proc/cpuinfo")
            .ok()
            .and_then(|t| loops(&t))
        {
            words.push(format!("lpj={lpj}"));
        }
    }
    words.extend(case.append.iter().cloned());
    words.join(" ")
}

/// Time stamp counts in a tick of Debian's kernels (HZ=250), from the host's BogoMIPS: on x86
/// twice the counter's frequency in MHz.
fn loops(cpuinfo: &str) -> Option<u64> {
    let line = cpuinfo.lines().find(|l| l.starts_with("bogomips"))?;
    let bogomips: f64 = line.split(':').nth(1)?.trim().parse().ok()?;
    (bogomips > 100.0).then_some((bogomips * 500_000.0 / 250.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_before_anything_of_the_case_was_loaded_a_machine_did_not_come_up() {
        let outcome = |status: Status, up| VmOutcome {
            status,
            log: String::new(),
            console: String::new(),
            out_dir: None,
            up,
            boot_ms: None,
            total_ms: 1,
            accel: "tcg",
        };
        assert!(outcome(Status::TimedOut, false).never_came_up().is_some());
        assert!(outcome(Status::TimedOut, true).never_came_up().is_none());
        let early = outcome(Status::Broken("it ended".into()), false);
        assert!(early.never_came_up().is_none());
    }

    #[test]
    fn only_what_no_program_can_do_is_the_emulators_fault() {
        let fault = |line: &str, console: &str| {
            emulators_fault(&Status::Kernel(vec![line.to_owned()]), console).is_some()
        };
        assert!(fault("[    2.5] Oops: int3: 0000 [#1] SMP", ""));
        assert!(!fault("[    2.5] Oops: divide error: 0000", ""));
        // Bits 23 and 26.
        let lost = "RSP: 0018:ffffc9000054fce0 EFLAGS: 04820782";
        assert!(fault("[    5.5] Oops: double fault: 0000 [#1]", lost));
        // All that a CPU has.
        let kept = "RSP: 0018:ffffc9000054fce0 EFLAGS: 003f7fd7 ORIG_RAX: 00000000000000d1";
        assert!(!fault("[    5.5] Oops: double fault: 0000 [#1]", kept));
        assert!(emulators_fault(&Status::Exited(3), lost).is_none());
        let stall = "[   22.9] rcu: INFO: rcu_preempt self-detected stall on CPU";
        let trace = |function: &str| {
            format!(
                "{stall}\n[   22.9] Call Trace:\n[   22.9]  <TASK>\n[   22.9]  {function}\n\
                 [   22.9]  unmap_page_range+0x884/0x1150\n[   22.9]  </TASK>\n\
                 [   22.9] Modules linked in: disktime_iosched(OE) disktime(OE) null_blk\n"
            )
        };
        assert!(fault(stall, &trace("__tlb_remove_page_size+0x51/0x90")));
        for ours in [
            "dt_dispatch+0x51/0x90 [disktime_iosched]",
            "blk_mq_run_hw_queue+0x51/0x90",
            "_raw_spin_lock_irqsave+0x51/0x90",
            "queued_read_lock_slowpath+0x51/0x90",
            "rwsem_spin_on_owner+0x51/0x90",
        ] {
            assert!(!fault(stall, &trace(ours)), "{ours}");
        }
        let other = "[   22.8] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:";
        for (function, emulators) in [
            ("kmem_cache_alloc+0x5e/0x300", true),
            ("dt_dispatch+0x51/0x90 [disktime_iosched]", false),
        ] {
            let console = trace(function).replace(stall, other);
            assert_eq!(fault(other, &console), emulators, "{function}");
        }
        // Nothing is known of where.
        assert!(!fault(stall, stall));
    }

    #[test]
    fn the_command_line_quotes_what_a_shell_would_take_apart() {
        let mut case = VmCase::new("a b", &["sh", "-c", "echo 'x' $y"]);
        case = case.module("null_blk", "nr_devices=0 queue_mode=2");
        assert_eq!(
            case.command_line(),
            "disktime-vm run --kernel 6.12 --name 'a b' --timeout 120 \
             --module 'null_blk:nr_devices=0 queue_mode=2' -- sh -c 'echo '\\''x'\\'' $y'"
        );
    }

    #[test]
    fn warnings_stop_the_machine_unless_the_case_expects_some() {
        let mut case = VmCase::new("x", &["true"]);
        assert!(command_line(&case, Mode::Case, "tcg").contains("panic_on_warn=1"));
        case.allow.push(Allow {
            pattern: "x".into(),
            reason: "y".into(),
        });
        assert!(command_line(&case, Mode::Case, "tcg").contains("panic_on_warn=0"));
    }

    #[test]
    fn the_delay_loop_is_the_host_counter_over_a_tick() {
        assert_eq!(
            loops("processor : 0\nbogomips\t: 5192.26\n"),
            Some(10_384_520)
        );
        assert_eq!(loops("processor : 0\n"), None);
        assert_eq!(loops("bogomips : none\n"), None);
    }
}
