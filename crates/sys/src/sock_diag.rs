//! Asking the kernel about the sockets of a network namespace: a netlink socket of
//! `NETLINK_SOCK_DIAG`. Source: sock_diag(7), netlink(7).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::ffi::{check, socklen};

/// What came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes of the buffer.
    Bytes(usize),
    /// Nothing is there.
    Nothing,
    /// Messages were dropped before this call because there was no room for them.
    Overrun,
}

/// Opens a socket that belongs to the network namespace of the caller for good, wherever it goes.
/// The kernel sends a message to it for each TCP socket that is destroyed there. Nonblocking. Needs
/// no rights.
///
/// # Errors
/// `EPROTONOSUPPORT` where the kernel has no such sockets.
pub fn open() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = AddressFamily::NETLINK;
    let socket = rustix::net::socket_with(family, SocketType::RAW, flags, Some(SOCK_DIAG))?;
    set_room(&socket, RECEIVE_BYTES)?;
    rustix::net::bind(&socket, &SocketAddrNetlink::new(0, TCP_DESTROY | TCP6_DESTROY))?;
    Ok(socket)
}

/// The network namespace that a socket belongs to, by the number of its inode.
///
/// # Errors
/// `EPERM` without `CAP_NET_ADMIN` in the user namespace that owns it.
pub fn namespace(socket: impl AsFd) -> io::Result<u32> {
    // SAFETY: this request takes nothing and returns a descriptor.
    let returned = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), SIOCGSKNS as _) };
    let raw = check(returned)?;
    // SAFETY: the kernel has just made the descriptor, and for this caller alone.
    let namespace = unsafe { OwnedFd::from_raw_fd(raw) };
    let inode = rustix::fs::fstat(&namespace)?.st_ino;
    u32::try_from(inode).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Sets how many bytes of messages can wait; the kernel takes no more than net.core.rmem_max, and
/// its own structures count as well.
///
/// # Errors
/// What setsockopt(2) says.
pub fn set_room(socket: impl AsFd, bytes: usize) -> io::Result<()> {
    Ok(rustix::net::sockopt::set_socket_recv_buffer_size(socket, bytes)?)
}

/// Sends a request to the kernel.
///
/// # Errors
/// `EAGAIN` while a dump goes on, `ENOENT` where the kernel lacks what is asked for.
pub fn send(socket: impl AsFd, request: &[u8]) -> io::Result<()> {
    rustix::net::sendto(socket, request, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
    Ok(())
}

/// The next datagram, which holds whole messages.
///
/// # Errors
/// `EMSGSIZE` when it did not fit, `EINTR`.
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<Received> {
    match rustix::net::recv(socket, buffer, RecvFlags::TRUNC) {
        Ok((kept, whole)) if whole > kept => Err(io::Error::from_raw_os_error(libc::EMSGSIZE)),
        Ok((_, bytes)) => Ok(Received::Bytes(bytes)),
        Err(rustix::io::Errno::AGAIN) => Ok(Received::Nothing),
        Err(rustix::io::Errno::NOBUFS) => Ok(Received::Overrun),
        Err(errno) => Err(errno.into()),
    }
}

/// How many messages the socket has dropped since it was opened.
///
/// # Errors
/// What getsockopt(2) says.
pub fn drops(socket: impl AsFd) -> io::Result<u32> {
    let mut numbers = [0_u32; MEMORY_NUMBERS];
    let mut length = socklen::<[u32; MEMORY_NUMBERS]>();
    let raw = socket.as_fd().as_raw_fd();
    // SAFETY: both pointers are to live values, and `length` is the size of the first.
    let returned = unsafe {
        let value = (&raw mut numbers).cast();
        libc::getsockopt(raw, libc::SOL_SOCKET, libc::SO_MEMINFO, value, &raw mut length)
    };
    check(returned)?;
    Ok(numbers[MEMORY_NUMBERS - 1])
}

/// The numbers of `SO_MEMINFO`; the last is `SK_MEMINFO_DROPS`.
/// Of linux/sockios.h.
const SIOCGSKNS: u32 = 0x894c;
const MEMORY_NUMBERS: usize = 9;
/// Some 300 destroyed sockets, where the machine's limit (net.core.rmem_max) allows it.
const RECEIVE_BYTES: usize = 1 << 20;
/// `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY`, as bits.
const TCP_DESTROY: u32 = 1 << 0;
const TCP6_DESTROY: u32 = 1 << 2;
