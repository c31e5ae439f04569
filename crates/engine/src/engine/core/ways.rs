//! Ways from routers to replicas, as lanes and routes are now.

use alloc::collections::BTreeMap;

use windtunnel_model::{NetworkVertex, PortId, RouterId, Span};
use windtunnel_routing::RouteDestination;

use crate::lan::LearningSwitch;
use crate::services::ReplicaPathMetrics;
use crate::underlay::Underlay;

/// What has been asked since lanes or routes changed.
#[derive(Debug, Default)]
pub(crate) struct KnownWays {
    /// How often they have changed.
    pub(crate) generation: u64,
    ways: BTreeMap<(RouterId, PortId), (u64, Option<ReplicaPathMetrics>)>,
}

impl KnownWays {
    /// Lanes or routes may be others now.
    pub(crate) fn forget(&mut self) {
        self.generation += 1;
    }
}

/// Looks for ways.
pub(crate) struct Surveyor<'a> {
    pub(crate) known: &'a mut KnownWays,
    pub(crate) net: &'a Underlay,
}

impl Surveyor<'_> {
    /// The way from a router to the node of an interface; `None` if no route leads there, or a lane
    /// on it takes nothing now.
    pub(crate) fn way(&mut self, router: RouterId, port: PortId) -> Option<ReplicaPathMetrics> {
        let generation = self.known.generation;
        let known = self.known.ways.get(&(router, port));
        if let Some((_, way)) = known.filter(|(of, _)| *of == generation) {
            return *way;
        }
        let way = self.follow(router, port);
        if self.known.ways.len() >= KNOWN_MAX {
            self.known.ways.clear();
        }
        self.known.ways.insert((router, port), (generation, way));
        way
    }

    fn follow(&self, router: RouterId, port: PortId) -> Option<ReplicaPathMetrics> {
        let lanes = &self.net.lanes;
        let end = NetworkVertex::Node(self.net.network.owner(port));
        let mut at = NetworkVertex::Router(router);
        let mut came = None;
        let mut way = ReplicaPathMetrics {
            latency: Span::ZERO,
            hops: 0,
            mtu: u32::MAX,
            mtu_back: u32::MAX,
            passes_node: false,
        };
        // Routes that change may make loops.
        for _ in 0..=lanes.vertices.len() {
            let lane = self.net.network.routes().next_hop(at, RouteDestination::Port(port))?;
            let chain = &lanes.chains[lane.index()];
            let parts = |lan: &LearningSwitch| came.is_some_and(|came| lan.parts(came, lane));
            let is_parted = match at {
                NetworkVertex::Lan(lan) => parts(&self.net.segments[lan.index()]),
                NetworkVertex::Node(_) | NetworkVertex::Router(_) => false,
            };
            if !chain.state.is_up() || is_parted {
                return None;
            }
            let profile = chain.profile();
            way.latency = way.latency + profile.latency;
            way.mtu = way.mtu.min(profile.mtu);
            way.mtu_back = way.mtu_back.min(lanes.chains[lane.reverse().index()].profile().mtu);
            at = lanes.vertices[lane.link.index()][1 - lane.direction.index()];
            way.hops += u32::from(!matches!(at, NetworkVertex::Lan(_)));
            if at == end {
                return Some(way);
            }
            way.passes_node |= matches!(at, NetworkVertex::Node(_));
            came = Some(lane);
        }
        None
    }
}

/// Ways that are remembered; beyond, all are forgotten.
const KNOWN_MAX: usize = 1 << 18;
