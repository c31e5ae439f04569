//! A service, as redirectors know it: its plan, its replicas, and what was done for it.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cell::RefCell;

use windtunnel_failover::ReplicaId;
use windtunnel_model::plan::{
    FlowPinningScope, Hash, LoadBalancingPolicy, Plan, ReplicaLossResponse, Service as Planned,
    ServicePort, ServiceUpdate, TransportProtocol, TunnelEncapsulation,
};
use windtunnel_model::{NodeId, RouterId};

use super::ServiceCounters;
use super::call::ServicePacketHeader;
use super::choice::{FindWay, ReplicaRotation, ReplicaSelector};
use super::hash::salt;
use super::maglev::MaglevTableCache;
use super::pins::{CoarseDuration, CoarseTime, PinnedFlowKey, PinnedFlowPhase};
use super::replica::ServiceReplica;
use super::rows::RedirectionRow;
use crate::tunnel::{PacketTunnel, TunnelEndpoint};

/// A service.
#[derive(Debug)]
pub(super) struct RedirectedService {
    pub(super) planned: ServicePlan,
    pub(super) replicas: Vec<ServiceReplica>,
    /// Whose turn it is, where the policy has one: of each router that is apart, or of all together.
    turns: BTreeMap<Option<RouterId>, ReplicaRotation>,
    pub(super) counters: ServiceCounters,
}

/// What of a service does not change.
#[derive(Debug)]
pub(super) struct ServicePlan {
    pub(super) ports: Vec<ServicePort>,
    /// By router, as bits.
    at: Vec<u64>,
    pub(super) policy: LoadBalancingPolicy,
    hash: Hash,
    pins: FlowPinningScope,
    pub(super) on_loss: ReplicaLossResponse,
    pub(super) encapsulation: TunnelEncapsulation,
    /// Whether a node has what no replica gets.
    has_origin: bool,
    tcp_idle: CoarseDuration,
    udp_idle: CoarseDuration,
    salt: u64,
}

impl ServicePlan {
    fn new(plan: &Plan, service: &Planned) -> ServicePlan {
        let mut at = alloc::vec![0u64; plan.routers.len().div_ceil(64)];
        for router in &service.at {
            at[router.index() / 64] |= 1 << (router.index() % 64);
        }
        ServicePlan {
            ports: service.ports.clone(),
            at,
            policy: service.policy,
            hash: service.hash,
            pins: service.pins,
            on_loss: service.on_loss,
            encapsulation: service.encapsulation,
            has_origin: service.origin.is_some(),
            tcp_idle: CoarseDuration::of(service.tcp_idle),
            udp_idle: CoarseDuration::of(service.udp_idle),
            salt: salt(plan, &service.name),
        }
    }

    /// The routers that redirect.
    pub(super) fn routers(&self) -> impl Iterator<Item = RouterId> + '_ {
        self.at.iter().zip(0u32..).flat_map(|(word, at)| {
            let set = (0..64u32).filter(move |bit| word >> bit & 1 != 0);
            set.map(move |bit| RouterId(at * 64 + bit))
        })
    }

    /// Whether a router is one of those that redirect.
    #[inline]
    pub(super) fn redirects(&self, router: RouterId) -> bool {
        self.at[router.index() / 64] >> (router.index() % 64) & 1 != 0
    }

    /// Whether each router has pins of its own.
    #[inline]
    fn is_apart(&self) -> bool {
        self.pins == FlowPinningScope::PerRouter
    }

    /// Under what a router knows a flow to a row.
    #[inline]
    pub(super) fn key(
        &self,
        router: RouterId,
        row: u16,
        call: &ServicePacketHeader,
    ) -> PinnedFlowKey {
        let ServicePacketHeader { client, client_port, .. } = *call;
        let router = self.is_apart().then_some(router);
        PinnedFlowKey { client, client_port, row, router }
    }

    /// Under what all routers know a flow that may know it.
    pub(super) fn keys_of(
        &self,
        key: &PinnedFlowKey,
    ) -> impl Iterator<Item = PinnedFlowKey> + use<> {
        let routers = match self.is_apart() {
            true => self.routers().map(Some).collect(),
            false => alloc::vec![None],
        };
        let key = *key;
        routers.into_iter().map(move |router| PinnedFlowKey { router, ..key })
    }

    /// Whether it is in the middle of a connection that began while no replica was there: that has
    /// no pin, and goes on at the origin. Routers that are apart cannot know that.
    pub(super) fn is_of_origin(&self, row: &RedirectionRow, call: &ServicePacketHeader) -> bool {
        let may_be = self.has_origin && !self.is_apart();
        may_be && row.port.transport == TransportProtocol::Tcp && !call.opens()
    }

    /// How long a flow may be silent.
    #[inline]
    pub(super) fn patience(
        &self,
        phase: PinnedFlowPhase,
        transport: TransportProtocol,
    ) -> CoarseDuration {
        match (phase, transport) {
            (PinnedFlowPhase::Closing, _) => CoarseTime::CLOSING.min(self.tcp_idle),
            (_, TransportProtocol::Tcp) => self.tcp_idle,
            (_, TransportProtocol::Udp) => self.udp_idle,
        }
    }

    /// Whether ways to replicas may lead through nodes.
    #[inline]
    fn passes_nodes(&self) -> bool {
        self.encapsulation != TunnelEncapsulation::None
    }

    /// The tunnel of a packet whose outer packet is not fragmented.
    #[inline]
    pub(super) fn tunnel(
        &self,
        is_v6: bool,
        start: TunnelEndpoint,
        end: TunnelEndpoint,
    ) -> PacketTunnel {
        let overhead = match (self.encapsulation, is_v6) {
            (TunnelEncapsulation::None, _) => 0,
            (_, false) => 20,
            (_, true) => 40,
        };
        PacketTunnel { end, start, overhead, fragments: false }
    }
}

