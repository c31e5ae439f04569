//! What programs used of memory, processes, descriptors and disks, and whether these limits were held.

use windtunnel_limit::{LimitAccount, ResourceLimitOwner};
use windtunnel_model::{HeldLimit, LimitMechanism, Plan, Resource};
use windtunnel_trace::report::NodeBound;

use crate::evidence::RunEvidence;

/// Limits that were not held, a sentence each.
pub(super) fn doubts(evidence: &RunEvidence<'_>) -> Vec<String> {
    evidence.bounds.iter().filter_map(|bound| doubt(evidence.plan, bound)).collect()
}

fn doubt(plan: &Plan, bound: &LimitAccount) -> Option<String> {
    let why = bound.held.failure.as_ref()?;
    let of = bound.owner.describe(plan);
    Some(format!("the limit `{}` of {of} was not held: {why}", bound.resource))
}

/// Limits that were exceeded between two looks of what watches them, a sentence each.
pub(super) fn warnings(evidence: &RunEvidence<'_>) -> Vec<String> {
    evidence.bounds.iter().filter_map(|bound| overshoot(evidence.plan, bound)).collect()
}

fn overshoot(plan: &Plan, bound: &LimitAccount) -> Option<String> {
    let most = bound.looks.iter().map(|look| look.asked).fold(bound.held.asked, u64::max);
    let is_watched = bound.held.mechanism == LimitMechanism::Watch;
    let what = match bound.resource {
        Resource::Memory => "bytes were in use",
        Resource::Pids => "processes and threads ran",
        Resource::Cpu | Resource::OpenFiles | Resource::Disk => return None,
    };
    let peak = bound.held.peak.unwrap_or(0);
    (is_watched && peak > most).then(|| {
        let of = bound.owner.describe(plan);
        format!(
            "the limit `{}` of {of}: {peak} {what} between two looks of the watch, where {most} are \
             allowed",
            bound.resource
        )
    })
}

/// The figures as `run.json` has them.
pub(super) fn report(evidence: &RunEvidence<'_>) -> Vec<NodeBound> {
    evidence.bounds.iter().map(|bound| node_bound(evidence.plan, bound)).collect()
}

fn node_bound(plan: &Plan, bound: &LimitAccount) -> NodeBound {
    NodeBound {
        node: bound.owner.name(plan).to_owned(),
        program: bound.owner.program(),
        reservation: matches!(bound.owner, ResourceLimitOwner::Reservation(_)),
        limit: bound.resource,
        held: HeldLimit { used: None, names: Vec::new(), ..bound.held.clone() },
    }
}
