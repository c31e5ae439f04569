//! Services: one address, of which several nodes are replicas.

mod change;
mod port;

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::id::{NodeId, RouterId};
use crate::time::Span;

pub use change::{ServiceChange, ServiceUpdate};
pub use port::{PortError, ServicePort, TransportProtocol};

/// A service: packets to some ports of an address are redirected by routers to one of several
/// nodes, its replicas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Unique among services, nodes, groups of these, routers and LANs: it resolves to the
    /// addresses.
    pub name: String,
    /// IPv4 address; one of the two is there.
    pub v4: Option<Ipv4Addr>,
    /// IPv6 address.
    pub v6: Option<Ipv6Addr>,
    /// What is redirected, at least one; other ports are the origin's.
    pub ports: Vec<ServicePort>,
    /// The node whose addresses they are, by its interfaces or beside those of its interfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<NodeId>,
    /// In the file's order, each node once.
    pub replicas: Vec<Replica>,
    /// The routers that redirect, in order; at least one.
    pub at: Vec<RouterId>,
    /// Which replica gets what is new.
    pub policy: LoadBalancingPolicy,
    /// With [`LoadBalancingPolicy::Hash`]: how.
    #[serde(default, skip_serializing_if = "Hash::is_default")]
    pub hash: Hash,
    /// Which routers know the replica of a flow.
    #[serde(default, skip_serializing_if = "FlowPinningScope::is_default")]
    pub pins: FlowPinningScope,
    /// What is looked at beside whether programs listen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<ReplicaHealthCheck>,
    /// What becomes of connections whose replica is lost.
    pub fail_over: FailOver,
    /// With [`FailOver::New`]: what their clients are sent.
    pub on_loss: ReplicaLossResponse,
    /// How packets get from the router to the replica.
    pub encapsulation: TunnelEncapsulation,
    /// What answers an echo request to its addresses; `None`: the origin, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping: Option<Ping>,
    /// A TCP connection without a packet for so long is forgotten.
    pub tcp_idle: Span,
    /// A UDP flow without a packet for so long is forgotten.
    pub udp_idle: Span,
}

/// A node that a service's packets may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replica {
    /// The node.
    pub node: NodeId,
    /// Its share of what is new, with [`LoadBalancingPolicy::Weighted`]; 0: nothing.
    pub weight: u32,
}

/// Which replica gets a new connection or flow, of those that can be reached from the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum LoadBalancingPolicy {
    /// The nearest by the sum of latencies; of equals, that over fewer links, then the first.
    #[default]
    Nearest,
    /// The nearest by the number of links; of equals, that of the least latency, then the first.
    Hops,
    /// By a hash of the flow, in proportion to the weights.
    Weighted,
    /// That with the fewest live connections and flows; of equals, the first.
    LeastConnections,
    /// By a hash that keeps most flows at their replica where others come and go: see [`Hash`](enum@Hash).
    Hash,
    /// The first.
    Ordered,
    /// Each in its turn, in the order of the file.
    RoundRobin,
    /// By a random draw for each flow, all alike.
    Random,
}

/// How flows are spread by their hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Hash {
    /// By the client's address, so that a client stays at one replica: the replica with the highest
    /// random weight (Thaler, Ravishankar 1998). Where one goes, only its own clients move.
    #[default]
    Rendezvous,
    /// By addresses, ports and protocol, with a table in which replicas have equal shares, to one
    /// place (Maglev: Eisenbud et al., NSDI 2016). Where one goes, few flows of others move.
    Maglev,
}

/// Which routers know the replica of an established flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum FlowPinningScope {
    /// All: the flow stays with its replica where routes change.
    #[default]
    Shared,
    /// Those that redirected it: another one gives it what its own policy says.
    PerRouter,
}

/// A probe, beside what is seen of a replica's sockets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplicaHealthCheck {
    /// What is done.
    pub probe: HealthProbe,
    /// From the begin of one probe to that of the next.
    pub every: Span,
    /// A probe that takes longer has failed.
    pub timeout: Span,
    /// After so many successes one after the other an unhealthy replica is healthy again.
    pub rise: u32,
    /// After so many failures one after the other a healthy one is unhealthy.
    pub fall: u32,
}

/// What a probe does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HealthProbe {
    /// Opens a connection to the service's first TCP port.
    Tcp,
    /// Asks for this path over HTTP at the service's first TCP port: a status below 400 is healthy.
    Http(String),
    /// Runs this command in the replica's node: an exit with 0 is healthy.
    Command(Vec<String>),
    /// Sends a datagram to the service's first UDP port: an answer is healthy.
    Udp(HealthProbeDatagram),
}

/// A datagram of a probe, and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthProbeDatagram {
    /// What is sent.
    pub send: Vec<u8>,
    /// What the answer must contain; nothing: any answer will do.
    pub expect: Vec<u8>,
}

