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
    ConnectionReplicator, RedirectorNumber, ReplicaId, ReplicatedConnectionKey, ReplicationConfig,
    ReplicationRefusal, TransmitDestination, TransmitRequest,
};
use windtunnel_model::plan::{self, FailOver, NetworkModel, Plan, TransportProtocol};
use windtunnel_model::{NodeId, PortId, RouterId, ServiceId, Time};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{ethernet, vnet};

use super::call::{CallKind, ServicePacketHeader, unmapped};
use super::directory::ServiceDirectory;
use super::rows::RedirectionRow;
use super::{RedirectionHit, TunnelEntry};
use crate::tunnel::{PacketTunnel, TunnelEndpoint};

pub use counters::{ExpelledCounts, FailOverCounters};
use news::FailOverNewsQueue;
pub use news::{FailOverNews, FailOverWhat, ReplicaFault};

/// What is kept for the services whose connections outlive their server.
#[derive(Debug)]
pub(super) struct TransparentFailOver {
    /// Of those services whose connections do not end with their replica, by number: with each packet
    /// they are asked what is due, so that the others are not among them.
    services: Vec<(u16, FailOverConnections)>,
    news: FailOverNewsQueue,
}

/// Of one service.
#[derive(Debug)]
pub(super) struct FailOverConnections {
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
pub(crate) enum FailOverDisposition {
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
    pub(crate) to: Option<TunnelEntry>,
    pub(crate) vnet: vnet::VirtioNetHeader,
    pub(crate) frame: Vec<u8>,
}

impl TransparentFailOver {
    pub(super) fn new(plan: &Plan) -> TransparentFailOver {
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
        TransparentFailOver { services, news: FailOverNewsQueue::default() }
    }

    /// What is kept for a service; `None`: its connections end with their replica.
    pub(super) fn of(&self, service: u16) -> Option<&FailOverConnections> {
        Some(&self.services[self.position(service)?].1)
    }

    pub(super) fn of_mut(&mut self, service: u16) -> Option<&mut FailOverConnections> {
        let position = self.position(service)?;
        Some(&mut self.services[position].1)
    }

    fn position(&self, service: u16) -> Option<usize> {
        self.services.binary_search_by_key(&service, |(number, _)| *number).ok()
    }

    /// Takes a packet that a replica sent to the holder of its connection.
    pub(super) fn take_of_replica(
        &mut self,
        services: &mut ServiceDirectory,
        now: Time,
        node: NodeId,
        header: &vnet::VirtioNetHeader,
        frame: &[u8],
    ) -> FailOverDisposition {
        let Ok(packet) = ParsedPacket::parse(frame) else { return FailOverDisposition::Dropped };
        let Some((service, key)) = services.rows.spoken(&packet) else {
            return FailOverDisposition::Plain;
        };
        let Some(held) = self.of_mut(service) else { return FailOverDisposition::Plain };
        let taken = held.connections.handle_replica(now, ReplicaId(node.0), header, frame);
        let taken = held.judge(taken, &key);
        self.note_news(services, service);
        taken
    }

    /// The tunnel to its holder for a packet that a node sends in a service's name, if it is of a
    /// connection that is kept.
    pub(super) fn way_back(
        &self,
        services: &ServiceDirectory,
        port: PortId,
        packet: &ParsedPacket<'_>,
    ) -> Option<PacketTunnel> {
        let (service, key) = services.rows.spoken(packet)?;
        let holder = self.of(service)?.holder(&key)?;
        let is_v6 = packet.info.source.is_ipv6();
        let planned = &services.list[usize::from(service)].planned;
        Some(planned.tunnel(is_v6, TunnelEndpoint::Port(port), TunnelEndpoint::Router(holder)))
    }

