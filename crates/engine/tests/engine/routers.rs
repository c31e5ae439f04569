//! What routers do with packets, and say about them.

use std::net::IpAddr;

use windtunnel_model::{Lane, LinkProfile, RouterId, Span};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{build, checksum, icmp, vnet};

use crate::support::{MS, Net, Topology, delayed, path, up};

const PLAIN: vnet::VirtioNetHeader = vnet::VirtioNetHeader {
    flags: 0,
    gso_type: 0,
    hdr_len: 0,
    gso_size: 0,
    csum_start: 0,
    csum_offset: 0,
};

fn three_routers() -> Net {
    let ms = || delayed(Span::from_millis(1));
    Net::new(path(1, vec![ms(), ms(), ms(), ms()]))
}

fn v6(net: &Net, port: usize) -> IpAddr {
    net.plan.ports().nth(port).unwrap().1.v6.unwrap().into()
}

/// Type, code and source of the ICMP message in a frame.
fn message(frame: &[u8]) -> (u8, u8, IpAddr) {
    assert!(checksum::verify(frame));
    let packet = ParsedPacket::parse(frame).unwrap();
    let view = icmp::IcmpMessage::parse(packet.payload()).unwrap();
    (view.kind(), view.code(), packet.info.source)
}

#[test]
fn traceroute_finds_every_router_by_the_interface_it_came_to() {
    let mut net = three_routers();
    for ttl in 1..=4 {
        let frame = build::with_ttl(net.udp(60, 0), ttl);
        net.send(u64::from(ttl) * 100 * MS, 0, PLAIN, &frame);
    }
    net.finish();
    let hop = |n: u8| (11, 0, IpAddr::from([10, 0, n, 2]));
    for n in 0..3u8 {
        let out = &net.out[usize::from(n)];
        assert_eq!(out.port, 0);
        assert_eq!(message(&out.frame), hop(n));
        // Forward at 1 ms a link; the way back has no delay.
        assert_eq!(out.at, (u64::from(n) + 1) * 101 * MS);
    }
    assert_eq!((net.out[3].port, net.out[3].frame[22]), (1, 1));
    assert_eq!(net.engine.router(RouterId(0)).ttl_expired, 1);
    assert_eq!(net.engine.router(RouterId(0)).icmp_sent, 1);
}

#[test]
fn traceroute_works_over_ipv6() {
    let mut net = three_routers();
    let echo = build::echo_request(v6(&net, 0), v6(&net, 1), 1, 1, b"x");
    for hops in 1..=4 {
        net.send(u64::from(hops) * MS * 100, 0, PLAIN, &build::with_ttl(echo.clone(), hops));
    }
    net.finish();
    for n in 0..3u16 {
        let expected: IpAddr = std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, n, 2).into();
        assert_eq!(message(&net.out[usize::from(n)].frame), (3, 0, expected));
    }
    assert_eq!(net.out[3].port, 1);
}

#[test]
fn a_router_answers_ping_at_any_of_its_addresses() {
    let mut net = three_routers();
    let near: IpAddr = [10, 0, 0, 2].into();
    // The far side of the second router.
    let far: IpAddr = "fd00::2:1".parse().unwrap();
    net.send(0, 0, PLAIN, &build::echo_request(net.address(0), near, 1, 1, b"ping"));
    net.send(0, 0, PLAIN, &build::echo_request(v6(&net, 0), far, 1, 2, b"ping"));
    net.finish();
    assert_eq!(message(&net.out[0].frame), (0, 0, near));
    assert_eq!(message(&net.out[1].frame), (129, 0, far));
    assert_eq!(net.times(), [MS, 2 * MS]);
    assert_eq!(net.engine.router(RouterId(1)).echo_answered, 1);
}

#[test]
fn other_packets_for_a_router_find_no_port() {
    let mut net = three_routers();
    let router = "10.0.0.2:33434".parse().unwrap();
    net.send(0, 0, PLAIN, &build::udp(net.socket(0), router, b"hello"));
    net.send(0, 0, PLAIN, &build::tcp(net.socket(0), router, 1, 2, b""));
    net.finish();
    let expected = (3, 3, IpAddr::from([10, 0, 0, 2]));
    assert_eq!((message(&net.out[0].frame), message(&net.out[1].frame)), (expected, expected));
}

#[test]
fn an_unknown_address_is_reported_and_errors_about_errors_are_not() {
    let mut net = three_routers();
    let unknown: IpAddr = [10, 9, 9, 9].into();
    net.send(0, 0, PLAIN, &build::ip(net.address(0), unknown, 17, &[0; 20]));
    let error = [3, 3, 0, 0, 0, 0, 0, 0, 0x45];
    net.send(0, 0, PLAIN, &build::ip(net.address(0), unknown, 1, &error));
    let unknown: IpAddr = "fd00::9:9".parse().unwrap();
    net.send(0, 0, PLAIN, &build::ip(v6(&net, 0), unknown, 17, &[0; 20]));
    net.finish();
    assert_eq!(net.out.len(), 2);
    assert_eq!(message(&net.out[0].frame), (3, 1, [10, 0, 0, 2].into()));
    assert_eq!(message(&net.out[1].frame), (1, 3, "fd00::2".parse().unwrap()));
    assert_eq!(net.engine.router(RouterId(0)).no_route, 3);
}

