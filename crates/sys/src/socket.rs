//! What a socket is and how far it is, and what wakes those who wait for it. Source: socket(7), tcp(7).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::net::sockopt::Timeout;
use rustix::net::{AddressFamily, RecvFlags, SocketType, sockopt};

use crate::ffi::{check, set_option, socklen};
use crate::poll;

/// A protocol whose flows are named by addresses and ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketProtocol {
    Tcp,
    Udp,
}

/// An address and port as the kernel's tables of sockets have them (proc_pid_net(5)): words of 32 bits
/// in the machine's order, of which the bytes are the address's.
#[must_use]
pub fn listed(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| {
        let digits = address.get(at * 8..at * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let address = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut octets = [0; 16];
            for (at, octets) in octets.chunks_exact_mut(4).enumerate() {
                octets.copy_from_slice(&word(at)?);
            }
            IpAddr::V6(Ipv6Addr::from(octets))
        }
        _ => return None,
    };
    Some(SocketAddr::new(address, port))
}

/// The protocol of a socket; `None`: another one, or no socket at all.
///
/// # Errors
/// `EBADF`.
pub fn protocol(descriptor: impl AsFd) -> io::Result<Option<SocketProtocol>> {
    let domain = match sockopt::socket_domain(&descriptor) {
        Err(rustix::io::Errno::NOTSOCK) => return Ok(None),
        domain => domain?,
    };
    if domain != AddressFamily::INET && domain != AddressFamily::INET6 {
        return Ok(None);
    }
    let protocol = sockopt::socket_protocol(&descriptor)?;
    Ok(match sockopt::socket_type(&descriptor)? {
        SocketType::STREAM if protocol == Some(rustix::net::ipproto::TCP) => {
            Some(SocketProtocol::Tcp)
        }
        SocketType::DGRAM if protocol == Some(rustix::net::ipproto::UDP) => {
            Some(SocketProtocol::Udp)
        }
        _ => None,
    })
}

/// What a socket of IPv4 or IPv6 is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InternetSocketKind {
    /// It has bytes, and not messages.
    pub is_stream: bool,
    /// `None`: another one, such as MPTCP or ICMP.
    pub protocol: Option<SocketProtocol>,
}

/// The kind of a socket of IPv4 or IPv6, whatever its protocol; `None`: another one, or no socket.
///
/// # Errors
/// `EBADF`.
pub fn kind(descriptor: impl AsFd) -> io::Result<Option<InternetSocketKind>> {
    let domain = match sockopt::socket_domain(&descriptor) {
        // A descriptor that only names a file (`O_PATH`) says so by EBADF.
        Err(rustix::io::Errno::NOTSOCK | rustix::io::Errno::BADF) => return Ok(None),
        domain => domain?,
    };
    if domain != AddressFamily::INET && domain != AddressFamily::INET6 {
        return Ok(None);
    }
    let is_stream = sockopt::socket_type(&descriptor)? == SocketType::STREAM;
    Ok(Some(InternetSocketKind { is_stream, protocol: protocol(&descriptor)? }))
}

/// The kernel's memory of a socket, in bytes: payload with what the kernel needs for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketMemory {
    /// What has come and was not read.
    pub received: u32,
    /// The most that may wait to be sent.
    pub send_limit: u32,
    /// What waits to be sent, or to be acknowledged.
    pub send_queued: u32,
    /// Datagrams that came and found no room, so far.
    pub dropped: u32,
}

/// The memory of a socket (`SO_MEMINFO`, Linux 4.12).
///
/// # Errors
/// `ENOTSOCK`.
pub fn memory(socket: impl AsFd) -> io::Result<SocketMemory> {
    // The kernel's linux/sock_diag.h.
    let mut words = [0_u32; 9];
    let mut length = socklen::<[u32; 9]>();
    let raw = socket.as_fd().as_raw_fd();
    // SAFETY: both pointers are to live values, and `length` is the size of the first.
    let returned = unsafe {
        let value = words.as_mut_ptr().cast();
        libc::getsockopt(raw, libc::SOL_SOCKET, libc::SO_MEMINFO, value, &raw mut length)
    };
    check(returned)?;
    Ok(SocketMemory {
        received: words[0],
        send_limit: words[3],
        send_queued: words[5],
        dropped: words[8],
    })
}

