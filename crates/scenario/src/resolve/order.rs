//! Cycles in `after`.

use crate::decode::{At, Draft, NodeDraft};
use crate::error::Diagnostics;
use crate::resolve::directory::Directory;

/// Refuses nodes that wait for each other.
pub(super) fn check(found: &mut Diagnostics, draft: &Draft, directory: &Directory) {
    let graph = Graph::new(found, draft, directory);
    let mut states = vec![State::New; draft.nodes.len()];
    for start in 0..draft.nodes.len() {
        if let Some(cycle) = graph.cycle_from(start, &mut states) {
            report(found, draft, &cycle);
            return;
        }
    }
}

/// By entry of `nodes`: the entries that it waits for, and where it says so.
struct Graph<'d> {
    waits: Vec<Vec<(usize, &'d At<String>)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Open,
    Done,
}

impl<'d> Graph<'d> {
    fn new(found: &mut Diagnostics, draft: &'d Draft, directory: &Directory) -> Self {
        let mut entry_of = |name: &At<String>| {
            let node = directory.nodes(found, name)?.first().copied()?;
            Some(directory.entry(node))
        };
        let waits = draft.nodes.iter().map(|node| {
            let names = names(node);
            names.filter_map(|name| Some((entry_of(name)?, name))).collect()
        });
        Graph { waits: waits.collect() }
    }

    /// The names along a cycle that is reached from `start`, if there is one. It keeps its own
    /// stack, for a chain may be ten thousand nodes long.
    fn cycle_from(
        &self,
        start: usize,
        states: &mut [State],
    ) -> Option<Vec<(usize, &'d At<String>)>> {
        if states[start] != State::New {
            return None;
        }
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        states[start] = State::Open;
        while let Some((entry, next)) = path.last_mut() {
            let Some((other, _)) = self.waits[*entry].get(*next) else {
                states[*entry] = State::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match states[*other] {
                State::Done => {}
                State::New => {
                    states[*other] = State::Open;
                    path.push((*other, 0));
                }
                State::Open => {
                    let from = path.iter().position(|(entry, _)| entry == other).unwrap_or(0);
                    let steps = path[from..].iter();
                    return Some(
                        steps
                            .map(|(entry, next)| (*entry, self.waits[*entry][next - 1].1))
                            .collect(),
                    );
                }
            }
        }
        None
    }
}

/// What a node waits for: at the node, or at each of its programs.
fn names(node: &NodeDraft) -> impl Iterator<Item = &At<String>> {
    let own = node.keys.program.after.iter().filter(|_| !node.programs.is_empty());
    own.chain(node.programs.iter().flat_map(|program| &program.keys.after))
}

fn report(found: &mut Diagnostics, draft: &Draft, cycle: &[(usize, &At<String>)]) {
    const SHOWN: usize = 8;
    let Some((first, name)) = cycle.first() else { return };
    let first = &draft.nodes[*first].name.value;
    let mut text = format!("`{first}`");
    for (_, name) in cycle.iter().take(SHOWN) {
        text.push_str(&format!(" after `{}`", name.value));
    }
    if cycle.len() > SHOWN {
        text.push_str(" after …");
    }
    let hint = "leave out one `after`, so that somebody can start";
    found.mistake_with_hint(name.place, format!("a cycle in `after`: {text}"), hint);
}
