//! Events that are still to come.

use std::collections::BTreeMap;

use windtunnel_model::Span;
use windtunnel_model::plan::EventAction;

/// What events do to programs, in order of time; those of one instant in the order in which they
/// were added.
#[derive(Debug, Default)]
pub(super) struct EventActionQueue {
    actions: BTreeMap<(Span, u64), EventAction>,
    added: u64,
}

impl EventActionQueue {
    pub(super) fn add(&mut self, at: Span, action: EventAction) {
        self.actions.insert((at, self.added), action);
        self.added += 1;
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Span> {
        self.actions.first_key_value().map(|((at, _), _)| *at)
    }

    /// Those that are due, in order.
    pub(super) fn all_due(&self, now: Span) -> impl Iterator<Item = &EventAction> {
        self.until(now).map(|(_, action)| action)
    }

    /// Those until a time, in order.
    pub(super) fn until(&self, until: Span) -> impl Iterator<Item = (Span, &EventAction)> {
        let until = self.actions.iter().take_while(move |((at, _), _)| *at <= until);
        until.map(|((at, _), action)| (*at, action))
    }

    /// Takes the next one that is due.
    pub(super) fn due(&mut self, now: Span) -> Option<(Span, EventAction)> {
        let first = self.actions.first_entry().filter(|entry| entry.key().0 <= now)?;
        let ((at, _), action) = first.remove_entry();
        Some((at, action))
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::NodeId;
    use windtunnel_model::plan::NodeVerb;

    use super::*;

    fn on(node: u32) -> EventAction {
        EventAction::Node { nodes: vec![NodeId(node)], verb: NodeVerb::Kill }
    }

    #[test]
    fn events_are_due_in_order_of_time_and_then_of_the_file() {
        let mut agenda = EventActionQueue::default();
        let at = Span::from_secs;
        for (secs, node) in [(2, 0), (1, 1), (2, 2), (1, 3)] {
            agenda.add(at(secs), on(node));
        }
        assert_eq!(agenda.next(), Some(at(1)));
        assert_eq!(agenda.due(Span::from_millis(999)), None);
        let mut order = Vec::new();
        while let Some((_, action)) = agenda.due(at(2)) {
            order.push(action);
        }
        assert_eq!(order, [on(1), on(3), on(0), on(2)]);
        assert_eq!(agenda.next(), None);
    }
}
