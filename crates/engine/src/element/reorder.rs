//! Reorder: some packets are held back so that later ones overtake them.
//!
//! - **Parameters**: a probability (default 0) and the time `extra` that a chosen packet is held
//!   back on top of its delay; `by_jitter` (default false): whether jitter alone may change the
//!   order.
//! - **Time**: a chosen packet leaves `extra` later. **Order**: the others do not wait for it.
//!   **Bytes**: unchanged.
//! - **Drop reasons**: none.
//! - **Model**: `reorder` of tc-netem(8) the other way round: there the chosen packets skip the
//!   delay and all others are delayed; here the latency stays the least that a packet can take.

use windtunnel_model::profile::Reorder as Setting;
use windtunnel_model::{LinkProfile, Span};

use super::{Draws, RngKey};

#[derive(Debug)]
pub(crate) struct Reorder {
    draws: Draws,
    setting: Setting,
}

impl Reorder {
    pub(crate) fn new(rng: &RngKey<'_>, profile: &LinkProfile) -> Self {
        Reorder { draws: Draws::new(rng, "reorder"), setting: profile.reorder }
    }

    pub(crate) fn set(&mut self, profile: &LinkProfile) {
        self.setting = profile.reorder;
    }

    pub(crate) fn is_none(&self) -> bool {
        self.setting.probability.is_never()
    }

    pub(crate) fn by_jitter(&self) -> bool {
        self.setting.by_jitter
    }

    /// How long packet `number` is held back; `None`: it is not chosen.
    pub(crate) fn holds(&self, number: u64, copy: bool) -> Option<Span> {
        self.draws.decide(self.setting.probability, number, copy).then_some(self.setting.extra)
    }
}
