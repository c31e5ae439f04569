//! The second half of a lane: queue, rate, delay.

use alloc::collections::VecDeque;

use windtunnel_model::record::Kind;
use windtunnel_model::{Span, Time};

use super::{ElementChain, LaneContext, Role};
use crate::counters::DropReason;
use crate::element::queue::{EnqueueVerdict, Overflow, QueueDropSink};
use crate::packet::EmulatedPacket;
use crate::records;
use crate::timer::LaneActivity;

impl ElementChain {
    /// Puts a packet behind what waits already, or lets it pass where nothing holds it up.
    pub(super) fn queue_up(&mut self, now: Time, packet: EmulatedPacket, work: &mut LaneContext) {
        if self.role.is_ahead() {
            return self.delay_all(now, packet, work);
        }
        if self.server.rate().is_none() && self.server.is_idle() {
            return self.delay(now, packet, work);
        }
        self.queue.advance(now, &self.server);
        if self.queue.judges() {
            return self.judge(now, packet, work);
        }
        self.line_up(now, packet, work);
    }

    /// Lets the discipline decide about each segment when it is here.
    fn judge(&mut self, now: Time, mut packet: EmulatedPacket, work: &mut LaneContext) {
        if packet.shape.count == 1 {
            match self.queue.admit(now, &packet, &self.server) {
                EnqueueVerdict::Pass => {}
                EnqueueVerdict::Drop => {
                    self.drop(DropReason::Aqm, now, &packet, 0..1, work);
                    return packet.discard(&mut work.pool);
                }
                EnqueueVerdict::Mark => {
                    if packet.mark_ce(&mut work.pool) {
                        work.recorder.note(Kind::Marked, now, self.label, &packet, 0);
                    }
                }
            }
            return self.line_up(now, packet, work);
        }
        let all_here = packet.times.last <= now;
        if all_here && self.queue.admits_whole(now, &packet, &self.server) {
            return self.line_up(now, packet, work);
        }
        self.queue_singly(now, packet, work);
    }

    /// Puts a packet at its place in the queue, as far as there is room.
    fn line_up(&mut self, now: Time, packet: EmulatedPacket, work: &mut LaneContext) {
        let waiting = self.server.waiting(now);
        let before = (self.queue.packets(), self.queue.bytes());
        let room = self.queue.room(&packet, waiting, self.server.is_free());
        if room == packet.shape.count {
            self.queue.push(packet);
        } else if packet.times.last > now || self.must_be_single(&packet) {
            // Room may come while its segments arrive: each is asked about when it does.
            return self.queue_singly(now, packet, work);
        } else {
            self.overflow(now, packet, room, work);
        }
        if self.server.is_idle() {
            self.transmit(now, work);
        }
        self.trim(now, before, work);
        self.note_queue_at(now);
    }

    /// Whether what goes for a segment's sake depends on those before it.
    fn must_be_single(&self, packet: &EmulatedPacket) -> bool {
        packet.shape.count > 1 && self.queue.overflow() == Overflow::Fattest
    }

    /// Starts the next transmission, or lets all go where there is no rate any more.
    pub(super) fn transmit(&mut self, now: Time, work: &mut LaneContext) {
        if self.server.has_slots() {
            return self.await_opportunity(now, work);
        }
        let pending = self.server.take_pending();
        if self.server.rate().is_none() {
            let pending = pending.into_iter().map(|(packet, _)| packet);
            let mut rest: VecDeque<EmulatedPacket> = pending.collect();
            while let Some(mut packet) = rest.pop_front().or_else(|| self.queue.pop_any(now)) {
                packet.times = packet.times.map(|time| time.max(now));
                self.delay(now, packet, work);
            }
            return;
        }
        if let Some((packet, bytes)) = pending {
            let (first, busy) = self.server.begin_rest(packet, bytes);
            return self.await_end(first, busy, work);
        }
        self.pace(now, work);
        let delay = &self.delay;
        let run = |packet: &EmulatedPacket| delay.run(packet);
        let sink = QueueDropSink {
            pool: &mut work.pool,
            recorder: &mut work.recorder,
            lane: self.label,
            now,
        };
        let next = self.queue.next(&self.server, run, sink, &mut self.counters);
        if let Some(packet) = next {
            let wire_bytes = packet.shape.charge(self.server.overhead());
            self.counters.transmitted_wire_bytes += wire_bytes;
            let follows = self.server.follows(now, &packet).then_some(packet.shape.count);
            let (first, busy) = self.server.begin(packet);
            if let Some(packets) = follows {
                self.counters.count_backlogged(packets, wire_bytes, busy);
            }
            let first = self.charge(now, wire_bytes, first, work);
            self.await_end(first, busy, work);
        }
    }

