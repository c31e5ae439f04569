//! What an engine records of packets.

use alloc::vec::Vec;

use windtunnel_model::record::EventRecord;

use super::Engine;
use crate::records::{RecordCounts, RecordSettings};

impl Engine {
    /// Records the packets that enter the network from now on, as chosen; `None`: no more. Other
    /// settings may take the place of earlier ones at any moment. Packets that are in the network
    /// already are not recorded. Flows are defined when they are seen first, and again after each
    /// call.
    ///
    /// Without [`stand_by`](Engine::stand_by) flows that began before are recorded with raw
    /// sequence numbers, and say so.
    pub fn record(&mut self, settings: Option<RecordSettings>) {
        self.core.work.recorder.record(settings);
    }

    /// Whether to watch, while nothing is recorded, where streams begin (and how many packets
    /// flows other than TCP have), so that recording can start at any moment.
    pub fn stand_by(&mut self, on: bool) {
        self.core.work.recorder.stand_by(on);
    }

    /// How many records may wait to be taken; 65,536 where it is not set. Events for which there
    /// is no room are lost, and counted.
    pub fn set_record_room(&mut self, records: usize) {
        self.core.work.recorder.set_room(records);
    }

    /// Whether there are records to take.
    #[must_use]
    #[inline]
    pub fn has_records(&self) -> bool {
        self.core.work.recorder.has_records()
    }

    /// Moves the records that wait behind those in `to`, as they were made: in the order of the
    /// engine's work, not of their times. Where events were lost since the last call, a
    /// [`Lost`](windtunnel_model::record::Kind::Lost) record is the last one. An empty vector is
    /// exchanged for the engine's own: nothing is copied or allocated where two take turns.
    pub fn take_records(&mut self, to: &mut Vec<EventRecord>) {
        self.core.work.recorder.take(to);
    }

    /// Defines each flow again with its next packet: some definition was lost.
    pub fn define_flows_again(&mut self) {
        self.core.work.recorder.define_again();
    }

    /// What was recorded so far.
    #[must_use]
    pub fn record_counts(&self) -> RecordCounts {
        self.core.work.recorder.counts()
    }
}
