//! Sets of offsets as disjoint ranges: bytes that came out of order, and SACK blocks.

use alloc::vec::Vec;
use core::ops::Range;

/// Disjoint, ascending, not adjoining ranges.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StreamRangeSet {
    items: Vec<Range<u64>>,
}

impl StreamRangeSet {
    /// Adds a range. `false`, and nothing is added, if there would be more than `max` ranges.
    pub(crate) fn insert(&mut self, range: Range<u64>, max: usize) -> bool {
        if range.is_empty() {
            return true;
        }
        let from = self.items.partition_point(|item| item.end < range.start);
        let to = self.items.partition_point(|item| item.start <= range.end);
        if from == to {
            if self.items.len() >= max {
                return false;
            }
            self.items.insert(from, range);
            return true;
        }
        let merged = self.items[from].start.min(range.start)..self.items[to - 1].end.max(range.end);
        self.items.splice(from..to, [merged]);
        true
    }

    /// Removes everything before an offset.
    pub(crate) fn remove_below(&mut self, offset: u64) {
        self.items.retain(|item| item.end > offset);
        if let Some(first) = self.items.first_mut() {
            first.start = first.start.max(offset);
        }
    }

    /// Removes the last range, if it begins behind an offset.
    pub(crate) fn remove_last(&mut self, offset: u64) -> bool {
        self.items.pop_if(|last| last.start > offset).is_some()
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.items.clear();
    }

    /// The end of what is there from an offset on without a gap; the offset, if it is not there.
    pub(crate) fn end_from(&self, offset: u64) -> u64 {
        let from = self.items.partition_point(|item| item.end <= offset);
        let found = self.items.get(from).filter(|item| item.start <= offset);
        found.map_or(offset, |item| item.end)
    }

    /// What both have.
    pub(crate) fn intersection(&self, other: &StreamRangeSet) -> StreamRangeSet {
        let mut items = Vec::new();
        for one in &self.items {
            for two in other.meeting(one) {
                items.push(one.start.max(two.start)..one.end.min(two.end));
            }
        }
        StreamRangeSet { items }
    }

    /// What lies in a range.
    pub(crate) fn within(&self, range: &Range<u64>) -> StreamRangeSet {
        let cut = |item: &Range<u64>| item.start.max(range.start)..item.end.min(range.end);
        StreamRangeSet { items: self.meeting(range).iter().map(cut).collect() }
    }

    /// What the other has not.
    pub(crate) fn without(&self, other: &StreamRangeSet) -> StreamRangeSet {
        let mut items = Vec::new();
        for item in &self.items {
            let mut from = item.start;
            for gone in other.meeting(item) {
                if from < gone.start {
                    items.push(from..gone.start);
                }
                from = gone.end;
            }
            if from < item.end {
                items.push(from..item.end);
            }
        }
        StreamRangeSet { items }
    }

    /// The ranges that have something in common with one.
    fn meeting(&self, range: &Range<u64>) -> &[Range<u64>] {
        let from = self.items.partition_point(|item| item.end <= range.start);
        let to = self.items.partition_point(|item| item.start < range.end);
        self.items.get(from..to).unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Range<u64>> {
        self.items.iter()
    }

    /// Bytes of memory beside the value itself.
    pub(crate) fn memory(&self) -> usize {
        self.items.capacity() * size_of::<Range<u64>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn ranges(items: &[Range<u64>]) -> StreamRangeSet {
        let mut set = StreamRangeSet::default();
        for item in items {
            assert!(set.insert(item.clone(), 8));
        }
        set
    }

    #[test]
    fn ranges_that_meet_become_one() {
        assert_eq!(ranges(&[5..7, 1..3, 3..5]).items, vec![1..7]);
        assert_eq!(ranges(&[1..2, 5..6, 9..10, 0..20]).items, vec![0..20]);
        assert!(ranges(&[4..4, 9..9]).is_empty());
    }

    #[test]
    fn a_range_too_many_is_refused_and_one_that_merges_is_not() {
        let mut set = ranges(&[1..2, 5..6]);
        assert!(!set.insert(8..9, 2));
        assert!(set.insert(6..9, 2));
        assert_eq!(set.items, vec![1..2, 5..9]);
    }

    #[test]
    fn what_is_there_without_a_gap_has_an_end() {
        let mut set = ranges(&[1..4, 6..9]);
        assert_eq!((set.end_from(2), set.end_from(4), set.end_from(6)), (4, 4, 9));
        set.remove_below(7);
        assert_eq!(set.items, vec![7..9]);
    }

    #[test]
    fn an_intersection_is_what_both_have() {
        let both = ranges(&[1..5, 8..12]).intersection(&ranges(&[4..9, 11..20]));
        assert_eq!(both.items, vec![4..5, 8..9, 11..12]);
    }

    #[test]
    fn ranges_are_cut_out_of_others() {
        let set = ranges(&[1..5, 8..12]);
        assert_eq!(set.within(&(4..9)).items, vec![4..5, 8..9]);
        assert_eq!(set.without(&ranges(&[2..3, 9..20])).items, vec![1..2, 3..5, 8..9]);
        assert_eq!(set.without(&StreamRangeSet::default()), set);
        assert!(set.without(&ranges(&[0..3, 2..30])).is_empty());
    }
}
