//! Whether what the plan has for times of the run happens then: events, starts and measurements.
//!
//! Each has a bound, from how late a packet may be. One event has that; a start has
//! [`START_FACTOR`] times as much, as the kernel needs milliseconds to make a process. What a plan
//! has for several nodes or programs at one time has more for each further one, as one machine does
//! them one after another: [`ONE_MORE_OF`] of a bound for a signal or change, a whole one for a
//! start.
//!
//! A signal to a node has happened when all of its processes that are known have been sent it by this
//! process (`aim`), or else when the node's init has sent it, which the init says.

use std::collections::BTreeMap;

use windtunnel_model::Span;
use windtunnel_trace::event::EventLogEntryKind;
use windtunnel_verdict::evidence::{LateOccurrence, PunctualitySummary};

/// What has happened, and what is under way.
#[derive(Debug)]
pub(super) struct PunctualityMonitor {
    late_above: Span,
    planned: PunctualitySummary,
    /// Signals that nodes have not confirmed, by token.
    signals: BTreeMap<u64, UnconfirmedSignal>,
    next_token: u64,
}

#[derive(Debug)]
struct UnconfirmedSignal {
    node: usize,
    what: String,
    intended: Span,
    of: usize,
}

/// Something that was planned for a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScheduledOccurrence<'a> {
    what: ScheduledOccurrenceKind<'a>,
    /// How many were planned for that time together.
    of: usize,
}

