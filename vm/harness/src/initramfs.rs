//! Puts together what the guest boots from: a part that all cases share, a part for the kernel's
//! modules, both cached, and a small part for the case. The kernel accepts several archives one
//! after the other, so joining them is copying.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::{self, Lock};
use crate::case::VmCase;
use crate::cpio::Cpio;
use crate::error::{At, Error, Result};
use crate::kernel::Kernel;
use crate::modules::{self, Index, Module};
use crate::programs::{self, Files, Libraries};
use crate::progress::Progress;

/// The guest's init, built beside this crate.
const INIT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/dt-init"));

/// Modules that every guest can load with modprobe, where the kernel has them.
const PROVIDED: [&str; 13] = [
    "bfq",
    "brd",
    "configfs",
    "dm_delay",
    "dm_mod",
    "kyber_iosched",
    "loop",
    "null_blk",
    "scsi_debug",
    "sd_mod",
    "ublk_drv",
    "virtio_blk",
    "virtio_pci",
];
/// Modules that init needs itself, in this order.
const BOOT: [&str; 3] = ["virtio_pci", "virtio_console", "configfs"];

/// Raised when the content of a cached part changes for the same inputs.
const FORMAT: u32 = 2;

fn stamp(path: &Path, hasher: &mut DefaultHasher) -> Result<()> {
    let meta = fs::metadata(path).at("read", path)?;
    (
        path,
        meta.len(),
        meta.mtime(),
        meta.mtime_nsec(),
        meta.ino(),
    )
        .hash(hasher);
    Ok(())
}

/// The cached archive of that key, made if it is missing.
fn cached(
    kind: &str,
    hasher: DefaultHasher,
    make: impl FnOnce() -> Result<Vec<u8>>,
) -> Result<PathBuf> {
    let dir = cache::sub("guest")?;
    let path = dir.join(format!("{kind}-{:016x}.cpio", hasher.finish()));
    if path.exists() {
        return Ok(path);
    }
    let bytes = make()?;
    prune(&dir, &format!("{kind}-"));
    cache::write_atomic(&path, &bytes)?;
    Ok(path)
}

/// Removes archives that were made long ago, all but the newest three: builds of this crate that
/// are used in turn each have their own. One that is just being read stays readable.
fn prune(dir: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    let mut found: Vec<_> = entries
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().starts_with(prefix))
        .filter_map(|e| Some((e.metadata().ok()?.modified().ok()?, e.path())))
        .collect();
    found.sort();
    let old = found.len().saturating_sub(3);
    for (_, path) in &found[..old] {
        let _ = fs::remove_file(path);
    }
}

/// Init, busybox with its applets, and fio.
fn programs_part(progress: &Progress) -> Result<File> {
    let (busybox, _) = programs::find("busybox", "busybox-static", programs::is_static, progress)?;
    let (fio, fio_root) = programs::find("fio", "fio", programs::is_program, progress)?;
    let mut hasher = DefaultHasher::new();
    (FORMAT, INIT).hash(&mut hasher);
    stamp(&busybox, &mut hasher)?;
    stamp(&fio, &mut hasher)?;
    let _lock = Lock::exclusive(&cache::sub("guest")?.join("lock"))?;
    let path = cached("programs", hasher, || {
        let mut archive = Cpio::new();
        for dir in [
            "case", "dev", "etc", "lib", "lib64", "mnt", "out", "proc", "root", "run", "sbin",
            "sys", "tmp", "usr/bin", "usr/sbin", "var",
        ] {
            archive.dir(dir);
        }
        archive.char_device("dev/console", 5, 1);
        archive.char_device("dev/null", 1, 3);
        archive.file("init", 0o755, INIT);
        archive.file("etc/passwd", 0o644, b"root:x:0:0:root:/root:/bin/sh\n");
        archive.file("etc/group", 0o644, b"root:x:0:\n");
        archive.host_file("bin/busybox", &busybox)?;
        for applet in applets(&busybox)? {
            if applet != "busybox" {
                archive.symlink(&format!("bin/{applet}"), "busybox");
            }
        }
        archive.symlink("sbin/modprobe", "/bin/busybox");
        archive.symlink("usr/bin/env", "/bin/busybox");
        archive.host_file("bin/fio", &fio)?;
        let stubs = cache::sub("guest/stubs")?;
        let libs = programs::libraries(&fio, fio_root.as_deref(), Libraries::Slim, &stubs)?;
        add_files(&mut archive, &libs)?;
        Ok(archive.finish())
    })?;
    File::open(&path).at("open", &path)
}

fn applets(busybox: &Path) -> Result<Vec<String>> {
    let output = Command::new(busybox)
        .arg("--list")
        .stdin(Stdio::null())
        .output()
        .at("run", busybox)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let list: Vec<_> = text.lines().map(str::to_owned).collect();
    if !output.status.success() || list.is_empty() {
        return Err(Error::new(format!(
            "{} lists no applets",
            busybox.display()
        )));
    }
    Ok(list)
}

fn add_files(archive: &mut Cpio, files: &Files) -> Result<()> {
    for (guest, host) in files {
        archive.host_file(guest, host)?;
    }
    Ok(())
}

