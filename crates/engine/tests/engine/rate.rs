//! Rate and latency against closed forms, to the nanosecond.

use windtunnel_model::profile::Overhead;
use windtunnel_model::{LinkProfile, Span};

use crate::support::{MS, Net, US, delayed, pair, path, rated};

#[test]
fn a_link_without_properties_lets_packets_pass_at_once_in_the_callers_own_bytes() {
    let mut net = Net::new(pair(1, LinkProfile::default()));
    let mut frame = net.udp(100, 1);
    let port = windtunnel_model::PortId(0);
    let express = net.engine.handle_packet(net.now, port, Default::default(), &mut frame).unwrap();
    assert_eq!(express.port.0, 1);
    // The interface of port 1, from the one of port 0.
    assert_eq!(frame[..12], [2, 0x77, 0x74, 0, 0, 1, 2, 0x77, 0x74, 0, 0, 0]);
    assert_eq!(net.engine.in_flight_bytes(), 0);
    assert_eq!((net.lane(0).delivered_packets, net.lane(0).delivered_bytes), (1, 100));
}

#[test]
fn latencies_add_up_over_routers_and_the_time_to_live_goes_down() {
    let ms = |n| delayed(Span::from_millis(n));
    let mut net = Net::new(path(1, vec![ms(3), LinkProfile::default(), ms(4)]));
    net.send_udp(5, 100, 7);
    net.finish();
    assert_eq!(net.arrivals(), [(5 + 7 * MS, 7)]);
    assert_eq!(net.out[0].frame[22], 62);
    assert_eq!(net.lane(2).delay_sum_ns, 4 * MS);
    assert_eq!(net.out[0].frame[6..12], [2, 0x77, 0x74, 0xff, 0xff, 0xff]);
}

#[test]
fn packets_of_1000_bytes_at_8_mbit_leave_every_millisecond() {
    let mut net = Net::new(pair(1, rated(8_000_000)));
    (0..3).for_each(|tag| net.send_udp(0, 1000, tag));
    net.send_udp(10 * MS, 500, 3);
    net.finish();
    assert_eq!(net.arrivals(), [(MS, 0), (2 * MS, 1), (3 * MS, 2), (10 * MS + MS / 2, 3)]);
    assert_eq!(net.lane(0).busy_ns, 3 * MS + MS / 2);
}

#[test]
fn a_full_frame_at_10_mbit_takes_1_2304_ms_with_its_overhead() {
    let profile = LinkProfile { overhead: None, ..rated(10_000_000) };
    let mut net = Net::new(pair(1, profile));
    net.send_udp(0, 1500, 0);
    net.finish();
    assert_eq!(net.times(), [1_230_400]);
    assert_eq!(net.lane(0).delivered_wire_bytes, 1538);
    assert_eq!(net.lane(0).delivered_bytes, 1500);
}

#[test]
fn fractions_of_a_nanosecond_are_carried_while_the_line_is_busy() {
    let mut net = Net::new(pair(1, rated(7_000_000)));
    (0..100).for_each(|tag| net.send_udp(0, 1000, tag));
    net.finish();
    let expected: Vec<u64> = (1..=100).map(|n| n * 8_000_000_000_000 / 7_000_000).collect();
    assert_eq!(net.times(), expected);
}

#[test]
fn the_rate_is_never_exceeded_over_any_window() {
    let rate = 3_000_000;
    let mut net = Net::new(pair(1, LinkProfile { overhead: Some(Overhead(20)), ..rated(rate) }));
    for tag in 0..300u32 {
        let len = 100 + usize::try_from(tag * 7919 % 1400).unwrap();
        net.send_udp(u64::from(tag * tag % 977) * US + u64::from(tag) * 2 * MS, len, tag);
    }
    net.finish();
    let wire = |index: usize| (u64::try_from(net.out[index].frame.len()).unwrap() - 14 + 20) * 8;
    for start in 0..net.out.len() {
        let mut bits = 0;
        for end in start + 1..net.out.len() {
            bits += wire(end);
            let window = net.out[end].at - net.out[start].at;
            assert!(bits * 1_000_000_000 <= (window + 1) * rate, "from {start} to {end}");
        }
    }
}

#[test]
fn the_slower_of_two_hops_sets_the_spacing() {
    let mut net = Net::new(path(1, vec![rated(80_000_000), rated(8_000_000)]));
    (0..4).for_each(|tag| net.send_udp(0, 1000, tag));
    net.finish();
    let first = 100 * US + MS;
    assert_eq!(net.times(), [first, first + MS, first + 2 * MS, first + 3 * MS]);
}

#[test]
fn a_line_is_backlogged_only_where_packets_follow_one_another_without_a_gap() {
    let mut net = Net::new(pair(1, rated(8_000_000)));
    for tag in 1..=5 {
        net.send_udp(u64::from(tag) * 10 * MS, 1000, tag);
    }
    net.run_until(100 * MS);
    assert_eq!((net.lane(0).backlogged_packets, net.lane(0).backlogged_ns), (0, 0));
    (6..10).for_each(|tag| net.send_udp(100 * MS, 1000, tag));
    // Exactly when the last of these has left.
    net.send_udp(104 * MS, 1000, 10);
    net.finish();
    let lane = net.lane(0);
    assert_eq!((lane.backlogged_packets, lane.backlogged_ns), (4, 4 * MS));
    assert_eq!(lane.backlogged_wire_bytes, 4000);
}
