//! Queue: what waits for the rate.
//!
//! - **Parameters**: a limit in packets (MTU segments), bytes (IP packets with overhead) or time
//!   (what the rate of the moment carries in it); default: the larger of 100 packets and 50 ms of
//!   the rate, or the discipline's own. The discipline: [`drop_tail`] (default), [`drop_head`],
//!   [`codel`], [`red`], [`pie`], [`pi2`], [`flows`], [`wf2q`].
//! - **Time**: packets wait until the line is free. **Order**: first in, first out, but for
//!   [`flows`] and [`wf2q`].
//! - **Bytes**: unchanged, except for the marks of active queue management.
//! - **Drop reasons**: `queue_full` at the limit, `aqm` where the discipline decides before.
//! - **Change**: a lower limit or another discipline drops nothing that waits already; without a
//!   rate all leave at once.
//! - **Model**: `pfifo` and `bfifo` of tc(8). The packet in transmission does not count, as in a
//!   router and unlike the limit of tc-netem(8). Trains wait as one object that counts its
//!   segments; of a train whose segments are still arriving, all count from the first one on.

mod codel;
mod decision;
mod discipline;
mod drop_head;
mod drop_sink;
mod drop_tail;
mod flows;
mod limit;
mod multi_queue;
mod pi2;
mod pie;
mod red;
mod updates;
mod wf2q;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use windtunnel_model::profile::QueueDiscipline as Setting;
use windtunnel_model::record::Kind;
use windtunnel_model::{DropReason, LinkProfile, Time};
use windtunnel_wire::ecn::{self, EcnCodepoint};
use windtunnel_wire::flow::FiveTuple;

use crate::counters::{LaneClassCounters, LaneCounters};
use crate::element::rate::LaneTransmitter;
use crate::element::{RandomDraws, RngKey};
use crate::packet::{EmulatedPacket, PacketTrainShape};
use crate::records::TaggedShape;

use decision::{ArrivingPacket, DequeueVerdict, Head};
pub(crate) use decision::{EnqueueVerdict, Overflow};
use discipline::QueueingDiscipline;
pub(crate) use drop_sink::QueueDropSink;
use limit::QueueCapacity;

/// With room for so many packets, flow queues are taken not to overflow within the 100 µs of a part
/// of a train.
const NO_OVERFLOW: u64 = 1000;

#[derive(Debug)]
pub(crate) struct LaneQueue {
    /// In order, where the discipline does not keep them itself.
    waiting: VecDeque<EmulatedPacket>,
    packets: u64,
    bytes: u64,
    overhead: u32,
    packet_max: u64,
    limit: QueueCapacity,
    setting: Setting,
    discipline: QueueingDiscipline,
    draws: RandomDraws,
}

impl LaneQueue {
    pub(crate) fn new(rng: &RngKey<'_>, profile: &LinkProfile) -> Self {
        let draws = RandomDraws::new(rng, "queue");
        LaneQueue {
            waiting: VecDeque::new(),
            packets: 0,
            bytes: 0,
            overhead: profile.effective_overhead().0,
            packet_max: profile.wire_packet().max(1),
            limit: QueueCapacity::new(profile),
            setting: profile.discipline.clone(),
            discipline: QueueingDiscipline::new(profile, draws),
            draws,
        }
    }

    /// Takes new settings; what waits stays.
    pub(crate) fn set(&mut self, now: Time, profile: &LinkProfile) {
        self.overhead = profile.effective_overhead().0;
        self.packet_max = profile.wire_packet().max(1);
        self.limit = QueueCapacity::new(profile);
        let overhead = self.overhead;
        self.bytes = self.waiting.iter().map(|packet| packet.shape.charge(overhead)).sum();
        if let Some(keeper) = self.discipline.keeper() {
            self.bytes = keeper.recount(overhead);
        }
        if self.setting == profile.discipline {
            return self.discipline.set(profile);
        }
        let mut waiting: Vec<EmulatedPacket> = core::iter::from_fn(|| self.pop_any(now)).collect();
        waiting.sort_by_key(|packet| (packet.times.first, packet.number));
        self.setting.clone_from(&profile.discipline);
        self.discipline = QueueingDiscipline::new(profile, self.draws);
        waiting.into_iter().for_each(|packet| self.push(packet));
    }

