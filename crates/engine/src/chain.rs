//! One lane: the chain of elements that every packet passes, and the packets that are in it.
//!
//! Theory of operation. A packet is *offered* at the time of its first segment. Cut, MTU, loss,
//! duplicate and corrupt decide at once, and cut a train only where they touch a segment; parts
//! whose first segment has not arrived yet wait in `ingress`. Then comes the queue with its server,
//! where the lane has a rate, and the delay. What comes out goes to the engine through
//! [`LaneContext::exits`]; at a router when its first segment is there, so that the next link can begin
//! with it, at a node when its last is.
//!
//! INVARIANT: every segment offered is delivered, dropped with a reason, or counted by
//! [`ElementChain::in_lane`].

mod admit;
mod pace;
mod transmit;

pub(crate) use pace::Pacing;

use alloc::collections::{BTreeMap, VecDeque};
use core::ops::Range;

use windtunnel_model::record::Kind;
use windtunnel_model::{Lane, LinkPatch, LinkProfile, PortId, Time};

use crate::buffer::PacketBufferPool;
use crate::counters::{Classes, DropReason, LaneCounters};
use crate::element::RngKey;
use crate::element::corrupt::Corrupt;
use crate::element::cut::LaneCut;
use crate::element::delay::DelayLine;
use crate::element::duplicate::Duplicate;
use crate::element::loss::LossProcess;
use crate::element::mtu::MtuLimit;
use crate::element::queue::LaneQueue;
use crate::element::rate::LaneTransmitter;
use crate::element::trace::TraceSet;
use crate::housekeeping;
use crate::packet::{EmulatedPacket, PacketTrainShape, SenderClass};
use crate::paths::virtual_clock::VirtualClocks;
use crate::records::{self, PacketRecorder, TaggedShape};
use crate::time_queue::TimeQueue;
use crate::timer::{Alarms, LaneActivity, LaneWakeUp, TimerHeap};

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
    /// Of the packet that enters.
    pub(crate) sender: SenderClass,
    /// When the packet that enters was sent.
    pub(crate) sent: Time,
}

#[derive(Debug)]
pub(crate) struct ElementChain {
    lane: Lane,
    /// Position among the lanes.
    index: u32,
    /// Its number in records.
    pub(crate) label: u32,
    site: LaneLocation,
    profile: LinkProfile,
    pub(crate) counters: LaneCounters,
    /// The most packets and bytes that waited since the last [`ElementChain::take_queue_peak`].
    queue_peak: (u64, u64),
    pub(crate) alarms: Alarms,
    /// The number of the next packet.
    next: u64,
    /// The same, for what kernels send of their own accord on a LAN.
    next_own: u64,
    pub(crate) cut: LaneCut,
    mtu: MtuLimit,
    loss: LossProcess,
    duplicate: Duplicate,
    corrupt: Corrupt,
    ingress: TimeQueue<EmulatedPacket>,
    queue: LaneQueue,
    server: LaneTransmitter,
    delay: DelayLine,
    line: TimeQueue<EmulatedPacket>,
    /// Segments in `ingress` and `line`.
    lined_up: u64,
    role: Role,
}

