//! A run's files, one by one. Only the plan has to be there: a run that goes on, or was killed, has
//! no more than some of the others.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::Value;
use windtunnel_evidence::{Evidence, Loader};
use windtunnel_model::Plan;
use windtunnel_trace::event::Event;

use super::{Options, ReportError, name_of, unusable};
use crate::document::{Distribution, Lane, LimitSeries, Map, Mark, Output, Run};
use crate::flows::Flows;
use crate::series::{Series, Table};

/// What is compared and not shown.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Time of each recorded request.
    pub request_ns: Vec<u64>,
    /// All drops and all that was offered, by lane.
    pub packets: Vec<(u64, u64)>,
}

/// A run from its folder.
pub(super) fn run(
    folder: &Path,
    cells_max: usize,
    options: &Options,
) -> Result<(Run, Facts), ReportError> {
    let plan = plan(folder)?;
    let (map, lanes) = Map::of(&plan);
    let mut notes = Vec::new();
    let summary = summary(folder)?;
    let events = events(folder, &mut notes)?;
    let series = series(folder, &lanes, cells_max)?;
    let elapsed_ns = elapsed(summary.as_ref(), &events, &series);
    let flows = flows(folder, options, &mut notes)?;
    let mut rtt = flows.rtt;
    rtt.extend(echoes(folder)?);
    let incomplete = summary.is_none().then(|| {
        "it has no run.json: the run goes on, or was killed before it was judged".to_owned()
    });
    let name = name_of(folder);
    let facts = Facts { request_ns: flows.request_ns, packets: packets(summary.as_ref()) };
    let run = Run {
        id: name.clone(),
        label: name,
        group: 0,
        folder: folder.display().to_string(),
        summary,
        incomplete,
        elapsed_ns,
        map,
        series,
        events,
        lateness: lateness(folder, &lanes)?,
        lanes,
        rtt,
        outputs: outputs(folder, &plan)?,
        flows: flows.most,
        flows_in_all: flows.in_all,
        requests: flows.requests,
        modulation: flows.modulation,
        notes,
        limits_series: limits(folder)?,
    };
    Ok((run, facts))
}

fn plan(folder: &Path) -> Result<Plan, ReportError> {
    let path = folder.join("plan.json");
    let text = match fs::read(&path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(ReportError::NoRun(folder.to_owned()));
        }
        text => text.map_err(unusable(&path))?,
    };
    serde_json::from_slice(&text)
        .map_err(|error| ReportError::Unusable { path, why: error.to_string() })
}

fn summary(folder: &Path) -> Result<Option<Value>, ReportError> {
    let path = folder.join("run.json");
    let Some(text) = optional(&path)? else { return Ok(None) };
    let value = serde_json::from_slice(&text);
    value.map(Some).map_err(|error| ReportError::Unusable { path, why: error.to_string() })
}

/// The contents of a file that may be missing.
fn optional(path: &Path) -> Result<Option<Vec<u8>>, ReportError> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        text => text.map(Some).map_err(unusable(path)),
    }
}

fn events(folder: &Path, notes: &mut Vec<String>) -> Result<Vec<Mark>, ReportError> {
    let text = optional(&folder.join("events.jsonl"))?.unwrap_or_default();
    let (mut marks, mut unknown, mut more) = (Vec::new(), 0_usize, 0_usize);
    for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
        match serde_json::from_slice::<Event>(line) {
            Ok(_) if marks.len() >= MARKS_MAX => more += 1,
            Ok(event) => marks.push(Mark::of(&event)),
            Err(_) => unknown += 1,
        }
    }
    if unknown > 0 {
        notes.push(format!(
            "{unknown} events of events.jsonl are of a version that this one does not know"
        ));
    }
    if more > 0 {
        notes.push(format!(
            "{more} events after the first {MARKS_MAX} are left out: events.jsonl has all"
        ));
    }
    Ok(marks)
}

