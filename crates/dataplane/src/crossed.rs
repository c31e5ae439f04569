//! Which lanes the flows of this machine cross: only flows of other machines that cross one of them
//! matter here.

use std::collections::BTreeMap;

use windtunnel_model::flow::FlowKey;
use windtunnel_model::{Lane, Time};

/// The lanes of this machine's flows.
#[derive(Debug, Default)]
pub(super) struct LocalFlowLanes {
    flows: BTreeMap<FlowKey, Vec<Lane>>,
    /// By lane: since when each flow crosses it.
    since: BTreeMap<Lane, BTreeMap<FlowKey, Time>>,
}

impl LocalFlowLanes {
    /// A flow of this machine crosses these lanes from now on, if it did not before.
    pub(super) fn begin(&mut self, key: FlowKey, now: Time, lanes: impl FnOnce() -> Vec<Lane>) {
        if self.flows.contains_key(&key) {
            return;
        }
        let lanes = lanes();
        for lane in &lanes {
            self.since.entry(*lane).or_default().insert(key, now);
        }
        self.flows.insert(key, lanes);
    }

    /// It has ended.
    pub(super) fn end(&mut self, key: &FlowKey) {
        for lane in self.flows.remove(key).into_iter().flatten() {
            let Some(flows) = self.since.get_mut(&lane) else { continue };
            flows.remove(key);
            if flows.is_empty() {
                self.since.remove(&lane);
            }
        }
    }

    /// Since when a flow of this machine crosses one of these lanes; `None` if none does.
    pub(super) fn since(&self, lanes: &[Lane]) -> Option<Time> {
        let flows = lanes.iter().filter_map(|lane| self.since.get(lane));
        flows.flat_map(BTreeMap::values).min().copied()
    }

    pub(super) fn clear(&mut self) {
        *self = LocalFlowLanes::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windtunnel_model::NodeId;

    #[test]
    fn a_lane_is_crossed_from_its_first_flow_to_the_end_of_its_last() {
        let key = |number| FlowKey { source: NodeId(0), destination: NodeId(1), number };
        let (lane, at) = (Lane::from_index, Time::from_nanos);
        let mut crossed = LocalFlowLanes::default();
        crossed.begin(key(1), at(5), || vec![lane(2), lane(4)]);
        crossed.begin(key(1), at(6), || vec![lane(8)]);
        crossed.begin(key(2), at(7), || vec![lane(4)]);
        assert_eq!(crossed.since(&[lane(8)]), None);
        assert_eq!(crossed.since(&[lane(1), lane(4)]), Some(at(5)));
        crossed.end(&key(1));
        assert_eq!((crossed.since(&[lane(2)]), crossed.since(&[lane(4)])), (None, Some(at(7))));
        crossed.end(&key(2));
        assert_eq!(crossed.since(&[lane(4)]), None);
    }
}
