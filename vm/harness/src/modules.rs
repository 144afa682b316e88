//! Kernel modules: where they are, what they need, in which order to load them. Everything is
//! read from the modules themselves (`.modinfo`), so that no depmod is needed on the host.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection};

use crate::cache;
use crate::error::{At, Error, Result};
use crate::kernel::{Kernel, decompress};

/// A module that goes into the guest.
#[derive(Debug, Clone)]
pub(crate) struct Module {
    /// The plain `.ko` on the host.
    pub(crate) host: PathBuf,
    /// Its path below `/lib/modules/RELEASE`.
    pub(crate) guest: String,
    pub(crate) depends: Vec<String>,
    pub(crate) aliases: Vec<String>,
}

/// The modules of a kernel, and of the case, by name.
pub(crate) struct Index {
    release: String,
    plain_dir: PathBuf,
    files: BTreeMap<String, PathBuf>,
    builtin: BTreeSet<String>,
    known: BTreeMap<String, Module>,
}

/// The kernel writes `-` and `_` alike.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

fn module_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let (stem, rest) = file.split_once(".ko")?;
    ["", ".xz", ".zst", ".gz"]
        .contains(&rest)
        .then(|| canonical(stem))
}

impl Index {
    pub(crate) fn new(kernel: &Kernel) -> Result<Self> {
        let dir = &kernel.modules_dir;
        let mut files = BTreeMap::new();
        collect(&dir.join("kernel"), &mut files)?;
        let list = dir.join("modules.builtin");
        let builtin = fs::read_to_string(&list)
            .at("read", &list)?
            .lines()
            .filter_map(|l| module_name(Path::new(l)))
            .collect();
        let plain_dir = kernel.vmlinux.parent().unwrap_or(dir).join("ko");
        cache::make(&plain_dir)?;
        Ok(Self {
            release: kernel.release.clone(),
            plain_dir,
            files,
            builtin,
            known: BTreeMap::new(),
        })
    }

    /// Whether this kernel has the module, built in or not.
    pub(crate) fn has(&self, name: &str) -> bool {
        let name = canonical(name);
        self.builtin.contains(&name) || self.files.contains_key(&name)
    }

    /// Adds a module of the case, which hides one of the kernel of the same name.
    pub(crate) fn add(&mut self, path: &Path) -> Result<String> {
        let name = module_name(path)
            .ok_or_else(|| Error::new(format!("{} is not named like a module", path.display())))?;
        let data = fs::read(path).at("read", path)?;
        let info = Info::read(&data, path)?;
        let vermagic = info.first("vermagic").unwrap_or_default();
        let built_for = vermagic.split(' ').next().unwrap_or_default();
        if built_for != self.release {
            return Err(Error::new(format!(
                "{} was built for kernel {built_for}, not for {}",
                path.display(),
                self.release
            ))
            .hint("build it against headers_dir of that kernel's kernel.json"));
        }
        let guest = format!("extra/{name}.ko");
        self.known
            .insert(name.clone(), info.module(path.to_owned(), guest));
        Ok(name)
    }

    fn module(&mut self, name: &str) -> Result<Option<&Module>> {
        let name = canonical(name);
        if !self.known.contains_key(&name) {
            if self.builtin.contains(&name) {
                return Ok(None);
            }
            let file = self.files.get(&name).ok_or_else(|| {
                Error::new(format!("kernel {} has no module {name}", self.release))
                    .hint("give the .ko file of a module that is not the kernel's own")
            })?;
            let host = self.plain(&name, file)?;
            let data = fs::read(&host).at("read", &host)?;
            let module = Info::read(&data, &host)?.module(host, format!("kernel/{name}.ko"));
            self.known.insert(name.clone(), module);
        }
        Ok(self.known.get(&name))
    }

    /// The decompressed file, made once.
    fn plain(&self, name: &str, file: &Path) -> Result<PathBuf> {
        if file.extension().is_some_and(|e| e == "ko") {
            return Ok(file.to_owned());
        }
        let plain = self.plain_dir.join(format!("{name}.ko"));
        if !plain.exists() {
            let packed = fs::read(file).at("read", file)?;
            let data = decompress(&packed)
                .ok_or_else(|| Error::new(format!("{}: unknown compression", file.display())))?
                .at("decompress", file)?;
            cache::write_atomic(&plain, &data)?;
        }
        Ok(plain)
    }

