//! One machine's part of a network: what leaves it.

use std::net::SocketAddr;

use windtunnel_engine::{Engine, EngineLimits, NetworkPart};
use windtunnel_model::flow::FlowChange;
use windtunnel_model::plan::{BandwidthSharing, EventAction, LinkChange, NetworkModel};
use windtunnel_model::profile::LossModel;
use windtunnel_model::random::RandomStream;
use windtunnel_model::{
    LinkDirection, LinkPatch, LinkProfile, Plan, PortId, Probability, Span, Time,
};
use windtunnel_wire::{build, vnet};

use crate::support::{MS, Net, Topology, delayed, pair, rated, up};

/// Nodes a, b (ports 0, 1) at router l, and x, y (2, 3) at r; l--r is link 0 with these properties.
pub(crate) fn dumbbell(shared: LinkProfile) -> Plan {
    let mut plan = Topology::new(3);
    let [a, b, x, y] = ["a", "b", "x", "y"].map(|name| plan.node(name));
    let (l, r) = (plan.router("l"), plan.router("r"));
    plan.link([l, r], [shared.clone(), shared]);
    for (node, router) in [(a, l), (b, l), (x, r), (y, r)] {
        plan.link([node, router], [LinkProfile::default(), LinkProfile::default()]);
    }
    let mut plan = plan.build();
    plan.model = NetworkModel::Paths(BandwidthSharing::Equal);
    plan
}

pub(crate) fn engine(plan: &Plan, number: u32, here: &[usize]) -> Engine {
    let here = (0..plan.nodes.len()).map(|node| here.contains(&node)).collect();
    Engine::of_part(plan, EngineLimits { packet_memory: 1 << 24 }, &NetworkPart { number, here })
}

pub(crate) fn udp(plan: &Plan, from: usize, to: usize, port: u16) -> Vec<u8> {
    let socket = |node: usize, port| {
        let address = plan.nodes[node].interfaces[0].v4.unwrap();
        SocketAddr::from((address, port))
    };
    build::udp(socket(from, port), socket(to, 7000), &[0; 972])
}

pub(crate) fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

pub(crate) fn send(engine: &mut Engine, nanos: u64, port: u32, frame: &[u8]) {
    let mut frame = frame.to_vec();
    let express =
        engine.handle_packet(at(nanos), PortId(port), vnet::VirtioNetHeader::default(), &mut frame);
    assert_eq!(express, None);
}

/// Ports and intended times of what is given out.
pub(crate) fn outputs(engine: &mut Engine) -> Vec<(u32, u64)> {
    let mut seen = Vec::new();
    while let Some(departure) = engine.poll_output() {
        seen.push((departure.port.0, departure.intended.as_nanos()));
        engine.recycle(departure.frame);
    }
    seen
}

pub(crate) fn news(engine: &mut Engine) -> Vec<FlowChange> {
    std::iter::from_fn(|| engine.poll_flow()).collect()
}

#[test]
fn a_packet_to_another_machine_is_given_out_when_it_leaves_its_source() {
    // 1000 bytes at 8 Mbit/s leave after 1 ms, and are there 20 ms later.
    let shared = LinkProfile { latency: Span::from_millis(20), ..rated(8_000_000) };
    let plan = dumbbell(shared);
    let mut engine = engine(&plan, 0, &[0, 1, 3]);
    assert!(engine.is_here(PortId(3)) && !engine.is_here(PortId(2)));
    send(&mut engine, 0, 0, &udp(&plan, 0, 2, 7000));
    send(&mut engine, 0, 1, &udp(&plan, 1, 3, 7000));
    assert_eq!(outputs(&mut engine), []);
    engine.handle_timeout(at(MS));
    assert_eq!(outputs(&mut engine), [(2, 21 * MS)], "known at 1 ms, for the time at 21");
    engine.handle_timeout(at(21 * MS));
    assert_eq!(outputs(&mut engine), [(3, 21 * MS)], "what is here waits here");
    assert_eq!(engine.in_flight_bytes(), 0);
}

#[test]
fn a_way_without_properties_to_another_machine_is_as_express_as_on_one() {
    let plan = dumbbell(LinkProfile::default());
    let express = |mut engine: Engine| {
        let mut bytes = udp(&plan, 0, 2, 7000);
        let express =
            engine.handle_packet(at(5), PortId(0), vnet::VirtioNetHeader::default(), &mut bytes);
        assert_eq!(outputs(&mut engine), []);
        (express.unwrap(), bytes)
    };
    let whole = express(Engine::new(&plan, EngineLimits { packet_memory: 1 << 20 }));
    assert_eq!(whole.0.port, PortId(2));
    assert_eq!(express(engine(&plan, 0, &[0])), whole);
}

