//! What programs of nodes have made that delays, drops or changes packets beside the emulation: queue
//! disciplines of devices, rules of packet filters, ports of bridges. It is said.

use std::collections::BTreeSet;

use windtunnel_model::plan::{self, ProgramUser};
use windtunnel_model::{NodeId, Span};
use windtunnel_node::{NetworkInterference, NodeInitRequest};
use windtunnel_sys::process;

use super::context::RunContext;
use super::state::RunLoop;
use windtunnel_dataplane::now;

/// What nodes have said of it.
#[derive(Debug, Default)]
pub(super) struct InterferenceNotes {
    /// Nodes that have not answered.
    asked: BTreeSet<usize>,
    pub(super) notes: Vec<String>,
}

impl InterferenceNotes {
    /// Asks the nodes whose programs can have made some.
    fn ask(&mut self, cx: &RunContext, is_root: bool) {
        for (node, spec) in cx.plan.nodes.iter().enumerate() {
            let is_here = cx.nodes.is_here(NodeId::from_index(node)) && !cx.nodes.is_dead(node);
            if can_configure(spec, is_root)
                && is_here
                && cx.nodes.send(node, &NodeInitRequest::Interference, &[]).is_ok()
            {
                self.asked.insert(node);
            }
        }
    }

    /// A node has answered. Nothing is taken that was not asked for.
    pub(super) fn take(&mut self, node: usize, name: &str, found: &NetworkInterference) {
        if !self.asked.remove(&node) {
            return;
        }
        let kinds =
            [(&found.disciplines, DISCIPLINES), (&found.filters, FILTERS), (&found.ports, PORTS)];
        for (found, what) in kinds.into_iter().filter(|(found, _)| !found.is_empty()) {
            let found: Vec<String> =
                found.iter().take(FOUND_MOST).map(|text| shown(text)).collect();
            self.notes.push(format!("node {name} has {what}: {}", found.join(", ")));
        }
    }

    /// Those that have not answered do not any more.
    fn give_up(&mut self, cx: &RunContext) {
        let silent = std::mem::take(&mut self.asked).into_iter();
        let silent: Vec<&str> = silent.map(|node| cx.nodes.name(node)).collect();
        if let [first, others @ ..] = silent.as_slice() {
            let others = match others.len() {
                0 => String::new(),
                many => format!(" and {many} more"),
            };
            self.notes.push(format!(
                "node {first}{others} did not say in time whether queue disciplines or packet \
                 filters of its own delay or drop packets"
            ));
        }
    }
}

/// Whether programs of a node may configure its network. Those of the machine's root are root of the
/// node, whatever the file says.
fn can_configure(node: &plan::Node, is_root: bool) -> bool {
    is_root || node.user != ProgramUser::Invoker
}

/// What a node says can be anything.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(TEXT_MOST).collect()
}

impl RunLoop {
    /// Asks nodes for what they have made, while these are there.
    pub(super) fn ask_interference(&mut self) {
        let reactor = &mut self.reactor;
        reactor.interference.ask(&reactor.cx, process::current_user().uid == 0);
        let until = now() + PATIENCE;
        while !reactor.interference.asked.is_empty() && now() < until && !reactor.end.is_hurried() {
            reactor.wait(Some(until.since(now())));
        }
        reactor.interference.give_up(&reactor.cx);
    }
}

const DISCIPLINES: &str =
    "queue disciplines of its own, whose delays and drops are not the emulation's";
const FILTERS: &str =
    "packet filters of its own, whose drops, delays and changes are not the emulation's";
const PORTS: &str = "bridges of its own with ports that forward nothing";
/// A node that takes longer is not waited for.
const PATIENCE: Span = Span::from_secs(1);
/// One more than nodes say, which is how many there are beside.
const FOUND_MOST: usize = 21;
const TEXT_MOST: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing::{context, plan};

    const FILE: &str = "nodes: {a: {user: root}, b: {}}\nlinks: [{between: [a, b]}]";

    fn found(filters: &[&str]) -> NetworkInterference {
        NetworkInterference {
            disciplines: vec!["netem at eth0 (12 packets dropped, 3 waiting)".to_owned()],
            filters: filters.iter().map(|filter| (*filter).to_owned()).collect(),
            ports: Vec::new(),
        }
    }

    #[test]
    fn nodes_whose_programs_are_root_are_asked_and_what_they_have_is_a_note_for_each_kind() {
        let (context, sent, _) = context(plan(FILE), None);
        let mut interference = InterferenceNotes::default();
        interference.ask(&context, false);
        assert_eq!(sent.requests(), [(0, NodeInitRequest::Interference)]);
        let found = found(&["ip table t, chain c (input): drop (30 packets)"]);
        interference.take(1, "b", &found);
        assert!(interference.notes.is_empty(), "it was not asked");
        interference.take(0, "a", &found);
        interference.take(0, "a", &found);
        interference.give_up(&context);
        let disciplines = "node a has queue disciplines of its own, whose delays and drops are not \
                           the emulation's: netem at eth0 (12 packets dropped, 3 waiting)";
        let filters = "node a has packet filters of its own, whose drops, delays and changes are \
                       not the emulation's: ip table t, chain c (input): drop (30 packets)";
        assert_eq!(interference.notes, [disciplines, filters]);
    }

    #[test]
    fn all_nodes_of_the_machines_root_are_asked() {
        let (context, sent, _) = context(plan(FILE), None);
        InterferenceNotes::default().ask(&context, true);
        assert_eq!(sent.requests().len(), 2);
    }

    #[test]
    fn a_node_without_any_is_not_spoken_of_and_one_that_does_not_answer_is() {
        let (context, ..) = context(plan(FILE), None);
        let mut interference = InterferenceNotes::default();
        interference.ask(&context, true);
        interference.take(0, "a", &NetworkInterference::default());
        assert!(interference.notes.is_empty());
        interference.give_up(&context);
        let note = "node b did not say in time whether queue disciplines or packet filters of its \
                    own delay or drop packets";
        assert_eq!(interference.notes, [note]);
    }
}
