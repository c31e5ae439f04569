//! Changes of the network, at their times: the plan's, and those that were ordered for later.

use std::collections::BTreeMap;

use windtunnel_model::plan::EventAction;
use windtunnel_model::{Plan, Time};

/// Where a change comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeOrigin {
    /// Position in the plan's events.
    Plan(usize),
    Order(u64),
}

/// Changes that are still to come; those of one instant in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct ChangeSchedule {
    changes: BTreeMap<(Time, u64), (ChangeOrigin, EventAction)>,
    added: u64,
}

impl ChangeSchedule {
    /// The network's changes of `plan` for a run that begins at `origin`.
    pub(super) fn new(plan: &Plan, origin: Time) -> Self {
        let mut schedule = ChangeSchedule::default();
        for (index, event) in plan.events.iter().enumerate() {
            if !event.action.is_about_programs() {
                schedule.add(origin + event.at, ChangeOrigin::Plan(index), event.action.clone());
            }
        }
        schedule
    }

    pub(super) fn add(&mut self, at: Time, cause: ChangeOrigin, action: EventAction) {
        self.changes.insert((at, self.added), (cause, action));
        self.added += 1;
    }

    /// When the next change is.
    pub(super) fn next(&self) -> Option<Time> {
        self.changes.first_key_value().map(|((at, _), _)| *at)
    }

    /// The next change at or before `now`.
    pub(super) fn due(&mut self, now: Time) -> Option<(ChangeOrigin, Time, EventAction)> {
        let first = self.changes.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((at, _), (cause, action)) = first.remove_entry();
        Some((cause, at, action))
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::Span;

    use super::*;

    const FILE: &str = "
nodes: {a: {run: x}, b: {}}
links: [{between: [a, b]}]
events:
  - {at: 2s, link: a--b, down: true}
  - {at: 1s, node: a, do: kill}
  - {at: 1s, link: a--b, set: {latency: 5ms}}
";

    fn at(millis: u64) -> Time {
        Time::from_nanos(7_000) + Span::from_millis(millis)
    }

    #[test]
    fn the_plans_changes_of_the_network_are_due_at_their_times_after_the_origin() {
        let plan = crate::testing::plan(FILE);
        let mut schedule = ChangeSchedule::new(&plan, at(0));
        assert_eq!(schedule.next(), Some(at(1_000)));
        assert_eq!(schedule.due(at(999)), None);
        let mut due = || schedule.due(at(9_000)).map(|(cause, time, _)| (cause, time));
        // The plan has them in order of time; what is about programs is not the network's.
        assert_eq!(due(), Some((ChangeOrigin::Plan(1), at(1_000))));
        assert_eq!(due(), Some((ChangeOrigin::Plan(2), at(2_000))));
        assert_eq!(due(), None);
    }

    #[test]
    fn changes_of_one_instant_keep_the_order_in_which_they_came() {
        let mut schedule = ChangeSchedule::default();
        for number in 0..3 {
            schedule.add(at(5), ChangeOrigin::Order(number), EventAction::Heal);
        }
        schedule.add(at(4), ChangeOrigin::Order(9), EventAction::Heal);
        let order: Vec<ChangeOrigin> =
            std::iter::from_fn(|| schedule.due(at(5))).map(|(cause, ..)| cause).collect();
        assert_eq!(order, [9, 0, 1, 2].map(ChangeOrigin::Order));
    }
}
