//! A NAT: mappings, sessions, filters.

mod mapping;
mod report;
mod session;

use alloc::collections::{BTreeMap, VecDeque};
use core::net::Ipv4Addr;

use windtunnel_model::Time;
use windtunnel_model::plan::{
    IpTransport, NatBehaviour as Settings, NatFilteringBehaviour, NatRefreshBehaviour,
};
use windtunnel_model::random::RandomStream;

use crate::endpoint::{FlowEndpoints, Ipv4Endpoint};
use crate::expiry::ExpiryQueue;
use crate::hash::HashKey;
use crate::ports::PortAllocator;
use crate::table::{HashIndex, Slab};
use crate::tcp::TrackedFlowDirection;
use mapping::EndpointMapping;
pub use report::{EndedMapping, MappingState, NatCounters};
use session::Session;

/// The state of a network address translator.
#[derive(Debug)]
pub struct NetworkAddressTranslator {
    settings: Settings,
    ports: PortAllocator,
    mappings: Slab<EndpointMapping>,
    sessions: Slab<Session>,
    /// Mappings by internal endpoint (and remote one, where the mapping depends on that).
    by_internal: HashIndex,
    by_external: HashIndex,
    /// Sessions by internal and remote endpoint, and by external and remote endpoint.
    by_outbound: HashIndex,
    by_inbound: HashIndex,
    hash: HashKey,
    /// With address-dependent filtering: sessions by mapping and remote address.
    peers: BTreeMap<(u32, Ipv4Addr), u32>,
    expiry: ExpiryQueue,
    counters: NatCounters,
    ended: VecDeque<EndedMapping>,
}

/// What a packet is translated to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NatTranslation {
    /// Its own end on the other side: external for what leaves, internal for what comes.
    pub endpoint: Ipv4Endpoint,
    session: u32,
    out: bool,
}

/// Why a packet does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranslationRefusal {
    /// Nothing inside has the external endpoint.
    NoMapping,
    /// The filter does not let the remote endpoint in.
    Filtered,
    /// No port or no room is left for it.
    Exhausted,
}

impl NetworkAddressTranslator {
    /// The most mappings, and the most sessions.
    pub const SESSIONS_MAX: usize = 1 << 20;
    /// The most mappings that have ended and were not asked for.
    pub const ENDED_MAX: usize = 1 << 16;

    /// A NAT with these external addresses. Random ports come from `draws`.
    #[must_use]
    pub fn new(
        settings: &Settings,
        externals: &[Ipv4Addr],
        draws: RandomStream,
    ) -> NetworkAddressTranslator {
        let mut nat = NetworkAddressTranslator {
            settings: settings.clone(),
            ports: PortAllocator::new(settings.allocation, settings.ports, draws),
            mappings: Slab::default(),
            sessions: Slab::default(),
            by_internal: HashIndex::default(),
            by_external: HashIndex::default(),
            by_outbound: HashIndex::default(),
            by_inbound: HashIndex::default(),
            hash: HashKey::new(draws),
            peers: BTreeMap::new(),
            expiry: ExpiryQueue::default(),
            counters: NatCounters::default(),
            ended: VecDeque::new(),
        };
        for address in externals {
            for forward in &settings.forwards {
                let internal = Ipv4Endpoint { address: forward.to, port: forward.to_port };
                let external = Ipv4Endpoint { address: *address, port: forward.port };
                nat.add_mapping(EndpointMapping {
                    transport: forward.transport,
                    internal,
                    external,
                    remote: None,
                    forwarded: true,
                    leads: true,
                    sessions: 0,
                    made: Time::ZERO,
                    kept_until: Time::ZERO,
                    packets: [0; 2],
                });
            }
        }
        nat
    }

    /// The external endpoint that a packet from inside gets, which leaves by `external`.
    ///
    /// # Errors
    /// [`TranslationRefusal::Exhausted`].
    #[inline]
    pub fn outbound(
        &mut self,
        now: Time,
        flow: &FlowEndpoints,
        external: Ipv4Addr,
        flags: u8,
    ) -> Result<NatTranslation, TranslationRefusal> {
        self.expire(now);
        if let Some(number) = self.find_outbound(flow, external) {
            return Ok(self.touch(now, number, flags, true));
        }
        let mapping = match self.mapping_of(flow, external) {
            Some(mapping) => mapping,
            None => self.map(now, flow, external)?,
        };
        let number = self.begin(now, mapping, flow.remote, false)?;
        Ok(self.touch(now, number, flags, true))
    }

    /// The internal endpoint that a packet from outside is for; `flow.local` is the external one.
    ///
    /// # Errors
    /// Why it does not pass.
    #[inline]
    pub fn inbound(
        &mut self,
        now: Time,
        flow: &FlowEndpoints,
        flags: u8,
    ) -> Result<NatTranslation, TranslationRefusal> {
        self.expire(now);
        let number = match self.find_inbound(flow) {
            Some(number) => number,
            None => self.admit(now, flow)?,
        };
        Ok(self.touch(now, number, flags, false))
    }

