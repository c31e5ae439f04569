//! Delay: the time from the end of a packet's transmission to its arrival: latency, jitter,
//! reorder.
//!
//! - **Parameters**: the latency (default 0), perhaps of a [`trace`](super::trace),
//!   [`jitter`](super::jitter), [`reorder`](super::reorder).
//! - **Time**: adds latency and jitter. A change holds for packets that enter afterwards; a trace
//!   is asked when a packet enters.
//! - **Order**: kept: a packet leaves no earlier than the one before it, so a shorter delay waits
//!   for the longer one in front. Not kept where `reorder.by_jitter` is set, nor by packets that
//!   reorder holds back, for which no later packet waits.
//! - **Bytes**: unchanged. Trains stay whole except where jitter, reorder or a trace touches a
//!   segment.
//! - **Drop reasons**: none; the number of packets in flight is bounded by the engine's memory
//!   only.
//! - **Model**: `delay` of tc-netem(8), whose `limit` counts packets in flight as if they queued.

use windtunnel_model::{LinkProfile, Span, Time};

use super::RngKey;
use super::jitter::JitterSampler;
use super::reorder::ReorderProcess;
use super::trace::{TracePlayback, TraceSet, TracedProperty};
use crate::packet::{EmulatedPacket, PacketTrainTimes};

#[derive(Debug)]
pub(crate) struct DelayLine {
    latency: Span,
    trace: Option<TracePlayback>,
    jitter: JitterSampler,
    reorder: ReorderProcess,
    /// Whether packets come here in the order of their times, so that their order can be kept.
    in_order: bool,
    /// No packet whose order is kept leaves earlier.
    floor: Time,
    /// The latest departure of a packet whose order is kept.
    latest: Time,
}

/// What the delay decided about a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DelayDecision {
    pub(crate) times: PacketTrainTimes,
    /// Whether others may be expected to overtake it.
    pub(crate) held_back: bool,
    /// Whether it was held back, or overtakes another one.
    pub(crate) reordered: bool,
}

impl DelayLine {
    pub(crate) fn new(rng: &RngKey<'_>, profile: &LinkProfile, in_order: bool) -> Self {
        DelayLine {
            latency: profile.latency,
            trace: None,
            jitter: JitterSampler::new(rng, profile),
            reorder: ReorderProcess::new(rng, profile),
            in_order,
            floor: Time::ZERO,
            latest: Time::ZERO,
        }
    }

    /// Whether packets may overtake others on purpose.
    pub(crate) fn reorders(&self) -> bool {
        self.reorder.by_jitter()
    }

    /// Takes new settings, for packets that enter from now on.
    pub(crate) fn set(&mut self, profile: &LinkProfile) {
        self.latency = profile.latency;
        self.jitter.set(profile);
        self.reorder.set(profile);
        if self.in_order {
            self.floor = self.floor.max(self.latest);
        }
    }

    /// Takes the trace that `profile` names, or none.
    pub(crate) fn follow(&mut self, profile: &LinkProfile, traces: &TraceSet) {
        self.trace = traces.series(profile.traces.latency, TracedProperty::Latency);
    }

    /// Whether packets pass at once and all alike, at `now` and later.
    pub(crate) fn is_none(&self, now: Time) -> bool {
        let plain = self.jitter.is_none() && self.reorder.is_none();
        plain && self.trace.is_none() && self.latency.is_zero() && self.floor <= now
    }

    /// How many segments from the front have the same fate, and so may stay together.
    #[inline]
    pub(crate) fn run(&self, packet: &EmulatedPacket) -> u32 {
        let spread = packet.times.last > packet.times.first;
        if !self.jitter.is_none() || (self.trace.is_some() && spread) {
            return 1;
        }
        if self.reorder.is_none() {
            return packet.shape.count;
        }
        let held = self.reorder.first_held(packet.number, packet.shape.count, packet.copy);
        held.map_or(packet.shape.count, |index| index.max(1))
    }

    /// When a packet that enters at its times leaves. It must be no longer than [`DelayLine::run`]
    /// says.
    #[inline]
    pub(crate) fn depart(&mut self, packet: &EmulatedPacket) -> DelayDecision {
        let (number, copy) = (packet.number, packet.copy);
        let latency = self.trace.as_ref().map(|trace| trace.at(packet.times.first));
        let latency = latency.map_or(self.latency, Span::from_nanos);
        let drawn = latency + self.jitter.of(number, copy);
        let times = packet.times.map(|time| time + drawn);
        if let Some(extra) = self.reorder.hold(number, packet.shape.count, copy) {
            let times = times.map(|time| time + extra);
            return DelayDecision { times, held_back: true, reordered: true };
        }
        if self.reorder.by_jitter() {
            let reordered = times.first < self.latest;
            self.latest = self.latest.max(times.last);
            return DelayDecision { times, held_back: false, reordered };
        }
        if !self.in_order {
            return DelayDecision { times, held_back: false, reordered: false };
        }
        let floor = self.floor;
        let times = times.map(|time| time.max(floor));
        self.latest = self.latest.max(times.last);
        if !self.jitter.is_none() || self.trace.is_some() {
            self.floor = self.floor.max(times.last);
        }
        DelayDecision { times, held_back: false, reordered: false }
    }
}
