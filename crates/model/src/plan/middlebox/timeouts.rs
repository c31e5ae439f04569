//! How long a middlebox knows a flow without packets.

use serde::{Deserialize, Serialize};

use crate::time::Span;

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
