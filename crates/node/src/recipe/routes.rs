//! By which of its interfaces a node reaches what.

use std::net::IpAddr;

use windtunnel_model::id::{Lane, NodeId, RouterId, Vertex};
use windtunnel_model::routing::Target;
use windtunnel_model::{Plan, Routes};

/// The ways out of one node.
pub(crate) struct Exits<'a> {
    plan: &'a Plan,
    routes: &'a Routes,
    node: NodeId,
}

/// Somebody else's addresses that are reached alike.
#[derive(Debug, Clone)]
pub(crate) struct Destination {
    owner: Vertex,
    target: Target,
    pub(crate) addresses: Vec<IpAddr>,
}

impl<'a> Exits<'a> {
    pub(crate) fn new(plan: &'a Plan, routes: &'a Routes, node: NodeId) -> Self {
        Exits { plan, routes, node }
    }

    /// Every interface of every other node, and every router.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = Destination> {
        let others = self.plan.ports().filter(|(owner, _)| *owner != self.node);
        let ports = others.map(|(owner, interface)| Destination {
            owner: Vertex::Node(owner),
            target: Target::Port(interface.port),
            addresses: interface.addresses().collect(),
        });
        let routers = self.plan.routers.iter().enumerate().map(|(position, router)| {
            let id = RouterId::from_index(position);
            let v4 = router.interfaces.iter().filter_map(|i| i.v4).map(IpAddr::V4);
            let v6 = router.interfaces.iter().filter_map(|i| i.v6).map(IpAddr::V6);
            let addresses = v4.chain(v6).collect();
            Destination { owner: Vertex::Router(id), target: Target::Router(id), addresses }
        });
        ports.chain(routers)
    }

    /// The position of the interface by which a destination is reached best.
    pub(crate) fn best(&self, destination: &Destination) -> Option<usize> {
        self.position(self.next(Vertex::Node(self.node), destination)?)
    }

    /// Whether packets that leave by an interface arrive without coming back through the node.
    pub(crate) fn leads(&self, position: usize, destination: &Destination) -> bool {
        let interface = &self.plan.nodes[self.node.index()].interfaces[position];
        let lane = Lane { link: interface.link, direction: interface.outward };
        let end = self.plan.lane_end(lane);
        self.routes.takes(lane) && self.routes.avoids(self.plan, end, self.node, destination.target)
    }

    /// Whether the way to a destination is fixed, whatever address packets come from.
    pub(crate) fn is_fixed(&self, destination: &Destination) -> bool {
        match destination.owner {
            Vertex::Node(owner) => self.routes.is_fixed(self.node, owner),
            Vertex::Router(_) => false,
        }
    }

    /// What the node passes on along fixed routes: addresses of the source, of the destination, and the
    /// position of the interface.
    pub(crate) fn passing(&self) -> Vec<(Vec<IpAddr>, Vec<IpAddr>, usize)> {
        let of = |node: NodeId| {
            let interfaces = &self.plan.nodes[node.index()].interfaces;
            interfaces.iter().flat_map(windtunnel_model::plan::Interface::addresses).collect()
        };
        let through = self.routes.fixed_through(Vertex::Node(self.node));
        through
            .filter_map(|(from, to, lane)| Some((of(from), of(to), self.position(lane)?)))
            .collect()
    }

    fn next(&self, at: Vertex, destination: &Destination) -> Option<Lane> {
        self.routes.next_hop_from(at, Some(self.node), destination.target)
    }

    fn position(&self, lane: Lane) -> Option<usize> {
        let interfaces = &self.plan.nodes[self.node.index()].interfaces;
        interfaces.iter().position(|i| i.link == lane.link && i.outward == lane.direction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::two_homed_plan;

    #[test]
    fn a_neighbour_on_a_link_of_its_own_is_reached_by_that_link_only() {
        let plan = two_homed_plan();
        let routes = Routes::compute(&plan);
        let exits = Exits::new(&plan, &routes, NodeId(0));
        let seen: Vec<_> = exits
            .destinations()
            .map(|d| {
                (d.addresses[0].to_string(), exits.best(&d), [0, 1].map(|i| exits.leads(i, &d)))
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
