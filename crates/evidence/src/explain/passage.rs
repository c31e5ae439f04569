//! Which packet carried a byte over a lane, and when.

use crate::history::PacketEvent;

/// Packets of a direction at one point of a lane: their ranges, by offset.
#[derive(Debug, Default)]
pub(crate) struct PacketPassageIndex {
    /// Sorted by offset, then time.
    of: Vec<PacketPassage>,
    /// By position: the greatest end of this and all before.
    reach: Vec<u64>,
}

/// A packet at a point of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketPassage {
    pub(crate) offset: u64,
    pub(crate) end: u64,
    pub(crate) time: u64,
    pub(crate) value: u64,
}

impl PacketPassageIndex {
    pub(crate) fn push(&mut self, event: &PacketEvent, offset: u64, length: u64) {
        let PacketEvent { time, value, .. } = *event;
        self.of.push(PacketPassage { offset, end: offset + length, time, value });
    }

    /// Makes it ready to be asked.
    pub(crate) fn sort(&mut self) {
        self.of.sort_by_key(|passage| (passage.offset, passage.time));
        let mut greatest = 0;
        self.reach = Vec::with_capacity(self.of.len());
        self.reach.extend(self.of.iter().map(|passage| {
            greatest = passage.end.max(greatest);
            greatest
        }));
    }

    /// The latest packet with this byte that came by at `until` or before.
    pub(crate) fn latest(&self, byte: u64, until: u64) -> Option<&PacketPassage> {
        let known = self.covering(byte).filter(|passage| passage.time <= until);
        known.max_by_key(|passage| passage.time)
    }

    /// The first packet with this byte.
    pub(crate) fn first(&self, byte: u64) -> Option<&PacketPassage> {
        self.covering(byte).min_by_key(|passage| passage.time)
    }

    pub(crate) fn covering(&self, byte: u64) -> impl Iterator<Item = &PacketPassage> {
        let after = self.of.partition_point(|passage| passage.offset <= byte);
        let reaching = (0..after).rev().take_while(move |at| self.reach[*at] > byte);
        reaching.map(|at| &self.of[at]).filter(move |passage| passage.end > byte)
    }

    /// All, by offset.
    pub(crate) fn all(&self) -> &[PacketPassage] {
        &self.of
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::PacketKind;

    fn packet(time: u64, offset: u64, length: u32) -> PacketEvent {
        let kind = PacketKind::Sent;
        PacketEvent { time, offset, value: 0, length, segments: 1, lane: 0, kind, flags: 0 }
    }

    #[test]
    fn the_latest_packet_with_a_byte_is_found_among_copies_and_trains() {
        let mut passages = PacketPassageIndex::default();
        for event in [packet(10, 0, 3000), packet(20, 1000, 1000), packet(30, 3000, 1000)] {
            passages.push(&event, event.offset, u64::from(event.length));
        }
        passages.sort();
        let time = |byte, until| passages.latest(byte, until).map(|passage| passage.time);
        assert_eq!(time(1500, 99), Some(20));
        assert_eq!(time(1500, 19), Some(10));
        assert_eq!(time(2500, 99), Some(10));
        assert_eq!(time(3000, 29), None);
        assert_eq!(time(4000, 99), None);
        assert_eq!(passages.first(1500).map(|passage| passage.time), Some(10));
    }
}
