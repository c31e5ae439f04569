//! Which machines have nodes that can share a link with a flow: only these hear of it. And which of
//! them hear at once: flows to one node share the link into it whoever sends them, so that on a
//! connected network everybody can share that one with nearly every flow. Who really does, the
//! machine of that node finds out, which hears of all flows to it at once.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::routing::Target;
use windtunnel_model::{Lane, NodeId, Plan, Routes, Vertex};

/// Who hears of flows, under the routes of one moment.
#[derive(Debug)]
pub struct Audiences {
    /// By member: the lanes that packets of its nodes may cross. `None` where a route is fixed:
    /// then all hear of everything.
    lanes: Option<Vec<BTreeSet<Lane>>>,
    placement: Vec<u16>,
    known: BTreeMap<(NodeId, NodeId), Option<Hearing>>,
}

/// Who hears of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hearing {
    /// Members with nodes that can share a link with it.
    pub members: Vec<u16>,
    /// Those of them who can share another one than the link into its destination; and the member
    /// of the destination.
    pub at_once: Vec<u16>,
}

impl Audiences {
    /// `placement` is the member by node.
    pub fn of(plan: &Plan, routes: &Routes, placement: &[u16], members: usize) -> Self {
        let lanes = |member: usize| {
            let nodes = placement.iter().enumerate();
            let nodes = nodes.filter(|(_, place)| usize::from(**place) == member);
            let nodes: Vec<NodeId> = nodes.map(|(node, _)| NodeId::from_index(node)).collect();
            let all = plan.ports().map(|(owner, it)| (owner, Target::Port(it.port)));
            lanes_to(plan, routes, &nodes, all)
        };
        Audiences {
            lanes: (!routes.has_fixed()).then(|| (0..members).map(lanes).collect()),
            placement: placement.to_vec(),
            known: BTreeMap::new(),
        }
    }

    /// The members who hear of a flow between two nodes; `None`: all.
    pub fn hear_of(
        &mut self,
        plan: &Plan,
        routes: &Routes,
        (from, to): (NodeId, NodeId),
    ) -> Option<Hearing> {
        let lanes = self.lanes.as_ref()?;
        // A router receives: it may be any.
        if from == to {
            return None;
        }
        let members = self.known.entry((from, to)).or_insert_with(|| {
            let ports = plan.nodes.get(to.index())?.interfaces.iter();
            let targets = ports.map(|it| (to, Target::Port(it.port)));
            let own = lanes_to(plan, routes, &[from], targets);
            let into = |lane: &&Lane| plan.lane_end(**lane) == Vertex::Node(to);
            let inner: BTreeSet<Lane> = own.iter().filter(|lane| !into(lane)).copied().collect();
            let home = self.placement.get(to.index()).copied();
            let sharing = |with: &BTreeSet<Lane>, home: Option<u16>| {
                let members = (0..).zip(lanes);
                let shares = members
                    .filter(|(member, lanes)| Some(*member) == home || !lanes.is_disjoint(with));
                shares.map(|(member, _)| member).collect()
            };
            let members: Vec<u16> = sharing(&own, None);
            if members.iter().all(|member| self.placement.get(from.index()) == Some(member)) {
                return Some(Hearing { at_once: members.clone(), members });
            }
            Some(Hearing { members: sharing(&own, home), at_once: sharing(&inner, home) })
        });
        members.clone()
    }
}

/// All lanes that packets from some nodes may cross on their way to some targets, by whichever
/// interface they leave and of whichever equal ways they take. A target has an owner, who sends
/// nothing to it.
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
        let text = b"nodes: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}}\n\
routers: [r, s, t]\nlinks:\n\
- {between: [a, r]}\n- {between: [b, r]}\n- {between: [r, s]}\n- {between: [c, s]}\n\
- {between: [d, s]}\n\
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
        // On a-r only a sends; on r-s a and b; on s-c everybody but c. c's machine tells who meets
        // there.
        let hearing = |members: &[u16], at_once: &[u16]| {
            Some(Hearing { members: members.to_vec(), at_once: at_once.to_vec() })
        };
        assert_eq!(hear(0, 2), hearing(&[0, 1, 2, 3, 4, 5], &[0, 1, 2]));
        // e sends on e-t alone, and to f all others may send.
        assert_eq!(hear(4, 5), hearing(&[0, 1, 2, 3, 4, 5], &[4, 5]));
        assert_eq!(hear(0, 0), None);
    }

    #[test]
    fn of_a_flow_through_a_star_only_two_machines_hear_at_once() {
        let mut text = "nodes: {".to_owned();
        (0..150).for_each(|node| text += &format!("n{node}: {{}}, "));
        text += "}\nrouters: [r]\nlinks:\n";
        (0..150).for_each(|node| text += &format!("- {{between: [n{node}, r], rate: 100mbit}}\n"));
        let source = windtunnel_scenario::Source {
            name: "net.yaml",
            text: text.as_bytes(),
            default_name: "net",
            base_dir: "/",
        };
        let plan = windtunnel_scenario::load(&source).unwrap().plan;
        let placement: Vec<u16> = (0..150).map(|node| node % 16).collect();
        let routes = Routes::compute(&plan);
        let mut audiences = Audiences::of(&plan, &routes, &placement, 16);
        let hearing = audiences.hear_of(&plan, &routes, (NodeId(3), NodeId(20))).unwrap();
        assert_eq!(hearing.members, (0..16).collect::<Vec<u16>>());
        assert_eq!(hearing.at_once, [3, 4]);
    }

    #[test]
    fn flows_of_one_pair_on_links_of_their_own_are_nobodys_business() {
        let text = b"allow-unreachable: true\nnodes: {a: {}, b: {}, c: {}, d: {}}\n\
links:\n- {between: [a, b]}\n\
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
        let hearing = Hearing { members: vec![0], at_once: vec![0] };
        assert_eq!(audiences.hear_of(&plan, &routes, (NodeId(0), NodeId(1))), Some(hearing));
    }
}
