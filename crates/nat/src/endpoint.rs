//! The terms in which packets are spoken of.

use core::fmt;
use core::net::Ipv4Addr;

use windtunnel_model::plan::IpTransport;

use crate::hash::HashKey;

/// An address and a port; of ICMP queries the port is the identifier (RFC 5508, 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ipv4Endpoint {
    /// IPv4.
    pub address: Ipv4Addr,
    /// Of 0 there is none: the remote end of an ICMP query.
    pub port: u16,
}

impl fmt::Display for Ipv4Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.address, self.port)
    }
}

/// The two ends of a packet, as the side from which it comes or to which it goes sees them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowEndpoints {
    /// Its protocol.
    pub transport: IpTransport,
    /// The end that is translated: internal for what leaves, external for what comes.
    pub local: Ipv4Endpoint,
    /// The other one.
    pub remote: Ipv4Endpoint,
}

/// A flow as three words, to be found by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedFlowKey([u64; 3]);

impl PackedFlowKey {
    /// Of what leaves by an external address.
    #[inline]
    pub(crate) fn outbound(flow: &FlowEndpoints, external: Ipv4Addr) -> PackedFlowKey {
        PackedFlowKey::of(flow.transport, 1, [flow.local, flow.remote], external.to_bits())
    }

    /// Of what comes to an external endpoint.
    #[inline]
    pub(crate) fn inbound(flow: &FlowEndpoints) -> PackedFlowKey {
        PackedFlowKey::of(flow.transport, 2, [flow.local, flow.remote], 0)
    }

    #[inline]
    fn of(
        transport: IpTransport,
        way: u64,
        ends: [Ipv4Endpoint; 2],
        external: u32,
    ) -> PackedFlowKey {
        let [local, remote] = ends;
        let addresses =
            u64::from(local.address.to_bits()) << 32 | u64::from(remote.address.to_bits());
        let ports = u64::from(local.port) << 16 | u64::from(remote.port);
        let kind = u64::from(transport.number()) << 2 | way;
        PackedFlowKey([addresses, u64::from(external) << 32 | ports, kind])
    }

    #[inline]
    pub(crate) fn hash(&self, hash: &HashKey) -> u64 {
        let [a, b, c] = self.0;
        // Of `c` there are few values, so hardly two flows become one by it.
        hash.of_two([a, b ^ c.rotate_left(56)])
    }
}
