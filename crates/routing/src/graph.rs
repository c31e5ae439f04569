//! The plan's vertices and lanes as dense numbers, which stay when routes change.

use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::{Lane, NetworkVertex, NodeId, Plan};

/// Vertices (nodes first, then routers, then LANs), their lanes, and the *core*: the vertices that
/// forward packets of others. Ways lead through the core only, so that trees span the core and
/// not a thousand leaves.
#[derive(Debug)]
pub(crate) struct RoutingGraph {
    nodes: u32,
    routers: u32,
    /// By vertex: its number in the core.
    core: Vec<Option<u32>>,
    core_len: usize,
    /// By lane index: the vertices that it joins.
    ends: Vec<(u32, u32)>,
    /// By lane index: how many hops it counts, none towards a LAN.
    hops: Vec<u32>,
    /// By vertex: lanes that start there, in the file's order.
    outbound: Vec<Vec<Lane>>,
    /// By vertex: lanes from the core that end there, in the file's order.
    inbound: Vec<Vec<Lane>>,
    /// By port.
    ports: Vec<InterfaceLocation>,
}

/// Where an interface is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InterfaceLocation {
    /// The lane that enters its node there.
    pub(crate) last: Lane,
    /// Its node.
    pub(crate) owner: u32,
    /// The vertex at the far end of its link.
    pub(crate) attachment: u32,
}

impl RoutingGraph {
    pub(crate) fn new(plan: &Plan) -> Self {
        let nodes = NodeId::from_index(plan.nodes.len()).0;
        let carries = plan.nodes.iter().map(|node| node.forward);
        let routers = NodeId::from_index(plan.routers.len()).0;
        let others = plan.routers.len() + plan.lans.len();
        let carries = carries.chain(core::iter::repeat_n(true, others));
        let mut core_len = 0;
        let core: Vec<Option<u32>> = carries
            .map(|carries| {
                carries.then(|| {
                    core_len += 1;
                    NodeId::from_index(core_len - 1).0
                })
            })
            .collect();
        let vertices = core.len();
        let mut graph = RoutingGraph {
            nodes,
            routers,
            core,
            core_len,
            ends: Vec::with_capacity(plan.links.len() * 2),
            hops: Vec::with_capacity(plan.links.len() * 2),
            outbound: vec![Vec::new(); vertices],
            inbound: vec![Vec::new(); vertices],
            ports: Vec::new(),
        };
        for lane in (0..plan.links.len() * 2).map(Lane::from_index) {
            let start = graph.index(plan.lane_start(lane));
            let end = graph.index(plan.lane_end(lane));
            graph.ends.push((start, end));
            graph.hops.push(u32::from(!matches!(plan.lane_end(lane), NetworkVertex::Lan(_))));
            graph.outbound[start as usize].push(lane);
            if graph.core(start).is_some() {
                graph.inbound[end as usize].push(lane);
            }
        }
        let ports = plan.ports().map(|(owner, interface)| {
            let last = Lane { link: interface.link, direction: interface.outward.reverse() };
            InterfaceLocation { last, owner: owner.0, attachment: graph.ends[last.index()].0 }
        });
        graph.ports = ports.collect();
        graph
    }

    pub(crate) fn index(&self, vertex: NetworkVertex) -> u32 {
        match vertex {
            NetworkVertex::Node(id) => id.0,
            NetworkVertex::Router(id) => self.nodes + id.0,
            NetworkVertex::Lan(id) => self.nodes + self.routers + id.0,
        }
    }

    pub(crate) fn is_node(&self, vertex: u32) -> bool {
        vertex < self.nodes
    }

    pub(crate) fn is_router(&self, vertex: u32) -> bool {
        (self.nodes..self.nodes + self.routers).contains(&vertex)
    }

    /// How many hops a lane counts.
    pub(crate) fn hops(&self, lane: Lane) -> u32 {
        self.hops[lane.index()]
    }

    pub(crate) fn vertices(&self) -> usize {
        self.core.len()
    }

    /// A vertex's number in the core; `None` if it passes nothing on.
    pub(crate) fn core(&self, vertex: u32) -> Option<u32> {
        self.core[vertex as usize]
    }

    pub(crate) fn core_len(&self) -> usize {
        self.core_len
    }

    pub(crate) fn start(&self, lane: Lane) -> u32 {
        self.ends[lane.index()].0
    }

    pub(crate) fn end(&self, lane: Lane) -> u32 {
        self.ends[lane.index()].1
    }

    pub(crate) fn outbound(&self, vertex: u32) -> &[Lane] {
        &self.outbound[vertex as usize]
    }

    pub(crate) fn inbound(&self, vertex: u32) -> &[Lane] {
        &self.inbound[vertex as usize]
    }

    pub(crate) fn port(&self, port: usize) -> Option<InterfaceLocation> {
        self.ports.get(port).copied()
    }

    pub(crate) fn ports(&self) -> &[InterfaceLocation] {
        &self.ports
    }

    pub(crate) fn lanes(&self) -> usize {
        self.ends.len()
    }
}
