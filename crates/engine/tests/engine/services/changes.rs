//! What is new follows the network and the replicas at once; what goes on stays.

use windtunnel_engine::NetworkEventKind;
use windtunnel_model::plan::{EventAction, LinkChange, LoadBalancingPolicy, ServiceUpdate};
use windtunnel_model::{LinkPatch, NetworkVertex, NodeId, RouterId, Span};
use windtunnel_wire::{build, tcp};

use super::redirect::down;
use super::*;
use crate::support::{MS, partition, up};

fn slow(millis: u64) -> LinkPatch {
    LinkPatch { latency: Some(Span::from_millis(millis)), ..LinkPatch::default() }
}

fn redirected(net: &mut Net) -> Vec<(u16, u32, u32)> {
    let event = |kind| match kind {
        NetworkEventKind::Redirected { row, router, replica } => Some((row, router.0, replica.0)),
        _ => None,
    };
    std::iter::from_fn(|| net.engine.poll_event()).filter_map(|it| event(it.kind)).collect()
}

#[test]
fn new_connections_go_where_it_is_nearest_now_and_old_ones_stay() {
    let mut net = world(service());
    assert_eq!(net.ask(&syn(1)), [NEAR]);
    assert_eq!(net.ask(&query(1)), [NEAR]);
    assert_eq!(redirected(&mut net), []);
    let at = net.now.as_nanos();
    net.patch(at, down(1), slow(50));
    assert_eq!(net.ask(&syn(2)), [FAR], "2 + 10 + 4 ms against 2 + 50");
    assert_eq!(net.ask(&data(1, b"x")), [NEAR]);
    assert_eq!(net.ask(&query(1)), [NEAR]);
    assert_eq!(net.ask(&query(2)), [FAR]);
    assert_eq!(redirected(&mut net), [(0, 0, FAR), (1, 0, FAR)], "noticed row by row, at r1");
}

#[test]
fn a_link_that_is_cut_is_no_way_and_established_connections_are_lost_in_it() {
    let mut net = world(service());
    net.ask(&syn(1));
    net.ask(&data(1, b"x"));
    let at = net.now.as_nanos();
    net.set_up(at, down(1), false);
    assert_eq!(net.ask(&syn(2)), [FAR]);
    assert_eq!(net.ask(&data(1, b"y")), []);
    assert_eq!(net.engine.lane(down(1)).dropped.total(), 1);
    let at = net.now.as_nanos();
    net.set_up(at, down(1), true);
    assert_eq!(net.ask(&data(1, b"z")), [NEAR]);
    assert_eq!(net.ask(&syn(3)), [NEAR]);
    assert_eq!(net.ask(&data(2, b"z")), [FAR]);
}

#[test]
fn a_partition_and_its_end_change_the_nearest() {
    let mut net = world(service());
    let groups =
        vec![vec![NetworkVertex::Node(NodeId(NEAR))], vec![NetworkVertex::Router(RouterId(1))]];
    net.apply(0, &partition(groups));
    assert_eq!(net.ask(&syn(1)), [FAR]);
    net.apply(2_000 * MS, &EventAction::Heal);
    assert_eq!(net.ask(&syn(2)), [NEAR]);
}

#[test]
fn a_flap_changes_the_nearest_while_it_is_dark() {
    let mut net = world(service());
    net.apply(0, &EventAction::Flap { lanes: vec![down(1)], up: false });
    assert_eq!(net.ask(&syn(1)), [FAR]);
    net.apply(2_000 * MS, &EventAction::Flap { lanes: vec![down(1)], up: true });
    assert_eq!(net.ask(&syn(2)), [NEAR]);
}

