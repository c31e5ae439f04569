//! Which machines have nodes that can share a link with a flow: only these hear of it.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::routing::Target;
use windtunnel_model::{Lane, NodeId, Plan, Routes, Vertex};

/// Who hears of flows, under the routes of one moment.
#[derive(Debug)]
pub(crate) struct Audiences {
    /// By member: the lanes that packets of its nodes may cross. `None` where a route is fixed: then all
    /// hear of everything.
    lanes: Option<Vec<BTreeSet<Lane>>>,
    known: BTreeMap<(NodeId, NodeId), Option<Vec<u16>>>,
}

impl Audiences {
    /// `placement` is the member by node.
    pub(crate) fn of(plan: &Plan, routes: &Routes, placement: &[u16], members: usize) -> Self {
        let lanes = |member: usize| {
            let nodes = placement.iter().enumerate();
            let nodes = nodes.filter(|(_, place)| usize::from(**place) == member);
            let nodes: Vec<NodeId> = nodes.map(|(node, _)| NodeId::from_index(node)).collect();
            let all = plan.ports().map(|(owner, it)| (owner, Target::Port(it.port)));
            lanes_to(plan, routes, &nodes, all)
        };
        Audiences {
            lanes: (!routes.has_fixed()).then(|| (0..members).map(lanes).collect()),
            known: BTreeMap::new(),
        }
    }

    /// The members who hear of a flow between two nodes; `None`: all.
    pub(crate) fn hear_of(
        &mut self,
        plan: &Plan,
        routes: &Routes,
        (from, to): (NodeId, NodeId),
    ) -> Option<Vec<u16>> {
        let lanes = self.lanes.as_ref()?;
        // A router receives: it may be any.
        if from == to {
            return None;
        }
        let members = self.known.entry((from, to)).or_insert_with(|| {
            let ports = plan.nodes.get(to.index())?.interfaces.iter();
            let targets = ports.map(|it| (to, Target::Port(it.port)));
            let own = lanes_to(plan, routes, &[from], targets);
            let shares = |member: &(u16, &BTreeSet<Lane>)| !member.1.is_disjoint(&own);
            Some((0..).zip(lanes).filter(shares).map(|(member, _)| member).collect())
        });
        members.clone()
    }
}

/// All lanes that packets from some nodes may cross on their way to some targets, by whichever interface they leave
/// and of whichever equal ways they take. A target has an owner, who sends nothing to it.
fn lanes_to(
    plan: &Plan,
    routes: &Routes,
    nodes: &[NodeId],
    targets: impl Iterator<Item = (NodeId, Target)>,
) -> BTreeSet<Lane> {
    let first =
        nodes.iter().flat_map(|node| leaving(plan, *node).into_iter().map(|lane| (*node, lane)));
    let first: Vec<(NodeId, Lane)> = first.collect();
    let mut lanes: BTreeSet<Lane> = first.iter().map(|(_, lane)| *lane).collect();
    for (owner, target) in targets {
        let mut seen = BTreeSet::new();
        let others = first.iter().filter(|(node, _)| *node != owner);
        let mut open: Vec<Vertex> = others.map(|(_, lane)| plan.lane_end(*lane)).collect();
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            for lane in routes.next_hops(at, target) {
                lanes.insert(lane);
                open.push(plan.lane_end(lane));
            }
        }
    }
    lanes
}

/// The lanes that lead away from a node.
fn leaving(plan: &Plan, node: NodeId) -> Vec<Lane> {
    let all = (0..plan.links.len() * 2).map(Lane::from_index);
    all.filter(|lane| {
        let link = &plan.links[lane.link.index()];
        link.ends[lane.direction.index()].vertex == Vertex::Node(node)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// a and b behind r, c and d behind s, and e and f by themselves behind t.
    fn plan() -> Plan {
        let text = b"nodes: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}}\nrouters: [r, s, t]\nlinks:\n\
- {between: [a, r]}\n- {between: [b, r]}\n- {between: [r, s]}\n- {between: [c, s]}\n- {between: [d, s]}\n\
- {between: [e, t]}\n- {between: [f, t]}\n- {between: [s, t]}\n";
        let source = windtunnel_scenario::Source {
            name: "net.yaml",
            text,
            default_name: "net",
            base_dir: "/",
        };
        windtunnel_scenario::load(&source).unwrap().plan
    }

    #[test]
    fn only_those_hear_of_a_flow_whose_nodes_can_share_a_link_with_it() {
        let plan = plan();
        let routes = Routes::compute(&plan);
        // Each node on a machine of its own.
        let mut audiences = Audiences::of(&plan, &routes, &[0, 1, 2, 3, 4, 5], 6);
        let mut hear = |from, to| audiences.hear_of(&plan, &routes, (NodeId(from), NodeId(to)));
        // On a-r only a sends; on r-s a and b; on s-c everybody but c.
        assert_eq!(hear(0, 2), Some(vec![0, 1, 3, 4, 5]));
        // e sends on e-t alone, and to f all others may send.
        assert_eq!(hear(4, 5), Some(vec![0, 1, 2, 3, 4]));
        assert_eq!(hear(0, 0), None);
    }

    #[test]
    fn flows_of_one_pair_on_links_of_their_own_are_nobodys_business() {
        let text = b"allow-unreachable: true\nnodes: {a: {}, b: {}, c: {}, d: {}}\nlinks:\n- {between: [a, b]}\n\
- {between: [c, d]}\n";
        let source = windtunnel_scenario::Source {
            name: "net.yaml",
            text,
            default_name: "net",
            base_dir: "/",
        };
        let plan = windtunnel_scenario::load(&source).unwrap().plan;
        let routes = Routes::compute(&plan);
        let mut audiences = Audiences::of(&plan, &routes, &[0, 1, 2, 3], 4);
        assert_eq!(audiences.hear_of(&plan, &routes, (NodeId(0), NodeId(1))), Some(vec![0]));
    }
}
