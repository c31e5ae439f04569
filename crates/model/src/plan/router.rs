//! Routers and their interfaces.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use crate::id::{LinkDirection, LinkId};

/// The Ethernet address that packets from routers come from on links outside LANs.
pub const ROUTER_MAC: [u8; 6] = [0x02, 0x77, 0x74, 0xff, 0xff, 0xff];

/// A router inside the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Router {
    /// Unique name.
    pub name: String,
    /// One per link, in the order of the links in the file.
    pub interfaces: Vec<RouterInterface>,
}

/// One end of a link at a router: the address that its ICMP messages come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterInterface {
    /// The link it is on.
    pub link: LinkId,
    /// The direction in which its packets leave.
    pub outward: LinkDirection,
    /// IPv4 address, unless IPv4 is off.
    pub v4: Option<Ipv4Addr>,
    /// IPv6 address, unless IPv6 is off.
    pub v6: Option<Ipv6Addr>,
}

impl RouterInterface {
    /// Its Ethernet address on a LAN: locally administered, unique in the plan, the same in every
    /// run.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        let [_, b, c, d] = self.link.0.to_be_bytes();
        [0x02, 0x77, 0x75, b, c, d]
    }
}
