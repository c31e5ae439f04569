//! Whether the loop may wait awake.
//!
//! A sleeper wakes late: some 30 µs on a good machine, and milliseconds where an idle processor is given
//! back to a hypervisor. Where a processor has nothing else to do, the loop therefore wakes early and waits
//! the rest awake. Where programs want the processors, it sleeps: they need them more.

use std::time::Duration;

use windtunnel_model::{Span, Time};
use windtunnel_sys::limits::{self, Processors};

/// Decides ten times a second.
#[derive(Debug)]
pub(super) struct Vigil {
    awake: bool,
    cpus: u64,
    last: Processors,
    next: Time,
}

/// How to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Not at all: ask again at once.
    Awake,
    /// Asleep, at most so long; `None`: until something happens.
    Asleep(Option<Duration>),
}

impl Vigil {
    pub(super) fn new() -> Self {
        let cpus = limits::cpus().map_or(1, |cpus| cpus.len());
        Vigil {
            awake: false,
            cpus: u64::try_from(cpus).unwrap_or(1),
            last: limits::processors().unwrap_or_default(),
            next: Time::ZERO,
        }
    }

    /// How to wait at `now` for something that is due at `due`.
    pub(super) fn wait(&mut self, now: Time, due: Option<Time>) -> Wait {
        self.decide(now);
        let Some(due) = due else { return Wait::Asleep(None) };
        let left = Duration::from(due.since(now));
        let margin = if self.awake { MARGIN } else { MARGIN_LEAST };
        match left.checked_sub(margin) {
            None => Wait::Awake,
            // Where others need the processor, early is not better than late.
            Some(_) if !self.awake => Wait::Asleep(Some(left)),
            Some(asleep) => Wait::Asleep(Some(asleep)),
        }
    }

    fn decide(&mut self, now: Time) {
        if now < self.next {
            return;
        }
        self.next = now + INTERVAL;
        let Ok(ticks) = limits::processors() else { return };
        let spent = |later: u64, earlier: u64| later.saturating_sub(earlier);
        let idle = spent(ticks.idle, self.last.idle);
        let busy = spent(ticks.busy, self.last.busy) + spent(ticks.stolen, self.last.stolen);
        self.awake = may_stay_awake(self.awake, self.cpus, idle, idle + busy);
        self.last = ticks;
    }
}

/// Whether, of `all` ticks of `cpus` processors, so many were idle that one processor can be spared. One
/// that is awake already has taken its processor: it needs only some rest to be idle.
fn may_stay_awake(awake: bool, cpus: u64, idle: u64, all: u64) -> bool {
    if cpus < 2 || all == 0 {
        return false;
    }
    let processors_idle_percent = idle * cpus * 100 / all;
    processors_idle_percent >= if awake { SPARE_PERCENT } else { 100 + SPARE_PERCENT }
}

const INTERVAL: Span = Span::from_millis(100);
/// Of one processor, beyond the one that waiting awake takes.
const SPARE_PERCENT: u64 = 20;
/// How early to wake: beyond what a sleeper oversleeps but in one of some thousand times. Waking 1 ms early
/// was worse (4 paired runs, p99 1.0 to 1.6 ms against 0.2 to 0.4 ms): who waits awake uses up the credit that
/// lets a sleeper in at once.
const MARGIN: Duration = Duration::from_micros(250);
/// Shorter sleeps cost more than they save.
const MARGIN_LEAST: Duration = Duration::from_micros(15);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_processor_is_never_waited_on() {
        assert!(!may_stay_awake(true, 1, 10, 10));
    }

    #[test]
    fn waiting_awake_begins_where_more_than_a_processor_is_idle_and_ends_where_none_rests() {
        // Of two processors for 100 ms, 20 ticks in all.
        assert!(may_stay_awake(false, 2, 15, 20));
        assert!(!may_stay_awake(false, 2, 11, 20));
        assert!(may_stay_awake(true, 2, 5, 20));
        assert!(!may_stay_awake(true, 2, 1, 20));
    }

    #[test]
    fn a_sleeper_with_a_processor_to_spare_wakes_early() {
        let at = Time::from_nanos;
        let mut vigil =
            Vigil { awake: true, cpus: 2, last: Processors::default(), next: Time::MAX };
        assert_eq!(vigil.wait(at(0), Some(at(200_000))), Wait::Awake);
        let early = Wait::Asleep(Some(Duration::from_micros(750)));
        assert_eq!(vigil.wait(at(0), Some(at(1_000_000))), early);
        vigil.awake = false;
        let exact = Wait::Asleep(Some(Duration::from_millis(1)));
        assert_eq!(vigil.wait(at(0), Some(at(1_000_000))), exact);
        assert_eq!(vigil.wait(at(0), None), Wait::Asleep(None));
    }
}
