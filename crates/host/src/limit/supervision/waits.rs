//! Calls that wait, by the time at which they are to be looked at next.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use windtunnel_budget::pacing::{PacingRegion, rescaled};
use windtunnel_sys::seccomp::Notification;

use super::sockets::CallAttribution;

/// A call that waits.
#[derive(Debug)]
pub(super) struct SuspendedCall {
    /// Of the listener that it was shown at.
    pub(super) listener: u64,
    pub(super) shown: Notification,
    pub(super) since_ns: u64,
    /// When the call fails with `EAGAIN` (`SO_SNDTIMEO`, `SO_RCVTIMEO`).
    pub(super) late_ns: Option<u64>,
    pub(super) why: CallWaitReason,
}

/// What for.
#[derive(Debug)]
pub(super) enum CallWaitReason {
    Limit(BandwidthClaim),
    /// A message: this copy of the socket becomes readable.
    Message(OwnedFd),
}

/// Bytes that are claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BandwidthClaim {
    pub(super) used: CallAttribution,
    pub(super) bytes: u64,
    /// The rate at the time of the claim, in bits a second.
    pub(super) rate_bps: u64,
    /// When they may move.
    pub(super) at_ns: u64,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct SuspendedCallQueue {
    by_time: BTreeMap<(u64, u64), SuspendedCall>,
    next: u64,
}

impl BandwidthClaim {
    /// The same at the rate that there is now.
    pub(super) fn at_rate_of(mut self, region: &PacingRegion, now_ns: u64) -> BandwidthClaim {
        let rate_bps = region.rate_bps(self.used.direction);
        self.at_ns = match rate_bps {
            0 => now_ns,
            _ => rescaled(self.at_ns, now_ns, self.rate_bps, rate_bps),
        };
        self.rate_bps = rate_bps;
        self
    }
}

impl SuspendedCall {
    /// When it is to be looked at next.
    fn due_ns(&self, now_ns: u64) -> u64 {
        let due_ns = match &self.why {
            CallWaitReason::Limit(claim) => claim.at_ns.min(now_ns + SIGNALS_NS),
            CallWaitReason::Message(_) => now_ns + SIGNALS_NS,
        };
        self.late_ns.map_or(due_ns, |late_ns| late_ns.min(due_ns))
    }
}

impl SuspendedCallQueue {
    /// Adds a call: its number.
    pub(super) fn add(&mut self, waiting: SuspendedCall, now_ns: u64) -> u64 {
        self.next += 1;
        self.by_time.insert((waiting.due_ns(now_ns), self.next), waiting);
        self.next
    }

    /// Takes a call out whose time has come, the earliest first, with its number.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<(u64, SuspendedCall)> {
        let first = self.by_time.first_entry().filter(|first| first.key().0 <= now_ns)?;
        let ((_, number), waiting) = first.remove_entry();
        Some((number, waiting))
    }

    /// Takes out the call of a number.
    pub(super) fn take(&mut self, number: u64) -> Option<SuspendedCall> {
        let key = *self.by_time.keys().find(|(_, of)| *of == number)?;
        self.by_time.remove(&key)
    }

    /// When the first is due, or the rates have to be looked at.
    pub(super) fn next_ns(&self, now_ns: u64) -> Option<u64> {
        self.by_time.keys().next().map(|(due_ns, _)| (*due_ns).min(now_ns + RATES_NS))
    }

    /// The rates have changed: what waits for them waits as much more or less; where there is none any
    /// more, it is due.
    pub(super) fn follow(&mut self, region: &PacingRegion, now_ns: u64) {
        for ((_, number), mut waiting) in std::mem::take(&mut self.by_time) {
            if let CallWaitReason::Limit(claim) = &mut waiting.why {
                *claim = claim.at_rate_of(region, now_ns);
            }
            self.by_time.insert((waiting.due_ns(now_ns), number), waiting);
        }
    }
}

/// From one look for signals that a program handles to the next, while its call waits.
const SIGNALS_NS: u64 = 100_000_000;
/// From one look at the rates to the next, while calls wait for them.
pub(super) const RATES_NS: u64 = 50_000_000;

#[cfg(test)]
mod tests {
    use windtunnel_budget::pacing::{PacingBudgetScope, TransferDirection};
    use windtunnel_sys::limited::MappedPacingRegion;

    use super::*;

    /// A limit of its own.
    fn region(rates: [u64; 2]) -> MappedPacingRegion {
        let region = MappedPacingRegion::create_in(&tempfile::tempfile().unwrap()).unwrap();
        region.begin(0, 0, PacingBudgetScope::Tree, rates);
        region
    }

    fn waiting(at_ns: u64, late_ns: Option<u64>) -> SuspendedCall {
        let direction = TransferDirection::Send;
        let used = CallAttribution {
            cookie: 1,
            key: 0,
            direction,
            thread: 1,
            is_tcp: true,
            may_block: true,
        };
        let why = CallWaitReason::Limit(BandwidthClaim { used, bytes: 1, rate_bps: 8_000, at_ns });
        let shown = Notification { id: at_ns, thread: 1, call: 0, arguments: [0; 6] };
        SuspendedCall { listener: 1, shown, since_ns: 0, late_ns, why }
    }

    fn due(waits: &mut SuspendedCallQueue, now_ns: u64) -> Vec<u64> {
        std::iter::from_fn(|| waits.take_due(now_ns).map(|(_, it)| it.shown.id)).collect()
    }

    #[test]
    fn calls_go_on_in_the_order_of_their_times() {
        let mut waits = SuspendedCallQueue::default();
        for at_ns in [30, 10, 20, 40] {
            waits.add(waiting(at_ns, None), 0);
        }
        assert_eq!(waits.next_ns(0), Some(10));
        assert_eq!(due(&mut waits, 30), [10, 20, 30]);
        assert!(due(&mut waits, 39).is_empty());
    }

    #[test]
    fn a_timeout_of_the_socket_ends_a_wait_before_its_time() {
        let mut waits = SuspendedCallQueue::default();
        waits.add(waiting(1_000, Some(100)), 0);
        assert!(due(&mut waits, 99).is_empty());
        assert_eq!(due(&mut waits, 100), [1_000]);
    }

    #[test]
    fn another_rate_moves_the_times_of_those_that_wait() {
        let region = region([8_000, 0]);
        let mut waits = SuspendedCallQueue::default();
        waits.add(waiting(1_000, None), 0);
        region.set_rate(0, TransferDirection::Send, 16_000);
        waits.follow(&region, 0);
        assert_eq!(waits.next_ns(0), Some(500));
        region.set_rate(0, TransferDirection::Send, 0);
        waits.follow(&region, 0);
        assert_eq!(due(&mut waits, 0), [1_000]);
    }

    #[test]
    fn a_call_can_be_taken_out_by_its_number() {
        let mut waits = SuspendedCallQueue::default();
        let number = waits.add(waiting(10, None), 0);
        assert!(waits.take(number).is_some());
        assert!(waits.take(number).is_none());
    }
}
