//! One machine's part of a network: the flows that it announces to the other machines,
//! and those that they announce.

use alloc::vec::Vec;

use windtunnel_model::flow::{FlowChange, FlowKey, FlowTerms};
use windtunnel_model::plan::Plan;
use windtunnel_model::{Lane, Time};
use windtunnel_sharing::FlowId;

use super::announcer::FlowAnnouncer;
use super::names::{FlowKeyCodec, FlowRoute};
use super::remote_flows::RemoteFlows;
use super::{PacketCourse, PathModel};
use crate::engine::core::Core;
use crate::network::NetworkDirectory;

/// Announcements to and from other machines.
#[derive(Debug)]
pub(crate) struct AnnouncementExchange {
    /// The number of the own part.
    part: u32,
    pub(crate) names: FlowKeyCodec,
    pub(crate) announcer: FlowAnnouncer,
    pub(crate) remote: RemoteFlows,
}

impl AnnouncementExchange {
    pub(crate) fn new(plan: &Plan, part: u32) -> Self {
        AnnouncementExchange {
            part,
            names: FlowKeyCodec::new(plan),
            announcer: FlowAnnouncer::default(),
            remote: RemoteFlows::default(),
        }
    }
}

impl PathModel {
    /// Takes the announcements of part `part`; how many of them cannot be used.
    pub(crate) fn handle_flows(
        &mut self,
        core: &mut Core,
        now: Time,
        part: u32,
        news: &[FlowChange],
    ) -> usize {
        let refused = news.iter().filter(|one| !self.take_announcement(core, part, one)).count();
        self.divide(core, now);
        refused
    }

    /// Announces an own flow of this hash that takes part, unless it is announced already. Others
    /// take it to go straight to where it ends: one whose tunnel makes a detour has no name.
    pub(super) fn announce(&mut self, core: &mut Core, number: usize, id: FlowId, hash: u64) {
        let Some(exchange) = &mut self.exchange else { return };
        let path = &self.paths[number];
        if !path.flows.contains(&id) {
            return;
        }
        let route = exchange.names.route(path.port, path.course.target, hash);
        let is_straight = !path.course.leads_to_replica()
            || self.allocation.lanes(id) == core.net.network.trace_route(&route);
        if is_straight && !exchange.announcer.knows(id) {
            exchange.announcer.begin(id, route, &exchange.names);
        } else if !is_straight {
            exchange.announcer.end(id);
            exchange.announcer.count_nameless();
        }
    }

    /// None of a part's flows is there any more.
    pub(crate) fn forget_part(&mut self, core: &mut Core, now: Time, part: u32) {
        let gone = self.exchange.as_mut().map(|exchange| exchange.remote.remove_part(part));
        for id in gone.into_iter().flatten() {
            self.allocation.stop(id);
        }
        self.divide(core, now);
    }

    /// Takes an announcement; `false` if it cannot be used.
    fn take_announcement(&mut self, core: &mut Core, part: u32, news: &FlowChange) -> bool {
        let key = news.key;
        let Some(exchange) = &mut self.exchange else { return false };
        let Some(route) = exchange.names.read(&key) else { return false };
        if part == exchange.part || core.net.departures.is_here(route.port) {
            return false;
        }
        match (exchange.remote.find(part, key), news.flow) {
            (None, None) => true,
            (Some(id), None) => {
                exchange.remote.remove(part, key);
                self.allocation.stop(id);
                true
            }
            (Some(id), Some(flow)) => {
                self.allocation.change(id, flow.terms);
                true
            }
            (None, Some(flow)) => self.begin_remote(core, part, key, route, flow.terms),
        }
    }

    fn begin_remote(
        &mut self,
        core: &mut Core,
        part: u32,
        key: FlowKey,
        route: FlowRoute,
        terms: FlowTerms,
    ) -> bool {
        let Some(exchange) = &mut self.exchange else { return false };
        let id = exchange.remote.number();
        let started = self.allocation.start(id, None, core.net.network.trace_route(&route), terms);
        if started {
            exchange.remote.add(part, key, id, route);
        }
        started
    }

    /// Lets the flows of other machines go where routes lead now.
    pub(super) fn retrace_remote(&mut self, core: &mut Core) {
        let Some(exchange) = &self.exchange else { return };
        for (id, route) in exchange.remote.iter() {
            if let Some(terms) = self.allocation.terms(id) {
                self.allocation.renew(id, core.net.network.trace_route(&route), terms);
            }
        }
    }
}

impl NetworkDirectory {
    /// The lanes of a flow's route.
    pub(crate) fn trace_route(&mut self, route: &FlowRoute) -> Vec<Lane> {
        let source = self.address_of_port(route.port);
        self.trace(route.port, PacketCourse::to(route.target), source, route.class).lanes
    }
}
