//! What a discipline sees of packets, and what it decides about them.

use windtunnel_model::{Span, Time};

/// Which packet is dropped when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overflow {
    /// What comes.
    Newcomer,
    /// What has waited longest.
    Oldest,
    /// Some of the flow that has most.
    Fattest,
}

/// What becomes of the oldest packet when the line is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DequeueVerdict {
    /// So many of its segments are transmitted together.
    Pass(u32),
    /// Its first segment is dropped; ask again about the next.
    Drop,
    /// Its first segment is marked and transmitted.
    Mark,
}

/// The oldest packet, as a discipline sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) now: Time,
    /// How long its first segment has waited.
    pub(super) waited: Span,
    /// How long the last of `part` will have waited when its turn comes.
    pub(super) waited_last: Span,
    /// Segments that may be transmitted together.
    pub(super) part: u32,
    /// Bytes behind its first segment.
    pub(super) behind: u64,
    /// Bytes of one full packet with overhead.
    pub(super) packet_max: u64,
    /// Whether its sender takes part in ECN.
    pub(super) ecn: bool,
}

/// A packet that comes, as a discipline sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArrivingPacket {
    pub(super) now: Time,
    /// Bytes that wait before it.
    pub(super) queue: u64,
    /// Its random draw.
    pub(super) draw: u64,
    /// Whether its sender takes part in ECN.
    pub(super) ecn: bool,
}

/// What becomes of a packet that comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EnqueueVerdict {
    /// It may wait, if there is room.
    Pass,
    /// It is marked, and may wait.
    Mark,
    /// It is dropped.
    Drop,
}
