//! Network address translation of IPv4 (NAPT; RFC 3022, in the terms of RFC 4787).

use alloc::vec::Vec;
use core::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::timeouts::Timeouts;

/// What a NAT does. Its external addresses are those of the outside interfaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NatBehaviour {
    /// Which packets of an internal endpoint get the same external one.
    pub mapping: NatMappingBehaviour,
    /// Which packets from outside pass to what has a mapping.
    pub filtering: NatFilteringBehaviour,
    /// How external ports are chosen.
    pub allocation: PortAllocation,
    /// External ports that may be used; `None`: all, and those below 1024 for ports below 1024 only
    /// (RFC 4787, REQ-3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<PortRange>,
    /// How long mappings live.
    pub timeouts: Timeouts,
    /// Which packets keep them alive.
    pub refresh: NatRefreshBehaviour,
    /// Whether nodes inside reach each other by external endpoints.
    pub hairpin: bool,
    /// Ports of the external addresses that are for nodes inside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwards: Vec<ForwardedPort>,
}

impl NatBehaviour {
    /// The most forwarded ports.
    pub const FORWARDS_MAX: usize = 4096;

    /// A NAT of the classic types (RFC 3489, 5) with what holds where a file says no more.
    #[must_use]
    pub fn new(mapping: NatMappingBehaviour, filtering: NatFilteringBehaviour) -> NatBehaviour {
        let allocation = match mapping {
            NatMappingBehaviour::EndpointIndependent => PortAllocation::Preserve,
            NatMappingBehaviour::AddressAndPortDependent => PortAllocation::Random,
        };
        NatBehaviour {
            mapping,
            filtering,
            allocation,
            ports: None,
            timeouts: Timeouts::NAT,
            refresh: NatRefreshBehaviour::Both,
            hairpin: true,
            forwards: Vec::new(),
        }
    }

    /// Its classic type.
    #[must_use]
    pub const fn nat_type(&self) -> NatType {
        match (self.mapping, self.filtering) {
            (NatMappingBehaviour::AddressAndPortDependent, _) => NatType::Symmetric,
            (_, NatFilteringBehaviour::EndpointIndependent) => NatType::FullCone,
            (_, NatFilteringBehaviour::AddressDependent) => NatType::AddressRestricted,
            (_, NatFilteringBehaviour::AddressAndPortDependent) => NatType::PortRestricted,
        }
    }
}

/// The classic types of NATs (RFC 3489, 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NatType {
    FullCone,
    AddressRestricted,
    PortRestricted,
    Symmetric,
}

/// Which packets of an internal endpoint get the same external one (RFC 4787, 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NatMappingBehaviour {
    /// All.
    EndpointIndependent,
    /// Those to one remote endpoint.
    AddressAndPortDependent,
}

/// Which packets from outside pass to what has a mapping (RFC 4787, 5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NatFilteringBehaviour {
    /// All.
    EndpointIndependent,
    /// Those from an address to which the internal endpoint has sent.
    AddressDependent,
    /// Those from an endpoint to which it has.
    AddressAndPortDependent,
}

/// How an external port is chosen for a new mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PortAllocation {
    /// The internal port where it is free, else one at random.
    Preserve,
    /// The next free one after the last that was chosen.
    Sequential,
    /// One at random, by the seed.
    Random,
}

/// Which packets keep a mapping alive (RFC 4787, REQ-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NatRefreshBehaviour {
    /// Those from inside.
    Outbound,
    /// All that pass.
    Both,
}

/// Ports from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PortRange {
    /// From 1.
    pub first: u16,
    /// Not less than `first`.
    pub last: u16,
}

impl PortRange {
    /// The range that is written `first-last`, or as one port.
    #[must_use]
    pub fn of(text: &str) -> Option<PortRange> {
        crate::plan::written::ports(text).map(|(first, last)| PortRange { first, last })
    }

    /// Whether it holds a port.
    #[must_use]
    pub const fn contains(&self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

/// A transport of which endpoints are translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpTransport {
    /// RFC 9293.
    Tcp,
    /// RFC 768.
    Udp,
    /// Queries of ICMP, whose identifier is the port (RFC 5508).
    Icmp,
}

impl IpTransport {
    /// Its number in IPv4 headers.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            IpTransport::Tcp => 6,
            IpTransport::Udp => 17,
            IpTransport::Icmp => 1,
        }
    }

    /// That of a number in IPv4 headers.
    #[must_use]
    pub const fn of_number(number: u8) -> Option<IpTransport> {
        match number {
            6 => Some(IpTransport::Tcp),
            17 => Some(IpTransport::Udp),
            1 => Some(IpTransport::Icmp),
            _ => None,
        }
    }

    /// The word for it in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            IpTransport::Tcp => "tcp",
            IpTransport::Udp => "udp",
            IpTransport::Icmp => "icmp",
        }
    }
}

/// A port of the external addresses that is for a node inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ForwardedPort {
    /// TCP or UDP.
    pub transport: IpTransport,
    /// From 1.
    pub port: u16,
    /// The address inside.
    pub to: Ipv4Addr,
    /// Its port.
    pub to_port: u16,
}
