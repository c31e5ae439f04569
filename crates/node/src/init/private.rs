//! Folders of a private node's own: temporary ones, that of daemons' sockets, and homes.

use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use windtunnel_sys::mount;

use crate::message::{NodeSetupFailure, NodeSetupStage};

/// Covers what is shared or of one user with empty folders in memory; what is `kept` stays where
/// it is.
pub(super) fn cover(kept: &[PathBuf]) -> Result<(), NodeSetupFailure> {
    let folders = folders(std::env::var_os("HOME").map(PathBuf::from));
    let kept = within(&folders, kept)?;
    let named = NAMED.iter().filter_map(|path| fs::canonicalize(path).ok());
    let named: Vec<PathBuf> =
        named.filter(|path| folders.iter().any(|folder| path.starts_with(&folder.path))).collect();
    // Homes inside others go with them, and are made again.
    for folder in &folders {
        let options = if folder.is_temporary { "mode=1777" } else { "mode=755" };
        let skeleton = if folder.has_skeleton { skeleton(&folder.path, DEPTH) } else { Vec::new() };
        fs::create_dir_all(&folder.path)
            .and_then(|()| mount::tmpfs(&folder.path, options))
            .and_then(|()| skeleton.iter().try_for_each(RuntimeFolderEntry::make))
            .map_err(|error| failure(&folder.path, &error))?;
    }
    for path in named {
        // The node's own files are shown there later.
        let folder = path.parent().unwrap_or(&path);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, ""))
            .map_err(|error| failure(&path, &error))?;
    }
    for (path, copy) in kept {
        put_back(&path, &copy).map_err(|error| failure(&path, &error))?;
    }
    Ok(())
}

/// A folder to be covered.
#[derive(Debug, PartialEq, Eq)]
struct PrivateFolder {
    path: PathBuf,
    is_temporary: bool,
    /// Whether the folders and links in it are there from the beginning.
    has_skeleton: bool,
}

/// A folder or a link that programs expect in `/run`, because the machine's start has made it.
#[derive(Debug, PartialEq, Eq)]
enum RuntimeFolderEntry {
    Folder { path: PathBuf, mode: u32, owner: (u32, u32) },
    Link { path: PathBuf, target: PathBuf },
}

/// The folders and links in a folder, so deep; no files and no sockets.
fn skeleton(folder: &Path, depth: usize) -> Vec<RuntimeFolderEntry> {
    let mut found = Vec::new();
    // What cannot be read is nothing that a program of the node would find anything in.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(BONES_MAX);
    for entry in entries {
        let path = entry.path();
        let Ok(about) = fs::symlink_metadata(&path) else { continue };
        if about.is_dir() {
            let below = if depth > 1 { skeleton(&path, depth - 1) } else { Vec::new() };
            let (mode, owner) = (about.mode() & 0o7777, (about.uid(), about.gid()));
            found.push(RuntimeFolderEntry::Folder { path, mode, owner });
            found.extend(below);
        } else if let Ok(target) = fs::read_link(&path) {
            found.push(RuntimeFolderEntry::Link { path, target });
        }
    }
    found
}

impl RuntimeFolderEntry {
    fn make(&self) -> io::Result<()> {
        match self {
            RuntimeFolderEntry::Folder { path, mode, owner: (uid, gid) } => {
                fs::create_dir_all(path)?;
                // In a user namespace without that user the folder is of the node's, which may write
                // to it then.
                let _ = chown(path, Some(*uid), Some(*gid));
                fs::set_permissions(path, Permissions::from_mode(*mode))
            }
            RuntimeFolderEntry::Link { path, target } => symlink(target, path),
        }
    }
}

