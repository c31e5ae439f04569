//! The plan's events: those of nodes are done here, those of the network by the packet loop, which
//! tells.

use std::collections::BTreeMap;

use windtunnel_control::part::FromPart;
use windtunnel_model::plan::{Action, LinkChange, NodeVerb};
use windtunnel_model::{Lane, LinkPatch, NodeId, Span, Time, TraceUse};
use windtunnel_node::Request;
use windtunnel_sys::process::Signal;
use windtunnel_trace::event::{Event, What, WhyRerouted};

use super::Live;
use crate::dataplane::{Cause, Note};
use crate::ending::Ending;

/// What events do to programs, in order of time; those of one instant in the order of their coming.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    actions: BTreeMap<(Span, u64), Action>,
    added: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, at: Span, action: Action) {
        self.actions.insert((at, self.added), action);
        self.added += 1;
    }

    pub(super) fn next(&self) -> Option<Span> {
        self.actions.first_key_value().map(|((at, _), _)| *at)
    }

    fn due(&mut self, now: Span) -> Option<(Span, Action)> {
        let first = self.actions.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((at, _), action) = first.remove_entry();
        Some((at, action))
    }
}

impl Live {
    /// Adds an event about programs.
    pub(super) fn plan_for_programs(&mut self, at: Span, action: Action) {
        if let Action::Churn { join, .. } = &action {
            self.supervisor.expect_joins(join);
        }
        self.agenda.add(at, action);
    }

    /// Does the events about programs that are due, after the starts that were due before each:
    /// however late both are, their order is the file's.
    pub(super) fn do_node_events(&mut self, elapsed: Span) {
        while let Some((at, action)) = self.agenda.due(elapsed) {
            if !at.is_zero() {
                self.supervisor.tick(at.saturating_sub(Span::from_nanos(1)));
                self.do_commands();
            }
            self.do_to_programs(&action, at);
        }
    }

    /// Returns what was done.
    pub(super) fn do_to_programs(&mut self, action: &Action, intended: Span) -> Vec<Event> {
        match action {
            Action::Node { nodes, verb } => self.do_to_nodes(nodes, *verb, intended),
            Action::Churn { leave, by, join } => self.churn(leave, *by, join, intended),
            Action::Absent { nodes } => {
                let now = self.elapsed();
                let nodes: Vec<NodeId> = self.only_here(nodes);
                if nodes.is_empty() {
                    return Vec::new();
                }
                nodes.iter().for_each(|node| self.supervisor.on_leave(*node, now));
                let nodes = self.node_names(&nodes).into_values().collect();
                vec![self.tell(Some(intended), What::Absent { nodes })]
            }
            _ => Vec::new(),
        }
    }

    fn churn(
        &mut self,
        leave: &[NodeId],
        by: NodeVerb,
        join: &[NodeId],
        intended: Span,
    ) -> Vec<Event> {
        let mut told = Vec::new();
        for (index, node) in self.node_names(&self.only_here(leave)) {
            // Told first, so that the exits that follow are known to be churn's doing.
            self.supervisor.on_leave(NodeId::from_index(index), self.elapsed());
            self.signal_node(index, signals_of(by));
            told.push(self.tell(Some(intended), What::Node { node, verb: "leave".to_owned() }));
        }
        for (index, node) in self.node_names(&self.only_here(join)) {
            self.supervisor.on_join(NodeId::from_index(index), self.elapsed());
            told.push(self.tell(Some(intended), What::Node { node, verb: "join".to_owned() }));
        }
        told
    }

    fn do_to_nodes(&mut self, nodes: &[NodeId], verb: NodeVerb, intended: Span) -> Vec<Event> {
        let mut told = Vec::new();
        for (index, node) in self.node_names(&self.only_here(nodes)) {
            // Told first, so that the exits that follow are known to be the event's doing.
            self.supervisor.on_verb(NodeId::from_index(index), verb, self.elapsed());
            // In a freeze, what is resumed goes on when everything does.
            if verb != NodeVerb::Resume || !self.frost.is_on() {
                self.signal_node(index, signals_of(verb));
            }
            if self.supervisor.is_absent(NodeId::from_index(index)) {
                let verb = verb.name();
                self.warn(format!("{node} is not there: {verb} has no effect until it joins"));
            }
            let verb = verb.name().to_owned();
            told.push(self.tell(Some(intended), What::Node { node, verb }));
        }
        told
    }

    pub(super) fn signal_node(&self, node: usize, signals: &[Signal]) {
        for signal in signals {
            let request = Request::Signal { id: None, signal: signal.as_raw() };
            if let Err(error) = self.send(node, &request, &[]) {
                let name = &self.plan.nodes[node].name;
                self.warn(format!("a signal did not reach node {name}: {error}"));
            }
        }
    }

    /// SIGTERM to every process of every node that has programs.
    pub(super) fn terminate_all(&self) {
        for (node, spec) in self.plan.nodes.iter().enumerate() {
            let is_there = self.is_here(NodeId::from_index(node)) && !self.dead.contains(&node);
            if !spec.programs.is_empty() && is_there {
                self.signal_node(node, &[Signal::TERM, Signal::CONT]);
            }
        }
    }

