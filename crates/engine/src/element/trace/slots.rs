//! Delivery opportunities, as mahimahi's link has them.
//!
//! At each instant of the trace the link may carry so many times 1500 bytes (with the lane's
//! overhead on top of each). What waits goes out byte by byte: several small packets share an
//! opportunity, the bytes of a larger one add up over several, and a packet leaves with its last
//! byte. An opportunity, or a part of one, for which nothing waits is lost. A packet uses
//! opportunities that are later than its arrival. After its last instant the trace begins again, so
//! that instant is also the repetition's zero.

use alloc::vec::Vec;

use windtunnel_model::trace::DeliveryOpportunities;
use windtunnel_model::{Span, Time, TraceUse};

/// One instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeliverySlot {
    pub(crate) at: Time,
    /// How many opportunities there are.
    pub(crate) count: u64,
    /// Time since the instant before it.
    pub(crate) gap: Span,
}

#[derive(Debug)]
pub(crate) struct DeliverySlotPlayback {
    /// Nanoseconds into the trace, increasing, none of them zero; the last is the trace's length.
    instants: Vec<(u64, u64)>,
    following: TraceUse,
    origin: Time,
}

impl DeliverySlotPlayback {
    pub(crate) fn new(recorded: &DeliveryOpportunities, following: TraceUse, origin: Time) -> Self {
        let nanos = |ms: u64| Span::from_millis(ms).as_nanos();
        let all = recorded.instants().map(|(at, count)| (nanos(at), count));
        let mut instants: Vec<(u64, u64)> = all.collect();
        if let Some((0, first)) = instants.first().copied() {
            instants.remove(0);
            if let (true, Some(last)) = (following.repeat, instants.last_mut()) {
                last.1 = last.1.saturating_add(first);
            }
        }
        DeliverySlotPlayback { instants, following, origin }
    }

    /// The first instant later than `now`; `None` where the trace is at its end.
    pub(crate) fn after(&self, now: Time) -> Option<DeliverySlot> {
        let length = self.instants.last()?.0;
        let position =
            now.since(self.origin).as_nanos().checked_add(self.following.offset.as_nanos())?;
        let (pass, within) = match self.following.repeat {
            true => (position / length, position % length),
            false => (0, position),
        };
        let index = self.instants.partition_point(|(at, _)| *at <= within);
        let (at, count) = *self.instants.get(index)?;
        let before = index.checked_sub(1).map_or(0, |index| self.instants[index].0);
        let ahead = pass.checked_mul(length)?.checked_add(at)?.checked_sub(position)?;
        let at_time = now.max(self.origin) + Span::from_nanos(ahead);
        Some(DeliverySlot { at: at_time, count, gap: Span::from_nanos(at - before) })
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::TraceMode;
    use windtunnel_model::trace::TraceColumn;

    use super::*;

    const MS: u64 = 1_000_000;

    fn slots(repeat: bool, offset_ms: u64) -> DeliverySlotPlayback {
        // Two at 0 ms, one at 2 ms, three at 5 ms.
        let delta_ms = TraceColumn(vec![0, 2, 3]);
        let recorded = DeliveryOpportunities { delta_ms, count: TraceColumn(vec![2, 1, 3]) };
        let offset = Span::from_millis(offset_ms);
        let mode = TraceMode::Opportunities;
        let following = TraceUse { trace: 0, mode, repeat, offset };
        DeliverySlotPlayback::new(&recorded, following, Time::from_nanos(100 * MS))
    }

    fn after(slots: &DeliverySlotPlayback, ns: u64) -> Option<(u64, u64, u64)> {
        let slot = slots.after(Time::from_nanos(100 * MS + ns))?;
        Some((slot.at.as_nanos() - 100 * MS, slot.count, slot.gap.as_nanos()))
    }

    #[test]
    fn the_end_of_a_pass_is_the_beginning_of_the_next() {
        let slots = slots(true, 0);
        assert_eq!(after(&slots, 0), Some((2 * MS, 1, 2 * MS)));
        assert_eq!(after(&slots, 2 * MS - 1), Some((2 * MS, 1, 2 * MS)));
        assert_eq!(after(&slots, 2 * MS), Some((5 * MS, 5, 3 * MS)));
        assert_eq!(after(&slots, 5 * MS), Some((7 * MS, 1, 2 * MS)));
        assert_eq!(after(&slots, 5_000_007 * MS), Some((5_000_010 * MS, 5, 3 * MS)));
    }

    #[test]
    fn a_trace_that_does_not_repeat_ends() {
        let slots = slots(false, 0);
        assert_eq!(after(&slots, 2 * MS), Some((5 * MS, 3, 3 * MS)));
        assert_eq!(after(&slots, 5 * MS), None);
    }

    #[test]
    fn an_offset_begins_within_the_trace() {
        let slots = slots(true, 4);
        assert_eq!(after(&slots, 0), Some((MS, 5, 3 * MS)));
        assert_eq!(after(&slots, MS), Some((3 * MS, 1, 2 * MS)));
    }
}
