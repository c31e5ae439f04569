//! Sequence numbers of 32 bits as offsets of 64, which never wrap.

/// The sequence space of one direction of a connection: offset 0 is the SYN, 1 the first byte of
/// data, and FIN has the offset after the last byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SequenceSpace {
    /// The initial sequence number.
    pub(crate) isn: u32,
}

impl SequenceSpace {
    /// The sequence number of an offset.
    pub(crate) fn sequence(self, offset: u64) -> u32 {
        self.isn.wrapping_add(low_half(offset))
    }

    /// The offset of a sequence number: of those that have it, the one nearest to `near`. `None`
    /// for one before the SYN.
    pub(crate) fn offset(self, sequence: u32, near: u64) -> Option<u64> {
        let delta = sequence.wrapping_sub(self.sequence(near)).cast_signed();
        near.checked_add_signed(i64::from(delta))
    }
}

/// The low 32 bits.
pub(crate) fn low_half(value: u64) -> u32 {
    u32::try_from(value & 0xffff_ffff).unwrap_or(0)
}

/// Bytes as an offset's difference; a slice's length always fits.
pub(crate) fn len64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// An offset's difference as a length; one that does not fit is longer than any slice.
pub(crate) fn index(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

/// Whether a timestamp of RFC 7323 is later than another.
pub(crate) fn is_later(stamp: u32, other: u32) -> bool {
    stamp.wrapping_sub(other).cast_signed() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_go_on_where_sequence_numbers_wrap() {
        let space = SequenceSpace { isn: 0xffff_fff0 };
        assert_eq!(space.sequence(0), 0xffff_fff0);
        assert_eq!(space.sequence(0x10), 0);
        assert_eq!(space.offset(0, 1), Some(0x10));
        assert_eq!(space.offset(0xffff_fff0, 0x1_0000_0020), Some(0x1_0000_0000));
        assert_eq!(space.sequence(0x1_0000_0000), 0xffff_fff0);
    }

    #[test]
    fn a_sequence_number_before_the_syn_has_no_offset() {
        assert_eq!(SequenceSpace { isn: 5 }.offset(4, 1), None);
        assert_eq!(SequenceSpace { isn: 5 }.offset(5, 1), Some(0));
    }

    #[test]
    fn timestamps_are_compared_modulo_their_size() {
        assert!(is_later(1, 0) && is_later(2, u32::MAX));
        assert!(!is_later(7, 7) && !is_later(u32::MAX, 2));
    }
}
