//! Programs for the guest: which shared libraries they need, and where programs come from that
//! the host does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::elf;
use object::read::elf::{ElfFile64, FileHeader, Sym};
use object::{Endianness, Object, ObjectSymbol};

use crate::apt::{self, Apt};
use crate::cache::{self, Lock};
use crate::error::{At, Error, Result};
use crate::progress::Progress;

/// Libraries that go into the guest as they are. Debian's fio is linked to some sixty more
/// (Ceph, Gluster, RDMA, persistent memory), 100 MB that no case uses: see [`Libraries::Slim`].
const KEPT: [&str; 13] = [
    "ld-linux",
    "libaio",
    "libc.",
    "libdl.",
    "libgcc_s.",
    "libm.",
    "libmvec.",
    "libnuma.",
    "libpthread.",
    "librt.",
    "liburing",
    "libuuid.",
    "libz.",
];

/// Which of a program's libraries go with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Libraries {
    /// All of them.
    All,
    /// Those of [`KEPT`]; each other one that the program names is replaced by a library of the
    /// same name whose functions trap. Such a program starts fast and cannot use those parts.
    Slim,
}

/// Files to put into the guest: path there, file here.
pub(crate) type Files = BTreeMap<String, PathBuf>;

struct Elf {
    interpreter: Option<String>,
    needed: Vec<String>,
}

