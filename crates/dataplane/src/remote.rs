//! Packets to and from nodes on other machines, and the flows there.
//!
//! A packet for another machine goes there at once, with the time at which it is to leave that
//! machine's engine for its node. There it is held until that time, so that what the network
//! between the machines takes adds no delay; what could not be hidden is lateness, counted
//! where the packet arrives.

mod buffer_pool;
mod flows;
mod pairs;
mod release_queue;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd};

use windtunnel_engine::{Engine, FrameDeparture, ImmediateDeparture, NetworkPart};
use windtunnel_model::flow::{ActiveFlow, FlowChange, FlowKey};
use windtunnel_model::{Lane, Plan, PortId, Span, Time};
use windtunnel_trace::lateness::LatenessHistogram;
use windtunnel_tunnel::{Label, OutgoingFrame, ReceivedFrame, TunnelCounters, UdpTunnel};
use windtunnel_wire::vnet;

use super::crossed::LocalFlowLanes;
use buffer_pool::BufferPool;
use pairs::PeerPathMonitor;
pub use pairs::{OneWay, PeerSilencePeriod, PeerTraffic};
pub(super) use release_queue::ReleaseQueueEntry;
use release_queue::{Address, ReleaseQueue};
pub use traffic::InterMachineTraffic;

/// The other machines, as the packet loop sees them.
#[derive(Debug)]
pub struct RemoteMachines {
    tunnel: UdpTunnel,
    member: u16,
    members: u16,
    /// By port: on which member its node is.
    places: Vec<u16>,
    /// By member: nanoseconds by which its clock is ahead; `None`: not known.
    ahead: Vec<Option<i64>>,
    lanes: usize,
    release_queue: ReleaseQueue,
    buffer_pool: BufferPool,
    traffic: InterMachineTraffic,
    pairs: PeerPathMonitor,
    /// Whether nothing is sent to other machines any more: the run is over.
    is_closed: bool,
    /// What had been counted by the tunnel when the run began.
    before: TunnelCounters,
    /// How many refused datagrams the agent knows of, and when it is sent that next.
    refused: (u64, Time),
    /// Flows here that the others know of.
    announced: BTreeSet<FlowKey>,
    /// Flows of the others, by member.
    remote: BTreeMap<(u16, FlowKey), ActiveFlow>,
    /// What the flows here cross.
    crossed: LocalFlowLanes,
    /// How long after their start flows of the others were reckoned with that share a link with
    /// one here.
    starts: LatenessHistogram,
    reached: bool,
    unreached_next: Time,
}

impl RemoteMachines {
    /// `placement` is the member by node; packets that wait may hold `memory` bytes.
    pub fn new(
        tunnel: UdpTunnel,
        plan: &Plan,
        placement: &[u16],
        member: u16,
        members: u16,
        memory: u64,
    ) -> Self {
        RemoteMachines {
            before: tunnel.counters(),
            tunnel,
            member,
            members,
            places: plan.ports().map(|(node, _)| placement[node.index()]).collect(),
            ahead: vec![None; usize::from(members)],
            lanes: plan.links.len() * 2,
            release_queue: ReleaseQueue::new(memory),
            buffer_pool: BufferPool::default(),
            traffic: InterMachineTraffic::default(),
            pairs: PeerPathMonitor::new((0..members).filter(|other| *other != member)),
            is_closed: false,
            refused: (0, Time::ZERO),
            announced: BTreeSet::new(),
            remote: BTreeMap::new(),
            crossed: LocalFlowLanes::default(),
            starts: LatenessHistogram::new(),
            reached: false,
            unreached_next: Time::ZERO,
        }
    }

    /// This machine's part of the plan.
    pub(super) fn part(&self, plan: &Plan) -> NetworkPart {
        let mut here = vec![false; plan.nodes.len()];
        for ((node, _), place) in plan.ports().zip(&self.places) {
            here[node.index()] |= *place == self.member;
        }
        NetworkPart { number: u32::from(self.member), here }
    }

    /// Whether the node of a port is on another machine.
    pub(super) fn is_away(&self, port: PortId) -> bool {
        self.places[port.index()] != self.member
    }

    /// Sends a packet to the machine of its node; it may wait for [`RemoteMachines::flush`].
    pub(super) fn push(&mut self, now: Time, departure: &FrameDeparture) {
        let FrameDeparture { port, lane, intended, vnet, ref frame } = *departure;
        self.push_frame(now, port, lane, intended, vnet, frame);
    }

