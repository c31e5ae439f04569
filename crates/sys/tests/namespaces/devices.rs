//! Devices of a fresh network namespace, and pings over its loopback.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windtunnel_sys::namespace::Flags;
use windtunnel_sys::ping::{Family, Socket};
use windtunnel_sys::poll::{PollFd, PollFlags, wait};
use windtunnel_sys::{clock, netdev};

use crate::{Case, Outcome, ip};

pub(crate) const CASES: &[Case] = &[
    Case { name: "a_fresh_namespace_has_lo_as_device_1", flags: Flags::NET, body: loopback },
    Case { name: "a_ping_is_answered_over_ipv4", flags: Flags::NET, body: ping_v4 },
    Case { name: "a_ping_is_answered_over_ipv6", flags: Flags::NET, body: ping_v6 },
    Case { name: "a_ping_of_the_other_family_is_refused", flags: Flags::NET, body: other_family },
];

fn loopback() -> Outcome {
    assert_eq!(netdev::index_of("lo").unwrap(), 1);
    assert_eq!(netdev::name_of(1).unwrap(), "lo");
    Ok(())
}

fn ping_v4() -> Outcome {
    answered(Family::V4, Ipv4Addr::LOCALHOST.into())
}

fn ping_v6() -> Outcome {
    answered(Family::V6, Ipv6Addr::LOCALHOST.into())
}

fn answered(family: Family, to: IpAddr) -> Outcome {
    ip("link set lo up")?;
    let socket = open(family);
    let before = clock::realtime_ns();
    socket.send(to, 0xabcd, b"payload").unwrap();
    assert_eq!(wait(&mut [PollFd::new(&socket, PollFlags::IN)], None).unwrap(), 1);
    let mut buffer = [0; 64];
    let reply = socket.receive(&mut buffer).unwrap().unwrap();
    assert_eq!((reply.from, reply.sequence, reply.bytes), (to, 0xabcd, 7));
    assert_eq!(&buffer[..7], b"payload");
    let arrival = reply.arrival_ns.unwrap();
    assert!((before..=clock::realtime_ns()).contains(&arrival));
    assert_eq!(socket.receive(&mut buffer).unwrap(), None);
    Ok(())
}

fn other_family() -> Outcome {
    let error = open(Family::V4).send(Ipv6Addr::LOCALHOST.into(), 1, b"").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EAFNOSUPPORT));
    Ok(())
}

fn open(family: Family) -> Socket {
    fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0").unwrap();
    Socket::open(family).unwrap()
}
