//! The rings that the programs fill, emptied into a queue for each node, in the order of time.
//!
//! A flow may be defined in the ring of one processor and be used in that of another. Its definition
//! was written before the time of the record that uses it was read. Hence the rings are emptied up
//! to a time that is read before, and where a ring has a slot that is still being written, records
//! later than the one before it wait for the next look.

use std::collections::{BTreeMap, VecDeque};

use windtunnel_model::record::{EventRecord, Kind, halves};
use windtunnel_sys::clock;

use super::KernelEventCounts;
use super::arrays::{KernelRecordArrays, KernelRecordSlot};
use super::programs::{BpfProgramSet, KernelLayerFailure};

/// The reader's end.
#[derive(Debug)]
pub(super) struct KernelRecordRings {
    arrays: KernelRecordArrays,
    /// By processor: how many of its records have been taken.
    tails: Vec<u64>,
    /// By processor: the time of the last one.
    last_ns: Vec<u64>,
    /// Records with their nodes that wait for earlier ones.
    held: Vec<(u32, EventRecord)>,
    /// By node.
    queues: BTreeMap<u32, NodeRecordQueue>,
    /// Records that were overwritten before they were read, which no program counts.
    overwritten: u64,
}

#[derive(Debug, Default)]
struct NodeRecordQueue {
    /// Of its source.
    place: usize,
    records: VecDeque<EventRecord>,
    /// Of the events lost, those that a record has said.
    said: u64,
    /// Events that all sources had lost when they were last looked at.
    lost_of_all: u64,
    /// When they were looked at last.
    looked: u64,
}

impl KernelRecordRings {
    pub(super) fn new(
        programs: &mut BpfProgramSet,
    ) -> Result<KernelRecordRings, KernelLayerFailure> {
        let arrays = KernelRecordArrays::map(programs)?;
        let cpus = arrays.cpus as usize;
        let (tails, last_ns) = (vec![0; cpus], vec![0; cpus]);
        let queues = BTreeMap::new();
        Ok(KernelRecordRings { arrays, tails, last_ns, held: Vec::new(), queues, overwritten: 0 })
    }

    pub(super) fn add(&mut self, key: u32, node: u32) -> Result<(), KernelLayerFailure> {
        let place = self.arrays.add(key, node)?;
        let queue =
            NodeRecordQueue { place, looked: clock::monotonic_ns(), ..NodeRecordQueue::default() };
        self.queues.insert(node, queue);
        Ok(())
    }

    pub(super) fn set_on(&self, node: u32, is_on: bool) {
        if let Some(queue) = self.queues.get(&node) {
            self.arrays.set_on(queue.place, is_on);
        }
    }

    pub(super) fn counts(&self, node: u32) -> KernelEventCounts {
        let Some(queue) = self.queues.get(&node) else { return KernelEventCounts::default() };
        let KernelEventCounts { events, lost } = self.arrays.counts(queue.place);
        // Whose records were overwritten is not known; they are counted once.
        let is_first = self.queues.first_key_value().is_some_and(|(first, _)| *first == node);
        KernelEventCounts { events, lost: lost + if is_first { self.overwritten } else { 0 } }
    }

    /// How many records wait in the fullest ring, and for how many it has room.
    pub(super) fn fill(&self) -> (u64, u64) {
        let heads = (0..self.arrays.cpus).map(|cpu| self.arrays.head(cpu));
        let waiting = heads.zip(&self.tails).map(|(head, tail)| head.saturating_sub(*tail));
        (waiting.max().unwrap_or(0), u64::from(self.arrays.ring_slots))
    }

    pub(super) fn take(&mut self, node: u32, most: usize, records: &mut Vec<EventRecord>) {
        let now = clock::monotonic_ns();
        // Read first: what is lost after that is said the next time.
        let lost_of_all = self.arrays.lost() + self.overwritten;
        let known = self.queues.get(&node).map_or(0, |queue| queue.lost_of_all);
        let lost = (known != lost_of_all).then(|| self.counts(node).lost);
        self.empty(now);
        let Some(queue) = self.queues.get_mut(&node) else { return };
        let count = most.min(queue.records.len());
        records.extend(queue.records.drain(..count));
        if let Some(lost) = lost.filter(|_| queue.records.is_empty()) {
            if lost > queue.said {
                records.push(lost_record(queue.looked, now, lost - queue.said));
                queue.said = lost;
            }
            queue.lost_of_all = lost_of_all;
        }
        queue.looked = now;
    }

    /// Puts what the rings have of the time before `now` into the queues.
    fn empty(&mut self, now: u64) {
        let mut until = now;
        for cpu in 0..self.arrays.cpus {
            until = until.min(self.empty_ring(cpu, now));
        }
        if self.held.is_empty() {
            return;
        }
        self.held.sort_by_key(|(_, record)| record.time);
        let ready = self.held.partition_point(|(_, record)| record.time <= until);
        for (node, record) in self.held.drain(..ready) {
            if let Some(queue) = self.queues.get_mut(&node) {
                queue.records.push_back(record);
            }
        }
    }

    /// Puts what a ring has of the time before `now` with what is held; up to when it is complete.
    fn empty_ring(&mut self, cpu: u32, now: u64) -> u64 {
        let (tail, last_ns) = (&mut self.tails[cpu as usize], &mut self.last_ns[cpu as usize]);
        let head = self.arrays.head(cpu);
        let mut until = now;
        while *tail < head {
            match self.arrays.slot(cpu, *tail) {
                KernelRecordSlot::Written(_, record) if record.time > now => break,
                KernelRecordSlot::Written(node, record) => {
                    *last_ns = record.time;
                    self.held.push((node, record));
                }
                KernelRecordSlot::Taken => {
                    until = *last_ns;
                    break;
                }
                KernelRecordSlot::Overwritten => self.overwritten += 1,
            }
            *tail += 1;
            if tail.is_multiple_of(GIVEN_BACK) {
                self.arrays.set_tail(cpu, *tail);
            }
        }
        self.arrays.set_tail(cpu, *tail);
        until
    }
}

/// After so many records slots are given back, so that programs find room while more are read.
const GIVEN_BACK: u64 = 256;

fn lost_record(begin: u64, end: u64, count: u64) -> EventRecord {
    let ([begin_low, begin_high], [low, high]) = (halves(begin), halves(count));
    EventRecord {
        time: end,
        kind: Kind::Lost as u8,
        args: [begin_low, begin_high, low, high],
        ..EventRecord::default()
    }
}
