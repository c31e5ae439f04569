//! By which of its interfaces a node reaches what.

use std::net::IpAddr;

use windtunnel_model::id::{LanId, Lane, NetworkVertex, NodeId, RouterId};
use windtunnel_model::{Plan, Subnet};
use windtunnel_routing::{RouteDestination, Routes};

use super::prefixes::Prefix;
use crate::netlink::request::whole;

/// The ways out of one node.
pub(crate) struct NodeEgressRoutes<'a> {
    plan: &'a Plan,
    routes: &'a Routes,
    node: NodeId,
}

/// Somebody else's addresses that are reached alike.
#[derive(Debug, Clone)]
pub(crate) struct RoutedAddressGroup {
    owner: NetworkVertex,
    target: RouteDestination,
    /// Single ones, or the whole subnet of a LAN.
    pub(crate) addresses: Vec<Prefix>,
}

/// Packets that a node passes on along a fixed route.
pub(crate) struct TransitTraffic {
    pub(crate) sources: Vec<IpAddr>,
    pub(crate) destinations: Vec<IpAddr>,
    /// The interface by which they leave.
    pub(crate) position: usize,
    /// Where that is on a LAN: the lane by which they leave that.
    pub(crate) beyond: Option<Lane>,
}

impl RoutedAddressGroup {
    /// Whether it is a LAN as a whole.
    pub(crate) fn is_lan(&self) -> bool {
        matches!(self.owner, NetworkVertex::Lan(_))
    }
}

impl<'a> NodeEgressRoutes<'a> {
    pub(crate) fn new(plan: &'a Plan, routes: &'a Routes, node: NodeId) -> Self {
        NodeEgressRoutes { plan, routes, node }
    }