#[test]
fn routes_that_lead_around_change_the_nearest() {
    // A second way to the far replica, which only recomputed routes take.
    let mut plan = Topology::new(1);
    let [client, near, far] = ["client", "near", "far"].map(|name| plan.node(name));
    let [r1, r2, r3] = ["r1", "r2", "r3"].map(|name| plan.router(name));
    let both = |millis| [delayed(Span::from_millis(millis)), delayed(Span::from_millis(millis))];
    for (ends, millis) in [
        ([client, r1], 1),
        ([near, r2], 1),
        ([far, r3], 1),
        ([r1, r2], 10),
        ([r1, r3], 30),
        ([r2, r3], 1),
    ] {
        plan.link(ends, both(millis));
    }
    let mut own = service();
    own.replicas.truncate(2);
    let mut net = world_of(plan.build(), own);
    assert_eq!(net.ask(&syn(1)), [NEAR]);
    assert_eq!(net.engine.choice(0, RouterId(0)), Some(NodeId(NEAR)));
    // r1–r2 is cut: the routes as they are lead nowhere, the new ones over r3.
    net.set_up(1_000 * MS, up(3), false);
    assert_eq!(net.ask(&syn(2)), [FAR]);
    net.apply(3_000 * MS, &EventAction::Reroute);
    assert_eq!(net.ask(&syn(3)), [FAR], "31 ms against 32");
    net.patch(5_000 * MS, down(1), slow(0));
    assert_eq!(net.ask(&syn(4)), [FAR], "31 ms both, over fewer links");
}

#[test]
fn a_replica_that_is_not_registered_gets_nothing_and_one_that_is_gets_what_is_new_at_once() {
    let mut plan = network();
    plan.services.push(service());
    let mut net = Net::new(plan);
    assert_eq!(net.ask(&syn(1)), [CLIENT], "unreachable");
    let listens =
        |replica| ServiceUpdate::Registered { replica: NodeId(replica), port: port("80/tcp") };
    let at = net.now.as_nanos();
    net.update(at, listens(FAR));
    assert_eq!(net.ask(&syn(2)), [FAR]);
    assert_eq!(net.ask(&query(2)), [CLIENT], "not registered for this port");
    let at = net.now.as_nanos();
    net.update(at, listens(NEAR));
    assert_eq!(net.ask(&syn(3)), [NEAR]);
    assert_eq!(net.ask(&data(2, b"x")), [FAR]);
}

#[test]
fn a_replica_that_closes_its_port_keeps_connections_and_its_datagrams_move() {
    let mut net = world(service());
    net.ask(&syn(1));
    net.ask(&data(1, b"x"));
    net.ask(&query(1));
    let at = net.now.as_nanos();
    for port in [port("80/tcp"), port("53/udp")] {
        net.update(at, ServiceUpdate::Withdrawn { replica: NodeId(NEAR), port });
    }
    assert_eq!(net.ask(&data(1, b"y")), [NEAR], "its kernel ends it, or finishes it");
    assert_eq!(net.ask(&syn(2)), [FAR]);
    assert_eq!(net.ask(&query(1)), [FAR]);
    assert_eq!((net.counters(0).live_flows, net.counters(1).live_flows), (0, 1));
}

#[test]
fn a_syn_without_an_answer_moves_with_the_next_try() {
    let mut net = world(service());
    assert_eq!(net.ask(&syn(1)), [NEAR]);
    let at = net.now.as_nanos();
    net.lose(at, NEAR);
    assert_eq!(net.ask(&syn(1)), [FAR]);
    assert_eq!(net.ask(&data(1, b"x")), [FAR]);
    assert_eq!((net.counters(0).live_connections, net.counters(1).live_connections), (0, 1));
}

#[test]
fn an_unhealthy_replica_gets_nothing_new() {
    let mut net = world(service());
    net.ask(&syn(1));
    net.ask(&data(1, b"x"));
    let at = net.now.as_nanos();
    net.update(at, ServiceUpdate::Health { replica: NodeId(NEAR), healthy: false });
    assert_eq!(net.ask(&data(1, b"y")), [NEAR]);
    assert_eq!(net.ask(&syn(2)), [FAR]);
    let at = net.now.as_nanos();
    net.update(at, ServiceUpdate::Health { replica: NodeId(NEAR), healthy: true });
    assert_eq!(net.ask(&syn(3)), [NEAR]);
}

