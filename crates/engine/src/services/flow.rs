//! Flows: which have a replica, what their packets say of them, and how a new one gets its own.

use windtunnel_model::plan::{Encapsulation, LoadBalancingPolicy, Pinning, TransportProtocol};
use windtunnel_model::{PortId, RouterId, Time};
use windtunnel_wire::tcp;

use super::call::{Call, CallKind};
use super::choice::{FindWay, ReplicaSelector};
use super::pins::{CoarseTime, Pin, PinnedFlowKey, PinnedFlowPhase};
use super::rows::RedirectionRow;
use super::{ReplicaAssignment, ReplicaChoiceChange, ServiceRedirector};

impl ServiceRedirector {
    /// Under what a router knows a flow.
    pub(super) fn key(
        &self,
        router: RouterId,
        number: u16,
        row: &RedirectionRow,
        call: &Call,
    ) -> PinnedFlowKey {
        let Call { client, client_port, .. } = *call;
        let router = self.is_apart(row).then_some(router);
        PinnedFlowKey { client, client_port, row: number, router }
    }

    /// Whether each router has pins of its own for a row's service.
    pub(super) fn is_apart(&self, row: &RedirectionRow) -> bool {
        self.list[usize::from(row.service)].planned.pins == Pinning::PerRouter
    }

    /// The pin of a flow whose time is not over.
    pub(super) fn known(&self, now: CoarseTime, key: &PinnedFlowKey) -> Option<u32> {
        let number = self.pins.find(key)?;
        (!self.is_over(now, self.pins.get(number))).then_some(number)
    }

    /// Where a pinned flow's packet goes; `None`: it is to be given a replica anew.
    pub(super) fn follow(
        &self,
        pin: u32,
        row: &RedirectionRow,
        call: &Call,
    ) -> Option<ReplicaAssignment> {
        let pin = self.pins.get(pin);
        let replica = &self.list[usize::from(row.service)].replicas[usize::from(pin.replica)];
        let stays = match pin.state {
            // No connection: no answer to the client's SYN came, or none that it acknowledged.
            PinnedFlowPhase::Opening => replica.serves(row.position) || !call.opens(),
            PinnedFlowPhase::Flow => replica.serves(row.position),
            // Another SYN is another connection; a copy of the old one is none.
            _ => !(call.opens() && sequence(call) != pin.initial),
        };
        let is_lost = replica.lost && pin.state != PinnedFlowPhase::Flow;
        stays.then_some(if is_lost {
            ReplicaAssignment::Lost
        } else {
            ReplicaAssignment::To(pin.replica)
        })
    }

    /// Notes what a packet says of its flow.
    pub(super) fn touch(
        &mut self,
        now: CoarseTime,
        router: RouterId,
        number: u32,
        row: &RedirectionRow,
        call: &Call,
    ) {
        let CallKind::Segment { flags, acknowledgement, .. } = call.kind else {
            if !matches!(call.kind, CallKind::Error) {
                let pin = self.pins.get_mut(number);
                pin.seen = now.latest(pin.seen);
            }
            return;
        };
        let pin = self.pins.get_mut(number);
        pin.seen = now.latest(pin.seen);
        pin.router = router;
        if flags & tcp::ACK != 0 {
            pin.acknowledged = acknowledgement;
        }
        let before = pin.state;
        if flags & (tcp::FIN | tcp::RST) != 0 {
            pin.state = PinnedFlowPhase::Closing;
        } else if flags & tcp::ACK != 0 && before == PinnedFlowPhase::Opening {
            pin.state = PinnedFlowPhase::Open;
        }
        let ends = before.is_connection() && !pin.state.is_connection();
        let replica = pin.replica;
        if ends {
            let service = &mut self.list[usize::from(row.service)];
            service.replicas[usize::from(replica)].counters.live_connections -= 1;
        }
    }

    /// Whether a router was the last to redirect a flow.
    pub(super) fn is_of(&self, pin: u32, router: RouterId) -> bool {
        self.pins.get(pin).router == router
    }

    /// Whether there is a way to a replica from the router that asks.
    pub(super) fn reaches(
        &self,
        row: &RedirectionRow,
        replica: u16,
        way: &mut FindWay<'_>,
    ) -> bool {
        let service = &self.list[usize::from(row.service)];
        let way = way(service.replicas[usize::from(replica)].port);
        let passes_nodes = service.planned.encapsulation != Encapsulation::None;
        way.is_some_and(|way| passes_nodes || !way.passes_node)
    }

    /// The replica that is the node of a port.
    pub(super) fn replica_at(&self, row: &RedirectionRow, port: PortId) -> Option<u16> {
        let owner = self.owners[port.index()];
        let replicas = &self.list[usize::from(row.service)].replicas;
        let replica = (0..).zip(replicas).find(|(_, replica)| replica.node == owner);
        replica.map(|(number, _)| number)
    }

