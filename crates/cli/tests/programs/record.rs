//! Runs that are recorded: what is in their files, and what is not.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use windtunnel_evidence::file::{
    EventSource, RecordFileElement, RecordFileHeader, RecordFileReader,
};
use windtunnel_model::record::kind::RecordSource;
use windtunnel_model::record::{EventRecord, Kind};

use super::support::{Lab, Live, is_missing, until, users};

/// What the files of a run folder hold.
#[derive(Default)]
pub(super) struct Read {
    pub(super) headers: Vec<RecordFileHeader>,
    pub(super) records: Vec<(EventSource, EventRecord)>,
    /// By layer: records, lost.
    counts: BTreeMap<u8, (u64, u64)>,
    /// Events of which no file says anything.
    gaps: u64,
}

pub(super) fn read(run: &Path) -> Read {
    let mut names: Vec<_> =
        fs::read_dir(run.join("records")).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let (mut read, mut reader) = (Read::default(), RecordFileReader::new());
    for name in names {
        let bytes = fs::read(&name).unwrap();
        let header = reader.read(&bytes, |_, item| match item {
            RecordFileElement::Record(source, record) => {
                let (records, lost) = read.counts.entry(source.layer).or_default();
                if record.kind == Kind::Lost as u8 {
                    *lost += record.wide(2);
                } else {
                    *records += 1;
                }
                read.records.push((source, record));
            }
            RecordFileElement::Gap { events, .. } => read.gaps += events,
            RecordFileElement::Repeated(..) => {}
            RecordFileElement::Stray(record) => {
                panic!("{}: {record:?} is of no source", name.display())
            }
        });
        read.headers.push(header.unwrap_or_else(|error| panic!("{}: {error}", name.display())));
    }
    read
}

impl Read {
    pub(super) fn of(&self, layer: RecordSource, kind: Kind) -> impl Iterator<Item = &EventRecord> {
        let records = self.records.iter();
        let wanted = move |it: &&(EventSource, EventRecord)| {
            it.0.layer == layer as u8 && it.1.kind == kind as u8
        };
        records.filter(wanted).map(|(_, record)| record)
    }

    /// The files say the same as `run.json`: records and lost are all events.
    #[track_caller]
    fn assert_agrees_with(&self, report: &Value) {
        let layers = report["records"]["layers"].as_object().expect("layers");
        for (name, layer) in layers {
            let number = RecordSource::from_name(name).unwrap() as u8;
            let (records, lost) = self.counts.get(&number).copied().unwrap_or_default();
            assert_eq!(layer["records"], records, "{name}: {layer}");
            assert_eq!(layer["lost"], lost, "{name}: {layer}");
            assert_eq!(layer["events"], records + lost, "{name}: {layer}");
        }
    }
}

fn record(live: &Live<'_>, lab: &Lab, words: &[&str]) -> Output {
    let run = live.folder().to_str().unwrap();
    lab.windtunnel(&[&["record"], words, &["--run", run, "--json"]].concat()).output().unwrap()
}

fn status(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn layer<'a>(status: &'a Value, name: &str) -> &'a Value {
    let layers = status["layers"].as_array().expect("layers");
    layers.iter().find(|layer| layer["layer"] == name).expect("the layer")
}

const PING: &str = "nodes: {a: {run: ping -c 20 -i 0.01 b}, b: {}}\n\
                    links: [{between: [a, b], name: wire, latency: 1ms}]\n";

#[test]
fn each_packet_of_a_recorded_run_is_in_its_files() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let outcome = lab.pass(&format!("record: [engine]\n{PING}"));
        let (read, report) = (read(&outcome.folder), outcome.report());
        read.assert_agrees_with(&report);
        assert_eq!(report["verdict"]["incomplete"], Value::Null, "{}", report["verdict"]);
        let header = &read.headers[0];
        assert_eq!(header.nodes, ["a", "b"]);
        assert_eq!((header.lanes[0].from.as_str(), header.lanes[0].to.as_str()), ("a", "b"));
        assert_eq!(header.plan, report["plan_hash"].as_str().unwrap());
        for kind in [Kind::Offered, Kind::Delivered] {
            for lane in [0, 1] {
                let of_lane = |it: &&EventRecord| it.args[2] == lane;
                let packets = read.of(RecordSource::Engine, kind).filter(of_lane).count() as u64;
                let name = if lane == 0 { "a-b" } else { "b-a" };
                let counted = if kind == Kind::Offered { "offered" } else { "delivered" };
                let counted = &outcome.link(name)[format!("{counted}_packets")];
                assert_eq!(counted, packets, "{name} {}", kind.name());
            }
        }
        lab.assert_nothing_left();
    }
}

