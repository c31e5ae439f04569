//! All lanes of a plan, and what they work with.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use windtunnel_model::plan::EventAction;
use windtunnel_model::state::LaneChange;
use windtunnel_model::{DropReason, Lane, NetworkVertex, Plan, Span, Time};
use windtunnel_wire::icmp::{self, IcmpErrorReply};
use windtunnel_wire::vnet;

use crate::buffer::{PacketBuf, PacketBufferPool};
use crate::chain::{ElementChain, ElementChainRole, LaneContext, LaneLocation, TooBig};
use crate::element::RngKey;
use crate::element::trace::TraceSet;
use crate::network::{LaneEndpoint, NetworkDirectory};
use crate::packet::{EmulatedPacket, EnteringFrame, FrameOrigin, PacketTrainShape};
use crate::paths::virtual_clock::VirtualClocks;
use crate::records::{PacketRecordTag, PacketRecorder, TaggedShape};
use crate::timer::{LaneActivity, TimerHeap};

/// The lanes of a plan. A packet that a lane does not take as it is comes back, to be handled before
/// anything else is offered.
#[derive(Debug)]
pub(crate) struct LaneSet {
    /// By lane index.
    pub(crate) chains: Vec<ElementChain>,
    pub(crate) work: LaneContext,
    /// By link: its ends.
    pub(crate) vertices: Vec<[NetworkVertex; 2]>,
    returned: VecDeque<ReturnedPacket>,
}

/// A packet that a lane did not take.
#[derive(Debug)]
pub(crate) struct ReturnedPacket {
    /// When it was offered.
    pub(crate) at: Time,
    /// To which lane.
    pub(crate) lane: Lane,
    pub(crate) reason: ReturnReason,
}

/// Why a lane did not take a packet.
#[derive(Debug)]
pub(crate) enum ReturnReason {
    /// Its sender is to be sent an error.
    TooBig(TooBig),
    /// It may be fragmented with its outer header, which has to be written first.
    Unwrapped(EmulatedPacket),
}

impl LaneSet {
    /// The lanes of `plan`, each in the role that the plan's model gives it; `here` says of each port whether
    /// it is on this machine.
    pub(crate) fn new(
        plan: &Plan,
        network: &NetworkDirectory,
        here: &[bool],
        part: u32,
        packet_memory: u64,
    ) -> LaneSet {
        let traces = TraceSet::new(&plan.traces);
        let chain = |lane| {
            let is_remote = matches!(
                network.end(lane),
                LaneEndpoint::Node { port, .. } if !here[port.index()]
            );
            let role = ElementChainRole::of(plan.model, is_remote);
            chain_of(plan, network, lane, part, role, &traces)
        };
        LaneSet {
            chains: (0..plan.links.len() * 2).map(Lane::from_index).map(chain).collect(),
            work: LaneContext {
                pool: PacketBufferPool::new(packet_memory),
                timers: TimerHeap::default(),
                traces,
                now: Time::ZERO,
                clocks: VirtualClocks::of(plan),
                exits: VecDeque::new(),
                recorder: PacketRecorder::new(),
            },
            vertices: plan.links.iter().map(|link| link.ends.map(|end| end.vertex)).collect(),
            returned: VecDeque::new(),
        }
    }

    /// Begins the traces anew, at `origin`.
    pub(crate) fn start_traces(&mut self, origin: Time) {
        self.work.traces.origin = origin;
        self.chains.iter_mut().for_each(|chain| chain.follow(&self.work.traces));
    }

    /// Counts a frame that passes a lane at once, because that is clear.
    #[inline]
    pub(crate) fn pass(&mut self, now: Time, lane: Lane, frame: &EnteringFrame<'_>) {
        let chain = &mut self.chains[lane.index()];
        chain.pass(now, frame.tagged(), frame.bytes, &mut self.work.recorder);
    }

    /// Copies a frame that a node sends, for a lane; `None`: there is no memory, which is counted
    /// there.
    #[inline]
    pub(crate) fn take_in(
        &mut self,
        now: Time,
        lane: Lane,
        frame: &EnteringFrame<'_>,
    ) -> Option<EmulatedPacket> {
        let work = &mut self.work;
        let Some(buf) = work.pool.copy(frame.bytes) else {
            self.offer_without_memory(now, lane, frame.tagged(), frame.bytes);
            return None;
        };
        let FrameOrigin { port, sent, sender } = frame.origin;
        let mut packet = EmulatedPacket::new(buf, frame.vnet, frame.shape, sent, &mut work.pool);
        (packet.origin, packet.came_by) = (Some(port), frame.came_by);
        // Its shape and tag have the tunnel's header already.
        (packet.tunnel, packet.tag) = (frame.tunnel, frame.tag);
        packet.sender = sender;
        Some(packet)
    }

    /// Puts a packet on a lane at the time of its first segment. The caller asks for what comes back
    /// ([`take_returned`](LaneSet::take_returned)) before it offers another one.
    #[inline]
    pub(crate) fn offer(&mut self, now: Time, lane: Lane, packet: EmulatedPacket) {
        let chain = &mut self.chains[lane.index()];
        let may_fragment = packet.tunnel.is_some_and(|tunnel| tunnel.fragments);
        let refused = if may_fragment && !chain.takes_all(&packet.shape) {
            Some(ReturnReason::Unwrapped(packet))
        } else {
            chain.offer(now, packet, &mut self.work).map(ReturnReason::TooBig)
        };
        if let Some(reason) = refused {
            self.returned.push_back(ReturnedPacket { at: now, lane, reason });
        }
    }

