//! Flows, and the offsets in them.

use std::net::SocketAddr;

use windtunnel_engine::RecordSettings;
use windtunnel_model::plan::{RecordChoice, RecordDirection};
use windtunnel_model::record::{EventRecord, Kind, flag};
use windtunnel_model::{LinkProfile, Span};
use windtunnel_wire::build;

use super::{events, of};
use crate::support::{MS, Net, delayed, pair};

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const FIN: u8 = 0x01;

/// A client (port 0) and a server (port 1) that speak TCP in frames made here.
struct Talk {
    net: Net,
    at: u64,
}

impl Talk {
    fn new() -> Self {
        let net = Net::new(pair(1, delayed(Span::from_micros(5))));
        Talk { net, at: MS }
    }

    fn recorded() -> Self {
        let mut talk = Talk::new();
        talk.record();
        talk
    }

    fn record(&mut self) {
        self.net.engine.recorder_mut().record(Some(RecordSettings::default()));
    }

    /// A segment from port `from` with these sequence and acknowledgement numbers.
    fn say(&mut self, from: usize, flags: u8, sequence: u32, ack: u32, payload: usize) {
        let (source, destination) = (self.net.socket(from), self.net.socket(1 - from));
        let mut frame = build::tcp(source, destination, sequence, flags, &vec![7; payload]);
        frame[42..46].copy_from_slice(&ack.to_be_bytes());
        self.at += MS;
        self.net.send(self.at, u32::try_from(from).unwrap(), Default::default(), &frame);
    }

    fn handshake(&mut self, client: u32, server: u32) {
        self.say(0, SYN, client, 0, 0);
        self.say(1, SYN | ACK, server, client.wrapping_add(1), 0);
        self.say(0, ACK, client.wrapping_add(1), server.wrapping_add(1), 0);
    }

    /// Offered packets so far: (flow, flags, offset, length, acknowledged offset).
    fn offered(&mut self) -> Vec<(u32, u8, u32, u32, u32)> {
        self.net.finish();
        let offered = of(&self.net.records, Kind::Offered).into_iter();
        let seen = |it: EventRecord| (it.flow, it.flags, it.args[0], it.args[1], it.args[3]);
        offered.map(seen).collect()
    }

    fn last(&mut self) -> (u32, u8, u32, u32, u32) {
        *self.offered().last().expect("something was offered")
    }
}

#[test]
fn offsets_count_from_the_byte_after_the_syn_in_each_direction() {
    let mut talk = Talk::recorded();
    talk.handshake(1000, 77_000);
    talk.say(0, ACK, 1001, 77_001, 100);
    talk.say(1, ACK, 77_001, 1101, 50);
    let (reverse, ack) = (flag::REVERSE, flag::ACK);
    assert_eq!(
        talk.offered(),
        [
            (0, flag::SYN, 0, 0, 0),
            (0, flag::SYN | reverse | ack, 0, 0, 0),
            (0, ack, 0, 0, 0),
            (0, ack, 0, 100, 0),
            (0, reverse | ack, 0, 50, 100),
        ]
    );
    let sequences = of(&talk.net.records, Kind::FlowSequence);
    let known = sequences.iter().map(|it| (it.flags, it.args[0], it.args[1]));
    assert_eq!(known.collect::<Vec<_>>(), [(1, 1000, 0), (3, 1000, 77_000)]);
    let ends = of(&talk.net.records, Kind::FlowFrom);
    assert_eq!(ends.len(), 1, "ends do not change");
    assert_eq!((ends[0].flags, ends[0].extra), (6, 7000));
}

#[test]
fn what_is_sent_again_has_the_offset_that_it_had() {
    let mut talk = Talk::recorded();
    talk.handshake(1000, 77_000);
    talk.say(0, ACK, 1001, 77_001, 100);
    talk.say(0, ACK, 1101, 77_001, 100);
    talk.say(0, ACK, 1001, 77_001, 200);
    let offered = talk.offered();
    let ranges: Vec<_> = offered[3..].iter().map(|it| (it.2, it.3)).collect();
    assert_eq!(ranges, [(0, 100), (100, 100), (0, 200)]);
}

