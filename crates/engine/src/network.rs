//! Where things are: addresses, the ends of lanes, and which lane a router sends a packet on.
//!
//! The answers for a packet cost a binary search and a table look-up, however large the plan is.

mod addresses;
mod realms;
mod table;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windtunnel_model::plan::{NetworkModel, Plan, ROUTER_MAC};
use windtunnel_model::{Lan, LanId, Lane, LinkId, NetworkVertex, NodeId, PortId, RouterId};
use windtunnel_routing::{RouteDestination, Routes};

use crate::tunnel::endpoint::TunnelEndpoint;
use addresses::Addresses;
use realms::AddressVisibility;
use table::{NextHop, NextHopCache};

/// What is at the end of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaneEndpoint {
    /// A node's interface.
    Node { port: PortId, addresses: Option<EthernetAddressPair> },
    /// A router.
    Router(RouterId),
    /// A LAN.
    Lan(LanId),
}

/// The Ethernet addresses of what is delivered to a node; on a LAN they stay as the sender wrote
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EthernetAddressPair {
    pub(crate) destination: [u8; 6],
    pub(crate) source: [u8; 6],
}

/// A router's interface on a LAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouterLanInterface {
    pub(crate) router: RouterId,
    pub(crate) mac: [u8; 6],
    pub(crate) v4: Option<Ipv4Addr>,
    pub(crate) v6: Option<Ipv6Addr>,
}

/// With the model of paths, equal paths are chosen by so many classes of flows, so that one machine
/// can encode the path of a flow for another one in few bits.
pub(crate) const CLASSES: u64 = 1 << 12;

#[derive(Debug)]
pub(crate) struct NetworkDirectory {
    /// By port: the lane that its packets enter, and its owner.
    ports: Vec<(Lane, NodeId)>,
    /// By lane index.
    ends: Vec<LaneEndpoint>,
    /// By lane index: the addresses of the interface at its end.
    end_addresses: Vec<[Option<IpAddr>; 2]>,
    /// By router: addresses for messages about packets that came from nowhere.
    router_addresses: Vec<[Option<IpAddr>; 2]>,
    addresses: Addresses,
    /// By the lane from a LAN to a router.
    stations: BTreeMap<Lane, RouterLanInterface>,
    lans: Vec<Lan>,
    /// Where packets go whose destination is not in the plan: to the machine's outside, if a node
    /// stands for it.
    outside: Option<RouteDestination>,
    routes: Arc<Routes>,
    table: NextHopCache,
    /// Where addresses are seen; `None`: everywhere.
    visible: Option<AddressVisibility>,
    /// How many classes of flows are distinguished where paths are equal; 0: every hash is one.
    classes: u64,
}

impl NetworkDirectory {
    pub(crate) fn new(plan: &Plan) -> Self {
        let routes = Routes::compute(plan);
        let visible = AddressVisibility::new(plan);
        let ports = plan.nodes.iter().enumerate().flat_map(|(id, node)| {
            let lane = |link, direction| Lane { link, direction };
            node.interfaces.iter().map(move |i| (lane(i.link, i.outward), NodeId::from_index(id)))
        });
        let lanes = || (0..plan.links.len() * 2).map(Lane::from_index);
        NetworkDirectory {
            ports: ports.collect(),
            ends: lanes().map(|lane| end_of(plan, lane)).collect(),
            end_addresses: lanes().map(|lane| addresses_at_end(plan, lane)).collect(),
            router_addresses: plan
                .routers
                .iter()
                .map(|router| {
                    let v4 = router.interfaces.iter().find_map(|i| i.v4).map(IpAddr::V4);
                    let v6 = router.interfaces.iter().find_map(|i| i.v6).map(IpAddr::V6);
                    [v4, v6]
                })
                .collect(),
            addresses: Addresses::new(plan, visible.as_ref()),
            stations: stations(plan),
            lans: plan.lans.clone(),
            outside: outside(plan),
            table: NextHopCache::new(plan),
            visible,
            routes: Arc::new(routes),
            classes: if plan.model == NetworkModel::Hops { 0 } else { CLASSES },
        }
    }

    /// How many links there are.
    pub(crate) fn links(&self) -> usize {
        self.ends.len() / 2
    }

    /// The lane that packets from a port enter.
    pub(crate) fn lane_of(&self, port: PortId) -> Lane {
        self.ports[port.index()].0
    }

    /// Whether an address is that of a router.
    pub(crate) fn is_router(&self, address: IpAddr) -> bool {
        matches!(self.addresses.target(address), Some(RouteDestination::Router(_)))
    }

