//! The processor time of a group.
//!
//! The kernel gives a group a quota in each period. A group that did nothing for most of a period
//! may use all of the quota at once, at full speed; so periods are short ([`bandwidth`]). It charges
//! a thread that runs on at its clock's ticks only, 1 to 10 ms apart, and keeps no more than one
//! quota meanwhile: periods shorter than a tick would lose some (34 % of what was asked with 1 ms in
//! 1.11 ms, 3 % with 1 ms in 2.5 ms, at 250 ticks a second). A burst of one more quota keeps what is
//! given between two ticks, where the kernel has it (Linux 5.14).

use std::fs::File;
use std::io;

use windtunnel_budget::processor::Reading;
use windtunnel_sys::clock;

use super::{get, malformed, put, value};
use crate::place::{Place, Resource, write_only};

/// What is open: the process may leave the machine's view of files later.
#[derive(Debug)]
pub(super) enum ProcessorFiles {
    V2 { max: File, burst: Option<File>, weight: File, stat: File },
    V1 { quota: File, period: File, burst: Option<File>, shares: File, stat: File, usage: File },
}

impl ProcessorFiles {
    /// `None` where the place limits no processors, or cannot be opened: what is then asked of the
    /// group fails.
    pub(super) fn open(place: &Place) -> Option<ProcessorFiles> {
        if place.given.contains(&Resource::Processor) {
            let folder = place.unified.as_deref()?;
            return Some(ProcessorFiles::V2 {
                max: write_only(&folder.join("cpu.max")).ok()?,
                burst: write_only(&folder.join("cpu.max.burst")).ok(),
                weight: write_only(&folder.join("cpu.weight")).ok()?,
                stat: File::open(folder.join("cpu.stat")).ok()?,
            });
        }
        let cpu = place.first_folder(Resource::Processor)?;
        let account = place.account.as_deref()?;
        Some(ProcessorFiles::V1 {
            quota: write_only(&cpu.join("cpu.cfs_quota_us")).ok()?,
            period: write_only(&cpu.join("cpu.cfs_period_us")).ok()?,
            burst: write_only(&cpu.join("cpu.cfs_burst_us")).ok(),
            shares: write_only(&cpu.join("cpu.shares")).ok()?,
            stat: File::open(cpu.join("cpu.stat")).ok()?,
            usage: File::open(account.join("cpuacct.usage")).ok()?,
        })
    }

    pub(super) fn limit(&mut self, share: Option<u32>) -> io::Result<()> {
        let bandwidth = share.map(bandwidth);
        // No burst may be more than its quota, the former one included.
        self.burst(0)?;
        match (&mut *self, bandwidth) {
            (ProcessorFiles::V2 { max, .. }, None) => put(max, "max")?,
            (ProcessorFiles::V2 { max, .. }, Some((quota, period))) => {
                put(max, &format!("{quota} {period}"))?;
            }
            (ProcessorFiles::V1 { quota, .. }, None) => put(quota, "-1")?,
            (ProcessorFiles::V1 { quota, period, .. }, Some((quota_us, period_us))) => {
                // No pair of an old and a new value holds in between.
                put(quota, "-1")?;
                put(period, &period_us.to_string())?;
                put(quota, &quota_us.to_string())?;
            }
        }
        bandwidth.map_or(Ok(()), |(quota_us, _)| self.burst(quota_us))
    }

    fn burst(&mut self, burst_us: u64) -> io::Result<()> {
        let (ProcessorFiles::V2 { burst, .. } | ProcessorFiles::V1 { burst, .. }) = self;
        burst.as_mut().map_or(Ok(()), |burst| put(burst, &burst_us.to_string()))
    }

    /// The weight among groups that all have theirs from thousandths of a processor.
    pub(super) fn weigh(&mut self, share: u32) -> io::Result<()> {
        match self {
            ProcessorFiles::V2 { weight, .. } => {
                put(weight, &(share / 10).clamp(1, WEIGHT_MAX).to_string())
            }
            ProcessorFiles::V1 { shares, .. } => {
                let value = u64::from(share) * 1024 / 1000;
                put(shares, &value.clamp(2, SHARES_MAX).to_string())
            }
        }
    }

    pub(super) fn read(&mut self) -> io::Result<Reading> {
        let now_ns = clock::monotonic_ns();
        let (used_ns, held_ns) = match self {
            ProcessorFiles::V2 { stat, .. } => {
                let text = get(stat)?;
                let used = value(&text, "usage_usec")?;
                // Absent where nothing is limited.
                (used * 1000, value(&text, "throttled_usec").unwrap_or(0) * 1000)
            }
            ProcessorFiles::V1 { stat, usage, .. } => {
                let used = get(usage)?.trim().parse().map_err(|_| malformed("cpuacct.usage"))?;
                (used, value(&get(stat)?, "throttled_time")?)
            }
        };
        Ok(Reading { now_ns, used_ns, held_ns })
    }
}

/// The quota and the period, in microseconds, for so many thousandths of a processor.
#[must_use]
pub fn bandwidth(share: u32) -> (u64, u64) {
    let share = u64::from(share.max(1));
    let quota = (share * PERIOD_US_LEAST / 1000).max(QUOTA_US_LEAST);
    let period = (quota * 1000 + share / 2) / share;
    (quota, period.clamp(PERIOD_US_LEAST, PERIOD_US_MOST))
}

/// What the kernel allows (`min_cfs_quota_period` in its kernel/sched/core.c).
const QUOTA_US_LEAST: u64 = 1_000;
/// Two of them are as long as the longest tick of the kernel's clock.
const PERIOD_US_LEAST: u64 = 5_000;
/// What the kernel allows.
const PERIOD_US_MOST: u64 = 1_000_000;
/// The greatest `cpu.weight`.
const WEIGHT_MAX: u32 = 10_000;
/// The greatest `cpu.shares`.
const SHARES_MAX: u64 = 262_144;

#[cfg(test)]
mod tests {
    use super::*;

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
