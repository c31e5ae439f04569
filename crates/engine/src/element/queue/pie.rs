//! PIE: a controller computes from the queueing delay how many of the arriving packets are
//! dropped or marked.
//!
//! - **Parameters**: `target`, the delay to be held (default 15 ms); `update`, the time between two
//!   computations (default 15 ms); `burst`, how long a burst after calm is left alone (default 150
//!   ms); `derandomise` (default false): drops keep a distance from each other; `ecn` (default
//!   true): packets of ECN-capable senders are marked while the probability is at most 10 %. The
//!   queue's limit holds as with drop-tail; its default is 1000 packets.
//! - **Time**: unchanged for those that stay. **Order**: unchanged. **Bytes**: the ECN field of
//!   marked ones. Trains stay whole while none of their segments is touched and all are here.
//! - **Drop reasons**: `aqm`; `queue_full` at the limit.
//! - **Model**: RFC 8033, section 4 and appendix A, with sections 5.1 (ECN), 5.4 (de-randomisation)
//!   and 5.5 (cap). The delay is the queue's bytes divided by the rate (a trace's mean): no
//!   departure rate is estimated, no time-out resets it. Updates are due whether or not packets
//!   come, and are made up for when the next one does: between packets the queue only changes by
//!   what the line takes. The draw for a packet depends on its number alone. Probabilities are
//!   exact multiples of 2⁻¹¹/(8·10⁹), but for the decay.

use windtunnel_model::profile::PieParameters as Setting;
use windtunnel_model::{LinkProfile, Rate, Span, Time};

use super::decision::{ArrivingPacket, EnqueueVerdict};
use super::updates::{PeriodicUpdateOutcome, PeriodicUpdateTimer};

/// Probability 1: so many that each step of the controller (α = 1/8 s⁻¹, β = 5/4 s⁻¹, delays in ns,
/// divided by up to 2048) is a whole number.
const ONE: i64 = 8_000_000_000 * 2048;
/// Up to this probability capable senders are marked.
const MARK_MOST: i64 = ONE / 10;
/// Below a million-th, …: divide the step by so much (RFC 8033, section 4.2).
const SCALE: [(i64, i64); 6] = [
    (ONE / 1_000_000, 2048),
    (ONE / 100_000, 512),
    (ONE / 10_000, 128),
    (ONE / 1000, 32),
    (ONE / 100, 8),
    (ONE / 10, 2),
];

#[derive(Debug, Clone)]
pub(super) struct PieDiscipline {
    setting: Setting,
    rate: Option<Rate>,
    /// Bytes of two packets, which are never touched.
    floor: u64,
    /// Of `ONE`.
    probability: i64,
    /// Sum of the probabilities since the last drop.
    accumulated: i64,
    delay_old: Span,
    allowance: Span,
    updates: PeriodicUpdateTimer,
}

impl PieDiscipline {
    pub(super) fn new(setting: Setting, profile: &LinkProfile) -> Self {
        let mut pie = PieDiscipline {
            setting,
            rate: None,
            floor: 0,
            probability: 0,
            accumulated: 0,
            delay_old: Span::ZERO,
            allowance: Span::ZERO,
            updates: PeriodicUpdateTimer::new(setting.update),
        };
        pie.set(profile);
        pie
    }

    /// The rate or the packet size has changed.
    pub(super) fn set(&mut self, profile: &LinkProfile) {
        self.rate = profile.rate;
        self.floor = 2 * profile.wire_packet();
    }

    /// Makes up for the updates that have become due, where `queue` returns the bytes that waited.
    pub(super) fn advance(&mut self, now: Time, queue: impl Fn(Time) -> u64) {
        let mut updates = self.updates;
        updates.advance(now, |at| {
            let delay = self.delay(queue(at));
            if self.is_at_rest(delay) {
                return PeriodicUpdateOutcome::AtRest;
            }
            self.update(delay);
            PeriodicUpdateOutcome::Computed
        });
        self.updates = updates;
    }

    /// Decides about a packet that comes while `comer.queue` bytes wait.
    pub(super) fn admit(&mut self, comer: &ArrivingPacket) -> EnqueueVerdict {
        let half = Span::from_nanos(self.setting.target.as_nanos() / 2);
        if self.probability == 0 && self.delay(comer.queue) < half && self.delay_old < half {
            self.allowance = self.setting.burst;
        }
        if !self.allowance.is_zero() || !self.drops(comer, half) {
            return EnqueueVerdict::Pass;
        }
        if self.setting.ecn && comer.ecn && self.probability <= MARK_MOST {
            return EnqueueVerdict::Mark;
        }
        EnqueueVerdict::Drop
    }

