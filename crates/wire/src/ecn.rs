//! Explicit congestion notification in the IP header (RFC 3168, 8311).

pub(crate) mod codepoint;

use crate::checksum::sum::update;
use crate::ethernet;
use crate::{bytes, ipv4};

pub use codepoint::EcnCodepoint;

/// The codepoint of an IP frame; `None` for anything else.
#[must_use]
pub fn codepoint(frame: &[u8]) -> Option<EcnCodepoint> {
    let first = bytes::u16_at(frame, ethernet::HEADER_LEN)?;
    match version(frame)? {
        4 => Some(EcnCodepoint::from_bits(first.to_be_bytes()[1])),
        _ => Some(EcnCodepoint::from_bits((first >> 4).to_be_bytes()[1])),
    }
}

/// Marks a frame, or every segment of a train, as having met congestion.
///
/// Answers whether it carries CE afterwards: ECT(0) and ECT(1) become CE and CE stays, as with
/// Linux's `INET_ECN_set_ce`; a packet whose sender does not take part is left alone and has to be
/// dropped instead. The IPv4 header checksum follows.
pub fn mark_ce(frame: &mut [u8]) -> bool {
    match codepoint(frame) {
        None | Some(EcnCodepoint::NotEct) => false,
        Some(EcnCodepoint::Ce) => true,
        Some(EcnCodepoint::Ect0 | EcnCodepoint::Ect1) => set_ce(frame).is_some(),
    }
}

fn set_ce(frame: &mut [u8]) -> Option<()> {
    let at = ethernet::HEADER_LEN;
    let old = bytes::u16_at(frame, at)?;
    if version(frame)? == 6 {
        return bytes::put_u16(frame, at, old | 0x0030);
    }
    let new = old | 0x0003;
    let sum = bytes::u16_at(frame, at + ipv4::CHECKSUM)?;
    bytes::put_u16(frame, at, new)?;
    bytes::put_u16(frame, at + ipv4::CHECKSUM, update(sum, old, new))
}

/// 4 or 6, where EtherType, version field and length agree.
pub(crate) fn version(frame: &[u8]) -> Option<u8> {
    let nibble = bytes::u8_at(frame, ethernet::HEADER_LEN)? >> 4;
    let header = match (bytes::u16_at(frame, 12)?, nibble) {
        (ethernet::IPV4, 4) => ipv4::HEADER_LEN,
        (ethernet::IPV6, 6) => crate::ipv6::HEADER_LEN,
        _ => return None,
    };
    (frame.len() >= ethernet::HEADER_LEN + header).then_some(nibble)
}
