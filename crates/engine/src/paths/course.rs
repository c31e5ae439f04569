//! Where a packet goes from its source: straight to a place, or by a redirector to a replica.
//!
//! A packet for a service looks ahead at its source: the first router on its way that redirects it
//! now is where its tunnel will begin. The choice is made there and then, and the packet keeps it
//! (`EmulatedPacket::aim`): the queue at its source stands for those behind the redirector, and what waits
//! there has passed it with the model of hops.

use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

use windtunnel_model::{Lane, PortId, Rate, RouterId, Time};
use windtunnel_routing::RouteDestination;
use windtunnel_wire::flow;
use windtunnel_wire::packet::ParsedPacket;

use crate::engine::core::RedirectionPoint;
use crate::network::{LaneEndpoint, NetworkDirectory};
use crate::services::{Redirection, TunnelEntry};
use crate::tunnel::TunnelEndpoint;
use crate::underlay::LaneSet;

/// From a node's interface to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PacketCourse {
    /// Where it ends.
    pub(crate) target: RouteDestination,
    pub(crate) tunnel: Option<TunnelCourse>,
}

/// The tunnel that a packet will enter on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TunnelCourse {
    /// Where.
    start: RouterId,
    /// Where the packet is routed to until then; `None`: it begins at the first router.
    towards: Option<RouteDestination>,
    /// Bytes of its header.
    overhead: u32,
}

/// The lanes of a course as routes are now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct CourseLanes {
    pub(crate) lanes: Vec<Lane>,
    /// How many of them come before the tunnel.
    before_tunnel: usize,
}

/// The lane of a course that bounds what goes there: the first of the least rate, of equal ones
/// that which is in the tunnel, since it carries more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bottleneck {
    pub(crate) lane: Lane,
    pub(crate) rate: Rate,
    /// What the tunnel adds to each segment there.
    pub(crate) tunnel_overhead: u32,
}

impl PacketCourse {
    /// Straight to a place.
    pub(crate) fn to(target: RouteDestination) -> PacketCourse {
        PacketCourse { target, tunnel: None }
    }

    pub(crate) fn leads_to_replica(&self) -> bool {
        self.tunnel.is_some()
    }
}

impl RedirectionPoint<'_> {
    /// Where a packet of a port goes, and the replica that it is given; `None`: nowhere, or it is
    /// dropped on its way.
    pub(super) fn course(
        &mut self,
        now: Time,
        port: PortId,
        packet: &ParsedPacket<'_>,
    ) -> Option<(PacketCourse, Option<PortId>)> {
        let target = self.net.network.target(packet.info.destination);
        if !self.services.filter.may_hold(packet.info.destination) {
            return Some((PacketCourse::to(target?), None));
        }
        self.course_of_service(now, port, packet, target)
    }

    /// The same for what may be for a service: the first router on the way that has another way
    /// for it.
    fn course_of_service(
        &mut self,
        now: Time,
        port: PortId,
        packet: &ParsedPacket<'_>,
        target: Option<RouteDestination>,
    ) -> Option<(PacketCourse, Option<PortId>)> {
        let info = &packet.info;
        let mut lane = self.net.network.lane_of(port);
        // Routes that change may make loops.
        for hops in 0..=self.net.network.links() {
            let LaneEndpoint::Router(start) = self.net.network.end(lane) else { break };
            match self.redirect(now, start, packet, None, false) {
                // What outlives its server is refused with this model, and routers that answer are.
                Redirection::None | Redirection::Answer | Redirection::Keep => {}
                Redirection::Lost(..) => return None,
                Redirection::To(TunnelEntry { tunnel, .. }) => {
                    let TunnelEndpoint::Port(end) = tunnel.end else { break };
                    let towards = if hops == 0 { None } else { target };
                    let overhead = tunnel.overhead;
                    let tunnel_course = TunnelCourse { start, towards, overhead };
                    let target = RouteDestination::Port(end);
                    // What ends at the redirector begins nothing.
                    let passes = usize::from(info.ttl) > hops + 1;
                    if passes {
                        self.redirect(now, start, packet, None, true);
                    }
                    let course = PacketCourse { target, tunnel: Some(tunnel_course) };
                    return Some((course, passes.then_some(end)));
                }
            }
            if target? == RouteDestination::Router(start) {
                break;
            }
            let flow = || flow::FiveTuple::of(packet).hash64();
            let Some(next) = self.net.network.next_hop(start, Some(info.source), target?, flow)
            else {
                break;
            };
            lane = next;
        }
        Some((PacketCourse::to(target?), None))
    }
}

impl NetworkDirectory {
    /// The lanes that a packet would pass now.
    pub(super) fn trace(
        &mut self,
        port: PortId,
        course: PacketCourse,
        source: Option<IpAddr>,
        hash: u64,
    ) -> CourseLanes {
        let mut lanes = vec![self.lane_of(port)];
        let Some(tunnel) = course.tunnel else {
            self.extend(&mut lanes, course.target, source, hash, None);
            return CourseLanes { before_tunnel: lanes.len(), lanes };
        };
        if let Some(towards) = tunnel.towards {
            self.extend(&mut lanes, towards, source, hash, Some(tunnel.start));
        }
        let before_tunnel = lanes.len();
        let end = lanes.last().map(|lane| self.end(*lane));
        // Where routes lead past the redirector now, no packet takes this course.
        if end == Some(LaneEndpoint::Router(tunnel.start)) {
            self.extend(&mut lanes, course.target, None, hash, None);
        }
        CourseLanes { lanes, before_tunnel }
    }

    /// Goes on from the end of the last lane, to `target` or as far as `until`.
    fn extend(
        &mut self,
        lanes: &mut Vec<Lane>,
        target: RouteDestination,
        source: Option<IpAddr>,
        hash: u64,
        until: Option<RouterId>,
    ) {
        // Routes that change may make loops.
        let most = lanes.len() + self.links();
        while let Some(LaneEndpoint::Router(id)) = lanes.last().map(|lane| self.end(*lane)) {
            if target == RouteDestination::Router(id) || until == Some(id) || lanes.len() > most {
                break;
            }
            let Some(next) = self.next_hop(id, source, target, || hash) else {
                break;
            };
            lanes.push(next);
        }
    }
}

impl LaneSet {
    /// The lane that bounds what goes this course.
    pub(super) fn bottleneck(
        &self,
        course: &PacketCourse,
        lanes: &CourseLanes,
    ) -> Option<Bottleneck> {
        let overhead = course.tunnel.map_or(0, |tunnel| tunnel.overhead);
        let limited = lanes.lanes.iter().enumerate().filter_map(|(number, lane)| {
            let rate = self.chains[lane.index()].profile().rate?;
            let tunnel_overhead = if number < lanes.before_tunnel { 0 } else { overhead };
            Some(Bottleneck { lane: *lane, rate, tunnel_overhead })
        });
        limited.min_by_key(|it| (it.rate, core::cmp::Reverse(it.tunnel_overhead)))
    }
}
