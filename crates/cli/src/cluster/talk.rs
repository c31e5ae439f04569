//! Messages on standard error about a run over machines.

use std::sync::Arc;

use windtunnel_cluster::protocol::run::{RunMember, RunSetup, text_of};
use windtunnel_cluster::protocol::{AgentDescription, UnresponsiveAgent};
use windtunnel_lead::{AgentLaunchMethod, ClusterRunObserver, LaunchedAgents, PlacementHostSet};
use windtunnel_placement::NodePlacement;

use super::concerns;
use crate::exit::ExitCategory;
use crate::failure::VerbFailure;
use crate::output;

/// Prints the progress of a run; with `quiet`, only warnings.
pub(crate) fn progress(quiet: bool) -> Arc<dyn ClusterRunObserver> {
    Arc::new(ClusterRunReporter { quiet })
}

struct ClusterRunReporter {
    quiet: bool,
}

impl ClusterRunObserver for ClusterRunReporter {
    fn placed(
        &self,
        cards: &[AgentDescription],
        site: &PlacementHostSet,
        placement: &NodePlacement,
    ) {
        if !self.quiet {
            output::warn(&concerns(cards, site, placement));
        }
    }

    fn begins(&self, setup: &RunSetup) {
        if !self.quiet {
            output::talk(&begins(setup));
        }
    }

    fn warn(&self, text: &str) {
        output::talk(&format!("warning: {text}"));
    }
}

/// Prints which agents were started, and for how long.
pub(crate) fn report_started(started: &LaunchedAgents) {
    for agent in started.agents() {
        let by = if agent.by == AgentLaunchMethod::Ssh { "over ssh" } else { "by Slurm" };
        let (name, address) = (&agent.name, agent.address());
        output::talk(&format!(
            "agent on {name}: started {by}, at {address}, until this command ends"
        ));
    }
}

/// Agents that were started do not outlast this command, so no run over them may.
pub(crate) fn refuse_to_detach(started: &LaunchedAgents) -> Result<(), VerbFailure> {
    let Some(first) = started.agents().first() else { return Ok(()) };
    let text = format!(
        "--detach: the run would end with this command, because the agent on {} was started by it",
        first.name
    );
    let hint =
        "start agents that stay with `windtunnel agent` on each machine, or leave --detach out";
    Err(VerbFailure::new(ExitCategory::Usage, text).hint(hint))
}

/// `all` are all: a run on fewer machines than that is another one.
pub(crate) fn refuse_silent(silent: &[UnresponsiveAgent]) -> Result<(), VerbFailure> {
    let Some(first) = silent.first() else { return Ok(()) };
    let more = match silent.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    let text = format!(
        "the agent at {} is known to the others and does not answer: {}{more}",
        first.address, first.why
    );
    let hint = "where it is behind address translation or a firewall, start it with --advertise and \
                the address that others reach; or name the other machines in --hosts instead of `all`";
    Err(VerbFailure::new(ExitCategory::Machine, text).hint(hint))
}

/// The number of nodes on each machine.
fn begins(setup: &RunSetup) -> String {
    let on = |(number, member): (u16, &RunMember)| {
        format!("{} on {}", setup.nodes_of(number), member.host)
    };
    let nodes: Vec<String> = (0..).zip(&setup.members).map(on).collect();
    let how = if setup.key.is_none() { "in the clear" } else { "encrypted" };
    let (run, nodes) = (text_of(setup.run), nodes.join(", "));
    format!("run {run}: nodes: {nodes}; packets between machines go {how}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_of_all_that_does_not_answer_is_refused_with_its_address() {
        let silent = |last: u8| UnresponsiveAgent {
            address: ([10, 0, 0, last], 7447).into(),
            why: "no handshake within 5 s".to_owned(),
        };
        assert!(refuse_silent(&[]).is_ok());
        let failure = refuse_silent(&[silent(9), silent(8)]).expect_err("two are silent");
        let expected = "error: the agent at 10.0.0.9:7447 is known to the others and does not answer: \
                        no handshake within 5 s (and 1 more)\nhint: ";
        assert!(failure.text().starts_with(expected), "{}", failure.text());
    }
}
