//! Stock Debian kernels, unpacked into the cache: image, modules, headers, type information.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use object::{Object, ObjectSection};
use serde::{Deserialize, Serialize};

use crate::apt::{self, Apt, Package};
use crate::cache::{self, Lock};
use crate::error::{At, Error, Result};
use crate::progress::Progress;

/// The kernels that can be fetched, the default first, each with the suites that have it.
pub const KERNELS: [(&str, &[&str]); 2] =
    [("6.12", &["trixie", "bookworm"]), ("6.1", &["bookworm"])];

/// A kernel in the cache: the content of its `kernel.json`. All paths are absolute.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Kernel {
    /// The name it was asked for by, such as `6.12`.
    pub name: String,
    /// What `uname -r` prints on it.
    pub release: String,
    /// The bootable image.
    pub vmlinuz: PathBuf,
    /// The same kernel uncompressed, without symbols: boots faster, by PVH.
    pub vmlinux: PathBuf,
    /// `lib/modules/RELEASE`.
    pub modules_dir: PathBuf,
    /// What `make -C` wants for external modules.
    pub headers_dir: PathBuf,
    /// Raw BTF of the kernel, the content of `/sys/kernel/btf/vmlinux`.
    pub btf: PathBuf,
    /// The compiler that the headers will call.
    pub cc: String,
    /// The packages it was made of, with their versions.
    pub packages: BTreeMap<String, String>,
}

/// A fetched kernel and what fetching cost; both zero if it was in the cache.
#[derive(Debug)]
pub struct Fetched {
    /// The kernel.
    pub kernel: Kernel,
    /// Time spent downloading.
    pub download: Duration,
    /// Bytes downloaded.
    pub bytes: u64,
}

fn folder(name: &str) -> Result<PathBuf> {
    Ok(cache::sub("kernels")?.join(name))
}

/// A lock against the kernel being replaced while it is used.
pub(crate) fn in_use(name: &str) -> Result<Lock> {
    Lock::shared(&cache::sub("kernels")?.join(format!("{name}.lock")))
}

/// The kernel, if it is in the cache.
pub fn cached(name: &str) -> Result<Option<Kernel>> {
    let path = folder(name)?.join("kernel.json");
    let Ok(text) = fs::read_to_string(&path) else {
        return Ok(None);
    };
    let kernel: Kernel = serde_json::from_str(&text).map_err(|e| {
        Error::new(format!("{} is damaged: {e}", path.display()))
            .hint(format!("run `disktime-vm fetch --refresh {name}`"))
    })?;
    // A cache that was moved or thinned out is fetched again.
    let whole = [
        &kernel.vmlinux,
        &kernel.modules_dir,
        &kernel.headers_dir,
        &kernel.btf,
    ]
    .into_iter()
    .all(|p| p.exists());
    Ok(whole.then_some(kernel))
}

/// The kernel in the cache, downloaded if it is not there, or on `refresh` if the archive has a
/// newer one. Safe to be called by several processes at once.
pub fn fetch(name: &str, refresh: bool, progress: &Progress) -> Result<Fetched> {
    let (_, suites) = KERNELS.iter().find(|(n, _)| *n == name).ok_or_else(|| {
        let known: Vec<_> = KERNELS.iter().map(|(n, _)| *n).collect();
        Error::new(format!("no kernel is called {name:?}"))
            .hint(format!("known kernels: {}", known.join(", ")))
    })?;
    let unchanged = |kernel| Fetched {
        kernel,
        download: Duration::ZERO,
        bytes: 0,
    };
    if !refresh {
        if let Some(kernel) = cached(name)? {
            return Ok(unchanged(kernel));
        }
    }
    let _lock = Lock::exclusive(&cache::sub("kernels")?.join(format!("{name}.lock")))?;
    // Another process may have fetched it while this one waited.
    let old = cached(name).unwrap_or(None);
    if let (false, Some(kernel)) = (refresh, &old) {
        return Ok(unchanged(kernel.clone()));
    }

    let host_suite = host_codename().filter(|c| suites.contains(&c.as_str()));
    let others = suites
        .iter()
        .copied()
        .filter(|s| Some(*s) != host_suite.as_deref());
    let tries = host_suite.as_deref().into_iter().chain(others);

    let mut failure = match fetch_from(&Apt::host(), name, old.as_ref(), progress) {
        Ok(fetched) => return Ok(fetched),
        Err(e) => e,
    };
    for suite in tries {
        if crate::cancelled() {
            break;
        }
        progress.line(&format!(
            "{name}: {failure}; trying {suite} with package lists of our own"
        ));
        let tried = Apt::suite(suite, progress)
            .and_then(|apt| fetch_from(&apt, name, old.as_ref(), progress));
        match tried {
            Ok(fetched) => return Ok(fetched),
            Err(e) => failure = e,
        }
    }
    Err(failure)
}

