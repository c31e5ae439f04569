//! How another agent's clock stands to ours.
//!
//! A request that left at t₁ (our clock) and came at t₂ (theirs), answered at t₃ (theirs), back at
//! t₄ (ours): no packet arrives before it is sent, so the offset theirs − ours was at most t₂ − t₁
//! at t₁, and at least t₃ − t₄ at t₄. Both bounds age: they widen by the greatest drift between two
//! clocks. The least upper and the greatest lower bound of all exchanges so far make an *envelope*,
//! each side of it from the fastest packet in its direction: a minimum filter without a window. The
//! estimate is its middle, and half of its width bounds the error for paths of any kind.
//!
//! There are two envelopes. The *sure* one ages by [`SKEW_MAX`]; an exchange outside of it proves a
//! step. The *sharp* one ages by the skew as measured, the slope between an older envelope (the
//! anchor) and the present one; an exchange outside of it alone proves that the skew has changed,
//! and it begins anew from the sure one.
//!
//! Beside these, what the machines say of their wall clocks ([`WallClockReading`]) bounds the offset, too. That is a
//! claim, and no measurement: it is only used for what is read, never kept in an envelope, and not at
//! all where the measurements contradict it.

use windtunnel_model::{Span, Time};

/// The greatest skew between two clocks, in parts per billion: 200 ppm and a margin.
pub(crate) const SKEW_MAX: i128 = 250_000;
/// By how much the bounds of the measured skew widen in a second, in parts per billion.
const WANDER: i128 = 20;
/// The skew is measured from anchors at least so far back.
const SLOPE_MIN: i128 = 1_000_000_000;
/// Anchors are renewed after this time.
const ANCHOR_AGE: i128 = 16_000_000_000;
/// The least round trip is that of one to two such times.
const WINDOW: Span = Span::from_secs(10);
const BILLION: i128 = 1_000_000_000;

/// Another agent's clock, as seen at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentClockEstimate {
    /// Nanoseconds by which it is ahead of ours, about.
    pub offset: i64,
    /// The offset is wrong by no more than this, unless a clock has stepped since the last
    /// exchange, or by so little that the exchanges do not prove it: by less than the bounds
    /// were wide.
    pub error: Span,
    /// By how much it goes faster than ours, in parts per billion, about.
    pub skew_ppb: i64,
    /// The last round trip.
    pub rtt: Span,
    /// The least round trip of the last 10 to 20 seconds.
    pub rtt_min: Span,
    /// The least time one way: half of that. Two clocks alone cannot distinguish a slower way out
    /// from a slower way back; `error` bounds that asymmetry.
    pub one_way: Span,
    /// Exchanges since the agent came or a clock stepped.
    pub exchanges: u64,
    /// What has narrowed `error` beside the exchanges.
    pub by: ClockOffsetConstraint,
}

/// What bounds the offset of two clocks beside the exchanges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockOffsetConstraint {
    /// Nothing, or nothing closer.
    ByNothing,
    /// Both machines' wall clocks are kept to the true time.
    ByWallClocks,
    /// The operator has said how far the machines' wall clocks are apart.
    ByStatement,
}

/// What a machine knows of its wall clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WallClockReading {
    /// Nanoseconds by which it shows more than the monotonic clock.
    pub ahead_ns: i64,
    /// It differs from the true time by no more than this; `None`: nothing keeps it.
    pub error: Option<Span>,
}

/// How far the clocks of two machines can be apart by what is claimed of them.
#[derive(Debug, Clone, Copy)]
struct ClockOffsetClaim {
    at: Time,
    bounds: UncertaintyInterval,
    by: ClockOffsetConstraint,
}

/// The four stamps of an exchange.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimestampExchange {
    pub(crate) sent: Time,
    pub(crate) came: Time,
    pub(crate) left: Time,
    pub(crate) back: Time,
}

/// The result of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimestampExchangeOutcome {
    Taken,
    /// These stamps cannot be.
    Odd,
    /// A clock stepped, by so many nanoseconds about.
    Stepped(i64),
}