    fn await_end(&mut self, first: Time, busy: Span, work: &mut LaneContext) {
        self.counters.busy_ns = self.counters.busy_ns.saturating_add(busy.as_nanos());
        // A trace that ends with an outage may never let it end.
        if first < Time::MAX {
            self.arm(LaneActivity::Server, Some(first), work);
        }
    }

    /// Sees to it that the next delivery opportunity is used, if anything waits for one.
    fn await_opportunity(&mut self, now: Time, work: &mut LaneContext) {
        if self.queue.packets() > 0 || self.server.has_pending() {
            let next = self.server.await_slot(now);
            self.arm(LaneActivity::Server, next, work);
        } else {
            self.queue.emptied(now);
        }
    }

    /// Sends what the opportunity at `now` carries.
    fn use_opportunity(&mut self, now: Time, work: &mut LaneContext) {
        let Some((offered, gap)) = self.server.take_slot(now) else { return };
        let (mut left, mut packets) = (offered, 0);
        while left > 0 {
            if !self.server.has_pending() {
                let delay = &self.delay;
                let run = |packet: &EmulatedPacket| delay.run(packet);
                let (pool, recorder) = (&mut work.pool, &mut work.recorder);
                let sink = QueueDropSink { pool, recorder, lane: self.label, now };
                let next = self.queue.next(&self.server, run, sink, &mut self.counters);
                let Some(packet) = next else { break };
                let wire_bytes = packet.shape.charge(self.server.overhead());
                self.counters.transmitted_wire_bytes += wire_bytes;
                self.server.begin_slotted(packet);
            }
            let waits = self.server.has_pending();
            let (rest, packet) = self.server.use_slot(now, left);
            let stuck = waits && packet.is_none() && rest == left;
            left = rest;
            if let Some(packet) = packet {
                self.note_sent(&packet, work);
                packets += packet.shape.count;
                self.delay_all(now, packet, work);
            }
            if stuck {
                break;
            }
        }
        // The share of the time since the last opportunity that what was used took up.
        let used = u128::from(offered - left) * u128::from(gap.as_nanos());
        let busy = u64::try_from(used / u128::from(offered.max(1))).unwrap_or(u64::MAX);
        self.counters.busy_ns = self.counters.busy_ns.saturating_add(busy);
        if left == 0 && (self.queue.packets() > 0 || self.server.has_pending()) {
            self.counters.count_backlogged(packets, offered, gap);
        }
    }

    /// The first or the last segment of the transmission has left.
    pub(super) fn end_transmission(&mut self, now: Time, work: &mut LaneContext) {
        if self.look_again(now, work) {
            return;
        }
        self.queue.advance(now, &self.server);
        if self.server.has_slots() && self.server.is_idle() {
            self.use_opportunity(now, work);
        }
        let (packet, busy_until) = self.server.end();
        if let Some(packet) = packet {
            self.note_sent(&packet, work);
            self.delay_all(now, packet, work);
        }
        match busy_until {
            Some(last) => self.arm(LaneActivity::Server, Some(last), work),
            None => self.transmit(now, work),
        }
        self.note_queue();
    }

    /// Records a transmission whose end is known. It is as long as the line takes for what is here:
    /// from the first bit of the first segment to the last of the last.
    #[inline]
    fn note_sent(&self, packet: &EmulatedPacket, work: &mut LaneContext) {
        if work.recorder.wants(&packet.tag) {
            let lasts = records::saturate(packet.times.last.since(packet.sent));
            work.recorder.note(Kind::Sent, packet.sent, self.label, packet, lasts);
        }
    }

    /// Brings the counters of the queue's present length up to date.
    pub(super) fn note_queue(&mut self) {
        self.counters.queue_packets = self.queue.packets();
        self.counters.queue_bytes = self.queue.bytes();
    }

    fn note_queue_at(&mut self, now: Time) {
        self.note_queue();
        let (packets, bytes) = self.server.waiting(now);
        let counters = &mut self.counters;
        let (packets, bytes) = (counters.queue_packets + packets, counters.queue_bytes + bytes);
        counters.queue_packets_max = counters.queue_packets_max.max(packets);
        counters.queue_bytes_max = counters.queue_bytes_max.max(bytes);
        self.queue_peak = (self.queue_peak.0.max(packets), self.queue_peak.1.max(bytes));
    }

