//! Rates in grains and levels in grains for each unit of weight, both whole numbers of 128 bits.
//!
//! Nothing overflows: a flow of weight below 2⁴⁰ has, on a lane below 2⁴⁸ bit/s, never more than
//! the lane and a part of a bit a second, and there are fewer than 2¹⁹ flows. Their sum, while
//! shares do not fit yet, is below 2²⁰ · 2⁴⁸ · 2⁶⁰. A flow without a limited lane has less than 2⁶⁵
//! bit/s, and is in no sum.

use windtunnel_model::Rate;

/// No bound: neither on a capacity nor on a level.
pub(super) const NONE: u128 = u128::MAX;

/// Capacities are below so many bits a second.
pub(super) const CAPACITY_END: u64 = 1 << 48;

/// A grain is 2⁻⁶⁰ bit/s.
const GRAIN_BITS: u32 = 60;

/// 2⁻²⁰ bit/s: a share that lacks less to a whole bit a second is rounded up. So the excess of
/// other flows by the rounding of levels takes no bit from a flow with a whole number of them.
const NEARLY: u128 = 1 << (GRAIN_BITS - 20);

/// A rate in grains.
pub(super) fn grains(rate: Rate) -> u128 {
    u128::from(rate.bits_per_second()) << GRAIN_BITS
}

/// The least level at which flows of that weight in all have so many grains; none for none.
#[allow(clippy::manual_div_ceil, reason = "`div_ceil` divides twice, and this is most of its work")]
pub(super) fn reaching(grains: u128, weight: u64) -> u128 {
    if grains == NONE {
        return NONE;
    }
    let weight = u128::from(weight);
    (grains + (weight - 1)) / weight
}

/// The share of a flow of that weight at that level, rounded down to a bit a second (if it is not
/// nearly the next one), but at least one.
pub(super) fn rate(level: u128, weight: u64) -> Option<Rate> {
    if level == NONE {
        return None;
    }
    let bits = (level * u128::from(weight) + NEARLY) >> GRAIN_BITS;
    Rate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ceiling_gives_back_its_rate_at_every_weight() {
        for bits in [1, 999_999_999_999, u64::MAX] {
            let asked = Rate::from_bits_per_second(bits);
            for weight in [1, 3, 720_720_000_000, (1 << 40) - 1] {
                assert_eq!(rate(reaching(grains(asked.unwrap()), weight), weight), asked);
            }
        }
    }

    #[test]
    fn without_bound_stays_without_bound() {
        assert_eq!(reaching(NONE, 7), NONE);
        assert_eq!(rate(NONE, 7), None);
        assert_eq!(rate(0, 1), Rate::from_bits_per_second(1));
    }
}
