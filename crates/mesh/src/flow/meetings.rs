//! Flows to the same node meet on the last link of their way, which no others cross. So that not
//! every flow has to be announced to all at once, the agent of the node, which receives all flows
//! to it at once, introduces the agents of those that meet there to each other.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use windtunnel_model::NodeId;
use windtunnel_model::flow::FlowKey;

/// Which members have flows to which node, as far as this agent has to know.
#[derive(Debug, Default)]
pub(crate) struct SharedDestinationTable {
    /// The nodes of this agent.
    pub(crate) nodes: BTreeSet<NodeId>,
    /// By node of this agent and member: the flows to it. This agent's own are among them.
    arriving: BTreeMap<NodeId, BTreeMap<u32, BTreeSet<FlowKey>>>,
    /// By node of another agent: this agent's flows to it, and the members whose flows they meet.
    met: BTreeMap<NodeId, SharedDestination>,
}

#[derive(Debug, Default)]
struct SharedDestination {
    own: BTreeSet<FlowKey>,
    members: BTreeSet<u32>,
}

impl SharedDestinationTable {
    /// A member has a flow. If it is its first one to a node of this agent: the members whose flows
    /// it meets.
    pub(crate) fn begin(&mut self, member: u32, key: FlowKey) -> Vec<u32> {
        if !self.nodes.contains(&key.destination) {
            return Vec::new();
        }
        let here = self.arriving.entry(key.destination).or_default();
        let others: Vec<u32> = here.keys().copied().filter(|other| *other != member).collect();
        let flows = here.entry(member).or_default();
        let is_first = flows.is_empty();
        flows.insert(key);
        if is_first { others } else { Vec::new() }
    }

    /// A member's flow has ended.
    pub(crate) fn end(&mut self, member: u32, key: &FlowKey) {
        let Some(here) = self.arriving.get_mut(&key.destination) else { return };
        let Some(flows) = here.get_mut(&member) else { return };
        flows.remove(key);
        if flows.is_empty() {
            here.remove(&member);
        }
        if here.is_empty() {
            self.arriving.remove(&key.destination);
        }
    }

    /// This agent has a flow. Returns the members whose flows it is known to meet.
    pub(crate) fn begin_own(&mut self, me: u32, key: FlowKey) -> Vec<u32> {
        if self.nodes.contains(&key.destination) {
            self.begin(me, key);
            let here = self.arriving.get(&key.destination);
            let members = here.into_iter().flat_map(BTreeMap::keys).copied();
            return members.filter(|member| *member != me).collect();
        }
        let met = self.met.entry(key.destination).or_default();
        met.own.insert(key);
        met.members.iter().copied().collect()
    }

    /// This agent's flow has ended.
    pub(crate) fn end_own(&mut self, me: u32, key: &FlowKey) {
        self.end(me, key);
        if let Some(met) = self.met.get_mut(&key.destination) {
            met.own.remove(key);
            if met.own.is_empty() {
                self.met.remove(&key.destination);
            }
        }
    }

    /// Members have flows to a node. Answers whether this agent has one, so that they are to
    /// receive of it.
    pub(crate) fn meet(&mut self, node: NodeId, members: &[u32]) -> bool {
        let met = self.met.get_mut(&node);
        met.map(|met| met.members.extend(members)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: u32, destination: u32) -> FlowKey {
        FlowKey { source: NodeId(source), destination: NodeId(destination), number: 0 }
    }

    #[test]
    fn the_first_flow_of_a_member_to_a_node_meets_those_of_the_others() {
        let mut meetings = SharedDestinationTable {
            nodes: [NodeId(9)].into(),
            ..SharedDestinationTable::default()
        };
        assert!(meetings.begin(1, key(1, 9)).is_empty());
        assert_eq!(meetings.begin(2, key(2, 9)), [1]);
        assert!(meetings.begin(2, key(3, 9)).is_empty(), "they have met");
        assert!(meetings.begin(3, key(4, 8)).is_empty(), "another agent's node");
        meetings.end(1, &key(1, 9));
        assert_eq!(meetings.begin(3, key(4, 9)), [2]);
        assert_eq!(meetings.begin_own(0, key(5, 9)), [2, 3]);
        assert_eq!(meetings.begin(1, key(1, 9)), [0, 2, 3]);
    }

    #[test]
    fn the_flows_that_a_flow_meets_are_remembered_as_long_as_it_runs() {
        let mut meetings = SharedDestinationTable::default();
        assert!(!meetings.meet(NodeId(9), &[1]), "no flow here");
        assert!(meetings.begin_own(0, key(5, 9)).is_empty());
        assert!(meetings.meet(NodeId(9), &[1, 2]));
        assert_eq!(meetings.begin_own(0, key(6, 9)), [1, 2]);
        meetings.end_own(0, &key(5, 9));
        meetings.end_own(0, &key(6, 9));
        assert!(meetings.begin_own(0, key(5, 9)).is_empty());
    }
}
