//! Calls that failed with `EAGAIN`: what they claimed stays theirs until the program tries again, or lets it
//! be.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_budget::pacing::{PacingRegion, TransferDirection};

use super::sockets::CallAttribution;
use super::waits::{BandwidthClaim, RATES_NS};

/// A direction of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct StreamDirection {
    /// The kernel's number of its socket.
    pub(super) cookie: u64,
    pub(super) direction: TransferDirection,
}

/// A call that is to be tried again.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retry {
    pub(super) claim: BandwidthClaim,
    /// Where the socket is found.
    pub(super) pid: i32,
    pub(super) descriptor: i32,
    pub(super) since_ns: u64,
    /// The program has been notified that it is time.
    is_announced: bool,
}

/// All of them, one for each direction of a stream at the most.
#[derive(Debug, Default)]
pub(super) struct Retries {
    by_stream: BTreeMap<StreamDirection, Retry>,
    by_time: BTreeSet<(u64, StreamDirection)>,
}

/// What a call finds.
#[derive(Debug, Clone, Copy)]
pub(super) enum RetryTiming {
    /// None is to be tried again.
    First,
    /// It is not time yet.
    Early,
    /// This is the one.
    InTime(Retry),
}

/// What is to be done about a retry.
#[derive(Debug, Clone, Copy)]
pub(super) enum RetryAction {
    /// The program is to be notified that it is time.
    Announce(Retry),
    /// It has not tried again: its claim is given back.
    GiveUp(Retry),
}

impl Retry {
    pub(super) fn new(claim: BandwidthClaim, pid: i32, descriptor: i32, since_ns: u64) -> Retry {
        Retry { claim, pid, descriptor, since_ns, is_announced: false }
    }

    fn of(&self) -> StreamDirection {
        let CallAttribution { cookie, direction, .. } = self.claim.used;
        StreamDirection { cookie, direction }
    }

    fn due_ns(&self) -> u64 {
        if self.is_announced { self.claim.at_ns.saturating_add(KEPT_NS) } else { self.claim.at_ns }
    }
}

impl Retries {
    /// A call has failed.
    pub(super) fn add(&mut self, retry: Retry) {
        self.by_stream.insert(retry.of(), retry);
        self.by_time.insert((retry.due_ns(), retry.of()));
    }

    /// A call comes.
    pub(super) fn ask(&mut self, of: StreamDirection, now_ns: u64) -> RetryTiming {
        match self.by_stream.get(&of) {
            None => RetryTiming::First,
            Some(retry) if now_ns < retry.claim.at_ns => RetryTiming::Early,
            Some(_) => self.take(of).map_or(RetryTiming::First, RetryTiming::InTime),
        }
    }

    /// Takes out the one of a stream's direction.
    pub(super) fn take(&mut self, of: StreamDirection) -> Option<Retry> {
        let retry = self.by_stream.remove(&of)?;
        self.by_time.remove(&(retry.due_ns(), of));
        Some(retry)
    }

    /// When something is to be done next, or the rates have to be looked at.
    pub(super) fn next_ns(&self, now_ns: u64) -> Option<u64> {
        self.by_time.first().map(|(due_ns, _)| (*due_ns).min(now_ns + RATES_NS))
    }

    /// What is to be done, one after the other.
    pub(super) fn take_due(&mut self, now_ns: u64) -> Option<RetryAction> {
        let (_, of) = *self.by_time.first().filter(|(due_ns, _)| *due_ns <= now_ns)?;
        let retry = self.take(of)?;
        if retry.is_announced {
            return Some(RetryAction::GiveUp(retry));
        }
        self.add(Retry { is_announced: true, ..retry });
        Some(RetryAction::Announce(retry))
    }

    /// The rates have changed: what waits for them waits as much more or less.
    pub(super) fn follow(&mut self, region: &PacingRegion, now_ns: u64) {
        self.by_time.clear();
        for mut retry in std::mem::take(&mut self.by_stream).into_values() {
            retry.claim = retry.claim.at_rate_of(region, now_ns);
            self.add(retry);
        }
    }
}

/// For how long a claim stays its program's, once that has been notified that it is time.
const KEPT_NS: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use windtunnel_budget::pacing::PacingBudgetScope;
    use windtunnel_sys::limited::MappedPacingRegion;

    use super::*;

    const STREAM: StreamDirection =
        StreamDirection { cookie: 7, direction: TransferDirection::Send };

    fn retry(at_ns: u64) -> Retry {
        let StreamDirection { cookie, direction } = STREAM;
        let used = CallAttribution {
            cookie,
            key: 0,
            direction,
            thread: 1,
            is_tcp: true,
            may_block: false,
        };
        Retry::new(BandwidthClaim { used, bytes: 10, rate_bps: 8_000, at_ns }, 1, 3, 0)
    }

    #[test]
    fn a_call_that_comes_too_early_finds_its_claim_when_it_is_time() {
        let mut retries = Retries::default();
        assert!(matches!(retries.ask(STREAM, 0), RetryTiming::First));
        retries.add(retry(100));
        assert!(matches!(retries.ask(STREAM, 99), RetryTiming::Early));
        let back = StreamDirection { direction: TransferDirection::Receive, ..STREAM };
        assert!(matches!(retries.ask(back, 99), RetryTiming::First));
        assert!(
            matches!(retries.ask(STREAM, 100), RetryTiming::InTime(retry) if retry.claim.bytes == 10)
        );
        assert!(matches!(retries.ask(STREAM, 100), RetryTiming::First));
        assert_eq!(retries.next_ns(0), None);
    }

    #[test]
    fn a_program_is_notified_once_and_loses_its_claim_after_a_second() {
        let mut retries = Retries::default();
        retries.add(retry(100));
        assert!(retries.take_due(99).is_none());
        assert!(matches!(retries.take_due(100), Some(RetryAction::Announce(_))));
        assert!(retries.take_due(100).is_none());
        assert_eq!(retries.next_ns(100 + KEPT_NS), Some(100 + KEPT_NS));
        assert!(matches!(retries.take_due(100 + KEPT_NS), Some(RetryAction::GiveUp(_))));
        assert!(matches!(retries.ask(STREAM, 100 + KEPT_NS), RetryTiming::First));
    }

    #[test]
    fn another_rate_moves_the_time() {
        let region = MappedPacingRegion::create_in(&tempfile::tempfile().unwrap()).unwrap();
        region.begin(0, 0, PacingBudgetScope::Tree, [8_000, 0]);
        let mut retries = Retries::default();
        retries.add(retry(1_000));
        region.set_rate(0, TransferDirection::Send, 16_000);
        retries.follow(&region, 0);
        assert_eq!(retries.next_ns(0), Some(500));
    }
}
