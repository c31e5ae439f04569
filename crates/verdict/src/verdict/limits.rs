//! What limited nodes had of the processors, and whether the limits were held.

use windtunnel_budget::processor::{CpuUsageWindow, exceeded};
use windtunnel_limit::{LimitAccount, ResourceLimitOwner};
use windtunnel_model::quantity::total;
use windtunnel_model::{Plan, Span};
use windtunnel_trace::report::NodeLimit;

use crate::evidence::RunEvidence;
use crate::text::rounded;

/// Limits that were not held, a sentence each.
pub(super) fn doubts(evidence: &RunEvidence<'_>) -> Vec<String> {
    evidence.limits.iter().filter_map(|account| doubt(evidence.plan, account)).collect()
}

fn doubt(plan: &Plan, account: &LimitAccount) -> Option<String> {
    let of = account.owner.describe(plan);
    if let Some(why) = &account.held.failure {
        return Some(format!("the processor limit of {of} was not held: {why}"));
    }
    let exceeded = exceeded(&account.windows);
    let worst = exceeded.iter().max_by(|a, b| a.delivered().total_cmp(&b.delivered()))?;
    let asked = f64::from(worst.asked_millis) / 10.0;
    let delivered = worst.delivered() * 100.0;
    let at = rounded(Span::from_nanos(worst.end_ns));
    Some(format!(
        "the processor limit of {of} was not held in {} of {} seconds: {delivered:.1}% of a \
         processor instead of {asked:.1}% in the second until {at}, by {}",
        exceeded.len(),
        account.windows.len(),
        account.held.mechanism,
    ))
}

/// The figures as `run.json` has them.
pub(super) fn report(evidence: &RunEvidence<'_>) -> Vec<NodeLimit> {
    evidence.limits.iter().map(|account| node_limit(evidence.plan, account)).collect()
}

fn node_limit(plan: &Plan, account: &LimitAccount) -> NodeLimit {
    let bound: Vec<&CpuUsageWindow> = account.windows.iter().filter(|it| it.is_bound()).collect();
    let length_ns = total(bound.iter().map(|it| &it.length_ns));
    let used_ns = total(bound.iter().map(|it| &it.used_ns));
    let mut delivered: Vec<f64> = bound.iter().map(|it| it.delivered()).collect();
    delivered.sort_by(f64::total_cmp);
    NodeLimit {
        node: account.owner.name(plan).to_owned(),
        program: account.owner.program(),
        reservation: matches!(account.owner, ResourceLimitOwner::Reservation(_)),
        mechanism: account.held.mechanism,
        asked_cpus: account.held.asked as f64 / 1000.0,
        windows: account.windows.len(),
        bound_windows: bound.len(),
        delivered_mean_cpus: used_ns as f64 / length_ns.max(1) as f64,
        delivered_median_cpus: delivered.get(delivered.len() / 2).copied().unwrap_or(0.0),
        delivered_max_cpus: delivered.last().copied().unwrap_or(0.0),
        used_ns: total(account.windows.iter().map(|it| &it.used_ns)),
        throttled_ns: total(account.windows.iter().map(|it| &it.held_ns)),
        failure: account.held.failure.clone(),
    }
}
