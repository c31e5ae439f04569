//! Whether programs had more of a processor than was asked, by the windows that were seen.

use alloc::vec::Vec;

use super::{CpuUsageWindow, OWED_NS_MAX};

/// Of windows in the order of time, those in which the limit was exceeded.
#[must_use]
pub fn exceeded(windows: &[CpuUsageWindow]) -> Vec<&CpuUsageWindow> {
    let mut owed_ns = 0;
    let mut exceeds = |window: &&CpuUsageWindow| {
        let exceeds = window.is_exceeded(owed_ns);
        let missed_ns = (owed_ns + window.asked_ns()).saturating_sub(window.used_ns);
        owed_ns = missed_ns.min(OWED_NS_MAX);
        exceeds
    };
    windows.iter().filter(&mut exceeds).collect()
}

/// The quota and the period of a control group, in microseconds, for so many thousandths of a processor.
#[must_use]
pub fn bandwidth(share: u32) -> (u64, u64) {
    let share = u64::from(share.max(1));
    let quota = (share * PERIOD_US_LEAST / 1000).max(QUOTA_US_LEAST);
    let period = (quota * 1000 + share / 2) / share;
    (quota, period.clamp(PERIOD_US_LEAST, PERIOD_US_MOST))
}

impl CpuUsageWindow {
    /// Whether programs wanted more than they got.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.held_ns > 0
    }

    /// Processors that were used.
    #[must_use]
    pub fn delivered(&self) -> f64 {
        self.used_ns as f64 / self.length_ns.max(1) as f64
    }

    /// Processor time that was asked, in nanoseconds.
    fn asked_ns(&self) -> u64 {
        let asked_ns = u128::from(self.length_ns) * u128::from(self.asked_millis) / 1000;
        u64::try_from(asked_ns).unwrap_or(u64::MAX)
    }

    /// Whether programs had clearly more than was asked, whether or not they were kept from running:
    /// what has left its control group is kept from nothing. `owed_ns` is what they could be given for
    /// the time before.
    fn is_exceeded(&self, owed_ns: u64) -> bool {
        let asked_ns = self.asked_ns();
        let (quota_us, _) = bandwidth(self.asked_millis);
        let kernel_ns = TICKS_NS + 2 * quota_us * 1_000;
        let slack_ns = (asked_ns / 100 * SLACK_PERCENT).max(SLACK_NS).max(kernel_ns);
        self.used_ns > asked_ns.saturating_add(slack_ns).saturating_add(owed_ns)
    }
}

/// What may be delivered beyond what is asked.
const SLACK_PERCENT: u64 = 3;
/// The same at least, however short the window is: the quota of a pause, and a burst of another one.
const SLACK_NS: u64 = 10_000_000;
/// A stop that comes one tick of the kernel late, 4 ms, on each of two processors; beside that, the
/// quotas of the periods in which the window begins and ends.
const TICKS_NS: u64 = 8_000_000;
/// What the kernel allows (`min_cfs_quota_period` in its kernel/sched/core.c).
const QUOTA_US_LEAST: u64 = 1_000;
/// Two of them are as long as the longest tick of the kernel's clock.
const PERIOD_US_LEAST: u64 = 5_000;
/// What the kernel allows.
const PERIOD_US_MOST: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn window(used_ms: u64, held_ms: u64, asked_millis: u32) -> CpuUsageWindow {
        let ns = |ms: u64| ms * 1_000_000;
        let (end_ns, length_ns) = (ns(5_000), ns(1_000));
        let (used_ns, held_ns) = (ns(used_ms), ns(held_ms));
        CpuUsageWindow { end_ns, length_ns, used_ns, held_ns, asked_millis }
    }

    #[test]
    fn a_limit_is_exceeded_by_three_per_cent_or_one_per_cent_of_a_processor() {
        assert!(!window(514, 400, 500).is_exceeded(0));
        assert!(window(516, 400, 500).is_exceeded(0));
        assert!(!window(311, 700, 300).is_exceeded(0), "two ticks, and two quotas of 1.5 ms");
        assert!(window(312, 700, 300).is_exceeded(0));
        assert!(!window(19, 900, 10).is_exceeded(0));
        assert!(window(21, 900, 10).is_exceeded(0));
        assert!(!window(500, 0, 500).is_exceeded(0));
        assert!(window(900, 0, 500).is_exceeded(0), "what is kept from nothing is not limited");
        let short = CpuUsageWindow { length_ns: 100_000_000, ..window(19, 0, 100) };
        assert!(
            !short.is_exceeded(0) && CpuUsageWindow { used_ns: 21_000_000, ..short }.is_exceeded(0)
        );
    }

    #[test]
    fn what_programs_did_not_get_although_they_wanted_it_may_come_in_the_next_second() {
        let windows = [window(490, 400, 500), window(524, 400, 500), window(524, 400, 500)];
        assert_eq!(exceeded(&windows), [&windows[2]]);
        let windows = [window(100, 400, 500), window(534, 400, 500), window(536, 400, 500)];
        assert_eq!(exceeded(&windows), [&windows[2]], "20 ms of processor time at most");
    }

    #[test]
    fn quotas_are_short_and_exact() {
        assert_eq!(bandwidth(250), (1_250, 5_000));
        assert_eq!(bandwidth(10), (1_000, 100_000));
        assert_eq!(bandwidth(1), (1_000, 1_000_000));
        assert_eq!(bandwidth(970), (4_850, 5_000));
        assert_eq!(bandwidth(2_500), (12_500, 5_000));
        for share in 1..4_000 {
            let (quota, period) = bandwidth(share);
            let ppm = (quota * 1_000_000 / period).abs_diff(u64::from(share) * 1000);
            assert!(ppm <= 500, "{share}: {quota}/{period}");
        }
    }
}