fn series(folder: &Path, lanes: &[Lane], cells_max: usize) -> Result<Series, ReportError> {
    let path = folder.join("links.csv");
    let file = match File::open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Series::new(lanes.len())),
        file => file.map_err(unusable(&path))?,
    };
    let read = Table::new(lanes, cells_max).read(BufReader::with_capacity(1 << 18, file));
    read.map_err(|error| ReportError::Unusable { path, why: error.to_string() })
}

fn elapsed(summary: Option<&Value>, events: &[Mark], series: &Series) -> u64 {
    let judged = summary.and_then(|summary| summary.get("elapsed_ns")).and_then(Value::as_u64);
    let last = events.last().map_or(0, |mark| mark.at_ns);
    let sampled = u64::try_from(series.bins).unwrap_or(0).saturating_mul(series.step_ns);
    judged.unwrap_or(last.max(sampled))
}

/// By lane, from `run.json`: packets dropped and offered.
fn packets(summary: Option<&Value>) -> Vec<(u64, u64)> {
    let links = summary.and_then(|it| it.get("links")).and_then(Value::as_array);
    let of = |link: &Value| {
        let dropped = link.get("dropped_packets").and_then(Value::as_object);
        let dropped = dropped.into_iter().flat_map(|all| all.values()).filter_map(Value::as_u64);
        let offered = link.get("offered_packets").and_then(Value::as_u64);
        (dropped.sum(), offered.unwrap_or(0))
    };
    links.into_iter().flatten().map(of).collect()
}

/// Rows of a table that may be missing, each as its fields by the names of the heading.
fn rows(path: &Path, names: &[&str], mut row: impl FnMut(&[&str])) -> Result<(), ReportError> {
    let Some(text) = optional(path)? else { return Ok(()) };
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    let heading: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |name: &&str| heading.iter().position(|known| known == name);
    let Some(places) = names.iter().map(place).collect::<Option<Vec<usize>>>() else {
        let why = format!("its columns are not {}", names.join(", "));
        return Err(ReportError::Unusable { path: path.to_owned(), why });
    };
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let wanted: Vec<&str> = places.iter().filter_map(|at| fields.get(*at).copied()).collect();
        if wanted.len() == places.len() {
            row(&wanted);
        }
    }
    Ok(())
}

fn lateness(folder: &Path, lanes: &[Lane]) -> Result<Vec<Distribution>, ReportError> {
    let mut bins: BTreeMap<Option<usize>, BTreeMap<u64, u64>> = BTreeMap::new();
    let index: BTreeMap<(&str, &str), usize> =
        lanes.iter().map(|lane| (lane.link.as_str(), lane.direction.as_str())).zip(0..).collect();
    rows(&folder.join("lateness.csv"), &["link", "direction", "lateness_ns", "packets"], |row| {
        let lane = index.get(&(row[0], row[1])).copied();
        if let (true, Ok(value), Ok(count)) =
            (lane.is_some() || row[0].is_empty(), row[2].parse(), row[3].parse())
        {
            bins.entry(lane).or_default().insert(value, count);
        }
    })?;
    let named = |(lane, bins): (Option<usize>, _)| {
        let name = lane.map_or_else(
            || "all packets".to_owned(),
            |lane| format!("{} {}", lanes[lane].link, lanes[lane].direction),
        );
        Distribution { lane, ..Distribution::of(name, &bins) }
    };
    Ok(bins.into_iter().map(named).collect())
}

/// Round-trip times of windtunnel's own echo requests, by path.
fn echoes(folder: &Path) -> Result<Vec<Distribution>, ReportError> {
    let mut paths: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    rows(&folder.join("echoes.csv"), &["from", "to", "rtt_s"], |row| {
        if let Some(rtt) = nanos(row[2]) {
            paths.entry(format!("echo {} → {}", row[0], row[1])).or_default().push(rtt);
        }
    })?;
    Ok(paths.into_iter().map(|(name, values)| Distribution::rounded(name, values)).collect())
}

