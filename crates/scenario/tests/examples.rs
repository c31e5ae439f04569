//! The repository's examples and experiments are files that load.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use windtunnel_scenario::{ScenarioOverrides, ScenarioSource, load_instead};

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
    let source =
        ScenarioSource { name: &name, text: &text, default_name: "example", base_dir: &base };
    let read = |trace: &str| std::fs::read(base_dir.join(trace)).map_err(|error| error.to_string());
    let placed = |several_machines| {
        let instead = ScenarioOverrides { several_machines, ..ScenarioOverrides::default() };
        let loaded = load_instead(&source, &read, instead).map_err(|errors| errors.to_string())?;
        // A notice without a place reports a default.
        let notices = loaded.notices.into_iter().filter(|notice| notice.place.is_some());
        Ok::<_, String>(notices.map(|notice| format!("{name}: {notice:?}")).collect::<Vec<_>>())
    };
    // What a file says for several machines is noticed on one, and only there.
    let (wide, mut narrow): (Vec<_>, _) =
        placed(false)?.into_iter().partition(|notice| notice.contains("is for several machines"));
    if !wide.is_empty() {
        narrow.extend(placed(true)?);
    }
    if narrow.is_empty() { Ok(()) } else { Err(narrow.join("\n")) }
}

#[test]
fn every_example_and_experiment_loads_without_an_error_or_a_warning() {
    let folders = [
        "examples",
        "examples/slurm",
        "experiments/magnet",
        "experiments/splaynet",
        "experiments/splaynet/short",
        "experiments/splaynet/large",
    ];
    let wrong: Vec<String> =
        folders.into_iter().flat_map(files).filter_map(|file| load(&file).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_example_stands_in_the_table_of_the_readme() {
    let readme = include_str!("../../../README.md");
    let rows: Vec<&str> = readme.lines().filter(|line| line.starts_with("| [")).collect();
    let names = files("examples").into_iter().map(|file| {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        format!("](examples/{name})")
    });
    let missing: Vec<String> =
        names.filter(|link| !rows.iter().any(|row| row.contains(link.as_str()))).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
