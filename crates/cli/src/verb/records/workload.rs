//! `records workload`: what the programs did, to be done again over another network.

use windtunnel_evidence::workload::workload;

use crate::exit::ExitCategory;
use crate::failure::{Outcome, VerbFailure};
use crate::output::{self, OutputDestination};
use crate::records::RunFolder;

/// Write what the programs did, as JSON lines: `replay` of a node does it again
///
/// Each connection is a line: both sides' writes, reads and closes, and the time between them that
/// was thinking, not waiting for the network.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordsWorkloadArguments {
    #[command(flatten)]
    run: RunFolder,
    #[command(flatten)]
    destination: OutputDestination,
}

pub(crate) fn run(arguments: &RecordsWorkloadArguments) -> Outcome {
    let workload = workload(&arguments.run.load()?);
    for problem in &workload.problems {
        output::talk(&format!("left out: {problem}"));
    }
    if workload.connections.is_empty() {
        let text = "no connection has calls of both its sides in the records";
        let failure = VerbFailure::new(ExitCategory::Check, text);
        return Err(failure.hint("the layer `calls` must be recorded at both nodes"));
    }
    let lines = workload.to_lines();
    match arguments.destination.path() {
        Some(_) => arguments.destination.write(&lines)?,
        None => output::data(&lines)?,
    }
    Ok(ExitCategory::Fine.code())
}
