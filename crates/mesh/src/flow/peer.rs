//! The flows that another member announces.
//!
//! A message covers a range of the sender's versions, from `prev` to `top`. Versions up to `have`
//! are covered without a gap. Entries beyond a gap hold at once; ends among them are remembered
//! until the gap is filled, so that an older announcement that comes late changes nothing.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Ordering;

use windtunnel_model::flow::{ActiveFlow, FlowChange, FlowKey};

use super::{Fingerprint, FlowTableEntry, digest};
use crate::wire::message::FlowTableDelta;

/// Ranges beyond a gap that are remembered; the furthest is forgotten, and asked for again later.
const AHEAD_MAX: usize = 64;

/// The effect of a message.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FlowUpdateEffect {
    pub(crate) changes: Vec<FlowChange>,
    /// All of it had been received before.
    pub(crate) stale: bool,
    /// Entries that were not taken because there are too many.
    pub(crate) refused: u64,
}

/// The flows of another member, as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct PeerFlows {
    have: u64,
    /// Ranges beyond `have`, as (version before the first, last).
    ahead: BTreeMap<u64, u64>,
    flows: BTreeMap<FlowKey, (u64, ActiveFlow)>,
    /// Ends beyond `have`.
    ended: BTreeMap<FlowKey, u64>,
    fingerprint: Fingerprint,
    /// Flows were refused, so fingerprints cannot agree.
    overflowed: bool,
}

impl PeerFlows {
    /// Everything up to this version has been received.
    pub(crate) fn have(&self) -> u64 {
        self.have
    }

    /// Whether something is known to be missing.
    pub(crate) fn has_gap(&self) -> bool {
        !self.ahead.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (FlowKey, ActiveFlow)> + '_ {
        self.flows.iter().map(|(key, (_, flow))| (*key, *flow))
    }

    /// Whether the table is as the sender says that it should be at `top`; `None` if that cannot
    /// be decided: more has been received since, or the table is full.
    pub(crate) fn agrees(&self, top: u64, should: Fingerprint) -> Option<bool> {
        match self.have.cmp(&top) {
            Ordering::Less => Some(false),
            Ordering::Greater => None,
            Ordering::Equal if self.overflowed || self.has_gap() => None,
            Ordering::Equal => Some(self.fingerprint == should),
        }
    }

    /// Forgets which versions were received, but keeps the flows: the sender will send all of them
    /// again.
    pub(crate) fn restart(&mut self) {
        self.have = 0;
        self.ahead.clear();
        self.ended.clear();
        self.overflowed = false;
    }

    /// Ends all flows. Returns the changes.
    pub(crate) fn clear(&mut self) -> Vec<FlowChange> {
        let flows = core::mem::take(self).flows;
        flows.into_keys().map(|key| FlowChange { key, flow: None }).collect()
    }

    /// Takes a message in.
    pub(crate) fn apply(&mut self, delta: &FlowTableDelta, limit: usize) -> FlowUpdateEffect {
        let mut applied =
            FlowUpdateEffect { stale: delta.top <= self.have, ..FlowUpdateEffect::default() };
        if applied.stale {
            return applied;
        }
        if delta.full {
            self.sweep(delta, &mut applied);
        }
        for entry in &delta.entries {
            self.enter(entry, limit, &mut applied);
        }
        if self.ended.len() > limit {
            // A sender like this has to send everything again.
            applied.refused += 1;
            self.restart();
        } else {
            self.cover(delta.prev, delta.top);
        }
        applied
    }

    fn enter(&mut self, entry: &FlowTableEntry, limit: usize, applied: &mut FlowUpdateEffect) {
        let FlowTableEntry { version, change } = *entry;
        let held = self.flows.get(&change.key).map(|(version, _)| *version);
        let known = held.max(self.ended.get(&change.key).copied());
        // A flow that is not held although everything up to `have` was received has ended.
        if version <= known.unwrap_or(self.have) {
            return;
        }
        match change.flow {
            Some(_) if held.is_none() && self.flows.len() >= limit => {
                applied.refused += 1;
                self.overflowed = true;
                return;
            }
            Some(flow) => {
                self.forget(&change.key);
                self.fingerprint.add(digest(&change.key, version));
                self.flows.insert(change.key, (version, flow));
            }
            None => {
                let was_held = self.forget(&change.key);
                self.ended.insert(change.key, version);
                if !was_held {
                    return;
                }
            }
        }
        applied.changes.push(change);
    }

    /// Ends the flows that a full list of a range does not name.
    fn sweep(&mut self, delta: &FlowTableDelta, applied: &mut FlowUpdateEffect) {
        let FlowTableDelta { prev, top, ref entries, .. } = *delta;
        let named: BTreeSet<_> =
            entries.iter().map(|entry| (entry.change.key, entry.version)).collect();
        let held = self.flows.iter().map(|(key, (version, _))| (*key, *version));
        let gone: Vec<FlowKey> = held
            .filter(|held| prev < held.1 && held.1 <= top && !named.contains(held))
            .map(|(key, _)| key)
            .collect();
        for key in gone {
            self.forget(&key);
            applied.changes.push(FlowChange { key, flow: None });
        }
    }

    fn forget(&mut self, key: &FlowKey) -> bool {
        let former = self.flows.remove(key);
        if let Some((version, _)) = former {
            self.fingerprint.remove(digest(key, version));
        }
        self.ended.remove(key);
        former.is_some()
    }

