//! Whether a processor of 64 bits executes programs of its architecture of 32 bits, which some do, and some
//! kernels leave out: a program of two or three instructions is tried.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};

/// Whether a program for it ends as it should; without a trial, none does.
pub(super) fn succeeds(architecture: &str) -> bool {
    let (machine, code): (u16, &[u8]) = match (std::env::consts::ARCH, architecture) {
        ("x86_64", "386") => (3, EXIT_386),
        ("aarch64", "arm") => (40, EXIT_ARM),
        _ => return false,
    };
    ends_with(&program(machine, code)).unwrap_or(false)
}

fn ends_with(program: &[u8]) -> std::io::Result<bool> {
    let mut file = File::from(memfd_create("windtunnel-trial", MemfdFlags::CLOEXEC)?);
    file.write_all(program)?;
    // A file that can be written is not executed (ETXTBSY).
    let program = File::open(path(&file))?;
    drop(file);
    let mut command = Command::new(path(&program));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // A shell that reads it as a script, because the kernel cannot, ends otherwise.
    Ok(command.status()?.code() == Some(CODE))
}

fn path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// An ELF file of 32 bits: header, one segment, code.
fn program(machine: u16, code: &[u8]) -> Vec<u8> {
    let size = u32::try_from(HEADERS + code.len()).unwrap_or(u32::MAX);
    let mut file = vec![0x7f, b'E', b'L', b'F', 1, 1, 1];
    file.resize(16, 0);
    let entry = BASE + 84;
    for half in [2, machine] {
        file.extend(half.to_le_bytes());
    }
    for word in [1, entry, 52, 0, flags(machine)] {
        file.extend(word.to_le_bytes());
    }
    for half in [52_u16, 32, 1, 0, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    // To be loaded, readable and executable.
    for word in [1, 0, BASE, BASE, size, size, 5, 0x1000] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code);
    file
}

/// The version of the interface to programs, for `arm`.
fn flags(machine: u16) -> u32 {
    if machine == 40 { 0x0500_0000 } else { 0 }
}

const HEADERS: usize = 52 + 32;
const BASE: u32 = 0x0001_0000;
const CODE: i32 = 42;
/// `mov $1, %eax; mov $42, %ebx; int $0x80`.
const EXIT_386: &[u8] = &[0xb8, 1, 0, 0, 0, 0xbb, 42, 0, 0, 0, 0xcd, 0x80];
/// `mov r7, #1; mov r0, #42; svc #0`.
const EXIT_ARM: &[u8] = &[1, 0x70, 0xa0, 0xe3, 42, 0, 0xa0, 0xe3, 0, 0, 0, 0xef];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_for_another_architecture_is_not_executed() {
        assert!(!ends_with(&program(22, EXIT_386)).unwrap_or(false));
        assert!(!succeeds("s390x"));
    }

    #[test]
    fn a_trial_for_386_agrees_with_what_the_kernel_was_built_for() {
        let config = Command::new("zcat").arg("/proc/config.gz").output();
        let config = config.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
        let Some(config) = config.ok().filter(|text| text.contains("CONFIG_")) else { return };
        let is_built = config.lines().any(|line| line == "CONFIG_IA32_EMULATION=y");
        let is_off = config.contains("CONFIG_IA32_EMULATION_DEFAULT_DISABLED=y");
        if cfg!(target_arch = "x86_64") && !is_off {
            assert_eq!(succeeds("386"), is_built);
        }
    }
}
