//! Routes over small plans.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use windtunnel_model::plan::{
    FixedRoute, Link, LinkEnd, Node, NodeInterface, Router, RouterInterface, RoutingMetric,
};
use windtunnel_model::profile::LossModel;
use windtunnel_model::{
    Lan, Lane, LinkDirection, LinkId, LinkProfile, NetworkVertex, NodeId, Plan, PortId,
    Probability, RouterId, Span,
};
use windtunnel_routing::{PathSummary, RouteDestination, Routes};

/// Builds plans from names: `a` to `n` are nodes, names that start with `r` are routers, and a
/// capital letter is a node that forwards.
struct Net {
    plan: Plan,
}

impl Net {
    fn new(nodes: &[&str], routers: &[&str]) -> Self {
        let node = |name: &&str| Node {
            name: (*name).to_owned(),
            group: (*name).to_owned(),
            forward: name.starts_with(char::is_uppercase),
            ..Node::default()
        };
        let router = |name: &&str| Router { name: (*name).to_owned(), interfaces: Vec::new() };
        let plan = Plan {
            name: "net".into(),
            seed: 1,
            nodes: nodes.iter().map(node).collect(),
            routers: routers.iter().map(router).collect(),
            ..Plan::default()
        };
        Net { plan }
    }

    fn link(mut self, a: &str, b: &str, millis: u64) -> Self {
        let link = LinkId::from_index(self.plan.links.len());
        let ends = [(a, LinkDirection::Up), (b, LinkDirection::Down)].map(|(name, outward)| {
            let vertex = self.vertex(name);
            let (v4, v6) = (None, None);
            let position = match vertex {
                NetworkVertex::Node(id) => {
                    let interfaces = &mut self.plan.nodes[id.index()].interfaces;
                    let name = format!("eth{}", interfaces.len());
                    let (port, mtu) = (PortId(0), 1500);
                    interfaces.push(NodeInterface { port, name, link, outward, v4, v6, mtu });
                    interfaces.len() - 1
                }
                NetworkVertex::Router(id) => {
                    let interfaces = &mut self.plan.routers[id.index()].interfaces;
                    interfaces.push(RouterInterface { link, outward, v4, v6 });
                    interfaces.len() - 1
                }
                NetworkVertex::Lan(id) => {
                    let attachments = &mut self.plan.lans[id.index()].attachments;
                    attachments.push(Lane { link, direction: outward });
                    attachments.len() - 1
                }
            };
            LinkEnd { vertex, interface: u32::try_from(position).unwrap() }
        });
        let profile = LinkProfile { latency: Span::from_millis(millis), ..LinkProfile::default() };
        let name = format!("{a}--{b}");
        self.plan.links.push(Link { name, ends, profiles: [profile.clone(), profile] });
        let interfaces = self.plan.nodes.iter_mut().flat_map(|node| &mut node.interfaces);
        for (port, interface) in interfaces.enumerate() {
            interface.port = PortId::from_index(port);
        }
        self
    }

    fn lan(mut self, name: &str) -> Self {
        let (v4, v6, attachments) = (None, None, Vec::new());
        self.plan.lans.push(Lan { name: name.to_owned(), v4, v6, attachments });
        self
    }

    fn route(mut self, path: &[&str]) -> Self {
        let path = path.iter().map(|name| self.vertex(name)).collect();
        self.plan.routes.push(FixedRoute { path });
        self
    }

    fn by_hops(mut self) -> Self {
        self.plan.routing = RoutingMetric::Hops.into();
        self
    }

    fn vertex(&self, name: &str) -> NetworkVertex {
        let node = self.plan.node_named(name).map(NetworkVertex::Node);
        let router = || self.plan.router_named(name).map(NetworkVertex::Router);
        node.or_else(router).or_else(|| self.plan.lan_named(name).map(NetworkVertex::Lan)).unwrap()
    }

    fn node(&self, name: &str) -> NodeId {
        self.plan.node_named(name).unwrap()
    }

    /// The way between two nodes as `a-r r-b`; empty if there is none.
    fn path(&self, from: &str, to: &str) -> String {
        let routes = Routes::compute(&self.plan);
        let lanes = routes.path(&self.plan, self.node(from), self.node(to)).unwrap_or_default();
        lanes.iter().map(|lane| self.plan.lane_name(*lane)).collect::<Vec<_>>().join(" ")
    }

    /// The way from a node to one interface of another.
    fn path_to(&self, from: &str, to: &str, interface: usize) -> String {
        let routes = Routes::compute(&self.plan);
        let target = RouteDestination::Port(
            self.plan.nodes[self.node(to).index()].interfaces[interface].port,
        );
        let mut at = self.vertex(from);
        let mut names = Vec::new();
        while let Some(lane) = routes.next_hop(at, target) {
            names.push(self.plan.lane_name(lane));
            at = self.plan.lane_end(lane);
            assert!(names.len() < 20, "a loop: {names:?}");
        }
        assert_eq!(at, self.vertex(to), "{names:?}");
        names.join(" ")
    }
}