impl RedirectedService {
    pub(super) fn new(
        plan: &Plan,
        service: &Planned,
        replicas: Vec<ServiceReplica>,
    ) -> RedirectedService {
        RedirectedService {
            planned: ServicePlan::new(plan, service),
            replicas,
            turns: BTreeMap::new(),
            counters: ServiceCounters::default(),
        }
    }

    /// Where the replica is that is a node.
    pub(super) fn position(&self, node: NodeId) -> Option<usize> {
        self.replicas.iter().position(|replica| replica.state.node == node)
    }

    /// Whether there is a way to a replica from the router that asks.
    #[inline]
    pub(super) fn reaches(&self, replica: u16, way: &mut FindWay<'_>) -> bool {
        let way = way(self.replicas[usize::from(replica)].port);
        way.is_some_and(|way| self.planned.passes_nodes() || !way.passes_node)
    }

    /// The replica that the policy gives to a new flow.
    pub(super) fn choose(
        &self,
        router: RouterId,
        position: u8,
        call: &ServicePacketHeader,
        way: &mut FindWay<'_>,
        tables: &RefCell<MaglevTableCache>,
    ) -> Option<u16> {
        let router = self.planned.is_apart().then_some(router);
        let question = ReplicaSelector {
            policy: self.planned.policy,
            hash: self.planned.hash,
            position,
            passes_nodes: self.planned.passes_nodes(),
            salt: self.planned.salt,
            turn: (router, self.turns.get(&router).copied().unwrap_or_default()),
            call,
        };
        question.choose(&self.replicas, way, tables)
    }

    /// A flow has begun with a replica: it is the next one's turn.
    pub(super) fn took(&mut self, router: Option<RouterId>, replica: u16) {
        self.turns.entry(router).or_default().took(replica);
    }

    /// The nearest replica that serves some port.
    pub(super) fn nearest(&self, way: &mut FindWay<'_>) -> Option<u16> {
        let passes_nodes = self.planned.passes_nodes();
        let ports = (0u8..).take(self.planned.ports.len());
        let there = (0u16..).zip(&self.replicas).filter_map(|(number, replica)| {
            let takes = ports.clone().any(|position| replica.takes(position));
            let way = takes.then(|| way(replica.port))??;
            (passes_nodes || !way.passes_node).then_some((way.latency, way.hops, number))
        });
        there.min().map(|(.., number)| number)
    }

    /// The replicas of a new connection to the port at `position`: first that of the policy, then
    /// the others, the nearest first.
    pub(super) fn order(&self, first: u16, position: u8, way: &mut FindWay<'_>) -> Vec<ReplicaId> {
        let others = (0..)
            .zip(&self.replicas)
            .filter(|(number, replica)| *number != first && replica.takes(position));
        let there = others.filter_map(|(_, replica)| {
            let way = way(replica.port).filter(|way| !way.passes_node)?;
            Some((way.latency, way.hops, replica.state.node))
        });
        let mut others: Vec<_> = there.collect();
        others.sort_by_key(|(latency, hops, _)| (*latency, *hops));
        let first = &self.replicas[usize::from(first)];
        // A node's kernel forwards, but does not look into tunnels that are kept beside the bytes.
        if way(first.port).is_none_or(|way| way.passes_node) {
            return Vec::new();
        }
        let first = first.state.node;
        let all = core::iter::once(first).chain(others.into_iter().map(|(.., node)| node));
        all.map(|node| ReplicaId(node.0)).collect()
    }

    /// Applies a change of one of its replicas.
    pub(super) fn apply(&mut self, number: usize, update: &ServiceUpdate) {
        let ports = &self.planned.ports;
        match update {
            ServiceUpdate::Registered { port, .. } | ServiceUpdate::Withdrawn { port, .. }
                if !ports.contains(port) =>
            {
                self.counters.refused += 1;
            }
            _ => self.replicas[number].apply(update, ports),
        }
    }
}
