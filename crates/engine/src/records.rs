//! What the engine records of packets, while somebody wants to know: exact, from inside.
//!
//! Theory of operation. A packet that enters the network while recording is on gets a [`PacketRecordTag`]: its
//! flow, its offset there, and how the bytes of its segments count. Wherever something happens to
//! it on a lane, the tag says whether it is recorded, and as what. A packet without a valid tag
//! (recording was off when it entered, or it was not chosen) costs one comparison. Tags follow the
//! parts of a train when it is cut, so that each part says which bytes it has.
//!
//! Times are intended times: those of the model, not those at which the engine got to them.
//! `docs/internals/records.md` has the rules.

mod flows;
mod settings;
mod sight;
pub(crate) mod tag;

use alloc::vec::Vec;
use core::ops::Range;

use windtunnel_model::record::kind::NO_FLOW;
use windtunnel_model::record::{EventRecord, Kind, halves};
use windtunnel_model::{DropReason, Lane, Time};

use crate::packet::{PacketDescriptor, PacketTrainShape};
use flows::FlowTable;
use sight::FlowHeaderFields;

pub use settings::RecordSettings;
pub(crate) use sight::mapped;
pub(crate) use tag::{PacketRecordTag, TaggedShape};

/// The reasons of [`Kind::Dropped`], by number: those of lanes in the order of
/// [`DropReason::ALL`], then those of routers.
pub const DROP_REASON_NAMES: [&str; 16] = [
    "down",
    "partition",
    "mtu",
    "loss",
    "queue_full",
    "aqm",
    "memory",
    "ttl_expired",
    "no_route",
    "not_forwarded",
    "malformed",
    "replica_lost",
    "filtered",
    "no_mapping",
    "exhausted",
    "untranslatable",
];

/// Why a router dropped a packet: numbers of [`DROP_REASON_NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum RouterReason {
    TtlExpired = 7,
    NoRoute = 8,
    NotForwarded = 9,
    Malformed = 10,
    ReplicaLost = 11,
    /// A firewall or the filter of a NAT does not let it in.
    Filtered = 12,
    /// A NAT knows nothing inside that it is for.
    NoMapping = 13,
    /// No port or no memory is left for a new mapping or flow.
    Exhausted = 14,
    /// A NAT cannot translate it: its protocol, or its bytes.
    Untranslatable = 15,
}

/// What was recorded so far, in numbers that only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordCounts {
    /// Events that were to be recorded, the lost ones too; definitions of flows are none.
    pub events: u64,
    /// Events for which there was no room.
    pub lost: u64,
    /// Flows that got a number.
    pub flows: u64,
    /// Flows that are not known any more, because they had ended or there were too many.
    pub forgotten: u64,
}

/// What an engine records of packets: records wait here until they are taken.
#[derive(Debug)]
pub struct PacketRecorder {
    /// Of the tags of packets that are recorded now; [`OFF`] where none is.
    epoch: u8,
    next_epoch: u8,
    standby: bool,
    /// Whether flows have been watched since the first packet.
    complete: bool,
    settings: RecordSettings,
    flows: FlowTable,
    records: Vec<EventRecord>,
    room: usize,
    counts: RecordCounts,
    /// What did not fit after `records`.
    gap: Option<RecorderGap>,
}

#[derive(Debug, Clone, Copy)]
struct RecorderGap {
    begin: u64,
    end: u64,
    count: u64,
}

impl PacketRecorder {
    pub(crate) fn new() -> Self {
        PacketRecorder {
            epoch: OFF,
            next_epoch: FIRST_EPOCH,
            standby: false,
            complete: true,
            settings: RecordSettings::default(),
            flows: FlowTable::new(),
            records: Vec::new(),
            room: ROOM,
            counts: RecordCounts::default(),
            gap: None,
        }
    }

