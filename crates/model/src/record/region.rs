//! The memory that a source of records shares with their reader: layout only.
//!
//! A region is a header of [`HEADER_BYTES`], then [`RING_HEADER_BYTES`] for each ring, then the
//! slots of each ring ([`super::BYTES`] each), then the table of sockets. Any number of writers, of
//! any process, write to a ring; one reader reads it.
//!
//! A writer takes a slot: it loads `head` and `tail` of the ring; where `head - tail` is the number
//! of slots, it adds 1 to `lost` and is done; else it replaces `head` by `head + 1` (compare and
//! exchange; on failure again). It writes bytes 8 to 31 of the slot `head % slots`, and last, with
//! release order, the time. A time of 0 says that the slot is free (as in MAGNeT, section 3.2): the
//! reader loads the time with acquire order, copies the slot, stores 0 to the time, and then, with
//! release order, `tail + 1`.
//!
//! The slot of a writer that was killed in between stays 0. A reader passes over it when it has
//! waited for it long enough, and counts it as lost. A writer that was only stopped finds `tail`
//! beyond its slot, and does not store the time.

/// The first eight bytes: `WTREGION`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"WTREGION");
/// The version of this layout.
pub const VERSION: u32 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of a ring's header: its words are on cache lines of their own.
pub const RING_HEADER_BYTES: usize = 256;
/// Bytes of an entry of the table of sockets.
pub const SOCKET_BYTES: usize = 128;
/// A key is within so many entries from the one that its hash names.
pub const SOCKETS_PROBED: u32 = 32;

/// Offsets in the header of the region.
pub mod header {
    /// u64: [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// u32: [`super::VERSION`].
    pub const VERSION: usize = 8;
    /// u32: how many rings.
    pub const RINGS: usize = 12;
    /// u32: slots of each ring, a power of two.
    pub const SLOTS: usize = 16;
    /// u32: entries of the table of sockets, a power of two.
    pub const SOCKETS: usize = 20;
    /// u32, atomic: bit 0: record events; else sources only keep count of offsets. The other bits
    /// count how often recording was started: sources define flows anew each time.
    pub const RECORDING: usize = 64;
    /// u32, atomic: the number of the last flow of this region; the first is 1.
    pub const LAST_FLOW: usize = 128;
    /// u32, atomic: sockets for which the table had no entry.
    pub const SOCKETS_REFUSED: usize = 192;
    /// u64, atomic: of which UDP ports programs declare what they send, by [`super::super::sends::bit`].
    pub const PORTS: usize = 256;
}

/// Offsets in the header of a ring, each a u64 and atomic.
pub mod ring {
    /// Slots taken by writers, ever.
    pub const HEAD: usize = 0;
    /// Slots given back by the reader, ever.
    pub const TAIL: usize = 64;
    /// Events for which there was no slot, ever.
    pub const LOST: usize = 128;
    /// The earliest time among events lost since the reader last set this to 0, all bits inverted.
    /// Written, and so is [`LOST_LATEST`], before [`LOST`].
    pub const LOST_EARLIEST: usize = 136;
    /// The latest of those times.
    pub const LOST_LATEST: usize = 144;
    /// How many of [`LOST`] the reader has reported.
    pub const LOST_REPORTED: usize = 192;
}

/// Offsets in an entry of the table of sockets. The key is a hash of the cookie, and for a peer of
/// a socket that is not connected also of the peer's address; the entry is one of the
/// [`SOCKETS_PROBED`] from `key % sockets` on. An entry is made when the first process uses the
/// socket, also while nothing is recorded, and is free again when its references are gone.
pub mod socket {
    /// u64, atomic: the key; 0: free.
    pub const KEY: usize = 0;
    /// u64, atomic: bytes (datagrams) sent in the low 56 bits; above, how many calls send now.
    pub const SENT: usize = 8;
    /// u64, atomic: bytes (datagrams) received, and how many calls receive now.
    pub const RECEIVED: usize = 16;
    /// u32, atomic: the flow's number.
    pub const FLOW: usize = 24;
    /// u32, atomic: the word [`super::header::RECORDING`] for which the flow was defined.
    pub const DEFINED: usize = 28;
    /// u32, atomic: bits of [`super::socket_state`].
    pub const STATE: usize = 32;
    /// u32, atomic: descriptors of all processes that refer to it.
    pub const REFERENCES: usize = 36;
    /// u64: the cookie.
    pub const COOKIE: usize = 40;
    /// u32, atomic: one more than the entry of the next peer of this socket; 0: there is none.
    pub const NEXT_PEER: usize = 48;
    /// u32: the process that made the entry.
    pub const PID: usize = 52;
    /// u32: its descriptor.
    pub const DESCRIPTOR: usize = 56;
    /// u8: the protocol.
    pub const PROTOCOL: usize = 60;
    /// u16: the size of segments into which a datagram is cut (`UDP_SEGMENT`), or 0.
    pub const SEGMENT: usize = 62;
    /// Sixteen bytes: the socket's own address.
    pub const FROM: usize = 64;
    /// Sixteen bytes: that of the other side.
    pub const TO: usize = 80;
    /// u16: the socket's own port.
    pub const FROM_PORT: usize = 96;
    /// u16: that of the other side.
    pub const TO_PORT: usize = 98;
}

/// Bits of the state of a socket.
pub mod socket_state {
    /// Offsets count bytes, not datagrams.
    pub const STREAM: u32 = 1 << 0;
    /// It has one peer.
    pub const CONNECTED: u32 = 1 << 1;
    /// Its calls do not block (`O_NONBLOCK`).
    pub const NONBLOCKING: u32 = 1 << 2;
    /// It was in use before the entry was made: offsets count from then.
    pub const OFFSET_UNKNOWN: u32 = 1 << 3;
    /// A stream of stdio was made of it, whose calls cannot be seen.
    pub const STDIO: u32 = 1 << 4;
}

/// The low bits of [`socket::SENT`] and [`socket::RECEIVED`], which count; the others are the number
/// of calls.
pub const OFFSET_BITS: u32 = 56;

/// Where things are in a region of so many rings, slots and sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRegionLayout {
    /// How many rings.
    pub rings: u32,
    /// Slots of each, a power of two.
    pub slots: u32,
    /// Entries of the table of sockets, a power of two, or 0.
    pub sockets: u32,
}

impl RecordRegionLayout {
    /// The whole length in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.socket(self.sockets)
    }

    /// The offset of a ring's header.
    #[must_use]
    pub const fn ring(&self, ring: u32) -> usize {
        HEADER_BYTES + ring as usize * RING_HEADER_BYTES
    }

    /// The offset of a slot.
    #[must_use]
    pub const fn slot(&self, ring: u32, slot: u32) -> usize {
        let before = ring as usize * self.slots as usize + slot as usize;
        self.ring(self.rings) + before * super::BYTES
    }

    /// The offset of an entry of the table of sockets.
    #[must_use]
    pub const fn socket(&self, entry: u32) -> usize {
        self.slot(self.rings, 0) + entry as usize * SOCKET_BYTES
    }
}
