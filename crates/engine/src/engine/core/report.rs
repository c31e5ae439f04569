//! ICMP messages that the network itself sends.

use windtunnel_model::plan::ROUTER_MAC;
use windtunnel_model::{Lane, NetworkVertex, RouterId, Time};
use windtunnel_wire::icmp::{self, IcmpErrorKind, IcmpErrorReply};
use windtunnel_wire::packet::{Info, ParsedPacket};
use windtunnel_wire::{flow, vnet};

use super::Core;
use crate::buffer::PacketBuf;
use crate::chain::TooBig;
use crate::packet::{EmulatedPacket, PacketTrainShape};
use crate::services::Redirection;
use crate::tunnel::{Mouth, PacketTunnel};

/// Room for the longest message: 1280 bytes of IPv6 with the Ethernet header.
const MESSAGE_LEN_MAX: usize = 1294;

impl Core {
    /// Sends a packet that a router made.
    pub(super) fn originate(&mut self, now: Time, id: RouterId, mut packet: EmulatedPacket) {
        let Ok(parsed) = ParsedPacket::parse(packet.frame()) else {
            return packet.discard(&mut self.work.pool);
        };
        let info = &parsed.info;
        if info.is_icmp_error && self.middleboxes.is_at(id) {
            let Some(translated) = self.readdress(id, packet) else { return };
            return self.send_out(now, id, translated);
        }
        if self.services.filter.may_hold(info.destination) {
            let is_v6 = info.destination.is_ipv6();
            match self.redirect(now, id, &parsed, packet.aim, true) {
                Redirection::To(tunnel, hit) => {
                    self.enter_tunnel(id, &mut packet, tunnel, hit);
                }
                Redirection::Held(_, holder) if holder == id => return self.keep(now, id, packet),
                Redirection::Held(service, holder) => {
                    packet.enter(self.services.detour(service, is_v6, id, holder));
                }
                Redirection::None | Redirection::Answer | Redirection::Lost(..) => {}
            }
        }
        self.send_out(now, id, packet);
    }

    /// Sends a packet from a router, along its tunnel or to its address.
    pub(super) fn send_out(&mut self, now: Time, id: RouterId, packet: EmulatedPacket) {
        let Ok(parsed) = ParsedPacket::parse(packet.frame()) else {
            return packet.discard(&mut self.work.pool);
        };
        let lane = packet.tunnel.map_or_else(
            || self.network.target(parsed.info.destination),
            |tunnel| Some(tunnel.end.target()),
        );
        let lane = lane.and_then(|target| {
            let flow = || flow::FiveTuple::of(&parsed).hash64();
            self.network.next_hop(id, None, target, flow)
        });
        match lane {
            Some(lane) => self.hand_on(now, id, lane, packet),
            None => {
                if packet.aim.is_some() {
                    self.services.count_lost_error();
                }
                packet.discard(&mut self.work.pool);
            }
        }
    }

    /// Sends an ICMP error about `packet`, which came to router `id`.
    pub(super) fn report(
        &mut self,
        now: Time,
        id: RouterId,
        kind: IcmpErrorKind,
        packet: &EmulatedPacket,
    ) {
        let Some(info) = reportable(packet) else { return };
        let interface =
            packet.came_by.and_then(|lane| self.network.address_at_end(lane, info.source));
        let source = interface.or_else(|| self.network.address_of(id, info.source));
        let Some(source) = source else { return };
        let message = self.message(now, IcmpErrorReply { kind, source, mac: ROUTER_MAC }, packet);
        if let Some(mut message) = message {
            self.routers[id.index()].icmp_sent += 1;
            // It quotes a replica's own numbers, so it is for that one, and not to be translated.
            if let Some(PacketTunnel { start: start @ Mouth::Port(_), overhead, .. }) =
                packet.tunnel
            {
                let (end, start) = (start, Mouth::Router(id));
                message.enter(PacketTunnel { end, start, overhead, fragments: false });
                return self.send_out(now, id, message);
            }
            self.originate(now, id, message);
        }
    }

