//! The file that `--junit` names.

use std::io;
use std::path::{Path, PathBuf};

use windtunnel_folder::{PreallocatedFile, junit_bytes};
use windtunnel_model::Plan;

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// An empty file with room for the results of a run: its programs may fill the disk.
#[derive(Debug)]
pub(super) struct ResultsFile {
    path: PathBuf,
    reserve: PreallocatedFile,
}

impl ResultsFile {
    pub(super) fn create(path: &Path, plan: &Plan) -> Result<Self, VerbFailure> {
        let reserve = PreallocatedFile::create(path, junit_bytes(plan));
        let path = path.to_owned();
        match reserve {
            Ok(reserve) => Ok(ResultsFile { path, reserve }),
            Err(error) => Err(cannot_write(&path, &error)),
        }
    }

    pub(super) fn write(self, text: &str) -> Result<(), VerbFailure> {
        let ResultsFile { path, reserve } = self;
        reserve.write(text.as_bytes()).map_err(|error| cannot_write(&path, &error))
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> VerbFailure {
    let text = format!("cannot write {}: {error}", path.display());
    VerbFailure::new(ExitCategory::Machine, text).hint("name another file with --junit FILE")
}
