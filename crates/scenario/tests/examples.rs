//! The repository's examples and experiments are files that load.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use windtunnel_scenario::{Source, load_with};

/// The scenario files of a folder of the repository.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let entries = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "yaml"));
    files.sort();
    assert!(!files.is_empty());
    files
}

fn load(file: &Path) -> Result<(), String> {
    let text = std::fs::read(file).unwrap();
    let (name, base_dir) = (file.to_string_lossy(), file.parent().unwrap());
    let base = base_dir.to_string_lossy();
    let source = Source { name: &name, text: &text, default_name: "example", base_dir: &base };
    let read = |trace: &str| std::fs::read(base_dir.join(trace)).map_err(|error| error.to_string());
    let loaded = load_with(&source, &read).map_err(|errors| errors.to_string())?;
    // A notice without a place tells of a default.
    match loaded.notices.iter().find(|notice| notice.place.is_some()) {
        Some(notice) => Err(format!("{}: {notice:?}", file.display())),
        None => Ok(()),
    }
}

#[test]
fn every_example_and_experiment_loads_without_an_error_or_a_warning() {
    let folders =
        ["examples", "examples/slurm", "experiments/splaynet", "experiments/splaynet/short"];
    let wrong: Vec<String> =
        folders.into_iter().flat_map(files).filter_map(|file| load(&file).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
