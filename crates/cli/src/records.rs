//! The records of a run, from its folder.

use std::fs;
use std::path::{Path, PathBuf};

use windtunnel_evidence::{Evidence, Loader};

use crate::exit::Exit;
use crate::failure::Failure;

/// The folder of a run.
#[derive(Debug, clap::Args)]
pub(crate) struct RunFolder {
    /// Folder of a run, or a file of records
    #[arg(value_name = "RUN", default_value = "runs/latest", env = "WINDTUNNEL_RUN")]
    pub(crate) run: PathBuf,
}

impl RunFolder {
    /// All that the run has recorded so far.
    pub(crate) fn load(&self) -> Result<Evidence, Failure> {
        let files = files(&self.run)?;
        let mut contents = Vec::with_capacity(files.len());
        for file in &files {
            contents.push(fs::read(file).map_err(|error| reading(file, &error))?);
        }
        let mut loader = Loader::new();
        for (file, bytes) in files.iter().zip(&contents) {
            let unusable = |error| {
                let text = format!("cannot use {}: {error}", file.display());
                Failure::new(Exit::Usage, text)
            };
            loader.add(bytes).map_err(unusable)?;
        }
        loader.finish().map_err(|error| Failure::caused(Exit::Usage, error))
    }
}

/// The files of records of a run, by name; those of other machines lie in a folder each.
pub(crate) fn files(run: &Path) -> Result<Vec<PathBuf>, Failure> {
    if run.is_file() {
        return Ok(vec![run.to_owned()]);
    }
    let folder = run.join("records");
    let mut found = Vec::new();
    if folder.is_dir() {
        collect(&folder, &mut found)?;
    }
    found.sort();
    if !found.is_empty() {
        return Ok(found);
    }
    if !run.is_dir() {
        return Err(Failure::new(Exit::Usage, format!("{} is not there", run.display())));
    }
    let text = format!("{} has no records", run.display());
    Err(Failure::new(Exit::Usage, text).hint("`windtunnel run --record` makes them"))
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for entry in fs::read_dir(folder).map_err(|error| reading(folder, &error))? {
        let path = entry.map_err(|error| reading(folder, &error))?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "wtr") {
            found.push(path);
        }
    }
    Ok(())
}

fn reading(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Usage, format!("cannot read {}: {error}", path.display()))
}
