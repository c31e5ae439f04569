//! Where packets go, when they are there, and how long they are on the way.

use windtunnel_engine::RouterCounters;
use windtunnel_model::plan::{LoadBalancingPolicy, ServiceUpdate, TunnelEncapsulation};
use windtunnel_model::{Lane, LinkDirection, LinkId, NodeId, RouterId};
use windtunnel_wire::{build, tcp};

use super::*;
use crate::support::{MS, up};

pub(crate) fn down(link: u32) -> Lane {
    Lane { link: LinkId(link), direction: LinkDirection::Down }
}

#[test]
fn a_packet_to_a_service_comes_to_the_nearest_replica_as_it_was_sent() {
    let mut net = world(service());
    net.call(0, &syn(5000));
    net.finish();
    // The Ethernet addresses are those of the last link.
    assert_eq!(net.out[0].frame[14..], after(&syn(5000), 2)[14..]);
    assert_eq!((net.out[0].port, net.out[0].at), (NEAR, 6 * MS), "1 + 2 + 3 ms");
    assert_eq!(net.out.len(), 1);
}

#[test]
fn every_link_of_the_tunnel_and_no_other_carries_20_bytes_more_or_40_of_ipv6() {
    let mut net = world(service());
    net.call(0, &build::udp(client(1), dns(), &[0; 72]));
    let six = build::udp(client6(1), (V6, 53).into(), &[0; 52]);
    net.call(0, &six);
    net.finish();
    let bytes = |lane: Lane| net.engine.lane(lane).delivered_bytes;
    assert_eq!([bytes(up(0)), bytes(up(4)), bytes(down(1))], [200, 260, 260]);
    assert_eq!(net.out[1].frame[14..], after(&six, 2)[14..]);
    net.check_conservation();
}

#[test]
fn the_header_takes_its_time_on_the_line_for_each_segment() {
    let mut plan = network();
    plan.links[4].profiles[0].rate = windtunnel_model::Rate::from_bits_per_second(1_000_000);
    let mut net = world_of(plan, service());
    net.call(0, &build::udp(client(1), dns(), &[0; 72]));
    net.run_until(100 * MS);
    // 100 bytes, 20 more, and 38 of Ethernet, at 8 µs a byte.
    assert_eq!(net.out[0].at, 6 * MS + (100 + 20 + 38) * 8_000);
    let (frame, header) = build::udp_train(client(1), dns(), &[0; 216], 72);
    net.send(200 * MS, CLIENT, header, &frame);
    net.run_until(300 * MS);
    let last = net.out.last().unwrap();
    assert_eq!(last.at, 206 * MS + 3 * (100 + 20 + 38) * 8_000);
}

#[test]
fn a_train_is_redirected_whole_and_each_of_its_segments_is_longer() {
    let mut net = world(service());
    let (frame, header) = build::tcp_train(client(1), www(), 0, tcp::ACK, &[1; 28_800], 1440);
    net.send(0, CLIENT, header, &frame);
    net.finish();
    assert_eq!((net.out.len(), net.out[0].port, net.out[0].vnet), (1, NEAR, header));
    assert_eq!(net.out[0].frame[34..], frame[34..]);
    let lane = |link| net.engine.lane(up(link));
    assert_eq!((lane(0).delivered_packets, lane(0).delivered_bytes), (20, 20 * 1480));
    assert_eq!((lane(4).delivered_packets, lane(4).delivered_bytes), (20, 20 * 1500));
    let counters = net.counters(0);
    assert_eq!((counters.packets, counters.bytes), (20, 20 * 1480));
}

#[test]
fn without_a_header_packets_keep_their_size() {
    let mut net = world(Service { encapsulation: TunnelEncapsulation::None, ..service() });
    let full = build::with_dont_fragment(build::udp(client(1), dns(), &[7; 1472]));
    net.call(0, &full);
    net.finish();
    assert_eq!(net.out[0].frame[14..], after(&full, 2)[14..]);
    assert_eq!(net.engine.lane(up(4)).delivered_bytes, 1500);
    assert_eq!(net.out[0].port, NEAR);
}

