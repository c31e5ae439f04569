//! Owners of flows, with sockets and processes of this machine.

use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};

use windtunnel_model::{LinkDirection, LinkId};

use super::*;

const LANE: Lane = Lane { link: LinkId(0), direction: LinkDirection::Up };

/// This process stands for an init whose programs have the classes below 2.
fn owners(roots: &ProgramRootProcesses) -> FlowOwnerThread {
    let place = LaneSourceNode { node: 0, init: std::process::id(), rest: 2 };
    let setup = FlowOwnerSearchSettings { places: vec![(LANE, place)], roots: roots.clone() };
    FlowOwnerThread::start(setup, Arc::new(Wake::open().unwrap())).unwrap()
}

/// A program with a socket, and what its packets say.
fn program() -> (Child, FiveTuple) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let own = socket.local_addr().unwrap();
    let child = Command::new("sleep").arg("60").stdin(OwnedFd::from(socket)).spawn().unwrap();
    let key = FiveTuple {
        source: own.ip(),
        destination: own.ip(),
        protocol: 17,
        source_port: own.port(),
        destination_port: 0,
    };
    (child, key)
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// As the child numbers itself.
fn pid(child: &Child) -> i32 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("NSpid:")).unwrap();
    line.split_ascii_whitespace().next_back().unwrap().parse().unwrap()
}

#[test]
fn a_flow_is_of_the_program_whose_process_has_its_socket() {
    let (roots, (child, key)) = (ProgramRootProcesses::default(), program());
    roots.insert(0, pid(&child), 1);
    let owners = owners(&roots);
    owners.ask(FlowOwnerQuery { lane: LANE, key });
    let answer = FlowOwnerReply { lane: LANE, key, class: Some(1), is_shared: false };
    assert_eq!(owners.answers.recv(), Ok(answer));
    assert_eq!(owners.shared_flows(LANE), 0);
    end(child);
}

#[test]
fn a_flow_of_a_socket_that_two_programs_have_is_the_first_ones_and_shared() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let own = socket.local_addr().unwrap();
    let key = FiveTuple {
        source: own.ip(),
        destination: own.ip(),
        protocol: 17,
        source_port: own.port(),
        destination_port: 0,
    };
    let start = || {
        let socket = OwnedFd::from(socket.try_clone().unwrap());
        Command::new("sleep").arg("60").stdin(socket).spawn().unwrap()
    };
    let (roots, children) = (ProgramRootProcesses::default(), [start(), start()]);
    children.iter().zip(0..).for_each(|(child, number)| roots.insert(0, pid(child), number));
    let owners = owners(&roots);
    owners.ask(FlowOwnerQuery { lane: LANE, key });
    let answer = FlowOwnerReply { lane: LANE, key, class: Some(0), is_shared: true };
    assert_eq!(owners.answers.recv(), Ok(answer));
    assert_eq!(owners.shared_flows(LANE), 1);
    children.into_iter().for_each(end);
}

#[test]
fn a_flow_of_a_process_that_no_program_has_started_is_the_rests() {
    let (roots, (child, key)) = (ProgramRootProcesses::default(), program());
    let owners = owners(&roots);
    owners.ask(FlowOwnerQuery { lane: LANE, key });
    assert_eq!(owners.answers.recv().unwrap().class, Some(2));
    end(child);
}

#[test]
fn a_flow_whose_socket_has_gone_has_no_owner() {
    let (roots, (child, key)) = (ProgramRootProcesses::default(), program());
    end(child);
    let owners = owners(&roots);
    owners.ask(FlowOwnerQuery { lane: LANE, key });
    let answer = FlowOwnerReply { lane: LANE, key, class: None, is_shared: false };
    assert_eq!(owners.answers.recv(), Ok(answer));
}

#[test]
fn only_lanes_that_programs_share_need_owners() {
    let plan = |send: &str| {
        let text = format!(
            "nodes: {{a: {{run: [{{run: x{send}}}]}}, b: {{}}}}\nlinks: [{{between: [b, a], rate: 1mbit}}]"
        );
        crate::testing::plan(&text)
    };
    assert!(lanes(&plan("")).is_empty());
    let plan = plan(", send: {weight: 2}");
    let lane = Lane { link: LinkId(0), direction: LinkDirection::Down };
    assert_eq!(lanes(&plan), BTreeMap::from([(NodeId(0), lane)]));
    let setup = FlowOwnerSearchSettings::new(&plan, &ProgramRootProcesses::default(), |node| {
        Some(node.0 + 70)
    })
    .unwrap();
    let [(lane, place)] = setup.places[..] else { panic!("{setup:?}") };
    assert_eq!(
        (lane.direction, place.node, place.init, place.rest),
        (LinkDirection::Down, 0, 70, 1)
    );
}
