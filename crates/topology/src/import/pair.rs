//! Edges of a file, joined to links that go both ways. All importers of edges use this one.

use std::collections::{BTreeMap, VecDeque};

use crate::topology::{LinkDirectionProperties, Topology, TopologyLink};

/// An edge from one vertex to another, as the file has it.
#[derive(Debug, Clone)]
pub(super) struct DirectedEdge<T> {
    pub(super) from: usize,
    pub(super) to: usize,
    /// What it says of its way.
    pub(super) out: T,
    /// What it says of the way back itself; `None`: it goes one way only.
    pub(super) back: Option<T>,
}

/// A link made of an edge that goes both ways, or of one and, if there was one, the edge back.
#[derive(Debug, Clone)]
pub(super) struct BidirectionalEdge<T> {
    pub(super) ends: [usize; 2],
    pub(super) up: T,
    pub(super) down: Option<T>,
}

impl<T: Clone> DirectedEdge<T> {
    /// An edge that is the same both ways.
    pub(super) fn both_ways([from, to]: [usize; 2], out: T) -> Self {
        DirectedEdge { from, to, back: Some(out.clone()), out }
    }

    /// An edge that goes one way only.
    pub(super) fn one_way([from, to]: [usize; 2], out: T) -> Self {
        DirectedEdge { from, to, out, back: None }
    }
}

/// Joins each edge that goes one way with the first one back that is not joined yet, in the order
/// of the file.
pub(super) fn pair<T>(edges: Vec<DirectedEdge<T>>) -> Vec<BidirectionalEdge<T>> {
    let mut links: Vec<BidirectionalEdge<T>> = Vec::new();
    let mut lonely: BTreeMap<(usize, usize), VecDeque<usize>> = BTreeMap::new();
    for DirectedEdge { from, to, out, back } in edges {
        if back.is_none() {
            let first = lonely.get_mut(&(to, from)).and_then(VecDeque::pop_front);
            if let Some(first) = first {
                links[first].down = Some(out);
                continue;
            }
            lonely.entry((from, to)).or_default().push_back(links.len());
        }
        links.push(BidirectionalEdge { ends: [from, to], up: out, down: back });
    }
    links
}

/// Adds links between routers for edges; one without an edge back goes both ways alike, noted as
/// `lonely`.
pub(super) fn connect(
    topology: &mut Topology,
    edges: Vec<DirectedEdge<LinkDirectionProperties>>,
    lonely: &str,
) {
    for BidirectionalEdge { ends, up, down } in pair(edges) {
        let between = ends.map(|end| topology.routers[end].name.clone());
        if down.is_none() {
            topology.notes.lose(lonely, between.join("--"));
        }
        let down = down.unwrap_or_else(|| up.clone());
        topology.links.push(TopologyLink { between, up, down, ..TopologyLink::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_edges_are_joined_in_their_order_and_one_stays_alone() {
        let edges = [([1, 2], 'a'), ([1, 2], 'b'), ([2, 1], 'c'), ([3, 1], 'd')];
        let links = pair(edges.map(|(ends, out)| DirectedEdge::one_way(ends, out)).to_vec());
        let seen: Vec<_> = links.iter().map(|link| (link.ends, link.up, link.down)).collect();
        assert_eq!(seen, [([1, 2], 'a', Some('c')), ([1, 2], 'b', None), ([3, 1], 'd', None)]);
    }

    #[test]
    fn an_edge_that_goes_both_ways_is_joined_with_no_other() {
        let edges = vec![DirectedEdge::both_ways([1, 2], 'a'), DirectedEdge::one_way([2, 1], 'b')];
        let seen: Vec<_> = pair(edges).iter().map(|link| (link.ends, link.up, link.down)).collect();
        assert_eq!(seen, [([1, 2], 'a', Some('a')), ([2, 1], 'b', None)]);
    }
}
