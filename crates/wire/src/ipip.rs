//! IP in IP: IPv4 in IPv4 (RFC 2003), IPv6 in IPv6 (RFC 2473).

use core::net::IpAddr;

use crate::ecn;
use crate::packet::{IpVersion, ParsedPacket};
use crate::{bytes, ethernet, ipv4, ipv6};

/// Protocol number of IPv4 inside.
pub const PROTOCOL_V4: u8 = 4;
/// Protocol number of IPv6 inside.
pub const PROTOCOL_V6: u8 = 41;

/// The outer header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OuterIpHeader {
    /// Where the tunnel begins.
    pub source: IpAddr,
    /// Where it ends.
    pub destination: IpAddr,
    /// IPv4: what fragments share, and whether routers may not make any.
    pub identification: u16,
    /// Likewise.
    pub dont_fragment: bool,
}

/// Bytes that the outer header of a version has.
#[must_use]
pub const fn header_len(is_v6: bool) -> usize {
    if is_v6 { ipv6::HEADER_LEN } else { ipv4::HEADER_LEN }
}

/// Writes `frame`'s packet in another IP header behind its Ethernet header, and answers the length.
///
/// TTL and traffic class are those of the inner packet (RFC 6040, 4.1). The packet must be single,
/// and its checksums complete, since no header of a packet socket speaks of what is inside.
///
/// `None` where the frame is no IP packet, a family differs, the packet would be too long for its
/// length field, or `out` is shorter than the frame and [`header_len`].
pub fn wrap(frame: &[u8], outer: &OuterIpHeader, out: &mut [u8]) -> Option<usize> {
    let info = ParsedPacket::parse(frame).ok()?.info;
    let packet = frame.get(ethernet::HEADER_LEN..info.end)?;
    let at = ethernet::HEADER_LEN;
    let header = header_len(info.version == IpVersion::V6);
    let out = out.get_mut(..at + header + packet.len())?;
    bytes::copy(frame.get(..at)?, out)?;
    bytes::copy(packet, out.get_mut(at + header..)?)?;
    let first = bytes::u16_at(packet, 0)?;
    match (outer.source, outer.destination) {
        (IpAddr::V4(from), IpAddr::V4(to)) if info.version == IpVersion::V4 => {
            let total = bytes::len16(header + packet.len())?;
            let tos = first.to_be_bytes()[1];
            let fragments = if outer.dont_fragment { 0x40 } else { 0 };
            bytes::put(out, at, [0x45, tos, 0, 0, 0, 0, fragments, 0, info.ttl, PROTOCOL_V4])?;
            bytes::put_u16(out, at + 2, total)?;
            bytes::put_u16(out, at + 4, outer.identification)?;
            bytes::put(out, at + 12, from.octets())?;
            bytes::put(out, at + 16, to.octets())?;
            ipv4::set_checksum(out)?;
        }
        (IpAddr::V6(from), IpAddr::V6(to)) if info.version == IpVersion::V6 => {
            let [_, class] = (first >> 4).to_be_bytes();
            let [high, low] = (0x6000 | u16::from(class) << 4).to_be_bytes();
            bytes::put(out, at, [high, low, 0, 0, 0, 0, PROTOCOL_V6, info.ttl])?;
            bytes::put_u16(out, at + 4, bytes::len16(packet.len())?)?;
            bytes::put(out, at + 8, from.octets())?;
            bytes::put(out, at + 24, to.octets())?;
        }
        _ => return None,
    }
    Some(out.len())
}

/// Whether a frame holds a packet in another one, or a fragment of such.
#[must_use]
#[inline]
pub fn is_wrapped(frame: &[u8]) -> bool {
    let protocol = match ecn::version(frame) {
        Some(4) => bytes::u8_at(frame, ethernet::HEADER_LEN + 9),
        Some(_) => bytes::u8_at(frame, ethernet::HEADER_LEN + 6),
        None => None,
    };
    matches!(protocol, Some(PROTOCOL_V4 | PROTOCOL_V6))
}

/// Writes the frame of the packet inside a frame, and answers its length: the TTL becomes that of
/// the outer packet, and a mark of congestion stays (RFC 6040, 4.2).
///
/// `None` where there is no whole packet inside, or `out` is shorter than the frame.
pub fn unwrap(frame: &[u8], out: &mut [u8]) -> Option<usize> {
    let info = ParsedPacket::parse(frame).ok()?.info;
    let fits = match info.version {
        IpVersion::V4 => info.protocol == PROTOCOL_V4,
        IpVersion::V6 => info.protocol == PROTOCOL_V6,
    };
    if !fits || info.is_fragment {
        return None;
    }
    let inner = frame.get(info.transport..info.end)?;
    let out = out.get_mut(..ethernet::HEADER_LEN + inner.len())?;
    bytes::copy(frame.get(..ethernet::HEADER_LEN)?, out)?;
    bytes::copy(inner, out.get_mut(ethernet::HEADER_LEN..)?)?;
    let is_whole = ParsedPacket::parse(out).ok()?.info.version == info.version;
    if !is_whole {
        return None;
    }
    set_ttl(out, info.ttl)?;
    if info.ecn == ecn::EcnCodepoint::Ce {
        ecn::mark_ce(out);
    }
    Some(out.len())
}