#[test]
fn the_shortest_way_is_that_of_the_least_latency() {
    let net = Net::new(&["a", "b"], &["r1", "r2", "r3"])
        .link("a", "r1", 1)
        .link("r1", "r2", 50)
        .link("r1", "r3", 10)
        .link("r3", "r2", 10)
        .link("r2", "b", 1);
    assert_eq!(net.path("a", "b"), "a-r1 r1-r3 r3-r2 r2-b");
    assert_eq!(net.by_hops().path("a", "b"), "a-r1 r1-r2 r2-b");
}

#[test]
fn ties_go_to_fewer_hops_and_then_to_the_link_named_first() {
    let net = Net::new(&["a", "b"], &["r1", "r2", "r3"])
        .link("a", "r1", 1)
        .link("r1", "r3", 10)
        .link("r3", "r2", 10)
        .link("r1", "r2", 20)
        .link("r2", "b", 1);
    assert_eq!(net.path("a", "b"), "a-r1 r1-r2 r2-b");
    let net = Net::new(&["a", "b"], &["r1", "r2", "r3", "r4"])
        .link("a", "r1", 1)
        .link("r1", "r3", 5)
        .link("r1", "r2", 5)
        .link("r2", "r4", 5)
        .link("r3", "r4", 5)
        .link("r4", "b", 1);
    assert_eq!(net.path("a", "b"), "a-r1 r1-r3 r3-r4 r4-b");
}

#[test]
fn of_two_links_between_the_same_ends_the_faster_is_used() {
    let net = Net::new(&["a", "b"], &["r"]).link("a", "r", 9).link("a", "r", 2).link("r", "b", 1);
    let routes = Routes::compute(&net.plan);
    let lanes = routes.path(&net.plan, net.node("a"), net.node("b")).unwrap();
    assert_eq!(lanes[0].link, LinkId(1));
}

#[test]
fn nodes_that_do_not_forward_are_no_way_through() {
    let net = Net::new(&["a", "m", "b"], &[]).link("a", "m", 1).link("m", "b", 1);
    assert_eq!((net.path("a", "m").as_str(), net.path("a", "b").as_str()), ("a-m", ""));
    let net = Net::new(&["a", "M", "b"], &[]).link("a", "M", 1).link("M", "b", 1);
    assert_eq!(net.path("a", "b"), "a-M M-b");
    assert_eq!(net.path("b", "a"), "b-M M-a");
}

#[test]
fn an_interface_is_reached_over_its_own_link() {
    let net = Net::new(&["a", "b"], &["r1", "r2"])
        .link("a", "r1", 1)
        .link("r1", "r2", 1)
        .link("b", "r1", 1)
        .link("b", "r2", 1);
    assert_eq!(net.path_to("a", "b", 0), "a-r1 r1-b");
    assert_eq!(net.path_to("a", "b", 1), "a-r1 r1-r2 r2-b");
}

/// The second interface hangs on a router that is reached only through the node itself.
#[test]
fn an_interface_on_an_island_is_reached_over_another() {
    let net = Net::new(&["a", "B", "c"], &["r1", "r2"])
        .link("a", "r1", 1)
        .link("B", "r1", 1)
        .link("B", "r2", 1)
        .link("c", "r2", 1);
    assert_eq!(net.path_to("a", "B", 1), "a-r1 r1-B");
    assert_eq!(net.path("a", "c"), "a-r1 r1-B B-r2 r2-c");
}

#[test]
fn a_direct_link_of_two_homed_nodes_is_used_for_its_own_address() {
    let net = Net::new(&["a", "b"], &["r"]).link("a", "r", 1).link("b", "r", 1).link("a", "b", 50);
    assert_eq!(net.path_to("a", "b", 0), "a-r r-b");
    assert_eq!(net.path_to("a", "b", 1), "a-b");
}

#[test]
fn the_owner_of_an_address_sends_it_nowhere() {
    let net = Net::new(&["a", "b"], &["r"]).link("a", "r", 1).link("r", "b", 1);
    let routes = Routes::compute(&net.plan);
    let port = net.plan.nodes[1].interfaces[0].port;
    assert_eq!(routes.next_hop(net.vertex("b"), RouteDestination::Port(port)), None);
    assert_eq!(routes.next_hop(net.vertex("a"), RouteDestination::Port(PortId(99))), None);
}

#[test]
fn routers_are_reached_as_well() {
    let net = Net::new(&["a"], &["r1", "r2"]).link("a", "r1", 1).link("r1", "r2", 1);
    let routes = Routes::compute(&net.plan);
    let hop = |from: &str| routes.next_hop(net.vertex(from), RouteDestination::Router(RouterId(1)));
    assert_eq!(net.plan.lane_name(hop("a").unwrap()), "a-r1");
    assert_eq!(net.plan.lane_name(hop("r1").unwrap()), "r1-r2");
    assert_eq!(hop("r2"), None);
}

