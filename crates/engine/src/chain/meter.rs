//! What a lane counts and records: offers, drops, transmissions, what waits, deliveries.

use core::ops::Range;

use windtunnel_model::record::Kind;
use windtunnel_model::{DropReason, LinkProfile, Time};

use super::{LaneContext, LaneLocation, OWN_NUMBERS};
use crate::counters::LaneCounters;
use crate::housekeeping;
use crate::packet::{EmulatedPacket, PacketTrainShape};
use crate::records::{self, PacketRecorder, TaggedShape};

/// The counters of a lane, and the numbers of its packets.
#[derive(Debug)]
pub(crate) struct LaneMeter {
    /// Its number in records.
    pub(crate) label: u32,
    pub(crate) counters: LaneCounters,
    /// The most packets and bytes that waited since the last [`LaneMeter::take_queue_peak`].
    queue_peak: (u64, u64),
    /// The number of the next packet.
    pub(super) next: u64,
    /// The same, for what kernels send of their own accord on a LAN.
    next_own: u64,
    on_lan: bool,
    /// Bytes that each segment is charged besides its own.
    overhead: u32,
}

impl LaneMeter {
    pub(super) fn new(label: u32, site: LaneLocation, profile: &LinkProfile) -> LaneMeter {
        LaneMeter {
            label,
            counters: LaneCounters::default(),
            queue_peak: (0, 0),
            next: 1,
            next_own: OWN_NUMBERS,
            on_lan: site.on_lan,
            overhead: profile.effective_overhead().0,
        }
    }

    pub(super) fn set(&mut self, profile: &LinkProfile) {
        self.overhead = profile.effective_overhead().0;
    }

    /// Counts an offer; the number of its first segment.
    #[inline]
    pub(super) fn count_offer(&mut self, shape: &PacketTrainShape, frame: &[u8]) -> u64 {
        let own = self.on_lan && housekeeping::is_kernels_own(frame);
        let next = if own { &mut self.next_own } else { &mut self.next };
        let number = *next;
        *next += u64::from(shape.count);
        self.counters.offered_packets += u64::from(shape.count);
        self.counters.offered_bytes += shape.bytes();
        number
    }

    /// Counts a packet that passes because the lane is clear.
    pub(super) fn count_passage(
        &mut self,
        now: Time,
        passes: TaggedShape<'_>,
        frame: &[u8],
        recorder: &mut PacketRecorder,
    ) {
        if recorder.wants(passes.tag) {
            recorder.write(Kind::Offered, now, self.label, passes, passes.tag.ack);
            recorder.write(Kind::Delivered, now, self.label, passes, 0);
        }
        self.count_offer(passes.shape, frame);
        self.counters.delay_count += u64::from(passes.shape.count);
        self.count_delivery(passes.shape);
    }

    /// Counts segments of a packet, the first of them here at `time`, as dropped.
    pub(super) fn count_drop(
        &mut self,
        reason: DropReason,
        time: Time,
        packet: &EmulatedPacket,
        range: Range<u32>,
        work: &mut LaneContext,
    ) {
        self.counters.dropped[reason] += u64::from(range.end - range.start);
        work.recorder.note_drop(reason, time, self.label, packet, range);
    }

    /// Splits a packet, counting what memory denies.
    pub(super) fn split(
        &mut self,
        packet: EmulatedPacket,
        count: u32,
        work: &mut LaneContext,
    ) -> (Option<EmulatedPacket>, Option<EmulatedPacket>) {
        if count >= packet.shape.count {
            return (Some(packet), None);
        }
        let (tag, shape, time) = (packet.tag, packet.shape, packet.times.first);
        match packet.split(count, &mut work.pool) {
            Ok((front, rest)) => (Some(front), rest),
            Err(rest) => {
                let reason = DropReason::Memory;
                self.counters.dropped[reason] += u64::from(count);
                let front = shape.part(&(0..count));
                let gone = TaggedShape { tag: &tag, shape: &front };
                work.recorder.write(Kind::Dropped, time, self.label, gone, reason as u32);
                (None, rest)
            }
        }
    }

    /// Brings the counters of the queue's present length, in packets and bytes, up to date.
    pub(super) fn note_queue(&mut self, queued: (u64, u64)) {
        (self.counters.queue_packets, self.counters.queue_bytes) = queued;
    }

    /// The same after a packet has come, `sending` (packets, bytes) waiting for the line.
    pub(super) fn note_waiting(&mut self, queued: (u64, u64), sending: (u64, u64)) {
        self.note_queue(queued);
        let (packets, bytes) = (queued.0 + sending.0, queued.1 + sending.1);
        let counters = &mut self.counters;
        counters.queue_packets_max = counters.queue_packets_max.max(packets);
        counters.queue_bytes_max = counters.queue_bytes_max.max(bytes);
        self.queue_peak = (self.queue_peak.0.max(packets), self.queue_peak.1.max(bytes));
    }

    /// The most packets and bytes that waited since the last call.
    pub(super) fn take_queue_peak(&mut self) -> (u64, u64) {
        let now = (self.counters.queue_packets, self.counters.queue_bytes);
        core::mem::replace(&mut self.queue_peak, now)
    }

    /// Records a transmission whose end is known. It is as long as the line takes for what is here:
    /// from the first bit of the first segment to the last of the last.
    #[inline]
    pub(super) fn note_sent(&self, packet: &EmulatedPacket, work: &mut LaneContext) {
        if work.recorder.wants(&packet.tag) {
            let lasts = records::saturate(packet.times.last.since(packet.sent));
            work.recorder.note(Kind::Sent, packet.sent, self.label, packet, lasts);
        }
    }

    /// Counts a packet that comes out of the lane.
    #[inline]
    pub(super) fn count_exit(&mut self, packet: &EmulatedPacket, work: &mut LaneContext) {
        self.count_delivery(&packet.shape);
        self.counters.count_delay(packet);
        self.counters.marked += u64::from(packet.marked);
        if work.recorder.wants(&packet.tag) {
            let (time, delay) = (packet.times.last, packet.times.last.since(packet.delayed_from));
            let delay = records::saturate(delay);
            work.recorder.note(Kind::Delivered, time, self.label, packet, delay);
        }
    }

    #[inline]
    fn count_delivery(&mut self, shape: &PacketTrainShape) {
        self.counters.delivered_packets += u64::from(shape.count);
        self.counters.delivered_bytes += shape.bytes();
        self.counters.delivered_wire_bytes += shape.charge(self.overhead);
    }
}
