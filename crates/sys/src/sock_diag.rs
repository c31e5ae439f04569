//! Asking the kernel about the sockets of a network namespace: a netlink socket of
//! `NETLINK_SOCK_DIAG`. Source: sock_diag(7), netlink(7).

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::ffi::{check, socklen};

/// What came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SockDiagReceiveOutcome {
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

/// Has the kernel send messages of UDP sockets as well, and of both kinds only those without a peer:
/// of sockets that listen, or would take datagrams of everybody. What answers requests is not
/// concerned, if these have numbers other than 0.
///
/// # Errors
/// What setsockopt(2) says.
pub fn notify_of_listeners(socket: impl AsFd) -> io::Result<()> {
    // By classic BPF, whose loads are in network order: for 0 that is no matter.
    let mut filter = [
        instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, SEQUENCE_AT),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 2, 0),
        instruction(BPF_LD | BPF_H | BPF_ABS, 0, 0, PEER_PORT_AT),
        instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        instruction(BPF_RET | BPF_K, 0, 0, u32::MAX),
        instruction(BPF_RET | BPF_K, 0, 0, 0),
    ];
    let program = libc::sock_fprog { len: 6, filter: filter.as_mut_ptr() };
    let raw = socket.as_fd().as_raw_fd();
    // SAFETY: `program` points to as many instructions as it says, which live through the call, and
    // the kernel copies them.
    let returned = unsafe {
        let value = (&raw const program).cast();
        let length = socklen::<libc::sock_fprog>();
        libc::setsockopt(raw, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, value, length)
    };
    check(returned)?;
    for group in [GROUP_UDP_DESTROY, GROUP_UDP6_DESTROY] {
        // SAFETY: `group` is a live value of the size that is said.
        let returned = unsafe {
            let value = (&raw const group).cast();
            let length = socklen::<libc::c_int>();
            libc::setsockopt(raw, libc::SOL_NETLINK, libc::NETLINK_ADD_MEMBERSHIP, value, length)
        };
        check(returned)?;
    }
    Ok(())
}

fn instruction(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
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
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<SockDiagReceiveOutcome> {
    match rustix::net::recv(socket, buffer, RecvFlags::TRUNC) {
        Ok((kept, whole)) if whole > kept => Err(io::Error::from_raw_os_error(libc::EMSGSIZE)),
        Ok((_, bytes)) => Ok(SockDiagReceiveOutcome::Bytes(bytes)),
        Err(rustix::io::Errno::AGAIN) => Ok(SockDiagReceiveOutcome::Nothing),
        Err(rustix::io::Errno::NOBUFS) => Ok(SockDiagReceiveOutcome::Overrun),
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
/// `SKNLGRP_INET_UDP_DESTROY` and `SKNLGRP_INET6_UDP_DESTROY`.
const GROUP_UDP_DESTROY: libc::c_int = 2;
const GROUP_UDP6_DESTROY: libc::c_int = 4;
// Of linux/bpf_common.h.
const BPF_LD: u16 = 0x00;
const BPF_JMP: u16 = 0x05;
const BPF_RET: u16 = 0x06;
const BPF_W: u16 = 0x00;
const BPF_H: u16 = 0x08;
const BPF_ABS: u16 = 0x20;
const BPF_JEQ: u16 = 0x10;
const BPF_K: u16 = 0x00;
/// Of `struct nlmsghdr`.
const SEQUENCE_AT: u32 = 8;
/// Of `struct inet_diag_msg`, behind a header.
const PEER_PORT_AT: u32 = 16 + 6;