    /// Sends an ICMP error about a packet that exceeds the MTU of `lane`.
    pub(super) fn report_too_big(&mut self, now: Time, lane: Lane, refused: TooBig) {
        let TooBig { packet, mtu } = refused;
        // Its sender knows nothing of the header in front of it.
        let mtu = mtu.saturating_sub(packet.tunnel.map_or(0, |tunnel| tunnel.overhead));
        let kind = IcmpErrorKind::TooBig { mtu };
        match self.start_of(lane) {
            // A segment and what is attached to it know of frames only.
            _ if !self.chains[lane.index()].is_routed() => {}
            NetworkVertex::Router(id) => self.report(now, id, kind, &packet),
            NetworkVertex::Node(_) => self.report_to_node(now, lane, kind, &packet),
            NetworkVertex::Lan(_) => {}
        }
        packet.discard(&mut self.work.pool);
    }

    /// A node's own link is too narrow: the message comes straight from the link's far end.
    fn report_to_node(
        &mut self,
        now: Time,
        lane: Lane,
        kind: IcmpErrorKind,
        packet: &EmulatedPacket,
    ) {
        let Some(info) = reportable(packet) else { return };
        let Some(source) = self.network.address_at_end(lane, info.source) else { return };
        let reply = IcmpErrorReply { kind, source, mac: ROUTER_MAC };
        if let Some(message) = self.message(now, reply, packet) {
            if let NetworkVertex::Router(id) = self.start_of(lane.reverse()) {
                self.routers[id.index()].icmp_sent += 1;
            }
            self.deliver(now, lane.reverse(), message);
        }
    }

    /// Passes on what a router on the way of a tunnel says about the outer packet: the sender of
    /// the inner one gets it (RFC 2003, 4). Whether it was such a message.
    pub(super) fn relay(&mut self, now: Time, id: RouterId, packet: &EmulatedPacket) -> bool {
        let frame = packet.frame();
        let relayed = self.work.pool.write(frame.len(), |buf| icmp::relay(frame, buf));
        let Some(buf) = relayed else { return false };
        let message = self.own_packet(now, buf);
        self.routers[id.index()].icmp_sent += 1;
        self.originate(now, id, message);
        true
    }

    /// A packet of a router's own.
    pub(super) fn own_packet(&mut self, now: Time, buf: PacketBuf) -> EmulatedPacket {
        let header = vnet::VirtioNetHeader::default();
        let shape = PacketTrainShape::of(&buf, &header);
        let mut packet = EmulatedPacket::new(buf, header, shape, now, &mut self.work.pool);
        packet.tag = self.tag(now, &packet);
        packet
    }

    fn message(
        &mut self,
        now: Time,
        reply: IcmpErrorReply,
        about: &EmulatedPacket,
    ) -> Option<EmulatedPacket> {
        let quoted = about.first_segment(&mut self.work.pool);
        let original = quoted.as_deref().unwrap_or(about.frame());
        let pool = &mut self.work.pool;
        let message = pool.write(MESSAGE_LEN_MAX, |buf| icmp::write_error(&reply, original, buf));
        quoted.into_iter().for_each(|buf| self.work.pool.give(buf));
        let mut message = self.own_packet(now, message?);
        // What a replica sent in a service's name: the error is for it, not for the address.
        let sender = about.origin.filter(|port| self.services.ends_at(*port));
        message.aim = sender.filter(|_| self.is_in_name_of_service(about.frame()));
        Some(message)
    }

    fn is_in_name_of_service(&self, frame: &[u8]) -> bool {
        let source = Info::parse(frame).map(|info| info.source);
        source.is_ok_and(|source| self.services.filter.may_hold(source))
    }

    fn start_of(&self, lane: Lane) -> NetworkVertex {
        self.vertices[lane.link.index()][lane.direction.index()]
    }
}

/// What is known of a packet about which an error may be sent.
fn reportable(packet: &EmulatedPacket) -> Option<Info> {
    let parsed = ParsedPacket::parse(packet.frame()).ok()?;
    icmp::may_send_error(&parsed).then_some(parsed.info)
}
