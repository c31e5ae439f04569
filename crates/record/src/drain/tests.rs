use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use windtunnel_evidence::file::{RecordFileElement, RecordFileReader};
use windtunnel_model::plan::{Node, NodeInterface};
use windtunnel_model::record::kind::{MACHINE, RecordSource};
use windtunnel_model::record::{Kind, flag, halves, words};
use windtunnel_model::{LinkDirection, LinkId, NodeId, Plan, PortId};

use super::*;

const CALLS: EventSource = EventSource::of_node(RecordSource::Calls, 0, 0);
const ENGINE: EventSource =
    EventSource { layer: RecordSource::Engine as u8, node: MACHINE, instance: 0 };

/// A source with so many events, of which some were lost.
struct Script {
    source: EventSource,
    records: std::collections::VecDeque<EventRecord>,
}

impl RecordFeed for Script {
    fn source(&self) -> EventSource {
        self.source
    }

    fn take(&mut self, most: usize, records: &mut Vec<EventRecord>) {
        let count = most.min(self.records.len());
        records.extend(self.records.drain(..count));
    }

    fn fill(&self) -> (u64, u64) {
        (self.records.len() as u64, 1 << 20)
    }
}

fn event(time: u64) -> EventRecord {
    EventRecord { time, kind: Kind::Call as u8, flow: 1, ..EventRecord::default() }
}

fn lost(begin: u64, time: u64, count: u64) -> EventRecord {
    let ([a, b], [c, d]) = (halves(begin), halves(count));
    EventRecord { time, kind: Kind::Lost as u8, args: [a, b, c, d], ..EventRecord::default() }
}

fn definition(kind: Kind, flow: u32, address: &str, port: u16) -> EventRecord {
    let address = address.parse::<std::net::Ipv4Addr>().unwrap().to_ipv6_mapped();
    let args = words(address.octets());
    EventRecord { time: 1, kind: kind as u8, flags: 6, extra: port, flow, args }
}

fn flow(number: u32, from: (&str, u16), to: (&str, u16)) -> [EventRecord; 2] {
    [
        definition(Kind::FlowFrom, number, from.0, from.1),
        definition(Kind::FlowTo, number, to.0, to.1),
    ]
}

const LIMITS: RecordFileLimits = RecordFileLimits { max: 1 << 40, rotate: 1 << 40, keep: None };

fn setup(
    folder: &Path,
    limits: RecordFileLimits,
    filter: RecordDrainFilter,
) -> RecordDrainSettings {
    RecordDrainSettings {
        folder: folder.to_owned(),
        prefix: String::new(),
        header: RecordFileHeader::new("test 1"),
        limits,
        filter,
        homes: CallRecordingScope::default(),
        anonymity: None,
        interval: Duration::from_millis(1),
    }
}

/// All files that are there, read in their order.
fn read(folder: &Path) -> (Vec<(EventSource, EventRecord)>, u64) {
    let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
    names.sort();
    let (mut reader, mut records, mut gaps) = (RecordFileReader::new(), Vec::new(), 0);
    for name in names {
        let bytes = fs::read(name).unwrap();
        let each = |_: &RecordFileHeader, item| match item {
            RecordFileElement::Record(source, record) => records.push((source, record)),
            RecordFileElement::Gap { events, .. } => gaps += events,
            RecordFileElement::Repeated(..) => {}
            RecordFileElement::Stray(record) => panic!("stray {record:?}"),
        };
        reader.read(&bytes, each).unwrap();
    }
    (records, gaps)
}

fn counted(records: &[(EventSource, EventRecord)]) -> (u64, u64) {
    let is_lost = |record: &EventRecord| record.kind == Kind::Lost as u8;
    let lost = records.iter().filter(|(_, record)| is_lost(record)).map(|(_, it)| it.wide(2));
    (records.iter().filter(|(_, record)| !is_lost(record)).count() as u64, lost.sum())
}

