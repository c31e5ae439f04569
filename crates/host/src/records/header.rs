//! What files of records begin with.

use std::net::IpAddr;

use windtunnel_engine::DROP_REASON_NAMES;
use windtunnel_evidence::file::{LaneName, RecordFileHeader};
use windtunnel_model::plan::{Node, NodeInterface};
use windtunnel_model::record::kind::RecordSource;
use windtunnel_model::{Lane, Plan};

use super::EvidenceRecorder;

impl EvidenceRecorder {
    pub(super) fn header(&self) -> RecordFileHeader {
        let plan = &self.plan;
        let lane = |index| {
            let lane = Lane::from_index(index);
            LaneName {
                link: plan.links[lane.link.index()].name.clone(),
                from: plan.vertex_name(plan.lane_start(lane)).to_owned(),
                to: plan.vertex_name(plan.lane_end(lane)).to_owned(),
            }
        };
        let reasons = DROP_REASON_NAMES.iter();
        let wanted = |layer: &RecordSource| {
            self.recording.choice.has_layer(*layer) && !self.unavailable.contains_key(layer)
        };
        let layers = RecordSource::ALL.iter().filter(|layer| wanted(layer));
        RecordFileHeader {
            run: plan.name.clone(),
            plan: self.plan_hash.clone(),
            member: self.member.as_ref().map(|(_, name)| name.clone()),
            origin_ns: self.origin.0.as_nanos(),
            origin_unix_ns: self.origin.1,
            anonymous: self.recording.anonymous,
            layers: layers.map(|layer| layer.name().to_owned()).collect(),
            nodes: plan.nodes.iter().map(|node| node.name.clone()).collect(),
            addresses: if self.recording.anonymous { Vec::new() } else { addresses(plan) },
            lanes: (0..plan.links.len() * 2).map(lane).collect(),
            drop_reasons: reasons.map(|reason| (*reason).to_owned()).collect(),
            ..RecordFileHeader::new(&format!("windtunnel {}", env!("CARGO_PKG_VERSION")))
        }
    }
}

/// By node: its addresses.
fn addresses(plan: &Plan) -> Vec<Vec<IpAddr>> {
    let of = |node: &Node| node.interfaces.iter().flat_map(NodeInterface::addresses).collect();
    plan.nodes.iter().map(of).collect()
}
