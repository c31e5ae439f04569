//! The routes of a plan at one moment.

mod ways;

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::plan::{Plan, RouteChange, RoutingMetric};
use windtunnel_model::{LanId, Lane, NetworkVertex, NodeId, PortId, RouterId, Span};

use crate::fixed::FixedRouteTable;
use crate::graph::{InterfaceLocation, RoutingGraph};
use crate::summary;
use ways::ShortestPathCache;

/// Where a packet is going.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouteDestination {
    /// An interface of a node.
    Port(PortId),
    /// A router itself.
    Router(RouterId),
    /// A LAN: for an address of its subnet that the plan assigns to no interface.
    Lan(LanId),
}

/// The routes of a plan at one moment. Asked per packet; cheap to clone.
#[derive(Debug, Clone)]
pub struct Routes {
    graph: Arc<RoutingGraph>,
    metric: RoutingMetric,
    /// Whether routers use all ways of equal cost.
    ecmp: bool,
    ways: Arc<ShortestPathCache>,
    fixed: Arc<FixedRouteTable>,
}

impl Routes {
    /// The routes of `plan` at its start: the latencies that links start with, all lanes up.
    #[must_use]
    pub fn compute(plan: &Plan) -> Self {
        let graph = Arc::new(RoutingGraph::new(plan));
        let latency = |lane: Lane| {
            Some(plan.links[lane.link.index()].profiles[lane.direction.index()].latency)
        };
        let metric = plan.routing.metric;
        let ways = Arc::new(ShortestPathCache::new(&graph, metric, latency));
        Routes {
            fixed: Arc::new(FixedRouteTable::new(plan, &graph, &ways.costs)),
            ways,
            ecmp: plan.routing.ecmp,
            metric,
            graph,
        }
    }

    /// The shortest routes anew, for lanes with these latencies; `None` for a lane that takes
    /// nothing, over which no shortest route leads. Fixed routes stay.
    #[must_use]
    pub fn recomputed(&self, latency: impl Fn(Lane) -> Option<Span>) -> Self {
        let ways = Arc::new(ShortestPathCache::new(&self.graph, self.metric, latency));
        Routes { ways, ..self.clone() }
    }

    /// These routes with some fixed or set free.
    #[must_use]
    pub fn changed(&self, change: &RouteChange) -> Self {
        let fixed = Arc::new(self.fixed.changed(&self.graph, &self.ways.costs, change));
        Routes { fixed, ..self.clone() }
    }

    /// Computes every tree that a packet may ask for, so that no packet has to wait for one later.
    pub fn settle(&self) {
        for port in 0..self.graph.ports().len() {
            if let Some(port) = self.graph.port(port) {
                self.ways.tree(&self.graph, port.attachment);
                self.ways.tree(&self.graph, port.owner);
            }
            self.ways.passes_owner(&self.graph, port);
        }
        let vertices = 0..self.graph.vertices();
        let routers = vertices.filter_map(|vertex| u32::try_from(vertex).ok());
        for router in routers.filter(|vertex| !self.graph.is_node(*vertex)) {
            self.ways.tree(&self.graph, router);
        }
    }

    /// The lane on which `at` sends a packet for `target`; of several that are equal, the first.
    /// `None` if there is no route or `at` is the target's owner.
    #[must_use]
    pub fn next_hop(&self, at: NetworkVertex, target: RouteDestination) -> Option<Lane> {
        let here = self.graph.index(at);
        match self.aim(here, target)? {
            RemainingRoute::Last(lane) => Some(lane),
            RemainingRoute::Root(root) => self.ways.next(&self.graph, root, here),
        }
    }

