//! Which nodes are nearer to each other in the plan than machines are in the world.
//!
//! Nodes that belong together are found by the shortest tree over them (single linkage): two nodes
//! are joined by ways shorter than *t* exactly if the tree joins them by edges shorter than *t*. It
//! comes from one search from all nodes at once (Mehlhorn 1988). Whether a placement keeps to the
//! round-trip times is then checked for real routes.

use alloc::borrow::ToOwned;
use alloc::collections::BinaryHeap;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use windtunnel_model::{Lane, NetworkVertex, NodeId, Plan, Span};
use windtunnel_routing::{RouteDestination, Routes};

use crate::host::{PlacementHost, Rtts};
use crate::net::Net;
use crate::outcome::PlacementWarning;
use crate::refused::PlacementRefusalReason;

/// Two nodes and the least latency between them, either way, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NodeProximity {
    pub(crate) latency: u64,
    pub(crate) a: usize,
    pub(crate) b: usize,
}

/// The edges of the shortest tree (or forest) over the nodes, shortest first.
pub(crate) fn tree(net: &Net) -> Vec<NodeProximity> {
    let (from, distance) = nearest_nodes(net);
    let candidates = net.lanes.iter().filter_map(|lane| {
        let (a, b) = (from[lane.from]?, from[lane.to]?);
        let way = distance[lane.from].saturating_add(distance[lane.to]);
        let latency = way.saturating_add(lane.latency);
        (a != b).then(|| NodeProximity { latency, a: a.min(b), b: a.max(b) })
    });
    let mut candidates: Vec<NodeProximity> = candidates.collect();
    candidates.sort_unstable();
    let mut groups = UnionFind::new(net.nodes);
    candidates.retain(|near| groups.join(near.a, near.b));
    candidates
}

/// By vertex: the nearest node and how far it is; a link counts with its faster direction.
fn nearest_nodes(net: &Net) -> (Vec<Option<usize>>, Vec<u64>) {
    let mut from: Vec<Option<usize>> = vec![None; net.vertices()];
    let mut distance = vec![u64::MAX; net.vertices()];
    let mut open: BinaryHeap<Reverse<(u64, usize, usize)>> =
        (0..net.nodes).map(|node| Reverse((0, node, node))).collect();
    while let Some(Reverse((far, at, node))) = open.pop() {
        if from[at].is_some() {
            continue;
        }
        (from[at], distance[at]) = (Some(node), far);
        for &lane in &net.out[at] {
            // A lane's reverse is its neighbour.
            let latency = net.lanes[lane].latency.min(net.lanes[lane ^ 1].latency);
            open.push(Reverse((far.saturating_add(latency), net.lanes[lane].to, node)));
        }
    }
    (from, distance)
}

/// Sets that are joined.
#[derive(Debug)]
pub(crate) struct UnionFind {
    parent: Vec<usize>,
}

impl UnionFind {
    pub(crate) fn new(count: usize) -> Self {
        UnionFind { parent: (0..count).collect() }
    }

    /// The same number for all members of a group.
    pub(crate) fn of(&mut self, mut member: usize) -> usize {
        while self.parent[member] != member {
            self.parent[member] = self.parent[self.parent[member]];
            member = self.parent[member];
        }
        member
    }

    /// Makes one group of two; false if they were one. Its number is the least member.
    pub(crate) fn join(&mut self, a: usize, b: usize) -> bool {
        let (a, b) = (self.of(a), self.of(b));
        self.parent[a.max(b)] = a.min(b);
        a != b
    }
}

/// Whether the route between two nodes, one way or the other, is shorter than `limit`.
pub(crate) fn is_nearer(
    plan: &Plan,
    routes: &Routes,
    net: &Net,
    near: NodeProximity,
    limit: u64,
) -> bool {
    let (a, b) = (NodeId::from_index(near.a), NodeId::from_index(near.b));
    [(a, b), (b, a)].into_iter().any(|(from, to)| {
        shortest_route(plan, routes, net, from, to).is_some_and(|(latency, _)| latency < limit)
    })
}

/// The paths that are shorter than half the round trip between their ends' machines (one for each
/// ordered pair of machines), and warnings about distances.
pub(crate) fn check(
    plan: &Plan,
    routes: &Routes,
    net: &Net,
    placed: &[usize],
    hosts: &[PlacementHost],
    rtts: &Rtts,
) -> (Vec<PlacementRefusalReason>, Vec<PlacementWarning>) {
    let used: Vec<usize> = (0..hosts.len()).filter(|host| placed.contains(host)).collect();
    let (mut refusals, mut warnings) = (Vec::new(), Vec::new());
    for (position, &a) in used.iter().enumerate() {
        for &b in used[position + 1..].iter().filter(|b| rtts.between(a, **b).is_none()) {
            let (a, b) = (hosts[a].name.clone(), hosts[b].name.clone());
            warnings.push(PlacementWarning::UnknownRtt { a, b });
        }
    }
    for &host in &used {
        let search = LatencySearch { plan, routes, net, placed, host, rtts };
        let found = search.run(hosts.len());
        for (to_host, found) in found.into_iter().enumerate() {
            let rtt = rtts.between(host, to_host).unwrap_or_default();
            let names = |at: usize| hosts[at].name.clone();
            if let Some(near) = found.near {
                let latency = Span::from_nanos(near.latency);
                let path = near.path;
                let (from_host, to_host) = (names(host), names(to_host));
                refusals.push(PlacementRefusalReason::TooClose {
                    path,
                    latency,
                    from_host,
                    to_host,
                    rtt,
                });
            }
            if let (Some((from, to)), true) = (found.none, host < to_host) {
                let node = |id: usize| plan.nodes[id].name.clone();
                let (from, to, from_host, to_host) =
                    (node(from), node(to), names(host), names(to_host));
                warnings.push(PlacementWarning::NoLatency { from, to, from_host, to_host, rtt });
            }
        }
    }
    (refusals, warnings)
}

