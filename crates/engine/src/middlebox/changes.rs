//! What a middlebox finds out about a packet, to be written into it when it is certain that it goes on.

use core::net::{IpAddr, Ipv4Addr};

use windtunnel_nat::{Ipv4Endpoint, NatTranslation};
use windtunnel_wire::packet::IpPacketSummary;
use windtunnel_wire::translate;
use windtunnel_wire::vnet::VirtioNetHeader;

/// What is written into a packet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PacketRewrite {
    pub(crate) ends: translate::EndpointRewrite,
    /// Of an ICMP error: into the packet that it quotes.
    pub(crate) quoted: translate::EndpointRewrite,
    /// The sessions that it is of.
    pub(super) mapped: [Option<NatTranslation>; 2],
}

impl PacketRewrite {
    /// The address that a packet is routed to.
    #[inline]
    pub(crate) fn destination(&self, info: &IpPacketSummary) -> IpAddr {
        self.ends.destination.map_or(info.destination, |(address, _)| address.into())
    }

    /// The destination is translated.
    pub(super) fn lead_to(&mut self, mapped: NatTranslation) {
        self.ends.destination = Some(pair(mapped.endpoint));
        self.mapped[0] = Some(mapped);
    }

    /// The source is translated.
    pub(super) fn come_from(&mut self, mapped: NatTranslation) {
        self.ends.source = Some(pair(mapped.endpoint));
        self.mapped[1] = Some(mapped);
    }

    /// Writes it into a packet; `false`, and nothing is changed, where it cannot be.
    #[inline]
    pub(crate) fn write(
        &self,
        frame: &mut [u8],
        info: &IpPacketSummary,
        vnet: &VirtioNetHeader,
    ) -> bool {
        if self.is_empty() {
            return true;
        }
        if info.is_icmp_error {
            return translate::error(frame, info, &self.ends, &self.quoted);
        }
        translate::packet(frame, info, vnet, &self.ends)
    }

    /// Whether nothing is changed.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.quoted.is_empty()
    }
}

/// As it is written.
pub(super) fn pair(endpoint: Ipv4Endpoint) -> (Ipv4Addr, u16) {
    (endpoint.address, endpoint.port)
}
