//! PI2: a controller computes from the queueing delay a probability, of which the square is the
//! share of arriving packets that are dropped or marked. As the rate of a TCP stream falls with the
//! root of that share, the controller is linear, and needs no table of scales as PIE's does.
//!
//! - **Parameters**: `target`, the delay to be held (default 15 ms); `max-rtt`, the longest round
//!   trip for which the loop is to be stable (default 100 ms); `ecn` (default true): packets of
//!   ECN-capable senders are marked while their share is at most 25 %. The queue's limit holds as
//!   with drop-tail; its default is 1000 packets.
//! - **Time**: unchanged for those that stay. **Order**: unchanged. **Bytes**: the ECN field of
//!   marked ones. Trains stay whole while none of their segments is touched and all are here.
//! - **Drop reasons**: `aqm`; `queue_full` at the limit.
//! - **Model**: De Schepper, Bondarenko, Tsang and Briscoe, "PI2: A Linearized AQM for both Classic
//!   and Scalable TCP" (CoNEXT 2016), for Classic senders, with the parameters of RFC 9332,
//!   appendix A.1: an update each T = min(target, R/3), α = 0.1·T/R² and β = 0.3/R for the longest
//!   round trip R, and 25 % as the most that is marked. ECT(1) is taken as ECT(0): there is no
//!   second queue for scalable senders. As in PIE the delay is the queue's bytes divided by the
//!   rate, two packets are never touched, and the draw for a packet depends on its number alone.
//!   Probabilities are multiples of 2⁻⁴⁰.

use windtunnel_model::profile::Pi2Parameters as Setting;
use windtunnel_model::{LinkProfile, Rate, Span, Time};

use super::decision::{ArrivingPacket, EnqueueVerdict};
use super::updates::{PeriodicUpdateOutcome, PeriodicUpdateTimer};

/// Probability 1.
const ONE: i128 = 1 << BITS;
const BITS: u32 = 40;
/// Up to this share capable senders are marked.
const MARK_MOST: i128 = ONE / 4;

#[derive(Debug, Clone)]
pub(super) struct Pi2Discipline {
    setting: Setting,
    rate: Option<Rate>,
    /// Bytes of two packets, which are never touched.
    floor: u64,
    /// The root of the share, of `ONE`.
    root: i128,
    delay_old: Span,
    updates: PeriodicUpdateTimer,
}

impl Pi2Discipline {
    pub(super) fn new(setting: Setting, profile: &LinkProfile) -> Self {
        let mut pi2 = Pi2Discipline {
            setting,
            rate: None,
            floor: 0,
            root: 0,
            delay_old: Span::ZERO,
            updates: PeriodicUpdateTimer::new(setting.update()),
        };
        pi2.set(profile);
        pi2
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
            let delay = self.rate.map_or(Span::ZERO, |rate| rate.time_for(queue(at)));
            if delay.is_zero() && self.delay_old.is_zero() && self.root == 0 {
                return PeriodicUpdateOutcome::AtRest;
            }
            self.update(delay);
            PeriodicUpdateOutcome::Computed
        });
        self.updates = updates;
    }

    /// Decides about a packet that comes while `comer.queue` bytes wait.
    pub(super) fn admit(&self, comer: &ArrivingPacket) -> EnqueueVerdict {
        let share = (self.root * self.root) >> BITS;
        let drawn = i128::from(comer.draw >> (u64::BITS - BITS));
        if comer.queue <= self.floor || drawn >= share {
            return EnqueueVerdict::Pass;
        }
        if self.setting.ecn && comer.ecn && share <= MARK_MOST {
            return EnqueueVerdict::Mark;
        }
        EnqueueVerdict::Drop
    }

    /// The root rises by α·(delay − target) + β·(delay − old).
    fn update(&mut self, delay: Span) {
        let nanos = |span: Span| i128::from(span.as_nanos().min(DELAY_MOST));
        let (now, old, target) = (nanos(delay), nanos(self.delay_old), nanos(self.setting.target));
        let (every, rtt) = (nanos(self.setting.update()), nanos(self.setting.max_rtt));
        let step = ONE * (every * (now - target) + 3 * rtt * (now - old)) / (10 * rtt * rtt);
        self.root = (self.root + step).clamp(0, ONE);
        self.delay_old = delay;
    }
}

/// A longer delay (ten minutes) says nothing more, and the arithmetic has room.
const DELAY_MOST: u64 = 600_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn pi2() -> Pi2Discipline {
        let rate = Rate::from_bits_per_second(8_000_000);
        Pi2Discipline::new(Setting::default(), &LinkProfile { rate, ..LinkProfile::default() })
    }

    /// α = 0.1 · 0.015/0.1² = 0.15 and β = 0.3/0.1 = 3 a second: 31 ms after 15 ms are
    /// 0.15 · 0.016 + 3 · 0.016 = 0.0504.
    #[test]
    fn a_step_is_that_of_rfc_9332() {
        let mut pi2 = pi2();
        pi2.delay_old = Span::from_millis(15);
        pi2.update(Span::from_millis(31));
        assert_eq!(pi2.root, ONE * 504 / 10_000);
    }

    #[test]
    fn the_share_is_the_square_and_is_marked_up_to_a_quarter() {
        let comer = |draw, ecn| ArrivingPacket { now: Time::ZERO, queue: 1 << 20, draw, ecn };
        let quarter = 1 << (u64::BITS - 2);
        let mut pi2 = pi2();
        pi2.root = ONE / 2;
        assert_eq!(pi2.admit(&comer(quarter, false)), EnqueueVerdict::Pass);
        assert_eq!(pi2.admit(&comer(quarter - 1, false)), EnqueueVerdict::Drop);
        assert_eq!(pi2.admit(&comer(quarter - 1, true)), EnqueueVerdict::Mark);
        pi2.root = ONE / 2 + ONE / 1000;
        assert_eq!(pi2.admit(&comer(0, true)), EnqueueVerdict::Drop);
    }

    #[test]
    fn an_idle_hour_is_made_up_for_in_a_few_steps_and_keeps_the_phase() {
        let mut pi2 = pi2();
        pi2.advance(Time::ZERO, |_| 0);
        pi2.root = ONE / 100;
        let hour = Time::ZERO + Span::from_secs(3600);
        pi2.advance(hour, |_| 0);
        assert_eq!((pi2.root, pi2.updates.next()), (0, Some(hour + Span::from_millis(15))));
    }
}
