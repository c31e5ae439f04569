//! What the parts have written, when the run is over.

use std::fs;
use std::path::PathBuf;

use windtunnel_folder::RunOutputFolder;
use windtunnel_verdict::RunPartFolders;

use super::part_state::PartTermination;
use super::{ClusterRunCoordinator, SILENT};
use crate::error::LeadError;
use crate::progress::ClusterRunObserver;

impl ClusterRunCoordinator {
    /// Copies what the parts have written.
    pub(crate) fn fetch(&self, folder: &RunOutputFolder) -> Result<RunPartFolders, LeadError> {
        let mut gathered =
            RunPartFolders { placement: self.setup.placement.clone(), ..RunPartFolders::default() };
        for (number, (state, member)) in (0..).zip(self.members.iter().zip(&self.setup.members)) {
            let path = self.staging(folder).join(number.to_string());
            let path = match &state.end {
                Some(PartTermination::Ended) if self.is_lost(state) => {
                    gathered.silent.insert(number);
                    // It may have gone again, and the verdict does without it.
                    if self.parts.agents().fetch_at_once(number, &path).is_ok() {
                        gathered.aside.insert(number, path);
                    }
                    Err("the other machines went on without it".to_owned())
                }
                Some(PartTermination::Ended) => {
                    self.parts.agents().fetch(number, &path)?;
                    Ok(path)
                }
                Some(PartTermination::Silent) => {
                    gathered.silent.insert(number);
                    Err(SILENT.to_owned())
                }
                Some(PartTermination::Failed(why) | PartTermination::Gone(why)) => Err(why.clone()),
                None => Err("its part is not over".to_owned()),
            };
            gathered.members.push((member.host.clone(), path));
        }
        Ok(gathered)
    }

    /// Nothing of the run is left at the agents, and nothing but the run folder here.
    pub(crate) fn forget(&self, folder: &RunOutputFolder, progress: &dyn ClusterRunObserver) {
        for (number, state) in (0..).zip(&self.members) {
            if let Some(PartTermination::Ended) = state.end
                && let Err(error) = self.parts.agents().forget(number)
            {
                progress.warn(&error.to_string());
            }
        }
        let _ = fs::remove_dir_all(self.staging(folder));
    }

    fn staging(&self, folder: &RunOutputFolder) -> PathBuf {
        folder.file(".parts")
    }
}
