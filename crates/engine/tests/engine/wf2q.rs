//! Weighted fair queueing: shares, delays and orders that WF²Q+ promises.

mod fluid;
mod laws;

use std::collections::BTreeMap;
use std::net::SocketAddr;

use windtunnel_engine::{LaneClassCounters, SenderClass};
use windtunnel_model::profile::{QueueDiscipline, QueueLimit, SendShare, Wf2qParameters};
use windtunnel_model::{DropReason, LinkPatch, LinkProfile, Packets, Rate, Time};
use windtunnel_wire::flow::FiveTuple;
use windtunnel_wire::{build, vnet};

use crate::support::{MS, Net, pair, rated, up};

/// One byte takes 1 µs.
const RATE: u64 = 8_000_000;

/// A class with a minimum in bytes each millisecond.
fn class(min: u64, weight: u32) -> SendShare {
    SendShare {
        name: "class".to_owned(),
        min: Rate::from_bits_per_second(min * RATE / 1000),
        weight,
    }
}

fn shared(classes: Vec<SendShare>, packets: u64) -> LinkProfile {
    LinkProfile {
        discipline: QueueDiscipline::Wf2q(Wf2qParameters { classes, ..Wf2qParameters::default() }),
        queue: Some(QueueLimit::Packets(Packets(packets))),
        ..rated(RATE)
    }
}

/// Two nodes, and somebody who knows whose flow is whose: port 1000 × class + flow, the rest's
/// last.
struct Link {
    net: Net,
    answers: bool,
    sent: BTreeMap<u32, u32>,
}

impl Link {
    fn new(profile: LinkProfile) -> Self {
        Link { net: Net::new(pair(1, profile)), answers: true, sent: BTreeMap::new() }
    }

    /// Sends a packet of `len` bytes of a flow of a class.
    fn send(&mut self, at: u64, class: u16, flow: u16, len: usize) {
        let port = 1000 * (class + 1) + flow;
        let number = self.sent.entry(u32::from(port)).or_default();
        let mut payload = vec![0; len - 28];
        payload[..4].copy_from_slice(&(u32::from(port) << 16 | *number).to_be_bytes());
        *number += 1;
        let from = SocketAddr::new(self.net.address(0), port);
        let frame = build::udp(from, self.net.socket(1), &payload);
        if self.answers && *self.sent.get(&u32::from(port)).unwrap_or(&0) == 1 {
            self.net.run_until(at);
            let key = FiveTuple {
                destination: from.ip(),
                destination_port: 0,
                ..FiveTuple::parse(&frame).unwrap()
            };
            self.net.engine.answer_flow(Time::from_nanos(at), up(0), &key, Some(class.into()));
        }
        self.net.send(at, 0, vnet::VirtioNetHeader::default(), &frame);
        if self.answers {
            self.answer(at, Some);
        }
    }

    /// Answers what is asked, where `class` has the number that its port says.
    fn answer(&mut self, at: u64, class: impl Fn(u32) -> Option<u32>) {
        while let Some((lane, key)) = self.net.engine.poll_flow_question() {
            assert_eq!(lane, up(0));
            let number = u32::from(key.source_port) / 1000 - 1;
            self.net.engine.answer_flow(Time::from_nanos(at), lane, &key, class(number));
        }
    }

    /// What came out: when its transmission ended, class, flow, number, bytes.
    fn out(&self) -> Vec<Out> {
        let outs = self.net.arrivals().into_iter().zip(&self.net.out);
        let one = |((at, tag), out): ((u64, u32), &crate::support::Out)| Out {
            at,
            class: usize::try_from((tag >> 16) / 1000 - 1).unwrap(),
            flow: (tag >> 16) % 1000,
            number: tag & 0xffff,
            bytes: u64::try_from(out.frame.len() - 14).unwrap(),
        };
        outs.map(one).collect()
    }

    fn classes(&self) -> LaneClassCounters {
        self.net.engine.classes(up(0)).unwrap()
    }
}

#[derive(Debug, Clone, Copy)]
struct Out {
    at: u64,
    class: usize,
    flow: u32,
    number: u32,
    bytes: u64,
}

