//! What kind of file a program is, before it runs: whether a preload library sees its calls.
//! Source: elf(5), execve(2).

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How a program makes its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    /// Through a C library that a preload library can stand before; so far as a file can say.
    Library,
    /// By itself: a static program, or one whose language has its own runtime (Go).
    Direct,
}

/// How the program that a command names makes its calls; of a script, its interpreter. What cannot
/// be found or read is taken to use the library.
pub(super) fn calls_of(program: &OsStr, path: Option<&OsStr>, folder: &Path) -> Calls {
    let mut file = find(program, path, folder);
    for _ in 0..SCRIPTS_DEEP {
        let Some(beginning) = file.as_deref().and_then(read_beginning) else { break };
        match interpreter(&beginning.bytes) {
            Some(interpreter) => file = Some(folder.join(interpreter)),
            None => return calls_of_elf(&beginning).unwrap_or(Calls::Library),
        }
    }
    Calls::Library
}

/// A file, and its first bytes.
struct Beginning {
    file: File,
    bytes: Vec<u8>,
}

/// As execvp(3) searches.
fn find(program: &OsStr, path: Option<&OsStr>, folder: &Path) -> Option<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return Some(folder.join(program));
    }
    let folders = std::env::split_paths(path.unwrap_or(OsStr::new("/bin:/usr/bin")));
    let mut places = folders.map(|place| folder.join(place).join(program));
    places.find(|place| {
        place
            .metadata()
            .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
    })
}

fn read_beginning(path: &Path) -> Option<Beginning> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let mut bytes = Vec::with_capacity(BEGINNING_BYTES);
    (&file).take(BEGINNING_BYTES as u64).read_to_end(&mut bytes).ok()?;
    Some(Beginning { file, bytes })
}

/// What a script names in its first line.
fn interpreter(beginning: &[u8]) -> Option<&Path> {
    let line = beginning.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = line.trim_ascii_start().split(|byte| *byte == b' ' || *byte == b'\t').next()?;
    (!word.is_empty()).then(|| Path::new(OsStr::from_bytes(word)))
}

/// By the program headers; `None`: not an ELF file of 64 bits, low byte first.
fn calls_of_elf(beginning: &Beginning) -> Option<Calls> {
    let header = beginning.bytes.get(..64)?;
    if !header.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let offset = u64::from_le_bytes(header[32..40].try_into().ok()?);
    let size = usize::from(u16::from_le_bytes([header[54], header[55]]));
    let count = usize::from(u16::from_le_bytes([header[56], header[57]]));
    if size < PROGRAM_HEADER_BYTES || count > PROGRAM_HEADERS_MAX {
        return None;
    }
    let mut table = vec![0; size * count];
    beginning.file.read_exact_at(&mut table, offset).ok()?;
    let segments = || table.chunks_exact(size).filter_map(Segment::read);
    let has_loader = segments().any(|segment| segment.kind == PT_INTERP);
    let is_go = segments()
        .filter(|segment| segment.kind == PT_NOTE)
        .any(|segment| has_note_of_go(&beginning.file, &segment));
    Some(if has_loader && !is_go { Calls::Library } else { Calls::Direct })
}

struct Segment {
    kind: u32,
    offset: u64,
    bytes: u64,
}

impl Segment {
    fn read(header: &[u8]) -> Option<Segment> {
        let wide = |at: usize| header.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let kind = u32::from_le_bytes(header.get(..4)?.try_into().ok()?);
        Some(Segment { kind, offset: wide(8)?, bytes: wide(32)? })
    }
}

/// Go's linker writes the build's identity as a note of this name (cmd/internal/buildid of Go).
fn has_note_of_go(file: &File, segment: &Segment) -> bool {
    let mut notes = vec![0; usize::try_from(segment.bytes.min(NOTES_BYTES)).unwrap_or(0)];
    let read = file.read_at(&mut notes, segment.offset).unwrap_or(0);
    let mut rest = &notes[..read];
    while let Some((header, after)) = rest.split_at_checked(12) {
        let number = |at: usize| {
            let bytes = header[at..at + 4].try_into().unwrap_or_default();
            usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX)
        };
        let (name, content) = (number(0), number(4));
        if after.starts_with(b"Go\0\0") && name == 4 {
            return true;
        }
        let whole = name.next_multiple_of(4).checked_add(content.next_multiple_of(4));
        let Some(next) = whole.and_then(|bytes| after.get(bytes..)) else { break };
        rest = next;
    }
    false
}

