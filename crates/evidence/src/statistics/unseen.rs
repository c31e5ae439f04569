//! What the records of a run cannot say.

use std::collections::BTreeSet;

use windtunnel_model::record::kind::RecordSource;

use super::sums::EvidenceTotals;
use crate::RecordedRun;

pub(super) fn sentences(evidence: &RecordedRun, sums: &EvidenceTotals<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    layers(evidence, &mut sentences);
    nodes(evidence, &mut sentences);
    if sums.unknown_offsets > 0 {
        let calls = sums.unknown_offsets;
        sentences.push(format!(
            "{calls} calls are on connections that were there before recording began: their \
             offsets do not join with packets"
        ));
    }
    let reused = evidence.flows().iter().enumerate().filter(|(_, flow)| flow.reused);
    for (number, _) in reused {
        sentences.push(format!(
            "flow {number}: several sockets used its ends one after the other, which the engine \
             cannot see"
        ));
    }
    for member in evidence.members() {
        let name = member.header.member.as_deref().map(|name| format!(" of {name}"));
        let name = name.unwrap_or_default();
        if !member.missing.is_empty() {
            let files = member.missing.len();
            sentences.push(format!("{files} files{name} are missing: their records are lost"));
        }
        if member.stray > 0 {
            let stray = member.stray;
            sentences.push(format!("{stray} records{name} are of a source that is not known"));
        }
    }
    sentences
}

fn layers(evidence: &RecordedRun, sentences: &mut Vec<String>) {
    let asked: BTreeSet<&str> = evidence
        .members()
        .iter()
        .flat_map(|member| &member.header.layers)
        .map(String::as_str)
        .collect();
    for layer in RecordSource::ALL {
        let name = layer.name();
        // What is asked for may change while a file is written, whose header is its beginning.
        if evidence.origins().iter().any(|origin| origin.layer() == Some(layer)) {
            continue;
        }
        sentences.push(if asked.contains(name) {
            format!("layer {name} was recorded, and nothing came of it")
        } else {
            format!("layer {name} was not recorded")
        });
    }
}

/// Nodes at ends of flows whose programs' calls nothing saw, although others' were.
fn nodes(evidence: &RecordedRun, sentences: &mut Vec<String>) {
    let of_layer = |layer| {
        let origins = evidence.origins().iter().filter(move |origin| origin.layer() == Some(layer));
        origins.filter_map(|origin| evidence.node_name(*origin)).collect::<BTreeSet<_>>()
    };
    let seen = of_layer(RecordSource::Calls);
    if seen.is_empty() {
        return;
    }
    let ends = evidence.flows().iter().flat_map(|flow| [flow.from, flow.to]).flatten();
    let nodes: BTreeSet<u32> = ends.filter_map(|end| end.node).collect();
    for name in nodes.iter().filter_map(|node| evidence.name_of(*node)) {
        if !seen.contains(name) {
            sentences.push(format!(
                "node {name} has flows and no calls: its programs, or the way in which they use \
                 sockets, cannot be seen"
            ));
        }
    }
}
