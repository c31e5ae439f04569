//! How many segments a frame has, and of how many bytes.

use core::ops::Range;

use windtunnel_wire::packet::{self, ParsedPacket};
use windtunnel_wire::segment::PacketTrain;
use windtunnel_wire::{ethernet, vnet};

/// IP lengths of the segments of a train; all are alike but the last, which may be shorter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketTrainShape {
    /// How many, at least 1.
    pub(crate) count: u32,
    /// Bytes of each but the last (of the only one, where there is one).
    pub(crate) each: u32,
    /// Bytes of the last.
    pub(crate) last: u32,
}

impl PacketTrainShape {
    /// Measures a frame; one without an IP packet counts with all its bytes after the Ethernet
    /// header.
    pub(crate) fn of(frame: &[u8], vnet: &vnet::VirtioNetHeader) -> Self {
        let header = u32::try_from(ethernet::HEADER_LEN).unwrap_or(0);
        let not_ip = || {
            let len = u32::try_from(frame.len()).unwrap_or(u32::MAX).saturating_sub(header);
            PacketTrainShape::single(len)
        };
        // Most frames are not trains; of those the length is all there is to know.
        if vnet.gso_size == 0 {
            return packet::ip_len(frame).map_or_else(|_| not_ip(), PacketTrainShape::single);
        }
        let Ok(packet) = ParsedPacket::parse(frame) else { return not_ip() };
        let train = PacketTrain::of(&packet, vnet);
        if train.count == 1 {
            return PacketTrainShape::single(packet.info.ip_len);
        }
        let len = |index| train.wire_len(index).saturating_sub(header);
        PacketTrainShape { count: train.count, each: len(0), last: len(train.count - 1) }
    }

    pub(crate) fn single(len: u32) -> Self {
        PacketTrainShape { count: 1, each: len, last: len }
    }

    /// IP bytes of all segments.
    pub(crate) fn bytes(&self) -> u64 {
        self.charge(0)
    }

    /// Bytes of all segments, each with `overhead`.
    pub(crate) fn charge(&self, overhead: u32) -> u64 {
        let full = u64::from(self.each) + u64::from(overhead);
        let last = u64::from(self.last) + u64::from(overhead);
        u64::from(self.count - 1) * full + last
    }

    /// With so many bytes more in each segment.
    pub(crate) fn longer(self, by: u32) -> Self {
        PacketTrainShape { each: self.each + by, last: self.last + by, ..self }
    }

    /// With so many bytes less.
    pub(crate) fn shorter(self, by: u32) -> Self {
        let less = |len: u32| len.saturating_sub(by);
        PacketTrainShape { each: less(self.each), last: less(self.last), ..self }
    }

    pub(crate) fn part(&self, range: &Range<u32>) -> Self {
        let last = if range.end == self.count { self.last } else { self.each };
        let each = if range.end - range.start == 1 { last } else { self.each };
        PacketTrainShape { count: range.end - range.start, each, last }
    }
}
