//! Random loss, and its share in the long run.

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::probability::Probability;

/// Which packets vanish. Packets are numbered per link direction from 1 in the order in which they
/// were offered; every MTU segment of a super-packet counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossModel {
    /// None.
    None,
    /// Each with this probability, independently.
    Independent(Probability),
    /// Bursts: a two-state chain (Gilbert 1960, Elliott 1963). The state changes before each
    /// packet.
    GilbertElliott(GilbertElliott),
    /// Exactly the packets with these numbers (sorted, from 1).
    Listed(Vec<u64>),
}

impl LossModel {
    /// The share of packets lost in the long run (zero for a list), rounded down to parts per
    /// billion.
    #[must_use]
    pub fn long_run(&self) -> Probability {
        match self {
            LossModel::None | LossModel::Listed(_) => Probability::NEVER,
            LossModel::Independent(probability) => *probability,
            LossModel::GilbertElliott(chain) => chain.long_run(),
        }
    }
}

/// The parameters of a Gilbert–Elliott chain; it starts in the good state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct GilbertElliott {
    /// Probability of going from good to bad, per packet.
    pub good_to_bad: Probability,
    /// Probability of going from bad to good, per packet; its inverse is the mean burst length.
    pub bad_to_good: Probability,
    /// Probability of loss while good.
    pub loss_in_good: Probability,
    /// Probability of loss while bad.
    pub loss_in_bad: Probability,
}

impl GilbertElliott {
    /// Stationary loss: (r·g + p·b)/(p + r), with p, r the transitions and g, b the losses per
    /// state.
    #[must_use]
    pub fn long_run(&self) -> Probability {
        let parts = |p: Probability| u64::from(p.parts_per_billion());
        let (p, r) = (parts(self.good_to_bad), parts(self.bad_to_good));
        if p + r == 0 {
            return self.loss_in_good;
        }
        let lost = (r * parts(self.loss_in_good) + p * parts(self.loss_in_bad)) / (p + r);
        u32::try_from(lost)
            .ok()
            .and_then(Probability::from_parts_per_billion)
            .unwrap_or(Probability::ALWAYS)
    }
}
