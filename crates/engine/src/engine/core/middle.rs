//! Packets at middleboxes: what routers with a NAT or a firewall do instead of only routing.

use windtunnel_model::plan::MiddleboxSide;
use windtunnel_model::{Lane, RouterId, Time};
use windtunnel_wire::packet::{IpPacketSummary, IpVersion, ParsedPacket};
use windtunnel_wire::translate::{self, IcmpQuotedPacket};
use windtunnel_wire::{hop, vnet};

use crate::middlebox::{
    MiddleboxPacketKind, Middleboxes, PacketDenial, PacketRewrite, RouterMiddlebox,
};
use crate::packet::{EmulatedPacket, MeasuredFrame};
use crate::records::RouterReason;
use crate::router::{self, ForwardingDecision, ForwardingRefusal};
use crate::tunnel::{PacketTunnel, TunnelEndpoint};
use crate::underlay::Underlay;

/// The middleboxes at the routers of a network.
pub(crate) struct MiddleboxPassage<'a> {
    pub(super) middleboxes: &'a mut Middleboxes,
    pub(super) net: &'a mut Underlay,
}

/// What becomes of a packet at a middlebox.
pub(super) enum PassageOutcome {
    /// It goes on by this lane, and is translated.
    Forward(Lane, EmulatedPacket),
    /// The router does the same as any.
    Plain(ForwardingDecision, EmulatedPacket),
    /// The middlebox does not let it pass.
    Denied(PacketDenial, EmulatedPacket),
    /// It waits for other fragments.
    Held,
}

/// Why a packet does not go on.
#[derive(Debug, Clone, Copy)]
enum MiddleboxRefusal {
    /// As at any router.
    Verdict(ForwardingDecision),
    /// The middlebox does not let it pass.
    Denied(PacketDenial),
}

