//! The flows that have been seen: their numbers, where their streams begin, what is counted.
//!
//! Both directions of a five-tuple are one flow, from the side that sent first, or that sent the
//! SYN. A SYN with another sequence number than the one before begins another flow. Memory is
//! bounded: a flow that has ended and been silent is forgotten, and where there are too many, one
//! that has been silent for long.

mod flow;

use alloc::vec::Vec;

use windtunnel_model::record::flag;
use windtunnel_model::{Span, Time};
use windtunnel_wire::tcp;

use super::sight::FlowHeaderFields;
use super::tag::PacketRecordTag;

pub(super) use flow::{Definition, RecordedFlow};
use flow::{RecordedFlowKey, UNLINKED, is_answer};

/// Records that define a flow, at the most.
pub(super) const DEFINITIONS: usize = 3;
/// Flows that are known at a time.
const FLOWS_MAX: usize = 65_536;
/// How long a flow that has ended is still known: as long as Linux keeps TIME-WAIT.
const ENDED_KEPT: Span = Span::from_secs(60);
/// Flows of which one has to go where there is no room: the one that is silent for longest.
const SAMPLE: usize = 16;
/// Fragmented datagrams that are known by their identification.
const DATAGRAMS: usize = 64;

const NONE: u32 = u32::MAX;

/// Flows by their ends.
#[derive(Debug)]
pub(super) struct FlowTable {
    /// By hash: the first entry of a chain.
    buckets: Vec<u32>,
    entries: Vec<RecordedFlow>,
    free: Vec<u32>,
    /// The entry that was seen last.
    latest: usize,
    /// Where it is looked for flows to forget.
    hand: usize,
    next_number: u32,
    generation: u32,
    forgotten: u64,
    /// Whether one was forgotten whose packets had been counted.
    has_lost_counts: bool,
    /// Datagrams whose first fragment was seen.
    datagrams: Vec<DatagramFlowEntry>,
}

#[derive(Debug, Clone, Copy)]
struct DatagramFlowEntry {
    from: u128,
    to: u128,
    identification: u32,
    protocol: u8,
    entry: usize,
    flow: u32,
    offset: u32,
    reverse: bool,
}

/// What a packet is, of its flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowLookup {
    pub(super) entry: usize,
    pub(super) reverse: bool,
    /// Without its epoch.
    pub(super) tag: PacketRecordTag,
}

impl FlowTable {
    pub(super) fn new() -> Self {
        FlowTable {
            buckets: Vec::new(),
            entries: Vec::new(),
            free: Vec::new(),
            latest: 0,
            hand: 0,
            next_number: 0,
            generation: 1,
            forgotten: 0,
            has_lost_counts: false,
            datagrams: Vec::new(),
        }
    }

    /// Forgets all flows; numbers go on.
    pub(super) fn clear(&mut self) {
        let known = self.entries.len() - self.free.len();
        self.forgotten += u64::try_from(known).unwrap_or(u64::MAX);
        self.has_lost_counts = true;
        self.buckets.clear();
        self.entries.clear();
        self.free.clear();
        self.datagrams.clear();
    }

