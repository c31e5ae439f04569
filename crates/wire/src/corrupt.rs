//! A bit error on the line.

use core::ops::Range;

use crate::packet::Info;
use crate::segment::Train;
use crate::{bytes, checksum, icmp, tcp, udp, vnet};

/// Flips one bit of a packet so that it still arrives and the receiver finds its checksum wrong.
///
/// The checksum is completed first (also where UDP over IPv4 had none, since the error would go
/// unseen otherwise), and `vnet` afterwards is that of a plain packet, which the
/// receiver has to check for itself. `random` chooses the
/// bit evenly in the transport payload; without payload, in the transport header except ports and
/// UDP's length. Fragments, and protocols whose checksum we do not know, get their error too; in
/// those the receiver, or its reassembly, has to notice.
///
/// Answers `false`, and leaves the frame alone, for trains of several packets (cut them first: cutting would repair
/// the checksum), for what is no IP packet, and for packets without a byte to damage.
pub fn corrupt(frame: &mut [u8], vnet: &mut vnet::Header, random: u64) -> bool {
    let Ok(info) = Info::parse(frame) else { return false };
    if Train::with_info(&info, frame, vnet).count > 1 {
        return false;
    }
    let Some(target) = target(frame, &info).filter(|target| !target.is_empty()) else {
        return false;
    };
    if completes_over_ports(vnet, &info) || !checksum::complete(frame, vnet) {
        return false;
    }
    if has_no_checksum(frame, &info) && checksum::fill(frame, &info).is_none() {
        return false;
    }
    *vnet = vnet::Header::default();
    flip(frame, &info, &target, random).is_some()
}

/// The bytes that may be hit.
fn target(frame: &[u8], info: &Info) -> Option<Range<usize>> {
    let end = info.transport_end(frame)?;
    let payload = info.payload(frame);
    let (fixed, header) = match info.protocol {
        _ if info.is_later_fragment => (0, 0),
        tcp::PROTOCOL => match tcp::View::parse(payload) {
            Ok(view) => (tcp::SEQUENCE, view.header_len()),
            Err(_) => (tcp::SEQUENCE, payload.len()),
        },
        udp::PROTOCOL => (udp::CHECKSUM, udp::HEADER_LEN),
        icmp::PROTOCOL_V4 | icmp::PROTOCOL_V6 => (icmp::CHECKSUM, icmp::HEADER_LEN),
        _ => (0, 0),
    };
    let start = info.transport + if info.transport + header < end { header } else { fixed };
    Some(start..end)
}

/// Whether the checksum to complete lies on UDP's ports or length, which no kernel asks for.
fn completes_over_ports(vnet: &vnet::Header, info: &Info) -> bool {
    let field = usize::from(vnet.csum_start) + usize::from(vnet.csum_offset);
    let ports = info.transport..info.transport + udp::CHECKSUM;
    vnet.needs_csum()
        && info.protocol == udp::PROTOCOL
        && (ports.contains(&field) || ports.contains(&(field + 1)))
}

fn has_no_checksum(frame: &[u8], info: &Info) -> bool {
    info.protocol == udp::PROTOCOL
        && !info.is_fragment
        && bytes::u16_at(frame, info.transport + udp::CHECKSUM) == Some(0)
}

fn flip(frame: &mut [u8], info: &Info, target: &Range<usize>, random: u64) -> Option<()> {
    let bits = u64::try_from(target.len()).ok()?.checked_mul(8)?;
    let bit = usize::try_from(random % bits).ok()?;
    *frame.get_mut(target.start + bit / 8)? ^= 1 << (bit % 8);
    // A UDP checksum that becomes 0 would say "none": hit its neighbour bit instead.
    if has_no_checksum(frame, info) {
        *frame.get_mut(target.start + bit / 8)? ^= 3 << (bit & 6);
    }
    Some(())
}
