//! From lane to lane: what happens to a packet at the end of one.

use windtunnel_model::{Lane, RouterId, Time};
use windtunnel_wire::{ethernet, hop, icmp, vnet};

use super::{Departure, Engine, Express, starved};
use crate::network::End;
use crate::packet::{Packet, Shape};
use crate::router::{self, Verdict};

impl Engine {
    /// Brings a frame as far as lanes let it pass at once; copies it where one does not.
    pub(super) fn enter(
        &mut self,
        now: Time,
        mut lane: Lane,
        vnet: vnet::Header,
        shape: Shape,
        frame: &mut [u8],
    ) -> Option<Express> {
        let mut came_by = None;
        loop {
            let chain = &mut self.chains[lane.index()];
            if !chain.is_clear(now, &shape) {
                self.copy_in(now, lane, came_by, (vnet, shape), frame);
                return None;
            }
            let end = self.network.end(lane);
            let unpolled = self.unpolled[lane.index()] > 0;
            match end {
                End::Node { port, destination, source } if !unpolled => {
                    chain.pass(&shape);
                    address(frame, destination, source);
                    return Some(Express { port, lane, vnet });
                }
                End::Router(id) => {
                    let verdict = router::decide(&mut self.network, id, frame);
                    if let Verdict::Forward(next) = verdict
                        && hop::decrement_ttl(frame).is_ok()
                    {
                        chain.pass(&shape);
                        self.routers[id.index()].forwarded += u64::from(shape.count);
                        (came_by, lane) = (Some(lane), next);
                        continue;
                    }
                    self.copy_in(now, lane, came_by, (vnet, shape), frame);
                    return None;
                }
                // What is in the outbox leaves first.
                End::Node { .. } => {
                    self.copy_in(now, lane, came_by, (vnet, shape), frame);
                    return None;
                }
            }
        }
    }

    /// Puts a packet on a lane at the time of its first segment.
    pub(super) fn offer(&mut self, now: Time, lane: Lane, packet: Packet) {
        let chain = &mut self.chains[lane.index()];
        let before = starved(chain);
        let refused = chain.offer(now, packet, &mut self.work);
        if starved(chain) > before {
            self.note_memory(now, lane);
        }
        if let Some(refused) = refused {
            self.report_too_big(now, lane, refused);
        }
    }

    /// Handles everything that has come out of lanes, and what comes of that at the same time.
    pub(super) fn settle(&mut self, now: Time) {
        while let Some((lane, packet)) = self.work.exits.pop_front() {
            match self.network.end(lane) {
                End::Node { .. } => self.deliver(now, lane, packet),
                End::Router(id) => self.route(now, id, lane, packet),
            }
        }
    }

    /// Gives a packet to the node at the end of `lane`.
    pub(super) fn deliver(&mut self, now: Time, lane: Lane, packet: Packet) {
        let End::Node { port, destination, source } = self.network.end(lane) else {
            return packet.discard(&mut self.work.pool);
        };
        let (mut frame, vnet) = packet.into_parts(&mut self.work.pool);
        address(&mut frame, destination, source);
        self.unpolled[lane.index()] += 1;
        self.outbox.push_back(Departure { port, lane, intended: now, vnet, frame });
    }

    fn copy_in(
        &mut self,
        now: Time,
        lane: Lane,
        came_by: Option<Lane>,
        (vnet, shape): (vnet::Header, Shape),
        frame: &[u8],
    ) {
        match self.work.pool.copy(frame) {
            Some(buf) => {
                let mut packet = Packet::new(buf, vnet, shape, now);
                packet.came_by = came_by;
                self.offer(now, lane, packet);
            }
            None => {
                self.chains[lane.index()].offer_without_memory(&shape);
                self.note_memory(now, lane);
            }
        }
    }

    fn route(&mut self, now: Time, id: RouterId, lane: Lane, mut packet: Packet) {
        packet.came_by = Some(lane);
        let segments = u64::from(packet.shape.count);
        let verdict = router::decide(&mut self.network, id, packet.frame());
        let counters = &mut self.routers[id.index()];
        match verdict {
            Verdict::Forward(next) => {
                counters.forwarded += segments;
                let forwarded = hop::decrement_ttl(packet.settled(&mut self.work.pool).0);
                debug_assert!(forwarded.is_ok(), "the verdict has looked at the TTL");
                return self.offer(now, next, packet);
            }
            Verdict::Echo => return self.echo(now, id, packet),
            Verdict::Refuse(refusal) => {
                match refusal {
                    router::Refusal::Expired => counters.ttl_expired += segments,
                    router::Refusal::NoRoute | router::Refusal::NoHost => {
                        counters.no_route += segments;
                    }
                    router::Refusal::NoPort => counters.not_forwarded += segments,
                }
                self.report(now, id, refusal.kind(), &packet);
            }
            Verdict::Malformed => counters.malformed += segments,
            Verdict::Ignore => counters.not_forwarded += segments,
        }
        packet.discard(&mut self.work.pool);
    }

    fn echo(&mut self, now: Time, id: RouterId, mut packet: Packet) {
        let (frame, vnet) = packet.settled(&mut self.work.pool);
        let counters = &mut self.routers[id.index()];
        if icmp::echo_reply_in_place(frame, vnet) {
            counters.echo_answered += 1;
            packet.came_by = None;
            self.originate(now, id, packet);
        } else {
            counters.not_forwarded += u64::from(packet.shape.count);
            packet.discard(&mut self.work.pool);
        }
    }
}

/// Writes the Ethernet addresses of a delivery; a group address stays.
fn address(frame: &mut [u8], destination: [u8; 6], source: [u8; 6]) {
    let group = ethernet::View::parse(frame).ok().filter(ethernet::View::is_multicast);
    let destination = group.map_or(destination, |view| view.destination());
    ethernet::set_addresses(frame, destination, source);
}