fn files(folder: &Path, limits: RecordFileLimits) -> RotatingRecordFiles {
    let mut files = RotatingRecordFiles::new(
        folder.to_owned(),
        String::new(),
        RecordFileHeader::new("test 1"),
        limits,
    );
    files.open(1).unwrap();
    files
}

#[test]
fn what_sources_leave_is_in_the_file_with_what_they_lost() {
    let folder = tempfile::tempdir().unwrap();
    let records = [event(5), event(6), lost(7, 9, 40), event(10)].into();
    let feed = Box::new(Script { source: CALLS, records });
    let drain =
        RecordDrain::start(setup(folder.path(), LIMITS, RecordDrainFilter::default()), vec![feed])
            .unwrap();
    let engine = Script { source: ENGINE, records: (0..100_000).map(|n| event(n + 1)).collect() };
    drain.add(Box::new(engine));
    drain.flush();
    let status = drain.status();
    assert_eq!((status.events(), status.lost()), (100_043, 40));
    assert_eq!(drain.finish().records(), 100_003);
    let (records, gaps) = read(folder.path());
    assert_eq!((counted(&records), gaps), ((100_003, 40), 0));
}

#[test]
fn a_full_disk_loses_events_countably_and_what_follows_is_readable() {
    // /dev/full takes nothing (full(4)): a file of records is replaced by it for a while.
    let folder = tempfile::tempdir().unwrap();
    let mut files = files(folder.path(), LIMITS);
    let [from, to] = flow(1, ("10.0.0.1", 9), ("10.0.0.2", 80));
    files.add(2, CALLS, &[event(2)]);
    files.flush(2);
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let real = files.divert(full).unwrap();
    files.add(3, CALLS, &[from, to, event(3)]);
    files.flush(3);
    files.add(4, CALLS, &[event(4), lost(4, 5, 7)]);
    files.flush(4 + AGAIN);
    drop(files.divert(real));
    let status = files.status();
    assert_eq!((status.events(), status.records(), status.lost()), (12, 1, 11));
    assert!(status.failure.unwrap().contains("No space left"), "the cause is named");
    files.add(6, CALLS, &[event(6)]);
    files.flush(6 + 2 * AGAIN);
    files.add(7, CALLS, &[event(7)]);
    files.finish(7 + 2 * AGAIN);
    let status = files.status();
    assert_eq!((status.events(), status.records(), status.lost()), (14, 2, 12));
    let bytes = fs::read(folder.path().join("0001.wtr")).unwrap();
    let mut items = Vec::new();
    RecordFileReader::new().read(&bytes, |_, item| items.push(item)).unwrap();
    let expected = [
        RecordFileElement::Record(CALLS, event(2)),
        RecordFileElement::Repeated(CALLS, from),
        RecordFileElement::Repeated(CALLS, to),
        RecordFileElement::Record(CALLS, lost(1, 6, 12)),
        RecordFileElement::Record(CALLS, event(7)),
    ];
    assert_eq!(items, expected);
}

const AGAIN: u64 = 1_000_000_000;

#[test]
fn a_file_that_is_large_enough_is_followed_by_another_and_only_the_newest_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut files =
        files(folder.path(), RecordFileLimits { rotate: 8000, keep: Some(2), ..LIMITS });
    files.add(1, CALLS, &flow(1, ("10.0.0.1", 9), ("10.0.0.2", 80)));
    for time in 2..1000 {
        files.add(time, CALLS, &[event(time)]);
        files.flush(time);
    }
    files.finish(1000);
    let status = files.status();
    assert!(status.files > 3 && status.removed_files == status.files - 2, "{status:?}");
    assert_eq!((status.events(), status.lost()), (1000, 0));
    let (records, gaps) = read(folder.path());
    assert_eq!(gaps, status.removed_events, "the first file says what came before it");
    assert_eq!(records.len() as u64 + gaps, 1000);
}

