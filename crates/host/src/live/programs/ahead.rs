//! Events about programs that are still to come. Ahead of one that signals a group, its processes
//! are found.

use std::collections::BTreeMap;

use windtunnel_model::plan::{EventAction, NodeVerb};
use windtunnel_model::{NodeId, Span};
use windtunnel_sys::process::Signal;

use super::super::agenda::EventActionQueue;
use super::super::aim::{SignalTargetCache, SignalTargetSet};
use super::super::context::RunContext;
use crate::supervisor::Supervisor;

/// Events about programs that are still to come, and the processes that were found ahead of them.
#[derive(Debug, Default)]
pub(super) struct ProgramEventQueue {
    pub(super) agenda: EventActionQueue,
    /// What events are about to signal.
    aims: SignalTargetCache,
}

impl ProgramEventQueue {
    /// Finds the processes of nodes that an event is about to signal; of a few, as others wait for this
    /// thread.
    pub(super) fn look_ahead(&mut self, cx: &RunContext, elapsed: Span) {
        let is_open = |node: &&NodeId| !self.aims.has(node.index()) && cx.nodes.is_here(**node);
        let due = self.groups_ahead(elapsed).filter(|(look, _)| *look <= elapsed);
        let nodes = due.flat_map(|(_, nodes)| nodes).filter(is_open).take(NODES_A_TURN);
        for node in nodes.copied().collect::<Vec<_>>() {
            self.aims.add(node.index(), elapsed, cx.nodes.inits().aim(node));
        }
    }

    /// When the next event is due, or [`ProgramEventQueue::look_ahead`] has something to do.
    pub(super) fn next_wake(&self, elapsed: Span) -> Option<Span> {
        let is_open = |nodes: &[NodeId]| nodes.iter().any(|node| !self.aims.has(node.index()));
        let groups = self.groups_ahead(elapsed);
        let groups = groups.filter(|(look, nodes)| *look > elapsed || is_open(nodes));
        groups.map(|(look, _)| look).chain(self.agenda.next()).min()
    }

    /// Sends a signal to all processes of some nodes that were found, where another one of the same
    /// does nothing. Returns when that was done, where no program was left out.
    pub(super) fn signal_found(
        &mut self,
        cx: &RunContext,
        supervisor: &Supervisor,
        nodes: impl Iterator<Item = usize>,
        signals: &[Signal],
    ) -> BTreeMap<usize, Span> {
        let [signal] = signals else { return BTreeMap::new() };
        if *signal != Signal::KILL && *signal != Signal::STOP {
            return BTreeMap::new();
        }
        let found: Vec<_> = nodes.filter_map(|node| Some((node, self.aims.take(node)?))).collect();
        let mut sent = Vec::with_capacity(found.len());
        for (node, found) in &found {
            let of = found.aim.as_ref().filter(|aim| aim.send(*signal)).map(SignalTargetSet::count);
            sent.extend(of.map(|count| (*node, found.at, count, cx.journal.elapsed())));
        }
        let is_whole = |node, at, count: usize| {
            supervisor.running_before(node, at).is_some_and(|running| running <= count)
        };
        let whole = sent.into_iter().filter(|(node, at, count, _)| is_whole(*node, *at, *count));
        whole.map(|(node, _, _, at)| (node, at)).collect()
    }

    /// Groups that are to be killed or stopped, of the next events, and when to look for them.
    fn groups_ahead(&self, elapsed: Span) -> impl Iterator<Item = (Span, &[NodeId])> {
        let from = self.agenda.next().map_or(elapsed, |next| next.max(elapsed));
        self.agenda.until(from + AHEAD_MOST).filter_map(|(at, action)| {
            let nodes = signalled(action).filter(|nodes| nodes.len() > 1)?;
            Some((at.saturating_sub(ahead_of(nodes.len())), nodes))
        })
    }
}

