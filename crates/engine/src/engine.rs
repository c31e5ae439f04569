//! The engine: all lanes and routers of a plan behind one contract.

mod abroad;
#[cfg(test)]
mod effort;
mod forward;
mod report;
mod reroute;
mod segment;
mod source;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use windtunnel_model::plan::{LinkChange, NetworkModel, RouteChange};
use windtunnel_model::{Lane, LinkProfile, Plan, PortId, Rate, RouterId, Span, Time, Vertex};
use windtunnel_routing::Routes;
use windtunnel_wire::{ethernet, vnet};

use crate::buffer::{FRAME_LEN_MAX, PacketBuf, Pool};
use crate::chain::{Chain, Site, Work};
use crate::counters::{LaneCounters, RouterCounters};
use crate::element::Luck;
use crate::element::trace::Book;
use crate::event::{Bounded, EVENTS_MAX, Event, HANDOFFS_MAX, Handoff, LostReports};
use crate::housekeeping;
use crate::lan::{Segment, Sides};
use crate::neighbours::Neighbours;
use crate::network::{End, Network};
use crate::packet::Shape;
use crate::part::Part;
use crate::paths::Paths;
use crate::paths::ledger::Ledger;
use crate::timer::{Activity, Timers};
use reroute::Reroutes;

/// An emulated network: every link, queue and router of a plan, packet by packet.
///
/// The contract, in the order in which to call:
///
/// 1. Say what happened, with the time at which it did: [`handle_packet`](Engine::handle_packet)
///    for each frame that a node sent, [`apply`](Engine::apply) for each change, and
///    [`handle_timeout`](Engine::handle_timeout) when the time of `poll_timeout` has come. `now`
///    never decreases over these calls. Each of them first does everything that was intended for
///    `now` or before, in the intended order.
/// 2. Ask what to do: [`poll_output`](Engine::poll_output) until it is empty (a departure is given
///    out at or after its intended time, never before); [`poll_event`](Engine::poll_event) and
///    [`poll_handoff`](Engine::poll_handoff) likewise; then [`poll_timeout`](Engine::poll_timeout)
///    for the next wake-up. Buffers that were sent go back through [`recycle`](Engine::recycle).
/// 3. Read counters at any time.
///
/// An engine may be one machine's part of the network ([`of_part`](Engine::of_part)). Then, beside
/// that:
///
/// - Departures to ports that are elsewhere ([`is_here`](Engine::is_here)) are given out as soon as
///   they are known, with their intended time in the future: the host sends them to their machine,
///   which holds them until then. The first rule of 2. does not hold for them, nor do they come in
///   the order of their times; those from one port to one port do, unless the network reorders
///   them.
/// - [`poll_flow`](Engine::poll_flow) says what other machines have to know of the flows here, and
///   [`handle_flows`](Engine::handle_flows) hears what they said.
/// - Counters are of what nodes here sent, on all lanes of its way. What is added up over the
///   machines is the network's.
///
/// The same calls in the same order give the same bytes, on any machine. A packet keeps its
/// intended time through all elements: that it was looked at late delays nothing behind it, so
/// lateness never adds up. Nothing is allocated for a packet once the engine has been under its
/// full load.
///
/// Frames are Ethernet frames as a packet socket with `PACKET_VNET_HDR` shows them, perhaps trains
/// of segments; what comes out may be a train too.
#[derive(Debug)]
pub struct Engine {
    work: Work,
    /// By lane index.
    chains: Vec<Chain>,
    network: Network,
    /// By LAN.
    segments: Vec<Segment>,
    /// By the lane from a router to a LAN.
    neighbours: BTreeMap<Lane, Neighbours>,
    routers: Vec<RouterCounters>,
    /// By link: its ends.
    vertices: Vec<[Vertex; 2]>,
    outbox: VecDeque<Departure>,
    /// By lane index: departures in the outbox.
    unpolled: Vec<u32>,
    events: Bounded<Event>,
    handoffs: Bounded<Handoff>,
    reroutes: Reroutes,
    /// By port: whether it is on this machine.
    here: Vec<bool>,
    /// With the model of paths. Behind the chains of the lanes then come those of its shapers.
    paths: Option<Paths>,
    /// The latest `now`.
    now: Time,
    refused: u64,
    /// News of flows that could not be used.
    refused_flows: u64,
}