#[test]
fn a_run_that_is_not_recorded_has_no_folder_of_records() {
    if is_missing(&["ping"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let outcome = lab.pass(PING);
    assert!(!outcome.folder.join("records").exists());
    assert_eq!(outcome.report()["records"], Value::Null);
}

#[test]
fn recording_starts_and_stops_while_the_run_lives() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let file = "record: standby\nnodes: {a: {run: ping -i 0.01 b}, b: {}}\n\
                    links: [{between: [a, b], latency: 1ms}]\n";
        let mut live = lab.start(file);
        live.wait_for_output("a", "icmp_seq=5 ");
        let before = status(&record(&live, &lab, &["status"]));
        assert_eq!((&before["on"], &before["files"]), (&Value::Bool(false), &Value::from(0)));
        let started = record(&live, &lab, &["start", "--layers", "engine"]);
        assert_eq!(layer(&status(&started), "engine")["state"], "on");
        assert_eq!(layer(&status(&started), "tcp")["state"], "off");
        until("records", || {
            let seen = status(&record(&live, &lab, &["status"]));
            (layer(&seen, "engine")["records"].as_u64()? > 50).then_some(())
        });
        let stopped = status(&record(&live, &lab, &["stop"]));
        assert_eq!(stopped["on"], Value::Bool(false));
        let wrong = record(&live, &lab, &["start", "--nodes", "c"]);
        assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
        let error = format!("{wrong:?}");
        assert!(error.contains("no node is called c"), "{error}");
        assert_eq!(live.ask("stop", &[]).status.code(), Some(0));
        let outcome = live.finish();
        let (read, report) = (read(&outcome.folder), outcome.report());
        read.assert_agrees_with(&report);
        let records = &report["records"]["layers"]["engine"]["records"];
        assert_eq!(records, &layer(&stopped, "engine")["records"], "nothing after the stop");
    }
}

#[test]
fn a_killed_run_leaves_records_that_can_be_read() {
    if is_missing(&["ping"]) {
        return;
    }
    for user in users() {
        let lab = Lab::new(user);
        let mut live = lab.start(
            "record: [engine]\nnodes: {a: {run: ping -i 0.01 b}, b: {}}\n\
             links: [{between: [a, b]}]\n",
        );
        live.wait_for_output("a", "icmp_seq=50 ");
        live.signal("KILL");
        let outcome = live.finish();
        let read = read(&outcome.folder);
        assert_eq!(read.gaps, 0);
        // The last milliseconds may be missing.
        assert!(read.of(RecordSource::Engine, Kind::Delivered).count() > 50);
        lab.assert_nothing_left();
    }
}

#[test]
fn events_beyond_the_limit_are_lost_countably_and_make_a_line_of_the_verdict() {
    if is_missing(&["ping"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let file = |on_loss: &str| {
        format!(
            "record: {{layers: [engine], rotate: 64KB, max: 70KB, on-loss: {on_loss}}}\n\
                 nodes: {{a: {{run: ping -c 600 -i 0.002 b}}, b: {{}}}}\nlinks: [{{between: [a, b]}}]\n"
        )
    };
    let outcome = lab.pass(&file("report"));
    let (read, report) = (read(&outcome.folder), outcome.report());
    read.assert_agrees_with(&report);
    assert!(report["records"]["layers"]["engine"]["lost"].as_u64().unwrap() > 0);
    assert!(read.headers.len() > 1, "a second file was begun");
    let text = report["verdict"]["text"].as_str().unwrap();
    assert!(text.contains("EVIDENCE INCOMPLETE: "), "{text}");
    assert!(outcome.stdout.contains("EVIDENCE INCOMPLETE"), "{}", outcome.stdout);
    let outcome = lab.run(&file("fail"));
    outcome.assert_code(1);
    let failures = outcome.report()["verdict"]["failures"][0].to_string();
    assert!(failures.contains("the evidence is incomplete"), "{failures}");
}

#[test]
fn only_the_newest_files_are_kept_and_the_others_are_counted() {
    if is_missing(&["ping"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let outcome = lab.pass(
        "record: {layers: [engine], rotate: 64KB, keep: 2}\n\
         nodes: {a: {run: ping -c 1500 -i 0.002 b}, b: {}}\nlinks: [{between: [a, b]}]\n",
    );
    let (read, report) = (read(&outcome.folder), outcome.report());
    assert_eq!(read.headers.len(), 2);
    let records = &report["records"];
    assert!(records["files"].as_u64().unwrap() > 2, "{records}");
    assert_eq!(records["removed_events"].as_u64(), Some(read.gaps), "{records}");
    let (kept, lost) = read.counts[&(RecordSource::Engine as u8)];
    assert_eq!(lost, 0);
    assert_eq!(records["layers"]["engine"]["events"].as_u64(), Some(kept + read.gaps));
}

#[test]
fn anonymous_records_hold_no_address() {
    if is_missing(&["ping"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let outcome = lab.run_with(PING, &["--record=engine", "--anonymous"]);
    outcome.assert_code(0);
    let read = read(&outcome.folder);
    assert!(read.headers[0].anonymous);
    let definitions: Vec<&EventRecord> = read.of(RecordSource::Engine, Kind::FlowFrom).collect();
    assert!(!definitions.is_empty());
    let mapped =
        |record: &&&EventRecord| record.arg_bytes()[..12] == *b"\0\0\0\0\0\0\0\0\0\0\xff\xff";
    assert_eq!(definitions.iter().filter(mapped).count(), 0);
}
