//! Why bytes are no packet.

use core::fmt;

/// Why bytes are not a packet that we can look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketParseError {
    /// Fewer bytes than the header needs.
    Truncated,
    /// The EtherType given is not that of IPv4 or IPv6.
    NotIp(u16),
    /// The IP version field contradicts the EtherType.
    Version,
    /// A header length contradicts the bytes present.
    HeaderLength,
    /// A total length contradicts the bytes present.
    TotalLength,
}

impl fmt::Display for PacketParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("packet is shorter than its header"),
            Self::NotIp(kind) => write!(f, "frame of ethertype {kind:#06x} holds no ip packet"),
            Self::Version => f.write_str("ip version contradicts the ethertype"),
            Self::HeaderLength => f.write_str("header length contradicts the packet"),
            Self::TotalLength => f.write_str("total length contradicts the packet"),
        }
    }
}

impl core::error::Error for PacketParseError {}
