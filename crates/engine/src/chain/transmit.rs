//! The second half of a lane: queue, rate, delay.

use windtunnel_model::Time;

use super::station::QueueingDecision;
use super::{ElementChain, LaneContext};
use crate::packet::EmulatedPacket;
use crate::timer::LaneActivity;

impl ElementChain {
    /// Puts a packet behind what waits already, or lets it pass where nothing holds it up.
    pub(super) fn queue_up(
        &mut self,
        now: Time,
        mut packet: EmulatedPacket,
        work: &mut LaneContext,
    ) {
        if self.line.is_ahead() {
            return self.delay_all(now, packet, work);
        }
        if self.station.is_open() {
            return self.delay(now, packet, work);
        }
        self.station.advance(now);
        match self.station.judge(now, &mut packet, &mut self.meter, work) {
            QueueingDecision::LineUp => self.line_up(now, packet, work),
            QueueingDecision::Singly => self.queue_singly(now, packet, work),
            QueueingDecision::Drop => packet.discard(&mut work.pool),
        }
    }

    /// Puts a packet at its place in the queue, as far as there is room.
    fn line_up(&mut self, now: Time, packet: EmulatedPacket, work: &mut LaneContext) {
        let before = self.station.queued();
        let Some(room) = self.station.room(now, &packet) else {
            return self.queue_singly(now, packet, work);
        };
        self.station.push(now, packet, room, &mut self.meter, work);
        if self.station.server.is_idle() {
            self.transmit(now, work);
        }
        self.station.trim(now, before, &mut self.meter, work);
        self.meter.note_waiting(self.station.queued(), self.station.server.waiting(now));
    }

    /// Starts the next transmission, or lets all go where there is no rate any more.
    pub(super) fn transmit(&mut self, now: Time, work: &mut LaneContext) {
        if self.station.server.has_slots() {
            let next = self.station.await_opportunity(now);
            return self.arm(LaneActivity::Server, next, work);
        }
        if self.station.server.rate().is_some() {
            let next = self.station.begin_next(now, &self.line, &mut self.meter, work);
            return self.arm(LaneActivity::Server, next, work);
        }
        while let Some(mut packet) = self.station.pop_any(now) {
            packet.times = packet.times.map(|time| time.max(now));
            self.delay(now, packet, work);
        }
    }

    /// Sends what the opportunity at `now` carries.
    fn use_opportunity(&mut self, now: Time, work: &mut LaneContext) {
        let Some(mut slot) = self.station.take_opportunity(now) else { return };
        while let Some(packet) =
            self.station.use_opportunity(now, &mut slot, &self.line, &mut self.meter, work)
        {
            self.meter.note_sent(&packet, work);
            self.delay_all(now, packet, work);
        }
        self.station.count_opportunity(&slot, &mut self.meter);
    }

    /// The first or the last segment of the transmission has left.
    pub(super) fn end_transmission(&mut self, now: Time, work: &mut LaneContext) {
        if let Some(at) = self.station.look_again(now, work) {
            return self.arm(LaneActivity::Server, Some(at), work);
        }
        self.station.advance(now);
        if self.station.server.has_slots() && self.station.server.is_idle() {
            self.use_opportunity(now, work);
        }
        let (packet, busy_until) = self.station.server.end();
        if let Some(packet) = packet {
            self.meter.note_sent(&packet, work);
            self.delay_all(now, packet, work);
        }
        match busy_until {
            Some(last) => self.arm(LaneActivity::Server, Some(last), work),
            None => self.transmit(now, work),
        }
        self.meter.note_queue(self.station.queued());
    }

    fn queue_singly(&mut self, now: Time, packet: EmulatedPacket, work: &mut LaneContext) {
        let mut rest = Some(packet);
        while let Some(packet) = rest.take() {
            let (front, behind) = self.meter.split(packet, 1, work);
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
        let run = self.line.run(&packet);
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
        let run = self.line.run(&packet);
        let (front, behind) = self.meter.split(packet, run, work);
        if let Some(front) = front {
            self.depart(now, front, work);
        }
        behind
    }

    fn depart(&mut self, now: Time, packet: EmulatedPacket, work: &mut LaneContext) {
        if self.line.depart(now, packet, &mut self.meter, work) {
            self.arm(LaneActivity::Delay, self.line.next(), work);
        }
    }
}
