//! Tunnels through nodes that forward, whose kernels read the outer header; and over LANs.

use windtunnel_model::plan::TunnelEncapsulation;
use windtunnel_model::{Lane, LinkProfile};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{arp, build, checksum, icmp, ipip, tcp};

use super::*;
use crate::support::MS;

/// client – r1 – forwarder – r2 – near: ports 0; 1 and 2; 3.
fn through() -> Plan {
    let mut plan = Topology::new(1);
    let [client, forwarder, near] = ["client", "forwarder", "near"].map(|name| plan.node(name));
    let [r1, r2] = ["r1", "r2"].map(|name| plan.router(name));
    let both = || [delayed(Span::from_millis(1)), delayed(Span::from_millis(1))];
    for ends in [[client, r1], [r1, forwarder], [forwarder, r2], [r2, near]] {
        plan.link(ends, both());
    }
    let mut plan = plan.build();
    plan.nodes[1].forward = true;
    plan
}

fn through_world() -> Net {
    let mut own = service();
    own.at = vec![RouterId(0)];
    own.replicas = vec![Replica { node: NodeId(2), weight: 1 }];
    world_of(through(), own)
}

const NEAR_PORT: u32 = 3;

#[test]
fn a_node_on_the_way_gets_the_outer_header_as_bytes_and_the_replica_does_not() {
    let mut net = through_world();
    net.call(0, &syn(1));
    net.run_until(10 * MS);
    let wrapped = net.out[0].clone();
    assert_eq!((wrapped.port, wrapped.at), (1, 2 * MS));
    let outer = &wrapped.frame[14..34];
    // 60 bytes, not to be fragmented, TTL of the inner packet, protocol 4.
    assert_eq!(outer[..10], [0x45, 0, 0, 60, 0, 0, 0x40, 0, 63, 4]);
    // From r1's address on its first link to the replica's.
    assert_eq!(outer[12..], [10, 0, 0, 2, 10, 0, 3, 2]);
    assert!(checksum::verify(&wrapped.frame));
    assert_eq!(wrapped.frame[34..], after(&syn(1), 1)[14..]);
    // The kernel forwards it: one hop less.
    let on = build::with_ttl(wrapped.frame, 62);
    net.send(10 * MS, 2, PLAIN, &on);
    net.finish();
    let out = net.out.last().unwrap();
    assert_eq!((out.port, out.at), (NEAR_PORT, 12 * MS));
    assert_eq!(out.frame[14..], after(&syn(1), 3)[14..], "r1, the node and r2");
    net.check_conservation();
}

#[test]
fn a_train_is_cut_for_a_node_on_the_way() {
    let mut net = through_world();
    let (frame, header) = build::tcp_train(client(1), www(), 0, tcp::ACK, &[1; 2000], 1000);
    net.send(0, CLIENT, header, &frame);
    net.run_until(10 * MS);
    assert_eq!(net.out.len(), 2);
    for (number, out) in (0u8..).zip(&net.out) {
        assert_eq!((out.port, out.frame.len(), out.vnet), (1, 14 + 20 + 1040, PLAIN));
        assert!(ipip::is_wrapped(&out.frame));
        assert_eq!(out.frame[18..20], [0, number], "each is a packet of its own");
        let mut inner = vec![0; out.frame.len()];
        let len = ipip::unwrap(&out.frame, &mut inner).unwrap();
        assert!(checksum::verify(&inner[..len]));
    }
}

#[test]
fn over_ipv6_the_outer_header_is_that_of_ipv6() {
    let mut net = through_world();
    let six = build::udp(client6(1), (V6, 53).into(), b"name?");
    net.call(0, &six);
    net.run_until(10 * MS);
    let wrapped = net.out[0].clone();
    assert_eq!(wrapped.frame[14..22], [0x60, 0, 0, 0, 0, 53, 41, 63]);
    net.send(10 * MS, 2, PLAIN, &build::with_ttl(wrapped.frame, 62));
    net.finish();
    assert_eq!(net.out.last().unwrap().frame[14..], after(&six, 3)[14..]);
}

