//! What a packet costs, counted: no clock is asked, so the figures are the same on every machine.

use windtunnel_model::plan::{Link, LinkEnd, Node, NodeInterface, Plan};
use windtunnel_model::{
    LinkDirection, LinkId, LinkProfile, NetworkVertex, NodeId, PortId, Rate, Span, Time,
};
use windtunnel_wire::vnet;

use super::Engine;
use crate::limits::EngineLimits;

const LATENCY: Span = Span::from_millis(10);

/// Wake-ups that were set for some packets, and the most that were ever in the heap.
#[derive(Debug, PartialEq, Eq)]
struct TimerHeapLoad {
    set: u64,
    heap: usize,
}

/// Sends three times as many packets as fly at a time, in turn over the links, and counts over the
/// last third: by then as many leave as come.
fn effort(profile: &LinkProfile, links: u32, flying: u64) -> TimerHeapLoad {
    let mut engine =
        Engine::new(&parallel(profile, links), EngineLimits { packet_memory: 1 << 30 });
    let gap = LATENCY.as_nanos() / flying;
    let mut before = 0;
    let mut heap = 0;
    for number in 1..=3 * flying {
        let now = Time::from_nanos(number * gap);
        let port = PortId(u32::try_from(number % u64::from(links)).expect("few links"));
        let express =
            engine.handle_packet(now, port, vnet::VirtioNetHeader::default(), &mut [0; 60]);
        assert_eq!(express, None, "it has to wait");
        while let Some(departure) = engine.poll_output() {
            engine.recycle(departure.frame);
        }
        heap = heap.max(engine.network.core.net.lanes.work.timers.len());
        if number == 2 * flying {
            before = engine.network.core.net.lanes.work.timers.ever_set();
        }
    }
    TimerHeapLoad { set: engine.network.core.net.lanes.work.timers.ever_set() - before, heap }
}

/// Two nodes with so many links between them.
fn parallel(profile: &LinkProfile, links: u32) -> Plan {
    let node = |id: u32, outward| Node {
        name: format!("n{id}"),
        group: format!("n{id}"),
        interfaces: (0..links)
            .map(|link| NodeInterface {
                port: PortId(id * links + link),
                name: format!("eth{link}"),
                link: LinkId(link),
                outward,
                v4: None,
                v6: None,
                mtu: 1500,
            })
            .collect(),
        ..Node::default()
    };
    let end = |id, interface| LinkEnd { vertex: NetworkVertex::Node(NodeId(id)), interface };
    let link = |link| Link {
        name: format!("l{link}"),
        ends: [end(0, link), end(1, link)],
        profiles: [profile.clone(), profile.clone()],
    };
    Plan {
        name: "parallel".to_owned(),
        seed: 1,
        nodes: vec![node(0, LinkDirection::Up), node(1, LinkDirection::Down)],
        links: (0..links).map(link).collect(),
        ..Plan::default()
    }
}

/// One wake-up for the end of the latency. The heap holds one for each lane with packets, never one
/// for each packet, so that a hop costs the logarithm of the links and nothing for what is in
/// flight.
#[test]
fn a_hop_with_latency_costs_one_wake_up_however_many_links_and_packets_there_are() {
    let profile = LinkProfile { latency: LATENCY, ..LinkProfile::default() };
    for links in [1, 10, 1000] {
        for flying in [10, 1000, 20_000] {
            let busy = flying.min(u64::from(links));
            let expected =
                TimerHeapLoad { set: flying, heap: usize::try_from(busy).expect("few lanes") };
            assert_eq!(
                effort(&profile, links, flying),
                expected,
                "{links} links, {flying} packets"
            );
        }
    }
}

/// Two wake-ups: for the end of the transmission and for the end of the latency.
#[test]
fn a_hop_with_latency_and_rate_costs_two() {
    let rate = Rate::from_bits_per_second(10_000_000_000);
    let profile = LinkProfile { latency: LATENCY, rate, ..LinkProfile::default() };
    for links in [1, 10, 1000] {
        for flying in [10, 1000, 20_000] {
            let TimerHeapLoad { set, heap } = effort(&profile, links, flying);
            assert_eq!(set, 2 * flying, "{links} links, {flying} packets");
            assert!(
                heap <= 2 * usize::try_from(links).expect("few links"),
                "{links} links: {heap} in the heap"
            );
        }
    }
}
