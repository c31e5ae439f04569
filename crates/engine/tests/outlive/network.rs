//! The network of these tests.

use std::net::{Ipv4Addr, SocketAddr};

use windtunnel_model::plan::{FailOver, Plan, ReplicaLossResponse, Service, ServicePort};
use windtunnel_model::{LinkProfile, NodeId, RouterId, Span};

use crate::support::{Topology, delayed};

/// Nodes, and their ports.
pub(crate) const CLIENT: u32 = 0;
pub(crate) const NEAR: u32 = 1;
pub(crate) const FAR: u32 = 2;

/// Links.
pub(crate) const AT_CLIENT: u32 = 0;
pub(crate) const AT_NEAR: u32 = 1;
pub(crate) const AT_FAR: u32 = 2;
pub(crate) const BETWEEN: u32 = 3;
pub(crate) const DETOUR: u32 = 5;

pub(crate) const V4: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 80);

/// `client` at r1, `near` at r2, `far` at r3, 1 ms each, and 1 ms between r1 and r2, r2 and r3; a web
/// server behind r3, whose address the service's is; and 30 ms from r1 straight to r3, used where
/// the shorter way is cut and routes are computed again.
pub(crate) fn network() -> Plan {
    network_of(&delayed(Span::from_millis(1)))
}

/// The same with other properties of all lanes but those of the detour.
pub(crate) fn network_of(profile: &LinkProfile) -> Plan {
    let mut plan = Topology::new(1);
    let nodes = ["client", "near", "far", "web"].map(|name| plan.node(name));
    let [r1, r2, r3] = ["r1", "r2", "r3"].map(|name| plan.router(name));
    let both = || [profile.clone(), profile.clone()];
    for ends in [[nodes[0], r1], [nodes[1], r2], [nodes[2], r3], [r1, r2], [r2, r3]] {
        plan.link(ends, both());
    }
    plan.link([r1, r3], [(), ()].map(|()| delayed(Span::from_millis(30))));
    plan.link([nodes[3], r3], both());
    let mut plan = plan.build();
    plan.routing = windtunnel_model::plan::RoutingMetric::Latency.into();
    plan
}

/// 80/tcp and 53/udp, replicated on `near` and `far`.
pub(crate) fn service() -> Service {
    Service {
        v4: Some(V4),
        ports: ["80/tcp", "53/udp"].map(port).to_vec(),
        at: (0..3).map(RouterId).collect(),
        fail_over: FailOver::Transparent,
        on_loss: ReplicaLossResponse::Reset,
        ..Service::new("www", [NEAR, FAR].map(NodeId))
    }
}

pub(crate) fn port(text: &str) -> ServicePort {
    text.parse().unwrap()
}

pub(crate) fn www() -> SocketAddr {
    (V4, 80).into()
}

/// The client's end.
pub(crate) fn client() -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, 1), 40_000).into()
}
