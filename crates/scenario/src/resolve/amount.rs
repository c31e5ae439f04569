//! Numbers and shares of nodes.

use windtunnel_model::plan::NodeVerb;
use windtunnel_model::random::{RandomSequence, RandomStream};
use windtunnel_model::{NodeId, Plan, Probability, Span};

use crate::decode::NodeAmount;
use crate::error::Diagnostics;
use crate::position::LocatedValue;

/// So many of the nodes, by the seed: each occurrence and each verb has random numbers of its own.
pub(super) fn chosen(
    found: &mut Diagnostics,
    mut nodes: Vec<NodeId>,
    some: &LocatedValue<NodeAmount>,
    verb: NodeVerb,
    at: Span,
    plan: &Plan,
) -> Option<Vec<NodeId>> {
    let count = count_of(found, some, nodes.len())?;
    let names: Vec<&str> = nodes.iter().map(|id| plan.nodes[id.index()].name.as_str()).collect();
    let name = ["some", verb.name(), &at.to_string(), &names.join(" ")];
    let mut draws = RandomSequence::new(RandomStream::named(plan.seed, &name));
    let mut chosen: Vec<NodeId> = (0..count).filter_map(|_| draws.take(&mut nodes)).collect();
    chosen.sort_unstable();
    Some(chosen)
}

/// How many of `all` an amount is: shares are rounded, halves up, and are at least one.
pub(super) fn count_of(
    found: &mut Diagnostics,
    some: &LocatedValue<NodeAmount>,
    all: usize,
) -> Option<usize> {
    let whole = u64::try_from(all).unwrap_or(u64::MAX);
    let count = match some.value {
        NodeAmount::Count(count) => count,
        NodeAmount::Share(share) => share_of(share, whole).max(1),
    };
    if count > whole {
        found.mistake(some.place, format!("{count} nodes: there are only {all}"));
        return None;
    }
    usize::try_from(count).ok()
}

/// A share of `whole`, rounded, halves up.
pub(super) fn share_of(share: Probability, whole: u64) -> u64 {
    let exact = u128::from(share.parts_per_billion()) * u128::from(whole);
    u64::try_from((exact + 500_000_000) / 1_000_000_000).unwrap_or(u64::MAX)
}
