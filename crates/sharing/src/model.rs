//! How much a flow counts where bandwidth is short.

use windtunnel_model::flow::FlowTerms;
use windtunnel_model::{Rate, Span};

/// A sharing model: the weight and the ceiling of a flow. The resulting shares are for all models
/// the same *weighted max-min*: no flow could have more without another one having less that has,
/// for its weight, no more.
///
/// # Contract
///
/// - Both functions are functions of the model and of the terms alone: no clock, no randomness, no
///   memory. The table calls them when a flow starts and when its terms change, as often as it
///   likes, and two tables with the same model must get the same weights, on any machine.
/// - Only the ratios of weights matter where flows meet. [`FlowWeight`] has 40 bits: choose a scale in
///   which the ratios that occur are held well, and exactly where that is possible.
/// - A ceiling is the most that a flow can use, regardless of the others. `None` is no ceiling.
///
/// A model that is not weighted max-min (proportional fairness, priorities) does not belong behind
/// this trait but beside [`MaxMinShares`](crate::MaxMinShares).
pub trait SharingModel {
    /// How much the flow counts on each lane of its path.
    fn weight(&self, terms: &FlowTerms) -> FlowWeight;

    /// The most that the flow may have: as a rule the lesser of its demand and of what its window
    /// allows.
    fn ceiling(&self, terms: &FlowTerms) -> Option<Rate> {
        terms.ceiling()
    }
}

/// How much a flow counts: 1 to 2⁴⁰ − 1, in a unit that the model chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowWeight(u64);

impl FlowWeight {
    /// The least weight.
    pub const LEAST: FlowWeight = FlowWeight(1);
    /// The greatest weight.
    pub const MOST: FlowWeight = FlowWeight((1 << 40) - 1);

    /// The weight of that value, or the nearest that there is.
    #[must_use]
    pub const fn nearest(value: u64) -> FlowWeight {
        match value {
            0 => FlowWeight::LEAST,
            1..=0xff_ffff_ffff => FlowWeight(value),
            _ => FlowWeight::MOST,
        }
    }

    /// Its value.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

/// SplayNet's model (Middleware 2013, section 3.2): TCP flows share a bottleneck in inverse
/// proportion to their round-trip times, ρᵢ = F·(1/RTTᵢ)/Σ(1/RTTⱼ), and what one of them cannot use
/// (since it has its bottleneck elsewhere, or since its window W bounds it, ρᵢ ≤ Wᵢ/RTTᵢ) is
/// divided in the same way among the others, until no refinement is possible.
///
/// The weight is 7 207 200 000 000 000 / RTT in nanoseconds, rounded. It is exact for every RTT
/// that divides this number, such as 1 to 16, 18, 20, 24, 25, 30, 40, 50, 60, 75, 80, 100, 120,
/// 150, 200 and 300 ms; else it is off by less than RTT/14 million seconds: one part in 10⁸ at 140
/// ms. An RTT below 10 µs counts as 10 µs: no two kernels are nearer to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RttAware;

/// Plain max-min: every flow counts the same, with any round-trip time. Windows still bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EqualFlowSharing;

/// One of the models of this crate, chosen by value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SharingModelKind {
    /// [`RttAware`], the default, as in SplayNet.
    #[default]
    RttAware,
    /// [`EqualFlowSharing`].
    Equal,
}

impl SharingModel for RttAware {
    fn weight(&self, terms: &FlowTerms) -> FlowWeight {
        let rtt = terms.rtt.max(NEAREST).as_nanos();
        FlowWeight::nearest((RTT_SCALE + rtt / 2) / rtt)
    }
}

impl SharingModel for EqualFlowSharing {
    fn weight(&self, _: &FlowTerms) -> FlowWeight {
        FlowWeight::LEAST
    }
}

impl SharingModel for SharingModelKind {
    fn weight(&self, terms: &FlowTerms) -> FlowWeight {
        match self {
            SharingModelKind::RttAware => RttAware.weight(terms),
            SharingModelKind::Equal => EqualFlowSharing.weight(terms),
        }
    }

    fn ceiling(&self, terms: &FlowTerms) -> Option<Rate> {
        match self {
            SharingModelKind::RttAware => RttAware.ceiling(terms),
            SharingModelKind::Equal => EqualFlowSharing.ceiling(terms),
        }
    }
}

/// Round-trip times below this one count as this one.
const NEAREST: Span = Span::from_micros(10);

/// 720 720 (the least number that 1 to 16 divide) · 10¹⁰: weights of 10 µs to 1 s have 40 to 23
/// bits.
const RTT_SCALE: u64 = 720_720 * 10_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(rtt: Span) -> u64 {
        RttAware.weight(&FlowTerms::new(rtt)).value()
    }

    #[test]
    fn a_weight_is_in_inverse_proportion_to_the_round_trip() {
        assert_eq!(weight(Span::from_millis(100)), 3 * weight(Span::from_millis(300)));
        let exact =
            [1, 2, 3, 5, 7, 11, 13, 14, 15, 16, 18, 24, 25, 30, 40, 60, 75, 80, 120, 150, 200];
        for millis in exact {
            assert_eq!(weight(Span::from_millis(millis)) * millis, weight(Span::from_millis(1)));
        }
    }

    #[test]
    fn the_nearest_and_the_farthest_still_have_a_weight() {
        assert_eq!(weight(Span::ZERO), weight(Span::from_micros(10)));
        assert_eq!(weight(Span::ZERO), 720_720_000_000);
        assert_eq!(weight(Span::from_nanos(u64::MAX)), 1);
    }

    #[test]
    fn weights_are_kept_within_their_bits() {
        assert_eq!(FlowWeight::nearest(0), FlowWeight::LEAST);
        assert_eq!(FlowWeight::nearest(1 << 40), FlowWeight::MOST);
        assert_eq!(FlowWeight::nearest(FlowWeight::MOST.value()), FlowWeight::MOST);
        assert!(FlowWeight::nearest(RTT_SCALE / NEAREST.as_nanos()) < FlowWeight::MOST);
    }
}
