use windtunnel_model::record::kind::{Call, RecordSource};
use windtunnel_model::record::{Kind, flag};

use crate::evidence::tests::{
    CLIENT, CLIENT_TCP, ENGINE, SERVER, call, conversation, define, file, header, load, packet,
    sequence, socket,
};
use crate::file::{EventSource, FlowDirection};
use crate::{RecordedRun, flows};

const A: ([u8; 4], u16) = ([10, 0, 0, 1], 4000);
const B: ([u8; 4], u16) = ([10, 0, 0, 2], 80);
const ANY_B: ([u8; 4], u16) = ([0, 0, 0, 0], 53);

fn names(evidence: &RecordedRun) -> Vec<(String, String)> {
    let name = |end: &Option<flows::FlowEndpoint>| {
        end.map_or("?".to_owned(), |end| evidence.end_name(&end))
    };
    evidence.flows().iter().map(|flow| (name(&flow.from), name(&flow.to))).collect()
}

fn name_pairs<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

/// By record, in order of time: the flow.
fn bound(evidence: &RecordedRun) -> Vec<Option<usize>> {
    evidence.records().iter().map(crate::AttributedRecord::flow).collect()
}

#[test]
fn a_connection_that_four_sources_number_for_themselves_is_one_flow() {
    let evidence = load(&[conversation()]);
    assert_eq!(names(&evidence), name_pairs(&[("client:4000", "server:80")]));
    assert!(bound(&evidence).iter().all(|flow| *flow == Some(0)));
    let flow = &evidence.flows()[0];
    assert_eq!((flow.parts.len(), flow.begin_ns, flow.end_ns), (4, 1900, 2860));
    assert_eq!(flow.parts.iter().map(|part| part.records).sum::<u64>(), 14);
    let sequences = flow.parts.iter().filter_map(|part| part.sequence[0]);
    assert_eq!(sequences.collect::<Vec<_>>(), [12345]);
}

