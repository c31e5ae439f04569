//! From lane to lane: what happens to a packet at the end of one.

use windtunnel_model::{Lane, PortId, RouterId, Time};
use windtunnel_wire::{ethernet, hop, icmp, vnet};

use super::Core;
use crate::engine::{Departure, Express};
use crate::network::{Addressing, End};
use crate::packet::{Packet, Shape};
use crate::records::{RouterReason, Tag};
use crate::router::{self, Verdict};

impl Core {
    /// Brings a frame as far as lanes let it pass at once; copies it where one does not.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        now: Time,
        port: PortId,
        (vnet, shape): (vnet::Header, Shape),
        frame: &mut [u8],
    ) -> Option<Express> {
        let mut lane = self.network.lane_of(port);
        let mut came_by = None;
        while self.chains[lane.index()].is_clear(now, &shape) {
            let chain = &self.chains[lane.index()];
            let next = match self.network.end(lane) {
                // What is in the outbox leaves first.
                End::Node { .. } if self.unpolled[lane.index()] > 0 => break,
                // What comes to it later is not held here, so its order is looked after at once.
                End::Node { port: to, .. }
                    if !self.here[to.index()] && !chain.is_free(now, port) =>
                {
                    break;
                }
                End::Node { port, addresses } => {
                    let (chain, work) = (&mut self.chains[lane.index()], &mut self.work);
                    chain.pass(now, &shape, frame, &mut work.recorder);
                    address(frame, addresses);
                    return Some(Express { port, lane, vnet });
                }
                End::Lan(id) => match self.only_outlet(now, id, lane, frame) {
                    Some(next) => {
                        let (chain, work) = (&mut self.chains[lane.index()], &mut self.work);
                        chain.pass(now, &shape, frame, &mut work.recorder);
                        next
                    }
                    None => break,
                },
                End::Router(id) => match self.route_at_once(now, id, lane, frame) {
                    Some(next) => {
                        let (chain, work) = (&mut self.chains[lane.index()], &mut self.work);
                        chain.pass(now, &shape, frame, &mut work.recorder);
                        self.routers[id.index()].forwarded += u64::from(shape.count);
                        next
                    }
                    None => break,
                },
            };
            (came_by, lane) = (Some(lane), next);
        }
        self.copy_in(now, lane, (port, came_by), (vnet, shape), frame);
        None
    }

    /// The lane on which a router sends a frame on, now and changed, where nothing else is to be
    /// done.
    fn route_at_once(
        &mut self,
        now: Time,
        id: RouterId,
        lane: Lane,
        frame: &mut [u8],
    ) -> Option<Lane> {
        if !self.is_for_router(lane, frame) {
            return None;
        }
        let Verdict::Forward(next) = router::decide(&mut self.network, id, frame) else {
            return None;
        };
        (self.address_next(now, next, frame) && hop::decrement_ttl(frame).is_ok()).then_some(next)
    }

    /// Puts a packet on a lane at the time of its first segment.
    #[inline]
    pub(crate) fn offer(&mut self, now: Time, lane: Lane, packet: Packet) {
        let chain = &mut self.chains[lane.index()];
        let refused = chain.offer(now, packet, &mut self.work);
        if let Some(refused) = refused {
            self.report_too_big(now, lane, refused);
        }
    }

    /// Handles a packet that has come out of a lane, at `now`.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Time, lane: Lane, packet: Packet) {
        match self.network.end(lane) {
            End::Node { .. } => self.deliver(now, lane, packet),
            End::Router(id) => self.route(now, id, lane, packet),
            End::Lan(id) => self.switch(now, id, lane, packet),
        }
    }

    /// Gives a packet to the node at the end of `lane`, or to the sender to that node's machine.
    #[inline]
    pub(super) fn deliver(&mut self, now: Time, lane: Lane, packet: Packet) {
        let End::Node { port, addresses } = self.network.end(lane) else {
            return packet.discard(&mut self.work.pool);
        };
        let intended = if self.here[port.index()] { now } else { packet.times.last };
        let (mut frame, vnet) = packet.into_parts(&mut self.work.pool);
        address(&mut frame, addresses);
        self.unpolled[lane.index()] += 1;
        self.outbox.push_back(Departure { port, lane, intended, vnet, frame });
    }

    #[inline]
    fn copy_in(
        &mut self,
        now: Time,
        lane: Lane,
        (origin, came_by): (PortId, Option<Lane>),
        (vnet, shape): (vnet::Header, Shape),
        frame: &[u8],
    ) {
        match self.work.pool.copy(frame) {
            Some(buf) => {
                let mut packet = Packet::new(buf, vnet, shape, now, &mut self.work.pool);
                (packet.origin, packet.came_by) = (Some(origin), came_by);
                packet.tag = self.work.recorder.entering();
                packet.sender = self.work.sender;
                self.offer(now, lane, packet);
            }
            None => {
                let recorder = &mut self.work.recorder;
                let tag = recorder.entering();
                let chain = &mut self.chains[lane.index()];
                chain.offer_without_memory(now, (&tag, &shape), frame, recorder);
            }
        }
    }

    fn route(&mut self, now: Time, id: RouterId, lane: Lane, mut packet: Packet) {
        packet.came_by = Some(lane);
        if !self.is_for_router(lane, packet.frame())
            || self.take_resolution(now, lane, packet.frame())
        {
            return packet.discard(&mut self.work.pool);
        }
        let segments = u64::from(packet.shape.count);
        let verdict = router::decide(&mut self.network, id, packet.frame());
        let counters = &mut self.routers[id.index()];
        match verdict {
            Verdict::Forward(next) => {
                let forwarded = hop::decrement_ttl(packet.settled(&mut self.work.pool).0);
                debug_assert!(forwarded.is_ok(), "the verdict has looked at the TTL");
                return self.hand_on(now, id, next, packet);
            }
            Verdict::Echo => return self.echo(now, id, packet),
            Verdict::Refuse(refusal) => {
                let reason = match refusal {
                    router::Refusal::Expired => {
                        counters.ttl_expired += segments;
                        RouterReason::TtlExpired
                    }
                    router::Refusal::NoRoute | router::Refusal::NoHost => {
                        counters.no_route += segments;
                        RouterReason::NoRoute
                    }
                    router::Refusal::NoPort => {
                        counters.not_forwarded += segments;
                        RouterReason::NotForwarded
                    }
                };
                self.work.recorder.note_refusal(reason, &packet);
                self.report(now, id, refusal.kind(), &packet);
            }
            Verdict::Malformed => {
                counters.malformed += segments;
                self.work.recorder.note_refusal(RouterReason::Malformed, &packet);
            }
            Verdict::Ignore => {
                counters.not_forwarded += segments;
                self.work.recorder.note_refusal(RouterReason::NotForwarded, &packet);
            }
        }
        packet.discard(&mut self.work.pool);
    }

    /// What is recorded of a packet that the network itself sends now.
    pub(super) fn tag(&mut self, now: Time, packet: &Packet) -> Tag {
        let recorder = &mut self.work.recorder;
        if !recorder.is_on() {
            return Tag::NONE;
        }
        recorder.tag(now, packet.frame(), &packet.shape)
    }

    fn echo(&mut self, now: Time, id: RouterId, mut packet: Packet) {
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

/// Writes the Ethernet addresses of a delivery; a group address stays.
fn address(frame: &mut [u8], addresses: Option<Addressing>) {
    let Some(Addressing { destination, source }) = addresses else { return };
    let group = ethernet::View::parse(frame).ok().filter(ethernet::View::is_multicast);
    let destination = group.map_or(destination, |view| view.destination());
    ethernet::set_addresses(frame, destination, source);
}
