//! Compiles the core and the shim into this crate.

use std::env;
use std::path::Path;

fn main() {
    let core =
        Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../core");
    println!("cargo:rerun-if-changed={}", core.display());
    println!("cargo:rerun-if-changed=shim.c");

    let sanitize = env::var_os("CARGO_FEATURE_SANITIZE").is_some();
    let mut build = cc::Build::new();
    build
        .file("shim.c")
        .include(&core)
        .std("c11")
        .flag("-ffreestanding")
        .flag("-g")
        .extra_warnings(true)
        .warnings(true)
        .warnings_into_errors(env::var_os("DISKTIME_WERROR").is_some())
        // The kernel's level, whatever the profile: instruction counts are taken here.
        .opt_level(if sanitize { 1 } else { 2 });
    if sanitize {
        build
            .flag("-fsanitize=address,undefined")
            .flag("-fno-sanitize-recover=all")
            .flag("-fno-omit-frame-pointer");
        link_sanitizers(&build);
    }
    build.compile("disktime_core");
}

/// rustc links with -nodefaultlibs, under which gcc leaves its sanitizers' run-time libraries
/// out. They are named here, the static ones whole: the shared libasan insists on being the first
/// library of the process, and arguments from a build script come last.
fn link_sanitizers(build: &cc::Build) {
    let compiler = build.get_compiler();
    for name in ["libasan.a", "libubsan.a"] {
        let output = compiler
            .to_command()
            .arg(format!("-print-file-name={name}"))
            .output();
        let path = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        match path {
            Ok(path) if Path::new(&path).is_absolute() => {
                if name == "libasan.a" {
                    for arg in ["-Wl,--whole-archive", &path, "-Wl,--no-whole-archive"] {
                        println!("cargo:rustc-link-arg={arg}");
                    }
                } else {
                    println!("cargo:rustc-link-arg={path}");
                }
            }
            _ => panic!("{name} not found: the feature `sanitize` needs gcc with its sanitizers"),
        }
    }
    for arg in [
        "-lstdc++",
        "-ldl",
        "-lrt",
        "-lpthread",
        "-lm",
        "-lgcc_s",
        "-lc",
        "-rdynamic",
    ] {
        println!("cargo:rustc-link-arg={arg}");
    }
}
