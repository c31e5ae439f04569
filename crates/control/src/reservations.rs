//! What the live runs of this user have reserved of this machine: a file for each, which the run's
//! processes hold locked (flock(2)). There is no daemon. A file whose lock is free is of a run whose
//! last process has ended: it counts no more, and is removed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};
use windtunnel_model::{Resource, ResourceAmounts};

use crate::registry::{is_private, places};

/// What one run has reserved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReservation {
    /// The run's name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Thousandths of a processor.
    pub cpu_millis: u64,
    pub memory_bytes: u64,
}

impl RunReservation {
    /// A run reserves so much.
    #[must_use]
    pub fn new(name: String, folder: PathBuf, amounts: &ResourceAmounts) -> RunReservation {
        let cpu_millis = amounts.amount(Resource::Cpu);
        RunReservation { name, folder, cpu_millis, memory_bytes: amounts.amount(Resource::Memory) }
    }

    /// How much it has reserved.
    #[must_use]
    pub fn amounts(&self) -> ResourceAmounts {
        ResourceAmounts {
            cpu_millis: Some(self.cpu_millis),
            memory: Some(self.memory_bytes),
            ..ResourceAmounts::default()
        }
    }
}

/// The reservations of a run, for as long as this value or a process lives that inherited it.
#[derive(Debug)]
pub struct ReservationLock {
    place: PathBuf,
    path: PathBuf,
    /// Locked.
    file: File,
    reserved: RunReservation,
}

/// Why nothing was reserved.
#[derive(Debug, thiserror::Error)]
pub enum HoldError<E> {
    /// It does not fit.
    #[error("it does not fit")]
    Refused(E),
    /// The reservations of other runs are not known.
    #[error("reservations of other runs are not known")]
    Io(#[from] io::Error),
}

impl ReservationLock {
    /// Reserves something, if `admit` allows it beside what other runs have reserved. No other run
    /// reserves anything meanwhile.
    ///
    /// # Errors
    /// What `admit` says; if this user has no folder for it.
    pub fn begin<E>(
        wanted: RunReservation,
        admit: impl FnOnce(&[RunReservation]) -> Result<(), E>,
    ) -> Result<ReservationLock, HoldError<E>> {
        let place = place().ok_or_else(|| io::Error::from(ErrorKind::PermissionDenied))?;
        ReservationLock::begin_in(&place, wanted, admit)
    }

    fn begin_in<E>(
        place: &Path,
        wanted: RunReservation,
        admit: impl FnOnce(&[RunReservation]) -> Result<(), E>,
    ) -> Result<ReservationLock, HoldError<E>> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let _exclusive = exclusive(place)?;
        admit(&others(place, None)).map_err(HoldError::Refused)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("{}-{number}", std::process::id()));
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        // An earlier process may have had this number.
        let file = options.open(&path)?;
        file.try_lock().map_err(io::Error::from)?;
        let mut holding = ReservationLock { place: place.to_owned(), path, file, reserved: wanted };
        holding.write()?;
        Ok(holding)
    }

    /// What is reserved.
    #[must_use]
    pub fn reserved(&self) -> &RunReservation {
        &self.reserved
    }

    /// Reserves other amounts instead, if `admit` allows them beside what other runs have; otherwise
    /// it keeps what it has.
    ///
    /// # Errors
    /// What `admit` says; if the file cannot be written.
    pub fn change<E>(
        &mut self,
        amounts: &ResourceAmounts,
        admit: impl FnOnce(&[RunReservation]) -> Result<(), E>,
    ) -> Result<(), HoldError<E>> {
        let _exclusive = exclusive(&self.place)?;
        admit(&others(&self.place, Some(&self.path))).map_err(HoldError::Refused)?;
        let RunReservation { name, folder, .. } = self.reserved.clone();
        self.reserved = RunReservation::new(name, folder, amounts);
        Ok(self.write()?)
    }

    fn write(&mut self) -> io::Result<()> {
        let text = serde_json::to_vec(&self.reserved)?;
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(&text)
    }
}