    /// What a lane has not taken.
    #[inline]
    pub(crate) fn take_returned(&mut self) -> Option<ReturnedPacket> {
        self.returned.pop_front()
    }

    /// Counts an offer to a lane for which there was no memory.
    pub(crate) fn offer_without_memory(
        &mut self,
        time: Time,
        lane: Lane,
        offered: TaggedShape<'_>,
        frame: &[u8],
    ) {
        let chain = &mut self.chains[lane.index()];
        chain.offer_without_memory(time, offered, frame, &mut self.work.recorder);
    }

    /// Counts a packet that a partition keeps from a lane, and drops it.
    pub(crate) fn drop_parted(&mut self, lane: Lane, packet: EmulatedPacket) {
        let (reason, time) = (DropReason::Partition, packet.times.first);
        let (chain, recorder) = (&mut self.chains[lane.index()], &mut self.work.recorder);
        chain.offer_in_vain(reason, time, packet.tagged(), packet.frame(), recorder);
        packet.discard(&mut self.work.pool);
    }

    /// Wakes the router that sends by a lane to a LAN at `at`, for its questions.
    pub(crate) fn arm_questions(&mut self, lane: Lane, at: Option<Time>) {
        if let (Some(at), Ok(index)) = (at, u32::try_from(lane.index())) {
            let alarms = &mut self.chains[lane.index()].alarms;
            alarms.set(&mut self.work.timers, index, LaneActivity::Ask, at);
        }
    }

    /// What is recorded of a packet that the network itself sends now.
    pub(crate) fn tag(&mut self, now: Time, packet: &EmulatedPacket) -> PacketRecordTag {
        let recorder = &mut self.work.recorder;
        if !recorder.is_on() {
            return PacketRecordTag::NONE;
        }
        recorder.tag(now, packet.frame(), &packet.shape)
    }

    /// A packet of the network's own.
    pub(crate) fn own_packet(
        &mut self,
        now: Time,
        buf: PacketBuf,
        header: vnet::VirtioNetHeader,
    ) -> EmulatedPacket {
        let shape = PacketTrainShape::of(&buf, &header);
        let mut packet = EmulatedPacket::new(buf, header, shape, now, &mut self.work.pool);
        packet.tag = self.tag(now, &packet);
        packet
    }

    /// An ICMP error about a packet; `None`: there is no memory for it, or nothing to quote.
    pub(crate) fn error_about(
        &mut self,
        now: Time,
        reply: IcmpErrorReply,
        about: &EmulatedPacket,
    ) -> Option<EmulatedPacket> {
        let quoted = about.first_segment(&mut self.work.pool);
        let original = quoted.as_deref().unwrap_or(about.frame());
        let pool = &mut self.work.pool;
        let message = pool.write(ERROR_LEN_MAX, |buf| icmp::write_error(&reply, original, buf));
        quoted.into_iter().for_each(|buf| self.work.pool.give(buf));
        Some(self.own_packet(now, message?, vnet::VirtioNetHeader::default()))
    }

    /// What is at the start of a lane.
    pub(crate) fn start_of(&self, lane: Lane) -> NetworkVertex {
        self.vertices[lane.link.index()][lane.direction.index()]
    }

    /// The latency of a lane; `None`: it takes no packets now.
    pub(crate) fn latency_if_up(&self, lane: Lane) -> Option<Span> {
        let chain = &self.chains[lane.index()];
        chain.state.is_up().then(|| chain.profile().latency)
    }

    /// Changes properties and state of lanes. Whether some may have gone down or up.
    pub(crate) fn change(&mut self, now: Time, action: &EventAction) -> bool {
        let LaneSet { chains, work, vertices, .. } = self;
        let mut cuts_or_mends = false;
        action.each_lane(vertices.iter().copied(), |lane, change| {
            cuts_or_mends |= !matches!(change, LaneChange::Set(_));
            chains[lane.index()].apply(now, change, work);
        });
        cuts_or_mends
    }
}

fn chain_of(
    plan: &Plan,
    network: &NetworkDirectory,
    lane: Lane,
    part: u32,
    role: ElementChainRole,
    traces: &TraceSet,
) -> ElementChain {
    let link = &plan.links[lane.link.index()];
    let rng = RngKey { seed: plan.seed, link: &link.name, direction: lane.direction, part };
    let profile = &link.profiles[lane.direction.index()];
    let [starts, ends] = [lane.reverse(), lane].map(|lane| network.end(lane));
    let on_lan = [starts, ends].iter().any(|end| matches!(end, LaneEndpoint::Lan(_)));
    let site = LaneLocation {
        ends_at_node: matches!(ends, LaneEndpoint::Node { .. }),
        on_lan,
        routed: !on_lan || matches!(starts, LaneEndpoint::Router(_)),
    };
    ElementChain::new(lane, &rng, profile, site, role, traces)
}

/// Room for the longest ICMP error: 1280 bytes of IPv6 with the Ethernet header.
const ERROR_LEN_MAX: usize = 1294;
