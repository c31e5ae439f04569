//! Flows: which have a replica, and what their packets say of them.

mod sweep;
mod view;

use windtunnel_model::plan::TransportProtocol;
use windtunnel_model::{NodeId, RouterId, Time};
use windtunnel_wire::tcp;

use super::ReplicaAssignment;
use super::call::{CallKind, ServicePacketHeader};
use super::directory::{RedirectionRequest, ServiceDirectory};
use super::pins::{CoarseTime, PinnedFlowKey, PinnedFlowPhase, ReplicaPin, ReplicaPinTable};
use super::reply::ServiceReplySegment;

/// The flows of all services that have a replica.
#[derive(Debug)]
pub(super) struct PinnedFlowTable {
    pins: ReplicaPinTable,
    /// When pins are looked at next.
    next_sweep: Option<Time>,
}

impl PinnedFlowTable {
    /// For at most so many flows.
    pub(super) fn new(capacity: usize) -> PinnedFlowTable {
        PinnedFlowTable { pins: ReplicaPinTable::new(capacity), next_sweep: None }
    }

    /// The pin of a flow whose time is not over.
    #[inline]
    pub(super) fn known(
        &self,
        services: &ServiceDirectory,
        now: CoarseTime,
        key: &PinnedFlowKey,
    ) -> Option<u32> {
        let number = self.pins.find(key)?;
        (!services.is_over(now, self.pins.get(number))).then_some(number)
    }

    /// Where a pinned flow's packet goes; `None`: it is to be given a replica anew.
    pub(super) fn follow(
        &self,
        services: &ServiceDirectory,
        pin: u32,
        request: &RedirectionRequest,
    ) -> Option<ReplicaAssignment> {
        let RedirectionRequest { row, call, .. } = request;
        let pin = self.pins.get(pin);
        let replica = &services.of(row).replicas[usize::from(pin.replica)];
        let stays = match pin.state {
            // No connection: no answer to the client's SYN came, or none that it acknowledged.
            PinnedFlowPhase::Opening => replica.serves(row.position) || !call.opens(),
            PinnedFlowPhase::Flow => replica.serves(row.position),
            // Another SYN is another connection; a copy of the old one is none.
            _ => !(call.opens() && sequence(call) != pin.initial),
        };
        let is_lost = replica.state.is_lost && pin.state != PinnedFlowPhase::Flow;
        stays.then_some(if is_lost {
            ReplicaAssignment::Lost
        } else {
            ReplicaAssignment::To(pin.replica)
        })
    }

    /// Whether a router was the last to redirect a flow.
    #[inline]
    pub(super) fn is_of(&self, pin: u32, router: RouterId) -> bool {
        self.pins.get(pin).router == router
    }

    /// Notes what a packet says of its flow.
    pub(super) fn touch(
        &mut self,
        services: &mut ServiceDirectory,
        number: u32,
        request: &RedirectionRequest,
    ) {
        let now = request.tick();
        let pin = self.pins.get_mut(number);
        let (flags, acknowledgement) = match request.call.kind {
            CallKind::Segment { flags, acknowledgement, .. } => (flags, acknowledgement),
            CallKind::Plain => {
                pin.seen = now.latest(pin.seen);
                return;
            }
            CallKind::Error => return,
        };
        pin.seen = now.latest(pin.seen);
        pin.router = request.router;
        if flags & tcp::ACK != 0 {
            pin.acknowledged = acknowledgement;
        }
        let before = pin.state;
        if flags & (tcp::FIN | tcp::RST) != 0 {
            pin.state = PinnedFlowPhase::Closing;
        } else if flags & tcp::ACK != 0 && before == PinnedFlowPhase::Opening {
            pin.state = PinnedFlowPhase::Open;
        }
        if before.is_connection() && !pin.state.is_connection() {
            let replica = &mut services.of_mut(&request.row).replicas[usize::from(pin.replica)];
            replica.counters.live_connections -= 1;
        }
    }

    /// A replica's kernel ends a connection.
    pub(super) fn reset(
        &mut self,
        services: &mut ServiceDirectory,
        node: NodeId,
        reply: &ServiceReplySegment,
    ) {
        let service = services.of_mut(&reply.row);
        for key in service.planned.keys_of(&reply.key) {
            let Some(number) = self.pins.find(&key) else { continue };
            let pin = self.pins.get_mut(number);
            let replica = &mut service.replicas[usize::from(pin.replica)];
            if replica.state.node == node {
                replica.counters.live_connections -= u64::from(pin.state.is_connection());
                pin.state = PinnedFlowPhase::Closing;
            }
        }
    }

    /// Pins a flow to the replica that it is given.
    pub(super) fn pin(
        &mut self,
        services: &mut ServiceDirectory,
        request: &RedirectionRequest,
        replica: u16,
    ) {
        let RedirectionRequest { key, row, call, .. } = request;
        let tick = request.tick();
        // One whose time is over may still be there.
        if let Some(old) = self.pins.find(key) {
            self.expire(services, old);
        }
        let state = match (row.port.transport, call.flags()) {
            (TransportProtocol::Udp, _) => PinnedFlowPhase::Flow,
            (TransportProtocol::Tcp, flags) if flags & tcp::FIN != 0 => PinnedFlowPhase::Closing,
            (TransportProtocol::Tcp, _) if call.opens() => PinnedFlowPhase::Opening,
            (TransportProtocol::Tcp, _) => PinnedFlowPhase::Open,
        };
        let mut pin = ReplicaPin::new(*key, replica, state, tick);
        pin.router = request.router;
        if let CallKind::Segment { sequence, acknowledgement, .. } = call.kind {
            (pin.initial, pin.acknowledged) = (sequence, acknowledgement);
        }
        if self.pins.insert(pin).is_none() {
            self.evict(services, tick);
            self.pins.insert(pin);
        }
        self.next_sweep.get_or_insert(request.now + self.pins.sweep_period());
        let counters = &mut services.of_mut(row).replicas[usize::from(replica)].counters;
        match state {
            PinnedFlowPhase::Flow => {
                counters.flows += 1;
                counters.live_flows += 1;
            }
            PinnedFlowPhase::Opening | PinnedFlowPhase::Open => {
                counters.connections += 1;
                counters.live_connections += 1;
            }
            PinnedFlowPhase::Closing | PinnedFlowPhase::Free => counters.connections += 1,
        }
    }

    /// Counts a flow that a router gives another replica than a router before it did.
    pub(super) fn note_moved(
        &self,
        services: &mut ServiceDirectory,
        request: &RedirectionRequest,
        replica: u16,
    ) {
        let RedirectionRequest { key, row, .. } = request;
        if key.router.is_none() {
            return;
        }
        let now = request.tick();
        let keys = services.of(row).planned.keys_of(key);
        let others = keys.filter_map(|key| self.known(services, now, &key));
        // The last that redirected it.
        let last = others.map(|pin| self.pins.get(pin)).min_by_key(|pin| now.since(pin.seen));
        let moves =
            last.is_some_and(|pin| pin.state != PinnedFlowPhase::Closing && pin.replica != replica);
        services.of_mut(row).counters.moved_flows += u64::from(moves);
    }
}

fn sequence(call: &ServicePacketHeader) -> u32 {
    match call.kind {
        CallKind::Segment { sequence, .. } => sequence,
        CallKind::Plain | CallKind::Error => 0,
    }
}