    /// Gives a flow a replica.
    pub(super) fn begin(
        &mut self,
        now: Time,
        router: RouterId,
        key: PinnedFlowKey,
        row: &RedirectionRow,
        call: &Call,
        way: &mut FindWay<'_>,
    ) -> ReplicaAssignment {
        // A flow that is not known has sent nothing that an error could be about.
        if matches!(call.kind, CallKind::Error) {
            return ReplicaAssignment::Nowhere;
        }
        let chosen = self.choose(router, row, call, way);
        let chosen = chosen.filter(|_| !self.is_of_origin(row, call));
        let service = &mut self.list[usize::from(row.service)];
        let Some(replica) = chosen else {
            service.counters.unserved += 1;
            return ReplicaAssignment::Nowhere;
        };
        // A reset of nothing begins nothing.
        if call.flags() & tcp::RST == 0 {
            let picked_up = row.port.transport == TransportProtocol::Tcp && !call.opens();
            service.counters.picked_up += u64::from(picked_up);
            self.note_plain(row);
            self.note_choice(router, key.row, replica);
            self.note_moved_flow(CoarseTime::of(now), &key, row, replica);
            let turns = &mut self.list[usize::from(row.service)].turns;
            turns.entry(key.router).or_default().took(replica);
            self.pin(now, router, key, replica, call);
        }
        ReplicaAssignment::To(replica)
    }

    /// Whether it is in the middle of a connection that began while no replica was there: that has
    /// no pin, and goes on at the origin. Routers that are apart cannot know that.
    pub(super) fn is_of_origin(&self, row: &RedirectionRow, call: &Call) -> bool {
        let has_origin = self.list[usize::from(row.service)].planned.has_origin;
        let may_be = has_origin && !self.is_apart(row);
        may_be && row.port.transport == TransportProtocol::Tcp && !call.opens()
    }

    pub(super) fn choose(
        &self,
        router: RouterId,
        row: &RedirectionRow,
        call: &Call,
        way: &mut FindWay<'_>,
    ) -> Option<u16> {
        let service = &self.list[usize::from(row.service)];
        let router = self.is_apart(row).then_some(router);
        let question = ReplicaSelector {
            policy: service.planned.policy,
            hash: service.planned.hash,
            position: row.position,
            passes_nodes: service.planned.encapsulation != Encapsulation::None,
            salt: service.planned.salt,
            turn: (router, service.turns.get(&router).copied().unwrap_or_default()),
            call,
        };
        question.choose(&service.replicas, way, &self.tables)
    }

    /// Counts a flow that a router gives another replica than a router before it did.
    fn note_moved_flow(
        &mut self,
        now: CoarseTime,
        key: &PinnedFlowKey,
        row: &RedirectionRow,
        replica: u16,
    ) {
        if key.router.is_none() {
            return;
        }
        let others = self.keys_of(key, row).filter_map(|key| self.known(now, &key));
        // The last that redirected it.
        let last = others.map(|pin| self.pins.get(pin)).min_by_key(|pin| now.since(pin.seen));
        let moves =
            last.is_some_and(|pin| pin.state != PinnedFlowPhase::Closing && pin.replica != replica);
        self.list[usize::from(row.service)].counters.moved_flows += u64::from(moves);
    }

    /// Under what all routers know a flow that may know it.
    pub(super) fn keys_of(
        &self,
        key: &PinnedFlowKey,
        row: &RedirectionRow,
    ) -> impl Iterator<Item = PinnedFlowKey> + use<> {
        let routers = match self.is_apart(row) {
            true => self.list[usize::from(row.service)].planned.routers().map(Some).collect(),
            false => alloc::vec![None],
        };
        let key = *key;
        routers.into_iter().map(move |router| PinnedFlowKey { router, ..key })
    }

    fn pin(&mut self, now: Time, router: RouterId, key: PinnedFlowKey, replica: u16, call: &Call) {
        let tick = CoarseTime::of(now);
        // One whose time is over may still be there.
        if let Some(old) = self.pins.find(&key) {
            self.expire(old);
        }
        let state = match (self.rows.get(key.row).port.transport, call.flags()) {
            (TransportProtocol::Udp, _) => PinnedFlowPhase::Flow,
            (TransportProtocol::Tcp, flags) if flags & tcp::FIN != 0 => PinnedFlowPhase::Closing,
            (TransportProtocol::Tcp, _) if call.opens() => PinnedFlowPhase::Opening,
            (TransportProtocol::Tcp, _) => PinnedFlowPhase::Open,
        };
        let mut pin = Pin::new(key, replica, state, tick);
        pin.router = router;
        if let CallKind::Segment { sequence, acknowledgement, .. } = call.kind {
            (pin.initial, pin.acknowledged) = (sequence, acknowledgement);
        }
        if self.pins.insert(pin).is_none() {
            self.evict(tick);
            self.pins.insert(pin);
        }
        self.next_sweep.get_or_insert(now + self.pins.sweep_period());
        let service = &mut self.list[usize::from(self.rows.get(key.row).service)];
        let counters = &mut service.replicas[usize::from(replica)].counters;
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

    /// Notes what a router chose, where that is the same for every flow.
    fn note_choice(&mut self, router: RouterId, row: u16, replica: u16) {
        let service = &self.list[usize::from(self.rows.get(row).service)];
        let same_for_all = matches!(
            service.planned.policy,
            LoadBalancingPolicy::Nearest | LoadBalancingPolicy::Hops | LoadBalancingPolicy::Ordered
        );
        let key = (row, router);
        if !same_for_all || self.choices.len() >= CHOICES_MAX && !self.choices.contains_key(&key) {
            return;
        }
        let before = self.choices.insert(key, replica);
        if before.is_some_and(|before| before != replica) {
            let replica = service.replicas[usize::from(replica)].node;
            self.moved = Some(ReplicaChoiceChange { row, replica });
        }
    }
}

fn sequence(call: &Call) -> u32 {
    match call.kind {
        CallKind::Segment { sequence, .. } => sequence,
        CallKind::Plain | CallKind::Error => 0,
    }
}

/// Choices that are remembered to notice when they change.
const CHOICES_MAX: usize = 1 << 16;
