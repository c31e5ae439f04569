//! The flows of other machines, as announced.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use windtunnel_model::flow::FlowKey;
use windtunnel_sharing::FlowId;

use super::names::FlowRoute;

/// All flows that were announced and have not ended.
#[derive(Debug, Default)]
pub(crate) struct RemoteFlows {
    /// By the part that announced it, and the flow's name.
    flows: BTreeMap<(u32, FlowKey), (FlowId, FlowRoute)>,
    next: u64,
}

impl RemoteFlows {
    /// A name in the table of shares that no flow has, of this machine or another one.
    pub(crate) fn number(&mut self) -> FlowId {
        self.next += 1;
        FlowId(ELSEWHERE | self.next)
    }

    pub(crate) fn find(&self, part: u32, key: FlowKey) -> Option<FlowId> {
        self.flows.get(&(part, key)).map(|(id, _)| *id)
    }

    pub(crate) fn add(&mut self, part: u32, key: FlowKey, id: FlowId, route: FlowRoute) {
        self.flows.insert((part, key), (id, route));
    }

    pub(crate) fn remove(&mut self, part: u32, key: FlowKey) -> Option<FlowId> {
        self.flows.remove(&(part, key)).map(|(id, _)| id)
    }

    /// Takes all flows of a part out.
    pub(crate) fn remove_part(&mut self, part: u32) -> Vec<FlowId> {
        let mut gone = Vec::new();
        self.flows.retain(|(of, _), (id, _)| {
            if *of == part {
                gone.push(*id);
            }
            *of != part
        });
        gone
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (FlowId, FlowRoute)> + '_ {
        self.flows.values().copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.flows.len()
    }
}

/// Own flows are counted from 0 and never reach this number.
const ELSEWHERE: u64 = 1 << 63;
