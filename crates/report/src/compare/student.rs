//! Confidence intervals by Student's and Welch's t.

/// What is outside of an interval of 95 %, on both sides.
const OUTSIDE: f64 = 0.05;

/// `None` without a value.
pub(super) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count(values))
}

/// The interval of the mean; `None` for fewer than two values.
pub(super) fn interval(values: &[f64]) -> Option<[f64; 2]> {
    let (mean, error) = (mean(values)?, squared_error(values)?.sqrt());
    let reach = t(count(values) - 1.0)? * error;
    Some([mean - reach, mean + reach])
}

/// The interval of the difference of two means, of one less the other; `None` if one has fewer
/// than two values.
pub(super) fn welch(one: &[f64], other: &[f64]) -> Option<[f64; 2]> {
    let difference = mean(one)? - mean(other)?;
    let (first, second) = (squared_error(one)?, squared_error(other)?);
    let sum = first + second;
    if sum == 0.0 {
        return Some([difference, difference]);
    }
    let share = |error: f64, values: &[f64]| error * error / (count(values) - 1.0);
    let freedom = sum * sum / (share(first, one) + share(second, other));
    let reach = t(freedom)? * sum.sqrt();
    Some([difference - reach, difference + reach])
}

/// The squared standard error of the mean.
fn squared_error(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let sum: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(sum / (count(values) - 1.0) / count(values))
}

/// How many standard errors an interval reaches: halved intervals, since the share outside falls with its reach.
fn t(freedom: f64) -> Option<f64> {
    if !freedom.is_finite() || freedom < LEAST_FREEDOM {
        return None;
    }
    let (mut low, mut high) = (0.0, FARTHEST);
    // As many as a number has bits, so that what is left is rounding.
    for _ in 0..f64::MANTISSA_DIGITS + 8 {
        let middle = f64::midpoint(low, high);
        *(if outside(middle, freedom) > OUTSIDE { &mut low } else { &mut high }) = middle;
    }
    Some(high)
}

/// Samples of two values each give 1, or a little less by rounding.
const LEAST_FREEDOM: f64 = 0.99;
/// Beyond the quantile of the least freedom, which is 12.9.
const FARTHEST: f64 = 16.0;

/// The share of Student's distribution that is farther than `reach` from its middle.
fn outside(reach: f64, freedom: f64) -> f64 {
    let sum = freedom + reach * reach;
    incomplete_beta([freedom / sum, reach * reach / sum], [freedom / 2.0, 0.5])
}

/// The regularised incomplete beta function of `x` and `parameters`, by its continued fraction, which converges fast
/// on one side of the middle of the distribution; on the other, its mirror image does. `x` comes with what it lacks to
/// 1, which no subtraction has rounded.
fn incomplete_beta([x, rest]: [f64; 2], [a, b]: [f64; 2]) -> f64 {
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta([rest, x], [b, a]);
    }
    let scale = libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b);
    let first = (scale + a * x.ln() + b * rest.ln()).exp() / a;
    first / continued_fraction(x, [a, b])
}

/// 1 + d1 / (1 + d2 / (1 + ...)) by Lentz's method, with the coefficients of the incomplete beta function.
fn continued_fraction(x: f64, [a, b]: [f64; 2]) -> f64 {
    let coefficient = |step: u32| {
        let pair = f64::from(step / 2);
        let end = a + 2.0 * pair;
        if step.is_multiple_of(2) {
            pair * (b - pair) * x / ((end - 1.0) * end)
        } else {
            -(a + pair) * (a + b + pair) * x / (end * (end + 1.0))
        }
    };
    let (mut value, mut numerator, mut denominator) = (1.0, 1.0, 0.0);
    for step in 1..STEPS_MAX {
        let part = coefficient(step);
        numerator = 1.0 + part / numerator;
        denominator = 1.0 / (1.0 + part * denominator);
        let factor = numerator * denominator;
        value *= factor;
        if (factor - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    value
}

/// Far more than any number of runs takes.
const STEPS_MAX: u32 = 10_000;

#[expect(clippy::cast_precision_loss, reason = "runs are few")]
fn count(values: &[f64]) -> f64 {
    values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(found: [f64; 2], expected: [f64; 2]) {
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-3, "{found} is not {expected}");
        }
    }

    /// Quantiles as tables print them.
    #[test]
    fn quantiles_of_t_are_those_of_the_tables() {
        for (freedom, expected) in [(1.0, 12.706), (2.0, 4.303), (9.0, 2.262), (30.0, 2.042)] {
            near([t(freedom).unwrap(); 2], [expected; 2]);
        }
        // Those of 1 and 2 degrees have a closed form; that of many is the normal distribution's.
        let exact =
            [(1.0, (0.475 * std::f64::consts::PI).tan()), (2.0, 0.95 * (2.0_f64 / 0.0975).sqrt())];
        for (freedom, expected) in exact {
            let found = t(freedom).unwrap();
            assert!((found - expected).abs() < 1e-12 * expected, "{found} is not {expected}");
        }
        near([t(1e7).unwrap(); 2], [1.959_964; 2]);
        assert_eq!(t(f64::NAN), None);
    }

    /// By hand: mean 3, variance 2.5, error sqrt(0.5), t of 4 degrees 2.776.
    #[test]
    fn the_interval_of_a_mean_is_that_of_the_text_book() {
        near(interval(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap(), [1.036_757, 4.963_243]);
        assert_eq!(interval(&[1.0]), None);
    }

    /// Figures of SciPy 1: `ttest_ind(a, b, equal_var=False).confidence_interval(0.95)`.
    #[test]
    fn the_difference_of_two_means_is_that_of_an_independent_program() {
        let found = welch(&[2.0, 4.0, 6.0, 8.0], &[1.0, 2.0, 3.0]).unwrap();
        near(found, [-0.897_975, 6.897_975]);
        let one = [10.1, 9.8, 10.4, 10.2, 9.9];
        let other = [12.0, 11.2, 13.1, 12.4];
        near(welch(&one, &other).unwrap(), [-3.312_915, -0.877_085]);
    }

    #[test]
    fn values_that_never_differ_have_an_interval_of_one_point() {
        assert_eq!(welch(&[2.0, 2.0], &[1.0, 1.0]), Some([1.0, 1.0]));
        assert_eq!(welch(&[2.0, 2.0], &[1.0]), None);
    }
}
