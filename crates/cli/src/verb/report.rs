//! `report`: one page that shows a run, or compares several.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use windtunnel_model::Bytes;
use windtunnel_report::{RenderedReport, ReportError, ReportSizeLimits, groups};
use windtunnel_sys::below::FolderHandle;

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output;
use crate::progress::{ProgressIndicator, ProgressUnit};
use crate::render::quantity::bytes;

/// Write one HTML page that shows a run, or lays several over each other
///
/// The page needs no network and no other file: verdict, map, time lines, distributions, programs
/// and their output, expectations, and what was recorded. Of several runs, or of the runs of `run
/// --repeat`, it compares every measure, with 95% confidence intervals where there are repetitions:
/// each folder is a group, and differences are those from the first.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArguments {
    /// Folders of runs, or of repetitions of a run
    #[arg(value_name = "RUN", default_value = "runs/latest", env = "WINDTUNNEL_RUN")]
    runs: Vec<PathBuf>,
    /// The file to write; - for standard output [default: report.html in the folder of the run, or
    /// in the current folder if there are several]
    #[arg(short, long, value_name = "FILE", env = "WINDTUNNEL_OUTPUT")]
    output: Option<PathBuf>,
    /// How large the page may become: time lines get coarser until it is kept, and say so
    #[arg(long, value_name = "SIZE", env = "WINDTUNNEL_MAX_SIZE", default_value = "2MB")]
    max_size: Bytes,
    /// Read records of a run if they are no larger than this; they take some times as much memory
    #[arg(long, value_name = "SIZE", env = "WINDTUNNEL_RECORDS_MAX", default_value = "1GB")]
    records_max: Bytes,
    #[command(flatten)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: &ReportArguments) -> Outcome {
    let options = ReportSizeLimits {
        page_bytes_max: usize::try_from(arguments.max_size.0).unwrap_or(usize::MAX),
        records_bytes_max: arguments.records_max.0,
    };
    let report = report(&arguments.runs, &options)?;
    if arguments.format.json {
        output::json(&report.document)?;
        return Ok(ExitCategory::Fine.code());
    }
    let html = report.page.html();
    let file = match &arguments.output {
        Some(file) if file.as_os_str() == "-" => {
            output::data(&html)?;
            return Ok(ExitCategory::Fine.code());
        }
        Some(file) => {
            std::fs::write(file, &html).map_err(|error| unwritable(file, &error))?;
            file.clone()
        }
        None => match arguments.runs.as_slice() {
            [one] => write(one, &html)?,
            _ => write(Path::new("."), &html)?,
        },
    };
    for run in &report.document.runs {
        run.notes.iter().for_each(|note| output::talk(&format!("notice: {}: {note}", run.label)));
    }
    let size = bytes(u64::try_from(html.len()).unwrap_or(u64::MAX));
    output::data(&format!("{} ({size})\n", file.display()))?;
    Ok(ExitCategory::Fine.code())
}

/// Writes the page of a run, or of its repetitions, into its folder.
pub(crate) fn write_into(folder: &Path) -> Result<(), VerbFailure> {
    let report = report(&[folder.to_owned()], &ReportSizeLimits::default())?;
    write(folder, &report.page.html()).map(drop)
}

fn report(runs: &[PathBuf], options: &ReportSizeLimits) -> Result<RenderedReport, VerbFailure> {
    let mut bar = ProgressIndicator::timed("reading runs", ProgressUnit::Things, false);
    let mut progress = |done: usize, total: usize| {
        let number = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        bar.set(number(done), number(total));
    };
    let made = groups(runs)
        .and_then(|groups| RenderedReport::with_progress(&groups, options, &mut progress));
    made.map_err(|error| failure(&error))
}

/// What a verb says of folders that cannot be shown.
pub(crate) fn failure(error: &ReportError) -> VerbFailure {
    let failure = VerbFailure::new(ExitCategory::Usage, error.to_string());
    error.hint().into_iter().fold(failure, VerbFailure::hint)
}

/// Writes the page into a folder, in the place of a link that has its name.
fn write(folder: &Path, html: &str) -> Result<PathBuf, VerbFailure> {
    let file = if folder == Path::new(".") { PathBuf::from(NAME) } else { folder.join(NAME) };
    let written = FolderHandle::open(folder)
        .and_then(|below| below.replace(OsStr::new(NAME), html.as_bytes()));
    written.map(|()| file.clone()).map_err(|error| unwritable(&file, &error))
}

fn unwritable(file: &Path, error: &std::io::Error) -> VerbFailure {
    let text = format!("cannot write {}: {error}", file.display());
    VerbFailure::new(ExitCategory::Machine, text).hint("name another file with --output")
}

const NAME: &str = "report.html";