    /// Lets time pass for the discipline. To be called before what waits or is transmitted changes.
    pub(crate) fn advance(&mut self, now: Time, server: &LaneTransmitter) {
        if let QueueingDiscipline::Wf2q(wf2q) = &mut self.discipline {
            return wf2q.pass(server.sent(now));
        }
        let bytes = self.bytes;
        self.discipline.advance(now, |at| {
            let before = Time::from_nanos(at.as_nanos().saturating_sub(1));
            bytes + server.waiting(before).1
        });
    }

    /// Whether the discipline decides about packets that come.
    pub(crate) fn judges(&self) -> bool {
        self.discipline.judges()
    }

    /// Decides about the first segment of a packet that is here now.
    pub(crate) fn admit(
        &mut self,
        now: Time,
        packet: &EmulatedPacket,
        server: &LaneTransmitter,
    ) -> EnqueueVerdict {
        let comer = self.newcomer(now, packet, 0, server);
        self.discipline.admit(&comer)
    }

    /// Whether all segments of a packet, all here now, may wait unmarked; then it has been decided
    /// so.
    pub(crate) fn admits_whole(
        &mut self,
        now: Time,
        packet: &EmulatedPacket,
        server: &LaneTransmitter,
    ) -> bool {
        let room = self.room(packet, server.waiting(now), server.is_free());
        let Some(mut trial) = self.discipline.trial().filter(|_| room == packet.shape.count) else {
            return false;
        };
        let passes = |index| {
            let comer = self.newcomer(now, packet, index, server);
            trial.admit(&comer) == EnqueueVerdict::Pass
        };
        let whole = (0..packet.shape.count).all(passes);
        if whole {
            self.discipline = trial;
        }
        whole
    }

