//! Laws of routes over random plans: no loop, no dead end on the way, and no shorter way.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use windtunnel_model::plan::{Link, LinkEnd, Node, NodeInterface, Router, RouterInterface};
use windtunnel_model::{
    Lane, LinkDirection, LinkId, LinkProfile, NetworkVertex, NodeId, Plan, PortId, RouterId, Span,
};
use windtunnel_routing::{RouteDestination, Routes};

/// A random plan: which nodes forward, how many routers, and links as two vertices
/// (nodes first, then routers) with a latency up and one down.
#[derive(Debug, Clone)]
struct Sketch {
    forwards: Vec<bool>,
    routers: usize,
    links: Vec<(usize, usize, u64, u64)>,
}

fn sketch() -> impl Strategy<Value = Sketch> {
    (prop::collection::vec(prop::bool::weighted(0.3), 1..6), 0usize..5).prop_flat_map(
        |(forwards, routers)| {
            let vertices = forwards.len() + routers;
            let link = (0..vertices, 0..vertices, 0u64..4, 0u64..4);
            let links = prop::collection::vec(link, 0..14);
            links.prop_map(move |links| Sketch {
                forwards: forwards.clone(),
                routers,
                links: links.into_iter().filter(|(a, b, ..)| a != b).collect(),
            })
        },
    )
}

impl Sketch {
    fn vertex(&self, index: usize) -> NetworkVertex {
        match index.checked_sub(self.forwards.len()) {
            None => NetworkVertex::Node(NodeId::from_index(index)),
            Some(router) => NetworkVertex::Router(RouterId::from_index(router)),
        }
    }

    fn carries(&self, index: usize) -> bool {
        self.forwards.get(index).copied().unwrap_or(true)
    }

    fn plan(&self) -> Plan {
        let node = |(index, forward): (usize, &bool)| Node {
            name: format!("n{index}"),
            group: format!("n{index}"),
            forward: *forward,
            ..Node::default()
        };
        let router = |index| Router { name: format!("r{index}"), interfaces: Vec::new() };
        let mut plan = Plan {
            name: "net".into(),
            seed: 1,
            nodes: self.forwards.iter().enumerate().map(node).collect(),
            routers: (0..self.routers).map(router).collect(),
            ..Plan::default()
        };
        for (index, (a, b, up, down)) in self.links.iter().enumerate() {
            let link = LinkId::from_index(index);
            let ends = [
                attach(&mut plan, self.vertex(*a), link, LinkDirection::Up),
                attach(&mut plan, self.vertex(*b), link, LinkDirection::Down),
            ];
            let profiles = [up, down].map(|millis| LinkProfile {
                latency: Span::from_millis(*millis),
                ..LinkProfile::default()
            });
            plan.links.push(Link { name: format!("l{index}"), ends, profiles });
        }
        let interfaces = plan.nodes.iter_mut().flat_map(|node| &mut node.interfaces);
        for (port, interface) in interfaces.enumerate() {
            interface.port = PortId::from_index(port);
        }
        plan
    }

    /// Least cost in ms from every vertex to `to` through vertices that carry (Bellman, Ford).
    fn costs(&self, to: usize) -> Vec<Option<u64>> {
        let mut costs = vec![None; self.forwards.len() + self.routers];
        costs[to] = Some(0);
        for _ in 0..costs.len() {
            for (a, b, up, down) in &self.links {
                for (from, next, cost) in [(*a, *b, *up), (*b, *a, *down)] {
                    let open = next == to || self.carries(next);
                    let Some(rest) = costs[next].filter(|_| open) else { continue };
                    if from != to && costs[from].is_none_or(|known| known > rest + cost) {
                        costs[from] = Some(rest + cost);
                    }
                }
            }
        }
        costs
    }
}