    /// The segments are all here, and there is room for `room` of them only.
    fn overflow(
        &mut self,
        now: Time,
        mut packet: EmulatedPacket,
        room: u32,
        work: &mut LaneContext,
    ) {
        match self.queue.overflow() {
            // `trim` makes room, after the line has taken what it can.
            Overflow::Oldest | Overflow::Fattest => self.queue.push(packet),
            Overflow::Newcomer => {
                let range = room..packet.shape.count;
                self.drop(DropReason::QueueFull, now, &packet, range, work);
                if room == 0 {
                    return packet.discard(&mut work.pool);
                }
                packet.truncate(room);
                self.queue.push(packet);
            }
        }
    }

    /// Drops what has to go while more waits than may, and more than `before`: a limit that has
    /// been lowered drops nothing by itself.
    fn trim(&mut self, now: Time, before: (u64, u64), work: &mut LaneContext) {
        if self.queue.overflow() == Overflow::Newcomer {
            return;
        }
        let waiting = self.server.waiting(now);
        while self.queue.is_over(waiting, before) {
            let (pool, recorder) = (&mut work.pool, &mut work.recorder);
            let mut sink = QueueDropSink { pool, recorder, lane: self.label, now };
            let dropped = self.queue.drop_some(&mut sink);
            if dropped == 0 {
                return;
            }
            self.counters.dropped[DropReason::QueueFull] += dropped;
        }
    }

    fn queue_singly(&mut self, now: Time, packet: EmulatedPacket, work: &mut LaneContext) {
        let mut rest = Some(packet);
        while let Some(packet) = rest.take() {
            let (front, behind) = self.split(packet, 1, work);
            if let Some(front) = front {
                self.await_arrival(now, front, work);
            }
            rest = behind;
        }
    }

    /// Sends a packet that no rate holds up, and whose first segment is there now, on its way to
    /// the end of the lane. What is behind a cut waits until it is there, so that others can
    /// come between.
    fn delay(&mut self, now: Time, packet: EmulatedPacket, work: &mut LaneContext) {
        let run = self.delay.run(&packet);
        if run == packet.shape.count {
            return self.depart(now, packet, work);
        }
        let mut rest = Some(packet);
        while let Some(packet) = rest.take() {
            if packet.times.first > now {
                return self.await_arrival(now, packet, work);
            }
            rest = self.depart_run(now, packet, work);
        }
    }

    /// As `delay`, for what the rate has served: nothing can come between any more.
    fn delay_all(&mut self, now: Time, packet: EmulatedPacket, work: &mut LaneContext) {
        let mut rest = Some(packet);
        while let Some(packet) = rest.take() {
            rest = self.depart_run(now, packet, work);
        }
    }

    fn depart_run(
        &mut self,
        now: Time,
        packet: EmulatedPacket,
        work: &mut LaneContext,
    ) -> Option<EmulatedPacket> {
        let run = self.delay.run(&packet);
        let (front, behind) = self.split(packet, run, work);
        if let Some(front) = front {
            self.depart(now, front, work);
        }
        behind
    }

    fn depart(&mut self, now: Time, mut packet: EmulatedPacket, work: &mut LaneContext) {
        let departure = self.delay.depart(&packet);
        let count = u64::from(packet.shape.count);
        packet.delayed_from = packet.times.last;
        self.counters.reordered += if departure.reordered { count } else { 0 };
        packet.times = departure.times;
        let mut now = now;
        if let Role::Ahead { is_remote, .. } = self.role {
            packet.unordered |= departure.held_back || self.delay.reorders();
            if !self.site.ends_at_node {
                return self.exit(packet, work);
            }
            self.keep_order(&mut packet);
            if is_remote {
                return self.exit(packet, work);
            }
            now = work.now;
        }
        let out = if self.site.ends_at_node { packet.times.last } else { packet.times.first };
        // What should have left before leaves by its alarm, which has that time.
        if out == now && self.line.next().is_none_or(|next| next > now) {
            return self.exit(packet, work);
        }
        self.lined_up += count;
        if departure.held_back {
            self.line.push_aside(out, packet);
        } else {
            self.line.push(out, packet);
        }
        self.arm(LaneActivity::Delay, self.line.next(), work);
    }

    /// Lets no packet of a source be here before the one that it sent earlier.
    fn keep_order(&mut self, packet: &mut EmulatedPacket) {
        let Some(origin) = packet.origin.filter(|_| !packet.unordered) else { return };
        let Role::Ahead { floors, .. } = &mut self.role else { return };
        let floor = floors.entry(origin).or_default();
        let least = *floor;
        packet.times = packet.times.map(|time| time.max(least));
        *floor = packet.times.last;
    }
}
