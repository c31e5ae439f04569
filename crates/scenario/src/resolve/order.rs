//! Cycles in `after`.

use crate::decode::{NodeDraft, ScenarioDraft};
use crate::error::Diagnostics;
use crate::position::LocatedValue;
use crate::resolve::directory::Directory;

/// Refuses nodes that wait for each other.
pub(super) fn check(found: &mut Diagnostics, draft: &ScenarioDraft, directory: &Directory) {
    let graph = StartDependencyGraph::new(found, draft, directory);
    let mut states = vec![VisitState::New; draft.nodes.len()];
    for start in 0..draft.nodes.len() {
        if let Some(cycle) = graph.cycle_from(start, &mut states) {
            report(found, draft, &cycle);
            return;
        }
    }
}

/// By entry of `nodes`: the entries that it waits for, and where it says so.
struct StartDependencyGraph<'d> {
    waits: Vec<Vec<(usize, &'d LocatedValue<String>)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VisitState {
    New,
    Open,
    Done,
}

impl<'d> StartDependencyGraph<'d> {
    fn new(found: &mut Diagnostics, draft: &'d ScenarioDraft, directory: &Directory) -> Self {
        let mut entry_of = |name: &LocatedValue<String>| {
            let node = directory.nodes(found, name)?.first().copied()?;
            Some(directory.entry(node))
        };
        let waits = draft.nodes.iter().map(|node| {
            let names = names(node);
            names.filter_map(|name| Some((entry_of(name)?, name))).collect()
        });
        StartDependencyGraph { waits: waits.collect() }
    }

    /// The names along a cycle that is reached from `start`, if there is one. It keeps its own
    /// stack, for a chain may be ten thousand nodes long.
    fn cycle_from(
        &self,
        start: usize,
        states: &mut [VisitState],
    ) -> Option<Vec<(usize, &'d LocatedValue<String>)>> {
        if states[start] != VisitState::New {
            return None;
        }
        let mut path: Vec<(usize, usize)> = vec![(start, 0)];
        states[start] = VisitState::Open;
        while let Some((entry, next)) = path.last_mut() {
            let Some((other, _)) = self.waits[*entry].get(*next) else {
                states[*entry] = VisitState::Done;
                path.pop();
                continue;
            };
            *next += 1;
            match states[*other] {
                VisitState::Done => {}
                VisitState::New => {
                    states[*other] = VisitState::Open;
                    path.push((*other, 0));
                }
                VisitState::Open => {
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
fn names(node: &NodeDraft) -> impl Iterator<Item = &LocatedValue<String>> {
    let own = node.keys.program.after.iter().filter(|_| !node.programs.is_empty());
    own.chain(node.programs.iter().flat_map(|program| &program.keys.after))
}

fn report(
    found: &mut Diagnostics,
    draft: &ScenarioDraft,
    cycle: &[(usize, &LocatedValue<String>)],
) {
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