#[test]
fn bytes_have_the_direction_of_the_side_that_connected() {
    let evidence = load(&[conversation()]);
    let calls = evidence.records().iter().filter(|entry| entry.kind() == Some(Kind::Call));
    let seen: Vec<_> = calls
        .map(|entry| {
            let node = evidence.node_name(evidence.origin_of(entry)).unwrap();
            let call = Call::from_number(entry.record.extra).unwrap();
            (node, call, entry.direction())
        })
        .filter(|(_, call, _)| matches!(call, Call::Read | Call::Write))
        .collect();
    let expected = [
        ("server", Call::Read, FlowDirection::Forward),
        ("client", Call::Write, FlowDirection::Forward),
        ("client", Call::Read, FlowDirection::Reverse),
        ("server", Call::Write, FlowDirection::Reverse),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn without_calls_the_syn_gives_the_direction() {
    let mut engine = define(100, 3, 6, B, A).to_vec();
    engine.push(packet(Kind::Offered, 100, 3, flag::SYN | flag::REVERSE, [0; 4]));
    let evidence = load(&[file(header(), &[(ENGINE, engine)])]);
    assert_eq!(names(&evidence), name_pairs(&[("client:4000", "server:80")]));
    assert_eq!(evidence.records()[0].direction(), FlowDirection::Forward);
}

#[test]
fn a_port_used_again_by_another_socket_is_another_flow() {
    let life = |begin: u64, number: u32, cookie: u64| {
        let mut calls = define(begin, number, 6, A, B).to_vec();
        calls.push(socket(begin, number, cookie));
        calls.push(call(begin, number, Call::Connect, false, [0; 4]));
        calls.push(call(begin + 500, number, Call::Close, false, [0; 4]));
        let mut engine = define(begin + 5, number, 6, A, B).to_vec();
        engine.push(sequence(begin + 5, number, u32::try_from(cookie).unwrap() + 9));
        engine.push(packet(Kind::Offered, begin + 5, number, flag::SYN, [0; 4]));
        engine.push(packet(Kind::Offered, begin + 600, number, flag::FIN, [0; 4]));
        let mut server = define(begin + 700, number, 6, B, A).to_vec();
        server.push(socket(begin + 700, number, cookie + 1000));
        server.push(call(begin + 700, number, Call::Close, false, [0; 4]));
        [(CLIENT, calls), (ENGINE, engine), (SERVER, server)]
    };
    let batches = [life(1000, 1, 1), life(5000, 2, 2)].concat();
    let evidence = load(&[file(header(), &batches)]);
    let expected = [Some(0); 5].into_iter().chain([Some(1); 5]).collect::<Vec<_>>();
    assert_eq!(bound(&evidence), expected);
}

#[test]
fn a_number_that_is_defined_otherwise_means_another_flow_from_then_on() {
    const C: ([u8; 4], u16) = ([10, 0, 0, 2], 81);
    let mut engine = define(100, 3, 17, A, B).to_vec();
    engine.push(packet(Kind::Offered, 100, 3, 0, [0; 4]));
    engine.push(packet(Kind::Offered, 150, 3, 0, [1; 4]));
    engine.extend(define(200, 3, 17, A, C));
    engine.push(packet(Kind::Offered, 200, 3, 0, [0; 4]));
    let evidence = load(&[file(header(), &[(ENGINE, engine)])]);
    let expected = [("client:4000", "server:80"), ("client:4000", "server:81")];
    assert_eq!(names(&evidence), name_pairs(&expected));
    assert_eq!(bound(&evidence), [Some(0), Some(0), Some(1)]);
}

#[test]
fn a_definition_that_says_more_means_the_same_flow() {
    let mut calls = define(100, 3, 6, ([0, 0, 0, 0], 0), B).to_vec();
    calls.push(call(100, 3, Call::Connect, false, [0; 4]));
    calls.extend(define(120, 3, 6, A, B));
    calls.push(call(130, 3, Call::Write, false, [0, 1, 1, 1]));
    let evidence = load(&[file(header(), &[(CLIENT, calls)])]);
    assert_eq!(names(&evidence), name_pairs(&[("client:4000", "server:80")]));
}

#[test]
fn an_unconnected_datagram_socket_has_a_flow_for_each_peer() {
    const OTHER: ([u8; 4], u16) = ([10, 0, 0, 9], 4000);
    let mut server = Vec::new();
    let mut engine = Vec::new();
    for (number, client) in [(1, A), (2, OTHER)] {
        let at = 100 * u64::from(number);
        server.extend(define(at, number, 17, ANY_B, client));
        server.push(socket(at, number, 0xd5));
        server.push(call(at, number, Call::Recvfrom, true, [0, 512, 40, 9]));
        engine.extend(define(at - 50, number + 6, 17, client, ([10, 0, 0, 2], 53)));
        engine.push(packet(Kind::Offered, at - 50, number + 6, 0, [0, 40, 0, 0]));
    }
    let evidence = load(&[file(header(), &[(SERVER, server), (ENGINE, engine)])]);
    let expected = [("client:4000", "server:53"), ("10.0.0.9:4000", "server:53")];
    assert_eq!(names(&evidence), name_pairs(&expected));
    assert_eq!(bound(&evidence), [Some(0), Some(0), Some(1), Some(1)]);
    assert!(evidence.records().iter().all(|entry| entry.direction() == FlowDirection::Forward));
}

#[test]
fn a_socket_of_another_node_with_the_same_loopback_ends_is_another_flow() {
    let own = |port| ([127, 0, 0, 1], port);
    let calls = |cookie| {
        let mut calls = define(100, 1, 6, own(5000), own(80)).to_vec();
        calls.extend(define(100, 2, 6, own(80), own(5000)));
        calls.extend([socket(100, 1, cookie), socket(100, 2, cookie + 1)]);
        calls.push(call(110, 1, Call::Connect, false, [0; 4]));
        calls.push(call(120, 2, Call::Accept, false, [0; 4]));
        calls
    };
    let evidence = load(&[file(header(), &[(CLIENT, calls(4)), (SERVER, calls(4))])]);
    let expected = [("client:5000", "client:80"), ("server:5000", "server:80")];
    assert_eq!(names(&evidence), name_pairs(&expected));
    let flipped: Vec<_> = evidence.records().iter().map(crate::AttributedRecord::flipped).collect();
    assert_eq!(flipped, [false, false, true, true]);
}

#[test]
fn one_end_that_only_its_cookie_names_is_completed() {
    let mut tcp = define(90, 5, 6, ([0, 0, 0, 0], 4000), ([0, 0, 0, 0], 0)).to_vec();
    tcp.push(socket(90, 5, 0xc1));
    tcp.push(packet(Kind::TcpWindows, 90, 5, 0, [10, 10, 1, 1]));
    let mut calls = define(80, 1, 6, A, B).to_vec();
    calls.push(socket(80, 1, 0xc1));
    calls.push(call(80, 1, Call::Connect, false, [0; 4]));
    let evidence = load(&[file(header(), &[(CLIENT_TCP, tcp), (CLIENT, calls)])]);
    assert_eq!(bound(&evidence), [Some(0), Some(0)]);
}

#[test]
fn two_members_that_each_saw_one_direction_share_the_flow() {
    let of =
        |name: &str| crate::file::RecordFileHeader { member: Some(name.to_owned()), ..header() };
    let side = |from, to, flags| {
        let mut engine = define(100, 1, 6, from, to).to_vec();
        engine.push(packet(Kind::Offered, 100, 1, flags, [0; 4]));
        vec![(ENGINE, engine)]
    };
    let a = file(of("a"), &side(A, B, flag::SYN));
    let b = file(of("b"), &side(B, A, flag::SYN | flag::ACK));
    let evidence = load(&[a, b]);
    assert_eq!(names(&evidence), name_pairs(&[("client:4000", "server:80")]));
    let directions: Vec<_> =
        evidence.records().iter().map(crate::AttributedRecord::direction).collect();
    assert_eq!(directions, [FlowDirection::Forward, FlowDirection::Reverse]);
}

#[test]
fn a_socket_without_a_peer_is_not_its_own_peer() {
    const OPEN: ([u8; 4], u16) = ([0, 0, 0, 0], 0);
    let mut calls = define(5, 1, 17, OPEN, OPEN).to_vec();
    calls.push(call(5, 1, Call::Close, false, [0; 4]));
    let evidence = load(&[file(header(), &[(CLIENT, calls)])]);
    assert_eq!(names(&evidence), name_pairs(&[("0.0.0.0:0", "0.0.0.0:0")]));
}

#[test]
fn a_flow_that_no_source_defines_is_one_of_that_source() {
    let source = EventSource::of_node(RecordSource::Calls, 1, 3);
    let calls = vec![call(5, 12, Call::Write, false, [0; 4])];
    let evidence = load(&[file(header(), &[(source, calls)])]);
    assert_eq!(bound(&evidence), [Some(0)]);
    assert_eq!(evidence.flows()[0].from, None);
}

#[test]
fn two_sockets_with_one_engine_flow_are_said_to_be_reused_ends() {
    let calls = |at: u64, number: u32, cookie| {
        let mut calls = define(at, number, 17, A, B).to_vec();
        calls.push(socket(at, number, cookie));
        calls.push(call(at, number, Call::Send, false, [0, 9, 9, 1]));
        (CLIENT, calls)
    };
    let mut engine = define(110, 1, 17, A, B).to_vec();
    engine.extend([110, 210].map(|at| packet(Kind::Offered, at, 1, 0, [0; 4])));
    let evidence = load(&[file(header(), &[calls(100, 1, 1), calls(200, 2, 2), (ENGINE, engine)])]);
    let reused: Vec<bool> = evidence.flows().iter().map(|flow| flow.reused).collect();
    assert_eq!(reused, [true, false]);
}

#[test]
fn what_a_server_accepts_is_the_connection_that_was_there_then() {
    // Refused at 1000, and accepted at 2100 by a call that has waited since 1050.
    let attempt = |begin: u64, number: u32, end: u64| {
        let mut calls = define(begin, number, 6, A, B).to_vec();
        calls.push(socket(begin, number, u64::from(number)));
        calls.push(call(begin, number, Call::Connect, false, [0; 4]));
        calls.push(call(end, number, Call::Close, false, [0; 4]));
        calls
    };
    let client = [attempt(1000, 1, 1100), attempt(2000, 2, 3000)].concat();
    let mut server = define(1050, 1, 6, B, A).to_vec();
    server.push(socket(1050, 1, 77));
    server.push(call(1050, 1, Call::Accept, false, [0, 0, 9, 1050]));
    server.push(call(2200, 1, Call::Read, true, [0, 100, 100, 10]));
    let evidence = load(&[file(header(), &[(CLIENT, client), (SERVER, server)])]);
    assert_eq!(evidence.flows().len(), 2);
    let of_server: Vec<_> = evidence
        .records()
        .iter()
        .filter(|entry| evidence.node_name(evidence.origin_of(entry)) == Some("server"))
        .map(crate::AttributedRecord::flow)
        .collect();
    assert_eq!(of_server, [Some(1), Some(1)]);
}