    /// Counts packets that have been translated.
    #[inline]
    pub fn count(&mut self, mapped: &NatTranslation, packets: u32) {
        if let Some(session) = self.sessions.get_mut(mapped.session) {
            session.packets[usize::from(!mapped.out)] += u64::from(packets);
        }
    }

    /// Whether something inside has an external endpoint.
    #[must_use]
    pub fn has_mapping(&self, transport: IpTransport, external: Ipv4Endpoint) -> bool {
        self.mapping_at(transport, external).is_some()
    }

    /// The internal endpoint behind an external one, for an ICMP error about what it has sent. No
    /// session is asked for, and none lives longer or shorter for it (RFC 4787, REQ-12; RFC 5382,
    /// REQ-10; RFC 5508, REQ-4 and REQ-6).
    #[must_use]
    pub fn internal(&self, transport: IpTransport, external: Ipv4Endpoint) -> Option<Ipv4Endpoint> {
        let mapping = self.mapping_at(transport, external)?;
        self.mappings.get(mapping).map(|mapping| mapping.internal)
    }

    /// The external endpoint of an internal one, for an ICMP error about what it was sent (RFC 5508,
    /// REQ-5); `flow` is that of what it sends.
    #[must_use]
    pub fn external(&self, flow: &FlowEndpoints, external: Ipv4Addr) -> Option<Ipv4Endpoint> {
        let session = self.find_outbound(flow, external);
        if let Some(session) = session.and_then(|number| self.sessions.get(number)) {
            return Some(session.external);
        }
        let mapping = self.mappings.get(self.mapping_of(flow, external)?)?;
        Some(mapping.external)
    }

    /// When [`expire`](NetworkAddressTranslator::expire) has something to do.
    #[must_use]
    pub fn next(&self) -> Option<Time> {
        self.expiry.next()
    }

    /// Forgets sessions whose time is over, and mappings that have none left.
    #[inline]
    pub fn expire(&mut self, now: Time) {
        if self.expiry.next().is_some_and(|at| at <= now) {
            self.forget(now);
        }
    }

    fn forget(&mut self, now: Time) {
        while let Some(look) = self.expiry.look(now) {
            let Some(session) = self.sessions.get_mut(look.number) else { continue };
            if self.expiry.is_over(now, &look, &mut session.deadline) {
                self.end(look.number);
            }
        }
    }

    /// Takes a packet of a session into account.
    #[inline]
    fn touch(&mut self, now: Time, number: u32, flags: u8, out: bool) -> NatTranslation {
        let Some(session) = self.sessions.get_mut(number) else {
            unreachable!("the session was found or made now")
        };
        let way = if out == session.inbound {
            TrackedFlowDirection::Back
        } else {
            TrackedFlowDirection::Forth
        };
        if session.transport == IpTransport::Tcp {
            session.progress.note(flags, way);
        }
        let timeout = session.progress.timeout(session.transport, &self.settings.timeouts);
        let at = now + timeout;
        if out || self.settings.refresh == NatRefreshBehaviour::Both {
            self.expiry.set(number, &mut session.deadline, at);
        } else if at < session.deadline.at {
            // That of a connection that closes gets shorter.
            self.expiry.set(number, &mut session.deadline, at);
        }
        if out && self.settings.refresh == NatRefreshBehaviour::Outbound {
            let mapping = self.mappings.get_mut(session.mapping);
            mapping.into_iter().for_each(|it| it.kept_until = it.kept_until.max(at));
        }
        let endpoint = if out { session.external } else { session.internal };
        NatTranslation { endpoint, session: number, out }
    }

    /// Whether a packet from outside without a session passes; its new session.
    fn admit(&mut self, now: Time, flow: &FlowEndpoints) -> Result<u32, TranslationRefusal> {
        let number =
            self.mapping_at(flow.transport, flow.local).ok_or(TranslationRefusal::NoMapping)?;
        let mapping = self.mappings.get(number).ok_or(TranslationRefusal::NoMapping)?;
        let passes = mapping.forwarded
            || match self.settings.filtering {
                NatFilteringBehaviour::EndpointIndependent => true,
                NatFilteringBehaviour::AddressDependent => {
                    self.peers.contains_key(&(number, flow.remote.address))
                }
                NatFilteringBehaviour::AddressAndPortDependent => false,
            };
        if !passes {
            return Err(TranslationRefusal::Filtered);
        }
        let internal = FlowEndpoints { local: mapping.internal, ..*flow };
        // Two forwarded ports of one endpoint, and one remote endpoint that asks both: its answers
        // could not be distinguished.
        if self.find_outbound(&internal, flow.local.address).is_some() {
            return Err(TranslationRefusal::Exhausted);
        }
        self.begin(now, number, flow.remote, true)
    }
}