/// What becomes of established connections whose replica is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum FailOver {
    /// They are lost; new ones go elsewhere at once.
    #[default]
    New,
    /// They go on at another replica, which has had all of their bytes.
    Transparent,
}

/// What clients are sent whose connection is lost with its replica's node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum ReplicaLossResponse {
    /// Nothing: their packets are dropped, and counted.
    #[default]
    Silent,
    /// A reset, in the replica's name.
    Reset,
}

/// What answers an echo request to a service's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ping {
    /// The nearest replica with a program that listens on a port of the service, whatever the
    /// policy.
    Replica,
    /// The first router on the way that redirects, itself.
    Router,
}

/// How packets get from the router that redirects to the replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum TunnelEncapsulation {
    /// In another IP header (RFC 2003, RFC 2473). Segments are made small enough for that (the MSS
    /// of the replica's SYN-ACK is clamped), and what is too large is answered with the MTU.
    #[default]
    Clamp,
    /// In another IPv4 header that allows fragments: what is too large for a link with it is
    /// fragmented there, and put together at the replica.
    Fragment,
    /// By the route alone; packets keep their size.
    None,
}

impl ReplicaHealthCheck {
    /// The most probes one after the other that a change may need.
    pub const STREAK_MAX: u32 = 100;
}

impl HealthProbeDatagram {
    /// The most bytes of either: what a datagram over Ethernet has (1500 less 28).
    pub const BYTES_MAX: usize = 1472;
}

impl Service {
    /// A service on these nodes, with what holds where a file says no more. It has no address, port
    /// or router yet.
    #[must_use]
    pub fn new(name: &str, replicas: impl IntoIterator<Item = NodeId>) -> Service {
        Service {
            name: name.into(),
            v4: None,
            v6: None,
            ports: Vec::new(),
            origin: None,
            replicas: replicas.into_iter().map(|node| Replica { node, weight: 1 }).collect(),
            at: Vec::new(),
            policy: LoadBalancingPolicy::default(),
            hash: Hash::default(),
            pins: FlowPinningScope::default(),
            health: None,
            fail_over: FailOver::default(),
            on_loss: ReplicaLossResponse::default(),
            encapsulation: TunnelEncapsulation::default(),
            ping: None,
            tcp_idle: Service::TCP_IDLE,
            udp_idle: Service::UDP_IDLE,
        }
    }

    /// Time after which a TCP connection is forgotten, where the file says nothing (RFC 5382, REQ-5).
    pub const TCP_IDLE: Span = Span::from_secs(2 * 3600 + 4 * 60);
    /// Time after which a UDP flow is forgotten, where the file says nothing
    /// (`nf_conntrack_udp_timeout`).
    pub const UDP_IDLE: Span = Span::from_secs(30);
    /// The longest of both.
    pub const IDLE_MAX: Span = Span::from_secs(24 * 3600);
    /// The most replicas.
    pub const REPLICAS_MAX: usize = 1024;
    /// The most ports.
    pub const PORTS_MAX: usize = 64;
    /// The largest weight.
    pub const WEIGHT_MAX: u32 = 10_000;
    /// The most bytes that a packet grows by on its way to a replica: an IPv6 header.
    pub const OVERHEAD_MAX: u32 = 40;

    /// Its addresses.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        self.v4.map(IpAddr::V4).into_iter().chain(self.v6.map(IpAddr::V6))
    }

    /// Whether it has this address.
    #[must_use]
    pub fn has_address(&self, address: IpAddr) -> bool {
        self.addresses().any(|own| own == address)
    }

    /// The position of a node among its replicas.
    #[must_use]
    pub fn replica(&self, node: NodeId) -> Option<usize> {
        self.replicas.iter().position(|replica| replica.node == node)
    }

    /// Bytes that a packet of the family grows by on its way to a replica.
    #[must_use]
    pub const fn overhead(&self, is_v6: bool) -> u32 {
        match (self.encapsulation, is_v6) {
            (TunnelEncapsulation::None, _) => 0,
            (_, false) => 20,
            (_, true) => 40,
        }
    }
}

impl FailOver {
    /// The word for it in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FailOver::New => "new",
            FailOver::Transparent => "transparent",
        }
    }
}

impl Hash {
    fn is_default(&self) -> bool {
        *self == Hash::default()
    }
}

impl FlowPinningScope {
    fn is_default(&self) -> bool {
        *self == FlowPinningScope::default()
    }
}

impl LoadBalancingPolicy {
    /// The word for it in files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LoadBalancingPolicy::Nearest => "nearest",
            LoadBalancingPolicy::Hops => "hops",
            LoadBalancingPolicy::Weighted => "weighted",
            LoadBalancingPolicy::LeastConnections => "least-connections",
            LoadBalancingPolicy::Hash => "hash",
            LoadBalancingPolicy::Ordered => "ordered",
            LoadBalancingPolicy::RoundRobin => "round-robin",
            LoadBalancingPolicy::Random => "random",
        }
    }
}
