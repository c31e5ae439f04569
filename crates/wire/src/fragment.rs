//! IPv4 fragmentation by a router (RFC 791, 3.2; RFC 1812, 4.2.2.7).
//!
//! Every fragment repeats all options of the original: RFC 791 would leave some kinds to the first
//! fragment. Fragments can be fragmented again. The transport checksum has to be complete before,
//! because it covers all fragments together.

use crate::packet::{IpVersion, ParsedPacket};
use crate::{bytes, ethernet, ipv4};

/// How many fragments a packet makes for a link that takes `mtu` bytes of IP; 1 when it fits.
///
/// `None` when it may not be fragmented (DF, IPv6, no IP), or the MTU has no room for a header and
/// 8 bytes.
#[must_use]
pub fn count(frame: &[u8], mtu: u32) -> Option<u32> {
    Some(FragmentationPlan::new(frame, mtu)?.count())
}

/// Writes fragment `index` as a frame with its checksum, and answers its length.
///
/// `None` where [`count`] says so, for an index beyond it, or when `out` is shorter than the
/// fragment (`mtu + 14` bytes always do).
pub fn write(frame: &[u8], mtu: u32, index: u32, out: &mut [u8]) -> Option<usize> {
    let plan = FragmentationPlan::new(frame, mtu)?;
    let count = plan.count();
    if index >= count {
        return None;
    }
    let header = frame.get(..plan.packet.info.transport)?;
    let payload = plan.packet.payload();
    let start = bytes::index(index.checked_mul(plan.step)?);
    let end = payload.len().min(start.checked_add(bytes::index(plan.step))?);
    let part = payload.get(start..end)?;
    let out = out.get_mut(..header.len() + part.len())?;
    bytes::copy(header, out)?;
    bytes::copy(part, out.get_mut(header.len()..)?)?;
    patch(out, start, index + 1 < count)?;
    Some(out.len())
}

/// Where an IPv4 fragment belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FragmentPosition {
    /// What fragments of one packet share.
    pub identification: u16,
    /// Where its payload begins in the packet's, in bytes.
    pub offset: usize,
    /// Whether others follow.
    pub more: bool,
}

impl FragmentPosition {
    /// That of a frame; `None` where it is no IPv4 packet.
    #[must_use]
    pub fn of(frame: &[u8]) -> Option<Self> {
        let outer = ethernet::EthernetFrame::parse(frame).ok()?;
        if outer.ethertype() != ethernet::IPV4 {
            return None;
        }
        let view = ipv4::Ipv4Packet::parse(outer.payload()).ok()?;
        Some(Self {
            identification: view.identification(),
            offset: bytes::index(view.fragment_offset()),
            more: view.more_fragments(),
        })
    }
}

/// Makes the header of a first fragment that of the whole packet, all of whose payload follows it in
/// the frame. `None` where the frame is no IPv4 packet or too long for one.
pub fn make_whole(frame: &mut [u8]) -> Option<()> {
    let at = ethernet::HEADER_LEN;
    let old = bytes::u16_at(frame, at + 6)?;
    bytes::put_u16(frame, at + 2, bytes::len16(frame.len() - at)?)?;
    bytes::put_u16(frame, at + 6, old & 0xc000)?;
    ipv4::set_checksum(frame)
}

/// How a packet divides.
struct FragmentationPlan<'a> {
    packet: ParsedPacket<'a>,
    payload_len: u32,
    /// Payload bytes of every fragment but the last: a multiple of 8 where there are several.
    step: u32,
}

impl<'a> FragmentationPlan<'a> {
    fn new(frame: &'a [u8], mtu: u32) -> Option<Self> {
        let packet = ParsedPacket::parse(frame).ok()?;
        let info = &packet.info;
        if info.version != IpVersion::V4 || info.dont_fragment {
            return None;
        }
        let payload_len = bytes::len32(info.end - info.transport);
        let header_len = bytes::len32(info.transport - ethernet::HEADER_LEN);
        let room = mtu.checked_sub(header_len)?;
        let step = if payload_len <= room { payload_len } else { room & !7 };
        (step > 0 || payload_len == 0).then_some(Self { packet, payload_len, step })
    }

    fn count(&self) -> u32 {
        self.payload_len.div_ceil(self.step.max(1)).max(1)
    }
}

/// Sets length, offset and flag of a fragment whose payload begins at byte `start` of the packet.
fn patch(out: &mut [u8], start: usize, more: bool) -> Option<()> {
    let at = ethernet::HEADER_LEN;
    let old = bytes::u16_at(out, at + 6)?;
    let offset = (old & 0x1fff).checked_add(bytes::len16(start / 8)?)?;
    if offset > 0x1fff {
        return None;
    }
    // A last fragment of a fragment that is not the last has others behind it still.
    let more = if more { 0x2000 } else { old & 0x2000 };
    bytes::put_u16(out, at + 6, (old & 0xc000) | more | offset)?;
    bytes::put_u16(out, at + 2, bytes::len16(out.len() - at)?)?;
    ipv4::set_checksum(out)
}
