//! What events do to programs.

use std::collections::BTreeMap;

use windtunnel_model::plan::{EventAction, NodeVerb};
use windtunnel_model::word::{NamedState, NodeProgramsAction};
use windtunnel_model::{NodeId, Span};
use windtunnel_sys::process::Signal;
use windtunnel_trace::event::{EventLogEntry, EventLogEntryKind};

use super::super::context::RunContext;
use super::super::punctuality::ScheduledOccurrence;
use super::ahead::ProgramEventQueue;
use super::{ProgramExecution, ScheduledLimitChange};
use crate::supervisor::Supervisor;

/// When an event is to happen.
#[derive(Debug, Clone, Copy)]
struct IntendedTime {
    at: Span,
    /// The time was still to come when it was asked for.
    is_planned: bool,
}

impl ProgramExecution {
    /// Adds an event about programs.
    pub(in crate::live) fn add_event(&mut self, at: Span, action: EventAction) {
        self.expect_joins(&action);
        self.events.agenda.add(at, action);
    }

    /// Does an event about programs now. Returns what was done.
    pub(in crate::live) fn do_now(
        &mut self,
        cx: &RunContext,
        action: &EventAction,
        intended: Span,
    ) -> Vec<EventLogEntry> {
        self.expect_joins(action);
        self.executor(cx).act(action, IntendedTime { at: intended, is_planned: false })
    }

    /// Does the events that are due, after the starts that were due before each: however late both
    /// are, their order is the file's.
    pub(super) fn do_events(&mut self, cx: &RunContext, elapsed: Span) {
        while let Some((at, action)) = self.events.agenda.due(elapsed) {
            if !at.is_zero() {
                self.supervisor.tick(at.saturating_sub(Span::from_nanos(1)));
                self.do_commands(cx);
            }
            self.executor(cx).act(&action, IntendedTime { at, is_planned: true });
        }
    }

    fn expect_joins(&mut self, action: &EventAction) {
        if let EventAction::Churn { join, .. } = action {
            self.supervisor.expect_joins(join);
        }
    }

    fn executor<'a>(&'a mut self, cx: &'a RunContext) -> NodeEventExecutor<'a> {
        NodeEventExecutor {
            cx,
            supervisor: &mut self.supervisor,
            events: &mut self.events,
            new_limits: &mut self.new_limits,
            is_frozen: self.freeze.is_on(),
        }
    }
}

/// Does what events say to nodes that are here: the supervisor knows first, then signals are sent.
struct NodeEventExecutor<'a> {
    cx: &'a RunContext,
    supervisor: &'a mut Supervisor,
    events: &'a mut ProgramEventQueue,
    new_limits: &'a mut Vec<ScheduledLimitChange>,
    /// Whether all programs are paused, as the packet loop is behind.
    is_frozen: bool,
}