    /// The same for a frame that passed the engine at once.
    pub(super) fn push_express(
        &mut self,
        now: Time,
        express: &ImmediateDeparture,
        intended: Time,
        frame: &[u8],
    ) {
        self.push_frame(now, express.port, express.lane, intended, express.vnet, frame);
    }

    fn push_frame(
        &mut self,
        now: Time,
        port: PortId,
        lane: Lane,
        intended: Time,
        vnet: vnet::VirtioNetHeader,
        frame: &[u8],
    ) {
        if self.is_closed {
            return;
        }
        let label = Label {
            port: port.0,
            lane: u32::try_from(lane.index()).unwrap_or(u32::MAX),
            intended: intended.as_nanos(),
            vnet: vnet.emit(),
        };
        self.tunnel.push(now, &OutgoingFrame { to: self.places[port.index()], label, frame });
    }

    /// Sends what was pushed.
    pub(super) fn flush(&mut self, now: Time) {
        let flushed = self.tunnel.flush(now);
        self.traffic.sent_packets += flushed.sent;
        self.traffic.unsent_packets += flushed.unsent.total();
    }

    /// Takes in what has come. Answers whether there was anything.
    pub(super) fn receive(&mut self, now: Time) -> bool {
        let RemoteMachines {
            tunnel,
            release_queue,
            buffer_pool,
            traffic,
            places,
            ahead,
            lanes,
            member,
            ..
        } = self;
        let mut any = false;
        for _ in 0..BATCHES_PER_TURN {
            let taken = tunnel.receive(now, |received| {
                let here = places.get(received.label.port as usize) == Some(member);
                let Some(address) = address(&received, ahead, *lanes).filter(|_| here) else {
                    traffic.stray_packets += 1;
                    return;
                };
                traffic.received_packets += 1;
                let bytes = received.frame.len();
                let frame = received.frame;
                let move_to = |buffer: &mut Vec<u8>| frame.move_to(buffer);
                if !release_queue.add(&address, bytes, buffer_pool, move_to) {
                    traffic.overflowed_packets += 1;
                }
            });
            match taken {
                Ok(0) => break,
                Ok(_) => any = true,
                // It shows as packets that are lost.
                Err(_) => break,
            }
        }
        if self.tunnel.poll_timeout().is_some_and(|due| due <= now) {
            self.tunnel.handle_timeout(now);
        }
        any
    }

    /// The next packet whose time has come.
    pub(super) fn due(&mut self, now: Time) -> Option<ReleaseQueueEntry> {
        self.release_queue.due(now)
    }

    /// Takes the buffer of a packet back that was due.
    pub(super) fn recycle(&mut self, frame: Vec<u8>) {
        self.buffer_pool.give(frame);
    }

    /// When the next packet is to leave.
    pub(super) fn next(&self) -> Option<Time> {
        self.release_queue.next()
    }

    /// When [`RemoteMachines::receive`] wants to be called, even if nothing comes.
    pub(super) fn poll_timeout(&self) -> Option<Time> {
        self.tunnel.poll_timeout()
    }

    /// Whether this has just become true: something has been received from every other machine.
    pub(super) fn newly_reached(&mut self) -> bool {
        if self.reached {
            return false;
        }
        let others = (0..self.members).filter(|member| *member != self.member);
        self.reached = others.into_iter().all(|member| self.tunnel.rtt(member).is_some());
        self.reached
    }

    /// Once a second: other machines from which nothing has been received, as long as there are
    /// any.
    pub(super) fn unreached(&mut self, now: Time) -> Option<Vec<u16>> {
        if self.reached || now < self.unreached_next {
            return None;
        }
        self.unreached_next = now + UNREACHED;
        let others = (0..self.members).filter(|member| *member != self.member);
        Some(others.filter(|member| !self.tunnel.reached(*member)).collect())
    }

    /// How members' clocks stand to this machine's.
    pub(super) fn set_clocks(&mut self, ahead_ns: &[(u16, i64)]) {
        for (member, ahead_ns) in ahead_ns {
            if let Some(known) = self.ahead.get_mut(usize::from(*member)) {
                *known = Some(*ahead_ns);
            }
        }
    }

