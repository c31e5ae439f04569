//! Packets that came in fragments, put together again (RFC 791, 3.2; RFC 8200, 4.5): ports and
//! checksums are those of the whole.

use std::net::IpAddr;

use windtunnel_wire::packet::{IpPacketSummary, IpVersion, ParsedPacket};
use windtunnel_wire::{ethernet, fragment, ipv6};

use crate::frames::{FRAGMENT_HEADER, FRAGMENT_LEN};

/// Packets of which fragments are missing.
#[derive(Debug, Default)]
pub(crate) struct FragmentReassembler {
    open: Vec<IncompleteDatagram>,
}

#[derive(Debug)]
struct IncompleteDatagram {
    key: FragmentedPacketKey,
    since_ns: u64,
    /// All that is before the payload, of the first fragment.
    header: Option<Vec<u8>>,
    /// Offsets and payloads, by offset.
    parts: Vec<(usize, Vec<u8>)>,
    /// How long the whole payload is, once the last fragment is there.
    length: Option<usize>,
}

/// By what the fragments of a packet belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FragmentedPacketKey {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    identification: u32,
}

impl FragmentedPacketKey {
    fn of(info: &IpPacketSummary, protocol: u8, identification: u32) -> FragmentedPacketKey {
        let (source, destination) = (info.source, info.destination);
        FragmentedPacketKey { source, destination, protocol, identification }
    }
}

/// A fragment.
struct IpFragment<'a> {
    key: FragmentedPacketKey,
    offset: usize,
    more: bool,
    /// The frame up to the payload, with what the whole packet says of itself.
    header: Vec<u8>,
    payload: &'a [u8],
}

impl FragmentReassembler {
    /// Takes a fragment; the whole packet, if it was the last that was missing.
    pub(crate) fn push(&mut self, now_ns: u64, packet: &ParsedPacket<'_>) -> Option<Vec<u8>> {
        self.open.retain(|open| now_ns.saturating_sub(open.since_ns) < PATIENCE_NS);
        let part = match packet.info.version {
            IpVersion::V4 => part_v4(packet)?,
            IpVersion::V6 => part_v6(packet)?,
        };
        let known = self.open.iter().position(|open| open.key == part.key);
        let at = known.unwrap_or_else(|| {
            if self.open.len() >= OPEN_MAX {
                self.open.remove(0);
            }
            let (parts, key) = (Vec::new(), part.key);
            self.open.push(IncompleteDatagram {
                key,
                since_ns: now_ns,
                header: None,
                parts,
                length: None,
            });
            self.open.len() - 1
        });
        match self.open[at].add(part) {
            FragmentOutcome::Waits => None,
            FragmentOutcome::Senseless => {
                self.open.remove(at);
                None
            }
            FragmentOutcome::Whole => self.open.remove(at).whole(),
        }
    }
}

enum FragmentOutcome {
    Waits,
    Whole,
    /// Fragments overlap or contradict each other: the packet is given up (RFC 5722).
    Senseless,
}

impl IncompleteDatagram {
    fn add(&mut self, part: IpFragment<'_>) -> FragmentOutcome {
        let end = part.offset + part.payload.len();
        let place = self.parts.partition_point(|(offset, _)| *offset < part.offset);
        if self.parts.get(place).is_some_and(|(offset, same)| {
            *offset == part.offset && same.len() == part.payload.len()
        }) {
            // The network has doubled it.
            return FragmentOutcome::Waits;
        }
        let before = place.checked_sub(1).and_then(|before| self.parts.get(before));
        let overlaps = before.is_some_and(|(offset, bytes)| offset + bytes.len() > part.offset)
            || self.parts.get(place).is_some_and(|(offset, _)| *offset < end);
        let too_long = end > PAYLOAD_MAX || self.length.is_some_and(|length| end > length);
        let uneven =
            part.more && (!part.payload.len().is_multiple_of(8) || part.payload.is_empty());
        if overlaps || too_long || uneven || self.parts.len() >= PARTS_MAX {
            return FragmentOutcome::Senseless;
        }
        if !part.more {
            self.length = Some(end);
        }
        if part.offset == 0 {
            self.header = Some(part.header);
        }
        self.parts.insert(place, (part.offset, part.payload.to_vec()));
        let sum: usize = self.parts.iter().map(|(_, bytes)| bytes.len()).sum();
        match self.length {
            Some(length) if sum > length => FragmentOutcome::Senseless,
            Some(length) if sum == length && self.header.is_some() => FragmentOutcome::Whole,
            _ => FragmentOutcome::Waits,
        }
    }

    fn whole(self) -> Option<Vec<u8>> {
        let mut frame = self.header?;
        let is_v6 = self.key.source.is_ipv6();
        self.parts.iter().for_each(|(_, bytes)| frame.extend(bytes));
        if is_v6 {
            let length = frame.len().checked_sub(ethernet::HEADER_LEN + ipv6::HEADER_LEN)?;
            let length = u16::try_from(length).ok()?;
            frame[V6_LENGTH..V6_LENGTH + 2].copy_from_slice(&length.to_be_bytes());
        } else {
            fragment::make_whole(&mut frame)?;
        }
        Some(frame)
    }
}

