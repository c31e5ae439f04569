//! A plan for this room's unit tests.

use std::net::{Ipv4Addr, Ipv6Addr};

use windtunnel_model::id::{LinkDirection, LinkId, NetworkVertex, NodeId, PortId, RouterId};
use windtunnel_model::plan::{
    Link, LinkEnd, Node, NodeInterface, ProgramUser, Router, RouterInterface,
};
use windtunnel_model::{LinkProfile, Plan};

/// Node `a` is joined to router `r` by eth0 and to node `c` directly by eth1; `b` hangs on `r`.
///
/// Addresses 10.0.0.n: a 1 and 2, b 3, c 5, r 6 (towards a) and 7 (towards b).
pub(crate) fn two_homed_plan() -> Plan {
    let (a, b, c) = (
        NetworkVertex::Node(NodeId(0)),
        NetworkVertex::Node(NodeId(1)),
        NetworkVertex::Node(NodeId(2)),
    );
    let r = NetworkVertex::Router(RouterId(0));
    Plan {
        nodes: vec![
            node(
                "a",
                vec![
                    interface(0, 0, 0, LinkDirection::Up, 1),
                    interface(1, 1, 2, LinkDirection::Up, 2),
                ],
            ),
            node("b", vec![interface(2, 0, 1, LinkDirection::Up, 3)]),
            node("c", vec![interface(3, 0, 2, LinkDirection::Down, 5)]),
        ],
        routers: vec![Router {
            name: "r".into(),
            interfaces: vec![
                router_interface(0, LinkDirection::Down, 6),
                router_interface(1, LinkDirection::Down, 7),
            ],
        }],
        links: vec![
            link("a--r", (a, 0), (r, 0)),
            link("b--r", (b, 0), (r, 1)),
            link("a--c", (a, 1), (c, 0)),
        ],
        ..Plan::default()
    }
}

fn node(name: &str, interfaces: Vec<NodeInterface>) -> Node {
    Node {
        name: name.into(),
        group: name.into(),
        aliases: Vec::new(),
        forward: false,
        user: ProgramUser::Invoker,
        private: false,
        results: false,
        root: None,
        sysctl: std::collections::BTreeMap::new(),
        pin: None,
        demand: Default::default(),
        reservation: None,
        receive_queue: None,
        internet: None,
        publish: Vec::new(),
        interfaces,
        programs: vec![],
    }
}

fn interface(
    port: u32,
    position: u32,
    link: u32,
    outward: LinkDirection,
    host: u8,
) -> NodeInterface {
    NodeInterface {
        port: PortId(port),
        name: format!("eth{position}"),
        link: LinkId(link),
        outward,
        v4: Some(v4(host)),
        v6: Some(v6(host)),
        mtu: 1500,
    }
}

fn router_interface(link: u32, outward: LinkDirection, host: u8) -> RouterInterface {
    RouterInterface { link: LinkId(link), outward, v4: Some(v4(host)), v6: Some(v6(host)) }
}

fn link(name: &str, first: (NetworkVertex, u32), second: (NetworkVertex, u32)) -> Link {
    let end = |(vertex, interface)| LinkEnd { vertex, interface };
    Link {
        name: name.into(),
        ends: [end(first), end(second)],
        profiles: [LinkProfile::default(), LinkProfile::default()],
    }
}

fn v4(host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, host)
}

fn v6(host: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(host))
}
