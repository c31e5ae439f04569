//! What the file expects, beside what was seen.

mod link;
mod outcome;
mod path;
mod program;
mod service;

use windtunnel_model::Span;
use windtunnel_model::expect::{Expectation as Asked, ExpectationClaim};
use windtunnel_trace::report::ExpectationResult;

use crate::evidence::RunEvidence;
use crate::text::rounded;
use outcome::ExpectationOutcome;
pub(super) use program::ending;

/// Every expectation of the plan, checked.
pub(super) fn check(evidence: &RunEvidence<'_>) -> Vec<ExpectationResult> {
    let asked = evidence.plan.expectations.iter().enumerate();
    asked.map(|(index, asked)| check_one(evidence, index, asked)).collect()
}

fn check_one(evidence: &RunEvidence<'_>, index: usize, asked: &Asked) -> ExpectationResult {
    let window = asked.window;
    let mut found = match &asked.claim {
        ExpectationClaim::Program { nodes, fact } => program::check(evidence, index, nodes, fact),
        ExpectationClaim::Path { from, to, fact, .. } => {
            path::check(evidence, asked, *from, *to, fact)
        }
        ExpectationClaim::Link { lane, fact } => link::check(evidence, window, *lane, fact),
        ExpectationClaim::Service { service, fact } => service::check(evidence, *service, fact),
    };
    if let Some(window) = window {
        found.about.push_str(&format!(", {window}"));
        let elapsed = evidence.elapsed;
        if elapsed <= window.from {
            let ended = rounded(elapsed);
            (found.met, found.seen) = (false, format!("the run ended at {ended}, before that"));
            found.look = "events.jsonl: the last lines show why the run ended".to_owned();
        } else if window.to.is_some_and(|to| elapsed + EARLY < to) {
            found.seen.push_str(&format!("; the run ended at {}", rounded(elapsed)));
        }
    }
    let ExpectationOutcome { about, asked: bounds, seen, met, look } = found;
    ExpectationResult { line: asked.line, about, asked: bounds, seen, met, look }
}

/// A run that ends so little before a window's end has filled it.
const EARLY: Span = Span::from_millis(100);