impl NodeEventExecutor<'_> {
    /// Does what an event says. Returns what was done.
    fn act(&mut self, action: &EventAction, intended: IntendedTime) -> Vec<EventLogEntry> {
        match action {
            EventAction::Node { nodes, verb } => self.do_to_nodes(nodes, *verb, intended),
            EventAction::Churn { leave, by, join } => {
                let mut events = self.leave(leave, *by, intended);
                events.extend(self.join(join, intended.at));
                events
            }
            EventAction::Absent { nodes } => self.be_absent(nodes, intended.at),
            EventAction::Limit { nodes, limits } => {
                let (nodes, limits) = (nodes.clone(), *limits);
                self.new_limits.push(ScheduledLimitChange { intended: intended.at, nodes, limits });
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn be_absent(&mut self, nodes: &[NodeId], intended: Span) -> Vec<EventLogEntry> {
        let cx = self.cx;
        let nodes = cx.nodes.named_here(nodes);
        if nodes.is_empty() {
            return Vec::new();
        }
        for node in nodes.keys() {
            self.supervisor.on_leave(NodeId::from_index(*node), cx.journal.elapsed());
        }
        let nodes = nodes.into_values().collect();
        vec![cx.journal.log(Some(intended), EventLogEntryKind::Absent { nodes })]
    }

    fn leave(
        &mut self,
        nodes: &[NodeId],
        by: NodeVerb,
        intended: IntendedTime,
    ) -> Vec<EventLogEntry> {
        let cx = self.cx;
        let nodes = cx.nodes.named_here(nodes);
        for node in nodes.keys() {
            // First, so that the exits that follow are known to be churn's doing.
            self.supervisor.on_leave(NodeId::from_index(*node), cx.journal.elapsed());
        }
        let sent = self.signal_at_once(&nodes, NodeProgramsAction::Leave, signals_of(by), intended);
        let log = |(index, node)| {
            let verb = NodeProgramsAction::Leave.into();
            let at = sent.get(&index).copied().unwrap_or_else(|| cx.journal.elapsed());
            cx.journal.log_at(at, Some(intended.at), EventLogEntryKind::Node { node, verb })
        };
        nodes.into_iter().map(log).collect()
    }

    fn join(&mut self, nodes: &[NodeId], intended: Span) -> Vec<EventLogEntry> {
        let cx = self.cx;
        let nodes = cx.nodes.named_here(nodes).into_iter();
        let join = |(index, node)| {
            let now = cx.journal.elapsed();
            self.supervisor.on_join(NodeId::from_index(index), now, Some(intended));
            let verb = NodeProgramsAction::Join.into();
            cx.journal.log(Some(intended), EventLogEntryKind::Node { node, verb })
        };
        nodes.map(join).collect()
    }

    fn do_to_nodes(
        &mut self,
        nodes: &[NodeId],
        verb: NodeVerb,
        intended: IntendedTime,
    ) -> Vec<EventLogEntry> {
        let (cx, action) = (self.cx, NodeProgramsAction::Ordered(verb));
        let (nodes, mut events) = (cx.nodes.named_here(nodes), Vec::new());
        for node in nodes.keys() {
            // First, so that the exits that follow are known to be the event's doing.
            self.supervisor.on_verb(NodeId::from_index(*node), verb, cx.journal.elapsed());
        }
        // In a freeze, what is resumed goes on when everything does.
        let sent = if verb != NodeVerb::Resume || !self.is_frozen {
            self.signal_at_once(&nodes, action, signals_of(verb), intended)
        } else {
            BTreeMap::new()
        };
        for (index, node) in nodes {
            if self.supervisor.is_absent(NodeId::from_index(index)) {
                let verb = verb.name();
                let text = format!("{node} is not there: {verb} has no effect until it joins");
                cx.journal.warn(text);
            }
            let verb = action.into();
            let at = sent.get(&index).copied().unwrap_or_else(|| cx.journal.elapsed());
            events.push(cx.journal.log_at(
                at,
                Some(intended.at),
                EventLogEntryKind::Node { node, verb },
            ));
        }
        events
    }

    /// Sends signals to several nodes, with nothing between. Returns when each had it whose processes
    /// were found ahead of it; each other confirms what was planned for a time.
    fn signal_at_once(
        &mut self,
        nodes: &BTreeMap<usize, String>,
        action: NodeProgramsAction,
        signals: &[Signal],
        intended: IntendedTime,
    ) -> BTreeMap<usize, Span> {
        let cx = self.cx;
        let IntendedTime { at: intended, is_planned } = intended;
        let sent = self.events.signal_found(cx, self.supervisor, nodes.keys().copied(), signals);
        let token = |(node, name): (&usize, &String)| {
            let (what, of) = (format!("{} of {name}", action.word()), nodes.len());
            let Some(at) = sent.get(node) else {
                return Some(cx.punctuality.borrow_mut().signal(*node, what, intended, of));
            };
            cx.happened(ScheduledOccurrence::signal(&what, of), intended, *at);
            None
        };
        let tokens = nodes.iter().map(|node| is_planned.then(|| token(node)).flatten());
        let tokens: Vec<Option<u64>> = tokens.collect();
        for (node, token) in nodes.keys().zip(tokens) {
            cx.nodes.signal_with(*node, signals, token, &cx.journal);
        }
        sent
    }
}

/// The signals that a verb sends to every process of a node.
fn signals_of(verb: NodeVerb) -> &'static [Signal] {
    match verb {
        NodeVerb::Kill | NodeVerb::Restart => &[Signal::KILL],
        // A paused program would not handle SIGTERM.
        NodeVerb::Stop => &[Signal::TERM, Signal::CONT],
        NodeVerb::Pause => &[Signal::STOP],
        NodeVerb::Resume => &[Signal::CONT],
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_node::NodeInitRequest;

    use super::*;
    use crate::live::testing::{context, plan, programs, set_clock};

    const EVENTS: &str = "
nodes: {a: {run: x}, b: {run: x, count: 2}}
links: [{between: [a, b]}]
events:
  - {at: 1s, node: a, do: pause}
  - {at: 2s, node: a, do: kill}
";

    #[test]
    fn events_of_the_file_are_done_in_order_with_the_time_that_was_asked() {
        let (context, sent, log) = context(plan(EVENTS), None);
        let mut programs = programs(&context);
        assert_eq!(programs.next_wake(Span::ZERO), Some(Span::from_secs(1)));
        programs.tick(&context, Span::ZERO);
        assert_eq!(sent.spawns().len(), 3);
        // Both are late, and keep their order.
        programs.tick(&context, Span::from_secs(3));
        assert_eq!(sent.signals(), [(0, 19), (0, 9)]);
        let intended: Vec<_> = log.events().iter().map(|event| event.intended_ns).collect();
        assert_eq!(intended, [Some(1_000_000_000), Some(2_000_000_000)]);
    }

    #[test]
    fn a_group_gets_its_signals_at_once_and_what_confirms_each_is_asked_for() {
        let file = EVENTS.replace("{at: 2s, node: a, do: kill}", "{at: 2s, node: b, do: stop}");
        let (context, sent, log) = context(plan(&file), None);
        let mut programs = programs(&context);
        programs.tick(&context, Span::ZERO);
        let origin = context.journal.origin();
        set_clock(origin + Span::from_secs(1));
        programs.tick(&context, Span::from_secs(1));
        set_clock(origin + Span::from_secs(2));
        programs.tick(&context, Span::from_secs(2));
        let tokens = sent.requests().into_iter().filter_map(|(node, request)| match request {
            NodeInitRequest::Signal { signal, token, .. } => Some((node, signal, token)),
            _ => None,
        });
        // Both signals of a node, and the last of them is confirmed.
        let expected =
            [(0, 19, Some(0)), (1, 15, None), (1, 18, Some(1)), (2, 15, None), (2, 18, Some(2))];
        assert_eq!(tokens.collect::<Vec<_>>(), expected);
        assert_eq!(log.whats().len(), 3);
        let ms = Span::from_millis;
        let mut punctuality = context.punctuality.into_inner();
        for (token, at) in [(0, 1_000), (1, 2_001), (2, 2_009)] {
            punctuality.signalled(token, ms(at));
        }
        let late = punctuality.finish(ms(3_000)).worst;
        assert_eq!(late.len(), 1);
        assert_eq!((late[0].what.as_str(), late[0].late), ("stop of b-2", ms(9)));
    }

    #[test]
    fn what_is_asked_for_at_once_has_no_time_that_it_could_miss() {
        let (context, sent, _) = context(plan(EVENTS), None);
        let mut programs = programs(&context);
        let pause = EventAction::Node { nodes: vec![NodeId(0)], verb: NodeVerb::Pause };
        programs.do_now(&context, &pause, Span::ZERO);
        let confirmed =
            |(_, request)| matches!(request, NodeInitRequest::Signal { token: Some(_), .. });
        assert!(!sent.requests().into_iter().any(confirmed));
    }

    #[test]
    fn a_node_that_leaves_is_killed_and_one_that_joins_starts_again() {
        let (context, sent, log) = context(plan(EVENTS), None);
        let mut programs = programs(&context);
        let node = |node| vec![NodeId(node)];
        let absent = EventAction::Absent { nodes: node(2) };
        assert_eq!(programs.do_now(&context, &absent, Span::ZERO).len(), 1);
        programs.tick(&context, Span::ZERO);
        assert_eq!(sent.spawns().len(), 2, "an absent node does not start");
        let churn = EventAction::Churn { leave: node(1), by: NodeVerb::Stop, join: node(2) };
        assert_eq!(programs.do_now(&context, &churn, Span::from_secs(1)).len(), 2);
        assert_eq!(sent.signals(), [(1, 15), (1, 18)]);
        programs.tick(&context, Span::from_millis(500));
        let spawns = sent.spawns();
        assert_eq!(spawns.last().map(|(node, _)| *node), Some(2));
        let whats = log.whats();
        let done = |node: &str, verb: &str| EventLogEntryKind::Node {
            node: node.into(),
            verb: verb.into(),
        };
        assert_eq!(whats[1..], [done("b-1", "leave"), done("b-2", "join")]);
    }

    #[test]
    fn an_action_on_an_absent_node_warns_that_it_has_no_effect() {
        let (context, _, log) = context(plan(EVENTS), None);
        let mut programs = programs(&context);
        let nodes = vec![NodeId(0)];
        programs.do_now(&context, &EventAction::Absent { nodes: nodes.clone() }, Span::ZERO);
        let pause = EventAction::Node { nodes, verb: NodeVerb::Pause };
        programs.do_now(&context, &pause, Span::ZERO);
        assert_eq!(log.warnings(), ["a is not there: pause has no effect until it joins"]);
    }

    #[test]
    fn events_of_other_machines_nodes_are_theirs() {
        let (context, sent, log) = context(plan(EVENTS), Some(vec![false, true, true]));
        let mut programs = programs(&context);
        let nodes = vec![NodeId(0)];
        let kill = EventAction::Node { nodes: nodes.clone(), verb: NodeVerb::Kill };
        assert!(programs.do_now(&context, &kill, Span::ZERO).is_empty());
        assert!(programs.do_now(&context, &EventAction::Absent { nodes }, Span::ZERO).is_empty());
        assert!(sent.requests().is_empty() && log.whats().is_empty());
    }
}
