//! Cutting a train.

use core::ops::Range;

use crate::packet::{IpPacketSummary, IpVersion, ParsedPacket};
use crate::{bytes, checksum, ethernet, ipv4, ipv6, tcp, udp, vnet};

use super::{PacketTrain, SegmentationKind};

/// Writes some successive packets of a train as a frame of their own, and answers its length and
/// header: a shorter train, or a plain packet where there is only one.
///
/// Lengths, IPv4 identification, TCP sequence and flags, and checksums are those that the packets
/// would have had alone; a partial checksum stays partial, a complete one is complete again. A
/// plain packet, and a train as a whole, are copied.
///
/// `None` when the range is empty or exceeds the train, or `out` is too short
/// (`header_len + payload_range(range).len()` bytes; the frame's own length always does).
pub fn write_range(
    frame: &[u8],
    vnet: &vnet::VirtioNetHeader,
    range: Range<u32>,
    out: &mut [u8],
) -> Option<(usize, vnet::VirtioNetHeader)> {
    let train = PacketTrain::new(frame, vnet);
    if range.is_empty() || range.end > train.count {
        return None;
    }
    if range == (0..train.count) {
        let mut header = *vnet;
        if train.count == 1 && train.form != SegmentationKind::Plain {
            header.clear_gso();
        }
        return Some((bytes::copy(frame, out)?, header));
    }
    let length =
        PacketTrainSlice { frame, train: &train, vnet, range: range.clone() }.write(out)?;
    Some((length, header_of(&train, vnet, &range)))
}

/// The header of a part of a train.
fn header_of(
    train: &PacketTrain,
    vnet: &vnet::VirtioNetHeader,
    range: &Range<u32>,
) -> vnet::VirtioNetHeader {
    let mut header = *vnet;
    if range.len() == 1 {
        header.clear_gso();
    } else if range.start > 0 {
        header.gso_type &= !vnet::GSO_ECN;
    }
    if range.len() > 1 {
        header.hdr_len = u16::try_from(train.header_len).unwrap_or(u16::MAX);
    }
    header
}

/// A proper part of a train that is being written.
struct PacketTrainSlice<'a> {
    frame: &'a [u8],
    train: &'a PacketTrain,
    vnet: &'a vnet::VirtioNetHeader,
    range: Range<u32>,
}

impl PacketTrainSlice<'_> {
    fn write(&self, out: &mut [u8]) -> Option<usize> {
        let info = ParsedPacket::parse(self.frame).ok()?.info;
        let header_len = bytes::index(self.train.header_len);
        let (header, rest) = self.frame.split_at_checked(header_len)?;
        let span = self.train.payload_range(self.range.clone());
        let payload = rest.get(bytes::index(span.start)..bytes::index(span.end))?;
        let out = out.get_mut(..header_len + payload.len())?;
        bytes::copy(header, out)?;
        bytes::copy(payload, out.get_mut(header_len..)?)?;
        self.patch_ip(&info, out)?;
        match self.train.form {
            SegmentationKind::Tcp => self.patch_tcp(info.transport, span.start, out)?,
            SegmentationKind::Udp => patch_udp(info.transport, out)?,
            SegmentationKind::Plain => return None,
        }
        self.patch_checksum(out)?;
        Some(out.len())
    }

    fn patch_ip(&self, info: &IpPacketSummary, out: &mut [u8]) -> Option<()> {
        let at = ethernet::HEADER_LEN;
        let ip_len = out.len() - at;
        if info.version == IpVersion::V6 {
            return bytes::put_u16(out, at + 4, bytes::len16(ip_len - ipv6::HEADER_LEN)?);
        }
        bytes::put_u16(out, at + 2, bytes::len16(ip_len)?)?;
        // The identification counts on, modulo 2^16, whatever DF says.
        let [.., high, low] = self.range.start.to_be_bytes();
        let first = bytes::u16_at(out, at + 4)?;
        bytes::put_u16(out, at + 4, first.wrapping_add(u16::from_be_bytes([high, low])))?;
        ipv4::set_checksum(out)
    }

    fn patch_tcp(&self, transport: usize, skipped: u32, out: &mut [u8]) -> Option<()> {
        let sequence = bytes::u32_at(out, transport + tcp::SEQUENCE)?;
        bytes::put_u32(out, transport + tcp::SEQUENCE, sequence.wrapping_add(skipped))?;
        let mut flags = bytes::u8_at(out, transport + tcp::FLAGS)?;
        if self.range.end < self.train.count {
            flags &= !(tcp::FIN | tcp::PSH);
        }
        if self.range.start > 0 {
            flags &= !tcp::CWR;
        }
        bytes::put(out, transport + tcp::FLAGS, [flags])
    }

    fn patch_checksum(&self, out: &mut [u8]) -> Option<()> {
        let info = ParsedPacket::parse(out).ok()?.info;
        if self.vnet.needs_csum() {
            return checksum::write_partial(out, &info);
        }
        let none = self.train.form == SegmentationKind::Udp
            && info.version == IpVersion::V4
            && bytes::u16_at(out, info.transport + udp::CHECKSUM) == Some(0);
        if none { Some(()) } else { checksum::fill(out, &info) }
    }
}

fn patch_udp(transport: usize, out: &mut [u8]) -> Option<()> {
    let length = bytes::len16(out.len().checked_sub(transport)?)?;
    bytes::put_u16(out, transport + udp::LENGTH, length)
}
