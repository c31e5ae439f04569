//! Files that programs may not see, whatever its user may read outside.
//!
//! A mount hides a file below one name of one mount. The same file may have other names: where its
//! file system is mounted a second time, which the table of mounts lists (proc_pid_mountinfo(5)),
//! and hard links, which no table lists: of these the user is warned.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use windtunnel_sys::mount::{self, BindMountAccess};

use crate::message::{NodeSetupFailure, NodeSetupStage};

/// What is seen in place of what is hidden.
#[derive(Debug, Clone, Copy)]
pub struct MaskedPathCover<'a> {
    /// The mode of an empty folder, as the option of a tmpfs has it: `500`.
    pub folder_mode: &'a str,
    /// A file.
    pub file: &'a Path,
}

impl MaskedPathCover<'static> {
    /// An empty folder that can be read, and an empty file.
    pub(super) fn empty() -> Self {
        MaskedPathCover { folder_mode: "500", file: Path::new("/dev/null") }
    }
}

/// Hides files and folders that are there, in the mount namespace of the caller.
///
/// # Errors
/// If one is there and could not be hidden.
pub fn hide(
    paths: &[PathBuf],
    with: MaskedPathCover<'_>,
    notes: &mut Vec<String>,
) -> Result<(), NodeSetupFailure> {
    for path in paths {
        let there = fs::canonicalize(path).and_then(|path| Ok((fs::metadata(&path)?, path)));
        let (metadata, path) = match there {
            Ok(there) => there,
            Err(error) if is_out_of_reach(&error) => continue,
            Err(error) => return Err(failure(path, &error)),
        };
        if metadata.is_file() && metadata.nlink() > 1 {
            notes.push(format!(
                "{} has other names (hard links), by which programs can read it",
                path.display()
            ));
        }
        let table = fs::read_to_string(MOUNTS).map_err(|error| failure(&path, &error))?;
        for name in names(&path, &parse(&table)) {
            // What is not the file is another mount over it.
            if fs::metadata(&name).is_ok_and(|other| is_same(&metadata, &other)) {
                cover(&name, &metadata, with).map_err(|error| failure(&name, &error))?;
            }
        }
    }
    Ok(())
}

/// What programs cannot reach either, having no more rights than the init.
fn is_out_of_reach(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

fn cover(name: &Path, metadata: &Metadata, with: MaskedPathCover<'_>) -> io::Result<()> {
    if metadata.is_dir() {
        mount::tmpfs(name, &format!("mode={},size=4k", with.folder_mode))
    } else {
        mount::bind(with.file, name, BindMountAccess::Same)
    }
}

fn failure(path: &Path, error: &io::Error) -> NodeSetupFailure {
    NodeSetupFailure {
        stage: NodeSetupStage::Mounts,
        message: format!("cannot hide {}: {error}", path.display()),
        hint: None,
    }
}

/// A line of the table of mounts.
#[derive(Debug, PartialEq, Eq)]
struct MountTableEntry {
    /// The file system.
    device: String,
    /// Which folder of the file system is mounted.
    root: PathBuf,
    at: PathBuf,
}

/// `36 35 98:0 /root /at options [optional fields] - type source options`.
fn parse(table: &str) -> Vec<MountTableEntry> {
    let mount = |line: &str| {
        let mut words = line.split(' ').skip(2);
        let device = words.next()?.to_owned();
        let (root, at) = (unescaped(words.next()?), unescaped(words.next()?));
        Some(MountTableEntry { device, root, at })
    };
    table.lines().filter_map(mount).collect()
}

/// Blanks and backslashes are written as three octal digits.
fn unescaped(text: &str) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}

/// A path, and the other names that mounts give to what is there.
fn names(path: &Path, mounts: &[MountTableEntry]) -> Vec<PathBuf> {
    let mut names = vec![path.to_owned()];
    let holding = mounts.iter().filter(|mount| path.starts_with(&mount.at));
    // Of several at one place the last is on top.
    let Some(own) = holding.max_by_key(|mount| mount.at.as_os_str().len()) else { return names };
    let Ok(below) = path.strip_prefix(&own.at) else { return names };
    let inside = own.root.join(below);
    for other in mounts.iter().filter(|mount| mount.device == own.device) {
        let name = inside.strip_prefix(&other.root).ok().map(|below| match below {
            // A file may be mounted by itself.
            below if below.as_os_str().is_empty() => other.at.clone(),
            below => other.at.join(below),
        });
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

const MOUNTS: &str = "/proc/self/mountinfo";

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
        22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
        30 22 8:2 / /home rw - ext4 /dev/sda2 rw\n\
        31 22 8:2 /ann /srv/ann\\040b rw master:3 propagate_from:2 - ext4 /dev/sda2 rw\n\
        32 22 8:2 /ann/.config/key /etc/key rw - ext4 /dev/sda2 rw\n\
        33 22 8:2 /bob /srv/bob rw - ext4 /dev/sda2 rw\n\
        34 22 0:5 / /proc rw - proc proc rw\n";

    #[test]
    fn a_file_has_a_name_by_each_mount_that_shows_it() {
        let names = names(Path::new("/home/ann/.config/key"), &parse(TABLE));
        let expected = ["/home/ann/.config/key", "/srv/ann b/.config/key", "/etc/key"];
        assert_eq!(names, expected.map(PathBuf::from));
    }

    #[test]
    fn a_file_of_a_file_system_that_is_mounted_once_has_one_name() {
        assert_eq!(names(Path::new("/root/key"), &parse(TABLE)), [PathBuf::from("/root/key")]);
        assert_eq!(names(Path::new("/root/key"), &[]), [PathBuf::from("/root/key")]);
    }

    #[test]
    fn octal_digits_after_a_backslash_are_a_byte() {
        assert_eq!(unescaped("a\\134b\\040c\\0"), PathBuf::from("a\\b c\\0"));
    }
}