#[test]
fn events_beyond_the_limit_are_lost_countably_until_it_is_raised() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = files(folder.path(), RecordFileLimits { max: 20_000, ..LIMITS });
    for time in 1..=1000 {
        files.add(time, CALLS, &[event(time)]);
        files.flush(time);
    }
    let status = files.status();
    assert!(status.kept_bytes <= 20_000 && status.lost() > 0, "{status:?}");
    assert_eq!(status.events(), 1000);
    files.limit(LIMITS);
    files.flush(1001);
    files.add(1002, CALLS, &[event(1002)]);
    files.finish(1003);
    let (records, gaps) = read(folder.path());
    let (recorded, lost) = counted(&records);
    assert_eq!((recorded + lost, gaps), (1001, 0));
    assert_eq!(lost, status.lost());
}

#[test]
fn what_is_lost_at_the_limit_is_said_at_the_end_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = files(folder.path(), RecordFileLimits { max: 20_000, ..LIMITS });
    for time in 1..=1000 {
        files.add(time, CALLS, &[event(time)]);
        files.flush(time);
    }
    files.finish(1001);
    let (recorded, lost) = counted(&read(folder.path()).0);
    assert_eq!((recorded + lost, lost), (1000, files.status().lost()));
}

fn plan() -> Plan {
    let node = |number: u8| Node {
        name: format!("n{number}"),
        group: "n".to_owned(),
        interfaces: vec![NodeInterface {
            port: PortId(u32::from(number)),
            name: "eth0".to_owned(),
            link: LinkId(0),
            outward: LinkDirection::Up,
            v4: Some([10, 0, 0, number].into()),
            v6: None,
            mtu: 1500,
        }],
        ..Node::default()
    };
    Plan { nodes: vec![node(0), node(1), node(2)], ..Plan::default() }
}

fn filter(choice: &RecordChoice) -> RecordDrainFilter {
    RecordDrainFilter::new(choice, &plan())
}

use windtunnel_model::plan::{RecordChoice, RecordDirection, RecordLayerSet};

#[test]
fn only_flows_that_a_pattern_fits_are_kept_with_their_definitions() {
    let choice =
        RecordChoice { flows: vec!["tcp n0 n1:80".parse().unwrap()], ..RecordChoice::default() };
    let mut filter = filter(&choice);
    let wanted = flow(1, ("10.0.0.0", 4000), ("10.0.0.1", 80));
    let other = flow(2, ("10.0.0.2", 4000), ("10.0.0.1", 80));
    let strange = EventRecord { flow: 2, ..event(9) };
    let mut records = vec![wanted[0], other[0], wanted[1], other[1], event(8), strange];
    filter.apply(ENGINE, &mut records);
    assert_eq!(records, [wanted[0], wanted[1], event(8)]);
    // Wanted from now on, it is defined first.
    let definitions = filter.replace(RecordDrainFilter::default());
    assert_eq!(definitions[&ENGINE], other);
    let mut records = vec![strange];
    filter.apply(ENGINE, &mut records);
    assert_eq!(records, [strange]);
}

#[test]
fn a_choice_of_nodes_keeps_their_own_events_and_packets_from_or_to_them() {
    let choice = RecordChoice { nodes: vec![NodeId(0)], ..RecordChoice::default() };
    let mut filter = filter(&choice);
    let mut own = vec![event(1)];
    filter.apply(CALLS, &mut own);
    let mut others = vec![event(1)];
    filter.apply(EventSource::of_node(RecordSource::Calls, 1, 0), &mut others);
    assert_eq!((own.len(), others.len()), (0, 0), "a flow that is not defined is not known");
    let mut own = flow(1, ("10.0.0.0", 4000), ("10.9.9.9", 80)).to_vec();
    own.push(event(2));
    filter.apply(CALLS, &mut own);
    assert_eq!(own.len(), 3);
    let mut packets = flow(1, ("10.0.0.2", 4000), ("10.0.0.0", 80)).to_vec();
    packets.extend(flow(2, ("10.0.0.2", 4000), ("10.0.0.1", 80)));
    packets.extend([event(3), EventRecord { flow: 2, ..event(4) }]);
    filter.apply(ENGINE, &mut packets);
    assert_eq!(packets.len(), 3);
}