    /// Sends nothing more, and says how many datagrams with packets have gone to each other
    /// machine. From here on no machine has to answer.
    pub(super) fn close(&mut self, now: Time) -> Vec<(u16, u64)> {
        self.flush(now);
        self.is_closed = true;
        self.pairs.forget_all(now);
        self.pairs.sent(&self.tunnel)
    }

    /// Whether as many datagrams with packets have come as these machines say that they sent.
    pub(super) fn has_all(&self, sent: &[(u16, u64)]) -> bool {
        let received = |member| Some(self.tunnel.peer_counters(member)?.received.datagrams);
        sent.iter().all(|(member, sent)| received(*member).is_none_or(|came| came >= *sent))
    }

    /// Members that have become silent, or answer again.
    pub(super) fn silences(&mut self, now: Time) -> Vec<PeerSilencePeriod> {
        let RemoteMachines { tunnel, pairs, .. } = self;
        pairs.watch(now, |member| tunnel.silent_since(member, now))
    }

    /// Datagrams that were refused since this was last asked, once a second at the most.
    pub(super) fn newly_refused(&mut self, now: Time) -> Option<u64> {
        let (reported, next) = self.refused;
        let all = self.tunnel.refused();
        if now < next || all <= reported {
            return None;
        }
        self.refused = (all, now + REFUSED);
        Some(all - reported)
    }

    /// What went between this machine and each other since the run began.
    pub(super) fn peers(&self) -> Vec<PeerTraffic> {
        self.pairs.traffic(&self.tunnel)
    }

    /// Counts from zero, with a new engine that knows of no flows yet. Returns what the others are
    /// to be announced: flows that they know of are no more. What came early of others that have
    /// begun is kept.
    pub(super) fn begin(
        &mut self,
        now: Time,
        origin: Time,
        engine: &mut Engine,
    ) -> Vec<FlowChange> {
        self.traffic = InterMachineTraffic::default();
        self.before = self.tunnel.counters();
        self.pairs.begin(origin, &self.tunnel);
        self.release_queue.clear_before(origin);
        self.starts.clear();
        self.crossed.clear();
        let remote: Vec<_> = self.remote.iter().map(|(&(m, key), &flow)| (m, key, flow)).collect();
        for (member, key, flow) in remote {
            let change = FlowChange { key, flow: Some(flow) };
            engine.handle_flows(now, u32::from(member), &[change]);
        }
        let announced = std::mem::take(&mut self.announced).into_iter();
        announced.map(|key| FlowChange { key, flow: None }).collect()
    }

    /// What went between the machines since the run began.
    pub(super) fn traffic(&self, engine: &Engine) -> InterMachineTraffic {
        let (now, before) = (self.tunnel.counters(), self.before);
        InterMachineTraffic {
            sent_bytes: now.sent.bytes - before.sent.bytes,
            lost_datagrams: now.lost.saturating_sub(before.lost),
            incomplete_packets: now.incomplete - before.incomplete,
            refused_datagrams: now.refused.total() - before.refused.total(),
            refused_flows: engine.flow_counts().refused,
            nameless_flows: engine.flow_counts().nameless,
            ..self.traffic
        }
    }
}

impl AsFd for RemoteMachines {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tunnel.as_fd()
    }
}

/// What a packet's label says, on this machine's clock; `None` if it means nothing here.
fn address(received: &ReceivedFrame<'_>, ahead: &[Option<i64>], lanes: usize) -> Option<Address> {
    let label = &received.label;
    let lane = usize::try_from(label.lane).ok().filter(|lane| *lane < lanes)?;
    let ahead = (*ahead.get(usize::from(received.from))?)?;
    Some(Address {
        intended: on_this_clock(label.intended, ahead),
        port: PortId(label.port),
        lane: Lane::from_index(lane),
        header: label.vnet,
    })
}

/// What a clock that is ahead by `ahead` nanoseconds showed at a time, on this machine's.
fn on_this_clock(nanos: u64, ahead: i64) -> Time {
    Time::from_nanos(nanos.saturating_add_signed(ahead.saturating_neg()))
}

/// How often the agent is sent how many datagrams were refused.
const REFUSED: Span = Span::from_secs(1);
const UNREACHED: Span = Span::from_secs(1);
/// So that packets of nodes here get their turn under any load.
const BATCHES_PER_TURN: usize = 4;
