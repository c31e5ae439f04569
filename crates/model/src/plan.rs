//! The resolved experiment: what is left when a file's shorthands, defaults and names are worked
//! out.

mod event;
mod internet;
mod middlebox;
mod partition;
mod platform;
mod program;
mod ready;
mod recording;
mod reservation;
mod root;
mod service;
mod written;

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::demand::Demand;
use crate::expect::Expectation;
use crate::id::{
    Lane, LinkDirection, LinkId, NetworkVertex, NodeId, PortId, ReservationId, RouterId,
};
use crate::lan::Lan;
use crate::placement::{DelayRequirement, OnHostLoss, Strategy};
use crate::profile::{LinkProfile, QueueLimit};
use crate::quantity::Packets;
use crate::time::Span;
use crate::trace::LinkTrace;

pub use event::{EventAction, LinkChange, NodeVerb, RouteChange, ScheduledEvent};
pub use internet::{AllowError, InternetAccess, InternetAllowRule, PortPublication, PublishError};
pub use middlebox::{
    Firewall, FirewallPolicy, FirewallRule, ForwardedPort, IpTransport, Middlebox, MiddleboxSide,
    NatBehaviour, NatFilteringBehaviour, NatMappingBehaviour, NatRefreshBehaviour, NatType,
    PortAllocation, PortRange, RuleEnd, Timeouts, TrafficSelector,
};
pub use partition::{PartitionMode, PartitionSides};
pub use platform::{ARCHITECTURES, Platform, PlatformError};
pub use program::{Program, ProgramUser, Restart};
pub use ready::{CommandLineDisplay, ReadinessCheck, ReadinessCheckSettings, ReadinessCondition};
pub use recording::{
    FlowEnd, FlowPattern, OnRecordLoss, PatternError, PatternProtocol, RecordChoice,
    RecordDirection, RecordLayerSet, RecordMode, RecordingPolicy,
};
pub use reservation::ResourceReservation;
pub use root::{ImageLocation, NodeFilesystem, RootSource, Volume, VolumeSource};
pub use service::{
    FailOver, FlowPinningScope, Hash, HealthProbe, HealthProbeDatagram, LoadBalancingPolicy, Ping,
    PortError, Replica, ReplicaHealthCheck, ReplicaLossResponse, Service, ServiceChange,
    ServicePort, ServiceUpdate, TransportProtocol, TunnelEncapsulation,
};

/// A whole experiment, resolved and valid: ids index the lists, names are unique, every pair of
/// nodes that must talk has a route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Plan {
    /// Name of the experiment.
    pub name: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// How long the run lasts at the most; `None`: until every program except daemons has exited.
    pub duration: Option<Span>,
    /// How routers find their ways.
    pub routing: Routing,
    /// What is done when this machine cannot keep up.
    #[serde(default, skip_serializing_if = "OnOverload::is_report")]
    pub on_overload: OnOverload,
    /// How the network between the nodes is emulated.
    #[serde(default, skip_serializing_if = "NetworkModel::is_hops")]
    pub model: NetworkModel,
    /// How nodes are put on machines, where there are several.
    #[serde(default, skip_serializing_if = "Strategy::is_auto")]
    pub placement: Strategy,
    /// What is done when one of several machines is lost.
    #[serde(default, skip_serializing_if = "OnHostLoss::is_fail")]
    pub on_host_loss: OnHostLoss,
    /// What of delays matters, where there are several machines.
    #[serde(default, skip_serializing_if = "DelayRequirement::is_one_way")]
    pub delays: DelayRequirement,
    /// How long one of several machines may be silent before it is lost; `None`: as its agents say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_timeout: Option<Span>,
    /// What is recorded as evidence.
    #[serde(default, skip_serializing_if = "RecordingPolicy::is_default")]
    pub record: RecordingPolicy,
    /// What nodes share; `ReservationId` is the position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<ResourceReservation>,
    /// Addresses that several nodes answer for; `ServiceId` is the position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// Nodes in the file's order, groups expanded; `NodeId` is the position.
    pub nodes: Vec<Node>,
    /// Routers; `RouterId` is the position.
    pub routers: Vec<Router>,
    /// What some routers do beside forwarding, in the order of the routers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub middleboxes: Vec<Middlebox>,
    /// LANs; `LanId` is the position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lans: Vec<Lan>,
    /// Links; `LinkId` is the position.
    pub links: Vec<Link>,
    /// Routes that the file fixes, each as the vertices along it.
    pub routes: Vec<FixedRoute>,
    /// Changes, sorted by time (ties in the file's order).
    pub events: Vec<ScheduledEvent>,
    /// What must hold at the end.
    pub expectations: Vec<Expectation>,
    /// Traces that lanes follow; `TraceUse` names the position.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub traces: Vec<LinkTrace>,
}

