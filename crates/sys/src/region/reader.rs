//! The one reader of a region's rings.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use windtunnel_model::record::EventRecord;
use windtunnel_model::record::region::ring;

use super::MappedRecordRegion;
use super::raw::{ring_at, unpack};

/// Takes records out of the rings of a region. There may be one at a time for each ring.
#[derive(Debug)]
pub struct RecordRegionReader {
    region: Arc<MappedRecordRegion>,
    rings: Vec<RingReadPosition>,
}

/// Where the reader is in a ring. What the region says of it is read once.
#[derive(Debug, Clone, Copy, Default)]
struct RingReadPosition {
    tail: u64,
    /// Lost events that were reported.
    lost: u64,
    /// The time of the last record.
    last_ns: u64,
    /// The times of the last gap, for losses whose own times were read with that.
    gap: (u64, u64),
}

/// What a drain found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingDrainOutcome {
    /// How many records were added.
    pub records: usize,
    /// What was lost since the drain before. It belongs behind the records.
    pub gap: Option<RecordRingGap>,
    /// A writer has taken the slot that is next and not written it: it is writing, is stopped, or
    /// was killed. The number is that of the slot; see [`RecordRegionReader::pass_over`].
    pub waits_for: Option<u64>,
    /// There may be more to drain.
    pub is_more: bool,
    /// The ring's words cannot be true: a process has overwritten them.
    pub is_damaged: bool,
}

/// Events that were not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRingGap {
    /// The time of the earliest.
    pub begin_ns: u64,
    /// That of the latest.
    pub end_ns: u64,
    /// How many.
    pub count: u64,
}

impl RecordRegionReader {
    /// The reader of all rings, from where the last one stopped.
    #[must_use]
    pub fn new(region: Arc<MappedRecordRegion>) -> RecordRegionReader {
        let position = |index| {
            let word = |at| region.raw().word(ring_at(index) + at).load(Ordering::Relaxed);
            let (tail, lost) = (word(ring::TAIL), word(ring::LOST_REPORTED));
            RingReadPosition { tail, lost, ..RingReadPosition::default() }
        };
        let rings = (0..region.layout().rings).map(position).collect();
        RecordRegionReader { region, rings }
    }

    /// The region.
    #[must_use]
    pub fn region(&self) -> &Arc<MappedRecordRegion> {
        &self.region
    }

    /// How many records of a ring have not been taken.
    ///
    /// # Panics
    /// If there is no such ring.
    #[must_use]
    pub fn waiting(&self, ring: u32) -> u64 {
        let raw = self.region.raw();
        let head = raw.word(ring_at(ring) + ring::HEAD).load(Ordering::Relaxed);
        let waiting = head.wrapping_sub(self.rings[ring as usize].tail);
        waiting.min(u64::from(raw.layout().slots))
    }

    /// Moves the records of a ring to the end of `into`, at most `max`.
    ///
    /// An event that is being lost while this reads may be counted in the next gap, with times
    /// from this one; the sum is exact.
    ///
    /// # Panics
    /// If there is no such ring.
    pub fn drain(
        &mut self,
        ring: u32,
        max: usize,
        into: &mut Vec<EventRecord>,
    ) -> RingDrainOutcome {
        let position = &mut self.rings[ring as usize];
        let raw = self.region.raw();
        let head = raw.word(ring_at(ring) + ring::HEAD).load(Ordering::Relaxed);
        let slots = u64::from(raw.layout().slots);
        let taken = head.wrapping_sub(position.tail);
        let mut drained =
            RingDrainOutcome { is_damaged: taken > slots, ..RingDrainOutcome::default() };
        let available = usize::try_from(taken.min(slots)).unwrap_or(usize::MAX);
        while drained.records < available.min(max) {
            let slot = raw.slot(ring, position.tail);
            let time = raw.word(slot).load(Ordering::Acquire);
            if time == 0 {
                drained.waits_for = Some(position.tail);
                break;
            }
            let rest = [8, 16, 24].map(|at| raw.word(slot + at).load(Ordering::Relaxed));
            into.push(unpack([time, rest[0], rest[1], rest[2]]));
            raw.word(slot).store(0, Ordering::Relaxed);
            position.tail = position.tail.wrapping_add(1);
            position.last_ns = time;
            drained.records += 1;
            if drained.records.is_multiple_of(GIVEN_BACK) {
                raw.word(ring_at(ring) + ring::TAIL).store(position.tail, Ordering::Release);
            }
        }
        raw.word(ring_at(ring) + ring::TAIL).store(position.tail, Ordering::Release);
        drained.is_more = drained.waits_for.is_none() && drained.records < available;
        drained.gap = self.gap(ring);
        drained
    }

    /// Passes over the slot that a drain waits for, if it is that slot and still not written, and
    /// counts its event as lost between the record before and `now_ns`. The caller has waited for
    /// longer than a writer is ever kept from running between two instructions.
    ///
    /// # Panics
    /// If there is no such ring.
    pub fn pass_over(&mut self, ring: u32, slot: u64, now_ns: u64) -> Option<RecordRingGap> {
        let position = &mut self.rings[ring as usize];
        let raw = self.region.raw();
        let head = raw.word(ring_at(ring) + ring::HEAD).load(Ordering::Relaxed);
        let is_free = raw.word(raw.slot(ring, slot)).load(Ordering::Acquire) == 0;
        if slot != position.tail || head == slot || !is_free {
            return None;
        }
        position.tail = position.tail.wrapping_add(1);
        raw.word(ring_at(ring) + ring::TAIL).store(position.tail, Ordering::Release);
        Some(RecordRingGap { begin_ns: position.last_ns.min(now_ns), end_ns: now_ns, count: 1 })
    }

    /// What was lost since this was called last.
    fn gap(&mut self, ring: u32) -> Option<RecordRingGap> {
        let position = &mut self.rings[ring as usize];
        let raw = self.region.raw();
        let lost = raw.word(ring_at(ring) + ring::LOST).load(Ordering::Acquire);
        let count = lost.wrapping_sub(position.lost);
        if count == 0 {
            return None;
        }
        position.lost = lost;
        raw.word(ring_at(ring) + ring::LOST_REPORTED).store(lost, Ordering::Relaxed);
        let earliest = raw.word(ring_at(ring) + ring::LOST_EARLIEST).swap(0, Ordering::Relaxed);
        let latest = raw.word(ring_at(ring) + ring::LOST_LATEST).swap(0, Ordering::Relaxed);
        if earliest != 0 {
            position.gap = (!earliest, latest.max(!earliest));
        }
        Some(RecordRingGap { begin_ns: position.gap.0, end_ns: position.gap.1, count })
    }
}

/// After so many records slots are given back, so that writers find room while more are read.
const GIVEN_BACK: usize = 256;
