//! The table of a redirector: which address, port and protocol is redirected.

use alloc::vec;
use alloc::vec::Vec;
use core::net::SocketAddr;

use windtunnel_failover::ReplicatedConnectionKey;
use windtunnel_model::plan::{Plan, ServicePort};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::tcp;

use super::hash::mix;
use crate::records::mapped;

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RedirectionRow {
    /// IPv4 as `::ffff:a.b.c.d`.
    pub(super) address: u128,
    pub(super) port: ServicePort,
    /// The position of its service.
    pub(super) service: u16,
    /// The position of the port in the service.
    pub(super) position: u8,
    pub(super) is_v6: bool,
}

/// All rows, numbered service by service, and by address and port within one.
#[derive(Debug, Default)]
pub(super) struct RedirectionTable {
    rows: Vec<RedirectionRow>,
    /// Numbers of rows and one more, at their hash or the next free place; 0: free.
    index: Vec<u16>,
}

impl RedirectionTable {
    pub(super) fn new(plan: &Plan) -> RedirectionTable {
        let mut rows = Vec::new();
        for (service, number) in plan.services.iter().zip(0u16..) {
            for address in service.addresses() {
                let ports = service.ports.iter().zip(0u8..);
                rows.extend(ports.map(|(port, position)| RedirectionRow {
                    address: mapped(address),
                    port: *port,
                    service: number,
                    position,
                    is_v6: address.is_ipv6(),
                }));
            }
        }
        let mut table = RedirectionTable { rows, index: Vec::new() };
        if !table.rows.is_empty() {
            table.index = vec![0; (table.rows.len() * 2).next_power_of_two()];
        }
        for (row, number) in table.rows.clone().iter().zip(1u16..) {
            let mut at = table.home(row.address, row.port.port, row.port.transport.number());
            while table.index[at] != 0 {
                at = (at + 1) & (table.index.len() - 1);
            }
            table.index[at] = number;
        }
        table
    }

    pub(super) fn all(&self) -> &[RedirectionRow] {
        &self.rows
    }

    pub(super) fn get(&self, row: u16) -> &RedirectionRow {
        &self.rows[usize::from(row)]
    }

    /// The number of the row for an address and port.
    pub(super) fn find(&self, address: u128, port: u16, protocol: u8) -> Option<u16> {
        if self.index.is_empty() {
            return None;
        }
        let mut at = self.home(address, port, protocol);
        loop {
            let number = self.index[at].checked_sub(1)?;
            let row = &self.rows[usize::from(number)];
            let fits = row.address == address && row.port.port == port;
            if fits && row.port.transport.number() == protocol {
                return Some(number);
            }
            at = (at + 1) & (self.index.len() - 1);
        }
    }

    /// The service in whose name a TCP segment is, and its connection.
    pub(super) fn spoken(
        &self,
        packet: &ParsedPacket<'_>,
    ) -> Option<(u16, ReplicatedConnectionKey)> {
        let info = &packet.info;
        if info.protocol != tcp::PROTOCOL || info.is_later_fragment {
            return None;
        }
        let ports = packet.payload().first_chunk::<4>()?;
        let [port, client_port] =
            [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_be_bytes);
        let number = self.find(mapped(info.source), port, tcp::PROTOCOL)?;
        let key = ReplicatedConnectionKey {
            client: SocketAddr::new(info.final_destination, client_port),
            service: SocketAddr::new(info.source, port),
        };
        Some((self.get(number).service, key))
    }

    fn home(&self, address: u128, port: u16, protocol: u8) -> usize {
        let hash = mix(address, u64::from(port) << 8 | u64::from(protocol));
        usize::try_from(hash >> 32).unwrap_or(0) & (self.index.len() - 1)
    }
}