    /// Records the packets that enter the network from now on, as chosen; `None`: no more. Other
    /// settings may take the place of earlier ones at any moment. Packets that are in the network
    /// already are not recorded. Flows are defined when they are seen first, and again after each
    /// call.
    ///
    /// Without [`stand_by`](PacketRecorder::stand_by) flows that began before are recorded with raw
    /// sequence numbers, and say so.
    pub fn record(&mut self, settings: Option<RecordSettings>) {
        let Some(settings) = settings else {
            self.epoch = OFF;
            return self.forget_unwatched();
        };
        self.settings = settings;
        self.epoch = self.next_epoch;
        self.next_epoch =
            if self.next_epoch + 1 == OFF { FIRST_EPOCH } else { self.next_epoch + 1 };
        self.flows.judge_again();
    }

    /// Whether to watch, while nothing is recorded, where streams begin (and how many packets
    /// flows other than TCP have), so that recording can start at any moment.
    pub fn stand_by(&mut self, on: bool) {
        self.standby = on;
        self.forget_unwatched();
    }

    /// How many records may wait to be taken; 65,536 where it is not set. Events for which there
    /// is no room are lost, and counted.
    pub fn set_room(&mut self, records: usize) {
        self.room = records;
    }

    fn forget_unwatched(&mut self) {
        if self.epoch == OFF && !self.standby {
            self.flows.clear();
        }
    }

    /// Defines each flow again with its next packet: some definition was lost.
    pub fn define_again(&mut self) {
        self.flows.judge_again();
    }

    /// What was recorded so far.
    #[must_use]
    pub fn counts(&self) -> RecordCounts {
        RecordCounts {
            flows: self.flows.numbered(),
            forgotten: self.flows.forgotten(),
            ..self.counts
        }
    }

    /// Whether there are records to take.
    #[must_use]
    #[inline]
    pub fn has_records(&self) -> bool {
        !self.records.is_empty() || self.gap.is_some()
    }

    /// Moves the records that wait behind those in `to`, as they were made: in the order of the
    /// engine's work, not of their times. Where events were lost since the last call, a
    /// [`Lost`](windtunnel_model::record::Kind::Lost) record is the last one. An empty vector is
    /// exchanged for the recorder's own: nothing is copied or allocated where two take turns.
    pub fn take(&mut self, to: &mut Vec<EventRecord>) {
        if to.is_empty() {
            core::mem::swap(to, &mut self.records);
        } else {
            to.append(&mut self.records);
        }
        if let Some(gap) = self.gap.take() {
            let ([begin, begin_high], [count, count_high]) = (halves(gap.begin), halves(gap.count));
            to.push(EventRecord {
                time: gap.end,
                kind: Kind::Lost as u8,
                flow: NO_FLOW,
                args: [begin, begin_high, count, count_high],
                ..EventRecord::default()
            });
        }
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.epoch != OFF
    }

    /// Looks at a frame that a node sends: its tag.
    #[inline]
    pub(crate) fn meet(
        &mut self,
        now: Time,
        frame: &[u8],
        shape: &PacketTrainShape,
    ) -> PacketRecordTag {
        if self.epoch != OFF || self.standby && sight::is_worth_watching(frame) {
            return self.tag(now, frame, shape);
        }
        self.complete &= self.standby;
        PacketRecordTag::NONE
    }

    /// The tag of a packet that enters the network now.
    pub(crate) fn tag(
        &mut self,
        now: Time,
        frame: &[u8],
        shape: &PacketTrainShape,
    ) -> PacketRecordTag {
        let Some(sight) = FlowHeaderFields::of(frame) else {
            return self.tag_without_flow();
        };
        let seen = self.flows.see(now, &sight, shape.count, self.complete);
        if self.epoch == OFF {
            return PacketRecordTag::NONE;
        }
        let (flow, generation) = (self.flows.flow(seen.entry), self.flows.generation());
        if flow.generation != generation {
            let wanted = self.settings.wants(flow);
            self.flows.judge(seen.entry, wanted);
        }
        let flow = self.flows.flow(seen.entry);
        if !flow.wanted || !self.settings.wants_direction(seen.reverse) {
            return PacketRecordTag::NONE;
        }
        let is_due = flow.definition != flows::Definition::Whole;
        if is_due && self.records.len() + flows::DEFINITIONS <= self.room {
            self.records.extend(flow.definitions(now.as_nanos().max(1)));
            self.flows.set_defined(seen.entry);
        }
        PacketRecordTag { epoch: self.epoch, ..seen.tag }
    }

