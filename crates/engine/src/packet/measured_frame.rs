//! A frame that a node hands in, while nothing of it has been copied.

use windtunnel_wire::vnet;

use super::PacketTrainShape;

/// A frame as its node has sent it, in the caller's memory, and how much is charged for it.
#[derive(Debug)]
pub(crate) struct MeasuredFrame<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) vnet: vnet::VirtioNetHeader,
    /// Of the bytes; in a tunnel with its header.
    pub(crate) shape: PacketTrainShape,
}

impl<'a> MeasuredFrame<'a> {
    /// Measures a frame that is in no tunnel.
    #[inline]
    pub(crate) fn new(bytes: &'a mut [u8], vnet: vnet::VirtioNetHeader) -> Self {
        let shape = PacketTrainShape::of(bytes, &vnet);
        MeasuredFrame { bytes, vnet, shape }
    }
}
