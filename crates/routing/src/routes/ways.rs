//! Shortest ways for given costs.

use alloc::boxed::Box;
use alloc::vec::Vec;

use once_cell::race::OnceBox;
use windtunnel_model::plan::RoutingMetric;
use windtunnel_model::{Lane, Span};

use crate::graph::{Graph, Port};
use crate::tree::{Costs, Tree};

/// The shortest ways for given costs, each tree computed when it is first asked for.
#[derive(Debug)]
pub(super) struct Ways {
    pub(super) costs: Costs,
    /// Trees towards a vertex, by vertex.
    trees: Vec<OnceBox<Tree>>,
    /// By port of a node that forwards: from where the way to its attachment passes the node
    /// itself.
    through_owner: Vec<OnceBox<Vec<bool>>>,
}

impl Ways {
    pub(super) fn new(
        graph: &Graph,
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
        Ways {
            costs: (0..graph.lanes()).map(Lane::from_index).map(cost).collect(),
            trees: (0..graph.vertices()).map(|_| OnceBox::new()).collect(),
            through_owner: graph.ports().iter().map(|_| OnceBox::new()).collect(),
        }
    }

    pub(super) fn next(&self, graph: &Graph, root: u32, here: u32) -> Option<Lane> {
        self.tree(graph, root).next(graph, &self.costs, here)
    }

    pub(super) fn tree(&self, graph: &Graph, root: u32) -> &Tree {
        let costs = &self.costs;
        let tree = || Box::new(Tree::towards(graph, costs, root));
        self.trees[root as usize].get_or_init(tree)
    }

    /// From where the way to a port's attachment passes its owner; `None` if nothing leads through
    /// that.
    pub(super) fn passes_owner(&self, graph: &Graph, port: usize) -> Option<&Vec<bool>> {
        let Port { owner, attachment, .. } = graph.port(port)?;
        graph.core(owner)?;
        let compute = || Box::new(self.tree(graph, attachment).passing(graph, owner));
        Some(self.through_owner[port].get_or_init(compute))
    }
}
