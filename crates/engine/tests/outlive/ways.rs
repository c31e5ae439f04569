//! The ways of packets: to replicas, back, and to the holder of a connection.

use windtunnel_engine::RouterCounters;
use windtunnel_model::{Lane, LinkDirection, LinkId, RouterId, Span, Time};

use crate::ends::Ends;
use crate::network::{AT_CLIENT, AT_FAR, AT_NEAR, BETWEEN, network, service};
use crate::programs::Program;
use crate::support::up;

fn down(link: u32) -> Lane {
    Lane { link: LinkId(link), direction: LinkDirection::Down }
}

const UPLOAD: Program = Program::Upload { bytes: 60_000 };
const DOWNLOAD: Program = Program::Download { bytes: 60_000 };

#[test]
fn both_ways_between_redirector_and_replica_have_the_tunnels_header() {
    let mut ends = Ends::new(network(), service(), DOWNLOAD);
    ends.finish();
    let lane = |lane| {
        let counters = ends.net.engine.lane(lane);
        (counters.delivered_packets, counters.delivered_bytes)
    };
    let hosts: Vec<_> = ends.hosts.iter().map(|host| host.tcp.as_ref().unwrap()).collect();
    // What left the nodes is as many packets and bytes as their links carried, but for the header.
    for (link, tcp) in [(AT_NEAR, hosts[0]), (AT_FAR, hosts[1])] {
        let (packets, bytes) = lane(up(link));
        // 60 000 bytes and 32 of TCP's header a packet, more for SYN's options.
        let least = 60_000 + packets * (20 + 20 + 32);
        assert!(bytes >= least && bytes <= least + 40, "{bytes} {least}");
        assert!(tcp.is_finished());
    }
    // No header where nothing is tunnelled.
    let (packets, bytes) = lane(down(AT_CLIENT));
    assert!(bytes <= 60_000 + packets * (20 + 32) + 40, "{bytes}");
}

#[test]
fn segments_fit_the_tunnels_of_both_directions() {
    for program in [DOWNLOAD, UPLOAD] {
        let mut ends = Ends::new(network(), service(), program);
        ends.finish();
        for link in [AT_NEAR, AT_FAR, BETWEEN] {
            for lane in [up(link), down(link)] {
                let counters = ends.net.engine.lane(lane);
                assert_eq!(counters.dropped.total(), 0);
                let mean = counters.delivered_bytes / counters.delivered_packets;
                assert!(mean <= 1500, "{mean}");
            }
        }
        // Once for the SYN, and for the answer of each replica.
        let clamped = ends.net.engine.services().counters(windtunnel_model::ServiceId(0)).clamped;
        assert_eq!(clamped, 3);
    }
}

#[test]
fn a_narrow_way_back_lowers_what_replicas_send() {
    let mut plan = network();
    for profile in &mut plan.links[AT_FAR as usize].profiles {
        profile.mtu = 1300;
    }
    let mut ends = Ends::new(plan, service(), DOWNLOAD);
    ends.finish();
    let far = ends.net.engine.lane(up(AT_FAR));
    assert_eq!((far.dropped.total(), far.fragmented), (0, 0));
}

#[test]
fn a_connection_stays_with_its_redirector_when_routes_change() {
    let long = [Program::Download { bytes: 600_000 }, Program::Upload { bytes: 600_000 }];
    for program in long {
        let mut service = service();
        service.at = vec![RouterId(1), RouterId(2)];
        service.origin = Some(windtunnel_model::NodeId(3));
        let mut ends = Ends::new(network(), service, program);
        let cut = Time::ZERO + Span::from_millis(30);
        ends.run(cut);
        let redirected = |ends: &Ends| -> Vec<u64> {
            (0..3).map(|id| ends.net.engine.router(RouterId(id)).redirected).collect()
        };
        let before = redirected(&ends);
        assert!(before[0] == 0 && before[1] > 0 && before[2] == 0, "r2 keeps it: {before:?}");
        // From now on the client's packets meet r3 first.
        ends.set_link(cut, BETWEEN, false);
        ends.reroute(cut);
        ends.finish();
        let after = redirected(&ends);
        assert!(after[1] > before[1], "{after:?}");
        assert_eq!(after[2], 0, "r3 sends none of it to a replica");
        assert_eq!(ends.counters().opened, 1);
        assert_eq!(ends.what(), []);
        let RouterCounters { no_route, not_forwarded, .. } = *ends.net.engine.router(RouterId(2));
        assert_eq!((no_route, not_forwarded), (0, 0));
    }
}
