//! Middleboxes: what NATs and firewalls at routers do with packets.
//!
//! Theory of operation. The order is that of netfilter: a packet comes, its destination is translated
//! ([`RouterMiddlebox::enter`]), it is routed by that, the firewall sees the endpoints as they are inside,
//! and its source is translated as it leaves ([`RouterMiddlebox::leave`]). All of that is found out before a
//! byte changes, so that what is refused is reported about as it came, and a packet that has to
//! wait is not translated twice. `engine/core/middle.rs` does what is found here.

mod changes;
mod errors;
mod reading;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};

use windtunnel_model::plan::{
    FirewallPolicy, IpTransport, Middlebox as Planned, MiddleboxSide, Plan,
};
use windtunnel_model::random::RandomStream;
use windtunnel_model::{Lane, RouterId, Time};
use windtunnel_nat::{
    FirewallPacket, FlowEndpoints, Ipv4Endpoint, NetworkAddressTranslator, StatefulFirewall,
    TranslationRefusal,
};
use windtunnel_wire::packet::{IpPacketSummary, IpVersion, ParsedPacket};

use crate::reassembly::ReassemblyBuffer;
use crate::records::RouterReason;
pub(crate) use changes::PacketRewrite;
use errors::{enter_error, leave_error};
use reading::FirstFragmentTable;
pub(crate) use reading::MiddleboxPacketKind;

/// All middleboxes of a plan.
#[derive(Debug)]
pub(crate) struct Middleboxes {
    /// By router; empty where the plan has none.
    by_router: Vec<Option<Box<RouterMiddlebox>>>,
    /// By the lane that leaves by it: for each packet two are asked for.
    interfaces: Vec<MiddleboxInterface>,
    /// Nothing is over before.
    next: Option<Time>,
}

/// What a router does beside forwarding.
#[derive(Debug)]
pub(crate) struct RouterMiddlebox {
    /// The addresses of its outside interfaces, and those with which it is inside.
    externals: Vec<Ipv4Addr>,
    internals: Vec<Ipv4Addr>,
    pub(crate) nat: Option<NetworkAddressTranslator>,
    hairpin: bool,
    firewall: Option<StatefulFirewall>,
    /// IPv4 packets of which fragments are missing.
    pub(crate) fragments: ReassemblyBuffer,
    /// IPv6 packets whose first fragment has passed.
    passed: FirstFragmentTable,
}

/// An interface of a middlebox.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MiddleboxInterface {
    pub(crate) side: MiddleboxSide,
    v4: Option<Ipv4Addr>,
}

impl Default for MiddleboxInterface {
    fn default() -> MiddleboxInterface {
        MiddleboxInterface { side: MiddleboxSide::Inside, v4: None }
    }
}

/// Why a packet does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketDenial {
    pub(crate) reason: RouterReason,
    /// Whether its sender gets a message.
    pub(crate) is_said: bool,
}

impl Middleboxes {
    pub(crate) fn new(plan: &Plan) -> Middleboxes {
        let mut by_router = Vec::new();
        if !plan.middleboxes.is_empty() {
            by_router.resize_with(plan.routers.len(), || None);
        }
        for planned in &plan.middleboxes {
            by_router[planned.router.index()] = Some(Box::new(RouterMiddlebox::new(plan, planned)));
        }
        Middleboxes { by_router, interfaces: interfaces_of(plan), next: None }
    }

    /// Whether a router is one.
    #[inline]
    pub(crate) fn is_at(&self, router: RouterId) -> bool {
        self.by_router.get(router.index()).is_some_and(Option::is_some)
    }

    pub(crate) fn at(&self, router: RouterId) -> Option<&RouterMiddlebox> {
        self.by_router.get(router.index())?.as_deref()
    }

    pub(crate) fn at_mut(&mut self, router: RouterId) -> Option<&mut RouterMiddlebox> {
        self.by_router.get_mut(router.index())?.as_deref_mut()
    }

    /// The interface by which a lane leaves a middlebox.
    #[inline]
    pub(crate) fn interface(&self, lane: Lane) -> MiddleboxInterface {
        self.interfaces.get(lane.index()).copied().unwrap_or_default()
    }

    /// All, with their routers.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (RouterId, &mut RouterMiddlebox)> {
        let all = self.by_router.iter_mut().enumerate();
        all.filter_map(|(id, it)| Some((RouterId::from_index(id), it.as_deref_mut()?)))
    }

    /// When something may be over.
    #[inline]
    pub(crate) fn next(&self) -> Option<Time> {
        self.next
    }

    /// Takes into account that one has been asked.
    #[inline]
    pub(crate) fn asked(&mut self, router: RouterId) {
        let known = self.next;
        let sooner = |at: Time| known.is_none_or(|known| at < known);
        if self.at(router).is_some_and(|it| it.next_ones().into_iter().flatten().any(sooner)) {
            self.next = self.at(router).and_then(RouterMiddlebox::next);
        }
    }

    /// Takes into account that what is over has been forgotten.
    pub(crate) fn settle(&mut self) {
        self.next = self.by_router.iter().flatten().filter_map(|it| it.next()).min();
    }
}

