//! ICMP echo without privilege: the kernel's ping sockets. They are open to the groups of the
//! sysctl `net.ipv4.ping_group_range` (for both families), per network namespace. Source:
//! icmp(7), RFC 792, RFC 4443 section 4.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with,
};

use crate::ffi::{set_option, socklen};

/// The IP version of a [`PingSocket`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PingFamily {
    /// ICMP over IPv4.
    V4,
    /// ICMPv6.
    V6,
}

/// A nonblocking socket that sends echo requests and gets their replies only.
#[derive(Debug)]
pub struct PingSocket {
    descriptor: OwnedFd,
    family: PingFamily,
}

/// An echo reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PingReply {
    /// The address that replied.
    pub from: IpAddr,
    /// The sequence number of the request.
    pub sequence: u16,
    /// How many bytes of payload were stored in the caller's buffer.
    pub bytes: usize,
    /// When the kernel took the reply in, in nanoseconds of `CLOCK_REALTIME`, if it said so.
    pub arrival_ns: Option<u64>,
}

impl PingSocket {
    /// Opens a ping socket.
    ///
    /// # Errors
    /// `EACCES` when the caller's group is not in the range.
    pub fn open(family: PingFamily) -> io::Result<PingSocket> {
        let (domain, protocol) = match family {
            PingFamily::V4 => (AddressFamily::INET, ipproto::ICMP),
            PingFamily::V6 => (AddressFamily::INET6, ipproto::ICMPV6),
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let descriptor = socket_with(domain, SocketType::DGRAM, flags, Some(protocol))?;
        let on: libc::c_int = 1;
        set_option(&descriptor, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)?;
        Ok(PingSocket { descriptor, family })
    }

    /// Sends an echo request with up to [`PAYLOAD_MAX`] bytes of payload. The kernel fills in
    /// identifier and checksum.
    ///
    /// # Errors
    /// `EAFNOSUPPORT` for an address of the other family, `EMSGSIZE` for a longer payload,
    /// `ENETUNREACH` without a route, `EAGAIN` on a full send buffer.
    pub fn send(&self, to: IpAddr, sequence: u16, payload: &[u8]) -> io::Result<()> {
        let kind = match (self.family, to) {
            (PingFamily::V4, IpAddr::V4(_)) => 8,
            (PingFamily::V6, IpAddr::V6(_)) => 128,
            _ => return Err(io::Error::from_raw_os_error(libc::EAFNOSUPPORT)),
        };
        if payload.len() > PAYLOAD_MAX {
            return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
        }
        let mut message = vec![0; HEADER_BYTES];
        message[0] = kind;
        message[6..8].copy_from_slice(&sequence.to_be_bytes());
        message.extend(payload);
        let to = SocketAddr::new(to, 0);
        sendto(&self.descriptor, &message, SendFlags::empty(), &to)?;
        Ok(())
    }

    /// The next echo reply, if one has come; its payload goes to the start of `buffer` (what is
    /// longer is cut).
    ///
    /// # Errors
    /// What recvmsg(2) says; `EINVAL` for a reply without a header, which the kernel never gives.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<PingReply>> {
        let mut header = [0; HEADER_BYTES];
        let Some((length, from, arrival_ns)) = self.receive_parts(&mut header, buffer)? else {
            return Ok(None);
        };
        let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
        let bytes = length.checked_sub(HEADER_BYTES).ok_or_else(invalid)?;
        let from = from.ok_or_else(invalid)?;
        let sequence = u16::from_be_bytes([header[6], header[7]]);
        Ok(Some(PingReply { from, sequence, bytes, arrival_ns }))
    }

