//! Packets of connections that outlive their server, at the redirector that keeps them.
//!
//! A train is given to the protocol when its last segment is here: what it holds is acknowledged and
//! passed on as a whole.

use windtunnel_model::{RouterId, Time};
use windtunnel_wire::hop;
use windtunnel_wire::packet::ParsedPacket;

use super::Core;
use crate::event::{NetworkEvent, NetworkEventKind};
use crate::packet::EmulatedPacket;
use crate::records::RouterReason;
use crate::services::{FailOverDisposition, FailOverPacket, FailOverSender, Redirection};
use crate::tunnel::TunnelEndpoint;

impl Core {
    /// A packet has come to the router that keeps its connection.
    pub(super) fn keep(&mut self, now: Time, id: RouterId, packet: EmulatedPacket) {
        let whole = packet.times.last;
        if whole > now {
            return self.trains.push(whole, (id, packet));
        }
        self.keep_whole(now, id, packet);
    }

    /// The same for a train that is here as a whole.
    pub(super) fn keep_whole(&mut self, now: Time, id: RouterId, mut packet: EmulatedPacket) {
        let from = match packet.tunnel.map(|tunnel| tunnel.start) {
            Some(TunnelEndpoint::Port(port)) => {
                FailOverSender::Replica(self.net.network.owner(port))
            }
            Some(TunnelEndpoint::Router(_)) | None => FailOverSender::Client,
        };
        packet.leave_tunnel();
        let (frame, header) = packet.settled(&mut self.net.lanes.work.pool);
        let forwarded = hop::decrement_ttl(frame);
        debug_assert!(forwarded.is_ok(), "the verdict has looked at the TTL");
        match self.redirection().take_held(now, id, from, header, frame) {
            FailOverDisposition::Yes => {
                self.net.routers[id.index()].forwarded += u64::from(packet.shape.count);
                packet.discard(&mut self.net.lanes.work.pool);
            }
            FailOverDisposition::Dropped => {
                self.net.drop_refused(id, RouterReason::NotForwarded, packet);
            }
            FailOverDisposition::Plain => self.send_plainly(now, id, from, packet),
        }
        self.send_kept(now);
    }

    /// Sends on what is of no connection that is kept.
    fn send_plainly(
        &mut self,
        now: Time,
        id: RouterId,
        from: FailOverSender,
        mut packet: EmulatedPacket,
    ) {
        if from == FailOverSender::Client
            && let Ok(parsed) = ParsedPacket::parse(packet.frame())
        {
            let mut point = self.redirection();
            match point.redirect_plainly(now, id, &parsed) {
                Redirection::To(entry) => point.enter_tunnel(id, &mut packet, entry),
                Redirection::Lost(service, on_loss) => {
                    return self.drop_lost(now, id, packet, service, on_loss);
                }
                Redirection::None | Redirection::Answer | Redirection::Keep => {}
            }
        }
        self.send_out(now, id, packet);
    }

    /// Sends what the protocol wants to be sent, and reports what happened.
    pub(super) fn send_kept(&mut self, now: Time) {
        while let Some(sent) = self.services.poll_sent() {
            self.send_one(now, sent);
        }
        while let Some(news) = self.services.take_news() {
            self.events.push(NetworkEvent { at: now, kind: NetworkEventKind::FailOver(news) });
        }
    }

    fn send_one(&mut self, now: Time, sent: FailOverPacket) {
        let FailOverPacket { service, at, to, vnet, frame } = sent;
        let Some(buf) = self.net.lanes.work.pool.copy(&frame) else {
            return self.services.count_unsent(service);
        };
        let mut packet = self.net.lanes.own_packet(now, buf, vnet);
        if let Some(entry) = to {
            self.redirection().enter_tunnel(at, &mut packet, entry);
        }
        self.send_out(now, at, packet);
    }
}
