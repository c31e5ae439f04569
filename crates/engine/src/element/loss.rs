//! Loss: packets vanish.
//!
//! - **Parameters**: none (default); a probability; a Gilbert–Elliott chain of four probabilities;
//!   a list of packet numbers; or a [`trace`](super::trace) of probabilities, asked when a packet
//!   is offered.
//! - **Time, order, bytes**: unchanged for those that remain; a train loses just the segments
//!   concerned.
//! - **Drop reasons**: `loss`.
//! - **Model**: `loss random` and `loss gemodel` of tc-netem(8); Gilbert 1960, Elliott 1963. Here
//!   the chain's state changes *before* each packet, it starts in the good state (also when it is
//!   set anew), and its steps count packets offered to the lane, so also those that a cut kept out.
//!   netem's correlation parameter is not offered: its own page calls it wrong.
//!
//! The fate of packet n depends on seed, link, direction and n alone.

use alloc::vec::Vec;

use windtunnel_model::profile::{GilbertElliott, LossModel as Setting};
use windtunnel_model::random::RandomStream;
use windtunnel_model::{LinkProfile, Probability, Time};

use super::RngKey;
use super::trace::{TracePlayback, TraceSet, TracedProperty};
use crate::chain::OWN_NUMBERS;

#[derive(Debug)]
pub(crate) struct LossProcess {
    draws: RandomStream,
    states: RandomStream,
    kind: LossProcessKind,
    trace: Option<TracePlayback>,
}

#[derive(Debug)]
enum LossProcessKind {
    None,
    Independent(Probability),
    Bursts(GilbertElliottChain),
    /// Sorted.
    Listed(Vec<u64>),
}

#[derive(Debug)]
struct GilbertElliottChain {
    setting: GilbertElliott,
    bad: bool,
    /// The packet that the state is of.
    number: u64,
}

impl LossProcess {
    pub(crate) fn new(rng: &RngKey<'_>, profile: &LinkProfile) -> Self {
        let mut loss = LossProcess {
            draws: rng.stream("loss"),
            states: rng.stream("loss-state"),
            kind: LossProcessKind::None,
            trace: None,
        };
        loss.set(&profile.loss, 1);
        loss
    }

    /// Takes a new setting, from packet `next` on.
    pub(crate) fn set(&mut self, setting: &Setting, next: u64) {
        self.kind = match setting {
            Setting::None => LossProcessKind::None,
            Setting::Independent(probability) if probability.is_never() => LossProcessKind::None,
            Setting::Independent(probability) => LossProcessKind::Independent(*probability),
            Setting::GilbertElliott(setting) => LossProcessKind::Bursts(GilbertElliottChain {
                setting: *setting,
                bad: false,
                number: next.saturating_sub(1),
            }),
            Setting::Listed(numbers) => LossProcessKind::Listed(numbers.clone()),
        };
    }

    /// Takes the trace that `profile` names, or none.
    pub(crate) fn follow(&mut self, profile: &LinkProfile, traces: &TraceSet) {
        self.trace = traces.series(profile.traces.loss, TracedProperty::Loss);
    }

    /// Takes the trace's value of this time.
    pub(crate) fn turn_to(&mut self, now: Time) {
        let Some(trace) = &self.trace else { return };
        let parts = u32::try_from(trace.at(now)).unwrap_or(u32::MAX);
        let loss = Probability::from_parts_per_billion(parts).unwrap_or(Probability::ALWAYS);
        self.kind = if loss.is_never() {
            LossProcessKind::None
        } else {
            LossProcessKind::Independent(loss)
        };
    }

    /// Whether no packet vanishes, now and later.
    pub(crate) fn is_none_for_ever(&self) -> bool {
        self.is_none() && self.trace.is_none()
    }

    pub(crate) fn is_none(&self) -> bool {
        matches!(self.kind, LossProcessKind::None)
    }

    /// Whether packet `number` vanishes. Numbers must not decrease.
    pub(crate) fn takes(&mut self, number: u64) -> bool {
        match &mut self.kind {
            LossProcessKind::None => false,
            LossProcessKind::Independent(probability) => probability.decides(self.draws.at(number)),
            LossProcessKind::Bursts(chain) => {
                // What kernels send of their own accord finds the times as programs' packets left
                // them.
                if number < OWN_NUMBERS {
                    chain.advance(&self.states, number);
                }
                chain.probability().decides(self.draws.at(number))
            }
            LossProcessKind::Listed(numbers) => numbers.binary_search(&number).is_ok(),
        }
    }
}

impl GilbertElliottChain {
    fn advance(&mut self, states: &RandomStream, number: u64) {
        while self.number < number {
            self.number += 1;
            let setting = &self.setting;
            let change = if self.bad { setting.bad_to_good } else { setting.good_to_bad };
            self.bad ^= change.decides(states.at(self.number));
        }
    }

    fn probability(&self) -> Probability {
        if self.bad { self.setting.loss_in_bad } else { self.setting.loss_in_good }
    }
}