#[test]
fn a_draining_replica_keeps_connections_and_flows() {
    let mut net = world(service());
    net.ask(&syn(1));
    net.ask(&query(1));
    let at = net.now.as_nanos();
    net.update(at, ServiceUpdate::Drain { replica: NodeId(NEAR), drain: true });
    assert_eq!(net.ask(&data(1, b"x")), [NEAR]);
    assert_eq!(net.ask(&query(1)), [NEAR]);
    assert_eq!(net.ask(&syn(2)), [FAR]);
    assert_eq!(net.ask(&query(2)), [FAR]);
    let at = net.now.as_nanos();
    net.update(at, ServiceUpdate::Drain { replica: NodeId(NEAR), drain: false });
    assert_eq!(net.ask(&syn(3)), [NEAR]);
}

#[test]
fn replicas_are_added_and_removed_while_the_run_lives() {
    let mut net = world(service());
    net.ask(&syn(1));
    net.ask(&data(1, b"x"));
    net.ask(&query(1));
    let at = net.now.as_nanos();
    net.update(at, ServiceUpdate::Remove { replica: NodeId(NEAR) });
    assert_eq!(net.ask(&data(1, b"y")), [NEAR]);
    assert_eq!(net.ask(&syn(2)), [FAR]);
    assert_eq!(net.ask(&query(1)), [FAR]);
    let at = net.now.as_nanos();
    net.update(at, ServiceUpdate::Add { replica: NodeId(ORIGIN) });
    assert_eq!(net.ask(&syn(3)), [FAR], "nothing listens there yet");
    let at = net.now.as_nanos();
    net.update(at, ServiceUpdate::Registered { replica: NodeId(ORIGIN), port: port("80/tcp") });
    assert_eq!(net.ask(&syn(4)), [ORIGIN]);
    let at = net.now.as_nanos();
    net.update(at, ServiceUpdate::Add { replica: NodeId(NEAR) });
    assert_eq!(net.engine.services().replicas(WWW).len(), 3, "it is at its old place");
    assert!(net.engine.services().has_replica(WWW, NodeId(ORIGIN)));
    assert!(!net.engine.services().has_replica(WWW, NodeId(CLIENT)));
    let at = net.now.as_nanos();
    net.update(at, ServiceUpdate::Drain { replica: NodeId(CLIENT), drain: true });
    assert_eq!(net.engine.services().counters(WWW).refused, 1);
}

#[test]
fn weights_change_shares_at_once() {
    let mut net = world(Service { policy: LoadBalancingPolicy::Weighted, ..service() });
    net.update(0, ServiceUpdate::Weight { replica: NodeId(NEAR), weight: 0 });
    let all: Vec<u32> = (1..20).flat_map(|from| net.ask(&syn(from))).collect();
    assert_eq!(all, [FAR; 19]);
    assert_eq!(net.engine.services().replicas(WWW)[0].state.weight, 0);
}

#[test]
fn a_datagram_flow_is_forgotten_after_its_idle_time_and_not_before() {
    let mut net = world(service());
    assert_eq!(net.ask(&query(1)), [NEAR]);
    let at = net.now.as_nanos();
    net.patch(at, down(1), slow(50));
    // 30 s since its packet at 0; each packet prolongs it.
    net.run_until(29_000 * MS);
    assert_eq!(net.ask(&query(1)), [NEAR]);
    net.run_until(58_000 * MS);
    assert_eq!(net.ask(&query(1)), [NEAR]);
    net.run_until(89_000 * MS);
    assert_eq!(net.ask(&query(1)), [FAR]);
    assert_eq!(net.engine.services().counters(WWW).expired, 1);
}

#[test]
fn counts_of_live_flows_fall_without_any_packet() {
    let mut net = world(service());
    for from in 1..=100 {
        net.call(0, &query(from));
    }
    net.run_until(10 * MS);
    assert_eq!(net.counters(0).live_flows, 100);
    net.run_until(32_000 * MS);
    assert_eq!((net.counters(0).live_flows, net.engine.services().pins().held), (0, 0));
    assert_eq!(net.engine.poll_timeout(), None, "nothing is left to be looked at");
}

