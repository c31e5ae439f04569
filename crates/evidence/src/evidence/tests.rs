use std::net::{IpAddr, Ipv4Addr};

use windtunnel_model::record::kind::{Call, NO_FLOW, RecordSource};
use windtunnel_model::record::{EventRecord, Kind, flag, halves, words};

use super::{EvidenceLoader, RecordedRun};
use crate::file::{CLOCK, EventSource, LaneName, RecordFileHeader, RecordFileWriter};

pub(crate) const ENGINE: EventSource = EventSource::of_machine(RecordSource::Engine, 0);
pub(crate) const CLIENT: EventSource = EventSource::of_node(RecordSource::Calls, 0, 0);
pub(crate) const SERVER: EventSource = EventSource::of_node(RecordSource::Calls, 1, 0);
pub(crate) const CLIENT_TCP: EventSource = EventSource::of_node(RecordSource::Tcp, 0, 0);

pub(crate) fn header() -> RecordFileHeader {
    let lane = |link: &str, from: &str, to: &str| LaneName {
        link: link.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
    };
    RecordFileHeader {
        run: "test".to_owned(),
        origin_ns: 1000,
        origin_unix_ns: 1_700_000_000_000_000_000,
        nodes: vec!["client".to_owned(), "server".to_owned()],
        addresses: [[10, 0, 0, 1], [10, 0, 0, 2]]
            .map(|address| vec![IpAddr::from(address)])
            .to_vec(),
        lanes: vec![lane("wire", "client", "server"), lane("wire", "server", "client")],
        drop_reasons: vec!["none".to_owned(), "queue".to_owned(), "loss".to_owned()],
        ..RecordFileHeader::new("test 1")
    }
}

/// Both halves of a definition.
pub(crate) fn define(
    time: u64,
    flow: u32,
    protocol: u8,
    from: ([u8; 4], u16),
    to: ([u8; 4], u16),
) -> [EventRecord; 2] {
    let half = |kind: Kind, flags: u8, (address, port): ([u8; 4], u16)| {
        let address = Ipv4Addr::from(address).to_ipv6_mapped().octets();
        EventRecord { time, kind: kind as u8, flags, extra: port, flow, args: words(address) }
    };
    [half(Kind::FlowFrom, protocol, from), half(Kind::FlowTo, 0, to)]
}

pub(crate) fn socket(time: u64, flow: u32, cookie: u64) -> EventRecord {
    let [low, high] = halves(cookie);
    let args = [low, high, 77, 5];
    EventRecord { time, kind: Kind::FlowSocket as u8, flow, args, ..EventRecord::default() }
}

pub(crate) fn sequence(time: u64, flow: u32, forward: u32) -> EventRecord {
    let args = [forward, 0, 0, 0];
    EventRecord {
        time,
        kind: Kind::FlowSequence as u8,
        flags: 1,
        flow,
        args,
        ..EventRecord::default()
    }
}

pub(crate) fn call(time: u64, flow: u32, call: Call, reverse: bool, args: [u32; 4]) -> EventRecord {
    let flags = if reverse { flag::REVERSE } else { 0 };
    EventRecord { time, kind: Kind::Call as u8, flags, extra: call as u16, flow, args }
}

pub(crate) fn packet(kind: Kind, time: u64, flow: u32, flags: u8, args: [u32; 4]) -> EventRecord {
    EventRecord { time, kind: kind as u8, flags, extra: 1, flow, args }
}

/// One file of these batches.
pub(crate) fn file(
    header: RecordFileHeader,
    batches: &[(EventSource, Vec<EventRecord>)],
) -> Vec<u8> {
    let (mut writer, mut bytes) = (RecordFileWriter::new(header), Vec::new());
    writer.begin(1, &mut bytes);
    for (source, records) in batches {
        let now = records.iter().map(|record| record.time).max().unwrap_or(1);
        writer.add(now, *source, records, &mut bytes);
    }
    bytes
}

pub(crate) fn load(files: &[Vec<u8>]) -> RecordedRun {
    let mut loader = EvidenceLoader::new();
    files.iter().for_each(|file| loader.add(file).unwrap());
    loader.finish().unwrap()
}