#[test]
fn an_error_of_a_node_on_the_way_is_passed_on_to_the_client() {
    let mut net = through_world();
    net.call(0, &syn(1));
    net.run_until(10 * MS);
    let wrapped = net.out[0].frame.clone();
    let source = address("10.0.1.2");
    let reply =
        icmp::IcmpErrorReply { kind: icmp::IcmpErrorKind::TimeExceeded, source, mac: [2; 6] };
    let mut error = vec![0; 1294];
    let len = icmp::write_error(&reply, &wrapped, &mut error).unwrap();
    net.send(10 * MS, 1, PLAIN, &error[..len]);
    net.finish();
    let out = net.out.last().unwrap();
    assert_eq!(out.port, CLIENT);
    assert!(checksum::verify(&out.frame));
    let packet = ParsedPacket::parse(&out.frame).unwrap();
    let info = packet.info;
    assert_eq!((info.source, info.destination), (source, client(1).ip()));
    assert_eq!(out.frame[34..36], [11, 0]);
    let quote = icmp::IcmpQuotedFlow::of(&packet).unwrap();
    assert_eq!(
        (quote.source, quote.destination, quote.ports),
        (client(1).ip(), V4.into(), (1, 80))
    );
}

#[test]
fn what_others_tunnel_to_a_replica_is_their_kernels() {
    let mut net = through_world();
    let inner = build::udp(client(1), dns(), b"x");
    let outer = ipip::OuterIpHeader {
        source: client(1).ip(),
        destination: address("10.0.3.2"),
        identification: 1,
        dont_fragment: true,
    };
    let mut wrapped = vec![0; 200];
    let len = ipip::wrap(&inner, &outer, &mut wrapped).unwrap();
    // It goes through the forwarding node like any packet; here from its far side.
    net.send(0, 2, PLAIN, &wrapped[..len]);
    net.finish();
    let out = net.out.last().unwrap();
    assert_eq!((out.port, out.frame.len()), (NEAR_PORT, len));
}

#[test]
fn without_a_header_a_way_through_a_node_is_none() {
    let mut own = service();
    own.at = vec![RouterId(0)];
    own.replicas = vec![Replica { node: NodeId(2), weight: 1 }];
    own.encapsulation = TunnelEncapsulation::None;
    let mut net = world_of(through(), own);
    assert_eq!(net.ask(&syn(1)), [CLIENT], "unreachable");
    assert_eq!(net.engine.choice(0, RouterId(0)), None);
}

/// client – r1 – LAN – near and far: ports 0, 1, 2.
fn lan() -> Plan {
    let mut plan = Topology::new(1);
    let [client, near, far] = ["client", "near", "far"].map(|name| plan.node(name));
    let (r1, lan) = (plan.router("r1"), plan.lan("office"));
    plan.link([client, r1], [LinkProfile::default(), LinkProfile::default()]);
    for ends in [[r1, lan], [near, lan], [far, lan]] {
        plan.link(ends, [delayed(Span::from_millis(1)), delayed(Span::from_millis(1))]);
    }
    plan.build()
}

#[test]
fn over_a_lan_the_redirector_asks_for_the_replica_and_not_for_the_service() {
    let mut own = service();
    own.at = vec![RouterId(0)];
    let mut net = world_of(lan(), own);
    net.call(0, &syn(1));
    net.run_until(10 * MS);
    // A question to both stations, for the near one's address.
    let asked: Vec<(u32, arp::ArpPacket)> =
        net.out.iter().map(|out| (out.port, arp::ArpPacket::parse(&out.frame).unwrap())).collect();
    let near = net.plan.nodes[1].interfaces[0].clone();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].1.target.1, near.v4.unwrap());
    let answer = arp::ArpPacket {
        operation: arp::REPLY,
        sender: (near.mac(), near.v4.unwrap()),
        target: asked[0].1.sender,
    };
    let mut frame = vec![0; 60];
    let len = answer.write(asked[0].1.sender.0, &mut frame).unwrap();
    net.send(10 * MS, 1, PLAIN, &frame[..len]);
    net.run_until(20 * MS);
    let last = net.out.last().unwrap();
    assert_eq!((last.port, last.frame[14..].to_vec()), (1, after(&syn(1), 1)[14..].to_vec()));
    assert_eq!(last.frame[..6], near.mac());
    let to_lan =
        Lane { link: windtunnel_model::LinkId(1), direction: windtunnel_model::LinkDirection::Up };
    assert_eq!(net.engine.lane(to_lan).delivered_bytes, 28 + 60, "a question and the packet");
    // The next finds it at once.
    assert_eq!(net.ask(&data(1, b"x")), [1]);
    net.check_conservation();
}