fn inspect(path: &Path) -> Result<Option<Elf>> {
    let data = fs::read(path).at("read", path)?;
    if !data.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    let wrong = |e: object::Error| Error::new(format!("{}: {e}", path.display()));
    let file = ElfFile64::<Endianness>::parse(data.as_slice()).map_err(wrong)?;
    let endian = file.endian();
    let mut interpreter = None;
    for header in file.elf_program_headers() {
        use object::read::elf::ProgramHeader;
        if let Some(text) = header.interpreter(endian, data.as_slice()).map_err(wrong)? {
            interpreter = Some(String::from_utf8_lossy(text).into_owned());
        }
    }
    let mut needed = Vec::new();
    let sections = file
        .elf_header()
        .sections(endian, data.as_slice())
        .map_err(wrong)?;
    if let Some((entries, link)) = sections.dynamic(endian, data.as_slice()).map_err(wrong)? {
        let strings = sections
            .strings(endian, data.as_slice(), link)
            .map_err(wrong)?;
        for entry in entries {
            use object::read::elf::Dyn;
            if entry.tag32(endian) == Some(elf::DT_NEEDED) {
                let name = entry.string(endian, strings).map_err(wrong)?;
                needed.push(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
    Ok(Some(Elf {
        interpreter,
        needed,
    }))
}

/// Whether a program runs without any library.
pub(crate) fn is_static(path: &Path) -> bool {
    inspect(path)
        .ok()
        .flatten()
        .is_some_and(|e| e.interpreter.is_none() && e.needed.is_empty())
}

/// Whether that is a program at all.
pub(crate) fn is_program(path: &Path) -> bool {
    inspect(path).is_ok_and(|e| e.is_some())
}

/// Where the host's loader finds the libraries of a program.
fn ldd(path: &Path, also: Option<&Path>) -> Result<BTreeMap<String, PathBuf>> {
    let mut command = Command::new("ldd");
    if let Some(dirs) = also.map(library_dirs) {
        command.env("LD_LIBRARY_PATH", dirs);
    }
    let output = command
        .arg(path)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Error::new(format!("cannot run ldd: {e}")).hint("install libc-bin"))?;
    let mut found = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        if let [name, "=>", file, ..] = words[..] {
            if file.starts_with('/') {
                found.insert(name.to_owned(), PathBuf::from(file));
            }
        }
    }
    Ok(found)
}

fn library_dirs(root: &Path) -> String {
    ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"]
        .map(|d| root.join(d).display().to_string())
        .join(":")
}

/// The libraries a program needs in the guest. `root` is where it was unpacked, if it is not
/// installed; `stubs` a folder for the replacements of [`Libraries::Slim`].
pub(crate) fn libraries(
    program: &Path,
    root: Option<&Path>,
    which: Libraries,
    stubs: &Path,
) -> Result<Files> {
    let mut files = Files::new();
    let Some(first) = inspect(program)? else {
        return Ok(files);
    };
    let Some(interpreter) = &first.interpreter else {
        return Ok(files);
    };
    files.insert(interpreter.clone(), PathBuf::from(interpreter));
    let places = ldd(program, root)?;
    let kept = |name: &str| which == Libraries::All || KEPT.iter().any(|k| name.starts_with(k));

    let mut seen = BTreeSet::new();
    let mut stubbed = Vec::new();
    let mut missing = Vec::new();
    let mut todo = first.needed.clone();
    while let Some(name) = todo.pop() {
        if name.starts_with("ld-linux") || !seen.insert(name.clone()) {
            continue;
        }
        if !kept(&name) {
            stubbed.push(name);
            continue;
        }
        let Some(place) = places.get(&name) else {
            missing.push(name);
            continue;
        };
        todo.extend(inspect(place)?.map(|e| e.needed).unwrap_or_default());
        files.insert(format!("/lib/x86_64-linux-gnu/{name}"), place.clone());
    }
    if !missing.is_empty() {
        return Err(Error::new(format!(
            "{} needs libraries that this machine does not have: {}",
            program.display(),
            missing.join(", ")
        )));
    }
    if !stubbed.is_empty() {
        let real: Vec<_> = files.values().map(PathBuf::as_path).collect();
        let made = make_stubs(program, &real, &stubbed, stubs);
        if !made.as_ref().is_ok_and(|_| starts(program, root, stubs)) {
            // Without a compiler, or where the trick fails, the guest gets everything.
            return libraries(program, root, Libraries::All, stubs);
        }
        for (name, path) in made? {
            files.insert(format!("/lib/x86_64-linux-gnu/{name}"), path);
        }
    }
    Ok(files)
}

fn starts(program: &Path, root: Option<&Path>, stubs: &Path) -> bool {
    let mut dirs = stubs.display().to_string();
    if let Some(root) = root {
        dirs = format!("{dirs}:{}", library_dirs(root));
    }
    Command::new(program)
        .arg("--version")
        .env("LD_LIBRARY_PATH", dirs)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|s| s.success())
}

/// Builds a library for each of `names` that defines what `program` wants and `real` lacks.
fn make_stubs(program: &Path, real: &[&Path], names: &[String], dir: &Path) -> Result<Files> {
    cache::make(dir)?;
    let mut defined = BTreeSet::new();
    for path in real {
        let data = fs::read(path).at("read", path)?;
        let wrong = |e: object::Error| Error::new(format!("{}: {e}", path.display()));
        let file = object::File::parse(data.as_slice()).map_err(wrong)?;
        let exported = file.dynamic_symbols().filter(|s| !s.is_undefined());
        defined.extend(exported.filter_map(|s| s.name().ok().map(str::to_owned)));
    }
    let mut by_library: BTreeMap<&str, BTreeMap<String, BTreeSet<String>>> = names
        .iter()
        .map(|n| (n.as_str(), BTreeMap::new()))
        .collect();
    let first = names[0].as_str();
    for (symbol, library, version) in undefined(program)? {
        let named = names.iter().find(|n| **n == library);
        if defined.contains(&symbol) || (named.is_none() && !library.is_empty()) {
            continue;
        }
        let library = named.map_or(first, String::as_str);
        let versions = by_library.entry(library).or_default();
        versions.entry(version).or_default().insert(symbol);
    }
    let mut files = Files::new();
    for (library, versions) in by_library {
        let mut source = String::new();
        let mut script = String::new();
        for (version, symbols) in &versions {
            for symbol in symbols {
                source += &format!("void {symbol}(void) {{ __builtin_trap(); }}\n");
            }
            if !version.is_empty() {
                let list: Vec<_> = symbols.iter().map(String::as_str).collect();
                script += &format!("{version} {{ global: {}; }};\n", list.join("; "));
            }
        }
        let (c, map, so) = (
            dir.join(format!("{library}.c")),
            dir.join(format!("{library}.map")),
            dir.join(library),
        );
        fs::write(&c, source).at("write", &c)?;
        let mut command = Command::new("cc");
        command
            .args(["-shared", "-fPIC", "-nostdlib", "-w", "-fno-builtin", "-o"])
            .args([&so, &c]);
        command.arg(format!("-Wl,-soname,{library}"));
        if !script.is_empty() {
            fs::write(&map, script).at("write", &map)?;
            command.arg(format!("-Wl,--version-script,{}", map.display()));
        }
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|e| Error::new(format!("cannot run cc: {e}")))?;
        if !output.status.success() {
            return Err(Error::new(format!("cannot link a stand-in for {library}")));
        }
        files.insert(library.to_owned(), so);
    }
    Ok(files)
}

/// The symbols that a program takes from libraries: name, library, version, the latter two empty
/// where the program does not say.
fn undefined(program: &Path) -> Result<Vec<(String, String, String)>> {
    let data = fs::read(program).at("read", program)?;
    let data = data.as_slice();
    let wrong = |e: object::Error| Error::new(format!("{}: {e}", program.display()));
    let header = elf::FileHeader64::<Endianness>::parse(data).map_err(wrong)?;
    let endian = header.endian().map_err(wrong)?;
    let sections = header.sections(endian, data).map_err(wrong)?;
    let mut versions: BTreeMap<u16, (String, String)> = BTreeMap::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if let Some((mut needs, link)) = sections.gnu_verneed(endian, data).map_err(wrong)? {
        let strings = sections.strings(endian, data, link).map_err(wrong)?;
        while let Some((need, mut aux)) = needs.next().map_err(wrong)? {
            let file = text(need.file(endian, strings).map_err(wrong)?);
            while let Some(version) = aux.next().map_err(wrong)? {
                let name = text(version.name(endian, strings).map_err(wrong)?);
                versions.insert(version.vna_other.get(endian), (file.clone(), name));
            }
        }
    }
    let indexes = sections
        .gnu_versym(endian, data)
        .map_err(wrong)?
        .map_or(&[][..], |(v, _)| v);
    let symbols = sections
        .symbols(endian, data, elf::SHT_DYNSYM)
        .map_err(wrong)?;
    let mut found = Vec::new();
    for (index, symbol) in symbols.enumerate() {
        if !symbol.is_undefined(endian) || symbol.is_weak() || index.0 == 0 {
            continue;
        }
        let name = text(symbols.symbol_name(endian, symbol).map_err(wrong)?);
        let index = indexes
            .get(index.0)
            .map_or(0, |v| v.0.get(endian) & elf::VERSYM_VERSION);
        let (file, version) = versions.get(&index).cloned().unwrap_or_default();
        found.push((name, file, version));
    }
    Ok(found)
}