fn modules_part(kernel: &Kernel, provided: &[(String, Module)]) -> Result<File> {
    let mut hasher = DefaultHasher::new();
    (FORMAT, &kernel.release).hash(&mut hasher);
    for (_, module) in provided {
        stamp(&module.host, &mut hasher)?;
    }
    let _lock = Lock::exclusive(&cache::sub("guest")?.join("lock"))?;
    let path = cached(&format!("modules-{}", kernel.name), hasher, || {
        let mut archive = Cpio::new();
        for (_, module) in provided {
            archive.host_file(&module_path(kernel, module), &module.host)?;
        }
        Ok(archive.finish())
    })?;
    File::open(&path).at("open", &path)
}

fn module_path(kernel: &Kernel, module: &Module) -> String {
    format!("lib/modules/{}/{}", kernel.release, module.guest)
}

/// Writes the case's initramfs.
pub(crate) fn write(
    case: &VmCase,
    kernel: &Kernel,
    token: &str,
    shell: bool,
    to: &Path,
    progress: &Progress,
) -> Result<()> {
    let mut index = Index::new(kernel)?;
    let provided_names: Vec<_> = PROVIDED.into_iter().filter(|n| index.has(n)).collect();
    let disk = (!case.disks.is_empty()).then_some("virtio_blk");
    let boot: Vec<_> = BOOT
        .into_iter()
        .chain(disk)
        .filter(|n| index.has(n))
        .collect();
    let provided = index.order(provided_names.iter().chain(&boot).copied())?;

    // The case's own modules by name; those of the kernel are known by name already.
    let mut name_of = |text: &str| match text.contains('/') || text.contains(".ko") {
        true => index.add(Path::new(text)),
        false => Ok(text.to_owned()),
    };
    let mut extra = Vec::new();
    for text in &case.provide {
        extra.push(name_of(text)?);
    }
    let mut load = Vec::new();
    for module in &case.modules {
        load.push((
            name_of(&module.module)?.replace('-', "_"),
            module.params.as_str(),
        ));
    }
    let case_modules = index.order(
        extra
            .iter()
            .map(String::as_str)
            .chain(load.iter().map(|(n, _)| n.as_str())),
    )?;
    // What init needs itself comes first, with what that needs.
    let to_boot = index.order(boot.iter().copied())?.len();
    let to_load = index.order(
        boot.iter()
            .copied()
            .chain(load.iter().map(|(n, _)| n.as_str())),
    )?;

    let mut archive = Cpio::new();
    let mut all = provided.clone();
    for (name, module) in case_modules {
        if !provided
            .iter()
            .any(|(n, m)| *n == name && m.host == module.host)
        {
            archive.host_file(&module_path(kernel, &module), &module.host)?;
        }
        all.retain(|(n, _)| *n != name);
        all.push((name, module));
    }
    for (file, text) in modules::tables(&all, kernel)? {
        archive.file(
            &format!("lib/modules/{}/{file}", kernel.release),
            0o644,
            text.as_bytes(),
        );
    }
    let (inits, cases) = to_load.split_at(to_boot);
    for (file, modules) in [("case/boot", inits), ("case/modules", cases)] {
        let list: String = modules
            .iter()
            .map(|(name, module)| {
                let params = load.iter().find(|(n, _)| n == name).map_or("", |(_, p)| p);
                format!("/{} {params}\n", module_path(kernel, module))
            })
            .collect();
        archive.file(file, 0o644, list.as_bytes());
    }
    archive.file("case/token", 0o644, token.as_bytes());
    if shell {
        archive.file("case/shell", 0o644, b"");
    }
    archive.file("case/argv", 0o644, nul_separated(&case.cmd).as_bytes());
    let mut env = vec![
        "PATH=/case:/bin:/sbin:/usr/bin:/usr/sbin".to_owned(),
        "HOME=/root".into(),
        "LANG=C".into(),
        "TERM=vt100".into(),
        format!("DISKTIME_VM={}", case.name),
        format!("DISKTIME_VM_KERNEL={}", kernel.name),
    ];
    env.extend(case.env.iter().map(|(k, v)| format!("{k}={v}")));
    archive.file("case/env", 0o644, nul_separated(&env).as_bytes());
    for (bin, dest) in &case.bins {
        let name = bin.file_name().unwrap_or_default().to_string_lossy();
        let dest = dest.clone().unwrap_or_else(|| format!("/bin/{name}"));
        archive.host_file(&dest, bin)?;
        let stubs = cache::sub("guest/stubs")?;
        add_files(
            &mut archive,
            &programs::libraries(bin, None, Libraries::All, &stubs)?,
        )?;
    }
    for (from, dest) in &case.files {
        archive.host_tree(dest, from)?;
    }
    if case.postgres {
        for (dest, from) in programs::postgres(progress)? {
            archive.host_tree(&dest, &from)?;
        }
    }

    let mut out = File::create(to).at("create", to)?;
    for mut part in [programs_part(progress)?, modules_part(kernel, &provided)?] {
        std::io::copy(&mut part, &mut out).at("write", to)?;
    }
    out.write_all(&archive.finish()).at("write", to)
}

fn nul_separated(items: &[String]) -> String {
    items.iter().map(|i| format!("{i}\0")).collect()
}
