//! What one replica has sent and the client has not got yet: put in order, and kept until all
//! others have sent the same.

use alloc::vec::Vec;
use core::ops::Range;

use crate::context::ReplicationContext;
use crate::offset::{index, len64};
use crate::ranges::StreamRangeSet;
use crate::segment::ParsedTcpSegment;
use windtunnel_wire::tcp;

/// Gaps in a replica's output at the most: of what would be more, that which is furthest ahead is dropped
/// like a lost packet. Half of the segments of 1.5 MB on their way may be lost.
pub const GAPS_MAX: usize = 512;

/// A replica's stream from what has been delivered to the client on.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplicaOutputBuffer {
    /// Offset of the first byte kept. INVARIANT: the same for all live replicas of a connection,
    /// and the end of what was delivered.
    start: u64,
    /// Bytes from `start` on are those from `head` on; a gap holds zeroes.
    bytes: Vec<u8>,
    head: usize,
    /// What has come, from `start` on.
    present: StreamRangeSet,
    /// Offset of FIN.
    pub(crate) fin: Option<u64>,
    /// Offset after the last urgent byte.
    pub(crate) urgent: Option<u64>,
}

/// Whether a piece of output was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputInsertOutcome {
    /// It was, or nothing in it is new.
    Yes,
    /// It was, and what was furthest ahead is not any more: there were too many gaps.
    InPlaceOfLast,
    /// It is further ahead than the bound.
    TooFar,
    /// There are too many gaps, and all that is kept comes before it.
    TooManyGaps,
}

impl ReplicaOutputBuffer {
    /// Nothing has come; the first byte has this offset.
    pub(crate) fn new(start: u64) -> Self {
        Self { start, ..Self::default() }
    }

    /// The end of the data without a gap.
    pub(crate) fn data_end(&self) -> u64 {
        let end = self.present.end_from(self.start);
        self.fin.map_or(end, |fin| end.min(fin))
    }

    /// The same with FIN counted.
    pub(crate) fn end(&self) -> u64 {
        let data = self.data_end();
        if self.fin == Some(data) { data + 1 } else { data }
    }

    /// Keeps what is new in a segment of the replica.
    pub(crate) fn store(
        &mut self,
        cx: &mut ReplicationContext<'_>,
        segment: &ParsedTcpSegment<'_>,
        offset: u64,
    ) {
        let end = offset + len64(segment.payload.len());
        let counters = &mut cx.sink.counters;
        let room = cx.config.limits.output_total.saturating_sub(cx.sink.buffered);
        // What comes next is always taken, so that full memory is given back: a segment of each replica.
        let is_next = offset <= self.start;
        if end > self.start && segment.payload.len() > room && !is_next {
            counters.output_full += 1;
            return;
        }
        match self.insert(offset, segment.payload, u64::from(cx.config.limits.output)) {
            OutputInsertOutcome::Yes => {}
            OutputInsertOutcome::InPlaceOfLast => counters.output_gaps += 1,
            OutputInsertOutcome::TooFar => {
                counters.output_too_far += 1;
                return;
            }
            OutputInsertOutcome::TooManyGaps => {
                counters.output_gaps += 1;
                return;
            }
        }
        if segment.has(tcp::FIN) && self.fin.is_none() && end >= self.data_end() {
            self.fin = Some(end);
        }
        if let Some(urgent) = segment.urgent {
            self.urgent = Some(offset + u64::from(urgent)).max(self.urgent);
        }
    }

    /// Takes a piece in. At most `max` bytes from `start` on are kept.
    fn insert(&mut self, offset: u64, payload: &[u8], max: u64) -> OutputInsertOutcome {
        let skip = self.start.saturating_sub(offset);
        let Some(payload) = payload.get(index(skip)..).filter(|rest| !rest.is_empty()) else {
            return OutputInsertOutcome::Yes;
        };
        let offset = offset.max(self.start);
        let end = offset + len64(payload.len());
        if end - self.start > max {
            return OutputInsertOutcome::TooFar;
        }
        let mut kept = OutputInsertOutcome::Yes;
        while !self.present.insert(offset..end, GAPS_MAX) {
            // The nearest is what the client is waiting for: dropped each time, it never came.
            if !self.drop_last(end) {
                return OutputInsertOutcome::TooManyGaps;
            }
            kept = OutputInsertOutcome::InPlaceOfLast;
        }
        let from = self.head + index(offset - self.start);
        let to = from + payload.len();
        if self.bytes.len() < to {
            self.bytes.resize(from.max(self.bytes.len()), 0);
            let overlap = self.bytes.len() - from;
            self.bytes[from..].copy_from_slice(&payload[..overlap]);
            self.bytes.extend_from_slice(&payload[overlap..]);
        } else {
            self.bytes[from..to].copy_from_slice(payload);
        }
        kept
    }