    fn cover(&mut self, prev: u64, top: u64) {
        let furthest = self.ahead.entry(prev).or_insert(top);
        *furthest = top.max(*furthest);
        while let Some(range) = self.ahead.first_entry().filter(|range| *range.key() <= self.have) {
            self.have = self.have.max(range.remove());
        }
        if self.ahead.len() > AHEAD_MAX {
            self.ahead.pop_last();
        }
        let have = self.have;
        self.ended.retain(|_, version| *version > have);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunId;
    use crate::flow::FlowAudience;
    use crate::flow::own::OwnFlows;
    use proptest::prelude::*;
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

    fn entry(version: u64, number: u32, flow: Option<ActiveFlow>) -> FlowTableEntry {
        FlowTableEntry { version, change: FlowChange { key: key(number), flow } }
    }

    fn delta(prev: u64, top: u64, full: bool, entries: &[FlowTableEntry]) -> FlowTableDelta {
        FlowTableDelta { run: RunId(1), prev, top, full, entries: entries.to_vec() }
    }

    #[test]
    fn an_entry_after_a_gap_holds_at_once_and_a_late_entry_changes_nothing() {
        let mut peer = PeerFlows::default();
        let end = peer.apply(&delta(1, 2, false, &[entry(2, 7, None)]), 10);
        assert!(end.changes.is_empty() && peer.has_gap());
        let late = peer.apply(&delta(0, 1, false, &[entry(1, 7, Some(flow(1)))]), 10);
        assert!(late.changes.is_empty(), "it had ended already");
        assert_eq!((peer.have(), peer.has_gap()), (2, false));
        assert!(peer.apply(&delta(0, 1, false, &[entry(1, 7, Some(flow(1)))]), 10).stale);
    }

    #[test]
    fn a_full_list_ends_the_flows_it_does_not_name() {
        let mut peer = PeerFlows::default();
        let both = [entry(1, 1, Some(flow(1))), entry(2, 2, Some(flow(1)))];
        peer.apply(&delta(0, 2, false, &both), 10);
        peer.restart();
        let applied = peer.apply(&delta(0, 3, true, &[entry(2, 2, Some(flow(1)))]), 10);
        assert_eq!(applied.changes, [FlowChange { key: key(1), flow: None }]);
        assert_eq!(peer.len(), 1);
    }

    #[test]
    fn flows_beyond_the_limit_are_refused_and_counted() {
        let mut peer = PeerFlows::default();
        let entries: Vec<_> = (1..=5).map(|n| entry(n, 1, Some(flow(n)))).collect();
        assert_eq!(
            peer.apply(&delta(0, 5, false, &entries), 1).refused,
            0,
            "one flow, changed often"
        );
        let second = [entry(6, 2, Some(flow(1)))];
        assert_eq!(peer.apply(&delta(5, 6, false, &second), 1).refused, 1);
        assert_eq!(peer.agrees(6, Fingerprint::default()), None, "known to be incomplete");
    }

    #[test]
    fn ends_of_unknown_flows_beyond_a_gap_do_not_fill_the_memory() {
        let mut peer = PeerFlows::default();
        for number in 1..1000 {
            let version = 1_000_000 - u64::from(number);
            peer.apply(&delta(version - 1, version, false, &[entry(version, number, None)]), 10);
            assert!(peer.ended.len() <= 10 && peer.ahead.len() <= AHEAD_MAX);
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Set(u32, u64),
        End(u32),
        Send,
        Arrive(usize),
        Lose(usize),
        Repair,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..6u32, 1..4u64).prop_map(|(number, rtt)| Step::Set(number, rtt)),
            (0..6u32).prop_map(Step::End),
            Just(Step::Send),
            any::<usize>().prop_map(Step::Arrive),
            any::<usize>().prop_map(Step::Lose),
            Just(Step::Repair),
        ];
        proptest::collection::vec(step, 0..120)
    }

    /// A message as it would be sent.
    fn send(own: &OwnFlows, from: u64) -> FlowTableDelta {
        let full = from < own.floor() || from == 0;
        let (prev, ends) = if full { (0, 0) } else { (from, u64::MAX) };
        let entries = own.after(prev, 1, ends).collect();
        FlowTableDelta { run: RunId(1), prev, top: own.version(), full, entries }
    }

    proptest! {
        /// After any loss, duplication or reordering, both agree after one repair.
        #[test]
        fn tables_agree_after_a_repair(steps in steps(), limit in 0..5usize) {
            let (mut own, mut peer) = (OwnFlows::new(2), PeerFlows::default());
            let (mut sent, mut way) = (0, Vec::<FlowTableDelta>::new());
            for step in steps {
                match step {
                    Step::Set(number, rtt) => {
                        own.set(key(number), flow(rtt), &FlowAudience::new(vec![1]));
                    }
                    Step::End(number) => {
                        own.end(&key(number));
                    }
                    Step::Send => {
                        way.push(send(&own, sent));
                        sent = own.version();
                    }
                    Step::Arrive(at) if !way.is_empty() => {
                        peer.apply(&way[at % way.len()], 100);
                    }
                    Step::Lose(at) if !way.is_empty() => {
                        let at = at % way.len();
                        way.swap_remove(at);
                    }
                    Step::Repair => way.push(send(&own, peer.have())),
                    Step::Arrive(_) | Step::Lose(_) => {}
                }
                while own.forget_beyond(limit).is_some() {}
            }
            peer.apply(&send(&own, peer.have()), 100);
            prop_assert_eq!(peer.agrees(own.version(), own.view(1)), Some(true));
            let should: Vec<_> = own.iter().map(|(key, flow, _)| (key, flow)).collect();
            prop_assert_eq!(peer.iter().collect::<Vec<_>>(), should);
        }
    }
}
