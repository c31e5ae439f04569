//! What a lane does to single packets: loss, duplicate, corrupt.

use windtunnel_model::record::Kind;
use windtunnel_model::{LinkPatch, LinkProfile, Time};

use super::{LaneContext, LaneMeter};
use crate::element::RngKey;
use crate::element::corrupt::CorruptionProcess;
use crate::element::duplicate::DuplicationProcess;
use crate::element::loss::LossProcess;
use crate::element::trace::TraceSet;
use crate::packet::{EmulatedPacket, ImpairmentDecision};

/// The elements that touch packets at random.
#[derive(Debug)]
pub(super) struct PacketImpairments {
    loss: LossProcess,
    duplicate: DuplicationProcess,
    corrupt: CorruptionProcess,
}

impl PacketImpairments {
    pub(super) fn new(rng: &RngKey<'_>, profile: &LinkProfile) -> PacketImpairments {
        PacketImpairments {
            loss: LossProcess::new(rng, profile),
            duplicate: DuplicationProcess::new(rng, profile),
            corrupt: CorruptionProcess::new(rng, profile),
        }
    }

    /// Takes its traces from `traces`, which have started or are started anew.
    pub(super) fn follow(&mut self, profile: &LinkProfile, traces: &TraceSet) {
        self.loss.follow(profile, traces);
    }

    /// Takes new settings, from the packet with the number `next` on.
    pub(super) fn set(
        &mut self,
        profile: &LinkProfile,
        patch: &LinkPatch,
        next: u64,
        traces: &TraceSet,
    ) {
        if patch.loss.is_some() {
            self.loss.set(&profile.loss, next);
            self.loss.follow(profile, traces);
        }
        self.duplicate.set(profile);
        self.corrupt.set(profile);
    }

    /// Takes the values that traces have at this time.
    #[inline]
    pub(super) fn turn_to(&mut self, now: Time) {
        self.loss.turn_to(now);
    }

    /// Whether one of them may touch a packet now.
    #[inline]
    pub(super) fn touch_any(&self) -> bool {
        !(self.loss.is_none() && self.duplicate.is_none() && self.corrupt.is_none())
    }

    /// Whether none of them will touch a packet, until they are set anew.
    #[inline]
    pub(super) fn are_none(&self) -> bool {
        !self.touch_any() && self.loss.is_none_for_ever()
    }

    /// What happens to the packet of a number. Numbers must not decrease.
    pub(super) fn decide(&mut self, number: u64) -> ImpairmentDecision {
        ImpairmentDecision {
            lost: self.loss.takes(number),
            duplicate: self.duplicate.takes(number),
            corrupt: self.corrupt.takes(number, false),
        }
    }

    /// Damages a packet.
    pub(super) fn damage(
        &self,
        packet: &mut EmulatedPacket,
        meter: &mut LaneMeter,
        work: &mut LaneContext,
    ) {
        let (number, copy) = (packet.number, packet.copy);
        let (frame, vnet) = packet.settled(&mut work.pool);
        let done = self.corrupt.damage(frame, vnet, number, copy);
        meter.counters.corrupted += u64::from(done);
        if done {
            let time = packet.times.first;
            work.recorder.note(Kind::Corrupted, time, meter.label, packet, 0);
        }
    }

    /// Damages a copy that has been made, if its turn has come.
    pub(super) fn damage_copy(
        &self,
        copy: &mut EmulatedPacket,
        meter: &mut LaneMeter,
        work: &mut LaneContext,
    ) {
        if self.corrupt.takes(copy.number, true) {
            self.damage(copy, meter, work);
        }
    }
}