/// What a chain does in its network model.
#[derive(Debug)]
pub(crate) enum Role {
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
        /// By origin: no packet of it whose order is kept leaves earlier.
        floors: BTreeMap<PortId, Time>,
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
        role: Role,
        traces: &TraceSet,
    ) -> Self {
        let is_ahead = role.is_ahead();
        let mut chain = ElementChain {
            lane,
            index: u32::try_from(lane.index()).unwrap_or(u32::MAX),
            label: records::number(lane),
            site,
            profile: profile.clone(),
            counters: LaneCounters::default(),
            queue_peak: (0, 0),
            alarms: Alarms::default(),
            next: 1,
            next_own: OWN_NUMBERS,
            cut: LaneCut::default(),
            mtu: MtuLimit(profile.mtu),
            loss: LossProcess::new(rng, profile),
            duplicate: Duplicate::new(rng, profile),
            corrupt: Corrupt::new(rng, profile),
            ingress: TimeQueue::new(),
            queue: LaneQueue::new(rng, profile),
            server: if is_ahead {
                LaneTransmitter::without_rate(profile)
            } else {
                LaneTransmitter::new(profile)
            },
            delay: DelayLine::new(rng, profile, !is_ahead),
            line: TimeQueue::new(),
            lined_up: 0,
            role,
        };
        chain.follow(traces);
        chain
    }

    /// Takes its traces from `traces`, which have started or are started anew.
    pub(crate) fn follow(&mut self, traces: &TraceSet) {
        if !self.role.is_ahead() {
            self.server.follow(&self.profile, traces, None);
        }
        self.delay.follow(&self.profile, traces);
        self.loss.follow(&self.profile, traces);
    }

    pub(crate) fn profile(&self) -> &LinkProfile {
        &self.profile
    }

    /// The most packets and bytes that waited since the last call.
    pub(crate) fn take_queue_peak(&mut self) -> (u64, u64) {
        let now = (self.counters.queue_packets, self.counters.queue_bytes);
        core::mem::replace(&mut self.queue_peak, now)
    }

    /// Segments inside.
    pub(crate) fn in_lane(&self) -> u64 {
        self.lined_up + self.queue.packets() + self.server.packets()
    }

    /// The queue, for its classes.
    pub(crate) fn queue(&mut self) -> &mut LaneQueue {
        &mut self.queue
    }

    /// What the classes that share the queue did.
    pub(crate) fn classes(&self) -> Option<Classes> {
        self.queue.classes()
    }

    /// The number of the next segment that is offered, not counting what kernels send to a LAN of
    /// their own accord.
    pub(crate) fn next_number(&self) -> u64 {
        self.next
    }

    /// Whether a segment that was offered under this number, or before it, is in the queue or in
    /// transmission. For queues that keep the order.
    pub(crate) fn waits_for(&self, number: u64) -> bool {
        let oldest = self.server.number().or_else(|| self.queue.oldest());
        oldest.is_some_and(|oldest| oldest <= number)
    }

    /// Whether a packet of this shape, offered now, passes at once and unchanged.
    #[inline]
    pub(crate) fn is_clear(&self, now: Time, shape: &PacketTrainShape) -> bool {
        self.cut.refuses().is_none()
            && self.server.rate().is_none()
            && self.delay.is_none(now)
            && !self.touches()
            && self.loss.is_none_for_ever()
            && self.mtu.takes_all(shape)
            && self.in_lane() == 0
            && self.server.is_idle()
    }

    /// Whether everything from `origin` that has left this lane is at its end by `now`.
    pub(crate) fn is_free(&self, now: Time, origin: PortId) -> bool {
        match &self.role {
            Role::Ahead { floors, .. } => floors.get(&origin).is_none_or(|floor| *floor <= now),
            Role::Lane | Role::Shaper(_) => true,
        }
    }

    /// Counts a packet that passes because the lane is clear.
    pub(crate) fn pass(
        &mut self,
        now: Time,
        shape: &PacketTrainShape,
        frame: &[u8],
        recorder: &mut PacketRecorder,
    ) {
        let tag = recorder.entering();
        if recorder.wants(&tag) {
            let what = TaggedShape { tag: &tag, shape };
            recorder.write(Kind::Offered, now, self.label, what, tag.ack);
            recorder.write(Kind::Delivered, now, self.label, what, 0);
        }
        self.count_offer(shape, frame);
        self.counters.delay_count += u64::from(shape.count);
        self.count_delivery(shape);
    }

    /// Changes properties from `now` on.
    pub(crate) fn patch(&mut self, now: Time, patch: &LinkPatch, work: &mut LaneContext) {
        self.queue.advance(now, &self.server);
        patch.apply_to(&mut self.profile);
        self.mtu = MtuLimit(self.profile.mtu);
        if patch.loss.is_some() {
            self.loss.set(&self.profile.loss, self.next);
            self.loss.follow(&self.profile, &work.traces);
        }
        self.duplicate.set(&self.profile);
        self.corrupt.set(&self.profile);
        self.queue.set(now, &self.profile);
        if self.role.is_ahead() {
            self.server = LaneTransmitter::without_rate(&self.profile);
        } else {
            self.server.set(&self.profile);
            self.server.follow(&self.profile, &work.traces, Some(now));
        }
        if patch.latency.is_some() || patch.jitter.is_some() || patch.reorder.is_some() {
            self.delay.set(&self.profile);
            self.delay.follow(&self.profile, &work.traces);
        }
        if self.server.is_idle() {
            self.transmit(now, work);
        }
        self.note_queue();
    }

    /// Something that was waited for is there.
    #[inline]
    pub(crate) fn wake(&mut self, due: LaneWakeUp, work: &mut LaneContext) {
        let now = due.at;
        match due.activity {
            LaneActivity::Ingress => {
                while let Some(packet) = self.ingress.pop(now) {
                    self.lined_up -= u64::from(packet.shape.count);
                    self.touch(now, packet, work);
                }
                self.arm(LaneActivity::Ingress, self.ingress.next(), work);
            }
            // The engine's own business.
            LaneActivity::Ask => {}
            LaneActivity::Server => self.end_transmission(now, work),
            LaneActivity::Delay => {
                while let Some(packet) = self.line.pop(now) {
                    self.lined_up -= u64::from(packet.shape.count);
                    self.exit(packet, work);
                }
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

    #[inline]
    fn exit(&mut self, packet: EmulatedPacket, work: &mut LaneContext) {
        self.count_delivery(&packet.shape);
        self.counters.count_delay(&packet);
        self.counters.marked += u64::from(packet.marked);
        if work.recorder.wants(&packet.tag) {
            let (time, delay) = (packet.times.last, packet.times.last.since(packet.delayed_from));
            let delay = records::saturate(delay);
            work.recorder.note(Kind::Delivered, time, self.label, &packet, delay);
        }
        work.exits.push_back((self.lane, packet));
    }

    /// Counts segments of a packet, the first of them here at `time`, as dropped.
    fn drop(
        &mut self,
        reason: DropReason,
        time: Time,
        packet: &EmulatedPacket,
        range: Range<u32>,
        work: &mut LaneContext,
    ) {
        self.counters.dropped[reason] += u64::from(range.end - range.start);
        work.recorder.note_drop(reason, time, self.label, packet, range);
    }

    /// Whether every segment of this shape fits its MTU.
    pub(crate) fn takes_all(&self, shape: &PacketTrainShape) -> bool {
        self.mtu.takes_all(shape)
    }

    /// Whether it starts where packets may be fragmented and senders are sent an MTU.
    pub(crate) fn is_routed(&self) -> bool {
        self.site.routed
    }

    #[inline]
    fn count_offer(&mut self, shape: &PacketTrainShape, frame: &[u8]) -> u64 {
        let own = self.site.on_lan && housekeeping::is_kernels_own(frame);
        let next = if own { &mut self.next_own } else { &mut self.next };
        let number = *next;
        *next += u64::from(shape.count);
        self.counters.offered_packets += u64::from(shape.count);
        self.counters.offered_bytes += shape.bytes();
        number
    }

    #[inline]
    fn count_delivery(&mut self, shape: &PacketTrainShape) {
        self.counters.delivered_packets += u64::from(shape.count);
        self.counters.delivered_bytes += shape.bytes();
        self.counters.delivered_wire_bytes += shape.charge(self.server.overhead());
    }
}

impl Role {
    /// A lane of paths.
    pub(crate) fn ahead(is_remote: bool) -> Self {
        Role::Ahead { is_remote, floors: BTreeMap::new() }
    }

    fn is_ahead(&self) -> bool {
        matches!(self, Role::Ahead { .. })
    }
}

/// The first number of what kernels send of their own accord on a LAN: far from those of programs,
/// whose random draws it must not change.
pub(crate) const OWN_NUMBERS: u64 = 1 << 63;
