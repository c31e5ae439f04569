//! ICMP messages that the network itself sends.

use windtunnel_model::plan::ROUTER_MAC;
use windtunnel_model::{Lane, RouterId, Time, Vertex};
use windtunnel_wire::icmp::{self, Kind, Reply};
use windtunnel_wire::packet::Info;
use windtunnel_wire::{flow, vnet};

use super::Core;
use crate::chain::TooBig;
use crate::packet::{Packet, Shape};

/// Room for the longest message: 1280 bytes of IPv6 with the Ethernet header.
const MESSAGE_LEN_MAX: usize = 1294;

impl Core {
    /// Sends a packet that a router made.
    pub(super) fn originate(&mut self, now: Time, id: RouterId, packet: Packet) {
        let lane = Info::parse(packet.frame()).ok().and_then(|info| {
            let target = self.network.target(info.destination)?;
            let flow = || flow::Key::new(&info, packet.frame()).hash64();
            self.network.next_hop(id, None, target, flow)
        });
        match lane {
            Some(lane) => self.hand_on(now, id, lane, packet),
            None => packet.discard(&mut self.work.pool),
        }
    }

    /// Sends an ICMP error about `packet`, which came to router `id`.
    pub(super) fn report(&mut self, now: Time, id: RouterId, kind: Kind, packet: &Packet) {
        let Some(info) = reportable(packet) else { return };
        let interface =
            packet.came_by.and_then(|lane| self.network.address_at_end(lane, info.source));
        let source = interface.or_else(|| self.network.address_of(id, info.source));
        let Some(source) = source else { return };
        if let Some(message) = self.message(now, Reply { kind, source, mac: ROUTER_MAC }, packet) {
            self.routers[id.index()].icmp_sent += 1;
            self.originate(now, id, message);
        }
    }

    /// Sends an ICMP error about a packet that exceeds the MTU of `lane`.
    pub(super) fn report_too_big(&mut self, now: Time, lane: Lane, refused: TooBig) {
        let TooBig { packet, mtu } = refused;
        let kind = Kind::TooBig { mtu };
        match self.start_of(lane) {
            // A segment and what is attached to it know of frames only.
            _ if !self.chains[lane.index()].is_routed() => {}
            Vertex::Router(id) => self.report(now, id, kind, &packet),
            Vertex::Node(_) => self.report_to_node(now, lane, kind, &packet),
            Vertex::Lan(_) => {}
        }
        packet.discard(&mut self.work.pool);
    }

    /// A node's own link is too narrow: the message comes straight from the link's far end.
    fn report_to_node(&mut self, now: Time, lane: Lane, kind: Kind, packet: &Packet) {
        let Some(info) = reportable(packet) else { return };
        let Some(source) = self.network.address_at_end(lane, info.source) else { return };
        let reply = Reply { kind, source, mac: ROUTER_MAC };
        if let Some(message) = self.message(now, reply, packet) {
            if let Vertex::Router(id) = self.start_of(lane.reverse()) {
                self.routers[id.index()].icmp_sent += 1;
            }
            self.deliver(now, lane.reverse(), message);
        }
    }

    fn message(&mut self, now: Time, reply: Reply, about: &Packet) -> Option<Packet> {
        let quoted = about.first_segment(&mut self.work.pool);
        let original = quoted.as_deref().unwrap_or(about.frame());
        let pool = &mut self.work.pool;
        let message = pool.take(MESSAGE_LEN_MAX).and_then(|mut buf| {
            match icmp::write_error(&reply, original, &mut buf) {
                Some(len) => {
                    buf.truncate(len);
                    let vnet = vnet::Header::default();
                    let shape = Shape::of(&buf, &vnet);
                    Some(Packet::new(buf, vnet, shape, now, pool))
                }
                None => {
                    pool.give(buf);
                    None
                }
            }
        });
        quoted.into_iter().for_each(|buf| self.work.pool.give(buf));
        let mut message = message?;
        message.tag = self.tag(now, &message);
        Some(message)
    }

    fn start_of(&self, lane: Lane) -> Vertex {
        self.vertices[lane.link.index()][lane.direction.index()]
    }
}

/// What is known of a packet about which an error may be sent.
fn reportable(packet: &Packet) -> Option<Info> {
    let info = Info::parse(packet.frame()).ok()?;
    icmp::may_send_error(&info, packet.frame()).then_some(info)
}
