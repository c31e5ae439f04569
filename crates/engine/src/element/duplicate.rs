//! Duplicate: a packet comes twice.
//!
//! - **Parameters**: a probability, default 0.
//! - **Time, order, bytes**: the copy follows right behind the original and meets all later
//!   elements (corrupt, queue, rate, delay) by itself, with random draws of its own; loss is behind
//!   it already.
//! - **Drop reasons**: none.
//! - **Model**: `duplicate` of tc-netem(8); there the copy enters the whole qdisc again and can be
//!   lost.

use windtunnel_model::{LinkProfile, Probability};

use super::{RandomDraws, RngKey};

#[derive(Debug)]
pub(crate) struct DuplicationProcess {
    draws: RandomDraws,
    probability: Probability,
}

impl DuplicationProcess {
    pub(crate) fn new(rng: &RngKey<'_>, profile: &LinkProfile) -> Self {
        DuplicationProcess {
            draws: RandomDraws::new(rng, "duplicate"),
            probability: profile.duplicate,
        }
    }

    pub(crate) fn set(&mut self, profile: &LinkProfile) {
        self.probability = profile.duplicate;
    }

    pub(crate) fn is_none(&self) -> bool {
        self.probability.is_never()
    }

    pub(crate) fn takes(&self, number: u64) -> bool {
        self.draws.decide(self.probability, number, false)
    }
}
