//! What a replica says to its clients: its offers of segments are made to fit tunnels, and its resets
//! end connections.

use windtunnel_model::plan::Encapsulation;
use windtunnel_model::{NodeId, PortId, RouterId};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{mss, tcp};

use super::pins::{PinnedFlowKey, PinnedFlowPhase};
use super::{RedirectionRow, ReplicaPathMetrics, ServiceRedirector};
use crate::packet::MeasuredFrame;
use crate::records::mapped;
use crate::tunnel::PacketTunnel;

/// A TCP segment in a service's name with SYN or RST.
struct ServiceReplySegment {
    row: RedirectionRow,
    key: PinnedFlowKey,
    flags: u8,
}

/// A frame of a lost replica, which nothing gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Silenced;

impl ServiceRedirector {
    /// Takes note of a frame that a replica's node sends, and clamps what it offers; `Err` where the
    /// frame is to be dropped, as its replica is lost, and else the tunnel that it enters, if its
    /// connection is kept. `generation` is that of the ways: another one where they may have
    /// changed.
    pub(crate) fn take_reply(
        &mut self,
        port: PortId,
        frame: &mut MeasuredFrame<'_>,
        generation: u64,
        way: &mut dyn FnMut(RouterId, PortId) -> Option<ReplicaPathMetrics>,
    ) -> Result<Option<PacketTunnel>, Silenced> {
        let node = self.owners[port.index()];
        let Ok(packet) = ParsedPacket::parse(frame.bytes) else { return Ok(None) };
        if self.lost_replicas > 0 && self.silence(node, &packet, frame.shape.count) {
            return Err(Silenced);
        }
        let info = &packet.info;
        if info.protocol != tcp::PROTOCOL || !self.filter.may_hold(info.source) {
            return Ok(None);
        }
        let back = self.way_back(port, &packet);
        let Some(reply) = self.reply(&packet) else { return Ok(back) };
        if reply.flags & tcp::RST != 0 {
            self.take_reset(node, &reply);
        } else {
            self.clamp(node, &reply, frame, generation, way);
        }
        Ok(back)
    }

    /// Whether a packet, or a train of so many, is a lost replica's, in the name of its service; such
    /// is counted.
    fn silence(&mut self, node: NodeId, packet: &ParsedPacket<'_>, count: u32) -> bool {
        let info = &packet.info;
        if !self.filter.may_hold(info.source) {
            return false;
        }
        let source = mapped(info.source);
        let ports = packet.ports();
        // Fragments have no ports: they are in the name of every service with their address.
        let is_of = |row: &&RedirectionRow| {
            let transport = row.port.transport.number();
            let fits = info.is_fragment || ports.is_some_and(|(own, _)| own == row.port.port);
            row.address == source && transport == info.protocol && fits
        };
        let is_lost = |row: &&RedirectionRow| {
            let replicas = &self.list[usize::from(row.service)].replicas;
            replicas.iter().any(|replica| replica.node == node && replica.lost)
        };
        let row = self.rows.all().iter().filter(is_of).find(is_lost).copied();
        if let Some(row) = row {
            self.list[usize::from(row.service)].counters.silenced += u64::from(count);
        }
        row.is_some()
    }

    fn clamp(
        &mut self,
        node: NodeId,
        reply: &ServiceReplySegment,
        frame: &mut MeasuredFrame<'_>,
        generation: u64,
        way: &mut dyn FnMut(RouterId, PortId) -> Option<ReplicaPathMetrics>,
    ) {
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
        service.counters.clamped += u64::from(mss::clamp(frame.bytes, &frame.vnet, most));
    }

    /// The largest MSS whose segments fit the ways of all redirectors to a replica.
    fn largest_segment(
        &self,
        row: &RedirectionRow,
        position: usize,
        way: &mut dyn FnMut(RouterId, PortId) -> Option<ReplicaPathMetrics>,
    ) -> u16 {
        let service = &self.list[usize::from(row.service)];
        let end = service.replicas[position].port;
        let mtu = service
            .planned
            .routers()
            .filter_map(|router| way(router, end))
            .map(|way| way.mtu)
            .min();
        segment_max(mtu, row.is_v6)
    }

    /// A replica's kernel ends a connection.
    fn take_reset(&mut self, node: NodeId, reply: &ServiceReplySegment) {
        for key in self.keys_of(&reply.key, &reply.row) {
            let Some(number) = self.pins.find(&key) else { continue };
            let pin = self.pins.get_mut(number);
            let service = &mut self.list[usize::from(reply.row.service)];
            let replica = &mut service.replicas[usize::from(pin.replica)];
            if replica.node == node {
                replica.counters.live_connections -= u64::from(pin.state.is_connection());
                pin.state = PinnedFlowPhase::Closing;
            }
        }
    }

    fn reply(&self, packet: &ParsedPacket<'_>) -> Option<ServiceReplySegment> {
        let info = &packet.info;
        let segment = packet.payload().first_chunk::<{ tcp::HEADER_LEN }>()?;
        let flags = segment[13];
        if flags & (tcp::SYN | tcp::RST) == 0 || info.is_later_fragment {
            return None;
        }
        let [port, client_port] =
            [[segment[0], segment[1]], [segment[2], segment[3]]].map(u16::from_be_bytes);
        let number = self.rows.find(mapped(info.source), port, tcp::PROTOCOL)?;
        let key = PinnedFlowKey {
            client: mapped(info.destination),
            client_port,
            row: number,
            router: None,
        };
        Some(ServiceReplySegment { row: *self.rows.get(number), key, flags })
    }
}

/// The largest MSS whose segments fit a way in a tunnel.
pub(super) fn segment_max(mtu: Option<u32>, is_v6: bool) -> u16 {
    // Two IP headers and TCP's own.
    let headers = if is_v6 { 40 + 40 + 20 } else { 20 + 20 + 20 };
    let most = mtu.unwrap_or(u32::MAX).saturating_sub(headers);
    u16::try_from(most).unwrap_or(u16::MAX).max(1)
}
