//! Routes that the file fixes, looked up by (source, destination, where the packet is).

use std::collections::BTreeMap;

use crate::id::{Direction, Lane, LinkId, NodeId, Vertex};
use crate::plan::Plan;

/// The fixed routes of a plan.
#[derive(Debug, Clone)]
pub(super) struct Fixed {
    next: BTreeMap<(NodeId, NodeId), Vec<(Vertex, Lane)>>,
}

impl Fixed {
    pub(super) fn new(plan: &Plan) -> Self {
        let mut next = BTreeMap::new();
        for route in &plan.routes {
            let ends = (route.path.first(), route.path.last());
            let (Some(&Vertex::Node(from)), Some(&Vertex::Node(to))) = ends else { continue };
            let hops = route.path.windows(2);
            let hops =
                hops.filter_map(|pair| Some((pair[0], lane_between(plan, pair[0], pair[1])?)));
            next.insert((from, to), hops.collect());
        }
        Fixed { next }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    pub(super) fn next(&self, from: NodeId, to: NodeId, at: Vertex) -> Option<Lane> {
        let hops = self.next.get(&(from, to))?;
        hops.iter().find(|(vertex, _)| *vertex == at).map(|(_, lane)| *lane)
    }
}

/// The first link in the file that joins `from` to `to`.
fn lane_between(plan: &Plan, from: Vertex, to: Vertex) -> Option<Lane> {
    plan.links.iter().enumerate().find_map(|(index, link)| {
        let link_id = LinkId::from_index(index);
        let ends = [link.ends[0].vertex, link.ends[1].vertex];
        let direction = match (ends == [from, to], ends == [to, from]) {
            (true, _) => Direction::Up,
            (_, true) => Direction::Down,
            _ => return None,
        };
        Some(Lane { link: link_id, direction })
    })
}
