//! The flows that this agent announces in one run.
//!
//! Each change takes the next version number. A flow has one record, at the version of its last
//! change; an ended flow keeps its record for as long as there is room, so that a member that has
//! received everything up to a version can be sent the rest alone. One that lags further behind is
//! sent all flows.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::flow::{ActiveFlow, FlowChange, FlowKey};

use super::{Fingerprint, FlowAudience, FlowTableEntry, digest};

#[derive(Debug)]
struct LocalFlowRecord {
    key: FlowKey,
    flow: Option<ActiveFlow>,
    audience: FlowAudience,
    /// The version of the flow's beginning: a member that was sent less need not receive its end.
    began: u64,
}

/// The own flows of a run, by the version of their last change.
#[derive(Debug, Default)]
pub(crate) struct OwnFlows {
    version: u64,
    records: BTreeMap<u64, LocalFlowRecord>,
    live: BTreeMap<FlowKey, u64>,
    /// Versions of the records of ended flows.
    ended: BTreeSet<u64>,
    /// Ends up to this version are forgotten.
    floor: u64,
    /// The flows that each member should hold, by its position.
    views: Vec<Fingerprint>,
}

impl OwnFlows {
    pub(crate) fn new(members: usize) -> Self {
        OwnFlows { views: vec![Fingerprint::default(); members], ..OwnFlows::default() }
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Up to which version ends are forgotten: a member that has received less is sent everything.
    pub(crate) fn floor(&self) -> u64 {
        self.floor
    }

    pub(crate) fn len(&self) -> usize {
        self.live.len()
    }

    pub(crate) fn view(&self, member: u32) -> Fingerprint {
        self.views.get(member as usize).copied().unwrap_or_default()
    }

    pub(crate) fn get(&self, key: &FlowKey) -> Option<(&ActiveFlow, &FlowAudience)> {
        let record = self.records.get(self.live.get(key)?)?;
        record.flow.as_ref().map(|flow| (flow, &record.audience))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (FlowKey, ActiveFlow, &FlowAudience)> + '_ {
        self.live.iter().filter_map(|(key, version)| {
            let record = self.records.get(version)?;
            Some((*key, record.flow?, &record.audience))
        })
    }

    /// A flow began or changed. Returns the members that have to receive it; none if nothing is
    /// new.
    pub(crate) fn set(
        &mut self,
        key: FlowKey,
        flow: ActiveFlow,
        audience: &FlowAudience,
    ) -> FlowAudience {
        if self.get(&key) == Some((&flow, audience)) {
            return FlowAudience::new(Vec::new());
        }
        let (mut gone, mut began) = (FlowAudience::new(Vec::new()), self.version + 1);
        if let Some(former) = self.withdraw(&key) {
            began = former.began;
            gone = former.audience.without(audience);
            if !gone.is_empty() {
                self.record(LocalFlowRecord { key, flow: None, audience: gone.clone(), began });
            }
        }
        let audience = audience.clone();
        let later: Vec<u32> = audience.iter().collect();
        let notified =
            FlowAudience::with_later(audience.at_once().chain(gone.iter()).collect(), &later);
        for member in audience.iter() {
            self.views[member as usize].add(digest(&key, self.version + 1));
        }
        let version = self.record(LocalFlowRecord { key, flow: Some(flow), audience, began });
        self.live.insert(key, version);
        notified
    }

    /// A flow ended. Returns the members that have to receive it; `None` if there was none.
    pub(crate) fn end(&mut self, key: &FlowKey) -> Option<FlowAudience> {
        let LocalFlowRecord { audience, began, .. } = self.withdraw(key)?;
        self.record(LocalFlowRecord { key: *key, flow: None, audience: audience.clone(), began });
        Some(audience)
    }

    /// Forgets the oldest end if there are more than `limit`. Returns its version and the members
    /// that had to receive it.
    pub(crate) fn forget_beyond(&mut self, limit: usize) -> Option<(u64, FlowAudience)> {
        if self.ended.len() <= limit {
            return None;
        }
        let version = self.ended.pop_first()?;
        self.floor = version;
        Some((version, self.records.remove(&version)?.audience))
    }

    /// The changes after `version` that `member` has to receive, oldest first; of ends, only those
    /// of flows that began by version `ends`.
    pub(crate) fn after(
        &self,
        version: u64,
        member: u32,
        ends: u64,
    ) -> impl Iterator<Item = FlowTableEntry> + '_ {
        let later = self.records.range(version.saturating_add(1)..);
        later.filter_map(move |(version, record)| {
            let relevant = record.flow.is_some() || record.began <= ends;
            let wanted = relevant && record.audience.contains(member);
            let change = FlowChange { key: record.key, flow: record.flow };
            wanted.then_some(FlowTableEntry { version: *version, change })
        })
    }