#[test]
fn a_choice_of_layers_and_of_a_direction_keeps_what_was_lost() {
    let choice = RecordChoice {
        layers: RecordLayerSet::of(vec![RecordSource::Calls]),
        direction: Some(RecordDirection::Reverse),
        ..RecordChoice::default()
    };
    let mut filter = filter(&choice);
    let reverse = EventRecord { flags: flag::REVERSE, ..event(2) };
    let mut records = vec![event(1), reverse, lost(1, 2, 3)];
    filter.apply(CALLS, &mut records);
    assert_eq!(records, [reverse, lost(1, 2, 3)]);
    let mut records = vec![reverse, lost(1, 2, 3)];
    filter.apply(ENGINE, &mut records);
    assert_eq!(records, []);
}

#[test]
fn anonymous_flows_stay_distinct_and_join_over_layers() {
    let anonymity = AddressAnonymiser::default();
    let hidden = |address: &str, port| {
        let mut record = definition(Kind::FlowFrom, 1, address, port);
        anonymity.apply(&mut record);
        assert_eq!(record.extra, 0);
        record.args
    };
    let one = hidden("10.0.0.1", 80);
    assert_eq!(one, hidden("10.0.0.1", 80));
    assert_ne!(one, hidden("10.0.0.1", 81));
    assert_ne!(one, hidden("10.0.0.2", 80));
    let before = definition(Kind::FlowFrom, 1, "10.0.0.1", 80);
    assert!(one.iter().all(|word| *word == 0 || !before.args.contains(word)));
}

/// Unlike a disk, this one takes its time.
#[test]
fn a_flush_returns_when_all_is_written() {
    static DROPPED: AtomicBool = AtomicBool::new(false);
    struct Watched(Script);
    impl RecordFeed for Watched {
        fn source(&self) -> EventSource {
            self.0.source()
        }
        fn take(&mut self, most: usize, records: &mut Vec<EventRecord>) {
            self.0.take(most, records);
        }
        fn fill(&self) -> (u64, u64) {
            (self.0.records.len() as u64, 2)
        }
    }
    impl Drop for Watched {
        fn drop(&mut self) {
            DROPPED.store(true, Ordering::Relaxed);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let records = (1..300_000).map(event).collect();
    let feed = Box::new(Watched(Script { source: CALLS, records }));
    let drain =
        RecordDrain::start(setup(folder.path(), LIMITS, RecordDrainFilter::default()), vec![feed])
            .unwrap();
    drain.flush();
    assert_eq!(drain.status().records(), 299_999);
    assert_eq!(drain.finish().layers[&RecordSource::Calls].fill_max_permille, 149_999_500);
    assert!(DROPPED.load(Ordering::Relaxed), "its memory is given back");
}

#[test]
fn connections_without_calls_are_counted_by_node() {
    let homes = CallRecordingScope::Of(
        [("10.0.0.1".parse().unwrap(), 0), ("10.0.0.2".parse().unwrap(), 1)].into(),
    );
    let mut filter = RecordDrainFilter::default();
    filter.expect_calls_of(homes);
    let connection = |port| flow(u32::from(port), ("10.0.0.1", port), ("10.0.0.2", 80));
    let mut packets: Vec<EventRecord> = [4001, 4002].into_iter().flat_map(connection).collect();
    filter.apply(ENGINE, &mut packets);
    // Both by the client, one by the server.
    let mut calls: Vec<EventRecord> = [4001, 4002].into_iter().flat_map(connection).collect();
    filter.apply(CALLS, &mut calls);
    let server = EventSource::of_node(RecordSource::Calls, 1, 0);
    filter.apply(server, &mut flow(1, ("10.0.0.2", 80), ("10.0.0.1", 4001)).to_vec());
    let sentence =
        "1 TCP connections without any call, of programs that were not seen or from before";
    assert_eq!(filter.unseen(), [(1, sentence.to_owned())]);
}
