//! What the lanes have been given to carry, so that what flows leave unused goes to others and no
//! lane carries more than it can.
//!
//! Every limited lane has two clocks, of what the sources have *sent* and of what has *come* to
//! it, a latency later. A clock is the time at which a serial line of the lane's rate would have
//! carried all of it. It is *behind* the present while the lane had less than it could carry, by at
//! most a credit ([`CREDIT`], or eight full packets), and *ahead* while it had more. Three rules
//! follow:
//!
//! - A shaper whose lanes are behind sends faster than the shares of its flows: at share · c/(c −
//!   b), where c is the credit and b the least by which a clock is behind, up to the rate of the
//!   narrowest lane (of a lane with flows of other machines, up to what this machine may give it).
//!   All flows of a lane speed up by the same factor, so that what is left is divided as the shares
//!   are; the factor settles where nothing is left.
//! - A shaper of which a lane is ahead sends at the shares of its flows. As these add up to what
//!   there is, a lane stays ahead by about a packet for each shaper.
//! - What has no share (acknowledgements, the first 50 ms of what is not TCP), and what is still in
//!   flight of flows that had a greater share, brings a lane further ahead. Beyond [`DEBT`] and two
//!   packets for each shaper, whatever would come to it has to wait at its source.
//!
//! So what sources give a lane in any time is at most what its rate carries in that time, in the
//! credit and in `DEBT`, and three packets for each path with flows on it: the two, and the one in
//! service. What comes to the lane is more only while shares move from a farther source to a nearer
//! one, and by no more than the rate carries in the difference of their latencies.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use windtunnel_model::plan::NetworkModel;
use windtunnel_model::{Plan, Rate, Span, Time};

use crate::chain::Pacing;

/// By how much a lane may be behind, or eight full packets.
const CREDIT: Span = Span::from_millis(10);
/// By how much it may be ahead, beyond two full packets for each shaper.
const DEBT: Span = Span::from_millis(5);
/// A full packet on Ethernet.
const FULL_PACKET: u64 = 1538;

/// The clocks, by lane.
#[derive(Debug, Default)]
pub(crate) struct VirtualClocks {
    clocks: Vec<LaneClock>,
}

/// A lane on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PathHop {
    /// Its index.
    pub(crate) lane: usize,
    /// The latency before it.
    pub(crate) after: Span,
}

/// What is known of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneRateTerms {
    /// What this machine may give it; `None`: as much as it likes.
    pub(crate) rate: Option<Rate>,
    /// Paths with flows over it.
    pub(crate) paths: usize,
    /// Whether flows of other machines are on it: then what has no share is not counted, as they
    /// would not see it.
    pub(crate) divided: bool,
}

#[derive(Debug)]
struct LaneClock {
    terms: LaneRateTerms,
    sent: VirtualClock,
    come: VirtualClock,
    /// What is in flight: when it comes, and its bytes.
    in_flight: BinaryHeap<Reverse<(Time, u64)>>,
    /// The most that it may be behind, and ahead.
    credit: Span,
    debt: Span,
}

/// When all that was given will have been carried, with the fraction of a nanosecond in bit·ns.
#[derive(Debug, Clone, Copy)]
struct VirtualClock {
    until: Time,
    carry: u64,
}

impl VirtualClocks {
    /// Accounts for the lanes of a plan, which have carried nothing; none with a queue on each lane.
    pub(crate) fn of(plan: &Plan) -> Self {
        if plan.model == NetworkModel::Hops {
            return VirtualClocks::default();
        }
        let profiles = plan.links.iter().flat_map(|link| &link.profiles);
        VirtualClocks { clocks: profiles.map(|profile| LaneClock::new(profile.rate)).collect() }
    }

    /// Other terms hold for a lane from now on; by how many bytes it is ahead stays.
    pub(crate) fn set(&mut self, now: Time, lane: usize, terms: LaneRateTerms) {
        if let Some(clock) = self.clocks.get_mut(lane).filter(|it| it.terms != terms) {
            clock.advance(now);
            clock.set(now, terms);
        }
    }

    /// How fast a shaper may send over its lanes now, up to the rate of the narrowest; `own` bytes
    /// have been charged for what it sends already.
    pub(crate) fn pace(&mut self, now: Time, pacing: &Pacing, own: u64) -> Rate {
        let Some(share) = pacing.share else { return pacing.line };
        let mut pace = pacing.line;
        for hop in &pacing.lanes {
            let Some(clock) = self.clocks.get_mut(hop.lane) else { continue };
            let Some(rate) = clock.terms.rate else { continue };
            clock.advance(now);
            if clock.terms.divided {
                pace = pace.min(rate);
            }
            pace = pace.min(clock.speed_up(now, share, rate.time_for(own), hop));
        }
        pace
    }

