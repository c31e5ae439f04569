//! Flows of several machines: what one announces, and what it is to know of others.

use alloc::vec::Vec;

use windtunnel_model::flow::{FlowChange, FlowKey};
use windtunnel_model::{Lane, Time};

use super::Engine;
use super::model::QueueingModel;
use crate::paths::exchange::AnnouncementExchange;

impl Engine {
    /// What the other machines do not know of the flows here: that one began, goes on under other
    /// terms, or ended. Of each flow only the latest is given out, so that what waits is
    /// bounded by the flows, and each news holds whatever was given out of the flow before. It
    /// is to reach all machines where a share can depend on the flow
    /// ([`Audiences`](crate::Audiences)), or more. That a flow wants less is given out 100 ms
    /// after the former news of it at the earliest, and 200 ms after its begin. Nothing where
    /// all nodes are here.
    pub fn poll_flow(&mut self) -> Option<FlowChange> {
        self.model.paths_mut()?.poll_flow(self.core.now)
    }

    /// What part `part` announced of its flows, received here at `now`. All of it is taken over at
    /// once, so that many announcements cost one allocation. Only the latest of a flow counts;
    /// an end of a flow that is not known is none.
    ///
    /// Announcements that no engine of the same plan gives out, and those of flows for which there
    /// is no room, are counted by [`refused_flows`](Engine::refused_flows).
    ///
    /// # Panics
    /// If `now` is before an earlier one.
    pub fn handle_flows(&mut self, now: Time, part: u32, news: &[FlowChange]) {
        self.advance(now);
        let refused = match &mut self.model {
            QueueingModel::Hops => news.len(),
            QueueingModel::Paths(paths) => paths.handle_flows(&mut self.core, now, part, news),
        };
        self.refused_flows += u64::try_from(refused).unwrap_or(u64::MAX);
        self.settle(now);
        self.finish();
    }

    /// Part `part` is lost, or begins anew: none of its flows is there any more.
    ///
    /// # Panics
    /// If `now` is before an earlier one.
    pub fn forget_part(&mut self, now: Time, part: u32) {
        self.advance(now);
        if let Some(paths) = self.model.paths_mut() {
            paths.forget_part(&mut self.core, now, part);
        }
        self.settle(now);
        self.finish();
    }

    /// The lanes over which a flow goes, by the present routes: nothing if there is no such name,
    /// or all nodes are here. A number of 0 names the way from the first interface of the
    /// source to the first of the destination.
    #[must_use]
    pub fn lanes_of(&mut self, key: FlowKey) -> Vec<Lane> {
        let route = self.exchange().and_then(|exchange| exchange.names.read(&key));
        route.map_or_else(Vec::new, |route| self.core.trace_route(&route))
    }

    /// How many flows of other machines take part in the sharing of links here.
    #[must_use]
    pub fn remote_flows(&self) -> usize {
        self.exchange().map_or(0, |exchange| exchange.remote.len())
    }

    /// Announcements that could not be used.
    #[must_use]
    pub fn refused_flows(&self) -> u64 {
        self.refused_flows
    }

    /// Flows here that cannot be announced to other machines, since more are on one route than
    /// there are names for (4 billion, divided by what [`FlowKey`] needs for the rest), or a
    /// redirector leads them to their replica by a detour, which no name says. Each makes the
    /// sharing of links wrong.
    #[must_use]
    pub fn nameless_flows(&self) -> u64 {
        self.exchange().map_or(0, |exchange| exchange.announcer.nameless())
    }

    fn exchange(&self) -> Option<&AnnouncementExchange> {
        self.model.paths()?.exchange.as_ref()
    }
}
