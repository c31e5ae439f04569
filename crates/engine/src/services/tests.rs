//! Bounds of what redirectors know, which whole networks reach too slowly.

use windtunnel_model::plan::{
    FailOver, FlowPinningScope, Hash, Link, LinkEnd, LoadBalancingPolicy, Node, NodeInterface,
    Replica as PlannedReplica, Router, RouterInterface, ServiceChange, ServiceUpdate,
    TunnelEncapsulation,
};
use windtunnel_model::{LinkDirection, LinkId, LinkProfile, NetworkVertex, NodeId, Span};
use windtunnel_wire::{build, tcp};

use super::*;

const R: RouterId = RouterId(0);

/// A router with two nodes, one of which is a replica of 80/tcp and 53/udp of 10.1.0.80.
fn plan() -> Plan {
    let node = |id: u32| Node {
        name: alloc::format!("n{id}"),
        group: alloc::format!("n{id}"),
        interfaces: alloc::vec![NodeInterface {
            port: PortId(id),
            name: "eth0".into(),
            link: LinkId(id),
            outward: LinkDirection::Up,
            v4: Some([10, 0, 0, 1 + u8::try_from(id).unwrap()].into()),
            v6: None,
            mtu: 1500,
        }],
        ..Node::default()
    };
    let link = |id: u32| Link {
        name: alloc::format!("n{id}--r"),
        ends: [(NetworkVertex::Node(NodeId(id)), 0), (NetworkVertex::Router(R), id)]
            .map(|(vertex, interface)| LinkEnd { vertex, interface }),
        profiles: [LinkProfile::default(), LinkProfile::default()],
    };
    let interface = |id: u32| RouterInterface {
        link: LinkId(id),
        outward: LinkDirection::Down,
        v4: Some([10, 0, 1, 1 + u8::try_from(id).unwrap()].into()),
        v6: None,
    };
    let service = Planned {
        name: "www".into(),
        v4: Some([10, 1, 0, 80].into()),
        v6: None,
        ports: alloc::vec!["80/tcp".parse().unwrap(), "53/udp".parse().unwrap()],
        origin: None,
        replicas: alloc::vec![PlannedReplica { node: NodeId(1), weight: 1 }],
        at: alloc::vec![R],
        policy: LoadBalancingPolicy::Nearest,
        hash: Hash::Rendezvous,
        pins: FlowPinningScope::Shared,
        health: None,
        fail_over: FailOver::New,
        on_loss: ReplicaLossResponse::Reset,
        encapsulation: TunnelEncapsulation::Clamp,
        ping: None,
        tcp_idle: Planned::TCP_IDLE,
        udp_idle: Planned::UDP_IDLE,
    };
    let plan = Plan {
        name: "test".into(),
        nodes: (0..2).map(node).collect(),
        routers: alloc::vec![Router {
            name: "r".into(),
            interfaces: (0..2).map(interface).collect()
        }],
        links: (0..2).map(link).collect(),
        services: alloc::vec![service],
        ..Plan::default()
    };
    assert_eq!(plan.validate(), Ok(()));
    plan
}

struct Bench {
    services: ServiceRedirector,
}

impl Bench {
    fn new(capacity: usize) -> Bench {
        let mut services = ServiceRedirector::with_pins(&plan(), capacity);
        for port in ["80/tcp", "53/udp"] {
            let port = port.parse().unwrap();
            let update = ServiceUpdate::Registered { replica: NodeId(1), port };
            services.update(Time::ZERO, &ServiceChange { service: ServiceId(0), update });
        }
        Bench { services }
    }

    fn send(&mut self, at: Time, frame: &[u8]) -> Redirection {
        let packet = ParsedPacket::parse(frame).unwrap();
        let way = ReplicaPathMetrics {
            latency: Span::ZERO,
            hops: 1,
            mtu: 1500,
            mtu_back: 1500,
            passes_node: false,
        };
        self.services.redirect(at, R, &packet, None, &mut |_| Some(way))
    }

    fn counters(&self) -> ServiceCounters {
        *self.services.counters(ServiceId(0))
    }

    fn live(&self) -> (u64, u64) {
        let counters = self.services.replicas(ServiceId(0))[0].counters;
        (counters.live_connections, counters.live_flows)
    }
}

fn seconds(count: u64) -> Time {
    Time::ZERO + Span::from_secs(count)
}

