//! Sessions: mappings with a remote endpoint.

use core::net::Ipv4Addr;

use windtunnel_model::Time;
use windtunnel_model::plan::{IpTransport, NatFilteringBehaviour, NatRefreshBehaviour};

use super::mapping::EndpointMapping;
use super::{NetworkAddressTranslator, TranslationRefusal};
use crate::endpoint::{FlowEndpoints, Ipv4Endpoint, PackedFlowKey};
use crate::expiry::Deadline;
use crate::tcp::TcpTrackingState;

/// A mapping and a remote endpoint.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) transport: IpTransport,
    pub(super) internal: Ipv4Endpoint,
    pub(super) external: Ipv4Endpoint,
    pub(super) remote: Ipv4Endpoint,
    pub(super) mapping: u32,
    /// Whether an inbound packet began it.
    pub(super) inbound: bool,
    pub(super) progress: TcpTrackingState,
    pub(super) deadline: Deadline,
    /// Out, in.
    pub(super) packets: [u64; 2],
}

impl NetworkAddressTranslator {
    /// Begins a session.
    pub(super) fn begin(
        &mut self,
        now: Time,
        mapping: u32,
        remote: Ipv4Endpoint,
        inbound: bool,
    ) -> Result<u32, TranslationRefusal> {
        if self.sessions.len() >= Self::SESSIONS_MAX {
            return Err(TranslationRefusal::Exhausted);
        }
        let Some(of) = self.mappings.get_mut(mapping) else {
            return Err(TranslationRefusal::NoMapping);
        };
        of.sessions += 1;
        let EndpointMapping { transport, internal, external, forwarded, kept_until, .. } = *of;
        let timeout = TcpTrackingState::default().timeout(transport, &self.settings.timeouts);
        let number = self.sessions.insert(Session {
            transport,
            internal,
            external,
            remote,
            mapping,
            inbound,
            progress: TcpTrackingState::default(),
            deadline: Deadline::NEVER,
            packets: [0; 2],
        });
        let bounded =
            inbound && self.settings.refresh == NatRefreshBehaviour::Outbound && !forwarded;
        let at = if bounded { (now + timeout).min(kept_until) } else { now + timeout };
        let deadline = self.expiry.begin(number, at);
        if let Some(session) = self.sessions.get_mut(number) {
            session.deadline = deadline;
            let [outbound, inbound] = session.keys();
            self.by_outbound.insert(outbound.hash(&self.hash), number);
            self.by_inbound.insert(inbound.hash(&self.hash), number);
        }
        if self.settings.filtering == NatFilteringBehaviour::AddressDependent {
            *self.peers.entry((mapping, remote.address)).or_default() += 1;
        }
        self.counters.sessions_made += 1;
        Ok(number)
    }

    /// Ends a session whose time is over.
    pub(super) fn end(&mut self, number: u32) {
        let Some(session) = self.sessions.remove(number) else { return };
        let [outbound, inbound] = session.keys();
        self.by_outbound.remove(outbound.hash(&self.hash), number);
        self.by_inbound.remove(inbound.hash(&self.hash), number);
        let peer = (session.mapping, session.remote.address);
        if let Some(count) = self.peers.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.peers.remove(&peer);
            }
        }
        let Some(mapping) = self.mappings.get_mut(session.mapping) else { return };
        mapping.sessions -= 1;
        let packets = mapping.packets.iter_mut().zip(session.packets);
        packets.for_each(|(sum, more)| *sum += more);
        if mapping.sessions == 0 && !mapping.forwarded {
            self.unmap(session.deadline.at, session.mapping);
        }
    }

    #[inline]
    pub(super) fn find_outbound(&self, flow: &FlowEndpoints, external: Ipv4Addr) -> Option<u32> {
        let key = PackedFlowKey::outbound(flow, external);
        self.by_outbound.find(key.hash(&self.hash), |number| {
            self.sessions.get(number).is_some_and(|it| it.sends(flow, external))
        })
    }

    #[inline]
    pub(super) fn find_inbound(&self, flow: &FlowEndpoints) -> Option<u32> {
        let key = PackedFlowKey::inbound(flow);
        self.by_inbound.find(key.hash(&self.hash), |number| {
            self.sessions.get(number).is_some_and(|it| it.receives(flow))
        })
    }
}

impl Session {
    /// Whether what leaves by an external address is of it.
    #[inline]
    fn sends(&self, flow: &FlowEndpoints, external: Ipv4Addr) -> bool {
        (self.internal, self.remote) == (flow.local, flow.remote)
            && (self.transport, self.external.address) == (flow.transport, external)
    }

    /// Whether what comes to an external endpoint is.
    #[inline]
    fn receives(&self, flow: &FlowEndpoints) -> bool {
        (self.external, self.remote, self.transport) == (flow.local, flow.remote, flow.transport)
    }

    /// Of what leaves and of what comes.
    fn keys(&self) -> [PackedFlowKey; 2] {
        let flow = |local| FlowEndpoints { transport: self.transport, local, remote: self.remote };
        [
            PackedFlowKey::outbound(&flow(self.internal), self.external.address),
            PackedFlowKey::inbound(&flow(self.external)),
        ]
    }
}
