//! `plot`: figures of runs, for papers.

mod choice;
mod document;
mod panels;
#[cfg(test)]
mod tests;
mod what;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::builder::FalseyValueParser;
use serde::Serialize;
use windtunnel_model::Span;
use windtunnel_plot::{FigureFormat as Kind, FigureSize};

use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output::{self, OutputDestination};

use choice::LinkChoice;
use document::PlotDocument;
use what::PlotPanelKind;

/// Draw figures of runs for papers: SVG, PNG or PDF
///
/// Panels of what is asked lie below each other over one axis of time; distributions have an axis of
/// their own. Several runs are laid over each other, each in one colour everywhere. The file has
/// its own font, and the same runs give the same bytes. Rates are of IP bytes, and means of each
/// step; queues and lateness are the largest of each step.
#[derive(Debug, clap::Args)]
pub(crate) struct PlotArguments {
    /// Folders of runs
    #[arg(value_name = "RUN", default_value = "runs/latest", env = "WINDTUNNEL_RUN")]
    runs: Vec<PathBuf>,
    /// What to draw, a panel each: throughput, offered, queue, queue-bytes, drops, marked, lateness,
    /// cpu, rtt-cdf, lateness-cdf
    #[arg(
        long,
        value_name = "WHAT,…",
        env = "WINDTUNNEL_WHAT",
        value_delimiter = ',',
        default_value = "throughput,queue"
    )]
    what: Vec<PlotPanelKind>,
    /// Only this link, or this direction of it: `up`, `down`, or `from-to`; may be given more than
    /// once [default: the busiest directions]
    #[arg(
        long = "link",
        value_name = "LINK[:DIRECTION]",
        env = "WINDTUNNEL_LINK",
        value_delimiter = ','
    )]
    links: Vec<LinkChoice>,
    /// Begin at this time after the run began
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_FROM")]
    from: Option<Span>,
    /// End at this time after the run began
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_TO")]
    to: Option<Span>,
    /// Time between two points of a line [default: what gives at most 500 points]
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_STEP")]
    step: Option<Span>,
    /// Names of the runs in the legend, in the order of the runs [default: names of their folders]
    #[arg(long = "label", value_name = "NAME,…", env = "WINDTUNNEL_LABEL", value_delimiter = ',')]
    labels: Vec<String>,
    /// Width and height [default: 84x60mm, a column of a paper; higher with several panels]
    #[arg(long, value_name = "WIDTHxHEIGHTmm", env = "WINDTUNNEL_PLOT_SIZE")]
    size: Option<FigureSize>,
    /// The title [default: the run and the link]
    #[arg(long, value_name = "TEXT", env = "WINDTUNNEL_TITLE", conflicts_with = "no_title")]
    title: Option<String>,
    /// No title: a paper has a caption
    #[arg(long, env = "WINDTUNNEL_NO_TITLE", value_parser = FalseyValueParser::new())]
    no_title: bool,
    /// No lines where something was changed or failed
    #[arg(long, env = "WINDTUNNEL_NO_MARKS", value_parser = FalseyValueParser::new())]
    no_marks: bool,
    /// Pixels to the inch, of a PNG
    #[arg(long, value_name = "NUMBER", env = "WINDTUNNEL_DPI", default_value_t = 300)]
    #[arg(value_parser = clap::value_parser!(u32).range(30..=2400))]
    dpi: u32,
    /// Write to this new file, whose name ends with .svg, .png or .pdf [default: SVG on standard
    /// output]
    #[arg(short, long, value_name = "FILE", env = "WINDTUNNEL_OUTPUT")]
    output: Option<PathBuf>,
    /// Overwrite a file that is there already
    #[arg(long, env = "WINDTUNNEL_FORCE", value_parser = FalseyValueParser::new())]
    force: bool,
    #[command(flatten)]
    format: OutputFormat,
}

/// What was drawn, for `--json`.
#[derive(Debug, Serialize)]
struct PlotOutput<'a> {
    output: &'a Path,
    bytes: usize,
    size: String,
    panels: usize,
    /// Link directions that were left out because there are too many.
    left_out: usize,
}

pub(crate) fn run(arguments: &PlotArguments) -> Outcome {
    let kind = kind(arguments)?;
    let document =
        PlotDocument::of(&arguments.runs, arguments.what.contains(&PlotPanelKind::RttCdf))?;
    let (figure, left_out) = panels::figure(arguments, &document)?;
    let bytes = windtunnel_plot::render(&figure, kind).map_err(|error| {
        let failure = VerbFailure::caused(ExitCategory::Usage, error);
        failure.hint("--size sets the size, --what the panels, --dpi the pixels of a PNG")
    })?;
    if left_out > 0 {
        let text = format!("{left_out} more link directions are not drawn; --link chooses");
        output::talk(&text);
    }
    let Some(path) = arguments.output.as_deref().filter(|path| path.as_os_str() != "-") else {
        output::data(&String::from_utf8_lossy(&bytes))?;
        return Ok(ExitCategory::Fine.code());
    };
    let writing = |error: std::io::Error| {
        VerbFailure::new(ExitCategory::Machine, format!("cannot write {}: {error}", path.display()))
    };
    if let Some(mut file) = OutputDestination::new(path.to_owned(), arguments.force).create()? {
        file.write_all(&bytes).map_err(writing)?;
    }
    if arguments.format.json {
        let (size, panels) = (figure.size.to_string(), figure.panels.len());
        output::json(&PlotOutput { output: path, bytes: bytes.len(), size, panels, left_out })?;
    }
    Ok(ExitCategory::Fine.code())
}

/// By the end of the file's name.
fn kind(arguments: &PlotArguments) -> Result<Kind, VerbFailure> {
    let Some(path) = arguments.output.as_deref().filter(|path| path.as_os_str() != "-") else {
        if arguments.format.json {
            let text = "the figure and JSON cannot both go to standard output";
            return Err(VerbFailure::new(ExitCategory::Usage, text).hint("name a file with -o"));
        }
        return Ok(Kind::Svg);
    };
    let extension = path.extension().map(|end| end.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("svg") => Ok(Kind::Svg),
        Some("png") => Ok(Kind::Png { dpi: arguments.dpi }),
        Some("pdf") => Ok(Kind::Pdf),
        _ => {
            let text = format!("`{}` names no format", path.display());
            Err(VerbFailure::new(ExitCategory::Usage, text).hint("end it with .svg, .png or .pdf"))
        }
    }
}
