//! Answers to clients that wait until what they asked for has been done.

use std::collections::BTreeMap;

use windtunnel_control::{ControlReply, EventInjectionResult};
use windtunnel_model::Span;
use windtunnel_model::plan::ScheduledEvent;
use windtunnel_trace::event::EventLogEntry;

use super::connections::ControlConnectionTable;

/// By client: the answer that is not complete.
#[derive(Debug, Default)]
pub(super) struct DeferredReplies(BTreeMap<u64, DeferredReply>);

#[derive(Debug)]
struct DeferredReply {
    /// Changes of the network that have not been confirmed.
    left: usize,
    answer: DeferredReplyBody,
}

#[derive(Debug)]
pub(super) enum DeferredReplyBody {
    Done,
    /// What was done when, and how much is still to come, until when.
    Happened {
        events: Vec<EventLogEntry>,
        later: usize,
        until: Span,
    },
}

impl DeferredReplies {
    /// A client waits until `left` changes of the network have been confirmed.
    pub(super) fn wait_for(&mut self, client: u64, left: usize, answer: DeferredReplyBody) {
        self.0.insert(client, DeferredReply { left, answer });
    }

    /// A client waits for what is done of its events at once, with `left` changes of the network.
    /// The times of the `later` ones count from when it `began`.
    pub(super) fn wait_for_events<'a>(
        &mut self,
        client: u64,
        left: usize,
        began: Span,
        later: impl Iterator<Item = &'a ScheduledEvent> + Clone,
    ) {
        let until = began + later.clone().map(|event| event.at).max().unwrap_or_default();
        let later = later.count();
        let answer = DeferredReplyBody::Happened { events: Vec::new(), later, until };
        self.wait_for(client, left, answer);
    }

    /// So many more changes that a client waits for are `confirmed`, which were these events. It is
    /// answered when these are all.
    pub(super) fn answer_with(
        &mut self,
        client: u64,
        events: Vec<EventLogEntry>,
        confirmed: usize,
        connections: &mut ControlConnectionTable,
    ) {
        if let Some(reply) = self.add(client, events, confirmed) {
            connections.reply(client, &reply);
        }
    }

    /// Returns the answer when it is complete.
    fn add(
        &mut self,
        client: u64,
        events: Vec<EventLogEntry>,
        confirmed: usize,
    ) -> Option<ControlReply> {
        let pending = self.0.get_mut(&client)?;
        pending.left = pending.left.saturating_sub(confirmed);
        if let DeferredReplyBody::Happened { events: all, .. } = &mut pending.answer {
            all.extend(events);
        }
        if pending.left > 0 {
            return None;
        }
        Some(match self.0.remove(&client)?.answer {
            DeferredReplyBody::Done => ControlReply::Done,
            DeferredReplyBody::Happened { events, later, until } => {
                let until_ns = until.as_nanos();
                ControlReply::Happened(EventInjectionResult { events, later, until_ns })
            }
        })
    }

    /// A client has gone.
    pub(super) fn forget(&mut self, client: u64) {
        self.0.remove(&client);
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_trace::event::EventLogEntryKind;

    use super::*;

    fn event(at_ns: u64) -> EventLogEntry {
        EventLogEntry { at_ns, intended_ns: None, what: EventLogEntryKind::Healed }
    }

    #[test]
    fn a_client_is_answered_when_the_last_of_its_changes_is_confirmed() {
        let mut answers = DeferredReplies::default();
        let until = Span::from_nanos(900);
        answers.wait_for(4, 2, DeferredReplyBody::Happened { events: Vec::new(), later: 1, until });
        assert_eq!(answers.add(4, vec![event(1)], 0), None, "what is done here confirms nothing");
        assert_eq!(answers.add(4, vec![event(2)], 1), None);
        let events = vec![event(1), event(2), event(3)];
        let expected =
            ControlReply::Happened(EventInjectionResult { events, later: 1, until_ns: 900 });
        assert_eq!(answers.add(4, vec![event(3)], 1), Some(expected));
        assert_eq!(answers.add(4, Vec::new(), 1), None, "it is answered once");
    }

    #[test]
    fn a_change_without_events_is_answered_with_done() {
        let mut answers = DeferredReplies::default();
        answers.wait_for(1, 1, DeferredReplyBody::Done);
        answers.wait_for(2, 0, DeferredReplyBody::Done);
        assert_eq!(
            answers.add(2, Vec::new(), 0),
            Some(ControlReply::Done),
            "nothing was to be confirmed"
        );
        assert_eq!(answers.add(1, vec![event(1)], 1), Some(ControlReply::Done));
    }

    #[test]
    fn a_client_that_has_gone_is_not_answered() {
        let mut answers = DeferredReplies::default();
        answers.wait_for(1, 1, DeferredReplyBody::Done);
        answers.forget(1);
        assert_eq!(answers.add(1, Vec::new(), 1), None);
    }
}
