//! The addresses of this machine's network interfaces: getifaddrs(3).

use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr;

/// An address of an interface that is up and has a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterfaceAddress {
    pub interface: String,
    pub address: IpAddr,
}

/// Addresses of all interfaces that are up and running and lead to others, in the system's order.
///
/// # Errors
/// What getifaddrs(3) says.
pub fn addresses() -> io::Result<Vec<InterfaceAddress>> {
    let mut first = ptr::null_mut();
    // SAFETY: `first` is a place for the list's beginning.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    let mut next = first;
    while !next.is_null() {
        // SAFETY: a pointer of the list that is not null is to an entry, which lives until
        // `freeifaddrs`.
        let entry = unsafe { &*next };
        found.extend(address_of(entry));
        next = entry.ifa_next;
    }
    // SAFETY: the list is of `getifaddrs`, and nothing of it is used any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

fn address_of(entry: &libc::ifaddrs) -> Option<InterfaceAddress> {
    let has = |flag: libc::c_int| entry.ifa_flags & flag.unsigned_abs() != 0;
    if entry.ifa_addr.is_null()
        || has(libc::IFF_LOOPBACK)
        || !has(libc::IFF_UP)
        || !has(libc::IFF_RUNNING)
    {
        return None;
    }
    // SAFETY: an address that is not null has at least a family.
    let family = unsafe { (*entry.ifa_addr).sa_family };
    let address = match libc::c_int::from(family) {
        libc::AF_INET => {
            // SAFETY: the family says that it is a `sockaddr_in`; it is copied from wherever it
            // lies.
            let v4 = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned() };
            IpAddr::V4(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)))
        }
        libc::AF_INET6 => {
            // SAFETY: the family says that it is a `sockaddr_in6`; it is copied from wherever it
            // lies.
            let v6 = unsafe { entry.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned() };
            IpAddr::V6(Ipv6Addr::from(v6.sin6_addr.s6_addr))
        }
        _ => return None,
    };
    // SAFETY: names of interfaces end with a zero.
    let interface = unsafe { CStr::from_ptr(entry.ifa_name) };
    Some(InterfaceAddress { interface: interface.to_string_lossy().into_owned(), address })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_not_a_way_to_other_machines() {
        let all = addresses().unwrap();
        assert!(all.iter().all(|it| !it.address.is_loopback() && it.interface != "lo"), "{all:?}");
    }
}
