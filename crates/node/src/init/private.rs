//! Folders of a private node's own: temporary ones, and homes.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use windtunnel_sys::mount;

use crate::message::Failure;

/// Covers what is shared or of one user with empty folders in memory; what is `kept` stays where
/// it is.
pub(super) fn cover(kept: &[PathBuf]) -> Result<(), Failure> {
    let folders = folders(std::env::var_os("HOME").map(PathBuf::from));
    let kept = within(&folders, kept)?;
    // Homes inside others go with them, and are made again.
    for folder in &folders {
        let options = if folder.is_temporary { "mode=1777" } else { "mode=755" };
        fs::create_dir_all(&folder.path)
            .and_then(|()| mount::tmpfs(&folder.path, options))
            .map_err(|error| failure(&folder.path, &error))?;
    }
    for (path, copy) in kept {
        put_back(&path, &copy).map_err(|error| failure(&path, &error))?;
    }
    Ok(())
}

/// A folder to be covered.
#[derive(Debug, PartialEq, Eq)]
struct Folder {
    path: PathBuf,
    is_temporary: bool,
}

/// Those that are there, outer ones before inner ones.
fn folders(home: Option<PathBuf>) -> Vec<Folder> {
    let usual = TEMPORARY.iter().map(|path| (PathBuf::from(path), true));
    let homes = HOMES.iter().map(PathBuf::from).chain(home).map(|path| (path, false));
    let mut found: Vec<Folder> = Vec::new();
    for (path, is_temporary) in usual.chain(homes) {
        let path = fs::canonicalize(path).ok().filter(|path| path.is_dir());
        // Every machine has a root folder.
        let path = path.filter(|path| path.parent().is_some());
        if let Some(path) = path.filter(|path| found.iter().all(|other| other.path != *path)) {
            found.push(Folder { path, is_temporary });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Those of `kept` that would be covered, each with a copy that stays.
fn within(folders: &[Folder], kept: &[PathBuf]) -> Result<Vec<(PathBuf, OwnedFd)>, Failure> {
    let mut found = Vec::new();
    for path in kept {
        let Ok(path) = fs::canonicalize(path) else { continue };
        if !folders.iter().any(|folder| path.starts_with(&folder.path)) {
            continue;
        }
        if let Some(folder) = folders.iter().find(|folder| folder.path.starts_with(&path)) {
            return Err(Failure {
                stage: STAGE.into(),
                message: format!(
                    "a private node cannot keep {}: {} is to be hidden",
                    path.display(),
                    folder.path.display()
                ),
                hint: Some("give the file of the experiment a folder of its own".into()),
            });
        }
        let copy = mount::copy(&path).map_err(|error| failure(&path, &error))?;
        found.push((path, copy));
    }
    Ok(found)
}

fn put_back(path: &Path, copy: &OwnedFd) -> io::Result<()> {
    fs::create_dir_all(path)?;
    mount::attach(copy, path)
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    Failure {
        stage: STAGE.into(),
        message: format!("cannot give the node a view of its own of {}: {error}", path.display()),
        hint: None,
    }
}

const STAGE: &str = "mounts";

/// What programs share without knowing each other.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// What is of one user, the sockets of desktops and agents among it.
const HOMES: [&str; 3] = ["/home", "/root", "/run/user"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_outside_of_the_usual_place_is_covered_as_well_and_outer_folders_come_first() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().canonicalize().unwrap();
        let found = folders(Some(home.clone()));
        let position = |path: &Path| found.iter().position(|folder| folder.path == path);
        assert!(position(Path::new("/tmp")) < position(&home), "{found:?}");
        assert!(!found[position(&home).unwrap()].is_temporary);
    }

    #[test]
    fn the_root_folder_and_a_home_that_is_not_there_are_left_alone() {
        let usual = folders(None);
        assert_eq!(folders(Some("/".into())), usual);
        assert_eq!(folders(Some("/no/such/home".into())), usual);
    }

    #[test]
    fn an_experiment_in_the_home_itself_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let home = root.path().join("home");
        fs::create_dir(&home).unwrap();
        let folders = folders(Some(home.clone()));
        for kept in [&home, root.path()] {
            let refused = within(&folders, &[kept.to_owned()]).unwrap_err();
            assert!(refused.message.contains("is to be hidden"), "{}", refused.message);
            assert!(refused.hint.is_some());
        }
        assert!(within(&folders, &["/usr".into()]).unwrap().is_empty());
    }
}
