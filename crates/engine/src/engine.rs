//! The engine: all lanes and routers of a plan behind one contract.

mod classes;
pub(crate) mod core;
mod counts;
#[cfg(test)]
mod effort;
mod flows;
mod middleboxes;
mod model;
mod records;
mod scheduler;
mod services;

use alloc::vec::Vec;

use windtunnel_model::plan::{EventAction, NetworkModel};
use windtunnel_model::{Lane, Plan, PortId, Span, Time};
use windtunnel_wire::{ethernet, vnet};

use self::core::Core;
pub use self::flows::AnnouncedFlowCounts;
use self::model::QueueingModel;
use self::scheduler::NetworkScheduler;
pub use self::services::ServiceOverview;
use crate::buffer::{FRAME_LEN_MAX, PacketBuf};
use crate::departure::{FrameDeparture, ImmediateDeparture};
use crate::event::NetworkEvent;
use crate::limits::EngineLimits;
use crate::packet::{FrameOrigin, SenderClass};
use crate::part::NetworkPart;

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
///    [`poll_handoff`](Engine::poll_handoff) likewise, and
///    [`PacketRecorder::take`](crate::PacketRecorder::take) where it records; then [`poll_timeout`](Engine::poll_timeout)
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
///   [`handle_flows`](Engine::handle_flows) takes their announcements.
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
    network: NetworkScheduler,
    /// Frames that were too short or too long.
    refused: u64,
    /// Announcements of flows that could not be used.
    refused_flows: u64,
    /// Lanes whose rate classes share.
    shared: Vec<Lane>,
}

impl Engine {
    /// An engine for `plan`, all lanes up.
    ///
    /// # Panics
    /// If the plan is not valid: ids or ports that index nothing.
    #[must_use]
    pub fn new(plan: &Plan, limits: EngineLimits) -> Engine {
        Engine::of_part(plan, limits, &NetworkPart::whole(plan))
    }

    /// The engine of one machine, for its part of `plan`; the other nodes are on other machines.
    ///
    /// # Panics
    /// As [`new`](Engine::new); if `part` says of more or fewer nodes than the plan has where they
    /// are; and if some are elsewhere and the model is that of hops, whose queues cannot be in
    /// two places.
    #[must_use]
    pub fn of_part(plan: &Plan, limits: EngineLimits, part: &NetworkPart) -> Engine {
        assert_eq!(part.here.len(), plan.nodes.len(), "a part says of each node where it is");
        let divided = !part.is_whole();
        assert!(!divided || plan.model != NetworkModel::Hops, "parts need the model of paths");
        let model = QueueingModel::new(plan, part);
        let core = Core::new(plan, limits, part);
        let shared = classes::shared(plan);
        Engine { network: NetworkScheduler { core, model }, refused: 0, refused_flows: 0, shared }
    }

    /// Says when the plan's traces start: the beginning of the run. Without it they start at time
    /// zero. It is to be called before any packet is handed in.
    pub fn start_traces(&mut self, origin: Time) {
        self.network.core.net.lanes.start_traces(origin);
    }

    /// A frame that a node sent through `port` at `now`; it is modified in place.
    ///
    /// What kernels say to the link itself (multicast membership, neighbour discovery), and
    /// multicast towards a router, stays out of the lanes: it would take packet numbers at
    /// moments of its own. On a LAN all of it travels, and has numbers of its own.
    ///
    /// `Some`: every element let it pass at once, and the caller sends these bytes. `None`: the
    /// engine has copied what it keeps, and will give out what comes of it. Bytes that are not an
    /// Ethernet frame, or more than 66 KiB of them, are counted by
    /// [`refused_frames`](Engine::refused_frames).
    ///
    /// # Panics
    /// If `now` is before an earlier one, or the plan has no such port, or it is elsewhere.
    pub fn handle_packet(
        &mut self,
        now: Time,
        port: PortId,
        vnet: vnet::VirtioNetHeader,
        frame: &mut [u8],
    ) -> Option<ImmediateDeparture> {
        let origin = FrameOrigin { port, sent: now, sender: SenderClass::Flow };
        self.handle_packet_of(now, origin, vnet, frame)
    }

    /// The same for a frame that was sent before `now`, or of which more is known than its flow.
    ///
    /// # Panics
    /// As [`handle_packet`](Engine::handle_packet), and if it was sent after `now`.
    pub fn handle_packet_of(
        &mut self,
        now: Time,
        origin: FrameOrigin,
        vnet: vnet::VirtioNetHeader,
        frame: &mut [u8],
    ) -> Option<ImmediateDeparture> {
        let FrameOrigin { port, sent, .. } = origin;
        assert!(sent <= now, "a packet of {sent} cannot have come at {now}");
        assert!(self.is_here(port), "port {} sends on another machine", port.0);
        self.network.advance(now);
        if frame.len() < ethernet::HEADER_LEN || frame.len() > FRAME_LEN_MAX {
            self.refused += 1;
            return None;
        }
        let express = self.network.enter(origin, vnet, frame);
        self.network.finish();
        express
    }

    /// Does everything that was intended for `now` or before.
    ///
    /// # Panics
    /// If `now` is before an earlier one.
    pub fn handle_timeout(&mut self, now: Time) {
        self.network.advance(now);
        self.network.finish();
    }

    /// Changes the network at `now`, all at one instant. No change loses packets by itself: what is
    /// in transmission or in flight keeps its departure. New routes hold for what comes to a
    /// router from `now` on, so that packets of one flow may be reordered, or cross a loop that
    /// the old and the new routes make together. What is done to programs changes no network.
    ///
    /// # Panics
    /// If `now` is before an earlier one, or the plan has no such lane.
    pub fn apply(&mut self, now: Time, action: &EventAction) {
        self.network.advance(now);
        self.network.apply(action);
        self.network.finish();
    }

    /// The next packet to send: those to ports here by intended time and, within one time, in the
    /// order of sequence; those to ports elsewhere as they became known.
    #[inline]
    pub fn poll_output(&mut self) -> Option<FrameDeparture> {
        self.network.core.net.departures.pop()
    }

    /// Takes a buffer back that came with a departure.
    #[inline]
    pub fn recycle(&mut self, buf: PacketBuf) {
        self.network.core.net.lanes.work.pool.give(buf);
    }

    /// The next event that has not been polled.
    #[inline]
    pub fn poll_event(&mut self) -> Option<NetworkEvent> {
        self.network.core.events.pop()
    }

    /// How late a packet was taken off a lane that ends at a router or a LAN: the `now` of the call
    /// that did it minus the intended time.
    #[inline]
    pub fn poll_handoff(&mut self) -> Option<(Lane, Span)> {
        self.network.core.handoffs.pop()
    }

    /// When to call `handle_timeout` next; `None`: when something else has happened. It is before the
    /// latest `now` where a packet came after it should have left.
    #[must_use]
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.network.next()
    }

    /// The latest `now` of all calls.
    #[must_use]
    pub fn now(&self) -> Time {
        self.network.core.now
    }

    /// Whether a port is on this machine.
    ///
    /// # Panics
    /// If the plan has no such port.
    #[must_use]
    pub fn is_here(&self, port: PortId) -> bool {
        self.network.core.net.departures.is_here(port)
    }
}
