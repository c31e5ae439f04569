//! The ends of tunnels.

use windtunnel_model::{PortId, RouterId};
use windtunnel_routing::RouteDestination;

/// Where a tunnel begins or ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TunnelEndpoint {
    /// At a replica's interface.
    Port(PortId),
    /// At a redirector.
    Router(RouterId),
}

impl TunnelEndpoint {
    /// What routers look for a way to.
    pub(crate) fn target(self) -> RouteDestination {
        match self {
            TunnelEndpoint::Port(port) => RouteDestination::Port(port),
            TunnelEndpoint::Router(router) => RouteDestination::Router(router),
        }
    }
}
