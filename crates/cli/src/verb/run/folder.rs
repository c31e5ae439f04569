//! Where a run leaves what it has to say.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use windtunnel_sys::clock::{self, LocalTime};

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// The folder of `--out`, or a new one in `runs`.
pub(crate) fn new_run_folder(out: Option<&Path>, name: &str) -> Result<PathBuf, VerbFailure> {
    match out {
        Some(folder) => Ok(folder.to_owned()),
        None => new_folder(Path::new("runs"), name, &timestamp()),
    }
}

/// A folder below `parent` of this run alone: made here, so that two runs in one second do not
/// share it.
fn new_folder(parent: &Path, name: &str, time: &str) -> Result<PathBuf, VerbFailure> {
    let cannot = |path: &Path, error: io::Error| {
        let text = format!("cannot make the run folder {}: {error}", path.display());
        VerbFailure::new(ExitCategory::Machine, text).hint("name another place with --out DIR")
    };
    fs::create_dir_all(parent).map_err(|error| cannot(parent, error))?;
    for attempt in 1_u32.. {
        let suffix = if attempt > 1 { format!("-{attempt}") } else { String::new() };
        let path = parent.join(format!("{name}-{time}{suffix}"));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot(&path, error)),
        }
    }
    Err(VerbFailure::new(ExitCategory::Internal, "four thousand million runs in one second"))
}

/// The local time for a folder's name: `20261121-034800`.
fn timestamp() -> String {
    let LocalTime { year, month, day, hour, minute, second } = clock::local_time();
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_second_get_folders_of_their_own() {
        let parent = tempfile::tempdir().unwrap();
        let runs = parent.path().join("runs");
        let names: Vec<_> = (0..3)
            .map(|_| new_folder(&runs, "demo", "20261121-034800").unwrap())
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(
            names,
            ["demo-20261121-034800", "demo-20261121-034800-2", "demo-20261121-034800-3"]
        );
    }

    #[test]
    fn a_folder_name_has_date_and_time() {
        let time = timestamp();
        let form: String = time.chars().map(|c| if c.is_ascii_digit() { '9' } else { c }).collect();
        assert_eq!(form, "99999999-999999");
    }
}
