//! The network below services and middleboxes: lanes, LANs, and the interfaces of routers. It takes a
//! packet to the next hop that somebody has chosen.

mod departures;
mod lane_set;
mod next_hop;
mod resolution;

use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::plan::{EventAction, RouteChange};
use windtunnel_model::{LanId, Lane, Plan, PortId, RouterId, Time};
use windtunnel_wire::icmp;

use crate::counters::RouterCounters;
use crate::lan::{LearningSwitch, SwitchEgress};
use crate::network::{LaneEndpoint, NetworkDirectory};
use crate::packet::{EmulatedPacket, MeasuredFrame};
use crate::records::{RouterReason, TaggedShape};
use crate::tunnel::PacketTunnel;
pub(crate) use departures::{DepartureQueue, ExitPort, address};
pub(crate) use lane_set::{LaneSet, ReturnReason, ReturnedPacket};
use resolution::NeighbourTables;

/// Lanes, and what lies between them. What a lane does not take is asked for with
/// [`LaneSet::take_returned`] after each packet.
#[derive(Debug)]
pub(crate) struct Underlay {
    pub(crate) lanes: LaneSet,
    pub(crate) network: NetworkDirectory,
    /// By LAN.
    pub(crate) segments: Vec<LearningSwitch>,
    neighbours: NeighbourTables,
    /// By router.
    pub(crate) routers: Vec<RouterCounters>,
    pub(crate) departures: DepartureQueue,
}

/// How a frame has come to the lane that does not let it pass at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameEntry {
    /// The port that it was sent through.
    pub(crate) origin: PortId,
    /// The lane before.
    pub(crate) came_by: Option<Lane>,
    pub(crate) tunnel: Option<PacketTunnel>,
}

impl Underlay {
    /// That of `plan`.
    pub(crate) fn new(
        plan: &Plan,
        network: NetworkDirectory,
        lanes: LaneSet,
        here: Vec<bool>,
    ) -> Underlay {
        Underlay {
            departures: DepartureQueue::new(lanes.chains.len(), here),
            lanes,
            network,
            segments: LearningSwitch::all(plan),
            neighbours: NeighbourTables::default(),
            routers: vec![RouterCounters::default(); plan.routers.len()],
        }
    }

    /// Copies a frame that a node sends, and puts it on a lane.
    #[inline]
    pub(crate) fn copy_in(
        &mut self,
        now: Time,
        lane: Lane,
        entry: FrameEntry,
        frame: &MeasuredFrame<'_>,
    ) {
        let MeasuredFrame { bytes, vnet, shape } = frame;
        let work = &mut self.lanes.work;
        match work.pool.copy(bytes) {
            Some(buf) => {
                let mut packet = EmulatedPacket::new(buf, *vnet, *shape, work.sent, &mut work.pool);
                (packet.origin, packet.came_by) = (Some(entry.origin), entry.came_by);
                // Its shape and tag have the tunnel's header already.
                packet.tunnel = entry.tunnel;
                packet.tag = work.recorder.entering();
                packet.sender = work.sender;
                self.lanes.offer(now, lane, packet);
            }
            None => {
                let tag = work.recorder.entering();
                let offered = TaggedShape { tag: &tag, shape };
                self.lanes.offer_without_memory(now, lane, offered, bytes);
            }
        }
    }

    /// Gives a packet to the node at the end of `lane` as it is.
    #[inline]
    pub(crate) fn hand_out(&mut self, now: Time, lane: Lane, packet: EmulatedPacket) {
        let LaneEndpoint::Node { port, addresses } = self.network.end(lane) else {
            return packet.discard(&mut self.lanes.work.pool);
        };
        let exit = ExitPort { port, lane, addresses };
        self.departures.push(now, exit, packet, &mut self.lanes.work.pool);
    }

    /// The lane by which alone a frame leaves a segment; `None`: it is not one, or a partition cuts
    /// it.
    pub(crate) fn only_outlet(
        &mut self,
        now: Time,
        lan: LanId,
        came: Lane,
        frame: &[u8],
    ) -> Option<Lane> {
        let segment = &mut self.segments[lan.index()];
        match segment.pass(now, came, frame) {
            SwitchEgress::One(lane) if !segment.parts(came, lane) => Some(lane),
            _ => None,
        }
    }

    /// Puts a packet on a lane by which it leaves a segment.
    pub(crate) fn leave(
        &mut self,
        now: Time,
        lan: LanId,
        came: Lane,
        lane: Lane,
        packet: EmulatedPacket,
    ) {
        if self.segments[lan.index()].parts(came, lane) {
            return self.lanes.drop_parted(lane, packet);
        }
        self.lanes.offer(now, lane, packet);
    }

    /// The same for a copy of a packet.
    pub(crate) fn leave_copy(
        &mut self,
        now: Time,
        lan: LanId,
        came: Lane,
        lane: Lane,
        packet: &mut EmulatedPacket,
    ) {
        if let Some(copy) = packet.duplicate(&mut self.lanes.work.pool) {
            return self.leave(now, lan, came, lane, copy);
        }
        let time = packet.times.first;
        self.lanes.offer_without_memory(time, lane, packet.tagged(), packet.frame());
    }

    /// Counts and records that a router drops a packet.
    pub(crate) fn note_refusal(
        &mut self,
        id: RouterId,
        reason: RouterReason,
        packet: &EmulatedPacket,
    ) {
        self.routers[id.index()].count_refusal(reason, packet.shape.count);
        self.lanes.work.recorder.note_refusal(reason, packet);
    }

    /// Drops a packet at a router.
    pub(crate) fn drop_refused(
        &mut self,
        id: RouterId,
        reason: RouterReason,
        packet: EmulatedPacket,
    ) {
        self.note_refusal(id, reason, &packet);
        packet.discard(&mut self.lanes.work.pool);
    }

    /// Makes of a packet the echo that a router answers with; `None`: it cannot be answered.
    pub(crate) fn echo(
        &mut self,
        now: Time,
        id: RouterId,
        mut packet: EmulatedPacket,
    ) -> Option<EmulatedPacket> {
        let (frame, vnet) = packet.settled(&mut self.lanes.work.pool);
        if !icmp::echo_reply_in_place(frame, vnet) {
            self.drop_refused(id, RouterReason::NotForwarded, packet);
            return None;
        }
        self.routers[id.index()].echo_answered += 1;
        packet.came_by = None;
        packet.tag = self.lanes.tag(now, &packet);
        Some(packet)
    }

    /// Changes lanes and LANs. Whether lanes may have gone down or up.
    pub(crate) fn change(&mut self, now: Time, action: &EventAction) -> bool {
        if let Some(sides) = action.sides() {
            for segment in &mut self.segments {
                segment.part(&sides, &self.lanes.vertices);
            }
        }
        self.lanes.change(now, action)
    }

    /// Fixes routes, or sets them free.
    pub(crate) fn fix_routes(&mut self, change: &RouteChange) {
        let routes = self.network.routes().changed(change);
        self.network.use_routes(routes);
    }

    /// Computes shortest routes for the lanes as they are.
    pub(crate) fn reroute(&mut self) {
        let lanes = &self.lanes;
        let routes = self.network.routes().recomputed(|lane| lanes.latency_if_up(lane));
        self.network.use_routes(routes);
    }

    /// Puts a packet on a lane; one of another sender has been forwarded then.
    fn depart(&mut self, now: Time, id: RouterId, lane: Lane, packet: EmulatedPacket) {
        if packet.came_by.is_some() {
            self.routers[id.index()].forwarded += u64::from(packet.shape.count);
        }
        self.lanes.offer(now, lane, packet);
    }
}