/// What an engine may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of packet buffers held at most, in queues, on the way and not yet recycled. A packet
    /// for which there is no room is dropped as [`crate::DropReason::Memory`].
    pub packet_memory: u64,
}

/// A packet that leaves without delay: send the very bytes that were handed in, now; if its port is
/// elsewhere, to there, and the intended time is that at which it was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Express {
    /// Where.
    pub port: PortId,
    /// The lane that it came by.
    pub lane: Lane,
    /// The header to send with it.
    pub vnet: vnet::Header,
}

/// A packet to be sent.
#[derive(Debug)]
pub struct Departure {
    /// Where.
    pub port: PortId,
    /// The lane that it came by (for a message from the far end of a node's own link, the lane
    /// towards the node).
    pub lane: Lane,
    /// When it should leave; never after the `now` of the call that made it, if its port is here.
    pub intended: Time,
    /// The header to send with it.
    pub vnet: vnet::Header,
    /// The frame.
    pub frame: PacketBuf,
}

/// A change of the network.
#[derive(Debug, Clone, Copy)]
pub enum NetworkChange<'a> {
    /// Properties and state of lanes.
    Links(&'a LinkChange),
    /// One phase of a flap: cuts lanes, or mends what an earlier such change has cut.
    Flap {
        /// The lanes.
        lanes: &'a [Lane],
        /// Whether they are mended.
        up: bool,
    },
    /// Cuts every link between vertices of different groups, and on LANs every frame between
    /// attachments of different groups, broadcasts among them; replaces an earlier partition.
    Partition(&'a [Vec<Vertex>]),
    /// Cuts what leads from a vertex of the first group to one of the second, and not the way back;
    /// replaces an earlier partition.
    PartitionOneWay([&'a [Vertex]; 2]),
    /// Ends the partition.
    Heal,
    /// Fixes routes, or sets them free.
    Route(&'a RouteChange),
    /// Computes all shortest routes again, for the lanes as they are.
    Reroute,
}

impl Engine {
    /// An engine for `plan`, all lanes up.
    ///
    /// # Panics
    /// If the plan is not valid: ids or ports that index nothing.
    #[must_use]
    pub fn new(plan: &Plan, limits: Limits) -> Engine {
        Engine::of_part(plan, limits, &Part::whole(plan))
    }

    /// The engine of one machine, for its part of `plan`; the other nodes are on other machines.
    ///
    /// # Panics
    /// As [`new`](Engine::new); if `part` says of more or fewer nodes than the plan has where they
    /// are; and if some are elsewhere and the model is that of hops, whose queues cannot be in
    /// two places.
    #[must_use]
    pub fn of_part(plan: &Plan, limits: Limits, part: &Part) -> Engine {
        assert_eq!(part.here.len(), plan.nodes.len(), "a part says of each node where it is");
        let divided = !part.is_whole();
        assert!(!divided || plan.model != NetworkModel::Hops, "parts need the model of paths");
        let network = Network::new(plan);
        let lanes = (0..plan.links.len() * 2).map(Lane::from_index);
        let book = Book::new(&plan.traces);
        let here: Vec<bool> = plan.ports().map(|(node, _)| part.here[node.index()]).collect();
        let chains: Vec<Chain> =
            lanes.map(|lane| chain_of(plan, &network, lane, (part.number, &here), &book)).collect();
        let rates: Vec<Option<Rate>> = match plan.model {
            NetworkModel::Hops => Vec::new(),
            NetworkModel::Paths(_) => chains.iter().map(|chain| chain.profile().rate).collect(),
        };
        Engine {
            work: Work {
                pool: Pool::new(limits.packet_memory),
                timers: Timers::default(),
                book,
                now: Time::ZERO,
                ledger: Ledger::new(&rates),
                exits: VecDeque::new(),
            },
            unpolled: vec![0; chains.len()],
            chains,
            network,
            segments: Segment::all(plan),
            neighbours: BTreeMap::new(),
            routers: vec![RouterCounters::default(); plan.routers.len()],
            vertices: plan.links.iter().map(|link| link.ends.map(|end| end.vertex)).collect(),
            outbox: VecDeque::new(),
            events: Bounded::new(EVENTS_MAX),
            handoffs: Bounded::new(HANDOFFS_MAX),
            reroutes: Reroutes::new(plan.routing.reroute),
            here,
            paths: Paths::new(plan, part),
            now: Time::ZERO,
            refused: 0,
            refused_flows: 0,
        }
    }

    /// Says when the plan's traces start: the beginning of the run. Without it they start at time
    /// zero. It is to be called before any packet is handed in.
    pub fn start_traces(&mut self, origin: Time) {
        self.work.book.origin = origin;
        for chain in &mut self.chains {
            chain.follow(&self.work.book);
        }
    }

    /// A frame that a node sent through `port` at `now`; it is modified in place.
    ///
    /// What kernels say to the link itself (multicast membership, neighbour discovery), and
    /// multicast towards a router, stays out of the lanes: it would take packet numbers at
    /// moments of its own. On a LAN all of it travels, and has numbers of its own.
    ///
    /// `Some`: every element let it pass at once, and the caller sends these bytes. `None`: the
    /// engine has copied what it keeps, and will give out what comes of it. Bytes that are no
    /// Ethernet frame, or more than 66 KiB of them, are counted by
    /// [`refused_frames`](Engine::refused_frames).
    ///
    /// # Panics
    /// If `now` is before an earlier one, or the plan has no such port, or it is elsewhere.
    pub fn handle_packet(
        &mut self,
        now: Time,
        port: PortId,
        vnet: vnet::Header,
        frame: &mut [u8],
    ) -> Option<Express> {
        assert!(self.here[port.index()], "port {} sends on another machine", port.0);
        self.advance(now);
        if frame.len() < ethernet::HEADER_LEN || frame.len() > FRAME_LEN_MAX {
            self.refused += 1;
            return None;
        }
        let lane = self.network.lane_of(port);
        let end = self.network.end(lane);
        let on_lan = matches!(end, End::Lan(_));
        if !on_lan && housekeeping::stays_out(frame, matches!(end, End::Router(_))) {
            self.keep_out(end);
            self.finish();
            return None;
        }
        let shape = Shape::of(frame, &vnet);
        if self.paths.is_some() && self.queue_at_source(now, port, (vnet, shape), frame) {
            self.settle(now);
            self.finish();
            return None;
        }
        let express = self.enter(now, port, (vnet, shape), frame);
        self.settle(now);
        self.finish();
        express
    }

    /// Does everything that was intended for `now` or before.
    ///
    /// # Panics
    /// If `now` is before an earlier one.
    pub fn handle_timeout(&mut self, now: Time) {
        self.advance(now);
        self.finish();
    }

    /// Changes the network at `now`, all at one instant. No change loses packets by itself: what is
    /// in transmission or on the way keeps its departure. New routes hold for what comes to a
    /// router from `now` on, so that packets of one flow may be reordered, or cross a loop that
    /// the old and the new routes make together.
    ///
    /// # Panics
    /// If `now` is before an earlier one, or the plan has no such lane.
    pub fn apply(&mut self, now: Time, change: &NetworkChange<'_>) {
        self.advance(now);
        match change {
            NetworkChange::Links(change) => self.change_links(now, change),
            NetworkChange::Flap { lanes, up } => self.flap(now, lanes, *up),
            NetworkChange::Partition(groups) => {
                let group = |vertex| groups.iter().position(|group| group.contains(&vertex));
                self.part_lans(|vertex| Sides { sends: group(vertex), hears: group(vertex) });
                self.part(
                    now,
                    |from, to| matches!((group(from), group(to)), (Some(a), Some(b)) if a != b),
                );
            }
            NetworkChange::PartitionOneWay([from_group, to_group]) => {
                self.part_lans(|vertex| Sides {
                    sends: from_group.contains(&vertex).then_some(0),
                    hears: to_group.contains(&vertex).then_some(1),
                });
                self.part(now, |from, to| from_group.contains(&from) && to_group.contains(&to));
            }
            NetworkChange::Heal => {
                self.chains.iter_mut().for_each(|chain| chain.cut.parted = false);
                self.part_lans(|_| Sides::default());
                self.reroutes.lanes_changed(now);
            }
            NetworkChange::Route(change) => self.fix_routes(now, change),
            NetworkChange::Reroute => self.reroute(now, false),
        }
        if matches!(change, NetworkChange::Links(_)) {
            self.follow_network(now);
        }
        self.settle(now);
        self.finish();
    }

    /// The next packet to send: those to ports here by intended time and, within one time, in the
    /// order of sequence; those to ports elsewhere as they became known.
    pub fn poll_output(&mut self) -> Option<Departure> {
        let departure = self.outbox.pop_front()?;
        self.unpolled[departure.lane.index()] -= 1;
        Some(departure)
    }

    /// Takes a buffer back that came with a departure.
    pub fn recycle(&mut self, buf: PacketBuf) {
        self.work.pool.give(buf);
    }

    /// The next event that has not been polled.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// How late a packet was taken off a lane that ends at a router or a LAN: the `now` of the call
    /// that did it minus the intended time.
    pub fn poll_handoff(&mut self) -> Option<(Lane, Span)> {
        self.handoffs.pop()
    }

    /// When to call `handle_timeout` next; `None`: when something else has happened.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Time> {
        let measure = self.paths.as_ref().and_then(|paths| paths.traffic.next());
        [self.work.timers.next(), self.reroutes.next(), measure].into_iter().flatten().min()
    }

    /// The latest time that it was told of.
    #[must_use]
    pub fn now(&self) -> Time {
        self.now
    }

    /// What a lane did.
    #[must_use]
    pub fn lane(&self, lane: Lane) -> &LaneCounters {
        &self.chains[lane.index()].counters
    }

    /// The most packets and bytes (with overhead) that waited in a lane's queue at any time since
    /// the last call.
    pub fn take_queue_peak(&mut self, lane: Lane) -> (u64, u64) {
        self.chains[lane.index()].take_queue_peak()
    }

    /// What a router did.
    #[must_use]
    pub fn router(&self, router: RouterId) -> &RouterCounters {
        &self.routers[router.index()]
    }

    /// The routes of this moment.
    #[must_use]
    pub fn routes(&self) -> &Arc<Routes> {
        self.network.routes()
    }

    /// The properties of a lane as they are now.
    #[must_use]
    pub fn profile(&self, lane: Lane) -> &LinkProfile {
        self.chains[lane.index()].profile()
    }

    /// Whether a lane takes packets: it is not down and no partition cuts it.
    #[must_use]
    pub fn is_up(&self, lane: Lane) -> bool {
        self.chains[lane.index()].cut.refuses().is_none()
    }

    /// Segments inside a lane: queued, in transmission, on the way.
    #[must_use]
    pub fn in_lane_packets(&self, lane: Lane) -> u64 {
        self.chains[lane.index()].in_lane()
    }

    /// Bytes of packet buffers in use, those that were polled and not recycled among them.
    #[must_use]
    pub fn in_flight_bytes(&self) -> u64 {
        self.work.pool.held()
    }

    /// Frames that were too short or too long to be taken.
    #[must_use]
    pub fn refused_frames(&self) -> u64 {
        self.refused
    }

    /// What was not polled in time and is lost.
    #[must_use]
    pub fn lost_reports(&self) -> LostReports {
        LostReports { events: self.events.lost(), handoffs: self.handoffs.lost() }
    }

    fn keep_out(&mut self, end: End) {
        if let End::Router(router) = end {
            self.routers[router.index()].not_forwarded += 1;
        }
    }

    /// Everything that is due, one wake-up after the other.
    fn advance(&mut self, now: Time) {
        assert!(now >= self.now, "time went back from {} to {now}", self.now);
        self.now = now;
        loop {
            let reroute = self.reroutes.next().filter(|at| *at <= now);
            let measure = self.paths.as_ref().and_then(|paths| paths.traffic.next());
            let measure =
                measure.filter(|at| *at <= now && reroute.is_none_or(|reroute| *at <= reroute));
            if let Some(at) = measure {
                self.wake(at);
                self.take_measure(at);
            } else if let Some(at) = self.reroutes.take(now) {
                self.wake(at);
                self.reroute(at, true);
            } else {
                break;
            }
        }
        self.wake(now);
    }

    /// Wakes the elements that are due until `now`, in their order.
    fn wake(&mut self, now: Time) {
        while let Some(due) = self.work.timers.pop(now) {
            let Some(chain) = self.chains.get_mut(due.lane as usize) else { continue };
            if !chain.alarms.take(&due) {
                continue;
            }
            self.work.now = due.at;
            if due.activity == Activity::Ask {
                self.ask_again(due.at, Lane::from_index(due.lane as usize));
            } else {
                chain.wake(due, &mut self.work);
            }
            if due.activity == Activity::Delay && !self.work.exits.is_empty() {
                self.note_handoffs(due.at);
            }
            self.settle(due.at);
        }
        self.work.now = now;
    }

    fn note_handoffs(&mut self, intended: Time) {
        let late = self.now.since(intended);
        for (lane, _) in &self.work.exits {
            if self.paths.is_none() && !matches!(self.network.end(*lane), End::Node { .. }) {
                self.handoffs.push((*lane, late));
            }
        }
    }

    fn finish(&mut self) {
        let chains = &self.chains;
        self.work.timers.prune(|lane| &chains[lane as usize].alarms);
    }

    fn change_links(&mut self, now: Time, change: &LinkChange) {
        for (lane, patch) in &change.patches {
            self.chains[lane.index()].patch(now, patch, &mut self.work);
        }
        for (lane, up) in &change.state {
            self.chains[lane.index()].cut.down = !up;
        }
        if !change.state.is_empty() {
            self.reroutes.lanes_changed(now);
        }
    }

    fn flap(&mut self, now: Time, lanes: &[Lane], up: bool) {
        for lane in lanes {
            let flaps = &mut self.chains[lane.index()].cut.flaps;
            *flaps = if up { flaps.saturating_sub(1) } else { *flaps + 1 };
        }
        self.reroutes.lanes_changed(now);
    }

    /// Puts the attachments of all LANs on the sides of a partition.
    fn part_lans(&mut self, sides: impl Fn(Vertex) -> Sides) {
        for segment in &mut self.segments {
            segment.part(&sides, &self.vertices);
        }
    }

    /// Parts the lanes for which `parts(start, end)` says so, and no others.
    fn part(&mut self, now: Time, parts: impl Fn(Vertex, Vertex) -> bool) {
        for (ends, pair) in self.vertices.iter().zip(self.chains.chunks_mut(2)) {
            for (chain, [from, to]) in pair.iter_mut().zip([[0, 1], [1, 0]]) {
                chain.cut.parted = parts(ends[from], ends[to]);
            }
        }
        self.reroutes.lanes_changed(now);
    }
}

fn chain_of(
    plan: &Plan,
    network: &Network,
    lane: Lane,
    (part, here): (u32, &[bool]),
    book: &Book,
) -> Chain {
    let link = &plan.links[lane.link.index()];
    let luck = Luck { seed: plan.seed, link: &link.name, direction: lane.direction, part };
    let profile = &link.profiles[lane.direction.index()];
    let [starts, ends] = [lane.reverse(), lane].map(|lane| network.end(lane));
    let on_lan = [starts, ends].iter().any(|end| matches!(end, End::Lan(_)));
    let of_paths = plan.model != NetworkModel::Hops;
    let site = Site {
        ends_at_node: matches!(ends, End::Node { .. }),
        on_lan,
        routed: !on_lan || matches!(starts, End::Router(_)),
        of_paths,
        is_away: matches!(ends, End::Node { port, .. } if !here[port.index()]),
    };
    Chain::new(lane, &luck, profile, site, book)
}
