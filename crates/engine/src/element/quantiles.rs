//! Inverted distributions as integer tables.
//!
//! The tables are computed once with libm's software arithmetic, which rounds alike on every
//! machine, and rounded to 2⁻³² of the spread.

use alloc::boxed::Box;
use alloc::vec::Vec;

use once_cell::race::OnceBox;
use windtunnel_model::Span;

const STEPS: u32 = 4096;
const ONE: f64 = 4_294_967_296.0;

/// |N(0, 1)|, cut at 4: quantiles at equal steps of probability, in 2⁻³² of the spread.
pub(crate) fn half_normal() -> &'static [u64] {
    static TABLE: OnceBox<Vec<u64>> = OnceBox::new();
    TABLE.get_or_init(|| Box::new(tabulate(half_normal_quantile)))
}

/// Lomax with shape 3 and mean 1, cut at 40, in the same way.
pub(crate) fn pareto() -> &'static [u64] {
    static TABLE: OnceBox<Vec<u64>> = OnceBox::new();
    TABLE.get_or_init(|| Box::new(tabulate(pareto_quantile)))
}

/// The quantile of `draw` in a table, times `spread`.
pub(crate) fn scaled(table: &[u64], spread: Span, draw: u64) -> Span {
    let (low, high, fraction) = cell(table, draw);
    let unit = interpolate(low, high, fraction);
    let nanos = (u128::from(unit) * u128::from(spread.as_nanos())) >> 32;
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The quantile of `draw` in a table of times.
pub(crate) fn between(table: &[Span], draw: u64) -> Span {
    let (low, high, fraction) = cell(table, draw);
    Span::from_nanos(interpolate(low.as_nanos(), high.as_nanos(), fraction))
}

/// The two entries that `draw` lies between, and how far, in 2⁻³².
fn cell<T: Copy + Default>(table: &[T], draw: u64) -> (T, T, u64) {
    let steps = u128::try_from(table.len().saturating_sub(1)).unwrap_or(0);
    let position = (u128::from(draw) * steps) >> 32;
    let index = usize::try_from(position >> 32).unwrap_or(usize::MAX);
    let fraction = u64::try_from(position & 0xffff_ffff).unwrap_or(0);
    let low = table.get(index).copied().unwrap_or_default();
    (low, table.get(index + 1).copied().unwrap_or(low), fraction)
}

fn interpolate(low: u64, high: u64, fraction: u64) -> u64 {
    let rise = u128::from(high.saturating_sub(low)) * u128::from(fraction);
    low.saturating_add(u64::try_from(rise >> 32).unwrap_or(u64::MAX))
}

fn tabulate(quantile: impl Fn(f64) -> f64) -> Vec<u64> {
    (0..=STEPS).map(|step| fixed(quantile(f64::from(step) / f64::from(STEPS)))).collect()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "quantiles lie in [0, 40], so 2^32 times that fits"
)]
fn fixed(value: f64) -> u64 {
    libm::round(value * ONE) as u64
}

fn pareto_quantile(probability: f64) -> f64 {
    let rest = 1.0 - probability;
    // Beyond the cut, and at 1, where the quantile is infinite.
    if rest < 1e-9 { 40.0 } else { (2.0 * (1.0 / libm::cbrt(rest) - 1.0)).min(40.0) }
}

/// Solves erf(x/√2) = p by halving; the cut is the end of the interval.
fn half_normal_quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (0.0, 4.0);
    for _ in 0..48 {
        let middle = f64::midpoint(low, high);
        if libm::erf(middle * core::f64::consts::FRAC_1_SQRT_2) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(table: &[u64], per_mille: u64) -> u64 {
        scaled(table, Span::from_nanos(1_000_000), u64::MAX / 1000 * per_mille).as_nanos()
    }

    #[test]
    fn quantiles_are_those_of_the_textbook() {
        // |N|: the median is 0.67449, the 95th percentile 1.95996.
        assert_eq!(unit(half_normal(), 500), 674_489);
        assert!(unit(half_normal(), 950).abs_diff(1_959_964) < 5);
        assert!(unit(half_normal(), 1000) > 3_990_000);
        // Lomax: 2·((1−p)^(−1/3) − 1); at 1/2 0.519842, at 0.999 18.
        assert!(unit(pareto(), 500).abs_diff(519_842) < 2);
        assert!(unit(pareto(), 999).abs_diff(18_000_000) < 40_000);
        assert_eq!(scaled(pareto(), Span::from_nanos(1000), 0), Span::ZERO);
        assert_eq!(pareto().last().copied(), Some(40 << 32));
    }

    #[test]
    fn a_table_of_times_is_linear_in_between() {
        let table = [10, 20, 40].map(Span::from_nanos);
        let at = |draw| between(&table, draw).as_nanos();
        assert_eq!((at(0), at(1 << 62), at(1 << 63), at(3 << 62)), (10, 15, 20, 30));
        assert_eq!(at(u64::MAX), 39);
    }
}
