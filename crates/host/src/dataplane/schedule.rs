//! The plan's changes of the network, at their times.

use windtunnel_model::plan::Action;
use windtunnel_model::{Plan, Time};

/// Changes that are still to come, in order.
#[derive(Debug)]
pub(super) struct Schedule {
    changes: Vec<(usize, Time, Action)>,
    next: usize,
}

impl Schedule {
    pub(super) fn empty() -> Self {
        Schedule { changes: Vec::new(), next: 0 }
    }

    /// The network's changes of `plan` for a run that begins at `origin`.
    pub(super) fn new(plan: &Plan, origin: Time) -> Self {
        let events = plan.events.iter().enumerate();
        let network = events.filter(|(_, event)| !matches!(event.action, Action::Node { .. }));
        let changes = network.map(|(i, event)| (i, origin + event.at, event.action.clone()));
        Schedule { changes: changes.collect(), next: 0 }
    }

    /// When the next change is.
    pub(super) fn next(&self) -> Option<Time> {
        self.changes.get(self.next).map(|(_, at, _)| *at)
    }

    /// The next change at or before `now`, with its position in the plan.
    pub(super) fn due(&mut self, now: Time) -> Option<(usize, Time, &Action)> {
        let (event, at, action) = self.changes.get(self.next)?;
        if *at > now {
            return None;
        }
        self.next += 1;
        Some((*event, *at, action))
    }
}
