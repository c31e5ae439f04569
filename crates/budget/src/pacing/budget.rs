//! A rate: bytes take their time, one after the other, from an absolute time on.
//!
//! The state is the time at which the next message may start (the theoretical arrival time of the
//! generic cell rate algorithm, ITU-T I.371), advanced by compare-and-swap by the time that a
//! message takes. Whole nanoseconds go there; the rest of each division is added up in a second
//! word, which yields a nanosecond whenever it passes a multiple of the rate.

use core::sync::atomic::{AtomicU64, Ordering};

use super::controller::{BITS_NS, BITS_NS_NARROW, PacingController, rescaled, saturate};

/// The budget of one direction.
#[derive(Debug)]
#[repr(C)]
pub struct PacingBudget {
    free_at_ns: AtomicU64,
    /// The remainders of all divisions, in parts of a nanosecond of which the rate's number are one.
    /// Only where it passes a multiple of the rate matters, so it may wrap.
    rest: AtomicU64,
    /// When a call had to wait last, or was refused; 0: never.
    waited_at_ns: AtomicU64,
}

impl PacingBudget {
    /// A budget without debt from a time on.
    #[must_use]
    pub const fn new(now_ns: u64) -> PacingBudget {
        PacingBudget {
            free_at_ns: AtomicU64::new(now_ns),
            rest: AtomicU64::new(REST_START),
            waited_at_ns: AtomicU64::new(0),
        }
    }

    /// Forgets all debt.
    pub fn reset(&self, now_ns: u64) {
        self.free_at_ns.store(now_ns, Ordering::Relaxed);
        self.rest.store(REST_START, Ordering::Relaxed);
        self.waited_at_ns.store(0, Ordering::Relaxed);
    }

    /// The idle time that is lent: more where a call has just waited, which a buffer of a socket would
    /// have gone on to send from.
    #[inline]
    fn credit_ns(&self, now_ns: u64) -> u64 {
        let waited_at = self.waited_at_ns.load(Ordering::Relaxed);
        let is_recent = waited_at != 0 && now_ns.saturating_sub(waited_at) <= BUFFER_NS;
        if is_recent { BUFFER_NS } else { CREDIT_NS }
    }

    /// The whole nanoseconds that bytes take, with those that the remainders have come to.
    #[inline]
    fn cost_ns(&self, rate_bps: u64, bytes: u64) -> u64 {
        let (whole, rest) = divided(rate_bps, bytes);
        if rest == 0 {
            return whole;
        }
        let before = self.rest.fetch_add(rest, Ordering::Relaxed);
        let passed = before.wrapping_add(rest) / rate_bps != before / rate_bps;
        whole.saturating_add(u64::from(passed))
    }
}

impl PacingController for PacingBudget {
    #[inline]
    fn claim(&self, now_ns: u64, rate_bps: u64, bytes: u64) -> u64 {
        let cost = self.cost_ns(rate_bps.max(1), bytes);
        let earliest = now_ns.saturating_sub(self.credit_ns(now_ns));
        let mut free_at = self.free_at_ns.load(Ordering::Relaxed);
        loop {
            let start = free_at.max(earliest);
            let next = start.saturating_add(cost);
            let order = Ordering::Relaxed;
            match self.free_at_ns.compare_exchange_weak(free_at, next, order, order) {
                Ok(_) => return start,
                Err(now) => free_at = now,
            }
        }
    }

    fn refund(&self, rate_bps: u64, bytes: u64) {
        let rate_bps = rate_bps.max(1);
        let (whole, rest) = divided(rate_bps, bytes);
        let before = self.rest.fetch_sub(rest, Ordering::Relaxed);
        let passed = before.wrapping_sub(rest) / rate_bps != before / rate_bps;
        let back = whole.saturating_add(u64::from(passed));
        let give = |free_at: u64| Some(free_at.saturating_sub(back));
        // It never refuses.
        let _ = self.free_at_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, give);
    }

    #[inline]
    fn free_at_ns(&self) -> u64 {
        self.free_at_ns.load(Ordering::Relaxed)
    }

    fn note_wait(&self, now_ns: u64) {
        self.waited_at_ns.store(now_ns, Ordering::Relaxed);
    }

    fn rescale(&self, now_ns: u64, old_bps: u64, new_bps: u64) {
        let change = |free_at: u64| Some(rescaled(free_at, now_ns, old_bps, new_bps));
        // It never refuses.
        let _ = self.free_at_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
    }
}

/// Whole nanoseconds that bytes take, and the remainder.
#[inline]
fn divided(rate_bps: u64, bytes: u64) -> (u64, u64) {
    match bytes.checked_mul(BITS_NS_NARROW) {
        Some(bits_ns) => (bits_ns / rate_bps, bits_ns % rate_bps),
        None => {
            let bits_ns = u128::from(bytes) * BITS_NS;
            let rest = bits_ns % u128::from(rate_bps);
            (saturate(bits_ns / u128::from(rate_bps)), saturate(rest))
        }
    }
}

/// Idle time that is lent at the most: so late may a sleeper wake up without losing rate.
pub const CREDIT_NS: u64 = 5_000_000;

/// The same where a call has waited no longer ago than this: what a socket's buffer would have sent
/// while its program was kept from running.
pub const BUFFER_NS: u64 = 100_000_000;

/// In the middle, so that neither adding nor refunding wraps soon.
const REST_START: u64 = 1 << 63;
