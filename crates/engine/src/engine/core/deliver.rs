//! The ends of lanes at nodes: a packet is given to the node's kernel, out of its tunnel.

use windtunnel_model::{Lane, PortId, Time};
use windtunnel_wire::ipip;
use windtunnel_wire::packet::ParsedPacket;

use crate::buffer::PacketBufferPool;
use crate::network::LaneEndpoint;
use crate::packet::{EmulatedPacket, EnteringFrame};
use crate::services::ServiceRedirector;
use crate::tunnel::PacketTunnel;
use crate::tunnel::headers::OuterHeaders;
use crate::underlay::Underlay;

/// What takes packets out of their tunnels.
pub(crate) struct DeliveryPoint<'a> {
    pub(super) net: &'a mut Underlay,
    pub(super) services: &'a mut ServiceRedirector,
    pub(super) headers: &'a mut OuterHeaders,
}

impl DeliveryPoint<'_> {
    /// Gives a packet to the node at the end of `lane`, or to the sender to that node's machine.
    #[inline]
    pub(super) fn deliver(&mut self, now: Time, lane: Lane, mut packet: EmulatedPacket) {
        if let LaneEndpoint::Node { port, .. } = self.net.network.end(lane)
            && self.unwraps(port, packet.frame(), packet.tunnel.as_ref())
        {
            return match packet.tunnel {
                Some(_) => self.wrap(now, lane, packet),
                None => self.unwrap(now, port, lane, packet),
            };
        }
        packet.leave_tunnel();
        self.net.hand_out(now, lane, packet);
    }

    /// Whether a frame may leave at the end of its last lane as it is: after what came by the lane
    /// before it. Of another machine's port, what comes later is not held here, so its order is looked
    /// after at once.
    #[inline]
    pub(super) fn lets_go(
        &self,
        now: Time,
        lane: Lane,
        port: PortId,
        frame: &EnteringFrame<'_>,
    ) -> bool {
        let Underlay { departures, lanes, .. } = &*self.net;
        let is_free = || lanes.chains[lane.index()].is_free(now, frame.origin.port);
        !departures.waits(lane)
            && (departures.is_here(port) || is_free())
            && !self.unwraps(port, frame.bytes, frame.tunnel.as_ref())
    }

    /// Whether a frame that comes to a node's port is not for its kernel as it is: a header is to be
    /// written, or read.
    #[inline]
    fn unwraps(&self, port: PortId, frame: &[u8], tunnel: Option<&PacketTunnel>) -> bool {
        match tunnel {
            Some(tunnel) => !tunnel.ends_at(port, &self.net.network) && tunnel.overhead > 0,
            None => self.services.ends_at(port) && ipip::is_wrapped(frame),
        }
    }

    /// Gives a packet in a tunnel to a node that forwards, whose kernel reads the outer header.
    fn wrap(&mut self, now: Time, lane: Lane, packet: EmulatedPacket) {
        let mut rest = Some(packet);
        while let Some(packet) =
            next_segment(&mut rest, &mut self.net.lanes.work.pool, self.services)
        {
            let pool = &mut self.net.lanes.work.pool;
            match self.headers.wrap(packet, &self.net.network, pool) {
                Ok(packet) => self.net.hand_out(now, lane, packet),
                Err(packet) => {
                    self.services.count_not_reassembled(1);
                    packet.discard(pool);
                }
            }
        }
    }

    /// Takes the packet out of one that was written with its outer header, or keeps a fragment of
    /// such until the others have come.
    fn unwrap(&mut self, now: Time, port: PortId, lane: Lane, packet: EmulatedPacket) {
        let Ok(ParsedPacket { info, .. }) = ParsedPacket::parse(packet.frame()) else {
            return self.net.hand_out(now, lane, packet);
        };
        // Others may tunnel, too: that is their kernel's to take.
        if !self.net.network.is_router(info.source) {
            return self.net.hand_out(now, lane, packet);
        }
        if !info.is_fragment {
            return self.hand_out_inner(now, lane, packet);
        }
        let lost = self.headers.lost();
        let pool = &mut self.net.lanes.work.pool;
        let whole = self.headers.join(now, port, &info, packet, pool);
        self.services.count_not_reassembled(self.headers.lost() - lost);
        if let Some(packet) = whole {
            self.hand_out_inner(now.max(packet.times.last), lane, packet);
        }
    }

    fn hand_out_inner(&mut self, now: Time, lane: Lane, mut packet: EmulatedPacket) {
        OuterHeaders::unwrap(&mut packet, &mut self.net.lanes.work.pool);
        self.net.hand_out(now, lane, packet);
    }
}

/// Takes the next segment off a packet; those that have no memory are dropped, and counted.
pub(super) fn next_segment(
    rest: &mut Option<EmulatedPacket>,
    pool: &mut PacketBufferPool,
    services: &mut ServiceRedirector,
) -> Option<EmulatedPacket> {
    while let Some(packet) = rest.take() {
        match packet.split(1, pool) {
            Ok((front, behind)) => {
                *rest = behind;
                return Some(front);
            }
            Err(behind) => {
                services.count_not_reassembled(1);
                *rest = behind;
            }
        }
    }
    None
}
