//! Ways from routers to replicas, as lanes and routes are now.

use alloc::collections::BTreeMap;

use windtunnel_model::{PortId, RouterId, Span, Vertex};
use windtunnel_routing::Target;

use crate::chain::Chain;
use crate::lan::Segment;
use crate::network::Network;
use crate::services::Way;

/// What has been asked since lanes or routes changed.
#[derive(Debug, Default)]
pub(crate) struct KnownWays {
    /// How often they have changed.
    pub(crate) generation: u64,
    ways: BTreeMap<(RouterId, PortId), (u64, Option<Way>)>,
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
    pub(crate) network: &'a Network,
    pub(crate) chains: &'a [Chain],
    pub(crate) segments: &'a [Segment],
    /// By link: its ends.
    pub(crate) vertices: &'a [[Vertex; 2]],
}

impl Surveyor<'_> {
    /// The way from a router to the node of an interface; `None` if no route leads there, or a lane
    /// on it takes nothing now.
    pub(crate) fn way(&mut self, router: RouterId, port: PortId) -> Option<Way> {
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

    fn follow(&self, router: RouterId, port: PortId) -> Option<Way> {
        let end = Vertex::Node(self.network.owner(port));
        let mut at = Vertex::Router(router);
        let mut came = None;
        let mut way = Way {
            latency: Span::ZERO,
            hops: 0,
            mtu: u32::MAX,
            mtu_back: u32::MAX,
            passes_node: false,
        };
        // Routes that change may make loops.
        for _ in 0..=self.vertices.len() {
            let lane = self.network.routes().next_hop(at, Target::Port(port))?;
            let chain = &self.chains[lane.index()];
            let parts = |lan: &Segment| came.is_some_and(|came| lan.parts(came, lane));
            let is_parted = match at {
                Vertex::Lan(lan) => parts(&self.segments[lan.index()]),
                Vertex::Node(_) | Vertex::Router(_) => false,
            };
            if chain.cut.refuses().is_some() || is_parted {
                return None;
            }
            let profile = chain.profile();
            way.latency = way.latency + profile.latency;
            way.mtu = way.mtu.min(profile.mtu);
            way.mtu_back = way.mtu_back.min(self.chains[lane.reverse().index()].profile().mtu);
            at = self.vertices[lane.link.index()][1 - lane.direction.index()];
            way.hops += u32::from(!matches!(at, Vertex::Lan(_)));
            if at == end {
                return Some(way);
            }
            way.passes_node |= matches!(at, Vertex::Node(_));
            came = Some(lane);
        }
        None
    }
}

/// Ways that are remembered; beyond, all are forgotten.
const KNOWN_MAX: usize = 1 << 18;
