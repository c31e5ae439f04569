use std::collections::{BTreeMap, BTreeSet};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Value, json};
use windtunnel_model::record::Kind;

use super::{
    CaptureLocation, CapturePointSelection, csv, json_lines, packets, parquet as write_parquet,
    timeline,
};
use crate::RecordedRun;
use crate::evidence::tests::{ENGINE, conversation, file, header, load, packet};
use crate::rows::columns;

fn conversation_with_a_drop() -> RecordedRun {
    let mut records = vec![packet(Kind::Offered, 1960, 40, 0, [100, 50, 0, 0])];
    records.push(packet(Kind::Dropped, 1960, 40, 0, [100, 50, 0, 2]));
    let second =
        crate::file::RecordFileHeader { member: Some("second, \"far\"".to_owned()), ..header() };
    load(&[conversation(), file(second, &[(ENGINE, records)])])
}

fn lines(evidence: &RecordedRun) -> Vec<BTreeMap<String, Value>> {
    let mut text = Vec::new();
    json_lines(evidence, evidence.records().iter(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_json_line_has_the_fields_of_its_record() {
    let lines = lines(&load(&[conversation()]));
    assert_eq!(lines.len(), 14);
    let syn = lines.iter().find(|line| line.get("flags") == Some(&json!("syn"))).unwrap();
    let expected = json!({
        "time_ns": 950, "clock_ns": 1950, "layer": "engine", "instance": 0, "kind": "offered",
        "flow": 0, "protocol": "tcp", "from": "client:4000", "to": "server:80",
        "direction": "forward", "flags": "syn", "link": "wire", "lane_from": "client",
        "lane_to": "server", "segments": 1, "offset": 0, "length": 0, "ack": 0,
    });
    assert_eq!(json!(syn), expected);
}

/// RFC 4180: a quote inside quotes is doubled.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => cell.extend(rest.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells
}

#[test]
fn csv_says_the_same_as_json_lines() {
    let evidence = conversation_with_a_drop();
    let mut text = Vec::new();
    csv(&evidence, evidence.records().iter(), &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let mut rows = text.lines().map(cells);
    let names = rows.next().unwrap();
    let rows: Vec<BTreeMap<String, String>> = rows
        .map(|cells| {
            assert_eq!(cells.len(), names.len());
            let pairs = names.iter().cloned().zip(cells);
            pairs.filter(|(_, cell)| !cell.is_empty()).collect()
        })
        .collect();
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let expected: Vec<BTreeMap<String, String>> = lines(&evidence)
        .iter()
        .map(|line| line.iter().map(|(name, value)| (name.clone(), plain(value))).collect())
        .collect();
    assert_eq!(rows, expected);
    assert!(rows.iter().any(|row| row.get("member").is_some_and(|m| m == "second, \"far\"")));
}

/// As Arrow's reader of Parquet sees the file.
fn read_parquet(bytes: Vec<u8>) -> Vec<BTreeMap<String, Value>> {
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let names: Vec<String> = reader
        .metadata()
        .file_metadata()
        .schema()
        .get_fields()
        .iter()
        .map(|f| f.name().to_owned())
        .collect();
    assert_eq!(names, columns().iter().map(|column| column.name).collect::<Vec<_>>());
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        let fields = row.get_column_iter().filter_map(|(name, field)| {
            let value = match field {
                Field::Null => return None,
                Field::Long(number) => json!(number),
                Field::Str(text) => json!(text),
                other => panic!("{name}: {other:?}"),
            };
            Some((name.clone(), value))
        });
        fields.collect()
    });
    rows.collect()
}

#[test]
fn parquet_says_the_same_as_json_lines_to_arrows_reader() {
    let evidence = conversation_with_a_drop();
    let mut bytes = Vec::new();
    write_parquet(&evidence, evidence.records().iter(), &mut bytes).unwrap();
    assert_eq!(read_parquet(bytes), lines(&evidence));
}

#[test]
fn parquet_of_more_rows_than_a_group_says_the_same() {
    let rows = 211;
    let record = |at: usize| {
        let number = u32::try_from(at).unwrap();
        let lane = u32::from(number.is_multiple_of(3));
        packet(Kind::Offered, at as u64 + 1, number % 5, 0, [number, number * 3, lane, 0])
    };
    let evidence = load(&[file(header(), &[(ENGINE, (0..rows).map(record).collect())])]);
    let mut bytes = Vec::new();
    super::parquet::in_groups(100, &evidence, evidence.records().iter(), &mut bytes).unwrap();
    let read = read_parquet(bytes);
    assert_eq!(read.len(), rows);
    assert!(read == lines(&evidence));
}

#[test]
fn parquet_without_rows_is_a_file_without_rows() {
    let evidence = load(&[file(header(), &[])]);
    let mut bytes = Vec::new();
    write_parquet(&evidence, evidence.records().iter(), &mut bytes).unwrap();
    assert!(read_parquet(bytes).is_empty());
}

#[test]
fn a_timeline_is_in_order_and_each_slice_and_arrow_has_its_end() {
    let evidence = conversation_with_a_drop();
    let mut text = Vec::new();
    timeline(&evidence, evidence.records().iter(), &mut text).unwrap();
    let trace: Value = serde_json::from_slice(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let times: Vec<f64> = events.iter().filter_map(|event| event["ts"].as_f64()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let mut spans: BTreeMap<(u64, u64), i32> = BTreeMap::new();
    let mut busy: BTreeMap<(u64, u64), f64> = BTreeMap::new();
    let mut named = BTreeSet::new();
    for event in events {
        let number = |key: &str| event[key].as_u64().unwrap_or_else(|| panic!("{key}: {event}"));
        let place = (number("pid"), number("tid"));
        match event["ph"].as_str().unwrap() {
            "M" => assert!(named.insert(place)),
            "b" => assert_eq!(spans.insert((place.0, number("id")), 1), None),
            "e" => *spans.get_mut(&(place.0, number("id"))).unwrap() -= 1,
            "X" => {
                let (begin, length) =
                    (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
                let until = busy.insert(place, begin + length).unwrap_or(f64::MIN);
                assert!(begin >= until - 1e-6, "slices of a thread overlap: {event}");
                assert!(named.contains(&place), "{event}");
            }
            "s" | "t" | "f" | "i" | "C" => {}
            other => panic!("{other}"),
        }
    }
    assert!(!spans.is_empty() && spans.values().all(|open| *open == 0), "{spans:?}");
    let arrows = |phase: &str| {
        let of = events.iter().filter(|event| event["ph"] == phase);
        of.map(|event| event["id"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(arrows("s").len(), 2, "the request and the answer");
    assert_eq!((arrows("s"), arrows("s")), (arrows("t"), arrows("f")));
    let receivers = events.iter().filter(|event| event["ph"] == "f").map(|event| &event["ts"]);
    assert_eq!(receivers.collect::<Vec<_>>(), [1.56, 2.1], "where the calls that receive end");
    let names: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "process_name")
        .filter_map(|event| event["args"]["name"].as_str())
        .collect();
    assert_eq!(names.len(), 5, "{names:?}");
    assert!(names.contains(&"client") && names.contains(&"wire client → server"));
}

#[test]
fn a_pcapng_section_has_blocks_of_whole_words_that_name_their_length_twice() {
    // Two members with two lanes and three points each; 4 offers, 2 deliveries, a drop.
    let link = CaptureLocation::Links(vec!["wire".to_owned()]);
    assert_eq!(
        blocks(&link, CapturePointSelection::All),
        BTreeMap::from([(SECTION, 1), (1, 12), (6, 7)])
    );
}

#[test]
fn a_packet_is_once_in_a_capture_unless_all_points_are_asked_for() {
    let link = CaptureLocation::Links(vec!["wire".to_owned()]);
    assert_eq!(
        blocks(&link, CapturePointSelection::Once),
        BTreeMap::from([(SECTION, 1), (1, 4), (6, 4)])
    );
    assert_eq!(
        blocks(&CaptureLocation::All, CapturePointSelection::Once),
        BTreeMap::from([(SECTION, 1), (1, 4), (6, 4)])
    );
    // Of each member, what the client sends, and the lane by which it would receive.
    let client = CaptureLocation::Nodes(vec!["client".to_owned()]);
    assert_eq!(
        blocks(&client, CapturePointSelection::Once),
        BTreeMap::from([(SECTION, 1), (1, 4), (6, 4)])
    );
    let server = CaptureLocation::Nodes(vec!["server".to_owned()]);
    assert_eq!(
        blocks(&server, CapturePointSelection::Once),
        BTreeMap::from([(SECTION, 1), (1, 4), (6, 2)])
    );
}

const SECTION: u32 = 0x0a0d_0d0a;

/// How many blocks of each type a capture of the conversation has: 1 is an interface, 6 a packet.
fn blocks(place: &CaptureLocation, points: CapturePointSelection) -> BTreeMap<u32, u32> {
    let evidence = conversation_with_a_drop();
    let mut bytes = Vec::new();
    packets(&evidence, evidence.records().iter(), place, points, &mut bytes).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut kinds) = (0, BTreeMap::new());
    while at < bytes.len() {
        let length = word(at + 4) as usize;
        assert!(length.is_multiple_of(4));
        assert_eq!(word(at + length - 4) as usize, length);
        *kinds.entry(word(at)).or_insert(0) += 1;
        at += length;
    }
    kinds
}
