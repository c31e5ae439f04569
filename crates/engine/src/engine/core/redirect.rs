//! Packets to services' addresses: what routers do with them instead of routing.

use windtunnel_model::{Lane, NodeId, PortId, RouterId, Time};
use windtunnel_wire::ethernet;
use windtunnel_wire::packet::{IpPacketSummary, ParsedPacket};
use windtunnel_wire::vnet::VirtioNetHeader;

use super::judge::{RouterArrival, RouterVerdict};
use super::ways::{KnownWays, Surveyor};
use crate::event::{BoundedQueue, NetworkEvent, NetworkEventKind};
use crate::network::LaneEndpoint;
use crate::packet::{EmulatedPacket, EnteringFrame, PacketTrainShape};
use crate::router::{self, ForwardingDecision, ForwardingRefusal};
use crate::services::{
    FailOverDisposition, FailOverSender, LostReplicaFrame, Redirection, RedirectionHit,
    ServiceRedirector, TunnelEntry,
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

impl RedirectionPoint<'_> {
    /// What a router without a middlebox does with a packet.
    #[inline]
    pub(super) fn judge(&mut self, now: Time, arrival: &RouterArrival<'_>) -> RouterVerdict {
        let RouterArrival { router: id, packet, .. } = *arrival;
        if let Some(tunnel) = arrival.tunnel {
            if tunnel.end == TunnelEndpoint::Router(id) {
                return judge_arrived(&packet.info);
            }
            let network = &mut self.net.network;
            return RouterVerdict::plain(router::decide_tunnel(network, id, packet, tunnel));
        }
        let decision = router::decide(&mut self.net.network, &self.services.filter, id, packet);
        if decision != ForwardingDecision::Service {
            return RouterVerdict::plain(decision);
        }
        self.judge_service(now, id, packet, arrival.aim)
    }

    #[inline(never)]
    fn judge_service(
        &mut self,
        now: Time,
        id: RouterId,
        packet: &ParsedPacket<'_>,
        aim: Option<PortId>,
    ) -> RouterVerdict {
        // What ends here begins nothing.
        let expires = packet.info.ttl <= 1;
        match self.redirect(now, id, packet, aim, !expires) {
            Redirection::None => {
                RouterVerdict::plain(router::decide_route(&mut self.net.network, id, packet))
            }
            Redirection::Answer => RouterVerdict::plain(ForwardingDecision::Echo),
            Redirection::Lost(service, on_loss) => RouterVerdict::Lost(service, on_loss),
            Redirection::To(..) | Redirection::Keep if expires => EXPIRED,
            Redirection::Keep => RouterVerdict::Keep,
            Redirection::To(entry) => {
                let network = &mut self.net.network;
                let decision = router::decide_tunnel(network, id, packet, &entry.tunnel);
                RouterVerdict::Route(decision, Some(entry))
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
        frame: &mut EnteringFrame<'_>,
    ) -> Result<Option<PacketTunnel>, LostReplicaFrame> {
        let generation = self.ways.generation;
        let mut surveyor = Surveyor { known: self.ways, net: self.net };
        let way = &mut |router, end| surveyor.way(router, end);
        let tunnel = self.services.take_reply(frame, generation, way)?;
        if let Some(tunnel) = &tunnel {
            self.lead_back(self.net.network.lane_of(frame.origin.port), frame.bytes, tunnel);
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

    /// Puts a packet into a tunnel, and counts it if that leads to a replica.
    pub(super) fn enter_tunnel(
        &mut self,
        id: RouterId,
        packet: &mut EmulatedPacket,
        entry: TunnelEntry,
    ) {
        if let Some(hit) = entry.hit {
            self.count_hit(id, hit, &packet.shape);
            packet.aim = None;
        }
        packet.enter(entry.tunnel);
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
fn judge_arrived(info: &IpPacketSummary) -> RouterVerdict {
    if info.ttl <= 1 { EXPIRED } else { RouterVerdict::Keep }
}

const EXPIRED: RouterVerdict =
    RouterVerdict::Route(ForwardingDecision::Refuse(ForwardingRefusal::Expired), None);
