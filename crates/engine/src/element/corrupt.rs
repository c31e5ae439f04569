//! Corrupt: one bit of a packet is flipped.
//!
//! - **Parameters**: a probability, default 0.
//! - **Time, order**: unchanged.
//! - **Bytes**: a random bit of the transport payload (of the header, where there is none), after
//!   the checksum has been completed, so that the receiver's check really fails. Packets that are
//!   no IP, or have no byte to damage, pass unharmed and uncounted.
//! - **Drop reasons**: none; it is the receiver that drops.
//! - **Model**: `corrupt` of tc-netem(8), which flips a bit anywhere and leaves checksums that are
//!   still to be computed alone, so that on a virtual link the error would stay unnoticed.

use windtunnel_model::{LinkProfile, Probability};
use windtunnel_wire::{corrupt, vnet};

use super::{RandomDraws, RngKey};

#[derive(Debug)]
pub(crate) struct CorruptionProcess {
    draws: RandomDraws,
    bits: RandomDraws,
    probability: Probability,
}

impl CorruptionProcess {
    pub(crate) fn new(rng: &RngKey<'_>, profile: &LinkProfile) -> Self {
        CorruptionProcess {
            draws: RandomDraws::new(rng, "corrupt"),
            bits: RandomDraws::new(rng, "corrupt-bit"),
            probability: profile.corrupt,
        }
    }

    pub(crate) fn set(&mut self, profile: &LinkProfile) {
        self.probability = profile.corrupt;
    }

    pub(crate) fn is_none(&self) -> bool {
        self.probability.is_never()
    }

    pub(crate) fn takes(&self, number: u64, copy: bool) -> bool {
        self.draws.decide(self.probability, number, copy)
    }

    /// Damages the frame of packet `number`; whether there was something to damage.
    pub(crate) fn damage(
        &self,
        frame: &mut [u8],
        vnet: &mut vnet::VirtioNetHeader,
        number: u64,
        copy: bool,
    ) -> bool {
        corrupt::corrupt(frame, vnet, self.bits.at(number, copy))
    }
}
