//! ARP for IPv4 over Ethernet (RFC 826): which host has an address, and where.

use core::net::Ipv4Addr;

use crate::parse_error::PacketParseError;
use crate::{bytes, ethernet};

/// Operation: who has the target address?
pub const REQUEST: u16 = 1;
/// Operation: the sender has.
pub const REPLY: u16 = 2;
/// Bytes of a whole frame.
pub const FRAME_LEN: usize = ethernet::HEADER_LEN + MESSAGE_LEN;

const MESSAGE_LEN: usize = 28;
/// Ethernet, IPv4, addresses of 6 and 4 bytes.
const KIND: [u8; 6] = [0, 1, 8, 0, 6, 4];

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArpPacket {
    /// [`REQUEST`] or [`REPLY`].
    pub operation: u16,
    /// The sender's addresses.
    pub sender: ([u8; 6], Ipv4Addr),
    /// The target of the request or reply.
    pub target: ([u8; 6], Ipv4Addr),
}

impl ArpPacket {
    /// Reads a frame.
    ///
    /// # Errors
    /// [`PacketParseError`] when it is not ARP for IPv4 over Ethernet, or too short for it.
    pub fn parse(frame: &[u8]) -> Result<ArpPacket, PacketParseError> {
        let outer = ethernet::EthernetFrame::parse(frame)?;
        let message = outer.payload();
        match outer.ethertype() {
            ethernet::ARP if message.len() < MESSAGE_LEN => Err(PacketParseError::Truncated),
            ethernet::ARP if message[..6] == KIND => {
                read(message).ok_or(PacketParseError::Truncated)
            }
            other => Err(PacketParseError::NotIp(other)),
        }
    }

    /// Writes the frame that carries it to `destination` and answers its length; `None` where `out`
    /// is shorter than [`FRAME_LEN`].
    pub fn write(&self, destination: [u8; 6], out: &mut [u8]) -> Option<usize> {
        let at = ethernet::HEADER_LEN;
        let frame = out.get_mut(..FRAME_LEN)?;
        bytes::put(frame, 0, destination)?;
        bytes::put(frame, 6, self.sender.0)?;
        bytes::put_u16(frame, 12, ethernet::ARP)?;
        bytes::put(frame, at, KIND)?;
        bytes::put_u16(frame, at + 6, self.operation)?;
        for (place, (mac, address)) in [(at + 8, self.sender), (at + 18, self.target)] {
            bytes::put(frame, place, mac)?;
            bytes::put(frame, place + 6, address.octets())?;
        }
        Some(FRAME_LEN)
    }
}

fn read(message: &[u8]) -> Option<ArpPacket> {
    let pair = |at| {
        let address: [u8; 4] = bytes::array_at(message, at + 6)?;
        Some((bytes::array_at(message, at)?, Ipv4Addr::from(address)))
    };
    Some(ArpPacket { operation: bytes::u16_at(message, 6)?, sender: pair(8)?, target: pair(18)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_comes_back_as_it_was_written() {
        let message = ArpPacket {
            operation: REQUEST,
            sender: ([2, 0, 0, 0, 0, 1], Ipv4Addr::new(10, 0, 0, 1)),
            target: ([0; 6], Ipv4Addr::new(10, 0, 0, 2)),
        };
        let mut frame = [0; FRAME_LEN];
        assert_eq!(message.write([0xff; 6], &mut frame), Some(42));
        assert_eq!(
            frame[..22],
            *b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x08\x06\0\x01\x08\0\x06\x04\0\x01"
        );
        assert_eq!(ArpPacket::parse(&frame), Ok(message));
        assert_eq!(ArpPacket::parse(&frame[..41]), Err(PacketParseError::Truncated));
        assert_eq!(message.write([0xff; 6], &mut [0; 41]), None);
        frame[15] = 6;
        assert!(ArpPacket::parse(&frame).is_err(), "not Ethernet");
    }
}