/// A request of 100 bytes and its answer of 200 between `client:4000` and `server:80`, seen by the
/// programs' calls, the client's TCP and the engine; each numbers the flow for itself.
pub(crate) fn conversation() -> Vec<u8> {
    const A: ([u8; 4], u16) = ([10, 0, 0, 1], 4000);
    const B: ([u8; 4], u16) = ([10, 0, 0, 2], 80);
    let mut client = define(2000, 1, 6, A, B).to_vec();
    client.push(socket(2000, 1, 0xc11e));
    client.push(call(1900, 1, Call::Connect, false, [0, 0, 0, 300]));
    client.push(call(2300, 1, Call::Write, false, [0, 100, 100, 20]));
    client.push(call(2400, 1, Call::Read, true, [0, 4096, 200, 700]));
    let mut server = define(2250, 1, 6, B, A).to_vec();
    server.push(socket(2250, 1, 0x5e4e));
    server.push(call(1500, 1, Call::Accept, false, [0, 0, 9, 750]));
    server.push(call(2260, 1, Call::Read, true, [0, 4096, 100, 300]));
    server.push(call(2700, 1, Call::Write, false, [0, 200, 200, 20]));
    let mut engine = define(1950, 40, 6, A, B).to_vec();
    engine.push(sequence(1950, 40, 12345));
    let syn = flag::SYN;
    engine.push(packet(Kind::Offered, 1950, 40, syn, [0, 0, 0, 0]));
    let back = flag::REVERSE | flag::ACK;
    for (at, flags, length, lane) in [(2320, flag::ACK, 100, 0), (2720, back, 200, 1)] {
        engine.push(packet(Kind::Offered, at, 40, flags, [0, length, lane, 0]));
        engine.push(packet(Kind::Sent, at + 10, 40, flags, [0, length, lane, 30]));
        engine.push(packet(Kind::Delivered, at + 140, 40, flags, [0, length, lane, 100]));
    }
    let mut tcp = define(2100, 9, 6, A, B).to_vec();
    tcp.push(socket(2100, 9, 0xc11e));
    tcp.push(packet(Kind::TcpWindows, 2100, 9, 0, [10, 20, 300, 200_000]));
    file(header(), &[(CLIENT, client), (SERVER, server), (ENGINE, engine), (CLIENT_TCP, tcp)])
}

#[test]
fn records_of_all_sources_are_in_order_of_time() {
    let evidence = load(&[conversation()]);
    let times: Vec<u64> = evidence.records().iter().map(|entry| entry.record.time).collect();
    assert!(times.is_sorted());
    assert_eq!(times.len(), 14);
    assert_eq!(times[0], 1500, "a call's time is its begin");
    assert_eq!(evidence.origins().len(), 4);
    assert_eq!(evidence.origin_ns(), 1000);
}

#[test]
fn a_members_clock_offset_is_added_to_its_times() {
    let engine = |time| vec![packet(Kind::Offered, time, 1, 0, [0; 4])];
    let of = |name: &str, clock_offset_ns| RecordFileHeader {
        member: Some(name.to_owned()),
        clock_offset_ns,
        ..header()
    };
    let lost = {
        let args = [40, 0, 3, 0];
        EventRecord { time: 50, kind: Kind::Lost as u8, args, ..EventRecord::default() }
    };
    let a = file(of("a", 0), &[(ENGINE, engine(10_000))]);
    let b = file(of("b", 1_000_000), &[(ENGINE, vec![engine(9_000)[0], lost])]);
    let evidence = load(&[b, a]);
    let seen: Vec<_> = evidence.records().iter().map(|e| (e.record.time, e.origin())).collect();
    assert_eq!(seen, [(10_000, 0), (1_000_050, 1), (1_009_000, 1)]);
    assert_eq!(evidence.records()[1].record.wide(0), 1_000_040, "the begin of the gap, too");
}

#[test]
fn times_are_shifted_by_what_is_known_of_a_members_clock_then() {
    let clock = |time, ahead: i64| {
        let [low, high] = halves(ahead.cast_unsigned());
        let args = [low, high, 0, 0];
        EventRecord { time, kind: Kind::Clock as u8, flow: NO_FLOW, args, ..EventRecord::default() }
    };
    let of = |time| packet(Kind::Offered, time, 1, 0, [0; 4]);
    let header = RecordFileHeader { member: Some("b".to_owned()), origin_ns: 500_000, ..header() };
    let batches = [
        (ENGINE, vec![of(600_000), of(1_500_000), of(2_500_000)]),
        (CLOCK, vec![clock(1_000_000, -1000), clock(2_000_000, 3000)]),
    ];
    let bytes = file(header, &batches);
    let evidence = load(std::slice::from_ref(&bytes));
    let times: Vec<u64> = evidence.records().iter().map(|entry| entry.record.time).collect();
    assert_eq!(times, [599_000, 1_501_000, 2_503_000], "between two, on a line");
    assert_eq!(evidence.origin_ns(), 499_000);
}

#[test]
fn events_of_a_file_that_is_missing_are_a_lost_record() {
    let mut writer = RecordFileWriter::new(header());
    let mut files = [Vec::new(), Vec::new(), Vec::new()];
    for (time, file) in (1..).map(|part| part * 1000).zip(&mut files) {
        writer.begin(time, file);
        let records = [time, time + 1].map(|at| packet(Kind::Offered, at, 1, 0, [0; 4]));
        writer.add(time, ENGINE, &records, file);
    }
    let [first, _, third] = files;
    let evidence = load(&[third, first]);
    let lost: Vec<_> = evidence
        .records()
        .iter()
        .filter(|entry| entry.kind() == Some(Kind::Lost))
        .map(|entry| (entry.record.wide(0), entry.record.time, entry.record.wide(2)))
        .collect();
    assert_eq!(lost, [(1001, 3000, 2)]);
    assert_eq!(evidence.members()[0].missing, [2]);
    assert_eq!(evidence.events(0), 6, "records and lost are all events");
}

#[test]
fn nothing_makes_no_evidence() {
    let evidence = EvidenceLoader::new().finish().unwrap();
    assert!(evidence.records().is_empty() && evidence.flows().is_empty());
    assert_eq!(evidence.origin_ns(), 0);
}
