//! From lane to lane: what happens to a packet at the end of one.

use windtunnel_model::{LanId, Lane, PortId, RouterId, Time};
use windtunnel_wire::{hop, icmp};

use super::Core;
use super::deliver::next_segment;
use super::middle::PassageOutcome;
use super::redirect::ServicePacketVerdict;
use crate::engine::ImmediateDeparture;
use crate::lan::SwitchEgress;
use crate::network::LaneEndpoint;
use crate::packet::{EmulatedPacket, MeasuredFrame};
use crate::records::{RouterReason, TaggedShape};
use crate::router::{ForwardingDecision, ForwardingRefusal};
use crate::tunnel::PacketTunnel;
use crate::underlay::{FrameEntry, ReturnReason, ReturnedPacket, address};

impl Core {
    /// Brings a frame as far as lanes let it pass at once; copies it where one does not. It may be in
    /// a tunnel that begins at its node.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        now: Time,
        port: PortId,
        mut frame: MeasuredFrame<'_>,
        mut tunnel: Option<PacketTunnel>,
    ) -> Option<ImmediateDeparture> {
        let mut lane = self.net.network.lane_of(port);
        let mut came_by = None;
        if let Some(entered) = &tunnel {
            frame.shape = frame.shape.longer(entered.overhead);
            self.net.lanes.work.recorder.lengthen_entering(entered.overhead);
        }
        while self.net.lanes.chains[lane.index()].is_clear(now, &frame.shape) {
            let next = match self.net.network.end(lane) {
                // What is in the outbox leaves first.
                LaneEndpoint::Node { .. } if self.net.departures.waits(lane) => break,
                // What comes to it later is not held here, so its order is looked after at once.
                LaneEndpoint::Node { port: to, .. }
                    if !self.net.departures.is_here(to)
                        && !self.net.lanes.chains[lane.index()].is_free(now, port) =>
                {
                    break;
                }
                LaneEndpoint::Node { port: to, .. }
                    if self.delivery().unwraps(to, frame.bytes, tunnel.as_ref()) =>
                {
                    break;
                }
                LaneEndpoint::Node { port, addresses } => {
                    self.net.lanes.pass(now, lane, &frame);
                    address(frame.bytes, addresses);
                    return Some(ImmediateDeparture { port, lane, vnet: frame.vnet });
                }
                LaneEndpoint::Lan(id) => match self.net.only_outlet(now, id, lane, frame.bytes) {
                    Some(next) => {
                        self.net.lanes.pass(now, lane, &frame);
                        next
                    }
                    None => break,
                },
                LaneEndpoint::Router(id) => {
                    match self.route_at_once(now, id, lane, &mut frame, tunnel.as_ref()) {
                        Some((next, entered)) => {
                            self.net.lanes.pass(now, lane, &frame);
                            let count = u64::from(frame.shape.count);
                            self.net.routers[id.index()].forwarded += count;
                            if let Some(entered) = entered {
                                frame.shape = frame.shape.longer(entered.overhead);
                                let recorder = &mut self.net.lanes.work.recorder;
                                recorder.lengthen_entering(entered.overhead);
                                tunnel = Some(entered);
                            }
                            next
                        }
                        None => break,
                    }
                }
            };
            (came_by, lane) = (Some(lane), next);
        }
        self.net.copy_in(now, lane, FrameEntry { origin: port, came_by, tunnel }, &frame);
        self.take_back();
        None
    }

    /// The lane on which a router sends a frame on, now and changed, where nothing else is to be
    /// done; and the tunnel that it enters there.
    fn route_at_once(
        &mut self,
        now: Time,
        id: RouterId,
        lane: Lane,
        frame: &mut MeasuredFrame<'_>,
        tunnel: Option<&PacketTunnel>,
    ) -> Option<(Lane, Option<PacketTunnel>)> {
        if !self.net.is_for_router(lane, frame.bytes) {
            return None;
        }
        if self.middleboxes.is_at(id) {
            if tunnel.is_some() {
                return None;
            }
            let next = self.passage().pass_at_once(now, id, lane, frame);
            return next.map(|next| (next, None));
        }
        let mut point = self.redirection();
        let (next, entered) = match point.judge(now, id, frame.bytes, tunnel, None) {
            ServicePacketVerdict::Plain(ForwardingDecision::Forward(next)) => (next, None),
            ServicePacketVerdict::Redirect(ForwardingDecision::Forward(next), tunnel, hit) => {
                (next, Some((tunnel, hit)))
            }
            _ => return None,
        };
        let within = entered.as_ref().map(|(tunnel, _)| tunnel).or(tunnel);
        let may_go = point.net.address_next(now, next, frame.bytes, within);
        if !may_go || hop::decrement_ttl(frame.bytes).is_err() {
            return None;
        }
        if let Some((_, hit)) = entered {
            point.count_hit(id, hit, &frame.shape);
        }
        Some((next, entered.map(|(tunnel, _)| tunnel)))
    }

    /// Puts a packet on a lane at the time of its first segment.
    #[inline]
    pub(crate) fn offer(&mut self, now: Time, lane: Lane, packet: EmulatedPacket) {
        self.net.lanes.offer(now, lane, packet);
        self.take_back();
    }

    /// Puts a router's packet on a lane; on a LAN, as soon as its next receiver has been found.
    pub(super) fn hand_on(&mut self, now: Time, id: RouterId, lane: Lane, packet: EmulatedPacket) {
        self.net.hand_on(now, id, lane, packet);
        self.take_back();
    }

    /// Handles what a lane has not taken.
    #[inline]
    fn take_back(&mut self) {
        while let Some(ReturnedPacket { at, lane, reason }) = self.net.lanes.take_returned() {
            match reason {
                ReturnReason::TooBig(refused) => self.report_too_big(at, lane, refused),
                ReturnReason::Unwrapped(packet) => self.offer_wrapped(at, lane, packet),
            }
        }
    }

    /// Offers a lane what is too large for it and may be fragmented with its outer header: each
    /// segment with that by itself.
    fn offer_wrapped(&mut self, now: Time, lane: Lane, packet: EmulatedPacket) {
        let mut rest = Some(packet);
        while let Some(packet) =
            next_segment(&mut rest, &mut self.net.lanes.work.pool, &mut self.services)
        {
            let (tag, shape) = (packet.tag, packet.shape);
            let offered = TaggedShape { tag: &tag, shape: &shape };
            let lanes = &mut self.net.lanes;
            match self.headers.wrap(packet, &self.net.network, &mut lanes.work.pool) {
                Ok(packet) => self.offer(now, lane, packet),
                Err(packet) => {
                    lanes.offer_without_memory(now, lane, offered, packet.frame());
                    packet.discard(&mut lanes.work.pool);
                }
            }
        }
    }

    /// Handles a packet that has come out of a lane, at `now`.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Time, lane: Lane, packet: EmulatedPacket) {
        match self.net.network.end(lane) {
            LaneEndpoint::Node { .. } => self.delivery().deliver(now, lane, packet),
            LaneEndpoint::Router(id) => self.route(now, id, lane, packet),
            LaneEndpoint::Lan(id) => self.switch(now, id, lane, packet),
        }
    }

    /// Takes a frame through a segment to the lanes by which it leaves.
    fn switch(&mut self, now: Time, lan: LanId, came: Lane, mut packet: EmulatedPacket) {
        packet.came_by = Some(came);
        match self.net.segments[lan.index()].pass(now, came, packet.frame()) {
            SwitchEgress::None => packet.discard(&mut self.net.lanes.work.pool),
            SwitchEgress::One(lane) => {
                self.net.leave(now, lan, came, lane, packet);
                self.take_back();
            }
            SwitchEgress::Others => {
                let mut position = 0;
                while let Some(lane) = self.net.segments[lan.index()].attachment(position) {
                    position += 1;
                    if lane != came.reverse() {
                        self.net.leave_copy(now, lan, came, lane, &mut packet);
                        self.take_back();
                    }
                }
                packet.discard(&mut self.net.lanes.work.pool);
            }
        }
    }

    fn route(&mut self, now: Time, id: RouterId, lane: Lane, mut packet: EmulatedPacket) {
        packet.came_by = Some(lane);
        if !self.net.is_for_router(lane, packet.frame())
            || self.take_resolution(now, lane, packet.frame())
        {
            return packet.discard(&mut self.net.lanes.work.pool);
        }
        if self.middleboxes.is_at(id) {
            return self.pass_middlebox(now, id, lane, packet);
        }
        let tunnel = packet.tunnel.as_ref();
        let mut point = self.redirection();
        let verdict = match point.judge(now, id, packet.frame(), tunnel, packet.aim) {
            ServicePacketVerdict::Plain(verdict) => verdict,
            ServicePacketVerdict::Redirect(verdict, tunnel, hit) => {
                point.enter_tunnel(id, &mut packet, tunnel, hit);
                verdict
            }
            ServicePacketVerdict::Keep => return self.keep(now, id, packet),
            ServicePacketVerdict::Detour(verdict, tunnel) => {
                packet.enter(tunnel);
                verdict
            }
            ServicePacketVerdict::Lost(service, on_loss) => {
                return self.drop_lost(now, id, packet, service, on_loss);
            }
        };
        self.finish_route(now, id, packet, verdict);
    }

    /// Takes ARP and neighbour discovery messages; whether the frame was one.
    fn take_resolution(&mut self, now: Time, lane: Lane, frame: &[u8]) -> bool {
        let Some(message) = self.net.read_resolution(lane, frame) else { return false };
        for packet in self.net.learn(now, lane, &message) {
            self.net.send_found(now, lane.reverse(), &message, packet);
            self.take_back();
        }
        if let Some(answer) = &message.answer {
            self.net.say(now, lane.reverse(), answer);
            self.take_back();
        }
        true
    }

    /// Asks again for the neighbours behind a lane, and gives up what was asked for long enough.
    pub(super) fn ask_again(&mut self, now: Time, lane: Lane) {
        let asked = self.net.ask_again(now, lane);
        self.take_back();
        let Some((router, lost)) = asked else { return };
        for packet in lost {
            self.net.note_refusal(router, RouterReason::NoRoute, &packet);
            if packet.came_by.is_some() {
                self.report(now, router, icmp::IcmpErrorKind::HostUnreachable, &packet);
            }
            packet.discard(&mut self.net.lanes.work.pool);
        }
        self.net.arm_questions(lane);
    }

    /// Handles a packet that has come to a middlebox.
    fn pass_middlebox(&mut self, now: Time, id: RouterId, lane: Lane, packet: EmulatedPacket) {
        match self.passage().pass(now, id, lane, packet) {
            PassageOutcome::Forward(next, packet) => self.hand_on(now, id, next, packet),
            PassageOutcome::Plain(verdict, packet) => self.finish_route(now, id, packet, verdict),
            PassageOutcome::Denied(denial, packet) => {
                self.net.note_refusal(id, denial.reason, &packet);
                if denial.is_said {
                    self.report(now, id, icmp::IcmpErrorKind::AdminProhibited, &packet);
                }
                packet.discard(&mut self.net.lanes.work.pool);
            }
            PassageOutcome::Held => {}
        }
    }

    /// Does what a router has found out is to be done.
    #[inline]
    fn finish_route(
        &mut self,
        now: Time,
        id: RouterId,
        mut packet: EmulatedPacket,
        verdict: ForwardingDecision,
    ) {
        let refused = match verdict {
            ForwardingDecision::Forward(next) => {
                let (frame, _) = packet.settled(&mut self.net.lanes.work.pool);
                let forwarded = hop::decrement_ttl(frame);
                debug_assert!(forwarded.is_ok(), "the verdict has looked at the TTL");
                return self.hand_on(now, id, next, packet);
            }
            ForwardingDecision::Echo => {
                if let Some(answer) = self.net.echo(now, id, packet) {
                    self.originate(now, id, answer);
                }
                return;
            }
            ForwardingDecision::Refuse(refusal) => {
                self.net.note_refusal(id, refused_because(refusal), &packet);
                self.report(now, id, refusal.kind(), &packet);
                None
            }
            ForwardingDecision::Malformed => Some(RouterReason::Malformed),
            ForwardingDecision::Ignore if self.relay(now, id, &packet) => None,
            ForwardingDecision::Ignore | ForwardingDecision::Service => {
                Some(RouterReason::NotForwarded)
            }
        };
        if let Some(reason) = refused {
            self.net.note_refusal(id, reason, &packet);
        }
        packet.discard(&mut self.net.lanes.work.pool);
    }
}

fn refused_because(refusal: ForwardingRefusal) -> RouterReason {
    match refusal {
        ForwardingRefusal::Expired => RouterReason::TtlExpired,
        ForwardingRefusal::NoRoute | ForwardingRefusal::NoHost => RouterReason::NoRoute,
        ForwardingRefusal::NoPort => RouterReason::NotForwarded,
    }
}
