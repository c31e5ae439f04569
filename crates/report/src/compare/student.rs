//! Confidence intervals by Student's and Welch's t.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Half of what is outside of an interval of 95 %.
const UPPER: f64 = 0.975;

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

fn t(freedom: f64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, freedom).ok().map(|distribution| distribution.inverse_cdf(UPPER))
}

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