    /// All lanes on which `at` may send a packet for `target`: one, or with equal-cost routing
    /// those of a router that lead there at the least cost, in the order of the links.
    #[must_use]
    pub fn next_hops(&self, at: NetworkVertex, target: RouteDestination) -> Vec<Lane> {
        let here = self.graph.index(at);
        // A LAN chooses nothing: its router, of several that are equal, is the first.
        if !self.ecmp || !self.graph.is_router(here) {
            return self.next_hop(at, target).into_iter().collect();
        }
        match self.aim(here, target) {
            None => Vec::new(),
            Some(RemainingRoute::Last(lane)) => vec![lane],
            Some(RemainingRoute::Root(root)) => {
                let mut lanes =
                    self.ways.tree(&self.graph, root).equals(&self.graph, &self.ways.costs, here);
                if let RouteDestination::Port(port) = target
                    && let Some(passes) = self.ways.passes_owner(&self.graph, port.index())
                    && self.graph.port(port.index()).is_some_and(|port| port.owner != root)
                {
                    // Elsewhere a way to the attachment may lead through the node itself.
                    let clear =
                        |end: u32| self.graph.core(end).is_some_and(|core| !passes[core as usize]);
                    lanes.retain(|lane| clear(self.graph.end(*lane)));
                }
                lanes
            }
        }
    }

    /// Like [`Routes::next_hop`] for a packet of node `source`, obeying the routes that are fixed.
    #[must_use]
    pub fn next_hop_from(
        &self,
        at: NetworkVertex,
        source: Option<NodeId>,
        target: RouteDestination,
    ) -> Option<Lane> {
        self.fixed_hop(at, source, target).or_else(|| self.next_hop(at, target))
    }

    /// Like [`Routes::next_hops`] for a packet of node `source`, obeying the routes that are fixed.
    #[must_use]
    pub fn next_hops_from(
        &self,
        at: NetworkVertex,
        source: Option<NodeId>,
        target: RouteDestination,
    ) -> Vec<Lane> {
        match self.fixed_hop(at, source, target) {
            Some(lane) => vec![lane],
            None => self.next_hops(at, target),
        }
    }

    /// Whether any route is fixed.
    #[must_use]
    pub fn has_fixed(&self) -> bool {
        !self.fixed.is_empty()
    }

    /// Whether the route from one node to another is fixed.
    #[must_use]
    pub fn is_fixed(&self, from: NodeId, to: NodeId) -> bool {
        self.fixed.contains(from, to)
    }

