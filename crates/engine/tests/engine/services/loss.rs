//! Connections whose replica is lost with its node.

use windtunnel_model::plan::{ReplicaLossResponse, ServiceUpdate};
use windtunnel_model::{NodeId, RouterId};
use windtunnel_wire::{build, checksum, tcp};

use super::*;
use crate::support::MS;

fn lossy(on_loss: ReplicaLossResponse) -> Net {
    let mut net = world(Service { on_loss, ..service() });
    net.ask(&syn(1));
    net.ask(&data(1, b"x"));
    net
}

/// Flags, sequence and acknowledgement number of a TCP segment, whose checksums hold.
fn segment(frame: &[u8]) -> (u8, u32, u32) {
    assert!(checksum::verify(frame));
    let view = tcp::TcpSegment::parse(&frame[34..54]).unwrap();
    (view.flags(), view.sequence(), view.acknowledgement())
}

#[test]
fn packets_of_a_silent_loss_are_dropped_and_counted() {
    let mut net = lossy(ReplicaLossResponse::Silent);
    let at = net.now.as_nanos();
    net.lose(at, NEAR);
    assert_eq!(net.ask(&data(1, b"y")), []);
    assert_eq!(net.ask(&data(1, b"y")), []);
    assert_eq!(net.engine.router(RouterId(0)).replica_lost, 2);
    assert_eq!(
        (net.engine.services().counters(WWW).lost, net.engine.services().counters(WWW).resets),
        (2, 0)
    );
    assert_eq!(net.ask(&syn(2)), [FAR]);
    net.check_conservation();
}

#[test]
fn a_client_is_reset_at_once_with_the_number_that_it_expects() {
    let mut net = lossy(ReplicaLossResponse::Reset);
    let acknowledges = |number: u32| {
        let mut frame = data(1, b"");
        frame[42..46].copy_from_slice(&number.to_be_bytes());
        frame
    };
    net.ask(&acknowledges(77_000));
    let (at, before) = (net.now.as_nanos(), net.out.len());
    net.lose(at, NEAR);
    net.run_until(at + 100 * MS);
    assert_eq!(net.out.len(), before + 1);
    let reset = &net.out[before];
    assert_eq!((reset.port, reset.at), (CLIENT, at + MS), "from r1, 1 ms away");
    assert_eq!(segment(&reset.frame), (tcp::RST, 77_000, 0));
    assert_eq!(reset.frame[26..34], [10, 1, 0, 80, 10, 0, 0, 1]);
    assert_eq!(reset.frame[34..38], [0, 80, 0, 1], "from 80 to its port");
    assert_eq!(net.engine.services().counters(WWW).resets, 1);
}

#[test]
fn what_comes_later_is_answered_with_its_own_acknowledgement() {
    let mut net = lossy(ReplicaLossResponse::Reset);
    let at = net.now.as_nanos();
    net.lose(at, NEAR);
    net.run_until(at + 100 * MS);
    let before = net.out.len();
    // The challenge of RFC 5961 to the first reset: data was under way to the client.
    assert_eq!(net.ask(&data(1, b"")), [CLIENT]);
    assert_eq!(segment(&net.out[before].frame), (tcp::RST, 1, 0));
    // A reset is answered with nothing.
    assert_eq!(net.ask(&build::tcp(client(1), www(), 1, tcp::RST, b"")), []);
    assert_eq!(
        (net.engine.services().counters(WWW).lost, net.engine.services().counters(WWW).resets),
        (2, 2)
    );
}

#[test]
fn resets_work_over_ipv6() {
    let mut net = world(Service { on_loss: ReplicaLossResponse::Reset, ..service() });
    let six = |flags, bytes: &[u8]| build::tcp(client6(1), (V6, 80).into(), 9, flags, bytes);
    net.ask(&six(tcp::SYN, b""));
    net.ask(&six(tcp::ACK, b"x"));
    let (at, before) = (net.now.as_nanos(), net.out.len());
    net.lose(at, NEAR);
    net.run_until(at + 10 * MS);
    let frame = &net.out[before].frame;
    assert!(checksum::verify(frame));
    let view = tcp::TcpSegment::parse(&frame[54..]).unwrap();
    assert_eq!((view.flags(), view.sequence(), frame.len()), (tcp::RST, 1, 74));
}

