//! What became of datagrams that were sent: errors that came back for them (`IP_RECVERR`). Source:
//! ip(7), ipv6(7), recvmsg(2).

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use crate::ffi::{set_option, socklen};

/// An error that came back for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedError {
    /// Where the datagram went.
    pub destination: SocketAddr,
    /// What it means to the sender.
    pub errno: i32,
    /// Whether an ICMP or ICMPv6 message said so, and not this machine.
    pub is_icmp: bool,
    /// The type of that message.
    pub kind: u8,
    /// Its code.
    pub code: u8,
    /// With `EMSGSIZE`: the bytes of an IP packet that would have passed.
    pub mtu: u32,
    /// Bytes of the datagram's payload that were stored in the caller's buffer.
    pub bytes: usize,
}

/// Has errors of a socket of a family kept, for [`next`].
///
/// # Errors
/// What setsockopt(2) says.
pub fn keep(socket: impl AsFd, v6: bool) -> io::Result<()> {
    set(socket, v6, 1)
}

fn set(socket: impl AsFd, v6: bool, value: libc::c_int) -> io::Result<()> {
    let (level, name) = match v6 {
        false => (libc::IPPROTO_IP, libc::IP_RECVERR),
        true => (libc::IPPROTO_IPV6, libc::IPV6_RECVERR),
    };
    set_option(socket, level, name, &value)
}

/// Has them dropped again, as a stream does that is connected: there they would be its end.
///
/// # Errors
/// What setsockopt(2) says.
pub fn forget(socket: impl AsFd, v6: bool) -> io::Result<()> {
    set(socket, v6, 0)
}

/// The next error, if there is one; the payload of its datagram, as far as it came back, goes to
/// the start of `buffer`.
///
/// # Errors
/// What recvmsg(2) says.
pub fn next(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<Option<QueuedError>> {
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: the structure is numbers, and zero is a valid family ("unspecified").
    let mut name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut control = [0_u64; 32];
    // SAFETY: every field of a msghdr is a number or a pointer, and zero is valid for each.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_name = (&raw mut name).cast();
    message.msg_namelen = socklen::<libc::sockaddr_storage>();
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    // C libraries differ in the types of lengths.
    message.msg_controllen = size_of_val(&control) as _;
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    let raw = socket.as_fd().as_raw_fd();
    // SAFETY: all that `message` points to is alive and of the lengths given.
    let read = unsafe { libc::recvmsg(raw, &raw mut message, flags) };
    let Ok(bytes) = usize::try_from(read) else {
        let error = io::Error::last_os_error();
        let none = error.kind() == io::ErrorKind::WouldBlock;
        return if none { Ok(None) } else { Err(error) };
    };
    let parts = address_of(&name).zip(extended(&message));
    Ok(parts.map(|(destination, error)| QueuedError {
        destination,
        errno: error.ee_errno.cast_signed(),
        is_icmp: error.ee_origin == ORIGIN_ICMP || error.ee_origin == ORIGIN_ICMP6,
        kind: error.ee_type,
        code: error.ee_code,
        mtu: error.ee_info,
        bytes,
    }))
}

/// The error among the control data of a message.
fn extended(message: &libc::msghdr) -> Option<libc::sock_extended_err> {
    // SAFETY: the kernel has set the length of the control data, which is alive.
    let mut next = unsafe { libc::CMSG_FIRSTHDR(message) };
    loop {
        // SAFETY: the pointer is null or to a whole header within the control data.
        let header = unsafe { next.as_ref() }?;
        let kind = (header.cmsg_level, header.cmsg_type);
        // SAFETY: this only adds up numbers.
        let whole = unsafe { libc::CMSG_LEN(socklen::<libc::sock_extended_err>()) };
        let is_error = kind == (libc::IPPROTO_IP, libc::IP_RECVERR)
            || kind == (libc::IPPROTO_IPV6, libc::IPV6_RECVERR);
        if is_error && header.cmsg_len >= whole as _ {
            // SAFETY: `next` is a header, which its data follows.
            let data = unsafe { libc::CMSG_DATA(next) };
            // SAFETY: data of this level and type is this structure, and all of it is there.
            return Some(unsafe { data.cast::<libc::sock_extended_err>().read_unaligned() });
        }
        // SAFETY: `next` is a header of the control data of `message`.
        next = unsafe { libc::CMSG_NXTHDR(message, next) };
    }
}

/// The address in what recvmsg(2) has stored.
fn address_of(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let start = std::ptr::from_ref(storage);
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that this is a sockaddr_in, and the storage is larger.
            let it = unsafe { start.cast::<libc::sockaddr_in>().read() };
            let address = IpAddr::from(it.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(address, u16::from_be(it.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that this is a sockaddr_in6, and the storage is larger.
            let it = unsafe { start.cast::<libc::sockaddr_in6>().read() };
            let address = Ipv6Addr::from(it.sin6_addr.s6_addr);
            Some(SocketAddr::new(address.into(), u16::from_be(it.sin6_port)))
        }
        _ => None,
    }
}

/// `SO_EE_ORIGIN_ICMP` and `SO_EE_ORIGIN_ICMP6` of linux/errqueue.h.
const ORIGIN_ICMP: u8 = 2;
const ORIGIN_ICMP6: u8 = 3;

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::poll::{self, PollFd, PollFlags};

    #[test]
    fn a_refused_datagram_comes_back_with_its_destination_and_payload() {
        let closed = UdpSocket::bind("127.0.0.1:0").and_then(|it| it.local_addr()).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        keep(&socket, false).unwrap();
        let mut buffer = [0; 64];
        assert_eq!(next(&socket, &mut buffer).unwrap(), None);
        socket.send_to(b"hello", closed).unwrap();
        poll::wait(&mut [PollFd::new(&socket, PollFlags::ERR)], None).unwrap();
        let error = next(&socket, &mut buffer).unwrap().unwrap();
        assert_eq!((error.destination, error.errno), (closed, libc::ECONNREFUSED));
        assert_eq!((error.is_icmp, error.kind, error.code), (true, 3, 3));
        assert_eq!(&buffer[..error.bytes], b"hello");
    }
}
