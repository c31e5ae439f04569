//! Pieces of frames in the payload of a datagram.

use crate::{bytes, vnet};

use super::{FRAME_MAX, TunnelParseError};

/// A piece of a frame, or a whole one. It reaches to the frame's end or to the payload's, whichever
/// comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameFragment {
    /// Number of the frame among those from this sender to this receiver.
    pub frame: u32,
    /// Bytes of the frame.
    pub total: u32,
    /// Where in the frame the piece begins.
    pub offset: u32,
}

/// What is said of a frame, with its first piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// Port of the plan by which the frame leaves the emulated network.
    pub port: u32,
    /// The lane on whose account it comes.
    pub lane: u32,
    /// When it is to arrive, in nanoseconds of the clock that the machines have agreed on.
    pub intended: u64,
    /// The virtio-net header, in the byte order of the machine that sends it.
    pub vnet: [u8; vnet::VirtioNetHeader::LEN],
}

/// Where a piece lies in a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PiecePosition {
    /// The piece.
    pub piece: FrameFragment,
    /// With the first piece of a frame: what is said of it.
    pub label: Option<Label>,
    /// Offset of its bytes in the payload.
    pub start: usize,
    /// Offset behind its bytes: there the next piece begins.
    pub end: usize,
}

impl FrameFragment {
    /// Bytes before a piece.
    pub const LEN: usize = 12;

    /// Reads the piece that begins at `at`. `None`: there is none any more, what follows is
    /// padding, which is to say fewer bytes than a piece has, or a frame of no bytes.
    ///
    /// # Errors
    /// A piece beyond its frame's end, a frame that is too long, a first piece without its label.
    pub fn parse(payload: &[u8], at: usize) -> Result<Option<PiecePosition>, TunnelParseError> {
        let Some(fields) = bytes::array_at::<{ Self::LEN }>(payload, at) else { return Ok(None) };
        let [f0, f1, f2, f3, t0, t1, t2, t3, o0, o1, o2, o3] = fields;
        let piece = FrameFragment {
            frame: u32::from_be_bytes([f0, f1, f2, f3]),
            total: u32::from_be_bytes([t0, t1, t2, t3]),
            offset: u32::from_be_bytes([o0, o1, o2, o3]),
        };
        if piece.total == 0 {
            return Ok(None);
        }
        if bytes::index(piece.total) > FRAME_MAX || piece.offset >= piece.total {
            return Err(TunnelParseError::Piece);
        }
        let behind = at + Self::LEN;
        let (label, start) = match piece.offset {
            0 => (Some(Label::parse(payload, behind)?), behind + Label::LEN),
            _ => (None, behind),
        };
        let left = bytes::index(piece.total - piece.offset);
        let end = payload.len().min(start + left);
        if end <= start {
            return Err(TunnelParseError::Truncated);
        }
        Ok(Some(PiecePosition { piece, label, start, end }))
    }

    /// Writes as much as `out` holds of a piece of `frame` from `offset` on, with the label where
    /// that is 0. Returns the bytes written and how many of them are the frame's; `None`, and
    /// nothing written, if there is no room for even one.
    pub fn write(
        number: u32,
        label: &Label,
        frame: &[u8],
        offset: usize,
        out: &mut [u8],
    ) -> Option<(usize, usize)> {
        let left = frame.get(offset..)?;
        let start = if offset == 0 { Self::LEN + Label::LEN } else { Self::LEN };
        let taken = out.len().checked_sub(start)?.min(left.len());
        if taken == 0 || frame.len() > FRAME_MAX {
            return None;
        }
        bytes::put_u32(out, 0, number)?;
        bytes::put_u32(out, 4, bytes::len32(frame.len()))?;
        bytes::put_u32(out, 8, bytes::len32(offset))?;
        if offset == 0 {
            bytes::put(out, Self::LEN, label.emit())?;
        }
        out[start..start + taken].copy_from_slice(&left[..taken]);
        Some((start + taken, taken))
    }
}