#[test]
fn only_connections_of_the_lost_replica_are_reset() {
    let mut net = lossy(ReplicaLossResponse::Reset);
    let at = net.now.as_nanos();
    net.update(at, ServiceUpdate::Drain { replica: NodeId(NEAR), drain: true });
    net.ask(&syn(2));
    net.ask(&data(2, b"x"));
    let (at, before) = (net.now.as_nanos(), net.out.len());
    net.lose(at, FAR);
    net.run_until(at + 100 * MS);
    assert_eq!(net.out.len(), before + 1);
    assert_eq!(net.out[before].frame[36..38], [0, 2]);
    assert_eq!(net.ask(&data(1, b"y")), [NEAR]);
    // Said twice, it is lost once.
    let (at, before) = (net.now.as_nanos(), net.out.len());
    net.lose(at, FAR);
    assert_eq!(net.out.len(), before);
}

#[test]
fn a_node_that_comes_back_gets_what_was_its_own_and_its_kernel_judges() {
    let mut net = lossy(ReplicaLossResponse::Silent);
    let at = net.now.as_nanos();
    net.lose(at, NEAR);
    assert_eq!(net.ask(&data(1, b"y")), []);
    let at = net.now.as_nanos();
    net.update(at, ServiceUpdate::Registered { replica: NodeId(NEAR), port: port("80/tcp") });
    assert_eq!(net.ask(&data(1, b"y")), [NEAR]);
    assert_eq!(net.ask(&syn(3)), [NEAR]);
    assert_eq!(net.ask(&query(3)), [FAR], "nothing has bound the other port yet");
}

#[test]
fn what_a_lost_replica_still_sends_in_the_services_name_is_dropped_and_counted() {
    for on_loss in [ReplicaLossResponse::Silent, ReplicaLossResponse::Reset] {
        let mut net = lossy(on_loss);
        let at = net.now.as_nanos();
        net.lose(at, NEAR);
        net.run_until(at + 100 * MS);
        let answers = |net: &mut Net, from: u32, frame: &[u8], header| {
            let (before, at) = (net.out.len(), net.now.as_nanos());
            net.send(at, from, header, frame);
            net.run_until(at + 100 * MS);
            net.out.len() - before
        };
        let answer = build::tcp(www(), client(1), 7, tcp::ACK, b"late");
        let (train, header) = build::tcp_train(www(), client(1), 7, tcp::ACK, &[1; 3000], 1000);
        assert_eq!(answers(&mut net, NEAR, &answer, PLAIN), 0);
        assert_eq!(answers(&mut net, NEAR, &train, header), 0);
        assert_eq!(net.engine.services().counters(WWW).silenced, 4, "three segments of a train");
        // Not in its name: of another port, of its own address, of another replica.
        let other = build::tcp((V4, 22).into(), client(1), 7, tcp::ACK, b"x");
        let own = build::udp((Ipv4Addr::new(10, 0, 1, 1), 80).into(), client(1), b"x");
        assert_eq!(answers(&mut net, NEAR, &other, PLAIN), 1);
        assert_eq!(answers(&mut net, NEAR, &own, PLAIN), 1);
        assert_eq!(answers(&mut net, FAR, &answer, PLAIN), 1);
        assert_eq!(net.engine.services().counters(WWW).silenced, 4);
        // It is back.
        let at = net.now.as_nanos();
        net.update(at, ServiceUpdate::Registered { replica: NodeId(NEAR), port: port("80/tcp") });
        assert_eq!(answers(&mut net, NEAR, &answer, PLAIN), 1);
        net.check_conservation();
    }
}

#[test]
fn datagrams_go_elsewhere_at_once() {
    let mut net = world(service());
    assert_eq!(net.ask(&query(1)), [NEAR]);
    let at = net.now.as_nanos();
    net.lose(at, NEAR);
    assert_eq!(net.ask(&query(1)), [FAR]);
    assert_eq!(net.engine.services().counters(WWW).lost, 0);
}
