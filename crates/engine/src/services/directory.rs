//! The services that there are: their rows, their replicas, and where those are.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cell::RefCell;

use windtunnel_failover::ReplicaId;
use windtunnel_model::plan::{
    Plan, Service as Planned, ServiceChange, ServiceUpdate, TunnelEncapsulation,
};
use windtunnel_model::state::ReplicaState;
use windtunnel_model::{NodeId, PortId, RouterId, ServiceId, Time};
use windtunnel_wire::packet::ParsedPacket;

use super::call::ServicePacketHeader;
use super::choice::FindWay;
use super::hash::salt;
use super::maglev::MaglevTableCache;
use super::pins::{CoarseTime, PinnedFlowKey, ReplicaPin};
use super::replica::ServiceReplica;
use super::rows::{RedirectionRow, RedirectionTable};
use super::service::RedirectedService;
use super::{Redirection, RedirectionHit, ReplicaAssignment, TunnelEntry};
use crate::records::mapped;
use crate::tunnel::{PacketTunnel, TunnelEndpoint};

/// All services of a plan.
#[derive(Debug)]
pub(super) struct ServiceDirectory {
    pub(super) rows: RedirectionTable,
    /// By `ServiceId`.
    pub(super) list: Vec<RedirectedService>,
    /// By port: whether tunnels end at its node.
    ends: Vec<bool>,
    /// By port: its node.
    owners: Vec<NodeId>,
    /// By node: its first interface, and its number for hashes, from its name.
    nodes: Vec<(Option<PortId>, u64)>,
    /// Filled where they are asked for first.
    tables: RefCell<MaglevTableCache>,
    /// How many replicas are lost now, over all services.
    lost_replicas: usize,
}

/// A packet to a service, at a router that redirects it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RedirectionRequest {
    pub(super) now: Time,
    pub(super) router: RouterId,
    pub(super) row: RedirectionRow,
    /// Under what the router knows its flow.
    pub(super) key: PinnedFlowKey,
    pub(super) call: ServicePacketHeader,
}

impl ServiceDirectory {
    pub(super) fn new(plan: &Plan) -> ServiceDirectory {
        let node = |node: &windtunnel_model::plan::Node| {
            (node.interfaces.first().map(|it| it.port), salt(plan, &node.name))
        };
        // Without services these are not used.
        let nodes = if plan.services.is_empty() { &[][..] } else { &plan.nodes };
        let nodes: Vec<_> = nodes.iter().map(node).collect();
        let service = |service: &Planned| {
            let replicas = service.replicas.iter().filter_map(|it| {
                let (port, salt): (Option<PortId>, u64) = nodes[it.node.index()];
                Some(ServiceReplica::new(ReplicaState::new(it.node, it.weight), port?, salt))
            });
            RedirectedService::new(plan, service, replicas.collect())
        };
        let list = plan.services.iter().map(service).collect();
        let replicas = plan.services.iter().flat_map(|service| &service.replicas);
        let replicas: BTreeSet<NodeId> = replicas.map(|it| it.node).collect();
        let owners: Vec<NodeId> = plan.ports().map(|(owner, _)| owner).collect();
        ServiceDirectory {
            rows: RedirectionTable::new(plan),
            list,
            ends: owners.iter().map(|owner| replicas.contains(owner)).collect(),
            owners,
            nodes,
            tables: RefCell::default(),
            lost_replicas: 0,
        }
    }

    /// The service of a row.
    #[inline]
    pub(super) fn of(&self, row: &RedirectionRow) -> &RedirectedService {
        &self.list[usize::from(row.service)]
    }

    #[inline]
    pub(super) fn of_mut(&mut self, row: &RedirectionRow) -> &mut RedirectedService {
        &mut self.list[usize::from(row.service)]
    }

    /// Whether tunnels end at the node of a port.
    #[inline]
    pub(super) fn ends_at(&self, port: PortId) -> bool {
        self.ends[port.index()]
    }

    /// The node of a port.
    #[inline]
    pub(super) fn owner(&self, port: PortId) -> NodeId {
        self.owners[port.index()]
    }

    /// What a packet is to a router; `None`: it does not redirect it.
    #[inline]
    pub(super) fn request(
        &self,
        now: Time,
        router: RouterId,
        call: ServicePacketHeader,
    ) -> Option<RedirectionRequest> {
        let number = self.rows.find(call.address, call.port, call.protocol)?;
        let row = *self.rows.get(number);
        let planned = &self.of(&row).planned;
        if !planned.redirects(router) {
            return None;
        }
        let key = planned.key(router, number, &call);
        Some(RedirectionRequest { now, router, row, key, call })
    }

    /// The replica that is the node of a port.
    pub(super) fn replica_at(&self, row: &RedirectionRow, port: PortId) -> Option<u16> {
        u16::try_from(self.of(row).position(self.owner(port))?).ok()
    }

    /// The replica that a router gives to a new flow.
    pub(super) fn choose(
        &self,
        router: RouterId,
        row: &RedirectionRow,
        call: &ServicePacketHeader,
        way: &mut FindWay<'_>,
    ) -> Option<u16> {
        self.of(row).choose(router, row.position, call, way, &self.tables)
    }

