//! Programs that did not end as they should.

use windtunnel_model::plan::Expectation;

use super::expectations::ending;
use super::{Ending, Evidence};
use crate::output::ProgramKey;
use crate::supervisor::{Life, Supervised};

/// A program that is no daemon must have run and exited with 0; a daemon must not have exited with an
/// error. Excused are programs whose exit the file speaks of, and those that an event or the end of the run
/// has ended.
pub(super) fn failures(evidence: &Evidence<'_>) -> Vec<String> {
    let programs = evidence.supervisor.programs();
    let judged = programs.filter(|(key, _)| !file_speaks_of(evidence, *key));
    judged
        .filter(|(_, program)| failed(evidence, program))
        .map(|(key, program)| {
            let (how, _) = ending(program);
            format!("{}: {how}", evidence.supervisor.describe(key))
        })
        .collect()
}

fn failed(evidence: &Evidence<'_>, program: &Supervised) -> bool {
    if program.ended_by_event || program.ended_by_run || program.held {
        return false;
    }
    match (&program.life, program.last_exit) {
        (Life::Failed { .. }, _) => true,
        (_, Some(exit)) => exit.code != 0,
        (Life::Running { .. } | Life::Starting, None) => false,
        // Whoever cuts a run short does not want to hear of everything that had not started.
        (_, None) => matches!(evidence.ending, Ending::Finished | Ending::Duration),
    }
}

fn file_speaks_of(evidence: &Evidence<'_>, key: ProgramKey) -> bool {
    evidence.plan.expectations.iter().any(
        |expectation| matches!(expectation, Expectation::Exit { node, .. } if node.index() == key.node),
    )
}
