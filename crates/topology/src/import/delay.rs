//! Delays that a tool says by their mean: netem's `delay 50ms 10ms` is 40 to 60 ms, where our
//! latency is the least and our jitter only adds (`docs/fidelity.md`). All importers ask here what a
//! latency and a jitter of theirs become. Source: tc-netem(8); the kernel's `net/sched/sch_netem.c`.

use windtunnel_model::Span;
use windtunnel_model::profile::{Jitter, JitterDistribution};

use crate::topology::{ConversionReport, LinkDirectionProperties};
use crate::yaml::jitter_value;

/// The form of a jitter around its mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum DelayJitterShape {
    /// From the mean less the jitter to the mean with it; netem's where no distribution is named.
    #[default]
    Uniform,
    /// Normal, with the jitter as its standard deviation: netem's `distribution normal`.
    Normal,
}

/// A mean with what is around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct DelayDistribution {
    pub(super) mean: Span,
    pub(super) jitter: Span,
    pub(super) shape: DelayJitterShape,
}

impl DelayDistribution {
    /// The least delay, which is our latency, and what random delay is on top of it.
    pub(super) fn parts(self) -> (Span, Jitter) {
        let DelayDistribution { mean, jitter, shape } = self;
        if jitter.is_zero() {
            return (mean, Jitter::default());
        }
        if shape == DelayJitterShape::Uniform && jitter <= mean {
            let spread = jitter.saturating_add(jitter);
            return (mean.saturating_sub(jitter), Jitter { spread, ..Jitter::default() });
        }
        let quantiles: Vec<Span> = (0..=2 * HALF).map(|percent| self.quantile(percent)).collect();
        let least = quantiles.first().copied().unwrap_or_default();
        let table = quantiles.iter().map(|quantile| quantile.saturating_sub(least)).collect();
        let distribution = JitterDistribution::Table(table);
        (least, Jitter { spread: Span::ZERO, distribution })
    }

    /// Properties with this delay and no others.
    pub(super) fn properties(self) -> LinkDirectionProperties {
        let (latency, jitter) = self.parts();
        LinkDirectionProperties { latency, jitter, ..LinkDirectionProperties::default() }
    }

    /// What a change from `before` sets: the least delay depends on the jitter, so both. `reorders`:
    /// packets overtake each other by it.
    pub(super) fn changes(
        self,
        before: DelayDistribution,
        reorders: bool,
    ) -> Vec<(&'static str, String)> {
        let (latency, jitter) = self.parts();
        let mut set = vec![("latency", latency.to_string())];
        if !(before.jitter.is_zero() && self.jitter.is_zero()) {
            set.push(("jitter", jitter_value(&jitter)));
        }
        if reorders && before.jitter.is_zero() && !self.jitter.is_zero() {
            set.push(("reorder", "jitter".to_owned()));
        }
        set
    }

    /// Says how a jitter was read, and where a part of it would be below zero.
    pub(super) fn note(self, notes: &mut ConversionReport, item: &str) {
        if self.jitter.is_zero() {
            return;
        }
        let text = match self.shape {
            DelayJitterShape::Uniform => {
                "Jitter is uniform around the latency: the least delay is the latency less the jitter"
            }
            DelayJitterShape::Normal => {
                "Jitter is normal around the latency, with this standard deviation: a table of its percentiles"
            }
        };
        notes.assume(text, "");
        if self.below_zero() {
            let text = "The jitter is so large that some delays would be below zero: those are zero, as with netem, \
                        and the mean is more than the latency";
            notes.assume(text, format!("{item} ({} ± {})", self.mean, self.jitter));
        }
    }

    fn below_zero(self) -> bool {
        self.offset(2 * HALF) > self.mean
    }

    /// The delay that this share of packets, in percent, does not exceed; none is below zero.
    fn quantile(self, percent: usize) -> Span {
        let offset = self.offset(percent);
        match percent < HALF {
            true => self.mean.saturating_sub(offset),
            false => self.mean.saturating_add(offset),
        }
    }