#[test]
fn a_connection_lives_until_fin_or_a_reset_of_either_end() {
    let mut net = world(service());
    let live = |net: &Net| net.counters(0).live_connections;
    for from in 1..=3 {
        net.ask(&syn(from));
        net.ask(&data(from, b"x"));
    }
    assert_eq!(live(&net), 3);
    net.ask(&build::tcp(client(1), www(), 1002, tcp::FIN | tcp::ACK, b""));
    assert_eq!(live(&net), 2);
    net.ask(&build::tcp(client(2), www(), 1002, tcp::RST, b""));
    assert_eq!(live(&net), 1);
    let at = net.now.as_nanos();
    let refused = build::tcp(www(), client(3), 1, tcp::RST | tcp::ACK, b"");
    net.send(at, FAR, PLAIN, &refused);
    assert_eq!(live(&net), 1, "not from its replica");
    net.send(at, NEAR, PLAIN, &refused);
    assert_eq!(live(&net), 0);
    assert_eq!(net.counters(0).connections, 3);
}

#[test]
fn what_closes_goes_on_to_its_replica_and_the_same_port_is_free_for_a_new_connection() {
    let mut net = world(service());
    net.ask(&syn(1));
    net.ask(&build::tcp(client(1), www(), 1002, tcp::FIN | tcp::ACK, b""));
    let at = net.now.as_nanos();
    net.patch(at, down(1), slow(50));
    assert_eq!(net.ask(&data(1, b"")), [NEAR], "the acknowledgement of the other FIN");
    assert_eq!(net.ask(&syn(1)), [NEAR], "a late copy of its SYN");
    let again = build::tcp(client(1), www(), 99_000, tcp::SYN, b"");
    assert_eq!(net.ask(&again), [FAR]);
    assert_eq!(net.ask(&data(1, b"x")), [FAR]);
}

#[test]
fn a_connection_that_began_before_is_picked_up_and_stays() {
    let mut net = world(service());
    assert_eq!(net.ask(&data(1, b"x")), [NEAR]);
    let at = net.now.as_nanos();
    net.patch(at, down(1), slow(50));
    assert_eq!(net.ask(&data(1, b"y")), [NEAR]);
    assert_eq!(net.engine.services().counters(WWW).picked_up, 1);
}

#[test]
fn a_connection_that_began_at_the_origin_goes_on_there_when_replicas_come() {
    let mut plan = network();
    plan.services.push(Service { origin: Some(NodeId(ORIGIN)), ..service() });
    let mut net = Net::new(plan);
    assert_eq!(net.ask(&syn(1)), [ORIGIN]);
    for port in [port("80/tcp"), port("53/udp")] {
        let at = net.now.as_nanos();
        net.update(at, ServiceUpdate::Registered { replica: NodeId(NEAR), port });
    }
    assert_eq!(net.ask(&data(1, b"x")), [ORIGIN]);
    assert_eq!(net.ask(&syn(2)), [NEAR]);
    assert_eq!(net.ask(&query(1)), [NEAR], "a datagram begins nothing that could break");
    assert_eq!(net.engine.services().counters(WWW).picked_up, 0);
}

#[test]
fn a_flow_that_meets_another_redirector_stays_with_its_replica() {
    let mut plan = Topology::new(1);
    let [client, near, far] = ["client", "near", "far"].map(|name| plan.node(name));
    let [r1, r2] = ["r1", "r2"].map(|name| plan.router(name));
    let entry = plan.router("entry");
    let both = |millis| [delayed(Span::from_millis(millis)), delayed(Span::from_millis(millis))];
    for (ends, millis) in [
        ([client, entry], 1),
        ([near, r1], 1),
        ([far, r2], 1),
        ([entry, r1], 1),
        ([entry, r2], 5),
        ([r1, r2], 5),
    ] {
        plan.link(ends, both(millis));
    }
    let mut own = service();
    own.at = vec![RouterId(0), RouterId(1)];
    (own.origin, own.replicas) = (None, own.replicas);
    let mut plan = plan.build();
    // Both ways lead to the origin: by r1, or without that by r2.
    let router = |id| NetworkVertex::Router(RouterId(id));
    own.origin = Some(NodeId(NEAR));
    plan.routes.push(windtunnel_model::plan::FixedRoute {
        path: vec![
            NetworkVertex::Node(NodeId(CLIENT)),
            router(2),
            router(0),
            NetworkVertex::Node(NodeId(NEAR)),
        ],
    });
    let mut net = world_of(plan, own);
    assert_eq!(net.ask(&syn(1)), [NEAR]);
    let change = windtunnel_model::plan::RouteChange {
        release: Vec::new(),
        fix: vec![windtunnel_model::plan::FixedRoute {
            path: vec![
                NetworkVertex::Node(NodeId(CLIENT)),
                router(2),
                router(1),
                router(0),
                NetworkVertex::Node(NodeId(NEAR)),
            ],
        }],
    };
    let at = net.now.as_nanos();
    net.apply(at, &EventAction::Route(change));
    assert_eq!(net.ask(&syn(2)), [FAR], "r2 redirects to what is near it");
    assert_eq!(net.ask(&data(1, b"x")), [NEAR]);
    let redirected = |router| net.engine.router(RouterId(router)).redirected;
    assert_eq!([redirected(0), redirected(1)], [1, 2]);
}

