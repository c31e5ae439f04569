//! `records export`: records for other programs.

use std::io::{self, BufWriter, IsTerminal, Write};

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use windtunnel_evidence::RecordedRun;
use windtunnel_evidence::export::{self, CapturePointSelection};
use windtunnel_evidence::filter::CompiledRecordFilter;

use super::choice::{RecordSelection, wanted};
use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output::OutputDestination;

/// Write records in a format of other programs
///
/// pcapng and perfetto are made from what they need: packets in lanes; calls, packets and the state
/// of connections. The others have a row for each record. --json is for failures only: what is
/// exported is the output.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordsExportArguments {
    #[command(flatten)]
    choice: RecordSelection,
    /// The format
    #[arg(long, value_enum, value_name = "FORMAT", env = "WINDTUNNEL_FORMAT")]
    format: RecordExportFormat,
    /// Where packets are written to pcapng: `once`, or at `all` lanes that they pass [default: once,
    /// unless --kind says which]
    #[arg(
        long,
        value_name = "WHERE",
        hide_possible_values = true,
        value_parser = PossibleValuesParser::new(["once", "all"]).map(|word| points(&word)),
        env = "WINDTUNNEL_POINTS"
    )]
    points: Option<CapturePointSelection>,
    #[command(flatten)]
    destination: OutputDestination,
    #[command(flatten)]
    talk: OutputFormat,
}

/// Formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RecordExportFormat {
    /// An object for each record, one a line
    Jsonl,
    /// A line for each record, with a line of headings
    Csv,
    /// Columns for data frames
    Parquet,
    /// Headers of packets, for Wireshark; with --node or --link those that are seen there
    Pcapng,
    /// A timeline in Chrome's trace event format, for ui.perfetto.dev
    Perfetto,
}

fn points(word: &str) -> CapturePointSelection {
    if word == "all" { CapturePointSelection::All } else { CapturePointSelection::Once }
}

pub(crate) fn run(arguments: &RecordsExportArguments) -> Outcome {
    let binary =
        matches!(arguments.format, RecordExportFormat::Parquet | RecordExportFormat::Pcapng);
    let path = arguments.destination.path();
    if binary && path.is_none() && io::stdout().is_terminal() {
        let text = "this format is not for a terminal";
        return Err(
            VerbFailure::new(ExitCategory::Usage, text).hint("-o FILE, or a pipe to a program")
        );
    }
    let (evidence, sieve) = arguments.choice.load()?;
    match arguments.destination.create()? {
        Some(file) => {
            let path = path.unwrap_or_else(|| std::path::Path::new("-"));
            let written = write(arguments, &evidence, &sieve, file);
            written.map_err(|error| {
                let text = format!("cannot write {}: {error}", path.display());
                VerbFailure::new(ExitCategory::Machine, text)
            })?;
        }
        None => {
            let written = write(arguments, &evidence, &sieve, io::stdout().lock());
            written.map_err(|error| VerbFailure::writing(&error))?;
        }
    }
    Ok(ExitCategory::Fine.code())
}

fn write(
    arguments: &RecordsExportArguments,
    evidence: &RecordedRun,
    sieve: &CompiledRecordFilter,
    out: impl Write,
) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, out);
    let entries = wanted(evidence, sieve);
    match arguments.format {
        RecordExportFormat::Jsonl => export::json_lines(evidence, entries, &mut out)?,
        RecordExportFormat::Csv => export::csv(evidence, entries, &mut out)?,
        RecordExportFormat::Parquet => export::parquet(evidence, entries, &mut out)?,
        RecordExportFormat::Perfetto => export::timeline(evidence, entries, &mut out)?,
        RecordExportFormat::Pcapng => {
            let place = arguments.choice.place();
            let usual = if arguments.choice.has_kinds() {
                CapturePointSelection::All
            } else {
                CapturePointSelection::Once
            };
            let points = arguments.points.unwrap_or(usual);
            export::packets(evidence, entries, &place, points, &mut out)?;
        }
    }
    out.flush()
}

const BUFFER_BYTES: usize = 1 << 18;
