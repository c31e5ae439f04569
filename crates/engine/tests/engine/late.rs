//! Packets that the engine gets after they were sent.

use proptest::prelude::*;
use windtunnel_engine::{FrameOrigin, SenderClass};
use windtunnel_model::{LinkProfile, PortId, Span, Time};
use windtunnel_wire::vnet;

use crate::support::{MS, Net, delayed, pair, path, rated};

impl Net {
    /// Hands in, at `at`, a UDP packet from a to b that was sent at `sent`.
    fn send_late(&mut self, sent: u64, at: u64, ip_len: usize, tag: u32) {
        self.run_until(at);
        let mut frame = self.udp(ip_len, tag);
        let (port, sent) = (PortId(0), Time::from_nanos(sent));
        let origin = FrameOrigin { port, sent, sender: SenderClass::Flow };
        let header = vnet::VirtioNetHeader::default();
        assert_eq!(self.engine.handle_packet_of(self.now, origin, header, &mut frame), None);
        self.drain();
    }
}

#[test]
fn the_time_from_sending_to_handing_in_is_part_of_the_latency() {
    let mut net = Net::new(pair(1, delayed(Span::from_millis(5))));
    net.send_late(MS, 4 * MS, 100, 7);
    net.finish();
    assert_eq!(net.arrivals(), [(6 * MS, 7)]);
}

#[test]
fn a_packet_that_comes_after_its_time_leaves_at_once() {
    let mut net = Net::new(pair(1, delayed(Span::from_millis(5))));
    net.send_late(MS, 9 * MS, 100, 7);
    assert_eq!(net.engine.poll_timeout(), Some(Time::from_nanos(6 * MS)));
    net.finish();
    assert_eq!((net.arrivals(), net.now.as_nanos()), (vec![(6 * MS, 7)], 9 * MS));
}

#[test]
#[should_panic(expected = "cannot have come")]
fn a_packet_cannot_come_before_it_was_sent() {
    let mut net = Net::new(pair(1, delayed(Span::from_millis(5))));
    net.send_late(2 * MS, MS, 100, 7);
}

proptest! {
    #[test]
    fn departures_are_intended_for_the_same_times_however_late_packets_come(
        gaps in prop::collection::vec((0..2 * MS, 0..20 * MS, 64..1500usize), 1..60),
        rates in (0..3u64, 0..3u64),
    ) {
        let profile = |rate: u64, latency: Span| match rate {
            0 => delayed(latency),
            rate => LinkProfile { latency, ..rated(rate * 8_000_000) },
        };
        let profiles =
            vec![profile(rates.0, Span::from_millis(3)), profile(rates.1, Span::from_micros(400))];
        let mut now = Net::new(path(1, profiles.clone()));
        let mut late = Net::new(path(1, profiles));
        let (mut sent, mut handed) = (0, 0);
        for (tag, (gap, wait, len)) in (0..).zip(gaps) {
            sent += gap;
            handed = handed.max(sent + wait);
            now.send_udp(sent, len, tag);
            late.send_late(sent, handed, len, tag);
        }
        now.finish();
        late.finish();
        prop_assert_eq!(now.arrivals(), late.arrivals());
    }
}
