//! Edges that go one way, joined to links that go both ways.

use std::collections::{BTreeMap, VecDeque};

use crate::topology::{Link, Properties, Topology};

/// An edge from one vertex to another.
#[derive(Debug, Clone)]
pub(super) struct OneWay {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) properties: Properties,
}

/// A link made of an edge and, if there was one, of the edge back.
#[derive(Debug, Clone)]
pub(super) struct Paired {
    pub(super) ends: [usize; 2],
    pub(super) up: Properties,
    pub(super) down: Option<Properties>,
}

/// Joins each edge with the first edge back that is not joined yet, in the order of the file.
pub(super) fn pair(edges: Vec<OneWay>) -> Vec<Paired> {
    let mut links: Vec<Paired> = Vec::new();
    let mut lonely: BTreeMap<(usize, usize), VecDeque<usize>> = BTreeMap::new();
    for edge in edges {
        let back = lonely.get_mut(&(edge.to, edge.from)).and_then(VecDeque::pop_front);
        match back {
            Some(link) => links[link].down = Some(edge.properties),
            None => {
                lonely.entry((edge.from, edge.to)).or_default().push_back(links.len());
                let ends = [edge.from, edge.to];
                links.push(Paired { ends, up: edge.properties, down: None });
            }
        }
    }
    links
}

/// Adds links between routers for edges; one without an edge back goes both ways alike, noted as
/// `lonely`.
pub(super) fn connect(topology: &mut Topology, edges: Vec<OneWay>, lonely: &str) {
    for paired in pair(edges) {
        let between = paired.ends.map(|end| topology.routers[end].name.clone());
        if paired.down.is_none() {
            topology.notes.lose(lonely, between.join("--"));
        }
        let (up, down) = (paired.up, paired.down.unwrap_or(paired.up));
        topology.links.push(Link { between, up, down, ..Link::default() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_edges_are_joined_in_their_order_and_one_stays_alone() {
        let edge = |from, to| OneWay { from, to, properties: Properties::default() };
        let links = pair(vec![edge(1, 2), edge(1, 2), edge(2, 1), edge(3, 1)]);
        let seen: Vec<_> = links.iter().map(|link| (link.ends, link.down.is_some())).collect();
        assert_eq!(seen, [([1, 2], true), ([1, 2], false), ([3, 1], false)]);
    }
}
