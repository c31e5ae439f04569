//! What programs had of disks, and whether that was more than they may.
//!
//! The kernel's blk-throttle lets requests through by slices of a tenth of a second: beyond the rate
//! it gives what is left of two of them, and a request is never cut, but waits until all of it fits.
//! So in any time that is looked at, long or short, no more can be done than the rate gives in it, a
//! fifth of a second of the rate, and one request. That is judged for all such times at once, by a
//! bucket for each disk and direction: what is done is poured in, the rate runs out of it, and it must
//! never hold more than that much.

use std::collections::BTreeMap;

use windtunnel_model::HeldLimit;

use crate::disks::DeviceNumber;
use crate::group::{DiskReading, DiskTransferCounts, DiskUse};

/// The account of a limit of disks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DiskMeter {
    before: Option<DiskReading>,
    /// Where the second that is under way began.
    second: Option<DiskReading>,
    /// By how much the rate was ahead of.
    levels: BTreeMap<(DeviceNumber, DiskTransferDirection), u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum DiskTransferDirection {
    Read,
    Written,
}

/// What a look at the account brought.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct DiskUsageSample {
    /// Bytes since the group was made, of all disks.
    read: u64,
    written: u64,
    /// Bytes a second of the second that has become complete: those of the disk and the direction
    /// that was used most.
    rate: Option<u64>,
    /// What was done beyond what is allowed, in words.
    excess: Option<String>,
}

impl DiskMeter {
    /// The rate has changed: the kernel begins its slices again.
    pub(super) fn restart(&mut self) {
        self.levels.clear();
        self.second.clone_from(&self.before);
    }

    /// Notes what the group that holds a limit says. Returns what was done beyond it, in words.
    pub(super) fn take(&mut self, reading: DiskReading, held: &mut HeldLimit) -> Option<String> {
        let seen = self.read(reading, held.asked);
        (held.read, held.written) = (Some(seen.read), Some(seen.written));
        if let Some(rate) = seen.rate {
            held.note_used(rate, held.peak.unwrap_or(0).max(rate));
            held.met += u64::from(rate >= held.asked / 100 * MET_PERCENT);
        }
        seen.excess
    }

    /// Looks at what was done; `asked` bytes a second were allowed since the look before.
    fn read(&mut self, now: DiskReading, asked: u64) -> DiskUsageSample {
        let mut seen = DiskUsageSample {
            read: now.disks.iter().map(|it| it.read.bytes).sum(),
            written: now.disks.iter().map(|it| it.written.bytes).sum(),
            ..DiskUsageSample::default()
        };
        if let Some(before) = self.before.take() {
            let passed_ns = now.now_ns.saturating_sub(before.now_ns);
            for (place, done) in differences(&before, &now) {
                seen.excess = seen.excess.or(self.pour(place, done, asked, passed_ns));
            }
        }
        let second = self.second.get_or_insert_with(|| now.clone());
        let passed_ns = now.now_ns.saturating_sub(second.now_ns);
        if passed_ns >= SECOND_NS_LEAST {
            let most = differences(second, &now).map(|(_, done)| done.bytes).max().unwrap_or(0);
            seen.rate = Some(scaled(most, 1_000_000_000, passed_ns));
            *second = now.clone();
        }
        self.before = Some(now);
        seen
    }

    fn pour(
        &mut self,
        place: (DeviceNumber, DiskTransferDirection),
        done: DiskTransferCounts,
        asked: u64,
        passed_ns: u64,
    ) -> Option<String> {
        let level = self.levels.entry(place).or_default();
        let allowed = scaled(asked, passed_ns, 1_000_000_000);
        let allowed = allowed.saturating_add(allowed / 100);
        *level = level.saturating_add(done.bytes).saturating_sub(allowed);
        let request = (done.bytes / done.requests.max(1)).saturating_mul(2).max(REQUEST);
        if *level <= (asked / 2).saturating_add(request) {
            return None;
        }
        let (disk, way) = place;
        let way = if way == DiskTransferDirection::Read { "read from" } else { "written to" };
        Some(format!("{} bytes more than it allows were {way} disk {disk}", *level))
    }
}

