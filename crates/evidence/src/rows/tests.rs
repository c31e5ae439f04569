use std::collections::BTreeMap;

use windtunnel_model::record::kind::Call;
use windtunnel_model::record::{EventRecord, Kind, flag};

use super::{ExportFieldValue, RecordFormatter, columns};
use crate::RecordedRun;
use crate::evidence::tests::{CLIENT, ENGINE, call, conversation, file, header, load, packet};

/// The fields of a record, as text.
fn fields(evidence: &RecordedRun, position: usize) -> BTreeMap<String, String> {
    let rows = RecordFormatter::new(evidence);
    let mut fields = BTreeMap::new();
    rows.fields(&evidence.records()[position], &mut |name, value| {
        let text = match value {
            ExportFieldValue::Number(number) => number.to_string(),
            ExportFieldValue::Signed(number) => number.to_string(),
            ExportFieldValue::Text(text) => text.to_owned(),
        };
        assert_eq!(fields.insert(name.to_owned(), text), None, "{name} comes once");
    });
    fields
}

fn of(expected: &[(&str, &str)]) -> BTreeMap<String, String> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn a_call_has_its_name_and_the_names_of_its_flow() {
    let evidence = load(&[conversation()]);
    let expected = of(&[
        ("time_ns", "1300"),
        ("clock_ns", "2300"),
        ("layer", "calls"),
        ("node", "client"),
        ("instance", "0"),
        ("kind", "call"),
        ("flow", "0"),
        ("protocol", "tcp"),
        ("from", "client:4000"),
        ("to", "server:80"),
        ("direction", "forward"),
        ("call", "write"),
        ("offset", "0"),
        ("asked", "100"),
        ("result", "100"),
        ("duration_ns", "20"),
    ]);
    let position = evidence.records().iter().position(|entry| entry.record.time == 2300).unwrap();
    assert_eq!(fields(&evidence, position), expected);
}

#[test]
fn a_drop_has_its_reason_and_its_link() {
    let args = [5, 1448, 1, 2];
    let drop = packet(Kind::Dropped, 900, 1, flag::ACK | flag::FIN, args);
    let evidence = load(&[file(header(), &[(ENGINE, vec![drop])])]);
    let fields = fields(&evidence, 0);
    let values = ["time_ns", "link", "lane_from", "lane_to", "reason", "flags", "offset"]
        .map(|name| fields[name].as_str());
    assert_eq!(values, ["-100", "wire", "server", "client", "loss", "fin ack", "5"]);
}

#[test]
fn a_call_that_failed_has_its_errno() {
    let failed = call(2000, 1, Call::Connect, false, [0, 0, (-111_i32).cast_unsigned(), 5]);
    let evidence = load(&[file(header(), &[(CLIENT, vec![failed])])]);
    let fields = fields(&evidence, 0);
    assert_eq!((fields["result"].as_str(), fields["errno"].as_str()), ("-111", "111"));
}

#[test]
fn a_kind_of_a_later_version_is_named_as_its_file_names_it() {
    let mut header = header();
    header.kinds.push(crate::file::KindName {
        number: 0x7f,
        name: "novelty".to_owned(),
        arguments: vec![String::new(); 4],
    });
    let record = EventRecord { time: 5, kind: 0x7f, extra: 3, ..EventRecord::default() };
    let evidence = load(&[file(header, &[(ENGINE, vec![record])])]);
    assert_eq!(fields(&evidence, 0)["kind"], "novelty");
}

#[test]
fn every_field_of_every_kind_has_a_column() {
    let columns = columns();
    let records: Vec<EventRecord> = Kind::ALL
        .iter()
        .map(|kind| EventRecord { time: 1, kind: *kind as u8, extra: 17, ..EventRecord::default() })
        .filter(|record| record.kind != Kind::Batch as u8)
        .collect();
    let evidence = load(&[file(header(), &[(ENGINE, records)])]);
    for position in 0..evidence.records().len() {
        for (name, value) in fields(&evidence, position) {
            let column = columns.iter().find(|column| column.name == name);
            let column = column.unwrap_or_else(|| panic!("no column {name}"));
            assert_eq!(column.is_text, value.parse::<i64>().is_err(), "{name}: {value}");
        }
    }
}
