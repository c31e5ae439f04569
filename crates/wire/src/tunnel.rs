//! Datagrams that carry frames of emulated nodes between the machines of one run.
//!
//! A datagram is a [`TunnelHeader`], a payload and, when it is sealed, a tag of [`TAG_LEN`] bytes. The
//! payload of [`TunnelDatagramKind::Data`] is a row of [`FrameFragment`]s: whole frames, the end of one that began in an
//! earlier datagram, the beginning of one that goes on in a later one. All fields are big-endian.
//!
//! The format is ours; `docs/internals/tunnel.md` has it byte by byte.

mod piece;

use core::fmt;

use crate::bytes;

pub use piece::{FrameFragment, Label, PiecePosition};

/// The format's number: the first byte of every datagram.
pub const VERSION: u8 = 1;
/// Bytes of the header.
pub const HEADER_LEN: usize = 24;
/// Bytes of the tag behind a sealed payload.
pub const TAG_LEN: usize = 16;
/// Bytes of a frame at the most: a GSO packet of 64 KiB with its Ethernet header, and some room.
pub const FRAME_MAX: usize = 66 << 10;

/// Added to the kind: the payload is sealed, and the header with it.
const SEALED: u8 = 0x80;

/// What a datagram is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TunnelDatagramKind {
    /// It carries frames.
    Data,
    /// It asks for an [`TunnelProbeReply`] to its [`TunnelProbeRequest`]; zeros make it as long as is to be tried.
    Probe,
    /// It answers a probe.
    Ack,
}

/// What stands before every payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunnelHeader {
    /// What it is for.
    pub kind: TunnelDatagramKind,
    /// Whether the payload is sealed.
    pub sealed: bool,
    /// Member number of the machine that sent it.
    pub sender: u16,
    /// Member number of the machine that it is for.
    pub receiver: u16,
    /// The run.
    pub run: u64,
    /// Number of the datagram from this sender to this receiver, one series for data and one for
    /// the rest.
    pub sequence: u64,
}

/// Why a datagram is none of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TunnelParseError {
    /// Fewer bytes than a header, or than the part that begins here.
    Truncated,
    /// Another version of the format, or something else altogether.
    Version(u8),
    /// A kind that this version does not know.
    Kind(u8),
    /// The length field says otherwise than the datagram's length.
    Length,
    /// A frame of no or too many bytes, or a piece beyond its frame's end.
    Piece,
}

impl TunnelHeader {
    /// Reads the header of a whole datagram.
    ///
    /// # Errors
    /// Another version or kind, too few bytes, a length field that contradicts them.
    pub fn parse(datagram: &[u8]) -> Result<Self, TunnelParseError> {
        let version = bytes::u8_at(datagram, 0).ok_or(TunnelParseError::Truncated)?;
        if version != VERSION {
            return Err(TunnelParseError::Version(version));
        }
        let (header, behind) =
            datagram.split_first_chunk::<HEADER_LEN>().ok_or(TunnelParseError::Truncated)?;
        let kind = match header[1] & !SEALED {
            0 => TunnelDatagramKind::Data,
            1 => TunnelDatagramKind::Probe,
            2 => TunnelDatagramKind::Ack,
            other => return Err(TunnelParseError::Kind(other)),
        };
        let sealed = header[1] & SEALED != 0;
        let length = usize::from(u16::from_be_bytes([header[6], header[7]]));
        if length != behind.len() || sealed && length < TAG_LEN {
            return Err(TunnelParseError::Length);
        }
        let [_, _, s0, s1, t0, t1, _, _, rest @ ..] = *header;
        let [r0, r1, r2, r3, r4, r5, r6, r7, n0, n1, n2, n3, n4, n5, n6, n7] = rest;
        Ok(Self {
            kind,
            sealed,
            sender: u16::from_be_bytes([s0, s1]),
            receiver: u16::from_be_bytes([t0, t1]),
            run: u64::from_be_bytes([r0, r1, r2, r3, r4, r5, r6, r7]),
            sequence: u64::from_be_bytes([n0, n1, n2, n3, n4, n5, n6, n7]),
        })
    }

    /// Writes the header of a datagram with `behind` bytes behind it, tag included; `None` for more
    /// than a datagram can have.
    #[must_use]
    pub fn emit(&self, behind: usize) -> Option<[u8; HEADER_LEN]> {
        let kind = match self.kind {
            TunnelDatagramKind::Data => 0,
            TunnelDatagramKind::Probe => 1,
            TunnelDatagramKind::Ack => 2,
        };
        let mut out = [0; HEADER_LEN];
        out[0] = VERSION;
        out[1] = kind | if self.sealed { SEALED } else { 0 };
        bytes::put_u16(&mut out, 2, self.sender)?;
        bytes::put_u16(&mut out, 4, self.receiver)?;
        bytes::put_u16(&mut out, 6, bytes::len16(behind)?)?;
        bytes::put(&mut out, 8, self.run.to_be_bytes())?;
        bytes::put(&mut out, 16, self.sequence.to_be_bytes())?;
        Some(out)
    }
}

/// What a probe asks back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunnelProbeRequest {
    /// When it was sent, by the sender's own clock: only the sender reads it.
    pub stamp: u64,
}

impl TunnelProbeRequest {
    /// Bytes of a question.
    pub const LEN: usize = 8;

