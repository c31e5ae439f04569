//! The face of disciplines that keep what waits.

use windtunnel_model::Time;

use super::drop_sink::QueueDropSink;
use crate::packet::{EmulatedPacket, PacketTrainShape};

/// A discipline that keeps what waits itself, in more than one queue.
pub(super) trait MultiQueueDiscipline {
    /// Puts a packet of so many bytes with overhead behind others.
    fn push(&mut self, packet: EmulatedPacket, bytes: u64);
    /// Finds the packet that is next, and the bytes that wait in its queue.
    fn front(&mut self, now: Time) -> Option<(&EmulatedPacket, u64)>;
    /// Takes the packet that `front` returned.
    fn pop(&mut self, overhead: u32) -> Option<EmulatedPacket>;
    /// Puts back what is left of it.
    fn unpop(&mut self, packet: EmulatedPacket, overhead: u32);
    /// Segments of it are transmitted.
    fn charge(&mut self, shape: &PacketTrainShape, overhead: u32);
    /// Makes room: (segments, their bytes).
    fn drop_some(&mut self, overhead: u32, sink: &mut QueueDropSink<'_>) -> (u64, u64);
    /// Charges what waits with another overhead; all bytes.
    fn recount(&mut self, overhead: u32) -> u64;
}