#[test]
fn a_fixed_route_wins_in_its_direction_only() {
    let net = Net::new(&["a", "b", "c"], &["r1", "r2", "r3"])
        .link("a", "r1", 1)
        .link("r1", "r2", 1)
        .link("r1", "r3", 50)
        .link("r3", "r2", 50)
        .link("r2", "b", 1)
        .link("c", "r1", 1)
        .route(&["a", "r1", "r3", "r2", "b"]);
    assert_eq!(net.path("a", "b"), "a-r1 r1-r3 r3-r2 r2-b");
    assert_eq!(net.path("b", "a"), "b-r2 r2-r1 r1-a");
    assert_eq!(net.path("c", "b"), "c-r1 r1-r2 r2-b");
}

#[test]
fn nodes_of_separate_networks_have_no_path() {
    let net = Net::new(&["a", "b"], &["r1", "r2"]).link("a", "r1", 1).link("b", "r2", 1);
    assert_eq!(net.path("a", "b"), "");
}

/// Latencies add, the least rate counts, losses multiply: 1 − 0.9·0.8 = 28 %.
#[test]
fn a_path_adds_up() {
    let mut net = Net::new(&["a", "b"], &["r"]).link("a", "r", 10).link("r", "b", 5);
    let percent = |p: u32| Probability::from_parts_per_billion(p * 10_000_000).unwrap();
    for (link, (loss, rate)) in net.plan.links.iter_mut().zip([(10, "50mbit"), (20, "5mbit")]) {
        for profile in &mut link.profiles {
            profile.loss = LossModel::Independent(percent(loss));
            profile.rate = rate.parse().ok();
        }
    }
    let lanes = Routes::compute(&net.plan).path(&net.plan, NodeId(0), NodeId(1)).unwrap();
    let summary = PathSummary::of(&net.plan, &lanes);
    assert_eq!((summary.latency, summary.hops), (Span::from_millis(15), 2));
    assert_eq!((summary.bottleneck, summary.loss), ("5mbit".parse().ok(), percent(28)));
    assert_eq!(PathSummary::of(&net.plan, &[]).loss, Probability::NEVER);
}

/// One tree a router, and not one a node: this would take minutes otherwise.
#[test]
fn ten_thousand_leaves_behind_one_router_are_quick() {
    let names: Vec<String> = (0..10_000).map(|n| format!("n{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut net = Net::new(&names, &["r"]);
    for id in 0..10_000u32 {
        let link = LinkId(id);
        let node = NetworkVertex::Node(NodeId(id));
        let (v4, v6) = (None, None);
        net.plan.nodes[link.index()].interfaces.push(NodeInterface {
            port: PortId(id),
            name: "eth0".into(),
            link,
            outward: LinkDirection::Up,
            v4,
            v6,
            mtu: 1500,
        });
        let outward = LinkDirection::Down;
        net.plan.routers[0].interfaces.push(RouterInterface { link, outward, v4, v6 });
        let router = NetworkVertex::Router(RouterId(0));
        net.plan.links.push(Link {
            name: format!("l{id}"),
            ends: [
                LinkEnd { vertex: node, interface: 0 },
                LinkEnd { vertex: router, interface: id },
            ],
            profiles: [LinkProfile::default(), LinkProfile::default()],
        });
    }
    let routes = Routes::compute(&net.plan);
    let path = routes.path(&net.plan, NodeId(0), NodeId(9_999)).unwrap();
    assert_eq!(path.len(), 2);
}

#[test]
fn a_lan_is_crossed_as_one_hop_and_leads_to_the_router_that_is_nearer_to_the_destination() {
    let net = Net::new(&["a", "b", "web"], &["r", "s"])
        .lan("office")
        .link("a", "office", 1)
        .link("b", "office", 2)
        .link("r", "office", 1)
        .link("s", "office", 2)
        .link("s", "web", 5)
        .link("r", "web", 20);
    let routes = Routes::compute(&net.plan);
    let path = |from, to| routes.path(&net.plan, net.node(from), net.node(to)).unwrap();
    let names = |lanes: &[Lane]| {
        lanes.iter().map(|lane| net.plan.lane_name(*lane)).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&path("a", "b")), "a-office office-b");
    assert_eq!(names(&path("web", "a")), "web-s s-office office-a");
    let summary = |from, to| PathSummary::of(&net.plan, &path(from, to));
    assert_eq!(summary("a", "b").hops, 1);
    assert_eq!((summary("a", "web").hops, summary("a", "web").latency), (2, Span::from_millis(8)));
    let lan = RouteDestination::Lan(net.plan.lan_named("office").unwrap());
    let next = routes.next_hop(NetworkVertex::Node(net.node("web")), lan).unwrap();
    assert_eq!(net.plan.lane_name(next), "web-s");
}

#[test]
fn by_hops_a_lan_costs_no_more_than_a_link() {
    let net = Net::new(&["a", "b"], &["r", "s"])
        .lan("office")
        .link("a", "r", 1)
        .link("r", "s", 1)
        .link("a", "office", 50)
        .link("office", "s", 50)
        .link("s", "b", 1)
        .by_hops();
    let path = Routes::compute(&net.plan).path(&net.plan, net.node("a"), net.node("b")).unwrap();
    assert_eq!(net.plan.lane_name(path[0]), "a-office", "two hops and not three");
}
