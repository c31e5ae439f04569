//! Which members are notified of a flow: those where a share can depend on it. They have nodes that
//! can share a link with it, or with a flow that can share a link with it, and so on: the rate that
//! a flow does not reach because of a limit elsewhere is left for others here.
//!
//! And which of them are notified at once: those that can share a link with the flow itself, other
//! than the one into its destination. All flows to one node share the link into it, so that on a
//! connected network every member can share that one with nearly every flow. The member of that
//! node finds out which really do: it is notified of all flows to it at once.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use windtunnel_model::flow::FlowKey;
use windtunnel_model::{Lane, NetworkVertex, NodeId, Plan};
use windtunnel_routing::{RouteDestination, Routes};

/// Which members are notified of flows, under the routes of one moment.
#[derive(Debug)]
pub struct FlowAudienceTable {
    /// By member: the lanes that packets of its nodes may cross. `None` where a route is fixed:
    /// then all are notified of everything.
    lanes: Option<Vec<BTreeSet<Lane>>>,
    groups: LaneDisjointSets,
    /// By member: the groups of its lanes.
    tied: Vec<BTreeSet<usize>>,
    placement: Vec<u16>,
    known: BTreeMap<(NodeId, NodeId), Option<FlowSubscribers>>,
}

/// Lanes in groups: flows over lanes of different groups never depend on each other.
#[derive(Debug)]
struct LaneDisjointSets {
    /// By lane: an earlier one of its group, or itself.
    parents: Vec<usize>,
}

/// The members that are notified of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowSubscribers {
    /// Members where a share can depend on it.
    pub members: Vec<u16>,
    /// Those of them that can share another one than the link into its destination; and the member
    /// of the destination.
    pub at_once: Vec<u16>,
}

impl FlowAudienceTable {
    /// `placement` is the member by node.
    pub fn of(plan: &Plan, routes: &Routes, placement: &[u16], members: usize) -> Self {
        let mut groups = LaneDisjointSets::new(plan.links.len() * 2);
        let lanes = |member: usize| {
            let nodes = placement.iter().enumerate();
            let nodes = nodes.filter(|(_, place)| usize::from(**place) == member);
            let nodes: Vec<NodeId> = nodes.map(|(node, _)| NodeId::from_index(node)).collect();
            let all = plan.ports().map(|(owner, it)| (owner, RouteDestination::Port(it.port)));
            lanes_to(plan, routes, &nodes, all, |lane, next| groups.join(lane, next))
        };
        let lanes: Option<Vec<_>> =
            (!routes.has_fixed()).then(|| (0..members).map(lanes).collect());
        let tied = lanes.iter().flatten().map(|lanes| groups.of(lanes)).collect();
        FlowAudienceTable {
            lanes,
            groups,
            tied,
            placement: placement.to_vec(),
            known: BTreeMap::new(),
        }
    }

    /// The members that are notified of a flow, which depend on its nodes alone; `None`: all.
    pub fn audience_of(
        &mut self,
        plan: &Plan,
        routes: &Routes,
        flow: FlowKey,
    ) -> Option<FlowSubscribers> {
        let FlowKey { source: from, destination: to, .. } = flow;
        // A router receives: it may be any.
        if from == to {
            return None;
        }
        if let Some(known) = self.known.get(&(from, to)) {
            return known.clone();
        }
        let audience = self.compute(plan, routes, flow);
        self.known.insert((from, to), audience.clone());
        audience
    }

    fn compute(&self, plan: &Plan, routes: &Routes, flow: FlowKey) -> Option<FlowSubscribers> {
        let FlowKey { source: from, destination: to, .. } = flow;
        let lanes = self.lanes.as_ref()?;
        let ports = plan.nodes.get(to.index())?.interfaces.iter();
        let targets = ports.map(|it| (to, RouteDestination::Port(it.port)));
        let own = lanes_to(plan, routes, &[from], targets, |_, _| {});
        let into = |lane: &&Lane| plan.lane_end(**lane) == NetworkVertex::Node(to);
        let inner: BTreeSet<Lane> = own.iter().filter(|lane| !into(lane)).copied().collect();
        let groups = self.groups.of(&own);
        let here = self.placement.get(from.index());
        let members = members_with(&self.tied, &groups, None);
        if members.iter().all(|member| here == Some(member)) {
            return Some(FlowSubscribers { at_once: members.clone(), members });
        }
        let home = self.placement.get(to.index()).copied();
        let members = members_with(&self.tied, &groups, home);
        Some(FlowSubscribers { members, at_once: members_with(lanes, &inner, home) })
    }
}

impl LaneDisjointSets {
    /// Each of so many lanes by itself.
    fn new(lanes: usize) -> Self {
        LaneDisjointSets { parents: (0..lanes).collect() }
    }