    pub(super) fn judge_again(&mut self) {
        self.generation = self.generation.wrapping_add(1);
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    pub(super) fn judge(&mut self, entry: usize, wanted: bool) {
        let flow = &mut self.entries[entry];
        (flow.generation, flow.wanted) = (self.generation, wanted);
        flow.definition = Definition::Missing;
    }

    pub(super) fn set_defined(&mut self, entry: usize) {
        self.entries[entry].definition = Definition::Whole;
    }

    pub(super) fn flow(&self, entry: usize) -> &RecordedFlow {
        &self.entries[entry]
    }

    pub(super) fn numbered(&self) -> u64 {
        u64::from(self.next_number)
    }

    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// A packet of `count` segments; `complete` if none before it can have been missed.
    #[inline]
    pub(super) fn see(
        &mut self,
        now: Time,
        sight: &FlowHeaderFields,
        count: u32,
        complete: bool,
    ) -> FlowLookup {
        if let Some(seen) = self.later_fragment(sight) {
            return seen;
        }
        let (key, from_low) = RecordedFlowKey::of(sight);
        let entry = match self.find(&key) {
            Some(entry) => entry,
            None => self.add(now, key, from_low ^ is_answer(sight), complete),
        };
        self.latest = entry;
        if self.entries[entry].begins_anew(from_low, sight) {
            let number = self.take_number();
            self.entries[entry].renew(number, from_low ^ is_answer(sight));
        }
        let flow = &mut self.entries[entry];
        flow.last_seen = now;
        let reverse = flow.from_low != from_low;
        let tag = flow.tag(sight, reverse, count);
        if sight.fragment.is_some() {
            self.keep_datagram(entry, sight, reverse, &tag);
        }
        FlowLookup { entry, reverse, tag }
    }

    #[inline]
    fn find(&self, key: &RecordedFlowKey) -> Option<usize> {
        if self.entries.get(self.latest).is_some_and(|flow| flow.key == *key && flow.is_linked()) {
            return Some(self.latest);
        }
        let mut at = *self.buckets.get(self.bucket(key))?;
        while let Some(flow) = self.entries.get(index(at)) {
            if flow.key == *key {
                return Some(index(at));
            }
            at = flow.next;
        }
        None
    }

    /// Where there are no buckets yet, there is none of this number.
    fn bucket(&self, key: &RecordedFlowKey) -> usize {
        let mask = self.buckets.len().wrapping_sub(1);
        usize::try_from(key.hash() >> 32).unwrap_or(0) & mask
    }

    #[cold]
    fn add(&mut self, now: Time, key: RecordedFlowKey, from_low: bool, complete: bool) -> usize {
        self.sweep(now);
        if self.entries.len() - self.free.len() >= FLOWS_MAX {
            self.forget_one();
        }
        if self.entries.len() >= self.buckets.len() {
            self.grow();
        }
        let number = self.take_number();
        let bucket = self.bucket(&key);
        let flow = RecordedFlow {
            key,
            number,
            next: self.buckets[bucket],
            from_low,
            origins: [None; 2],
            packets: [0; 2],
            is_partial: !complete || self.has_lost_counts,
            is_open: false,
            has_ended: false,
            last_seen: now,
            generation: self.generation.wrapping_sub(1),
            wanted: false,
            definition: Definition::Missing,
        };
        let entry = match self.free.pop() {
            Some(place) => {
                self.entries[index(place)] = flow;
                index(place)
            }
            None => {
                self.entries.push(flow);
                self.entries.len() - 1
            }
        };
        self.buckets[bucket] = u32::try_from(entry).unwrap_or(NONE);
        entry
    }

    fn take_number(&mut self) -> u32 {
        let number = self.next_number;
        self.next_number = self.next_number.saturating_add(1);
        number
    }

    /// Twice the buckets, and all entries in them.
    fn grow(&mut self) {
        let buckets = (self.buckets.len() * 2).max(64);
        self.buckets.clear();
        self.buckets.resize(buckets, NONE);
        for entry in 0..self.entries.len() {
            if self.entries[entry].is_linked() {
                let bucket = self.bucket(&self.entries[entry].key);
                self.entries[entry].next = self.buckets[bucket];
                self.buckets[bucket] = u32::try_from(entry).unwrap_or(NONE);
            }
        }
    }

    /// Looks at two flows for each new one: so those that have ended go as fast as others come.
    fn sweep(&mut self, now: Time) {
        for _ in 0..2 {
            let Some(flow) = self.entries.get(self.hand) else {
                self.hand = 0;
                return;
            };
            if flow.is_linked() && flow.has_ended && now.since(flow.last_seen) > ENDED_KEPT {
                self.forget(self.hand);
            }
            self.hand += 1;
        }
    }

    fn forget_one(&mut self) {
        let most = self.entries.len();
        let from = self.hand % most;
        let sample = (from..from + SAMPLE.min(most)).map(|at| at % most);
        let linked = sample.filter(|at| self.entries[*at].is_linked());
        if let Some(oldest) = linked.min_by_key(|at| self.entries[*at].last_seen) {
            self.forget(oldest);
        }
        self.hand = (from + SAMPLE) % most;
    }

    fn forget(&mut self, entry: usize) {
        let (bucket, next) = (self.bucket(&self.entries[entry].key), self.entries[entry].next);
        let place = u32::try_from(entry).unwrap_or(NONE);
        if self.buckets[bucket] == place {
            self.buckets[bucket] = next;
        } else {
            let mut at = index(self.buckets[bucket]);
            while self.entries[at].next != place {
                at = index(self.entries[at].next);
            }
            self.entries[at].next = next;
        }
        self.has_lost_counts |= self.entries[entry].key.protocol != tcp::PROTOCOL;
        self.entries[entry].key.protocol = UNLINKED;
        self.forgotten += 1;
        self.free.push(place);
    }

    /// A fragment other than the first belongs to the datagram whose first one was seen.
    #[inline]
    fn later_fragment(&self, sight: &FlowHeaderFields) -> Option<FlowLookup> {
        let (identification, false) = sight.fragment? else { return None };
        let datagram = self.datagrams.get(slot(identification))?;
        let flow = self.entries.get(datagram.entry)?;
        let is_it = datagram.identification == identification
            && (datagram.from, datagram.to) == (sight.from.address, sight.to.address)
            && datagram.protocol == sight.protocol
            && flow.number == datagram.flow;
        let direction = if datagram.reverse { flag::REVERSE } else { 0 };
        let unknown = if flow.is_partial { flag::OFFSET_UNKNOWN } else { 0 };
        is_it.then_some(FlowLookup {
            entry: datagram.entry,
            reverse: datagram.reverse,
            tag: PacketRecordTag {
                flow: datagram.flow,
                offset: datagram.offset,
                header: sight.header,
                flags: direction | unknown | sight.flags,
                ..PacketRecordTag::NONE
            },
        })
    }

    fn keep_datagram(
        &mut self,
        entry: usize,
        sight: &FlowHeaderFields,
        reverse: bool,
        tag: &PacketRecordTag,
    ) {
        let Some((identification, true)) = sight.fragment else { return };
        let datagram = DatagramFlowEntry {
            from: sight.from.address,
            to: sight.to.address,
            identification,
            protocol: sight.protocol,
            entry,
            flow: tag.flow,
            offset: tag.offset,
            reverse,
        };
        self.datagrams.resize(DATAGRAMS, datagram);
        self.datagrams[slot(identification)] = datagram;
    }
}

fn index(entry: u32) -> usize {
    usize::try_from(entry).unwrap_or(usize::MAX)
}

fn slot(identification: u32) -> usize {
    index(identification.wrapping_mul(0x9e37_79b9) >> 16) % DATAGRAMS
}
