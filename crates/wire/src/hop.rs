//! What every router does to a packet: one hop fewer to live.

use core::fmt;

use crate::{bytes, checksum, ecn, ethernet, ipv4};

/// Why a packet cannot be forwarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForwardingError {
    /// Its time to live ends here: answer with time exceeded (RFC 1812, 5.3.1).
    Expired,
    /// It is not an IP packet.
    NotIp,
}

impl fmt::Display for ForwardingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Expired => "time to live has ended",
            Self::NotIp => "frame holds no ip packet",
        })
    }
}

impl core::error::Error for ForwardingError {}

/// Takes one from the TTL or hop limit and answers what is left, at least 1.
///
/// The IPv4 header checksum is updated, not recomputed (RFC 1624), so damage stays visible.
///
/// # Errors
/// [`ForwardingError::Expired`] when nothing would be left; the frame is then unchanged.
pub fn decrement_ttl(frame: &mut [u8]) -> Result<u8, ForwardingError> {
    match ecn::version(frame) {
        Some(4) => decrement_v4(frame).ok_or(ForwardingError::NotIp)?,
        Some(_) => decrement_v6(frame).ok_or(ForwardingError::NotIp)?,
        None => Err(ForwardingError::NotIp),
    }
}

fn decrement_v4(frame: &mut [u8]) -> Option<Result<u8, ForwardingError>> {
    let at = ethernet::HEADER_LEN + 8;
    let old = bytes::u16_at(frame, at)?;
    let [ttl, protocol] = old.to_be_bytes();
    if ttl <= 1 {
        return Some(Err(ForwardingError::Expired));
    }
    let new = u16::from_be_bytes([ttl - 1, protocol]);
    let field = ethernet::HEADER_LEN + ipv4::CHECKSUM;
    let sum = bytes::u16_at(frame, field)?;
    bytes::put_u16(frame, at, new)?;
    bytes::put_u16(frame, field, checksum::update(sum, old, new))?;
    Some(Ok(ttl - 1))
}

fn decrement_v6(frame: &mut [u8]) -> Option<Result<u8, ForwardingError>> {
    let limit = frame.get_mut(ethernet::HEADER_LEN + 7)?;
    if *limit <= 1 {
        return Some(Err(ForwardingError::Expired));
    }
    *limit -= 1;
    Some(Ok(*limit))
}