/// The measurements of another agent's clock.
#[derive(Debug, Default)]
pub(crate) struct PeerClockEstimate {
    known: Option<ClockOffsetEstimate>,
    claim: Option<ClockOffsetClaim>,
}

#[derive(Debug, Clone, Copy)]
struct ClockOffsetEstimate {
    at: Time,
    sure: UncertaintyInterval,
    sharp: UncertaintyInterval,
    /// Bounds of the skew in parts per billion.
    skew: UncertaintyInterval,
    anchor: (Time, UncertaintyInterval),
    rtt: Span,
    /// The least round trips of this window and the one before.
    least: [Span; 2],
    window_began: Time,
    exchanges: u64,
}

/// Two bounds with something between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UncertaintyInterval {
    low: i128,
    high: i128,
}

impl PeerClockEstimate {
    /// The estimate at `now`; `None` before the first exchange.
    pub(crate) fn read(&self, now: Time) -> Option<AgentClockEstimate> {
        let known = self.known?;
        let sharp = known.sharp.aged(known.skew, nanos(now) - nanos(known.at));
        let (sharp, by) = self.narrowed(sharp, now);
        let error = (sharp.high - sharp.low + 1) / 2;
        let rtt_min = known.least[0].min(known.least[1]);
        Some(AgentClockEstimate {
            offset: clamp(sharp.middle()),
            error: span(error),
            skew_ppb: clamp(known.skew.middle()),
            rtt: known.rtt,
            rtt_min,
            one_way: Span::from_nanos(rtt_min.as_nanos() / 2),
            exchanges: known.exchanges,
            by,
        })
    }

    /// Takes what both machines say of their wall clocks; `apart`: the operator says that these are
    /// no further apart than this.
    pub(crate) fn claim(
        &mut self,
        now: Time,
        own: WallClockReading,
        theirs: WallClockReading,
        apart: Option<Span>,
    ) {
        let kept = own.error.zip(theirs.error).map(|(own, theirs)| own + theirs);
        let stated = apart.map(|apart| (apart, ClockOffsetConstraint::ByStatement));
        let claimed = stated.or(kept.map(|error| (error, ClockOffsetConstraint::ByWallClocks)));
        self.claim = claimed.map(|(error, by)| {
            let offset = i128::from(own.ahead_ns) - i128::from(theirs.ahead_ns);
            let error = i128::from(error.as_nanos());
            let bounds = UncertaintyInterval { low: offset - error, high: offset + error };
            ClockOffsetClaim { at: now, bounds, by }
        });
    }

    /// The part of the envelope that what is claimed leaves, and by what it is narrower.
    fn narrowed(
        &self,
        sharp: UncertaintyInterval,
        now: Time,
    ) -> (UncertaintyInterval, ClockOffsetConstraint) {
        let Some(ClockOffsetClaim { at, bounds, by }) = self.claim else {
            return (sharp, ClockOffsetConstraint::ByNothing);
        };
        let claimed = bounds.aged(UncertaintyInterval::ANY_SKEW, nanos(now) - nanos(at));
        match sharp.meet(claimed) {
            Some(both) if both != sharp => (both, by),
            _ => (sharp, ClockOffsetConstraint::ByNothing),
        }
    }

    /// Takes an exchange in.
    pub(crate) fn take(&mut self, exchange: &TimestampExchange) -> TimestampExchangeOutcome {
        let TimestampExchange { sent, came, left, back } = *exchange;
        let rtt = (nanos(back) - nanos(sent)) - (nanos(left) - nanos(came));
        if left < came || back < sent || rtt < 0 {
            return TimestampExchangeOutcome::Odd;
        }
        let high = nanos(came) - nanos(sent);
        let away = nanos(back) - nanos(sent);
        // The upper bound is as old as the request.
        let bounds = UncertaintyInterval {
            low: nanos(left) - nanos(back),
            high: high + drift(SKEW_MAX, away),
        };
        let Some(known) = &mut self.known else {
            self.known = Some(ClockOffsetEstimate::begin(bounds, back, span(rtt)));
            return TimestampExchangeOutcome::Taken;
        };
        known.advance(back);
        known.see_rtt(back, span(rtt));
        let Some(sure) = known.sure.meet(bounds) else {
            let by = bounds.middle() - known.sure.middle();
            self.known = Some(ClockOffsetEstimate::begin(bounds, back, span(rtt)));
            return TimestampExchangeOutcome::Stepped(clamp(by));
        };
        known.sure = sure;
        known.exchanges += 1;
        match known.sharp.meet(bounds) {
            Some(sharp) => known.sharp = sharp,
            None => known.doubt_skew(),
        }
        known.measure_skew();
        TimestampExchangeOutcome::Taken
    }
}

