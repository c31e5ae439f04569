//! Reading the folder of a run.

mod error;
pub(crate) mod groups;
mod limits;
pub(crate) mod line;
mod name;
mod read;
mod records;

use std::path::Path;

use crate::compare::inputs::RunComparisonInputs;
use crate::document::run::RunSection;
use crate::document::{PageMode, ReportDocument, RunComparison, VERSION};
use crate::page::ReportPage;
use crate::{compare, fit};
pub use error::ReportError;
pub use groups::{RunGroup, groups};
pub use limits::ReportSizeLimits;
pub use read::read_plan;
pub use records::record_files;

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

/// Bytes of the page that a value needs at the least.
const CELL_BYTES_MIN: usize = 1;
