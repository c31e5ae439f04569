//! Whether the loop may wait awake.
//!
//! A sleeper wakes late: some 30 µs on a good machine, and milliseconds where an idle processor is
//! given back to a hypervisor. Where a processor has nothing else to do, the loop therefore wakes
//! early and waits the rest awake. Where programs want the processors, it sleeps: they need them
//! more.
//!
//! Where they want all of them and packets come fast, waking for each is dear: the programs lose
//! the processor, and the packet behind it wakes the loop anew. Between machines, where that
//! happens on both sides of the network for data and acknowledgements, the loop then lets packets
//! gather for a moment, as network cards do (interrupt moderation).

use std::time::Duration;

use windtunnel_model::{Span, Time};
use windtunnel_sys::limits::{self, CpuTickCounters};

use crate::clock;
use crate::real_time_rest::RealTimeRest;

/// Decides ten times a second.
#[derive(Debug)]
pub(super) struct WaitPolicy {
    awake: bool,
    cpus: u64,
    last: CpuTickCounters,
    next: Time,
    /// Whether packets may ever be let gather.
    may_gather: bool,
    gathers: bool,
    crowded: bool,
    /// Whether there has been work since the last wait.
    worked: bool,
    /// Waits after work since the last decision.
    waits: u64,
    /// Rest that a thread of real-time priority needs; `None` for an ordinary one.
    rest: Option<RealTimeRest>,
}

/// How to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoopWaitMode {
    /// Not at all: ask again at once.
    Awake,
    /// Asleep, at most so long; `None`: until something happens.
    Asleep(Option<Duration>),
    /// Asleep so long whatever comes, and look then.
    Gather(Duration),
}

impl WaitPolicy {
    /// With `may_gather` packets may be let gather.
    pub(super) fn new(may_gather: bool) -> Self {
        let cpus = limits::cpus().map_or(1, |cpus| cpus.len());
        WaitPolicy {
            awake: false,
            cpus: u64::try_from(cpus).unwrap_or(1),
            last: limits::processors().unwrap_or_default(),
            next: Time::ZERO,
            may_gather,
            gathers: false,
            crowded: false,
            worked: false,
            waits: 0,
            rest: None,
        }
    }

    /// What rest the thread needs.
    pub(super) fn set_rest(&mut self, rest: Option<RealTimeRest>) {
        self.rest = rest;
    }

    /// Sleeps for a moment where a thread that has always worked until `now` would soon be stopped
    /// for longer.
    pub(super) fn rest_if_overdue(&mut self, now: Time) {
        let Some(rest) = &mut self.rest else { return };
        rest.awake_until(now);
        if rest.is_overdue() {
            std::thread::sleep(REST);
            rest.slept_until(clock::now());
        }
    }

    /// What [`WaitPolicy::wait`] said last was a sleep, which is over.
    pub(super) fn slept(&mut self) {
        if let Some(rest) = &mut self.rest {
            rest.slept_until(clock::now());
        }
    }

    /// There was work.
    pub(super) fn worked(&mut self) {
        self.worked = true;
    }

    /// How to wait at `now` for something that is due at `due`.
    pub(super) fn wait(&mut self, now: Time, due: Option<Time>) -> LoopWaitMode {
        self.decide(now);
        let left = due.map(|due| Duration::from(due.since(now)));
        let rests = self.rest.as_mut().is_some_and(|rest| {
            rest.awake_until(now);
            rest.is_due()
        });
        let awake = self.awake && !rests;
        let margin = if awake { MARGIN } else { MARGIN_LEAST };
        let early = left.map(|left| left.checked_sub(margin));
        if early == Some(None) {
            return LoopWaitMode::Awake;
        }
        // Where others need the processor, early is not better than late.
        let asleep = if awake { early.flatten() } else { left };
        let worked = std::mem::take(&mut self.worked);
        self.waits += u64::from(worked);
        if worked && self.gathers {
            return LoopWaitMode::Gather(asleep.map_or(GATHER, |asleep| asleep.min(GATHER)));
        }
        LoopWaitMode::Asleep(asleep)
    }

    /// Whether programs want all processors.
    pub(super) fn is_crowded(&self) -> bool {
        self.crowded
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
        let often = std::mem::take(&mut self.waits) >= OFTEN;
        self.crowded = is_crowded(self.crowded, self.cpus, idle, idle + busy);
        let crowded = is_crowded(self.gathers, self.cpus, idle, idle + busy);
        self.gathers = self.may_gather && often && crowded;
        self.last = ticks;
    }
}

/// Whether, of `all` ticks of `cpus` processors, so many were idle that one processor can be
/// spared. One that is awake already has taken its processor: it needs only some rest to be idle.
fn may_stay_awake(awake: bool, cpus: u64, idle: u64, all: u64) -> bool {
    let wanted = if awake { SPARE_PERCENT } else { 100 + SPARE_PERCENT };
    cpus >= 2 && idle_percent(cpus, idle, all).is_some_and(|percent| percent >= wanted)
}