    /// Every interface of every other node, every router, and every LAN.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = RoutedAddressGroup> {
        let others = self.plan.ports().filter(|(owner, _)| *owner != self.node);
        let ports = others.map(|(owner, interface)| RoutedAddressGroup {
            owner: NetworkVertex::Node(owner),
            target: RouteDestination::Port(interface.port),
            addresses: interface.addresses().map(host).collect(),
        });
        let routers = self.plan.routers.iter().enumerate().map(|(position, router)| {
            let id = RouterId::from_index(position);
            let v4 = router.interfaces.iter().filter_map(|i| i.v4).map(IpAddr::V4);
            let v6 = router.interfaces.iter().filter_map(|i| i.v6).map(IpAddr::V6);
            let addresses = v4.chain(v6).map(host).collect();
            RoutedAddressGroup {
                owner: NetworkVertex::Router(id),
                target: RouteDestination::Router(id),
                addresses,
            }
        });
        let lans = self.plan.lans.iter().enumerate().map(|(position, lan)| {
            let id = LanId::from_index(position);
            let subnets = [lan.v4, lan.v6].into_iter().flatten();
            let whole = |Subnet { network, prefix }| Prefix { address: network, length: prefix };
            let addresses = subnets.map(whole).collect();
            RoutedAddressGroup {
                owner: NetworkVertex::Lan(id),
                target: RouteDestination::Lan(id),
                addresses,
            }
        });
        ports.chain(routers).chain(lans)
    }

    /// The position of the interface by which a destination is reached best.
    pub(crate) fn best(&self, destination: &RoutedAddressGroup) -> Option<usize> {
        self.position(self.next(NetworkVertex::Node(self.node), destination)?)
    }

    /// The position of the interface by which the machine's outside is reached best.
    pub(crate) fn outward(&self) -> Option<usize> {
        self.best(&self.outside()?)
    }

    /// The position itself, where packets that leave by that interface get to the machine's outside.
    pub(crate) fn outward_from(&self, position: usize) -> Option<usize> {
        self.leads(position, &self.outside()?).then_some(position)
    }

    /// The machine's outside.
    fn outside(&self) -> Option<RoutedAddressGroup> {
        let id = self.plan.internet().filter(|id| *id != self.node)?;
        let interface = self.plan.nodes[id.index()].interfaces.first()?;
        let target = RouteDestination::Port(interface.port);
        Some(RoutedAddressGroup { owner: NetworkVertex::Node(id), target, addresses: Vec::new() })
    }

    /// Whether packets that leave by an interface arrive without coming back through the node.
    pub(crate) fn leads(&self, position: usize, destination: &RoutedAddressGroup) -> bool {
        let interface = &self.plan.nodes[self.node.index()].interfaces[position];
        let lane = Lane { link: interface.link, direction: interface.outward };
        let end = self.plan.lane_end(lane);
        self.routes.takes(lane) && self.routes.avoids(self.plan, end, self.node, destination.target)
    }

    /// Whether the way to a destination is fixed, whatever address packets come from.
    pub(crate) fn is_fixed(&self, destination: &RoutedAddressGroup) -> bool {
        match destination.owner {
            NetworkVertex::Node(owner) => self.routes.is_fixed(self.node, owner),
            NetworkVertex::Router(_) | NetworkVertex::Lan(_) => false,
        }
    }

    /// What the node passes on along fixed routes.
    pub(crate) fn passing(&self) -> Vec<TransitTraffic> {
        let of = |node: NodeId| {
            let interfaces = &self.plan.nodes[node.index()].interfaces;
            interfaces.iter().flat_map(windtunnel_model::plan::NodeInterface::addresses).collect()
        };
        let passing = |(from, to, lane): (NodeId, NodeId, Lane)| {
            let beyond = match self.plan.lane_end(lane) {
                at @ NetworkVertex::Lan(_) => {
                    let port = self.plan.nodes[to.index()].interfaces.first()?.port;
                    self.routes.next_hop_from(at, Some(from), RouteDestination::Port(port))
                }
                _ => None,
            };
            let position = self.position(lane)?;
            Some(TransitTraffic { sources: of(from), destinations: of(to), position, beyond })
        };
        self.routes.fixed_through(NetworkVertex::Node(self.node)).filter_map(passing).collect()
    }

    /// Whether an address is of a LAN's subnet.
    pub(crate) fn is_on_lan(&self, address: IpAddr) -> bool {
        self.plan.lan_with(address).is_some()
    }

    /// On the LAN of an interface: the address, of the version of `like`, of the next hop to a
    /// destination.
    pub(crate) fn gateway(
        &self,
        position: usize,
        destination: &RoutedAddressGroup,
        like: IpAddr,
    ) -> Option<IpAddr> {
        let interface = &self.plan.nodes[self.node.index()].interfaces[position];
        let lan = self.plan.lan_of(interface.link)?;
        let lane = self.next(NetworkVertex::Lan(lan), destination)?;
        self.address_at_end(lane, like)
    }

    /// The address of the nearest on a LAN that leads out of it: a router, or a node that forwards.
    pub(crate) fn way_out(&self, lan: LanId, like: IpAddr) -> Option<IpAddr> {
        let lanes = self.plan.lans[lan.index()].attachments.iter();
        let leads_out = |lane: &&Lane| match self.plan.lane_end(**lane) {
            NetworkVertex::Router(_) => true,
            NetworkVertex::Node(id) => {
                let node = &self.plan.nodes[id.index()];
                let forwards = node.forward && node.interfaces.len() > 1;
                id != self.node && (forwards || node.internet.is_some())
            }
            NetworkVertex::Lan(_) => false,
        };
        let profile =
            |lane: &Lane| &self.plan.links[lane.link.index()].profiles[lane.direction.index()];
        let nearest = lanes.filter(leads_out).min_by_key(|lane| profile(lane).latency)?;
        self.address_at_end(*nearest, like)
    }

    pub(crate) fn address_at_end(&self, lane: Lane, like: IpAddr) -> Option<IpAddr> {
        let end = self.plan.links[lane.link.index()].ends[1 - lane.direction.index()];
        let (v4, v6) = self.plan.addresses_at(end);
        if like.is_ipv4() { v4.map(IpAddr::V4) } else { v6.map(IpAddr::V6) }
    }

    fn next(&self, at: NetworkVertex, destination: &RoutedAddressGroup) -> Option<Lane> {
        self.routes.next_hop_from(at, Some(self.node), destination.target)
    }

    fn position(&self, lane: Lane) -> Option<usize> {
        let interfaces = &self.plan.nodes[self.node.index()].interfaces;
        interfaces.iter().position(|i| i.link == lane.link && i.outward == lane.direction)
    }
}

/// One address as a destination.
fn host(address: IpAddr) -> Prefix {
    Prefix { address, length: whole(address) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::two_homed_plan;

    #[test]
    fn a_neighbour_on_a_link_of_its_own_is_reached_by_that_link_only() {
        let plan = two_homed_plan();
        let routes = Routes::compute(&plan);
        let exits = NodeEgressRoutes::new(&plan, &routes, NodeId(0));
        let seen: Vec<_> = exits
            .destinations()
            .map(|d| {
                (
                    d.addresses[0].address.to_string(),
                    exits.best(&d),
                    [0, 1].map(|i| exits.leads(i, &d)),
                )
            })
            .collect();
        let expected = [
            ("10.0.0.3", Some(0), [true, false]),
            ("10.0.0.5", Some(1), [false, true]),
            ("10.0.0.6", Some(0), [true, false]),
        ];
        assert_eq!(seen, expected.map(|(a, best, leads)| (a.to_string(), best, leads)));
    }
}
