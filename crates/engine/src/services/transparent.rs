//! Connections that outlive their server: what redirectors do for services with
//! `fail-over: transparent`.
//!
//! The protocol is the room `failover`: one state machine for each such service, over all
//! redirectors. A connection is kept at the redirector that met its SYN (its *holder*), and stays
//! there whatever routes do: another redirector sends what it meets of it to the holder, in a
//! tunnel, and the replicas' nodes send their answers to the holder, in a tunnel. What the holder
//! sends leaves from there. `engine/core/replicate.rs` moves the packets.

mod counters;
mod news;
mod view;

use alloc::vec::Vec;
use core::net::SocketAddr;

use windtunnel_failover::{
    ConnectionReplicator, RedirectorNumber, ReplicaId, ReplicationConfig, ReplicationRefusal,
    TransmitDestination, TransmitRequest,
};
use windtunnel_model::plan::{
    self, Encapsulation, FailOver, NetworkModel, Plan, TransportProtocol,
};
use windtunnel_model::{NodeId, PortId, RouterId, ServiceId, Time};
use windtunnel_wire::packet::{Info, ParsedPacket};
use windtunnel_wire::{mss, tcp, vnet};

use super::call::{Call, CallKind, unmapped};
use super::pins::{CoarseTime, PinnedFlowKey};
use super::rows::RedirectionRow;
use super::{FindWay, Hit, Redirection, ReplicaPathMetrics, ServiceRedirector};
use crate::records::mapped;
use crate::tunnel::{Mouth, PacketTunnel};

pub use counters::{ExpelledCounts, FailOverCounters};
use news::FailOverNewsQueue;
pub use news::{FailOverNews, FailOverWhat, ReplicaFault};

/// What is kept for the services whose connections outlive their server.
#[derive(Debug)]
pub(super) struct Transparent {
    /// Of those services whose connections do not end with their replica, by number: with each packet
    /// they are asked what is due, so that the others are not among them.
    services: Vec<(u16, FailOverConnections)>,
    news: FailOverNewsQueue,
}

/// Of one service.
#[derive(Debug)]
struct FailOverConnections {
    connections: ConnectionReplicator,
    counters: FailOverCounters,
}

/// Who sent a packet that came to the holder of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailOverSender {
    /// A client, or a router with an error for the service.
    Client,
    /// A replica.
    Replica(NodeId),
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The protocol has it.
    Yes,
    /// It is of a connection that is not kept here: it is to be treated as with `fail-over: new`.
    Plain,
    /// It is of one that is, and cannot be used.
    Dropped,
}

/// A packet that the protocol sends.
#[derive(Debug)]
pub(crate) struct FailOverPacket {
    pub(crate) service: ServiceId,
    /// From where.
    pub(crate) at: RouterId,
    /// How it gets to a replica; `None`: it is for the client.
    pub(crate) to: Option<(PacketTunnel, Hit)>,
    pub(crate) vnet: vnet::VirtioNetHeader,
    pub(crate) frame: Vec<u8>,
}

impl Transparent {
    pub(super) fn new(plan: &Plan) -> Transparent {
        let held = |(number, service): (u16, &plan::Service)| {
            let config = ReplicationConfig {
                on_loss: match service.on_loss {
                    plan::ReplicaLossResponse::Reset => {
                        windtunnel_failover::LastReplicaLossPolicy::Reset
                    }
                    plan::ReplicaLossResponse::Silent => {
                        windtunnel_failover::LastReplicaLossPolicy::Silent
                    }
                },
                ..ReplicationConfig::default()
            };
            let held = || FailOverConnections {
                connections: ConnectionReplicator::new(config),
                counters: FailOverCounters::default(),
            };
            // With the model of paths packets do not wait at the holder; files are refused.
            let is_held =
                service.fail_over == FailOver::Transparent && plan.model == NetworkModel::Hops;
            is_held.then(|| (number, held()))
        };
        let services = (0..).zip(&plan.services).filter_map(held).collect();
        Transparent { services, news: FailOverNewsQueue::default() }
    }

