//! One timestamp clock for the client in front of the clocks of several replicas (RFC 7323).
//!
//! The client sees TSval of this room's own clock, in milliseconds, which goes on whatever replica
//! speaks: PAWS holds over a fail-over, and ticks of replicas' clocks need not be alike. What the
//! client echoes is given to each replica as that TSval of its own which had come last when the
//! client's packet left here. The replica so measures the time since then: the round trip to the
//! client, with the time that the packet waited here for the others.

use alloc::collections::VecDeque;

use crate::offset::is_later;
use windtunnel_model::Time;

/// Pairs kept of one replica; when there are more, every second goes and echoes get coarser.
const PAIRS_MAX: usize = 64;

/// The TSval that the client sees at a time. Never 0, which some stacks take for none.
pub(crate) fn clock(now: Time) -> u32 {
    crate::offset::low_half(now.as_nanos() / 1_000_000).wrapping_add(1).max(1)
}

/// What TSval of a replica had come by which time of the client's clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplicaTimestampMap {
    /// Ours and the replica's, ascending.
    pairs: VecDeque<(u32, u32)>,
    /// The replica's latest.
    pub(crate) latest: Option<u32>,
}

impl ReplicaTimestampMap {
    /// A packet has come with a TSval.
    pub(crate) fn record(&mut self, ours: u32, theirs: u32) {
        if self.latest.is_some_and(|latest| !is_later(theirs, latest)) {
            return;
        }
        self.latest = Some(theirs);
        if self.pairs.back().is_some_and(|(last, _)| *last == ours) {
            return;
        }
        if self.pairs.len() >= PAIRS_MAX {
            let mut keep = false;
            self.pairs.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.pairs.push_back((ours, theirs));
    }

    /// The replica's TSval for one of ours that the client echoes.
    pub(crate) fn echo(&self, ours: u32) -> u32 {
        let last = self.pairs.iter().rev().find(|(at, _)| !is_later(*at, ours));
        last.or(self.pairs.front()).map_or(0, |(_, theirs)| *theirs)
    }

    /// The client has echoed this one, and echoes no earlier ones from now on.
    pub(crate) fn forget_before(&mut self, ours: u32) {
        while self.pairs.get(1).is_some_and(|(at, _)| !is_later(*at, ours)) {
            self.pairs.pop_front();
        }
    }

    /// Bytes of memory beside the value itself.
    pub(crate) fn memory(&self) -> usize {
        self.pairs.capacity() * size_of::<(u32, u32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_the_replicas_stamp_of_that_time_or_before() {
        let mut stamps = ReplicaTimestampMap::default();
        assert_eq!(stamps.echo(5), 0);
        for (ours, theirs) in [(10, 900), (12, 902), (12, 903), (20, 910)] {
            stamps.record(ours, theirs);
        }
        let echoes = [9, 10, 11, 12, 19, 20, 99].map(|ours| stamps.echo(ours));
        assert_eq!(echoes, [900, 900, 900, 902, 902, 910, 910]);
        assert_eq!(stamps.latest, Some(910));
        stamps.forget_before(13);
        assert_eq!(stamps.pairs, [(12, 902), (20, 910)]);
    }

    #[test]
    fn stamps_of_late_packets_are_ignored_and_memory_is_bounded() {
        let mut stamps = ReplicaTimestampMap::default();
        for tick in 0..10_000 {
            stamps.record(tick, 1_000_000 + tick);
            stamps.record(tick, 1_000_000 + tick / 2);
        }
        assert!(stamps.pairs.len() <= PAIRS_MAX);
        assert_eq!(stamps.echo(u32::MAX / 2), 1_009_999);
        assert!(stamps.echo(5000) <= 1_005_000);
    }
}