    /// One recvmsg(2): the length, the sender and the kernel's arrival time.
    #[expect(clippy::type_complexity, reason = "private, and destructured at its only call")]
    fn receive_parts(
        &self,
        header: &mut [u8; HEADER_BYTES],
        payload: &mut [u8],
    ) -> io::Result<Option<(usize, Option<IpAddr>, Option<u64>)>> {
        let mut pieces = [
            libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: header.len() },
            libc::iovec { iov_base: payload.as_mut_ptr().cast(), iov_len: payload.len() },
        ];
        // SAFETY: the structure is numbers, and zero is a valid family ("unspecified").
        let mut from: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut control = [0_u64; 16];
        // SAFETY: every field of a msghdr is a number or a pointer, and zero is valid for each.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = (&raw mut from).cast();
        message.msg_namelen = socklen::<libc::sockaddr_storage>();
        message.msg_iov = pieces.as_mut_ptr();
        // C libraries differ in the types of lengths.
        message.msg_iovlen = pieces.len() as _;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: all that `message` points to is alive and of the lengths given.
        let read = unsafe { libc::recvmsg(self.descriptor.as_raw_fd(), &raw mut message, 0) };
        let Ok(length) = usize::try_from(read) else {
            let error = io::Error::last_os_error();
            let none = error.kind() == io::ErrorKind::WouldBlock;
            return if none { Ok(None) } else { Err(error) };
        };
        Ok(Some((length, address_of(&from), arrival_of(&message))))
    }
}

impl AsFd for PingSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// The address in what recvmsg(2) has stored.
fn address_of(storage: &libc::sockaddr_storage) -> Option<IpAddr> {
    let start = std::ptr::from_ref(storage);
    match i32::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that this is a sockaddr_in, and the storage is larger.
            let address = unsafe { start.cast::<libc::sockaddr_in>().read() };
            Some(Ipv4Addr::from(address.sin_addr.s_addr.to_ne_bytes()).into())
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that this is a sockaddr_in6, and the storage is larger.
            let address = unsafe { start.cast::<libc::sockaddr_in6>().read() };
            Some(Ipv6Addr::from(address.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

/// The timestamp among a received message's control data.
fn arrival_of(message: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel has set the length of the control data, which is alive.
    let first = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: the pointer is null or to a whole header within the control data.
    let header = unsafe { first.as_ref() }?;
    if (header.cmsg_level, header.cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return None;
    }
    // SAFETY: this only adds up numbers.
    let whole = unsafe { libc::CMSG_LEN(TIMESPEC_BYTES) };
    // Cut short, or not the kernel's: what follows the header is something else, or nothing.
    if header.cmsg_len < whole as _ {
        return None;
    }
    // SAFETY: `first` is a header, which its data follows.
    let data = unsafe { libc::CMSG_DATA(first) };
    // SAFETY: data of this level and type is a timespec, perhaps not aligned, and all of it is
    // there.
    let time = unsafe { data.cast::<libc::timespec>().read_unaligned() };
    let (tv_sec, tv_nsec) = (time.tv_sec, time.tv_nsec);
    Some(crate::ffi::nanoseconds(rustix::time::Timespec { tv_sec, tv_nsec }))
}

/// The longest payload of a request: that of an IPv4 packet without options. What is longer than the
/// MTU is cut into fragments.
pub const PAYLOAD_MAX: usize = 65_535 - 20 - HEADER_BYTES;

/// Type, code, checksum, identifier, sequence.
const HEADER_BYTES: usize = 8;

/// What follows the header of a timestamp.
const TIMESPEC_BYTES: libc::c_uint = socklen::<libc::timespec>();

#[cfg(test)]
mod tests {
    use super::*;

    /// The arrival in control data of a timestamp, whose header says that it is so long.
    fn arrival(length: libc::c_uint) -> Option<u64> {
        let mut control = [0_u64; 4];
        // SAFETY: every field of a msghdr is a number or a pointer, and zero is valid for each.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the control data is alive, aligned, and longer than a header.
        let first = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        // SAFETY: zero is valid for each of the header's fields.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        (header.cmsg_level, header.cmsg_type) = (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
        header.cmsg_len = length as _;
        // SAFETY: `first` is to a whole header within `control`.
        unsafe { first.write(header) };
        // SAFETY: the data of a header follows it, within `control`.
        let data = unsafe { libc::CMSG_DATA(first) };
        let time = libc::timespec { tv_sec: 7, tv_nsec: 9 };
        // SAFETY: `control` has room for a header and a timespec.
        unsafe { data.cast::<libc::timespec>().write_unaligned(time) };
        arrival_of(&message)
    }

    #[test]
    fn a_timestamp_is_read_only_when_all_of_it_is_there() {
        // SAFETY: this only adds up numbers.
        let whole = unsafe { libc::CMSG_LEN(TIMESPEC_BYTES) };
        assert_eq!(arrival(whole), Some(7_000_000_009));
        assert_eq!(arrival(whole - 1), None);
        assert_eq!(arrival(0), None);
    }
}
