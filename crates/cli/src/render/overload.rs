//! Overloads on the terminal: at most a line a second, however often the emulation falls behind.
//! `events.jsonl` has each.

use windtunnel_trace::event::{EventLogEntry, EventLogEntryKind};

use crate::render::{event, quantity};

/// Overloads that have not been shown yet.
#[derive(Debug, Default)]
pub(crate) struct OverloadNoticeThrottle {
    /// When the last line was shown.
    shown_at_ns: Option<u64>,
    since: SuppressedOverloads,
}

#[derive(Debug, Default)]
struct SuppressedOverloads {
    /// The first event, shown as it is if it stays the only one.
    first: Option<EventLogEntry>,
    events: u64,
    began: u64,
    furthest_ns: u64,
    ended: u64,
    lasted_ns: u64,
    frozen: bool,
}

impl OverloadNoticeThrottle {
    /// Takes an event of an overload, and answers with the line to be shown now. `Err`: it is
    /// another event.
    pub(crate) fn take(&mut self, event: &EventLogEntry) -> Result<Option<String>, ()> {
        match event.what {
            EventLogEntryKind::Overloaded { behind_ns, frozen } => {
                self.since.began += 1;
                self.since.furthest_ns = self.since.furthest_ns.max(behind_ns);
                self.since.frozen |= frozen;
            }
            EventLogEntryKind::CaughtUp { lasted_ns } => {
                self.since.ended += 1;
                self.since.lasted_ns += lasted_ns;
            }
            _ => return Err(()),
        }
        self.since.events += 1;
        self.since.first.get_or_insert_with(|| event.clone());
        Ok(self.due(event.at_ns))
    }

    /// The line to be shown `at_ns` after the run began.
    pub(crate) fn due(&mut self, at_ns: u64) -> Option<String> {
        let soon = self.shown_at_ns.is_some_and(|shown| at_ns < shown.saturating_add(BETWEEN_NS));
        if soon { None } else { self.rest(at_ns) }
    }

    /// All that is still to be shown.
    pub(crate) fn rest(&mut self, at_ns: u64) -> Option<String> {
        let since = std::mem::take(&mut self.since);
        let first = since.first.as_ref()?;
        self.shown_at_ns = Some(at_ns);
        if since.events == 1 {
            return Some(event::text(first));
        }
        let mut text = event::at(at_ns);
        if since.began > 0 {
            let (times, behind) = (times(since.began), quantity::nanos(since.furthest_ns));
            text.push_str(&format!("overloaded {times}, by up to {behind}"));
        }
        if since.ended > 0 {
            let comma = if since.began > 0 { "; " } else { "" };
            let (times, lasted) = (times(since.ended), quantity::nanos(since.lasted_ns));
            text.push_str(&format!("{comma}caught up {times}, after {lasted} together"));
        }
        if since.frozen {
            text.push_str("; all programs were paused");
        }
        Some(text)
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

const BETWEEN_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_ms: u64, what: EventLogEntryKind) -> EventLogEntry {
        EventLogEntry { at_ns: at_ms * 1_000_000, intended_ns: None, what }
    }

    fn overloaded(at_ms: u64, behind_ms: u64) -> EventLogEntry {
        event(
            at_ms,
            EventLogEntryKind::Overloaded { behind_ns: behind_ms * 1_000_000, frozen: false },
        )
    }

    fn caught_up(at_ms: u64, lasted_ms: u64) -> EventLogEntry {
        event(at_ms, EventLogEntryKind::CaughtUp { lasted_ns: lasted_ms * 1_000_000 })
    }

    #[test]
    fn many_overloads_of_a_second_are_one_line() {
        let mut overloads = OverloadNoticeThrottle::default();
        let first = overloads.take(&overloaded(100, 2)).unwrap().unwrap();
        assert_eq!(first, "[   0.100s] overloaded: the emulation is 2ms behind");
        for n in 0..10 {
            assert_eq!(overloads.take(&caught_up(110 + n * 50, 5)), Ok(None));
            assert_eq!(overloads.take(&overloaded(120 + n * 50, 1 + n)), Ok(None));
        }
        assert_eq!(overloads.due(1_099_000_000), None);
        assert_eq!(
            overloads.due(1_100_000_000).unwrap(),
            "[   1.100s] overloaded 10 times, by up to 10ms; caught up 10 times, after 50ms together"
        );
        assert_eq!(overloads.due(9_000_000_000), None, "nothing has happened since");
        assert_eq!(
            overloads.take(&caught_up(9_500, 7)),
            Ok(Some("[   9.500s] caught up, after 7ms".into()))
        );
    }

    #[test]
    fn unshown_overloads_are_shown_at_the_end_and_other_events_are_not_taken() {
        let mut overloads = OverloadNoticeThrottle::default();
        let paused = EventLogEntryKind::Overloaded { behind_ns: 3_000_000, frozen: true };
        overloads.take(&overloaded(100, 2)).unwrap();
        overloads.take(&caught_up(150, 4)).unwrap();
        overloads.take(&event(200, paused)).unwrap();
        assert_eq!(
            overloads.rest(300_000_000).unwrap(),
            "[   0.300s] overloaded once, by up to 3ms; caught up once, after 4ms together; all \
             programs were paused"
        );
        assert_eq!(overloads.rest(300_000_000), None);
        assert_eq!(overloads.take(&event(1, EventLogEntryKind::Healed)), Err(()));
    }
}
