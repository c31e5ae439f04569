use proptest::prelude::*;
use windtunnel_model::record::kind::RecordSource;
use windtunnel_model::record::{BYTES, EventRecord, Kind, halves};

use super::{
    EventSource, FileError, RecordFileElement, RecordFileHeader, RecordFileReader, RecordFileWriter,
};

const SOURCE: EventSource = EventSource::of_node(RecordSource::Calls, 3, 1);

fn event(time: u64) -> EventRecord {
    EventRecord { time, kind: Kind::Call as u8, flow: 1, ..EventRecord::default() }
}

fn definition(flow: u32) -> EventRecord {
    EventRecord { time: 1, kind: Kind::FlowFrom as u8, flow, ..EventRecord::default() }
}

fn lost(count: u64) -> EventRecord {
    let [low, high] = halves(count);
    EventRecord {
        time: 9,
        kind: Kind::Lost as u8,
        args: [0, 0, low, high],
        ..EventRecord::default()
    }
}

fn items(reader: &mut RecordFileReader, bytes: &[u8]) -> Vec<RecordFileElement> {
    let mut items = Vec::new();
    reader.read(bytes, |_, item| items.push(item)).unwrap();
    items
}

#[test]
fn a_record_is_32_bytes_little_endian_in_the_order_of_the_documentation() {
    let record = EventRecord {
        time: 0x0102_0304_0506_0708,
        kind: 0x10,
        flags: 0x81,
        extra: 0x1122,
        flow: 0x3344_5566,
        args: [1, 2, 3, 0xffff_fffe],
    };
    let expected = [
        8, 7, 6, 5, 4, 3, 2, 1, 0x10, 0x81, 0x22, 0x11, 0x66, 0x55, 0x44, 0x33, 1, 0, 0, 0, 2, 0,
        0, 0, 3, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff,
    ];
    assert_eq!(record.to_bytes(), expected);
    assert_eq!(EventRecord::from_bytes(&expected), record);
}

#[test]
fn a_second_file_repeats_definitions_and_can_be_read_alone() {
    let mut writer = RecordFileWriter::new(RecordFileHeader::new("test 1"));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    writer.begin(5, &mut first);
    writer.add(6, SOURCE, &[definition(7), event(6)], &mut first);
    writer.begin(8, &mut second);
    writer.add(9, SOURCE, &[event(9)], &mut second);
    let alone = items(&mut RecordFileReader::new(), &second);
    assert_eq!(
        alone,
        [
            RecordFileElement::Repeated(SOURCE, definition(7)),
            RecordFileElement::Gap { source: SOURCE, events: 2 },
            RecordFileElement::Record(SOURCE, event(9)),
        ]
    );
    let mut reader = RecordFileReader::new();
    let both = [items(&mut reader, &first), items(&mut reader, &second)].concat();
    assert!(!both.iter().any(|item| matches!(item, RecordFileElement::Gap { .. })), "{both:?}");
    assert_eq!(reader.events()[&SOURCE], 3);
}

#[test]
fn lost_events_are_part_of_the_count_and_missing_ones_are_a_gap() {
    let mut writer = RecordFileWriter::new(RecordFileHeader::new("test 1"));
    let (mut out, mut missing) = (Vec::new(), Vec::new());
    writer.begin(5, &mut out);
    writer.add(6, SOURCE, &[event(6), lost(10)], &mut out);
    writer.add(7, SOURCE, &[event(7), event(8)], &mut missing);
    writer.add(9, SOURCE, &[event(9)], &mut out);
    let items = items(&mut RecordFileReader::new(), &out);
    assert_eq!(items[2], RecordFileElement::Gap { source: SOURCE, events: 2 });
    assert_eq!(writer.events(), 14);
}

#[test]
fn unknown_kinds_longer_records_and_new_keys_of_a_later_version_are_read_over() {
    let mut bytes = RecordFileHeader::new("later").to_bytes(1);
    let json = br#"{"program":"x","run":"","plan":"","clock":"","origin_ns":0,"origin_unix_ns":0,
        "part":1,"layers":[],"nodes":[],"lanes":[],"drop_reasons":[],"kinds":[],"new":{"a":1}}"#;
    bytes.truncate(32);
    bytes.extend(json);
    bytes.resize(bytes.len().next_multiple_of(32), b' ');
    let length = u32::try_from(bytes.len()).unwrap();
    bytes[16..20].copy_from_slice(&40u32.to_le_bytes());
    bytes[20..24].copy_from_slice(&length.to_le_bytes());
    let unknown = EventRecord { time: 3, kind: 0xf7, ..EventRecord::default() };
    let batch = EventRecord {
        kind: Kind::Batch as u8,
        flags: SOURCE.layer,
        extra: SOURCE.instance,
        flow: SOURCE.node,
        args: [0, 0, 1, 0],
        ..unknown
    };
    for record in [batch, unknown] {
        bytes.extend(record.to_bytes());
        bytes.extend([0xaa; 8]);
    }
    assert_eq!(
        items(&mut RecordFileReader::new(), &bytes),
        [RecordFileElement::Record(SOURCE, unknown)]
    );
}

#[test]
fn what_is_no_file_of_records_says_why() {
    let read = |bytes: &[u8]| RecordFileReader::new().read(bytes, |_, _| {}).unwrap_err();
    let good = RecordFileHeader::new("test").to_bytes(1);
    assert_eq!(read(b"pcap"), FileError::NotRecords);
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        read(&bytes)
    };
    assert_eq!(changed(0, b'w'), FileError::NotRecords);
    assert_eq!(changed(8, 2), FileError::Version(2));
    assert_eq!(changed(12, 1), FileError::ByteOrder);
    assert!(matches!(changed(16, 8), FileError::Header(_)));
    assert!(matches!(changed(23, 0xff), FileError::Header(_)));
    assert!(matches!(changed(32, b'!'), FileError::Header(_)));
}

proptest! {
    /// Whatever happens to a file, reading it neither panics nor makes records up.
    #[test]
    fn any_part_of_a_file_reads_as_the_records_that_were_written_whole(
        batches in prop::collection::vec((0u32..3, 1usize..5), 0..12),
        cut in 0usize..4096,
    ) {
        let mut writer = RecordFileWriter::new(RecordFileHeader::new("test 1"));
        let mut out = Vec::new();
        writer.begin(1, &mut out);
        let head = out.len();
        let mut written = Vec::new();
        for (index, (node, count)) in batches.into_iter().enumerate() {
            let source = EventSource::of_node(RecordSource::Engine, node, 0);
            let time = 1 + index as u64;
            let records = vec![event(time); count];
            writer.add(time, source, &records, &mut out);
            written.extend(records.into_iter().map(|record| RecordFileElement::Record(source, record)));
        }
        let kept = (head + cut).min(out.len());
        let read = items(&mut RecordFileReader::new(), &out[..kept]);
        prop_assert!(written.starts_with(&read));
        prop_assert!(read.len() * BYTES <= kept - head);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut all = RecordFileHeader::new("test").to_bytes(1);
        all.extend(bytes);
        let _ = RecordFileReader::new().read(&all, |_, _| {});
    }
}
