//! Addresses of sockets, as records have them.

use core::ffi::{c_int, c_void};

use crate::c;
use crate::sockets::SocketTuple;

/// An end of a socket.
#[derive(Debug, Clone, Copy, Default)]
pub struct SocketEnd {
    /// IPv4 is mapped into IPv6.
    pub address: [u8; 16],
    pub port: u16,
}

/// Both ends of a socket, and whether it has a peer.
pub fn tuple(fd: c_int, protocol: u8) -> (SocketTuple, bool) {
    let SocketEnd { address: from, port: from_port } = own(fd).unwrap_or_default();
    let peer = c::name(fd, true).and_then(|name| parse(&name.bytes, name.length));
    let SocketEnd { address: to, port: to_port } = peer.unwrap_or_default();
    (SocketTuple { protocol, from, from_port, to, to_port }, peer.is_some())
}

/// The socket's own end.
pub fn own(fd: c_int) -> Option<SocketEnd> {
    c::name(fd, false).and_then(|name| parse(&name.bytes, name.length))
}

/// The family of a program's `struct sockaddr`.
///
/// # Safety
/// `length` bytes are readable.
pub unsafe fn family(name: *const c_void, length: u32) -> Option<u16> {
    if name.is_null() || length < 2 {
        return None;
    }
    // SAFETY: two bytes are there.
    Some(unsafe { name.cast::<u16>().read_unaligned() })
}

/// The end that a program's `struct sockaddr` names; `None`: it is of another family.
///
/// # Safety
/// `length` bytes are readable.
pub unsafe fn read(name: *const c_void, length: u32) -> Option<SocketEnd> {
    if name.is_null() {
        return None;
    }
    let count = (length as usize).min(NAME_BYTES);
    let mut bytes = [0; NAME_BYTES];
    for (at, byte) in bytes.iter_mut().enumerate().take(count) {
        // SAFETY: within the length.
        *byte = unsafe { name.cast::<u8>().add(at).read() };
    }
    parse(&bytes, length)
}

fn parse(bytes: &[u8], length: u32) -> Option<SocketEnd> {
    let port = u16::from_be_bytes([bytes[2], bytes[3]]);
    let mut address = [0; 16];
    match u16::from_ne_bytes([bytes[0], bytes[1]]) {
        c::AF_INET if length >= 8 => {
            address[10] = 0xff;
            address[11] = 0xff;
            address[12..].copy_from_slice(&bytes[4..8]);
        }
        c::AF_INET6 if length >= 24 => address.copy_from_slice(&bytes[8..24]),
        _ => return None,
    }
    Some(SocketEnd { address, port })
}

/// `struct sockaddr_in6`, the longest that is read.
const NAME_BYTES: usize = 28;