#[test]
fn a_way_that_loses_its_latency_is_express_when_all_before_is_there() {
    let plan = dumbbell(delayed(Span::from_millis(20)));
    let mut engine = engine(&plan, 0, &[0, 1]);
    let frame = udp(&plan, 0, 2, 7000);
    send(&mut engine, 0, 0, &frame);
    assert_eq!(outputs(&mut engine), [(2, 20 * MS)]);
    let patch = LinkPatch { latency: Some(Span::ZERO), ..LinkPatch::default() };
    let change = LinkChange { patches: vec![(up(0), patch)], state: Vec::new() };
    engine.apply(at(MS), &EventAction::Link(change));
    send(&mut engine, 2 * MS, 0, &frame);
    assert_eq!(outputs(&mut engine), [(2, 20 * MS)], "not before the first");
    let mut from = |nanos, port, node| {
        let mut bytes = udp(&plan, node, 2, 7000);
        engine.handle_packet(at(nanos), PortId(port), vnet::VirtioNetHeader::default(), &mut bytes)
    };
    assert!(from(3 * MS, 1, 1).is_some(), "another source has no packet on the way");
    assert!(from(20 * MS, 0, 0).is_some());
}

#[test]
fn a_pair_on_one_machine_with_everything_is_what_it_was() {
    let plan = dumbbell(LinkProfile {
        loss: LossModel::Independent("3%".parse().unwrap()),
        ..delayed(Span::from_millis(3))
    });
    let run = |mut engine: Engine| {
        let frame = udp(&plan, 0, 2, 7000);
        (0..500).for_each(|tag| send(&mut engine, tag * MS, 0, &frame));
        engine.handle_timeout(at(600 * MS));
        (outputs(&mut engine), news(&mut engine))
    };
    let limits = EngineLimits { packet_memory: 1 << 24 };
    let (new, announced) = run(Engine::new(&plan, limits));
    assert!(announced.is_empty(), "there is no other member");
    assert!(new.len() < 500);
    assert_eq!(run(Engine::of_part(&plan, limits, &NetworkPart::whole(&plan))).0, new);
}

#[test]
fn parts_have_luck_of_their_own_and_the_first_that_of_a_whole() {
    let lossy = LinkProfile {
        loss: LossModel::Independent("20%".parse().unwrap()),
        ..LinkProfile::default()
    };
    let plan = dumbbell(lossy);
    let run = |mut engine: Engine| {
        let frame = udp(&plan, 0, 2, 7000);
        let sent = (0..1000u64).filter(|tag| {
            let mut frame = frame.clone();
            let now = at(tag * MS);
            let _ =
                engine.handle_packet(now, PortId(0), vnet::VirtioNetHeader::default(), &mut frame);
            !outputs(&mut engine).is_empty()
        });
        sent.collect::<Vec<u64>>()
    };
    let parts: Vec<Vec<u64>> = (0..3).map(|number| run(engine(&plan, number, &[0, 1]))).collect();
    for part in &parts {
        // Four deviations of √(1000 · 0.2 · 0.8).
        assert!((749..=851).contains(&part.len()), "{}", part.len());
    }
    assert!(parts[0] != parts[1] && parts[1] != parts[2] && parts[0] != parts[2]);
    let loss = RandomStream::derive(plan.seed, &plan.links[0].name, LinkDirection::Up, "loss");
    let probability: Probability = "20%".parse().unwrap();
    let expected = (0..1000u64).filter(|tag| !probability.decides(loss.at(tag + 1)));
    assert_eq!(parts[0], expected.collect::<Vec<u64>>());
}

#[test]
#[should_panic(expected = "parts need the model of paths")]
fn queues_of_hops_cannot_be_in_two_places() {
    let plan = pair(1, rated(1_000_000));
    engine(&plan, 0, &[0]);
}

#[test]
fn answers_of_routers_to_another_machine_are_departures() {
    let plan = dumbbell(LinkProfile { latency: Span::from_millis(10), ..rated(8_000_000) });
    let mut engine = engine(&plan, 0, &[0]);
    // A sender that claims to be y: what router l says of its packet goes to y.
    send(&mut engine, 0, 0, &build::with_ttl(udp(&plan, 3, 2, 7000), 1));
    engine.handle_timeout(at(MS));
    assert_eq!(outputs(&mut engine), [(3, 11 * MS)]);
}

#[test]
fn a_whole_of_hops_is_a_part_too() {
    let plan = pair(1, rated(8_000_000));
    let part = NetworkPart::whole(&plan);
    assert!(part.is_whole());
    let mut net = Net::new(plan);
    net.send_udp(0, 1000, 1);
    net.finish();
    assert_eq!(net.times(), [MS]);
    assert_eq!(net.engine.poll_flow(), None);
}
