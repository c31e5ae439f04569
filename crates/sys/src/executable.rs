//! What kind of file a program is, before it runs: whether a preload library sees its calls.
//! Source: elf(5), execve(2).

pub mod elf;

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub use elf::SystemCallOrigin;
use elf::{BEGINNING_BYTES, SCRIPTS_DEEP, interpreter};

/// How the program that a command names makes its calls; of a script, its interpreter. What cannot
/// be found or read is taken to use the library.
#[must_use]
pub fn calls_of(program: &OsStr, path: Option<&OsStr>, folder: &Path) -> SystemCallOrigin {
    let mut file = find(program, path, folder);
    for _ in 0..SCRIPTS_DEEP {
        let Some(beginning) = file.as_deref().and_then(read_beginning) else { break };
        match interpreter(&beginning.bytes) {
            Some(interpreter) => file = Some(folder.join(OsStr::from_bytes(interpreter))),
            None => return calls_of_file(&beginning.file).unwrap_or(SystemCallOrigin::Library),
        }
    }
    SystemCallOrigin::Library
}

/// Whether the program that a command names gains rights by its file: those of the file's owner or
/// group.
#[must_use]
pub fn gains_rights(program: &OsStr, path: Option<&OsStr>, folder: &Path) -> bool {
    let file = find(program, path, folder).and_then(|file| file.metadata().ok());
    file.is_some_and(|about| about.permissions().mode() & SET_ID != 0)
}

/// A file, and its first bytes.
struct ExecutableHead {
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

fn read_beginning(path: &Path) -> Option<ExecutableHead> {
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let mut bytes = Vec::with_capacity(BEGINNING_BYTES);
    (&file).take(BEGINNING_BYTES as u64).read_to_end(&mut bytes).ok()?;
    Some(ExecutableHead { file, bytes })
}

fn calls_of_file(file: &File) -> Option<SystemCallOrigin> {
    elf::calls_of(&mut |at, bytes| file.read_at(bytes, at).unwrap_or(0))
}

/// `S_ISUID | S_ISGID`.
const SET_ID: u32 = 0o6000;
#[cfg(test)]
/// `struct Elf64_Phdr`.
const PROGRAM_HEADER_BYTES: usize = 56;

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

    fn calls(bytes: &[u8]) -> SystemCallOrigin {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("program"), bytes).unwrap();
        calls_of(OsStr::new("./program"), None, folder.path())
    }

    #[test]
    fn a_program_without_a_loader_makes_its_calls_itself() {
        assert_eq!(calls(&elf(&[segment(1, 0, 9)], &[])), SystemCallOrigin::Direct);
        assert_eq!(
            calls(&elf(&[segment(1, 0, 9), segment(3, 0, 9)], &[])),
            SystemCallOrigin::Library
        );
    }

    #[test]
    fn a_program_of_go_makes_its_calls_itself_though_it_has_a_loader() {
        let (go, other) = (note(b"Go\0\0"), note(b"Xen\0"));
        let length = u64::try_from(go.len()).unwrap();
        let segments = [segment(3, 0, 9), segment(4, 1000, length)];
        assert_eq!(calls(&elf(&segments, &go)), SystemCallOrigin::Direct);
        assert_eq!(calls(&elf(&segments, &other)), SystemCallOrigin::Library);
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
        assert_eq!(calls_of(OsStr::new("./script"), None, folder.path()), SystemCallOrigin::Direct);
    }

    #[test]
    fn programs_are_found_in_the_path_that_they_are_given() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tool");
        std::fs::write(&file, elf(&[segment(1, 0, 9)], &[])).unwrap();
        let path = Some(folder.path().as_os_str());
        let find = || calls_of(OsStr::new("tool"), path, Path::new("/"));
        assert_eq!(find(), SystemCallOrigin::Library, "not one that may be run");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(), SystemCallOrigin::Direct);
    }
}
