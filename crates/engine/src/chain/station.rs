//! The queue of a lane and its server.

use windtunnel_model::record::Kind;
use windtunnel_model::{DropReason, LinkProfile, Span, Time};

use super::pace::Pacing;
use super::propagation::PropagationLine;
use super::{LaneContext, LaneMeter};
use crate::element::RngKey;
use crate::element::queue::{EnqueueVerdict, LaneQueue, Overflow, QueueDropSink};
use crate::element::rate::LaneTransmitter;
use crate::element::trace::TraceSet;
use crate::packet::EmulatedPacket;

/// A queue with one server, as queueing theory has it.
#[derive(Debug)]
pub(super) struct QueueingStation {
    pub(super) queue: LaneQueue,
    pub(super) server: LaneTransmitter,
    /// What a shaper may send; `None`: the rate alone says it.
    pub(super) pacing: Option<Pacing>,
    /// Whether the rate is another's business.
    without_rate: bool,
}

/// What becomes of a packet that comes to the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueingDecision {
    /// It takes its place, as far as there is room.
    LineUp,
    /// Each of its segments is decided about when it is here.
    Singly,
    Drop,
}

/// A delivery opportunity in use.
#[derive(Debug)]
pub(super) struct OpportunityUse {
    offered: u64,
    /// Time since the one before it.
    gap: Span,
    /// Bytes that are left of it.
    left: u64,
    /// Segments that it has carried.
    packets: u32,
}

impl QueueingStation {
    pub(super) fn new(
        rng: &RngKey<'_>,
        profile: &LinkProfile,
        pacing: Option<Pacing>,
        without_rate: bool,
    ) -> QueueingStation {
        let server = match without_rate {
            true => LaneTransmitter::without_rate(profile),
            false => LaneTransmitter::new(profile),
        };
        QueueingStation { queue: LaneQueue::new(rng, profile), server, pacing, without_rate }
    }

    /// Takes the trace that `profile` names from `now` on; without a `now` all traces have started
    /// again.
    pub(super) fn follow(&mut self, profile: &LinkProfile, traces: &TraceSet, now: Option<Time>) {
        if !self.without_rate {
            self.server.follow(profile, traces, now);
        }
    }

    /// Takes new settings.
    pub(super) fn set(&mut self, now: Time, profile: &LinkProfile, traces: &TraceSet) {
        self.queue.set(now, profile);
        if self.without_rate {
            self.server = LaneTransmitter::without_rate(profile);
        } else {
            self.server.set(profile);
            self.server.follow(profile, traces, Some(now));
        }
    }

    /// Segments inside.
    #[inline]
    pub(super) fn packets(&self) -> u64 {
        self.queue.packets() + self.server.packets()
    }

    /// Packets and bytes in the queue.
    #[inline]
    pub(super) fn queued(&self) -> (u64, u64) {
        (self.queue.packets(), self.queue.bytes())
    }