    /// Reads the payload of a probe.
    ///
    /// # Errors
    /// Too few bytes.
    pub fn parse(payload: &[u8]) -> Result<Self, TunnelParseError> {
        let stamp = bytes::array_at(payload, 0).ok_or(TunnelParseError::Truncated)?;
        Ok(Self { stamp: u64::from_be_bytes(stamp) })
    }

    /// Writes it.
    #[must_use]
    pub fn emit(&self) -> [u8; Self::LEN] {
        self.stamp.to_be_bytes()
    }
}

/// What answers a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TunnelProbeReply {
    /// The stamp of the probe.
    pub stamp: u64,
    /// Bytes of the probe's datagram, header included, as it arrived.
    pub size: u16,
}

impl TunnelProbeReply {
    /// Bytes of an answer.
    pub const LEN: usize = 10;

    /// Reads the payload of an answer.
    ///
    /// # Errors
    /// Too few or too many bytes.
    pub fn parse(payload: &[u8]) -> Result<Self, TunnelParseError> {
        let [s0, s1, s2, s3, s4, s5, s6, s7, n0, n1] =
            *payload.first_chunk::<{ Self::LEN }>().ok_or(TunnelParseError::Truncated)?;
        if payload.len() != Self::LEN {
            return Err(TunnelParseError::Length);
        }
        let stamp = u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
        Ok(Self { stamp, size: u16::from_be_bytes([n0, n1]) })
    }

    /// Writes it.
    #[must_use]
    pub fn emit(&self) -> [u8; Self::LEN] {
        let [s0, s1, s2, s3, s4, s5, s6, s7] = self.stamp.to_be_bytes();
        let [n0, n1] = self.size.to_be_bytes();
        [s0, s1, s2, s3, s4, s5, s6, s7, n0, n1]
    }
}

impl fmt::Display for TunnelParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TunnelParseError::Truncated => f.write_str("shorter than its headers"),
            TunnelParseError::Version(version) => {
                write!(f, "version {version}, known is {VERSION}")
            }
            TunnelParseError::Kind(kind) => write!(f, "unknown kind {kind}"),
            TunnelParseError::Length => f.write_str("the length field contradicts the length"),
            TunnelParseError::Piece => f.write_str("a piece contradicts its frame"),
        }
    }
}

impl core::error::Error for TunnelParseError {}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: TunnelHeader = TunnelHeader {
        kind: TunnelDatagramKind::Probe,
        sealed: true,
        sender: 0x0102,
        receiver: 3,
        run: 0x1112_1314_1516_1718,
        sequence: 0x2122_2324_2526_2728,
    };
    const BYTES: [u8; HEADER_LEN] = *b"\x01\x81\x01\x02\0\x03\0\x18\
        \x11\x12\x13\x14\x15\x16\x17\x18\x21\x22\x23\x24\x25\x26\x27\x28";

    #[test]
    fn a_header_is_read_and_written_byte_for_byte() {
        assert_eq!(HEADER.emit(24), Some(BYTES));
        let datagram = [&BYTES[..], &[0; 24]].concat();
        assert_eq!(TunnelHeader::parse(&datagram), Ok(HEADER));
        assert_eq!(HEADER.emit(65_536), None, "longer than a datagram");
    }

    #[test]
    fn a_cut_long_or_foreign_datagram_is_refused_with_the_reason() {
        let datagram = [&BYTES[..], &[0; 24]].concat();
        let refusal = |bytes: &[u8]| TunnelHeader::parse(bytes).unwrap_err();
        assert_eq!(refusal(&[]), TunnelParseError::Truncated);
        assert_eq!(refusal(&datagram[..23]), TunnelParseError::Truncated);
        assert_eq!(refusal(&datagram[..47]), TunnelParseError::Length);
        assert_eq!(refusal(&[&datagram[..], &[0]].concat()), TunnelParseError::Length);
        let with = |at: usize, value: u8| {
            let mut changed = datagram.clone();
            changed[at] = value;
            refusal(&changed)
        };
        assert_eq!(with(0, 2), TunnelParseError::Version(2));
        assert_eq!(with(1, 0x83), TunnelParseError::Kind(3));
        let mut short = [&BYTES[..], &[0; 15]].concat();
        short[7] = 15;
        assert_eq!(refusal(&short), TunnelParseError::Length, "no room for the tag");
        short[1] = 1;
        assert!(TunnelHeader::parse(&short).is_ok(), "it needs none unsealed");
    }

    #[test]
    fn questions_and_answers_come_back_as_they_were_written() {
        let question = TunnelProbeRequest { stamp: 0x0102_0304_0506_0708 };
        assert_eq!(question.emit(), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(TunnelProbeRequest::parse(&[1, 2, 3, 4, 5, 6, 7, 8, 0, 0]), Ok(question));
        assert_eq!(TunnelProbeRequest::parse(&[0; 7]), Err(TunnelParseError::Truncated));
        let answer = TunnelProbeReply { stamp: 9, size: 0x0578 };
        assert_eq!(answer.emit(), [0, 0, 0, 0, 0, 0, 0, 9, 5, 0x78]);
        assert_eq!(TunnelProbeReply::parse(&answer.emit()), Ok(answer));
        assert_eq!(TunnelProbeReply::parse(&[0; 9]), Err(TunnelParseError::Truncated));
        assert_eq!(TunnelProbeReply::parse(&[0; 11]), Err(TunnelParseError::Length));
    }
}