fn host_codename() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix("VERSION_CODENAME="))?;
    Some(line.trim_matches('"').to_owned())
}

fn fetch_from(apt: &Apt, name: &str, old: Option<&Kernel>, progress: &Progress) -> Result<Fetched> {
    let (release, packages) = resolve(apt, name)?;
    let versions: BTreeMap<_, _> = packages
        .iter()
        .map(|p| (p.name.clone(), p.version.clone()))
        .collect();
    if let Some(old) = old.filter(|k| k.packages == versions) {
        let kernel = old.clone();
        return Ok(Fetched {
            kernel,
            download: Duration::ZERO,
            bytes: 0,
        });
    }
    let target = folder(name)?;
    let parent = cache::sub("kernels")?;
    // What an interrupted fetch left is removed when its turn comes again.
    let work = parent.join(format!("{name}.partial"));
    remove(&work)?;
    let result = build(
        apt, name, &release, &packages, versions, &work, &target, progress,
    );
    if result.is_err() {
        let _ = remove(&work);
    }
    result
}

#[allow(clippy::too_many_arguments)]
fn build(
    apt: &Apt,
    name: &str,
    release: &str,
    packages: &[Package],
    versions: BTreeMap<String, String>,
    work: &Path,
    target: &Path,
    progress: &Progress,
) -> Result<Fetched> {
    let debs = work.join("debs");
    let download = apt.lists + apt.download(packages, &debs, progress)?;
    let bytes = packages.iter().map(|p| p.size).sum();
    apt::unpack(&debs, &work.join("root"), progress)?;
    remove(&debs)?;

    let spin = progress.spinner("extracting the kernel and its BTF");
    let vmlinuz = PathBuf::from(format!("root/boot/vmlinuz-{release}"));
    let image = fs::read(work.join(&vmlinuz)).at("read", &work.join(&vmlinuz))?;
    let elf = decompress_image(&image)
        .ok_or_else(|| Error::new(format!("{} is no kernel image", vmlinuz.display())))??;
    let btf = btf_section(&elf)?;
    fs::write(work.join("vmlinux"), &elf).at("write", &work.join("vmlinux"))?;
    fs::write(work.join("btf"), btf).at("write", &work.join("btf"))?;
    let cc = relocate_headers(&work.join("root"), &target.join("root"), release)?;
    spin.finish();

    let modules = ["root/lib/modules", "root/usr/lib/modules"]
        .map(|d| Path::new(d).join(release))
        .into_iter()
        .find(|d| work.join(d).join("kernel").is_dir())
        .ok_or_else(|| Error::new(format!("the packages of {release} hold no modules")))?;
    let kernel = Kernel {
        name: name.to_owned(),
        release: release.to_owned(),
        vmlinuz: target.join(vmlinuz),
        vmlinux: target.join("vmlinux"),
        modules_dir: target.join(modules),
        headers_dir: target.join(format!("root/usr/src/linux-headers-{release}")),
        btf: target.join("btf"),
        cc,
        packages: versions,
    };
    let json = serde_json::to_string_pretty(&kernel)
        .map_err(|e| Error::new(format!("kernel.json: {e}")))?;
    fs::write(work.join("kernel.json"), json + "\n").at("write", &work.join("kernel.json"))?;
    remove(target)?;
    fs::rename(work, target).at("rename", work)?;
    Ok(Fetched {
        kernel,
        download,
        bytes,
    })
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(e).at("remove", path),
        _ => Ok(()),
    }
}

/// The release and the packages behind the meta-packages, which are called
/// `linux-image-6.12-amd64` where a suite has several kernels and `linux-image-amd64` for its own.
fn resolve(apt: &Apt, name: &str) -> Result<(String, Vec<Package>)> {
    let prefix = format!("linux-image-{name}.");
    for middle in [format!("{name}-"), String::new()] {
        let Some(meta) = apt.show(&format!("linux-image-{middle}amd64"))? else {
            continue;
        };
        let Some(image) = meta.depends.iter().find(|d| d.starts_with(&prefix)) else {
            continue;
        };
        let release = image.trim_start_matches("linux-image-").to_owned();
        let image_parts =
            |d: &str| d.starts_with("linux-modules-") || d.starts_with("linux-binary-");
        let header_parts =
            |d: &str| d.starts_with("linux-headers-") || d.starts_with("linux-kbuild-");
        let mut packages = apt.closure(image, image_parts)?;
        packages.extend(apt.closure(&format!("linux-headers-{release}"), header_parts)?);
        return Ok((release, packages));
    }
    Err(
        Error::new(format!("{} offers no Debian kernel {name}", apt.label))
            .hint("run `apt-get update`; the host needs a Debian mirror in its apt configuration"),
    )
}

