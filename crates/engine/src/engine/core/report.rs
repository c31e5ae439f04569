//! Packets that the network itself sends: ICMP messages, and resets of lost connections.

use windtunnel_model::plan::{ROUTER_MAC, ReplicaLossResponse};
use windtunnel_model::{Lane, NetworkVertex, RouterId, ServiceId, Time};
use windtunnel_wire::flow;
use windtunnel_wire::icmp::{self, IcmpErrorKind, IcmpErrorReply};
use windtunnel_wire::packet::{IpPacketSummary, ParsedPacket};
use windtunnel_wire::reset::{self, TcpResetSegment};
use windtunnel_wire::vnet::VirtioNetHeader;

use super::Core;
use crate::chain::TooBig;
use crate::middlebox::PacketRewrite;
use crate::packet::EmulatedPacket;
use crate::records::RouterReason;
use crate::services::Redirection;
use crate::tunnel::{PacketTunnel, TunnelEndpoint};

impl Core {
    /// Sends a packet that a router made.
    pub(super) fn originate(&mut self, now: Time, id: RouterId, mut packet: EmulatedPacket) {
        let Ok(parsed) = ParsedPacket::parse(packet.frame()) else {
            return packet.discard(&mut self.net.lanes.work.pool);
        };
        let info = parsed.info;
        if info.is_icmp_error && self.middleboxes.is_at(id) {
            let rewrite = self.passage().readdress(id, &parsed);
            let (frame, vnet) = packet.settled(&mut self.net.lanes.work.pool);
            if rewrite.is_none_or(|rewrite| !rewrite.write(frame, &info, vnet)) {
                return packet.discard(&mut self.net.lanes.work.pool);
            }
            return self.send_out(now, id, packet);
        }
        if self.services.filter.may_hold(info.destination) {
            let mut point = self.redirection();
            match point.redirect(now, id, &parsed, packet.aim, true) {
                Redirection::To(entry) => point.enter_tunnel(id, &mut packet, entry),
                Redirection::Keep => return self.keep(now, id, packet),
                Redirection::None | Redirection::Answer | Redirection::Lost(..) => {}
            }
        }
        self.send_out(now, id, packet);
    }

    /// Sends a packet from a router, along its tunnel or to its address.
    pub(super) fn send_out(&mut self, now: Time, id: RouterId, packet: EmulatedPacket) {
        let Ok(parsed) = ParsedPacket::parse(packet.frame()) else {
            return packet.discard(&mut self.net.lanes.work.pool);
        };
        let network = &mut self.net.network;
        let lane = packet.tunnel.map_or_else(
            || network.target(parsed.info.destination),
            |tunnel| Some(tunnel.end.target()),
        );
        let lane = lane.and_then(|target| {
            let flow = || flow::FiveTuple::of(&parsed).hash64();
            network.next_hop(id, None, target, flow)
        });
        let info = parsed.info;
        match lane {
            Some(lane) => {
                self.net.hand_on(now, id, lane, &info, &PacketRewrite::default(), packet);
                self.take_back();
            }
            None => {
                if packet.aim.is_some() {
                    self.services.count_lost_error();
                }
                packet.discard(&mut self.net.lanes.work.pool);
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
        let network = &self.net.network;
        let interface = packet.came_by.and_then(|lane| network.address_at_end(lane, info.source));
        let source = interface.or_else(|| network.address_of(id, info.source));
        let Some(source) = source else { return };
        let reply = IcmpErrorReply { kind, source, mac: ROUTER_MAC };
        let message = self.message(now, reply, packet, &info);
        if let Some(mut message) = message {
            self.net.routers[id.index()].icmp_sent += 1;
            // It quotes a replica's own numbers, so it is for that one, and not to be translated.
            if let Some(PacketTunnel { start: start @ TunnelEndpoint::Port(_), overhead, .. }) =
                packet.tunnel
            {
                let (end, start) = (start, TunnelEndpoint::Router(id));
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
        match self.net.lanes.start_of(lane) {
            // A segment and what is attached to it know of frames only.
            _ if !self.net.lanes.chains[lane.index()].is_routed() => {}
            NetworkVertex::Router(id) => self.report(now, id, kind, &packet),
            NetworkVertex::Node(_) => self.report_to_node(now, lane, kind, &packet),
            NetworkVertex::Lan(_) => {}
        }
        packet.discard(&mut self.net.lanes.work.pool);
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
        let Some(source) = self.net.network.address_at_end(lane, info.source) else { return };
        let reply = IcmpErrorReply { kind, source, mac: ROUTER_MAC };
        if let Some(message) = self.message(now, reply, packet, &info) {
            if let NetworkVertex::Router(id) = self.net.lanes.start_of(lane.reverse()) {
                self.net.routers[id.index()].icmp_sent += 1;
            }
            self.delivery().deliver(now, lane.reverse(), message);
        }
    }

    /// Passes on what a router on the way of a tunnel says about the outer packet: the sender of
    /// the inner one gets it (RFC 2003, 4). Whether it was such a message.
    pub(super) fn relay(&mut self, now: Time, id: RouterId, packet: &EmulatedPacket) -> bool {
        let frame = packet.frame();
        let lanes = &mut self.net.lanes;
        let relayed = lanes.work.pool.write(frame.len(), |buf| icmp::relay(frame, buf));
        let Some(buf) = relayed else { return false };
        let message = lanes.own_packet(now, buf, VirtioNetHeader::default());
        self.net.routers[id.index()].icmp_sent += 1;
        self.originate(now, id, message);
        true
    }

    /// Drops a packet whose connection is lost, and resets its client if that is wished.
    pub(super) fn drop_lost(
        &mut self,
        now: Time,
        id: RouterId,
        packet: EmulatedPacket,
        service: ServiceId,
        on_loss: ReplicaLossResponse,
    ) {
        let count = packet.shape.count;
        self.net.note_refusal(id, RouterReason::ReplicaLost, &packet);
        let reset = match on_loss {
            ReplicaLossResponse::Silent => None,
            ReplicaLossResponse::Reset => TcpResetSegment::answer(packet.frame(), ROUTER_MAC),
        };
        self.services.count_lost(service, count, reset.is_some());
        if let Some(reset) = reset {
            self.send_reset(now, id, &reset);
        }
        packet.discard(&mut self.net.lanes.work.pool);
    }

    /// Sends the reset of a connection.
    pub(super) fn send_reset(&mut self, now: Time, id: RouterId, reset: &TcpResetSegment) {
        let lanes = &mut self.net.lanes;
        let written = lanes.work.pool.write(reset::FRAME_LEN, |buf| reset.write(buf));
        let Some(buf) = written else { return };
        let packet = lanes.own_packet(now, buf, VirtioNetHeader::default());
        self.originate(now, id, packet);
    }

    fn message(
        &mut self,
        now: Time,
        reply: IcmpErrorReply,
        about: &EmulatedPacket,
        info: &IpPacketSummary,
    ) -> Option<EmulatedPacket> {
        let mut message = self.net.lanes.error_about(now, reply, about)?;
        // What a replica sent in a service's name: the error is for it, not for the address.
        let sender = about.origin.filter(|port| self.services.ends_at(*port));
        message.aim = sender.filter(|_| self.services.filter.may_hold(info.source));
        Some(message)
    }
}

/// What is known of a packet about which an error may be sent.
fn reportable(packet: &EmulatedPacket) -> Option<IpPacketSummary> {
    let parsed = ParsedPacket::parse(packet.frame()).ok()?;
    icmp::may_send_error(&parsed).then_some(parsed.info)
}