/// Sets the TTL or hop limit.
fn set_ttl(frame: &mut [u8], ttl: u8) -> Option<()> {
    let at = ethernet::HEADER_LEN;
    if ecn::version(frame)? == 4 {
        bytes::put(frame, at + 8, [ttl])?;
        return ipv4::set_checksum(frame);
    }
    bytes::put(frame, at + 7, [ttl])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{build, checksum};

    fn outer(from: &str, to: &str) -> OuterIpHeader {
        let (source, destination) = (from.parse().unwrap(), to.parse().unwrap());
        OuterIpHeader { source, destination, identification: 0x1234, dont_fragment: true }
    }

    #[test]
    fn the_outer_header_of_ipv4_is_20_literal_bytes() {
        let inner =
            build::udp("10.0.0.1:9".parse().unwrap(), "10.1.0.80:53".parse().unwrap(), b"x");
        let inner = build::with_ecn(build::with_ttl(inner, 63), 2);
        let mut out = vec![0; inner.len() + 20];
        let length = wrap(&inner, &outer("10.0.9.1", "10.0.7.2"), &mut out).unwrap();
        assert_eq!(length, inner.len() + 20);
        let mut expected = vec![0x45, 2, 0, 49, 0x12, 0x34, 0x40, 0, 63, 4, 0, 0];
        expected.extend([10, 0, 9, 1, 10, 0, 7, 2]);
        // The sum of these words, inverted.
        let sum = checksum::checksum(&expected).to_be_bytes();
        expected[10..12].copy_from_slice(&sum);
        assert_eq!(out[14..34], expected);
        assert_eq!(out[34..], inner[14..]);
        assert!(checksum::verify(&out) && is_wrapped(&out) && !is_wrapped(&inner));
    }

    #[test]
    fn the_outer_header_of_ipv6_is_40_literal_bytes() {
        let inner =
            build::udp("[fd00::1]:9".parse().unwrap(), "[fd00::80]:53".parse().unwrap(), b"x");
        let inner = build::with_ecn(inner, 1);
        let mut out = vec![0; inner.len() + 40];
        let length = wrap(&inner, &outer("fd00::9", "fd00::7"), &mut out).unwrap();
        assert_eq!(length, inner.len() + 40);
        assert_eq!(out[14..22], [0x60, 0x10, 0, 0, 0, 49, 41, 64]);
        assert_eq!(out[54..], inner[14..]);
        assert!(is_wrapped(&out));
    }

    #[test]
    fn what_was_wrapped_comes_out_with_the_ttl_and_the_mark_of_the_way() {
        for (from, to, ends) in [
            ("10.0.0.1:9", "10.1.0.80:53", ("10.0.9.1", "10.0.7.2")),
            ("[fd00::1]:9", "[fd00::80]:53", ("fd00::9", "fd00::7")),
        ] {
            let inner = build::udp(from.parse().unwrap(), to.parse().unwrap(), b"hello");
            let inner = build::with_ecn(inner, 2);
            let mut out = vec![0; inner.len() + 40];
            let length = wrap(&inner, &outer(ends.0, ends.1), &mut out).unwrap();
            let wrapped = build::with_ecn(build::with_ttl(out[..length].to_vec(), 60), 3);
            let mut back = vec![0; length];
            let length = unwrap(&wrapped, &mut back).unwrap();
            assert_eq!(back[..length], build::with_ecn(build::with_ttl(inner, 60), 3));
        }
    }

    #[test]
    fn what_is_not_wrapped_or_too_long_is_refused() {
        let inner =
            build::udp("10.0.0.1:9".parse().unwrap(), "10.1.0.80:53".parse().unwrap(), b"x");
        let mut out = vec![0; 70_000];
        assert_eq!(unwrap(&inner, &mut out), None);
        assert_eq!(wrap(&inner, &outer("fd00::9", "fd00::7"), &mut out), None);
        assert_eq!(wrap(&[0; 30], &outer("10.0.9.1", "10.0.7.2"), &mut out), None);
        assert_eq!(wrap(&inner, &outer("10.0.9.1", "10.0.7.2"), &mut out[..40]), None);
        let long = build::ip([10, 0, 0, 1].into(), [10, 1, 0, 80].into(), 17, &[0; 65_500]);
        assert_eq!(wrap(&long, &outer("10.0.9.1", "10.0.7.2"), &mut out), None);
        let mut broken = vec![0; inner.len() + 20];
        wrap(&inner, &outer("10.0.9.1", "10.0.7.2"), &mut broken).unwrap();
        broken[34] = 0x65;
        assert_eq!(unwrap(&broken, &mut out), None, "what is inside is no IPv4 packet");
    }
}
