//! Several directors, each with pins of its own: routes change, and connections meet another one.

use windtunnel_model::plan::{
    EventAction, FlowPinningScope, Hash, LinkChange, LoadBalancingPolicy, ServiceUpdate,
};
use windtunnel_model::{NodeId, RouterId};
use windtunnel_wire::{build, tcp};

use super::redirect::down;
use super::*;
use crate::support::{MS, up};

/// A client at `edge`; two load balancers behind it, and behind these `rack` with six replicas and the
/// node that has the address. The ways over `first` are shorter. Link 8 is edge–first.
fn rack(own: Service) -> Net {
    let mut plan = Topology::new(1);
    let nodes = ["client", "s1", "s2", "s3", "s4", "s5", "s6", "vip"].map(|name| plan.node(name));
    let [edge, first, second, rack] =
        ["edge", "first", "second", "rack"].map(|name| plan.router(name));
    let both = |millis| [delayed(Span::from_millis(millis)), delayed(Span::from_millis(millis))];
    plan.link([nodes[0], edge], both(1));
    for node in &nodes[1..] {
        plan.link([*node, rack], both(1));
    }
    for (ends, millis) in
        [([edge, first], 1), ([edge, second], 2), ([first, rack], 1), ([second, rack], 2)]
    {
        plan.link(ends, both(millis));
    }
    let own = Service {
        v6: None,
        at: vec![FIRST, SECOND],
        origin: Some(NodeId(7)),
        replicas: (1..7).map(|node| Replica { node: NodeId(node), weight: 1 }).collect(),
        ..own
    };
    world_of(plan.build(), own)
}

const FIRST: RouterId = RouterId(1);
const SECOND: RouterId = RouterId(2);
const EDGE_FIRST: u32 = 8;

fn apart(policy: LoadBalancingPolicy, hash: Hash) -> Service {
    Service { policy, hash, pins: FlowPinningScope::PerRouter, ..service() }
}

impl Net {
    /// The link to the first load balancer is cut or mended, and routes follow.
    fn first(&mut self, is_up: bool) {
        let at = self.now.as_nanos();
        let state = vec![(up(EDGE_FIRST), is_up), (down(EDGE_FIRST), is_up)];
        self.apply(at, &EventAction::Link(LinkChange { patches: Vec::new(), state }));
        self.apply(at, &EventAction::Reroute);
    }

    /// The replicas of established connections from these ports.
    fn served(&mut self, ports: std::ops::Range<u16>) -> Vec<u32> {
        ports.map(|port| self.ask(&data(port, b"x"))[0]).collect()
    }

    fn redirected(&self) -> [u64; 2] {
        [FIRST, SECOND].map(|router| self.engine.router(router).redirected)
    }
}

fn opened(net: &mut Net, ports: std::ops::Range<u16>) -> Vec<u32> {
    let replicas = ports.clone().map(|port| net.ask(&syn(port))[0]).collect();
    assert_eq!(net.served(ports), replicas, "established");
    replicas
}

#[test]
fn shared_pins_keep_connections_where_they_are_when_another_router_meets_them() {
    let mut net = rack(Service {
        pins: FlowPinningScope::Shared,
        ..apart(LoadBalancingPolicy::RoundRobin, Hash::default())
    });
    let before = opened(&mut net, 1..13);
    net.first(false);
    assert_eq!(net.served(1..13), before);
    assert_eq!(net.redirected(), [24, 12]);
    assert_eq!(
        (
            net.engine.services().counters(WWW).picked_up,
            net.engine.services().counters(WWW).moved_flows
        ),
        (0, 0)
    );
}

#[test]
fn round_robin_of_each_router_has_turns_of_its_own_and_breaks_connections_that_come_over() {
    let mut net = rack(apart(LoadBalancingPolicy::RoundRobin, Hash::default()));
    assert_eq!(opened(&mut net, 1..13), [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]);
    net.first(false);
    // In another order they come over: the second router's turns begin at the first replica.
    let moved: Vec<u32> = (1..13).rev().map(|port| net.ask(&data(port, b"y"))[0]).collect();
    assert_eq!(moved, [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6]);
    assert_eq!(net.engine.services().counters(WWW).picked_up, 12);
    // Port 12 was at 6 and is at 1, port 11 at 5 and at 2, … : none is where it was.
    assert_eq!(net.engine.services().counters(WWW).moved_flows, 12);
    assert_eq!(net.redirected(), [24, 12]);
}

