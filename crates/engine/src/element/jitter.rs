//! Jitter: random delay on top of the latency, never negative.
//!
//! - **Parameters**: the spread J (default 0) and a distribution: uniform over [0, J] (default);
//!   half-normal with standard deviation J, cut at 4·J; Pareto of the second kind with shape 3 and
//!   mean J, cut at 40·J; or a table of quantiles, linear in between.
//! - **Time**: each packet has a delay of its own, so trains travel in single segments. **Order**:
//!   see [`delay`](super::delay). **Bytes**: unchanged.
//! - **Drop reasons**: none.
//! - **Model**: `delay TIME JITTER distribution` of tc-netem(8), whose jitter lies around the delay
//!   and may make it shorter, and whose tables are of 4096 steps too.
//!
//! Draws are turned into delays by inverting the distribution with integer tables, so that they are
//! the same bits on every machine.

use windtunnel_model::profile::{Jitter as Setting, JitterDistribution};
use windtunnel_model::{LinkProfile, Span};

use super::quantiles;
use super::{RandomDraws, RngKey};

#[derive(Debug)]
pub(crate) struct JitterSampler {
    draws: RandomDraws,
    setting: Setting,
}

impl JitterSampler {
    pub(crate) fn new(rng: &RngKey<'_>, profile: &LinkProfile) -> Self {
        JitterSampler { draws: RandomDraws::new(rng, "jitter"), setting: profile.jitter.clone() }
    }

    pub(crate) fn set(&mut self, profile: &LinkProfile) {
        self.setting.clone_from(&profile.jitter);
    }

    pub(crate) fn is_none(&self) -> bool {
        self.setting.is_none()
    }

    /// The delay of packet `number`.
    pub(crate) fn of(&self, number: u64, copy: bool) -> Span {
        if self.is_none() {
            return Span::ZERO;
        }
        let draw = self.draws.at(number, copy);
        let spread = self.setting.spread;
        match &self.setting.distribution {
            JitterDistribution::Uniform => uniform(spread, draw),
            JitterDistribution::Normal => quantiles::scaled(quantiles::half_normal(), spread, draw),
            JitterDistribution::Pareto => quantiles::scaled(quantiles::pareto(), spread, draw),
            JitterDistribution::Table(table) => quantiles::between(table, draw),
        }
    }
}

/// Each whole nanosecond from 0 to `spread` alike.
fn uniform(spread: Span, draw: u64) -> Span {
    let nanos = (u128::from(draw) * (u128::from(spread.as_nanos()) + 1)) >> 64;
    Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
