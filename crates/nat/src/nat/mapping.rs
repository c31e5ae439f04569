//! Mappings: internal endpoints and their external ones.

use core::net::Ipv4Addr;

use windtunnel_model::Time;
use windtunnel_model::plan::{IpTransport, NatMappingBehaviour as MappingRule};

use super::{NetworkAddressTranslator, TranslationRefusal};
use crate::endpoint::{FlowEndpoints, Ipv4Endpoint, PackedFlowKey};
use crate::hash::HashKey;
use crate::table::{HashIndex, Slab};

/// An internal endpoint and its external one.
#[derive(Debug)]
pub(super) struct EndpointMapping {
    pub(super) transport: IpTransport,
    pub(super) internal: Ipv4Endpoint,
    pub(super) external: Ipv4Endpoint,
    /// The remote endpoint that it is for, where it depends on that.
    pub(super) remote: Option<Ipv4Endpoint>,
    /// Whether it is a forwarded port, which stays.
    pub(super) forwarded: bool,
    /// Whether its internal endpoint leads to it: of several forwarded ports the first does.
    pub(super) leads: bool,
    pub(super) sessions: u32,
    pub(super) made: Time,
    /// Where only packets from inside keep mappings alive: until when those have.
    pub(super) kept_until: Time,
    /// Packets of sessions that are over: out, in.
    pub(super) packets: [u64; 2],
}

impl NetworkAddressTranslator {
    /// Makes a mapping.
    pub(super) fn map(
        &mut self,
        now: Time,
        flow: &FlowEndpoints,
        external: Ipv4Addr,
    ) -> Result<u32, TranslationRefusal> {
        let is_free = |port| {
            let external = Ipv4Endpoint { address: external, port };
            find_external(&self.by_external, &self.hash, &self.mappings, flow.transport, external)
                .is_none()
        };
        if self.mappings.len() >= Self::SESSIONS_MAX {
            return Err(TranslationRefusal::Exhausted);
        }
        let port =
            self.ports.choose(flow.local.port, is_free).ok_or(TranslationRefusal::Exhausted)?;
        let depends = self.settings.mapping == MappingRule::AddressAndPortDependent;
        self.counters.mappings_made += 1;
        Ok(self.add_mapping(EndpointMapping {
            transport: flow.transport,
            internal: flow.local,
            external: Ipv4Endpoint { address: external, port },
            remote: depends.then_some(flow.remote),
            forwarded: false,
            leads: true,
            sessions: 0,
            made: now,
            kept_until: now,
            packets: [0; 2],
        }))
    }

    pub(super) fn add_mapping(&mut self, mut mapping: EndpointMapping) -> u32 {
        let [internal, external] = mapping.keys();
        let flow = FlowEndpoints {
            transport: mapping.transport,
            local: mapping.internal,
            remote: mapping.remote.unwrap_or(NOWHERE),
        };
        mapping.leads = self.lookup(&flow, mapping.external.address).is_none();
        let leads = mapping.leads;
        let number = self.mappings.insert(mapping);
        if leads {
            self.by_internal.insert(internal.hash(&self.hash), number);
        }
        self.by_external.insert(external.hash(&self.hash), number);
        number
    }

    pub(super) fn unmap(&mut self, at: Time, number: u32) {
        let Some(mapping) = self.mappings.remove(number) else { return };
        let [internal, external] = mapping.keys();
        if mapping.leads {
            self.by_internal.remove(internal.hash(&self.hash), number);
        }
        self.by_external.remove(external.hash(&self.hash), number);
        self.counters.mappings_expired += 1;
        self.note_ended(at, &mapping);
    }

    /// The mapping of an internal endpoint: its forwarded port, or one that packets have made.
    pub(super) fn mapping_of(&self, flow: &FlowEndpoints, external: Ipv4Addr) -> Option<u32> {
        let any = FlowEndpoints { remote: NOWHERE, ..*flow };
        let own = self.settings.mapping == MappingRule::AddressAndPortDependent;
        let found = self.lookup(&any, external);
        found.or_else(|| own.then(|| self.lookup(flow, external)).flatten())
    }

    pub(super) fn lookup(&self, flow: &FlowEndpoints, external: Ipv4Addr) -> Option<u32> {
        let key = PackedFlowKey::outbound(flow, external);
        self.by_internal.find(key.hash(&self.hash), |number| {
            self.mappings.get(number).is_some_and(|mapping| mapping.keys()[0] == key)
        })
    }

    pub(super) fn mapping_at(&self, transport: IpTransport, external: Ipv4Endpoint) -> Option<u32> {
        find_external(&self.by_external, &self.hash, &self.mappings, transport, external)
    }
}

impl EndpointMapping {
    /// Of its internal and its external endpoint.
    fn keys(&self) -> [PackedFlowKey; 2] {
        let remote = self.remote.unwrap_or(NOWHERE);
        let flow = |local, remote| FlowEndpoints { transport: self.transport, local, remote };
        [
            PackedFlowKey::outbound(&flow(self.internal, remote), self.external.address),
            PackedFlowKey::inbound(&flow(self.external, NOWHERE)),
        ]
    }
}

fn find_external(
    index: &HashIndex,
    hash: &HashKey,
    mappings: &Slab<EndpointMapping>,
    transport: IpTransport,
    external: Ipv4Endpoint,
) -> Option<u32> {
    let key =
        PackedFlowKey::inbound(&FlowEndpoints { transport, local: external, remote: NOWHERE });
    index.find(key.hash(hash), |number| {
        mappings.get(number).is_some_and(|mapping| mapping.keys()[1] == key)
    })
}

/// In the place of a remote endpoint that does not matter.
const NOWHERE: Ipv4Endpoint = Ipv4Endpoint { address: Ipv4Addr::UNSPECIFIED, port: 0 };