    fn record(&mut self, record: LocalFlowRecord) -> u64 {
        self.version += 1;
        if record.flow.is_none() {
            self.ended.insert(self.version);
        }
        self.records.insert(self.version, record);
        self.version
    }

    fn withdraw(&mut self, key: &FlowKey) -> Option<LocalFlowRecord> {
        let version = self.live.remove(key)?;
        let record = self.records.remove(&version)?;
        for member in record.audience.iter() {
            self.views[member as usize].remove(digest(key, version));
        }
        Some(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windtunnel_model::flow::FlowTerms;
    use windtunnel_model::{Bytes, NodeId, Span, Time};

    fn key(number: u32) -> FlowKey {
        FlowKey { source: NodeId(0), destination: NodeId(1), number }
    }

    fn flow(millis: u64) -> ActiveFlow {
        ActiveFlow {
            terms: FlowTerms::new(Span::from_millis(millis)).with_window(Bytes(65_536)),
            since: Time::ZERO,
        }
    }

    fn received(own: &OwnFlows, version: u64, member: u32) -> Vec<(u64, u32, bool)> {
        let entries = own.after(version, member, u64::MAX);
        entries.map(|e| (e.version, e.change.key.number, e.change.flow.is_some())).collect()
    }

    #[test]
    fn a_flow_is_sent_once_at_its_last_version() {
        let mut own = OwnFlows::new(3);
        let both = FlowAudience::new(vec![1, 2]);
        assert_eq!(own.set(key(1), flow(10), &both).len(), 2);
        assert_eq!(own.set(key(1), flow(20), &both).len(), 2);
        assert_eq!(own.set(key(2), flow(10), &FlowAudience::new(vec![2])).len(), 1);
        assert_eq!(received(&own, 0, 1), [(2, 1, true)]);
        assert_eq!(received(&own, 0, 2), [(2, 1, true), (3, 2, true)]);
        assert!(own.set(key(1), flow(20), &both).is_empty(), "nothing new");
        assert_eq!(own.version(), 3);
    }

    #[test]
    fn an_end_is_sent_to_members_that_knew_the_flow_until_it_is_forgotten() {
        let mut own = OwnFlows::new(3);
        own.set(key(1), flow(10), &FlowAudience::new(vec![1]));
        own.set(key(2), flow(10), &FlowAudience::new(vec![1]));
        assert_eq!(own.end(&key(1)), Some(FlowAudience::new(vec![1])));
        assert_eq!(own.end(&key(1)), None);
        assert_eq!(received(&own, 2, 1), [(3, 1, false)]);
        assert_eq!(received(&own, 2, 2), []);
        own.end(&key(2));
        assert_eq!(own.forget_beyond(1), Some((3, FlowAudience::new(vec![1]))));
        assert_eq!(own.forget_beyond(1), None);
        assert_eq!((own.floor(), received(&own, 0, 1)), (3, vec![(4, 2, false)]));
        assert_eq!(own.view(1), Fingerprint::default());
    }

    #[test]
    fn a_member_that_never_received_a_flow_is_not_sent_its_end() {
        let mut own = OwnFlows::new(3);
        let audience = FlowAudience::with_later(vec![1], &[2]);
        own.set(key(1), flow(10), &audience);
        own.set(key(1), flow(20), &audience);
        assert_eq!(own.end(&key(1)), Some(audience));
        assert_eq!(own.after(0, 2, 0).count(), 0, "it knows of nothing");
        assert_eq!(own.after(1, 2, 1).count(), 1, "it was sent the first version");
    }

    #[test]
    fn a_member_that_leaves_the_audience_receives_an_end() {
        let mut own = OwnFlows::new(3);
        own.set(key(1), flow(10), &FlowAudience::new(vec![1]));
        let notified = own.set(key(1), flow(10), &FlowAudience::new(vec![2]));
        assert_eq!(notified, FlowAudience::new(vec![1, 2]));
        assert_eq!(received(&own, 1, 1), [(2, 1, false)]);
        assert_eq!(received(&own, 1, 2), [(3, 1, true)]);
        assert_eq!((own.view(1).count, own.view(2).count), (0, 1));
    }
}
