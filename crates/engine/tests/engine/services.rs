//! Services: what redirectors do with packets, in virtual time.

mod changes;
mod directors;
mod fragments;
mod icmp;
mod laws;
mod loss;
mod mtu;
mod nodes;
mod ping;
mod records;
mod redirect;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use windtunnel_engine::ReplicaCounters;
use windtunnel_model::plan::{
    EventAction, Plan, Replica, Service, ServiceChange, ServicePort, ServiceUpdate,
    TunnelEncapsulation,
};
use windtunnel_model::{NodeId, RouterId, ServiceId, Span};
use windtunnel_wire::{build, tcp, vnet};

use crate::support::{Net, Topology, delayed};

pub(crate) const PLAIN: vnet::VirtioNetHeader = vnet::VirtioNetHeader {
    flags: 0,
    gso_type: 0,
    hdr_len: 0,
    gso_size: 0,
    csum_start: 0,
    csum_offset: 0,
};

/// Nodes and ports.
pub(crate) const CLIENT: u32 = 0;
pub(crate) const NEAR: u32 = 1;
pub(crate) const FAR: u32 = 2;
pub(crate) const ORIGIN: u32 = 3;

pub(crate) const WWW: ServiceId = ServiceId(0);
pub(crate) const V4: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 80);
pub(crate) const V6: Ipv6Addr = Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 0x80);

/// A client at r1; a near replica at r2, a far one at r3, behind r2; a web server at r1. Links 0 to
/// 5: client–r1 1 ms, near–r2 3 ms, far–r3 4 ms, web–r1 1 ms, r1–r2 2 ms, r2–r3 10 ms.
pub(crate) fn network() -> Plan {
    let mut plan = Topology::new(1);
    let nodes = ["client", "near", "far", "web"].map(|name| plan.node(name));
    let [r1, r2, r3] = ["r1", "r2", "r3"].map(|name| plan.router(name));
    let both = |millis| [delayed(Span::from_millis(millis)), delayed(Span::from_millis(millis))];
    let ends = [([nodes[0], r1], 1), ([nodes[1], r2], 3), ([nodes[2], r3], 4), ([nodes[3], r1], 1)];
    for (ends, millis) in ends {
        plan.link(ends, both(millis));
    }
    plan.link([r1, r2], both(2));
    plan.link([r2, r3], both(10));
    plan.build()
}

/// 80/tcp and 53/udp of the two addresses, of which `near` and `far` are replicas.
pub(crate) fn service() -> Service {
    Service {
        v4: Some(V4),
        v6: Some(V6),
        ports: vec![port("80/tcp"), port("53/udp")],
        at: (0..3).map(RouterId).collect(),
        ..Service::new("www", [NEAR, FAR].map(NodeId))
    }
}

pub(crate) fn port(text: &str) -> ServicePort {
    text.parse().unwrap()
}

/// The network with a service all of whose replicas listen on all ports.
pub(crate) fn world(service: Service) -> Net {
    world_of(network(), service)
}

pub(crate) fn world_of(mut plan: Plan, service: Service) -> Net {
    plan.services.push(service);
    assert_eq!(plan.validate(), Ok(()));
    let mut net = Net::new(plan);
    for (replica, port) in net.everything() {
        net.update(0, ServiceUpdate::Registered { replica, port });
    }
    net
}

impl Net {
    fn everything(&self) -> Vec<(NodeId, ServicePort)> {
        let service = &self.plan.services[0];
        let ports = |it: &Replica| service.ports.iter().map(|port| (it.node, *port)).collect();
        service.replicas.iter().flat_map(|it| -> Vec<_> { ports(it) }).collect()
    }

    /// Changes the service.
    pub(crate) fn update(&mut self, at: u64, update: ServiceUpdate) {
        self.apply(at, &EventAction::Service(vec![ServiceChange { service: WWW, update }]));
    }

    pub(crate) fn lose(&mut self, at: u64, replica: u32) {
        self.update(at, ServiceUpdate::Lost { replica: NodeId(replica) });
    }

    /// Sends a plain frame of the client.
    pub(crate) fn call(&mut self, at: u64, frame: &[u8]) {
        self.send(at, CLIENT, PLAIN, frame);
    }

    /// Sends something, runs on for a second, and answers with what came out meanwhile: the ports.
    pub(crate) fn ask(&mut self, frame: &[u8]) -> Vec<u32> {
        let (before, at) = (self.out.len(), self.now.as_nanos());
        self.call(at, frame);
        self.run_until(at + 1_000_000_000);
        self.out[before..].iter().map(|out| out.port).collect()
    }

    pub(crate) fn counters(&self, replica: usize) -> ReplicaCounters {
        self.engine.services().replicas(WWW)[replica].counters
    }
}

/// The client's end of IPv4.
pub(crate) fn client(port: u16) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, 1), port).into()
}

/// The client's end of IPv6.
pub(crate) fn client6(port: u16) -> SocketAddr {
    (Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1), port).into()
}

pub(crate) fn www() -> SocketAddr {
    (V4, 80).into()
}

pub(crate) fn dns() -> SocketAddr {
    (V4, 53).into()
}

pub(crate) fn syn(from: u16) -> Vec<u8> {
    build::tcp(client(from), www(), 1000, tcp::SYN, b"")
}

/// A segment of an established connection; it acknowledges 1.
pub(crate) fn data(from: u16, bytes: &[u8]) -> Vec<u8> {
    build::tcp(client(from), www(), 1001, tcp::ACK, bytes)
}

pub(crate) fn query(from: u16) -> Vec<u8> {
    build::udp(client(from), dns(), b"name?")
}

/// As it was sent, but so many routers later.
pub(crate) fn after(frame: &[u8], routers: u8) -> Vec<u8> {
    build::with_ttl(frame.to_vec(), 64 - routers)
}

pub(crate) fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}