/// A program of the host, or out of its Debian package, unpacked into the cache. With the folder
/// that it was unpacked to.
pub(crate) fn find(
    name: &str,
    package: &str,
    usable: impl Fn(&Path) -> bool,
    progress: &Progress,
) -> Result<(PathBuf, Option<PathBuf>)> {
    for dir in ["/usr/bin", "/bin"] {
        let path = Path::new(dir).join(name);
        if path.exists() && usable(&path) {
            return Ok((path, None));
        }
    }
    let unpacked = |root: &Path| {
        ["usr/bin", "bin"]
            .map(|d| root.join(d).join(name))
            .into_iter()
            .find(|p| p.exists())
    };
    let wanted = |d: &str| {
        ["libaio", "libnuma", "liburing", "zlib1g"]
            .iter()
            .any(|p| d.starts_with(p))
    };
    let (path, root) = fetch(package, unpacked, wanted, progress)?;
    Ok((path, Some(root)))
}

/// Something out of a Debian package, unpacked into the cache with what it depends on, as far as
/// that is `wanted`. With the folder that it was unpacked to.
fn fetch(
    package: &str,
    unpacked: impl Fn(&Path) -> Option<PathBuf>,
    wanted: impl Fn(&str) -> bool,
    progress: &Progress,
) -> Result<(PathBuf, PathBuf)> {
    let base = cache::sub("debs")?;
    let root = base.join(package);
    let _lock = Lock::exclusive(&base.join(format!("{package}.lock")))?;
    if let Some(path) = unpacked(&root) {
        return Ok((path, root));
    }
    progress.line(&format!(
        "{package} is not installed here: fetching it for the guest"
    ));
    let work = tempfile::tempdir_in(&base).at("create a folder in", &base)?;
    let debs = work.path().join("debs");
    let host = Apt::host();
    let packages = host.closure(package, wanted).map_err(|e| {
        Error::new(e.to_string()).hint(format!("install {package}, or run `apt-get update`"))
    })?;
    host.download(&packages, &debs, progress)?;
    apt::unpack(&debs, &work.path().join("root"), progress)?;
    fs::rename(work.path().join("root"), &root).at("rename to", &root)?;
    match unpacked(&root) {
        Some(path) => Ok((path, root)),
        None => Err(Error::new(format!(
            "the package {package} does not hold what is looked for"
        ))),
    }
}

/// PostgreSQL's server and pgbench as they lie on a Debian: programs that look for each other and
/// for their files where they were installed.
pub(crate) fn postgres(progress: &Progress) -> Result<Files> {
    let installed = |root: &Path| {
        let versions = fs::read_dir(root.join("usr/lib/postgresql")).ok()?;
        let mut folders: Vec<PathBuf> = versions.flatten().map(|e| e.path()).collect();
        folders.retain(|f| f.join("bin/postgres").exists() && f.join("bin/pgbench").exists());
        folders.sort();
        folders.pop()
    };
    // The newest that Debian has, without what is there for its administration.
    let wanted = |d: &str| {
        let number = d.strip_prefix("postgresql-").and_then(|n| n.chars().next());
        let basic = ["libc6", "libgcc", "libstdc++", "libllvm"];
        number.is_some_and(|n| n.is_ascii_digit())
            || d.starts_with("lib") && !basic.iter().any(|b| d.starts_with(b))
    };
    let (folder, root) = match installed(Path::new("/")) {
        Some(folder) => (folder, None),
        None => {
            let (folder, root) = fetch("postgresql", installed, wanted, progress)?;
            (folder, Some(root))
        }
    };
    let version = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut files = Files::new();
    let stubs = cache::sub("guest/stubs")?;
    for name in [
        "bin/initdb",
        "bin/pgbench",
        "bin/postgres",
        "lib/dict_snowball.so",
        "lib/plpgsql.so",
    ] {
        let path = folder.join(name);
        files.extend(libraries(&path, root.as_deref(), Libraries::All, &stubs)?);
        files.insert(format!("/usr/lib/postgresql/{version}/{name}"), path);
    }
    let share = format!("/usr/share/postgresql/{version}");
    let place = root
        .unwrap_or("/".into())
        .join(share.trim_start_matches('/'));
    files.insert(share, place);
    Ok(files)
}
