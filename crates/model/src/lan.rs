//! LANs: Ethernet segments that nodes and routers share.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr};

use serde::{Deserialize, Serialize};

use crate::id::Lane;

/// One Ethernet segment. Each attachment is a link between a node or router and the segment; what
/// comes to the segment by one leaves by another, or by all others (broadcast, multicast, unknown
/// addresses).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lan {
    /// Unique among nodes, routers and LANs.
    pub name: String,
    /// Its IPv4 subnet, unless IPv4 is off.
    pub v4: Option<Subnet>,
    /// Its IPv6 subnet, unless IPv6 is off.
    pub v6: Option<Subnet>,
    /// The lanes that leave it, one for each attachment, in the order of the links.
    pub attachments: Vec<Lane>,
}

impl Lan {
    /// The subnet of the version of `like`.
    #[must_use]
    pub fn subnet(&self, like: IpAddr) -> Option<Subnet> {
        if like.is_ipv4() { self.v4 } else { self.v6 }
    }

    /// Whether an address belongs to one of its subnets.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.subnet(address).is_some_and(|subnet| subnet.contains(address))
    }
}

/// The addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Subnet {
    /// The first of them.
    pub network: IpAddr,
    /// How many bits are the same: at most 30 for IPv4 and 126 for IPv6.
    pub prefix: u8,
}

impl Subnet {
    /// Whether it holds an address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differs = network.to_bits() ^ address.to_bits();
                differs.checked_shr(32 - u32::from(self.prefix)).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differs = network.to_bits() ^ address.to_bits();
                differs.checked_shr(128 - u32::from(self.prefix)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }

    /// The address that means all hosts of the subnet (RFC 919); IPv6 has none.
    #[must_use]
    pub fn broadcast(&self) -> Option<Ipv4Addr> {
        let IpAddr::V4(network) = self.network else { return None };
        let hosts = u32::MAX.checked_shr(u32::from(self.prefix)).unwrap_or(0);
        Some(Ipv4Addr::from_bits(network.to_bits() | hosts))
    }

    /// The lowest and the highest address that a host may have, as numbers: IPv4 keeps the first
    /// and the last back (RFC 919), IPv6 the first (RFC 4291, 2.6.1).
    #[must_use]
    pub fn hosts(&self) -> (u128, u128) {
        match self.network {
            IpAddr::V4(network) => {
                let first = u128::from(network.to_bits());
                (first + 1, first + (1 << (32 - u32::from(self.prefix))) - 2)
            }
            IpAddr::V6(network) => {
                let hosts = u128::MAX.checked_shr(u32::from(self.prefix)).unwrap_or(0);
                (network.to_bits() + 1, network.to_bits() | hosts)
            }
        }
    }

    /// Whether the two have an address in common.
    #[must_use]
    pub fn overlaps(&self, other: &Subnet) -> bool {
        self.contains(other.network) || other.contains(self.network)
    }
}

impl fmt::Display for Subnet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet(text: &str) -> Subnet {
        let (network, prefix) = text.split_once('/').expect("a prefix");
        Subnet {
            network: network.parse().expect("an address"),
            prefix: prefix.parse().expect("a number"),
        }
    }

    fn holds(text: &str, address: &str) -> bool {
        subnet(text).contains(address.parse().expect("an address"))
    }

    #[test]
    fn a_subnet_holds_what_begins_with_its_bits() {
        assert!(holds("10.0.255.0/24", "10.0.255.255"));
        assert!(!holds("10.0.255.0/24", "10.0.254.255"));
        assert!(holds("fd00::ffff:0:0:0/80", "fd00::ffff:0:0:1"));
        assert!(!holds("fd00::ffff:0:0:0/80", "fd00::1"));
        assert!(!holds("10.0.255.0/24", "fd00::1"));
    }

    #[test]
    fn the_edges_of_a_subnet_belong_to_no_host() {
        let office = subnet("10.0.255.0/24");
        assert_eq!(office.broadcast(), Some(Ipv4Addr::new(10, 0, 255, 255)));
        assert_eq!(office.hosts(), (0x0a00_ff01, 0x0a00_fffe));
        let six = subnet("fd00::/126");
        assert_eq!((six.broadcast(), six.hosts().1 - six.hosts().0), (None, 2));
    }

    #[test]
    fn subnets_overlap_when_one_holds_the_other() {
        assert!(subnet("10.0.0.0/8").overlaps(&subnet("10.0.255.0/24")));
        assert!(subnet("10.0.255.0/24").overlaps(&subnet("10.0.0.0/8")));
        assert!(!subnet("10.0.254.0/24").overlaps(&subnet("10.0.255.0/24")));
    }
}
