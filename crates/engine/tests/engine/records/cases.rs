//! Single things that are recorded.

use windtunnel_engine::{DROP_REASON_NAMES, RecordSettings};
use windtunnel_model::profile::{LossModel, QueueLimit};
use windtunnel_model::record::{EventRecord, Kind, flag};
use windtunnel_model::{LinkProfile, Packets, Span};
use windtunnel_wire::build;

use super::{of, on_lane};
use crate::support::{MS, Net, US, delayed, pair, path, rated, up};

fn summary(records: &[EventRecord]) -> Vec<(Kind, u64, u32, u32, u16, u32)> {
    let one = |it: &EventRecord| {
        let kind = Kind::from_number(it.kind).unwrap();
        (kind, it.time, it.args[0], it.args[1], it.extra, it.args[3])
    };
    records.iter().map(one).collect()
}

#[test]
fn a_packet_waits_is_transmitted_and_flies() {
    let profile = LinkProfile { latency: Span::from_millis(3), ..rated(8_000_000) };
    let mut net = Net::recorded(pair(1, profile));
    net.send_udp(MS, 1000, 0);
    net.send_udp(MS, 500, 1);
    net.finish();
    assert_eq!(
        summary(&on_lane(&net, 0)),
        [
            (Kind::Offered, MS, 0, 972, 1, 0),
            (Kind::Offered, MS, 1, 472, 1, 0),
            (Kind::Sent, MS, 0, 972, 1, 1_000_000),
            (Kind::Sent, 2 * MS, 1, 472, 1, 500_000),
            (Kind::Delivered, 5 * MS, 0, 972, 1, 3_000_000),
            (Kind::Delivered, 5 * MS + 500 * US, 1, 472, 1, 3_000_000),
        ]
    );
}

#[test]
fn a_packet_that_passes_at_once_is_offered_and_delivered_on_each_lane() {
    let mut net = Net::recorded(path(1, vec![LinkProfile::default(); 2]));
    net.send_udp(MS, 100, 0);
    for link in [0, 1] {
        let expected = [(Kind::Offered, MS, 0, 72, 1, 0), (Kind::Delivered, MS, 0, 72, 1, 0)];
        assert_eq!(summary(&on_lane(&net, link)), expected);
    }
}

#[test]
fn a_train_is_one_record_until_it_is_cut_and_its_parts_have_their_offsets() {
    let latency = Span::from_millis(1);
    let loss = LossModel::Listed(vec![3]);
    let mut net = Net::recorded(pair(1, LinkProfile { latency, loss, ..LinkProfile::default() }));
    let (a, b) = (net.socket(0), net.socket(1));
    net.send(MS, 0, Default::default(), &build::tcp(a, b, 999, 0x02, &[]));
    net.records.clear();
    let (frame, header) = build::tcp_train(a, b, 1000, 0, &[0; 4500], 1000);
    net.send(MS, 0, header, &frame);
    net.finish();
    let lane = summary(&on_lane(&net, 0));
    let (late, ns) = (2 * MS, 1_000_000);
    assert_eq!(
        lane,
        [
            (Kind::Offered, MS, 0, 4500, 5, 0),
            (Kind::Dropped, MS, 1000, 1000, 1, 3),
            (Kind::Delivered, late, 0, 0, 1, ns),
            (Kind::Delivered, late, 0, 1000, 1, ns),
            (Kind::Delivered, late, 2000, 2500, 3, ns),
        ]
    );
    assert_eq!(DROP_REASON_NAMES[3], "loss");
}

#[test]
fn what_a_router_drops_names_the_lane_by_which_it_came() {
    let mut net = Net::recorded(path(1, vec![delayed(Span::from_millis(1)); 2]));
    let frame = build::with_ttl(net.udp(100, 0), 1);
    net.send(MS, 0, Default::default(), &frame);
    net.finish();
    let dropped = of(&net.records, Kind::Dropped);
    assert_eq!(dropped.len(), 1);
    assert_eq!((dropped[0].time, dropped[0].args[2], dropped[0].args[3]), (2 * MS, 0, 7));
    // The message about it is a flow of its own, from the router.
    let message = of(&net.records, Kind::Offered).into_iter().find(|it| it.flow == 1).unwrap();
    assert_eq!((message.time, message.args[2]), (2 * MS, 1));
    let from = of(&net.records, Kind::FlowFrom)[1];
    assert_eq!(from.flags, 1, "ICMP");
}

#[test]
fn fragments_share_the_payload_of_their_packet() {
    let mut net = Net::recorded(pair(1, LinkProfile { mtu: 576, ..LinkProfile::default() }));
    let (a, b) = (net.socket(0), net.socket(1));
    net.send(MS, 0, Default::default(), &build::tcp(a, b, 999, 0x02, &[]));
    net.records.clear();
    net.send(MS, 0, Default::default(), &build::tcp(a, b, 1000, 0, &[0; 1400]));
    net.finish();
    assert_eq!(
        summary(&on_lane(&net, 0)),
        [
            (Kind::Offered, MS, 0, 1400, 1, 0),
            (Kind::Fragmented, MS, 0, 1400, 1, 3),
            (Kind::Delivered, MS, 0, 532, 1, 0),
            (Kind::Delivered, MS, 532, 552, 1, 0),
            (Kind::Delivered, MS, 1084, 316, 1, 0),
        ]
    );
}

#[test]
fn a_copy_says_that_it_is_one() {
    let duplicate = "100%".parse().unwrap();
    let latency = Span::from_millis(1);
    let mut net =
        Net::recorded(pair(1, LinkProfile { duplicate, latency, ..LinkProfile::default() }));
    net.send_udp(MS, 100, 0);
    net.finish();
    let kinds: Vec<_> = on_lane(&net, 0).iter().map(|it| (it.kind, it.flags)).collect();
    let (offered, copied) = (Kind::Offered as u8, Kind::Duplicated as u8);
    let delivered = Kind::Delivered as u8;
    assert_eq!(kinds, [(offered, 0), (copied, 0), (delivered, 0), (delivered, flag::COPY)]);
}

#[test]
fn only_the_lanes_that_were_chosen_are_recorded() {
    let profile = LinkProfile { queue: Some(QueueLimit::Packets(Packets(0))), ..rated(8000) };
    let mut net = Net::new(path(1, vec![delayed(Span::from_millis(1)), profile]));
    net.engine.recorder_mut().record(Some(RecordSettings::default().on_lanes(&[up(1)])));
    net.send_udp(MS, 100, 0);
    net.send_udp(MS, 100, 1);
    net.finish();
    assert!(on_lane(&net, 0).is_empty());
    let kinds: Vec<_> = on_lane(&net, 1).iter().map(|it| it.kind).collect();
    let expected = [Kind::Offered, Kind::Offered, Kind::Dropped, Kind::Sent, Kind::Delivered];
    assert_eq!(kinds, expected.map(|kind| kind as u8));
}
