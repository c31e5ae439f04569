//! Shortest-path trees (Dijkstra 1959) towards one vertex over the lanes of a plan.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::id::{Lane, NodeId, Vertex};
use crate::plan::{Plan, RoutingMetric};

/// The plan's vertices as dense numbers (nodes first, then routers) with their lanes.
#[derive(Debug, Clone)]
pub(super) struct Graph {
    nodes: u32,
    /// By vertex: whether it carries what is not its own.
    forwards: Vec<bool>,
    /// By lane index: where it starts.
    starts: Vec<u32>,
    /// By vertex: lanes that end there, in the file's order.
    inbound: Vec<Vec<Lane>>,
    /// By lane index: what it costs.
    costs: Vec<u64>,
}

/// The way from every vertex towards the root.
#[derive(Debug, Clone)]
pub(super) struct Tree {
    root: u32,
    next: Vec<Option<Step>>,
}

#[derive(Debug, Clone, Copy)]
struct Step {
    lane: Lane,
    to: u32,
}

impl Graph {
    pub(super) fn new(plan: &Plan) -> Self {
        let nodes = NodeId::from_index(plan.nodes.len()).0;
        let vertices = plan.nodes.len() + plan.routers.len();
        let mut graph = Graph {
            nodes,
            forwards: plan
                .nodes
                .iter()
                .map(|node| node.forward)
                .chain(plan.routers.iter().map(|_| true))
                .collect(),
            starts: Vec::with_capacity(plan.links.len() * 2),
            inbound: vec![Vec::new(); vertices],
            costs: Vec::with_capacity(plan.links.len() * 2),
        };
        for index in 0..plan.links.len() * 2 {
            let lane = Lane::from_index(index);
            let profile = &plan.links[lane.link.index()].profiles[lane.direction.index()];
            graph.starts.push(graph.index(plan.lane_start(lane)));
            let end = graph.index(plan.lane_end(lane));
            graph.inbound[end as usize].push(lane);
            graph.costs.push(match plan.routing {
                RoutingMetric::Latency => profile.latency.as_nanos(),
                RoutingMetric::Hops => 0,
            });
        }
        graph
    }

    pub(super) fn index(&self, vertex: Vertex) -> u32 {
        match vertex {
            Vertex::Node(id) => id.0,
            Vertex::Router(id) => self.nodes + id.0,
        }
    }

    pub(super) fn lane_start(&self, lane: Lane) -> u32 {
        self.starts[lane.index()]
    }

    pub(super) fn forwards(&self, vertex: u32) -> bool {
        self.forwards[vertex as usize]
    }

    /// The tree of shortest paths to `root`: by cost, then hops, then the order of the links.
    pub(super) fn tree_towards(&self, root: u32) -> Tree {
        let mut next: Vec<Option<Step>> = vec![None; self.inbound.len()];
        let mut best = vec![(u64::MAX, u32::MAX); self.inbound.len()];
        let mut heap = BinaryHeap::new();
        best[root as usize] = (0, 0);
        heap.push(Reverse((0u64, 0u32, root)));
        while let Some(Reverse((cost, hops, at))) = heap.pop() {
            let settled = (cost, hops) == best[at as usize];
            if !settled || (at != root && !self.forwards(at)) {
                continue;
            }
            for &lane in &self.inbound[at as usize] {
                let from = self.lane_start(lane);
                let reached = (cost.saturating_add(self.costs[lane.index()]), hops + 1);
                let known = best[from as usize];
                let earlier =
                    next[from as usize].is_some_and(|step| lane.index() < step.lane.index());
                if reached < known || (reached == known && earlier) {
                    best[from as usize] = reached;
                    next[from as usize] = Some(Step { lane, to: at });
                    heap.push(Reverse((reached.0, reached.1, from)));
                }
            }
        }
        next[root as usize] = None;
        Tree { root, next }
    }
}

impl Tree {
    pub(super) fn next(&self, at: u32) -> Option<Lane> {
        self.next[at as usize].map(|step| step.lane)
    }

    /// The next lane, unless the way to the root passes through `avoid`.
    pub(super) fn next_avoiding(&self, at: u32, avoid: u32) -> Option<Lane> {
        let mut here = at;
        while here != self.root {
            here = self.next[here as usize]?.to;
            if here == avoid {
                return None;
            }
        }
        self.next(at)
    }
}
