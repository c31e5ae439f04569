//! Packets of connections that outlive their server, at the redirector that keeps them.
//!
//! A train is given to the protocol when its last segment is here: what it holds is acknowledged and
//! passed on as a whole.

use windtunnel_model::{Lane, RouterId, Time};
use windtunnel_wire::hop;
use windtunnel_wire::packet::{Info, ParsedPacket};

use super::Core;
use super::redirect::Judgement;
use super::ways::Surveyor;
use crate::event::{NetworkEvent, NetworkEventKind};
use crate::packet::{EmulatedPacket, PacketTrainShape};
use crate::records::RouterReason;
use crate::router::{self, ForwardingDecision, ForwardingRefusal};
use crate::services::{FailOverPacket, FailOverSender, Redirection, Taken};
use crate::time_queue::TimeQueue;
use crate::tunnel::{Mouth, PacketTunnel};

/// Trains whose last segment is not here yet, with the router where that is.
pub(super) type Trains = TimeQueue<(RouterId, EmulatedPacket)>;

impl Core {
    /// What a router does with a packet whose tunnel ends at it.
    pub(super) fn judge_arrived(info: &Info) -> Judgement {
        if info.ttl <= 1 {
            return Judgement::Plain(ForwardingDecision::Refuse(ForwardingRefusal::Expired));
        }
        Judgement::Keep
    }

    /// What a redirector does with a packet whose connection another one keeps.
    pub(super) fn judge_detour(
        &mut self,
        id: RouterId,
        packet: &ParsedPacket<'_>,
        tunnel: PacketTunnel,
    ) -> Judgement {
        Judgement::Detour(router::decide_tunnel(&mut self.network, id, packet, &tunnel), tunnel)
    }

    /// A packet has come to the router that keeps its connection.
    pub(super) fn keep(&mut self, now: Time, id: RouterId, packet: EmulatedPacket) {
        let whole = packet.times.last;
        if whole > now {
            return self.trains.push(whole, (id, packet));
        }
        self.keep_whole(now, id, packet);
    }

    fn keep_whole(&mut self, now: Time, id: RouterId, mut packet: EmulatedPacket) {
        let from = match packet.tunnel.map(|tunnel| tunnel.start) {
            Some(Mouth::Port(port)) => FailOverSender::Replica(self.network.owner(port)),
            Some(Mouth::Router(_)) | None => FailOverSender::Client,
        };
        packet.leave_tunnel();
        let taken = {
            let (frame, header) = packet.settled(&mut self.work.pool);
            let forwarded = hop::decrement_ttl(frame);
            debug_assert!(forwarded.is_ok(), "the verdict has looked at the TTL");
            let Core { services, ways, network, chains, segments, vertices, .. } = self;
            let mut surveyor = Surveyor { known: ways, network, chains, segments, vertices };
            let way = &mut |port| surveyor.way(id, port);
            services.take_held(now, id, from, header, frame, way)
        };
        match taken {
            Taken::Yes => {
                self.routers[id.index()].forwarded += u64::from(packet.shape.count);
                packet.discard(&mut self.work.pool);
            }
            Taken::Dropped => {
                self.note_refusal(id, RouterReason::NotForwarded, &packet);
                packet.discard(&mut self.work.pool);
            }
            Taken::Plain => self.send_plainly(now, id, from, packet),
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
            let Core { services, ways, network, chains, segments, vertices, .. } = self;
            let mut surveyor = Surveyor { known: ways, network, chains, segments, vertices };
            let way = &mut |port| surveyor.way(id, port);
            match services.redirect_plainly(now, id, &parsed, way) {
                Redirection::To(tunnel, hit) => {
                    self.enter_tunnel(id, &mut packet, tunnel, hit);
                }
                Redirection::Lost(service, on_loss) => {
                    return self.drop_lost(now, id, packet, service, on_loss);
                }
                Redirection::None | Redirection::Answer | Redirection::Held(..) => {}
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
        let Some(buf) = self.work.pool.copy(&frame) else {
            return self.services.count_unsent(service);
        };
        let shape = PacketTrainShape::of(&buf, &vnet);
        let mut packet = EmulatedPacket::new(buf, vnet, shape, now, &mut self.work.pool);
        packet.tag = self.tag(now, &packet);
        if let Some((tunnel, hit)) = to {
            self.count_hit(at, hit, &packet.shape);
            packet.enter(tunnel);
        }
        self.send_out(now, at, packet);
    }

    /// When a train is whole, or the protocol has something to do.
    pub(super) fn next_kept(&self) -> Option<Time> {
        [self.trains.next(), self.services.next_of_held()].into_iter().flatten().min()
    }

    /// Does what is due.
    pub(super) fn wake_kept(&mut self, now: Time) {
        while let Some((id, packet)) = self.trains.pop(now) {
            self.keep_whole(now, id, packet);
        }
        if self.services.next_of_held().is_some_and(|at| at <= now) {
            self.services.wake_held(now);
            self.send_kept(now);
        }
    }

    /// On a LAN, a frame whose connection is kept by a redirector goes to the router that leads
    /// there, whomever its sender meant.
    pub(super) fn lead_back(&self, lane: Lane, frame: &mut [u8], tunnel: &PacketTunnel) {
        let crate::network::LaneEndpoint::Lan(lan) = self.network.end(lane) else { return };
        let Mouth::Router(holder) = tunnel.end else { return };
        let Some(station) = self.network.station_towards(lan, holder) else { return };
        if let Ok(view) = windtunnel_wire::ethernet::EthernetFrame::parse(frame) {
            let source = view.source();
            windtunnel_wire::ethernet::set_addresses(frame, station.mac, source);
        }
    }
}