    fn drops(&mut self, comer: &ArrivingPacket, half: Span) -> bool {
        let calm = self.delay_old < half && self.probability < ONE / 5;
        if calm || comer.queue <= self.floor {
            return false;
        }
        if self.setting.derandomise {
            if self.probability == 0 {
                self.accumulated = 0;
            }
            self.accumulated = self.accumulated.saturating_add(self.probability);
            if self.accumulated < ONE / 100 * 85 {
                return false;
            }
            if self.accumulated >= ONE / 10 * 85 {
                self.accumulated = 0;
                return true;
            }
        }
        let one = u128::from(ONE.unsigned_abs());
        let drawn = (u128::from(comer.draw) * one) >> 64;
        let hit = drawn < u128::from(self.probability.unsigned_abs());
        if hit {
            self.accumulated = 0;
        }
        hit
    }

    fn update(&mut self, delay: Span) {
        let nanos = |span: Span| i64::try_from(span.as_nanos()).unwrap_or(i64::MAX).min(DELAY_MOST);
        let (now, old, target) = (nanos(delay), nanos(self.delay_old), nanos(self.setting.target));
        let step = (now - target + 10 * (now - old)) * 2048;
        let scale = SCALE.iter().find(|(below, _)| self.probability < *below);
        let mut step = step / scale.map_or(1, |(_, by)| *by);
        if self.probability >= ONE / 10 {
            step = step.min(ONE / 50);
        }
        self.probability = self.probability.saturating_add(step);
        if delay.is_zero() && self.delay_old.is_zero() {
            self.probability = self.probability / 50 * 49;
        }
        self.probability = self.probability.clamp(0, ONE);
        self.delay_old = delay;
        self.allowance = self.allowance.saturating_sub(self.setting.update);
    }

    fn is_at_rest(&self, delay: Span) -> bool {
        delay.is_zero()
            && self.delay_old.is_zero()
            && self.probability == 0
            && self.allowance.is_zero()
    }

    fn delay(&self, queue: u64) -> Span {
        self.rate.map_or(Span::ZERO, |rate| rate.time_for(queue))
    }
}

/// A longer delay (ten minutes) says nothing more, and the arithmetic has room.
const DELAY_MOST: i64 = 600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn pie() -> PieDiscipline {
        let rate = Rate::from_bits_per_second(8_000_000);
        PieDiscipline::new(Setting::default(), &LinkProfile { rate, ..LinkProfile::default() })
    }

    /// The step is (α·(delay − target) + β·(delay − old))/scale: with 31 ms after 15 ms,
    /// 16/8000 + 5·16/4000 = 0.022, and 2048th, 512th, …, of it.
    #[test]
    fn each_decade_of_the_probability_has_its_scale() {
        for (probability, by) in [(0, 2048), (ONE / 500_000, 512), (ONE / 50_000, 128)]
            .into_iter()
            .chain([(ONE / 5000, 32), (ONE / 500, 8), (ONE / 50, 2)])
        {
            let mut pie = pie();
            pie.probability = probability;
            pie.delay_old = Span::from_millis(15);
            pie.update(Span::from_millis(31));
            assert_eq!(pie.probability - probability, ONE / 1000 * 22 / by, "by {by}");
        }
        let mut pie = pie();
        pie.probability = ONE / 5;
        pie.delay_old = Span::from_millis(15);
        pie.update(Span::from_millis(31));
        assert_eq!(pie.probability - ONE / 5, ONE / 50, "never more than 2 % from 10 % on");
    }

    #[test]
    fn an_idle_hour_is_made_up_for_in_a_few_steps_and_keeps_the_phase() {
        let mut pie = pie();
        pie.advance(Time::ZERO, |_| 0);
        pie.probability = ONE;
        pie.delay_old = Span::from_millis(50);
        let hour = Time::ZERO + Span::from_secs(3600);
        pie.advance(hour, |_| 0);
        assert_eq!((pie.probability, pie.delay_old), (0, Span::ZERO));
        assert_eq!(pie.updates.next(), Some(hour + Span::from_millis(15)));
    }
}
