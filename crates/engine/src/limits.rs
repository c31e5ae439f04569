//! What an engine may use.

/// What an engine may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLimits {
    /// Bytes of packet buffers held at most, in queues, in flight and not yet recycled. A packet
    /// for which there is no room is dropped as [`windtunnel_model::DropReason::Memory`].
    pub packet_memory: u64,
}
