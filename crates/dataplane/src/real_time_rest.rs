//! Rest for a thread of real-time priority.
//!
//! The kernel keeps a part of each second from real-time threads, 5 % by default
//! (`sched_rt_runtime_us` of `sched_rt_period_us`, sched(7); since Linux 6.12 a deadline server
//! for ordinary threads takes as much). It takes that part at once: a thread that never sleeps
//! stands still for 50 ms of each second. So the loop sleeps for a greater part, in pieces that
//! delay no packet noticeably.

use std::fs;

use windtunnel_model::Time;

/// How much rest is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct RealTimeRest {
    /// Nanoseconds of rest for a million nanoseconds awake.
    share_ppm: u64,
    /// Rest that is due where positive, and rest in advance where negative, in nanoseconds.
    owed: i64,
    /// The most of either.
    most: i64,
    /// Until when `owed` counts.
    at: Time,
}

impl RealTimeRest {
    /// As the kernel's limits are now; its usual ones where they cannot be read.
    pub(super) fn new(now: Time) -> Self {
        let read = |name| {
            let text = fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
            text.trim().parse::<i64>().ok()
        };
        RealTimeRest::with_limits(now, read("sched_rt_runtime_us"), read("sched_rt_period_us"))
    }

    fn with_limits(now: Time, runtime_us: Option<i64>, period_us: Option<i64>) -> Self {
        let period = period_us.filter(|period| *period > 0).unwrap_or(PERIOD_US).unsigned_abs();
        // Without a limit (-1) the server for ordinary threads still has its part.
        let usual = period - period / 20;
        let runtime =
            runtime_us.and_then(|us| u64::try_from(us).ok()).map_or(usual, |us| us.min(usual));
        let kept_ppm = (period - runtime) * 1_000_000 / period;
        let share_ppm = kept_ppm.saturating_mul(3) / 2;
        let most = i64::try_from(period.saturating_mul(1000) / 200).unwrap_or(i64::MAX);
        RealTimeRest { share_ppm: share_ppm.min(MOST_PPM), owed: 0, most, at: now }
    }

    /// The thread was awake until `now`.
    pub(super) fn awake_until(&mut self, now: Time) {
        let due =
            u128::from(now.since(self.at).as_nanos()) * u128::from(self.share_ppm) / 1_000_000;
        self.owed = self.owed.saturating_add(i64::try_from(due).unwrap_or(i64::MAX));
        self.at = self.at.max(now);
    }

    /// The thread has slept, since the last call of [`RealTimeRest::awake_until`].
    pub(super) fn slept_until(&mut self, now: Time) {
        let slept = i64::try_from(now.since(self.at).as_nanos()).unwrap_or(i64::MAX);
        self.owed = self.owed.saturating_sub(slept).max(-self.most);
        self.at = self.at.max(now);
    }

    /// Whether a wait is to be spent asleep.
    pub(super) fn is_due(&self) -> bool {
        self.owed > 0
    }

    /// Whether the thread has to sleep even if it has work.
    pub(super) fn is_overdue(&self) -> bool {
        self.owed >= self.most
    }
}

/// The kernel's default.
const PERIOD_US: i64 = 1_000_000;
/// Some time has to remain for packets.
const MOST_PPM: u64 = 900_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MICROS_A_SECOND: u64 = 1_000_000;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1000)
    }

    /// A thread that has work always, and rests for 500 µs when it must; whether it was awake in
    /// each microsecond of `seconds`.
    fn busy_thread(mut rest: RealTimeRest, seconds: u64) -> Vec<bool> {
        let (begin, mut awake) = (rest.at.as_nanos() / 1000, Vec::new());
        while (awake.len() as u64) < seconds * MICROS_A_SECOND {
            awake.extend([true; 10]);
            rest.awake_until(at(begin + awake.len() as u64));
            if rest.is_overdue() {
                awake.extend([false; 500]);
                rest.slept_until(at(begin + awake.len() as u64));
            }
        }
        awake
    }

    fn longest_awake(awake: &[bool], period: usize) -> usize {
        let mut now = awake[..period].iter().filter(|awake| **awake).count();
        let mut most = now;
        for end in period..awake.len() {
            now = now + usize::from(awake[end]) - usize::from(awake[end - period]);
            most = most.max(now);
        }
        most
    }

    #[test]
    fn a_thread_that_always_works_is_awake_for_less_than_the_kernel_gives_in_any_second() {
        let usual = RealTimeRest::with_limits(at(0), Some(950_000), Some(1_000_000));
        let most = longest_awake(&busy_thread(usual, 5), 1_000_000);
        assert!((900_000..950_000).contains(&most), "{most}");
        let less = RealTimeRest::with_limits(at(0), Some(80_000), Some(100_000));
        let most = longest_awake(&busy_thread(less, 2), 100_000);
        assert!((60_000..80_000).contains(&most), "{most}");
    }

    #[test]
    fn a_long_sleep_pays_for_a_little_ahead_only() {
        let mut rest = RealTimeRest::with_limits(at(0), Some(950_000), Some(1_000_000));
        rest.slept_until(at(60 * MICROS_A_SECOND));
        let awake = busy_thread(rest, 3);
        // The sleep lies before; the next second has its rest.
        assert!(longest_awake(&awake, 1_000_000) < 950_000);
    }

    #[test]
    fn rest_is_due_after_work_and_paid_by_as_much_sleep_as_its_share() {
        let mut rest = RealTimeRest::with_limits(at(0), Some(950_000), Some(1_000_000));
        assert!(!rest.is_due());
        rest.awake_until(at(1000));
        assert!(rest.is_due() && !rest.is_overdue());
        rest.slept_until(at(1074));
        assert!(rest.is_due());
        rest.slept_until(at(1075));
        assert!(!rest.is_due());
    }

    #[test]
    fn where_the_kernel_has_no_limit_its_server_for_ordinary_threads_has_one() {
        let none = RealTimeRest::with_limits(at(0), Some(-1), Some(1_000_000));
        assert_eq!(none.share_ppm, 75_000);
        let unknown = RealTimeRest::with_limits(at(0), None, None);
        assert_eq!(unknown.share_ppm, 75_000);
    }
}
