//! What commands of one name share of the kernel, in a file beside that of the limit.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use windtunnel_model::{Resource, ResourceAmounts};

/// What commands of one name share of the kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LimitGroupRecord {
    /// [`ControlGroup::address`](windtunnel_limit::ControlGroup::address).
    pub(super) address: String,
    /// What it limits.
    pub(super) resources: ResourceAmounts,
    /// What it did not hold: the command that has found out says so to the others.
    #[serde(default)]
    pub(super) lapses: Vec<LimitGroupLapse>,
}

/// A limit that was not held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LimitGroupLapse {
    /// As its option is named.
    pub(super) limit: Resource,
    pub(super) why: String,
}

/// Where the note of a limit is.
#[derive(Debug, Clone)]
pub(super) struct LimitGroupRecordFile {
    note: PathBuf,
}

impl LimitGroupRecord {
    pub(super) fn path(limit: &Path) -> PathBuf {
        limit.with_extension("group")
    }
}

impl LimitGroupRecordFile {
    /// Of the limit with this file.
    pub(super) fn of(limit: &Path) -> LimitGroupRecordFile {
        LimitGroupRecordFile { note: LimitGroupRecord::path(limit) }
    }

    /// Whether there is a note.
    pub(super) fn has_note(&self) -> bool {
        self.note.exists()
    }

    pub(super) fn read(&self) -> io::Result<LimitGroupRecord> {
        Ok(serde_json::from_slice(&fs::read(&self.note)?)?)
    }

    /// Whole, whenever it is read.
    pub(super) fn write(&self, note: &LimitGroupRecord) -> io::Result<()> {
        let draft = self.note.with_extension(format!("draft-{}", std::process::id()));
        fs::write(&draft, serde_json::to_vec(note)?)?;
        fs::rename(&draft, &self.note)
    }

    /// Reads the note, has it changed and writes it, while no other process does that.
    pub(super) fn change<T>(
        &self,
        change: impl FnOnce(&mut LimitGroupRecord) -> io::Result<T>,
    ) -> io::Result<T> {
        // Until it is closed.
        let folder = File::open(self.note.parent().unwrap_or(Path::new("/")))?;
        flock(&folder, FlockOperation::LockExclusive)?;
        let mut note = self.read()?;
        let done = change(&mut note);
        // The change may have written it itself.
        if self.read().is_ok_and(|written| written != note) {
            self.write(&note)?;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_several_processes_come_one_after_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = LimitGroupRecordFile::of(&folder.path().join("downloads"));
        assert!(!shelf.has_note() && shelf.change(|_| Ok(())).is_err());
        let (address, resources) = ("cpu=/".to_owned(), ResourceAmounts::default());
        shelf.write(&LimitGroupRecord { address, resources, lapses: Vec::new() }).unwrap();
        let change = |number: u32| {
            let lapse = LimitGroupLapse { limit: Resource::Cpu, why: number.to_string() };
            let add = |note: &mut LimitGroupRecord| {
                note.lapses.push(lapse);
                Ok(())
            };
            shelf.change(add).unwrap();
        };
        std::thread::scope(|scope| {
            for number in 0..20 {
                let change = &change;
                scope.spawn(move || change(number));
            }
        });
        assert_eq!(shelf.read().unwrap().lapses.len(), 20);
        let refused = shelf.change(|note| {
            note.lapses.clear();
            shelf.write(note)?;
            note.lapses.extend([LimitGroupLapse { limit: Resource::Cpu, why: "back".to_owned() }]);
            Err::<(), _>(io::ErrorKind::Other.into())
        });
        assert!(refused.is_err());
        assert_eq!(shelf.read().unwrap().lapses.len(), 1, "as the change has left it");
    }
}
