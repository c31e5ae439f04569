//! Which runs of this user are live on this machine, in whatever folder: a link to the folder of
//! each, in a folder that is the user's own. There is no daemon: a run adds its link and removes it
//! again, and a process that lists the links removes those of runs that were killed.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use windtunnel_sys::process;

use crate::socket;

/// A run's link, for as long as this value lives.
#[derive(Debug)]
pub struct Registration {
    link: PathBuf,
}

impl Registration {
    /// Adds a link to `folder`, the folder of a run of this process whose control socket is open.
    /// `None` where this user has no folder for it: the run is found by its own folder only.
    #[must_use]
    pub fn add(folder: &Path) -> Option<Self> {
        let folder = std::path::absolute(folder).ok()?;
        places().iter().find_map(|place| Self::add_in(place, &folder))
    }

    fn add_in(place: &Path, folder: &Path) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        match DirBuilder::new().mode(0o700).create(place) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return None,
            _ => {}
        }
        if !is_private(place) {
            return None;
        }
        remove_dead(place);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let link = place.join(format!("{}-{number}", std::process::id()));
        // An earlier process may have had this number.
        let _ = fs::remove_file(&link);
        symlink(folder, &link).ok()?;
        Some(Registration { link })
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Otherwise the next process that lists the links removes it.
        let _ = fs::remove_file(&self.link);
    }
}

/// The folders of this user's live runs, sorted. Links of dead ones are removed.
#[must_use]
pub fn live() -> Vec<PathBuf> {
    let places = places().into_iter().filter(|place| is_private(place));
    let mut folders: Vec<PathBuf> = places.flat_map(|place| live_in(&place)).collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Whether a run lives in `folder`.
#[must_use]
pub fn is_live(folder: &Path) -> bool {
    socket::connect(folder).is_ok()
}

fn live_in(place: &Path) -> Vec<PathBuf> {
    links(place).filter_map(|link| live_at(&link)).collect()
}

fn links(place: &Path) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Links of killed runs do not accumulate. Runs whose process is there are not disturbed.
fn remove_dead(place: &Path) {
    for link in links(place).filter(|link| !process_lives(link)) {
        let _ = live_at(&link);
    }
}

fn live_at(link: &Path) -> Option<PathBuf> {
    let folder = fs::read_link(link).ok()?;
    match socket::connect(&folder) {
        Ok(_) => Some(folder),
        Err(error) => {
            if is_dead(&error) && !process_lives(link) {
                // Another process may have removed it meanwhile.
                let _ = fs::remove_file(link);
            }
            None
        }
    }
}

/// Whether an error says that nothing listens, and not that this process may not or cannot ask.
fn is_dead(error: &io::Error) -> bool {
    use ErrorKind::{ConnectionRefused, NotADirectory, NotFound};
    [ConnectionRefused, NotADirectory, NotFound].contains(&error.kind())
}

/// Whether the process is there whose number the link has.
fn process_lives(link: &Path) -> bool {
    let name = link.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let pid = name.split('-').next().filter(|pid| pid.parse::<u32>().is_ok());
    pid.is_some_and(|pid| Path::new("/proc").join(pid).exists())
}

/// Where links may be: a session may know its runtime folder when another of the same user does
/// not.
pub(crate) fn places() -> Vec<PathBuf> {
    let uid = process::current_user().uid;
    let named = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let usual = PathBuf::from(format!("/run/user/{uid}"));
    let mut places: Vec<PathBuf> = named
        .map(PathBuf::from)
        .into_iter()
        .chain([usual])
        .filter(|folder| folder.is_absolute() && is_private(folder))
        .map(|folder| folder.join("windtunnel"))
        .collect();
    places.dedup();
    places.push(PathBuf::from(format!("/tmp/windtunnel-{uid}")));
    places
}

/// Whether a path is a folder, and no link, that only this user can change or look into.
pub(crate) fn is_private(path: &Path) -> bool {
    let uid = process::current_user().uid;
    fs::symlink_metadata(path)
        .is_ok_and(|data| data.is_dir() && data.uid() == uid && data.mode() & 0o077 == 0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::os::unix::net::UnixListener;

    use super::*;

    fn private(parent: &Path, name: &str) -> PathBuf {
        let path = parent.join(name);
        DirBuilder::new().mode(0o700).create(&path).unwrap();
        path
    }

    #[test]
    fn a_run_is_listed_while_its_socket_is_open_and_its_link_goes_with_it() {
        let root = tempfile::tempdir().unwrap();
        let (place, run) = (root.path().join("registry"), private(root.path(), "run"));
        let socket = UnixListener::bind(run.join(socket::NAME)).unwrap();
        let registration = Registration::add_in(&place, &run).unwrap();
        assert_eq!(live_in(&place), std::slice::from_ref(&run));
        assert_eq!(fs::metadata(&place).unwrap().mode() & 0o777, 0o700);
        // The socket is dead, and the process is this one: it may be about to listen again.
        drop(socket);
        assert_eq!(live_in(&place), [""; 0].map(PathBuf::from));
        assert!(fs::symlink_metadata(&registration.link).is_ok());
        drop(registration);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    }

    #[test]
    fn the_link_of_a_killed_run_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let (place, run) = (private(root.path(), "registry"), private(root.path(), "run"));
        // A socket's file whose listener is gone, of a process whose number no process can have.
        drop(UnixListener::bind(run.join(socket::NAME)).unwrap());
        symlink(&run, place.join("4294967295-0")).unwrap();
        symlink(root.path().join("no folder"), place.join("4294967295-1")).unwrap();
        remove_dead(&place);
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_others_can_change_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        let (open, run) = (root.path().join("open"), private(root.path(), "run"));
        DirBuilder::new().mode(0o755).create(&open).unwrap();
        assert!(Registration::add_in(&open, &run).is_none());
        let (real, link) = (private(root.path(), "real"), root.path().join("link"));
        symlink(real, &link).unwrap();
        assert!(Registration::add_in(&link, &run).is_none());
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(Registration::add_in(&file, &run).is_none());
    }
}
