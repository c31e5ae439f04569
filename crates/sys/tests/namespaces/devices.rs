//! Devices of a fresh network namespace, and pings over its loopback.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windtunnel_sys::namespace::NamespaceFlags;
use windtunnel_sys::ping::{PingFamily, PingSocket};
use windtunnel_sys::poll::{PollFd, PollFlags, wait};
use windtunnel_sys::x_tables::{self, XtablesFamily};
use windtunnel_sys::{clock, netdev};

use crate::{Case, Outcome, ip};

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "a_fresh_namespace_has_lo_as_device_1",
        flags: NamespaceFlags::NET,
        body: loopback,
    },
    Case { name: "a_ping_is_answered_over_ipv4", flags: NamespaceFlags::NET, body: ping_v4 },
    Case { name: "a_ping_is_answered_over_ipv6", flags: NamespaceFlags::NET, body: ping_v6 },
    Case {
        name: "a_ping_of_the_other_family_is_refused",
        flags: NamespaceFlags::NET,
        body: other_family,
    },
    Case {
        name: "tables_of_iptables_are_read_with_their_hooks",
        flags: NamespaceFlags::NET,
        body: tables,
    },
];

fn loopback() -> Outcome {
    assert_eq!(netdev::index_of("lo").unwrap(), 1);
    assert_eq!(netdev::name_of(1).unwrap(), "lo");
    Ok(())
}

fn ping_v4() -> Outcome {
    answered(PingFamily::V4, Ipv4Addr::LOCALHOST.into())
}

fn ping_v6() -> Outcome {
    answered(PingFamily::V6, Ipv6Addr::LOCALHOST.into())
}

fn answered(family: PingFamily, to: IpAddr) -> Outcome {
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
    let error = open(PingFamily::V4).send(Ipv6Addr::LOCALHOST.into(), 1, b"").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EAFNOSUPPORT));
    Ok(())
}

fn tables() -> Outcome {
    for version in [XtablesFamily::V4, XtablesFamily::V6] {
        let read = |name, bytes_max| x_tables::read(version, name, bytes_max);
        let table = match read("filter", 1 << 20) {
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                return Err("the kernel has no ip_tables".into());
            }
            other => other.unwrap(),
        };
        // INPUT, FORWARD and OUTPUT, each of one entry, its policy.
        assert_eq!(table.begins.map(|begin| begin.is_some()), [false, true, true, true, false]);
        assert_eq!((table.begins, table.begins[1]), (table.ends, Some(0)));
        assert!(table.entries.len() > 3 * 112, "{}", table.entries.len());
        let errno = |read: std::io::Result<_>| read.map(drop).unwrap_err().raw_os_error();
        assert_eq!(errno(read("filter", 1)), Some(libc::EMSGSIZE));
        assert_eq!(errno(read("nothing", 1 << 20)), Some(libc::ENOENT));
        assert!(read(&"long".repeat(8), 1 << 20).is_err());
    }
    Ok(())
}

fn open(family: PingFamily) -> PingSocket {
    fs::write("/proc/sys/net/ipv4/ping_group_range", "0 0").unwrap();
    PingSocket::open(family).unwrap()
}