/// From the nodes of one machine to those of all others.
struct LatencySearch<'a> {
    plan: &'a Plan,
    routes: &'a Routes,
    net: &'a Net,
    placed: &'a [usize],
    host: usize,
    rtts: &'a Rtts,
}

/// Paths found towards another machine.
#[derive(Debug, Clone, Default)]
struct LatencyViolations {
    /// The shortest path that is too short.
    near: Option<NearPath>,
    /// The ends of a path without latency.
    none: Option<(usize, usize)>,
}

#[derive(Debug, Clone)]
struct NearPath {
    latency: u64,
    path: Vec<String>,
}

impl LatencySearch<'_> {
    fn run(&self, hosts: usize) -> Vec<LatencyViolations> {
        let mut found = vec![LatencyViolations::default(); hosts];
        let limits: Vec<u64> = (0..hosts).map(|to| self.rtts.one_way(self.host, to)).collect();
        let most = limits.iter().copied().max().unwrap_or(0);
        let own: Vec<usize> =
            (0..self.net.nodes).filter(|node| self.placed[*node] == self.host).collect();
        // One search from all nodes suffices in most cases: none is near.
        let is_near = |(node, far): (usize, u64)| far < limits[self.placed[node]];
        if !distances(self.net, &own, most).into_iter().any(is_near) {
            return found;
        }
        for &from in &own {
            for (to, _) in distances(self.net, &[from], most).into_iter().filter(|it| is_near(*it))
            {
                self.judge(from, to, limits[self.placed[to]], &mut found[self.placed[to]]);
            }
        }
        found
    }

    fn judge(&self, from: usize, to: usize, limit: u64, found: &mut LatencyViolations) {
        let (a, b) = (NodeId::from_index(from), NodeId::from_index(to));
        let Some((latency, lanes)) = shortest_route(self.plan, self.routes, self.net, a, b) else {
            return;
        };
        if latency == 0 {
            found.none.get_or_insert((from, to));
        } else if latency < limit && found.near.as_ref().is_none_or(|near| latency < near.latency) {
            let starts = lanes.iter().map(|lane| self.plan.lane_start(*lane));
            let ends = lanes.last().map(|lane| self.plan.lane_end(*lane));
            let names = starts.chain(ends).map(|at| self.plan.vertex_name(at).to_owned());
            found.near = Some(NearPath { latency, path: names.collect() });
        }
    }
}

/// The other nodes that are nearer than `limit` nanoseconds to some of `starts`, with their
/// distance.
fn distances(net: &Net, starts: &[usize], limit: u64) -> Vec<(usize, u64)> {
    let mut distance = vec![u64::MAX; net.vertices()];
    let mut open: BinaryHeap<Reverse<(u64, usize)>> =
        starts.iter().map(|node| Reverse((0, *node))).collect();
    starts.iter().for_each(|node| distance[*node] = 0);
    while let Some(Reverse((far, at))) = open.pop() {
        let is_start = far == 0 && starts.binary_search(&at).is_ok();
        if far > distance[at] || !(net.forwards[at] || is_start) {
            continue;
        }
        for lane in net.out[at].iter().map(|lane| &net.lanes[*lane]) {
            let next = far.saturating_add(lane.latency);
            if next < limit && next < distance[lane.to] {
                distance[lane.to] = next;
                open.push(Reverse((next, lane.to)));
            }
        }
    }
    (0..net.nodes)
        .filter(|node| distance[*node] < limit && starts.binary_search(node).is_err())
        .map(|node| (node, distance[node]))
        .collect()
}

/// The route from one node to an interface of another that has the least latency, with the least
/// that each lane has at any time of the run.
fn shortest_route(
    plan: &Plan,
    routes: &Routes,
    net: &Net,
    from: NodeId,
    to: NodeId,
) -> Option<(u64, Vec<Lane>)> {
    let ports = plan.nodes[to.index()].interfaces.iter().map(|interface| interface.port);
    let ways = ports.filter_map(|port| {
        let (mut at, mut lanes) = (NetworkVertex::Node(from), Vec::new());
        while at != NetworkVertex::Node(to) {
            let lane = routes.next_hop_from(at, Some(from), RouteDestination::Port(port))?;
            lanes.push(lane);
            at = plan.lane_end(lane);
            if lanes.len() > net.vertices() {
                return None;
            }
        }
        let latency = lanes.iter().map(|lane| net.lanes[lane.index()].latency).sum();
        Some((latency, lanes))
    });
    ways.min_by_key(|(latency, lanes)| (*latency, lanes.len()))
}