    /// A flow may go over both.
    fn join(&mut self, one: Lane, other: Lane) {
        let (one, other) = (self.find(one.index()), self.find(other.index()));
        self.parents[one.max(other)] = one.min(other);
    }

    /// The groups of some lanes, each by its first lane.
    fn of(&self, lanes: &BTreeSet<Lane>) -> BTreeSet<usize> {
        let first = |lane: &Lane| {
            let mut at = lane.index();
            while self.parents[at] != at {
                at = self.parents[at];
            }
            at
        };
        lanes.iter().map(first).collect()
    }

    /// The first lane of a group; ways to it become shorter.
    fn find(&mut self, mut lane: usize) -> usize {
        while self.parents[lane] != lane {
            self.parents[lane] = self.parents[self.parents[lane]];
            lane = self.parents[lane];
        }
        lane
    }
}

/// The members that have some of these, and `home`.
fn members_with<T: Ord>(
    by_member: &[BTreeSet<T>],
    some: &BTreeSet<T>,
    home: Option<u16>,
) -> Vec<u16> {
    let members = (0..).zip(by_member);
    let members = members.filter(|(member, has)| Some(*member) == home || !has.is_disjoint(some));
    members.map(|(member, _)| member).collect()
}

/// All lanes that packets from some nodes may cross on their way to some targets, by whichever
/// interface they leave and of whichever equal ways they take. A target has an owner, which sends
/// nothing to it. `follow` is called with each lane and one that may follow on it.
fn lanes_to(
    plan: &Plan,
    routes: &Routes,
    nodes: &[NodeId],
    targets: impl Iterator<Item = (NodeId, RouteDestination)>,
    mut follow: impl FnMut(Lane, Lane),
) -> BTreeSet<Lane> {
    let first =
        nodes.iter().flat_map(|node| leaving(plan, *node).into_iter().map(|lane| (*node, lane)));
    let first: Vec<(NodeId, Lane)> = first.collect();
    let mut lanes: BTreeSet<Lane> = first.iter().map(|(_, lane)| *lane).collect();
    for (owner, target) in targets {
        // By vertex: a lane on which packets go on from there.
        let mut seen: BTreeMap<NetworkVertex, Option<Lane>> = BTreeMap::new();
        let others = first.iter().filter(|(node, _)| *node != owner);
        let mut open: Vec<Lane> = others.map(|(_, lane)| *lane).collect();
        while let Some(lane) = open.pop() {
            let at = plan.lane_end(lane);
            if let Some(next) = seen.get(&at) {
                next.iter().for_each(|next| follow(lane, *next));
                continue;
            }
            let hops = routes.next_hops(at, target);
            seen.insert(at, hops.first().copied());
            hops.iter().for_each(|next| follow(lane, *next));
            lanes.extend(&hops);
            open.extend(hops);
        }
    }
    lanes
}

