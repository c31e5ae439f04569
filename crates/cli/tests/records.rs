//! `records` on a run folder that the test writes. Needs no rights.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::IpAddr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use windtunnel_evidence::file::{EventSource, LaneName, RecordFileHeader, RecordFileWriter};
use windtunnel_model::record::kind::{Call, RecordSource};
use windtunnel_model::record::{EventRecord, Kind, flag, words};

const ENGINE: EventSource = EventSource::of_machine(RecordSource::Engine, 0);
const CLIENT: EventSource = EventSource::of_node(RecordSource::Calls, 0, 0);
const MS: u64 = 1_000_000;

/// A run folder in which `client` wrote 100 bytes to `server`, which got them 41 ms later; the
/// packet with the second write was lost and came again.
struct Run {
    folder: tempfile::TempDir,
    writer: RecordFileWriter,
}

impl Run {
    fn new() -> Run {
        let lane = |from: &str, to: &str| LaneName {
            link: "wire".to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
        };
        let header = RecordFileHeader {
            run: "demo".to_owned(),
            origin_unix_ns: 1_700_000_000_000_000_000,
            nodes: vec!["client".to_owned(), "server".to_owned()],
            addresses: vec![vec![IpAddr::from([10, 0, 0, 1])], vec![IpAddr::from([10, 0, 0, 2])]],
            lanes: vec![lane("client", "server"), lane("server", "client")],
            drop_reasons: vec!["down".to_owned(), "loss".to_owned()],
            layers: vec!["engine".to_owned(), "calls".to_owned()],
            ..RecordFileHeader::new("windtunnel test")
        };
        let run =
            Run { folder: tempfile::tempdir().unwrap(), writer: RecordFileWriter::new(header) };
        fs::create_dir(run.path().join("records")).unwrap();
        run
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn file(&self, part: u32) -> PathBuf {
        self.path().join(format!("records/{part:04}.wtr"))
    }

    /// A file of these records.
    fn write(&mut self, part: u32, batches: &[(EventSource, Vec<EventRecord>)]) {
        let mut bytes = Vec::new();
        self.writer.begin(1, &mut bytes);
        fs::write(self.file(part), bytes).unwrap();
        self.append(part, batches);
    }

    fn append(&mut self, part: u32, batches: &[(EventSource, Vec<EventRecord>)]) {
        let mut bytes = Vec::new();
        for (source, records) in batches {
            self.writer.add(records.last().unwrap().time, *source, records, &mut bytes);
        }
        let mut file = fs::OpenOptions::new().append(true).open(self.file(part)).unwrap();
        file.write_all(&bytes).unwrap();
    }

    fn conversation() -> Run {
        let mut run = Run::new();
        run.write(1, &[(CLIENT, calls()), (ENGINE, packets())]);
        run
    }

    fn records(&self, task: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windtunnel"));
        command.args(["records", task]).arg(self.path()).args(arguments).stdin(Stdio::null());
        command
    }

    /// What a task that succeeds writes.
    fn output(&self, task: &str, arguments: &[&str]) -> String {
        let output = self.records(task, arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

fn define(time: u64) -> [EventRecord; 2] {
    let half = |kind: Kind, flags: u8, extra: u16, host: u8| {
        let address = std::net::Ipv4Addr::new(10, 0, 0, host).to_ipv6_mapped().octets();
        EventRecord { time, kind: kind as u8, flags, extra, flow: 1, args: words(address) }
    };
    [half(Kind::FlowFrom, 6, 4000, 1), half(Kind::FlowTo, 0, 80, 2)]
}

fn calls() -> Vec<EventRecord> {
    let call = |time, call: Call, args| EventRecord {
        time,
        kind: Kind::Call as u8,
        extra: call as u16,
        flow: 1,
        args,
        ..EventRecord::default()
    };
    let mut calls = define(MS).to_vec();
    calls.push(call(MS, Call::Connect, [0, 0, 0, 80_000_000]));
    calls.push(call(90 * MS, Call::Write, [0, 60, 60, 4000]));
    calls.push(call(91 * MS, Call::Write, [60, 40, 40, 4000]));
    calls
}

fn packets() -> Vec<EventRecord> {
    let packet = |time, kind: Kind, flags, args| EventRecord {
        time,
        kind: kind as u8,
        flags,
        extra: 1,
        flow: 1,
        args,
    };
    let mut packets = define(2 * MS).to_vec();
    let sequences = [1000, 5000, 0, 0];
    let sequence = EventRecord {
        flags: 3,
        args: sequences,
        ..packet(2 * MS, Kind::FlowSequence, 3, sequences)
    };
    packets.push(sequence);
    packets.push(packet(2 * MS, Kind::Offered, flag::SYN, [0, 0, 0, 0]));
    packets.push(packet(42 * MS, Kind::Delivered, flag::SYN, [0, 0, 0, 40_000_000]));
    for (at, offset, length) in [(90, 0, 60), (91, 60, 40), (300, 60, 40)] {
        packets.push(packet(at * MS, Kind::Offered, flag::ACK, [offset, length, 0, 0]));
        if at == 91 {
            packets.push(packet(at * MS, Kind::Dropped, flag::ACK, [offset, length, 0, 1]));
            continue;
        }
        packets.push(packet(at * MS, Kind::Sent, flag::ACK, [offset, length, 0, 1_000_000]));
        let delivered = [offset, length, 0, 40_000_000];
        packets.push(packet((at + 41) * MS, Kind::Delivered, flag::ACK, delivered));
    }
    packets
}

#[test]
fn show_has_a_line_for_each_record_in_order_of_time() {
    let run = Run::conversation();
    let text = run.output("show", &["--kind", "call,dropped"]);
    let expected = "      time [s]  layer   node    flow                       what
   0.001000000  calls   client  0 client:4000 → server:80  connect, 80ms
   0.090000000  calls   client  0 client:4000 → server:80  write 60 of 60 B at 0, 4us
   0.091000000  calls   client  0 client:4000 → server:80  write 40 of 40 B at 60, 4us
   0.091000000  engine  -       0 client:4000 → server:80  dropped client → server [ack] 40 B at 60: loss
";
    assert_eq!(text, expected);
    let text = run.output("show", &["-n", "1", "--from", "100ms"]);
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains("delivered client → server [ack] 60 B at 0, delay 40ms"), "{text}");
    assert_eq!(lines[1], "… and 3 more");
}

#[test]
fn stats_sum_up_and_say_what_was_not_seen() {
    let run = Run::conversation();
    let text = run.output("stats", &[]);
    for part in ["calls         1        3     0", "40B        1", "1 loss", "layer tcp was not"] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let statistics: Value = serde_json::from_str(&run.output("stats", &["--json"])).unwrap();
    let forward = &statistics["flows"][0]["forward"];
    assert_eq!(forward["written_bytes"], 100);
    assert_eq!(forward["resent_bytes"], 40);
    assert_eq!(forward["dropped_packets"], 1);
    assert_eq!(statistics["lanes"][0]["dropped_packets"]["loss"], 1);
    let unseen = statistics["unseen"].to_string();
    assert!(unseen.contains("node server has flows and no calls"), "{unseen}");
}

#[test]
fn a_name_that_no_record_has_is_an_error_that_lists_the_names() {
    let run = Run::conversation();
    for (arguments, hint) in [
        (["--node", "sever"], "there are: client, server"),
        (["--link", "air"], "there are: wire"),
        (["--flow", "7"], "there are: 0"),
    ] {
        let output = run.records("show", &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let talk = String::from_utf8(output.stderr).unwrap();
        assert!(talk.contains(hint), "{talk}");
    }
}

#[test]
fn a_run_without_records_says_how_to_make_them() {
    let folder = tempfile::tempdir().unwrap();
    let run = Run { folder, writer: RecordFileWriter::new(RecordFileHeader::new("test")) };
    let output = run.records("show", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let talk = String::from_utf8(output.stderr).unwrap();
    assert!(talk.contains("hint: `windtunnel run --record` makes them"), "{talk}");
}

#[test]
fn an_export_goes_to_a_new_file_or_to_standard_output() {
    let run = Run::conversation();
    let file = run.path().join("out.csv");
    let path = file.to_str().unwrap();
    assert_eq!(run.output("export", &["--format", "csv", "-o", path]), "");
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written, run.output("export", &["--format", "csv"]));
    assert_eq!(written.lines().count(), 14, "{written}");
    let again = run.records("export", &["--format", "csv", "-o", path]).output().unwrap();
    assert_eq!(again.status.code(), Some(2));
    let lines = run.output("export", &["--format", "jsonl", "--layer", "calls"]);
    let calls =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["call"].clone());
    assert_eq!(calls.collect::<Vec<_>>(), ["connect", "write", "write"]);
    let trace: Value =
        serde_json::from_str(&run.output("export", &["--format", "perfetto"])).unwrap();
    assert!(trace["traceEvents"].as_array().unwrap().len() > 10);
    for format in ["parquet", "pcapng"] {
        let output = run.records("export", &["--format", format]).output().unwrap();
        assert!(output.status.success() && output.stdout.len() > 300, "{format}");
    }
}

/// What tshark reads in a capture: a line for each packet with these fields.
fn tshark(file: &Path, fields: &[&str]) -> Option<String> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(file).args(["-T", "fields", "-E", "separator=|"]);
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    match command.output() {
        Ok(output) => {
            let talk = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{talk}");
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "tshark: {error}");
            eprintln!("skipped: tshark is missing (apt-get install tshark)");
            None
        }
    }
}

#[test]
fn tshark_reads_packets_with_nanoseconds_interfaces_sequence_numbers_and_drops() {
    let run = Run::conversation();
    let file = run.path().join("wire.pcapng");
    let path = file.to_str().unwrap();
    run.output("export", &["--format", "pcapng", "--link", "wire", "--points", "all", "-o", path]);
    let fields = [
        "frame.time_epoch",
        "frame.interface_name",
        "frame.len",
        "frame.cap_len",
        "ip.src",
        "tcp.dstport",
        "tcp.seq_raw",
        "tcp.flags.str",
        "frame.comment",
    ];
    let Some(text) = tshark(&file, &fields) else { return };
    let at = |ns: u64| format!("1700000000.{ns:09}");
    let line = |ns: u64, point: &str, length: u32, sequence: u32, flags: &str, comment: &str| {
        let at = at(ns);
        format!(
            "{at}|wire client-server {point}|{}|54|10.0.0.1|80|{sequence}|{flags}|{comment}",
            54 + length
        )
    };
    let (syn, ack) = ("··········S·", "·······A····");
    let expected = [
        line(2 * MS, "offered", 0, 1000, syn, ""),
        line(42 * MS, "delivered", 0, 1000, syn, ""),
        line(90 * MS, "offered", 60, 1001, ack, ""),
        line(91 * MS, "offered", 40, 1061, ack, ""),
        line(91 * MS, "dropped", 40, 1061, ack, "dropped: loss"),
        line(131 * MS, "delivered", 60, 1001, ack, ""),
        line(300 * MS, "offered", 40, 1061, ack, ""),
        line(341 * MS, "delivered", 40, 1061, ack, ""),
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    let export = |more: &[&str]| {
        run.output("export", &[&["--format", "pcapng", "--force", "-o", path], more].concat());
        tshark(&file, &fields).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    // As a capture at the client, which shows nothing sent again but what was.
    let sent = [&expected[0], &expected[2], &expected[3], &expected[6]];
    assert_eq!(export(&[]), sent.map(String::clone));
    assert_eq!(export(&["--link", "wire"]), sent.map(String::clone));
    assert_eq!(export(&["--kind", "dropped"]), [expected[4].clone()]);
    run.output("export", &["--format", "pcapng", "--node", "server", "--force", "-o", path]);
    let text = tshark(&file, &["frame.interface_name", "frame.interface_description"]).unwrap();
    let delivered =
        "wire client-server delivered|link wire, from client to server: packets delivered";
    assert_eq!(text.lines().collect::<Vec<_>>(), [delivered; 3]);
}

#[test]
fn follow_gives_records_as_files_grow_and_ends_with_the_run() {
    let mut run = Run::new();
    // The socket makes it a live run.
    let socket = UnixListener::bind(run.path().join("control.sock")).unwrap();
    let mut child = run
        .records("follow", &["--json", "--kind", "call,lost"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let calls = calls();
    run.write(1, &[(CLIENT, calls[..3].to_vec()), (ENGINE, packets())]);
    let line = next();
    assert_eq!((&line["call"], &line["from"]), (&"connect".into(), &"client:4000".into()));
    run.append(1, &[(CLIENT, calls[3..4].to_vec())]);
    assert_eq!(next()["time_ns"], 90 * MS);
    // A file that is not there when it would be read.
    let mut missing = Vec::new();
    run.writer.begin(2, &mut missing);
    run.writer.add(3, CLIENT, &[calls[3], calls[3]], &mut missing);
    run.write(3, &[(CLIENT, calls[4..].to_vec())]);
    let lost = next();
    assert_eq!((&lost["kind"], &lost["count"]), (&"lost".into(), &2.into()));
    assert_eq!(next()["offset"], 60);
    drop(socket);
    assert!(lines.next().is_none());
    assert!(child.wait().unwrap().success());
}

#[test]
fn follow_gives_rates_of_intervals() {
    let run = Run::conversation();
    let text = run.output("follow", &["--every", "100ms"]);
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |kind: &str, field: &str| -> Vec<(u64, u64)> {
        let lines = lines.iter().filter(|line| line["kind"] == kind);
        lines
            .map(|line| (line["begin_ns"].as_u64().unwrap() / MS, line[field].as_u64().unwrap()))
            .collect()
    };
    assert_eq!(of("flow_rate", "written_bytes"), [(0, 100), (100, 0), (300, 0)]);
    assert_eq!(of("lane_rate", "delivered_bytes"), [(0, 0), (100, 60), (300, 40)]);
    assert_eq!(of("lane_rate", "dropped_packets"), [(0, 1), (100, 0), (300, 0)]);
    assert_eq!(of("lane_rate", "delay_ns_max"), [(0, 40 * MS), (100, 40 * MS), (300, 40 * MS)]);
}

#[test]
fn a_slow_reader_of_follow_holds_up_neither_the_files_nor_another_reader() {
    let mut run = Run::conversation();
    let socket = UnixListener::bind(run.path().join("control.sock")).unwrap();
    // Nothing is read of it until the end.
    let mut slow = run.records("follow", &[]).stdout(Stdio::piped()).spawn().unwrap();
    let record = packets()[3];
    run.append(1, &[(ENGINE, vec![record; 20_000])]);
    let mut quick =
        run.records("follow", &["--every", "1s"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(socket);
    assert!(quick.wait().unwrap().success(), "while the slow one stands still");
    let lines = BufReader::new(slow.stdout.take().unwrap()).lines().count();
    assert_eq!(lines, 20_013, "late, and complete");
    assert!(slow.wait().unwrap().success());
}
