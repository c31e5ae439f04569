//! Neighbour solicitations and advertisements (RFC 4861, 4.3 and 4.4): what ARP is to IPv4.

use core::net::{IpAddr, Ipv6Addr};

use crate::packet::ParsedPacket;
use crate::{bytes, checksum, ethernet, ipv6};

use super::header::{HEADER_LEN, PROTOCOL_V6};

/// Bytes of the longest frame that is written here.
pub const FRAME_LEN: usize = ethernet::HEADER_LEN + ipv6::HEADER_LEN + MESSAGE_LEN;

/// The fixed part, the target, one option with an Ethernet address.
const MESSAGE_LEN: usize = HEADER_LEN + 16 + 8;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOURCE_OPTION: u8 = 1;
const TARGET_OPTION: u8 = 2;
/// RFC 4861, 7.1: with less, it came through a router and is void.
const HOP_LIMIT: u8 = 255;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A solicitation or advertisement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NeighbourMessage {
    /// Whether it asks; else it answers.
    pub asks: bool,
    /// The sender; `::` while a host looks for duplicates of an address.
    pub source: Ipv6Addr,
    /// The address that it is about.
    pub target: Ipv6Addr,
    /// The sender's Ethernet address when it asks, the target's when it answers.
    pub mac: Option<[u8; 6]>,
}

impl NeighbourMessage {
    /// Reads a packet; `None` when it holds none, or one that RFC 4861 (7.1) calls void.
    #[must_use]
    pub fn of(packet: &ParsedPacket<'_>) -> Option<NeighbourMessage> {
        let (info, message) = (&packet.info, packet.payload());
        let IpAddr::V6(source) = info.source else { return None };
        let kind = bytes::u8_at(message, 0).filter(|_| info.protocol == PROTOCOL_V6)?;
        let asks = kind == SOLICITATION;
        let valid = (asks || kind == ADVERTISEMENT)
            && info.ttl == HOP_LIMIT
            && bytes::u8_at(message, 1) == Some(0)
            && checksum::holds(packet);
        let target: [u8; 16] = bytes::array_at(message, HEADER_LEN).filter(|_| valid)?;
        let wanted = if asks { SOURCE_OPTION } else { TARGET_OPTION };
        let mac = option(message.get(HEADER_LEN + 16..)?, wanted);
        Some(NeighbourMessage { asks, source, target: target.into(), mac })
    }

    /// Writes the solicitation that `source` with the Ethernet address `mac` sends to find
    /// `target`, and answers its length; `None` where `out` is shorter than [`FRAME_LEN`].
    pub fn write_solicitation(
        source: Ipv6Addr,
        mac: [u8; 6],
        target: Ipv6Addr,
        out: &mut [u8],
    ) -> Option<usize> {
        let [.., b, c, d] = target.octets();
        // RFC 4291, 2.7.1: the solicited-node address; RFC 2464, 7: its Ethernet address.
        let group = Ipv6Addr::from_bits(SOLICITED_NODE | target.to_bits() & 0xff_ffff);
        let body = NeighbourDiscoveryMessage {
            kind: SOLICITATION,
            flags: 0,
            target,
            option: (SOURCE_OPTION, mac),
        };
        body.write([0x33, 0x33, 0xff, b, c, d], mac, source, group, out)
    }

    /// Writes a router's answer to this solicitation for its address `self.target` with the
    /// Ethernet address `own`, sent to the owner of `destination`; as above.
    pub fn write_answer(
        &self,
        own: [u8; 6],
        destination: [u8; 6],
        out: &mut [u8],
    ) -> Option<usize> {
        const ROUTER: u8 = 0x80;
        const SOLICITED: u8 = 0x40;
        const OVERRIDE: u8 = 0x20;
        // RFC 4861, 7.2.4: a node without an address is answered by multicast.
        let (to, mac, solicited) = if self.source.is_unspecified() {
            (ALL_NODES, [0x33, 0x33, 0, 0, 0, 1], 0)
        } else {
            (self.source, destination, SOLICITED)
        };
        let flags = ROUTER | OVERRIDE | solicited;
        let target = self.target;
        let body = NeighbourDiscoveryMessage {
            kind: ADVERTISEMENT,
            flags,
            target,
            option: (TARGET_OPTION, own),
        };
        body.write(mac, own, target, to, out)
    }
}

struct NeighbourDiscoveryMessage {
    kind: u8,
    flags: u8,
    target: Ipv6Addr,
    option: (u8, [u8; 6]),
}

