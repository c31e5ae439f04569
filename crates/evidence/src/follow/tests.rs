use windtunnel_model::record::{EventRecord, Kind};

use super::{GrowingRecordFile, RateAccumulator, RecordFileFollower};
use crate::AttributedRecord;
use crate::evidence::tests::{ENGINE, conversation, header, load, packet};
use crate::file::{FlowDirection, RecordFileWriter};
use crate::rows::RecordFormatter;

/// What comes of a file that grows by `step` bytes at a time.
fn followed(bytes: &[u8], step: usize) -> (RecordFileFollower, Vec<AttributedRecord>) {
    let (mut follower, mut file, mut new) =
        (RecordFileFollower::new(), GrowingRecordFile::default(), Vec::new());
    for piece in bytes.chunks(step) {
        follower.push(&mut file, piece, &mut new).unwrap();
    }
    (follower, new)
}

#[test]
fn a_file_that_grows_by_any_bytes_gives_the_records_of_the_whole() {
    let bytes = conversation();
    let whole = load(std::slice::from_ref(&bytes));
    for step in [1, 7, 32, 1000, bytes.len()] {
        let (follower, mut new) = followed(&bytes, step);
        new.sort_by_key(|entry| entry.record.time);
        let records =
            |entries: &[AttributedRecord]| entries.iter().map(|e| e.record).collect::<Vec<_>>();
        assert_eq!(records(&new), records(whole.records()), "{step}");
        let directions = |entries: &[AttributedRecord]| -> Vec<FlowDirection> {
            entries.iter().map(AttributedRecord::direction).collect()
        };
        assert_eq!(directions(&new), directions(whole.records()), "{step}");
        let evidence = follower.evidence();
        assert_eq!(evidence.flows().len(), 1);
        assert_eq!(RecordFormatter::new(evidence).ends(0), ("client:4000", "server:80"));
    }
}

#[test]
fn a_next_file_goes_on_and_a_missing_one_is_a_gap() {
    let mut writer = RecordFileWriter::new(header());
    let mut files = [Vec::new(), Vec::new(), Vec::new()];
    for (time, file) in (1..).zip(&mut files) {
        writer.begin(time, file);
        writer.add(time, ENGINE, &[packet(Kind::Offered, time, 1, 0, [0; 4])], file);
    }
    let (mut follower, mut new) = (RecordFileFollower::new(), Vec::new());
    for file in [&files[0], &files[2]] {
        follower.push(&mut GrowingRecordFile::default(), file, &mut new).unwrap();
    }
    let kinds: Vec<_> = new.iter().filter_map(AttributedRecord::kind).collect();
    assert_eq!(kinds, [Kind::Offered, Kind::Lost, Kind::Offered]);
    assert_eq!(new[1].record.wide(2), 1);
}

#[test]
fn rates_are_those_of_the_interval() {
    let (follower, new) = followed(&conversation(), 4096);
    let evidence = follower.evidence();
    let mut rates = RateAccumulator::default();
    new.iter().for_each(|entry| rates.add(evidence, entry));
    let args = [0, 0, 5, 0];
    let lost = EventRecord { time: 1, kind: Kind::Lost as u8, args, ..EventRecord::default() };
    rates.add(evidence, &AttributedRecord::new(lost, 0));
    let rows = RecordFormatter::new(evidence);
    let (flows, lanes) = rates.take(&rows, 1_000_000);
    let of: Vec<_> = flows
        .iter()
        .map(|flow| (flow.direction, flow.written_bytes, flow.read_bytes, flow.cwnd))
        .collect();
    let expected =
        [(FlowDirection::Forward, 100, 100, Some(10)), (FlowDirection::Reverse, 200, 200, None)];
    assert_eq!(of, expected);
    assert_eq!(flows[1].read_bits_per_second, 1_600_000);
    assert_eq!((lanes[1].delivered_bytes, lanes[1].delay_ns_mean), (200, 100));
    assert_eq!(rates.take_lost(), 5);
    assert_eq!(rates.take(&rows, 1), (Vec::new(), Vec::new()), "taken is taken");
}

#[test]
fn a_file_of_something_else_is_refused_when_it_is_long_enough_to_know() {
    let (mut follower, mut file) = (RecordFileFollower::new(), GrowingRecordFile::default());
    assert!(follower.push(&mut file, b"half a he", &mut Vec::new()).is_ok());
    let more = vec![b'x'; 100];
    assert!(follower.push(&mut file, &more, &mut Vec::new()).is_err());
}