impl PiecePosition {
    /// Whether the piece is a whole frame.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.label.is_some() && self.end - self.start == bytes::index(self.piece.total)
    }
}

impl Label {
    /// Bytes of a label.
    pub const LEN: usize = 26;

    fn parse(payload: &[u8], at: usize) -> Result<Self, TunnelParseError> {
        let read = || {
            Some(Self {
                port: bytes::u32_at(payload, at)?,
                lane: bytes::u32_at(payload, at + 4)?,
                intended: u64::from_be_bytes(bytes::array_at(payload, at + 8)?),
                vnet: bytes::array_at(payload, at + 16)?,
            })
        };
        read().ok_or(TunnelParseError::Truncated)
    }

    fn emit(&self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[..4].copy_from_slice(&self.port.to_be_bytes());
        out[4..8].copy_from_slice(&self.lane.to_be_bytes());
        out[8..16].copy_from_slice(&self.intended.to_be_bytes());
        out[16..].copy_from_slice(&self.vnet);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: Label =
        Label { port: 0x0102_0304, lane: 5, intended: 0x0607, vnet: *b"virtio-net" };
    const FIRST: &[u8] = b"\0\0\0\x09\0\0\0\x05\0\0\0\0\
        \x01\x02\x03\x04\0\0\0\x05\0\0\0\0\0\0\x06\x07virtio-netfr";
    const SECOND: &[u8] = b"\0\0\0\x09\0\0\0\x05\0\0\0\x02ame";

    #[test]
    fn a_frame_is_cut_where_the_room_ends() {
        let mut out = [0; 40];
        assert_eq!(FrameFragment::write(9, &LABEL, b"frame", 0, &mut out), Some((40, 2)));
        assert_eq!(out, FIRST);
        assert_eq!(FrameFragment::write(9, &LABEL, b"frame", 2, &mut out), Some((15, 3)));
        assert_eq!(out[..15], *SECOND);
        assert_eq!(
            FrameFragment::write(9, &LABEL, b"frame", 0, &mut out[..38]),
            None,
            "no byte fits"
        );
        assert_eq!(FrameFragment::write(9, &LABEL, b"frame", 2, &mut out[..12]), None);
        assert_eq!(FrameFragment::write(9, &LABEL, &[0; FRAME_MAX + 1], 0, &mut out), None);
    }

    #[test]
    fn pieces_are_found_one_after_the_other() {
        let payload = [SECOND, &FIRST[..38], b"whole", &[0; 7]].concat();
        let second = FrameFragment::parse(&payload, 0).unwrap().unwrap();
        assert_eq!(second.piece, FrameFragment { frame: 9, total: 5, offset: 2 });
        assert_eq!((second.label, second.start, second.end), (None, 12, 15));
        let whole = FrameFragment::parse(&payload, second.end).unwrap().unwrap();
        assert_eq!((whole.label, &payload[whole.start..whole.end]), (Some(LABEL), &b"whole"[..]));
        assert!(whole.is_whole() && !second.is_whole());
        assert_eq!(
            FrameFragment::parse(&payload, whole.end),
            Ok(None),
            "padding shorter than a piece"
        );
        assert_eq!(FrameFragment::parse(&[0; 30], 5), Ok(None), "padding of zeros");
    }

    #[test]
    fn a_piece_that_contradicts_its_frame_is_refused() {
        let mut beyond = SECOND.to_vec();
        beyond[11] = 5;
        assert_eq!(FrameFragment::parse(&beyond, 0), Err(TunnelParseError::Piece));
        let mut long = FIRST.to_vec();
        long[5] = 2;
        assert_eq!(FrameFragment::parse(&long, 0), Err(TunnelParseError::Piece));
        assert_eq!(
            FrameFragment::parse(&FIRST[..37], 0),
            Err(TunnelParseError::Truncated),
            "half a label"
        );
        assert_eq!(
            FrameFragment::parse(&FIRST[..38], 0),
            Err(TunnelParseError::Truncated),
            "no byte of it"
        );
    }
}
