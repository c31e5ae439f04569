//! From lane to lane: what happens to a packet at the end of one.

use windtunnel_model::{Lane, PortId, RouterId, Time};
use windtunnel_wire::{ethernet, hop, icmp};

use super::Core;
use crate::engine::{Express, FrameDeparture};
use crate::network::{Addressing, LaneEndpoint};
use crate::packet::{EmulatedPacket, MeasuredFrame};
use crate::records::{RouterReason, Tag, TaggedShape};
use crate::router::{ForwardingDecision, ForwardingRefusal};
use crate::tunnel::PacketTunnel;

use super::redirect::Judgement;

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
    ) -> Option<Express> {
        let mut lane = self.network.lane_of(port);
        let mut came_by = None;
        if let Some(entered) = &tunnel {
            frame.shape = frame.shape.longer(entered.overhead);
            self.work.recorder.lengthen_entering(entered.overhead);
        }
        while self.chains[lane.index()].is_clear(now, &frame.shape) {
            let chain = &self.chains[lane.index()];
            let next = match self.network.end(lane) {
                // What is in the outbox leaves first.
                LaneEndpoint::Node { .. } if self.unpolled[lane.index()] > 0 => break,
                // What comes to it later is not held here, so its order is looked after at once.
                LaneEndpoint::Node { port: to, .. }
                    if !self.here[to.index()] && !chain.is_free(now, port) =>
                {
                    break;
                }
                LaneEndpoint::Node { port: to, .. }
                    if self.is_wrapped_for(to, frame.bytes, tunnel.as_ref()) =>
                {
                    break;
                }
                LaneEndpoint::Node { port, addresses } => {
                    let (chain, work) = (&mut self.chains[lane.index()], &mut self.work);
                    chain.pass(now, &frame.shape, frame.bytes, &mut work.recorder);
                    address(frame.bytes, addresses);
                    return Some(Express { port, lane, vnet: frame.vnet });
                }
                LaneEndpoint::Lan(id) => match self.only_outlet(now, id, lane, frame.bytes) {
                    Some(next) => {
                        let (chain, work) = (&mut self.chains[lane.index()], &mut self.work);
                        chain.pass(now, &frame.shape, frame.bytes, &mut work.recorder);
                        next
                    }
                    None => break,
                },
                LaneEndpoint::Router(id) => {
                    match self.route_at_once(now, id, lane, &mut frame, tunnel.as_ref()) {
                        Some((next, entered)) => {
                            let (chain, work) = (&mut self.chains[lane.index()], &mut self.work);
                            chain.pass(now, &frame.shape, frame.bytes, &mut work.recorder);
                            self.routers[id.index()].forwarded += u64::from(frame.shape.count);
                            if let Some(entered) = entered {
                                frame.shape = frame.shape.longer(entered.overhead);
                                work.recorder.lengthen_entering(entered.overhead);
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
        self.copy_in(now, lane, port, came_by, tunnel, &frame);
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
        if !self.is_for_router(lane, frame.bytes) {
            return None;
        }
        if self.middleboxes.is_at(id) {
            let next = tunnel.is_none().then(|| self.pass_middlebox_at_once(now, id, lane, frame));
            return next.flatten().map(|next| (next, None));
        }
        let (next, entered) = match self.judge(now, id, frame.bytes, tunnel, None) {
            Judgement::Plain(ForwardingDecision::Forward(next)) => (next, None),
            Judgement::Redirect(ForwardingDecision::Forward(next), tunnel, hit) => {
                (next, Some((tunnel, hit)))
            }
            _ => return None,
        };
        let within = entered.as_ref().map(|(tunnel, _)| tunnel).or(tunnel);
        let may_go = self.address_next(now, next, frame.bytes, within);
        if !may_go || hop::decrement_ttl(frame.bytes).is_err() {
            return None;
        }
        if let Some((_, hit)) = entered {
            self.count_hit(id, hit, &frame.shape);
        }
        Some((next, entered.map(|(tunnel, _)| tunnel)))
    }

    /// Puts a packet on a lane at the time of its first segment.
    #[inline]
    pub(crate) fn offer(&mut self, now: Time, lane: Lane, packet: EmulatedPacket) {
        let chain = &mut self.chains[lane.index()];
        if packet.tunnel.is_some_and(|tunnel| tunnel.fragments) && !chain.takes_all(&packet.shape) {
            return self.offer_wrapped(now, lane, packet);
        }
        let refused = chain.offer(now, packet, &mut self.work);
        if let Some(refused) = refused {
            self.report_too_big(now, lane, refused);
        }
    }

    /// Handles a packet that has come out of a lane, at `now`.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Time, lane: Lane, packet: EmulatedPacket) {
        match self.network.end(lane) {
            LaneEndpoint::Node { .. } => self.deliver(now, lane, packet),
            LaneEndpoint::Router(id) => self.route(now, id, lane, packet),
            LaneEndpoint::Lan(id) => self.switch(now, id, lane, packet),
        }
    }

    /// Gives a packet to the node at the end of `lane`, or to the sender to that node's machine.
    #[inline]
    pub(super) fn deliver(&mut self, now: Time, lane: Lane, packet: EmulatedPacket) {
        if let LaneEndpoint::Node { port, .. } = self.network.end(lane)
            && (packet.tunnel.is_some() || self.is_wrapped_for(port, packet.frame(), None))
        {
            return self.leave_tunnel(now, port, lane, packet);
        }
        self.hand_out(now, lane, packet);
    }

    /// Gives a packet to the node at the end of `lane` as it is.
    #[inline]
    pub(super) fn hand_out(&mut self, now: Time, lane: Lane, packet: EmulatedPacket) {
        let LaneEndpoint::Node { port, addresses } = self.network.end(lane) else {
            return packet.discard(&mut self.work.pool);
        };
        let intended = if self.here[port.index()] { now } else { packet.times.last };
        let (mut frame, vnet) = packet.into_parts(&mut self.work.pool);
        address(&mut frame, addresses);
        self.unpolled[lane.index()] += 1;
        self.outbox.push_back(FrameDeparture { port, lane, intended, vnet, frame });
    }

    #[inline]
    fn copy_in(
        &mut self,
        now: Time,
        lane: Lane,
        origin: PortId,
        came_by: Option<Lane>,
        tunnel: Option<PacketTunnel>,
        frame: &MeasuredFrame<'_>,
    ) {
        let MeasuredFrame { bytes, vnet, shape } = frame;
        match self.work.pool.copy(bytes) {
            Some(buf) => {
                let mut packet =
                    EmulatedPacket::new(buf, *vnet, *shape, self.work.sent, &mut self.work.pool);
                (packet.origin, packet.came_by) = (Some(origin), came_by);
                // Its shape and tag have the tunnel's header already.
                packet.tunnel = tunnel;
                packet.tag = self.work.recorder.entering();
                packet.sender = self.work.sender;
                self.offer(now, lane, packet);
            }
            None => {
                let recorder = &mut self.work.recorder;
                let tag = recorder.entering();
                let chain = &mut self.chains[lane.index()];
                let offered = TaggedShape { tag: &tag, shape };
                chain.offer_without_memory(now, offered, bytes, recorder);
            }
        }
    }

    fn route(&mut self, now: Time, id: RouterId, lane: Lane, mut packet: EmulatedPacket) {
        packet.came_by = Some(lane);
        if !self.is_for_router(lane, packet.frame())
            || self.take_resolution(now, lane, packet.frame())
        {
            return packet.discard(&mut self.work.pool);
        }
        if self.middleboxes.is_at(id) {
            if let Err((packet, verdict)) = self.pass_middlebox(now, id, lane, packet) {
                self.finish_route(now, id, packet, verdict);
            }
            return;
        }
        let tunnel = packet.tunnel.as_ref();
        let verdict = match self.judge(now, id, packet.frame(), tunnel, packet.aim) {
            Judgement::Plain(verdict) => verdict,
            Judgement::Redirect(verdict, tunnel, hit) => {
                self.enter_tunnel(id, &mut packet, tunnel, hit);
                verdict
            }
            Judgement::Keep => return self.keep(now, id, packet),
            Judgement::Detour(verdict, tunnel) => {
                packet.enter(tunnel);
                verdict
            }
            Judgement::Lost(service, on_loss) => {
                return self.drop_lost(now, id, packet, service, on_loss);
            }
        };
        self.finish_route(now, id, packet, verdict);
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
                let forwarded = hop::decrement_ttl(packet.settled(&mut self.work.pool).0);
                debug_assert!(forwarded.is_ok(), "the verdict has looked at the TTL");
                return self.hand_on(now, id, next, packet);
            }
            ForwardingDecision::Echo => return self.echo(now, id, packet),
            ForwardingDecision::Refuse(refusal) => {
                self.note_refusal(id, refused_because(refusal), &packet);
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
            self.note_refusal(id, reason, &packet);
        }
        packet.discard(&mut self.work.pool);
    }

    /// Counts and records that a router drops a packet.
    pub(super) fn note_refusal(
        &mut self,
        id: RouterId,
        reason: RouterReason,
        packet: &EmulatedPacket,
    ) {
        let counters = &mut self.routers[id.index()];
        let counter = match reason {
            RouterReason::TtlExpired => &mut counters.ttl_expired,
            RouterReason::NoRoute => &mut counters.no_route,
            RouterReason::NotForwarded => &mut counters.not_forwarded,
            RouterReason::Malformed => &mut counters.malformed,
            RouterReason::ReplicaLost => &mut counters.replica_lost,
            RouterReason::Filtered => &mut counters.filtered,
            RouterReason::NoMapping => &mut counters.no_mapping,
            RouterReason::Exhausted => &mut counters.exhausted,
            RouterReason::Untranslatable => &mut counters.untranslatable,
        };
        *counter += u64::from(packet.shape.count);
        self.work.recorder.note_refusal(reason, packet);
    }

    /// What is recorded of a packet that the network itself sends now.
    pub(super) fn tag(&mut self, now: Time, packet: &EmulatedPacket) -> Tag {
        let recorder = &mut self.work.recorder;
        if !recorder.is_on() {
            return Tag::NONE;
        }
        recorder.tag(now, packet.frame(), &packet.shape)
    }

    fn echo(&mut self, now: Time, id: RouterId, mut packet: EmulatedPacket) {
        let (frame, vnet) = packet.settled(&mut self.work.pool);
        let counters = &mut self.routers[id.index()];
        if icmp::echo_reply_in_place(frame, vnet) {
            counters.echo_answered += 1;
            packet.came_by = None;
            packet.tag = self.tag(now, &packet);
            self.originate(now, id, packet);
        } else {
            counters.not_forwarded += u64::from(packet.shape.count);
            self.work.recorder.note_refusal(RouterReason::NotForwarded, &packet);
            packet.discard(&mut self.work.pool);
        }
    }
}

fn refused_because(refusal: ForwardingRefusal) -> RouterReason {
    match refusal {
        ForwardingRefusal::Expired => RouterReason::TtlExpired,
        ForwardingRefusal::NoRoute | ForwardingRefusal::NoHost => RouterReason::NoRoute,
        ForwardingRefusal::NoPort => RouterReason::NotForwarded,
    }
}

/// Writes the Ethernet addresses of a delivery; a group address stays.
fn address(frame: &mut [u8], addresses: Option<Addressing>) {
    let Some(Addressing { destination, source }) = addresses else { return };
    let group =
        ethernet::EthernetFrame::parse(frame).ok().filter(ethernet::EthernetFrame::is_multicast);
    let destination = group.map_or(destination, |view| view.destination());
    ethernet::set_addresses(frame, destination, source);
}
