//! Shortest ways (Dijkstra 1959) from the core towards one vertex.

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::graph::RoutingGraph;
use windtunnel_model::Lane;

/// The way from every vertex of the core towards the root.
#[derive(Debug)]
pub(crate) struct ShortestPathTree {
    root: u32,
    /// By number in the core.
    steps: Vec<Option<ShortestPathHop>>,
}

/// How far the root is, by cost and then by lanes (those towards LANs not counted), and the lane to
/// take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ShortestPathHop {
    far: PathDistance,
    /// `None` at the root.
    lane: Option<Lane>,
}

/// A distance; ordered by cost, then by lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PathDistance {
    cost: u64,
    lanes: u32,
}

impl ShortestPathTree {
    /// The tree of shortest ways to `root`: by cost, then lanes, then the order of the links.
    pub(crate) fn towards(graph: &RoutingGraph, costs: &[Option<u64>], root: u32) -> Self {
        let mut tree = ShortestPathTree { root, steps: vec![None; graph.core_len()] };
        let mut heap = BinaryHeap::new();
        let home = PathDistance { cost: 0, lanes: 0 };
        if let Some(core) = graph.core(root) {
            tree.steps[core as usize] = Some(ShortestPathHop { far: home, lane: None });
        }
        heap.push(Reverse((home, root)));
        while let Some(Reverse((far, at))) = heap.pop() {
            if at != root && tree.far(graph, at) != Some(far) {
                continue;
            }
            for &lane in graph.inbound(at) {
                let Some(cost) = costs[lane.index()] else { continue };
                let from = graph.start(lane);
                let Some(core) = graph.core(from) else { continue };
                let reached = far.plus(cost, graph.hops(lane));
                let better = tree.steps[core as usize].is_none_or(|known| {
                    let earlier = known.lane.is_some_and(|other| lane.index() < other.index());
                    reached < known.far || (reached == known.far && earlier)
                });
                if better {
                    tree.steps[core as usize] =
                        Some(ShortestPathHop { far: reached, lane: Some(lane) });
                    heap.push(Reverse((reached, from)));
                }
            }
        }
        tree
    }

    /// The best lane from `at`.
    pub(crate) fn next(
        &self,
        graph: &RoutingGraph,
        costs: &[Option<u64>],
        at: u32,
    ) -> Option<Lane> {
        match graph.core(at) {
            Some(core) => self.steps[core as usize]?.lane,
            None if at == self.root => None,
            None => {
                let lanes = graph.outbound(at).iter();
                let reached =
                    lanes.filter_map(|lane| Some((self.over(graph, costs, *lane)?, *lane)));
                // Of equals, the first of the file.
                Some(reached.min_by_key(|(far, lane)| (*far, lane.index()))?.1)
            }
        }
    }

    /// All lanes from `at` that lead to the root at the least cost. Each step along them gets
    /// nearer by cost, or by lanes at the same cost, so there are no loops.
    pub(crate) fn equals(&self, graph: &RoutingGraph, costs: &[Option<u64>], at: u32) -> Vec<Lane> {
        let Some(here) = self.far(graph, at).filter(|_| at != self.root) else { return Vec::new() };
        let fits = |lane: &&Lane| {
            let far = self.over(graph, costs, **lane);
            far.is_some_and(|far| far.cost == here.cost)
                && (costs[lane.index()] > Some(0) || far.is_some_and(|far| far.lanes <= here.lanes))
        };
        graph.outbound(at).iter().filter(fits).copied().collect()
    }

    pub(crate) fn reaches(&self, graph: &RoutingGraph, at: u32) -> bool {
        at == self.root || self.far(graph, at).is_some()
    }

    /// By number in the core: whether the best way to the root passes `through`.
    pub(crate) fn passing(&self, graph: &RoutingGraph, through: u32) -> Vec<bool> {
        let mut known: Vec<Option<bool>> = vec![None; graph.core_len()];
        let number = |vertex: u32| graph.core(vertex).map(|core| core as usize);
        for (settled, vertex) in [(false, self.root), (true, through)] {
            if let Some(core) = number(vertex) {
                known[core] = Some(settled);
            }
        }
        let mut trail = Vec::new();
        for first in 0..known.len() {
            let mut at = first;
            let passes = loop {
                if let Some(passes) = known[at] {
                    break passes;
                }
                trail.push(at);
                let next = self.steps[at].and_then(|step| step.lane).map(|lane| graph.end(lane));
                match next {
                    None => break false,
                    Some(end) if end == self.root => break false,
                    Some(end) => match number(end) {
                        Some(core) => at = core,
                        None => break false,
                    },
                }
            };
            trail.drain(..).for_each(|core| known[core] = Some(passes));
        }
        known.into_iter().map(Option::unwrap_or_default).collect()
    }

    fn far(&self, graph: &RoutingGraph, at: u32) -> Option<PathDistance> {
        self.steps[graph.core(at)? as usize].map(|step| step.far)
    }

    /// How far the root is over a lane.
    fn over(
        &self,
        graph: &RoutingGraph,
        costs: &[Option<u64>],
        lane: Lane,
    ) -> Option<PathDistance> {
        let cost = costs[lane.index()]?;
        let end = graph.end(lane);
        let rest = if end == self.root {
            PathDistance { cost: 0, lanes: 0 }
        } else {
            self.far(graph, end)?
        };
        Some(rest.plus(cost, graph.hops(lane)))
    }
}

impl PathDistance {
    fn plus(self, cost: u64, hops: u32) -> PathDistance {
        PathDistance { cost: self.cost.saturating_add(cost), lanes: self.lanes + hops }
    }
}