/// Bytes of each class, or flow, among what came out between two times.
fn bytes_between(out: &[Out], from: u64, to: u64, of: impl Fn(&Out) -> usize) -> Vec<u64> {
    let mut sums = vec![0; 1 + out.iter().map(&of).max().unwrap_or(0)];
    let within = out.iter().filter(|out| (from..to).contains(&out.at));
    within.for_each(|out| sums[of(out)] += out.bytes);
    sums
}

#[test]
fn classes_that_always_send_are_never_a_packet_away_from_their_shares() {
    // 3:1 and the rest 1; then 50 % and a tenth of the rest each.
    let settings = [
        (vec![class(0, 3), class(0, 1)], [0.6, 0.2, 0.2]),
        (vec![class(500, 3), class(0, 1)], [0.8, 0.1, 0.1]),
    ];
    for (classes, shares) in settings {
        let mut link = Link::new(shared(classes, 10_000));
        for _ in 0..600 {
            for (class, len) in [(0, 1500usize), (1, 700), (2, 300)] {
                (0..1 + 1500 / len / 2).for_each(|_| link.send(0, class, 0, len));
            }
        }
        link.net.finish();
        let (mut served, mut total) = ([0.0; 3], 0.0);
        for out in link.out().iter().take_while(|out| out.at < 300 * MS) {
            served[out.class] += out.bytes as f64;
            total += out.bytes as f64;
            for (served, share) in served.iter().zip(shares) {
                assert!((served - share * total).abs() <= 1500.0, "{served} of {total}: {share}");
            }
        }
    }
}

#[test]
fn flows_without_classes_share_alike_whatever_the_size_of_their_packets() {
    let mut link = Link::new(shared(Vec::new(), 10_000));
    for (flow, len) in [(0, 1500), (1, 500), (2, 100)] {
        (0..150_000 / len).for_each(|_| link.send(0, 0, flow, len));
    }
    link.net.finish();
    let out = link.out();
    let bytes = bytes_between(&out, 0, 300 * MS, |out| usize::try_from(out.flow).unwrap());
    assert!(bytes.iter().all(|bytes| bytes.abs_diff(100_000) <= 1500), "{bytes:?}");
    assert!(link.net.engine.poll_flow_question().is_none(), "flows without classes are asked for");
}

#[test]
fn a_class_shares_first_and_then_its_flows() {
    let mut link = Link::new(shared(vec![class(0, 1), class(0, 1)], 100_000));
    for n in 0..1000 {
        (0..9).for_each(|flow| link.send(0, 0, flow, 500));
        link.send(0, 1, 0, 500);
        if n % 2 == 0 {
            link.send(0, 1, 1, 1000);
        }
    }
    link.net.finish();
    let out = link.out();
    let within = 900 * MS;
    let classes = bytes_between(&out, 0, within, |out| out.class);
    assert!(classes.iter().all(|bytes| bytes.abs_diff(450_000) <= 1500), "{classes:?}");
    for (class, count) in [(0, 9), (1, 2)] {
        let of_class: Vec<Out> = out.iter().copied().filter(|out| out.class == class).collect();
        let flows = bytes_between(&of_class, 0, within, |out| usize::try_from(out.flow).unwrap());
        let fair = 450_000 / count;
        assert!(flows.iter().all(|bytes| bytes.abs_diff(fair) <= 1500), "{flows:?}");
    }
}

#[test]
fn what_a_class_leaves_goes_to_others_and_is_not_saved_up() {
    let mut link = Link::new(shared(vec![class(0, 3), class(0, 1)], 100_000));
    // The second class alone has everything.
    (0..4000).for_each(|_| link.send(0, 1, 0, 500));
    link.net.run_until(1000 * MS);
    // The first comes back after a second without: it has its share from now on, and no more.
    (0..4000).for_each(|_| link.send(1000 * MS, 0, 0, 500));
    link.net.finish();
    let out = link.out();
    assert_eq!(bytes_between(&out, 0, 1000 * MS, |out| out.class), [0, 1_000_000 - 500]);
    for until in [1010, 1100, 2000] {
        let bytes = bytes_between(&out, 1000 * MS + 1, until * MS, |out| out.class);
        let total = bytes[0] + bytes[1];
        assert!((bytes[0] * 4).abs_diff(total * 3) <= 4 * 1000, "{bytes:?} until {until}");
    }
}