#[derive(Debug, Clone, Copy)]
enum ScheduledOccurrenceKind<'a> {
    Named(&'a str),
    Change(&'a EventLogEntryKind),
    Start(&'a str),
}

impl<'a> ScheduledOccurrence<'a> {
    /// Something by itself.
    pub(super) fn one(name: &'a str) -> Self {
        ScheduledOccurrence { what: ScheduledOccurrenceKind::Named(name), of: 1 }
    }

    /// A signal to a node, with `of` nodes at the same time.
    pub(super) fn signal(name: &'a str, of: usize) -> Self {
        ScheduledOccurrence { of, ..ScheduledOccurrence::one(name) }
    }

    /// Something that has been logged.
    pub(super) fn change(event: &'a EventLogEntryKind) -> Self {
        ScheduledOccurrence { what: ScheduledOccurrenceKind::Change(event), of: 1 }
    }

    /// The start of a program, with `of` programs that were to start at the same time.
    pub(super) fn start(program: &'a str, of: usize) -> Self {
        ScheduledOccurrence { what: ScheduledOccurrenceKind::Start(program), of }
    }

    fn bound(self, late_above: Span) -> Span {
        let further = u64::try_from(self.of.saturating_sub(1)).unwrap_or(u64::MAX);
        let late_above = late_above.as_nanos();
        Span::from_nanos(match self.what {
            ScheduledOccurrenceKind::Start(_) => {
                late_above.saturating_mul(further.saturating_add(START_FACTOR))
            }
            ScheduledOccurrenceKind::Named(_) | ScheduledOccurrenceKind::Change(_) => {
                late_above.saturating_add((late_above / ONE_MORE_OF).saturating_mul(further))
            }
        })
    }

    fn name(self) -> String {
        match self.what {
            ScheduledOccurrenceKind::Named(name) => name.to_owned(),
            ScheduledOccurrenceKind::Start(program) => format!("start of {program}"),
            ScheduledOccurrenceKind::Change(event) => name_of(event),
        }
    }
}

impl PunctualityMonitor {
    pub(super) fn new(late_above: Span) -> Self {
        let (planned, signals) = (PunctualitySummary::default(), BTreeMap::new());
        PunctualityMonitor { late_above, planned, signals, next_token: 0 }
    }

    /// Something planned has happened.
    pub(super) fn happened(&mut self, what: ScheduledOccurrence<'_>, intended: Span, at: Span) {
        let (late, bound) = (at.saturating_sub(intended), what.bound(self.late_above));
        self.planned.add(LateOccurrence { what: what.name(), intended, late, bound });
    }

    /// A node is to get a signal, with `of` nodes at the same time. Returns the token by which it
    /// says that it has.
    pub(super) fn signal(&mut self, node: usize, what: String, intended: Span, of: usize) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        self.signals.insert(token, UnconfirmedSignal { node, what, intended, of });
        token
    }

    /// Whether that node is to confirm a signal.
    pub(super) fn expects(&self, node: usize, token: u64) -> bool {
        self.signals.get(&token).is_some_and(|awaited| awaited.node == node)
    }

    /// A node confirms a signal.
    pub(super) fn signalled(&mut self, token: u64, at: Span) {
        if let Some(UnconfirmedSignal { what, intended, of, .. }) = self.signals.remove(&token) {
            self.happened(ScheduledOccurrence::signal(&what, of), intended, at);
        }
    }

    /// The run is over `at` a time: signals that no node has confirmed have not been there yet.
    pub(super) fn finish(mut self, at: Span) -> PunctualitySummary {
        let open: Vec<u64> = self.signals.keys().copied().collect();
        open.into_iter().for_each(|token| self.signalled(token, at));
        self.planned
    }
}

/// A change in the words of the file.
fn name_of(event: &EventLogEntryKind) -> String {
    match event {
        EventLogEntryKind::LinkSet { link, direction, .. } => {
            format!("change of {link} ({direction})")
        }
        EventLogEntryKind::LinkState { link, direction, up }
        | EventLogEntryKind::LinkFlap { link, direction, up } => {
            format!("{} of {link} ({direction})", if *up { "up" } else { "down" })
        }
        EventLogEntryKind::Partitioned { .. } => "partition".to_owned(),
        EventLogEntryKind::Healed => "heal".to_owned(),
        EventLogEntryKind::RouteFixed { path } => format!("route {}", path.join(", ")),
        EventLogEntryKind::RouteFreed { from, to } => format!("route from {from} to {to}"),
        EventLogEntryKind::Rerouted { .. } => "reroute".to_owned(),
        EventLogEntryKind::CpuSet { node, .. } => format!("cpu of {node}"),
        EventLogEntryKind::LimitSet { node, limit, .. } => format!("{limit} of {node}"),
        EventLogEntryKind::ServiceSet { service, replica, .. } => {
            format!("change of replica {replica} of {service}")
        }
        EventLogEntryKind::Node { node, verb } => format!("{verb} of {node}"),
        _ => "event".to_owned(),
    }
}

/// A start may take so many bounds: 10 ms with the bound of 1 ms.
const START_FACTOR: u64 = 10;
/// A further node has so small a part of a bound more: 150 nodes get a signal within 8.5 ms.
const ONE_MORE_OF: u64 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn late(planned: &PunctualitySummary) -> Vec<(&str, Span)> {
        planned.worst.iter().map(|event| (event.what.as_str(), event.late)).collect()
    }

    #[test]
    fn an_event_later_than_the_bound_is_late_and_one_within_it_is_not() {
        let mut punctuality = PunctualityMonitor::new(MS(1));
        let event =
            EventLogEntryKind::LinkState { link: "wan".into(), direction: "a-b".into(), up: false };
        punctuality.happened(ScheduledOccurrence::change(&event), MS(5_000), MS(5_001));
        punctuality.happened(ScheduledOccurrence::change(&event), MS(7_000), MS(8_000));
        let planned = punctuality.finish(MS(9_000));
        assert_eq!((planned.happened, planned.late), (2, 1));
        assert_eq!(late(&planned), [("down of wan (a-b)", MS(1_000))]);
    }

    #[test]
    fn a_signal_happens_when_the_node_says_so() {
        let mut punctuality = PunctualityMonitor::new(MS(1));
        let token = punctuality.signal(3, "kill of a".into(), MS(5_000), 1);
        assert!(punctuality.expects(3, token) && !punctuality.expects(2, token));
        punctuality.signalled(token, MS(6_000));
        assert!(!punctuality.expects(3, token), "once");
        punctuality.signalled(token, MS(9_000));
        let planned = punctuality.finish(MS(9_000));
        assert_eq!((planned.happened, late(&planned)), (1, vec![("kill of a", MS(1_000))]));
    }

    #[test]
    fn a_signal_that_is_never_confirmed_is_as_late_as_the_end() {
        let mut punctuality = PunctualityMonitor::new(MS(1));
        punctuality.signal(0, "pause of a".into(), MS(2_000), 1);
        assert_eq!(late(&punctuality.finish(MS(10_000))), [("pause of a", MS(8_000))]);
    }

    #[test]
    fn a_group_has_a_twentieth_of_the_bound_more_for_each_further_node() {
        let mut punctuality = PunctualityMonitor::new(MS(1));
        for (node, at_us) in [(0, 8_450), (1, 8_451)] {
            let token = punctuality.signal(node, format!("kill of n{node}"), Span::ZERO, 150);
            punctuality.signalled(token, Span::from_micros(at_us));
        }
        let planned = punctuality.finish(MS(9));
        assert_eq!(late(&planned), [("kill of n1", Span::from_micros(8_451))]);
    }

    #[test]
    fn a_start_has_ten_bounds_and_one_more_for_each_program_of_the_same_time() {
        let starts = |of| {
            let mut punctuality = PunctualityMonitor::new(MS(1));
            for at in [10, 11, 12, 13] {
                punctuality.happened(ScheduledOccurrence::start("web (nginx)", of), MS(0), MS(at));
            }
            punctuality.finish(MS(20)).late
        };
        assert_eq!((starts(1), starts(3)), (3, 1));
    }
}