/// Whether, of `all` ticks of `cpus` processors, so few were idle that waking costs programs their
/// time. Once it `was` so, packets that are let gather leave more of it.
fn is_crowded(was: bool, cpus: u64, idle: u64, all: u64) -> bool {
    let percent = if was { CROWDED_STILL_PERCENT } else { CROWDED_PERCENT };
    idle_percent(cpus, idle, all).is_some_and(|idle| idle < percent)
}

/// How much was idle, in percent of one processor; `None` where nothing is known.
fn idle_percent(cpus: u64, idle: u64, all: u64) -> Option<u64> {
    (idle * cpus * 100).checked_div(all)
}

const INTERVAL: Span = Span::from_millis(100);
/// Of one processor, beyond the one that waiting awake takes.
const SPARE_PERCENT: u64 = 20;
/// How early to wake: beyond what a sleeper oversleeps but in one of some thousand times. Waking 1
/// ms early was worse (4 paired runs, p99 1.0 to 1.6 ms against 0.2 to 0.4 ms): a thread that
/// waits awake uses up the credit that lets a sleeper in at once.
const MARGIN: Duration = Duration::from_micros(250);
/// Shorter sleeps cost more than they save.
const MARGIN_LEAST: Duration = Duration::from_micros(15);
/// A piece of rest amid work: half of what makes a packet late.
const REST: Duration = Duration::from_micros(500);
/// How long packets gather: a small part of what makes a packet late.
const GATHER: Duration = Duration::from_micros(50);
/// So many waits after work in an interval are many.
const OFTEN: u64 = 50;
/// Of one processor: less idle than this, and all are wanted; and more idle than that, and they are
/// not any more.
const CROWDED_PERCENT: u64 = 50;
const CROWDED_STILL_PERCENT: u64 = 100;

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

    fn wait_policy() -> WaitPolicy {
        WaitPolicy { cpus: 2, next: Time::MAX, ..WaitPolicy::new(true) }
    }

    #[test]
    fn a_sleeper_with_a_processor_to_spare_wakes_early() {
        let at = Time::from_nanos;
        let mut wait_policy = wait_policy();
        wait_policy.awake = true;
        assert_eq!(wait_policy.wait(at(0), Some(at(200_000))), LoopWaitMode::Awake);
        let early = LoopWaitMode::Asleep(Some(Duration::from_micros(750)));
        assert_eq!(wait_policy.wait(at(0), Some(at(1_000_000))), early);
        wait_policy.awake = false;
        let exact = LoopWaitMode::Asleep(Some(Duration::from_millis(1)));
        assert_eq!(wait_policy.wait(at(0), Some(at(1_000_000))), exact);
        assert_eq!(wait_policy.wait(at(0), None), LoopWaitMode::Asleep(None));
    }

    #[test]
    fn a_real_time_thread_that_has_waited_awake_spends_its_next_wait_asleep() {
        let at = Time::from_nanos;
        let mut wait_policy = wait_policy();
        wait_policy.awake = true;
        wait_policy.set_rest(Some(RealTimeRest::new(at(0))));
        assert_eq!(wait_policy.wait(at(0), Some(at(200_000))), LoopWaitMode::Awake);
        let exact = LoopWaitMode::Asleep(Some(Duration::from_micros(100)));
        assert_eq!(wait_policy.wait(at(100_000), Some(at(200_000))), exact);
        wait_policy.slept();
        assert_eq!(wait_policy.wait(at(200_000), Some(at(400_000))), LoopWaitMode::Awake);
    }

    #[test]
    fn packets_gather_where_less_than_half_a_processor_is_idle_until_a_whole_one_is() {
        // Of two processors for 100 ms, 20 ticks in all.
        assert!(is_crowded(false, 2, 4, 20));
        assert!(!is_crowded(false, 2, 5, 20));
        assert!(is_crowded(true, 2, 9, 20));
        assert!(!is_crowded(true, 2, 10, 20));
        assert!(!is_crowded(false, 2, 0, 0), "nothing is known");
    }

    #[test]
    fn packets_gather_after_work_only_and_not_beyond_what_is_due() {
        let mut wait_policy = WaitPolicy { gathers: true, ..wait_policy() };
        let at = Time::from_nanos;
        assert_eq!(wait_policy.wait(at(0), None), LoopWaitMode::Asleep(None));
        wait_policy.worked();
        assert_eq!(wait_policy.wait(at(0), None), LoopWaitMode::Gather(GATHER));
        assert_eq!(wait_policy.wait(at(0), None), LoopWaitMode::Asleep(None), "nothing came");
        wait_policy.worked();
        let due = Some(at(20_000));
        assert_eq!(wait_policy.wait(at(0), due), LoopWaitMode::Gather(Duration::from_micros(20)));
    }
}
