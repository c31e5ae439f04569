//! One machine's part of a network: what it tells the other machines of its flows, and what they
//! tell.

use windtunnel_model::{Lane, PortId, Time};
use windtunnel_sharing::FlowId;

use super::Engine;
use crate::flow::{FlowNews, FlowTerms, RemoteKey};
use crate::paths::names::Route;
use crate::paths::{Abroad, Paths};

impl Engine {
    /// Whether a port is on this machine.
    ///
    /// # Panics
    /// If the plan has no such port.
    #[must_use]
    pub fn is_here(&self, port: PortId) -> bool {
        self.here[port.index()]
    }

    /// What the other machines do not know of the flows here: that one began, goes on under other
    /// terms, or ended. Of each flow only the latest is given out, so that what waits is
    /// bounded by the flows, and each news holds whatever was given out of the flow before. It
    /// is to reach all machines where a share can depend on the flow
    /// ([`Audiences`](crate::Audiences)), or more. That a flow wants less is given out 100 ms
    /// after the former news of it at the earliest, and 200 ms after its begin. Nothing where
    /// all nodes are here.
    pub fn poll_flow(&mut self) -> Option<FlowNews> {
        let now = self.now;
        self.paths.as_mut()?.poll_flow(now)
    }

    /// What part `part` told of its flows, known here at `now`. All of it is taken over at once, so
    /// that many news cost one division. Only the latest of a flow counts; an end of a flow
    /// that is not known is none.
    ///
    /// News that no engine of the same plan gives out, and those of flows for which there is no
    /// room, are counted by [`refused_flows`](Engine::refused_flows).
    ///
    /// # Panics
    /// If `now` is before an earlier one.
    pub fn handle_flows(&mut self, now: Time, part: u32, news: &[FlowNews]) {
        self.advance(now);
        for one in news {
            if !self.hear_of(part, one) {
                self.refused_flows += 1;
            }
        }
        self.divide(now);
        self.settle(now);
        self.finish();
    }

    /// Part `part` is lost, or begins anew: none of its flows is there any more.
    ///
    /// # Panics
    /// If `now` is before an earlier one.
    pub fn forget_part(&mut self, now: Time, part: u32) {
        self.advance(now);
        if let Some(paths) = &mut self.paths {
            let gone = paths.abroad.as_mut().map(|abroad| abroad.remote.remove_part(part));
            for id in gone.into_iter().flatten() {
                paths.division.stop(id);
            }
        }
        self.divide(now);
        self.settle(now);
        self.finish();
    }

    /// The lanes over which a flow goes, by the present routes: nothing if there is no such name,
    /// or all nodes are here. A number of 0 names the way from the first interface of the
    /// source to the first of the destination.
    #[must_use]
    pub fn lanes_of(&mut self, key: RemoteKey) -> Vec<Lane> {
        let abroad = self.paths.as_ref().and_then(|paths| paths.abroad.as_ref());
        let route = abroad.and_then(|abroad| abroad.names.read(&key));
        route.map_or_else(Vec::new, |route| self.trace_route(&route))
    }

    /// How many flows of other machines take part in the sharing of links here.
    #[must_use]
    pub fn remote_flows(&self) -> usize {
        self.abroad().map_or(0, |abroad| abroad.remote.len())
    }

    /// News that could not be used.
    #[must_use]
    pub fn refused_flows(&self) -> u64 {
        self.refused_flows
    }

    /// Flows here of which the other machines cannot be told, since more are on one route than
    /// there are names for (4 billion, divided by what [`RemoteKey`] needs for the rest). Each
    /// makes the sharing of links wrong.
    #[must_use]
    pub fn nameless_flows(&self) -> u64 {
        self.abroad().map_or(0, |abroad| abroad.news.nameless())
    }

    /// Takes a piece of news over; `false` if it cannot be.
    fn hear_of(&mut self, part: u32, news: &FlowNews) -> bool {
        let key = news.key();
        let Some(paths) = &mut self.paths else { return false };
        let Some(abroad) = &mut paths.abroad else { return false };
        let Some(route) = abroad.names.read(&key) else { return false };
        if part == abroad.part || self.here[route.port.index()] {
            return false;
        }
        match (abroad.remote.find(part, key), news.flow) {
            (None, None) => true,
            (Some(id), None) => {
                abroad.remote.remove(part, key);
                paths.division.stop(id);
                true
            }
            (Some(id), Some(flow)) => {
                paths.division.change(id, flow.terms());
                true
            }
            (None, Some(flow)) => {
                let id = abroad.remote.number();
                self.begin_remote((part, key), id, route, &flow)
            }
        }
    }

    fn begin_remote(
        &mut self,
        (part, key): (u32, RemoteKey),
        id: FlowId,
        route: Route,
        flow: &FlowTerms,
    ) -> bool {
        let lanes = self.trace_route(&route);
        let Some(paths) = &mut self.paths else { return false };
        if !paths.division.start(id, None, lanes, flow.terms()) {
            return false;
        }
        if let Some(abroad) = &mut paths.abroad {
            abroad.remote.add(part, key, id, route);
        }
        true
    }

    /// Lets the flows of other machines go where routes lead now.
    pub(super) fn retrace_remote(&mut self, paths: &mut Paths) {
        let Some(abroad) = &paths.abroad else { return };
        for (id, route) in abroad.remote.iter() {
            let lanes = self.trace_route(&route);
            if let Some(terms) = paths.division.terms(id) {
                paths.division.renew(id, lanes, terms);
            }
        }
    }

    fn trace_route(&mut self, route: &Route) -> Vec<Lane> {
        let source = self.network.address_of_port(route.port);
        self.trace(route.port, route.target, source, route.class)
    }

    fn abroad(&self) -> Option<&Abroad> {
        self.paths.as_ref()?.abroad.as_ref()
    }
}