impl MiddleboxPassage<'_> {
    /// Finds out what becomes of a packet that has come to a middlebox, and translates it.
    #[inline(never)]
    pub(super) fn pass(
        &mut self,
        now: Time,
        id: RouterId,
        lane: Lane,
        mut packet: EmulatedPacket,
    ) -> PassageOutcome {
        let Ok(mut parsed) = ParsedPacket::parse(packet.frame()) else {
            return PassageOutcome::Plain(ForwardingDecision::Malformed, packet);
        };
        if parsed.info.is_fragment && parsed.info.version == IpVersion::V4 {
            let info = parsed.info;
            let Some(whole) = self.make_whole(now, id, &info, packet) else {
                return PassageOutcome::Held;
            };
            packet = whole;
            parsed = match ParsedPacket::parse(packet.frame()) {
                Ok(parsed) => parsed,
                Err(_) => return PassageOutcome::Plain(ForwardingDecision::Malformed, packet),
            };
        }
        let mut changes = PacketRewrite::default();
        let tunnel = packet.tunnel.as_ref();
        let outcome = self.survey(now, id, lane, tunnel, &parsed, &mut changes);
        let info = parsed.info;
        self.middleboxes.asked(id);
        match outcome {
            Ok(next) => {
                let count = packet.shape.count;
                let (frame, vnet) = packet.settled(&mut self.net.lanes.work.pool);
                if !write(frame, &info, vnet, &changes) {
                    return PassageOutcome::Denied(PacketDenial::UNREADABLE, packet);
                }
                let forwarded = hop::decrement_ttl(frame);
                debug_assert!(forwarded.is_ok(), "the verdict has looked at the TTL");
                self.note_translated(id, &changes, count);
                PassageOutcome::Forward(next, packet)
            }
            Err(MiddleboxRefusal::Denied(denial)) => PassageOutcome::Denied(denial, packet),
            Err(MiddleboxRefusal::Verdict(verdict)) => PassageOutcome::Plain(verdict, packet),
        }
    }

    /// The lane on which a middlebox sends a frame on, now and translated, where nothing else is to be
    /// done.
    pub(super) fn pass_at_once(
        &mut self,
        now: Time,
        id: RouterId,
        lane: Lane,
        frame: &mut MeasuredFrame<'_>,
    ) -> Option<Lane> {
        let packet = ParsedPacket::parse(frame.bytes).ok()?;
        // What has to be put together, or reported about, is held.
        if packet.info.is_fragment || packet.info.is_icmp_error {
            return None;
        }
        let mut changes = PacketRewrite::default();
        let outcome = self.survey(now, id, lane, None, &packet, &mut changes);
        self.middleboxes.asked(id);
        let next = outcome.ok()?;
        // Nothing is changed until it is certain that it goes on.
        let macs = self.net.next_addresses(now, next, &packet.info, &changes)?;
        let info = packet.info;
        if !write(frame.bytes, &info, &frame.vnet, &changes) {
            return None;
        }
        let forwarded = hop::decrement_ttl(frame.bytes);
        debug_assert!(forwarded.is_ok(), "the verdict has looked at the TTL");
        macs.write(frame.bytes);
        self.note_translated(id, &changes, frame.shape.count);
        Some(next)
    }

    /// Finds out what becomes of a packet, and changes no byte of it. What is found is written in place:
    /// moved from one answer into the next it was a third of what a packet cost here.
    fn survey(
        &mut self,
        now: Time,
        id: RouterId,
        lane: Lane,
        tunnel: Option<&PacketTunnel>,
        packet: &ParsedPacket<'_>,
        changes: &mut PacketRewrite,
    ) -> Result<Lane, MiddleboxRefusal> {
        let info = &packet.info;
        let came = self.middleboxes.interface(lane.reverse()).side;
        let Some(middlebox) = self.middleboxes.at_mut(id) else {
            return Err(MiddleboxRefusal::Verdict(ForwardingDecision::Ignore));
        };
        if !router::travels(info) {
            return Err(MiddleboxRefusal::Verdict(ForwardingDecision::Ignore));
        }
        let reading = MiddleboxPacketKind::of(packet);
        middlebox.enter(now, came, info, &reading, changes).map_err(MiddleboxRefusal::Denied)?;
        let destination = changes.destination(info);
        let is_plain = destination == info.destination;
        let closed = is_plain && came == MiddleboxSide::Outside && middlebox.translates(info);
        if closed && self.is_inside(id, lane, info) {
            return Err(MiddleboxRefusal::Verdict(ForwardingDecision::Refuse(
                ForwardingRefusal::NoRoute,
            )));
        }
        let verdict = match tunnel {
            Some(tunnel) => router::decide_tunnel(&mut self.net.network, id, packet, tunnel),
            None => router::decide_route_to(&mut self.net.network, id, destination, packet),
        };
        let ForwardingDecision::Forward(next) = verdict else {
            return Err(MiddleboxRefusal::Verdict(verdict));
        };
        let goes = self.middleboxes.interface(next);
        let Some(middlebox) = self.middleboxes.at_mut(id) else {
            return Err(MiddleboxRefusal::Verdict(ForwardingDecision::Ignore));
        };
        middlebox
            .leave(now, came, goes, packet, &reading, changes)
            .map_err(MiddleboxRefusal::Denied)?;
        Ok(next)
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
    /// it is made one about what its sender has sent. `None`: it goes nowhere.
    pub(super) fn readdress(
        &mut self,
        id: RouterId,
        mut packet: EmulatedPacket,
    ) -> Option<EmulatedPacket> {
        if self.readdress_in_place(id, &mut packet).is_some() {
            return Some(packet);
        }
        packet.discard(&mut self.net.lanes.work.pool);
        None
    }

    /// The same, where it goes somewhere.
    fn readdress_in_place(&mut self, id: RouterId, packet: &mut EmulatedPacket) -> Option<()> {
        let parsed = ParsedPacket::parse(packet.frame()).ok()?;
        let info = parsed.info;
        let middlebox = self.middleboxes.at(id)?;
        if info.version != IpVersion::V4 || !info.is_icmp_error || middlebox.nat.is_none() {
            return Some(());
        }
        let Some(quoted) = IcmpQuotedPacket::of(&parsed) else { return Some(()) };
        let changes = middlebox.readdress(info.destination, &quoted)?;
        let (frame, vnet) = packet.settled(&mut self.net.lanes.work.pool);
        write(frame, &info, vnet, &changes).then_some(())
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
    fn make_whole(
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

    fn note_translated(&mut self, id: RouterId, changes: &PacketRewrite, packets: u32) {
        if changes.is_empty() {
            return;
        }
        self.net.routers[id.index()].translated += u64::from(packets);
        if let Some(middlebox) = self.middleboxes.at_mut(id) {
            middlebox.count(changes, packets);
        }
    }
}

impl PacketDenial {
    /// A transport header that is cut, or an ICMP error with a wrong checksum (RFC 5508, REQ-3).
    const UNREADABLE: PacketDenial =
        PacketDenial { reason: RouterReason::Untranslatable, is_said: false };
}

/// Writes what is translated; `false`, and nothing is changed, where it cannot be.
fn write(
    frame: &mut [u8],
    info: &IpPacketSummary,
    vnet: &vnet::VirtioNetHeader,
    changes: &PacketRewrite,
) -> bool {
    if changes.is_empty() {
        return true;
    }
    if info.is_icmp_error {
        return translate::error(frame, info, &changes.ends, &changes.quoted);
    }
    translate::packet(frame, info, vnet, &changes.ends)
}
