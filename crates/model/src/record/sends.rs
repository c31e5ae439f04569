//! What programs declare of datagrams of a UDP socket that several of them have, just before they
//! send them: entries in the rings of a region, one ring for each program of a node and the last for what
//! belongs to none.
//!
//! The reader finds a datagram on the network again by its source port and the digest of its payload.
//! Datagrams that are alike are taken in the order of their entries, so no entry is ever one behind
//! for what was lost in between; one without a datagram is forgotten after a while.

use super::{EventRecord, halves};

/// A datagram is about to be sent.
pub const SENDING: u8 = 1;
/// It was not sent: an entry like that before it counts for nothing.
pub const FAILED: u8 = 2;

/// An entry.
#[must_use]
pub const fn entry(time: u64, kind: u8, port: u16, digest: u64) -> EventRecord {
    let [low, high] = halves(digest);
    EventRecord { time, kind, flags: 0, extra: port, flow: 0, args: [low, high, 0, 0] }
}

/// The source port and the digest of an entry.
#[must_use]
pub const fn datagram(entry: &EventRecord) -> (u16, u64) {
    (entry.extra, entry.wide(0))
}

/// The bit of a port in the word of ports that are asked for.
#[must_use]
pub const fn bit(port: u16) -> u64 {
    1 << (port % 64)
}