    /// The node of a port.
    pub(crate) fn owner(&self, port: PortId) -> NodeId {
        self.ports[port.index()].1
    }

    /// The address of a port, of the version of `like`.
    pub(crate) fn address_of_end(&self, port: PortId, like: IpAddr) -> Option<IpAddr> {
        self.address_at_end(self.lane_of(port).reverse(), like)
    }

    /// The address where a tunnel begins or ends, of the version of `like`.
    pub(crate) fn address_of_mouth(&self, mouth: TunnelEndpoint, like: IpAddr) -> Option<IpAddr> {
        match mouth {
            TunnelEndpoint::Port(port) => self.address_of_end(port, like),
            TunnelEndpoint::Router(router) => self.address_of(router, like),
        }
    }

    /// The router of a LAN that leads to another one, as a neighbour.
    pub(crate) fn station_towards(
        &self,
        lan: LanId,
        router: RouterId,
    ) -> Option<RouterLanInterface> {
        let next = self.routes.next_hop_from(
            NetworkVertex::Lan(lan),
            None,
            RouteDestination::Router(router),
        )?;
        self.station(next)
    }

    /// Some address of a port.
    pub(crate) fn address_of_port(&self, port: PortId) -> Option<IpAddr> {
        let [v4, v6] = self.end_addresses[self.lane_of(port).reverse().index()];
        v4.or(v6)
    }

    pub(crate) fn end(&self, lane: Lane) -> LaneEndpoint {
        self.ends[lane.index()]
    }

    pub(crate) fn target(&self, address: IpAddr) -> Option<RouteDestination> {
        self.addresses.target(address).or_else(|| self.unplanned(address)).or(self.outside)
    }

    /// Whether an address means all hosts of some LAN; what does is not forwarded (RFC 2644).
    pub(crate) fn is_broadcast(&self, address: IpAddr) -> bool {
        let IpAddr::V4(address) = address else { return false };
        let mut subnets = self.lans.iter().filter_map(|lan| lan.v4);
        subnets.any(|subnet| subnet.broadcast() == Some(address))
    }

    /// The router at the end of a lane that leaves a LAN.
    pub(crate) fn station(&self, lane: Lane) -> Option<RouterLanInterface> {
        self.stations.get(&lane).copied()
    }

    /// The address of the next hop on a LAN that a router's packet enters: its destination, or the
    /// router that leads there.
    pub(crate) fn neighbour(
        &self,
        lan: LanId,
        source: Option<IpAddr>,
        destination: IpAddr,
    ) -> Option<IpAddr> {
        if self.lans[lan.index()].contains(destination) {
            return Some(destination);
        }
        let target = self.target(destination)?;
        let owner = self.forced_source(source, target);
        let next = self.routes.next_hop_from(NetworkVertex::Lan(lan), owner, target)?;
        self.address_at_end(next, destination)
    }

    pub(crate) fn is_on(&self, lan: LanId, address: IpAddr) -> bool {
        self.lans[lan.index()].contains(address)
    }

    /// An address of a LAN that the plan assigns to no interface, but a program may (DHCP, an
    /// alias).
    fn unplanned(&self, address: IpAddr) -> Option<RouteDestination> {
        let lan = self.lans.iter().position(|lan| lan.contains(address))?;
        Some(RouteDestination::Lan(LanId::from_index(lan)))
    }

    /// The address of the interface at the end of `lane`, of the version of `like`.
    pub(crate) fn address_at_end(&self, lane: Lane, like: IpAddr) -> Option<IpAddr> {
        self.end_addresses[lane.index()][usize::from(like.is_ipv6())]
    }

    /// Some address of a router, of the version of `like`.
    pub(crate) fn address_of(&self, router: RouterId, like: IpAddr) -> Option<IpAddr> {
        self.router_addresses[router.index()][usize::from(like.is_ipv6())]
    }

    /// The lane on which `router` sends a packet of `source` on; `flow` is a hash of the packet's
    /// flow, asked for where there is a choice.
    pub(crate) fn next_hop(
        &mut self,
        router: RouterId,
        source: Option<IpAddr>,
        target: RouteDestination,
        flow: impl FnOnce() -> u64,
    ) -> Option<Lane> {
        let owner = self.forced_source(source, target);
        let ask = || self.routes.next_hops_from(NetworkVertex::Router(router), owner, target);
        match self.table.next_hop(router, owner, target, ask) {
            NextHop::None => None,
            NextHop::One(lane) => Some(lane),
            NextHop::Many(group) => {
                let flow = flow();
                Some(self.table.choose(group, flow.checked_rem(self.classes).unwrap_or(flow)))
            }
        }
    }

