//! Answers to clients that wait until what they asked for has been done.

use std::collections::BTreeMap;

use windtunnel_control::EventInjectionResult;
use windtunnel_model::Span;
use windtunnel_model::plan::ScheduledEvent;
use windtunnel_trace::event::EventLogEntry;

use super::connections::ControlConnectionTable;
use super::outcome::AnswerPromise;

/// By client: the answer that is not complete.
#[derive(Debug, Default)]
pub(super) struct DeferredReplies(BTreeMap<u64, DeferredReply>);

#[derive(Debug)]
struct DeferredReply {
    /// Changes of the network that have not been confirmed.
    left: usize,
    answer: DeferredReplyBody,
}

#[derive(Debug, PartialEq)]
pub(super) enum DeferredReplyBody {
    Done,
    /// What was done, as far as it is known.
    Happened(EventInjectionResult),
}

impl From<()> for DeferredReplyBody {
    fn from(_: ()) -> Self {
        DeferredReplyBody::Done
    }
}

impl From<EventInjectionResult> for DeferredReplyBody {
    fn from(result: EventInjectionResult) -> Self {
        DeferredReplyBody::Happened(result)
    }
}

impl DeferredReplies {
    /// A client waits until `left` changes of the network have been confirmed.
    pub(super) fn wait_for<A: Into<DeferredReplyBody>>(
        &mut self,
        client: u64,
        left: usize,
        answer: A,
    ) -> AnswerPromise<A> {
        self.0.insert(client, DeferredReply { left, answer: answer.into() });
        AnswerPromise::new()
    }

    /// A client waits for what is done of its events at once, with `left` changes of the network.
    /// The times of the `later` ones count from when it `began`.
    pub(super) fn wait_for_events<'a>(
        &mut self,
        client: u64,
        left: usize,
        began: Span,
        later: impl Iterator<Item = &'a ScheduledEvent> + Clone,
    ) -> AnswerPromise<EventInjectionResult> {
        let until = began + later.clone().map(|event| event.at).max().unwrap_or_default();
        let (events, later, until_ns) = (Vec::new(), later.count(), until.as_nanos());
        self.wait_for(client, left, EventInjectionResult { events, later, until_ns })
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
        match self.add(client, events, confirmed) {
            Some(DeferredReplyBody::Done) => connections.answer(client, ()),
            Some(DeferredReplyBody::Happened(result)) => connections.answer(client, result),
            None => {}
        }
    }

    /// Returns the answer when it is complete.
    fn add(
        &mut self,
        client: u64,
        events: Vec<EventLogEntry>,
        confirmed: usize,
    ) -> Option<DeferredReplyBody> {
        let pending = self.0.get_mut(&client)?;
        pending.left = pending.left.saturating_sub(confirmed);
        if let DeferredReplyBody::Happened(result) = &mut pending.answer {
            result.events.extend(events);
        }
        if pending.left > 0 {
            return None;
        }
        Some(self.0.remove(&client)?.answer)
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
        let result =
            |events: Vec<EventLogEntry>| EventInjectionResult { events, later: 1, until_ns: 900 };
        answers.wait_for(4, 2, result(Vec::new()));
        assert_eq!(answers.add(4, vec![event(1)], 0), None, "what is done here confirms nothing");
        assert_eq!(answers.add(4, vec![event(2)], 1), None);
        let events = vec![event(1), event(2), event(3)];
        let expected = DeferredReplyBody::Happened(result(events));
        assert_eq!(answers.add(4, vec![event(3)], 1), Some(expected));
        assert_eq!(answers.add(4, Vec::new(), 1), None, "it is answered once");
    }

    #[test]
    fn a_change_without_events_is_answered_with_done() {
        let mut answers = DeferredReplies::default();
        answers.wait_for(1, 1, ());
        answers.wait_for(2, 0, ());
        assert_eq!(
            answers.add(2, Vec::new(), 0),
            Some(DeferredReplyBody::Done),
            "nothing was to be confirmed"
        );
        assert_eq!(answers.add(1, vec![event(1)], 1), Some(DeferredReplyBody::Done));
    }

    #[test]
    fn a_client_that_has_gone_is_not_answered() {
        let mut answers = DeferredReplies::default();
        answers.wait_for(1, 1, ());
        answers.forget(1);
        assert_eq!(answers.add(1, Vec::new(), 1), None);
    }
}
