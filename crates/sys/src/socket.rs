//! What a socket is and how far it is, without changing it. Source: socket(7), tcp(7).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::ffi::{check, socklen};

/// A protocol whose flows are named by addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Tcp,
    Udp,
}

/// The protocol of a socket; `None`: another one, or no socket at all.
///
/// # Errors
/// `EBADF`.
pub fn protocol(descriptor: impl AsFd) -> io::Result<Option<Protocol>> {
    let domain = match sockopt::socket_domain(&descriptor) {
        Err(rustix::io::Errno::NOTSOCK) => return Ok(None),
        domain => domain?,
    };
    if domain != AddressFamily::INET && domain != AddressFamily::INET6 {
        return Ok(None);
    }
    let protocol = sockopt::socket_protocol(&descriptor)?;
    Ok(match sockopt::socket_type(&descriptor)? {
        SocketType::STREAM if protocol == Some(rustix::net::ipproto::TCP) => Some(Protocol::Tcp),
        SocketType::DGRAM if protocol == Some(rustix::net::ipproto::UDP) => Some(Protocol::Udp),
        _ => None,
    })
}

/// The kernel's number of the socket, which no other socket of the machine gets.
///
/// # Errors
/// `ENOTSOCK`.
pub fn cookie(socket: impl AsFd) -> io::Result<u64> {
    Ok(sockopt::socket_cookie(socket)?)
}

/// Its own address; with port 0 until it has one.
///
/// # Errors
/// `ENOTSOCK`, `EAFNOSUPPORT` for another family than IP.
pub fn local(socket: impl AsFd) -> io::Result<SocketAddr> {
    Ok(rustix::net::getsockname(socket)?.try_into()?)
}

/// The address of the other end; `None` when there is none.
///
/// # Errors
/// As [`local`].
pub fn peer(socket: impl AsFd) -> io::Result<Option<SocketAddr>> {
    match rustix::net::getpeername(socket) {
        Ok(Some(address)) => Ok(Some(address.try_into()?)),
        Ok(None) | Err(rustix::io::Errno::NOTCONN | rustix::io::Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Bytes that can be read; of UDP, those of the next datagram.
///
/// # Errors
/// `EINVAL` on a socket that listens.
pub fn unread(socket: impl AsFd) -> io::Result<u64> {
    Ok(rustix::io::ioctl_fionread(socket)?)
}

/// Connections that wait to be accepted at a socket that listens (`tcpi_unacked` of such a one).
///
/// # Errors
/// As [`tcp_info`].
pub fn accept_queue(socket: impl AsFd) -> io::Result<u32> {
    let mut buffer = [0; TCP_INFO_BYTES];
    tcp_info(socket, &mut buffer)?;
    Ok(u32::from_ne_bytes([buffer[24], buffer[25], buffer[26], buffer[27]]))
}

/// Whether calls on it return at once.
///
/// # Errors
/// `EBADF`.
pub fn is_nonblocking(socket: impl AsFd) -> io::Result<bool> {
    Ok(rustix::fs::fcntl_getfl(socket)?.contains(rustix::fs::OFlags::NONBLOCK))
}

/// `struct tcp_info` as this kernel fills it, into `buffer`: how many bytes.
///
/// # Errors
/// `ENOPROTOOPT` on what is no TCP socket.
pub fn tcp_info(socket: impl AsFd, buffer: &mut [u8; TCP_INFO_BYTES]) -> io::Result<usize> {
    let mut length = socklen::<[u8; TCP_INFO_BYTES]>();
    let raw = socket.as_fd().as_raw_fd();
    // SAFETY: both pointers are to live values, and `length` is the size of the first.
    let returned = unsafe {
        let value = std::ptr::from_mut(buffer).cast();
        libc::getsockopt(raw, libc::IPPROTO_TCP, libc::TCP_INFO, value, &raw mut length)
    };
    check(returned)?;
    Ok((length as usize).min(TCP_INFO_BYTES))
}

/// Enough for every kernel until now (Linux 6.18: 280).
pub const TCP_INFO_BYTES: usize = 384;
