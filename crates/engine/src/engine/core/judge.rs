//! What a router does with a packet that has come to it: found out here, for a frame in its caller's
//! memory and for a packet of the engine alike, before a byte of it changes.

use windtunnel_model::plan::ReplicaLossResponse;
use windtunnel_model::{Lane, PortId, RouterId, ServiceId, Time};
use windtunnel_wire::packet::ParsedPacket;

use super::Core;
use crate::middlebox::{PacketDenial, PacketRewrite};
use crate::router::ForwardingDecision;
use crate::services::TunnelEntry;
use crate::tunnel::PacketTunnel;

/// How a packet has come to a router.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouterArrival<'a> {
    pub(super) router: RouterId,
    pub(super) lane: Lane,
    pub(super) packet: &'a ParsedPacket<'a>,
    pub(super) tunnel: Option<&'a PacketTunnel>,
    /// The replica that it is known to be for.
    pub(super) aim: Option<PortId>,
}

/// What a router does with a packet.
#[derive(Debug, Clone, Copy)]
pub(super) enum RouterVerdict {
    /// What it does with any, perhaps after it has entered a tunnel.
    Route(ForwardingDecision, Option<TunnelEntry>),
    /// Its connection is lost with its replica.
    Lost(ServiceId, ReplicaLossResponse),
    /// It is of a connection that this router keeps.
    Keep,
    /// A middlebox does not let it pass.
    Denied(PacketDenial),
}

impl Core {
    /// What a router does with a packet; what a middlebox changes of it goes into `rewrite`.
    #[inline(always)]
    pub(super) fn judge(
        &mut self,
        now: Time,
        arrival: &RouterArrival<'_>,
        rewrite: &mut PacketRewrite,
    ) -> RouterVerdict {
        if self.middleboxes.is_at(arrival.router) {
            return self.passage().judge(now, arrival, rewrite);
        }
        self.redirection().judge(now, arrival)
    }
}

impl RouterVerdict {
    /// As any router does.
    pub(super) fn plain(decision: ForwardingDecision) -> RouterVerdict {
        RouterVerdict::Route(decision, None)
    }
}
