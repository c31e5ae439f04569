//! RED: the longer the queue is on average, the more of the arriving packets are dropped or marked.
//!
//! - **Parameters**: `min` and `max`, average lengths between which the probability rises from 0 to
//!   `probability` (defaults: a third of `max`; a quarter of the queue's limit; 2 %); `weight` of a
//!   new sample in the average (default 0.2 %); `packet`, a typical packet, by whose time on the
//!   line the average decays while nothing waits (default 1000 bytes); `gentle` (default false):
//!   from `max` to its double the probability rises on to 1, where otherwise it is 1 from `max` on;
//!   `adaptive` (default false): `probability` follows the load; `ecn` (default true): packets of
//!   ECN-capable senders are marked. The queue's limit holds as with drop-tail.
//! - **Time**: unchanged for those that stay. **Order**: unchanged. **Bytes**: the ECN field of
//!   marked ones. Trains stay whole while none of their segments is touched and all are here.
//! - **Drop reasons**: `aqm`; `queue_full` at the limit.
//! - **Model**: Floyd and Jacobson 1993, figure 2, with the queue in bytes as in tc-red(8);
//!   `gentle` is Floyd's note of 2000; `adaptive` is Floyd, Gummadi and Shenker 2001 with their
//!   constants, every 0.5 s. Like Linux, marks are made above `max` too. The packet on the line
//!   does not count. The draw for a packet depends on its number alone. Lengths have 32 bits after
//!   the point. While the queue is empty and the line free, time counts and not the packets that
//!   are dropped meanwhile: of the idle time only whole packets' times are taken off, and the rest
//!   is kept for the next.

use windtunnel_model::profile::RedParameters as Setting;
use windtunnel_model::{LinkProfile, Rate, Span, Time};

use super::decision::{ArrivingPacket, EnqueueVerdict};

/// One, in fixed point.
const ONE: u64 = 1 << 32;
/// Parts per billion.
const BILLION: u64 = 1_000_000_000;
/// Between two adaptations.
const ADAPT: Span = Span::from_millis(500);

#[derive(Debug, Clone)]
pub(super) struct RedDiscipline {
    setting: Setting,
    rate: Option<Rate>,
    /// In bytes.
    min: u64,
    max: u64,
    /// Of 2³².
    weight: u64,
    /// Bytes of 2⁻³².
    average: u64,
    /// Packets since the last drop or mark while between the thresholds; `None`: below `min`.
    count: Option<u64>,
    /// While nothing waits and the line is free: up to when the average has decayed for that.
    idle: Option<Time>,
    /// Parts per billion.
    probability: u64,
    adapt_next: Option<Time>,
}

impl RedDiscipline {
    pub(super) fn new(setting: Setting, profile: &LinkProfile) -> Self {
        let mut red = RedDiscipline {
            setting,
            rate: None,
            min: 0,
            max: 0,
            weight: ppb_of_one(setting.weight.parts_per_billion()),
            average: 0,
            count: None,
            idle: None,
            probability: u64::from(setting.probability.parts_per_billion()),
            adapt_next: None,
        };
        red.set(profile);
        red
    }

    /// The rate or the queue has changed.
    pub(super) fn set(&mut self, profile: &LinkProfile) {
        self.rate = profile.rate;
        if let Some(rate) = profile.rate {
            (self.min, self.max) = self.setting.thresholds(profile, rate);
        }
    }

    /// The line is free and nothing waits.
    pub(super) fn emptied(&mut self, now: Time) {
        self.idle.get_or_insert(now);
    }

    /// Adapts the probability at every time that has passed.
    pub(super) fn advance(&mut self, now: Time) {
        if !self.setting.adaptive {
            return;
        }
        let mut next = *self.adapt_next.get_or_insert(now + ADAPT);
        while next <= now {
            let average = self
                .idle
                .map_or(self.average, |since| self.decayed(self.packets_in(next.since(since))));
            let before = self.probability;
            self.adapt(average);
            // The average only falls until a packet comes: once it is low, nothing changes any
            // more.
            let low = u128::from(average) < self.fifths(2) || average == 0;
            let rests = before == self.probability && (self.idle.is_none() || low);
            let steps = if rests { now.since(next).as_nanos() / ADAPT.as_nanos() + 1 } else { 1 };
            next += Span::from_nanos(steps.saturating_mul(ADAPT.as_nanos()));
        }
        self.adapt_next = Some(next);
    }

    /// Decides about a packet that comes while `comer.queue` bytes wait.
    pub(super) fn admit(&mut self, comer: &ArrivingPacket) -> EnqueueVerdict {
        self.sample(comer);
        let admission = self.judge(comer);
        if admission != EnqueueVerdict::Drop {
            // It takes the line. One that is dropped leaves it idle.
            self.idle = None;
        }
        admission
    }

