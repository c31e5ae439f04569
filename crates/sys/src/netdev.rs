//! Names and indices of the network devices of the current network namespace.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

/// The index of the device called `name`.
///
/// # Errors
/// `ENODEV` when there is none.
pub fn index_of(name: &str) -> io::Result<u32> {
    Ok(netdevice::name_to_index(&any_socket()?, name)?)
}

/// The name of the device with this index.
///
/// # Errors
/// `ENODEV` when there is none.
pub fn name_of(index: u32) -> io::Result<String> {
    Ok(netdevice::index_to_name(&any_socket()?, index)?)
}

/// The requests need some socket, of whatever kind, to know the network namespace.
fn any_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?)
}
