//! Which packets are recorded.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use windtunnel_model::plan::{
    FlowEnd, FlowPattern, NodeInterface, PatternProtocol, Plan, RecordChoice, RecordDirection,
};
use windtunnel_model::record::kind::SOURCE_QUEUE;
use windtunnel_model::{Lane, NodeId};

use super::flows::RecordedFlow;
use super::sight::{MappedSocket, mapped};

/// Which packets are recorded: as a choice says, in terms of a plan's addresses.
///
/// What is empty excludes nothing. Flows are judged once, when they are seen first.
#[derive(Debug, Clone, Default)]
pub struct RecordSettings {
    /// By lane; empty: all.
    lanes: Vec<bool>,
    patterns: Vec<FlowPatternMatcher>,
    /// Addresses of which one has to be an end.
    ends: BTreeSet<u128>,
    direction: Option<RecordDirection>,
}

#[derive(Debug, Clone)]
struct FlowPatternMatcher {
    protocol: Option<PatternProtocol>,
    ends: Vec<PatternEnd>,
}

#[derive(Debug, Clone)]
struct PatternEnd {
    /// `None`: any.
    addresses: Option<BTreeSet<u128>>,
    port: Option<u16>,
}

impl RecordSettings {
    /// What a choice means in a plan. Its layers are not looked at; names that the plan does not
    /// have fit nothing.
    #[must_use]
    pub fn new(choice: &RecordChoice, plan: &Plan) -> Self {
        let pattern = |pattern: &FlowPattern| FlowPatternMatcher {
            protocol: pattern.protocol,
            ends: pattern.ends.iter().map(|end| PatternEnd::new(end, plan)).collect(),
        };
        RecordSettings {
            lanes: Vec::new(),
            patterns: choice.flows.iter().map(pattern).collect(),
            ends: choice.nodes.iter().flat_map(|node| addresses(plan, *node)).collect(),
            direction: choice.direction,
        }
    }

    /// The same, on these lanes only.
    #[must_use]
    pub fn on_lanes(self, lanes: &[Lane]) -> Self {
        let most = lanes.iter().map(|lane| lane.index() + 1).max().unwrap_or(1);
        let mut chosen = vec![false; most];
        lanes.iter().for_each(|lane| chosen[lane.index()] = true);
        RecordSettings { lanes: chosen, ..self }
    }

    pub(super) fn wants(&self, flow: &RecordedFlow) -> bool {
        let (from, to) = flow.ends();
        let of_nodes = self.ends.is_empty()
            || self.ends.contains(&from.address)
            || self.ends.contains(&to.address);
        let fits = |pattern: &FlowPatternMatcher| pattern.fits(flow.protocol(), from, to);
        of_nodes && (self.patterns.is_empty() || self.patterns.iter().any(fits))
    }

    #[inline]
    pub(super) fn wants_direction(&self, reverse: bool) -> bool {
        match self.direction {
            None => true,
            Some(RecordDirection::Forward) => !reverse,
            Some(RecordDirection::Reverse) => reverse,
        }
    }

    #[inline]
    pub(super) fn wants_lane(&self, lane: u32) -> bool {
        let at = || usize::try_from(lane & !SOURCE_QUEUE).unwrap_or(usize::MAX);
        self.lanes.is_empty() || self.lanes.get(at()).copied().unwrap_or(false)
    }

    /// Whether packets that belong to no flow are left out.
    pub(super) fn chooses_flows(&self) -> bool {
        !self.patterns.is_empty() || !self.ends.is_empty() || self.direction.is_some()
    }
}

impl FlowPatternMatcher {
    fn fits(&self, protocol: u8, from: MappedSocket, to: MappedSocket) -> bool {
        self.protocol.is_none_or(|it| it.has_number(protocol))
            && match &self.ends[..] {
                [] => true,
                [end] => end.fits(from) || end.fits(to),
                [a, b, ..] => (a.fits(from) && b.fits(to)) || (a.fits(to) && b.fits(from)),
            }
    }
}

impl PatternEnd {
    fn new(end: &FlowEnd, plan: &Plan) -> Self {
        let of_host = |host: &str| match host.parse::<IpAddr>() {
            Ok(address) => BTreeSet::from([mapped(address)]),
            Err(_) => {
                plan.nodes_named(host).into_iter().flat_map(|node| addresses(plan, node)).collect()
            }
        };
        PatternEnd { addresses: end.host.as_deref().map(of_host), port: end.port }
    }

    fn fits(&self, end: MappedSocket) -> bool {
        self.addresses.as_ref().is_none_or(|addresses| addresses.contains(&end.address))
            && self.port.is_none_or(|wanted| wanted == end.port)
    }
}

fn addresses(plan: &Plan, node: NodeId) -> Vec<u128> {
    let interfaces = plan.nodes.get(node.index()).map(|node| &node.interfaces[..]);
    let addresses = interfaces.unwrap_or_default().iter().flat_map(NodeInterface::addresses);
    addresses.map(mapped).collect()
}