    fn of(&self, service: u16) -> Option<&FailOverConnections> {
        Some(&self.services[self.position(service)?].1)
    }

    fn of_mut(&mut self, service: u16) -> Option<&mut FailOverConnections> {
        let position = self.position(service)?;
        Some(&mut self.services[position].1)
    }

    fn position(&self, service: u16) -> Option<usize> {
        self.services.binary_search_by_key(&service, |(number, _)| *number).ok()
    }

    /// When something is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.services.iter().filter_map(|(_, held)| held.connections.poll_timeout()).min()
    }
}

impl ServiceRedirector {
    /// Whether a packet belongs to a connection that is kept, or begins one; and where that is.
    pub(super) fn held(
        &self,
        now: CoarseTime,
        router: RouterId,
        key: &PinnedFlowKey,
        row: &RedirectionRow,
        call: &Call,
        way: &mut FindWay<'_>,
    ) -> Option<Redirection> {
        let held = self.transparent.of(row.service)?;
        let service = ServiceId(row.service.into());
        if let Some(RedirectorNumber(holder)) = held.connections.place(&ends(call)) {
            return Some(Redirection::Held(service, RouterId(holder)));
        }
        let is_plain =
            || self.known(now, key).is_some_and(|pin| self.follow(pin, row, call).is_some());
        let begins = call.protocol == tcp::PROTOCOL
            && call.opens()
            && !is_plain()
            && self.order(router, row, call, way).len() > 1;
        begins.then_some(Redirection::Held(service, router))
    }

    /// The tunnel in which a redirector sends a packet to the holder of its connection.
    pub(crate) fn detour(
        &self,
        service: ServiceId,
        is_v6: bool,
        from: RouterId,
        to: RouterId,
    ) -> PacketTunnel {
        self.tunnel(service, is_v6, Mouth::Router(from), Mouth::Router(to))
    }

    fn tunnel(&self, service: ServiceId, is_v6: bool, start: Mouth, end: Mouth) -> PacketTunnel {
        let encapsulation = self.list[service.index()].planned.encapsulation;
        PacketTunnel { end, start, overhead: overhead(encapsulation, is_v6), fragments: false }
    }

    /// Gives the protocol a packet that came to the holder of its connection.
    pub(crate) fn take_held(
        &mut self,
        now: Time,
        router: RouterId,
        from: FailOverSender,
        header: &vnet::VirtioNetHeader,
        frame: &mut [u8],
        way: &mut FindWay<'_>,
    ) -> Taken {
        match from {
            FailOverSender::Replica(node) => self.take_of_replica(now, node, header, frame),
            FailOverSender::Client => self.take_of_client(now, router, header, frame, way),
        }
    }

    fn take_of_replica(
        &mut self,
        now: Time,
        node: NodeId,
        header: &vnet::VirtioNetHeader,
        frame: &[u8],
    ) -> Taken {
        let Ok(packet) = ParsedPacket::parse(frame) else { return Taken::Dropped };
        let Some((service, key)) = self.spoken(&packet) else { return Taken::Plain };
        let Some(held) = self.transparent.of_mut(service) else { return Taken::Plain };
        let taken = held.connections.handle_replica(now, ReplicaId(node.0), header, frame);
        let taken = held.judge(taken, &key);
        self.note_news(service);
        taken
    }

    fn take_of_client(
        &mut self,
        now: Time,
        router: RouterId,
        header: &vnet::VirtioNetHeader,
        frame: &mut [u8],
        way: &mut FindWay<'_>,
    ) -> Taken {
        let Ok(packet) = ParsedPacket::parse(frame) else { return Taken::Dropped };
        let Some(call) = self.read(CoarseTime::of(now), &packet) else { return Taken::Plain };
        let number = self.rows.find(call.address, call.port, call.protocol);
        let Some(row) = number.map(|number| *self.rows.get(number)) else { return Taken::Plain };
        let mut order = Vec::new();
        if call.opens() {
            order = self.order(router, &row, &call, way);
            self.fit(&row, &order, header, frame, way);
        }
        let Some(held) = self.transparent.of_mut(row.service) else { return Taken::Plain };
        let place = RedirectorNumber(router.0);
        let taken = if matches!(call.kind, CallKind::Error) {
            held.connections.handle_icmp(now, frame)
        } else {
            held.connections.handle_client_at(now, place, header, frame, &order)
        };
        let taken = held.judge(taken, &ends(&call));
        self.note_news(row.service);
        taken
    }

