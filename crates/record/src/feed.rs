//! Rings of a region as a source for the [drain](crate::drain).

use std::sync::Arc;

use windtunnel_evidence::file::EventSource;
use windtunnel_model::record::region::RecordRegionLayout;
use windtunnel_model::record::{EventRecord, Kind, halves};
use windtunnel_sys::clock;
use windtunnel_sys::region::{MappedRecordRegion, RecordRegionReader, RecordRingGap};

use crate::drain::RecordFeed;

/// All rings of a region, in turn.
#[derive(Debug)]
pub struct RegionFeed {
    reader: RecordRegionReader,
    source: EventSource,
    rings: u32,
    slots: u64,
    /// By ring: the slot that a writer has taken and not written, and since when it is waited for.
    stuck: Vec<Option<(u64, u64)>>,
}

impl RegionFeed {
    /// Of a region whose records are those of `source`.
    #[must_use]
    pub fn new(region: Arc<MappedRecordRegion>, source: EventSource) -> RegionFeed {
        let RecordRegionLayout { rings, slots, .. } = region.layout();
        let stuck = vec![None; rings as usize];
        RegionFeed {
            reader: RecordRegionReader::new(region),
            source,
            rings,
            slots: u64::from(slots),
            stuck,
        }
    }

    /// Whether a slot has been waited for long enough.
    fn is_abandoned(&mut self, ring: u32, slot: u64, now: u64) -> bool {
        let stuck = &mut self.stuck[ring as usize];
        match stuck {
            Some((known, since)) if *known == slot => now.saturating_sub(*since) >= PATIENCE_NS,
            _ => {
                *stuck = Some((slot, now));
                false
            }
        }
    }
}

impl RecordFeed for RegionFeed {
    fn source(&self) -> EventSource {
        self.source
    }

    fn take(&mut self, most: usize, records: &mut Vec<EventRecord>) {
        for ring in 0..self.rings {
            let left = most.saturating_sub(records.len());
            let drained = self.reader.drain(ring, left, records);
            records.extend(drained.gap.as_ref().map(lost));
            let Some(slot) = drained.waits_for else { continue };
            let now = clock::monotonic_ns();
            if self.is_abandoned(ring, slot, now) {
                let gap = self.reader.pass_over(ring, slot, now);
                records.extend(gap.as_ref().map(lost));
            }
        }
    }

    fn fill(&self) -> (u64, u64) {
        let waiting = (0..self.rings).map(|ring| self.reader.waiting(ring)).max();
        (waiting.unwrap_or(0), self.slots)
    }
}

/// A gap as it stands among records.
#[must_use]
pub fn lost(gap: &RecordRingGap) -> EventRecord {
    let ([begin_low, begin_high], [low, high]) = (halves(gap.begin_ns), halves(gap.count));
    EventRecord {
        time: gap.end_ns.max(1),
        kind: Kind::Lost as u8,
        args: [begin_low, begin_high, low, high],
        ..EventRecord::default()
    }
}

/// Longer than a writer is ever kept from running between two instructions, unless it is stopped
/// or was killed.
const PATIENCE_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use windtunnel_model::record::kind::RecordSource;

    use super::*;

    const SOURCE: EventSource = EventSource::of_node(RecordSource::Calls, 2, 0);

    fn event(time: u64) -> EventRecord {
        EventRecord { time, kind: Kind::Call as u8, ..EventRecord::default() }
    }

    #[test]
    fn records_and_lost_ones_of_all_rings_make_up_the_events() {
        let layout = RecordRegionLayout { rings: 2, slots: 16, sockets: 0 };
        let region = Arc::new(MappedRecordRegion::create(layout).unwrap().0);
        let mut feed = RegionFeed::new(Arc::clone(&region), SOURCE);
        for time in 1..=20 {
            region.push(0, &event(time));
        }
        region.push(1, &event(7));
        assert_eq!(feed.fill(), (16, 16));
        let mut records = Vec::new();
        feed.take(1000, &mut records);
        assert_eq!(records.len(), 16 + 1 + 1);
        let lost: Vec<u64> =
            records.iter().filter(|it| it.kind == Kind::Lost as u8).map(|it| it.wide(2)).collect();
        assert_eq!(lost, [4]);
        assert_eq!(feed.fill(), (0, 16));
    }
}
