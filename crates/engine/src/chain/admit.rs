//! The first half of a lane: cut, MTU, loss, duplicate, corrupt.

use windtunnel_model::record::Kind;
use windtunnel_model::{DropReason, Time};
use windtunnel_wire::{checksum, ethernet, fragment, vnet};

use super::{ElementChain, LaneContext, TooBig};
use crate::element::cut;
use crate::element::mtu::MtuVerdict;
use crate::packet::{EmulatedPacket, ImpairmentDecision, PacketTrainShape};
use crate::records::{PacketRecorder, TaggedShape};
use crate::timer::LaneActivity;

impl ElementChain {
    /// Takes a packet whose first segment is here now. Answers with the one that is too big, if its
    /// sender is to be sent an error.
    pub(crate) fn offer(
        &mut self,
        now: Time,
        mut packet: EmulatedPacket,
        work: &mut LaneContext,
    ) -> Option<TooBig> {
        packet.number = self.meter.count_offer(&packet.shape, packet.frame());
        packet.copy = false;
        packet.impairments = ImpairmentDecision::NONE;
        packet.marked = false;
        self.impairments.turn_to(now);
        if work.recorder.wants(&packet.tag) {
            let (time, ack) = (packet.times.first, packet.tag.ack);
            work.recorder.note(Kind::Offered, time, self.meter.label, &packet, ack);
        }
        if let Some(reason) = cut::refuses(&self.state) {
            let time = packet.times.first;
            self.meter.count_drop(reason, time, &packet, 0..packet.shape.count, work);
            packet.discard(&mut work.pool);
            return None;
        }
        match self.mtu.fit(&packet.shape, packet.frame()) {
            MtuVerdict::Whole => self.admit(now, packet, work),
            MtuVerdict::Fragments { .. } if self.site.routed => {
                self.fragment_all(now, packet, work);
            }
            MtuVerdict::Fragments { segments } | MtuVerdict::No { segments } => {
                return Some(self.refuse(now, packet, segments, work));
            }
        }
        None
    }

    /// Counts an offer for which there was no memory.
    pub(crate) fn offer_without_memory(
        &mut self,
        now: Time,
        offered: TaggedShape<'_>,
        frame: &[u8],
        recorder: &mut PacketRecorder,
    ) {
        self.offer_in_vain(DropReason::Memory, now, offered, frame, recorder);
    }

    /// Counts an offer that something before the lane has refused.
    pub(crate) fn offer_in_vain(
        &mut self,
        reason: DropReason,
        now: Time,
        offered: TaggedShape<'_>,
        frame: &[u8],
        recorder: &mut PacketRecorder,
    ) {
        self.meter.count_offer(offered.shape, frame);
        self.meter.counters.dropped[reason] += u64::from(offered.shape.count);
        let lane = self.meter.label;
        recorder.write(Kind::Offered, now, lane, offered, offered.tag.ack);
        recorder.write(Kind::Dropped, now, lane, offered, reason as u32);
    }

    /// What has been accepted and whose time has come: duplicate and corrupt do their work.
    pub(super) fn touch(&mut self, now: Time, mut packet: EmulatedPacket, work: &mut LaneContext) {
        let decision = core::mem::replace(&mut packet.impairments, ImpairmentDecision::NONE);
        let copy = decision.duplicate.then(|| packet.duplicate(&mut work.pool));
        let original = (packet.tag, packet.shape);
        if decision.duplicate {
            let time = packet.times.first;
            work.recorder.note(Kind::Duplicated, time, self.meter.label, &packet, 0);
        }
        if decision.corrupt {
            self.impairments.damage(&mut packet, &mut self.meter, work);
        }
        self.queue_up(now, packet, work);
        let Some(copy) = copy else { return };
        self.meter.counters.duplicated += 1;
        match copy {
            Some(mut copy) => {
                copy.tag = copy.tag.copied();
                self.impairments.damage_copy(&mut copy, &mut self.meter, work);
                self.queue_up(now, copy, work);
            }
            None => {
                let (tag, shape) = original;
                self.meter.counters.dropped[DropReason::Memory] += 1;
                let reason = DropReason::Memory as u32;
                let copied = TaggedShape { tag: &tag.copied(), shape: &shape };
                work.recorder.write(Kind::Dropped, now, self.meter.label, copied, reason);
            }
        }
    }

    /// Passes a packet on, or keeps it until its first segment is there.
    pub(super) fn await_arrival(
        &mut self,
        now: Time,
        packet: EmulatedPacket,
        work: &mut LaneContext,
    ) {
        if packet.times.first <= now || self.line.is_ahead() {
            return self.touch(now, packet, work);
        }
        self.coming += u64::from(packet.shape.count);
        self.ingress.push(packet.times.first, packet);
        self.arm(LaneActivity::Ingress, self.ingress.next(), work);
    }

    /// Decides about each segment, and cuts out those that are touched.
    fn admit(&mut self, now: Time, packet: EmulatedPacket, work: &mut LaneContext) {
        if !self.impairments.touch_any() {
            return self.await_arrival(now, packet, work);
        }
        let mut rest = Some(packet);
        let mut run = 0;
        while let Some(packet) = rest.take() {
            if run == packet.shape.count {
                return self.await_arrival(now, packet, work);
            }
            let decision = self.impairments.decide(packet.number + u64::from(run));
            if decision == ImpairmentDecision::NONE {
                run += 1;
                rest = Some(packet);
                continue;
            }
            rest = self.admit_run(now, packet, run, work);
            rest = rest.and_then(|packet| self.admit_touched(now, packet, decision, work));
            run = 0;
        }
    }

