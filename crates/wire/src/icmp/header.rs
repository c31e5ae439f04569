//! What all ICMP messages have: protocol, type, code and the second word.

use crate::parse_error::PacketParseError;

/// Protocol number of ICMP.
pub const PROTOCOL_V4: u8 = 1;
/// Protocol number of ICMPv6.
pub const PROTOCOL_V6: u8 = 58;
/// Bytes of the header that all messages here share.
pub const HEADER_LEN: usize = 8;
/// ICMP: echo request.
pub const ECHO_REQUEST_V4: u8 = 8;
/// ICMP: echo reply.
pub(crate) const ECHO_REPLY_V4: u8 = 0;
/// ICMPv6: echo request.
pub const ECHO_REQUEST_V6: u8 = 128;
/// ICMPv6: echo reply.
pub(crate) const ECHO_REPLY_V6: u8 = 129;
/// ICMP: destination unreachable.
pub(crate) const UNREACHABLE_V4: u8 = 3;
/// ICMP: time exceeded.
pub(crate) const TIME_EXCEEDED_V4: u8 = 11;
/// ICMPv6: destination unreachable.
pub(crate) const UNREACHABLE_V6: u8 = 1;
/// ICMPv6: packet too big.
pub(crate) const PACKET_TOO_BIG_V6: u8 = 2;
/// ICMPv6: time exceeded.
pub(crate) const TIME_EXCEEDED_V6: u8 = 3;

/// Offset of the checksum in the header.
pub(crate) const CHECKSUM: usize = 2;

/// An ICMP message of either version.
#[derive(Debug, Clone, Copy)]
pub struct IcmpMessage<'a> {
    header: &'a [u8; HEADER_LEN],
    body: &'a [u8],
}

impl<'a> IcmpMessage<'a> {
    /// Looks at the payload of an IP packet.
    ///
    /// # Errors
    /// [`PacketParseError::Truncated`] when it is shorter than 8 bytes.
    pub fn parse(message: &'a [u8]) -> Result<Self, PacketParseError> {
        let (header, body) = message.split_first_chunk().ok_or(PacketParseError::Truncated)?;
        Ok(Self { header, body })
    }

    /// The type of the message.
    #[must_use]
    pub fn kind(&self) -> u8 {
        self.header[0]
    }

    /// The code within its type.
    #[must_use]
    pub fn code(&self) -> u8 {
        self.header[1]
    }

    /// The checksum as it stands.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }

    /// The second word: identifier and sequence number of an echo, MTU of a size error.
    #[must_use]
    pub fn rest(&self) -> [u8; 4] {
        [self.header[4], self.header[5], self.header[6], self.header[7]]
    }

    /// The identifier of an echo.
    #[must_use]
    pub fn identifier(&self) -> u16 {
        u16::from_be_bytes([self.header[4], self.header[5]])
    }

    /// The sequence number of an echo.
    #[must_use]
    pub fn sequence(&self) -> u16 {
        u16::from_be_bytes([self.header[6], self.header[7]])
    }

    /// What follows: echo data, or the quoted packet of an error.
    #[must_use]
    pub fn body(&self) -> &'a [u8] {
        self.body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_literal_echo_are_read() {
        let bytes = [8, 0, 0xf7, 0xfd, 0x00, 0x01, 0x00, 0x02, b'a', b'b'];
        let view = IcmpMessage::parse(&bytes).unwrap();
        assert_eq!((view.kind(), view.code(), view.checksum()), (ECHO_REQUEST_V4, 0, 0xf7fd));
        assert_eq!((view.identifier(), view.sequence()), (1, 2));
        assert_eq!((view.rest(), view.body()), ([0, 1, 0, 2], &b"ab"[..]));
        assert_eq!(IcmpMessage::parse(&bytes[..7]).unwrap_err(), PacketParseError::Truncated);
    }
}
