//! `records follow`: records as they come, for a program.
//!
//! The run's files are read as they grow. They are what lies between: a reader that is slow is
//! late, and holds up nothing; where a file was removed before it was read, the sequence numbers of
//! the next one say how many events it had.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use serde::Serialize;
use windtunnel_control::registry;
use windtunnel_evidence::AttributedRecord;
use windtunnel_evidence::export::json_line;
use windtunnel_evidence::filter::RecordFilter;
use windtunnel_evidence::follow::{GrowingRecordFile, RateAccumulator, RecordFileFollower};
use windtunnel_evidence::rows::RecordFormatter;
use windtunnel_model::Span;

use super::choice::{RecordFilterOptions, unknown};
use crate::arguments::OutputFormat;
use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::records::{RunFolder, files, open};

/// Write records of a live run as JSON lines while they come, until the run is over
///
/// Flows are numbered as they appear. With --every there are rates instead: what each direction of
/// a flow and of a link moved in that time. A program that reads slowly gets records late, and
/// slows down neither the run nor other readers; what was removed before it was read is counted in
/// a record `lost`.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordsFollowArguments {
    #[command(flatten)]
    run: RunFolder,
    #[command(flatten)]
    which: RecordFilterOptions,
    /// Write rates of flows and links, one object for each and for each interval of this length
    #[arg(long, value_name = "TIME", env = "WINDTUNNEL_EVERY")]
    every: Option<Span>,
    #[command(flatten)]
    format: OutputFormat,
}

pub(crate) fn run(arguments: &RecordsFollowArguments) -> Outcome {
    let every_ns = match arguments.every.map(Span::as_nanos) {
        Some(0) => {
            return Err(VerbFailure::new(ExitCategory::Usage, "--every is to be longer than 0"));
        }
        every => every,
    };
    let mut follow = RecordFollowSession {
        run: arguments.run.run.clone(),
        filter: arguments.which.filter(),
        follower: RecordFileFollower::new(),
        open: BTreeMap::new(),
        is_checked: false,
        rates: every_ns.map(|ns| (RateAccumulator::default(), ns, None)),
        out: BufWriter::new(io::stdout().lock()),
    };
    loop {
        // Asked first: what a run writes last is read after that.
        let live = registry::is_live(&follow.run);
        let found = match files(&follow.run) {
            Ok(found) => found,
            // It records nothing yet.
            Err(_) if live => Vec::new(),
            Err(failure) => return Err(failure),
        };
        let mut is_new = false;
        for file in found {
            is_new |= follow.read(&file)?;
        }
        follow.out.flush().map_err(|error| VerbFailure::writing(&error))?;
        if !is_new && !live {
            break;
        }
        if !is_new {
            thread::sleep(PAUSE);
        }
    }
    follow.end()?;
    Ok(ExitCategory::Fine.code())
}

struct RecordFollowSession<'a> {
    run: PathBuf,
    filter: RecordFilter,
    follower: RecordFileFollower,
    /// Files that have been begun.
    open: BTreeMap<PathBuf, (File, GrowingRecordFile)>,
    is_checked: bool,
    /// With the length of an interval, and which one goes on, by its number.
    rates: Option<(RateAccumulator, u64, Option<u64>)>,
    out: BufWriter<io::StdoutLock<'a>>,
}