fn tcp(client: u16, flags: u8) -> Vec<u8> {
    let from = core::net::SocketAddr::from(([10, 0, 0, 1], client));
    build::tcp(from, "10.1.0.80:80".parse().unwrap(), 7, flags, b"")
}

fn udp(client: u16) -> Vec<u8> {
    let from = core::net::SocketAddr::from(([10, 0, 0, 1], client));
    build::udp(from, "10.1.0.80:53".parse().unwrap(), b"name?")
}

#[test]
fn a_full_table_evicts_and_counts_and_what_was_evicted_is_picked_up() {
    let mut bench = Bench::new(8);
    for client in 1..=8 {
        bench.send(seconds(client.into()), &tcp(client, tcp::SYN));
    }
    assert_eq!((bench.live(), bench.counters().evicted), ((8, 0), 0));
    bench.send(seconds(9), &tcp(9, tcp::SYN));
    assert_eq!((bench.live(), bench.counters().evicted), ((8, 0), 1));
    assert!(matches!(bench.send(seconds(10), &tcp(1, tcp::ACK)), Redirection::To(..)));
    assert_eq!((bench.counters().picked_up, bench.counters().evicted), (1, 2));
    assert_eq!(bench.services.counts().held, 8);
}

#[test]
fn a_full_table_forgets_what_is_over_first() {
    let mut bench = Bench::new(4);
    bench.send(seconds(1), &udp(1));
    for client in 2..=4 {
        bench.send(seconds(0), &tcp(client, tcp::SYN));
    }
    bench.send(seconds(32), &tcp(5, tcp::SYN));
    assert_eq!((bench.live(), bench.counters().evicted, bench.counters().expired), ((4, 0), 0, 1));
}

#[test]
fn a_flow_whose_time_is_over_begins_anew_though_its_pin_is_still_there() {
    let mut bench = Bench::new(4);
    bench.send(seconds(0), &udp(1));
    bench.send(seconds(31), &udp(1));
    let counters = bench.services.replicas(ServiceId(0))[0].counters;
    assert_eq!((counters.flows, counters.live_flows, bench.counters().expired), (2, 1, 1));
}

#[test]
fn a_connection_that_closes_is_known_for_a_minute() {
    let mut bench = Bench::new(4);
    bench.send(seconds(0), &tcp(1, tcp::SYN));
    bench.send(seconds(1), &tcp(1, tcp::FIN | tcp::ACK));
    bench.services.sweep(seconds(60));
    assert_eq!(bench.services.counts().held, 1);
    bench.services.sweep(seconds(62));
    assert_eq!((bench.services.counts().held, bench.services.next()), (0, None));
}

#[test]
fn what_is_foreseen_is_what_happens_and_nothing_comes_of_it() {
    let mut bench = Bench::new(4);
    let frame = tcp(1, tcp::SYN);
    let packet = ParsedPacket::parse(&frame).unwrap();
    let way = ReplicaPathMetrics {
        latency: Span::ZERO,
        hops: 1,
        mtu: 1500,
        mtu_back: 1500,
        passes_node: false,
    };
    let foreseen = bench.services.foresee(seconds(0), R, &packet, &mut |_| Some(way));
    assert_eq!(bench.services.counts().held, 0);
    assert_eq!(bench.send(seconds(0), &frame), foreseen);
}

#[test]
fn at_most_4096_clients_are_reset_at_once() {
    let mut bench = Bench::new(1 << 14);
    for client in 1..=5000 {
        bench.send(seconds(0), &tcp(client, tcp::SYN));
        bench.send(seconds(1), &tcp(client, tcp::ACK));
    }
    bench.send(seconds(1), &tcp(6000, tcp::SYN));
    let update = ServiceUpdate::Lost { replica: NodeId(1) };
    let broken =
        bench.services.update(Time::ZERO, &ServiceChange { service: ServiceId(0), update });
    assert_eq!(broken.len(), 4096);
    // The one that was opening was no connection yet.
    assert_eq!(bench.counters().lost_connections, 5000);
    assert_eq!((broken[0].client.port(), broken[0].acknowledged), (1, 1));
    let lost = Redirection::Lost(ServiceId(0), ReplicaLossResponse::Reset);
    assert_eq!(bench.send(seconds(2), &tcp(5000, tcp::ACK)), lost, "the others with their next");
}
