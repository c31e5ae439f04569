//! Flows of several machines: what one announces, and what it is to know of others.

use alloc::vec::Vec;

use windtunnel_model::flow::{FlowChange, FlowKey};
use windtunnel_model::{Lane, Time};

use super::Engine;
use super::model::QueueingModel;
use super::scheduler::NetworkScheduler;

impl Engine {
    /// What the other machines do not know of the flows here: that one began, goes on under other
    /// terms, or ended. Of each flow only the latest is given out, so that what waits is
    /// bounded by the flows, and each news holds whatever was given out of the flow before. It
    /// is to reach all machines where a share can depend on the flow
    /// ([`FlowAudienceTable`](crate::FlowAudienceTable)), or more. That a flow wants less is given out 100 ms
    /// after the former news of it at the earliest, and 200 ms after its begin. Nothing where
    /// all nodes are here.
    pub fn poll_flow(&mut self) -> Option<FlowChange> {
        self.network.model.paths_mut()?.poll_flow(self.network.core.now)
    }

    /// What part `part` announced of its flows, received here at `now`. All of it is taken over at
    /// once, so that many announcements cost one allocation. Only the latest of a flow counts;
    /// an end of a flow that is not known is none.
    ///
    /// Announcements that no engine of the same plan gives out, and those of flows for which there
    /// is no room, are counted by [`AnnouncedFlowCounts::refused`].
    ///
    /// # Panics
    /// If `now` is before an earlier one.
    pub fn handle_flows(&mut self, now: Time, part: u32, news: &[FlowChange]) {
        self.network.advance(now);
        let refused = match &mut self.network.model {
            QueueingModel::Hops => news.len(),
            QueueingModel::Paths(paths) => {
                paths.handle_flows(&mut self.network.core, now, part, news)
            }
        };
        self.refused_flows += u64::try_from(refused).unwrap_or(u64::MAX);
        self.network.settle(now);
        self.network.finish();
    }

    /// Part `part` is lost, or begins anew: none of its flows is there any more.
    ///
    /// # Panics
    /// If `now` is before an earlier one.
    pub fn forget_part(&mut self, now: Time, part: u32) {
        self.network.advance(now);
        if let Some(paths) = self.network.model.paths_mut() {
            paths.forget_part(&mut self.network.core, now, part);
        }
        self.network.settle(now);
        self.network.finish();
    }

    /// The lanes over which a flow goes, by the present routes: nothing if there is no such name,
    /// or all nodes are here. A number of 0 names the way from the first interface of the
    /// source to the first of the destination.
    #[must_use]
    pub fn lanes_of(&mut self, key: FlowKey) -> Vec<Lane> {
        let NetworkScheduler { core, model } = &mut self.network;
        let route = model.exchange().and_then(|exchange| exchange.names.read(&key));
        route.map_or_else(Vec::new, |route| core.net.network.trace_route(&route))
    }

    /// How many flows were announced, and how many could not be.
    #[must_use]
    pub fn flow_counts(&self) -> AnnouncedFlowCounts {
        let exchange = self.network.model.exchange();
        AnnouncedFlowCounts {
            remote: exchange.map_or(0, |exchange| exchange.remote.len()),
            refused: self.refused_flows,
            nameless: exchange.map_or(0, |exchange| exchange.announcer.nameless()),
        }
    }
}

/// What became of the announcements of flows between machines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnnouncedFlowCounts {
    /// Flows of other machines that take part in the sharing of links here.
    pub remote: usize,
    /// Announcements that could not be used.
    pub refused: u64,
    /// Flows here that cannot be announced to other machines, since more are on one route than
    /// there are names for (4 billion, divided by what [`FlowKey`] needs for the rest), or a
    /// redirector leads them to their replica by a detour, which no name says. Each makes the
    /// sharing of links wrong.
    pub nameless: u64,
}
