//! The plan's events: those of nodes are done here, those of the network by the packet loop, which tells.

use windtunnel_model::plan::{Action, LinkChange, NodeVerb};
use windtunnel_model::{Lane, LinkPatch, NodeId, Span, Time, TraceUse};
use windtunnel_node::Request;
use windtunnel_sys::process::Signal;
use windtunnel_trace::event::{What, WhyRerouted};

use super::Live;
use crate::dataplane::Note;
use crate::verdict::Ending;

impl Live {
    /// Does the node events that are due.
    pub(super) fn do_node_events(&mut self, elapsed: Span) {
        while let Some(&index) = self.node_events.front() {
            let event = &self.plan.events[index];
            if event.at > elapsed {
                return;
            }
            self.node_events.pop_front();
            if let Action::Node { nodes, verb } = &event.action {
                let (nodes, verb, at) = (nodes.clone(), *verb, event.at);
                self.do_to_nodes(&nodes, verb, at);
            }
        }
    }

    fn do_to_nodes(&mut self, nodes: &[NodeId], verb: NodeVerb, intended: Span) {
        for (index, node) in self.node_names(nodes) {
            // Told first, so that the exits that follow are known to be the event's doing.
            self.supervisor.on_verb(NodeId::from_index(index), verb, self.elapsed());
            let (signals, name): (&[Signal], _) = match verb {
                NodeVerb::Kill => (&[Signal::KILL], "kill"),
                NodeVerb::Restart => (&[Signal::KILL], "restart"),
                // A paused program would not hear SIGTERM.
                NodeVerb::Stop => (&[Signal::TERM, Signal::CONT], "stop"),
                NodeVerb::Pause => (&[Signal::STOP], "pause"),
                // It goes on when everything does.
                NodeVerb::Resume if self.frost.is_on() => (&[], "resume"),
                NodeVerb::Resume => (&[Signal::CONT], "resume"),
            };
            self.signal_node(index, signals);
            self.tell(Some(intended), What::Node { node, verb: name.to_owned() });
        }
    }

    pub(super) fn signal_node(&self, node: usize, signals: &[Signal]) {
        for signal in signals {
            let request = Request::Signal { id: None, signal: signal.as_raw() };
            if let Err(error) = self.village.nodes()[node].send(&request, &[]) {
                let name = &self.plan.nodes[node].name;
                self.warn(format!("a signal did not reach node {name}: {error}"));
            }
        }
    }

    /// SIGTERM to every process of every node that has programs.
    pub(super) fn terminate_all(&self) {
        for (node, spec) in self.plan.nodes.iter().enumerate() {
            if !spec.programs.is_empty() {
                self.signal_node(node, &[Signal::TERM, Signal::CONT]);
            }
        }
    }

    pub(super) fn hear_dataplane(&mut self, note: Note) {
        match note {
            Note::Overloaded { at, behind } => self.overloaded(at, behind),
            Note::CaughtUp { at, lasted } => self.caught_up(at, lasted),
            Note::Failed(message) => {
                self.ending.get_or_insert(Ending::Fatal(message));
            }
            Note::Routes { routes, at, by_itself } => self.follow_routes(routes, at, by_itself),
            Note::Applied { event: Some(index), intended, at } => {
                let action = self.plan.events[index].action.clone();
                self.tell_action(&action, at, Some(intended));
            }
            Note::Applied { event: None, at, .. } => {
                if let Some(action) = self.ordered.pop_front() {
                    self.tell_action(&action, at, None);
                }
                self.connections.changed();
            }
        }
    }

    fn tell_action(&mut self, action: &Action, at: Time, intended: Option<Time>) {
        let at = at.since(self.origin);
        let intended = intended.map(|time| time.since(self.origin));
        match action {
            Action::Link(change) => self.tell_change(change, at, intended),
            Action::Partition { groups } => {
                let names = |group: &Vec<_>| {
                    group.iter().map(|&v| self.plan.vertex_name(v).to_owned()).collect()
                };
                let groups = groups.iter().map(names).collect();
                self.tell_at(at, intended, What::Partitioned { groups });
            }
            Action::Heal => self.tell_at(at, intended, What::Healed),
            Action::Route(change) => {
                for what in self.route_change(change) {
                    self.tell_at(at, intended, what);
                }
            }
            Action::Reroute => {
                self.tell_at(at, intended, What::Rerouted { why: WhyRerouted::Event });
            }
            Action::Node { .. } => {}
        }
    }

    fn tell_change(&mut self, change: &LinkChange, at: Span, intended: Option<Span>) {
        for (lane, patch) in &change.patches {
            let (link, direction) = self.lane_names(*lane);
            let set = self.as_json(*lane, patch);
            self.tell_at(at, intended, What::LinkSet { link, direction, set });
        }
        for (lane, up) in &change.state {
            let (link, direction) = self.lane_names(*lane);
            self.tell_at(at, intended, What::LinkState { link, direction, up: *up });
        }
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
