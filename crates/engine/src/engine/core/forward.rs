//! From lane to lane: what happens to a packet at the end of one.

use windtunnel_model::{LanId, Lane, RouterId, Time};
use windtunnel_wire::hop;
use windtunnel_wire::icmp::IcmpErrorKind;
use windtunnel_wire::packet::{IpPacketSummary, IpVersion, ParsedPacket};

use super::Core;
use super::deliver::next_segment;
use super::judge::{RouterArrival, RouterVerdict};
use crate::departure::ImmediateDeparture;
use crate::lan::SwitchEgress;
use crate::middlebox::{PacketDenial, PacketRewrite};
use crate::network::LaneEndpoint;
use crate::packet::{EmulatedPacket, EnteringFrame};
use crate::records::{RouterReason, TaggedShape};
use crate::router::ForwardingDecision;
use crate::services::TunnelEntry;
use crate::underlay::{ReturnReason, ReturnedPacket, address};

impl Core {
    /// Brings a frame as far as lanes let it pass at once and all that is to be done with it is to send
    /// it on. Where that ends it is copied, before the lane where it is, and goes the way of all
    /// packets: what is at the end of that lane is asked again then, and gives the same answer.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        now: Time,
        mut frame: EnteringFrame<'_>,
    ) -> Option<ImmediateDeparture> {
        let mut lane = self.net.network.lane_of(frame.origin.port);
        while self.net.lanes.chains[lane.index()].is_clear(now, &frame.shape) {
            let next = match self.net.network.end(lane) {
                LaneEndpoint::Node { port, addresses } => {
                    if !self.delivery().lets_go(now, lane, port, &frame) {
                        break;
                    }
                    self.net.lanes.pass(now, lane, &frame);
                    address(frame.bytes, addresses);
                    return Some(ImmediateDeparture { port, lane, vnet: frame.vnet });
                }
                LaneEndpoint::Lan(id) => self.switch_at_once(now, id, lane, &frame),
                LaneEndpoint::Router(id) => self.route_at_once(now, id, lane, &mut frame),
            };
            let Some(next) = next else { break };
            (frame.came_by, lane) = (Some(lane), next);
        }
        if let Some(packet) = self.net.lanes.take_in(now, lane, &frame) {
            self.offer(now, lane, packet);
        }
        None
    }

    /// The lane by which alone a frame leaves a segment.
    fn switch_at_once(
        &mut self,
        now: Time,
        lan: LanId,
        came: Lane,
        frame: &EnteringFrame<'_>,
    ) -> Option<Lane> {
        let egress = self.net.segments[lan.index()].pass(now, came, frame.bytes);
        let SwitchEgress::One(next) = egress else { return None };
        self.net.lanes.pass(now, came, frame);
        Some(next)
    }

    /// The lane on which a router sends a frame on, now and changed; `None`: something else is to be
    /// done with it, and it is as it was.
    fn route_at_once(
        &mut self,
        now: Time,
        id: RouterId,
        lane: Lane,
        frame: &mut EnteringFrame<'_>,
    ) -> Option<Lane> {
        let packet = ParsedPacket::parse(frame.bytes).ok()?;
        let is_held = packet.info.is_fragment && self.middleboxes.is_at(id);
        if is_held || !self.net.may_forward(lane, &packet) {
            return None;
        }
        let mut rewrite = PacketRewrite::default();
        let tunnel = frame.tunnel.as_ref();
        let arrival = RouterArrival { router: id, lane, packet: &packet, tunnel, aim: None };
        let verdict = self.judge(now, &arrival, &mut rewrite);
        let RouterVerdict::Route(ForwardingDecision::Forward(next), entry) = verdict else {
            return None;
        };
        // Nothing is changed until it is certain that it goes on.
        let within = entry.as_ref().map(|entry| &entry.tunnel).or(tunnel);
        let addresses = self.net.next_addresses(now, next, &packet.info, &rewrite, within)?;
        let count = frame.shape.count;
        if !rewrite.is_empty() {
            let info = packet.info;
            if !self.passage().translate(id, &rewrite, &info, frame.bytes, &frame.vnet, count) {
                return None;
            }
        }
        forward_frame(frame.bytes);
        addresses.write(frame.bytes);
        self.net.lanes.pass(now, lane, frame);
        self.net.routers[id.index()].forwarded += u64::from(count);
        if let Some(TunnelEntry { tunnel, hit }) = entry {
            if let Some(hit) = hit {
                self.redirection().count_hit(id, hit, &frame.shape);
            }
            frame.enter(tunnel);
        }
        Some(next)
    }

    /// Puts a packet on a lane at the time of its first segment.
    #[inline]
    pub(crate) fn offer(&mut self, now: Time, lane: Lane, packet: EmulatedPacket) {
        self.net.lanes.offer(now, lane, packet);
        self.take_back();
    }

    /// Handles what a lane has not taken: after each packet that was put on one.
    #[inline]
    pub(super) fn take_back(&mut self) {
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
            SwitchEgress::One(lane) => self.offer(now, lane, packet),
            SwitchEgress::Parted(lane) => self.net.lanes.drop_parted(lane, packet),
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

    /// Handles a packet that has come to a router.
    fn route(&mut self, now: Time, id: RouterId, lane: Lane, mut packet: EmulatedPacket) {
        packet.came_by = Some(lane);
        let frame = packet.frame();
        let parsed = ParsedPacket::parse(frame);
        if !self.net.is_for_router(lane, frame)
            || self.take_resolution(now, lane, frame, parsed.as_ref().ok())
        {
            return packet.discard(&mut self.net.lanes.work.pool);
        }
        let Ok(parsed) = parsed else {
            return self.net.drop_refused(id, RouterReason::Malformed, packet);
        };
        let info = parsed.info;
        if self.middleboxes.is_at(id) && info.is_fragment && info.version == IpVersion::V4 {
            let whole = self.passage().make_whole(now, id, &info, packet);
            return whole.into_iter().for_each(|whole| self.route(now, id, lane, whole));
        }
        let mut rewrite = PacketRewrite::default();
        let tunnel = packet.tunnel.as_ref();
        let arrival = RouterArrival { router: id, lane, packet: &parsed, tunnel, aim: packet.aim };
        match self.judge(now, &arrival, &mut rewrite) {
            RouterVerdict::Route(decision, entry) => {
                if let Some(entry) = entry {
                    self.redirection().enter_tunnel(id, &mut packet, entry);
                }
                self.obey(now, id, decision, &info, &rewrite, packet);
            }
            RouterVerdict::Keep => self.keep(now, id, packet),
            RouterVerdict::Denied(PacketDenial { reason, is_said }) => {
                let message = is_said.then_some(IcmpErrorKind::AdminProhibited);
                self.refuse(now, id, reason, message, packet);
            }
            RouterVerdict::Lost(service, on_loss) => {
                self.drop_lost(now, id, packet, service, on_loss);
            }
        }
    }

    /// Does what a router has found out is to be done.
    #[inline]
    fn obey(
        &mut self,
        now: Time,
        id: RouterId,
        decision: ForwardingDecision,
        info: &IpPacketSummary,
        rewrite: &PacketRewrite,
        mut packet: EmulatedPacket,
    ) {
        let (reason, message) = match decision {
            ForwardingDecision::Forward(next) => {
                let count = packet.shape.count;
                let (frame, vnet) = packet.settled(&mut self.net.lanes.work.pool);
                if rewrite.is_empty()
                    || self.passage().translate(id, rewrite, info, frame, vnet, count)
                {
                    forward_frame(frame);
                    self.net.hand_on(now, id, next, info, rewrite, packet);
                    return self.take_back();
                }
                (RouterReason::Untranslatable, None)
            }
            ForwardingDecision::Echo => {
                if let Some(answer) = self.net.echo(now, id, packet) {
                    self.originate(now, id, answer);
                }
                return;
            }
            ForwardingDecision::Ignore if self.relay(now, id, &packet) => {
                return packet.discard(&mut self.net.lanes.work.pool);
            }
            ForwardingDecision::Ignore | ForwardingDecision::Service => {
                (RouterReason::NotForwarded, None)
            }
            ForwardingDecision::Refuse(refusal) => (refusal.reason(), Some(refusal.kind())),
        };
        self.refuse(now, id, reason, message, packet);
    }

    /// Drops a packet at a router, perhaps with a message to its sender.
    fn refuse(
        &mut self,
        now: Time,
        id: RouterId,
        reason: RouterReason,
        message: Option<IcmpErrorKind>,
        packet: EmulatedPacket,
    ) {
        self.net.note_refusal(id, reason, &packet);
        if let Some(kind) = message {
            self.report(now, id, kind, &packet);
        }
        packet.discard(&mut self.net.lanes.work.pool);
    }

    /// Takes ARP and neighbour discovery messages; whether the frame was one.
    fn take_resolution(
        &mut self,
        now: Time,
        lane: Lane,
        frame: &[u8],
        packet: Option<&ParsedPacket<'_>>,
    ) -> bool {
        let Some(message) = self.net.read_resolution(lane, frame, packet) else { return false };
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
            let message = packet.came_by.map(|_| IcmpErrorKind::HostUnreachable);
            self.refuse(now, router, RouterReason::NoRoute, message, packet);
        }
        self.net.arm_questions(lane);
    }
}

/// Takes a hop from a frame that its router sends on.
#[inline]
fn forward_frame(frame: &mut [u8]) {
    let forwarded = hop::decrement_ttl(frame);
    debug_assert!(forwarded.is_ok(), "the verdict has looked at the TTL");
}