impl RouterMiddlebox {
    fn new(plan: &Plan, planned: &Planned) -> RouterMiddlebox {
        let router = &plan.routers[planned.router.index()];
        let addresses = |side: MiddleboxSide| -> Vec<Ipv4Addr> {
            let interfaces = router.interfaces.iter().zip(&planned.sides);
            interfaces.filter(|(_, it)| **it == side).filter_map(|(it, _)| it.v4).collect()
        };
        let [externals, internals] = [MiddleboxSide::Outside, MiddleboxSide::Inside].map(addresses);
        let draws = RandomStream::named(plan.seed, &["nat", &router.name]);
        let places = RandomStream::named(plan.seed, &["firewall", &router.name]);
        RouterMiddlebox {
            nat: planned
                .nat
                .as_ref()
                .map(|nat| NetworkAddressTranslator::new(nat, &externals, draws)),
            hairpin: planned.nat.as_ref().is_some_and(|nat| nat.hairpin),
            firewall: planned.firewall.as_ref().map(|it| StatefulFirewall::new(it, places)),
            externals,
            internals,
            fragments: ReassemblyBuffer::default(),
            passed: FirstFragmentTable::default(),
        }
    }

    /// Whether the router itself has an address inside.
    pub(crate) fn is_internal(&self, address: Ipv4Addr) -> bool {
        self.internals.contains(&address)
    }

    /// Whether what comes from outside to an address is translated or dropped, but never passes as
    /// it is, unless it stays outside.
    pub(crate) fn translates(&self, info: &IpPacketSummary) -> bool {
        self.nat.is_some() && info.version == IpVersion::V4
    }

    fn next(&self) -> Option<Time> {
        self.next_ones().into_iter().flatten().min()
    }

    #[inline]
    fn next_ones(&self) -> [Option<Time>; 3] {
        let nat = self.nat.as_ref().and_then(NetworkAddressTranslator::next);
        let firewall = self.firewall.as_ref().and_then(StatefulFirewall::next);
        [nat, firewall, self.fragments.next()]
    }

    /// Forgets what is over.
    pub(crate) fn expire(&mut self, now: Time) {
        self.nat.iter_mut().for_each(|nat| nat.expire(now));
        self.firewall.iter_mut().for_each(|firewall| firewall.expire(now));
    }

    fn is_external(&self, address: Ipv4Addr) -> bool {
        self.externals.contains(&address)
    }

