//! A frame that a node hands in, while nothing of it has been copied.

use windtunnel_model::Lane;
use windtunnel_wire::vnet;

use super::FrameOrigin;
use super::shape::PacketTrainShape;
use crate::records::tag::{PacketRecordTag, TaggedShape};
use crate::tunnel::PacketTunnel;

/// A frame as its node has sent it, in the caller's memory, on its way from lane to lane while
/// nothing holds it up.
#[derive(Debug)]
pub(crate) struct EnteringFrame<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) vnet: vnet::VirtioNetHeader,
    /// Of the bytes; in a tunnel with its header.
    pub(crate) shape: PacketTrainShape,
    pub(crate) origin: FrameOrigin,
    /// The lane by which it came to where it is.
    pub(crate) came_by: Option<Lane>,
    pub(crate) tunnel: Option<PacketTunnel>,
    /// What is recorded of it.
    pub(crate) tag: PacketRecordTag,
}

impl<'a> EnteringFrame<'a> {
    /// Measures a frame that is in no tunnel.
    #[inline]
    pub(crate) fn new(
        origin: FrameOrigin,
        vnet: vnet::VirtioNetHeader,
        bytes: &'a mut [u8],
    ) -> Self {
        let shape = PacketTrainShape::of(bytes, &vnet);
        let tag = PacketRecordTag::NONE;
        EnteringFrame { bytes, vnet, shape, origin, came_by: None, tunnel: None, tag }
    }

    /// Puts it into a tunnel.
    pub(crate) fn enter(&mut self, tunnel: PacketTunnel) {
        self.shape = self.shape.longer(tunnel.overhead);
        self.tag = self.tag.longer(tunnel.overhead);
        self.tunnel = Some(tunnel);
    }

    /// What records say of it.
    #[inline]
    pub(crate) fn tagged(&self) -> TaggedShape<'_> {
        TaggedShape { tag: &self.tag, shape: &self.shape }
    }
}
