//! Whether this machine has time for a run: how late timers are, what its processors do, and what
//! its hypervisor takes from them.

use std::io;

use windtunnel_model::Span;
use windtunnel_sys::{clock, limits};

/// What was seen of the machine while a thread did nothing but wait for timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineActivity {
    /// For how long.
    pub watched: Span,
    /// How late the latest timer was.
    pub latest: Span,
    /// How much of their time the processors ran something, in percent.
    pub busy_percent: u8,
    /// How much of their time the hypervisor took from them, in percent.
    pub stolen_percent: u8,
}

impl MachineActivity {
    /// Watches the machine for a second, with a timer each millisecond.
    ///
    /// # Errors
    /// If /proc/stat cannot be read.
    pub fn watch() -> io::Result<Self> {
        let before = limits::processors()?;
        let began = clock::monotonic_ns();
        let (mut due, mut latest) = (began, 0);
        while due < began + WATCHED_NS {
            due += TIMER_NS;
            match clock::sleep_until(due) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                slept => slept?,
            }
            let now = clock::monotonic_ns();
            latest = latest.max(now.saturating_sub(due));
            // Timers that a stall has swallowed are not late once more.
            due = due.max(now - (now - began) % TIMER_NS);
        }
        let after = limits::processors()?;
        let busy = after.busy.saturating_sub(before.busy);
        let stolen = after.stolen.saturating_sub(before.stolen);
        let all = busy + stolen + after.idle.saturating_sub(before.idle);
        Ok(MachineActivity {
            watched: Span::from_nanos(clock::monotonic_ns() - began),
            latest: Span::from_nanos(latest),
            busy_percent: percent(busy, all),
            stolen_percent: percent(stolen, all),
        })
    }

    /// Whether a run may begin in which packets are late from `late_above` on.
    #[must_use]
    pub fn is_quiet(&self, late_above: Span) -> bool {
        let MachineActivity { latest, busy_percent, stolen_percent, .. } = *self;
        latest <= Self::latest_allowed(late_above)
            && busy_percent <= Self::BUSY_ALLOWED
            && stolen_percent <= Self::STOLEN_ALLOWED
    }

    /// How late a timer may be on a quiet machine: half as late as a packet.
    #[must_use]
    pub fn latest_allowed(late_above: Span) -> Span {
        Span::from_nanos(late_above.as_nanos() / 2)
    }

    /// How busy the processors of a quiet machine are at the most, in percent.
    pub const BUSY_ALLOWED: u8 = 25;
    /// How much the hypervisor of a quiet machine takes at the most, in percent.
    pub const STOLEN_ALLOWED: u8 = 1;
}

fn percent(part: u64, all: u64) -> u8 {
    u8::try_from(part.saturating_mul(100) / all.max(1)).unwrap_or(100)
}

const WATCHED_NS: u64 = 1_000_000_000;
const TIMER_NS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(latest_us: u64, busy_percent: u8, stolen_percent: u8) -> MachineActivity {
        let (watched, latest) = (Span::from_secs(1), Span::from_nanos(latest_us * 1_000));
        MachineActivity { watched, latest, busy_percent, stolen_percent }
    }

    #[test]
    fn a_machine_is_quiet_when_timers_are_punctual_and_processors_idle() {
        let bound = Span::from_millis(1);
        assert!(activity(500, 25, 1).is_quiet(bound));
        assert!(!activity(501, 25, 1).is_quiet(bound), "timers are late");
        assert!(!activity(500, 26, 1).is_quiet(bound), "processors are busy");
        assert!(!activity(500, 25, 2).is_quiet(bound), "the hypervisor takes time");
    }

    #[test]
    fn a_larger_bound_of_lateness_allows_later_timers() {
        assert!(activity(2_500, 0, 0).is_quiet(Span::from_millis(5)));
    }

    #[test]
    fn a_watch_takes_a_second_of_the_clock_and_shares_are_shares() {
        let seen = MachineActivity::watch().unwrap();
        assert!(seen.watched >= Span::from_secs(1), "{seen:?}");
        assert!(seen.latest <= seen.watched, "{seen:?}");
        assert!(seen.busy_percent <= 100 && seen.stolen_percent <= 100, "{seen:?}");
    }
}
