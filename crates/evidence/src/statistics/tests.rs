use std::collections::BTreeMap;

use windtunnel_model::record::{EventRecord, Kind};

use super::Statistics;
use crate::evidence::tests::{ENGINE, conversation, define, file, header, load, packet};
use crate::file::RecordFileHeader;

#[test]
fn a_conversation_is_summed_up_by_layer_flow_and_lane() {
    let evidence = load(&[conversation()]);
    let statistics = Statistics::of(&evidence, evidence.records().iter());
    let layers: Vec<_> =
        statistics.layers.iter().map(|sum| (sum.layer, sum.sources, sum.records)).collect();
    assert_eq!(layers, [("engine", 1, 7), ("calls", 2, 6), ("tcp", 1, 1)]);
    let [flow] = statistics.flows.as_slice() else { panic!("one flow") };
    assert_eq!(flow.from.as_deref(), Some("client:4000"));
    let of = |way: &super::FlowDirectionCounters| {
        (way.writes, way.written_bytes, way.reads, way.read_bytes)
    };
    assert_eq!(of(&flow.forward), (1, 100, 1, 100));
    assert_eq!(of(&flow.reverse), (1, 200, 1, 200));
    assert_eq!((flow.forward.packets, flow.reverse.payload_bytes), (2, 200));
    let lanes: Vec<_> = statistics
        .lanes
        .iter()
        .map(|lane| (lane.from.as_str(), lane.offered_packets, lane.delivered_bytes))
        .collect();
    assert_eq!(lanes, [("client", 2, 100), ("server", 1, 200)]);
    assert_eq!(statistics.events, 26, "records and definitions");
    assert_eq!(statistics.unseen, ["layer kernel was recorded, and nothing came of it"]);
}

#[test]
fn bytes_that_come_again_are_resent_also_where_offsets_wrap_around() {
    let offered = |time, offset, length| packet(Kind::Offered, time, 1, 0, [offset, length, 0, 0]);
    let mut engine = define(1, 1, 6, ([10, 0, 0, 1], 1), ([10, 0, 0, 2], 2)).to_vec();
    engine.push(offered(1, u32::MAX - 999, 1000));
    engine.push(offered(2, 0, 1000));
    engine.push(offered(3, u32::MAX - 499, 700));
    engine.push(offered(4, 1000, 10));
    engine.push(packet(Kind::Offered, 5, 1, 0, [0, 1000, 1, 0]));
    engine.push(packet(Kind::Dropped, 6, 1, 0, [0, 1000, 1, 1]));
    let evidence = load(&[file(header(), &[(ENGINE, engine)])]);
    let statistics = Statistics::of(&evidence, evidence.records().iter());
    let way = statistics.flows[0].forward;
    assert_eq!((way.packets, way.resent_bytes, way.dropped_packets), (4, 700, 1));
    let dropped = BTreeMap::from([("queue".to_owned(), 1)]);
    assert_eq!(statistics.lanes[1].dropped_packets, dropped);
}

#[test]
fn events_lost_are_gaps_and_not_records() {
    let args = [3000, 0, 7, 0];
    let lost = EventRecord { time: 4000, kind: Kind::Lost as u8, args, ..EventRecord::default() };
    let evidence = load(&[file(header(), &[(ENGINE, vec![lost])])]);
    let statistics = Statistics::of(&evidence, evidence.records().iter());
    assert_eq!((statistics.layers[0].records, statistics.layers[0].lost), (0, 7));
    let gap = &statistics.gaps[0];
    assert_eq!((gap.begin_ns, gap.end_ns, gap.events), (2000, 3000, 7));
    assert_eq!(statistics.events, 7, "records and lost are all events");
}

#[test]
fn a_layer_that_was_asked_for_later_than_the_header_was_written_is_recorded() {
    let file_of = |layers: &[&str]| {
        let layers = layers.iter().map(|name| (*name).to_owned()).collect();
        let lost = EventRecord { time: 4000, kind: Kind::Lost as u8, ..EventRecord::default() };
        let evidence =
            load(&[file(RecordFileHeader { layers, ..header() }, &[(ENGINE, vec![lost])])]);
        Statistics::of(&evidence, evidence.records().iter()).unseen
    };
    let never = ["calls", "tcp", "kernel"].map(|name| format!("layer {name} was not recorded"));
    assert_eq!(file_of(&[]), never);
    assert_eq!(file_of(&["engine"]), never);
    let in_vain = "layer calls was recorded, and nothing came of it";
    assert_eq!(file_of(&["calls"])[0], in_vain);
}
