//! Changes of the network, at their times: the plan's, and those that were ordered for later.

use std::collections::BTreeMap;

use windtunnel_model::plan::Action;
use windtunnel_model::{Plan, Time};

/// Where a change comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Position in the plan's events.
    Plan(usize),
    /// Number of the order.
    Order(u64),
}

/// Changes that are still to come; those of one instant in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Schedule {
    changes: BTreeMap<(Time, u64), (Cause, Action)>,
    added: u64,
}

impl Schedule {
    /// The network's changes of `plan` for a run that begins at `origin`.
    pub(super) fn new(plan: &Plan, origin: Time) -> Self {
        let mut schedule = Schedule::default();
        for (index, event) in plan.events.iter().enumerate() {
            if !event.action.is_about_programs() {
                schedule.add(origin + event.at, Cause::Plan(index), event.action.clone());
            }
        }
        schedule
    }

    pub(super) fn add(&mut self, at: Time, cause: Cause, action: Action) {
        self.changes.insert((at, self.added), (cause, action));
        self.added += 1;
    }

    /// When the next change is.
    pub(super) fn next(&self) -> Option<Time> {
        self.changes.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next change at or before `now`.
    pub(super) fn due(&mut self, now: Time) -> Option<(Cause, Time, Action)> {
        let first = self.changes.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((at, _), (cause, action)) = first.remove_entry();
        Some((cause, at, action))
    }
}
