//! One lane: the chain of elements that every packet passes, and the packets that are in it.
//!
//! Theory of operation. A packet is *offered* at the time of its first segment. Cut, MTU, loss,
//! duplicate and corrupt ([`PacketImpairments`]) decide at once, and cut a train only where they touch
//! a segment; parts whose first segment has not arrived yet wait in `ingress`. Then comes the queue
//! with its server, where the lane has a rate ([`QueueingStation`]), and the delay
//! ([`PropagationLine`]). What comes out goes to the engine through [`LaneContext::exits`]; at a router
//! when its first segment is there, so that the next link can begin with it, at a node when its last
//! is. [`LaneMeter`] counts and records all of it.
//!
//! INVARIANT: every segment offered is delivered, dropped with a reason, or counted by
//! [`ElementChain::in_lane`].

mod admit;
mod impairments;
mod meter;
mod pace;
mod propagation;
mod station;
mod transmit;

pub(crate) use pace::Pacing;

use alloc::collections::VecDeque;

use windtunnel_model::plan::NetworkModel;
use windtunnel_model::state::{LaneChange, LaneState};
use windtunnel_model::{Lane, LinkPatch, LinkProfile, PortId, Time};

use crate::buffer::PacketBufferPool;
use crate::counters::LaneClassCounters;
use crate::element::RngKey;
use crate::element::mtu::MtuLimit;
use crate::element::queue::LaneQueue;
use crate::element::trace::TraceSet;
use crate::packet::{EmulatedPacket, PacketTrainShape};
use crate::paths::virtual_clock::VirtualClocks;
use crate::records::{self, PacketRecorder, TaggedShape};
use crate::time_queue::TimeQueue;
use crate::timer::{LaneActivity, LaneWakeUp, LaneWakeUpTimes, TimerHeap};
use impairments::PacketImpairments;
use meter::LaneMeter;
use propagation::PropagationLine;
use station::QueueingStation;

/// What all lanes work with.
#[derive(Debug)]
pub(crate) struct LaneContext {
    pub(crate) pool: PacketBufferPool,
    pub(crate) timers: TimerHeap,
    pub(crate) traces: TraceSet,
    /// The moment at which all of this happens. With the model of paths packets are looked at with
    /// the times that they will have on lanes further on.
    pub(crate) now: Time,
    /// With the model of paths: what the lanes have been given to carry.
    pub(crate) clocks: VirtualClocks,
    /// Packets that came out of a lane and are to be handled now, in order.
    pub(crate) exits: VecDeque<(Lane, EmulatedPacket)>,
    pub(crate) recorder: PacketRecorder,
}

#[derive(Debug)]
pub(crate) struct ElementChain {
    /// Position among the lanes.
    index: u32,
    site: LaneLocation,
    pub(crate) meter: LaneMeter,
    pub(crate) alarms: LaneWakeUpTimes,
    mtu: MtuLimit,
    impairments: PacketImpairments,
    /// Packets that have been accepted and are not there yet.
    ingress: TimeQueue<EmulatedPacket>,
    /// Segments in `ingress`.
    coming: u64,
    station: QueueingStation,
    line: PropagationLine,
    /// The last of all: what cuts the lane is beside its number and MTU in memory.
    pub(crate) state: LaneState,
}

/// What a chain does in its network model.
#[derive(Debug)]
pub(crate) enum ElementChainRole {
    /// A lane: packets wait in its queue and in flight, and are handled when they are there.
    Lane,
    /// The queue at the source of a path, paced to the shares of its flows; `None`: by its rate
    /// alone.
    Shaper(Option<Pacing>),
    /// A lane of paths. It has no queue and no rate of its own, and what enters it is brought to
    /// its end at once, with the times that it will have there.
    Ahead {
        /// It ends at a node of another machine. At a node of this one, packets wait for their
        /// times.
        is_remote: bool,
    },
}

/// Where a lane lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LaneLocation {
    /// Trains leave when their last segment does, not their first.
    pub(crate) ends_at_node: bool,
    /// It leads to or from a LAN.
    pub(crate) on_lan: bool,
    /// It starts where packets may be fragmented and senders are sent an MTU: not at a LAN, which
    /// knows of frames only, nor at a node on a LAN, whose kernel has fragmented what it
    /// wanted to.
    pub(crate) routed: bool,
}

/// A packet that the MTU refused, as it was, for the message to its sender.
#[derive(Debug)]
pub(crate) struct TooBig {
    pub(crate) packet: EmulatedPacket,
    pub(crate) mtu: u32,
}

impl ElementChain {
    pub(crate) fn new(
        lane: Lane,
        rng: &RngKey<'_>,
        profile: &LinkProfile,
        site: LaneLocation,
        role: ElementChainRole,
        traces: &TraceSet,
    ) -> Self {
        let (ahead, pacing) = match role {
            ElementChainRole::Lane => (None, None),
            ElementChainRole::Shaper(pacing) => (None, pacing),
            ElementChainRole::Ahead { is_remote } => (Some(is_remote), None),
        };
        let mut chain = ElementChain {
            index: u32::try_from(lane.index()).unwrap_or(u32::MAX),
            site,
            meter: LaneMeter::new(records::number(lane), site, profile),
            alarms: LaneWakeUpTimes::default(),
            mtu: MtuLimit(profile.mtu),
            impairments: PacketImpairments::new(rng, profile),
            ingress: TimeQueue::new(),
            coming: 0,
            station: QueueingStation::new(rng, profile, pacing, ahead.is_some()),
            line: PropagationLine::new(lane, rng, profile, site, ahead),
            state: LaneState::new(profile.clone()),
        };
        chain.follow(traces);
        chain
    }

