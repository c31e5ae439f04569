//! Where events and notices of a run go: to its observer and into `events.jsonl`, stamped by the
//! clock of the run.

use std::sync::Arc;

use windtunnel_model::{Span, Time};
use windtunnel_trace::event::{EventLogEntry, EventLogEntryKind};

use crate::observer::{Observer, ObserverNotice};
use crate::recorder::{RecentLaneSamples, RunRecorder};

/// Logs events with the time since the run began.
pub(super) struct Journal {
    observer: Arc<dyn Observer>,
    recorder: RunRecorder,
    clock: fn() -> Time,
    origin: Time,
    /// The machine, where the run is over several.
    host: Option<String>,
}

impl Journal {
    /// The clock of the run shows zero now, until [`Journal::begin`].
    pub(super) fn new(
        observer: Arc<dyn Observer>,
        recorder: RunRecorder,
        clock: fn() -> Time,
    ) -> Self {
        Journal { observer, recorder, clock, origin: clock(), host: None }
    }

    /// The run is over several machines, of which this is one: warnings name it.
    pub(super) fn of_host(mut self, host: Option<String>) -> Self {
        self.host = host;
        self
    }

    /// The clock of the run shows zero at `origin`.
    pub(super) fn begin(&mut self, origin: Time) {
        self.origin = origin;
    }

    pub(super) fn now(&self) -> Time {
        (self.clock)()
    }

    pub(super) fn origin(&self) -> Time {
        self.origin
    }

    /// The time after the run began that a node says of something that has happened.
    pub(super) fn happened_at(&self, at: Time) -> Span {
        at.min(self.now()).since(self.origin)
    }

    /// Time since the run began.
    pub(super) fn elapsed(&self) -> Span {
        self.now().since(self.origin)
    }

    /// Logs an event of this moment. `intended` is when it was to happen.
    pub(super) fn log(&self, intended: Option<Span>, what: EventLogEntryKind) -> EventLogEntry {
        self.log_at(self.elapsed(), intended, what)
    }

    /// Logs an event that happened `at` after the run began.
    pub(super) fn log_at(
        &self,
        at: Span,
        intended: Option<Span>,
        what: EventLogEntryKind,
    ) -> EventLogEntry {
        let event =
            EventLogEntry { at_ns: at.as_nanos(), intended_ns: intended.map(Span::as_nanos), what };
        self.observer.notice(&ObserverNotice::Event(&event));
        self.recorder.event(event.clone());
        event
    }

    pub(super) fn warn(&self, message: String) {
        let message = match &self.host {
            Some(host) => format!("host {host}: {message}"),
            None => message,
        };
        self.log(None, EventLogEntryKind::Warning { message });
    }

    /// Shows what is not an event.
    pub(super) fn notice(&self, notice: &ObserverNotice<'_>) {
        self.observer.notice(notice);
    }

    /// What links did lately.
    pub(super) fn recent(&self) -> &RecentLaneSamples {
        self.recorder.recent()
    }

    /// No event follows.
    pub(super) fn end(&self) {
        self.recorder.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::testing::{ObserverEventLog, clock, set_clock};

    #[test]
    fn events_are_stamped_with_the_time_since_the_run_began() {
        let log = ObserverEventLog::default();
        let (recorder, _records) = RunRecorder::to_channel();
        set_clock(Time::from_nanos(5_000));
        let mut journal = Journal::new(Arc::new(log.clone()), recorder, clock);
        journal.begin(Time::from_nanos(7_000));
        set_clock(Time::from_nanos(7_250));
        assert_eq!(journal.elapsed(), Span::from_nanos(250));
        let event = journal.log(Some(Span::from_nanos(200)), EventLogEntryKind::Healed);
        assert_eq!((event.at_ns, event.intended_ns), (250, Some(200)));
        assert_eq!(log.events(), std::slice::from_ref(&event));
    }

    #[test]
    fn a_warning_of_one_of_several_machines_names_it() {
        let log = ObserverEventLog::default();
        let (recorder, _records) = RunRecorder::to_channel();
        let journal = Journal::new(Arc::new(log.clone()), recorder, clock);
        let journal = journal.of_host(Some("two".to_owned()));
        journal.warn("the disk is slow".to_owned());
        let message = "host two: the disk is slow".to_owned();
        assert_eq!(log.events()[0].what, EventLogEntryKind::Warning { message });
    }

    #[test]
    fn a_warning_reaches_observer_and_file() {
        let log = ObserverEventLog::default();
        let (recorder, records) = RunRecorder::to_channel();
        let journal = Journal::new(Arc::new(log.clone()), recorder, clock);
        journal.warn("the disk is slow".to_owned());
        let expected = EventLogEntryKind::Warning { message: "the disk is slow".to_owned() };
        assert_eq!(log.whats(), std::slice::from_ref(&expected));
        let recorded: Vec<EventLogEntryKind> =
            records.events().into_iter().map(|event| event.what).collect();
        assert_eq!(recorded, [expected]);
    }
}