    /// The replicas of a new connection: first that of the policy, then the others, the nearest
    /// first.
    pub(super) fn order(
        &self,
        router: RouterId,
        row: &RedirectionRow,
        call: &ServicePacketHeader,
        way: &mut FindWay<'_>,
    ) -> Vec<ReplicaId> {
        let first = self.choose(router, row, call, way);
        first.map_or_else(Vec::new, |first| self.of(row).order(first, row.position, way))
    }

    /// What becomes of a packet whose replica is known.
    pub(super) fn redirection(
        &self,
        router: RouterId,
        row: &RedirectionRow,
        aim: ReplicaAssignment,
    ) -> Redirection {
        let service = self.of(row);
        let replica = match aim {
            ReplicaAssignment::Nowhere => return Redirection::None,
            ReplicaAssignment::Lost => {
                return Redirection::Lost(ServiceId(row.service.into()), service.planned.on_loss);
            }
            ReplicaAssignment::To(replica) => replica,
        };
        let end = TunnelEndpoint::Port(service.replicas[usize::from(replica)].port);
        let tunnel = PacketTunnel {
            fragments: service.planned.encapsulation == TunnelEncapsulation::Fragment,
            ..service.planned.tunnel(row.is_v6, TunnelEndpoint::Router(router), end)
        };
        let hit = Some(RedirectionHit { service: row.service, replica });
        Redirection::To(TunnelEntry { tunnel, hit })
    }

    /// Counts a packet that is redirected.
    #[inline]
    pub(super) fn count(&mut self, hit: RedirectionHit, packets: u32, bytes: u64) {
        let service = &mut self.list[usize::from(hit.service)];
        let counters = &mut service.replicas[usize::from(hit.replica)].counters;
        counters.packets += u64::from(packets);
        counters.bytes += bytes;
    }

    /// Whether a flow has been silent for its time.
    #[inline]
    pub(super) fn is_over(&self, now: CoarseTime, pin: &ReplicaPin) -> bool {
        let row = self.rows.get(pin.key().row);
        now.since(pin.seen) >= self.of(row).planned.patience(pin.state, row.port.transport)
    }

    /// Takes a change over; the number of the replica that is lost by it.
    pub(super) fn apply(&mut self, change: &ServiceChange) -> Option<usize> {
        let ServiceChange { service: id, update } = *change;
        let service = self.list.get_mut(id.index())?;
        let node = update.replica();
        let Some(number) = service.position(node) else {
            match update {
                ServiceUpdate::Add { .. } => self.add(id, node),
                _ => service.counters.refused += 1,
            }
            return None;
        };
        let was_lost = service.replicas[number].state.is_lost;
        service.apply(number, &update);
        let is_lost = service.replicas[number].state.is_lost;
        self.lost_replicas += usize::from(is_lost);
        self.lost_replicas -= usize::from(was_lost);
        (is_lost && !was_lost).then_some(number)
    }

    fn add(&mut self, id: ServiceId, node: NodeId) {
        let (port, salt) = self.nodes.get(node.index()).copied().unwrap_or_default();
        let service = &mut self.list[id.index()];
        let has_room = service.replicas.len() < Planned::REPLICAS_MAX;
        let (Some(port), true) = (port, has_room) else {
            service.counters.refused += 1;
            return;
        };
        service.replicas.push(ServiceReplica::new(ReplicaState::new(node, 1), port, salt));
        for (ends, owner) in self.ends.iter_mut().zip(&self.owners) {
            *ends |= *owner == node;
        }
    }

    /// Whether replicas are lost now.
    #[inline]
    pub(super) fn has_lost_replicas(&self) -> bool {
        self.lost_replicas > 0
    }

    /// Whether a packet, or a train of so many, from what may be a service's address is a lost
    /// replica's, in the name of its service; such is counted.
    pub(super) fn silence(&mut self, node: NodeId, packet: &ParsedPacket<'_>, count: u32) -> bool {
        let info = &packet.info;
        let source = mapped(info.source);
        let ports = packet.ports();
        // Fragments have no ports: they are in the name of every service with their address.
        let is_of = |row: &&RedirectionRow| {
            let transport = row.port.transport.number();
            let fits = info.is_fragment || ports.is_some_and(|(own, _)| own == row.port.port);
            row.address == source && transport == info.protocol && fits
        };
        let is_lost = |row: &&RedirectionRow| {
            let replicas = &self.of(row).replicas;
            replicas.iter().any(|replica| replica.state.node == node && replica.state.is_lost)
        };
        let row = self.rows.all().iter().filter(is_of).find(is_lost).copied();
        if let Some(row) = row {
            self.of_mut(&row).counters.silenced += u64::from(count);
        }
        row.is_some()
    }
}

impl RedirectionRequest {
    #[inline]
    pub(super) fn tick(&self) -> CoarseTime {
        CoarseTime::of(self.now)
    }
}
