//! The records of a run, from its folder.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use windtunnel_cluster::machine;
use windtunnel_evidence::{EvidenceLoader, RecordedRun};
use windtunnel_report::record_files;
use windtunnel_sys::below::FolderHandle;

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// The folder of a run.
#[derive(Debug, clap::Args)]
pub(crate) struct RunFolder {
    /// Folder of a run, or a file of records
    #[arg(value_name = "RUN", default_value = "runs/latest", env = "WINDTUNNEL_RUN")]
    pub(crate) run: PathBuf,
}

impl RunFolder {
    /// All that the run has recorded so far.
    pub(crate) fn load(&self) -> Result<RecordedRun, VerbFailure> {
        let files = files(&self.run)?;
        let mut contents = Vec::with_capacity(files.len());
        let mut left = memory_bytes();
        for file in &files {
            let mut bytes = Vec::new();
            let read = open(&self.run, file)
                .and_then(|open| open.take(left.saturating_add(1)).read_to_end(&mut bytes));
            read.map_err(|error| reading(file, &error))?;
            let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            left = left.checked_sub(length).ok_or_else(|| too_much(file))?;
            contents.push(bytes);
        }
        let mut loader = EvidenceLoader::new();
        for (file, bytes) in files.iter().zip(&contents) {
            let unusable = |error| {
                let text = format!("cannot use {}: {error}", file.display());
                VerbFailure::new(ExitCategory::Usage, text)
            };
            loader.add(bytes).map_err(unusable)?;
        }
        loader.finish().map_err(|error| VerbFailure::caused(ExitCategory::Usage, error))
    }
}

/// The files of records of a run, by name; those of other machines lie in a folder each.
pub(crate) fn files(run: &Path) -> Result<Vec<PathBuf>, VerbFailure> {
    if run.is_file() {
        return Ok(vec![run.to_owned()]);
    }
    if !run.is_dir() {
        let why = if run.exists() { "neither a folder nor a regular file" } else { "not there" };
        return Err(VerbFailure::new(ExitCategory::Usage, format!("{} is {why}", run.display())));
    }
    let found = FolderHandle::open(run).and_then(|below| record_files(&below));
    let found = found.map_err(|error| reading(&run.join("records"), &error))?;
    if !found.is_empty() {
        return Ok(found.into_iter().map(|file| run.join(file)).collect());
    }
    let text = format!("{} has no records", run.display());
    Err(VerbFailure::new(ExitCategory::Usage, text).hint("`windtunnel run --record` makes them"))
}

/// Opens one of [`files`].
pub(crate) fn open(run: &Path, file: &Path) -> io::Result<File> {
    match file.strip_prefix(run) {
        Ok(inner) if inner.as_os_str().is_empty() => File::open(file),
        Ok(inner) => FolderHandle::open(run)?.file(inner),
        Err(_) => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// What records may take: of the memory of the machine that is free, or some where that is not said.
fn memory_bytes() -> u64 {
    let (_, free) = machine::memory();
    if free.0 == 0 { MEMORY_BYTES } else { free.0 / 2 }
}

fn too_much(file: &Path) -> VerbFailure {
    let text = format!(
        "cannot read {}: with it the records are more than half of the memory that is free",
        file.display()
    );
    VerbFailure::new(ExitCategory::Machine, text)
}

fn reading(path: &Path, error: &io::Error) -> VerbFailure {
    VerbFailure::new(ExitCategory::Usage, format!("cannot read {}: {error}", path.display()))
}

const MEMORY_BYTES: u64 = 1 << 30;
