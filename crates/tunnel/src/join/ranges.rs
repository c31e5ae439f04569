//! Which parts of a frame have come.

/// Gaps between parts at the most; a frame with more is given up.
const PARTS_MAX: usize = 32;

/// Disjoint parts, in order, that do not touch each other.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FragmentRangeSet {
    parts: [(u32, u32); PARTS_MAX],
    count: usize,
}

impl FragmentRangeSet {
    /// Adds the part from `start` to before `end`. `false`: it is empty, overlaps another, or there
    /// are too many.
    pub(super) fn insert(&mut self, start: u32, end: u32) -> bool {
        let parts = &self.parts[..self.count];
        let at = parts.partition_point(|part| part.0 < start);
        let before = at.checked_sub(1).map(|index| parts[index]);
        let after = parts.get(at).copied();
        let overlaps = before.is_some_and(|part| part.1 > start)
            || after.is_some_and(|part| part.0 < end)
            || start >= end;
        if overlaps {
            return false;
        }
        let joins_before = before.is_some_and(|part| part.1 == start);
        let joins_after = after.is_some_and(|part| part.0 == end);
        match (joins_before, joins_after) {
            (true, true) => {
                self.parts[at - 1].1 = self.parts[at].1;
                self.parts.copy_within(at + 1..self.count, at);
                self.count -= 1;
            }
            (true, false) => self.parts[at - 1].1 = end,
            (false, true) => self.parts[at].0 = start,
            (false, false) if self.count == PARTS_MAX => return false,
            (false, false) => {
                self.parts.copy_within(at..self.count, at + 1);
                self.parts[at] = (start, end);
                self.count += 1;
            }
        }
        true
    }

    /// Whether the parts are all of a frame of `total` bytes.
    pub(super) fn are_all(&self, total: u32) -> bool {
        self.count == 1 && self.parts[0] == (0, total)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_join_in_any_order() {
        let mut ranges = FragmentRangeSet::default();
        for (start, end) in [(4, 6), (0, 2), (8, 9), (2, 4), (6, 8)] {
            assert!(!ranges.are_all(9));
            assert!(ranges.insert(start, end));
        }
        assert!(ranges.are_all(9));
        assert!(!ranges.insert(3, 4), "there already");
        assert!(!ranges.insert(9, 9), "empty");
    }

    #[test]
    fn too_many_gaps_are_refused() {
        let mut ranges = FragmentRangeSet::default();
        assert!((0..32).all(|part| ranges.insert(4 * part, 4 * part + 2)));
        assert!(!ranges.insert(400, 402));
        assert!(ranges.insert(2, 4), "a gap that closes is none more");
    }

    proptest! {
        #[test]
        fn parts_are_taken_if_and_only_if_no_byte_is_there(
            parts in proptest::collection::vec((0..60u32, 1..9u32), 1..60)
        ) {
            let (mut ranges, mut there) = (FragmentRangeSet::default(), [false; 70]);
            for (start, length) in parts {
                let bytes = &mut there[start as usize..(start + length) as usize];
                let free = bytes.iter().all(|byte| !byte);
                prop_assert_eq!(ranges.insert(start, start + length), free);
                if free {
                    bytes.fill(true);
                }
                let first = there.iter().position(|byte| !byte).unwrap_or(70);
                let all = there[first..].iter().all(|byte| !byte) && first > 0;
                prop_assert_eq!(ranges.are_all(u32::try_from(first).unwrap()), all);
            }
        }
    }
}
