//! The bytes of tunnels' outer headers: written where somebody reads them, and read where they were
//! written.

use windtunnel_model::{PortId, Time};
use windtunnel_wire::packet::{IpPacketSummary, ParsedPacket};
use windtunnel_wire::{checksum, ipip, vnet};

use super::endpoint::TunnelEndpoint;
use crate::buffer::PacketBufferPool;
use crate::network::NetworkDirectory;
use crate::packet::{EmulatedPacket, PacketTrainShape};
use crate::reassembly::ReassemblyBuffer;

/// What is kept of outer headers that were written.
#[derive(Debug, Default)]
pub(crate) struct OuterHeaders {
    /// How many packets got the bytes of one, modulo 2^16: their identification.
    written: u16,
    /// Fragments of such packets, at the ports where they are read.
    reassembly: ReassemblyBuffer,
}

impl OuterHeaders {
    /// Writes the header of a single packet's tunnel; `Err` with the packet where there is no
    /// memory.
    pub(crate) fn wrap(
        &mut self,
        mut packet: EmulatedPacket,
        network: &NetworkDirectory,
        pool: &mut PacketBufferPool,
    ) -> Result<EmulatedPacket, EmulatedPacket> {
        let Some(tunnel) = packet.tunnel else { return Ok(packet) };
        let (frame, header) = packet.settled(pool);
        if !checksum::complete(frame, header) {
            return Err(packet);
        }
        let outer = ParsedPacket::parse(packet.frame()).ok().and_then(|inner| {
            Some(ipip::OuterIpHeader {
                source: network.address_of_mouth(tunnel.start, inner.info.source)?,
                destination: network.address_of_mouth(tunnel.end, inner.info.source)?,
                identification: self.written,
                dont_fragment: !tunnel.fragments,
            })
        });
        let Some(outer) = outer else { return Err(packet) };
        self.written = self.written.wrapping_add(1);
        let room = packet.frame().len() + ipip::header_len(outer.source.is_ipv6());
        let wrapped = pool.write(room, |buf| ipip::wrap(packet.frame(), &outer, buf));
        let Some(buf) = wrapped else { return Err(packet) };
        packet.tunnel = None;
        packet.rewrite(buf, vnet::VirtioNetHeader::default(), pool);
        Ok(packet)
    }

    /// Keeps a fragment of a packet that was written with its outer header, until the others have
    /// come to the port: the whole packet then.
    pub(crate) fn join(
        &mut self,
        now: Time,
        port: PortId,
        info: &IpPacketSummary,
        packet: EmulatedPacket,
        pool: &mut PacketBufferPool,
    ) -> Option<EmulatedPacket> {
        self.reassembly.push(now, TunnelEndpoint::Port(port), info, packet, pool)
    }

    /// Takes the packet out of one that was written with its outer header; without memory, or where
    /// none is inside, it stays as it is.
    pub(crate) fn unwrap(packet: &mut EmulatedPacket, pool: &mut PacketBufferPool) {
        let frame = packet.frame();
        let inner = pool.write(frame.len(), |buf| ipip::unwrap(frame, buf));
        // The kernel judges what has no packet inside.
        let Some(buf) = inner else { return };
        let header = vnet::VirtioNetHeader::default();
        packet.shape = PacketTrainShape::of(&buf, &header);
        packet.rewrite(buf, header, pool);
    }

    /// When something is given up.
    pub(crate) fn next(&self) -> Option<Time> {
        self.reassembly.next()
    }

    /// Gives up fragments that waited for too long.
    pub(crate) fn expire(&mut self, now: Time, pool: &mut PacketBufferPool) {
        self.reassembly.expire(now, pool);
    }

    /// Packets that never became whole.
    pub(crate) fn lost(&self) -> u64 {
        self.reassembly.lost()
    }
}
