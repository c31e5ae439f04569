//! The most that the nodes of a machine can send to nodes elsewhere, and receive from there.
//!
//! All flows use the plan's links. So no more can leave a machine than the
//! maximum flow from its nodes to all others over these links, and with the right flows as much as
//! that does where routes allow it. A node that forwards receives packets and sends them on
//! itself, as its kernel does.

use alloc::vec;
use alloc::vec::Vec;

use crate::flow::MaxFlowNetwork;
use crate::net::{LaneFacts, Net};
use crate::outcome::UplinkTrafficBound;

/// Bytes that each datagram between machines costs on top of the IP packet in it: IPv4 20, UDP 8,
/// our header 16, authentication 16.
pub const TUNNEL_BYTES: u64 = 60;

/// The most that nodes on `host` can send to those elsewhere, for a machine of each node.
pub(crate) fn up(net: &Net, hosts: &[usize], host: usize) -> UplinkTrafficBound {
    traffic(net, |node| hosts[node] == host, false)
}

/// The most that nodes elsewhere can send to those on `host`.
pub(crate) fn down(net: &Net, hosts: &[usize], host: usize) -> UplinkTrafficBound {
    traffic(net, |node| hosts[node] == host, true)
}

fn traffic(net: &Net, inside: impl Fn(usize) -> bool, towards: bool) -> UplinkTrafficBound {
    let side: Vec<VertexLocality> = (0..net.vertices())
        .map(|vertex| match vertex < net.nodes {
            true if inside(vertex) => VertexLocality::Here,
            true => VertexLocality::Elsewhere,
            false => VertexLocality::Between,
        })
        .collect();
    let ends = |lane: &LaneFacts| if towards { (lane.to, lane.from) } else { (lane.from, lane.to) };
    match unbounded(net, &side, ends) {
        0 => UplinkTrafficBound::Bounded(most(net, &side, ends)),
        nodes => UplinkTrafficBound::Unbounded { nodes },
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VertexLocality {
    Here,
    Elsewhere,
    Between,
}

/// How many nodes here have a way elsewhere on which no lane has a rate.
fn unbounded(
    net: &Net,
    side: &[VertexLocality],
    ends: impl Fn(&LaneFacts) -> (usize, usize),
) -> u32 {
    // Backwards from elsewhere, through the vertices between.
    let mut into: Vec<Vec<usize>> = vec![Vec::new(); side.len()];
    for lane in net.lanes.iter().filter(|lane| lane.rate.is_none()) {
        let (from, to) = ends(lane);
        into[to].push(from);
    }
    let mut seen = vec![false; side.len()];
    let mut open: Vec<usize> =
        (0..side.len()).filter(|v| side[*v] == VertexLocality::Elsewhere).collect();
    while let Some(at) = open.pop() {
        for from in &into[at] {
            if side[*from] != VertexLocality::Elsewhere
                && !core::mem::replace(&mut seen[*from], true)
                && side[*from] == VertexLocality::Between
            {
                open.push(*from);
            }
        }
    }
    let nodes =
        (0..net.nodes).filter(|node| side[*node] == VertexLocality::Here && seen[*node]).count();
    u32::try_from(nodes).unwrap_or(u32::MAX)
}

fn most(net: &Net, side: &[VertexLocality], ends: impl Fn(&LaneFacts) -> (usize, usize)) -> u64 {
    let (source, sink) = (side.len(), side.len() + 1);
    let vertex = |at: usize| match side[at] {
        VertexLocality::Here => source,
        VertexLocality::Elsewhere => sink,
        VertexLocality::Between => at,
    };
    let mut flow = MaxFlowNetwork::new(side.len() + 2);
    for lane in &net.lanes {
        let (from, to) = ends(lane);
        let (from, to) = (vertex(from), vertex(to));
        if from != to && to != source && from != sink {
            flow.arc(from, to, lane.rate.map_or(NO_BOUND, u128::from));
        }
    }
    u64::try_from(flow.most(source, sink)).unwrap_or(u64::MAX)
}

/// More than all lanes of the largest plan together.
const NO_BOUND: u128 = 1 << 100;
