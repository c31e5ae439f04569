//! The BPF programs: compiled by hand, and checked to be those of the source.
//!
//! `cargo build` must not need clang, so the object is in the tree, beside a list with the hashes
//! of what it was made from. The list and the files are compared always; where the compiler that
//! the list names is there, the object is made again and compared byte by byte.

use std::ffi::OsStr;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use sha2::{Digest, Sha256};

/// Compiles the programs and writes the object and its list.
///
/// # Errors
/// If clang is not there or is of another version, or a file cannot be written.
pub fn write(root: &Path) -> io::Result<Vec<String>> {
    let folder = root.join(FOLDER);
    let object = compile(&folder)?.map_err(io::Error::other)?;
    fs::write(folder.join(OBJECT), object)?;
    fs::write(folder.join(LIST), list(&folder)?)?;
    Ok(Vec::new())
}

/// What is wrong with the object in the tree.
///
/// # Errors
/// If a file cannot be read, or the compiler fails.
pub fn stale(root: &Path) -> io::Result<Vec<String>> {
    let folder = root.join(FOLDER);
    let mut faults = Vec::new();
    if fs::read_to_string(folder.join(LIST))? != list(&folder)? {
        let how = "cargo run -p xtask -- bpf";
        faults.push(format!("{FOLDER}/{LIST}: the files are not those of the list: {how}"));
    }
    match compile(&folder)? {
        Ok(object) if object != fs::read(folder.join(OBJECT))? => {
            faults
                .push(format!("{FOLDER}/{OBJECT}: {COMPILER} makes another object of the source"));
        }
        Ok(_) => {}
        Err(missing) => eprintln!("the object is not compiled again: {missing}"),
    }
    Ok(faults)
}

/// The object that the source makes; or which program is missing.
fn compile(folder: &Path) -> io::Result<Result<Vec<u8>, String>> {
    let version = Command::new("clang").arg("--version").output();
    let version = version.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    if !version.as_ref().is_ok_and(|text| text.contains(COMPILER)) {
        return Ok(Err(format!("{COMPILER} is not here")));
    }
    if Command::new(COPY).arg("--version").output().is_err() {
        return Ok(Err(format!("{COPY} is not here")));
    }
    let object = std::env::temp_dir().join(format!("windtunnel-bpf-{}.o", std::process::id()));
    let made =
        run(folder, "clang", FLAGS, &object).and_then(|()| run(folder, COPY, STRIP, &object));
    let bytes = made.and_then(|()| fs::read(&object));
    // It may not have been made.
    let _ = fs::remove_file(&object);
    bytes.map(Ok)
}

fn run(folder: &Path, program: &str, arguments: &[&str], object: &Path) -> io::Result<()> {
    let arguments = arguments.iter().map(OsStr::new).chain([object.as_os_str()]);
    let status = Command::new(program).args(arguments).current_dir(folder).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{program}: {status}"))) }
}

/// The compiler, and the hash of each file.
fn list(folder: &Path) -> io::Result<String> {
    let mut text = format!("# {COMPILER}\n");
    for name in [SOURCE, "kernel.h", OBJECT] {
        for byte in Sha256::digest(fs::read(folder.join(name))?) {
            write!(text, "{byte:02x}").map_err(io::Error::other)?;
        }
        writeln!(text, "  {name}").map_err(io::Error::other)?;
    }
    Ok(text)
}

const FOLDER: &str = "crates/record/bpf";
const SOURCE: &str = "kernel.bpf.c";
const OBJECT: &str = "kernel.bpf.o";
/// As sha256sum(1) checks it.
const LIST: &str = "kernel.sha256";
const COMPILER: &str = "clang version 14.0.6";
const COPY: &str = "llvm-objcopy";
/// The object must not depend on the folder in which it is made.
const FLAGS: &[&str] = &[
    "-target",
    "bpf",
    "-mcpu=v3",
    "-O2",
    "-g",
    "-fdebug-compilation-dir=.",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-c",
    SOURCE,
    "-o",
];
/// Debugging information, of which the loader wants only that in BTF's format.
const STRIP: &[&str] = &["-g", "-R", ".rel.BTF", "-R", ".rel.BTF.ext", "-R", ".llvm_addrsig"];
