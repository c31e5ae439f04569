//! TCP headers (RFC 9293).

use crate::bytes;
use crate::parse_error::PacketParseError;

/// Protocol number.
pub const PROTOCOL: u8 = 6;
/// Bytes of a header without options.
pub const HEADER_LEN: usize = 20;
/// Flag: the sender is finished.
pub const FIN: u8 = 0x01;
/// Flag: a connection opens.
pub const SYN: u8 = 0x02;
/// Flag: a connection is torn.
pub const RST: u8 = 0x04;
/// Flag: hand the data to the program now.
pub const PSH: u8 = 0x08;
/// Flag: the acknowledgement number counts.
pub const ACK: u8 = 0x10;
/// Flag: congestion was experienced (RFC 3168).
pub const ECE: u8 = 0x40;
/// Flag: the congestion window was reduced (RFC 3168).
pub const CWR: u8 = 0x80;

pub(crate) const SEQUENCE: usize = 4;
pub(crate) const FLAGS: usize = 13;
/// Offset of the checksum in the header.
pub const CHECKSUM: usize = 16;

/// A TCP segment whose data offset has been checked.
#[derive(Debug, Clone, Copy)]
pub struct TcpSegment<'a> {
    fixed: &'a [u8; HEADER_LEN],
    options: &'a [u8],
    payload: &'a [u8],
}

impl<'a> TcpSegment<'a> {
    /// Looks at the payload of an IP packet.
    ///
    /// # Errors
    /// Too few bytes, or a data offset that contradicts them.
    pub fn parse(segment: &'a [u8]) -> Result<Self, PacketParseError> {
        let fixed = segment.first_chunk::<HEADER_LEN>().ok_or(PacketParseError::Truncated)?;
        let header_len = usize::from(fixed[12] >> 4) * 4;
        let options = segment.get(HEADER_LEN..header_len).ok_or(PacketParseError::HeaderLength)?;
        let payload = segment.get(header_len..).ok_or(PacketParseError::HeaderLength)?;
        Ok(Self { fixed, options, payload })
    }

    /// The sender's port.
    #[must_use]
    pub fn source_port(&self) -> u16 {
        self.u16(0)
    }

    /// The receiver's port.
    #[must_use]
    pub fn destination_port(&self) -> u16 {
        self.u16(2)
    }

    /// The sequence number of the first payload byte.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        bytes::u32_at(self.fixed, SEQUENCE).unwrap_or(0)
    }

    /// The next sequence number expected from the other side.
    #[must_use]
    pub fn acknowledgement(&self) -> u32 {
        bytes::u32_at(self.fixed, 8).unwrap_or(0)
    }

    /// Bytes of the header, options included: 20 to 60.
    #[must_use]
    pub fn header_len(&self) -> usize {
        HEADER_LEN + self.options.len()
    }

    /// The eight flags.
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.fixed[FLAGS]
    }

    /// The window field, unscaled.
    #[must_use]
    pub fn window(&self) -> u16 {
        self.u16(14)
    }

    /// The checksum as it stands, perhaps partial.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        self.u16(CHECKSUM)
    }

    /// The option bytes, possibly none.
    #[must_use]
    pub fn options(&self) -> &'a [u8] {
        self.options
    }

    /// The data.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    fn u16(&self, at: usize) -> u16 {
        bytes::u16_at(self.fixed, at).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: [u8; 26] = [
        0x1f, 0x90, 0x00, 0x50, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x01, 0x00, 0x60, 0x98, 0x20,
        0x00, 0xbe, 0xef, 0x00, 0x00, 1, 1, 1, 0, b'h', b'i',
    ];

    #[test]
    fn the_fields_of_a_literal_segment_are_read() {
        let view = TcpSegment::parse(&SEGMENT).unwrap();
        assert_eq!((view.source_port(), view.destination_port()), (8080, 80));
        assert_eq!((view.sequence(), view.acknowledgement()), (7, 256));
        assert_eq!((view.header_len(), view.flags()), (24, CWR | ACK | PSH));
        assert_eq!((view.window(), view.checksum()), (0x2000, 0xbeef));
        assert_eq!((view.options(), view.payload()), (&[1, 1, 1, 0][..], &b"hi"[..]));
    }

    #[test]
    fn a_contradictory_data_offset_is_refused() {
        let mut segment = SEGMENT;
        segment[12] = 0x40;
        assert_eq!(TcpSegment::parse(&segment).unwrap_err(), PacketParseError::HeaderLength);
        segment[12] = 0x70;
        assert_eq!(TcpSegment::parse(&segment).unwrap_err(), PacketParseError::HeaderLength);
        assert_eq!(TcpSegment::parse(&segment[..19]).unwrap_err(), PacketParseError::Truncated);
    }
}