/// The ELF kernel inside a bzImage. `None` if it is no bzImage of a compression we know.
fn decompress_image(image: &[u8]) -> Option<Result<Vec<u8>>> {
    // Offsets of the x86 boot protocol's setup header, version 2.08 and later.
    let word = |at: usize| {
        let bytes = image.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    if image.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let sectors = match *image.get(0x1f1)? {
        0 => 4,
        n => usize::from(n),
    };
    let start = (sectors + 1) * 512 + word(0x248)?;
    let payload = image.get(start..start + word(0x24c)?)?;
    decompress(payload).map(|r| {
        let elf = r.map_err(|e| Error::new(format!("cannot decompress the kernel: {e}")))?;
        if elf.starts_with(b"\x7fELF") {
            Ok(elf)
        } else {
            Err(Error::new("the kernel image does not hold an ELF file"))
        }
    })
}

/// Decompresses xz, zstd or gzip; `None` for anything else. What follows the stream is ignored:
/// the kernel's build appends the size.
pub(crate) fn decompress(data: &[u8]) -> Option<std::io::Result<Vec<u8>>> {
    let mut out = Vec::new();
    let read = match data {
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
            liblzma::read::XzDecoder::new(data).read_to_end(&mut out)
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] => ruzstd::decoding::StreamingDecoder::new(data)
            .map_err(std::io::Error::other)
            .and_then(|mut d| d.read_to_end(&mut out)),
        [0x1f, 0x8b, ..] => flate2::read::GzDecoder::new(data).read_to_end(&mut out),
        _ => return None,
    };
    Some(read.map(|_| out))
}

fn btf_section(elf: &[u8]) -> Result<&[u8]> {
    let wrong = |why: &str| Error::new(format!("the kernel's type information: {why}"));
    let file = object::File::parse(elf).map_err(|e| wrong(&e.to_string()))?;
    let section = file
        .section_by_name(".BTF")
        .ok_or_else(|| wrong("it has no .BTF section"))?;
    section.data().map_err(|e| wrong(&e.to_string()))
}

/// Makes unpacked headers usable where they lie: their Makefile and links name `/usr/src`, and
/// their compiler may be missing here. Returns the compiler they will call.
fn relocate_headers(root: &Path, final_root: &Path, release: &str) -> Result<String> {
    let headers = root.join(format!("usr/src/linux-headers-{release}"));
    let makefile = headers.join("Makefile");
    let text = fs::read_to_string(&makefile).at("read", &makefile)?;
    let moved = text.replace("/usr/src/", &format!("{}/usr/src/", final_root.display()));
    fs::write(&makefile, moved).at("write", &makefile)?;

    for link in ["build", "source"] {
        let path = root.join("lib/modules").join(release).join(link);
        if let Ok(old) = fs::read_link(&path) {
            let _ = fs::remove_file(&path);
            let inside = old.strip_prefix("/").unwrap_or(&old);
            symlink(final_root.join(inside), &path).at("link", &path)?;
        }
    }

    let variables = headers.join(".kernelvariables");
    let text = fs::read_to_string(&variables).at("read", &variables)?;
    let wanted = text
        .lines()
        .filter_map(|l| l.trim().strip_prefix("CC"))
        .filter_map(|l| l.rsplit("$(CROSS_COMPILE)").next())
        .map(str::trim)
        .find(|l| l.starts_with("gcc"))
        .unwrap_or("gcc")
        .to_owned();
    let on_path = |tool: &str| {
        std::env::var_os("PATH")
            .is_some_and(|p| std::env::split_paths(&p).any(|d| d.join(tool).exists()))
    };
    // The kernel's compiler where it is installed, else the host's. Names with the target in
    // front exist only beside the host's own compiler.
    let cc = if on_path(&wanted) {
        wanted
    } else {
        "gcc".into()
    };
    let text = format!(
        "{text}\n# Set by disktime-vm: this tree is used where it was unpacked.\n\
         CC = {cc}\noverride CROSS_COMPILE =\n"
    );
    fs::write(&variables, text).at("write", &variables)?;
    Ok(cc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_payloads_of_a_boot_image_are_found_by_its_header() {
        use std::io::Write;
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"\x7fELF and so on").unwrap();
        let payload = packed.finish().unwrap();
        let mut image = vec![0; 1024 + 16];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        image.extend_from_slice(&payload);
        let elf = decompress_image(&image).unwrap().unwrap();
        assert_eq!(elf, b"\x7fELF and so on");
        assert!(decompress_image(&image[..600]).is_none());
        assert!(decompress_image(b"not a kernel").is_none());
    }
}