    /// Where packets to an address go, and the realm in which it is; `None`: nothing is translated, or
    /// it is in none.
    #[inline]
    pub(crate) fn locate(&self, address: IpAddr) -> Option<(RouteDestination, Option<u32>)> {
        if let IpAddr::V4(v4) = address
            && let Some(found) = self.addresses.in_realm(v4)
        {
            return Some(found);
        }
        let target = self.target(address)?;
        Some((target, self.visible.as_ref().and_then(|visible| visible.realm_of(address))))
    }

    /// Whether a router has a route into a realm: one inside of a NAT is not known outside.
    #[inline]
    pub(crate) fn is_visible(&self, router: RouterId, realm: Option<u32>) -> bool {
        let (Some(visible), Some(realm)) = (&self.visible, realm) else { return true };
        visible.seen_by_router(router, realm)
    }

    /// Whether what has come by a link finds a route to an address.
    pub(crate) fn is_visible_from(&self, link: LinkId, address: IpAddr) -> bool {
        self.visible.as_ref().is_none_or(|visible| visible.seen_by_link(link, address))
    }

    /// The routes of this moment.
    pub(crate) fn routes(&self) -> &Arc<Routes> {
        &self.routes
    }

    /// Uses other routes from now on.
    pub(crate) fn use_routes(&mut self, routes: Routes) {
        self.routes = Arc::new(routes);
        self.table.forget();
    }

    /// The node that a packet comes from, if its route is fixed.
    fn forced_source(&self, source: Option<IpAddr>, target: RouteDestination) -> Option<NodeId> {
        if !self.routes.has_fixed() {
            return None;
        }
        let (Some(RouteDestination::Port(from)), RouteDestination::Port(to)) =
            (self.target(source?), target)
        else {
            return None;
        };
        let (from, to) = (self.ports[from.index()].1, self.ports[to.index()].1);
        self.routes.is_fixed(from, to).then_some(from)
    }
}

/// The interface of the node that stands for the machine's outside.
fn outside(plan: &Plan) -> Option<RouteDestination> {
    let node = &plan.nodes[plan.internet()?.index()];
    node.interfaces.first().map(|interface| RouteDestination::Port(interface.port))
}

fn end_of(plan: &Plan, lane: Lane) -> LaneEndpoint {
    let link = &plan.links[lane.link.index()];
    let mac = |end: usize| match link.ends[end].vertex {
        NetworkVertex::Node(id) => {
            let interface = usize::try_from(link.ends[end].interface).unwrap_or(usize::MAX);
            let interface = &plan.nodes[id.index()].interfaces[interface];
            Some((Some(interface.port), interface.mac()))
        }
        NetworkVertex::Router(_) => Some((None, ROUTER_MAC)),
        NetworkVertex::Lan(_) => None,
    };
    let (from, to) = (lane.direction.index(), 1 - lane.direction.index());
    match (link.ends[to].vertex, mac(to)) {
        (NetworkVertex::Node(_), Some((Some(port), destination))) => {
            let addresses =
                mac(from).map(|(_, source)| EthernetAddressPair { destination, source });
            LaneEndpoint::Node { port, addresses }
        }
        (NetworkVertex::Router(id), _) => LaneEndpoint::Router(id),
        (NetworkVertex::Lan(id), _) => LaneEndpoint::Lan(id),
        (NetworkVertex::Node(_), _) => unreachable!("a node's end of a link has a port"),
    }
}

fn addresses_at_end(plan: &Plan, lane: Lane) -> [Option<IpAddr>; 2] {
    let (v4, v6) =
        plan.addresses_at(plan.links[lane.link.index()].ends[1 - lane.direction.index()]);
    [v4.map(IpAddr::V4), v6.map(IpAddr::V6)]
}

fn stations(plan: &Plan) -> BTreeMap<Lane, RouterLanInterface> {
    let lanes = plan.lans.iter().flat_map(|lan| &lan.attachments);
    let station = |lane: &Lane| {
        let (router, interface) = plan.router_at(*lane)?;
        let (mac, v4, v6) = (interface.mac(), interface.v4, interface.v6);
        Some((*lane, RouterLanInterface { router, mac, v4, v6 }))
    };
    lanes.filter_map(station).collect()
}