/// The most bytes a second at which the kernel sends the stream of a socket
/// (`SO_MAX_PACING_RATE`); `u64::MAX`: as fast as it can.
///
/// # Errors
/// `ENOTSOCK`.
pub fn most_paced(socket: impl AsFd) -> io::Result<u64> {
    let mut rate = 0_u64;
    let mut length = socklen::<u64>();
    let raw = socket.as_fd().as_raw_fd();
    // SAFETY: both pointers are to live values, and `length` is the size of the first.
    let returned = unsafe {
        let value = (&raw mut rate).cast();
        libc::getsockopt(raw, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value, &raw mut length)
    };
    check(returned)?;
    Ok(rate)
}

/// Sets what [`most_paced`] says.
///
/// # Errors
/// `ENOTSOCK`.
pub fn set_most_paced(socket: impl AsFd, rate: u64) -> io::Result<()> {
    let raw = socket.as_fd().as_raw_fd();
    // SAFETY: the pointer is to a live value of the size given, which the kernel reads.
    let returned = unsafe {
        let value = (&raw const rate).cast();
        libc::setsockopt(raw, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value, socklen::<u64>())
    };
    check(returned).map(drop)
}

/// Wakes who waits for a stream of TCP to become writable, as if it just had: also one who watches by edges
/// (epoll(7)). Where it is not writable now, that is as usual when it becomes so.
///
/// # Errors
/// `ENOTSOCK`; `ENOPROTOOPT` where it is no stream of TCP.
pub fn wake_writers(socket: impl AsFd) -> io::Result<()> {
    // A look at one that has no room makes the kernel say when it has: otherwise it does so only to one
    // whose own call found no room (`tcp_poll`, `SOCK_NOSPACE`).
    let looked = &mut [poll::PollFd::new(&socket, poll::PollFlags::OUT)];
    poll::wait(looked, Some(Duration::ZERO))?;
    set_again(socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT)
}

/// The same of those who wait for something to receive.
///
/// # Errors
/// `ENOTSOCK`.
pub fn wake_readers(socket: impl AsFd) -> io::Result<()> {
    set_again(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT)
}

/// Sets an option to the value that it has.
fn set_again(socket: impl AsFd, level: libc::c_int, name: libc::c_int) -> io::Result<()> {
    let mut value: libc::c_int = 0;
    let mut length = socklen::<libc::c_int>();
    let raw = socket.as_fd().as_raw_fd();
    // SAFETY: both pointers are to live values, and `length` is the size of the first.
    let returned =
        unsafe { libc::getsockopt(raw, level, name, (&raw mut value).cast(), &raw mut length) };
    check(returned)?;
    set_option(socket, level, name, &value)
}

/// Lets a socket of a family have addresses that are not the machine's (`IP_TRANSPARENT`,
/// `IPV6_TRANSPARENT`).
///
/// # Errors
/// `EPERM` without `CAP_NET_RAW` or `CAP_NET_ADMIN` in the user namespace of its network namespace.
pub fn set_transparent(socket: impl AsFd, v6: bool) -> io::Result<()> {
    let (level, name) = match v6 {
        false => (libc::IPPROTO_IP, libc::IP_TRANSPARENT),
        true => (libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT),
    };
    let on: libc::c_int = 1;
    set_option(socket, level, name, &on)
}

/// How long calls that send, or receive, may wait (`SO_SNDTIMEO`, `SO_RCVTIMEO`); `None`: for ever.
///
/// # Errors
/// `ENOTSOCK`.
pub fn timeout(socket: impl AsFd, sends: bool) -> io::Result<Option<Duration>> {
    let which = if sends { Timeout::Send } else { Timeout::Recv };
    Ok(sockopt::socket_timeout(socket, which)?)
}

/// Where the next message comes from, which stays to be received; `None` where it names no address.
///
/// # Errors
/// `EAGAIN` where there is none.
pub fn sender_of_next(socket: impl AsFd) -> io::Result<Option<SocketAddr>> {
    let mut byte = [0; 1];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let (_, _, from) = rustix::net::recvfrom(socket, &mut byte, flags)?;
    Ok(from.and_then(|address| address.try_into().ok()))
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
