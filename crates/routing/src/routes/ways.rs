//! Shortest ways for given costs.

use alloc::boxed::Box;
use alloc::vec::Vec;

use once_cell::race::OnceBox;
use windtunnel_model::plan::RoutingMetric;
use windtunnel_model::{Lane, Span};

use crate::graph::{InterfaceLocation, RoutingGraph};
use crate::tree::ShortestPathTree;

/// The shortest ways for given costs, each tree computed when it is first asked for.
#[derive(Debug)]
pub(super) struct ShortestPathCache {
    /// By lane index: a lane's cost; `None` while it takes nothing.
    pub(super) costs: Vec<Option<u64>>,
    /// Trees towards a vertex, by vertex.
    trees: Vec<OnceBox<ShortestPathTree>>,
    /// By port of a node that forwards: from where the way to its attachment passes the node
    /// itself.
    through_owner: Vec<OnceBox<Vec<bool>>>,
}

impl ShortestPathCache {
    pub(super) fn new(
        graph: &RoutingGraph,
        metric: RoutingMetric,
        latency: impl Fn(Lane) -> Option<Span>,
    ) -> Self {
        let cost = |lane| {
            let latency = latency(lane)?;
            Some(match metric {
                RoutingMetric::Latency => latency.as_nanos(),
                RoutingMetric::Hops => 0,
            })
        };
        ShortestPathCache {
            costs: (0..graph.lanes()).map(Lane::from_index).map(cost).collect(),
            trees: (0..graph.vertices()).map(|_| OnceBox::new()).collect(),
            through_owner: graph.ports().iter().map(|_| OnceBox::new()).collect(),
        }
    }

    pub(super) fn next(&self, graph: &RoutingGraph, root: u32, here: u32) -> Option<Lane> {
        self.tree(graph, root).next(graph, &self.costs, here)
    }

    pub(super) fn tree(&self, graph: &RoutingGraph, root: u32) -> &ShortestPathTree {
        let costs = &self.costs;
        let tree = || Box::new(ShortestPathTree::towards(graph, costs, root));
        self.trees[root as usize].get_or_init(tree)
    }

    /// From where the way to a port's attachment passes its owner; `None` if nothing leads through
    /// that.
    pub(super) fn passes_owner(&self, graph: &RoutingGraph, port: usize) -> Option<&Vec<bool>> {
        let InterfaceLocation { owner, attachment, .. } = graph.port(port)?;
        graph.core(owner)?;
        let compute = || Box::new(self.tree(graph, attachment).passing(graph, owner));
        Some(self.through_owner[port].get_or_init(compute))
    }
}
