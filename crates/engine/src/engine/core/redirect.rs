//! Packets to services' addresses: what routers do with them instead of routing.

use windtunnel_model::plan::ReplicaLossResponse;
use windtunnel_model::{Lane, NodeId, PortId, RouterId, ServiceId, Time};
use windtunnel_wire::ethernet;
use windtunnel_wire::packet::{IpPacketSummary, ParsedPacket};
use windtunnel_wire::vnet::VirtioNetHeader;

use super::ways::{KnownWays, Surveyor};
use crate::event::{BoundedQueue, NetworkEvent, NetworkEventKind};
use crate::network::LaneEndpoint;
use crate::packet::{EmulatedPacket, MeasuredFrame, PacketTrainShape};
use crate::router::{self, ForwardingDecision, ForwardingRefusal};
use crate::services::{
    FailOverDisposition, FailOverSender, LostReplicaFrame, Redirection, RedirectionHit,
    ServiceRedirector,
};
use crate::tunnel::{PacketTunnel, TunnelEndpoint};
use crate::underlay::Underlay;

/// Where routers find out what becomes of packets, those to services among them.
pub(crate) struct RedirectionPoint<'a> {
    pub(crate) services: &'a mut ServiceRedirector,
    pub(super) ways: &'a mut KnownWays,
    pub(crate) net: &'a mut Underlay,
    pub(super) events: &'a mut BoundedQueue<NetworkEvent>,
}

/// What a router does with a packet.
#[derive(Debug, Clone, Copy)]
pub(super) enum ServicePacketVerdict {
    /// What it does with any.
    Plain(ForwardingDecision),
    /// It enters a tunnel, and goes on.
    Redirect(ForwardingDecision, PacketTunnel, RedirectionHit),
    /// The connection is lost with its replica.
    Lost(ServiceId, ReplicaLossResponse),
    /// It is of a connection that this router keeps.
    Keep,
    /// It is of one that another router keeps: it enters a tunnel, and goes on.
    Detour(ForwardingDecision, PacketTunnel),
}

