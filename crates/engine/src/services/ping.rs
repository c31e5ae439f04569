//! Echo requests to services' addresses: a replica answers them, or the router that redirects.
//!
//! They are of no flow, so nothing is pinned: each goes to the replica that is the nearest then.

use alloc::collections::BTreeMap;

use windtunnel_model::RouterId;
use windtunnel_model::plan::{Encapsulation, Ping, Plan};
use windtunnel_wire::icmp;
use windtunnel_wire::packet::ParsedPacket;

use super::{FindWay, Redirection, RedirectionRow, ReplicaAssignment, ServiceRedirector};
use crate::records::mapped;

/// By address: the first service of the file that says what answers there.
#[derive(Debug, Default)]
pub(super) struct Pinged(BTreeMap<u128, (u16, Ping)>);

impl Pinged {
    pub(super) fn new(plan: &Plan) -> Pinged {
        let mut pinged = BTreeMap::new();
        for (service, number) in plan.services.iter().zip(0u16..) {
            let Some(ping) = service.ping else { continue };
            for address in service.addresses() {
                pinged.entry(mapped(address)).or_insert((number, ping));
            }
        }
        Pinged(pinged)
    }
}

impl ServiceRedirector {
    /// What becomes of an echo request to the address of a service that has it answered at this
    /// router; `None`: it is none. The later fragments of one go the way of the first.
    pub(super) fn ping(
        &self,
        router: RouterId,
        packet: &ParsedPacket<'_>,
        way: &mut FindWay<'_>,
    ) -> Option<Redirection> {
        let info = &packet.info;
        if self.pinged.0.is_empty() || info.is_icmp_error {
            return None;
        }
        let kind = packet.payload().first().copied();
        let asks = match info.protocol {
            icmp::PROTOCOL_V4 => info.is_later_fragment || kind == Some(icmp::ECHO_REQUEST_V4),
            icmp::PROTOCOL_V6 => info.is_later_fragment || kind == Some(icmp::ECHO_REQUEST_V6),
            _ => false,
        };
        let (number, ping) = *asks.then(|| self.pinged.0.get(&mapped(info.destination)))??;
        let row = self.rows.all().iter().find(|row| row.service == number)?;
        if !self.redirects(router, row) {
            return None;
        }
        match ping {
            // A router puts no fragments together.
            Ping::Router => (!info.is_fragment).then_some(Redirection::Answer),
            Ping::Replica => {
                let is_v6 = info.destination.is_ipv6();
                let row = RedirectionRow { address: mapped(info.destination), is_v6, ..*row };
                let nearest = self
                    .nearest(number, way)
                    .map_or(ReplicaAssignment::Nowhere, ReplicaAssignment::To);
                Some(self.redirection(router, &row, nearest))
            }
        }
    }

    /// The nearest replica that serves some port.
    fn nearest(&self, service: u16, way: &mut FindWay<'_>) -> Option<u16> {
        let service = &self.list[usize::from(service)];
        let passes_nodes = service.planned.encapsulation != Encapsulation::None;
        let ports = (0u8..).take(service.planned.ports.len());
        let there = (0u16..).zip(&service.replicas).filter_map(|(number, replica)| {
            let takes = ports.clone().any(|position| replica.takes(position));
            let way = takes.then(|| way(replica.port))??;
            (passes_nodes || !way.passes_node).then_some((way.latency, way.hops, number))
        });
        there.min().map(|(.., number)| number)
    }
}