    /// Whether a packet passes without waiting or transmission.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.server.rate().is_none() && self.server.is_idle()
    }

    /// Whether a packet with this number, or with one before it, is inside.
    pub(super) fn waits_for(&self, number: u64) -> bool {
        let oldest = self.server.number().or_else(|| self.queue.oldest());
        oldest.is_some_and(|oldest| oldest <= number)
    }

    /// Lets the discipline see what has been sent until `now`.
    #[inline]
    pub(super) fn advance(&mut self, now: Time) {
        self.queue.advance(now, &self.server);
    }

    /// Lets the discipline decide about a packet.
    #[inline]
    pub(super) fn judge(
        &mut self,
        now: Time,
        packet: &mut EmulatedPacket,
        meter: &mut LaneMeter,
        work: &mut LaneContext,
    ) -> QueueingDecision {
        if !self.queue.judges() {
            return QueueingDecision::LineUp;
        }
        if packet.shape.count > 1 {
            let all_here = packet.times.last <= now;
            let passes = all_here && self.queue.admits_whole(now, packet, &self.server);
            return if passes { QueueingDecision::LineUp } else { QueueingDecision::Singly };
        }
        match self.queue.admit(now, packet, &self.server) {
            EnqueueVerdict::Pass => {}
            EnqueueVerdict::Drop => {
                meter.count_drop(DropReason::Aqm, now, packet, 0..1, work);
                return QueueingDecision::Drop;
            }
            EnqueueVerdict::Mark => {
                if packet.mark_ce(&mut work.pool) {
                    work.recorder.note(Kind::Marked, now, meter.label, packet, 0);
                }
            }
        }
        QueueingDecision::LineUp
    }

    /// How many segments of a packet there is room for; `None`: that is to be asked for each of them
    /// when it is here.
    #[inline]
    pub(super) fn room(&self, now: Time, packet: &EmulatedPacket) -> Option<u32> {
        let room = self.queue.room(packet, self.server.waiting(now), self.server.is_free());
        // Room may come while its segments arrive, and what goes for a segment's sake may depend on
        // those before it.
        let is_single = packet.times.last > now
            || packet.shape.count > 1 && self.queue.overflow() == Overflow::Fattest;
        (room == packet.shape.count || !is_single).then_some(room)
    }

    /// Puts a packet behind what waits already, where there is room for `room` of its segments.
    #[inline]
    pub(super) fn push(
        &mut self,
        now: Time,
        mut packet: EmulatedPacket,
        room: u32,
        meter: &mut LaneMeter,
        work: &mut LaneContext,
    ) {
        // Else `trim` makes room, after the line has taken what it can.
        if room < packet.shape.count && self.queue.overflow() == Overflow::Newcomer {
            let range = room..packet.shape.count;
            meter.count_drop(DropReason::QueueFull, now, &packet, range, work);
            if room == 0 {
                return packet.discard(&mut work.pool);
            }
            packet.truncate(room);
        }
        self.queue.push(packet);
    }

    /// Drops what has to go while more waits than may, and more than `before`: a limit that has
    /// been lowered drops nothing by itself.
    #[inline]
    pub(super) fn trim(
        &mut self,
        now: Time,
        before: (u64, u64),
        meter: &mut LaneMeter,
        work: &mut LaneContext,
    ) {
        if self.queue.overflow() == Overflow::Newcomer {
            return;
        }
        let waiting = self.server.waiting(now);
        while self.queue.is_over(waiting, before) {
            let (pool, recorder) = (&mut work.pool, &mut work.recorder);
            let mut sink = QueueDropSink { pool, recorder, lane: meter.label, now };
            let dropped = self.queue.drop_some(&mut sink);
            if dropped == 0 {
                return;
            }
            meter.counters.dropped[DropReason::QueueFull] += dropped;
        }
    }

    /// Takes the next packet of a lane whose rate was removed.
    pub(super) fn pop_any(&mut self, now: Time) -> Option<EmulatedPacket> {
        let pending = self.server.take_pending().map(|(packet, _)| packet);
        pending.or_else(|| self.queue.pop_any(now))
    }

    /// Starts the next transmission; when something is to be done about it.
    #[inline]
    pub(super) fn begin_next(
        &mut self,
        now: Time,
        line: &PropagationLine,
        meter: &mut LaneMeter,
        work: &mut LaneContext,
    ) -> Option<Time> {
        let (first, busy) = match self.server.take_pending() {
            Some((packet, bytes)) => self.server.begin_rest(packet, bytes),
            None => self.begin_queued(now, line, meter, work)?,
        };
        meter.counters.busy_ns = meter.counters.busy_ns.saturating_add(busy.as_nanos());
        // A trace that ends with an outage may never let it end.
        (first < Time::MAX).then_some(first)
    }

    #[inline]
    fn begin_queued(
        &mut self,
        now: Time,
        line: &PropagationLine,
        meter: &mut LaneMeter,
        work: &mut LaneContext,
    ) -> Option<(Time, Span)> {
        self.pace(now, work);
        let packet = self.next(now, line, meter, work)?;
        let wire_bytes = packet.shape.charge(self.server.overhead());
        let follows = self.server.follows(now, &packet).then_some(packet.shape.count);
        let (first, busy) = self.server.begin(packet);
        if let Some(packets) = follows {
            meter.counters.count_backlogged(packets, wire_bytes, busy);
        }
        Some((self.charge(now, wire_bytes, first, work), busy))
    }

    /// Takes the next packet out of the queue, to be sent.
    #[inline]
    fn next(
        &mut self,
        now: Time,
        line: &PropagationLine,
        meter: &mut LaneMeter,
        work: &mut LaneContext,
    ) -> Option<EmulatedPacket> {
        let run = |packet: &EmulatedPacket| line.run(packet);
        let (pool, recorder) = (&mut work.pool, &mut work.recorder);
        let sink = QueueDropSink { pool, recorder, lane: meter.label, now };
        let packet = self.queue.next(&self.server, run, sink, &mut meter.counters)?;
        meter.counters.transmitted_wire_bytes += packet.shape.charge(self.server.overhead());
        Some(packet)
    }

    /// The next delivery opportunity, if anything waits for one, and that is not awaited yet.
    pub(super) fn await_opportunity(&mut self, now: Time) -> Option<Time> {
        if self.queue.packets() > 0 || self.server.has_pending() {
            return self.server.await_slot(now);
        }
        self.queue.emptied(now);
        None
    }

    /// The opportunity that is there now.
    pub(super) fn take_opportunity(&mut self, now: Time) -> Option<OpportunityUse> {
        let (offered, gap) = self.server.take_slot(now)?;
        Some(OpportunityUse { offered, gap, left: offered, packets: 0 })
    }

    /// The next packet whose last bytes an opportunity carries; `None`: it can carry no more.
    pub(super) fn use_opportunity(
        &mut self,
        now: Time,
        slot: &mut OpportunityUse,
        line: &PropagationLine,
        meter: &mut LaneMeter,
        work: &mut LaneContext,
    ) -> Option<EmulatedPacket> {
        while slot.left > 0 {
            if !self.server.has_pending() {
                let packet = self.next(now, line, meter, work)?;
                self.server.begin_slotted(packet);
            }
            let (rest, packet) = self.server.use_slot(now, slot.left);
            let stuck = packet.is_none() && rest == slot.left;
            slot.left = rest;
            if let Some(packet) = packet {
                slot.packets += packet.shape.count;
                return Some(packet);
            }
            if stuck {
                return None;
            }
        }
        None
    }

    /// Counts what an opportunity carried.
    pub(super) fn count_opportunity(&self, slot: &OpportunityUse, meter: &mut LaneMeter) {
        let OpportunityUse { offered, gap, left, packets } = *slot;
        // The share of the time since the last opportunity that what was used took up.
        let used = u128::from(offered - left) * u128::from(gap.as_nanos());
        let busy = u64::try_from(used / u128::from(offered.max(1))).unwrap_or(u64::MAX);
        meter.counters.busy_ns = meter.counters.busy_ns.saturating_add(busy);
        if left == 0 && (self.queue.packets() > 0 || self.server.has_pending()) {
            meter.counters.count_backlogged(packets, offered, gap);
        }
    }
}