impl Sketch {
    /// All pairs by Floyd (1962) and Warshall (1962), from the lanes that are up: the least cost
    /// and, of the ways of that cost, the least number of lanes, through vertices that carry.
    fn all_pairs(&self, up: &[bool]) -> Vec<Vec<Option<(u64, u64)>>> {
        let count = self.forwards.len() + self.routers;
        let mut far: Vec<Vec<Option<(u64, u64)>>> = vec![vec![None; count]; count];
        for (from, to, cost, _) in self.lanes(up) {
            let known = far[from][to].map_or((cost, 1), |known| known.min((cost, 1)));
            far[from][to] = Some(known);
        }
        for middle in (0..count).filter(|vertex| self.carries(*vertex)) {
            for from in 0..count {
                for to in 0..count {
                    let (Some(a), Some(b)) = (far[from][middle], far[middle][to]) else { continue };
                    let sum = (a.0 + b.0, a.1 + b.1);
                    far[from][to] = Some(far[from][to].map_or(sum, |known| known.min(sum)));
                }
            }
        }
        (0..count).for_each(|vertex| far[vertex][vertex] = Some((0, 0)));
        far
    }

    /// Lanes that are up: from, to, cost in ms, and the lane.
    fn lanes(&self, up: &[bool]) -> Vec<(usize, usize, u64, Lane)> {
        let both = self.links.iter().enumerate().flat_map(|(index, (a, b, there, back))| {
            let lane = |direction| Lane { link: LinkId::from_index(index), direction };
            [(*a, *b, *there, lane(LinkDirection::Up)), (*b, *a, *back, lane(LinkDirection::Down))]
        });
        let state = |lane: &Lane| up.get(lane.link.index()).copied().unwrap_or(true);
        both.filter(|(.., lane)| state(lane)).collect()
    }
}