/// The lanes that lead away from a node.
fn leaving(plan: &Plan, node: NodeId) -> Vec<Lane> {
    let all = (0..plan.links.len() * 2).map(Lane::from_index);
    all.filter(|lane| {
        let link = &plan.links[lane.link.index()];
        link.ends[lane.direction.index()].vertex == NetworkVertex::Node(node)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use windtunnel_model::{LinkDirection, Span};

    use super::*;

    fn load(text: &str) -> Plan {
        let source = windtunnel_scenario::ScenarioSource {
            name: "net.yaml",
            text: text.as_bytes(),
            default_name: "net",
            base_dir: "/",
        };
        windtunnel_scenario::load(&source).unwrap_or_else(|errors| panic!("{errors}")).plan
    }

    /// The first flow between two nodes.
    fn flow(from: u32, to: u32) -> FlowKey {
        FlowKey { source: NodeId(from), destination: NodeId(to), number: 0 }
    }

    /// a and b behind r, c and d behind s, and e and f by themselves behind t.
    fn plan() -> Plan {
        let text = "nodes: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}}\n\
routers: [r, s, t]\nlinks:\n\
- {between: [a, r]}\n- {between: [b, r]}\n- {between: [r, s]}\n- {between: [c, s]}\n\
- {between: [d, s]}\n\
- {between: [e, t]}\n- {between: [f, t]}\n- {between: [s, t]}\n";
        load(text)
    }

    #[test]
    fn only_members_that_can_share_a_link_with_a_flow_are_notified() {
        let plan = plan();
        let routes = Routes::compute(&plan);
        // Each node on a machine of its own.
        let mut audiences = FlowAudienceTable::of(&plan, &routes, &[0, 1, 2, 3, 4, 5], 6);
        let mut audience_of = |from, to| audiences.audience_of(&plan, &routes, flow(from, to));
        // On a-r only a sends; on r-s a and b; on s-c all but c. c's member finds out which
        // meet there.
        let audience = |members: &[u16], at_once: &[u16]| {
            Some(FlowSubscribers { members: members.to_vec(), at_once: at_once.to_vec() })
        };
        assert_eq!(audience_of(0, 2), audience(&[0, 1, 2, 3, 4, 5], &[0, 1, 2]));
        // e sends on e-t alone, and to f all others may send.
        assert_eq!(audience_of(4, 5), audience(&[0, 1, 2, 3, 4, 5], &[4, 5]));
        assert_eq!(audience_of(0, 0), None);
    }

    #[test]
    fn a_flow_through_a_star_is_announced_at_once_to_two_members_only() {
        let mut text = "nodes: {".to_owned();
        (0..150).for_each(|node| text += &format!("n{node}: {{}}, "));
        text += "}\nrouters: [r]\nlinks:\n";
        (0..150).for_each(|node| text += &format!("- {{between: [n{node}, r], rate: 100mbit}}\n"));
        let plan = load(&text);
        let placement: Vec<u16> = (0..150).map(|node| node % 16).collect();
        let routes = Routes::compute(&plan);
        let mut audiences = FlowAudienceTable::of(&plan, &routes, &placement, 16);
        let audience = audiences.audience_of(&plan, &routes, flow(3, 20)).unwrap();
        assert_eq!(audience.members, (0..16).collect::<Vec<u16>>());
        assert_eq!(audience.at_once, [3, 4]);
    }

    #[test]
    fn a_flow_on_links_of_its_own_is_announced_to_its_own_member_only() {
        let text = "allow-unreachable: true\nnodes: {a: {}, b: {}, c: {}, d: {}}\n\
links:\n- {between: [a, b]}\n\
- {between: [c, d]}\n";
        let plan = load(text);
        let routes = Routes::compute(&plan);
        let mut audiences = FlowAudienceTable::of(&plan, &routes, &[0, 1, 2, 3], 4);
        let audience = FlowSubscribers { members: vec![0], at_once: vec![0] };
        assert_eq!(audiences.audience_of(&plan, &routes, flow(0, 1)), Some(audience));
    }

    #[test]
    fn a_flow_to_where_no_route_leads_still_takes_of_the_link_on_which_it_leaves() {
        let plan = plan();
        // c-s is cut.
        let routes = Routes::compute(&plan);
        let routes = routes.recomputed(|lane| (lane.link.index() != 3).then_some(Span::ZERO));
        let mut audiences = FlowAudienceTable::of(&plan, &routes, &[0, 1, 2, 3, 4, 5], 6);
        let audience = audiences.audience_of(&plan, &routes, flow(0, 2)).unwrap();
        // What a sends to e has less of a-r then, and others share s-t with it.
        assert_eq!(audience.members, [0, 1, 2, 3, 4, 5]);
        assert_eq!(audience.at_once, [0, 2]);
    }

    /// Four routers in a row, of which the last three forward to the right only. a is behind the
    /// third, b and c behind the first, and what they send to goes on the fourth, the fourth and
    /// the second.
    #[test]
    fn a_member_without_a_shared_link_learns_of_the_limits_of_flows_that_share_one() {
        let text = "nodes: {a: {}, b: {}, c: {}, x: {}, y: {}, z: {}}\nrouters: [p, q, r, s]\nlinks:\n\
- {between: [p, q]}\n- {between: [q, r]}\n- {between: [r, s]}\n- {between: [a, r]}\n\
- {between: [b, p]}\n- {between: [c, p]}\n- {between: [x, s]}\n- {between: [y, s]}\n\
- {between: [z, q]}\n";
        let plan = load(text);
        // The links q-r and r-s take nothing to the left.
        let one_way = |lane: Lane| (1..3).contains(&lane.link.index());
        let routes = Routes::compute(&plan).recomputed(|lane| {
            let is_cut = one_way(lane) && lane.direction == LinkDirection::Down;
            (!is_cut).then_some(Span::ZERO)
        });
        let mut audiences = FlowAudienceTable::of(&plan, &routes, &[0, 1, 2, 3, 3, 3], 4);
        let mut audience_of = |from, to| audiences.audience_of(&plan, &routes, flow(from, to));
        // a and b share r-s, b and c share p-q; nothing of a can share a link with c's flow to z.
        assert!(audience_of(1, 4).is_some_and(|audience| audience.at_once.starts_with(&[0, 1])));
        let audience = audience_of(2, 5).unwrap();
        assert!(!audience.at_once.contains(&0) && audience.members.contains(&0), "{audience:?}");
    }
}
