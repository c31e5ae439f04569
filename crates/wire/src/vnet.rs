//! The virtio-net header that Linux puts before each frame of a packet socket with
//! `PACKET_VNET_HDR`: the legacy form of 10 bytes, its fields in the machine's own byte order
//! (virtio 1.2, 5.1.6; `linux/virtio_net.h`).

/// Flag: the checksum field holds the folded pseudo-header sum only; the rest is still to be done.
pub const NEEDS_CSUM: u8 = 1;
/// Flag: the checksum has been found right already.
pub const DATA_VALID: u8 = 2;

/// The frame is one packet.
pub const GSO_NONE: u8 = 0;
/// The frame stands for a train of TCP segments over IPv4.
pub const GSO_TCPV4: u8 = 1;
/// The frame is a large UDP datagram to be cut into IP fragments (UFO, no longer made by Linux).
pub const GSO_UDP: u8 = 3;
/// The frame stands for a train of TCP segments over IPv6.
pub const GSO_TCPV6: u8 = 4;
/// The frame stands for a train of UDP datagrams, over IPv4 or IPv6.
pub const GSO_UDP_L4: u8 = 5;
/// Added to a TCP type: the CWR flag belongs to the first segment only.
pub const GSO_ECN: u8 = 0x80;

/// What the kernel says about a frame, and what we say to it when we send one.
///
/// The default value describes a plain packet with a complete checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VirtioNetHeader {
    /// [`NEEDS_CSUM`] and [`DATA_VALID`].
    pub flags: u8,
    /// One of the `GSO_` constants, perhaps with [`GSO_ECN`].
    pub gso_type: u8,
    /// Bytes of all headers, Ethernet to transport; a hint.
    pub hdr_len: u16,
    /// Payload bytes of each segment but the last.
    pub gso_size: u16,
    /// Frame offset from which the checksum is to be computed.
    pub csum_start: u16,
    /// Offset of the checksum field after `csum_start`.
    pub csum_offset: u16,
}

impl VirtioNetHeader {
    /// Bytes of the header.
    pub const LEN: usize = 10;

    /// Reads a header.
    #[must_use]
    pub fn parse(bytes: &[u8; Self::LEN]) -> Self {
        let [flags, gso_type, h0, h1, g0, g1, s0, s1, o0, o1] = *bytes;
        Self {
            flags,
            gso_type,
            hdr_len: u16::from_ne_bytes([h0, h1]),
            gso_size: u16::from_ne_bytes([g0, g1]),
            csum_start: u16::from_ne_bytes([s0, s1]),
            csum_offset: u16::from_ne_bytes([o0, o1]),
        }
    }

    /// Splits what a packet socket delivered into its header and the frame.
    #[must_use]
    pub fn split(buffer: &[u8]) -> Option<(Self, &[u8])> {
        let (header, frame) = buffer.split_first_chunk()?;
        Some((Self::parse(header), frame))
    }

    /// Writes the header.
    #[must_use]
    pub fn emit(&self) -> [u8; Self::LEN] {
        let [h0, h1] = self.hdr_len.to_ne_bytes();
        let [g0, g1] = self.gso_size.to_ne_bytes();
        let [s0, s1] = self.csum_start.to_ne_bytes();
        let [o0, o1] = self.csum_offset.to_ne_bytes();
        [self.flags, self.gso_type, h0, h1, g0, g1, s0, s1, o0, o1]
    }

    /// Whether the transport checksum is still partial.
    #[must_use]
    pub(crate) fn needs_csum(&self) -> bool {
        self.flags & NEEDS_CSUM != 0
    }

    /// The GSO type without the ECN bit.
    #[must_use]
    pub(crate) fn gso_kind(&self) -> u8 {
        self.gso_type & !GSO_ECN
    }

    /// Says that the frame is one packet, leaving what is said of its checksum.
    pub(crate) fn clear_gso(&mut self) {
        self.gso_type = GSO_NONE;
        self.gso_size = 0;
        self.hdr_len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_and_written_byte_for_byte() {
        let mut bytes = [1, 0x81, 0, 0, 0, 0, 0, 0, 0, 0];
        bytes[2..4].copy_from_slice(&54u16.to_ne_bytes());
        bytes[4..6].copy_from_slice(&1448u16.to_ne_bytes());
        bytes[6..8].copy_from_slice(&34u16.to_ne_bytes());
        bytes[8..10].copy_from_slice(&16u16.to_ne_bytes());
        let header = VirtioNetHeader::parse(&bytes);
        let expected = VirtioNetHeader {
            flags: NEEDS_CSUM,
            gso_type: GSO_TCPV4 | GSO_ECN,
            hdr_len: 54,
            gso_size: 1448,
            csum_start: 34,
            csum_offset: 16,
        };
        assert_eq!(header, expected);
        assert_eq!(header.emit(), bytes);
        assert_eq!(header.gso_kind(), GSO_TCPV4);
        assert!(header.needs_csum());
    }

    #[test]
    fn a_buffer_shorter_than_the_header_is_not_a_frame() {
        assert_eq!(VirtioNetHeader::split(&[0; 9]), None);
        assert_eq!(VirtioNetHeader::split(&[0; 10]), Some((VirtioNetHeader::default(), &[][..])));
    }
}
