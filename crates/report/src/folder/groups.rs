//! Which runs are meant: folders of runs, and folders that have repetitions of one.

use std::fs;
use std::path::{Path, PathBuf};

use super::error::{ReportError, unusable};
use super::name::name_of;

/// Runs of the same experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunGroup {
    pub name: String,
    /// Their folders.
    pub runs: Vec<PathBuf>,
}

/// A group for each of these folders: one run, or the repetitions that `run --repeat` has put into
/// it.
///
/// # Errors
/// If a folder has neither.
pub fn groups(folders: &[PathBuf]) -> Result<Vec<RunGroup>, ReportError> {
    let mut groups: Vec<RunGroup> = Vec::new();
    for folder in folders {
        let runs = match is_run(folder) {
            true => vec![folder.clone()],
            false => repetitions(folder)?,
        };
        let name = name_of(folder);
        let same = groups.iter().filter(|group| group.name == name).count();
        let name = if same == 0 { name } else { folder.display().to_string() };
        groups.push(RunGroup { name, runs });
    }
    Ok(groups)
}

/// Whether there is a plan, be it one that cannot be read.
fn is_run(folder: &Path) -> bool {
    folder.join("plan.json").symlink_metadata().is_ok()
}

/// Folders in a folder that are those of runs, in the order of their numbers. What `run --attempts` has
/// repeated and moved aside is none: the last attempt counts.
fn repetitions(folder: &Path) -> Result<Vec<PathBuf>, ReportError> {
    if !folder.is_dir() {
        return Err(ReportError::NoRun(folder.to_owned()));
    }
    let mut runs = Vec::new();
    for entry in fs::read_dir(folder).map_err(unusable(folder))? {
        let path = entry.map_err(unusable(folder))?.path();
        // A link such as `latest` would count a run twice.
        if !path.is_symlink() && is_run(&path) && !is_former_attempt(&path) {
            runs.push(path);
        }
    }
    if runs.is_empty() {
        return Err(ReportError::NoRun(folder.to_owned()));
    }
    let number = |path: &PathBuf| name_of(path).parse::<u64>().unwrap_or(u64::MAX);
    runs.sort_by_key(|path| (number(path), path.clone()));
    Ok(runs)
}

/// Whether a folder is that of an attempt, `FOLDER-attempt-1`, and the last one is beside it.
fn is_former_attempt(folder: &Path) -> bool {
    let name = name_of(folder);
    let attempt = name.rsplit_once("-attempt-").filter(|(_, number)| number.parse::<u32>().is_ok());
    attempt.is_some_and(|(last, _)| is_run(&folder.with_file_name(last)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_repetitions_is_one_group_in_the_order_of_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let runs = ["codel/10", "codel/2", "codel/2-attempt-1", "codel/3-attempt-1", "fifo"];
        for name in runs.into_iter().chain(["codel/notes"]) {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for name in runs {
            fs::write(folder.path().join(name).join("plan.json"), "{}").unwrap();
        }
        let of = |names: &[&str]| {
            groups(&names.iter().map(|name| folder.path().join(name)).collect::<Vec<_>>())
        };
        let found = of(&["codel", "fifo"]).unwrap();
        let names: Vec<_> = found.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["codel", "fifo"]);
        let of_codel: Vec<String> = found[0].runs.iter().map(|run| name_of(run)).collect();
        // Of 2 the last attempt counts; of 3 there is no later one.
        assert_eq!(of_codel, ["2", "10", "3-attempt-1"]);
        let error = of(&["codel/notes"]).unwrap_err();
        assert!(error.to_string().contains("notes is not the folder of a run"), "{error}");
        assert!(of(&["nothing"]).is_err() && error.hint().is_some());
    }
}