impl RedirectionPoint<'_> {
    /// What a router does with a frame that may be in a tunnel already.
    #[inline]
    pub(super) fn judge(
        &mut self,
        now: Time,
        id: RouterId,
        frame: &[u8],
        tunnel: Option<&PacketTunnel>,
        aim: Option<PortId>,
    ) -> ServicePacketVerdict {
        let Ok(packet) = ParsedPacket::parse(frame) else {
            return ServicePacketVerdict::Plain(ForwardingDecision::Malformed);
        };
        if let Some(tunnel) = tunnel {
            if tunnel.end == TunnelEndpoint::Router(id) {
                return judge_arrived(&packet.info);
            }
            return ServicePacketVerdict::Plain(router::decide_tunnel(
                &mut self.net.network,
                id,
                &packet,
                tunnel,
            ));
        }
        let verdict = router::decide(&mut self.net.network, &self.services.filter, id, &packet);
        if verdict != ForwardingDecision::Service {
            return ServicePacketVerdict::Plain(verdict);
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
    ) -> ServicePacketVerdict {
        // What ends here begins nothing.
        let expires = packet.info.ttl <= 1;
        match self.redirect(now, id, packet, aim, !expires) {
            Redirection::None => {
                ServicePacketVerdict::Plain(router::decide_route(&mut self.net.network, id, packet))
            }
            Redirection::Answer => ServicePacketVerdict::Plain(ForwardingDecision::Echo),
            Redirection::Lost(service, on_loss) => ServicePacketVerdict::Lost(service, on_loss),
            Redirection::To(..) | Redirection::Held(..) if expires => {
                ServicePacketVerdict::Plain(ForwardingDecision::Refuse(ForwardingRefusal::Expired))
            }
            Redirection::Held(_, holder) if holder == id => ServicePacketVerdict::Keep,
            Redirection::Held(service, holder) => {
                let is_v6 = packet.info.destination.is_ipv6();
                let tunnel = self.services.detour(service, is_v6, id, holder);
                let verdict = router::decide_tunnel(&mut self.net.network, id, packet, &tunnel);
                ServicePacketVerdict::Detour(verdict, tunnel)
            }
            Redirection::To(tunnel, hit) => {
                let verdict = router::decide_tunnel(&mut self.net.network, id, packet, &tunnel);
                ServicePacketVerdict::Redirect(verdict, tunnel, hit)
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
        let mut surveyor = Surveyor { known: self.ways, net: self.net };
        let way = &mut |port| surveyor.way(id, port);
        if !commit {
            return self.services.foresee(now, id, packet, way);
        }
        let redirection = self.services.redirect(now, id, packet, aim, way);
        if let Some(moved) = self.services.take_moved() {
            let kind =
                NetworkEventKind::Redirected { row: moved.row, router: id, replica: moved.replica };
            self.events.push(NetworkEvent { at: now, kind });
        }
        redirection
    }

    /// What a router would choose for a new flow to a row of the table.
    pub(crate) fn choice(&mut self, row: u16, id: RouterId) -> Option<NodeId> {
        let mut surveyor = Surveyor { known: self.ways, net: self.net };
        self.services.choice(row, id, &mut |port| surveyor.way(id, port))
    }

    /// A frame of a node in which tunnels end; `Err`: it goes nowhere; else the tunnel that begins
    /// there for it.
    pub(crate) fn take_reply(
        &mut self,
        port: PortId,
        frame: &mut MeasuredFrame<'_>,
    ) -> Result<Option<PacketTunnel>, LostReplicaFrame> {
        let generation = self.ways.generation;
        let mut surveyor = Surveyor { known: self.ways, net: self.net };
        let way = &mut |router, end| surveyor.way(router, end);
        let tunnel = self.services.take_reply(port, frame, generation, way)?;
        if let Some(tunnel) = &tunnel {
            self.lead_back(self.net.network.lane_of(port), frame.bytes, tunnel);
        }
        Ok(tunnel)
    }

    /// Gives a packet whose connection is kept here to the protocol.
    pub(super) fn take_held(
        &mut self,
        now: Time,
        id: RouterId,
        from: FailOverSender,
        header: &VirtioNetHeader,
        frame: &mut [u8],
    ) -> FailOverDisposition {
        let mut surveyor = Surveyor { known: self.ways, net: self.net };
        let way = &mut |port| surveyor.way(id, port);
        self.services.take_held(now, id, from, header, frame, way)
    }

    /// Where a router redirects a packet that the protocol has refused.
    pub(super) fn redirect_plainly(
        &mut self,
        now: Time,
        id: RouterId,
        packet: &ParsedPacket<'_>,
    ) -> Redirection {
        let mut surveyor = Surveyor { known: self.ways, net: self.net };
        let way = &mut |port| surveyor.way(id, port);
        self.services.redirect_plainly(now, id, packet, way)
    }

    /// Counts what a router redirects.
    #[inline]
    pub(super) fn count_hit(
        &mut self,
        id: RouterId,
        hit: RedirectionHit,
        shape: &PacketTrainShape,
    ) {
        self.services.count(hit, shape.count, shape.bytes());
        self.net.routers[id.index()].redirected += u64::from(shape.count);
    }

    /// Puts a packet into its tunnel, and counts it.
    pub(super) fn enter_tunnel(
        &mut self,
        id: RouterId,
        packet: &mut EmulatedPacket,
        tunnel: PacketTunnel,
        hit: RedirectionHit,
    ) {
        self.count_hit(id, hit, &packet.shape);
        packet.aim = None;
        packet.enter(tunnel);
    }

    /// On a LAN, a frame whose connection is kept by a redirector goes to the router that leads
    /// there, whomever its sender meant.
    fn lead_back(&self, lane: Lane, frame: &mut [u8], tunnel: &PacketTunnel) {
        let LaneEndpoint::Lan(lan) = self.net.network.end(lane) else { return };
        let TunnelEndpoint::Router(holder) = tunnel.end else { return };
        let Some(station) = self.net.network.station_towards(lan, holder) else { return };
        if let Ok(view) = ethernet::EthernetFrame::parse(frame) {
            let source = view.source();
            ethernet::set_addresses(frame, station.mac, source);
        }
    }
}

/// What a router does with a packet whose tunnel ends at it.
fn judge_arrived(info: &IpPacketSummary) -> ServicePacketVerdict {
    if info.ttl <= 1 {
        return ServicePacketVerdict::Plain(ForwardingDecision::Refuse(ForwardingRefusal::Expired));
    }
    ServicePacketVerdict::Keep
}
