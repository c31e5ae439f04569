//! Which flow a packet belongs to.

use core::net::IpAddr;

use crate::packet::ParsedPacket;
use crate::parse_error::PacketParseError;
use crate::tcp;

/// The five-tuple of a packet, in its own direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FiveTuple {
    /// The sender.
    pub source: IpAddr,
    /// The receiver.
    pub destination: IpAddr,
    /// The transport protocol.
    pub protocol: u8,
    /// The sender's port; 0 for protocols without ports, and for fragments.
    pub source_port: u16,
    /// The receiver's port; 0 likewise.
    pub destination_port: u16,
}

impl FiveTuple {
    /// Reads the key of a frame.
    ///
    /// # Errors
    /// As [`ParsedPacket::parse`].
    pub fn parse(frame: &[u8]) -> Result<Self, PacketParseError> {
        Ok(Self::of(&ParsedPacket::parse(frame)?))
    }

    /// The key of a packet.
    #[must_use]
    pub fn of(packet: &ParsedPacket<'_>) -> Self {
        let (source_port, destination_port) = packet.ports().unwrap_or((0, 0));
        let info = &packet.info;
        Self {
            source: info.source,
            destination: info.final_destination,
            protocol: info.protocol,
            source_port,
            destination_port,
        }
    }

    /// The socket that sent a packet with this key: a five-tuple of TCP; of other protocols the
    /// sender's half, since one socket sends to many. `None` where there are no ports.
    #[must_use]
    pub fn socket(&self) -> Option<Self> {
        match self.protocol {
            _ if self.source_port == 0 => None,
            tcp::PROTOCOL => Some(*self),
            _ => Some(Self { destination: self.source, destination_port: 0, ..*self }),
        }
    }

    /// The key of the answers.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self {
            source: self.destination,
            destination: self.source,
            protocol: self.protocol,
            source_port: self.destination_port,
            destination_port: self.source_port,
        }
    }

    /// A well-mixed hash that is the same on every machine and in every version; it is not a
    /// defence against senders that look for collisions.
    #[must_use]
    pub fn hash64(&self) -> u64 {
        let ports = u64::from(self.source_port) << 16 | u64::from(self.destination_port);
        let mut hash = mix(u64::from(self.protocol) << 32 | ports);
        for address in [self.source, self.destination] {
            hash = match address {
                IpAddr::V4(v4) => mix(hash ^ u64::from(v4.to_bits())),
                IpAddr::V6(v6) => {
                    let [a, b, c, d, e, f, g, h, rest @ ..] = v6.octets();
                    let high = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
                    mix(mix(hash ^ high) ^ u64::from_be_bytes(rest))
                }
            };
        }
        hash
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood; 2014), after one step of its counter.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
