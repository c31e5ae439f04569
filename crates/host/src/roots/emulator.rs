//! Whether this machine can execute the programs of a platform: by itself, or by an emulator that its kernel
//! starts. Source: the kernel's "Kernel Support for miscellaneous Binary Formats" (binfmt-misc.rst), elf(5).

mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use windtunnel_model::plan::{Node, Platform};

/// Why the programs of a platform cannot be executed in a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotExecutable {
    /// The kernel knows nothing that executes them.
    #[error("this machine cannot execute programs for {platform}")]
    NoEmulator { platform: Platform, is_mounted: bool },
    /// The emulator is looked for in the node's files, where it is not.
    #[error(
        "this machine's emulator for {platform}, {interpreter}, is registered without the flag F, so \
         that nodes with files of their own cannot find it"
    )]
    NotFixed { platform: Platform, interpreter: String },
}

impl NotExecutable {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            NotExecutable::NoEmulator { is_mounted: true, .. } => {
                "an emulator is registered by root: install the package qemu-user-static".to_owned()
            }
            NotExecutable::NoEmulator { .. } => format!(
                "an emulator is registered by root: `mount -t binfmt_misc none {FOLDER}`, and install the \
                 package qemu-user-static"
            ),
            NotExecutable::NotFixed { .. } => {
                "register it as the package qemu-user-static does, with `F`".to_owned()
            }
        }
    }
}

/// The platforms of nodes' images whose programs cannot be executed on this machine, and why not.
pub fn foreign<'p>(nodes: impl Iterator<Item = &'p Node>) -> BTreeMap<&'p Platform, NotExecutable> {
    let platforms = nodes.filter_map(|node| node.root.as_ref()?.source.platform());
    let platforms: BTreeSet<&Platform> = platforms.collect();
    platforms.into_iter().filter_map(|it| Some((it, check(it).err()?))).collect()
}

fn check(platform: &Platform) -> Result<(), NotExecutable> {
    let folder = Path::new(FOLDER);
    // The kernel asks these first, also for what the processor could.
    match judge(platform, &registered(folder)) {
        Err(NotExecutable::NoEmulator { .. }) if is_native(platform) => Ok(()),
        Err(NotExecutable::NoEmulator { platform, .. }) => {
            let is_mounted = folder.join("status").exists();
            Err(NotExecutable::NoEmulator { platform, is_mounted })
        }
        other => other,
    }
}

/// Whether the processor itself executes them.
fn is_native(platform: &Platform) -> bool {
    let own = Platform::of_machine(std::env::consts::ARCH);
    own.is_kin(platform) || trial::succeeds(platform.architecture())
}

/// What the registered emulators make of a platform's programs.
fn judge(platform: &Platform, emulators: &[Emulator]) -> Result<(), NotExecutable> {
    let none = || NotExecutable::NoEmulator { platform: platform.clone(), is_mounted: true };
    let headers = headers(platform.architecture()).ok_or_else(none)?;
    // One for fixed positions only would leave out most programs.
    let takes = |one: &&Emulator| headers.iter().all(|header| one.takes(header));
    let mut able = emulators.iter().filter(takes).peekable();
    let first = *able.peek().ok_or_else(none)?;
    match able.any(|one| one.is_fixed) {
        true => Ok(()),
        false => Err(NotExecutable::NotFixed {
            platform: platform.clone(),
            interpreter: first.interpreter.clone(),
        }),
    }
}

/// What the kernel starts for files that begin in some way.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Emulator {
    interpreter: String,
    /// Whether it was opened when it was registered (the flag F), so that it need not be in a node's files.
    is_fixed: bool,
    offset: usize,
    magic: Vec<u8>,
    mask: Vec<u8>,
}

impl Emulator {
    fn takes(&self, header: &[u8]) -> bool {
        let Some(part) = header.get(self.offset..self.offset.saturating_add(self.magic.len()))
        else {
            return false;
        };
        let bits = part.iter().zip(&self.magic).zip(&self.mask);
        bits.into_iter().all(|((byte, magic), mask)| (byte ^ magic) & mask == 0)
    }

    /// Reads an entry of the folder; `None`: it is switched off, or goes by names of files.
    fn read(text: &str) -> Option<Emulator> {
        let mut lines = text.lines();
        if lines.next() != Some("enabled") {
            return None;
        }
        let said = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key));
            line.map(str::trim)
        };
        let magic = bytes(said("magic ")?)?;
        let mask = match said("mask ") {
            Some(mask) => bytes(mask)?,
            None => vec![0xff; magic.len()],
        };
        Some(Emulator {
            interpreter: said("interpreter ")?.to_owned(),
            is_fixed: said("flags:").is_some_and(|flags| flags.contains('F')),
            offset: said("offset ")?.parse().ok()?,
            mask,
            magic,
        })
    }
}

/// All that are registered and switched on.
fn registered(folder: &Path) -> Vec<Emulator> {
    let is_on = fs::read_to_string(folder.join("status")).is_ok_and(|it| it.trim() == "enabled");
    let Some(entries) = is_on.then(|| fs::read_dir(folder).ok()).flatten() else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let texts = paths.iter().filter_map(|path| fs::read_to_string(path).ok());
    texts.filter_map(|text| Emulator::read(&text)).collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let digits = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    digits.map(byte).collect()
}

/// How programs of an architecture begin: those at a fixed position, and those at any.
fn headers(architecture: &str) -> Option<[Vec<u8>; 2]> {
    let (machine, is_long, is_little) = match architecture {
        "386" => (3, false, true),
        "amd64" => (62, true, true),
        "arm" => (40, false, true),
        "arm64" => (183, true, true),
        "loong64" => (258, true, true),
        "mips" => (8, false, false),
        "mips64" => (8, true, false),
        "mips64le" => (8, true, true),
        "mipsle" => (8, false, true),
        "ppc64" => (21, true, false),
        "ppc64le" => (21, true, true),
        "riscv64" => (243, true, true),
        "s390x" => (22, true, false),
        _ => return None,
    };
    Some([ET_EXEC, ET_DYN].map(|kind| header(kind, machine, is_long, is_little)))
}

/// The first bytes of an ELF file, as far as emulators are chosen by them; the rest is zero.
fn header(kind: u16, machine: u16, is_long: bool, is_little: bool) -> Vec<u8> {
    let mut header = vec![0x7f, b'E', b'L', b'F', 1, 2, 1];
    if is_long {
        header[4] = 2;
    }
    if is_little {
        header[5] = 1;
    }
    header.resize(16, 0);
    let number = |it: u16| if is_little { it.to_le_bytes() } else { it.to_be_bytes() };
    header.extend(number(kind));
    header.extend(number(machine));
    header.extend(if is_little { 1_u32.to_le_bytes() } else { 1_u32.to_be_bytes() });
    // What the kernel compares (`BINPRM_BUF_SIZE`).
    header.resize(256, 0);
    header
}

const FOLDER: &str = "/proc/sys/fs/binfmt_misc";
const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;

#[cfg(test)]
mod tests;