impl Drop for ReservationLock {
    fn drop(&mut self) {
        // Otherwise the next run that reserves something removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// What the live runs of this user have reserved.
#[must_use]
pub fn live() -> Vec<RunReservation> {
    let Some(place) = place() else { return Vec::new() };
    let Ok(_exclusive) = exclusive(&place) else { return Vec::new() };
    others(&place, None)
}

fn place() -> Option<PathBuf> {
    places().iter().find_map(|place| folder_in(place))
}

fn folder_in(place: &Path) -> Option<PathBuf> {
    let folder = place.join("reservations");
    // They are there already, or cannot be made, which is seen below.
    let _ = DirBuilder::new().mode(0o700).create(place);
    let _ = DirBuilder::new().mode(0o700).create(&folder);
    (is_private(place) && is_private(&folder)).then_some(folder)
}

/// Until it is dropped, no other process counts or reserves.
fn exclusive(place: &Path) -> io::Result<File> {
    let lock = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(place.join(LOCK))?;
    lock.lock()?;
    Ok(lock)
}

/// All but that of `own`. What cannot be read is of another version, and counts nothing.
fn others(place: &Path, own: Option<&Path>) -> Vec<RunReservation> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let files = entries.map(|entry| entry.path());
    let files = files.filter(|path| !path.ends_with(LOCK) && Some(path.as_path()) != own);
    let mut all: Vec<RunReservation> = files.filter_map(|path| read(&path)).collect();
    all.sort_by(|a, b| (&a.name, &a.folder).cmp(&(&b.name, &b.folder)));
    all
}

fn read(path: &Path) -> Option<RunReservation> {
    let mut file = File::open(path).ok()?;
    if file.try_lock_shared().is_ok() {
        // No process of that run is left.
        let _ = fs::remove_file(path);
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

const LOCK: &str = "lock";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn wanted(name: &str, cpu_millis: u64) -> RunReservation {
        RunReservation {
            name: name.into(),
            folder: PathBuf::from("out"),
            cpu_millis,
            memory_bytes: 7,
        }
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let place = folder_in(&root.path().join("windtunnel")).unwrap();
        (root, place)
    }

    fn at_most(most: u64, own: u64) -> impl FnOnce(&[RunReservation]) -> Result<(), u64> {
        move |others| {
            let sum = others.iter().map(|it| it.cpu_millis).sum::<u64>() + own;
            if sum <= most { Ok(()) } else { Err(sum) }
        }
    }

    #[test]
    fn a_run_is_admitted_beside_what_others_hold_and_leaves_it_to_them_at_its_end() {
        let (_root, place) = place();
        let first =
            ReservationLock::begin_in(&place, wanted("a", 600), at_most(1000, 600)).unwrap();
        let refused = ReservationLock::begin_in(&place, wanted("b", 500), at_most(1000, 500));
        assert!(matches!(refused, Err(HoldError::Refused(1100))));
        assert_eq!(others(&place, None), [wanted("a", 600)], "nothing is left of the refused one");
        drop(first);
        ReservationLock::begin_in(&place, wanted("b", 500), at_most(1000, 500)).unwrap();
    }

    #[test]
    fn a_change_that_does_not_fit_changes_nothing() {
        let (_root, place) = place();
        let _other =
            ReservationLock::begin_in(&place, wanted("a", 600), at_most(1000, 600)).unwrap();
        let mut own =
            ReservationLock::begin_in(&place, wanted("b", 300), at_most(1000, 300)).unwrap();
        let amounts = |cpu_millis, memory| ResourceAmounts {
            cpu_millis: Some(cpu_millis),
            memory: Some(memory),
            ..ResourceAmounts::default()
        };
        own.change(&amounts(400, 8), at_most(1000, 400)).unwrap();
        assert!(own.change(&amounts(401, 9), at_most(1000, 401)).is_err());
        assert_eq!((own.reserved().cpu_millis, own.reserved().memory_bytes), (400, 8));
        let seen: Vec<u64> = others(&place, None).iter().map(|it| it.cpu_millis).collect();
        assert_eq!(seen, [600, 400]);
    }

    #[test]
    fn what_a_killed_run_left_counts_no_more_and_is_removed() {
        let (_root, place) = place();
        let left = place.join("4294967295-0");
        fs::write(&left, serde_json::to_vec(&wanted("dead", 900)).unwrap()).unwrap();
        assert_eq!(others(&place, None), []);
        assert!(!left.exists());
    }

    #[test]
    fn the_runs_of_several_threads_never_hold_more_than_there_is() {
        let (_root, place) = place();
        let threads: Vec<_> = (0..8)
            .map(|number| {
                let place = place.clone();
                std::thread::spawn(move || {
                    let name = number.to_string();
                    ReservationLock::begin_in(&place, wanted(&name, 300), at_most(1000, 300)).ok()
                })
            })
            .collect();
        let held: Vec<_> = threads.into_iter().filter_map(|it| it.join().unwrap()).collect();
        assert_eq!(held.len(), 3);
    }
}
