//! Echo requests to services' addresses: a replica answers them, or the router that redirects.
//!
//! They are of no flow, so nothing is pinned: each goes to the replica that is the nearest then.

use alloc::collections::BTreeMap;

use windtunnel_model::RouterId;
use windtunnel_model::plan::{Ping, Plan};
use windtunnel_wire::icmp;
use windtunnel_wire::packet::ParsedPacket;

use super::choice::FindWay;
use super::directory::ServiceDirectory;
use super::rows::RedirectionRow;
use super::{Redirection, ReplicaAssignment};
use crate::records::mapped;

/// By address: the first service of the file that says what answers there.
#[derive(Debug, Default)]
pub(super) struct PingTargetTable(BTreeMap<u128, (u16, Ping)>);

impl PingTargetTable {
    pub(super) fn new(plan: &Plan) -> PingTargetTable {
        let mut pinged = BTreeMap::new();
        for (service, number) in plan.services.iter().zip(0u16..) {
            let Some(ping) = service.ping else { continue };
            for address in service.addresses() {
                pinged.entry(mapped(address)).or_insert((number, ping));
            }
        }
        PingTargetTable(pinged)
    }

    /// What becomes of an echo request to the address of a service that has it answered at this
    /// router; `None`: it is none. The later fragments of one go the way of the first.
    pub(super) fn redirect(
        &self,
        services: &ServiceDirectory,
        router: RouterId,
        packet: &ParsedPacket<'_>,
        way: &mut FindWay<'_>,
    ) -> Option<Redirection> {
        let info = &packet.info;
        if self.0.is_empty() || info.is_icmp_error {
            return None;
        }
        let kind = packet.payload().first().copied();
        let asks = match info.protocol {
            icmp::PROTOCOL_V4 => info.is_later_fragment || kind == Some(icmp::ECHO_REQUEST_V4),
            icmp::PROTOCOL_V6 => info.is_later_fragment || kind == Some(icmp::ECHO_REQUEST_V6),
            _ => false,
        };
        let (number, ping) = *asks.then(|| self.0.get(&mapped(info.destination)))??;
        let row = services.rows.all().iter().find(|row| row.service == number)?;
        let service = services.of(row);
        if !service.planned.redirects(router) {
            return None;
        }
        match ping {
            // A router puts no fragments together.
            Ping::Router => (!info.is_fragment).then_some(Redirection::Answer),
            Ping::Replica => {
                let is_v6 = info.destination.is_ipv6();
                let row = RedirectionRow { address: mapped(info.destination), is_v6, ..*row };
                let nearest =
                    service.nearest(way).map_or(ReplicaAssignment::Nowhere, ReplicaAssignment::To);
                Some(services.redirection(router, &row, nearest))
            }
        }
    }
}