    /// Takes its traces from `traces`, which have started or are started anew.
    pub(crate) fn follow(&mut self, traces: &TraceSet) {
        self.station.follow(&self.state.profile, traces, None);
        self.line.follow(&self.state.profile, traces);
        self.impairments.follow(&self.state.profile, traces);
    }

    pub(crate) fn profile(&self) -> &LinkProfile {
        &self.state.profile
    }

    /// The most packets and bytes that waited since the last call.
    pub(crate) fn take_queue_peak(&mut self) -> (u64, u64) {
        self.meter.take_queue_peak()
    }

    /// Segments inside.
    pub(crate) fn in_lane(&self) -> u64 {
        self.coming + self.station.packets() + self.line.packets()
    }

    /// The queue, for its classes.
    pub(crate) fn queue(&mut self) -> &mut LaneQueue {
        &mut self.station.queue
    }

    /// What the classes that share the queue did.
    pub(crate) fn classes(&self) -> Option<LaneClassCounters> {
        self.station.queue.classes()
    }

    /// The number of the next segment that is offered, not counting what kernels send to a LAN of
    /// their own accord.
    pub(crate) fn next_number(&self) -> u64 {
        self.meter.next
    }

    /// Whether a segment that was offered under this number, or before it, is in the queue or in
    /// transmission. For queues that keep the order.
    pub(crate) fn waits_for(&self, number: u64) -> bool {
        self.station.waits_for(number)
    }

    /// Whether a packet of this shape, offered now, passes at once and unchanged.
    #[inline]
    pub(crate) fn is_clear(&self, now: Time, shape: &PacketTrainShape) -> bool {
        self.state.is_up()
            && self.station.is_open()
            && self.line.is_none(now)
            && self.impairments.are_none()
            && self.mtu.takes_all(shape)
            && self.in_lane() == 0
    }

    /// Whether everything from `origin` that has left this lane is at its end by `now`.
    pub(crate) fn is_free(&self, now: Time, origin: PortId) -> bool {
        self.line.is_free(now, origin)
    }

    /// Counts a packet that passes because the lane is clear.
    pub(crate) fn pass(
        &mut self,
        now: Time,
        passes: TaggedShape<'_>,
        frame: &[u8],
        recorder: &mut PacketRecorder,
    ) {
        self.meter.count_passage(now, passes, frame, recorder);
    }

    /// Takes a change of the network over.
    pub(crate) fn apply(&mut self, now: Time, change: LaneChange<'_>, work: &mut LaneContext) {
        match change {
            LaneChange::Set(patch) => self.patch(now, patch, work),
            _ => self.state.apply(change),
        }
    }

    /// Changes properties from `now` on.
    pub(crate) fn patch(&mut self, now: Time, patch: &LinkPatch, work: &mut LaneContext) {
        self.station.advance(now);
        self.state.apply(LaneChange::Set(patch));
        let profile = &self.state.profile;
        self.mtu = MtuLimit(profile.mtu);
        self.meter.set(profile);
        self.impairments.set(profile, patch, self.meter.next, &work.traces);
        self.station.set(now, profile, &work.traces);
        if patch.latency.is_some() || patch.jitter.is_some() || patch.reorder.is_some() {
            self.line.set(profile, &work.traces);
        }
        if self.station.server.is_idle() {
            self.transmit(now, work);
        }
        self.meter.note_queue(self.station.queued());
    }

    /// Paces what is sent from the next packet on; `None`: the rate alone does. For shapers.
    pub(crate) fn set_pacing(&mut self, pacing: Option<Pacing>) {
        self.station.set_pacing(pacing);
    }

    /// Something that was waited for is there.
    #[inline]
    pub(crate) fn wake(&mut self, due: LaneWakeUp, work: &mut LaneContext) {
        let now = due.at;
        match due.activity {
            LaneActivity::Ingress => {
                while let Some(packet) = self.ingress.pop(now) {
                    self.coming -= u64::from(packet.shape.count);
                    self.touch(now, packet, work);
                }
                self.arm(LaneActivity::Ingress, self.ingress.next(), work);
            }
            // The engine's own business.
            LaneActivity::Ask => {}
            LaneActivity::Server => self.end_transmission(now, work),
            LaneActivity::Delay => {
                self.line.arrive(now, &mut self.meter, work);
                self.arm(LaneActivity::Delay, self.line.next(), work);
            }
        }
    }

    #[inline]
    fn arm(&mut self, activity: LaneActivity, at: Option<Time>, work: &mut LaneContext) {
        if let Some(at) = at {
            self.alarms.set(&mut work.timers, self.index, activity, at);
        }
    }

    /// Whether every segment of this shape fits its MTU.
    pub(crate) fn takes_all(&self, shape: &PacketTrainShape) -> bool {
        self.mtu.takes_all(shape)
    }

    /// Whether it starts where packets may be fragmented and senders are sent an MTU.
    pub(crate) fn is_routed(&self) -> bool {
        self.site.routed
    }
}

impl ElementChainRole {
    /// What a lane is by a model, which ends at a node of another machine or does not.
    pub(crate) fn of(model: NetworkModel, is_remote: bool) -> Self {
        match model {
            NetworkModel::Hops => ElementChainRole::Lane,
            NetworkModel::Paths(_) => ElementChainRole::Ahead { is_remote },
        }
    }
}

/// The first number of what kernels send of their own accord on a LAN: far from those of programs,
/// whose random draws it must not change.
pub(crate) const OWN_NUMBERS: u64 = 1 << 63;
