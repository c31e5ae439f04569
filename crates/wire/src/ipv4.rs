//! IPv4 headers (RFC 791).

use core::net::Ipv4Addr;

use crate::checksum::sum::checksum;
use crate::ecn::codepoint::EcnCodepoint;
use crate::parse_error::PacketParseError;
use crate::{bytes, ethernet};

/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;
/// Offset of the header checksum in the header.
pub(crate) const CHECKSUM: usize = 10;

/// An IPv4 packet whose header and total length have been checked against the bytes present.
#[derive(Debug, Clone, Copy)]
pub struct Ipv4Packet<'a> {
    fixed: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> Ipv4Packet<'a> {
    /// Looks at the bytes after the Ethernet header; what follows the total length is padding.
    ///
    /// # Errors
    /// Too few bytes, another version, or a length field that contradicts them.
    #[inline]
    pub fn parse(packet: &'a [u8]) -> Result<Self, PacketParseError> {
        let fixed = packet.first_chunk::<HEADER_LEN>().ok_or(PacketParseError::Truncated)?;
        if fixed[0] >> 4 != 4 {
            return Err(PacketParseError::Version);
        }
        let header_len = usize::from(fixed[0] & 0x0f) * 4;
        let total_len = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
        if header_len < HEADER_LEN || header_len > total_len {
            return Err(PacketParseError::HeaderLength);
        }
        let packet = packet.get(..total_len).ok_or(PacketParseError::TotalLength)?;
        let options = packet.get(HEADER_LEN..header_len).ok_or(PacketParseError::HeaderLength)?;
        let payload = packet.get(header_len..).ok_or(PacketParseError::HeaderLength)?;
        Ok(Self { fixed, options, payload })
    }

    /// Bytes of the header, options included: 20 to 60.
    #[must_use]
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.options.len()
    }

    /// Bytes of the packet, header included.
    #[must_use]
    pub fn total_len(&self) -> u16 {
        self.u16(2)
    }

    /// The congestion codepoint (RFC 3168).
    #[must_use]
    pub fn ecn(&self) -> EcnCodepoint {
        EcnCodepoint::from_bits(self.fixed[1])
    }

    /// The type-of-service byte: DSCP and ECN.
    #[must_use]
    pub fn tos(&self) -> u8 {
        self.fixed[1]
    }

    /// The identification that fragments share.
    #[must_use]
    pub fn identification(&self) -> u16 {
        self.u16(4)
    }

    /// Whether routers may not fragment it.
    #[must_use]
    pub fn dont_fragment(&self) -> bool {
        self.fixed[6] & 0x40 != 0
    }

    /// Whether more fragments follow.
    #[must_use]
    pub fn more_fragments(&self) -> bool {
        self.fixed[6] & 0x20 != 0
    }

    /// Where this fragment's payload begins in the original, in bytes.
    #[must_use]
    pub fn fragment_offset(&self) -> u32 {
        u32::from(self.u16(6) & 0x1fff) * 8
    }

    /// Hops left.
    #[must_use]
    pub fn ttl(&self) -> u8 {
        self.fixed[8]
    }

    /// The protocol number of the payload.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        self.fixed[9]
    }

    /// The header checksum as it stands.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        self.u16(CHECKSUM)
    }

    /// The sender.
    #[must_use]
    pub fn source(&self) -> Ipv4Addr {
        let [.., a, b, c, d, _, _, _, _] = *self.fixed;
        Ipv4Addr::new(a, b, c, d)
    }

    /// The receiver.
    #[must_use]
    pub fn destination(&self) -> Ipv4Addr {
        let [.., a, b, c, d] = *self.fixed;
        Ipv4Addr::new(a, b, c, d)
    }

    /// The option bytes, possibly none.
    #[must_use]
    pub fn options(&self) -> &'a [u8] {
        self.options
    }

    /// The payload up to the total length.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    fn u16(&self, at: usize) -> u16 {
        bytes::u16_at(self.fixed, at).unwrap_or(0)
    }
}

/// Recomputes the header checksum of a frame; `None`: the frame is too short.
pub fn set_checksum(frame: &mut [u8]) -> Option<()> {
    let length = usize::from(bytes::u8_at(frame, ethernet::HEADER_LEN)? & 0x0f) * 4;
    let header = frame.get_mut(ethernet::HEADER_LEN..ethernet::HEADER_LEN + length)?;
    bytes::put_u16(header, CHECKSUM, 0)?;
    let value = checksum(header);
    bytes::put_u16(header, CHECKSUM, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    // 10.0.0.1 to 10.0.0.2, UDP, DF, ECT(0), three no-operation options, a byte of padding.
    const PACKET: [u8; 26] = [
        0x46, 0x02, 0x00, 0x19, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11, 0xab, 0xcd, 10, 0, 0, 1, 10, 0,
        0, 2, 1, 1, 1, 0, b'x', 0,
    ];

    #[test]
    fn the_fields_of_a_literal_packet_are_read() {
        let view = Ipv4Packet::parse(&PACKET).unwrap();
        assert_eq!((view.header_len(), view.total_len(), view.tos()), (24, 25, 2));
        assert_eq!(view.ecn(), EcnCodepoint::Ect0);
        assert_eq!((view.identification(), view.checksum()), (0x1234, 0xabcd));
        assert!(view.dont_fragment() && !view.more_fragments());
        assert_eq!(view.fragment_offset(), 0);
        assert_eq!((view.ttl(), view.protocol()), (64, 17));
        assert_eq!(view.source(), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(view.destination(), Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!(view.options(), [1, 1, 1, 0]);
        assert_eq!(view.payload(), b"x");
    }

    #[test]
    fn contradictory_lengths_are_refused() {
        let with = |at: usize, value: u8| {
            let mut packet = PACKET;
            packet[at] = value;
            Ipv4Packet::parse(&packet).unwrap_err()
        };
        assert_eq!(with(0, 0x66), PacketParseError::Version);
        assert_eq!(with(0, 0x44), PacketParseError::HeaderLength);
        assert_eq!(with(0, 0x4f), PacketParseError::HeaderLength);
        assert_eq!(with(3, 27), PacketParseError::TotalLength);
        assert_eq!(Ipv4Packet::parse(&PACKET[..19]).unwrap_err(), PacketParseError::Truncated);
    }
}