    /// The segments before a touched one.
    fn admit_run(
        &mut self,
        now: Time,
        packet: EmulatedPacket,
        run: u32,
        work: &mut LaneContext,
    ) -> Option<EmulatedPacket> {
        if run == 0 {
            return Some(packet);
        }
        let (front, rest) = self.meter.split(packet, run, work);
        if let Some(front) = front {
            self.await_arrival(now, front, work);
        }
        rest
    }

    /// A touched segment and what is behind it.
    fn admit_touched(
        &mut self,
        now: Time,
        packet: EmulatedPacket,
        decision: ImpairmentDecision,
        work: &mut LaneContext,
    ) -> Option<EmulatedPacket> {
        if decision.lost {
            let time = packet.times.first;
            self.meter.count_drop(DropReason::Loss, time, &packet, 0..1, work);
            return packet.skip(1, &mut work.pool);
        }
        let (front, rest) = self.meter.split(packet, 1, work);
        if let Some(mut front) = front {
            front.impairments = decision;
            self.await_arrival(now, front, work);
        }
        rest
    }

    fn refuse(
        &mut self,
        now: Time,
        packet: EmulatedPacket,
        segments: u32,
        work: &mut LaneContext,
    ) -> TooBig {
        let (reason, time) = (DropReason::Mtu, packet.times.first);
        self.meter.count_drop(reason, time, &packet, 0..segments, work);
        let mtu = self.mtu.0;
        if segments == packet.shape.count {
            return TooBig { packet, mtu };
        }
        // Only the last segment of a train may fit. It is the one that is cut out, and the rest
        // quoted.
        let count = packet.shape.count;
        let last = packet.cut_last(&mut work.pool);
        match last {
            Some(last) => self.admit(now, last, work),
            None => {
                let time = packet.times.last;
                self.meter.count_drop(DropReason::Memory, time, &packet, segments..count, work);
            }
        }
        TooBig { packet, mtu }
    }

    fn fragment_all(&mut self, now: Time, packet: EmulatedPacket, work: &mut LaneContext) {
        let mut rest = Some(packet);
        while let Some(packet) = rest.take() {
            let (front, behind) = self.meter.split(packet, 1, work);
            if let Some(front) = front {
                self.fragment(now, front, work);
            }
            rest = behind;
        }
    }

    fn fragment(&mut self, now: Time, mut packet: EmulatedPacket, work: &mut LaneContext) {
        // In a tunnel the inner packet is fragmented.
        let overhead = packet.tunnel.map_or(0, |tunnel| tunnel.overhead);
        let mtu = self.mtu.0.saturating_sub(overhead);
        let (frame, header) = packet.settled(&mut work.pool);
        let complete = checksum::complete(frame, header);
        let Some(count) = fragment::count(frame, mtu).filter(|_| complete) else {
            let time = packet.times.first;
            self.meter.count_drop(DropReason::Mtu, time, &packet, 0..1, work);
            return packet.discard(&mut work.pool);
        };
        if count == 1 {
            // The last segment of a train, which fits.
            return self.admit(now, packet, work);
        }
        self.meter.counters.fragmented += 1;
        self.meter.counters.fragments += u64::from(count);
        let time = packet.times.first;
        work.recorder.note(Kind::Fragmented, time, self.meter.label, &packet, count);
        let ip_header = ip_header(packet.frame(), overhead);
        let mut before = 0;
        for index in 0..count {
            let number = if index == 0 { packet.number } else { self.meter.next };
            self.meter.next += u64::from(index > 0);
            match fragment_of(&packet, mtu, index, work) {
                Some(mut fragment) => {
                    fragment.number = number;
                    let own = if index == 0 { packet.tag.header } else { ip_header };
                    fragment.tag = packet.tag.fragment(own, before);
                    before += fragment.tag.payload(&fragment.shape);
                    self.admit(now, fragment, work);
                }
                None => self.meter.count_drop(DropReason::Memory, time, &packet, 0..1, work),
            }
        }
        packet.discard(&mut work.pool);
    }
}

/// Bytes of the header of an IPv4 packet, and of the one in front of it; only such are fragmented.
fn ip_header(frame: &[u8], overhead: u32) -> u16 {
    let own = frame.get(ethernet::HEADER_LEN).map_or(0, |byte| u16::from(byte & 0xf) * 4);
    own + u16::try_from(overhead).unwrap_or(0)
}

/// One fragment; `None` where there is no memory.
fn fragment_of(
    packet: &EmulatedPacket,
    mtu: u32,
    index: u32,
    work: &mut LaneContext,
) -> Option<EmulatedPacket> {
    let room = usize::try_from(mtu).ok()?.min(packet.frame().len()) + ethernet::HEADER_LEN;
    let buf = work.pool.write(room, |buf| fragment::write(packet.frame(), mtu, index, buf))?;
    let header = vnet::VirtioNetHeader::default();
    let shape = PacketTrainShape::of(&buf, &header);
    let shape = shape.longer(packet.tunnel.map_or(0, |tunnel| tunnel.overhead));
    let mut fragment = EmulatedPacket::new(buf, header, shape, packet.times.first, &mut work.pool);
    (fragment.came_by, fragment.tunnel) = (packet.came_by, packet.tunnel);
    Some(fragment)
}