#[test]
fn a_redirector_without_a_way_leaves_a_flow_to_the_one_that_has_one() {
    // client – r1, r1 – far's router directly and r1 – r2 – origin; r2 – far's router, too.
    let mut plan = Topology::new(1);
    let [client, far, origin] = ["client", "far", "origin"].map(|name| plan.node(name));
    let [r1, r2, r3] = ["r1", "r2", "r3"].map(|name| plan.router(name));
    let both = || [delayed(Span::from_millis(1)), delayed(Span::from_millis(1))];
    for ends in [[client, r1], [far, r3], [origin, r2], [r1, r3], [r1, r2], [r2, r3]] {
        plan.link(ends, both());
    }
    let mut own = service();
    own.replicas = vec![Replica { node: NodeId(1), weight: 1 }];
    own.origin = Some(NodeId(2));
    let mut net = world_of(plan.build(), own);
    // r1 has no way to the replica, and no new routes are computed; it is on the way to the origin.
    net.set_up(0, up(3), false);
    assert_eq!(net.ask(&syn(1)), [1]);
    assert_eq!(net.ask(&data(1, b"x")), [1], "the pin is r2's");
    let redirected = |router| net.engine.router(RouterId(router)).redirected;
    assert_eq!([redirected(0), redirected(1)], [0, 2]);
    let at = net.now.as_nanos();
    net.set_up(at, up(3), true);
    assert_eq!(net.ask(&data(1, b"y")), [1]);
    assert_eq!(net.engine.router(RouterId(0)).redirected, 1);
}

#[test]
fn changes_of_links_and_services_can_come_together() {
    let mut net = world(service());
    let change = LinkChange { patches: vec![(down(1), slow(50))], state: vec![(up(5), false)] };
    net.apply(0, &EventAction::Link(change));
    assert_eq!(net.ask(&syn(1)), [NEAR], "slow, and all that there is");
    let at = net.now.as_nanos();
    net.update(at, ServiceUpdate::Drain { replica: NodeId(NEAR), drain: true });
    assert_eq!(net.ask(&syn(2)), [CLIENT], "unreachable");
}

#[test]
fn round_robin_gives_each_new_connection_to_the_next_and_a_known_one_takes_no_turn() {
    let mut net = world(Service { policy: LoadBalancingPolicy::RoundRobin, ..service() });
    assert_eq!(net.ask(&syn(1)), [NEAR]);
    assert_eq!(net.ask(&syn(2)), [FAR]);
    assert_eq!(net.ask(&syn(2)), [FAR], "a SYN that is sent again");
    assert_eq!(net.ask(&data(1, b"x")), [NEAR]);
    assert_eq!(net.ask(&syn(3)), [NEAR]);
    // Connections and flows share the turns of their service.
    assert_eq!(net.ask(&query(4)), [FAR]);
    net.lose(net.now.as_nanos(), NEAR);
    assert_eq!(net.ask(&syn(5)), [FAR]);
    assert_eq!(net.ask(&syn(6)), [FAR]);
}
