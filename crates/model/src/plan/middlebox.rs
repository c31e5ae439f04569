//! Middleboxes (RFC 3234): routers that translate addresses or filter packets.

mod firewall;
mod nat;
mod side;
mod timeouts;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::router::RouterInterface;
use crate::id::{LinkId, RouterId};

pub use firewall::{Firewall, FirewallPolicy, FirewallRule, RuleEnd, TrafficSelector};
pub use nat::{
    ForwardedPort, IpTransport, NatBehaviour, NatFilteringBehaviour, NatMappingBehaviour,
    NatRefreshBehaviour, NatType, PortAllocation, PortRange,
};
pub use side::MiddleboxSide;
pub use timeouts::Timeouts;

/// What a router does beside forwarding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Middlebox {
    /// The router; each is there once at the most, in order.
    pub router: RouterId,
    /// The side of each interface of the router; both sides are there.
    pub sides: Vec<MiddleboxSide>,
    /// What is translated of IPv4 packets between the sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nat: Option<NatBehaviour>,
    /// Which packets pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firewall: Option<Firewall>,
}

impl Middlebox {
    /// Positions of the interfaces inside.
    pub fn inside(&self) -> impl Iterator<Item = usize> + '_ {
        let inside =
            self.sides.iter().enumerate().filter(|(_, side)| **side == MiddleboxSide::Inside);
        inside.map(|(position, _)| position)
    }

    /// The side of the interface on a link; `None` if the router is not there.
    #[must_use]
    pub fn side_of(&self, interfaces: &[RouterInterface], link: LinkId) -> Option<MiddleboxSide> {
        let position = interfaces.iter().position(|interface| interface.link == link)?;
        self.sides.get(position).copied()
    }
}
