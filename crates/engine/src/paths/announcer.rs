//! Announcements to other machines: the latest of each flow, once.

use alloc::collections::{BTreeMap, BTreeSet};

use windtunnel_model::flow::{ActiveFlow, FlowChange, FlowKey, FlowTerms};
use windtunnel_model::{Span, Time};
use windtunnel_sharing::FlowId;

use super::names::{FlowKeyCodec, FlowRoute};
use super::traffic::PERIOD;

/// That a flow only wants less is announced this time after the former announcement of it: its
/// demand goes down step by step, a step each period, and each would be a message to every machine.
/// No link is overfull meanwhile.
const LESS: Span = Span::from_nanos(2 * PERIOD.as_nanos());
/// Likewise after its begin. What is over within this time is two messages.
const LESS_FIRST: Span = Span::from_nanos(4 * PERIOD.as_nanos());

/// The own flows, and what of them has been announced. Announcements of a flow that are not polled
/// are replaced by later ones, so there are never more than flows here and flows announced.
#[derive(Debug, Default)]
pub(crate) struct FlowAnnouncer {
    names: BTreeMap<FlowId, (FlowRoute, u64, FlowKey)>,
    flows: BTreeMap<FlowKey, FlowId>,
    serials: BTreeMap<FlowRoute, FlowSerialAllocator>,
    /// Flows with something to announce, perhaps.
    noted: BTreeSet<FlowKey>,
    /// Flows that want less, and when that is to be announced. Each runs, so that a period ends
    /// then or soon after.
    held: BTreeSet<(Time, FlowKey)>,
    /// And from when on less may be announced.
    announced: BTreeMap<FlowKey, (ActiveFlow, Time)>,
    /// Flows for which there was no name; one that is nameless again after routes changed counts
    /// again.
    nameless: u64,
}

/// The serial numbers of the flows on one route.
#[derive(Debug, Default)]
struct FlowSerialAllocator {
    /// Below this number, those that are not in `free` are given.
    next: u64,
    free: BTreeSet<u64>,
}

impl FlowAnnouncer {
    /// A flow has begun.
    pub(crate) fn begin(&mut self, id: FlowId, route: FlowRoute, names: &FlowKeyCodec) {
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

    /// Whether a flow has a name.
    pub(crate) fn knows(&self, id: FlowId) -> bool {
        self.names.contains_key(&id)
    }

    /// A flow cannot be announced, as no name says how it goes.
    pub(crate) fn count_nameless(&mut self) {
        self.nameless += 1;
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
        if self.announced.contains_key(&key) {
            self.noted.insert(key);
        } else {
            self.noted.remove(&key);
        }
    }

    /// Something that the others do not know at `now`; `terms` says on which ones a flow runs then.
    pub(crate) fn poll(
        &mut self,
        now: Time,
        terms: impl Fn(FlowId) -> Option<FlowTerms>,
    ) -> Option<FlowChange> {
        while self.held.first().is_some_and(|(due, _)| *due <= now) {
            self.noted.extend(self.held.pop_first().map(|(_, key)| key));
        }
        while let Some(key) = self.noted.pop_first() {
            let terms = self.flows.get(&key).and_then(|id| terms(*id));
            let before = self.announced.get(&key).copied();
            if let Some((_, due)) = before {
                self.held.remove(&(due, key));
            }
            let since = before.map_or(now, |(flow, _)| flow.since);
            let flow = terms.map(|terms| ActiveFlow { terms, since });
            match (before, flow) {
                (Some((before, _)), Some(flow)) if before == flow => continue,
                (Some((before, due)), Some(flow))
                    if now < due && flow.terms.wants_less(&before.terms) =>
                {
                    self.held.insert((due, key));
                    continue;
                }
                (Some(_), Some(flow)) => drop(self.announced.insert(key, (flow, now + LESS))),
                (None, Some(flow)) => drop(self.announced.insert(key, (flow, now + LESS_FIRST))),
                (Some(_), None) => drop(self.announced.remove(&key)),
                (None, None) => continue,
            }
            return Some(FlowChange { key, flow });
        }
        None
    }

    /// Flows that could not be announced, as there was no name for them.
    pub(crate) fn nameless(&self) -> u64 {
        self.nameless
    }

    fn give_back(&mut self, route: FlowRoute, serial: u64) {
        let Some(serials) = self.serials.get_mut(&route) else { return };
        serials.free.insert(serial);
        if u64::try_from(serials.free.len()).is_ok_and(|free| free == serials.next) {
            self.serials.remove(&route);
        }
    }
}