#[test]
fn offsets_go_on_where_sequence_numbers_wrap() {
    let mut talk = Talk::recorded();
    talk.handshake(u32::MAX - 50, u32::MAX);
    talk.say(0, ACK, u32::MAX - 49, 0, 100);
    talk.say(0, ACK, 50, 0, 100);
    talk.say(1, ACK, 0, 150, 10);
    let offered = talk.offered();
    let seen: Vec<_> = offered[3..].iter().map(|it| (it.2, it.3, it.4)).collect();
    assert_eq!(seen, [(0, 100, 0), (100, 100, 0), (0, 10, 200)]);
    let begin = 1000_u32;
    assert_eq!(begin.wrapping_add(u32::MAX).wrapping_sub(begin), u32::MAX);
}

#[test]
fn a_syn_sent_again_is_of_the_same_flow_and_one_with_another_number_of_a_new_flow() {
    let mut talk = Talk::recorded();
    talk.say(0, SYN, 1000, 0, 0);
    talk.say(0, SYN, 1000, 0, 0);
    assert_eq!(talk.last().0, 0);
    talk.say(0, SYN, 900_000, 0, 0);
    assert_eq!(talk.last(), (1, flag::SYN, 0, 0, 0));
    talk.say(1, SYN | ACK, 5, 900_001, 0);
    talk.say(0, ACK, 900_001, 6, 10);
    assert_eq!(talk.last(), (1, flag::ACK, 0, 10, 0));
    let numbers = of(&talk.net.records, Kind::FlowFrom).into_iter().map(|it| it.flow);
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn the_ports_of_a_connection_that_has_ended_may_be_used_from_the_other_side() {
    let mut talk = Talk::recorded();
    talk.handshake(1000, 77_000);
    talk.say(0, FIN | ACK, 1001, 77_001, 0);
    talk.say(1, FIN | ACK, 77_001, 1002, 0);
    talk.say(1, SYN, 500, 0, 0);
    assert_eq!(talk.last(), (1, flag::SYN, 0, 0, 0), "forward is who sent the SYN");
}

#[test]
fn both_sides_may_open_at_once() {
    let mut talk = Talk::recorded();
    talk.say(0, SYN, 1000, 0, 0);
    talk.say(1, SYN, 2000, 0, 0);
    assert_eq!(talk.last(), (0, flag::SYN | flag::REVERSE, 0, 0, 0));
    talk.say(0, SYN | ACK, 1000, 2001, 0);
    talk.say(1, ACK, 2001, 1001, 30);
    assert_eq!(talk.last(), (0, flag::ACK | flag::REVERSE, 0, 30, 0));
}

#[test]
fn a_machine_that_sees_one_direction_learns_the_other_from_the_handshake() {
    let mut talk = Talk::recorded();
    talk.say(0, SYN, 1000, 0, 0);
    talk.say(0, ACK, 1001, 77_001, 0);
    talk.say(0, ACK, 1001, 77_051, 100);
    assert_eq!(talk.last(), (0, flag::ACK, 0, 100, 50));
    let mut other = Talk::recorded();
    other.say(1, SYN | ACK, 77_000, 1001, 0);
    other.say(1, ACK, 77_001, 1101, 50);
    assert_eq!(other.last(), (0, flag::ACK | flag::REVERSE, 0, 50, 100));
    let from = of(&other.net.records, Kind::FlowFrom)[0];
    assert_eq!(from.arg_bytes()[12..], [10, 0, 0, 1], "from is who sent the SYN");
}

#[test]
fn recording_that_starts_in_the_middle_has_offsets_if_it_stood_by() {
    for standby in [false, true] {
        let mut talk = Talk::new();
        talk.net.engine.recorder_mut().stand_by(standby);
        talk.handshake(1000, 77_000);
        talk.say(0, ACK, 1001, 77_001, 100);
        assert!(talk.net.records.is_empty());
        talk.record();
        talk.say(0, ACK, 1101, 77_001, 100);
        let raw = (0, flag::ACK | flag::OFFSET_UNKNOWN, 1101, 100, 77_001);
        assert_eq!(talk.last(), if standby { (0, flag::ACK, 100, 100, 0) } else { raw });
    }
}

#[test]
fn datagrams_have_numbers_and_those_of_a_train_one_each() {
    let mut net = Net::recorded(pair(1, LinkProfile::default()));
    let (a, b) = (net.socket(0), net.socket(1));
    net.send(MS, 0, Default::default(), &build::udp(a, b, &[1; 10]));
    let (train, header) = build::udp_train(a, b, &[2; 2500], 1000);
    net.send(2 * MS, 0, header, &train);
    net.send(3 * MS, 0, Default::default(), &build::udp(a, b, &[3; 20]));
    net.send(4 * MS, 1, Default::default(), &build::udp(b, a, &[4; 30]));
    let seen = of(&net.records, Kind::Offered);
    let seen: Vec<_> = seen.iter().map(|it| (it.flags, it.args[0], it.args[1], it.extra)).collect();
    assert_eq!(seen, [(0, 0, 10, 1), (0, 1, 2500, 3), (0, 4, 20, 1), (flag::REVERSE, 0, 30, 1)]);
}

#[test]
fn datagrams_that_were_sent_before_recording_began_make_numbers_uncertain() {
    for standby in [false, true] {
        let mut net = Net::new(pair(1, LinkProfile::default()));
        net.engine.recorder_mut().stand_by(standby);
        net.send_udp(MS, 100, 0);
        net.engine.recorder_mut().record(Some(RecordSettings::default()));
        net.send_udp(2 * MS, 100, 1);
        let seen = of(&net.records, Kind::Offered)[0];
        let expected = if standby { (0, 1) } else { (flag::OFFSET_UNKNOWN, 0) };
        assert_eq!((seen.flags, seen.args[0]), expected);
    }
}

#[test]
fn the_fragments_of_a_datagram_have_its_number() {
    let mut net = Net::recorded(pair(1, LinkProfile::default()));
    let (a, b) = (net.socket(0), net.socket(1));
    net.send(MS, 0, Default::default(), &build::udp(a, b, &[0; 10]));
    let whole = build::udp(a, b, &[0; 3000]);
    let count = windtunnel_wire::fragment::count(&whole, 1500).unwrap();
    for index in 0..count {
        let mut fragment = vec![0; 1600];
        let len = windtunnel_wire::fragment::write(&whole, 1500, index, &mut fragment).unwrap();
        net.send(2 * MS, 0, Default::default(), &fragment[..len]);
    }
    net.send(3 * MS, 0, Default::default(), &build::udp(a, b, &[0; 10]));
    let seen = of(&net.records, Kind::Offered);
    assert_eq!(seen.iter().map(|it| it.args[0]).collect::<Vec<_>>(), [0, 1, 1, 1, 2]);
    assert_eq!(seen[1..4].iter().map(|it| it.args[1]).sum::<u32>(), 3000);
    assert!(seen.iter().all(|it| it.flow == 0));
}

#[test]
fn pings_are_a_flow_without_ports() {
    let mut net = Net::recorded(pair(1, LinkProfile::default()));
    let (a, b) = (net.address(0), net.address(1));
    for number in 0..3 {
        let frame = build::echo_request(a, b, 9, number, &[0; 56]);
        net.send(MS, 0, Default::default(), &frame);
    }
    let from = of(&net.records, Kind::FlowFrom)[0];
    assert_eq!((from.flags, from.extra), (1, 0));
    let seen = of(&net.records, Kind::Offered);
    assert_eq!(
        seen.iter().map(|it| (it.args[0], it.args[1])).collect::<Vec<_>>(),
        [(0, 64), (1, 64), (2, 64)]
    );
}

#[test]
fn flows_and_directions_that_were_not_chosen_are_not_recorded() {
    let choose = |choice: RecordChoice| {
        let mut net = Net::new(pair(1, LinkProfile::default()));
        let settings = RecordSettings::new(&choice, &net.plan);
        net.engine.recorder_mut().record(Some(settings));
        let (a, b) = (net.socket(0), net.socket(1));
        let other = SocketAddr::new(b.ip(), 53);
        net.send(MS, 0, Default::default(), &build::udp(a, b, &[0; 10]));
        net.send(MS, 0, Default::default(), &build::udp(a, other, &[0; 11]));
        net.send(MS, 1, Default::default(), &build::udp(b, a, &[0; 12]));
        let lengths = of(&net.records, Kind::Offered).into_iter().map(|it| it.args[1]);
        lengths.collect::<Vec<_>>()
    };
    let flows =
        |text: &str| RecordChoice { flows: vec![text.parse().unwrap()], ..RecordChoice::default() };
    assert_eq!(choose(RecordChoice::default()), [10, 11, 12]);
    assert_eq!(choose(flows("udp b:53")), [11]);
    assert_eq!(choose(flows("udp a:7000 b:7000")), [10, 12]);
    assert!(choose(flows("tcp")).is_empty());
    let reverse = Some(RecordDirection::Reverse);
    assert_eq!(choose(RecordChoice { direction: reverse, ..flows("udp") }), [12]);
}

#[test]
fn what_was_in_the_network_before_is_not_recorded_and_stops_being_when_recording_ends() {
    let mut net = Net::new(pair(1, delayed(Span::from_millis(5))));
    net.send_udp(MS, 100, 0);
    net.engine.recorder_mut().record(Some(RecordSettings::default()));
    net.send_udp(2 * MS, 200, 1);
    net.run_until(8 * MS);
    let lengths: Vec<_> = events(&net.records).iter().map(|it| it.args[1]).collect();
    assert_eq!(lengths, [172, 172], "offered and delivered");
    net.send_udp(9 * MS, 300, 2);
    net.engine.recorder_mut().record(None);
    net.finish();
    let lengths: Vec<_> = events(&net.records).iter().map(|it| it.args[1]).collect();
    assert_eq!(lengths, [172, 172, 272], "offered only");
}

#[test]
fn flows_are_defined_again_on_demand() {
    let mut net = Net::recorded(pair(1, LinkProfile::default()));
    net.send_udp(MS, 100, 0);
    net.send_udp(2 * MS, 100, 1);
    assert_eq!(of(&net.records, Kind::FlowFrom).len(), 1);
    net.engine.recorder_mut().define_again();
    net.send_udp(3 * MS, 100, 2);
    let from = of(&net.records, Kind::FlowFrom);
    assert_eq!(from.iter().map(|it| it.flow).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn memory_for_flows_is_bounded_and_what_goes_is_counted() {
    let mut net = Net::recorded(pair(1, LinkProfile::default()));
    let (a, b) = (net.socket(0), net.socket(1));
    for number in 0..70_000u32 {
        let ports = [number % 60_000 + 1, number / 60_000 + 1];
        let [from, to] = ports.map(|port| u16::try_from(port).unwrap());
        let frame = build::udp(SocketAddr::new(a.ip(), from), SocketAddr::new(b.ip(), to), &[0; 8]);
        net.send(u64::from(number) * 1000, 0, Default::default(), &frame);
    }
    let counts = net.engine.recorder().counts();
    assert_eq!((counts.flows, counts.forgotten), (70_000, 70_000 - 65_536));
    let last = *of(&net.records, Kind::Offered).last().unwrap();
    assert_eq!(last.flags, flag::OFFSET_UNKNOWN, "it may have been known before");
}