    pub(super) fn hear_dataplane(&mut self, note: Note) {
        match note {
            Note::Overloaded { at, behind } => self.overloaded(at, behind),
            Note::CaughtUp { at, lasted } => self.caught_up(at, lasted),
            Note::Failed(message) => {
                self.end.ask(Ending::Fatal(message));
            }
            Note::Routes { routes, at, by_itself } => self.follow_routes(routes, at, by_itself),
            Note::Unreached { members } => self.tell_agent(&FromPart::Unreached { members }),
            Note::Reached => self.reached(),
            Note::Silence(silence) => self.hear_silence(silence),
            Note::Closed { sent } => self.sends_no_more(sent),
            Note::Flows { changes } => self.announce(&changes),
            Note::Applied { cause: Cause::Plan(index), intended, at } => {
                let action = self.plan.events[index].action.clone();
                let intended = intended.since(self.origin);
                self.tell_action(&action, at, Some(intended));
            }
            Note::Applied { cause: Cause::Order(id), at, .. } => {
                let Some(ordered) = self.ordered.remove(&id) else { return };
                let told = self.tell_action(&ordered.action, at, ordered.intended);
                self.answer_for(ordered.client, told);
            }
        }
    }

    /// Returns what was told.
    fn tell_action(&mut self, action: &Action, at: Time, intended: Option<Span>) -> Vec<Event> {
        let at = at.since(self.origin);
        self.note_change(action);
        let whats = self.whats(action);
        whats.into_iter().map(|what| self.tell_at(at, intended, what)).collect()
    }

    /// What a change of the network is, as the log has it.
    fn whats(&mut self, action: &Action) -> Vec<What> {
        match action {
            Action::Link(change) => self.changes(change),
            Action::Flap { lanes, up } => {
                let flap = |lane: &Lane| {
                    let (link, direction) = self.lane_names(*lane);
                    What::LinkFlap { link, direction, up: *up }
                };
                lanes.iter().map(flap).collect()
            }
            Action::Partition { groups, one_way } => {
                let names = |group: &Vec<_>| {
                    group.iter().map(|&v| self.plan.vertex_name(v).to_owned()).collect()
                };
                let groups = groups.iter().map(names).collect();
                vec![What::Partitioned { groups, one_way: *one_way }]
            }
            Action::Heal => vec![What::Healed],
            Action::Route(change) => self.route_change(change),
            Action::Reroute => vec![What::Rerouted { why: WhyRerouted::Event }],
            Action::Node { .. } | Action::Churn { .. } | Action::Absent { .. } => Vec::new(),
        }
    }

    fn changes(&mut self, change: &LinkChange) -> Vec<What> {
        let mut whats = Vec::new();
        for (lane, patch) in &change.patches {
            let (link, direction) = self.lane_names(*lane);
            let set = self.as_json(*lane, patch);
            whats.push(What::LinkSet { link, direction, set });
        }
        for (lane, up) in &change.state {
            let (link, direction) = self.lane_names(*lane);
            whats.push(What::LinkState { link, direction, up: *up });
        }
        whats
    }

    fn lane_names(&self, lane: Lane) -> (String, String) {
        (self.plan.links[lane.link.index()].name.clone(), self.plan.lane_name(lane))
    }
}

impl Live {
    /// A patch as the log has it: traces by their files, and which of them are followed no more.
    fn as_json(&mut self, lane: Lane, patch: &LinkPatch) -> serde_json::Value {
        let mut set = serde_json::to_value(patch).unwrap_or_default();
        let Some(map) = set.as_object_mut() else { return set };
        map.remove("traces");
        let Some(now) = self.following.get_mut(lane.index()) else { return set };
        let changes = [
            ("rate", patch.rate.is_some(), patch.traces.rate, &mut now.rate),
            ("latency", patch.latency.is_some(), patch.traces.latency, &mut now.latency),
            ("loss", patch.loss.is_some(), patch.traces.loss, &mut now.loss),
        ];
        let mut ended = Vec::new();
        for (key, _, new, old) in changes.into_iter().filter(|(_, set, ..)| *set) {
            let file = |it: TraceUse| self.plan.traces.get(usize::try_from(it.trace).ok()?);
            match (new.and_then(file), *old) {
                (Some(trace), _) => {
                    map.insert(key.to_owned(), format!("trace {}", trace.file).into());
                }
                (None, Some(_)) => ended.push(key),
                (None, None) => {}
            }
            *old = new;
        }
        if !ended.is_empty() {
            map.insert("follows-no-more-its-trace-of".to_owned(), ended.join(", ").into());
        }
        set
    }
}

/// The signals that a verb sends to every process of a node.
fn signals_of(verb: NodeVerb) -> &'static [Signal] {
    match verb {
        NodeVerb::Kill | NodeVerb::Restart => &[Signal::KILL],
        // A paused program would not hear SIGTERM.
        NodeVerb::Stop => &[Signal::TERM, Signal::CONT],
        NodeVerb::Pause => &[Signal::STOP],
        NodeVerb::Resume => &[Signal::CONT],
    }
}
