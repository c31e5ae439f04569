//! The resolved experiment: what is left when a file's shorthands, defaults and names are worked
//! out.

mod event;
mod internet;
mod link;
mod middlebox;
mod network_model;
mod node;
mod overload;
mod partition;
mod platform;
mod program;
mod ready;
mod recording;
mod reservation;
mod root;
mod route;
mod router;
mod routing;
mod service;
mod written;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::expect::Expectation;
use crate::id::{LanId, Lane, LinkId, NetworkVertex, NodeId, ReservationId, RouterId, ServiceId};
use crate::lan::Lan;
use crate::placement::{DelayRequirement, OnHostLoss, Strategy};
use crate::time::Span;
use crate::trace::LinkTrace;

pub use event::{EventAction, LinkChange, NodeVerb, RouteChange, ScheduledEvent};
pub use internet::{AllowError, InternetAccess, InternetAllowRule, PortPublication, PublishError};
pub use link::{Link, LinkEnd};
pub use middlebox::{
    Firewall, FirewallPolicy, FirewallRule, ForwardedPort, IpTransport, Middlebox, MiddleboxSide,
    NatBehaviour, NatFilteringBehaviour, NatMappingBehaviour, NatRefreshBehaviour, NatType,
    PortAllocation, PortRange, RuleEnd, Timeouts, TrafficSelector,
};
pub use network_model::{BandwidthSharing, NetworkModel};
pub use node::{Node, NodeInterface};
pub use overload::{OnOverload, UnknownOnOverload};
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
pub use route::FixedRoute;
pub use router::{ROUTER_MAC, Router, RouterInterface};
pub use routing::{Routing, RoutingMetric};
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
    /// The most reservations: each is a control group, in which others may be.
    pub const RESERVATIONS_MAX: usize = 1000;
    /// The most services.
    pub const SERVICES_MAX: usize = 10_000;
    /// The most combinations of address, port and protocol over all services.
    pub const SERVICE_ROWS_MAX: usize = 65_000;

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

    /// The LAN called `name`.
    #[must_use]
    pub fn lan_named(&self, name: &str) -> Option<LanId> {
        self.lans.iter().position(|lan| lan.name == name).map(LanId::from_index)
    }

    /// The LAN that a link attaches something to, if it does.
    #[must_use]
    pub fn lan_of(&self, link: LinkId) -> Option<LanId> {
        self.links[link.index()].ends.iter().find_map(|end| match end.vertex {
            NetworkVertex::Lan(id) => Some(id),
            _ => None,
        })
    }

    /// The LAN whose subnet holds an address.
    #[must_use]
    pub fn lan_with(&self, address: IpAddr) -> Option<LanId> {
        self.lans.iter().position(|lan| lan.contains(address)).map(LanId::from_index)
    }

    /// The addresses of the interface at an end of a link; a LAN has none.
    #[must_use]
    pub fn addresses_at(&self, end: LinkEnd) -> (Option<Ipv4Addr>, Option<Ipv6Addr>) {
        let position = end.interface as usize;
        match end.vertex {
            NetworkVertex::Node(id) => {
                let interface = &self.nodes[id.index()].interfaces[position];
                (interface.v4, interface.v6)
            }
            NetworkVertex::Router(id) => {
                let interface = &self.routers[id.index()].interfaces[position];
                (interface.v4, interface.v6)
            }
            NetworkVertex::Lan(_) => (None, None),
        }
    }

    /// A router's interface on the far end of a lane that leaves a LAN, if there is one.
    #[must_use]
    pub fn router_at(&self, lane: Lane) -> Option<(RouterId, &RouterInterface)> {
        let end = self.links[lane.link.index()].ends[1 - lane.direction.index()];
        match end.vertex {
            NetworkVertex::Router(id) => {
                Some((id, &self.routers[id.index()].interfaces[end.interface as usize]))
            }
            _ => None,
        }
    }

    /// The service called `name`.
    #[must_use]
    pub fn service_named(&self, name: &str) -> Option<ServiceId> {
        self.services.iter().position(|it| it.name == name).map(ServiceId::from_index)
    }

    /// The reservation called `name`.
    #[must_use]
    pub fn reservation_named(&self, name: &str) -> Option<ReservationId> {
        let position = self.reservations.iter().position(|it| it.name == name);
        position.map(ReservationId::from_index)
    }

    /// A reservation and all those around it, the innermost first.
    pub fn reservations_from(
        &self,
        first: Option<ReservationId>,
    ) -> impl Iterator<Item = ReservationId> + '_ {
        core::iter::successors(first, |it| self.reservations[it.index()].parent)
            .take(self.reservations.len())
    }

    /// What a reservation has reserved: as it says, or what is reserved within it. Processors in
    /// thousandths, and bytes of memory.
    #[must_use]
    pub fn reserved_by(&self, reservation: ReservationId) -> [u64; 2] {
        let [cpu, memory] = self.reserved_within(reservation);
        let own = &self.reservations[reservation.index()].demand;
        [
            own.cpu_reserved_millis.map_or(cpu, u64::from),
            own.memory_reserved.map_or(memory, |memory| memory.0),
        ]
    }

    /// What nodes and reservations have reserved that are part of a reservation.
    #[must_use]
    pub fn reserved_within(&self, reservation: ReservationId) -> [u64; 2] {
        let is_part = |of: Option<ReservationId>| of == Some(reservation);
        let nodes = self.nodes.iter().filter(|node| is_part(node.reservation));
        let nodes = nodes.map(|node| [node.reserved_cpu_millis(), node.reserved_memory()]);
        let inner = self.reservations.iter().enumerate().filter(|(_, it)| is_part(it.parent));
        let inner = inner.map(|(index, _)| self.reserved_by(ReservationId::from_index(index)));
        nodes.chain(inner).fold([0; 2], |sum: [u64; 2], part| {
            [sum[0].saturating_add(part[0]), sum[1].saturating_add(part[1])]
        })
    }

    /// Whether a text is the name of a node or group, or an IP address.
    #[must_use]
    pub fn has_host(&self, text: &str) -> bool {
        text.parse::<IpAddr>().is_ok()
            || self.nodes.iter().any(|node| node.name == text || node.group == text)
    }

    /// The nodes of a name: one, or the members of a group.
    #[must_use]
    pub fn nodes_named(&self, name: &str) -> Vec<NodeId> {
        if let Some(node) = self.node_named(name) {
            return Vec::from([node]);
        }
        let nodes = self.nodes.iter().enumerate();
        let members = nodes.filter(|(_, node)| node.group == name);
        members.map(|(index, _)| NodeId::from_index(index)).collect()
    }

    /// The node that stands for the machine's outside.
    #[must_use]
    pub fn internet(&self) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.internet.is_some()).map(NodeId::from_index)
    }

    /// Every published port, with the node that it leads to.
    pub fn published(&self) -> impl Iterator<Item = (NodeId, &PortPublication)> {
        let nodes = self.nodes.iter().enumerate();
        nodes.flat_map(|(id, node)| node.publish.iter().map(move |it| (NodeId::from_index(id), it)))
    }

    /// What a router does beside forwarding, if it does.
    #[must_use]
    pub fn middlebox(&self, router: RouterId) -> Option<&Middlebox> {
        let at = self.middleboxes.binary_search_by_key(&router, |it| it.router).ok()?;
        self.middleboxes.get(at)
    }

    /// The first router whose NAT a way of vertices crosses from one side to the other.
    #[must_use]
    pub fn nat_across(&self, path: &[NetworkVertex]) -> Option<RouterId> {
        path.windows(3).find_map(|way| {
            let NetworkVertex::Router(router) = way[1] else { return None };
            let middlebox = self.middlebox(router).filter(|it| it.nat.is_some())?;
            let side = |other: NetworkVertex| self.side_towards(middlebox, other);
            (side(way[0])? != side(way[2])?).then_some(router)
        })
    }

    fn side_towards(
        &self,
        middlebox: &Middlebox,
        neighbour: NetworkVertex,
    ) -> Option<MiddleboxSide> {
        let interfaces = &self.routers[middlebox.router.index()].interfaces;
        let leads = |interface: &&RouterInterface| {
            let lane = Lane { link: interface.link, direction: interface.outward };
            self.lane_end(lane) == neighbour
        };
        let interface = interfaces.iter().find(leads)?;
        middlebox.side_of(interfaces, interface.link)
    }
}
