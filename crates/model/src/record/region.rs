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
//! waited for it long enough, and counts it as lost.

/// The first eight bytes: `WTREGION`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"WTREGION");
/// The version of this layout.
pub const VERSION: u32 = 1;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 4096;
/// Bytes of a ring's header: its words are on cache lines of their own.
pub const RING_HEADER_BYTES: usize = 256;
/// Bytes of an entry of the table of sockets.
pub const SOCKET_BYTES: usize = 64;

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
    /// u32, atomic: bit 0: record events; else sources only keep count of offsets.
    pub const RECORDING: usize = 64;
    /// u32, atomic: the number of the next flow of this region.
    pub const NEXT_FLOW: usize = 128;
    /// u32, atomic: sockets for which the table had no entry.
    pub const SOCKETS_REFUSED: usize = 192;
}

/// Offsets in the header of a ring, each a u64 and atomic.
pub mod ring {
    /// Slots taken by writers, ever.
    pub const HEAD: usize = 0;
    /// Slots given back by the reader, ever.
    pub const TAIL: usize = 64;
    /// Events for which there was no slot, ever.
    pub const LOST: usize = 128;
}

/// Offsets in an entry of the table of sockets. An entry is found by the cookie's hash, and by that
/// of the peer's address for sockets that are not connected, with linear probing.
pub mod socket {
    /// u64, atomic: the key; 0: free.
    pub const KEY: usize = 0;
    /// u64, atomic: bytes (datagrams) sent.
    pub const SENT: usize = 8;
    /// u64, atomic: bytes (datagrams) received.
    pub const RECEIVED: usize = 16;
    /// u32, atomic: the flow's number; 0 until it is defined.
    pub const FLOW: usize = 24;
    /// u32, atomic: calls that send now.
    pub const SENDING: usize = 28;
    /// u32, atomic: calls that receive now.
    pub const RECEIVING: usize = 32;
    /// u32, atomic: descriptors of all processes that refer to it.
    pub const REFERENCES: usize = 36;
}

/// Where things are in a region of so many rings, slots and sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// How many rings.
    pub rings: u32,
    /// Slots of each, a power of two.
    pub slots: u32,
    /// Entries of the table of sockets, a power of two, or 0.
    pub sockets: u32,
}

impl Layout {
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
