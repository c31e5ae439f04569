//! How much a file may come to.

use windtunnel_model::plan::EventAction;

use crate::error::Diagnostics;
use crate::position::SourceLocation;

/// Bounds what groups multiply, so that a short file cannot fill the memory.
#[derive(Debug, Default)]
pub(super) struct ExpansionBudget {
    spent: usize,
    /// Of events that repeat.
    events: u64,
}

impl ExpansionBudget {
    /// The most things that groups may be expanded to, all together.
    const MOST: usize = 4_000_000;
    /// The most events that repetitions may come to, all together: some 500 MB.
    const EVENTS_MOST: u64 = 500_000;

    /// Whether a repetition that comes to so many events may be worked out at all: asked before
    /// there is any of them.
    pub(super) fn announce(
        &mut self,
        found: &mut Diagnostics,
        events: u64,
        place: SourceLocation,
    ) -> Option<()> {
        let most = Self::EVENTS_MOST;
        let before = self.events;
        self.events = before.saturating_add(events);
        if self.events <= most {
            return Some(());
        }
        // One mistake is enough: those after it may be right.
        self.events = before;
        let with = if before == 0 { "" } else { ", with those before it" };
        let message =
            format!("this comes to {events} events{with}, more than the {most} of a file");
        let hint = "a longer `every`, or an earlier end: `times`, `for` or `until`";
        found.mistake_with_hint(place, message, hint);
        None
    }

    /// Whether `count` more things are within bounds; the first time they are not is a mistake.
    pub(super) fn spend(
        &mut self,
        found: &mut Diagnostics,
        count: usize,
        place: SourceLocation,
    ) -> bool {
        let before = self.spent <= Self::MOST;
        self.spent = self.spent.saturating_add(count);
        let fits = self.spent <= Self::MOST;
        if before && !fits {
            let most = Self::MOST;
            found.mistake(
                place,
                format!("here the file's groups expand to more than {most} things"),
            );
        }
        fits
    }
}

/// How many things an action is about.
pub(super) fn weight(action: &EventAction) -> usize {
    match action {
        EventAction::Link(change) => change.patches.len() + change.state.len(),
        EventAction::Flap { lanes, .. } => lanes.len(),
        EventAction::Node { nodes, .. }
        | EventAction::Absent { nodes }
        | EventAction::Limit { nodes, .. } => nodes.len(),
        EventAction::Churn { leave, join, .. } => leave.len() + join.len(),
        EventAction::Partition { groups, .. } => groups.iter().map(Vec::len).sum(),
        EventAction::Route(change) => {
            let paths = change.fix.iter().map(|route| route.path.len());
            change.release.len() + paths.sum::<usize>()
        }
        EventAction::Service(changes) => changes.len(),
        EventAction::Heal | EventAction::Reroute => 0,
    }
}
