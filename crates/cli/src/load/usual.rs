//! The scenario that is meant where none is named.

use std::path::{Path, PathBuf};

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// The name that is looked for.
pub(crate) const USUAL_NAME: &str = "windtunnel.yaml";

/// The scenario that a verb is about.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ScenarioFile {
    /// The scenario; - for standard input, with relative paths from the current folder [default:
    /// windtunnel.yaml in this folder, or in the nearest one above it that has it]
    #[arg(value_name = "FILE", env = "WINDTUNNEL_FILE")]
    file: Option<PathBuf>,
}

impl ScenarioFile {
    /// The named file, or the usual one.
    pub(crate) fn path(&self) -> Result<PathBuf, VerbFailure> {
        self.file.clone().map_or_else(usual, Ok)
    }
}

/// The usual file of this folder, or of the nearest one above it.
pub(crate) fn usual() -> Result<PathBuf, VerbFailure> {
    let here = std::env::current_dir().map_err(|error| {
        VerbFailure::new(ExitCategory::Machine, format!("no current folder: {error}"))
    })?;
    found_from(&here).ok_or_else(|| {
        let text = format!("no scenario is named, and no {USUAL_NAME} is here or above");
        VerbFailure::new(ExitCategory::Usage, text)
            .hint("name one; `windtunnel init` writes a first one")
    })
}

/// As it is named from `here`: one above it by its whole path.
fn found_from(here: &Path) -> Option<PathBuf> {
    let found =
        here.ancestors().map(|folder| folder.join(USUAL_NAME)).find(|file| file.is_file())?;
    Some(if found.parent() == Some(here) { PathBuf::from(USUAL_NAME) } else { found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_file_is_found_from_folders_below_it() {
        let parent = tempfile::tempdir().unwrap();
        let below = parent.path().join("a/b");
        std::fs::create_dir_all(&below).unwrap();
        assert_eq!(found_from(&below), None);
        let far = parent.path().join(USUAL_NAME);
        std::fs::write(&far, "").unwrap();
        assert_eq!(found_from(&below), Some(far));
        // A folder of that name is no scenario.
        std::fs::create_dir(below.join(USUAL_NAME)).unwrap();
        let near = parent.path().join("a").join(USUAL_NAME);
        std::fs::write(&near, "").unwrap();
        assert_eq!(found_from(&below), Some(near));
        assert_eq!(found_from(&parent.path().join("a")), Some(PathBuf::from(USUAL_NAME)));
    }
}
