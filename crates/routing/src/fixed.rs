//! Routes that are fixed, looked up by (source, destination, where the packet is).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::graph::RoutingGraph;
use windtunnel_model::plan::{FixedRoute, Plan, RouteChange};
use windtunnel_model::{Lane, NetworkVertex, NodeId};

/// The fixed routes of a moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct FixedRouteTable {
    next: BTreeMap<(NodeId, NodeId), Vec<(NetworkVertex, Lane)>>,
}

impl FixedRouteTable {
    pub(crate) fn new(plan: &Plan, graph: &RoutingGraph, costs: &[Option<u64>]) -> Self {
        let mut fixed = FixedRouteTable::default();
        plan.routes.iter().for_each(|route| fixed.fix(graph, costs, route));
        fixed
    }

    pub(crate) fn changed(
        &self,
        graph: &RoutingGraph,
        costs: &[Option<u64>],
        change: &RouteChange,
    ) -> Self {
        let mut fixed = self.clone();
        for pair in &change.release {
            fixed.next.remove(pair);
        }
        change.fix.iter().for_each(|route| fixed.fix(graph, costs, route));
        fixed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    pub(crate) fn contains(&self, from: NodeId, to: NodeId) -> bool {
        self.next.contains_key(&(from, to))
    }

    pub(crate) fn next(&self, from: NodeId, to: NodeId, at: NetworkVertex) -> Option<Lane> {
        let hops = self.next.get(&(from, to))?;
        hops.iter().find(|(vertex, _)| *vertex == at).map(|(_, lane)| *lane)
    }

    /// Routes that pass `at` on the way: source, destination and the lane on.
    pub(crate) fn through(
        &self,
        at: NetworkVertex,
    ) -> impl Iterator<Item = (NodeId, NodeId, Lane)> + use<'_> {
        self.next.iter().filter_map(move |((from, to), hops)| {
            let (_, lane) = hops.iter().skip(1).find(|(vertex, _)| *vertex == at)?;
            Some((*from, *to, *lane))
        })
    }

    /// Pairs that are fixed in one only, or otherwise.
    pub(crate) fn differences(&self, other: &FixedRouteTable) -> usize {
        let here = self.next.iter().filter(|(pair, hops)| other.next.get(pair) != Some(hops));
        let gone = other.next.keys().filter(|pair| !self.next.contains_key(pair));
        here.count() + gone.count()
    }

    fn fix(&mut self, graph: &RoutingGraph, costs: &[Option<u64>], route: &FixedRoute) {
        let ends = (route.path.first(), route.path.last());
        let (Some(&NetworkVertex::Node(from)), Some(&NetworkVertex::Node(to))) = ends else {
            return;
        };
        let hops = route.path.windows(2);
        let lane = |pair: &[NetworkVertex]| lane_between(graph, costs, pair[0], pair[1]);
        let hops = hops.filter_map(|pair| Some((pair[0], lane(pair)?)));
        self.next.insert((from, to), hops.collect());
    }
}

/// Of the links that join `from` to `to`, the shortest, and of these the first; one that is down
/// last.
fn lane_between(
    graph: &RoutingGraph,
    costs: &[Option<u64>],
    from: NetworkVertex,
    to: NetworkVertex,
) -> Option<Lane> {
    let (from, to) = (graph.index(from), graph.index(to));
    let lanes = graph.outbound(from).iter().filter(|lane| graph.end(**lane) == to);
    lanes.min_by_key(|lane| (costs[lane.index()].unwrap_or(u64::MAX), lane.index())).copied()
}
