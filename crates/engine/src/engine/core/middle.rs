//! Packets at middleboxes: what routers with a NAT or a firewall do instead of only routing.

use windtunnel_model::plan::MiddleboxSide;
use windtunnel_model::{Lane, RouterId, Time};
use windtunnel_wire::packet::{IpPacketSummary, IpVersion, ParsedPacket};
use windtunnel_wire::translate::IcmpQuotedPacket;
use windtunnel_wire::vnet::VirtioNetHeader;

use super::judge::{RouterArrival, RouterVerdict};
use crate::middlebox::{MiddleboxPacketKind, Middleboxes, PacketRewrite, RouterMiddlebox};
use crate::packet::EmulatedPacket;
use crate::router::{self, ForwardingDecision, ForwardingRefusal};
use crate::tunnel::TunnelEndpoint;
use crate::underlay::Underlay;

/// The middleboxes at the routers of a network.
pub(crate) struct MiddleboxPassage<'a> {
    pub(super) middleboxes: &'a mut Middleboxes,
    pub(super) net: &'a mut Underlay,
}

impl MiddleboxPassage<'_> {
    /// What a middlebox does with a packet; no byte of it changes. What is found is written in place:
    /// moved from one answer into the next it was a third of what a packet cost here.
    #[inline(never)]
    pub(super) fn judge(
        &mut self,
        now: Time,
        arrival: &RouterArrival<'_>,
        rewrite: &mut PacketRewrite,
    ) -> RouterVerdict {
        let next = self.survey(now, arrival, rewrite);
        self.middleboxes.asked(arrival.router);
        next.map_or_else(
            |verdict| verdict,
            |next| RouterVerdict::plain(ForwardingDecision::Forward(next)),
        )
    }

    /// The lane on which a packet goes on; `Err`: it does not.
    fn survey(
        &mut self,
        now: Time,
        arrival: &RouterArrival<'_>,
        rewrite: &mut PacketRewrite,
    ) -> Result<Lane, RouterVerdict> {
        const IGNORED: RouterVerdict = RouterVerdict::Route(ForwardingDecision::Ignore, None);
        let RouterArrival { router: id, lane, packet, tunnel, .. } = *arrival;
        let info = &packet.info;
        let came = self.middleboxes.interface(lane.reverse()).side;
        let middlebox = self.middleboxes.at_mut(id).filter(|_| router::travels(info));
        let middlebox = middlebox.ok_or(IGNORED)?;
        let reading = MiddleboxPacketKind::of(packet);
        middlebox.enter(now, came, info, &reading, rewrite).map_err(RouterVerdict::Denied)?;
        let destination = rewrite.destination(info);
        let is_plain = destination == info.destination;
        let closed = is_plain && came == MiddleboxSide::Outside && middlebox.translates(info);
        if closed && self.is_inside(id, lane, info) {
            let refusal = ForwardingDecision::Refuse(ForwardingRefusal::NoRoute);
            return Err(RouterVerdict::plain(refusal));
        }
        let decision = match tunnel {
            Some(tunnel) => router::decide_tunnel(&mut self.net.network, id, packet, tunnel),
            None => router::decide_route_to(&mut self.net.network, id, destination, packet),
        };
        let ForwardingDecision::Forward(next) = decision else {
            return Err(RouterVerdict::plain(decision));
        };
        let goes = self.middleboxes.interface(next);
        let middlebox = self.middleboxes.at_mut(id).ok_or(IGNORED)?;
        let leaves = middlebox.leave(now, came, goes, packet, &reading, rewrite);
        leaves.map(|()| next).map_err(RouterVerdict::Denied)
    }

    /// Whether the destination of a packet from outside is an address inside of a NAT, to which no
    /// route leads from there.
    fn is_inside(&self, id: RouterId, lane: Lane, info: &IpPacketSummary) -> bool {
        let own = |it: &RouterMiddlebox| match info.destination {
            core::net::IpAddr::V4(v4) => it.is_internal(v4),
            core::net::IpAddr::V6(_) => false,
        };
        self.middleboxes.at(id).is_some_and(own)
            || !self.net.network.is_visible_from(lane.link, info.destination)
    }

    /// An ICMP error that a router itself has made is about a packet as it was after its translation:
    /// what makes it one about what its sender has sent. `None`: it goes nowhere.
    pub(super) fn readdress(
        &self,
        id: RouterId,
        error: &ParsedPacket<'_>,
    ) -> Option<PacketRewrite> {
        let middlebox = self.middleboxes.at(id)?;
        let translates = error.info.version == IpVersion::V4 && middlebox.nat.is_some();
        match IcmpQuotedPacket::of(error).filter(|_| translates) {
            Some(quoted) => middlebox.readdress(error.info.destination, &quoted),
            None => Some(PacketRewrite::default()),
        }
    }

    /// Forgets at middleboxes what is over.
    pub(super) fn expire(&mut self, now: Time) {
        if self.middleboxes.next().is_none_or(|at| at > now) {
            return;
        }
        for (id, middlebox) in self.middleboxes.iter_mut() {
            middlebox.expire(now);
            let lost = middlebox.fragments.lost();
            middlebox.fragments.expire(now, &mut self.net.lanes.work.pool);
            self.net.routers[id.index()].not_reassembled += middlebox.fragments.lost() - lost;
        }
        self.middleboxes.settle();
    }

    /// The whole packet that this was the last missing fragment of (RFC 4787, REQ-14).
    pub(super) fn make_whole(
        &mut self,
        now: Time,
        id: RouterId,
        info: &IpPacketSummary,
        packet: EmulatedPacket,
    ) -> Option<EmulatedPacket> {
        let Some(middlebox) = self.middleboxes.at_mut(id) else { return Some(packet) };
        let counters = &mut self.net.routers[id.index()];
        counters.fragments += 1;
        let came_by = packet.came_by;
        let (place, pool) = (TunnelEndpoint::Router(id), &mut self.net.lanes.work.pool);
        let lost = middlebox.fragments.lost();
        let whole = middlebox.fragments.push(now, place, info, packet, pool);
        counters.not_reassembled += middlebox.fragments.lost() - lost;
        counters.reassembled += u64::from(whole.is_some());
        self.middleboxes.asked(id);
        whole.map(|mut whole| {
            whole.came_by = came_by;
            whole
        })
    }

    /// Translates a packet; `false`, and nothing is changed, where that cannot be: a transport header
    /// that is cut, or an ICMP error with a wrong checksum (RFC 5508, REQ-3).
    pub(super) fn translate(
        &mut self,
        id: RouterId,
        rewrite: &PacketRewrite,
        info: &IpPacketSummary,
        frame: &mut [u8],
        vnet: &VirtioNetHeader,
        count: u32,
    ) -> bool {
        let written = rewrite.write(frame, info, vnet);
        if written && let Some(middlebox) = self.middleboxes.at_mut(id) {
            middlebox.count(rewrite, count);
            self.net.routers[id.index()].translated += u64::from(count);
        }
        written
    }
}
