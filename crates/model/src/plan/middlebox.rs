//! Middleboxes (RFC 3234): routers that translate addresses or filter packets.

mod firewall;
mod nat;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::{Plan, RouterInterface};
use crate::id::{Lane, LinkId, NetworkVertex, RouterId};
use crate::time::Span;

pub use firewall::{Firewall, FirewallPolicy, FirewallRule, RuleEnd, TrafficSelector};
pub use nat::{
    ForwardedPort, IpTransport, NatBehaviour, NatFilteringBehaviour, NatMappingBehaviour,
    NatRefreshBehaviour, NatType, PortAllocation, PortRange,
};

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

/// A side of a middlebox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MiddleboxSide {
    /// What is protected, or has addresses that mean nothing elsewhere.
    Inside,
    /// The other one.
    Outside,
}

/// How long a flow without packets is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// UDP.
    pub udp: Span,
    /// TCP, once the connection is established and as long as no end has closed it.
    pub tcp: Span,
    /// TCP before and after that.
    pub tcp_transitory: Span,
    /// ICMP queries.
    pub icmp: Span,
}

impl Timeouts {
    /// Of a NAT (RFC 4787, REQ-5; RFC 5382, REQ-5; RFC 5508, REQ-2).
    pub const NAT: Timeouts = Timeouts {
        udp: Span::from_secs(5 * 60),
        tcp: Span::from_secs(2 * 3600 + 4 * 60),
        tcp_transitory: Span::from_secs(4 * 60),
        icmp: Span::from_secs(60),
    };
    /// The shortest of each.
    pub const LEAST: Span = Span::from_millis(1);
    /// The longest of each.
    pub const MOST: Span = Span::from_secs(24 * 3600);

    /// All four.
    pub fn all(&self) -> impl Iterator<Item = Span> + use<> {
        [self.udp, self.tcp, self.tcp_transitory, self.icmp].into_iter()
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts::NAT
    }
}

impl MiddleboxSide {
    /// The word for it in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MiddleboxSide::Inside => "inside",
            MiddleboxSide::Outside => "outside",
        }
    }
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

impl Plan {
    /// What a router does beside forwarding, if it does.
    #[must_use]
    pub fn middlebox(&self, router: RouterId) -> Option<&Middlebox> {
        let at = self.middleboxes.binary_search_by_key(&router, |it| it.router).ok()?;
        self.middleboxes.get(at)
    }

    /// The first router whose NAT a way of vertices crosses from one side to the other.
    #[must_use]
    pub fn nat_across(&self, path: &[NetworkVertex]) -> Option<RouterId> {
        path.windows(3).find_map(|way| {
            let NetworkVertex::Router(router) = way[1] else { return None };
            let middlebox = self.middlebox(router).filter(|it| it.nat.is_some())?;
            let side = |other: NetworkVertex| self.side_towards(middlebox, other);
            (side(way[0])? != side(way[2])?).then_some(router)
        })
    }

    fn side_towards(
        &self,
        middlebox: &Middlebox,
        neighbour: NetworkVertex,
    ) -> Option<MiddleboxSide> {
        let interfaces = &self.routers[middlebox.router.index()].interfaces;
        let leads = |interface: &&RouterInterface| {
            let lane = Lane { link: interface.link, direction: interface.outward };
            self.lane_end(lane) == neighbour
        };
        let interface = interfaces.iter().find(leads)?;
        middlebox.side_of(interfaces, interface.link)
    }
}
