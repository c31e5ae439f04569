//! A run's files, one by one. Only the plan has to be there: a run that goes on, or was killed, has
//! no more than some of the others.

use std::collections::BTreeMap;
use std::io::{self, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use serde_json::Value;
use windtunnel_evidence::{EvidenceLoader, RecordedRun};
use windtunnel_model::{Plan, Resource};
use windtunnel_sys::below::FolderHandle;
use windtunnel_trace::event::EventLogEntry;

use super::error::{ReportError, unusable};
use super::limits::ReportSizeLimits;
use super::line::line;
use super::name::name_of;
use super::records::record_files;
use crate::compare::inputs::RunComparisonInputs;
use crate::document::distribution::DurationHistogram;
use crate::document::map::MapDirectedLink;
use crate::document::run::RunSection;
use crate::document::{CpuLimitSeries, EventAnnotation, NodeOutputExcerpt, TopologyMap};
use crate::flows::FlowEvidenceSummary;
use crate::series::{LinkTimeSeriesSet, SampleTableReader};

/// The folder of a run, which may be a stranger's: regular files in it are read, and no others.
#[derive(Debug)]
struct RunFolderReader<'a> {
    path: &'a Path,
    below: FolderHandle,
}

impl RunFolderReader<'_> {
    /// The contents of a file that may be missing.
    fn optional(&self, name: &str) -> Result<Option<Vec<u8>>, ReportError> {
        match self.below.read(name, FILE_BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            text => text.map(Some).map_err(unusable(&self.path.join(name))),
        }
    }

    /// A file that may be missing.
    fn open(&self, name: &str) -> Result<Option<BufReader<std::fs::File>>, ReportError> {
        match self.below.file(name) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            file => file
                .map(|file| Some(BufReader::with_capacity(1 << 18, file)))
                .map_err(unusable(&self.path.join(name))),
        }
    }
}

/// A run from its folder.
pub(super) fn run(
    folder: &Path,
    cells_max: usize,
    options: &ReportSizeLimits,
) -> Result<(RunSection, RunComparisonInputs), ReportError> {
    let files = open(folder)?;
    let plan = plan(&files)?;
    let (map, lanes) = TopologyMap::of(&plan);
    let mut notes = Vec::new();
    let summary = summary(&files)?;
    let events = events(&files, &mut notes)?;
    let series = series(&files, &lanes, cells_max)?;
    let elapsed_ns = elapsed(summary.as_ref(), &events, &series);
    let flows = flows(&files, options, &mut notes)?;
    let mut rtt = flows.rtt;
    rtt.extend(echoes(&files)?);
    let incomplete = summary.is_none().then(|| {
        "it has no run.json: the run goes on, or was killed before it was judged".to_owned()
    });
    let name = name_of(folder);
    let facts =
        RunComparisonInputs { request_ns: flows.request_ns, packets: packets(summary.as_ref()) };
    let run = RunSection {
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
        lateness: lateness(&files, &lanes)?,
        lanes,
        rtt,
        outputs: outputs(&files, &plan, &mut notes),
        flows: flows.most,
        flows_in_all: flows.in_all,
        requests: flows.requests,
        modulation: flows.modulation,
        notes,
        limits_series: limits(&files)?,
    };
    Ok((run, facts))
}

fn open(folder: &Path) -> Result<RunFolderReader<'_>, ReportError> {
    match FolderHandle::open(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Err(ReportError::NoRun(folder.to_owned()))
        }
        below => {
            below.map(|below| RunFolderReader { path: folder, below }).map_err(unusable(folder))
        }
    }
}

/// The plan of a run, from its folder.
///
/// # Errors
///
/// If it cannot be read, or is none.
pub fn read_plan(run: &FolderHandle) -> io::Result<Plan> {
    Ok(serde_json::from_slice(&run.read("plan.json", FILE_BYTES_MAX)?)?)
}

fn plan(files: &RunFolderReader<'_>) -> Result<Plan, ReportError> {
    match read_plan(&files.below) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(ReportError::NoRun(files.path.to_owned()))
        }
        plan => plan.map_err(unusable(&files.path.join("plan.json"))),
    }
}

fn summary(files: &RunFolderReader<'_>) -> Result<Option<Value>, ReportError> {
    let Some(text) = files.optional("run.json")? else { return Ok(None) };
    let value = serde_json::from_slice(&text);
    value.map(Some).map_err(|error| ReportError::Unusable {
        path: files.path.join("run.json"),
        why: error.to_string(),
    })
}

