//! A firewall: rules in an order, and what holds where none fits.

use alloc::vec::Vec;
use core::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::nat::{IpTransport, PortRange};
use super::side::MiddleboxSide;
use super::timeouts::Timeouts;
use crate::lan::Subnet;

/// Which packets a router passes on. Those between interfaces of one side pass unless a rule says
/// otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firewall {
    /// What holds from outside to inside where no rule fits.
    pub inbound: FirewallPolicy,
    /// What holds from inside to outside where no rule fits.
    pub outbound: FirewallPolicy,
    /// Whether the answers to what has passed do, and what belongs to it.
    pub stateful: bool,
    /// How long it is known that something has passed.
    pub timeouts: Timeouts,
    /// The first that fits holds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<FirewallRule>,
}

impl Firewall {
    /// The most rules.
    pub const RULES_MAX: usize = 4096;
}

impl Default for Firewall {
    fn default() -> Self {
        Firewall {
            inbound: FirewallPolicy::Deny,
            outbound: FirewallPolicy::Allow,
            stateful: true,
            timeouts: Timeouts::NAT,
            rules: Vec::new(),
        }
    }
}

/// What is done with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirewallPolicy {
    /// It passes.
    Allow,
    /// It is dropped.
    Deny,
    /// It is dropped, and its sender gets an ICMP message: administratively prohibited.
    Reject,
}

impl FirewallPolicy {
    /// The word for it in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FirewallPolicy::Allow => "allow",
            FirewallPolicy::Deny => "deny",
            FirewallPolicy::Reject => "reject",
        }
    }
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallRule {
    /// What holds for what fits.
    pub policy: FirewallPolicy,
    /// One of these; at least one is there.
    pub traffic: Vec<TrafficSelector>,
    /// Where it comes from.
    pub from: RuleEnd,
    /// Where it goes.
    pub to: RuleEnd,
}

/// Packets of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TrafficSelector {
    /// `None`: any.
    pub transport: Option<IpTransport>,
    /// Destination ports; `None`: any.
    pub ports: Option<PortRange>,
}

impl TrafficSelector {
    /// Any.
    pub const ANY: TrafficSelector = TrafficSelector { transport: None, ports: None };
}

/// Where packets come from or go; what is empty fits everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RuleEnd {
    /// Sides of the middlebox; one of these or of the subnets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sides: Vec<MiddleboxSide>,
    /// Subnets; single addresses have all bits in their prefix.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subnets: Vec<Subnet>,
}

impl RuleEnd {
    /// Whether it fits an address on a side.
    #[must_use]
    pub fn fits(&self, side: MiddleboxSide, address: IpAddr) -> bool {
        let is_any = self.sides.is_empty() && self.subnets.is_empty();
        is_any
            || self.sides.contains(&side)
            || self.subnets.iter().any(|subnet| subnet.contains(address))
    }
}