#[test]
fn what_needs_no_waiting_leaves_at_once() {
    let mut plan = network();
    for link in &mut plan.links {
        link.profiles = [windtunnel_model::LinkProfile::default(), link.profiles[1].clone()];
    }
    let mut net = world_of(plan, service());
    let mut frame = syn(5000);
    let express =
        net.engine.handle_packet(net.now, windtunnel_model::PortId(CLIENT), PLAIN, &mut frame);
    // The last lane leads down, where latencies were left: it waits there.
    assert!(express.is_none());
    net.finish();
    assert_eq!((net.out[0].port, net.out[0].at), (NEAR, 3 * MS));
    assert_eq!(net.engine.lane(up(4)).delivered_bytes, 60);

    let mut plan = network();
    plan.links.iter_mut().for_each(|link| {
        link.profiles = [(), ()].map(|()| windtunnel_model::LinkProfile::default());
    });
    let mut net = world_of(plan, service());
    let mut frame = syn(5000);
    let express =
        net.engine.handle_packet(net.now, windtunnel_model::PortId(CLIENT), PLAIN, &mut frame);
    assert_eq!(express.unwrap().port.0, NEAR);
    assert_eq!(frame[14..], after(&syn(5000), 2)[14..]);
    let bytes = |lane: Lane| net.engine.lane(lane).delivered_bytes;
    assert_eq!([bytes(up(0)), bytes(up(4)), bytes(down(1))], [40, 60, 60]);
    assert_eq!(net.engine.router(RouterId(0)).redirected, 1);
    assert_eq!(net.counters(0).packets, 1);
}

#[test]
fn an_answer_is_routed_like_any_packet_of_its_node() {
    let mut net = world(service());
    let answer = build::tcp(www(), client(5000), 7, tcp::ACK, b"page");
    net.send(0, NEAR, PLAIN, &answer);
    net.finish();
    assert_eq!((net.out[0].port, net.out[0].at), (CLIENT, 6 * MS));
    assert_eq!(net.out[0].frame[14..], after(&answer, 2)[14..]);
    assert_eq!(net.engine.lane(up(1)).delivered_bytes, 44);
}

#[test]
fn only_the_first_redirector_on_the_way_redirects() {
    let mut net = world(service());
    net.call(0, &syn(1));
    net.finish();
    let redirected = |router| net.engine.router(RouterId(router)).redirected;
    assert_eq!([redirected(0), redirected(1), redirected(2)], [1, 0, 0]);
    let forwarded = |router| net.engine.router(RouterId(router)).forwarded;
    assert_eq!([forwarded(0), forwarded(1)], [1, 1]);
}

#[test]
fn a_replica_at_the_redirector_itself_is_one_link_away() {
    let plan = network();
    let mut service = service();
    service.replicas.push(Replica { node: NodeId(ORIGIN), weight: 1 });
    let mut net = world_of(plan, service);
    net.call(0, &syn(1));
    net.finish();
    assert_eq!((net.out[0].port, net.out[0].at), (ORIGIN, 2 * MS), "1 + 1 ms");
    assert_eq!(net.engine.lane(down(3)).delivered_bytes, 60);
}

#[test]
fn other_ports_are_the_origins_and_what_no_router_redirects_is_too() {
    let mut own = service();
    (own.origin, own.at) = (Some(NodeId(ORIGIN)), vec![RouterId(1), RouterId(2)]);
    let mut net = world_of(network(), own);
    let ssh = build::tcp(client(1), (V4, 22).into(), 1, tcp::SYN, b"");
    let ping = build::echo_request(client(1).ip(), V4.into(), 1, 1, b"");
    net.call(0, &ssh);
    net.call(0, &ping);
    // Router 1 does not redirect, and the origin is behind it.
    net.call(0, &syn(1));
    net.finish();
    let ports: Vec<u32> = net.out.iter().map(|out| out.port).collect();
    assert_eq!(ports, [ORIGIN; 3]);
    assert_eq!(net.engine.lane(down(3)).delivered_bytes, 40 + 28 + 40, "no header");
}

#[test]
fn an_origin_may_have_the_address_of_its_interface() {
    let plan = network();
    let of_origin = plan.nodes[ORIGIN as usize].interfaces[0].v4.unwrap();
    let mut own = service();
    (own.v4, own.v6, own.origin) = (Some(of_origin), None, Some(NodeId(ORIGIN)));
    let mut net = world_of(plan, own);
    let web = |port: u16| (of_origin, port).into();
    assert_eq!(net.ask(&build::tcp(client(1), web(80), 1, tcp::SYN, b"")), [NEAR]);
    assert_eq!(net.ask(&build::tcp(client(1), web(22), 1, tcp::SYN, b"")), [ORIGIN]);
}

#[test]
fn without_an_origin_what_is_not_redirected_is_unreachable() {
    let mut net = world(service());
    assert_eq!(net.ask(&build::tcp(client(1), (V4, 22).into(), 1, tcp::SYN, b"")), [CLIENT]);
    let frame = &net.out[0].frame;
    assert_eq!(frame[34..36], [3, 1], "host unreachable");
    net.update(
        2_000 * MS,
        ServiceUpdate::Withdrawn { replica: NodeId(NEAR), port: port("80/tcp") },
    );
    net.update(2_000 * MS, ServiceUpdate::Withdrawn { replica: NodeId(FAR), port: port("80/tcp") });
    assert_eq!(net.ask(&syn(1)), [CLIENT]);
    assert_eq!(net.engine.services().counters(WWW).unserved, 1);
    assert_eq!(net.ask(&query(1)), [NEAR], "the other port is served");
}

