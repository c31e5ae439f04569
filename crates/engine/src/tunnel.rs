//! The way of a packet from a redirector to a replica, and, where connections outlive their server,
//! back or to another redirector: an IP header in front of its own, kept beside its bytes.
//!
//! To put 20 bytes in front of a train would copy up to 64 KiB, and a train in a tunnel could not be
//! described to a kernel: a virtio-net header speaks of one IP header. So the packet keeps its bytes and
//! carries this. What the header does is done from it: each segment is longer by `overhead`,
//! routers look for a way to `end`, and nothing looks at the inner destination. Bytes are written
//! where somebody reads them (`tunnel/headers.rs`).

pub(crate) mod endpoint;
pub(crate) mod headers;

use windtunnel_model::PortId;

use crate::network::NetworkDirectory;
pub(crate) use endpoint::TunnelEndpoint;

/// A packet's tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketTunnel {
    pub(crate) end: TunnelEndpoint,
    pub(crate) start: TunnelEndpoint,
    /// Bytes of the outer header; 0: there is none, and the packet has its way from this alone.
    pub(crate) overhead: u32,
    /// Whether routers may fragment the outer packet; else the inner one is what may be or not.
    pub(crate) fragments: bool,
}

impl PacketTunnel {
    /// Whether it ends at the node of a port.
    pub(crate) fn ends_at(&self, port: PortId, network: &NetworkDirectory) -> bool {
        match self.end {
            TunnelEndpoint::Port(end) => network.owner(end) == network.owner(port),
            TunnelEndpoint::Router(_) => false,
        }
    }
}