    /// What becomes of the destination of a packet that has come from a side; of its source, too, where
    /// both are inside.
    ///
    /// # Errors
    /// Why it does not pass.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        now: Time,
        came: MiddleboxSide,
        info: &IpPacketSummary,
        reading: &MiddleboxPacketKind,
        changes: &mut PacketRewrite,
    ) -> Result<(), PacketDenial> {
        let (IpAddr::V4(source), IpAddr::V4(external)) = (info.source, info.destination) else {
            return Ok(());
        };
        if self.nat.is_none() || !self.is_external(external) {
            return Ok(());
        }
        let RouterMiddlebox { nat: Some(nat), hairpin, .. } = self else { return Ok(()) };
        let (transport, ports, flags) = match reading {
            MiddleboxPacketKind::Segment { transport, ports, flags } => {
                (*transport, *ports, *flags)
            }
            MiddleboxPacketKind::Answer { identifier } if came == MiddleboxSide::Outside => {
                (IpTransport::Icmp, [0, *identifier], 0)
            }
            // The router itself answers.
            MiddleboxPacketKind::Query { .. } => return Ok(()),
            MiddleboxPacketKind::Error(Some(quoted)) if quoted.source.0 == external => {
                return enter_error(nat, came, quoted, changes);
            }
            _ if came == MiddleboxSide::Inside => return Ok(()),
            _ => return Err(PacketDenial::silent(RouterReason::NoMapping)),
        };
        let local = Ipv4Endpoint { address: external, port: ports[1] };
        let remote = Ipv4Endpoint { address: source, port: ports[0] };
        let inbound = FlowEndpoints { transport, local, remote };
        if came == MiddleboxSide::Outside {
            changes.lead_to(nat.inbound(now, &inbound, flags).map_err(PacketDenial::of)?);
            return Ok(());
        }
        if !*hairpin || !nat.has_mapping(transport, local) {
            return Ok(());
        }
        // Its source becomes the external endpoint, too (RFC 4787, REQ-9a; RFC 5382, REQ-8a).
        let outbound = FlowEndpoints { transport, local: remote, remote: local };
        let from = nat.outbound(now, &outbound, external, flags).map_err(PacketDenial::of)?;
        let inbound = FlowEndpoints { remote: from.endpoint, ..inbound };
        changes.lead_to(nat.inbound(now, &inbound, flags).map_err(PacketDenial::of)?);
        changes.come_from(from);
        Ok(())
    }

    /// What becomes of the source of a packet that goes on by a link.
    ///
    /// # Errors
    /// Why it does not pass.
    #[inline]
    pub(crate) fn leave(
        &mut self,
        now: Time,
        came: MiddleboxSide,
        goes: MiddleboxInterface,
        packet: &ParsedPacket<'_>,
        reading: &MiddleboxPacketKind,
        changes: &mut PacketRewrite,
    ) -> Result<(), PacketDenial> {
        let MiddleboxInterface { side: goes, v4: external } = goes;
        let info = &packet.info;
        if self.firewall.is_some() {
            self.filter(now, [came, goes], changes, packet, reading)?;
        }
        // Of what goes back inside it is translated already.
        let is_known = changes.ends.source.is_some();
        let crosses = (came, goes) == (MiddleboxSide::Inside, MiddleboxSide::Outside) && !is_known;
        let (Some(nat), IpAddr::V4(source), true) = (&mut self.nat, info.source, crosses) else {
            return Ok(());
        };
        let IpAddr::V4(destination) = changes.destination(info) else { return Ok(()) };
        let external = external.ok_or(PacketDenial::silent(RouterReason::Untranslatable))?;
        let (transport, ports, flags) = match reading {
            MiddleboxPacketKind::Segment { transport, ports, flags } => {
                (*transport, *ports, *flags)
            }
            MiddleboxPacketKind::Query { identifier } => (IpTransport::Icmp, [*identifier, 0], 0),
            MiddleboxPacketKind::Error(Some(quoted)) => {
                return leave_error(nat, external, quoted, changes);
            }
            MiddleboxPacketKind::Answer { .. } => {
                return Err(PacketDenial::silent(RouterReason::NoMapping));
            }
            MiddleboxPacketKind::Error(None) | MiddleboxPacketKind::Other => {
                return Err(PacketDenial::silent(RouterReason::Untranslatable));
            }
        };
        let local = Ipv4Endpoint { address: source, port: ports[0] };
        let remote = Ipv4Endpoint { address: destination, port: ports[1] };
        let flow = FlowEndpoints { transport, local, remote };
        changes.come_from(nat.outbound(now, &flow, external, flags).map_err(PacketDenial::of)?);
        Ok(())
    }

    /// Counts packets that were translated so.
    #[inline]
    pub(crate) fn count(&mut self, changes: &PacketRewrite, packets: u32) {
        let Some(nat) = &mut self.nat else { return };
        changes.mapped.iter().flatten().for_each(|mapped| nat.count(mapped, packets));
    }

    fn filter(
        &mut self,
        now: Time,
        sides: [MiddleboxSide; 2],
        changes: &PacketRewrite,
        packet: &ParsedPacket<'_>,
        reading: &MiddleboxPacketKind,
    ) -> Result<(), PacketDenial> {
        let Some(firewall) = &mut self.firewall else { return Ok(()) };
        let info = &packet.info;
        if info.is_fragment && info.version == IpVersion::V6 && self.passed.knows(now, packet) {
            return Ok(());
        }
        let ends = reading::ends(changes, packet, reading);
        let about = reading::about(changes, packet, reading);
        let flags =
            if let MiddleboxPacketKind::Segment { flags, .. } = reading { *flags } else { 0 };
        let judged = FirewallPacket { sides, ends, flags, about };
        match firewall.judge(now, &judged).map_err(PacketDenial::of)? {
            FirewallPolicy::Allow => {
                self.passed.note(now, packet);
                Ok(())
            }
            FirewallPolicy::Deny => Err(PacketDenial::silent(RouterReason::Filtered)),
            FirewallPolicy::Reject => {
                Err(PacketDenial { reason: RouterReason::Filtered, is_said: true })
            }
        }
    }
}

fn interfaces_of(plan: &Plan) -> Vec<MiddleboxInterface> {
    let mut interfaces = Vec::new();
    for planned in &plan.middleboxes {
        interfaces.resize_with(plan.links.len() * 2, MiddleboxInterface::default);
        let of = &plan.routers[planned.router.index()].interfaces;
        for (it, side) in of.iter().zip(&planned.sides) {
            let lane = Lane { link: it.link, direction: it.outward };
            interfaces[lane.index()] = MiddleboxInterface { side: *side, v4: it.v4 };
        }
    }
    interfaces
}

impl PacketDenial {
    const fn silent(reason: RouterReason) -> PacketDenial {
        PacketDenial { reason, is_said: false }
    }

    fn of(refusal: TranslationRefusal) -> PacketDenial {
        match refusal {
            TranslationRefusal::NoMapping => PacketDenial::silent(RouterReason::NoMapping),
            TranslationRefusal::Filtered => PacketDenial::silent(RouterReason::Filtered),
            // RFC 5508, REQ-8.
            TranslationRefusal::Exhausted => {
                PacketDenial { reason: RouterReason::Exhausted, is_said: true }
            }
        }
    }
}
