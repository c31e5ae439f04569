//! What an engine records of packets.

use super::Engine;
use crate::records::PacketRecorder;

impl Engine {
    /// What is recorded of packets.
    #[must_use]
    #[inline]
    pub fn recorder(&self) -> &PacketRecorder {
        &self.network.core.net.lanes.work.recorder
    }

    /// The same, to choose what is recorded, and to take it.
    #[inline]
    pub fn recorder_mut(&mut self) -> &mut PacketRecorder {
        &mut self.network.core.net.lanes.work.recorder
    }
}
