//! Errors about the outer packet of a tunnel, made those about the inner one (RFC 2003, 4; RFC 2473,
//! 8).

use crate::packet::{IpVersion, ParsedPacket};
use crate::{bytes, checksum, ethernet, ipip, ipv4, ipv6};

use super::header::{HEADER_LEN, PACKET_TOO_BIG_V6, UNREACHABLE_V4};

/// Code of "fragmentation needed".
const FRAGMENTATION_NEEDED: u8 = 4;

/// Writes the error about the packet inside of the one that an error quotes, to the sender of that,
/// in the name of the same router; returns its length. An MTU is that without the outer header.
///
/// `None` where the frame is no such error or quotes too little, or `out` is shorter than the frame.
pub fn relay(frame: &[u8], out: &mut [u8]) -> Option<usize> {
    let packet = ParsedPacket::parse(frame).ok()?;
    let (info, message) = (&packet.info, packet.payload());
    if !info.is_icmp_error || info.is_fragment {
        return None;
    }
    let outer = message.get(HEADER_LEN..)?;
    let (overhead, to, inner) = match info.version {
        IpVersion::V4 => inner_v4(outer)?,
        IpVersion::V6 => inner_v6(outer)?,
    };
    let length = info.transport + HEADER_LEN + inner.len();
    let out = out.get_mut(..length)?;
    bytes::copy(frame.get(..info.transport + HEADER_LEN)?, out)?;
    bytes::copy(inner, out.get_mut(info.transport + HEADER_LEN..)?)?;
    let at = ethernet::HEADER_LEN;
    match info.version {
        IpVersion::V4 => {
            bytes::put_u16(out, at + 2, bytes::len16(length - at)?)?;
            bytes::copy(to, out.get_mut(at + 16..)?)?;
            ipv4::set_checksum(out)?;
        }
        IpVersion::V6 => {
            bytes::put_u16(out, at + 4, bytes::len16(length - at - ipv6::HEADER_LEN)?)?;
            bytes::copy(to, out.get_mut(at + 24..)?)?;
        }
    }
    let is_size = match (info.version, bytes::u8_at(message, 0)?, bytes::u8_at(message, 1)?) {
        (IpVersion::V4, UNREACHABLE_V4, FRAGMENTATION_NEEDED) => true,
        (IpVersion::V6, kind, _) => kind == PACKET_TOO_BIG_V6,
        _ => false,
    };
    if is_size {
        let mtu = bytes::u32_at(message, 4)?;
        // Of 0 (RFC 1191, 3: a router that knows no better) nothing is taken.
        bytes::put_u32(out, info.transport + 4, mtu.saturating_sub(overhead))?;
    }
    let info = ParsedPacket::parse(out).ok()?.info;
    checksum::fill(out, &info)?;
    Some(length)
}

/// The length of the outer header, the inner packet's source, and that packet as far as it is
/// there: its header and 8 bytes at least.
fn inner_v4(outer: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let first = bytes::u8_at(outer, 0)?;
    let is_first = bytes::u16_at(outer, 6)? & 0x1fff == 0;
    let header = usize::from(first & 0x0f) * 4;
    let wrapped = first >> 4 == 4 && bytes::u8_at(outer, 9)? == ipip::PROTOCOL_V4 && is_first;
    let inner = outer.get(header..).filter(|_| wrapped && header >= ipv4::HEADER_LEN)?;
    let fits = bytes::u8_at(inner, 0)? >> 4 == 4 && inner.len() >= ipv4::HEADER_LEN + 8;
    let source = inner.get(12..16)?;
    fits.then_some((bytes::len32(header), source, inner))
}

fn inner_v6(outer: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let wrapped = bytes::u8_at(outer, 0)? >> 4 == 6 && bytes::u8_at(outer, 6)? == ipip::PROTOCOL_V6;
    let inner = outer.get(ipv6::HEADER_LEN..).filter(|_| wrapped)?;
    let fits = bytes::u8_at(inner, 0)? >> 4 == 6 && inner.len() >= ipv6::HEADER_LEN + 8;
    let source = inner.get(8..24)?;
    fits.then_some((bytes::len32(ipv6::HEADER_LEN), source, inner))
}

#[cfg(test)]
mod tests {
    use super::super::{IcmpErrorKind, IcmpErrorReply, IcmpQuotedFlow, write_error};
    use super::*;
    use crate::build;

    #[test]
    fn an_error_about_the_outer_packet_becomes_one_about_the_inner() {
        for (client, service, ends, by, mtu) in [
            ("10.0.0.1:5000", "10.1.0.80:80", ("10.0.9.1", "10.0.7.2"), "10.9.9.9", 1380),
            ("[fd00::1]:5000", "[fd00::80]:80", ("fd00::9", "fd00::7"), "fd00::99", 1360),
        ] {
            let (client, service) = (client.parse().unwrap(), service.parse().unwrap());
            let inner = build::udp(client, service, &[7; 1000]);
            let outer = ipip::OuterIpHeader {
                source: ends.0.parse().unwrap(),
                destination: ends.1.parse().unwrap(),
                identification: 0,
                dont_fragment: true,
            };
            let mut wrapped = vec![0; 2000];
            let length = ipip::wrap(&inner, &outer, &mut wrapped).unwrap();
            let reply = IcmpErrorReply {
                kind: IcmpErrorKind::TooBig { mtu: 1400 },
                source: by.parse().unwrap(),
                mac: [2; 6],
            };
            let mut error = [0; 1294];
            let length = write_error(&reply, &wrapped[..length], &mut error).unwrap();
            let mut out = vec![0; length];
            let length = relay(&error[..length], &mut out).unwrap();
            let relayed = &out[..length];
            assert!(checksum::verify(relayed));
            let relayed = ParsedPacket::parse(relayed).unwrap();
            let info = relayed.info;
            assert_eq!((info.source, info.destination), (by.parse().unwrap(), client.ip()));
            let quote = IcmpQuotedFlow::of(&relayed).unwrap();
            assert_eq!((quote.source, quote.destination), (client.ip(), service.ip()));
            assert_eq!(bytes::u32_at(relayed.payload(), 4), Some(mtu));
        }
    }

    #[test]
    fn an_error_about_anything_else_is_not_relayed() {
        let (from, to) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
        let about = build::udp(from, to, b"hello");
        let source = [10, 9, 9, 9].into();
        let reply = IcmpErrorReply { kind: IcmpErrorKind::TimeExceeded, source, mac: [2; 6] };
        let mut error = [0; 1294];
        let length = write_error(&reply, &about, &mut error).unwrap();
        assert_eq!(relay(&error[..length], &mut [0; 1294]), None);
        assert_eq!(relay(&about, &mut [0; 1294]), None);
    }
}
