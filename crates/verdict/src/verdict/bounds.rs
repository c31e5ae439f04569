//! What programs used of memory, processes, descriptors and disks, and whether these limits were held.

use windtunnel_limit::Mechanism;
use windtunnel_model::Plan;
use windtunnel_trace::report::NodeBound;

use crate::evidence::{ResourceLimit, ResourceLimitKind, ResourceLimitOwner, RunEvidence};

/// Limits that were not held, a sentence each.
pub(super) fn doubts(evidence: &RunEvidence<'_>) -> Vec<String> {
    evidence.bounds.iter().filter_map(|bound| doubt(evidence.plan, bound)).collect()
}

fn doubt(plan: &Plan, bound: &ResourceLimit) -> Option<String> {
    let why = bound.failure.as_ref()?;
    let of = bound.owner.describe(plan);
    Some(format!("the limit `{}` of {of} was not held: {why}", bound.kind))
}

/// Limits that were exceeded between two looks of what watches them, a sentence each.
pub(super) fn warnings(evidence: &RunEvidence<'_>) -> Vec<String> {
    evidence.bounds.iter().filter_map(|bound| overshoot(evidence.plan, bound)).collect()
}

fn overshoot(plan: &Plan, bound: &ResourceLimit) -> Option<String> {
    let most = bound.looks.iter().map(|look| look.asked).fold(bound.asked, u64::max);
    let is_watched = bound.mechanism == Mechanism::Watch.to_string();
    let what = match bound.kind {
        ResourceLimitKind::Memory => "bytes were in use",
        ResourceLimitKind::Pids => "processes and threads ran",
        ResourceLimitKind::OpenFiles | ResourceLimitKind::Disk => return None,
    };
    (is_watched && bound.peak > most).then(|| {
        let (of, peak) = (bound.owner.describe(plan), bound.peak);
        format!(
            "the limit `{}` of {of}: {peak} {what} between two looks of the watch, where {most} are \
             allowed",
            bound.kind
        )
    })
}

/// The figures as `run.json` has them.
pub(super) fn report(evidence: &RunEvidence<'_>) -> Vec<NodeBound> {
    evidence.bounds.iter().map(|bound| node_bound(evidence.plan, bound)).collect()
}

fn node_bound(plan: &Plan, bound: &ResourceLimit) -> NodeBound {
    NodeBound {
        node: bound.owner.name(plan).to_owned(),
        program: bound.owner.program(),
        reservation: matches!(bound.owner, ResourceLimitOwner::Reservation(_)),
        limit: bound.kind.to_string(),
        mechanism: bound.mechanism.clone(),
        asked: bound.asked,
        peak: (bound.kind != ResourceLimitKind::OpenFiles).then_some(bound.peak),
        met: bound.met,
        ended: bound.ended,
        faults: (bound.kind == ResourceLimitKind::Memory).then_some(bound.faults),
        evicted: bound.evicted,
        refaulted: bound.refaulted,
        read: bound.read,
        written: bound.written,
        failure: bound.failure.clone(),
    }
}
