//! Ethernet II frames without FCS, as a packet socket shows them.

use crate::bytes;
use crate::parse_error::PacketParseError;

/// Bytes of the Ethernet header.
pub const HEADER_LEN: usize = 14;
/// EtherType of IPv4.
pub const IPV4: u16 = 0x0800;
/// EtherType of ARP.
pub const ARP: u16 = 0x0806;
/// EtherType of IPv6.
pub const IPV6: u16 = 0x86dd;

/// A frame that is long enough for its header.
#[derive(Debug, Clone, Copy)]
pub struct EthernetFrame<'a> {
    header: &'a [u8; HEADER_LEN],
    payload: &'a [u8],
}

impl<'a> EthernetFrame<'a> {
    /// Looks at a frame.
    ///
    /// # Errors
    /// [`PacketParseError::Truncated`] when it is shorter than 14 bytes.
    #[inline]
    pub fn parse(frame: &'a [u8]) -> Result<Self, PacketParseError> {
        let (header, payload) = frame.split_first_chunk().ok_or(PacketParseError::Truncated)?;
        Ok(Self { header, payload })
    }

    /// The destination address.
    #[must_use]
    pub fn destination(&self) -> [u8; 6] {
        let [a, b, c, d, e, f, ..] = *self.header;
        [a, b, c, d, e, f]
    }

    /// The source address.
    #[must_use]
    pub fn source(&self) -> [u8; 6] {
        let [.., a, b, c, d, e, f, _, _] = *self.header;
        [a, b, c, d, e, f]
    }

    /// The EtherType.
    #[must_use]
    pub fn ethertype(&self) -> u16 {
        u16::from_be_bytes([self.header[12], self.header[13]])
    }

    /// Whether the destination is a group address (broadcast among them).
    #[must_use]
    pub fn is_multicast(&self) -> bool {
        self.header[0] & 1 != 0
    }

    /// What follows the header, padding included.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }
}

/// Overwrites both addresses of a frame; answers whether it was long enough.
#[inline]
pub fn set_addresses(frame: &mut [u8], destination: [u8; 6], source: [u8; 6]) -> bool {
    if frame.len() < HEADER_LEN {
        return false;
    }
    bytes::put(frame, 0, destination).and_then(|()| bytes::put(frame, 6, source)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: [u8; 16] =
        [0x33, 0x33, 0, 0, 0, 0xfb, 0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0x01, 0x86, 0xdd, 0x60, 0x00];

    #[test]
    fn the_fields_of_a_literal_frame_are_read() {
        let view = EthernetFrame::parse(&FRAME).unwrap();
        assert_eq!(view.destination(), [0x33, 0x33, 0, 0, 0, 0xfb]);
        assert_eq!(view.source(), [0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0x01]);
        assert_eq!(view.ethertype(), IPV6);
        assert!(view.is_multicast());
        assert_eq!(view.payload(), [0x60, 0]);
        assert_eq!(EthernetFrame::parse(&FRAME[..13]).unwrap_err(), PacketParseError::Truncated);
    }

    #[test]
    fn addresses_are_overwritten_in_place() {
        let mut frame = FRAME;
        assert!(set_addresses(&mut frame, [2, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 8]));
        assert_eq!(frame[..14], [2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 8, 0x86, 0xdd]);
        assert!(!set_addresses(&mut frame[..13], [0; 6], [0; 6]));
    }
}
