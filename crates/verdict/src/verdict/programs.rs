//! Programs that did not end as they should.

use windtunnel_model::expect::{ExpectationClaim, ProgramFact};

use super::expectations::ending;
use crate::evidence::{ProgramKey, ProgramLifecycle, RunEndReason, RunEvidence, SupervisedProgram};

/// A program that is not a daemon must have run and exited with 0; a daemon must not have exited
/// with an error. Excused are programs whose exit the file speaks of, and those that an event or
/// the end of the run has ended.
pub(super) fn failures(evidence: &RunEvidence<'_>) -> Vec<String> {
    let programs = evidence.programs.iter();
    programs
        .filter(|(key, program)| has_failed(evidence, **key, program))
        .map(|(key, program)| {
            let (how, _) = ending(program);
            format!("{}: {how}", key.describe(evidence.plan))
        })
        .collect()
}

/// Whether a program has failed, and the file does not speak of its exit.
pub(super) fn has_failed(
    evidence: &RunEvidence<'_>,
    key: ProgramKey,
    program: &SupervisedProgram,
) -> bool {
    failed(evidence, program) && !file_speaks_of(evidence, key)
}

fn failed(evidence: &RunEvidence<'_>, program: &SupervisedProgram) -> bool {
    if program.ended_by_event || program.ended_by_run || program.held || left(program) {
        return false;
    }
    match (&program.life, program.last_exit) {
        (ProgramLifecycle::Failed { .. }, _) => true,
        (_, Some(exit)) => exit.code != 0,
        // That the machine was lost is reported by itself.
        (
            ProgramLifecycle::Running { .. } | ProgramLifecycle::Starting | ProgramLifecycle::Lost,
            None,
        ) => false,
        // If a run is cut short, programs that had not started are not reported.
        (_, None) => matches!(evidence.ending, RunEndReason::Finished | RunEndReason::Duration),
    }
}

/// Whether its node is outside the population and it did not end by itself before.
fn left(program: &SupervisedProgram) -> bool {
    program.absent && program.last_exit.is_none()
}

fn file_speaks_of(evidence: &RunEvidence<'_>, key: ProgramKey) -> bool {
    evidence.plan.expectations.iter().any(|expectation| match &expectation.claim {
        ExpectationClaim::Program { nodes, fact: ProgramFact::Exit(_) } => {
            nodes.iter().any(|node| node.index() == key.node)
        }
        _ => false,
    })
}