    /// The next packet that the protocol sends.
    pub(super) fn poll_sent(&mut self, services: &ServiceDirectory) -> Option<FailOverPacket> {
        let mut each = self.services.iter_mut();
        let (service, transmit) =
            each.find_map(|(service, held)| Some((*service, held.connections.poll_transmit()?)))?;
        let TransmitRequest { place: RedirectorNumber(at), to, vnet, frame } = transmit;
        let (id, at) = (ServiceId(service.into()), RouterId(at));
        let to = match to {
            TransmitDestination::Client => None,
            TransmitDestination::Replica(ReplicaId(node)) => {
                let known = &services.list[usize::from(service)];
                let number = known.position(NodeId(node))?;
                let end = TunnelEndpoint::Port(known.replicas[number].port);
                let view = ethernet::EthernetFrame::parse(&frame);
                let is_v6 = view.is_ok_and(|view| view.ethertype() == ethernet::IPV6);
                let tunnel = known.planned.tunnel(is_v6, TunnelEndpoint::Router(at), end);
                let hit = RedirectionHit { service, replica: u16::try_from(number).ok()? };
                Some(TunnelEntry { tunnel, hit: Some(hit) })
            }
        };
        Some(FailOverPacket { service: id, at, to, vnet, frame })
    }

    /// Counts a packet of the protocol for which there was no memory.
    pub(super) fn count_unsent(&mut self, service: ServiceId) {
        let Ok(service) = u16::try_from(service.0) else { return };
        if let Some(held) = self.of_mut(service) {
            held.counters.no_memory += 1;
        }
    }

    /// Counts a flow to a row that begins with one replica only.
    pub(super) fn count_plain(&mut self, row: &RedirectionRow) {
        let is_tcp = row.port.transport == TransportProtocol::Tcp;
        if let Some(held) = self.of_mut(row.service).filter(|_| is_tcp) {
            held.counters.plain += 1;
        }
    }

    /// A replica's node is gone.
    pub(super) fn lose(
        &mut self,
        services: &mut ServiceDirectory,
        now: Time,
        service: ServiceId,
        replica: NodeId,
    ) {
        let Ok(service) = u16::try_from(service.0) else { return };
        if let Some(held) = self.of_mut(service) {
            held.connections.replica_lost(now, ReplicaId(replica.0));
            self.note_news(services, service);
        }
    }

    /// When something is due.
    pub(super) fn next(&self) -> Option<Time> {
        self.services.iter().filter_map(|(_, held)| held.connections.poll_timeout()).min()
    }

    /// Does it.
    pub(super) fn wake(&mut self, services: &mut ServiceDirectory, now: Time) {
        for position in 0..self.services.len() {
            let (service, held) = &mut self.services[position];
            let service = *service;
            if held.connections.poll_timeout().is_some_and(|at| at <= now) {
                held.connections.handle_timeout(now);
                self.note_news(services, service);
            }
        }
    }
}

impl FailOverConnections {
    /// The router that keeps a connection.
    pub(super) fn holder(&self, key: &ReplicatedConnectionKey) -> Option<RouterId> {
        self.connections.place(key).map(|RedirectorNumber(holder)| RouterId(holder))
    }

    /// Takes a packet that a client sent, or a router with an error for the service, to the holder
    /// of its connection. `order`: the replicas of a new one.
    pub(super) fn take_of_client(
        &mut self,
        now: Time,
        router: RouterId,
        call: &ServicePacketHeader,
        header: &vnet::VirtioNetHeader,
        frame: &mut [u8],
        order: &[ReplicaId],
    ) -> FailOverDisposition {
        let taken = if matches!(call.kind, CallKind::Error) {
            self.connections.handle_icmp(now, frame)
        } else {
            let place = RedirectorNumber(router.0);
            self.connections.handle_client_at(now, place, header, frame, order)
        };
        self.judge(taken, &ends(call))
    }

    /// What became of a packet, which is of this connection.
    fn judge(
        &mut self,
        taken: Result<(), ReplicationRefusal>,
        key: &ReplicatedConnectionKey,
    ) -> FailOverDisposition {
        match taken {
            Ok(()) => FailOverDisposition::Yes,
            // With translated numbers on one side only, it would be another connection's.
            Err(_) if self.connections.place(key).is_some() => {
                self.counters.unusable += 1;
                FailOverDisposition::Dropped
            }
            Err(_) => FailOverDisposition::Plain,
        }
    }
}

/// The ends of a packet to a service.
pub(super) fn ends(call: &ServicePacketHeader) -> ReplicatedConnectionKey {
    ReplicatedConnectionKey {
        client: SocketAddr::new(unmapped(call.client), call.client_port),
        service: SocketAddr::new(unmapped(call.address), call.port),
    }
}
