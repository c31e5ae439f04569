//! The line of a lane: packets in flight, each with its delay.

use alloc::collections::BTreeMap;

use windtunnel_model::{Lane, LinkProfile, PortId, Time};

use super::{LaneContext, LaneLocation, LaneMeter};
use crate::element::RngKey;
use crate::element::delay::DelayLine;
use crate::element::trace::TraceSet;
use crate::packet::EmulatedPacket;
use crate::time_queue::TimeQueue;

/// What is between the server of a lane and its end.
#[derive(Debug)]
pub(super) struct PropagationLine {
    lane: Lane,
    ends_at_node: bool,
    delay: DelayLine,
    flying: TimeQueue<EmulatedPacket>,
    /// Segments in `flying`.
    packets: u64,
    /// Of a lane of paths.
    ahead: Option<AheadLane>,
}

/// A lane of paths: what enters it is brought to its end at once, with the times that it will have
/// there.
#[derive(Debug)]
struct AheadLane {
    /// It ends at a node of another machine. At a node of this one, packets wait for their times.
    is_remote: bool,
    /// By origin: no packet of it whose order is kept leaves earlier.
    floors: BTreeMap<PortId, Time>,
}

impl PropagationLine {
    /// `ahead`: of a lane of paths, whether it ends at a node of another machine.
    pub(super) fn new(
        lane: Lane,
        rng: &RngKey<'_>,
        profile: &LinkProfile,
        site: LaneLocation,
        ahead: Option<bool>,
    ) -> PropagationLine {
        PropagationLine {
            lane,
            ends_at_node: site.ends_at_node,
            delay: DelayLine::new(rng, profile, ahead.is_none()),
            flying: TimeQueue::new(),
            packets: 0,
            ahead: ahead.map(|is_remote| AheadLane { is_remote, floors: BTreeMap::new() }),
        }
    }

    /// Takes its trace from `traces`, which have started or are started anew.
    pub(super) fn follow(&mut self, profile: &LinkProfile, traces: &TraceSet) {
        self.delay.follow(profile, traces);
    }

    /// Takes new settings, for packets that enter from now on.
    pub(super) fn set(&mut self, profile: &LinkProfile, traces: &TraceSet) {
        self.delay.set(profile);
        self.delay.follow(profile, traces);
    }

    /// Whether it is of a lane of paths.
    #[inline]
    pub(super) fn is_ahead(&self) -> bool {
        self.ahead.is_some()
    }

    /// Segments in flight.
    #[inline]
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Whether packets pass at once and all alike, at `now` and later.
    #[inline]
    pub(super) fn is_none(&self, now: Time) -> bool {
        self.delay.is_none(now)
    }

    /// Whether everything from `origin` that has left is at the end by `now`.
    pub(super) fn is_free(&self, now: Time, origin: PortId) -> bool {
        let floor = self.ahead.as_ref().and_then(|ahead| ahead.floors.get(&origin));
        floor.is_none_or(|floor| *floor <= now)
    }

    /// How many segments from the front have the same fate, and so may stay together.
    #[inline]
    pub(super) fn run(&self, packet: &EmulatedPacket) -> u32 {
        self.delay.run(packet)
    }

    /// When the next packet is at the end.
    #[inline]
    pub(super) fn next(&self) -> Option<Time> {
        self.flying.next()
    }

    /// Sends a packet on its way; whether it flies, else it has come out.
    #[inline]
    pub(super) fn depart(
        &mut self,
        now: Time,
        mut packet: EmulatedPacket,
        meter: &mut LaneMeter,
        work: &mut LaneContext,
    ) -> bool {
        let departure = self.delay.depart(&packet);
        let count = u64::from(packet.shape.count);
        packet.delayed_from = packet.times.last;
        meter.counters.reordered += if departure.reordered { count } else { 0 };
        packet.times = departure.times;
        let mut now = now;
        if let Some(ahead) = &mut self.ahead {
            packet.unordered |= departure.held_back || self.delay.reorders();
            if self.ends_at_node {
                ahead.keep_order(&mut packet);
            }
            if !self.ends_at_node || ahead.is_remote {
                self.exit(packet, meter, work);
                return false;
            }
            now = work.now;
        }
        let out = if self.ends_at_node { packet.times.last } else { packet.times.first };
        // What should have left before leaves by its alarm, which has that time.
        if out == now && self.flying.next().is_none_or(|next| next > now) {
            self.exit(packet, meter, work);
            return false;
        }
        self.packets += count;
        if departure.held_back {
            self.flying.push_aside(out, packet);
        } else {
            self.flying.push(out, packet);
        }
        true
    }

    /// Lets out what is at the end.
    #[inline]
    pub(super) fn arrive(&mut self, now: Time, meter: &mut LaneMeter, work: &mut LaneContext) {
        while let Some(packet) = self.flying.pop(now) {
            self.packets -= u64::from(packet.shape.count);
            self.exit(packet, meter, work);
        }
    }

    #[inline]
    fn exit(&self, packet: EmulatedPacket, meter: &mut LaneMeter, work: &mut LaneContext) {
        meter.count_exit(&packet, work);
        work.exits.push_back((self.lane, packet));
    }
}

impl AheadLane {
    /// Lets no packet of a source be here before the one that it sent earlier.
    fn keep_order(&mut self, packet: &mut EmulatedPacket) {
        let Some(origin) = packet.origin.filter(|_| !packet.unordered) else { return };
        let floor = self.floors.entry(origin).or_default();
        let least = *floor;
        packet.times = packet.times.map(|time| time.max(least));
        *floor = packet.times.last;
    }
}
