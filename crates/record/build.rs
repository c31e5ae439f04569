//! Compiles the preload library (crates/shim) with the compiler that compiles this crate, for the
//! same target; a linker is there, because cargo needs one. The result depends on the sources, the
//! compiler and the linker alone.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let folder = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let crates = folder.parent().expect("the folder of a package has one above it");
    println!("cargo:rerun-if-changed=build.rs");
    for sources in [
        "shim/src",
        "budget/src/pacing",
        "model/src/record.rs",
        "model/src/record",
        "sys/src/region",
        "sys/src/seccomp",
        "sys/src/executable",
        "wire/src/digest.rs",
    ] {
        println!("cargo:rerun-if-changed={}", crates.join(sources).display());
    }
    let library = PathBuf::from(variable("OUT_DIR")).join("libwindtunnel_preload.so");
    let output = compile(crates, &library).output();
    let failure = match output {
        Ok(output) if output.status.success() => return,
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => error.to_string(),
    };
    eprintln!("{failure}");
    panic!(
        "the preload library (crates/shim) does not compile for {}; it is made for Linux on x86_64 \
         and aarch64, with any linker for ELF",
        variable("TARGET").to_string_lossy()
    );
}

/// The command that makes the library.
fn compile(crates: &Path, library: &Path) -> Command {
    let mut rustc = Command::new(variable("RUSTC"));
    // Paths are relative to this folder, and so the same everywhere.
    rustc.current_dir(crates.join("shim")).arg("src/lib.rs");
    rustc.args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name"]);
    rustc.args(["windtunnel_preload", "--cfg", "preload", "--cap-lints", "allow"]);
    rustc.arg("--target").arg(variable("TARGET")).arg("-o").arg(library);
    for option in [
        "panic=abort",
        "opt-level=3",
        "codegen-units=1",
        "strip=symbols",
        // A thread that is cancelled in a call unwinds through it.
        "force-unwind-tables=yes",
        "target-feature=-crt-static",
        // One library for every C library: what it calls is found when it is loaded.
        "link-arg=-nostdlib",
        "link-arg=-nostartfiles",
        "link-arg=-Wl,--build-id=none",
    ] {
        rustc.arg("-C").arg(option);
    }
    if let Some(linker) = env::var_os("RUSTC_LINKER") {
        rustc.arg("-C").arg(joined("linker=", &linker));
    }
    rustc
}

fn joined(name: &str, value: &OsString) -> OsString {
    let mut joined = OsString::from(name);
    joined.push(value);
    joined
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"))
}