    /// How far that is from the mean.
    fn offset(self, percent: usize) -> Span {
        let steps = percent.abs_diff(HALF);
        let (numerator, denominator) = match self.shape {
            DelayJitterShape::Uniform => (u128::try_from(steps).unwrap_or(0), 50),
            DelayJitterShape::Normal => (u128::from(DEVIATIONS[steps]), 10_000),
        };
        let nanos =
            (u128::from(self.jitter.as_nanos()) * numerator + denominator / 2) / denominator;
        Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Percent from the mean to either end.
const HALF: usize = 50;
/// The percentiles 50 to 100 of the standard normal distribution in 1/10 000. The last one is where
/// a straight line from the one before gives a standard deviation of exactly 1.
const DEVIATIONS: [u32; HALF + 1] = [
    0, 251, 502, 753, 1_004, 1_257, 1_510, 1_764, 2_019, 2_275, 2_533, 2_793, 3_055, 3_319, 3_585,
    3_853, 4_125, 4_399, 4_677, 4_959, 5_244, 5_534, 5_828, 6_128, 6_433, 6_745, 7_063, 7_388,
    7_722, 8_064, 8_416, 8_779, 9_154, 9_542, 9_945, 10_364, 10_803, 11_264, 11_750, 12_265,
    12_816, 13_408, 14_051, 14_758, 15_548, 16_449, 17_507, 18_808, 20_537, 23_263, 29_864,
];

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    /// Mean and standard deviation in ms of a latency with a table on top: between quantiles the
    /// density is flat, so each step has the moments of a uniform variable.
    fn moments(delay: DelayDistribution) -> (f64, f64) {
        let (latency, jitter) = delay.parts();
        let JitterDistribution::Table(table) = jitter.distribution else { panic!("{jitter:?}") };
        let at = |span: Span| {
            f64::from(u32::try_from((latency + span).as_nanos() / 1_000).unwrap()) / 1_000.0
        };
        let quantiles: Vec<f64> = table.iter().map(|span| at(*span)).collect();
        let steps = quantiles.windows(2).map(|pair| (pair[0], pair[1]));
        let (mut mean, mut square) = (0.0, 0.0);
        for (a, b) in steps {
            mean += (a + b) / 2.0 / 100.0;
            square += (a * a + a * b + b * b) / 3.0 / 100.0;
        }
        (mean, (square - mean * mean).sqrt())
    }

    #[test]
    fn a_uniform_jitter_is_on_both_sides_of_the_latency() {
        let delay =
            DelayDistribution { mean: ms(50), jitter: ms(10), shape: DelayJitterShape::Uniform };
        assert_eq!(delay.parts(), (ms(40), Jitter { spread: ms(20), ..Jitter::default() }));
        let all =
            DelayDistribution { mean: ms(10), jitter: ms(10), shape: DelayJitterShape::Uniform };
        assert_eq!(all.parts(), (ms(0), Jitter { spread: ms(20), ..Jitter::default() }));
    }

    #[test]
    fn a_normal_jitter_has_the_latency_as_its_mean_and_its_deviation() {
        let (mean, deviation) = moments(DelayDistribution {
            mean: ms(100),
            jitter: ms(10),
            shape: DelayJitterShape::Normal,
        });
        assert!((mean - 100.0).abs() < 0.001, "{mean}");
        assert!((deviation - 10.0).abs() < 0.001, "{deviation}");
    }

    /// Uniform over −20 to 40 ms with all below zero at zero: the mean is ∫ x/60 from 0 to 40.
    #[test]
    fn delays_below_zero_are_zero() {
        let delay =
            DelayDistribution { mean: ms(10), jitter: ms(30), shape: DelayJitterShape::Uniform };
        let (mean, _) = moments(delay);
        assert!((mean - 40.0 * 40.0 / 120.0).abs() < 0.01, "{mean}");
        assert!(delay.below_zero());
        assert!(!DelayDistribution { mean: ms(30), ..delay }.below_zero());
    }

    #[test]
    fn a_change_of_the_latency_keeps_the_jitter_around_it() {
        let before =
            DelayDistribution { mean: ms(50), jitter: ms(10), shape: DelayJitterShape::Uniform };
        let set = DelayDistribution { mean: ms(80), ..before }.changes(before, false);
        assert_eq!(set, [("latency", "70ms".to_owned()), ("jitter", "20ms".to_owned())]);
        let none = DelayDistribution { jitter: Span::ZERO, ..before };
        assert_eq!(none.changes(before, true)[1], ("jitter", "none".to_owned()));
        assert_eq!(before.changes(none, true)[2], ("reorder", "jitter".to_owned()));
    }
}