impl Plan {
    /// The node called `name`.
    #[must_use]
    pub fn node_named(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.name == name).map(NodeId::from_index)
    }

    /// The router called `name`.
    #[must_use]
    pub fn router_named(&self, name: &str) -> Option<RouterId> {
        self.routers.iter().position(|router| router.name == name).map(RouterId::from_index)
    }

    /// The link called `name`.
    #[must_use]
    pub fn link_named(&self, name: &str) -> Option<LinkId> {
        self.links.iter().position(|link| link.name == name).map(LinkId::from_index)
    }

    /// The name of a node, router or LAN.
    #[must_use]
    pub fn vertex_name(&self, vertex: NetworkVertex) -> &str {
        match vertex {
            NetworkVertex::Node(id) => &self.nodes[id.index()].name,
            NetworkVertex::Router(id) => &self.routers[id.index()].name,
            NetworkVertex::Lan(id) => &self.lans[id.index()].name,
        }
    }

    /// Every interface of every node with its owner, by port number (ports are dense and in this
    /// order).
    pub fn ports(&self) -> impl Iterator<Item = (NodeId, &NodeInterface)> {
        let nodes = self.nodes.iter().enumerate();
        nodes
            .flat_map(|(id, node)| node.interfaces.iter().map(move |i| (NodeId::from_index(id), i)))
    }

    /// Where a lane leads.
    #[must_use]
    pub fn lane_end(&self, lane: Lane) -> NetworkVertex {
        self.links[lane.link.index()].ends[1 - lane.direction.index()].vertex
    }

    /// Where a lane starts.
    #[must_use]
    pub fn lane_start(&self, lane: Lane) -> NetworkVertex {
        self.links[lane.link.index()].ends[lane.direction.index()].vertex
    }

    /// `from-to`, the way a direction is named in files and reports.
    #[must_use]
    pub fn lane_name(&self, lane: Lane) -> String {
        let (from, to) = (self.lane_start(lane), self.lane_end(lane));
        format!("{}-{}", self.vertex_name(from), self.vertex_name(to))
    }
}

/// How routers find their ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Routing {
    /// What a shortest route minimises.
    pub metric: RoutingMetric,
    /// Whether a router spreads flows over all its ways of equal cost (RFC 2991), or uses the
    /// first.
    pub ecmp: bool,
    /// Shortest routes are computed again so long after a lane went down or up (a change of its
    /// own, a partition, its end); `None`: never.
    pub reroute: Option<Span>,
}

impl From<RoutingMetric> for Routing {
    fn from(metric: RoutingMetric) -> Self {
        Routing { metric, ..Routing::default() }
    }
}

/// What a shortest route minimises; ties go to fewer hops, then to the link named first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum RoutingMetric {
    /// The sum of latencies.
    #[default]
    Latency,
    /// The number of links.
    Hops,
}

/// How the network between the nodes is emulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkModel {
    /// Packet by packet through the queue of every link.
    #[default]
    Hops,
    /// At the source of each path: its delay and loss as they are, and a share of its links'
    /// bandwidth that is divided between flows (`SplayNet`: Schiavoni, Rivière, Felber;
    /// Middleware 2013, section 3.3).
    Paths(BandwidthSharing),
}

impl NetworkModel {
    fn is_hops(&self) -> bool {
        *self == NetworkModel::Hops
    }
}

/// How flows divide the bandwidth of a link that they share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum BandwidthSharing {
    /// In inverse proportion to their round-trip times, as long-lived TCP connections do.
    #[default]
    RttAware,
    /// Equally.
    Equal,
}

/// What is done when the machine has less processor time than the programs and the emulation need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum OnOverload {
    /// It is reported; the run goes on, late as it is.
    #[default]
    Report,
    /// The run ends.
    Abort,
    /// Every program is paused until the emulation has caught up.
    Freeze,
}

impl OnOverload {
    fn is_report(&self) -> bool {
        *self == OnOverload::Report
    }
}

impl FromStr for OnOverload {
    type Err = UnknownOnOverload;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "report" => Ok(OnOverload::Report),
            "abort" => Ok(OnOverload::Abort),
            "freeze" => Ok(OnOverload::Freeze),
            _ => Err(UnknownOnOverload(text.to_owned())),
        }
    }
}

/// A text that names no [`OnOverload`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not one of report, abort, freeze")]
pub struct UnknownOnOverload(String);

/// A node: one set of namespaces with interfaces and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Node {
    /// Unique name, valid as a host name.
    pub name: String,
    /// The name in the file: differs from `name` where `count` made several (`client` for
    /// `client-2`).
    pub group: String,
    /// Other names by which nodes find its addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Whether its kernel forwards packets between its interfaces, so that routes may pass through
    /// it.
    pub forward: bool,
    /// The user that its programs run as.
    pub user: ProgramUser,
    /// Whether its programs have temporary folders and homes of their own, all empty at the
    /// beginning.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub private: bool,
    /// Whether its programs may write in its part of the run folder.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub results: bool,
    /// A file system of its own; `None`: that of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<NodeFilesystem>,
    /// `net.*` settings of its network namespace.
    pub sysctl: BTreeMap<String, String>,
    /// The name or a label of the machine that it must be on, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pin: Option<String>,
    /// What it has of its machine.
    #[serde(default, skip_serializing_if = "Demand::is_unknown")]
    pub demand: Demand,
    /// The reservation that it is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<ReservationId>,
    /// How much may wait that has come to it and was not delivered yet, in packets or bytes;
    /// `None`: [`Node::RECEIVE_QUEUE`] if its processor time is limited or reserved, else nothing waits, and
    /// the packet loop delivers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_queue: Option<QueueLimit>,
    /// Whether it stands for the machine's outside, and what is to be known of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub internet: Option<InternetAccess>,
    /// Ports of the machine that lead to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub publish: Vec<PortPublication>,
    /// In the order of the links in the file: `eth0`, `eth1` …
    pub interfaces: Vec<NodeInterface>,
    /// Its programs in the file's order.
    pub programs: Vec<Program>,
}

