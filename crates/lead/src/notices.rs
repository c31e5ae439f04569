//! The notices of a run over several machines, as if it were on one.

use std::sync::Arc;

use windtunnel_cluster::protocol::run::RunSetup;
use windtunnel_host::observer::OwnedNotice;
use windtunnel_host::{Observer, ObserverNotice};
use windtunnel_model::{Plan, Span};
use windtunnel_trace::event::{EventLogEntry, EventLogEntryKind};
use windtunnel_verdict::EventFilter;

/// Puts the parts' notices together.
pub(crate) struct Notices {
    observer: Arc<dyn Observer>,
    plan: Plan,
    once: EventFilter,
    stopping: bool,
    /// By member: nodes that are up.
    done: Vec<usize>,
    total: usize,
    /// By member: programs that run and are not daemons.
    running: Vec<usize>,
    elapsed: Span,
}

impl Notices {
    pub(crate) fn new(setup: &RunSetup, observer: Arc<dyn Observer>) -> Self {
        Notices {
            observer,
            plan: setup.plan.clone(),
            once: EventFilter::default(),
            stopping: false,
            done: vec![0; setup.members.len()],
            total: setup.plan.nodes.len(),
            running: vec![0; setup.members.len()],
            elapsed: Span::ZERO,
        }
    }

    /// A part's notice, in its own words. Those of another version are left out. Returns which
    /// machine is lost, if it says that.
    pub(crate) fn notice(&mut self, member: u16, text: &str) -> Option<String> {
        let seen = OwnedNotice::read(text, &self.plan)?;
        let member = usize::from(member);
        match &seen {
            OwnedNotice::Setup { done, .. } => {
                self.done[member] = *done;
                let done = self.done.iter().sum();
                self.observer.notice(&ObserverNotice::Setup { done, total: self.total });
            }
            OwnedNotice::Tick { elapsed, running } => {
                self.running[member] = *running;
                self.elapsed = self.elapsed.max(*elapsed);
                let running = self.running.iter().sum();
                self.observer.notice(&ObserverNotice::Tick { elapsed: self.elapsed, running });
            }
            OwnedNotice::Stopping { .. } if std::mem::replace(&mut self.stopping, true) => {}
            OwnedNotice::Event(event) if !self.once.is_new(event) => {}
            seen => self.observer.notice(&seen.notice()),
        }
        match seen {
            OwnedNotice::Event(EventLogEntry {
                what: EventLogEntryKind::HostLost { host, .. },
                ..
            }) => Some(host),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Recorder, setup};

    /// What an observer sees of one notice of a member, and which machine is lost by it.
    #[track_caller]
    fn expect(
        notices: &mut Notices,
        recorder: &Recorder,
        member: u16,
        notice: &OwnedNotice,
        seen: &[&str],
    ) -> Option<String> {
        let text = serde_json::to_string(notice).unwrap();
        let lost = notices.notice(member, &text);
        assert_eq!(recorder.take(), seen);
        lost
    }

    fn event(at_ns: u64, what: EventLogEntryKind) -> OwnedNotice {
        OwnedNotice::Event(EventLogEntry { at_ns, intended_ns: None, what })
    }

    #[test]
    fn nodes_and_programs_of_all_parts_are_added_and_the_latest_time_is_shown() {
        let recorder = Recorder::new();
        let mut notices = Notices::new(&setup(), Arc::<Recorder>::clone(&recorder));
        let up = |done| OwnedNotice::Setup { done, total: 1 };
        expect(&mut notices, &recorder, 0, &up(1), &["Setup { done: 1, total: 3 }"]);
        expect(&mut notices, &recorder, 2, &up(1), &["Setup { done: 2, total: 3 }"]);
        // Of one part, the last counts.
        expect(&mut notices, &recorder, 0, &up(0), &["Setup { done: 1, total: 3 }"]);
        let tick =
            |seconds, running| OwnedNotice::Tick { elapsed: Span::from_secs(seconds), running };
        let seen = |seconds, running| {
            let elapsed = Span::from_secs(seconds);
            format!("{:?}", ObserverNotice::Tick { elapsed, running })
        };
        expect(&mut notices, &recorder, 0, &tick(2, 1), &[&seen(2, 1)]);
        expect(&mut notices, &recorder, 1, &tick(1, 1), &[&seen(2, 2)]);
        expect(&mut notices, &recorder, 0, &tick(3, 0), &[&seen(3, 1)]);
    }

    #[test]
    fn what_all_parts_report_is_shown_once_and_output_each_time() {
        let recorder = Recorder::new();
        let mut notices = Notices::new(&setup(), Arc::<Recorder>::clone(&recorder));
        let stopping = OwnedNotice::Stopping { reason: "by command".to_owned() };
        let shown = ["Stopping { reason: \"by command\" }"];
        expect(&mut notices, &recorder, 0, &stopping, &shown);
        expect(&mut notices, &recorder, 1, &stopping, &[]);
        let began = event(0, EventLogEntryKind::RunBegan);
        assert_eq!(notices.notice(0, &serde_json::to_string(&began).unwrap()), None);
        assert_eq!(recorder.take().len(), 1);
        expect(&mut notices, &recorder, 1, &began, &[]);
        let output = OwnedNotice::Output {
            source: "a".to_owned(),
            node: 0,
            error: false,
            line: "x".to_owned(),
        };
        let shown = ["Output { source: \"a\", node: 0, error: false, line: \"x\" }"];
        expect(&mut notices, &recorder, 0, &output, &shown);
        expect(&mut notices, &recorder, 0, &output, &shown);
    }

    #[test]
    fn a_lost_machine_is_shown_once_and_returned_for_each_member_that_reports_it() {
        let recorder = Recorder::new();
        let mut notices = Notices::new(&setup(), Arc::<Recorder>::clone(&recorder));
        let lost = |at_ns| {
            let (host, why) = ("two".to_owned(), format!("seen at {at_ns}"));
            event(at_ns, EventLogEntryKind::HostLost { host, nodes: vec!["b".to_owned()], why })
        };
        let first = serde_json::to_string(&lost(1)).unwrap();
        assert_eq!(notices.notice(0, &first).as_deref(), Some("two"));
        assert_eq!(recorder.take().len(), 1);
        let again = expect(&mut notices, &recorder, 2, &lost(9), &[]);
        assert_eq!(again.as_deref(), Some("two"));
    }

    #[test]
    fn what_a_part_cannot_have_seen_is_left_out() {
        let recorder = Recorder::new();
        let mut notices = Notices::new(&setup(), Arc::<Recorder>::clone(&recorder));
        let too_many = OwnedNotice::Setup { done: 4, total: 4 };
        expect(&mut notices, &recorder, 0, &too_many, &[]);
        assert_eq!(notices.notice(0, "no notice"), None);
        assert_eq!(notices.notice(0, r#"{"notice":"of another version"}"#), None);
        assert!(recorder.take().is_empty());
    }
}
