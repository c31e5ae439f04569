//! Sockets of the machine's own network namespace.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};

use windtunnel_sys::poll::{self, PollFd, PollFlags};
use windtunnel_sys::socket_error;
use windtunnel_wire::icmp::IcmpErrorKind;

use crate::policy::EgressRefusal;
use crate::said;

/// A connection that is being made.
#[derive(Debug)]
pub(crate) enum PendingConnection {
    /// It is there already, as on the machine itself.
    Now(OwnedFd),
    /// It is made when the socket can be written to.
    Soon(OwnedFd),
}

/// Begins a connection.
pub(crate) fn dial(to: SocketAddr) -> Result<PendingConnection, Errno> {
    let made = open(to.is_ipv6(), SocketType::STREAM)?;
    sockopt::set_tcp_nodelay(&made, true)?;
    // Where that cannot be, the errno says less.
    let _ = socket_error::keep(&made, to.is_ipv6());
    match rustix::net::connect(&made, &to) {
        Ok(()) => Ok(PendingConnection::Now(made)),
        Err(Errno::INPROGRESS) => Ok(PendingConnection::Soon(made)),
        Err(errno) => Err(errno),
    }
}

/// A connection of the machine's own, as far as it has come out: mostly at once.
pub(crate) fn settled(socket: OwnedFd) -> Result<PendingConnection, Errno> {
    let mut looked = [PollFd::new(&socket, PollFlags::OUT)];
    if poll::wait(&mut looked, Some(Duration::ZERO)).is_ok_and(|ready| ready > 0) {
        outcome(&socket).map(|()| PendingConnection::Now(socket))
    } else {
        Ok(PendingConnection::Soon(socket))
    }
}

/// A connection is made: what comes back from now on is for its own TCP.
pub(crate) fn made(socket: &OwnedFd, v6: bool) {
    let _ = socket_error::forget(socket, v6);
}

/// What an ICMP message has said of a connection that is not made.
pub(crate) fn said(socket: &OwnedFd) -> Option<IcmpErrorKind> {
    let error = socket_error::next(socket, &mut [0; 64]).ok()??;
    said::kind(&error).filter(|_| error.is_icmp)
}

/// How a connection that was begun came out.
pub(crate) fn outcome(socket: impl AsFd) -> Result<(), Errno> {
    sockopt::socket_error(socket)?
}

/// A socket for datagrams to whatever address of a family.
pub(crate) fn datagrams(v6: bool) -> io::Result<UdpSocket> {
    let made = open(v6, SocketType::DGRAM)?;
    let any = match v6 {
        false => SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0),
        true => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), 0),
    };
    rustix::net::bind(&made, &any)?;
    Ok(UdpSocket::from(made))
}

/// Closes a connection so that the other end sees it torn (RST), and not ended.
pub(crate) fn tear(socket: OwnedFd) {
    // If that cannot be set, an end is what the other side sees.
    let _ = sockopt::set_socket_linger(&socket, Some(Duration::ZERO));
    drop(socket);
}

/// Listens at a published port.
pub(crate) fn listen(at: SocketAddr) -> io::Result<OwnedFd> {
    let made = open(at.is_ipv6(), SocketType::STREAM)?;
    sockopt::set_socket_reuseaddr(&made, true)?;
    rustix::net::bind(&made, &at)?;
    rustix::net::listen(&made, BACKLOG)?;
    Ok(made)
}

/// Whether the machine has a way to an address, and that is not the address's own: the kernel is
/// asked what address a datagram to it would come from, which for an address of the machine is that
/// itself. Nothing is sent.
pub(crate) fn check_way(address: IpAddr) -> Result<(), NoWay> {
    let probe = open(address.is_ipv6(), SocketType::DGRAM);
    let asked = probe.and_then(|probe| {
        // The discard port (RFC 863); any will do.
        rustix::net::connect(&probe, &SocketAddr::new(address, 9))?;
        Ok(probe)
    });
    let probe = asked.map_err(|errno| match is_lack(errno) {
        true => NoWay::Unknown,
        false => NoWay::Refused(refusal(errno)),
    })?;
    let own = windtunnel_sys::socket::local(&probe).map_err(|_| NoWay::Unknown)?.ip();
    let is_own = own == address || own.is_loopback();
    if is_own { Err(NoWay::Refused(EgressRefusal::Machine)) } else { Ok(()) }
}

/// Why an address is not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoWay {
    Refused(EgressRefusal),
    /// For lack of descriptors or memory that cannot be known.
    Unknown,
}

/// Whether the machine or this process has too little of something.
pub(crate) fn is_lack(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::NOBUFS)
}

/// What the kernel's word about a destination means.
pub(crate) fn refusal(errno: Errno) -> EgressRefusal {
    match errno {
        Errno::ACCESS | Errno::PERM => EgressRefusal::Denied,
        _ => EgressRefusal::NoRoute,
    }
}

fn open(v6: bool, kind: SocketType) -> Result<OwnedFd, Errno> {
    let family = if v6 { AddressFamily::INET6 } else { AddressFamily::INET };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let made = socket_with(family, kind, flags, None)?;
    if v6 {
        sockopt::set_ipv6_v6only(&made, true)?;
    }
    Ok(made)
}

const BACKLOG: i32 = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_machine_is_known_as_such() {
        let own = NoWay::Refused(EgressRefusal::Machine);
        assert_eq!(check_way(Ipv4Addr::new(127, 9, 8, 7).into()), Err(own));
        let six = check_way(Ipv6Addr::LOCALHOST.into());
        assert!(six == Err(own) || six == Err(NoWay::Refused(EgressRefusal::NoRoute)), "{six:?}");
    }
}
