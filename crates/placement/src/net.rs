//! The plan's network as placement sees it: lanes with the highest rate and the least latency that
//! the file gives them at any time of the run.

use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::plan::EventAction;
use windtunnel_model::{Lane, LinkProfile, NetworkVertex, Plan};

use crate::uplink::TUNNEL_BYTES;

/// Vertices (nodes first, then routers, then LANs) and lanes between them.
#[derive(Debug)]
pub(crate) struct Net {
    /// How many of the vertices are nodes.
    pub(crate) nodes: usize,
    /// By lane.
    pub(crate) lanes: Vec<LaneFacts>,
    /// The lanes that start at each vertex.
    pub(crate) out: Vec<Vec<usize>>,
    /// The vertices that forward packets of others.
    pub(crate) forwards: Vec<bool>,
}

/// Properties of a lane.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneFacts {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// Bits a second that a tunnel needs for the lane's packets, if that is bounded.
    pub(crate) rate: Option<u64>,
    /// Nanoseconds.
    pub(crate) latency: u64,
}

impl Net {
    pub(crate) fn new(plan: &Plan) -> Self {
        let (nodes, routers) = (plan.nodes.len(), plan.routers.len());
        let index = |vertex: NetworkVertex| match vertex {
            NetworkVertex::Node(id) => id.index(),
            NetworkVertex::Router(id) => nodes + id.index(),
            NetworkVertex::Lan(id) => nodes + routers + id.index(),
        };
        let lanes = (0..plan.links.len() * 2).map(Lane::from_index).map(|lane| {
            let profile = &plan.links[lane.link.index()].profiles[lane.direction.index()];
            let (from, to) = (index(plan.lane_start(lane)), index(plan.lane_end(lane)));
            let rate = tunnel_rate(profile);
            LaneFacts { from, to, rate, latency: profile.latency.as_nanos() }
        });
        let mut lanes: Vec<LaneFacts> = lanes.collect();
        widen_by_events(plan, &mut lanes);
        let vertices = nodes + routers + plan.lans.len();
        let mut out = vec![Vec::new(); vertices];
        for (id, lane) in lanes.iter().enumerate() {
            out[lane.from].push(id);
        }
        let forwards = (0..vertices).map(|vertex| plan.nodes.get(vertex).is_none_or(|n| n.forward));
        Net { nodes, forwards: forwards.collect(), lanes, out }
    }

    pub(crate) fn vertices(&self) -> usize {
        self.out.len()
    }
}

/// Raises rates and lowers latencies to the values that the file's events set.
fn widen_by_events(plan: &Plan, lanes: &mut [LaneFacts]) {
    let mut changed: Vec<Option<LinkProfile>> = vec![None; lanes.len()];
    for event in &plan.events {
        let EventAction::Link(change) = &event.action else { continue };
        for (lane, patch) in &change.patches {
            let id = lane.index();
            let start = &plan.links[lane.link.index()].profiles[lane.direction.index()];
            let profile = changed[id].get_or_insert_with(|| start.clone());
            patch.apply_to(profile);
            let facts = &mut lanes[id];
            facts.latency = facts.latency.min(profile.latency.as_nanos());
            facts.rate = match (facts.rate, tunnel_rate(profile)) {
                (Some(before), Some(now)) => Some(before.max(now)),
                _ => None,
            };
        }
    }
}

/// The rate of the lane's full packets between machines: they lose the lane's framing and get the
/// tunnel's.
fn tunnel_rate(profile: &LinkProfile) -> Option<u64> {
    let rate = u128::from(profile.rate?.bits_per_second());
    let carried = rate * (u128::from(profile.mtu) + u128::from(TUNNEL_BYTES));
    let needed = carried.div_ceil(u128::from(profile.wire_packet().max(1)));
    Some(u64::try_from(needed).unwrap_or(u64::MAX))
}