fn attach(plan: &mut Plan, vertex: NetworkVertex, link: LinkId, outward: LinkDirection) -> LinkEnd {
    let (v4, v6) = (None, None);
    let position = match vertex {
        NetworkVertex::Node(id) => {
            let interfaces = &mut plan.nodes[id.index()].interfaces;
            let (port, name) = (PortId(0), format!("eth{}", interfaces.len()));
            interfaces.push(NodeInterface { port, name, link, outward, v4, v6, mtu: 1500 });
            interfaces.len() - 1
        }
        NetworkVertex::Router(id) => {
            let interfaces = &mut plan.routers[id.index()].interfaces;
            interfaces.push(RouterInterface { link, outward, v4, v6 });
            interfaces.len() - 1
        }
        NetworkVertex::Lan(id) => {
            let attachments = &mut plan.lans[id.index()].attachments;
            attachments.push(Lane { link, direction: outward });
            attachments.len() - 1
        }
    };
    LinkEnd { vertex, interface: u32::try_from(position).unwrap() }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    /// From anywhere to any interface: the packet arrives, or no vertex ever takes it.
    #[test]
    fn a_packet_on_its_way_arrives(sketch in sketch()) {
        let plan = sketch.plan();
        let routes = Routes::compute(&plan);
        for (owner, interface) in plan.ports() {
            let reachable = sketch.costs(owner.index());
            for (start, cost) in reachable.iter().enumerate() {
                let mut at = sketch.vertex(start);
                let mut hops = 0;
                while let Some(lane) = routes.next_hop(at, RouteDestination::Port(interface.port)) {
                    prop_assert_eq!(plan.lane_start(lane), at);
                    at = plan.lane_end(lane);
                    hops += 1;
                    prop_assert!(hops <= 20, "a loop from {start} to {interface:?}");
                }
                let arrived = at == NetworkVertex::Node(owner);
                prop_assert!(arrived || hops == 0, "a dead end from {start} to {interface:?}");
                prop_assert_eq!(arrived, cost.is_some(), "from {} to {:?}", start, interface);
            }
        }
    }

    /// To routers, and to nodes with one interface, no way is shorter than the one that is taken.
    #[test]
    fn no_way_is_shorter(sketch in sketch()) {
        let plan = sketch.plan();
        let routes = Routes::compute(&plan);
        let routers = (0..sketch.routers).map(RouterId::from_index).map(|id| {
            (RouteDestination::Router(id), sketch.forwards.len() + id.index())
        });
        let single = plan.nodes.iter().enumerate().filter(|(_, node)| node.interfaces.len() == 1);
        let single = single.map(|(id, node)| (RouteDestination::Port(node.interfaces[0].port), id));
        for (target, end) in routers.chain(single) {
            for (start, least) in sketch.costs(end).into_iter().enumerate() {
                let (mut at, mut cost) = (sketch.vertex(start), Span::ZERO);
                while let Some(lane) = routes.next_hop(at, target) {
                    cost = cost + plan.links[lane.link.index()].profiles[lane.direction.index()].latency;
                    at = plan.lane_end(lane);
                }
                let taken = (at == sketch.vertex(end)).then_some(cost);
                prop_assert_eq!(taken, least.map(Span::from_millis), "from {} to {}", start, end);
            }
        }
    }

    /// With equal-cost routing a router uses exactly the lanes on which the way is no longer than the
    /// shortest, of those that cost nothing only such that lead on by fewer lanes.
    #[test]
    fn equal_ways_are_those_of_the_least_cost(sketch in sketch(), up in prop::collection::vec(prop::bool::weighted(0.7), 14)) {
        let mut plan = sketch.plan();
        plan.routing.ecmp = true;
        let routes = after(&plan, &up);
        let far = sketch.all_pairs(&up);
        for end in 0..sketch.routers {
            let root = sketch.forwards.len() + end;
            let target = RouteDestination::Router(RouterId::from_index(end));
            for router in 0..sketch.routers {
                let here = sketch.forwards.len() + router;
                let fits = |(from, to, cost, _): &(usize, usize, u64, Lane)| {
                    let (Some(whole), Some(rest)) = (far[here][root], far[*to][root]) else { return false };
                    *from == here && here != root && (*to == root || sketch.carries(*to))
                        && cost + rest.0 == whole.0 && (*cost > 0 || rest.1 < whole.1)
                };
                let lanes = sketch.lanes(&up).into_iter().filter(fits).map(|(.., lane)| lane);
                let expected: Vec<Lane> = lanes.collect();
                prop_assert_eq!(routes.next_hops(sketch.vertex(here), target), expected);
            }
        }
    }

    /// With any lanes down and any choice of equal lanes, a packet on its way arrives.
    #[test]
    fn no_choice_leads_astray(sketch in sketch(), up in prop::collection::vec(prop::bool::weighted(0.7), 14), picks in any::<u64>()) {
        let mut plan = sketch.plan();
        plan.routing.ecmp = true;
        let routes = after(&plan, &up);
        for (owner, interface) in plan.ports() {
            for start in 0..sketch.forwards.len() + sketch.routers {
                let (mut at, mut hops) = (sketch.vertex(start), 0u32);
                loop {
                    let lanes = routes.next_hops(at, RouteDestination::Port(interface.port));
                    let Some(last) = lanes.len().checked_sub(1) else { break };
                    let pick = usize::try_from(picks.rotate_left(hops * 7) % 97).unwrap() % (last + 1);
                    prop_assert!(routes.takes(lanes[pick]));
                    at = plan.lane_end(lanes[pick]);
                    hops += 1;
                    prop_assert!(hops <= 20, "a loop from {start} to {interface:?}");
                }
                prop_assert!(at == NetworkVertex::Node(owner) || hops == 0, "a dead end from {start}");
            }
        }
    }

    /// Computed again for lanes that are down, the routes are those of Floyd and Warshall without them.
    #[test]
    fn routes_computed_again_are_the_shortest_over_the_remaining_lanes(sketch in sketch(), up in prop::collection::vec(prop::bool::weighted(0.7), 14)) {
        let plan = sketch.plan();
        let routes = after(&plan, &up);
        let far = sketch.all_pairs(&up);
        for end in 0..sketch.routers {
            let root = sketch.forwards.len() + end;
            for (start, from_here) in far.iter().enumerate() {
                let (mut at, mut cost, mut hops) = (sketch.vertex(start), 0, 0);
                while let Some(lane) = routes.next_hop(at, RouteDestination::Router(RouterId::from_index(end))) {
                    let profile = &plan.links[lane.link.index()].profiles[lane.direction.index()];
                    cost += profile.latency.as_nanos() / 1_000_000;
                    hops += 1;
                    at = plan.lane_end(lane);
                    prop_assert!(hops <= 20);
                }
                let taken = (at == sketch.vertex(root)).then_some((cost, hops));
                prop_assert_eq!(taken, from_here[root], "from {} to {}", start, root);
            }
        }
    }
}

/// The routes of a plan after links went down.
fn after(plan: &Plan, up: &[bool]) -> Routes {
    Routes::compute(plan).recomputed(|lane| {
        let profile = &plan.links[lane.link.index()].profiles[lane.direction.index()];
        up.get(lane.link.index()).copied().unwrap_or(true).then_some(profile.latency)
    })
}
