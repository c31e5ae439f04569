//! `records show`: a line for each record.

use std::io::{self, BufWriter, Write};

use anstyle::AnsiColor;
use windtunnel_evidence::export;

use super::choice::{RecordSelection, wanted};
use super::line::RecordLineFormatter;
use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output;
use crate::render::paint;

/// Show records, one a line, in order of time
///
/// Arrows show the direction of the bytes; the side that opened the flow is on the left. Offsets
/// count the bytes of a direction from the first one after the SYN, or its datagrams. With --json
/// there is an object for each record, one a line.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordsShowArguments {
    #[command(flatten)]
    choice: RecordSelection,
    /// Show so many at most
    #[arg(short = 'n', long, value_name = "NUMBER", env = "WINDTUNNEL_LINES")]
    lines: Option<usize>,
    #[command(flatten)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: &RecordsShowArguments) -> Outcome {
    let (evidence, sieve) = arguments.choice.load()?;
    if arguments.format.json {
        let entries = wanted(&evidence, &sieve).take(arguments.lines.unwrap_or(usize::MAX));
        let mut out = BufWriter::new(io::stdout().lock());
        let written = export::json_lines(&evidence, entries, &mut out).and_then(|()| out.flush());
        written.map_err(|error| VerbFailure::writing(&error))?;
        return Ok(ExitCategory::Fine.code());
    }
    let lines = RecordLineFormatter::new(&evidence);
    let colours = output::data_colours();
    let mut out = BufWriter::new(io::stdout().lock());
    let mut put = |line: &str| {
        writeln!(out, "{}", line.trim_end()).map_err(|error| VerbFailure::writing(&error))
    };
    put(&lines.headings())?;
    let mut rest = wanted(&evidence, &sieve);
    for entry in rest.by_ref().take(arguments.lines.unwrap_or(usize::MAX)) {
        let colour = colour(evidence.origin_of(entry).source.layer);
        put(&lines.line(entry, |layer| paint(layer, colour, colours)))?;
    }
    let more = rest.count();
    if more > 0 {
        put(&format!("… and {more} more"))?;
    }
    out.flush().map_err(|error| VerbFailure::writing(&error))?;
    Ok(ExitCategory::Fine.code())
}

/// By the layer's number.
fn colour(layer: u8) -> AnsiColor {
    match layer {
        1 => AnsiColor::Cyan,
        2 => AnsiColor::Green,
        3 => AnsiColor::Yellow,
        _ => AnsiColor::Magenta,
    }
}