/// What was done of each disk in each direction between two readings.
fn differences<'a>(
    before: &'a DiskReading,
    now: &'a DiskReading,
) -> impl Iterator<Item = ((DeviceNumber, DiskTransferDirection), DiskTransferCounts)> + 'a {
    now.disks.iter().flat_map(|after| {
        let disk = after.disk;
        let found = before.disks.iter().find(|it| it.disk == disk).copied();
        let nothing = DiskTransferCounts::default();
        let former = found.unwrap_or(DiskUse { disk, read: nothing, written: nothing });
        let new = |after: DiskTransferCounts, former: DiskTransferCounts| DiskTransferCounts {
            bytes: after.bytes.saturating_sub(former.bytes),
            requests: after.requests.saturating_sub(former.requests),
        };
        let written = new(after.written, former.written);
        [
            ((disk, DiskTransferDirection::Read), new(after.read, former.read)),
            ((disk, DiskTransferDirection::Written), written),
        ]
    })
}

fn scaled(value: u64, times: u64, by: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(times) / u128::from(by.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// A second in which as much of the rate was used has met the limit.
const MET_PERCENT: u64 = 95;
/// Looks come each second; one that is early, because a program was killed, ends none.
const SECOND_NS_LEAST: u64 = 900_000_000;
/// A request is at least as large as this may be: 256 pages that lie in a row in runs of four.
const REQUEST: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1_000_000;

    /// So many bytes of 128 KiB requests, written by this second.
    fn at(second: u64, bytes: u64) -> DiskReading {
        let written = DiskTransferCounts { bytes, requests: bytes.div_ceil(131_072) };
        let disks = vec![DiskUse {
            disk: DeviceNumber(8, 0),
            read: DiskTransferCounts::default(),
            written,
        }];
        DiskReading { now_ns: second * 1_000_000_000, disks }
    }

    fn excesses(written: impl Iterator<Item = u64>) -> usize {
        let mut meter = DiskMeter::default();
        let looks = written.enumerate().map(|(second, bytes)| at(second as u64, bytes));
        looks.filter(|look| meter.read(look.clone(), RATE).excess.is_some()).count()
    }

    #[test]
    fn what_the_kernel_guarantees_is_no_excess() {
        assert_eq!(excesses((0..600).map(|second| second * RATE)), 0);
        // A request of 4 MB waits for four seconds, and is charged at once.
        assert_eq!(excesses((0..600).map(|second| second / 4 * 4 * RATE)), 0);
        // Two slices, once.
        assert_eq!(excesses((0..60).map(|second| second * RATE + RATE / 5)), 0);
    }

    #[test]
    fn a_burst_and_a_rate_that_is_too_high_for_long_are_an_excess() {
        assert!(excesses([0, 6_000_000].into_iter()) > 0, "6 MB in a second");
        let slow = (0..60).map(|second| second * RATE * 110 / 100);
        assert!(excesses(slow) > 0, "10 % too much for a minute");
        let idle_before = (0..20).map(|second| if second < 19 { 0 } else { 10 * RATE });
        assert!(excesses(idle_before) > 0, "what was not used is not saved up");
    }

    #[test]
    fn large_requests_are_charged_whole() {
        let mut meter = DiskMeter::default();
        meter.read(at(0, 0), RATE);
        let one = DiskTransferCounts { bytes: 64 << 20, requests: 1 };
        let disks = vec![DiskUse {
            disk: DeviceNumber(8, 0),
            read: one,
            written: DiskTransferCounts::default(),
        }];
        let seen = meter.read(DiskReading { now_ns: 1_000_000_000, disks }, RATE);
        assert_eq!(seen.excess, None);
        assert_eq!((seen.read, seen.written), (64 << 20, 0));
    }

    #[test]
    fn the_most_of_a_second_is_that_of_one_disk_in_one_direction() {
        let mut meter = DiskMeter::default();
        assert_eq!(meter.read(at(0, 0), RATE).rate, None);
        let mut look = at(2, 3_000_000);
        let other = DiskUse { disk: DeviceNumber(8, 16), ..look.disks[0] };
        look.disks
            .push(DiskUse { read: DiskTransferCounts { bytes: 5_000_000, requests: 99 }, ..other });
        let seen = meter.read(look, 10 * RATE);
        assert_eq!((seen.rate, seen.written), (Some(2_500_000), 6_000_000));
    }

    #[test]
    fn a_new_rate_holds_from_then_on() {
        let mut meter = DiskMeter::default();
        meter.read(at(0, 0), RATE);
        meter.read(at(10, 10 * RATE), RATE);
        meter.restart();
        assert_eq!(meter.read(at(11, 15 * RATE), 5 * RATE).excess, None);
    }
}