fn events(
    files: &RunFolderReader<'_>,
    notes: &mut Vec<String>,
) -> Result<Vec<EventAnnotation>, ReportError> {
    let (mut marks, mut unknown, mut more) = (Vec::new(), 0_usize, 0_usize);
    lines(files, "events.jsonl", |line| match serde_json::from_slice::<EventLogEntry>(line) {
        Ok(_) if marks.len() >= MARKS_MAX => more += 1,
        Ok(event) => marks.push(EventAnnotation::of(&event)),
        Err(_) => unknown += 1,
    })?;
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

/// Whole lines of a file that may be missing, without their ends. A last one without an end was
/// cut, and is left out.
fn lines(
    files: &RunFolderReader<'_>,
    name: &str,
    mut each: impl FnMut(&[u8]),
) -> Result<(), ReportError> {
    let Some(mut input) = files.open(name)? else { return Ok(()) };
    let mut text = Vec::new();
    loop {
        line(&mut input, &mut text).map_err(unusable(&files.path.join(name)))?;
        let Some((b'\n', whole)) = text.split_last() else { return Ok(()) };
        each(whole);
    }
}

fn series(
    files: &RunFolderReader<'_>,
    lanes: &[MapDirectedLink],
    cells_max: usize,
) -> Result<LinkTimeSeriesSet, ReportError> {
    let Some(file) = files.open("links.csv")? else {
        return Ok(LinkTimeSeriesSet::new(lanes.len()));
    };
    SampleTableReader::new(lanes, cells_max).read(file).map_err(|error| ReportError::Unusable {
        path: files.path.join("links.csv"),
        why: error.to_string(),
    })
}

fn elapsed(summary: Option<&Value>, events: &[EventAnnotation], series: &LinkTimeSeriesSet) -> u64 {
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
fn rows(
    files: &RunFolderReader<'_>,
    table: &str,
    names: &[&str],
    mut row: impl FnMut(&[&str]),
) -> Result<(), ReportError> {
    let wrong = |why: String| ReportError::Unusable { path: files.path.join(table), why };
    let (mut places, mut count): (Option<Option<Vec<usize>>>, usize) = (None, 0);
    lines(files, table, |line| {
        let text = String::from_utf8_lossy(line);
        let fields: Vec<&str> = text.split(',').collect();
        let place = |name: &&str| fields.iter().position(|known| known == name);
        match &places {
            None => places = Some(names.iter().map(place).collect()),
            Some(Some(places)) if count < ROWS_MAX => {
                count += 1;
                let wanted = places.iter().filter_map(|at| fields.get(*at).copied());
                let wanted: Vec<&str> = wanted.collect();
                if wanted.len() == places.len() {
                    row(&wanted);
                }
            }
            Some(_) => count += 1,
        }
    })?;
    match places {
        Some(None) => Err(wrong(format!("its columns are not {}", names.join(", ")))),
        _ if count > ROWS_MAX => Err(wrong(format!("it has more than {ROWS_MAX} rows"))),
        _ => Ok(()),
    }
}

fn lateness(
    files: &RunFolderReader<'_>,
    lanes: &[MapDirectedLink],
) -> Result<Vec<DurationHistogram>, ReportError> {
    let mut bins: BTreeMap<Option<usize>, BTreeMap<u64, u64>> = BTreeMap::new();
    let index: BTreeMap<(&str, &str), usize> =
        lanes.iter().map(|lane| (lane.link.as_str(), lane.direction.as_str())).zip(0..).collect();
    rows(files, "lateness.csv", &["link", "direction", "lateness_ns", "packets"], |row| {
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
        DurationHistogram { lane, ..DurationHistogram::of(name, &bins) }
    };
    Ok(bins.into_iter().map(named).collect())
}

/// Round-trip times of windtunnel's own echo requests, by path.
fn echoes(files: &RunFolderReader<'_>) -> Result<Vec<DurationHistogram>, ReportError> {
    let mut paths: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    rows(files, "echoes.csv", &["from", "to", "rtt_s"], |row| {
        if let Some(rtt) = nanos(row[2]) {
            paths.entry(format!("echo {} → {}", row[0], row[1])).or_default().push(rtt);
        }
    })?;
    Ok(paths.into_iter().map(|(name, values)| DurationHistogram::rounded(name, values)).collect())
}

fn limits(files: &RunFolderReader<'_>) -> Result<Vec<CpuLimitSeries>, ReportError> {
    let mut all: BTreeMap<(String, Option<usize>), CpuLimitSeries> = BTreeMap::new();
    let names = ["time_s", "node", "program", "asked_cpus", "delivered_cpus"];
    rows(files, "limits.csv", &names, |row| {
        let (node, program) = (row[1].to_owned(), row[2].parse().ok());
        let limit = all.entry((node.clone(), program)).or_insert_with(|| CpuLimitSeries {
            node,
            program,
            what: Resource::Cpu,
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

/// What cannot be read is left out with a note: the programs of a run may have put it there.
fn outputs(
    files: &RunFolderReader<'_>,
    plan: &Plan,
    notes: &mut Vec<String>,
) -> Vec<NodeOutputExcerpt> {
    let room = (OUTPUT_BYTES_MAX / u64::try_from(plan.nodes.len().max(1)).unwrap_or(1))
        .clamp(OUTPUT_BYTES_LEAST, OUTPUT_BYTES_MOST);
    let mut outputs = Vec::new();
    for node in &plan.nodes {
        for stream in ["stdout", "stderr"] {
            let path = Path::new("nodes").join(&node.name).join(stream);
            match files
                .below
                .file(&path)
                .and_then(|it| NodeOutputExcerpt::read(it, &node.name, stream, room))
            {
                Ok(output) => outputs.extend(output),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) if notes.len() < NOTES_MAX => {
                    notes.push(format!("{} is left out: {error}", path.display()));
                }
                Err(_) => {}
            }
        }
    }
    outputs
}

fn flows(
    run: &RunFolderReader<'_>,
    options: &ReportSizeLimits,
    notes: &mut Vec<String>,
) -> Result<FlowEvidenceSummary, ReportError> {
    if options.records_bytes_max == 0 {
        return Ok(FlowEvidenceSummary::default());
    }
    let records = run.path.join("records");
    let names = record_files(&run.below).map_err(unusable(&records))?;
    if names.is_empty() {
        return Ok(FlowEvidenceSummary::default());
    }
    let length = |name: &PathBuf| Ok(run.below.file(name)?.metadata()?.len());
    let bytes: u64 =
        names.iter().map(length).sum::<io::Result<u64>>().map_err(unusable(&records))?;
    if bytes > options.records_bytes_max {
        notes.push(format!(
            "records of {bytes} bytes are left out, as they are more than {}: --records-max takes more",
            options.records_bytes_max
        ));
        return Ok(FlowEvidenceSummary::default());
    }
    match evidence(run, &names, bytes)? {
        Ok(evidence) => Ok(FlowEvidenceSummary::of(&evidence)),
        Err(why) => {
            notes.push(format!("records cannot be read: {why}"));
            Ok(FlowEvidenceSummary::default())
        }
    }
}

fn evidence(
    run: &RunFolderReader<'_>,
    names: &[PathBuf],
    bytes: u64,
) -> Result<Result<RecordedRun, String>, ReportError> {
    let mut contents = Vec::with_capacity(names.len());
    for name in names {
        // A run that goes on writes meanwhile.
        let most = bytes.saturating_mul(2).saturating_add(FILE_BYTES_MAX);
        let read = run.below.read(name, most);
        contents.push(read.map_err(unusable(&run.path.join(name)))?);
    }
    let mut loader = EvidenceLoader::new();
    for (name, bytes) in names.iter().zip(&contents) {
        if let Err(error) = loader.add(bytes) {
            return Ok(Err(format!("{}: {error}", run.path.join(name).display())));
        }
    }
    Ok(loader.finish().map_err(|error| error.to_string()))
}

const MARKS_MAX: usize = 20_000;
/// Of all programs, and of one stream.
const OUTPUT_BYTES_MAX: u64 = 512 * 1024;
const OUTPUT_BYTES_LEAST: u64 = 2 * 1024;
const OUTPUT_BYTES_MOST: u64 = 64 * 1024;
/// Of one that is read whole.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Of one table but links.csv.
const ROWS_MAX: usize = 4_000_000;
const NOTES_MAX: usize = 20;