/// As the kernel: an interpreter may be a script as well, five levels deep.
const SCRIPTS_DEEP: usize = 5;
/// More than the kernel's `BINPRM_BUF_SIZE`, which bounds the first line of a script.
const BEGINNING_BYTES: usize = 512;
/// `struct Elf64_Phdr`.
const PROGRAM_HEADER_BYTES: usize = 56;
/// Far more than linkers write; the kernel refuses tables of more than 64 KiB.
const PROGRAM_HEADERS_MAX: usize = 1170;
/// More than the notes of any program seen.
const NOTES_BYTES: u64 = 65_536;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(kind: u32, offset: u64, bytes: u64) -> Vec<u8> {
        let mut header = vec![0; PROGRAM_HEADER_BYTES];
        header[..4].copy_from_slice(&kind.to_le_bytes());
        header[8..16].copy_from_slice(&offset.to_le_bytes());
        header[32..40].copy_from_slice(&bytes.to_le_bytes());
        header
    }

    /// A file with these segments, and what they point to at byte 1000.
    fn elf(segments: &[Vec<u8>], content: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 64];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[32] = 64;
        file[54] = 56;
        file[56] = u8::try_from(segments.len()).unwrap();
        file.extend(segments.concat());
        file.resize(1000, 0);
        file.extend(content);
        file
    }

    fn note(name: &[u8]) -> Vec<u8> {
        let length = u32::try_from(name.len()).unwrap();
        let other = [&4_u32.to_le_bytes()[..], &[4, 0, 0, 0, 1, 0, 0, 0], b"GNU\0", &[9; 4]];
        let this = [&length.to_le_bytes()[..], &[8, 0, 0, 0, 4, 0, 0, 0], name, &[7; 8]];
        [other.concat(), this.concat()].concat()
    }

    fn calls(bytes: &[u8]) -> Calls {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("program"), bytes).unwrap();
        calls_of(OsStr::new("./program"), None, folder.path())
    }

    #[test]
    fn a_program_without_a_loader_makes_its_calls_itself() {
        assert_eq!(calls(&elf(&[segment(1, 0, 9)], &[])), Calls::Direct);
        assert_eq!(calls(&elf(&[segment(1, 0, 9), segment(3, 0, 9)], &[])), Calls::Library);
    }

    #[test]
    fn a_program_of_go_makes_its_calls_itself_though_it_has_a_loader() {
        let (go, other) = (note(b"Go\0\0"), note(b"Xen\0"));
        let length = u64::try_from(go.len()).unwrap();
        let segments = [segment(3, 0, 9), segment(4, 1000, length)];
        assert_eq!(calls(&elf(&segments, &go)), Calls::Direct);
        assert_eq!(calls(&elf(&segments, &other)), Calls::Library);
    }

    #[test]
    fn malformed_files_are_survived() {
        let go = note(b"Go\0\0");
        let whole = elf(&[segment(3, 0, 9), segment(4, 1000, u64::MAX)], &go);
        for length in 0..whole.len() {
            let _ = calls(&whole[..length]);
        }
        let mut wrong = whole;
        for at in 0..200 {
            let before = std::mem::replace(&mut wrong[at], 0xff);
            let _ = calls(&wrong);
            wrong[at] = before;
        }
    }

    #[test]
    fn a_script_is_as_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let shell = folder.path().join("shell");
        std::fs::write(&shell, elf(&[segment(1, 0, 9)], &[])).unwrap();
        let script = format!("#! {} -e\necho\n", shell.display());
        std::fs::write(folder.path().join("script"), script).unwrap();
        assert_eq!(calls_of(OsStr::new("./script"), None, folder.path()), Calls::Direct);
    }

    #[test]
    fn programs_are_found_in_the_path_that_they_are_given() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tool");
        std::fs::write(&file, elf(&[segment(1, 0, 9)], &[])).unwrap();
        let path = Some(folder.path().as_os_str());
        let find = || calls_of(OsStr::new("tool"), path, Path::new("/"));
        assert_eq!(find(), Calls::Library, "not one that may be run");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(), Calls::Direct);
    }
}