    /// The fixed routes that lead through `at` without ending there: source, destination, and the
    /// lane on.
    pub fn fixed_through(
        &self,
        at: NetworkVertex,
    ) -> impl Iterator<Item = (NodeId, NodeId, Lane)> + use<'_> {
        self.fixed.through(at)
    }

    /// The lanes from one node to the first interface of another, or `None` if it cannot be
    /// reached; of several ways that are equal, the first.
    #[must_use]
    pub fn path(&self, plan: &Plan, from: NodeId, to: NodeId) -> Option<Vec<Lane>> {
        let (paths, _) = self.paths(plan, from, to, 1);
        paths.into_iter().next()
    }

    /// The ways from one node to the first interface of another, at most `most` of them (two or
    /// more), and how many there are in all, counted to 1001; more than one only with
    /// equal-cost routing.
    #[must_use]
    pub fn paths(
        &self,
        plan: &Plan,
        from: NodeId,
        to: NodeId,
        most: usize,
    ) -> (Vec<Vec<Lane>>, u64) {
        match plan.nodes[to.index()].interfaces.first() {
            Some(interface) => summary::paths(self, plan, from, to, interface.port, most),
            None => (Vec::new(), 0),
        }
    }

    /// Whether a packet of `node` that has come to `from` gets to `target` without passing `node`
    /// again.
    #[must_use]
    pub fn avoids(
        &self,
        plan: &Plan,
        from: NetworkVertex,
        node: NodeId,
        target: RouteDestination,
    ) -> bool {
        let (start, avoided) = (self.graph.index(from), node.0);
        let owner = match target {
            RouteDestination::Router(router) => self.graph.index(NetworkVertex::Router(router)),
            RouteDestination::Lan(lan) => self.graph.index(NetworkVertex::Lan(lan)),
            RouteDestination::Port(port) => match self.graph.port(port.index()) {
                Some(port) => port.owner,
                None => return false,
            },
        };
        if start == owner {
            return true;
        }
        if self.graph.core(start).is_none() || start == avoided {
            return false;
        }
        if self.graph.core(avoided).is_none() {
            // Nothing ever leads through it.
            return self.next_hop(from, target).is_some();
        }
        if !self.ecmp {
            let mut at = from;
            while let Some(lane) = self.next_hop(at, target) {
                at = plan.lane_end(lane);
                let index = self.graph.index(at);
                if index == avoided || index == owner {
                    return index == owner;
                }
            }
            return false;
        }
        let mut seen = vec![false; self.graph.vertices()];
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            let lanes = self.next_hops(at, target);
            if lanes.is_empty() {
                return false;
            }
            for end in lanes.into_iter().map(|lane| plan.lane_end(lane)) {
                let index = self.graph.index(end);
                if index == avoided {
                    return false;
                }
                if index != owner && !core::mem::replace(&mut seen[index as usize], true) {
                    open.push(end);
                }
            }
        }
        true
    }

    /// Whether a lane takes packets, as far as these routes know.
    #[must_use]
    pub fn takes(&self, lane: Lane) -> bool {
        self.ways.costs[lane.index()].is_some()
    }

    /// In how many places routers send packets elsewhere than with `before`, of the same plan:
    /// pairs of a router and an interface or router that it sends to, and fixed routes that
    /// differ.
    #[must_use]
    pub fn differences(&self, before: &Routes, plan: &Plan) -> usize {
        let ports =
            (0..self.graph.ports().len()).map(|id| RouteDestination::Port(PortId::from_index(id)));
        let routers = || (0..plan.routers.len()).map(RouterId::from_index);
        let targets: Vec<RouteDestination> =
            ports.chain(routers().map(RouteDestination::Router)).collect();
        let differs = |at: NetworkVertex, target: RouteDestination| {
            self.next_hops(at, target) != before.next_hops(at, target)
        };
        let places = routers().map(NetworkVertex::Router);
        let changed = places
            .map(|at| targets.iter().filter(|target| differs(at, **target)).count())
            .sum::<usize>();
        changed + self.fixed.differences(&before.fixed)
    }

    fn fixed_hop(
        &self,
        at: NetworkVertex,
        source: Option<NodeId>,
        target: RouteDestination,
    ) -> Option<Lane> {
        let (false, Some(source), RouteDestination::Port(port)) =
            (self.fixed.is_empty(), source, target)
        else {
            return None;
        };
        let destination = NodeId(self.graph.port(port.index())?.owner);
        self.fixed.next(source, destination, at)
    }

    /// Where a packet for `target` is drawn.
    fn aim(&self, here: u32, target: RouteDestination) -> Option<RemainingRoute> {
        let port_id = match target {
            RouteDestination::Router(router) => {
                return Some(RemainingRoute::Root(self.graph.index(NetworkVertex::Router(router))));
            }
            RouteDestination::Lan(lan) => {
                return Some(RemainingRoute::Root(self.graph.index(NetworkVertex::Lan(lan))));
            }
            RouteDestination::Port(port) => port.index(),
        };
        let InterfaceLocation { last, owner, attachment } = self.graph.port(port_id)?;
        if here == owner {
            return None;
        }
        // Without its own link, an interface is reached like the others of its node.
        let takes = self.takes(last);
        if here == attachment && takes {
            return Some(RemainingRoute::Last(last));
        }
        if !takes || self.graph.core(attachment).is_none() {
            return Some(RemainingRoute::Root(owner));
        }
        let passes = self.ways.passes_owner(&self.graph, port_id).is_some_and(|passes| match self
            .graph
            .core(here)
        {
            Some(core) => passes[core as usize],
            None => self.ways.next(&self.graph, attachment, here).is_some_and(|lane| {
                let end = self.graph.core(self.graph.end(lane));
                end.is_none_or(|core| passes[core as usize])
            }),
        });
        let reaches = match self.graph.core(here) {
            Some(_) => self.ways.tree(&self.graph, attachment).reaches(&self.graph, here),
            None => self.ways.next(&self.graph, attachment, here).is_some(),
        };
        Some(RemainingRoute::Root(if passes || !reaches { owner } else { attachment }))
    }
}

/// Where routes lead a packet.
enum RemainingRoute {
    /// Nothing but this lane is left.
    Last(Lane),
    /// The tree towards a vertex.
    Root(u32),
}
