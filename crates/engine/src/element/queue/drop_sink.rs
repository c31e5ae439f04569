//! Where what a queue drops goes.

use windtunnel_model::{DropReason, Time};

use crate::buffer::PacketBufferPool;
use crate::packet::EmulatedPacket;
use crate::records::PacketRecorder;

/// Where what a queue drops goes, and is recorded.
pub(crate) struct QueueDropSink<'a> {
    pub(crate) pool: &'a mut PacketBufferPool,
    pub(crate) recorder: &'a mut PacketRecorder,
    /// As records name it.
    pub(crate) lane: u32,
    pub(crate) now: Time,
}

impl QueueDropSink<'_> {
    /// Drops the first segments of a packet; the rest.
    pub(super) fn drop_front(
        &mut self,
        reason: DropReason,
        packet: EmulatedPacket,
        count: u32,
    ) -> Option<EmulatedPacket> {
        self.recorder.note_drop(reason, self.now, self.lane, &packet, 0..count);
        packet.skip(count, self.pool)
    }
}
