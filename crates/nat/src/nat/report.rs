//! What there is to say of a NAT.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use windtunnel_model::Time;
use windtunnel_model::plan::IpTransport;

use super::NetworkAddressTranslator;
use super::mapping::EndpointMapping;
use crate::endpoint::Ipv4Endpoint;

/// What a NAT did, in numbers that only grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NatCounters {
    /// Mappings that packets made.
    pub mappings_made: u64,
    /// Of these, those that are over.
    pub mappings_expired: u64,
    /// Sessions: mappings with a remote endpoint.
    pub sessions_made: u64,
    /// Mappings that ended and were not asked for in time.
    pub ended_lost: u64,
}

/// A mapping as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappingState {
    /// Its protocol.
    pub transport: IpTransport,
    /// The endpoint inside.
    pub internal: Ipv4Endpoint,
    /// That by which it is known outside.
    pub external: Ipv4Endpoint,
    /// The only remote endpoint that it is for, if there is one.
    pub remote: Option<Ipv4Endpoint>,
    /// Whether it is a forwarded port.
    pub forwarded: bool,
    /// When it was made.
    pub made: Time,
    /// When it ends without a further packet; `None`: a forwarded port without sessions.
    pub expires: Option<Time>,
    /// Remote endpoints with which it has a session.
    pub sessions: u32,
    /// Packets from inside.
    pub outbound: u64,
    /// Packets to inside.
    pub inbound: u64,
}

/// A mapping that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndedMapping {
    /// As it was last.
    pub mapping: MappingState,
    /// When its time was over.
    pub ended: Time,
}

impl NetworkAddressTranslator {
    /// What it did.
    #[must_use]
    pub fn counters(&self) -> NatCounters {
        self.counters
    }

    /// How many mappings there are, forwarded ports among them.
    #[must_use]
    pub fn mappings_held(&self) -> usize {
        self.mappings.len()
    }

    /// How many sessions there are.
    #[must_use]
    pub fn sessions_held(&self) -> usize {
        self.sessions.len()
    }

    /// The mappings of this moment, by protocol and external endpoint, at most so many. All sessions
    /// are looked at.
    #[must_use]
    pub fn mappings(&self, most: usize) -> Vec<MappingState> {
        let mut states: BTreeMap<u32, MappingState> =
            self.mappings.iter().map(|(number, it)| (number, it.state())).collect();
        for (_, session) in self.sessions.iter() {
            let Some(state) = states.get_mut(&session.mapping) else { continue };
            state.expires = state.expires.max(Some(session.deadline.at));
            state.outbound += session.packets[0];
            state.inbound += session.packets[1];
        }
        let mut states: Vec<_> = states.into_values().collect();
        states.sort_by_key(|it| (it.transport, it.external));
        states.truncate(most);
        states
    }

    /// A mapping that is over, in the order of their ends; each is given once.
    pub fn poll_ended(&mut self) -> Option<EndedMapping> {
        self.ended.pop_front()
    }

    pub(super) fn note_ended(&mut self, now: Time, mapping: &EndpointMapping) {
        if self.ended.len() >= Self::ENDED_MAX {
            self.counters.ended_lost += 1;
            return;
        }
        self.ended.push_back(EndedMapping { mapping: mapping.state(), ended: now });
    }
}

impl EndpointMapping {
    fn state(&self) -> MappingState {
        MappingState {
            transport: self.transport,
            internal: self.internal,
            external: self.external,
            remote: self.remote,
            forwarded: self.forwarded,
            made: self.made,
            expires: None,
            sessions: self.sessions,
            outbound: self.packets[0],
            inbound: self.packets[1],
        }
    }
}