/// The nodes that an action kills or stops.
fn signalled(action: &EventAction) -> Option<&[NodeId]> {
    match action {
        EventAction::Node { nodes, verb: NodeVerb::Kill | NodeVerb::Restart | NodeVerb::Pause }
        | EventAction::Churn { leave: nodes, by: NodeVerb::Kill, .. } => Some(nodes),
        _ => None,
    }
}

/// How long before an event its processes are looked for: four times what looking takes.
fn ahead_of(nodes: usize) -> Span {
    let each = AHEAD_EACH.as_nanos().saturating_mul(nodes as u64);
    (AHEAD_LEAST + Span::from_nanos(each)).min(AHEAD_MOST)
}

const AHEAD_LEAST: Span = Span::from_millis(20);
const AHEAD_EACH: Span = Span::from_micros(500);
const AHEAD_MOST: Span = Span::from_secs(1);
/// Some 0.1 ms each: what else is due meanwhile waits no longer than that.
const NODES_A_TURN: usize = 4;

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};

    use super::*;
    use crate::live::testing::{context, plan, programs, set_clock};

    const GROUP: &str = "
nodes: {a: {run: x, count: 2}, b: {run: x}}
links: [{between: [a, b]}]
events: [{at: 1s, node: a, do: kill}]
";

    fn child() -> Child {
        Command::new("sleep").arg("1000").spawn().expect("a process")
    }

    /// A run in which all programs were started, until shortly before its event.
    fn just_before(file: &str, found: &[(usize, &[u32])]) -> Vec<Option<u64>> {
        let (context, sent, log) = context(plan(file), None);
        let mut programs = programs(&context);
        programs.tick(&context, Span::ZERO);
        for spawn in 1..=3 {
            programs.spawned(&context, spawn, 7, context.journal.origin());
        }
        found.iter().for_each(|(node, children)| sent.has_children(*node, children));
        // 20 ms, and half a millisecond for each node.
        let look = Span::from_millis(979);
        assert_eq!(programs.next_wake(Span::from_millis(500)), Some(look));
        let origin = context.journal.origin();
        set_clock(origin + look);
        programs.tick(&context, look);
        assert_eq!(sent.signals(), [], "nothing is sent ahead of time");
        assert_eq!(programs.next_wake(look), Some(Span::from_secs(1)));
        set_clock(origin + Span::from_secs(1));
        programs.tick(&context, Span::from_secs(1));
        assert_eq!(sent.signals(), [(0, 9), (1, 9)], "for what was made meanwhile");
        let kills = log.events().into_iter().filter(|event| event.intended_ns.is_some());
        assert!(kills.map(|event| event.at_ns).eq([1_000_000_000; 2]));
        let tokens = sent.requests().into_iter().filter_map(|(_, request)| match request {
            windtunnel_node::NodeInitRequest::Signal { token, .. } => Some(token),
            _ => None,
        });
        let tokens = tokens.collect();
        let planned = context.punctuality.into_inner().finish(Span::from_secs(1));
        assert_eq!((planned.happened, planned.late), (2, 0));
        tokens
    }

    #[test]
    fn processes_of_a_group_that_were_found_ahead_are_killed_by_the_run_itself() {
        let mut children = [child(), child()];
        let [one, two] = [children[0].id(), children[1].id()];
        let tokens = just_before(GROUP, &[(0, &[one]), (1, &[two])]);
        // No node has to say when it was done.
        assert_eq!(tokens, [None, None]);
        for child in &mut children {
            assert_eq!(child.wait().expect("it has ended").signal(), Some(9));
        }
    }

    #[test]
    fn a_node_of_which_a_program_was_not_found_confirms_the_signal_itself() {
        let mut child = child();
        let tokens = just_before(GROUP, &[(0, &[child.id()]), (1, &[])]);
        assert_eq!(tokens, [None, Some(0)]);
        assert_eq!(child.wait().expect("it has ended").signal(), Some(9));
    }
}