#[test]
fn a_redirector_on_the_way_to_the_origin_makes_a_detour() {
    // The web server is far from r1, and r2 redirects on the way there.
    let mut plan = network();
    let mut own = service();
    (own.origin, own.at) = (Some(NodeId(FAR)), vec![RouterId(1)]);
    own.replicas.truncate(1);
    plan.links[4].profiles[0].latency = Span::from_millis(20);
    let mut net = world_of(plan, own);
    net.call(0, &syn(1));
    net.finish();
    assert_eq!((net.out[0].port, net.out[0].at), (NEAR, 24 * MS));
    assert_eq!(net.engine.lane(up(4)).delivered_bytes, 40, "before the redirector");
    assert_eq!(net.engine.lane(down(1)).delivered_bytes, 60);
}

#[test]
fn the_table_and_what_routers_choose_can_be_seen() {
    let mut net = world(service());
    let rows: Vec<String> =
        net.engine.services().rows().map(|row| format!("{} {}", row.address, row.port)).collect();
    assert_eq!(
        rows,
        ["10.1.0.80 80/tcp", "10.1.0.80 53/udp", "fd01::80 80/tcp", "fd01::80 53/udp"]
    );
    let near = Some(NodeId(NEAR));
    assert_eq!(net.engine.choice(0, RouterId(0)), near);
    assert_eq!(net.engine.choice(3, RouterId(2)), Some(NodeId(FAR)), "r3 is at the far one");
    net.call(0, &syn(9));
    net.call(0, &query(9));
    net.run_until(MS);
    let pinned = net.engine.services().pinned(WWW, 10);
    assert_eq!(pinned.len(), 2);
    assert_eq!((pinned[0].client, pinned[0].service), (client(9), www()));
    assert_eq!(pinned[0].replica, NodeId(NEAR));
    assert_eq!(
        (net.engine.services().pins().held, net.engine.services().pins().capacity),
        (2, 1 << 20)
    );
    let ports = [port("80/tcp"), port("53/udp")];
    assert_eq!(net.engine.services().replicas(WWW)[0].state.registered, ports.into());
}

#[test]
fn each_policy_chooses_in_its_way() {
    let chosen = |policy, ask: &dyn Fn(u16) -> Vec<u8>| -> Vec<u32> {
        let mut net = world(Service { policy, ..service() });
        (1..=6).flat_map(|from| net.ask(&ask(from))).collect()
    };
    assert_eq!(chosen(LoadBalancingPolicy::Nearest, &syn), [NEAR; 6]);
    assert_eq!(chosen(LoadBalancingPolicy::Hops, &syn), [NEAR; 6]);
    assert_eq!(chosen(LoadBalancingPolicy::Ordered, &syn), [NEAR; 6]);
    let turns = [NEAR, FAR, NEAR, FAR, NEAR, FAR];
    assert_eq!(
        chosen(LoadBalancingPolicy::LeastConnections, &syn),
        turns,
        "each is live from then on"
    );
    let hashed = chosen(LoadBalancingPolicy::Hash, &syn);
    assert_eq!(hashed, vec![hashed[0]; 6], "of one client");
}

#[test]
fn weights_are_kept_over_many_connections() {
    let mut own = Service { policy: LoadBalancingPolicy::Weighted, ..service() };
    (own.replicas[0].weight, own.replicas[1].weight) = (3, 1);
    let mut net = world(own);
    for from in 1..=4000 {
        net.call(0, &syn(from));
    }
    net.run_until(100 * MS);
    let near = net.counters(0).connections;
    // 3000 expected, standard deviation sqrt(4000·3/4·1/4) = 27.4: within 4 of them.
    assert!((2890..=3110).contains(&near), "{near}");
    assert_eq!(near + net.counters(1).connections, 4000);
}

#[test]
fn a_router_without_services_counts_nothing_of_them() {
    let mut net = Net::new(network());
    net.call(0, &build::udp(client(1), (Ipv4Addr::new(10, 0, 1, 1), 53).into(), b"x"));
    net.finish();
    assert_eq!(net.out[0].port, NEAR);
    let expected = RouterCounters { forwarded: 1, ..RouterCounters::default() };
    assert_eq!(*net.engine.router(RouterId(0)), expected);
    assert_eq!(net.engine.services().pins().held, 0);
}
