//! A socket of the machine that sends echo requests.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, ipproto, recvfrom, sendto,
    socket_with,
};
use windtunnel_sys::ping;
use windtunnel_sys::socket_error::{self, QueuedError};
use windtunnel_wire::{checksum, icmp};

/// A socket that sends echo requests and gets their replies.
#[derive(Debug)]
pub(super) enum EchoSocket {
    Ping(ping::PingSocket),
    Raw { socket: OwnedFd, identifier: u16, v6: bool },
}

impl EchoSocket {
    /// Opens a ping socket, or else a raw one, which uses `identifier`.
    pub(super) fn open(v6: bool, identifier: u16) -> io::Result<EchoSocket> {
        let family = if v6 { ping::PingFamily::V6 } else { ping::PingFamily::V4 };
        if let Ok(socket) = ping::PingSocket::open(family) {
            socket_error::keep(&socket, v6)?;
            return Ok(EchoSocket::Ping(socket));
        }
        let (domain, protocol) = match v6 {
            false => (AddressFamily::INET, ipproto::ICMP),
            true => (AddressFamily::INET6, ipproto::ICMPV6),
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(domain, SocketType::RAW, flags, Some(protocol))?;
        socket_error::keep(&socket, v6)?;
        Ok(EchoSocket::Raw { socket, identifier, v6 })
    }

    /// Sends a request.
    pub(super) fn send(&self, to: IpAddr, sequence: u16, payload: &[u8]) -> io::Result<()> {
        let (socket, identifier, v6) = match self {
            EchoSocket::Ping(socket) => return socket.send(to, sequence, payload),
            EchoSocket::Raw { socket, identifier, v6 } => (socket, *identifier, *v6),
        };
        let kind = if v6 { icmp::ECHO_REQUEST_V6 } else { icmp::ECHO_REQUEST_V4 };
        let mut message = vec![kind, 0, 0, 0];
        message.extend(identifier.to_be_bytes());
        message.extend(sequence.to_be_bytes());
        message.extend(payload);
        if !v6 {
            // That of ICMPv6 covers addresses, and is the kernel's (RFC 3542, 3.1).
            let sum = checksum::checksum(&message);
            message[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        sendto(socket, &message, SendFlags::empty(), &SocketAddr::new(to, 0))?;
        Ok(())
    }

    /// The next error that came back for a request: the request's sequence number, and how much of
    /// `buffer` its payload has.
    pub(super) fn error(&self, buffer: &mut [u8]) -> io::Result<Option<(QueuedError, u16, usize)>> {
        let mut message = vec![0; icmp::HEADER_LEN + buffer.len()];
        while let Some(error) = socket_error::next(self, &mut message)? {
            let came = message.get(..error.bytes).unwrap_or_default();
            let Ok(view) = icmp::IcmpMessage::parse(came) else { continue };
            let is_own = match self {
                EchoSocket::Ping(_) => true,
                // Every raw socket gets what is for all of them.
                EchoSocket::Raw { identifier, .. } => view.identifier() == *identifier,
            };
            if is_own {
                let length = view.body().len().min(buffer.len());
                buffer[..length].copy_from_slice(&view.body()[..length]);
                return Ok(Some((error, view.sequence(), length)));
            }
        }
        Ok(None)
    }

    /// The next reply: its sender, its sequence number, and how much of `buffer` its payload has.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(IpAddr, u16, usize)>> {
        let (socket, own, v6) = match self {
            EchoSocket::Ping(socket) => {
                let reply = socket.receive(buffer)?;
                return Ok(reply.map(|it| (it.from, it.sequence, it.bytes.min(buffer.len()))));
            }
            EchoSocket::Raw { socket, identifier, v6 } => (socket, *identifier, *v6),
        };
        let mut message = vec![0; PAYLOAD_MAX + 128];
        loop {
            let (length, from) = match recvfrom(socket, &mut message[..], RecvFlags::empty()) {
                Ok((length, _, from)) => (length, from),
                Err(errno) => {
                    let error = io::Error::from(errno);
                    let is_none = error.kind() == ErrorKind::WouldBlock;
                    return if is_none { Ok(None) } else { Err(error) };
                }
            };
            let from = from.and_then(|from| SocketAddr::try_from(from).ok());
            let received = message.get(..length).unwrap_or_default();
            // Every raw socket gets what is for all of them.
            if let (Some(from), Some((sequence, body))) = (from, reply(received, own, v6)) {
                let length = body.len().min(buffer.len());
                buffer[..length].copy_from_slice(&body[..length]);
                return Ok(Some((from.ip(), sequence, length)));
            }
        }
    }
}

impl AsFd for EchoSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            EchoSocket::Ping(socket) => socket.as_fd(),
            EchoSocket::Raw { socket, .. } => socket.as_fd(),
        }
    }
}

/// The sequence number and the payload of an echo reply for an identifier; over IPv4, its header
/// comes first.
fn reply(received: &[u8], own: u16, v6: bool) -> Option<(u16, &[u8])> {
    let header = if v6 { 0 } else { usize::from(received.first()? & 0x0f) * 4 };
    let view = icmp::IcmpMessage::parse(received.get(header..)?).ok()?;
    let kind = if v6 { ECHO_REPLY_V6 } else { ECHO_REPLY_V4 };
    (view.kind() == kind && view.identifier() == own).then(|| (view.sequence(), view.body()))
}

/// What an IP packet has room for.
pub(super) const PAYLOAD_MAX: usize = 65_536;
const ECHO_REPLY_V4: u8 = 0;
const ECHO_REPLY_V6: u8 = 129;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_replies_for_the_own_identifier_are_taken() {
        let message = |kind: u8, identifier: u8| [kind, 0, 0, 0, 0, identifier, 0, 9, b'x'];
        assert_eq!(reply(&message(129, 7), 7, true), Some((9, &b"x"[..])));
        assert_eq!(reply(&message(129, 8), 7, true), None);
        assert_eq!(reply(&message(128, 7), 7, true), None);
        let packet = [&[0x45; 20][..], &message(0, 7)].concat();
        assert_eq!(reply(&packet, 7, false), Some((9, &b"x"[..])));
        assert_eq!(reply(&packet[..24], 7, false), None);
        assert_eq!(reply(&[], 7, false), None);
    }
}
