//! Expectations.

use alloc::borrow::ToOwned;

use crate::expect::{ExitWanted, Expectation, ExpectationClaim, ProgramFact, ServiceFact};
use crate::plan::Plan;
use crate::time::Span;

use super::node::PATTERN_BYTES_MAX;
use crate::message::{PlanValidationError, ensure};

pub(super) fn validate(plan: &Plan, wanted: &Expectation) -> Result<(), PlanValidationError> {
    let window = wanted.window.is_none_or(|window| window.to.is_none_or(|to| window.from < to));
    let claim = match &wanted.claim {
        ExpectationClaim::Program { nodes, fact } => {
            !nodes.is_empty() && nodes.iter().all(|node| plan.has_node(*node)) && is_fact(fact)
        }
        ExpectationClaim::Path { from, to, every, .. } => {
            plan.has_node(*from)
                && plan.has_node(*to)
                && every.is_none_or(|every| every >= EVERY_MIN)
        }
        ExpectationClaim::Link { lane, .. } => plan.has_lane(*lane),
        ExpectationClaim::Service { service, fact } => {
            let known = match fact {
                ServiceFact::Share(nodes, _) => nodes.iter().all(|node| plan.has_node(*node)),
                _ => true,
            };
            known && service.index() < plan.services.len()
        }
    };
    ensure(window && claim, || "an expectation is about what the run does not have".to_owned())
}

fn is_fact(fact: &ProgramFact) -> bool {
    match fact {
        ProgramFact::Exit(ExitWanted::Signal(signal)) => (1..=SIGNAL_MAX).contains(signal),
        ProgramFact::Log { pattern, .. } => pattern.len() <= PATTERN_BYTES_MAX,
        _ => true,
    }
}

/// Echo requests, not more often than each.
const EVERY_MIN: Span = Span::from_millis(1);
/// The last signal of Linux (signal(7)).
const SIGNAL_MAX: i32 = 64;
