//! The packet that an ICMP error is about.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::packet::{IpVersion, ParsedPacket};
use crate::{bytes, ipv4, ipv6};

use super::header::HEADER_LEN;

/// What an error says of the flow that it is about: source and destination of the quoted packet,
/// whose source is the receiver of the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpQuotedFlow {
    /// The quoted packet's sender.
    pub source: IpAddr,
    /// Its receiver.
    pub destination: IpAddr,
    /// Its transport protocol.
    pub protocol: u8,
    /// Its source and destination port; for what has none, the same bytes.
    pub ports: (u16, u16),
}

impl IcmpQuotedFlow {
    /// Reads what an error quotes: at least the IP header and the 8 bytes behind it (RFC 792).
    /// `None` where the frame is no such error, quotes less, a later fragment, or a packet with
    /// extension headers.
    #[must_use]
    pub fn of(packet: &ParsedPacket<'_>) -> Option<IcmpQuotedFlow> {
        let info = &packet.info;
        if !info.is_icmp_error || info.is_fragment {
            return None;
        }
        let quoted = packet.payload().get(HEADER_LEN..)?;
        match info.version {
            IpVersion::V4 => of_v4(quoted),
            IpVersion::V6 => of_v6(quoted),
        }
    }
}

fn of_v4(quoted: &[u8]) -> Option<IcmpQuotedFlow> {
    let first = bytes::u8_at(quoted, 0)?;
    let is_first = bytes::u16_at(quoted, 6)? & 0x1fff == 0;
    let header = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header < ipv4::HEADER_LEN || !is_first {
        return None;
    }
    Some(IcmpQuotedFlow {
        source: Ipv4Addr::from(bytes::array_at::<4>(quoted, 12)?).into(),
        destination: Ipv4Addr::from(bytes::array_at::<4>(quoted, 16)?).into(),
        protocol: bytes::u8_at(quoted, 9)?,
        ports: (bytes::u16_at(quoted, header)?, bytes::u16_at(quoted, header + 2)?),
    })
}

fn of_v6(quoted: &[u8]) -> Option<IcmpQuotedFlow> {
    if bytes::u8_at(quoted, 0)? >> 4 != 6 {
        return None;
    }
    Some(IcmpQuotedFlow {
        source: Ipv6Addr::from(bytes::array_at::<16>(quoted, 8)?).into(),
        destination: Ipv6Addr::from(bytes::array_at::<16>(quoted, 24)?).into(),
        protocol: bytes::u8_at(quoted, 6)?,
        ports: (
            bytes::u16_at(quoted, ipv6::HEADER_LEN)?,
            bytes::u16_at(quoted, ipv6::HEADER_LEN + 2)?,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{IcmpErrorKind, IcmpErrorReply, write_error};
    use super::*;
    use crate::build;

    #[test]
    fn an_error_names_the_flow_that_it_is_about() {
        for (from, to, by) in [
            ("10.1.0.80:80", "10.0.0.1:5000", "10.9.9.9"),
            ("[fd00::80]:80", "[fd00::1]:5000", "fd00::9"),
        ] {
            let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
            let about = build::tcp(from, to, 1, 0x10, &[0; 2000]);
            let reply = IcmpErrorReply {
                kind: IcmpErrorKind::TooBig { mtu: 1400 },
                source: by.parse().unwrap(),
                mac: [2; 6],
            };
            let mut out = [0; 1294];
            let length = write_error(&reply, &about, &mut out).unwrap();
            let error = ParsedPacket::parse(&out[..length]).unwrap();
            let quote = IcmpQuotedFlow::of(&error).unwrap();
            assert_eq!((quote.source, quote.destination), (from.ip(), to.ip()));
            assert_eq!((quote.protocol, quote.ports), (6, (80, 5000)));
        }
    }

    #[test]
    fn what_is_no_error_or_is_cut_quotes_nothing() {
        let (from, to) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        for message in [&[8, 0, 0, 0, 0, 0, 0, 0][..], &[3, 1, 0, 0, 0, 0, 0, 0, 0x45, 0]] {
            let frame = build::ip(from, to, 1, message);
            assert_eq!(IcmpQuotedFlow::of(&ParsedPacket::parse(&frame).unwrap()), None);
        }
    }
}