    /// A segment of a packet, those before it waiting already.
    fn newcomer(
        &self,
        now: Time,
        packet: &EmulatedPacket,
        index: u32,
        server: &LaneTransmitter,
    ) -> ArrivingPacket {
        let full = u64::from(packet.shape.each) + u64::from(self.overhead);
        let direct = u32::from(server.is_free() && self.packets == 0);
        let before = u64::from(index.saturating_sub(direct)) * full;
        ArrivingPacket {
            now,
            queue: self.bytes + server.waiting(now).1 + before,
            draw: self.draws.at(packet.number + u64::from(index), packet.copy),
            ecn: takes_part(packet),
        }
    }

    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }

    /// The next flow whose class is to be found, where classes share the queue.
    pub(crate) fn question(&mut self) -> Option<FiveTuple> {
        let QueueingDiscipline::Wf2q(wf2q) = &mut self.discipline else { return None };
        wf2q.question()
    }

    /// A flow is of a class, or has no owner.
    pub(crate) fn answer(&mut self, now: Time, key: &FiveTuple, class: Option<u32>) {
        if let QueueingDiscipline::Wf2q(wf2q) = &mut self.discipline {
            wf2q.answer(now, key, class);
        }
    }

    /// What the classes that share the queue did.
    pub(crate) fn classes(&self) -> Option<LaneClassCounters> {
        let QueueingDiscipline::Wf2q(wf2q) = &self.discipline else { return None };
        Some(wf2q.report())
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of the packet that waits first, where the discipline keeps the order.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.waiting.front().map(|packet| packet.number)
    }

    pub(crate) fn overflow(&self) -> Overflow {
        self.discipline.overflow()
    }

    /// How many segments of `packet` there is room for, `busy` (packets, bytes) waiting elsewhere.
    /// If the line is free, the first segment needs no room.
    pub(crate) fn room(
        &self,
        packet: &EmulatedPacket,
        busy: (u64, u64),
        line_is_free: bool,
    ) -> u32 {
        let shape = packet.shape;
        let direct = u32::from(line_is_free && self.packets == 0);
        let full = (u64::from(shape.each) + u64::from(self.overhead)).max(1);
        let packets = self.limit.packets.saturating_sub(self.packets + busy.0);
        let bytes = self.limit.bytes.saturating_sub(self.bytes + busy.1);
        let needed = shape.charge(self.overhead).saturating_sub(u64::from(direct) * full);
        let in_bytes = if needed <= bytes { u64::from(shape.count) } else { bytes / full };
        let room = u32::try_from(packets.min(in_bytes)).unwrap_or(u32::MAX);
        room.saturating_add(direct).min(shape.count)
    }

    /// Whether more waits than may, `busy` waiting elsewhere, and more than `before`.
    pub(crate) fn is_over(&self, busy: (u64, u64), before: (u64, u64)) -> bool {
        let packets = self.limit.packets.saturating_sub(busy.0).max(before.0);
        let bytes = self.limit.bytes.saturating_sub(busy.1).max(before.1);
        self.packets > packets || self.bytes > bytes
    }

    pub(crate) fn push(&mut self, packet: EmulatedPacket) {
        let bytes = packet.shape.charge(self.overhead);
        self.packets += u64::from(packet.shape.count);
        self.bytes += bytes;
        match self.discipline.keeper() {
            Some(keeper) => keeper.push(packet, bytes),
            None => self.waiting.push_back(packet),
        }
    }

    /// Takes the next, whatever the discipline thinks of it.
    pub(crate) fn pop_any(&mut self, now: Time) -> Option<EmulatedPacket> {
        if let Some(keeper) = self.discipline.keeper() {
            keeper.front(now)?;
        }
        self.pop()
    }

    /// Makes room: drops one or more segments; how many.
    pub(crate) fn drop_some(&mut self, sink: &mut QueueDropSink<'_>) -> u64 {
        if let Some(keeper) = self.discipline.keeper() {
            let (packets, bytes) = keeper.drop_some(self.overhead, sink);
            self.packets -= packets;
            self.bytes -= bytes;
            return packets;
        }
        u64::from(self.drop_first(DropReason::QueueFull, sink))
    }

    /// Drops the oldest segment; whether there was one.
    fn drop_first(&mut self, reason: DropReason, sink: &mut QueueDropSink<'_>) -> bool {
        let Some(packet) = self.pop() else { return false };
        if let Some(rest) = sink.drop_front(reason, packet, 1) {
            self.unpop(rest);
        }
        true
    }

    /// What is transmitted next, where `run` says how many segments may stay together.
    pub(crate) fn next(
        &mut self,
        server: &LaneTransmitter,
        run: impl Fn(&EmulatedPacket) -> u32,
        mut sink: QueueDropSink<'_>,
        counters: &mut LaneCounters,
    ) -> Option<EmulatedPacket> {
        let now = sink.now;
        loop {
            let Some((head, shape)) = self.head(now, server, &run) else {
                self.discipline.emptied(now);
                return None;
            };
            let verdict = self.discipline.inspect(&head, &shape, self.overhead);
            let count = match verdict {
                DequeueVerdict::Pass(count) => count,
                DequeueVerdict::Mark => 1,
                DequeueVerdict::Drop => {
                    self.drop_first(DropReason::Aqm, &mut sink);
                    counters.dropped[DropReason::Aqm] += 1;
                    continue;
                }
            };
            let Some(mut packet) = self.take(count, &mut sink, counters) else { continue };
            if let Some(keeper) = self.discipline.keeper() {
                keeper.charge(&packet.shape, self.overhead);
            }
            if verdict == DequeueVerdict::Mark && packet.mark_ce(sink.pool) {
                sink.recorder.note(Kind::Marked, now, sink.lane, &packet, 0);
            }
            return Some(packet);
        }
    }

    /// The line is free, and nothing waits.
    pub(crate) fn emptied(&mut self, now: Time) {
        self.discipline.emptied(now);
    }

    /// The packet at the head, and its shape.
    fn head(
        &mut self,
        now: Time,
        server: &LaneTransmitter,
        run: &impl Fn(&EmulatedPacket) -> u32,
    ) -> Option<(Head, PacketTrainShape)> {
        // What is on the line as part of a train cannot be dropped for another's sake any more.
        let part_most = if self.has_room_for(NO_OVERFLOW) { u32::MAX } else { 1 };
        let asks = self.discipline.asks_ecn();
        let (packet, bytes, part_most) = match self.discipline.keeper() {
            Some(keeper) => {
                let (packet, bytes) = keeper.front(now)?;
                (packet, bytes, part_most)
            }
            None => (self.waiting.front()?, self.bytes, u32::MAX),
        };
        let (shape, times) = (packet.shape, packet.times);
        let part = run(packet).min(server.part(&shape)).min(part_most);
        let start_last = now + server.time_for(&shape, part - 1);
        let first = if shape.count == 1 { shape.last } else { shape.each };
        let head = Head {
            now,
            waited: now.since(times.first),
            waited_last: start_last.since(times.of(part - 1, shape.count)),
            part,
            behind: bytes.saturating_sub(u64::from(first) + u64::from(self.overhead)),
            packet_max: self.packet_max,
            ecn: asks && takes_part(packet),
        };
        Some((head, shape))
    }

    fn has_room_for(&self, packets: u64) -> bool {
        self.limit.packets.saturating_sub(self.packets) >= packets
            && self.limit.bytes.saturating_sub(self.bytes) / self.packet_max >= packets
    }

    /// Cuts `count` segments off the oldest packet; `None` where there is no memory for that.
    fn take(
        &mut self,
        count: u32,
        sink: &mut QueueDropSink<'_>,
        counters: &mut LaneCounters,
    ) -> Option<EmulatedPacket> {
        let packet = self.pop()?;
        if count >= packet.shape.count {
            return Some(packet);
        }
        let (tag, shape) = (packet.tag, packet.shape);
        match packet.split(count, sink.pool) {
            Ok((front, rest)) => {
                rest.into_iter().for_each(|rest| self.unpop(rest));
                Some(front)
            }
            Err(rest) => {
                let reason = DropReason::Memory;
                counters.dropped[reason] += u64::from(count);
                let gone = shape.part(&(0..count));
                let (lane, now) = (sink.lane, sink.now);
                let gone = TaggedShape { tag: &tag, shape: &gone };
                sink.recorder.write(Kind::Dropped, now, lane, gone, reason as u32);
                rest.into_iter().for_each(|rest| self.unpop(rest));
                None
            }
        }
    }

    /// Takes the packet that `head` returned.
    fn pop(&mut self) -> Option<EmulatedPacket> {
        let packet = match self.discipline.keeper() {
            Some(keeper) => keeper.pop(self.overhead)?,
            None => self.waiting.pop_front()?,
        };
        self.packets -= u64::from(packet.shape.count);
        self.bytes -= packet.shape.charge(self.overhead);
        Some(packet)
    }

    fn unpop(&mut self, packet: EmulatedPacket) {
        self.packets += u64::from(packet.shape.count);
        self.bytes += packet.shape.charge(self.overhead);
        match self.discipline.keeper() {
            Some(keeper) => keeper.unpop(packet, self.overhead),
            None => self.waiting.push_front(packet),
        }
    }
}

/// Whether the sender of a packet takes part in ECN.
fn takes_part(packet: &EmulatedPacket) -> bool {
    ecn::codepoint(packet.frame()).is_some_and(|codepoint| codepoint != EcnCodepoint::NotEct)
}