/// Those that are there, outer ones before inner ones.
fn folders(home: Option<PathBuf>) -> Vec<PrivateFolder> {
    let usual = TEMPORARY.iter().map(|path| (PathBuf::from(path), true, false));
    let running = RUNNING.iter().map(|path| (PathBuf::from(path), false, true));
    let homes = HOMES.iter().map(PathBuf::from).chain(home).map(|path| (path, false, false));
    let mut found: Vec<PrivateFolder> = Vec::new();
    for (path, is_temporary, has_skeleton) in usual.chain(running).chain(homes) {
        let path = fs::canonicalize(path).ok().filter(|path| path.is_dir());
        // Every machine has a root folder.
        let path = path.filter(|path| path.parent().is_some());
        if let Some(path) = path.filter(|path| found.iter().all(|other| other.path != *path)) {
            found.push(PrivateFolder { path, is_temporary, has_skeleton });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Those of `kept` that would be covered, each with a copy that stays.
fn within(
    folders: &[PrivateFolder],
    kept: &[PathBuf],
) -> Result<Vec<(PathBuf, OwnedFd)>, NodeSetupFailure> {
    let mut found = Vec::new();
    for path in kept {
        let Ok(path) = fs::canonicalize(path) else { continue };
        if !folders.iter().any(|folder| path.starts_with(&folder.path)) {
            continue;
        }
        if let Some(folder) = folders.iter().find(|folder| folder.path.starts_with(&path)) {
            return Err(NodeSetupFailure {
                stage: NodeSetupStage::Mounts,
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

fn failure(path: &Path, error: &io::Error) -> NodeSetupFailure {
    NodeSetupFailure {
        stage: NodeSetupStage::Mounts,
        message: format!("cannot give the node a view of its own of {}: {error}", path.display()),
        hint: None,
    }
}

/// What programs share without knowing each other.
const TEMPORARY: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// Where daemons have their sockets and pid files; the second is a link to the first mostly.
const RUNNING: [&str; 2] = ["/run", "/var/run"];

/// Files that nodes have of their own, which are often links into one of these folders.
const NAMED: [&str; 3] = ["/etc/hosts", "/etc/resolv.conf", "/etc/hostname"];

/// `/run/lock/NAME`: no daemon that was looked at needs more.
const DEPTH: usize = 2;
/// Entries of a folder of `/run` that are looked at.
const BONES_MAX: usize = 1000;

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
    fn of_the_folder_of_daemons_there_are_the_folders_and_the_links() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("postgresql/deep/deeper")).unwrap();
        fs::set_permissions(at("postgresql"), Permissions::from_mode(0o2775)).unwrap();
        fs::write(at("postgresql/pid"), "1").unwrap();
        fs::write(at("daemon.pid"), "1").unwrap();
        symlink("/nix/store/system", at("current-system")).unwrap();
        let mut found = skeleton(root.path(), 2);
        found.sort_by_key(|bone| match bone {
            RuntimeFolderEntry::Folder { path, .. } | RuntimeFolderEntry::Link { path, .. } => {
                path.clone()
            }
        });
        let about = fs::metadata(at("postgresql")).unwrap();
        let owner = (about.uid(), about.gid());
        let deep = fs::metadata(at("postgresql/deep")).unwrap().mode() & 0o7777;
        let expected = [
            RuntimeFolderEntry::Link {
                path: at("current-system"),
                target: "/nix/store/system".into(),
            },
            RuntimeFolderEntry::Folder { path: at("postgresql"), mode: 0o2775, owner },
            RuntimeFolderEntry::Folder { path: at("postgresql/deep"), mode: deep, owner },
        ];
        assert_eq!(found, expected);
        // Made again, they are the same.
        let (from, to) = (root.path().to_owned(), tempfile::tempdir().unwrap());
        for bone in found {
            let moved = |path: PathBuf| to.path().join(path.strip_prefix(&from).unwrap());
            let bone = match bone {
                RuntimeFolderEntry::Folder { path, mode, owner } => {
                    RuntimeFolderEntry::Folder { path: moved(path), mode, owner }
                }
                RuntimeFolderEntry::Link { path, target } => {
                    RuntimeFolderEntry::Link { path: moved(path), target }
                }
            };
            bone.make().unwrap();
        }
        assert_eq!(fs::metadata(to.path().join("postgresql")).unwrap().mode() & 0o7777, 0o2775);
        assert!(to.path().join("current-system").is_symlink());
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