impl RecordFollowSession<'_> {
    /// Reads what is new in a file. Answers whether there was something.
    fn read(&mut self, path: &PathBuf) -> Result<bool, VerbFailure> {
        if !self.open.contains_key(path) {
            let file = match open(&self.run, path) {
                Ok(file) => file,
                // Removed since it was listed; the next file says what it had.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                Err(error) => return Err(unreadable(path, &error)),
            };
            self.open.insert(path.clone(), (file, GrowingRecordFile::default()));
        }
        let mut buffer = vec![0; PIECE_BYTES];
        let mut is_new = false;
        loop {
            let Some((file, growing)) = self.open.get_mut(path) else { return Ok(is_new) };
            let length = file.read(&mut buffer).map_err(|error| unreadable(path, &error))?;
            if length == 0 {
                return Ok(is_new);
            }
            is_new = true;
            let mut new = Vec::new();
            self.follower
                .push(growing, &buffer[..length], &mut new)
                .map_err(|error| unreadable(path, &error))?;
            new.sort_by_key(|entry| entry.record.time);
            self.write(&new)?;
        }
    }

    fn write(&mut self, new: &[AttributedRecord]) -> Result<(), VerbFailure> {
        let evidence = self.follower.evidence();
        if !self.is_checked && !evidence.members().is_empty() {
            // Flows are not known before they come.
            let names = RecordFilter { flows: Vec::new(), ..self.filter.clone() };
            names.prepare(evidence).map_err(|error| unknown(&error))?;
            self.is_checked = true;
        }
        let (rows, sieve) = (RecordFormatter::new(evidence), self.filter.sieve(evidence));
        let mut text = Vec::new();
        for entry in new.iter().filter(|entry| sieve.passes(evidence, entry)) {
            let Some((rates, length_ns, present)) = &mut self.rates else {
                json_line(&rows, entry, &mut text);
                continue;
            };
            let since = u64::try_from(rows.since_origin(entry.record.time)).unwrap_or(0);
            let number = since / *length_ns;
            if present.is_none_or(|present| number > present)
                && let Some(before) = present.replace(number)
            {
                interval(rates, &rows, before, *length_ns, &mut text);
            }
            rates.add(evidence, entry);
        }
        self.out.write_all(&text).map_err(|error| VerbFailure::writing(&error))
    }

    /// Writes what the last interval has so far.
    fn end(mut self) -> Result<(), VerbFailure> {
        let rows = RecordFormatter::new(self.follower.evidence());
        let mut text = Vec::new();
        if let Some((rates, length_ns, Some(present))) = &mut self.rates {
            interval(rates, &rows, *present, *length_ns, &mut text);
        }
        let written = self.out.write_all(&text).and_then(|()| self.out.flush());
        written.map_err(|error| VerbFailure::writing(&error))
    }
}

/// An object of an interval.
#[derive(Debug, Serialize)]
struct IntervalJsonLine<'a, T> {
    kind: &'a str,
    begin_ns: u64,
    end_ns: u64,
    #[serde(flatten)]
    of: T,
}

/// Events that were lost in an interval.
#[derive(Debug, Serialize)]
struct LostEventCount {
    count: u64,
}

fn interval(
    rates: &mut RateAccumulator,
    rows: &RecordFormatter<'_>,
    number: u64,
    length_ns: u64,
    text: &mut Vec<u8>,
) {
    let (begin_ns, end_ns) = (number * length_ns, (number + 1) * length_ns);
    let lost = rates.take_lost();
    if lost > 0 {
        put(
            &IntervalJsonLine {
                kind: "lost",
                begin_ns,
                end_ns,
                of: LostEventCount { count: lost },
            },
            text,
        );
    }
    let (flows, lanes) = rates.take(rows, length_ns);
    for of in flows {
        put(&IntervalJsonLine { kind: "flow_rate", begin_ns, end_ns, of }, text);
    }
    for of in lanes {
        put(&IntervalJsonLine { kind: "lane_rate", begin_ns, end_ns, of }, text);
    }
}

fn put(line: &impl Serialize, text: &mut Vec<u8>) {
    // Writing to memory cannot fail.
    let _ = serde_json::to_writer(&mut *text, line);
    text.push(b'\n');
}

fn unreadable(path: &std::path::Path, error: &dyn std::fmt::Display) -> VerbFailure {
    VerbFailure::new(ExitCategory::Usage, format!("cannot use {}: {error}", path.display()))
}

/// A run writes its files about as often.
const PAUSE: Duration = Duration::from_millis(20);
const PIECE_BYTES: usize = 1 << 20;
