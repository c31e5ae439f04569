//! Over real sockets on the loopback device.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use windtunnel_model::Time;
use windtunnel_sys::clock::monotonic_ns;
use windtunnel_sys::poll::{self, PollFd, PollFlags};

use super::{SEALED, frame, label};
use crate::{OpenError, OutgoingFrame, Security, TunnelSettings, UdpTunnel};

fn now() -> Time {
    Time::from_nanos(monotonic_ns())
}

fn pair(at: &str, security: Security) -> Option<[UdpTunnel; 2]> {
    let sockets = [UdpSocket::bind(at), UdpSocket::bind(at)];
    let [Ok(first), Ok(second)] = sockets else { return None };
    let addresses = [&first, &second].map(|socket| socket.local_addr().unwrap());
    let setup = |own| {
        let peers = addresses.iter().copied().map(Some).collect();
        TunnelSettings { run: 1, own, peers, security }
    };
    let open = |socket, own| UdpTunnel::open(socket, setup(own)).unwrap();
    Some([open(first, 0), open(second, 1)])
}

/// Serves both until `done`; waits for the sockets, not for time.
fn serve(
    tunnels: &mut [UdpTunnel; 2],
    arrived: &mut Vec<(u16, u32, Vec<u8>)>,
    done: impl Fn(&[UdpTunnel; 2], &[(u16, u32, Vec<u8>)]) -> bool,
) {
    let mut idle = 0;
    while !done(tunnels, arrived) {
        let mut taken = 0;
        for tunnel in tunnels.iter_mut() {
            tunnel.handle_timeout(now());
            taken += tunnel
                .receive(now(), |received| {
                    assert_eq!(received.label, label(received.label.port));
                    arrived.push((received.from, received.label.port, received.frame.to_vec()));
                })
                .unwrap();
        }
        idle = if taken == 0 { idle + 1 } else { 0 };
        assert!(idle < 300, "{tunnels:?}");
        if taken == 0 {
            let mut watched = [0, 1].map(|at| PollFd::new(&tunnels[at], PollFlags::IN));
            poll::wait(&mut watched, Some(Duration::from_millis(20))).unwrap();
        }
    }
}

#[test]
fn frames_of_all_sizes_cross_the_loopback_device() {
    for at in ["127.0.0.1:0", "[::1]:0"] {
        for security in [SEALED, Security::Plain] {
            let Some(mut tunnels) = pair(at, security) else {
                assert_ne!(at, "127.0.0.1:0", "there is always IPv4");
                continue;
            };
            let mut arrived = Vec::new();
            let sizes = [1, 60, 1514, 9000, 65_549, 66 << 10, 64];
            for (round, size) in sizes.into_iter().enumerate() {
                for (own, tunnel) in (0..2).zip(&mut tunnels) {
                    let port = u32::try_from(round).unwrap();
                    let bytes = frame(round + own as usize, size);
                    tunnel.push(
                        now(),
                        &OutgoingFrame { to: 1 - own, label: label(port), frame: &bytes },
                    );
                    let flushed = tunnel.flush(now());
                    assert_eq!((flushed.sent, flushed.unsent.total()), (1, 0));
                }
                arrived.clear();
                serve(&mut tunnels, &mut arrived, |_, arrived| arrived.len() == 2);
                arrived.sort_by_key(|(from, ..)| *from);
                for (from, (got_from, port, bytes)) in arrived.iter().enumerate() {
                    assert_eq!((usize::from(*got_from), *port as usize), (from, round));
                    assert!(*bytes == frame(round + from, size), "{size} bytes were changed");
                }
            }
            for tunnel in &tunnels {
                let counters = tunnel.counters();
                assert_eq!((counters.lost, counters.incomplete), (0, 0));
                assert_eq!(counters.refused.total(), 0);
                assert_eq!((counters.sent.frames, counters.received.frames), (7, 7));
            }
        }
    }
}

#[test]
fn peers_are_reached_timed_and_their_mtu_is_found() {
    let mut tunnels = pair("127.0.0.1:0", SEALED).expect("there is always IPv4");
    assert_eq!(tunnels.each_ref().map(|tunnel| tunnel.reached(0)), [false, false]);
    assert_eq!(tunnels[0].mtu(1), Some(1200));
    // The loopback device carries 65 536 bytes.
    serve(&mut tunnels, &mut Vec::new(), |tunnels, _| {
        let [a, b] = tunnels;
        (a.mtu(1), b.mtu(0)) == (Some(65_487), Some(65_487))
    });
    let [a, b] = &tunnels;
    assert!(a.reached(1) && b.reached(0));
    assert!(a.rtt(1).is_some_and(|rtt| !rtt.is_zero()));
    assert_eq!((a.mtu(0), a.rtt(7), a.reached(7)), (None, None, false));
    assert!(a.poll_timeout().is_some_and(|due| due > now()));
    assert!(a.buffers().unwrap().receive > 0);
    assert_eq!(a.counters().lost, 0);
}

#[test]
fn datagrams_of_a_stranger_on_the_same_machine_are_dropped() {
    let mut tunnels = pair("127.0.0.1:0", SEALED).expect("there is always IPv4");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = local(&tunnels[0]);
    for length in [0, 1, 24, 1200] {
        stranger.send_to(&vec![1; length], to).unwrap();
    }
    serve(&mut tunnels, &mut Vec::new(), |tunnels, _| tunnels[0].counters().refused.total() == 4);
    assert_eq!(tunnels[0].counters().refused.malformed, 4);
}

#[test]
fn a_setup_that_cannot_work_is_refused_with_the_reason() {
    let open = |peers: &[&str]| {
        let peers = peers.iter().map(|address| address.parse().ok()).collect();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        UdpTunnel::open(socket, TunnelSettings { run: 1, own: 0, peers, security: SEALED })
            .map(drop)
    };
    let error = open(&["", "10.0.0.1:5", "10.0.0.1:5"]).unwrap_err();
    assert_eq!(error.to_string(), "members 1 and 2 have the same address, 10.0.0.1:5");
    let error = open(&["", "[fd00::1]:5"]).unwrap_err();
    assert!(matches!(error, OpenError::OtherFamily { member: 1, .. }));
    assert!(error.to_string().starts_with("member 1 has the IPv6 address [fd00::1]:5, but"));
    assert_eq!(format!("{SEALED:?}"), "Sealed(..)", "keys are not shown");
}

fn local(tunnel: &UdpTunnel) -> SocketAddr {
    let socket = UdpSocket::from(tunnel.as_fd().try_clone_to_owned().unwrap());
    socket.local_addr().unwrap()
}