impl Node {
    /// Whether its programs are root of the node.
    #[must_use]
    pub fn programs_are_root(&self) -> bool {
        let image_says = || self.root.as_ref().is_some_and(NodeFilesystem::is_for_root);
        match self.user {
            ProgramUser::Root => true,
            ProgramUser::Invoker => false,
            ProgramUser::Image => image_says(),
        }
    }

    /// The most further names that it may have.
    pub const ALIASES_MAX: usize = 100;

    /// What may wait at a node whose processor time is limited, and whose file says nothing.
    pub const RECEIVE_QUEUE: QueueLimit = QueueLimit::Packets(Packets(1000));

    /// Processors in thousandths that are reserved for it: as it says, or what its programs say
    /// together.
    #[must_use]
    pub fn reserved_cpu_millis(&self) -> u64 {
        let of = |demand: &Demand| demand.cpu_reserved_millis.map(u64::from);
        let programs = self.programs.iter().filter_map(|program| of(&program.demand));
        of(&self.demand).unwrap_or_else(|| programs.sum())
    }

    /// Bytes of memory that are reserved for it, in the same way.
    #[must_use]
    pub fn reserved_memory(&self) -> u64 {
        let of = |demand: &Demand| demand.memory_reserved.map(|memory| memory.0);
        let programs = self.programs.iter().filter_map(|program| of(&program.demand));
        of(&self.demand).unwrap_or_else(|| programs.fold(0, u64::saturating_add))
    }

    /// How much may wait; `None`: the packet loop delivers.
    #[must_use]
    pub fn effective_receive_queue(&self) -> Option<QueueLimit> {
        let limited = self.demand.cpu_millis.is_some() || self.demand.is_weighted();
        self.receive_queue.or_else(|| limited.then_some(Node::RECEIVE_QUEUE))
    }
}

/// One end of a link at a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInterface {
    /// Where its packets enter and leave the engine.
    pub port: PortId,
    /// `eth0`, `eth1` …
    pub name: String,
    /// The link it is on.
    pub link: LinkId,
    /// The direction in which its packets leave.
    pub outward: LinkDirection,
    /// IPv4 address, unless IPv4 is off.
    pub v4: Option<Ipv4Addr>,
    /// IPv6 address, unless IPv6 is off.
    pub v6: Option<Ipv6Addr>,
    /// The device's MTU: the larger of the link's two directions.
    pub mtu: u32,
}

impl NodeInterface {
    /// Its Ethernet address: locally administered, unique in the plan, the same in every run.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        let [_, b, c, d] = self.port.0.to_be_bytes();
        [0x02, 0x77, 0x74, b, c, d]
    }

    /// The addresses that it has.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> + use<> {
        self.v4.map(IpAddr::V4).into_iter().chain(self.v6.map(IpAddr::V6))
    }
}

/// The Ethernet address that packets from routers come from on links outside LANs.
pub const ROUTER_MAC: [u8; 6] = [0x02, 0x77, 0x74, 0xff, 0xff, 0xff];

/// A router inside the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Router {
    /// Unique name.
    pub name: String,
    /// One per link, in the order of the links in the file.
    pub interfaces: Vec<RouterInterface>,
}

/// One end of a link at a router: the address that its ICMP messages come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterInterface {
    /// The link it is on.
    pub link: LinkId,
    /// The direction in which its packets leave.
    pub outward: LinkDirection,
    /// IPv4 address, unless IPv4 is off.
    pub v4: Option<Ipv4Addr>,
    /// IPv6 address, unless IPv6 is off.
    pub v6: Option<Ipv6Addr>,
}

/// A link: two directions with properties of their own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Unique name: as given, else `a--b` (`a--b-2` for a second one between the same ends). It
    /// names the link's random streams, so it does not depend on the other links.
    pub name: String,
    /// The first and the second vertex named in `between`.
    pub ends: [LinkEnd; 2],
    /// Properties up (first to second) and down.
    pub profiles: [LinkProfile; 2],
}

/// One end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkEnd {
    /// The node, router or LAN.
    pub vertex: NetworkVertex,
    /// Position among that vertex's interfaces; a LAN's attachments.
    pub interface: u32,
}

/// A route that the file fixes instead of the shortest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixedRoute {
    /// Vertices from a node to a node, each pair of neighbours joined by a link.
    pub path: Vec<NetworkVertex>,
}