#[test]
fn a_packet_of_a_class_within_its_minimum_waits_no_longer_than_its_share_and_a_packet_take() {
    let mut link = Link::new(shared(vec![class(100, 1), class(0, 100)], 100_000));
    // 100 bytes each ms are reserved, and 200 bytes come each 2 ms; others flood the link.
    for _ in 0..1000 {
        link.send(0, 1, 0, 1500);
        link.send(0, 2, 0, 1500);
    }
    for n in 0..500 {
        link.send(n * 2 * MS, 0, 0, 200);
    }
    link.net.finish();
    let out = link.out();
    let mine: Vec<&Out> = out.iter().filter(|out| out.class == 0).collect();
    assert_eq!(mine.len(), 500);
    for out in mine {
        let waited = out.at - u64::from(out.number) * 2 * MS;
        // 200 bytes at the reserved rate, and the longest packet at the link's.
        assert!(waited <= 2 * MS + 1_500_000, "{out:?} took {waited} ns");
    }
}

#[test]
fn the_longest_class_pays_when_the_queue_is_full() {
    let mut link = Link::new(shared(vec![class(0, 1), class(0, 1)], 20));
    for n in 0..400 {
        (0..4).for_each(|_| link.send(n * MS, 1, 0, 1000));
        if n % 4 == 0 {
            link.send(n * MS, 0, 0, 500);
        }
    }
    link.net.finish();
    link.net.check_conservation();
    let counters = link.classes().counters;
    assert_eq!((counters[0].packets, counters[0].dropped_packets), (100, 0));
    assert_eq!(counters[1].packets + counters[1].dropped_packets, 1600);
    assert_eq!(counters[1].dropped_packets, link.net.lane(0).dropped[DropReason::QueueFull]);
}

#[test]
fn a_flow_waits_with_the_rest_until_its_class_is_known_and_keeps_its_order() {
    let mut link = Link::new(shared(vec![class(0, 9), class(0, 1)], 10_000));
    link.answers = false;
    for _ in 0..100 {
        link.send(0, 0, 0, 1000);
        link.send(0, 1, 0, 1000);
    }
    link.net.run_until(10 * MS);
    let ownership = link.classes().ownership;
    assert_eq!((ownership.flows, ownership.asked.packets), (2, 11), "ten have left, one leaves");
    link.answer(10 * MS, Some);
    link.net.run_until(60 * MS);
    let counters = link.classes().counters;
    assert_eq!(counters[2].packets, 11);
    assert!(counters[0].packets.abs_diff(45) <= 1, "{counters:?}");
    link.net.finish();
    let mut next = [0; 2];
    for out in link.out() {
        assert_eq!(out.number, next[out.class], "out of order");
        next[out.class] += 1;
    }
    assert_eq!(next, [100, 100]);
    assert_eq!(link.classes().ownership.asked.packets, 11);
}

#[test]
fn what_has_no_owner_is_counted_and_shares_as_the_rest_does() {
    let mut link = Link::new(shared(vec![class(0, 1)], 10_000));
    link.answers = false;
    link.send(0, 0, 0, 1000);
    link.answer(0, |_| None);
    (0..9).for_each(|_| link.send(0, 0, 0, 1000));
    link.net.finish();
    let LaneClassCounters { counters, ownership } = link.classes();
    assert_eq!((counters[0].packets, counters[1].packets), (0, 10));
    assert_eq!((ownership.asked.packets, ownership.unowned.packets), (1, 9));
    assert_eq!(ownership.unowned.bytes, 9000);
}

impl Link {
    /// Sends a packet of one socket, that of class 0, that this sender has sent. The payload says
    /// what `out` calls class and number.
    fn send_shared(&mut self, at: u64, sender: SenderClass, tag: (u16, u32), len: usize) {
        let mut payload = vec![0; len - 28];
        let (class, number) = tag;
        let tag = u32::from(1000 * (class + 1)) << 16 | number;
        payload[..4].copy_from_slice(&tag.to_be_bytes());
        let from = SocketAddr::new(self.net.address(0), 1000);
        let frame = build::udp(from, self.net.socket(1), &payload);
        self.net.send_of(at, 0, sender, vnet::VirtioNetHeader::default(), &frame);
        self.answer(at, |_| Some(0));
    }
}