    fn judge(&mut self, comer: &ArrivingPacket) -> EnqueueVerdict {
        let (min, max) = (self.min.saturating_mul(ONE), self.max.saturating_mul(ONE));
        if self.average < min {
            self.count = None;
            return EnqueueVerdict::Pass;
        }
        let Some(base) = self.base(min, max) else {
            self.count = Some(0);
            return self.touch(comer);
        };
        let count = self.count.map_or(0, |count| count + 1);
        if hits(base, count, comer.draw) {
            self.count = Some(0);
            return self.touch(comer);
        }
        self.count = Some(count);
        EnqueueVerdict::Pass
    }

    fn touch(&self, comer: &ArrivingPacket) -> EnqueueVerdict {
        if self.setting.ecn && comer.ecn { EnqueueVerdict::Mark } else { EnqueueVerdict::Drop }
    }

    fn sample(&mut self, comer: &ArrivingPacket) {
        if let Some(since) = self.idle {
            let packets = self.packets_in(comer.now.since(since));
            self.average = self.decayed(packets);
            // What is left of the idle time, less than a packet's, counts with the next that comes.
            let counted = packets.saturating_mul(self.packet_ns());
            self.idle = Some(since + Span::from_nanos(counted));
            return;
        }
        let queue = u128::from(comer.queue) << 32;
        let (weight, old) = (u128::from(self.weight), u128::from(self.average));
        let new = (old * (u128::from(ONE) - weight) + queue * weight) >> 32;
        self.average = u64::try_from(new).unwrap_or(u64::MAX);
    }

    /// The average after so many typical packets that found nothing.
    fn decayed(&self, packets: u64) -> u64 {
        let keep = power(ONE - self.weight, packets);
        let average = (u128::from(self.average) * u128::from(keep)) >> 32;
        u64::try_from(average).unwrap_or(u64::MAX)
    }

    /// How many typical packets could have gone in so long.
    fn packets_in(&self, idle: Span) -> u64 {
        idle.as_nanos() / self.packet_ns()
    }

    /// The time of a typical packet on the line.
    fn packet_ns(&self) -> u64 {
        self.rate.map_or(1, |rate| rate.time_for(self.setting.packet.0).as_nanos().max(1))
    }

    /// The probability before it is spread, in parts per billion; `None`: certain.
    fn base(&self, min: u64, max: u64) -> Option<u64> {
        let part = |above: u64, of: u64, range: u64| {
            let part = u128::from(range) * u128::from(above) / u128::from(of.max(1));
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        if self.average < max {
            return Some(part(self.average - min, max.saturating_sub(min), self.probability));
        }
        if self.setting.gentle && self.average - max < max {
            let rest = BILLION - self.probability.min(BILLION);
            return Some(self.probability + part(self.average - max, max, rest));
        }
        None
    }

    /// One step of Adaptive RED: towards the middle fifth between the thresholds.
    fn adapt(&mut self, average: u64) {
        if u128::from(average) > self.fifths(3) && self.probability <= BILLION / 2 {
            self.probability += (self.probability / 4).min(BILLION / 100);
        } else if u128::from(average) < self.fifths(2) && self.probability >= BILLION / 100 {
            self.probability = self.probability / 10 * 9;
        }
    }

    /// A length so many fifths of the way from `min` to `max`.
    fn fifths(&self, count: u64) -> u128 {
        u128::from(self.min + self.max.saturating_sub(self.min) / 5 * count) << 32
    }
}

/// Whether a packet is hit with probability `base`/(1 − count·`base`).
fn hits(base: u64, count: u64, draw: u64) -> bool {
    let left = BILLION.saturating_sub(count.saturating_mul(base));
    let scaled = (u128::from(draw) * u128::from(left)) >> 64;
    base > 0 && (left <= base || scaled < u128::from(base))
}

fn ppb_of_one(parts: u32) -> u64 {
    u64::from(parts) * ONE / BILLION
}

/// `base`ⁿ, both of 2³².
fn power(base: u64, mut n: u64) -> u64 {
    let (mut result, mut square) = (u128::from(ONE), u128::from(base));
    while n > 0 && result > 0 {
        if n & 1 == 1 {
            result = (result * square) >> 32;
        }
        square = (square * square) >> 32;
        n >>= 1;
    }
    u64::try_from(result).unwrap_or(ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_is_that_of_a_loop() {
        let base = ONE / 1000 * 998;
        let exact = |n: i32| (base as f64 / ONE as f64).powi(n) * ONE as f64;
        for n in [0, 1, 2, 7, 100, 5000] {
            let close = (power(base, u64::try_from(n).unwrap()) as f64 - exact(n)).abs();
            assert!(close < 64.0, "{n}: {close}");
        }
        assert_eq!(power(base, u64::MAX), 0);
    }
}
