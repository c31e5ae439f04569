//! Queue limits and which packets are dropped.

use windtunnel_model::profile::{PropertySetting, QueueDiscipline, QueueLimit};
use windtunnel_model::{Bytes, DropReason, LinkPatch, LinkProfile, Packets, Span};
use windtunnel_wire::vnet;

use crate::support::{MS, Net, pair, rated, up};

fn limited(queue: QueueLimit, discipline: QueueDiscipline) -> LinkProfile {
    LinkProfile { queue: Some(queue), discipline, ..rated(8_000_000) }
}

fn packets(count: u64, discipline: QueueDiscipline) -> LinkProfile {
    limited(QueueLimit::Packets(Packets(count)), discipline)
}

#[test]
fn the_packet_in_transmission_does_not_count() {
    let mut net = Net::new(pair(1, packets(3, QueueDiscipline::DropTail)));
    (0..10).for_each(|tag| net.send_udp(0, 1000, tag));
    assert_eq!((net.lane(0).queue_packets, net.lane(0).queue_bytes), (3, 3000));
    net.finish();
    assert_eq!(net.tags(), [0, 1, 2, 3]);
    assert_eq!(net.lane(0).dropped[DropReason::QueueFull], 6);
    assert_eq!((net.lane(0).queue_packets_max, net.lane(0).queue_packets), (3, 0));
}

#[test]
fn drop_head_keeps_the_newest() {
    let mut net = Net::new(pair(1, packets(3, QueueDiscipline::DropHead)));
    (0..10).for_each(|tag| net.send_udp(0, 1000, tag));
    net.finish();
    assert_eq!(net.arrivals(), [(MS, 0), (2 * MS, 7), (3 * MS, 8), (4 * MS, 9)]);
    assert_eq!(net.lane(0).dropped[DropReason::QueueFull], 6);
}

#[test]
fn a_limit_in_bytes_lets_a_small_packet_in_where_a_large_one_has_no_room() {
    let profile = limited(QueueLimit::Bytes(Bytes(2500)), QueueDiscipline::DropTail);
    let mut net = Net::new(pair(1, profile));
    (0..4).for_each(|tag| net.send_udp(0, 1000, tag));
    net.send_udp(0, 500, 4);
    net.finish();
    assert_eq!(net.tags(), [0, 1, 2, 4]);
    assert_eq!(net.lane(0).queue_bytes_max, 2500);
}

#[test]
fn a_limit_in_time_is_what_the_rate_carries_in_it() {
    let profile = limited(QueueLimit::Time(Span::from_millis(2)), QueueDiscipline::DropTail);
    let mut net = Net::new(pair(1, profile));
    (0..5).for_each(|tag| net.send_udp(0, 1000, tag));
    net.finish();
    assert_eq!(net.tags(), [0, 1, 2]);
}

#[test]
fn of_a_burst_of_segments_the_front_finds_room() {
    for (discipline, expected) in
        [(QueueDiscipline::DropTail, 0..4u32), (QueueDiscipline::DropHead, 6..10u32)]
    {
        let mut net = Net::new(pair(1, packets(3, discipline.clone())));
        let payload: Vec<u8> = (0..10u8).flat_map(|n| [n; 972]).collect();
        let (frame, header) =
            windtunnel_wire::build::udp_train(net.socket(0), net.socket(1), &payload, 972);
        net.send(0, 0, header, &frame);
        assert_eq!(net.lane(0).queue_packets_max, 3);
        net.finish();
        let mut tags: Vec<u32> = net.out.iter().map(|out| u32::from(out.frame[42])).collect();
        if discipline == QueueDiscipline::DropHead {
            // The first was on the line already when the queue filled.
            assert_eq!(tags.remove(0), 0);
            assert_eq!(tags, (7..10).collect::<Vec<u32>>());
        } else {
            assert_eq!(tags, expected.collect::<Vec<u32>>());
        }
        assert_eq!(net.times(), [MS, 2 * MS, 3 * MS, 4 * MS]);
        assert!(net.out.iter().all(|out| out.vnet.gso_type == vnet::GSO_NONE));
    }
}

#[test]
fn a_lower_limit_drops_nothing_that_waits() {
    for discipline in [QueueDiscipline::DropTail, QueueDiscipline::DropHead] {
        let mut net = Net::new(pair(1, packets(20, discipline)));
        (0..10).for_each(|tag| net.send_udp(0, 1000, tag));
        let queue = Some(PropertySetting::To(QueueLimit::Packets(Packets(2))));
        net.patch(0, up(0), LinkPatch { queue, ..LinkPatch::default() });
        assert_eq!(net.lane(0).queue_packets, 9);
        net.send_udp(0, 1000, 10);
        assert_eq!((net.lane(0).queue_packets, net.lane(0).dropped.total()), (9, 1));
        net.finish();
        assert_eq!(net.out.len(), 10);
    }
}
