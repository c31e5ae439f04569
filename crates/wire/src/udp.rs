//! UDP headers (RFC 768).

use crate::parse_error::PacketParseError;

/// Protocol number.
pub const PROTOCOL: u8 = 17;
/// Bytes of the header.
pub const HEADER_LEN: usize = 8;

pub(crate) const LENGTH: usize = 4;
pub(crate) const CHECKSUM: usize = 6;

/// A UDP datagram whose length field has been checked.
#[derive(Debug, Clone, Copy)]
pub struct UdpDatagram<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> UdpDatagram<'a> {
    /// Looks at the payload of an IP packet; bytes after the length are not part of the datagram.
    ///
    /// # Errors
    /// Too few bytes, or a length field that contradicts them.
    pub fn parse(datagram: &'a [u8]) -> Result<Self, PacketParseError> {
        let header = datagram.first_chunk::<HEADER_LEN>().ok_or(PacketParseError::Truncated)?;
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let payload = datagram.get(HEADER_LEN..length).ok_or(PacketParseError::TotalLength)?;
        Ok(Self { header, payload })
    }

    /// The sender's port.
    #[must_use]
    pub fn source_port(&self) -> u16 {
        u16::from_be_bytes([self.header[0], self.header[1]])
    }

    /// The receiver's port.
    #[must_use]
    pub fn destination_port(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// Bytes of the datagram, header included.
    #[must_use]
    pub fn length(&self) -> u16 {
        u16::from_be_bytes([self.header[4], self.header[5]])
    }

    /// The checksum as it stands: perhaps partial, 0 for none (IPv4 only).
    #[must_use]
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[6], self.header[7]])
    }

    /// The data.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: [u8; 12] =
        [0x00, 0x35, 0xc0, 0x01, 0x00, 0x0a, 0x12, 0x34, b'o', b'k', 0xff, 0xff];

    #[test]
    fn the_fields_of_a_literal_datagram_are_read() {
        let view = UdpDatagram::parse(&DATAGRAM).unwrap();
        assert_eq!((view.source_port(), view.destination_port()), (53, 49153));
        assert_eq!((view.length(), view.checksum()), (10, 0x1234));
        assert_eq!(view.payload(), b"ok");
    }

    #[test]
    fn a_contradictory_length_is_refused() {
        let mut datagram = DATAGRAM;
        for length in [0, 7, 13] {
            datagram[5] = length;
            assert_eq!(UdpDatagram::parse(&datagram).unwrap_err(), PacketParseError::TotalLength);
        }
        assert_eq!(UdpDatagram::parse(&datagram[..7]).unwrap_err(), PacketParseError::Truncated);
    }
}
