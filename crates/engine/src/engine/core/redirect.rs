//! Packets to services' addresses: what routers do with them instead of routing.

use windtunnel_model::plan::{ROUTER_MAC, ReplicaLossResponse, ServiceChange};
use windtunnel_model::{NodeId, PortId, RouterId, ServiceId, Time};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::reset::{self, Reset};

use super::Core;
use super::ways::Surveyor;
use crate::event::{NetworkEvent, NetworkEventKind};
use crate::packet::{EmulatedPacket, MeasuredFrame, PacketTrainShape};
use crate::records::RouterReason;
use crate::router::{self, ForwardingDecision, ForwardingRefusal};
use crate::services::{Hit, Redirection, Silenced};
use crate::tunnel::{Mouth, PacketTunnel};

/// What a router does with a packet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Judgement {
    /// What it does with any.
    Plain(ForwardingDecision),
    /// It enters a tunnel, and goes on.
    Redirect(ForwardingDecision, PacketTunnel, Hit),
    /// The connection is lost with its replica.
    Lost(ServiceId, ReplicaLossResponse),
    /// It is of a connection that this router keeps.
    Keep,
    /// It is of one that another router keeps: it enters a tunnel, and goes on.
    Detour(ForwardingDecision, PacketTunnel),
}

impl Core {
    /// What a router does with a frame that may be in a tunnel already.
    #[inline]
    pub(super) fn judge(
        &mut self,
        now: Time,
        id: RouterId,
        frame: &[u8],
        tunnel: Option<&PacketTunnel>,
        aim: Option<PortId>,
    ) -> Judgement {
        let Ok(packet) = ParsedPacket::parse(frame) else {
            return Judgement::Plain(ForwardingDecision::Malformed);
        };
        if let Some(tunnel) = tunnel {
            if tunnel.end == Mouth::Router(id) {
                return Core::judge_arrived(&packet.info);
            }
            return Judgement::Plain(router::decide_tunnel(&mut self.network, id, &packet, tunnel));
        }
        let verdict = router::decide(&mut self.network, &self.services.filter, id, &packet);
        if verdict != ForwardingDecision::Service {
            return Judgement::Plain(verdict);
        }
        self.judge_service(now, id, &packet, aim)
    }

    #[inline(never)]
    fn judge_service(
        &mut self,
        now: Time,
        id: RouterId,
        packet: &ParsedPacket<'_>,
        aim: Option<PortId>,
    ) -> Judgement {
        // What ends here begins nothing.
        let expires = packet.info.ttl <= 1;
        match self.redirect(now, id, packet, aim, !expires) {
            Redirection::None => {
                Judgement::Plain(router::decide_route(&mut self.network, id, packet))
            }
            Redirection::Answer => Judgement::Plain(ForwardingDecision::Echo),
            Redirection::Lost(service, on_loss) => Judgement::Lost(service, on_loss),
            Redirection::To(..) | Redirection::Held(..) if expires => {
                Judgement::Plain(ForwardingDecision::Refuse(ForwardingRefusal::Expired))
            }
            Redirection::Held(_, holder) if holder == id => Judgement::Keep,
            Redirection::Held(service, holder) => {
                let is_v6 = packet.info.destination.is_ipv6();
                let tunnel = self.services.detour(service, is_v6, id, holder);
                self.judge_detour(id, packet, tunnel)
            }
            Redirection::To(tunnel, hit) => {
                let verdict = router::decide_tunnel(&mut self.network, id, packet, &tunnel);
                Judgement::Redirect(verdict, tunnel, hit)
            }
        }
    }

    /// Whether a router redirects a packet, and to where; `commit`: it does so now.
    pub(crate) fn redirect(
        &mut self,
        now: Time,
        id: RouterId,
        packet: &ParsedPacket<'_>,
        aim: Option<PortId>,
        commit: bool,
    ) -> Redirection {
        let Core { services, ways, network, chains, segments, vertices, .. } = self;
        let mut surveyor = Surveyor { known: ways, network, chains, segments, vertices };
        let way = &mut |port| surveyor.way(id, port);
        if !commit {
            return services.foresee(now, id, packet, way);
        }
        let redirection = services.redirect(now, id, packet, aim, way);
        if let Some(moved) = services.take_moved() {
            let kind =
                NetworkEventKind::Redirected { row: moved.row, router: id, replica: moved.replica };
            self.events.push(NetworkEvent { at: now, kind });
        }
        redirection
    }

    /// What a router would choose for a new flow to a row of the table.
    pub(crate) fn choice(&mut self, row: u16, id: RouterId) -> Option<NodeId> {
        let Core { services, ways, network, chains, segments, vertices, .. } = self;
        let mut surveyor = Surveyor { known: ways, network, chains, segments, vertices };
        services.choice(row, id, &mut |port| surveyor.way(id, port))
    }

    /// A frame of a node in which tunnels end; `Err`: it goes nowhere; else the tunnel that begins
    /// there for it.
    pub(crate) fn take_reply(
        &mut self,
        port: PortId,
        frame: &mut MeasuredFrame<'_>,
    ) -> Result<Option<PacketTunnel>, Silenced> {
        let Core { services, ways, network, chains, segments, vertices, .. } = self;
        let generation = ways.generation;
        let mut surveyor = Surveyor { known: ways, network, chains, segments, vertices };
        let way = &mut |router, end| surveyor.way(router, end);
        let tunnel = services.take_reply(port, frame, generation, way)?;
        if let Some(tunnel) = &tunnel {
            self.lead_back(self.network.lane_of(port), frame.bytes, tunnel);
        }
        Ok(tunnel)
    }

    /// Counts what a router redirects.
    #[inline]
    pub(super) fn count_hit(&mut self, id: RouterId, hit: Hit, shape: &PacketTrainShape) {
        self.services.count(hit, shape.count, shape.bytes());
        self.routers[id.index()].redirected += u64::from(shape.count);
    }

    /// Puts a packet into its tunnel, and counts it.
    pub(super) fn enter_tunnel(
        &mut self,
        id: RouterId,
        packet: &mut EmulatedPacket,
        tunnel: PacketTunnel,
        hit: Hit,
    ) {
        self.count_hit(id, hit, &packet.shape);
        packet.aim = None;
        packet.enter(tunnel);
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
        self.note_refusal(id, RouterReason::ReplicaLost, &packet);
        let reset = match on_loss {
            ReplicaLossResponse::Silent => None,
            ReplicaLossResponse::Reset => Reset::answer(packet.frame(), ROUTER_MAC),
        };
        self.services.count_lost(service, count, reset.is_some());
        if let Some(reset) = reset {
            self.send_reset(now, id, &reset);
        }
        packet.discard(&mut self.work.pool);
    }

    /// Takes a change of a service over.
    pub(super) fn change_service(&mut self, now: Time, change: &ServiceChange) {
        let broken = self.services.update(now, change);
        self.send_kept(now);
        for broken in broken {
            let reset = Reset {
                source: broken.service,
                destination: broken.client,
                sequence: broken.acknowledged,
                acknowledgement: None,
                mac: ROUTER_MAC,
            };
            self.services.count_lost(change.service, 0, true);
            self.send_reset(now, broken.router, &reset);
        }
    }

    fn send_reset(&mut self, now: Time, id: RouterId, reset: &Reset) {
        let written = self.work.pool.write(reset::FRAME_LEN, |buf| reset.write(buf));
        let Some(buf) = written else { return };
        let packet = self.own_packet(now, buf);
        self.originate(now, id, packet);
    }
}