#[test]
fn datagrams_of_one_socket_are_each_in_the_class_of_their_sender() {
    let mut link = Link::new(shared(vec![class(0, 3), class(0, 1)], 10_000));
    // Both flood, by turns; shares are 3 : 1 all the same.
    for number in 0..600 {
        link.send_shared(0, SenderClass::Class(0), (0, number), 500);
        link.send_shared(0, SenderClass::Class(1), (1, number), 1000);
    }
    link.net.run_until(300 * MS);
    let bytes = bytes_between(&link.out(), 0, 300 * MS, |out| out.class);
    assert!((bytes[0] * 4).abs_diff(300_000 * 3) <= 4 * 1000, "{bytes:?}");
    assert!((bytes[1] * 4).abs_diff(300_000) <= 4 * 1000, "{bytes:?}");
    link.net.finish();
    link.net.check_conservation();
    let mut next = [0; 2];
    for out in link.out() {
        assert_eq!(out.number, next[out.class], "a sender's datagrams keep their order");
        next[out.class] += 1;
    }
    let LaneClassCounters { counters, ownership } = link.classes();
    assert_eq!(counters.iter().map(|it| it.packets).collect::<Vec<_>>(), [600, 600, 0]);
    assert_eq!((ownership.attributed.packets, ownership.attributed.bytes), (1200, 900_000));
    assert_eq!(
        (ownership.unattributed.packets, ownership.asked.packets, ownership.flows),
        (0, 0, 1)
    );
}

#[test]
fn a_datagram_whose_sender_is_not_known_is_of_its_flows_class_and_counted() {
    let mut link = Link::new(shared(vec![class(0, 3), class(0, 1)], 10_000));
    for number in 0..10 {
        link.send_shared(0, SenderClass::Class(7), (0, number), 500);
        link.send_shared(0, SenderClass::Unknown, (1, number), 500);
    }
    link.net.finish();
    let LaneClassCounters { counters, ownership } = link.classes();
    assert_eq!(counters.iter().map(|it| it.packets).collect::<Vec<_>>(), [10, 0, 10]);
    assert_eq!((ownership.attributed.packets, ownership.unattributed.packets), (10, 10));
    assert_eq!(ownership.unattributed.bytes, 5000);
}

#[test]
fn an_answer_about_a_flow_moves_only_what_no_sender_was_said_of() {
    let mut link = Link::new(shared(vec![class(0, 1), class(0, 1)], 10_000));
    let send = |link: &mut Link, sender, number: u32| {
        let mut payload = vec![0; 472];
        payload[..4].copy_from_slice(&(1000_u32 << 16 | number).to_be_bytes());
        let from = SocketAddr::new(link.net.address(0), 1000);
        let frame = build::udp(from, link.net.socket(1), &payload);
        link.net.send_of(0, 0, sender, vnet::VirtioNetHeader::default(), &frame);
    };
    for number in 0..10 {
        send(&mut link, SenderClass::Flow, number);
        send(&mut link, SenderClass::Class(1), number);
    }
    // One of the rest is in transmission.
    link.answer(0, |_| Some(0));
    link.net.finish();
    let counters = link.classes().counters;
    assert_eq!(counters.iter().map(|it| it.packets).collect::<Vec<_>>(), [9, 10, 1]);
}

#[test]
fn shares_follow_the_links_rate_and_minimums_stay() {
    let mut link = Link::new(shared(vec![class(400, 1), class(0, 1)], 100_000));
    for _ in 0..2000 {
        (0..3).for_each(|class| link.send(0, class, 0, 500));
    }
    // 400 + 200, 200, 200 of 1000 bytes each ms; then 400 + 33, 33, 33 of 500.
    let rate = Rate::from_bits_per_second(RATE / 2).unwrap();
    link.net.patch(
        500 * MS,
        up(0),
        LinkPatch {
            rate: Some(windtunnel_model::profile::PropertySetting::To(rate)),
            ..LinkPatch::default()
        },
    );
    link.net.run_until(1100 * MS);
    let out = link.out();
    let near = |from, to, fair: [u64; 3]| {
        let bytes = bytes_between(&out, from * MS, to * MS, |out| out.class);
        let all = bytes.iter().zip(fair).all(|(bytes, fair)| bytes.abs_diff(fair) <= 1000);
        assert!(all, "{bytes:?} instead of {fair:?}");
    };
    near(0, 500, [300_000, 100_000, 100_000]);
    near(500, 1100, [260_000, 20_000, 20_000]);
}
