//! What the first bytes and the headers of a program's file say. `core` only, so that the preload
//! library can compile this file into itself. Source: elf(5), execve(2).

/// How a program makes its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemCallOrigin {
    /// Through a C library that a preload library can stand before; so far as a file can say.
    Library,
    /// By itself: a static program, or one whose language has its own runtime (Go).
    Direct,
}

/// Reads from a place of the file: how many bytes.
pub type Read<'a> = &'a mut dyn FnMut(u64, &mut [u8]) -> usize;

/// What a script names in its first line.
#[must_use]
pub fn interpreter(beginning: &[u8]) -> Option<&[u8]> {
    let line = beginning.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = line.trim_ascii_start().split(|byte| *byte == b' ' || *byte == b'\t').next()?;
    (!word.is_empty()).then_some(word)
}

/// By the program headers; `None`: not an ELF file of 64 bits, low byte first.
pub fn calls_of(read: Read<'_>) -> Option<SystemCallOrigin> {
    let mut header = [0; HEADER_BYTES];
    if read(0, &mut header) < HEADER_BYTES || !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let offset = wide(&header, 32)?;
    let (size, count) = (half(&header, 54)?, half(&header, 56)?);
    if usize::from(size) < PROGRAM_HEADER_BYTES || count > PROGRAM_HEADERS_MAX {
        return None;
    }
    let (mut has_loader, mut is_go) = (false, false);
    for number in 0..count {
        let mut segment = [0; PROGRAM_HEADER_BYTES];
        let at = offset.checked_add(u64::from(number) * u64::from(size))?;
        if read(at, &mut segment) < PROGRAM_HEADER_BYTES {
            return None;
        }
        match word(&segment, 0)? {
            PT_INTERP => has_loader = true,
            PT_NOTE => is_go |= has_note_of_go(read, wide(&segment, 8)?, wide(&segment, 32)?),
            _ => {}
        }
    }
    Some(if has_loader && !is_go { SystemCallOrigin::Library } else { SystemCallOrigin::Direct })
}

/// Go's linker writes the build's identity as a note of this name (cmd/internal/buildid of Go).
fn has_note_of_go(read: Read<'_>, begin: u64, bytes: u64) -> bool {
    let mut at = 0_u64;
    let bytes = bytes.min(NOTES_BYTES);
    while at.saturating_add(NOTE_BYTES as u64) <= bytes {
        let mut note = [0; NOTE_BYTES];
        let Some(place) = begin.checked_add(at) else { break };
        if read(place, &mut note) < NOTE_BYTES {
            break;
        }
        let (Some(name), Some(content)) = (word(&note, 0), word(&note, 4)) else { break };
        if name == 4 && note.ends_with(b"Go\0\0") {
            return true;
        }
        let whole = u64::from(name).next_multiple_of(4) + u64::from(content).next_multiple_of(4);
        at = at.saturating_add(12 + whole);
    }
    false
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn wide(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// As the kernel: an interpreter may be a script as well, five levels deep.
pub const SCRIPTS_DEEP: usize = 5;
/// More than the kernel's `BINPRM_BUF_SIZE`, which bounds the first line of a script.
pub const BEGINNING_BYTES: usize = 512;
/// `struct Elf64_Ehdr`.
const HEADER_BYTES: usize = 64;
/// `struct Elf64_Phdr`.
const PROGRAM_HEADER_BYTES: usize = 56;
/// Far more than linkers write; the kernel refuses tables of more than 64 KiB.
const PROGRAM_HEADERS_MAX: u16 = 1170;
/// `struct Elf64_Nhdr`, and a name of four bytes.
const NOTE_BYTES: usize = 16;
/// More than the notes of any program seen.
const NOTES_BYTES: u64 = 65_536;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;