    /// The replicas of a new connection: first that of the policy, then the others, the nearest
    /// first.
    fn order(
        &self,
        router: RouterId,
        row: &RedirectionRow,
        call: &Call,
        way: &mut FindWay<'_>,
    ) -> Vec<ReplicaId> {
        let service = &self.list[usize::from(row.service)];
        let Some(first) = self.choose(router, row, call, way) else { return Vec::new() };
        let others = (0..)
            .zip(&service.replicas)
            .filter(|(number, replica)| *number != first && replica.takes(row.position));
        let there = others.filter_map(|(_, replica)| {
            let way = way(replica.port).filter(|way| !way.passes_node)?;
            Some((way.latency, way.hops, replica.node))
        });
        let mut others: Vec<_> = there.collect();
        others.sort_by_key(|(latency, hops, _)| (*latency, *hops));
        let first = &service.replicas[usize::from(first)];
        // A node's kernel forwards, but does not look into tunnels that are kept beside the bytes.
        if way(first.port).is_none_or(|way| way.passes_node) {
            return Vec::new();
        }
        let first = first.node;
        let all = core::iter::once(first).chain(others.into_iter().map(|(.., node)| node));
        all.map(|node| ReplicaId(node.0)).collect()
    }

    /// Lowers the MSS of a client's SYN to what fits the tunnels of the answers.
    fn fit(
        &mut self,
        row: &RedirectionRow,
        order: &[ReplicaId],
        header: &vnet::VirtioNetHeader,
        frame: &mut [u8],
        way: &mut FindWay<'_>,
    ) {
        let service = &mut self.list[usize::from(row.service)];
        if service.planned.encapsulation != Encapsulation::Clamp {
            return;
        }
        let is_in = |node: NodeId| order.contains(&ReplicaId(node.0));
        let replicas = service.replicas.iter().filter(|replica| is_in(replica.node));
        let mtu = replicas
            .filter_map(|replica| way(replica.port))
            .map(|way: ReplicaPathMetrics| way.mtu_back);
        let most = super::reply::segment_max(mtu.min(), row.is_v6);
        service.counters.clamped += u64::from(mss::clamp(frame, header, most));
    }

    /// The tunnel to its holder for a packet that a node sends in a service's name, if it is of a
    /// connection that is kept.
    pub(super) fn way_back(&self, port: PortId, packet: &ParsedPacket<'_>) -> Option<PacketTunnel> {
        let (service, key) = self.spoken(packet)?;
        let RedirectorNumber(holder) = self.transparent.of(service)?.connections.place(&key)?;
        let is_v6 = packet.info.source.is_ipv6();
        let (start, end) = (Mouth::Port(port), Mouth::Router(RouterId(holder)));
        Some(self.tunnel(ServiceId(service.into()), is_v6, start, end))
    }

    /// The service in whose name a TCP segment is, and its connection.
    fn spoken(
        &self,
        packet: &ParsedPacket<'_>,
    ) -> Option<(u16, windtunnel_failover::ReplicatedConnectionKey)> {
        let info = &packet.info;
        if info.protocol != tcp::PROTOCOL || info.is_later_fragment {
            return None;
        }
        let ports = packet.payload().first_chunk::<4>()?;
        let [port, client_port] =
            [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_be_bytes);
        let number = self.rows.find(mapped(info.source), port, tcp::PROTOCOL)?;
        let key = windtunnel_failover::ReplicatedConnectionKey {
            client: SocketAddr::new(info.final_destination, client_port),
            service: SocketAddr::new(info.source, port),
        };
        Some((self.rows.get(number).service, key))
    }

