//! Messages on standard error about a run over machines.

use std::sync::Arc;

use windtunnel_cluster::protocol::Card;
use windtunnel_cluster::protocol::run::{Member, RunSetup, text_of};
use windtunnel_lead::{By, Progress, Site, Started};
use windtunnel_placement::Placement;

use super::concerns;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::verb::run::warn;

/// Prints the progress of a run; with `quiet`, only warnings.
pub(crate) fn progress(quiet: bool) -> Arc<dyn Progress> {
    Arc::new(Talk { quiet })
}

struct Talk {
    quiet: bool,
}

impl Progress for Talk {
    fn placed(&self, cards: &[Card], site: &Site, placement: &Placement) {
        if !self.quiet {
            warn(&concerns(cards, site, placement));
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
pub(crate) fn report_started(started: &Started) {
    for agent in started.agents() {
        let by = if agent.by == By::Ssh { "over ssh" } else { "by Slurm" };
        let (name, address) = (&agent.name, agent.address());
        output::talk(&format!(
            "agent on {name}: started {by}, at {address}, until this command ends"
        ));
    }
}

/// Agents that were started do not outlast this command, so no run over them may.
pub(crate) fn refuse_to_detach(started: &Started) -> Result<(), Failure> {
    let Some(first) = started.agents().first() else { return Ok(()) };
    let text = format!(
        "--detach: the run would end with this command, because the agent on {} was started by it",
        first.name
    );
    let hint =
        "start agents that stay with `windtunnel agent` on each machine, or leave --detach out";
    Err(Failure::new(Exit::Usage, text).hint(hint))
}

/// The number of nodes on each machine.
fn begins(setup: &RunSetup) -> String {
    let on =
        |(number, member): (u16, &Member)| format!("{} on {}", setup.nodes_of(number), member.host);
    let nodes: Vec<String> = (0..).zip(&setup.members).map(on).collect();
    let how = if setup.key.is_none() { "in the clear" } else { "encrypted" };
    let (run, nodes) = (text_of(setup.run), nodes.join(", "));
    format!("run {run}: nodes: {nodes}; packets between machines go {how}")
}