impl NeighbourDiscoveryMessage {
    fn write(
        &self,
        to_mac: [u8; 6],
        from_mac: [u8; 6],
        from: Ipv6Addr,
        to: Ipv6Addr,
        out: &mut [u8],
    ) -> Option<usize> {
        let frame = out.get_mut(..FRAME_LEN)?;
        bytes::put(frame, 0, to_mac)?;
        bytes::put(frame, 6, from_mac)?;
        bytes::put_u16(frame, 12, ethernet::IPV6)?;
        let at = ethernet::HEADER_LEN;
        bytes::put(frame, at, [0x60, 0, 0, 0, 0, 0, PROTOCOL_V6, HOP_LIMIT])?;
        bytes::put_u16(frame, at + 4, bytes::len16(MESSAGE_LEN)?)?;
        bytes::put(frame, at + 8, from.octets())?;
        bytes::put(frame, at + 24, to.octets())?;
        let at = at + ipv6::HEADER_LEN;
        bytes::put(frame, at, [self.kind, 0, 0, 0, self.flags, 0, 0, 0])?;
        bytes::put(frame, at + HEADER_LEN, self.target.octets())?;
        bytes::put(frame, at + HEADER_LEN + 16, [self.option.0, 1])?;
        bytes::put(frame, at + HEADER_LEN + 18, self.option.1)?;
        let info = ParsedPacket::parse(frame).ok()?.info;
        checksum::fill(frame, &info)?;
        Some(FRAME_LEN)
    }
}

/// The Ethernet address in the first option of a kind. Options count their length in eight bytes.
fn option(mut options: &[u8], wanted: u8) -> Option<[u8; 6]> {
    while let [kind, length, ..] = *options {
        if kind == wanted && length == 1 {
            return bytes::array_at(options, 2);
        }
        if length == 0 {
            return None;
        }
        options = options.get(usize::from(length) * 8..)?;
    }
    None
}

const SOLICITED_NODE: u128 = 0xff02_0000_0000_0000_0000_0001_ff00_0000;

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn read(frame: &[u8]) -> Option<NeighbourMessage> {
        NeighbourMessage::of(&ParsedPacket::parse(frame).unwrap())
    }

    #[test]
    fn a_solicitation_goes_to_the_group_of_its_target_and_is_read_again() {
        let (source, target) = ("fd00::1".parse().unwrap(), "fd00::12:3456".parse().unwrap());
        let mut frame = [0; FRAME_LEN];
        assert_eq!(NeighbourMessage::write_solicitation(source, MAC, target, &mut frame), Some(86));
        assert_eq!(frame[..6], [0x33, 0x33, 0xff, 0x12, 0x34, 0x56]);
        let info = ParsedPacket::parse(&frame).unwrap().info;
        assert_eq!(info.destination.to_string(), "ff02::1:ff12:3456");
        let message = NeighbourMessage { asks: true, source, target, mac: Some(MAC) };
        assert_eq!(read(&frame), Some(message));
        frame[21] = 254;
        assert_eq!(read(&frame), None, "it came through a router");
    }

    #[test]
    fn a_reply_goes_to_the_asker_or_to_all_if_it_has_no_address() {
        let target = "fd00::9".parse().unwrap();
        let asked = |source: &str| NeighbourMessage {
            asks: true,
            source: source.parse().unwrap(),
            target,
            mac: None,
        };
        let mut frame = [0; FRAME_LEN];
        assert!(asked("fd00::1").write_answer(MAC, [2, 0, 0, 0, 0, 9], &mut frame).is_some());
        let answer = read(&frame).unwrap();
        assert_eq!((answer.asks, answer.target, answer.mac), (false, target, Some(MAC)));
        assert_eq!((frame[5], frame[58]), (9, 0xe0));
        assert!(asked("::").write_answer(MAC, [2, 0, 0, 0, 0, 9], &mut frame).is_some());
        assert_eq!((frame[..6].to_vec(), frame[58]), (vec![0x33, 0x33, 0, 0, 0, 1], 0xa0));
    }

    #[test]
    fn options_that_contradict_themselves_give_no_address() {
        assert_eq!(option(&[5, 1, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1], 1), Some(MAC));
        assert_eq!(option(&[5, 0, 1, 1, 2, 0, 0, 0, 0, 1], 1), None);
        assert_eq!(option(&[5, 9, 0], 1), None);
        assert_eq!(option(&[1, 1, 2, 0], 1), None);
    }
}
