//! What a replica says to its clients: its offers of segments are made to fit tunnels, and its resets
//! end connections.

use windtunnel_model::plan::Encapsulation;
use windtunnel_model::{NodeId, PortId, RouterId};
use windtunnel_wire::packet::Info;
use windtunnel_wire::{mss, tcp, vnet};

use super::pins::{Key, State};
use super::{Row, Services, Way};
use crate::records::mapped;

/// A TCP segment in a service's name with SYN or RST.
struct Reply {
    row: Row,
    key: Key,
    flags: u8,
}

impl Services {
    /// Takes note of a frame that a replica's node sends, and clamps what it offers. `generation` is
    /// that of the ways: another one where they may have changed.
    pub(crate) fn take_reply(
        &mut self,
        port: PortId,
        (frame, header): (&mut [u8], &vnet::Header),
        generation: u64,
        way: &mut dyn FnMut(RouterId, PortId) -> Option<Way>,
    ) {
        let Some(reply) = self.reply(frame) else { return };
        let node = self.owners[port.index()];
        if reply.flags & tcp::RST != 0 {
            return self.take_reset(node, &reply);
        }
        let service = &mut self.list[usize::from(reply.row.service)];
        let position = service.replicas.iter().position(|replica| replica.node == node);
        let (Some(position), Encapsulation::Clamp) = (position, service.planned.encapsulation)
        else {
            return;
        };
        let is_v6 = usize::from(reply.row.is_v6);
        let known = service.replicas[position].clamps[is_v6].filter(|(of, _)| *of == generation);
        let most =
            known.map_or_else(|| self.largest_segment(&reply.row, position, way), |(_, most)| most);
        let service = &mut self.list[usize::from(reply.row.service)];
        service.replicas[position].clamps[is_v6] = Some((generation, most));
        service.counters.clamped += u64::from(mss::clamp(frame, header, most));
    }

    /// The largest MSS whose segments fit the ways of all redirectors to a replica.
    fn largest_segment(
        &self,
        row: &Row,
        position: usize,
        way: &mut dyn FnMut(RouterId, PortId) -> Option<Way>,
    ) -> u16 {
        let service = &self.list[usize::from(row.service)];
        let end = service.replicas[position].port;
        let routers = service.planned.at.iter().zip(0u32..).flat_map(|(word, at)| {
            let set = (0..64u32).filter(move |bit| word >> bit & 1 != 0);
            set.map(move |bit| RouterId(at * 64 + bit))
        });
        let mtu = routers.filter_map(|router| way(router, end)).map(|way| way.mtu).min();
        // Two IP headers and TCP's own.
        let headers = if row.is_v6 { 40 + 40 + 20 } else { 20 + 20 + 20 };
        let most = mtu.unwrap_or(u32::MAX).saturating_sub(headers);
        u16::try_from(most).unwrap_or(u16::MAX).max(1)
    }

    /// A replica's kernel ends a connection.
    fn take_reset(&mut self, node: NodeId, reply: &Reply) {
        let Some(number) = self.pins.find(&reply.key) else { return };
        let pin = self.pins.get_mut(number);
        let service = &mut self.list[usize::from(reply.row.service)];
        let replica = &mut service.replicas[usize::from(pin.replica)];
        if replica.node == node {
            replica.counters.live_connections -= u64::from(pin.state.is_connection());
            pin.state = State::Closing;
        }
    }

    fn reply(&self, frame: &[u8]) -> Option<Reply> {
        let info = Info::parse(frame).ok()?;
        if info.protocol != tcp::PROTOCOL || !self.filter.may_hold(info.source) {
            return None;
        }
        let segment = info.payload(frame).first_chunk::<{ tcp::HEADER_LEN }>()?;
        let flags = segment[13];
        if flags & (tcp::SYN | tcp::RST) == 0 || info.is_later_fragment {
            return None;
        }
        let [port, client_port] =
            [[segment[0], segment[1]], [segment[2], segment[3]]].map(u16::from_be_bytes);
        let number = self.rows.find(mapped(info.source), port, tcp::PROTOCOL)?;
        let key = Key { client: mapped(info.destination), client_port, row: number };
        Some(Reply { row: *self.rows.get(number), key, flags })
    }
}