impl ClockOffsetEstimate {
    fn begin(bounds: UncertaintyInterval, at: Time, rtt: Span) -> Self {
        ClockOffsetEstimate {
            at,
            sure: bounds,
            sharp: bounds,
            skew: UncertaintyInterval::ANY_SKEW,
            anchor: (at, bounds),
            rtt,
            least: [rtt; 2],
            window_began: at,
            exchanges: 1,
        }
    }

    /// Ages everything.
    fn advance(&mut self, now: Time) {
        let passed = nanos(now) - nanos(self.at);
        self.sure = self.sure.aged(UncertaintyInterval::ANY_SKEW, passed);
        self.sharp = self.sharp.aged(self.skew, passed);
        let wander = drift(WANDER, passed);
        self.skew =
            UncertaintyInterval { low: self.skew.low - wander, high: self.skew.high + wander }
                .meet(UncertaintyInterval::ANY_SKEW)
                .unwrap_or(UncertaintyInterval::ANY_SKEW);
        self.at = now;
    }

    fn see_rtt(&mut self, now: Time, rtt: Span) {
        self.rtt = rtt;
        if now.since(self.window_began) >= WINDOW {
            self.least = [rtt, self.least[0]];
            self.window_began = now;
        }
        self.least[0] = self.least[0].min(rtt);
    }

    fn doubt_skew(&mut self) {
        self.sharp = self.sure;
        self.skew = UncertaintyInterval::ANY_SKEW;
        self.anchor = (self.at, self.sure);
    }

    /// The slope from any point of the anchor to any point of the present envelope.
    fn measure_skew(&mut self) {
        let (then, anchor) = self.anchor;
        let passed = nanos(self.at) - nanos(then);
        if passed < SLOPE_MIN {
            return;
        }
        let slope = UncertaintyInterval {
            low: ((self.sharp.low - anchor.high) * BILLION).div_euclid(passed),
            high: ((self.sharp.high - anchor.low) * BILLION).div_euclid(passed) + 1,
        };
        match self.skew.meet(slope) {
            Some(skew) => self.skew = skew,
            None => self.doubt_skew(),
        }
        if passed >= ANCHOR_AGE {
            self.anchor = (self.at, self.sharp);
        }
    }
}

impl UncertaintyInterval {
    const ANY_SKEW: UncertaintyInterval = UncertaintyInterval { low: -SKEW_MAX, high: SKEW_MAX };

    /// The intersection.
    fn meet(self, other: UncertaintyInterval) -> Option<UncertaintyInterval> {
        let both =
            UncertaintyInterval { low: self.low.max(other.low), high: self.high.min(other.high) };
        (both.low <= both.high).then_some(both)
    }

    /// After `passed` nanoseconds with a skew in those bounds.
    fn aged(self, skew: UncertaintyInterval, passed: i128) -> UncertaintyInterval {
        UncertaintyInterval {
            low: self.low + (skew.low * passed).div_euclid(BILLION),
            high: self.high + (skew.high * passed).div_euclid(BILLION) + i128::from(passed > 0),
        }
    }

    fn middle(self) -> i128 {
        self.low + (self.high - self.low) / 2
    }
}

fn nanos(time: Time) -> i128 {
    i128::from(time.as_nanos())
}

fn span(nanos: i128) -> Span {
    Span::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
}

fn clamp(nanos: i128) -> i64 {
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// The drift between clocks with that skew, at least a nanosecond if any time passes.
fn drift(ppb: i128, passed: i128) -> i128 {
    (ppb * passed).div_euclid(BILLION) + i128::from(passed > 0)
}

#[cfg(test)]
mod tests;