    /// Gives `lanes` so many bytes to carry, of flows with a share or without; when they may leave
    /// at the earliest.
    pub(crate) fn charge(
        &mut self,
        now: Time,
        lanes: &[PathHop],
        bytes: u64,
        has_share: bool,
    ) -> Time {
        for hop in lanes {
            let Some(clock) = self.clocks.get_mut(hop.lane) else { continue };
            let Some(rate) = clock.terms.rate else { continue };
            if clock.terms.divided && !has_share {
                continue;
            }
            clock.advance(now);
            clock.sent.charge(now, rate, clock.credit, bytes);
            if hop.after.is_zero() {
                clock.come.charge(now, rate, clock.credit, bytes);
            } else {
                clock.in_flight.push(Reverse((now + hop.after, bytes)));
            }
        }
        self.earliest(now, lanes)
    }

    /// When what `lanes` have been given may leave at the earliest.
    pub(crate) fn earliest(&self, now: Time, lanes: &[PathHop]) -> Time {
        let known = lanes.iter().filter_map(|hop| {
            let clock = self.clocks.get(hop.lane)?;
            let come = back(clock.come.until, hop.after);
            Some(back(clock.sent.until.max(come), clock.debt))
        });
        known.fold(now, Time::max)
    }
}

impl LaneClock {
    fn new(rate: Option<Rate>) -> Self {
        let mark = VirtualClock { until: Time::ZERO, carry: 0 };
        let terms = LaneRateTerms { rate, paths: 0, divided: false };
        let mut clock = LaneClock {
            terms,
            sent: mark,
            come: mark,
            in_flight: BinaryHeap::new(),
            credit: Span::ZERO,
            debt: Span::ZERO,
        };
        clock.set(Time::ZERO, terms);
        clock
    }

    fn set(&mut self, now: Time, terms: LaneRateTerms) {
        let before = core::mem::replace(&mut self.terms, terms).rate;
        let full = |count: u64| {
            terms.rate.map_or(Span::ZERO, |rate| rate.time_for(count.saturating_mul(FULL_PACKET)))
        };
        self.credit = CREDIT.max(full(8));
        self.debt = DEBT + full(u64::try_from(terms.paths).unwrap_or(u64::MAX).saturating_mul(2));
        if before != terms.rate {
            self.sent.scale(now, before, terms.rate);
            self.come.scale(now, before, terms.rate);
        }
    }

    /// Takes in what has come until now.
    fn advance(&mut self, now: Time) {
        while let Some(Reverse((at, bytes))) = self.in_flight.peek().copied() {
            if at > now {
                return;
            }
            self.in_flight.pop();
            if let Some(rate) = self.terms.rate {
                self.come.charge(at, rate, self.credit, bytes);
            }
        }
    }

    /// `share`, times the factor of now; `own` is the time of what has been charged already.
    fn speed_up(&self, now: Time, share: Rate, own: Span, hop: &PathHop) -> Rate {
        let sent = now.since(back(self.sent.until, own));
        let own_came = if hop.after.is_zero() { own } else { Span::ZERO };
        let behind = sent.min(now.since(back(self.come.until, own_came)));
        let left = self.credit.saturating_sub(behind).as_nanos();
        let scaled = u128::from(share.bits_per_second()) * u128::from(self.credit.as_nanos());
        // With all of the credit there is no bound but the line's.
        let scaled = scaled.checked_div(u128::from(left)).unwrap_or(u128::MAX);
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX);
        Rate::from_bits_per_second(scaled).unwrap_or(share)
    }
}

impl VirtualClock {
    fn charge(&mut self, at: Time, rate: Rate, credit: Span, bytes: u64) {
        let oldest = back(at, credit);
        if self.until < oldest {
            *self = VirtualClock { until: oldest, carry: 0 };
        }
        self.until += rate.serialise(bytes, &mut self.carry);
    }

    /// As many bytes ahead with another rate; without one before or then, none.
    fn scale(&mut self, now: Time, before: Option<Rate>, rate: Option<Rate>) {
        self.carry = 0;
        self.until = match (before, rate) {
            (Some(before), Some(rate)) if self.until > now => {
                now + rate.time_for(before.bytes_in(self.until.since(now)))
            }
            (Some(_), Some(_)) => self.until,
            _ => self.until.min(now),
        };
    }
}

fn back(time: Time, span: Span) -> Time {
    Time::from_nanos(time.as_nanos().saturating_sub(span.as_nanos()))
}