#[test]
fn a_hash_gives_the_same_replica_at_every_router_and_so_breaks_nothing() {
    for hash in [Hash::Rendezvous, Hash::Maglev] {
        let mut net = rack(apart(LoadBalancingPolicy::Hash, hash));
        let before = opened(&mut net, 1..41);
        let several = before.iter().any(|replica| *replica != before[0]);
        assert_eq!(several, hash == Hash::Maglev, "by the flow, not by the client alone");
        net.first(false);
        assert_eq!(net.served(1..41), before);
        let counters = net.engine.services().counters(WWW);
        assert_eq!((counters.picked_up, counters.moved_flows), (40, 0));
    }
}

#[test]
fn a_router_goes_on_with_the_pins_that_it_had_when_routes_lead_back() {
    let mut net = rack(apart(LoadBalancingPolicy::RoundRobin, Hash::default()));
    let before = opened(&mut net, 1..4);
    net.first(false);
    // A new connection first, so that the turns are others.
    assert_eq!(net.ask(&syn(9)), [1]);
    assert_eq!(net.served(1..4), [2, 3, 4]);
    net.first(true);
    assert_eq!(net.served(1..4), before);
    assert_eq!(net.engine.services().counters(WWW).moved_flows, 3, "coming back is no move");
}

/// Maglev, section 3.4: connections of a router that knows them stay while the replicas change; those
/// that meet another one then are given what its table says now.
#[test]
fn maglev_breaks_few_connections_where_a_replica_leaves_at_the_time_of_a_rehash() {
    let mut net = rack(apart(LoadBalancingPolicy::Hash, Hash::Maglev));
    let ports = 1..301;
    let before = opened(&mut net, ports.clone());
    let at = net.now.as_nanos();
    net.update(at, ServiceUpdate::Drain { replica: NodeId(6), drain: true });
    assert_eq!(net.served(ports.clone()), before, "established ones stay");
    net.first(false);
    let after = net.served(ports);
    assert!(after.iter().all(|replica| *replica != 6));
    let moved = before.iter().zip(&after).filter(|(was, is)| was != is);
    let others = moved.clone().filter(|(was, _)| **was != 6).count();
    assert_eq!(net.engine.services().counters(WWW).moved_flows, moved.count() as u64);
    let of_last = before.iter().filter(|replica| **replica == 6).count();
    // A hash by remainder would move four of five of the others, too.
    assert!(others * 10 < 300 - of_last, "{others} of {} others moved", 300 - of_last);
}

#[test]
fn the_middle_of_a_connection_that_no_router_knows_is_given_a_replica_also_beside_an_origin() {
    let mut net = rack(apart(LoadBalancingPolicy::RoundRobin, Hash::default()));
    assert_eq!(net.ask(&data(1, b"x")), [1]);
    let mut shared = rack(Service { policy: LoadBalancingPolicy::RoundRobin, ..service() });
    assert_eq!(shared.ask(&data(1, b"x")), [7], "it began at the origin");
}

#[test]
fn a_reset_of_the_replica_ends_the_pin_of_the_router_that_gave_it() {
    let mut net = rack(apart(LoadBalancingPolicy::RoundRobin, Hash::default()));
    opened(&mut net, 1..2);
    assert_eq!(net.counters(0).live_connections, 1);
    let at = net.now.as_nanos();
    net.send(at, 1, PLAIN, &build::tcp(www(), client(1), 7, tcp::RST, b""));
    net.run_until(at + 100 * MS);
    assert_eq!(net.counters(0).live_connections, 0);
}

#[test]
fn datagrams_move_with_the_router_that_meets_them_too() {
    let mut net = rack(apart(LoadBalancingPolicy::RoundRobin, Hash::default()));
    assert_eq!([net.ask(&query(1)), net.ask(&query(2)), net.ask(&query(1))], [[1], [2], [1]]);
    net.first(false);
    assert_eq!([net.ask(&query(2)), net.ask(&query(1))], [[1], [2]]);
    assert_eq!(net.engine.services().counters(WWW).moved_flows, 2);
}
