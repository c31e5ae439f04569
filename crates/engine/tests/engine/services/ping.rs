//! What answers an echo request to a service's address.

use windtunnel_model::plan::{LoadBalancingPolicy, Ping};

use super::*;
use crate::support::MS;

fn echo(to: IpAddr) -> Vec<u8> {
    let from = if to.is_ipv4() { client(1) } else { client6(1) }.ip();
    build::echo_request(from, to, 1, 1, b"ping")
}

#[test]
fn the_nearest_replica_gets_echo_requests_whatever_the_policy() {
    let policy = LoadBalancingPolicy::Ordered;
    let mut net = world(Service {
        ping: Some(Ping::Replica),
        policy,
        replicas: [FAR, NEAR].map(|node| Replica { node: NodeId(node), weight: 1 }).to_vec(),
        ..service()
    });
    assert_eq!(net.ask(&syn(1)), [FAR], "the first of the file");
    assert_eq!(net.ask(&echo(V4.into())), [NEAR]);
    assert_eq!(net.ask(&echo(V6.into())), [NEAR]);
    net.lose(net.now.as_nanos(), NEAR);
    assert_eq!(net.ask(&echo(V4.into())), [FAR]);
    net.lose(net.now.as_nanos(), FAR);
    // The client learns that there is no such host.
    assert_eq!(net.ask(&echo(V4.into())), [CLIENT]);
    net.check_conservation();
}

/// The router is 1 ms away, so the reply is there after 2.
#[test]
fn a_router_that_redirects_answers_in_the_name_of_the_address() {
    let mut net = world(Service { ping: Some(Ping::Router), ..service() });
    net.call(0, &echo(V4.into()));
    net.run_until(100 * MS);
    let [reply] = &net.out[..] else { panic!("{} packets", net.out.len()) };
    assert_eq!((reply.port, reply.at), (CLIENT, 2 * MS));
    let info = windtunnel_wire::packet::ParsedPacket::parse(&reply.frame).unwrap().info;
    assert_eq!((info.source, info.destination), (V4.into(), client(1).ip()));
    // Type 0 (RFC 792) follows the headers of Ethernet and IPv4.
    assert_eq!(reply.frame[14 + 20], 0);
    assert_eq!(net.engine.router(RouterId(0)).echo_answered, 1);
    net.check_conservation();
}

#[test]
fn without_a_word_the_origin_answers_and_where_there_is_none_nothing_does() {
    let mut net = world(service());
    assert_eq!(net.ask(&echo(V4.into())), [CLIENT], "an error");
    assert_eq!(net.engine.router(RouterId(0)).echo_answered, 0);
}
