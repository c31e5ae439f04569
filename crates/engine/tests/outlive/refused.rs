//! What the protocol does not take.

use windtunnel_model::plan::ServiceUpdate;
use windtunnel_model::{NodeId, Span, Time};
use windtunnel_wire::{build, tcp, vnet};

use crate::ends::{Ends, client_at};
use crate::network::{CLIENT, FAR, NEAR, V4, network, service, www};
use crate::programs::Program;
use crate::support::MS;

const DOWNLOAD: Program = Program::Download { bytes: 60_000 };

#[test]
fn a_connection_to_one_replica_is_redirected_as_with_fail_over_new() {
    let mut ends = Ends::with(network(), service(), DOWNLOAD, &[NodeId(FAR)]);
    ends.finish();
    let counters = ends.counters();
    assert_eq!((counters.opened, counters.plain), (0, 1));
}

#[test]
fn a_connection_that_is_kept_is_listed_with_its_primary_and_counted_at_each_replica() {
    let mut ends = Ends::new(network(), service(), Program::Download { bytes: 400_000 });
    ends.run(Time::ZERO + Span::from_millis(30));
    let www = windtunnel_model::ServiceId(0);
    let [flow] = ends.net.engine.services().pinned(www, 10)[..] else { panic!("one connection") };
    assert_eq!((flow.client, flow.replica), (crate::network::client(), NodeId(NEAR)));
    let live = |ends: &Ends| -> Vec<u64> {
        let replicas = ends.net.engine.services().replicas(www);
        replicas.iter().map(|replica| replica.counters.live_connections).collect()
    };
    assert_eq!(live(&ends), [1, 1]);
    ends.finish();
    ends.net.run_until(ends.net.now.as_nanos() + 100 * MS);
    assert_eq!(live(&ends), [0, 0]);
}

#[test]
fn datagrams_go_to_one_replica() {
    let mut ends = Ends::new(network(), service(), DOWNLOAD);
    ends.finish();
    let (before, now) = (ends.net.out.len(), ends.net.now.as_nanos());
    let query = build::udp(client_at(5353), (V4, 53).into(), b"name?");
    ends.net.send(now, CLIENT, vnet::VirtioNetHeader::default(), &query);
    ends.net.run_until(now + 100 * MS);
    let got: Vec<u32> = ends.net.out[before..]
        .iter()
        .filter(|out| out.frame[23] == windtunnel_wire::udp::PROTOCOL)
        .map(|out| out.port)
        .collect();
    assert_eq!(got, [NEAR]);
    assert_eq!(ends.counters().plain, 0, "connections are counted");
}

#[test]
fn a_damaged_segment_is_dropped_and_counted() {
    let mut ends = Ends::new(network(), service(), DOWNLOAD);
    ends.run(Time::ZERO + Span::from_millis(20));
    let mut damaged = build::tcp(crate::network::client(), www(), 1, tcp::ACK, b"damaged");
    *damaged.last_mut().unwrap() ^= 1;
    let now = ends.net.now.as_nanos();
    ends.net.send(now, CLIENT, vnet::VirtioNetHeader::default(), &damaged);
    ends.finish();
    assert_eq!(ends.counters().unusable, 1);
    let router = ends.net.engine.router(windtunnel_model::RouterId(0));
    assert_eq!(router.not_forwarded, 1);
}

#[test]
fn a_segment_of_an_unknown_connection_goes_to_one_replica() {
    let mut ends = Ends::new(network(), service(), DOWNLOAD);
    ends.finish();
    let (before, now) = (ends.net.out.len(), ends.net.now.as_nanos());
    let stray = build::tcp(client_at(41_000), www(), 7, tcp::ACK, b"?");
    ends.net.send(now, CLIENT, vnet::VirtioNetHeader::default(), &stray);
    ends.net.run_until(now + 100 * MS);
    let got = |out: &&crate::support::Out| out.frame.ends_with(b"?");
    assert_eq!(ends.net.out[before..].iter().filter(got).count(), 1);
    assert_eq!(ends.counters().plain, 1);
}

#[test]
fn half_open_connections_that_lose_a_node_are_counted_and_no_events() {
    let mut ends = Ends::new(network(), service(), Program::Download { bytes: 400_000 });
    ends.run(Time::ZERO + Span::from_millis(30));
    let now = ends.net.now.as_nanos();
    for number in 0..50 {
        let syn = build::tcp(client_at(41_000 + number), www(), 7, tcp::SYN, b"");
        ends.net.send(now, CLIENT, vnet::VirtioNetHeader::default(), &syn);
    }
    let at = Time::ZERO + Span::from_millis(40);
    ends.run(at);
    ends.update(at, ServiceUpdate::Lost { replica: NodeId(NEAR) });
    ends.run(at + Span::from_millis(1));
    let of: Vec<u16> = ends.news.iter().map(|(_, news)| news.client.port()).collect();
    assert!(!of.is_empty() && of.iter().all(|port| *port == 40_000), "{of:?}");
    let counters = ends.counters();
    assert_eq!((counters.expelled.gone, counters.news_lost), (51, 0));
}
