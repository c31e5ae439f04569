//! What becomes of the programs of a node with it.

use windtunnel_model::plan::NodeVerb;
use windtunnel_model::{NodeId, Span};
use windtunnel_verdict::evidence::{ProgramExit, ProgramKey, ProgramLifecycle};

use super::Supervisor;

impl Supervisor {
    /// Nodes will join later: the run does not end before they have.
    pub(crate) fn expect_joins(&mut self, nodes: &[NodeId]) {
        for node in nodes {
            *self.joins_to_come.entry(node.index()).or_default() += 1;
        }
    }

    /// A node has died and everything in it with it, by SIGKILL. Returns the programs that it ran;
    /// they are not started again.
    pub(crate) fn on_node_died(&mut self, node: usize, now: Span) -> Vec<ProgramKey> {
        self.spawns.retain(|_, key| key.node != node);
        let exit = ProgramExit { code: 137, signal: Some(9) };
        let programs = self.programs.iter_mut().filter(|(key, _)| key.node == node);
        let running = programs.filter(|(_, program)| program.life.is_running());
        let ended = running.map(|(key, program)| {
            program.last_exit = Some(exit);
            program.exited_at = Some(now);
            program.life = ProgramLifecycle::Exited { exit };
            *key
        });
        ended.collect()
    }

    /// An event does something to a node. The signals themselves are sent by the run loop.
    pub(crate) fn on_verb(&mut self, node: NodeId, verb: NodeVerb, now: Span) {
        let programs = self.programs.iter_mut().filter(|(key, _)| key.node == node.index());
        for (_, program) in programs {
            program.on_verb(verb, now);
        }
    }

    /// Whether an event has paused a program of this node.
    pub(crate) fn is_paused(&self, node: usize) -> bool {
        self.programs.iter().any(|(key, program)| key.node == node && program.paused)
    }

    /// A node leaves, or is absent from the beginning. The signals themselves are sent by the run
    /// loop.
    pub(crate) fn on_leave(&mut self, node: NodeId, now: Span) {
        let programs = self.programs.iter_mut().filter(|(key, _)| key.node == node.index());
        programs.for_each(|(_, program)| program.leave(now));
    }

    /// How many programs of a node run, if all of them did before a time; `None` if one was started
    /// since, or is being started.
    pub(crate) fn running_before(&self, node: usize, at: Span) -> Option<usize> {
        let first = ProgramKey { node, program: 0 };
        let programs = self.programs.range(first..).take_while(|(key, _)| key.node == node);
        let mut running = 0;
        for (_, program) in programs {
            match program.life {
                ProgramLifecycle::Starting => return None,
                ProgramLifecycle::Running { since, .. } if since >= at => return None,
                ProgramLifecycle::Running { .. } => running += 1,
                _ => {}
            }
        }
        Some(running)
    }

    /// Whether a node is outside the population that churn makes.
    #[must_use]
    pub(crate) fn is_absent(&self, node: NodeId) -> bool {
        let mut programs = self.programs.iter();
        programs.any(|(key, program)| key.node == node.index() && program.absent)
    }

    /// A node joins, which may have been `planned` for a time: the next [`Supervisor::tick`] starts
    /// what may start.
    pub(crate) fn on_join(&mut self, node: NodeId, now: Span, planned: Option<Span>) {
        if let Some(left) = self.joins_to_come.get_mut(&node.index()) {
            *left = left.saturating_sub(1);
        }
        let programs = self.programs.iter_mut().filter(|(key, _)| key.node == node.index());
        programs.for_each(|(_, program)| program.join(now, planned));
    }
}
