//! What redirectors have done, as the packet loop knows it.

use serde::{Deserialize, Serialize};
use windtunnel_engine::{
    Engine, FailOverCounters, PinCounts, PinnedFlow, ReplicaCounters, ServiceCounters, ServiceRow,
};
use windtunnel_model::{NodeId, Plan, RouterId, ServiceId, Time};

use super::nats::{self, NatTally};
use super::tally::Tally;

/// What redirectors did for each service of the plan, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RedirectionTotals {
    pub services: Vec<ServiceRedirectionTotals>,
    pub pins: PinCounts,
}

/// What they did for one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRedirectionTotals {
    pub counters: ServiceCounters,
    /// Where connections outlive their server.
    pub fail_over: Option<FailOverCounters>,
    /// By replica.
    pub replicas: Vec<(NodeId, ReplicaCounters)>,
}

/// What was redirected until the run was over. Programs that are being ended go on for a moment.
#[derive(Debug)]
pub(super) struct RedirectedAtEnd {
    all: RedirectionTotals,
    /// Packets, by router.
    by_router: Vec<u64>,
}

/// The same, and what one service is doing now.
#[derive(Debug, Default)]
pub struct RedirectionsNow {
    pub all: RedirectionTotals,
    /// Where routers redirect what is new, if it does not depend on the flow.
    pub table: Vec<(RouterId, ServiceRow, Option<NodeId>)>,
    /// How many more rows there are.
    pub table_left_out: usize,
    pub flows: Vec<PinnedFlow>,
    /// What NATs have done.
    pub nats: Vec<NatTally>,
}

impl RedirectionTotals {
    pub(super) fn of(engine: &Engine, plan: &Plan) -> RedirectionTotals {
        if plan.services.is_empty() {
            return RedirectionTotals::default();
        }
        let ids = (0..plan.services.len()).map(ServiceId::from_index);
        let redirected = |id| {
            let replicas = engine.services().replicas(id).into_iter();
            ServiceRedirectionTotals {
                counters: *engine.services().counters(id),
                fail_over: engine.services().fail_over(id),
                replicas: replicas.map(|replica| (replica.state.node, replica.counters)).collect(),
            }
        };
        RedirectionTotals {
            services: ids.map(redirected).collect(),
            pins: engine.services().pins(),
        }
    }

    /// Adds what another part of the run counted.
    pub fn add(&mut self, other: &RedirectionTotals) {
        self.pins.held = self.pins.held.saturating_add(other.pins.held);
        let pairs = [
            (&mut self.pins.unknown_fragments, other.pins.unknown_fragments),
            (&mut self.pins.displaced_datagrams, other.pins.displaced_datagrams),
            (&mut self.pins.not_reassembled, other.pins.not_reassembled),
        ];
        pairs.into_iter().for_each(|(sum, more)| *sum = sum.saturating_add(more));
        self.pins.capacity = self.pins.capacity.max(other.pins.capacity);
        if self.services.is_empty() {
            self.services.clone_from(&other.services);
            return;
        }
        for (ours, theirs) in self.services.iter_mut().zip(&other.services) {
            ours.add(theirs);
        }
    }
}

impl ServiceRedirectionTotals {
    fn add(&mut self, other: &ServiceRedirectionTotals) {
        self.counters.add(&other.counters);
        if let Some(theirs) = &other.fail_over {
            self.fail_over.get_or_insert_default().add(theirs);
        }
        for (node, theirs) in &other.replicas {
            match self.replicas.iter_mut().find(|(known, _)| known == node) {
                Some((_, ours)) => ours.add(theirs),
                None => self.replicas.push((*node, *theirs)),
            }
        }
    }

    /// What a replica got.
    pub fn replica(&self, node: NodeId) -> ReplicaCounters {
        let known = self.replicas.iter().find(|(known, _)| *known == node);
        known.map(|(_, counters)| *counters).unwrap_or_default()
    }
}

impl RedirectedAtEnd {
    pub(super) fn of(engine: &Engine, plan: &Plan) -> RedirectedAtEnd {
        let routers = (0..plan.routers.len()).map(RouterId::from_index);
        RedirectedAtEnd {
            all: RedirectionTotals::of(engine, plan),
            by_router: routers.map(|router| engine.router(router).redirected).collect(),
        }
    }

    /// What redirectors have done, where they are asked after the end.
    pub(super) fn all(&self) -> RedirectionTotals {
        self.all.clone()
    }

    /// Puts this in the place of what was counted later.
    pub(super) fn put(self, tally: &mut Tally) {
        tally.services = self.all;
        for (router, redirected) in tally.routers.iter_mut().zip(self.by_router) {
            router.redirected = redirected;
        }
    }
}

impl RedirectionsNow {
    pub(super) fn of(
        engine: &mut Engine,
        plan: &Plan,
        origin: Time,
        one: Option<ServiceId>,
    ) -> RedirectionsNow {
        let all = RedirectionTotals::of(engine, plan);
        let nats = NatTally::now(engine, plan, origin, nats::SHOWN_MAX);
        let Some((id, service)) = one.and_then(|id| Some((id, plan.services.get(id.index())?)))
        else {
            return RedirectionsNow { all, nats, ..RedirectionsNow::default() };
        };
        let rows: Vec<_> =
            engine.services().rows().enumerate().filter(|(_, row)| row.service == id).collect();
        let places =
            service.at.iter().flat_map(|router| rows.iter().map(move |row| (*router, row)));
        let places: Vec<_> = places.collect();
        let table = places
            .iter()
            .take(ROWS_MAX)
            .map(|(router, (number, row))| (*router, *row, engine.choice(*number, *router)));
        let table: Vec<_> = table.collect();
        let table_left_out = places.len() - table.len();
        let flows = engine.services().pinned(id, FLOWS_MAX);
        RedirectionsNow { all, table, table_left_out, flows, nats }
    }
}

/// Rows of the table that are shown of a service.
const ROWS_MAX: usize = 2000;
/// Flows of a service that are shown.
const FLOWS_MAX: usize = 1000;