fn limits(folder: &Path) -> Result<Vec<LimitSeries>, ReportError> {
    let mut all: BTreeMap<(String, Option<usize>), LimitSeries> = BTreeMap::new();
    let names = ["time_s", "node", "program", "asked_cpus", "delivered_cpus"];
    rows(&folder.join("limits.csv"), &names, |row| {
        let (node, program) = (row[1].to_owned(), row[2].parse().ok());
        let limit = all.entry((node.clone(), program)).or_insert_with(|| LimitSeries {
            node,
            program,
            what: "cpu",
            at_ns: Vec::new(),
            asked: Vec::new(),
            delivered: Vec::new(),
        });
        if let (Some(at), Ok(asked), Ok(delivered)) =
            (nanos(row[0]), row[3].parse(), row[4].parse())
        {
            limit.at_ns.push(at);
            limit.asked.push(asked);
            limit.delivered.push(delivered);
        }
    })?;
    Ok(all.into_values().collect())
}

/// `1.500250` seconds in nanoseconds.
fn nanos(text: &str) -> Option<u64> {
    let (seconds, micros) = text.split_once('.').filter(|(_, micros)| micros.len() == 6)?;
    let micros: u64 = micros.parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(micros * 1000)
}

fn outputs(folder: &Path, plan: &Plan) -> Result<Vec<Output>, ReportError> {
    let room = (OUTPUT_BYTES_MAX / u64::try_from(plan.nodes.len().max(1)).unwrap_or(1))
        .clamp(OUTPUT_BYTES_LEAST, OUTPUT_BYTES_MOST);
    let mut outputs = Vec::new();
    for node in &plan.nodes {
        for stream in ["stdout", "stderr"] {
            let path = folder.join("nodes").join(&node.name).join(stream);
            let output = Output::read(&path, &node.name, stream, room).map_err(unusable(&path))?;
            outputs.extend(output);
        }
    }
    Ok(outputs)
}

fn flows(folder: &Path, options: &Options, notes: &mut Vec<String>) -> Result<Flows, ReportError> {
    let mut files = Vec::new();
    record_files(&folder.join("records"), &mut files)?;
    files.sort();
    if files.is_empty() || options.records_bytes_max == 0 {
        return Ok(Flows::default());
    }
    let bytes: u64 = files.iter().filter_map(|file| file.metadata().ok()).map(|it| it.len()).sum();
    if bytes > options.records_bytes_max {
        notes.push(format!(
            "records of {bytes} bytes are left out, as they are more than {}: --records-max takes more",
            options.records_bytes_max
        ));
        return Ok(Flows::default());
    }
    match evidence(&files)? {
        Ok(evidence) => Ok(Flows::of(&evidence)),
        Err(why) => {
            notes.push(format!("records cannot be read: {why}"));
            Ok(Flows::default())
        }
    }
}

fn evidence(files: &[PathBuf]) -> Result<Result<Evidence, String>, ReportError> {
    let mut contents = Vec::with_capacity(files.len());
    for file in files {
        contents.push(fs::read(file).map_err(unusable(file))?);
    }
    let mut loader = Loader::new();
    for (file, bytes) in files.iter().zip(&contents) {
        if let Err(error) = loader.add(bytes) {
            return Ok(Err(format!("{}: {error}", file.display())));
        }
    }
    Ok(loader.finish().map_err(|error| error.to_string()))
}

/// Files of records; those of other machines lie in a folder each.
fn record_files(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), ReportError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(unusable(folder))?,
    };
    for entry in entries {
        let path = entry.map_err(unusable(folder))?.path();
        if path.is_dir() {
            record_files(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "wtr") {
            found.push(path);
        }
    }
    Ok(())
}

const MARKS_MAX: usize = 20_000;
/// Of all programs, and of one stream.
const OUTPUT_BYTES_MAX: u64 = 512 * 1024;
const OUTPUT_BYTES_LEAST: u64 = 2 * 1024;
const OUTPUT_BYTES_MOST: u64 = 64 * 1024;
