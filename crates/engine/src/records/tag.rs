//! What a packet carries so that it can be recorded anywhere.

use windtunnel_model::record::flag;

use crate::packet::shape::PacketTrainShape;

/// Which bytes of which flow a packet, or a part of a train, has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketRecordTag {
    /// A number that the recorder has defined.
    pub(crate) flow: u32,
    /// Of the first segment: its first byte, or its number.
    pub(crate) offset: u32,
    /// The offset that is acknowledged, where the flags say that it is valid.
    pub(crate) ack: u32,
    /// Bytes of each segment's IP packet that are not payload.
    pub(crate) header: u16,
    /// As in records.
    pub(crate) flags: u8,
    /// The recording that it belongs to.
    pub(crate) epoch: u8,
    /// Whether offsets count bytes; else packets.
    pub(crate) is_stream: bool,
}

/// All that a record says of a packet, or of a part of a train.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TaggedShape<'a> {
    pub(crate) tag: &'a PacketRecordTag,
    pub(crate) shape: &'a PacketTrainShape,
}

impl PacketRecordTag {
    /// Of a packet that is not recorded.
    pub(crate) const NONE: PacketRecordTag = PacketRecordTag {
        flow: 0,
        offset: 0,
        ack: 0,
        header: 0,
        flags: 0,
        epoch: 0,
        is_stream: false,
    };

    /// Payload bytes of all segments.
    #[inline]
    pub(crate) fn payload(&self, shape: &PacketTrainShape) -> u32 {
        let headers = u64::from(self.header) * u64::from(shape.count);
        u32::try_from(shape.bytes().saturating_sub(headers)).unwrap_or(u32::MAX)
    }

    /// Of what is behind the first `count` segments of a packet of this shape.
    #[inline]
    #[must_use]
    pub(crate) fn skip(self, shape: &PacketTrainShape, count: u32) -> PacketRecordTag {
        let each = shape.each.saturating_sub(u32::from(self.header));
        let step = if self.is_stream { each } else { 1 };
        PacketRecordTag { offset: self.offset.wrapping_add(step.wrapping_mul(count)), ..self }
    }

    /// With so many bytes more that are not payload.
    #[must_use]
    pub(crate) fn longer(self, by: u32) -> PacketRecordTag {
        PacketRecordTag {
            header: self.header.saturating_add(u16::try_from(by).unwrap_or(u16::MAX)),
            ..self
        }
    }

    /// With so many less.
    #[must_use]
    pub(crate) fn shorter(self, by: u32) -> PacketRecordTag {
        PacketRecordTag {
            header: self.header.saturating_sub(u16::try_from(by).unwrap_or(u16::MAX)),
            ..self
        }
    }

    /// Of a fragment: `header` bytes of it are not payload, and `before` bytes of payload are in
    /// earlier fragments.
    #[must_use]
    pub(crate) fn fragment(self, header: u16, before: u32) -> PacketRecordTag {
        let ahead = if self.is_stream { before } else { 0 };
        PacketRecordTag { header, offset: self.offset.wrapping_add(ahead), ..self }
    }

    /// Of a copy that the duplicate element makes.
    #[must_use]
    pub(crate) fn copied(self) -> PacketRecordTag {
        PacketRecordTag { flags: self.flags | flag::COPY, ..self }
    }
}
