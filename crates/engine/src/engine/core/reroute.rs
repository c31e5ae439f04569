//! Routes that change while packets are under way.

use alloc::collections::VecDeque;

use windtunnel_model::plan::RouteChange;
use windtunnel_model::{Span, Time};

use super::Core;
use crate::event::{NetworkEvent, NetworkEventKind};

/// When shortest routes are computed again because lanes went down or up.
#[derive(Debug)]
pub(crate) struct Reroutes {
    /// So long after a change; `None`: never.
    delay: Option<Span>,
    /// Times to come, in order.
    due: VecDeque<Time>,
}

impl Reroutes {
    pub(super) fn new(delay: Option<Span>) -> Self {
        Reroutes { delay, due: VecDeque::new() }
    }

    /// Lanes went down or up.
    pub(super) fn lanes_changed(&mut self, now: Time) {
        let Some(delay) = self.delay else { return };
        let at = now + delay;
        // Changes of one instant are answered once.
        if self.due.back() != Some(&at) {
            self.due.push_back(at);
        }
    }

    pub(crate) fn next(&self) -> Option<Time> {
        self.due.front().copied()
    }

    /// The next time, if it has come.
    pub(crate) fn take(&mut self, now: Time) -> Option<Time> {
        let at = self.next().filter(|at| *at <= now)?;
        self.due.pop_front();
        Some(at)
    }
}

impl Core {
    pub(super) fn fix_routes(&mut self, now: Time, change: &RouteChange) {
        let routes = self.network.routes().changed(change);
        self.network.use_routes(routes);
        self.events.push(NetworkEvent { at: now, kind: NetworkEventKind::RoutesFixed });
    }

    /// Computes shortest routes for the lanes as they are.
    pub(crate) fn reroute(&mut self, now: Time, by_itself: bool) {
        self.ways.forget();
        let chains = &self.chains;
        let latency = |lane: windtunnel_model::Lane| {
            let chain = &chains[lane.index()];
            let takes = chain.cut.refuses().is_none();
            takes.then(|| chain.profile().latency)
        };
        let routes = self.network.routes().recomputed(latency);
        self.network.use_routes(routes);
        self.events.push(NetworkEvent { at: now, kind: NetworkEventKind::Rerouted { by_itself } });
    }
}
