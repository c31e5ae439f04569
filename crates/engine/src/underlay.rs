//! The network below services and middleboxes: lanes, LANs, and the interfaces of routers. It takes a
//! packet to the next hop that somebody has chosen.

mod departures;
mod lane_set;
mod next_hop;
mod resolution;

use alloc::vec;
use alloc::vec::Vec;

use windtunnel_model::plan::{EventAction, RouteChange};
use windtunnel_model::{LanId, Lane, Plan, RouterId, Time};
use windtunnel_wire::icmp;

use crate::counters::RouterCounters;
use crate::lan::LearningSwitch;
use crate::network::{LaneEndpoint, NetworkDirectory};
use crate::packet::EmulatedPacket;
use crate::records::RouterReason;
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

    /// Gives a packet to the node at the end of `lane` as it is.
    #[inline]
    pub(crate) fn hand_out(&mut self, now: Time, lane: Lane, packet: EmulatedPacket) {
        let LaneEndpoint::Node { port, addresses } = self.network.end(lane) else {
            return packet.discard(&mut self.lanes.work.pool);
        };
        let exit = ExitPort { port, lane, addresses };
        self.departures.push(now, exit, packet, &mut self.lanes.work.pool);
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