#[test]
fn what_is_not_in_the_plan_goes_to_the_node_that_is_the_machines_outside() {
    let ms = || delayed(Span::from_millis(1));
    let mut plan = path(1, vec![ms(), ms(), ms(), ms()]);
    plan.nodes[1].internet = Some(windtunnel_model::plan::InternetAccess::default());
    let mut net = Net::new(plan);
    let outside: [IpAddr; 2] = ["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
    net.send(0, 0, PLAIN, &build::ip(net.address(0), outside[0], 17, &[0; 20]));
    net.send(0, 0, PLAIN, &build::ip(v6(&net, 0), outside[1], 17, &[0; 20]));
    // What comes back has an address that is not in the plan either.
    net.send(10 * MS, 1, PLAIN, &build::ip(outside[0], net.address(0), 17, &[0; 20]));
    // What means something on its own link only stays there.
    let own: IpAddr = "169.254.169.254".parse().unwrap();
    net.send(20 * MS, 0, PLAIN, &build::ip(net.address(0), own, 17, &[0; 20]));
    net.finish();
    let found: Vec<(u32, u64)> = net.out.iter().map(|out| (out.port, out.at)).collect();
    assert_eq!(found, [(1, 4 * MS), (1, 4 * MS), (0, 10 * MS)]);
    assert_eq!(net.engine.router(RouterId(0)).no_route, 0);
}

#[test]
fn a_node_without_a_way_to_it_is_unreachable() {
    let mut plan = Topology::new(1);
    let (a, lonely, peer) = (plan.node("a"), plan.node("lonely"), plan.node("peer"));
    let router = plan.router("r");
    for ends in [[a, router], [lonely, peer]] {
        plan.link(ends, [LinkProfile::default(), LinkProfile::default()]);
    }
    let mut net = Net::new(plan.build());
    net.send_udp(0, 100, 0);
    assert_eq!(message(&net.out[0].frame), (3, 0, [10, 0, 0, 2].into()));
}

#[test]
fn link_local_packets_are_not_forwarded_but_a_direct_link_carries_them() {
    let to: IpAddr = "ff02::fb".parse().unwrap();
    let mut routed = three_routers();
    let frame = build::ip("fe80::1".parse().unwrap(), to, 17, &[0; 20]);
    routed.send(0, 0, PLAIN, &frame);
    routed.send(0, 0, PLAIN, &build::ip(routed.address(0), [255; 4].into(), 17, &[0; 20]));
    let mut arp = vec![0xff; 12];
    arp.extend([0x08, 0x06]);
    arp.extend([0; 28]);
    routed.send(0, 0, PLAIN, &arp);
    routed.finish();
    let router = routed.engine.router(RouterId(0));
    assert_eq!((router.not_forwarded, router.malformed, router.icmp_sent), (2, 1, 0));
    assert!(routed.out.is_empty());

    let mut direct = Net::new(crate::support::pair(1, LinkProfile::default()));
    direct.send(0, 0, PLAIN, &arp);
    assert_eq!(direct.out[0].frame[..12], [255, 255, 255, 255, 255, 255, 2, 0x77, 0x74, 0, 0, 0]);
}

#[test]
fn a_train_is_forwarded_whole_with_one_hop_less_to_live() {
    let mut net = three_routers();
    let (frame, header) =
        build::tcp_train(net.socket(0), net.socket(1), 0, 0x10, &[1; 30_000], 1460);
    net.send(0, 0, header, &frame);
    net.finish();
    assert_eq!(net.out.len(), 1);
    assert_eq!((net.out[0].vnet, net.out[0].frame[22]), (header, 61));
    assert_eq!(net.out[0].frame[34..], frame[34..]);
    assert_eq!(net.engine.router(RouterId(1)).forwarded, 21);
    assert_eq!(net.engine.lane(up(3)).delivered_packets, 21);
}

#[test]
fn answers_take_the_way_back_and_its_properties() {
    let mut plan = Topology::new(1);
    let (a, r, b) = (plan.node("a"), plan.router("r"), plan.node("b"));
    let ms = |n| delayed(Span::from_millis(n));
    plan.link([a, r], [ms(1), ms(10)]);
    plan.link([r, b], [ms(100), ms(1000)]);
    let mut net = Net::new(plan.build());
    net.send(0, 0, PLAIN, &build::echo_request(net.address(0), [10, 0, 0, 2].into(), 1, 1, b""));
    net.finish();
    assert_eq!(net.times(), [11 * MS]);
    let back = Lane {
        link: windtunnel_model::LinkId(0),
        direction: windtunnel_model::LinkDirection::Down,
    };
    assert_eq!(net.engine.lane(back).delivered_packets, 1);
}

#[test]
fn a_route_that_the_file_fixes_is_taken_by_its_pair_only() {
    let mut plan = Topology::new(1);
    let (a, b, c) = (plan.node("a"), plan.node("b"), plan.node("c"));
    let (r, s) = (plan.router("r"), plan.router("s"));
    let ms = |n| delayed(Span::from_millis(n));
    let plain = LinkProfile::default;
    for (ends, profile) in
        [([a, r], plain()), ([c, r], plain()), ([r, b], ms(1)), ([r, s], ms(5)), ([s, b], ms(5))]
    {
        plan.link(ends, [profile, plain()]);
    }
    let mut plan = plan.build();
    plan.routes.push(windtunnel_model::plan::FixedRoute { path: vec![a, r, s, b] });
    let mut net = Net::new(plan);
    // b's first interface is on the link from r, its second on the one from s.
    net.send(0, 0, PLAIN, &build::udp(net.socket(0), net.socket(1), b"tagged from a"));
    net.send(0, 3, PLAIN, &build::udp(net.socket(3), net.socket(1), b"tagged from c"));
    net.finish();
    let seen: Vec<(u64, u32)> = net.out.iter().map(|out| (out.at, out.port)).collect();
    assert_eq!(seen, [(MS, 1), (10 * MS, 2)]);
}
