//! What of the server's stream the client was given.

use core::ops::Range;

use crate::ranges::StreamRangeSet;

/// The part of the server's stream that was given to the client.
#[derive(Debug, Clone)]
pub(super) struct DeliveredStream {
    /// Everything up to here. INVARIANT: every live replica has sent the same up to here.
    pub(super) end: u64,
    /// Beyond, the client was given these.
    ahead: StreamRangeSet,
    /// Offset of FIN, once it was given.
    fin: Option<u64>,
}

impl DeliveredStream {
    /// The SYN-ACK alone.
    pub(super) fn new() -> Self {
        Self { end: 1, ahead: StreamRangeSet::default(), fin: None }
    }

    /// A range is given.
    pub(super) fn add(&mut self, range: Range<u64>) {
        self.ahead.insert(range, usize::MAX);
        self.end = self.ahead.end_from(self.end);
        self.ahead.remove_below(self.end);
    }

    /// FIN is given, after all data.
    pub(super) fn finish(&mut self) {
        self.fin = Some(self.end);
        self.end += 1;
    }

    /// Whether FIN was given.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.is_some()
    }

    /// Whether a client that has the stream up to an offset has FIN.
    pub(super) fn is_finish_acknowledged(&self, acked: u64) -> bool {
        self.fin.is_some_and(|fin| acked > fin)
    }

    /// The end of what was given from an offset on.
    pub(super) fn known_from(&self, offset: u64) -> u64 {
        if offset < self.end { self.end } else { self.ahead.end_from(offset) }
    }

    /// What of some ranges, all from `end` on, was not given.
    pub(super) fn missing(&self, ranges: &StreamRangeSet) -> StreamRangeSet {
        ranges.without(&self.ahead)
    }

    /// Bytes of memory beside the value itself.
    pub(super) fn memory(&self) -> usize {
        self.ahead.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_in_any_order_become_the_stream_that_was_delivered() {
        let mut delivered = DeliveredStream::new();
        delivered.add(5..9);
        assert_eq!((delivered.end, delivered.known_from(1), delivered.known_from(6)), (1, 1, 9));
        let mut sent = StreamRangeSet::default();
        sent.insert(1..12, usize::MAX);
        let missing: Vec<_> = delivered.missing(&sent).iter().cloned().collect();
        assert_eq!(missing, [1..5, 9..12]);
        delivered.add(1..5);
        assert_eq!((delivered.end, delivered.known_from(3)), (9, 9));
    }

    #[test]
    fn a_fin_takes_the_place_after_the_data() {
        let mut delivered = DeliveredStream::new();
        delivered.add(1..4);
        assert!(!delivered.is_finished() && !delivered.is_finish_acknowledged(4));
        delivered.finish();
        assert!(delivered.is_finished() && !delivered.is_finish_acknowledged(4));
        assert!(delivered.is_finish_acknowledged(5));
        assert_eq!(delivered.end, 5);
    }
}
