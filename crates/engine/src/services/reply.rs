//! What a replica says to its clients: its offers of segments are made to fit tunnels, as are those
//! of clients to several replicas, and its resets end connections.

use windtunnel_failover::ReplicaId;
use windtunnel_model::plan::TunnelEncapsulation;
use windtunnel_model::{NodeId, PortId, RouterId};
use windtunnel_wire::packet::ParsedPacket;
use windtunnel_wire::{mss, tcp, vnet};

use super::choice::ReplicaPathMetrics;
use super::pins::PinnedFlowKey;
use super::rows::{RedirectionRow, RedirectionTable};
use super::service::RedirectedService;
use super::{FindWay, ServiceRedirector};
use crate::packet::EnteringFrame;
use crate::records::mapped;
use crate::tunnel::PacketTunnel;

/// A TCP segment in a service's name with SYN or RST.
pub(super) struct ServiceReplySegment {
    pub(super) row: RedirectionRow,
    pub(super) key: PinnedFlowKey,
    flags: u8,
}

/// A frame of a lost replica, which nothing gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LostReplicaFrame;

impl ServiceRedirector {
    /// Takes note of a frame that a replica's node sends, and clamps what it offers; `Err` where the
    /// frame is to be dropped, as its replica is lost, and else the tunnel that it enters, if its
    /// connection is kept. `generation` is that of the ways: another one where they may have
    /// changed.
    pub(crate) fn take_reply(
        &mut self,
        frame: &mut EnteringFrame<'_>,
        generation: u64,
        way: &mut dyn FnMut(RouterId, PortId) -> Option<ReplicaPathMetrics>,
    ) -> Result<Option<PacketTunnel>, LostReplicaFrame> {
        let port = frame.origin.port;
        let node = self.services.owner(port);
        let Ok(packet) = ParsedPacket::parse(frame.bytes) else { return Ok(None) };
        let info = &packet.info;
        if self.services.has_lost_replicas()
            && self.filter.may_hold(info.source)
            && self.services.silence(node, &packet, frame.shape.count)
        {
            return Err(LostReplicaFrame);
        }
        if info.protocol != tcp::PROTOCOL || !self.filter.may_hold(info.source) {
            return Ok(None);
        }
        let back = self.transparent.way_back(&self.services, port, &packet);
        let Some(reply) = ServiceReplySegment::read(&self.services.rows, &packet) else {
            return Ok(back);
        };
        if reply.flags & tcp::RST != 0 {
            self.flows.reset(&mut self.services, node, &reply);
        } else {
            let service = self.services.of_mut(&reply.row);
            service.clamp(node, reply.row.is_v6, frame, generation, way);
        }
        Ok(back)
    }
}

impl ServiceReplySegment {
    /// Reads a packet from what may be a service's address.
    fn read(rows: &RedirectionTable, packet: &ParsedPacket<'_>) -> Option<ServiceReplySegment> {
        let info = &packet.info;
        let segment = packet.payload().first_chunk::<{ tcp::HEADER_LEN }>()?;
        let flags = segment[13];
        if flags & (tcp::SYN | tcp::RST) == 0 || info.is_later_fragment {
            return None;
        }
        let [port, client_port] =
            [[segment[0], segment[1]], [segment[2], segment[3]]].map(u16::from_be_bytes);
        let number = rows.find(mapped(info.source), port, tcp::PROTOCOL)?;
        let key = PinnedFlowKey {
            client: mapped(info.destination),
            client_port,
            row: number,
            router: None,
        };
        Some(ServiceReplySegment { row: *rows.get(number), key, flags })
    }
}

impl RedirectedService {
    /// Lowers the MSS that a replica offers to what fits the tunnels to it.
    fn clamp(
        &mut self,
        node: NodeId,
        is_v6: bool,
        frame: &mut EnteringFrame<'_>,
        generation: u64,
        way: &mut dyn FnMut(RouterId, PortId) -> Option<ReplicaPathMetrics>,
    ) {
        let position = self.position(node);
        let (Some(position), TunnelEncapsulation::Clamp) = (position, self.planned.encapsulation)
        else {
            return;
        };
        let family = usize::from(is_v6);
        let known = self.replicas[position].clamps[family].filter(|(of, _)| *of == generation);
        let most =
            known.map_or_else(|| self.largest_segment(position, is_v6, way), |(_, most)| most);
        self.replicas[position].clamps[family] = Some((generation, most));
        self.counters.clamped += u64::from(mss::clamp(frame.bytes, &frame.vnet, most));
    }

    /// The largest MSS whose segments fit the ways of all redirectors to a replica.
    fn largest_segment(
        &self,
        position: usize,
        is_v6: bool,
        way: &mut dyn FnMut(RouterId, PortId) -> Option<ReplicaPathMetrics>,
    ) -> u16 {
        let end = self.replicas[position].port;
        let ways = self.planned.routers().filter_map(|router| way(router, end));
        segment_max(ways.map(|way| way.mtu).min(), is_v6)
    }

    /// Lowers the MSS of a client's SYN to what fits the tunnels of the answers of all replicas of
    /// its connection.
    pub(super) fn fit(
        &mut self,
        is_v6: bool,
        order: &[ReplicaId],
        header: &vnet::VirtioNetHeader,
        frame: &mut [u8],
        way: &mut FindWay<'_>,
    ) {
        if self.planned.encapsulation != TunnelEncapsulation::Clamp {
            return;
        }
        let is_in = |node: NodeId| order.contains(&ReplicaId(node.0));
        let replicas = self.replicas.iter().filter(|replica| is_in(replica.state.node));
        let mtu = replicas.filter_map(|replica| way(replica.port)).map(|way| way.mtu_back);
        let most = segment_max(mtu.min(), is_v6);
        self.counters.clamped += u64::from(mss::clamp(frame, header, most));
    }
}

/// The largest MSS whose segments fit a way in a tunnel.
fn segment_max(mtu: Option<u32>, is_v6: bool) -> u16 {
    // Two IP headers and TCP's own.
    let headers = if is_v6 { 40 + 40 + 20 } else { 20 + 20 + 20 };
    let most = mtu.unwrap_or(u32::MAX).saturating_sub(headers);
    u16::try_from(most).unwrap_or(u16::MAX).max(1)
}
