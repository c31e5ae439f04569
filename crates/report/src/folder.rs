//! Reading the folder of a run.

mod groups;
mod line;
mod read;
mod records;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::document::{PageMode, ReportDocument, RunComparison, RunSection, VERSION};
use crate::page::ReportPage;
use crate::{compare, fit};
pub use groups::{RunGroup, groups};
pub(crate) use line::line;
pub(crate) use read::RunComparisonInputs;
pub use read::read_plan;
pub use records::record_files;

/// Why runs cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    #[error("{} is not the folder of a run: it has no plan.json", .0.display())]
    NoRun(PathBuf),
    #[error("cannot read {}: {why}", .path.display())]
    Unusable { path: PathBuf, why: String },
}

impl ReportError {
    /// What the user can do about it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ReportError::NoRun(_) => Some(
                "`windtunnel run` names the folder in its last line; `runs/latest` is the newest one below `runs`",
            ),
            ReportError::Unusable { .. } => None,
        }
    }
}

pub(crate) fn unusable(path: &Path) -> impl FnOnce(io::Error) -> ReportError {
    move |error| ReportError::Unusable { path: path.to_owned(), why: error.to_string() }
}

/// How much of runs is shown.
#[derive(Debug, Clone, Copy)]
pub struct ReportSizeLimits {
    /// Size of the page, in bytes. Time lines get coarser until it is kept, or until they are of
    /// one point.
    pub page_bytes_max: usize,
    /// Records are read if all files of a run have no more bytes.
    pub records_bytes_max: u64,
}

impl Default for ReportSizeLimits {
    fn default() -> Self {
        ReportSizeLimits { page_bytes_max: 2_000_000, records_bytes_max: 1 << 30 }
    }
}

/// What is shown of runs: the document, and the page with it.
#[derive(Debug)]
pub struct RenderedReport {
    pub document: ReportDocument,
    pub page: ReportPage,
}

impl RenderedReport {
    /// Of the runs of all groups; they are compared if there is more than one run.
    ///
    /// # Errors
    /// If a folder is not one of a run, or cannot be read.
    pub fn of(
        groups: &[RunGroup],
        options: &ReportSizeLimits,
    ) -> Result<RenderedReport, ReportError> {
        RenderedReport::with_progress(groups, options, &mut |_, _| ())
    }

    /// The same; `progress` is called with how many runs have been read, and of how many.
    ///
    /// # Errors
    /// Likewise.
    pub fn with_progress(
        groups: &[RunGroup],
        options: &ReportSizeLimits,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<RenderedReport, ReportError> {
        let mut document = ReportDocument::with_progress(groups, options, progress)?;
        let page = fit::page(&mut document, options.page_bytes_max);
        Ok(RenderedReport { document, page })
    }
}

impl ReportDocument {
    /// Of the runs of all groups, with time lines that may be too fine for a page.
    ///
    /// # Errors
    /// Likewise.
    pub fn of(
        groups: &[RunGroup],
        options: &ReportSizeLimits,
    ) -> Result<ReportDocument, ReportError> {
        ReportDocument::with_progress(groups, options, &mut |_, _| ())
    }

    /// The same, with progress.
    fn with_progress(
        groups: &[RunGroup],
        options: &ReportSizeLimits,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<ReportDocument, ReportError> {
        let count: usize = groups.iter().map(|group| group.runs.len()).sum();
        let cells_max = options.page_bytes_max / count.max(1) / CELL_BYTES_MIN;
        let (mut runs, mut facts): (Vec<RunSection>, Vec<RunComparisonInputs>) =
            (Vec::new(), Vec::new());
        for (index, group) in groups.iter().enumerate() {
            for (number, folder) in (1..).zip(&group.runs) {
                let (run, fact) = read::run(folder, cells_max, options)?;
                let label = match group.runs.len() {
                    1 => group.name.clone(),
                    _ => format!("{} #{number}", group.name),
                };
                runs.push(RunSection { group: index, label, ..run });
                facts.push(fact);
                progress(runs.len(), count);
            }
        }
        name_apart(&mut runs);
        let comparison = (count > 1).then(|| compare::all(groups, &runs, &facts));
        Ok(document(PageMode::Report, runs, comparison))
    }

    /// Of a run that goes on.
    ///
    /// # Errors
    /// If the folder is not one of a run, or cannot be read.
    pub fn live(folder: &Path) -> Result<ReportDocument, ReportError> {
        let options = ReportSizeLimits { records_bytes_max: 0, ..ReportSizeLimits::default() };
        let (run, _) = read::run(folder, options.page_bytes_max / CELL_BYTES_MIN, &options)?;
        let mut document = document(PageMode::Live, vec![run], None);
        fit::page(&mut document, options.page_bytes_max);
        Ok(document)
    }
}

pub(crate) fn document(
    mode: PageMode,
    runs: Vec<RunSection>,
    comparison: Option<RunComparison>,
) -> ReportDocument {
    ReportDocument {
        format: "windtunnel-report",
        version: VERSION,
        generator: concat!("windtunnel ", env!("CARGO_PKG_VERSION")).to_owned(),
        mode,
        runs,
        comparison,
    }
}

/// Gives runs of one folder name different ids.
fn name_apart(runs: &mut [RunSection]) {
    for index in 1..runs.len() {
        let (before, rest) = runs.split_at_mut(index);
        let taken = |id: &str| before.iter().any(|run| run.id == id);
        let name = rest[0].id.clone();
        let mut number = 2;
        while taken(&rest[0].id) {
            rest[0].id = format!("{name}-{number}");
            number += 1;
        }
    }
}

/// The name of a folder, also of `.` and of links such as `latest`.
pub(crate) fn name_of(folder: &Path) -> String {
    let whole = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let name = whole.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| folder.display().to_string())
}

/// Bytes of the page that a value needs at the least.
const CELL_BYTES_MIN: usize = 1;