    /// Drops what is furthest ahead, if that begins behind an offset.
    fn drop_last(&mut self, offset: u64) -> bool {
        let is_dropped = self.present.remove_last(offset);
        if is_dropped {
            let end = self.present.iter().next_back().map_or(self.start, |last| last.end);
            self.bytes.truncate(self.head + index(end - self.start));
        }
        is_dropped
    }

    /// What has come and is kept.
    pub(crate) fn present(&self) -> &StreamRangeSet {
        &self.present
    }

    /// Bytes that have come.
    pub(crate) fn slice(&self, range: Range<u64>) -> &[u8] {
        let at = |offset: u64| self.head + index(offset.saturating_sub(self.start));
        self.bytes.get(at(range.start)..at(range.end)).unwrap_or_default()
    }

    /// Everything before an offset was delivered.
    pub(crate) fn deliver(&mut self, offset: u64) {
        self.head = (self.head + index(offset - self.start)).min(self.bytes.len());
        self.start = offset;
        self.present.remove_below(offset);
        if self.head == self.bytes.len() {
            self.bytes.clear();
            self.head = 0;
        } else if self.head > self.bytes.len() / 2 {
            self.bytes.drain(..self.head);
            self.head = 0;
        }
    }

    /// Bytes kept now.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.head
    }

    /// Gives the memory back.
    pub(crate) fn release(&mut self) {
        self.bytes = Vec::new();
        self.head = 0;
        self.present.clear();
    }

    /// Bytes of memory beside the value itself.
    pub(crate) fn memory(&self) -> usize {
        self.bytes.capacity() + self.present.memory()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_any_order_become_a_stream() {
        let mut output = ReplicaOutputBuffer::new(1);
        assert_eq!(output.insert(4, b"def", 100), OutputInsertOutcome::Yes);
        assert_eq!((output.data_end(), output.len()), (1, 6));
        assert_eq!(output.insert(1, b"abcd", 100), OutputInsertOutcome::Yes);
        assert_eq!((output.data_end(), output.slice(1..7)), (7, &b"abcdef"[..]));
        output.deliver(3);
        assert_eq!((output.slice(3..7), output.len()), (&b"cdef"[..], 4));
        assert_eq!(output.insert(2, b"bcd", 100), OutputInsertOutcome::Yes);
        output.deliver(7);
        assert_eq!((output.len(), output.data_end()), (0, 7));
        assert_eq!(output.insert(7, b"ghi", 100), OutputInsertOutcome::Yes);
        assert_eq!(output.slice(7..10), b"ghi");
    }

    #[test]
    fn fin_counts_once_the_data_before_it_has_come() {
        let mut output = ReplicaOutputBuffer::new(1);
        output.fin = Some(3);
        assert_eq!(output.end(), 1);
        output.insert(1, b"ab", 100);
        assert_eq!((output.data_end(), output.end()), (3, 4));
        output.deliver(4);
        assert_eq!((output.data_end(), output.end()), (3, 4));
    }

    #[test]
    fn what_is_too_far_or_makes_a_gap_too_many_behind_all_others_is_refused() {
        let mut output = ReplicaOutputBuffer::new(1);
        assert_eq!(output.insert(5, b"abc", 6), OutputInsertOutcome::TooFar);
        let gaps = len64(GAPS_MAX);
        for gap in 0..gaps {
            assert_eq!(output.insert(2 + 2 * gap, b"x", 10_000), OutputInsertOutcome::Yes);
        }
        assert_eq!(output.insert(5_000, b"x", 10_000), OutputInsertOutcome::TooManyGaps);
        assert_eq!(
            (output.data_end(), output.insert(1, b"x", 10_000)),
            (1, OutputInsertOutcome::Yes)
        );
    }

    #[test]
    fn with_too_many_gaps_the_nearest_is_kept_and_the_furthest_dropped() {
        let mut output = ReplicaOutputBuffer::new(1);
        let gaps = len64(GAPS_MAX);
        for gap in 0..gaps {
            assert_eq!(output.insert(10 + 2 * gap, b"x", 10_000), OutputInsertOutcome::Yes);
        }
        let last = 10 + 2 * (gaps - 1);
        assert_eq!(output.insert(1, b"ab", 10_000), OutputInsertOutcome::InPlaceOfLast);
        assert_eq!((output.data_end(), output.slice(1..3)), (3, &b"ab"[..]));
        assert_eq!(output.len(), index(last - 2));
        // What was dropped comes again once there is room.
        assert_eq!(output.insert(3, b"cdefghi", 10_000), OutputInsertOutcome::Yes);
        assert_eq!(output.insert(last, b"y", 10_000), OutputInsertOutcome::Yes);
        assert_eq!((output.data_end(), output.slice(last..last + 1)), (11, &b"y"[..]));
    }
}
