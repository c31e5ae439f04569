//! What is to be told to other machines: the latest of each flow, once.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_sharing::FlowId;

use super::names::{Names, Route};
use crate::flow::{FlowNews, FlowTerms, RemoteKey};

/// The own flows, and what of them has been told. News of a flow that nobody asked for are replaced by later ones, so there
/// are never more than flows here and flows told of.
#[derive(Debug, Default)]
pub(crate) struct News {
    names: BTreeMap<FlowId, (Route, u64, RemoteKey)>,
    flows: BTreeMap<RemoteKey, FlowId>,
    serials: BTreeMap<Route, Serials>,
    /// Flows of which there may be something to tell.
    noted: BTreeSet<RemoteKey>,
    told: BTreeMap<RemoteKey, FlowTerms>,
    /// Flows for which there was no name.
    nameless: u64,
}

/// The serial numbers of the flows on one route.
#[derive(Debug, Default)]
struct Serials {
    /// Below this number, those that are not in `free` are given.
    next: u64,
    free: BTreeSet<u64>,
}

impl News {
    /// A flow has begun.
    pub(crate) fn begin(&mut self, id: FlowId, route: Route, names: &Names) {
        let serials = self.serials.entry(route).or_default();
        let serial = serials.free.pop_first().unwrap_or_else(|| {
            serials.next += 1;
            serials.next - 1
        });
        let Some(key) = names.name(&route, serial) else {
            self.nameless += 1;
            return self.give_back(route, serial);
        };
        self.names.insert(id, (route, serial, key));
        self.flows.insert(key, id);
        self.noted.insert(key);
    }

    /// The terms of a flow may be other ones.
    pub(crate) fn note(&mut self, id: FlowId) {
        if let Some((_, _, key)) = self.names.get(&id) {
            self.noted.insert(*key);
        }
    }

    /// A flow has ended.
    pub(crate) fn end(&mut self, id: FlowId) {
        let Some((route, serial, key)) = self.names.remove(&id) else { return };
        self.flows.remove(&key);
        self.give_back(route, serial);
        if self.told.contains_key(&key) {
            self.noted.insert(key);
        } else {
            self.noted.remove(&key);
        }
    }

    /// Something that the others do not know; `terms` says on which ones a flow runs now.
    pub(crate) fn poll(&mut self, terms: impl Fn(FlowId) -> Option<FlowTerms>) -> Option<FlowNews> {
        while let Some(key) = self.noted.pop_first() {
            let flow = self.flows.get(&key).and_then(|id| terms(*id));
            let before = match flow {
                Some(flow) => self.told.insert(key, flow),
                None => self.told.remove(&key),
            };
            if before != flow {
                return Some(FlowNews::new(key, flow));
            }
        }
        None
    }

    /// Flows that could not be told of, as there was no name for them.
    pub(crate) fn nameless(&self) -> u64 {
        self.nameless
    }

    fn give_back(&mut self, route: Route, serial: u64) {
        let Some(serials) = self.serials.get_mut(&route) else { return };
        serials.free.insert(serial);
        if u64::try_from(serials.free.len()).is_ok_and(|free| free == serials.next) {
            self.serials.remove(&route);
        }
    }
}