fn part_v4<'a>(packet: &ParsedPacket<'a>) -> Option<IpFragment<'a>> {
    let ParsedPacket { info, frame, .. } = packet;
    let place = fragment::FragmentPosition::of(frame)?;
    Some(IpFragment {
        key: FragmentedPacketKey::of(info, info.protocol, place.identification.into()),
        offset: place.offset,
        more: place.more,
        header: frame.get(..info.transport)?.to_vec(),
        payload: packet.payload(),
    })
}

/// Of packets with other extension headers before that of the fragment nothing is made.
fn part_v6<'a>(packet: &ParsedPacket<'a>) -> Option<IpFragment<'a>> {
    let ParsedPacket { info, frame, .. } = packet;
    let start = ethernet::HEADER_LEN + ipv6::HEADER_LEN;
    let fragment = frame.get(start..start + FRAGMENT_LEN)?;
    if frame.get(V6_NEXT) != Some(&FRAGMENT_HEADER) {
        return None;
    }
    let word = u16::from_be_bytes([fragment[2], fragment[3]]);
    let identification = u32::from_be_bytes([fragment[4], fragment[5], fragment[6], fragment[7]]);
    let mut header = frame.get(..start)?.to_vec();
    header[V6_NEXT] = fragment[0];
    Some(IpFragment {
        key: FragmentedPacketKey::of(info, fragment[0], identification),
        offset: usize::from(word & !7),
        more: word & 1 != 0,
        header,
        payload: frame.get(start + FRAGMENT_LEN..info.end)?,
    })
}

/// RFC 1122, 3.3.2 wants 60 s at least; Linux has 30 s.
const PATIENCE_NS: u64 = 30_000_000_000;
const OPEN_MAX: usize = 64;
const PARTS_MAX: usize = 128;
const PAYLOAD_MAX: usize = 65_535;
const V6_LENGTH: usize = ethernet::HEADER_LEN + 4;
const V6_NEXT: usize = ethernet::HEADER_LEN + 6;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use proptest::prelude::*;

    use super::*;
    use crate::frames::{self, Fragmentation};

    fn pieces(v6: bool, length: usize, mtu: u32) -> (Vec<u8>, Vec<Vec<u8>>) {
        let (from, to): (SocketAddr, SocketAddr) = match v6 {
            false => ("192.0.2.1:53".parse().unwrap(), "10.0.0.1:4000".parse().unwrap()),
            true => ("[2001:db8::1]:53".parse().unwrap(), "[fd00::1]:4000".parse().unwrap()),
        };
        let payload: Vec<u8> = (0..length).map(|i| i.to_le_bytes()[0]).collect();
        let cut = |mtu| {
            let fragmentation = Fragmentation { mtu, identification: 5 };
            frames::datagram(from, to, &payload, fragmentation)
        };
        (cut(u32::MAX).remove(0), cut(mtu))
    }

    fn push(reassembly: &mut FragmentReassembler, now_ns: u64, frame: &[u8]) -> Option<Vec<u8>> {
        reassembly.push(now_ns, &ParsedPacket::parse(frame).unwrap())
    }

    proptest! {
        #[test]
        fn fragments_in_any_order_make_the_packet(
            v6: bool, length in 3000..60_000_usize, order in any::<prop::sample::Index>(), twice: bool,
        ) {
            let (whole, mut pieces) = pieces(v6, length, 1500);
            let turn = order.index(pieces.len());
            pieces.rotate_left(turn);
            let mut reassembly = FragmentReassembler::default();
            let last = pieces.pop().unwrap();
            for piece in &pieces {
                prop_assert_eq!(push(&mut reassembly, 0, piece), None);
                if twice {
                    prop_assert_eq!(push(&mut reassembly, 0, piece), None);
                }
            }
            prop_assert_eq!(push(&mut reassembly, 0, &last), Some(whole));
            prop_assert!(reassembly.open.is_empty());
        }
    }

    #[test]
    fn a_packet_whose_fragments_overlap_is_given_up() {
        let (_, coarse) = pieces(false, 4000, 1500);
        let (_, fine) = pieces(false, 4000, 1000);
        let mut reassembly = FragmentReassembler::default();
        assert_eq!(push(&mut reassembly, 0, &coarse[0]), None);
        assert_eq!(push(&mut reassembly, 0, &fine[1]), None);
        assert!(reassembly.open.is_empty());
    }

    #[test]
    fn what_stays_incomplete_is_forgotten() {
        let (_, pieces) = pieces(true, 4000, 1500);
        let mut reassembly = FragmentReassembler::default();
        push(&mut reassembly, 0, &pieces[0]);
        push(&mut reassembly, 0, &pieces[1]);
        assert_eq!(push(&mut reassembly, PATIENCE_NS, &pieces[2]), None);
        assert_eq!(reassembly.open.len(), 1, "the last fragment begins anew");
    }
}
