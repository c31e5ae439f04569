//! The bytes of tunnels: written where somebody reads them, and read where they were written.

use windtunnel_model::{Lane, PortId, Time};
use windtunnel_wire::packet::Info;
use windtunnel_wire::{checksum, ipip, vnet};

use super::Core;
use crate::packet::{EmulatedPacket, PacketTrainShape};
use crate::records::TaggedShape;
use crate::tunnel::{Mouth, PacketTunnel};

impl Core {
    /// Offers a lane what is too large for it and may be fragmented with its outer header: each
    /// segment with that by itself.
    pub(super) fn offer_wrapped(&mut self, now: Time, lane: Lane, packet: EmulatedPacket) {
        for_each_segment(self, packet, |core, packet| {
            let (tag, shape) = (packet.tag, packet.shape);
            let offered = TaggedShape { tag: &tag, shape: &shape };
            match core.wrap(packet) {
                Ok(packet) => core.offer(now, lane, packet),
                Err(packet) => {
                    let (chain, recorder) =
                        (&mut core.chains[lane.index()], &mut core.work.recorder);
                    chain.offer_without_memory(now, offered, packet.frame(), recorder);
                    packet.discard(&mut core.work.pool);
                }
            }
        });
    }

    /// What comes to a node and is, or was, in a tunnel: what of it is for the node's kernel goes
    /// there.
    pub(super) fn leave_tunnel(
        &mut self,
        now: Time,
        port: PortId,
        lane: Lane,
        mut packet: EmulatedPacket,
    ) {
        let Some(tunnel) = packet.tunnel else {
            return self.unwrap(now, port, lane, packet);
        };
        let is_end = self.ends_here(&tunnel, port);
        if is_end || tunnel.overhead == 0 {
            packet.leave_tunnel();
            return self.hand_out(now, lane, packet);
        }
        // A node that forwards, whose kernel reads the outer header.
        for_each_segment(self, packet, |core, packet| match core.wrap(packet) {
            Ok(packet) => core.hand_out(now, lane, packet),
            Err(packet) => {
                core.services.count_not_reassembled(1);
                packet.discard(&mut core.work.pool);
            }
        });
    }

    /// Whether a frame that comes to a node's port is not for its kernel as it is.
    #[inline]
    pub(super) fn is_wrapped_for(
        &self,
        port: PortId,
        frame: &[u8],
        tunnel: Option<&PacketTunnel>,
    ) -> bool {
        match tunnel {
            Some(tunnel) => !self.ends_here(tunnel, port),
            None => self.services.ends_at(port) && ipip::is_wrapped(frame),
        }
    }

    /// Whether a tunnel ends at the node of a port.
    fn ends_here(&self, tunnel: &PacketTunnel, port: PortId) -> bool {
        match tunnel.end {
            Mouth::Port(end) => self.network.owner(end) == self.network.owner(port),
            Mouth::Router(_) => false,
        }
    }

    /// Writes the header of a single packet's tunnel; `Err` with the packet where there is no
    /// memory.
    fn wrap(&mut self, mut packet: EmulatedPacket) -> Result<EmulatedPacket, EmulatedPacket> {
        let Some(tunnel) = packet.tunnel else { return Ok(packet) };
        let (frame, header) = packet.settled(&mut self.work.pool);
        if !checksum::complete(frame, header) {
            return Err(packet);
        }
        let outer = Info::parse(packet.frame()).ok().and_then(|info| {
            Some(ipip::Outer {
                source: self.network.address_of_mouth(tunnel.start, info.source)?,
                destination: self.network.address_of_mouth(tunnel.end, info.source)?,
                identification: self.wrapped,
                dont_fragment: !tunnel.fragments,
            })
        });
        let Some(outer) = outer else { return Err(packet) };
        self.wrapped = self.wrapped.wrapping_add(1);
        let room = packet.frame().len() + ipip::header_len(outer.source.is_ipv6());
        let wrapped = self.work.pool.write(room, |buf| ipip::wrap(packet.frame(), &outer, buf));
        let Some(buf) = wrapped else { return Err(packet) };
        packet.tunnel = None;
        packet.rewrite(buf, vnet::VirtioNetHeader::default(), &mut self.work.pool);
        Ok(packet)
    }

    /// Takes the packet out of one that was written with its outer header, or keeps a fragment of
    /// such until the others have come.
    fn unwrap(&mut self, now: Time, port: PortId, lane: Lane, packet: EmulatedPacket) {
        let Ok(info) = Info::parse(packet.frame()) else {
            return self.hand_out(now, lane, packet);
        };
        // Others may tunnel, too: that is their kernel's to take.
        if !self.network.is_router(info.source) {
            return self.hand_out(now, lane, packet);
        }
        if !info.is_fragment {
            return self.hand_out_inner(now, lane, packet);
        }
        let lost = self.reassembly.lost();
        let whole =
            self.reassembly.push(now, Mouth::Port(port), &info, packet, &mut self.work.pool);
        self.services.count_not_reassembled(self.reassembly.lost() - lost);
        if let Some(packet) = whole {
            self.hand_out_inner(now.max(packet.times.last), lane, packet);
        }
    }

    fn hand_out_inner(&mut self, now: Time, lane: Lane, mut packet: EmulatedPacket) {
        let frame = packet.frame();
        let inner = self.work.pool.write(frame.len(), |buf| ipip::unwrap(frame, buf));
        // The kernel judges what has no packet inside.
        let Some(buf) = inner else { return self.hand_out(now, lane, packet) };
        let header = vnet::VirtioNetHeader::default();
        packet.shape = PacketTrainShape::of(&buf, &header);
        packet.rewrite(buf, header, &mut self.work.pool);
        self.hand_out(now, lane, packet);
    }
}

/// Does something with each segment of a packet; those that have no memory are dropped.
fn for_each_segment(
    core: &mut Core,
    packet: EmulatedPacket,
    mut each: impl FnMut(&mut Core, EmulatedPacket),
) {
    let mut rest = Some(packet);
    while let Some(packet) = rest.take() {
        match packet.split(1, &mut core.work.pool) {
            Ok((front, behind)) => {
                each(core, front);
                rest = behind;
            }
            Err(behind) => {
                core.services.count_not_reassembled(1);
                rest = behind;
            }
        }
    }
}
