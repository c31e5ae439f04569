//! The runs that there are, by their ids. An id is looked up, never made into a path.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use windtunnel_control::registry;

use crate::follow::FollowedRun;

/// A run in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunListEntry {
    /// The name of its folder; of several with one name, with a number.
    pub id: String,
    /// Name of the experiment.
    pub name: String,
    pub elapsed_ns: u64,
    pub folder: PathBuf,
    pub alive: bool,
}

/// A live run that was found.
#[derive(Debug, Clone)]
pub struct LiveRunLocation {
    pub folder: PathBuf,
    /// Name of the experiment; empty: it is not known.
    pub name: String,
    pub elapsed_ns: u64,
}

/// All runs that were found so far.
pub(crate) struct RunCatalogue {
    /// The one that is shown; absent: all live runs.
    only: Option<PathBuf>,
    lister: Arc<dyn Fn() -> Vec<LiveRunLocation> + Send + Sync>,
    known: Mutex<BTreeMap<String, RunCatalogueEntry>>,
}

#[derive(Debug)]
struct RunCatalogueEntry {
    card: RunListEntry,
    followed: Option<Arc<FollowedRun>>,
}

impl RunCatalogue {
    pub(crate) fn new(
        only: Option<PathBuf>,
        lister: Arc<dyn Fn() -> Vec<LiveRunLocation> + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(RunCatalogue { only, lister, known: Mutex::default() })
    }

    /// The runs, with those that have ended since they were found.
    pub(crate) fn list(&self) -> Vec<RunListEntry> {
        let mut found = (self.lister)();
        if let Some(only) = &self.only {
            found.retain(|run| run.folder == *only);
            if found.is_empty() {
                let (folder, name) = (only.clone(), String::new());
                found.push(LiveRunLocation { folder, name, elapsed_ns: 0 });
            }
        }
        let mut known = self.lock();
        for LiveRunLocation { folder, name, elapsed_ns } in found {
            let id = id(&known, &folder);
            let alive = registry::is_live(&folder);
            let name = if name.is_empty() { id.clone() } else { name };
            let card = RunListEntry { id: id.clone(), name, elapsed_ns, folder, alive };
            let entry = known
                .entry(id)
                .or_insert_with(|| RunCatalogueEntry { card: card.clone(), followed: None });
            entry.card = card;
        }
        for entry in known.values_mut() {
            entry.card.alive = registry::is_live(&entry.card.folder);
        }
        known.values().map(|entry| entry.card.clone()).collect()
    }

    /// The folder of a run that was listed, or is there now.
    pub(crate) fn folder(&self, id: &str) -> Option<PathBuf> {
        let known = || self.lock().get(id).map(|entry| entry.card.folder.clone());
        known().or_else(|| {
            self.list();
            known()
        })
    }

    /// A run as it is followed. It begins to be when it is first asked for, and again when that has
    /// stopped because nothing looked at it.
    pub(crate) fn followed(&self, id: &str) -> Option<Arc<FollowedRun>> {
        let folder = self.folder(id)?;
        let mut known = self.lock();
        let entry = known.get_mut(id)?;
        let current = entry.followed.as_ref().filter(|followed| !followed.has_stopped());
        let followed = current.cloned().unwrap_or_else(|| FollowedRun::start(folder));
        entry.followed = Some(Arc::clone(&followed));
        Some(followed)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, RunCatalogueEntry>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The id that the folder has, or a new one.
fn id(known: &BTreeMap<String, RunCatalogueEntry>, folder: &Path) -> String {
    if let Some((id, _)) = known.iter().find(|(_, entry)| entry.card.folder == folder) {
        return id.clone();
    }
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    // What would have to be written otherwise in an address.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String =
        name.unwrap_or_default().chars().map(|c| if plain(c) { c } else { '_' }).collect();
    let name = if name.trim_matches('.').is_empty() { "run".to_owned() } else { name };
    let numbers = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.clone()).chain(numbers);
    names.find(|name| !known.contains_key(name)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(folder: &str) -> LiveRunLocation {
        LiveRunLocation { folder: folder.into(), name: "demo".to_owned(), elapsed_ns: 7 }
    }

    #[test]
    fn runs_of_one_name_have_different_ids_and_keep_them() {
        let folders = ["/a/run", "/b/run", "/c/ü x"];
        let runs = RunCatalogue::new(None, Arc::new(move || folders.map(found).to_vec()));
        let ids = || -> Vec<String> { runs.list().into_iter().map(|card| card.id).collect() };
        assert_eq!(ids(), ["__x", "run", "run-2"]);
        assert_eq!(ids(), ["__x", "run", "run-2"]);
        assert_eq!(runs.folder("run-2"), Some(PathBuf::from("/b/run")));
        assert!(runs.list().iter().all(|card| !card.alive));
    }

    #[test]
    fn paths_are_no_ids() {
        let runs = RunCatalogue::new(None, Arc::new(|| vec![found("/a/run")]));
        for id in ["..", "../run", "/a/run", "%2e%2e", "", ".", "run/"] {
            assert_eq!(runs.folder(id), None, "{id}");
        }
    }
}
