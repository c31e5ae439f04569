//! Packets that leave the engine.

use windtunnel_model::{Lane, PortId, Time};
use windtunnel_wire::vnet;

use crate::buffer::PacketBuf;

/// A packet that leaves without delay: send the very bytes that were handed in, now; if its port is
/// elsewhere, to there, and the intended time is that at which it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImmediateDeparture {
    /// Where.
    pub port: PortId,
    /// The lane that it came by.
    pub lane: Lane,
    /// The header to send with it.
    pub vnet: vnet::VirtioNetHeader,
}

/// A packet to be sent.
#[derive(Debug)]
pub struct FrameDeparture {
    /// Where.
    pub port: PortId,
    /// The lane that it came by (for a message from the far end of a node's own link, the lane
    /// towards the node).
    pub lane: Lane,
    /// When it should leave; never after the `now` of the call that made it, if its port is here.
    pub intended: Time,
    /// The header to send with it.
    pub vnet: vnet::VirtioNetHeader,
    /// The frame.
    pub frame: PacketBuf,
}
