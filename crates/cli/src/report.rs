//! The document of runs: what the page, figures and other programs read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windtunnel_model::{Lane, Plan};
use windtunnel_trace::event::Event;
use windtunnel_trace::sample::Row;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::event;

/// The document of these runs, or the part of it that `T` has.
pub(crate) fn document<T: DeserializeOwned>(runs: &[PathBuf]) -> Result<T, Failure> {
    let runs = runs.iter().map(|folder| run(folder)).collect::<Result<Vec<Value>, Failure>>()?;
    let document =
        json!({"format": "windtunnel-report", "version": 1, "mode": "report", "runs": runs});
    serde_json::from_value(document).map_err(|error| Failure::caused(Exit::Internal, error))
}

fn run(folder: &Path) -> Result<Value, Failure> {
    let reading = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::new(Exit::Usage, format!("cannot read {}: {error}", path.display()))
            .hint("name the folder of a run, such as runs/latest")
    };
    let path = folder.join("plan.json");
    let plan = fs::read(&path).map_err(|error| reading(&path, &error))?;
    let plan: Plan = serde_json::from_slice(&plan).map_err(|error| reading(&path, &error))?;
    let lanes: Vec<(String, String)> = (0..plan.links.len() * 2)
        .map(Lane::from_index)
        .map(|lane| (plan.links[lane.link.index()].name.clone(), plan.lane_name(lane)))
        .collect();
    let (series, elapsed) = series(folder, &lanes);
    let events = fs::read_to_string(folder.join("events.jsonl")).unwrap_or_default();
    let marks: Vec<Value> = events.lines().filter_map(mark).collect();
    let summary = fs::read(folder.join("run.json")).ok();
    let summary: Option<Value> = summary.and_then(|json| serde_json::from_slice(&json).ok());
    let elapsed = summary.as_ref().and_then(|run| run["elapsed_ns"].as_u64()).unwrap_or(elapsed);
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let id = real.file_name().map(|name| name.to_string_lossy().into_owned());
    let lanes: Vec<Value> = lanes
        .iter()
        .map(|(link, direction)| json!({"link": link, "direction": direction}))
        .collect();
    Ok(json!({
        "id": id, "label": plan.name, "group": 0, "folder": folder, "summary": summary,
        "elapsed_ns": elapsed, "lanes": lanes, "series": series, "events": marks,
    }))
}

/// What the links did, and when the last sample was.
fn series(folder: &Path, lanes: &[(String, String)]) -> (Value, u64) {
    let text = fs::read_to_string(folder.join("links.csv")).unwrap_or_default();
    let index: BTreeMap<(&str, &str), usize> =
        lanes.iter().enumerate().map(|(i, (l, d))| ((l.as_str(), d.as_str()), i)).collect();
    let mut rows: Vec<BTreeMap<usize, Row>> = vec![BTreeMap::new(); lanes.len()];
    let mut last = 0;
    for line in text.split_inclusive('\n') {
        let Some((at, link, direction, row)) = Row::read(line) else { continue };
        last = at.max(last);
        let bin = usize::try_from((at.saturating_sub(STEP_NS / 2)) / STEP_NS).unwrap_or(0);
        if let Some(&lane) = index.get(&(link, direction)).filter(|_| !row.is_idle()) {
            rows[lane].entry(bin).or_default().add(&row);
        }
    }
    let bins = usize::try_from(last.div_ceil(STEP_NS)).unwrap_or(0);
    let column = |rows: &BTreeMap<usize, Row>, of: fn(&Row) -> u64| -> Vec<u64> {
        (0..bins).map(|bin| rows.get(&bin).map_or(0, of)).collect()
    };
    let lanes = rows.iter().map(|rows| match rows.is_empty() {
        true => Value::Null,
        false => json!({
            "offered_bytes": column(rows, |row| row.offered_bytes),
            "delivered_bytes": column(rows, |row| row.delivered_bytes),
            "queue_max_packets": column(rows, |row| row.queue_max_packets),
            "queue_max_bytes": column(rows, |row| row.queue_max_bytes),
            "lateness_max_ns": column(rows, |row| row.lateness_max_ns),
            "marked_packets": column(rows, |row| row.marked_packets),
            "dropped": {"all": column(rows, |row| row.dropped_packets)},
        }),
    });
    let lanes: Vec<Value> = lanes.collect();
    (json!({"step_ns": STEP_NS, "bins": bins, "samples_per_bin": 1, "lanes": lanes}), last)
}

/// A line of `events.jsonl`, in words.
pub(crate) fn mark(line: &str) -> Option<Value> {
    let event: Event = serde_json::from_str(line).ok()?;
    let what: Value = serde_json::from_str(line).ok()?;
    let kind = match what["event"].as_str()? {
        "link-set" | "link-state" | "cpu-set" | "share-set" | "limit-set" => "change",
        "link-flap" | "partitioned" | "healed" | "node" => "fault",
        name if name.starts_with("run-") => "run",
        name if name.starts_with("program-") => "program",
        name if name.starts_with("service-") => "service",
        _ => "other",
    };
    let names = |key: &str| what[key].as_str().map(str::to_owned).into_iter().collect::<Vec<_>>();
    Some(json!({
        "at_ns": event.at_ns, "event": what["event"], "kind": kind, "text": event::text(&event),
        "links": names("link"), "nodes": names("node"),
    }))
}

const STEP_NS: u64 = 100_000_000;