    /// The next packet that the protocol sends.
    pub(crate) fn poll_sent(&mut self) -> Option<FailOverPacket> {
        let mut services = self.transparent.services.iter_mut();
        let (service, transmit) = services
            .find_map(|(service, held)| Some((*service, held.connections.poll_transmit()?)))?;
        let TransmitRequest { place: RedirectorNumber(at), to, vnet, frame } = transmit;
        let (id, at) = (ServiceId(service.into()), RouterId(at));
        let to = match to {
            TransmitDestination::Client => None,
            TransmitDestination::Replica(ReplicaId(node)) => {
                let replicas = &self.list[usize::from(service)].replicas;
                let number = replicas.iter().position(|it| it.node == NodeId(node))?;
                let end = Mouth::Port(replicas[number].port);
                let is_v6 = Info::parse(&frame).is_ok_and(|info| info.source.is_ipv6());
                let hit = Hit { service, replica: u16::try_from(number).ok()? };
                Some((self.tunnel(id, is_v6, Mouth::Router(at), end), hit))
            }
        };
        Some(FailOverPacket { service: id, at, to, vnet, frame })
    }

    /// Counts a packet of the protocol for which there was no memory.
    pub(crate) fn count_unsent(&mut self, service: ServiceId) {
        let Ok(service) = u16::try_from(service.0) else { return };
        if let Some(held) = self.transparent.of_mut(service) {
            held.counters.no_memory += 1;
        }
    }

    /// A replica's node is gone.
    pub(super) fn lose(&mut self, now: Time, service: ServiceId, replica: NodeId) {
        let Ok(service) = u16::try_from(service.0) else { return };
        if let Some(held) = self.transparent.of_mut(service) {
            held.connections.replica_lost(now, ReplicaId(replica.0));
            self.note_news(service);
        }
    }

    /// When the protocol has something to do.
    pub(crate) fn next_of_held(&self) -> Option<Time> {
        self.transparent.next()
    }

    /// Does it.
    pub(crate) fn wake_held(&mut self, now: Time) {
        for position in 0..self.transparent.services.len() {
            let (service, held) = &mut self.transparent.services[position];
            let service = *service;
            if held.connections.poll_timeout().is_some_and(|at| at <= now) {
                held.connections.handle_timeout(now);
                self.note_news(service);
            }
        }
    }

    /// Counts a flow that begins with one replica only.
    pub(super) fn note_plain(&mut self, row: &RedirectionRow) {
        let is_tcp = row.port.transport == TransportProtocol::Tcp;
        if let Some(held) = self.transparent.of_mut(row.service).filter(|_| is_tcp) {
            held.counters.plain += 1;
        }
    }
}

impl FailOverConnections {
    /// What became of a packet, which is of this connection.
    fn judge(
        &mut self,
        taken: Result<(), ReplicationRefusal>,
        key: &windtunnel_failover::ReplicatedConnectionKey,
    ) -> Taken {
        match taken {
            Ok(()) => Taken::Yes,
            // With translated numbers on one side only, it would be another connection's.
            Err(_) if self.connections.place(key).is_some() => {
                self.counters.unusable += 1;
                Taken::Dropped
            }
            Err(_) => Taken::Plain,
        }
    }
}

/// The ends of a packet to a service.
fn ends(call: &Call) -> windtunnel_failover::ReplicatedConnectionKey {
    windtunnel_failover::ReplicatedConnectionKey {
        client: SocketAddr::new(unmapped(call.client), call.client_port),
        service: SocketAddr::new(unmapped(call.address), call.port),
    }
}

/// Bytes of a tunnel's header.
pub(super) fn overhead(encapsulation: Encapsulation, is_v6: bool) -> u32 {
    match (encapsulation, is_v6) {
        (Encapsulation::None, _) => 0,
        (_, false) => 20,
        (_, true) => 40,
    }
}
