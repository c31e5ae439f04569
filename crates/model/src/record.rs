//! Records of evidence: fixed 32 bytes for each thing that happened at a layer.
//!
//! All integers are little-endian. The address of a payload byte is (flow, direction, offset): the
//! offset counts from the first byte after the SYN, its low 32 bits are recorded; for UDP it is the
//! number of the datagram in its direction, from zero. `docs/records.md` describes each kind byte
//! by byte; this file and [`kind`] are its source.
//!
//! The preload library compiles the files of this module into itself (hence their paths): they use
//! `core` only.

#[path = "record/kind.rs"]
pub mod kind;
#[path = "record/region.rs"]
pub mod region;
#[path = "record/sends.rs"]
pub mod sends;

pub use kind::Kind;

/// Bytes of a record.
pub const BYTES: usize = 32;

/// One record. What `extra` and `args` mean depends on the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C, align(8))]
pub struct EventRecord {
    /// When, in nanoseconds of CLOCK_MONOTONIC of the machine that recorded; never 0.
    pub time: u64,
    /// A number of [`Kind`]; others are of a later version.
    pub kind: u8,
    /// Bits of [`flag`].
    pub flags: u8,
    pub extra: u16,
    /// A flow, by the number that this source has defined for it.
    pub flow: u32,
    pub args: [u32; 4],
}

/// Bits of [`EventRecord::flags`] for records of packets and calls.
pub mod flag {
    /// The direction: clear for from → to of the flow's definition (for a socket: sent), set for
    /// the reverse (received).
    pub const REVERSE: u8 = 1 << 0;
    /// Where the stream began is not known: the offset of a packet is its raw sequence number,
    /// that of a call counts from when recording began.
    pub const OFFSET_UNKNOWN: u8 = 1 << 1;
    /// Packet: SYN.
    pub const SYN: u8 = 1 << 2;
    /// Packet: FIN.
    pub const FIN: u8 = 1 << 3;
    /// Packet: RST.
    pub const RST: u8 = 1 << 4;
    /// Packet: the acknowledged offset is valid.
    pub const ACK: u8 = 1 << 5;
    /// Packet: it carries the mark of congestion experienced.
    pub const MARKED: u8 = 1 << 6;
    /// Packet: a copy that the duplicate element made.
    pub const COPY: u8 = 1 << 7;

    /// Call: the socket does not block.
    pub const NONBLOCKING: u8 = 1 << 2;
    /// Call: the bytes stay to be read again (`MSG_PEEK`); the offset does not advance.
    pub const PEEK: u8 = 1 << 3;
    /// Call: another call on the socket in the same direction went on at the same time; which
    /// came first is the kernel's order, and the offset may be that of the other.
    pub const SHARED: u8 = 1 << 4;
    /// Call: when it ended is not known.
    pub const END_UNKNOWN: u8 = 1 << 5;
    /// Call: a [`super::Kind::CallEnd`] record with the exact end follows, because the duration
    /// does not fit 32 bits.
    pub const LONG: u8 = 1 << 6;
}

impl EventRecord {
    /// As in a file.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        let (time, extra, flow) =
            (self.time.to_le_bytes(), self.extra.to_le_bytes(), self.flow.to_le_bytes());
        let mut at = 0;
        while at < 8 {
            bytes[at] = time[at];
            at += 1;
        }
        bytes[8] = self.kind;
        bytes[9] = self.flags;
        bytes[10] = extra[0];
        bytes[11] = extra[1];
        at = 0;
        while at < 4 {
            bytes[12 + at] = flow[at];
            at += 1;
        }
        at = 0;
        while at < 16 {
            bytes[16 + at] = self.args[at / 4].to_le_bytes()[at % 4];
            at += 1;
        }
        bytes
    }

    /// The record that these bytes are; every bit pattern is one.
    #[must_use]
    pub const fn from_bytes(bytes: &[u8; BYTES]) -> EventRecord {
        EventRecord {
            time: (u32_at(bytes, 0) as u64) | (u32_at(bytes, 4) as u64) << 32,
            kind: bytes[8],
            flags: bytes[9],
            extra: u16::from_le_bytes([bytes[10], bytes[11]]),
            flow: u32_at(bytes, 12),
            args: [u32_at(bytes, 16), u32_at(bytes, 20), u32_at(bytes, 24), u32_at(bytes, 28)],
        }
    }

    /// Two arguments, from the `first`, as one number, low half first.
    #[must_use]
    pub const fn wide(&self, first: usize) -> u64 {
        self.args[first] as u64 | (self.args[first + 1] as u64) << 32
    }

    /// The arguments as sixteen bytes.
    #[must_use]
    pub const fn arg_bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let mut at = 0;
        while at < 16 {
            bytes[at] = self.args[at / 4].to_le_bytes()[at % 4];
            at += 1;
        }
        bytes
    }
}

const fn u32_at(bytes: &[u8; BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Two halves of a number, low half first: what [`EventRecord::wide`] reads.
#[must_use]
pub const fn halves(number: u64) -> [u32; 2] {
    #[expect(clippy::cast_possible_truncation, reason = "the low half is what is wanted")]
    [number as u32, (number >> 32) as u32]
}

/// Four words from sixteen bytes: what [`EventRecord::arg_bytes`] reads.
#[must_use]
pub const fn words(bytes: [u8; 16]) -> [u32; 4] {
    let mut words = [0; 4];
    let mut at = 0;
    while at < 4 {
        let from = at * 4;
        words[at] =
            u32::from_le_bytes([bytes[from], bytes[from + 1], bytes[from + 2], bytes[from + 3]]);
        at += 1;
    }
    words
}