    /// The tag of what is no IP packet.
    pub(crate) fn tag_without_flow(&self) -> PacketRecordTag {
        if self.epoch == OFF || self.settings.chooses_flows() {
            return PacketRecordTag::NONE;
        }
        PacketRecordTag { epoch: self.epoch, flow: NO_FLOW, ..PacketRecordTag::NONE }
    }

    /// Whether what happens to a packet with this tag is recorded.
    #[inline]
    pub(crate) fn wants(&self, tag: &PacketRecordTag) -> bool {
        tag.epoch == self.epoch
    }

    /// Something happened to all of a packet at `time`.
    #[inline]
    pub(crate) fn note(
        &mut self,
        kind: Kind,
        time: Time,
        lane: u32,
        packet: &PacketDescriptor,
        last: u32,
    ) {
        if packet.tag.epoch == self.epoch {
            self.write(kind, time, lane, packet.tagged(), last);
        }
    }

    /// Some segments of a packet were dropped at `time`.
    pub(crate) fn note_drop(
        &mut self,
        reason: DropReason,
        time: Time,
        lane: u32,
        packet: &PacketDescriptor,
        range: Range<u32>,
    ) {
        if packet.tag.epoch != self.epoch || range.is_empty() {
            return;
        }
        let tag = packet.tag.skip(&packet.shape, range.start);
        let shape = packet.shape.part(&range);
        let dropped = TaggedShape { tag: &tag, shape: &shape };
        self.write(Kind::Dropped, time, lane, dropped, reason as u32);
    }

    /// A router dropped a packet that came by its lane.
    pub(crate) fn note_refusal(&mut self, reason: RouterReason, packet: &PacketDescriptor) {
        let Some(lane) = packet.came_by else { return };
        let time = packet.times.first;
        self.note(Kind::Dropped, time, number(lane), packet, reason as u32);
    }

    /// Something happened to what is tagged so.
    #[inline]
    pub(crate) fn write(
        &mut self,
        kind: Kind,
        time: Time,
        lane: u32,
        what: TaggedShape<'_>,
        last: u32,
    ) {
        let TaggedShape { tag, shape } = what;
        if tag.epoch != self.epoch || !self.settings.wants_lane(lane) {
            return;
        }
        self.counts.events += 1;
        let time = time.as_nanos().max(1);
        if self.records.len() >= self.room || self.gap.is_some() {
            return self.lose(time);
        }
        self.records.push(EventRecord {
            time,
            kind: kind as u8,
            flags: tag.flags,
            extra: u16::try_from(shape.count).unwrap_or(u16::MAX),
            flow: tag.flow,
            args: [tag.offset, tag.payload(shape), lane, last],
        });
    }

    #[cold]
    fn lose(&mut self, time: u64) {
        self.counts.lost += 1;
        let gap = self.gap.get_or_insert(RecorderGap { begin: time, end: time, count: 0 });
        gap.begin = gap.begin.min(time);
        gap.end = gap.end.max(time);
        gap.count += 1;
    }
}

/// A lane, as records name it.
pub(crate) fn number(lane: Lane) -> u32 {
    u32::try_from(lane.index()).unwrap_or(u32::MAX)
}

/// A time span, as records hold it.
#[inline]
pub(crate) fn saturate(span: windtunnel_model::Span) -> u32 {
    u32::try_from(span.as_nanos()).unwrap_or(u32::MAX)
}

/// The epoch while nothing is recorded: no tag has it.
const OFF: u8 = u8::MAX;
/// Tags of packets that are not recorded have the epoch before it.
const FIRST_EPOCH: u8 = 1;
/// Records that wait at the most: 2 MB.
const ROOM: usize = 65_536;

/// Added to the number of a lane: the queue at the source of a path whose narrowest lane it is.
pub(crate) use windtunnel_model::record::kind::SOURCE_QUEUE;
