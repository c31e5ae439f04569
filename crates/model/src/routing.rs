//! Who sends what where: shortest paths over a plan, and the routes that the file fixes.
//!
//! A *target* is where an address lives: an interface of a node, or a router. Routes to an interface end
//! on its own link where that is possible, as they would with one subnet a link; so a node with two access
//! links is reached over the one whose address was used.
//!
//! Only routers and nodes that forward carry what is not theirs. One tree per *attachment* (the vertex at
//! the far end of the target's link) is computed, so a thousand leaves behind one router cost one tree.

mod fixed;
mod tree;

use std::collections::BTreeMap;

use crate::id::{Lane, NodeId, PortId, RouterId, Vertex};
use crate::plan::Plan;
use crate::probability::Probability;
use crate::rate::Rate;
use crate::time::Span;
use fixed::Fixed;
use tree::{Graph, Tree};

/// Where a packet is going.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// An interface of a node.
    Port(PortId),
    /// A router itself.
    Router(RouterId),
}

/// The routes of a plan. Built once; asked per packet.
#[derive(Debug, Clone)]
pub struct Routes {
    graph: Graph,
    /// Trees towards a vertex, by vertex index; only those that some target needs.
    trees: BTreeMap<u32, Tree>,
    /// By port: the lane that enters the node there, and its owner.
    ports: Vec<(Lane, NodeId)>,
    fixed: Fixed,
}

/// What a path adds up to, for one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathSummary {
    /// Sum of the latencies.
    pub latency: Span,
    /// The smallest rate, if any link has one.
    pub bottleneck: Option<Rate>,
    /// 1 − Π(1 − p) over the independent losses, rounded to parts per billion; bursts and lists are
    /// counted with their long-run share (zero for lists).
    pub loss: Probability,
    /// Number of links.
    pub hops: usize,
}

impl Routes {
    /// Computes the routes of `plan`, with the latencies that its links start with.
    #[must_use]
    pub fn compute(plan: &Plan) -> Self {
        let graph = Graph::new(plan);
        let mut routes = Routes {
            trees: BTreeMap::new(),
            ports: plan
                .ports()
                .map(|(owner, i)| (Lane { link: i.link, direction: i.outward.reverse() }, owner))
                .collect(),
            fixed: Fixed::new(plan),
            graph,
        };
        let attachments = routes.ports.iter().map(|(lane, _)| plan.lane_start(*lane));
        let owners = plan.nodes.iter().enumerate().filter(|(_, node)| node.interfaces.len() > 1);
        let owners = owners.map(|(id, _)| Vertex::Node(NodeId::from_index(id)));
        let routers = (0..plan.routers.len()).map(|id| Vertex::Router(RouterId::from_index(id)));
        let wanted: Vec<Vertex> = attachments.chain(owners).chain(routers).collect();
        for vertex in wanted {
            let index = routes.graph.index(vertex);
            let graph = &routes.graph;
            routes.trees.entry(index).or_insert_with(|| graph.tree_towards(index));
        }
        routes
    }

    /// The lane on which `at` sends a packet for `target`; `None` if there is no route or `at` is the
    /// target's owner.
    #[must_use]
    pub fn next_hop(&self, at: Vertex, target: Target) -> Option<Lane> {
        let here = self.graph.index(at);
        match target {
            Target::Router(router) => {
                self.trees.get(&self.graph.index(Vertex::Router(router)))?.next(here)
            }
            Target::Port(port) => {
                let (last, owner) = *self.ports.get(port.index())?;
                let owner = self.graph.index(Vertex::Node(owner));
                if here == owner {
                    return None;
                }
                let attachment = self.graph.lane_start(last);
                if here == attachment {
                    return Some(last);
                }
                let forced =
                    self.trees.get(&attachment).filter(|_| self.graph.forwards(attachment));
                forced
                    .and_then(|tree| tree.next_avoiding(here, owner))
                    .or_else(|| self.trees.get(&owner)?.next(here))
            }
        }
    }

    /// Like [`Routes::next_hop`] for a packet of node `source`, obeying the routes that the file fixes.
    #[must_use]
    pub fn next_hop_from(
        &self,
        at: Vertex,
        source: Option<NodeId>,
        target: Target,
    ) -> Option<Lane> {
        if let (false, Some(source), Target::Port(port)) = (self.fixed.is_empty(), source, target) {
            let destination = self.ports.get(port.index())?.1;
            if let Some(lane) = self.fixed.next(source, destination, at) {
                return Some(lane);
            }
        }
        self.next_hop(at, target)
    }

    /// The lanes from one node to the first interface of another, or `None` if it cannot be reached.
    #[must_use]
    pub fn path(&self, plan: &Plan, from: NodeId, to: NodeId) -> Option<Vec<Lane>> {
        let target = Target::Port(plan.nodes[to.index()].interfaces.first()?.port);
        let mut at = Vertex::Node(from);
        let mut lanes = Vec::new();
        while at != Vertex::Node(to) {
            let lane = self.next_hop_from(at, Some(from), target)?;
            at = plan.lane_end(lane);
            lanes.push(lane);
            if lanes.len() > plan.links.len() * 2 {
                return None;
            }
        }
        Some(lanes)
    }
}

impl PathSummary {
    /// Adds up the properties that the plan starts with along `lanes`.
    #[must_use]
    pub fn of(plan: &Plan, lanes: &[Lane]) -> Self {
        const BILLION: u128 = 1_000_000_000;
        let profiles = || {
            lanes.iter().map(|lane| &plan.links[lane.link.index()].profiles[lane.direction.index()])
        };
        // The product is kept in parts per 10^18 so that rounding stays below one part per billion.
        let survive = profiles().fold(BILLION * BILLION, |product, profile| {
            let loss = u128::from(profile.loss.long_run().parts_per_billion());
            product * (BILLION - loss) / BILLION
        });
        let lost = (BILLION * BILLION - survive + BILLION / 2) / BILLION;
        PathSummary {
            latency: profiles().map(|profile| profile.latency).sum(),
            bottleneck: profiles().filter_map(|profile| profile.rate).min(),
            loss: u32::try_from(lost)
                .ok()
                .and_then(Probability::from_parts_per_billion)
                .unwrap_or(Probability::ALWAYS),
            hops: lanes.len(),
        }
    }
}
