//! Reading and replacing a file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// What came of saving.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScenarioSaveOutcome {
    /// The version of what was written.
    New(String),
    /// The file is another than the page knows.
    Conflict { text: String, version: String },
}

/// The text and its version.
pub(super) fn read(path: &Path) -> io::Result<(String, String)> {
    let mut text = String::new();
    File::open(path)?.take(BYTES_MAX).read_to_string(&mut text)?;
    let version = version(&text);
    Ok((text, version))
}

/// What changes with each change of the file, or nearly.
pub(super) fn state(path: &Path) -> Option<(u64, u64, Option<SystemTime>)> {
    let data = path.metadata().ok()?;
    Some((data.ino(), data.len(), data.modified().ok()))
}

/// Replaces the file in one step, so that it is whole whatever happens, with the same mode and owner.
pub(super) fn save(path: &Path, text: &str, known: &str) -> io::Result<ScenarioSaveOutcome> {
    let (there, version_there) = read(path)?;
    if version_there != known {
        return Ok(ScenarioSaveOutcome::Conflict { text: there, version: version_there });
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let aside = folder.join(format!(".{name}.{}.new", std::process::id()));
    let written = write(path, &aside, text);
    if written.is_err() {
        let _ = fs::remove_file(&aside);
    }
    written?;
    Ok(ScenarioSaveOutcome::New(version(text)))
}

fn write(path: &Path, aside: &Path, text: &str) -> io::Result<()> {
    let old = path.metadata()?;
    // What a killed process has left.
    let _ = fs::remove_file(aside);
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(aside)?;
    new.write_all(text.as_bytes())?;
    let made = new.metadata()?;
    if (made.uid(), made.gid()) != (old.uid(), old.gid()) {
        std::os::unix::fs::fchown(&new, Some(old.uid()), Some(old.gid()))?;
    }
    new.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))?;
    new.sync_all()?;
    fs::rename(aside, path)
}

fn version(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// More than a scenario may have.
const BYTES_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saving_keeps_the_mode_and_replaces_the_file_in_one_step() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("net.yaml");
        fs::write(&path, "a: 1\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let (_, first) = read(&path).unwrap();
        let before = state(&path);
        let ScenarioSaveOutcome::New(second) = save(&path, "a: 2\n", &first).unwrap() else {
            panic!()
        };
        assert_eq!(read(&path).unwrap(), ("a: 2\n".to_owned(), second));
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o640);
        assert_ne!(state(&path), before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_another_program_has_changed_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("net.yaml");
        fs::write(&path, "a: 1\n").unwrap();
        let (_, first) = read(&path).unwrap();
        fs::write(&path, "a: 7\n").unwrap();
        let conflict = save(&path, "a: 2\n", &first).unwrap();
        assert!(matches!(conflict, ScenarioSaveOutcome::Conflict { text, .. } if text == "a: 7\n"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "a: 7\n");
    }
}
