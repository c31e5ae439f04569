//! Queue disciplines that programs of `user: root` nodes have given to their devices: what these delay
//! or drop is not the emulation's, and is said.

use std::collections::BTreeSet;

use windtunnel_model::plan::User;
use windtunnel_model::{NodeId, Span};
use windtunnel_node::Request;

use super::context::Context;
use super::state::Live;
use crate::clock::now;

/// What nodes have said of their disciplines.
#[derive(Debug, Default)]
pub(super) struct Disciplines {
    /// Nodes that have not answered.
    asked: BTreeSet<usize>,
    pub(super) notes: Vec<String>,
}

impl Disciplines {
    /// Asks the nodes whose programs can change that.
    fn ask(&mut self, cx: &Context) {
        for (node, spec) in cx.plan.nodes.iter().enumerate() {
            let is_here = cx.nodes.is_here(NodeId::from_index(node)) && !cx.nodes.is_dead(node);
            if spec.user == User::Root
                && is_here
                && cx.nodes.send(node, &Request::Disciplines, &[]).is_ok()
            {
                self.asked.insert(node);
            }
        }
    }

    /// A node has answered. Nothing is taken that was not asked for.
    fn take(&mut self, node: usize, name: &str, found: &[String]) {
        if !self.asked.remove(&node) || found.is_empty() {
            return;
        }
        let shown = |text: &String| -> String {
            text.chars().filter(|c| !c.is_control()).take(TEXT_MOST).collect()
        };
        let found: Vec<String> = found.iter().take(FOUND_MOST).map(shown).collect();
        self.notes.push(format!(
            "node {name} has queue disciplines of its own, whose delays and drops are not the \
             emulation's: {}",
            found.join(", ")
        ));
    }
}

impl Live {
    /// Asks nodes for their disciplines while these are there.
    pub(super) fn ask_disciplines(&mut self) {
        self.disciplines.ask(&self.cx);
        let until = now() + PATIENCE;
        while !self.disciplines.asked.is_empty() && now() < until && !self.end.is_hurried() {
            self.wait(Some(until.since(now())));
        }
    }

    pub(super) fn take_disciplines(&mut self, node: usize, found: &[String]) {
        let name = self.cx.nodes.name(node).to_owned();
        self.disciplines.take(node, &name, found);
    }
}

/// A node that takes longer is not waited for.
const PATIENCE: Span = Span::from_secs(1);
const FOUND_MOST: usize = 20;
const TEXT_MOST: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing::{context, plan};

    #[test]
    fn nodes_whose_programs_are_root_are_asked_and_what_they_have_is_a_note() {
        let file = "nodes: {a: {user: root}, b: {}}\nlinks: [{between: [a, b]}]";
        let (context, sent, _) = context(plan(file), None);
        let mut disciplines = Disciplines::default();
        disciplines.ask(&context);
        assert_eq!(sent.requests(), [(0, Request::Disciplines)]);
        let netem = ["netem at eth0 (12 packets dropped, 3 waiting)".to_owned()];
        disciplines.take(1, "b", &netem);
        assert!(disciplines.notes.is_empty(), "it was not asked");
        disciplines.take(0, "a", &netem);
        disciplines.take(0, "a", &netem);
        let note = "node a has queue disciplines of its own, whose delays and drops are not the \
                    emulation's: netem at eth0 (12 packets dropped, 3 waiting)";
        assert_eq!(disciplines.notes, [note]);
    }

    #[test]
    fn a_node_without_disciplines_of_its_own_is_not_spoken_of() {
        let (context, ..) = context(plan("nodes: {a: {user: root}}"), None);
        let mut disciplines = Disciplines::default();
        disciplines.ask(&context);
        disciplines.take(0, "a", &[]);
        assert!(disciplines.notes.is_empty() && disciplines.asked.is_empty());
    }
}