    /// The modules and all that they need, in an order in which they load. Names of built-in
    /// ones are left out.
    pub(crate) fn order<'a>(
        &mut self,
        names: impl IntoIterator<Item = &'a str>,
    ) -> Result<Vec<(String, Module)>> {
        let mut done = BTreeSet::new();
        let mut order = Vec::new();
        for name in names {
            self.visit(&canonical(name), &mut done, &mut order, 0)?;
        }
        Ok(order)
    }

    fn visit(
        &mut self,
        name: &str,
        done: &mut BTreeSet<String>,
        order: &mut Vec<(String, Module)>,
        depth: usize,
    ) -> Result<()> {
        if depth > 64 {
            return Err(Error::new(format!(
                "modules depend on one another in a circle at {name}"
            )));
        }
        if done.contains(name) {
            return Ok(());
        }
        let Some(module) = self.module(name)?.cloned() else {
            return Ok(());
        };
        for dependency in &module.depends {
            self.visit(dependency, done, order, depth + 1)?;
        }
        if done.insert(name.to_owned()) {
            order.push((name.to_owned(), module));
        }
        Ok(())
    }
}

/// `modules.dep`, `modules.alias` and `modules.builtin` for what the guest holds, so that modprobe
/// and the kernel's own autoloading work there.
pub(crate) fn tables(
    modules: &[(String, Module)],
    kernel: &Kernel,
) -> Result<[(String, String); 3]> {
    let path_of: BTreeMap<_, _> = modules.iter().map(|(n, m)| (n.as_str(), m)).collect();
    let mut dep = String::new();
    let mut alias = String::new();
    for (name, module) in modules {
        dep += &format!("{}:", module.guest);
        // modprobe wants everything that is needed, the nearest first.
        let mut seen = BTreeSet::new();
        let mut todo: Vec<_> = module.depends.iter().rev().cloned().collect();
        while let Some(next) = todo.pop() {
            if let Some(found) = path_of.get(next.as_str()) {
                if seen.insert(next) {
                    dep += &format!(" {}", found.guest);
                    todo.extend(found.depends.iter().rev().cloned());
                }
            }
        }
        dep.push('\n');
        for text in &module.aliases {
            alias += &format!("alias {text} {name}\n");
        }
    }
    let builtin = kernel.modules_dir.join("modules.builtin");
    let builtin = fs::read_to_string(&builtin).at("read", &builtin)?;
    Ok([
        ("modules.dep".into(), dep),
        ("modules.alias".into(), alias),
        ("modules.builtin".into(), builtin),
    ])
}

fn collect(dir: &Path, files: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).at("read", dir)? {
        let entry = entry.at("read", dir)?;
        let path = entry.path();
        if entry.file_type().at("read", &path)?.is_dir() {
            collect(&path, files)?;
        } else if let Some(name) = module_name(&path) {
            files.insert(name, path);
        }
    }
    Ok(())
}

/// The `key=value` strings of a module's `.modinfo` section.
struct Info(Vec<(String, String)>);

impl Info {
    fn read(data: &[u8], path: &Path) -> Result<Self> {
        let wrong = |why: String| Error::new(format!("{} is no module: {why}", path.display()));
        let file = object::File::parse(data).map_err(|e| wrong(e.to_string()))?;
        let section = file
            .section_by_name(".modinfo")
            .ok_or_else(|| wrong("it has no .modinfo section".into()))?;
        let bytes = section.data().map_err(|e| wrong(e.to_string()))?;
        let pairs = bytes
            .split(|b| *b == 0)
            .filter_map(|s| std::str::from_utf8(s).ok()?.split_once('='))
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .collect();
        Ok(Self(pairs))
    }

    fn first(&self, key: &str) -> Option<&str> {
        self.all(key).next()
    }

    fn all<'a>(&'a self, key: &str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(k, _)| k == key)
            .map(|(_, v)| v.as_str())
    }

    fn module(&self, host: PathBuf, guest: String) -> Module {
        let depends = self
            .all("depends")
            .flat_map(|d| d.split(','))
            .filter(|d| !d.is_empty())
            .map(canonical)
            .collect();
        let aliases = self.all("alias").map(canonical).collect();
        Module {
            host,
            guest,
            depends,
            aliases,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_names_ignore_compression_and_dashes() {
        for (file, name) in [
            ("a/kyber-iosched.ko.xz", Some("kyber_iosched")),
            ("null_blk.ko", Some("null_blk")),
            ("x.ko.zst", Some("x")),
            ("x.ko.sig", None),
            ("modules.dep", None),
        ] {
            assert_eq!(module_name(Path::new(file)).as_deref(), name, "{file}");
        }
    }
}
