//! Records of a source that is a thread of this process, until the [drain](crate::drain) takes them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use windtunnel_evidence::file::EventSource;
use windtunnel_model::record::kind::NO_FLOW;
use windtunnel_model::record::{EventRecord, Kind, halves};

use crate::drain::RecordFeed;

/// Where a source puts its records. It never waits for the drain: what finds no room is counted.
#[derive(Debug, Clone)]
pub struct SourceRecordBuffer(Arc<Mutex<SourceRecordQueue>>);

/// The drain's end of a [`SourceRecordBuffer`].
#[derive(Debug)]
pub struct ShelfFeed {
    source: EventSource,
    shelf: SourceRecordBuffer,
}

#[derive(Debug)]
struct SourceRecordQueue {
    records: VecDeque<EventRecord>,
    room: usize,
    /// Of those for which there was no room since records were last taken: how many, and the times
    /// of the first and the last.
    lost: u64,
    lost_first: u64,
    lost_last: u64,
}

impl SourceRecordBuffer {
    /// With room for so many records, and as many definitions on top.
    #[must_use]
    pub fn new(source: EventSource, room: usize) -> (SourceRecordBuffer, ShelfFeed) {
        let (records, lost, lost_first, lost_last) = (VecDeque::new(), 0, 0, 0);
        let waiting = SourceRecordQueue { records, room, lost, lost_first, lost_last };
        let shelf = SourceRecordBuffer(Arc::new(Mutex::new(waiting)));
        (shelf.clone(), ShelfFeed { source, shelf })
    }

    /// Puts a record behind the others; where there is no room, it is lost, and counted.
    pub fn put(&self, record: &EventRecord) {
        let mut waiting = self.lock();
        let is_definition = Kind::from_number(record.kind).is_some_and(Kind::is_definition);
        let room = if is_definition { waiting.room * 2 } else { waiting.room };
        let full = waiting.records.len() >= room || (waiting.lost > 0 && !is_definition);
        if !full {
            waiting.records.push_back(*record);
            return;
        }
        if waiting.lost == 0 {
            waiting.lost_first = record.time;
        }
        waiting.lost += 1;
        waiting.lost_last = record.time;
    }

    fn lock(&self) -> MutexGuard<'_, SourceRecordQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordFeed for ShelfFeed {
    fn source(&self) -> EventSource {
        self.source
    }

    fn take(&mut self, most: usize, records: &mut Vec<EventRecord>) {
        let mut waiting = self.shelf.lock();
        let count = waiting.records.len().min(most);
        records.extend(waiting.records.drain(..count));
        // The gap is behind the last of those that found room.
        if waiting.lost > 0 && waiting.records.is_empty() && count < most {
            let ([begin_low, begin_high], [low, high]) =
                (halves(waiting.lost_first), halves(waiting.lost));
            let args = [begin_low, begin_high, low, high];
            let (time, kind) = (waiting.lost_last, Kind::Lost as u8);
            records.push(EventRecord { time, kind, flags: 0, extra: 0, flow: NO_FLOW, args });
            waiting.lost = 0;
        }
    }

    fn fill(&self) -> (u64, u64) {
        let waiting = self.shelf.lock();
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        (number(waiting.records.len()), number(waiting.room))
    }
}

#[cfg(test)]
mod tests {
    use windtunnel_model::record::kind::RecordSource;

    use super::*;

    fn record(time: u64, kind: Kind) -> EventRecord {
        EventRecord { time, kind: kind as u8, ..EventRecord::default() }
    }

    #[test]
    fn records_and_the_lost_are_all_that_was_put() {
        let (shelf, mut feed) =
            SourceRecordBuffer::new(EventSource::of_node(RecordSource::Tcp, 3, 0), 2);
        for time in 1..=5 {
            shelf.put(&record(time, Kind::TcpLimits));
        }
        shelf.put(&record(6, Kind::FlowFrom));
        assert_eq!(feed.fill(), (3, 2));
        let mut taken = Vec::new();
        feed.take(2, &mut taken);
        feed.take(5, &mut taken);
        let times: Vec<u64> = taken.iter().map(|record| record.time).collect();
        assert_eq!(times, [1, 2, 6, 5], "definitions have room of their own");
        assert_eq!(taken[3].kind, Kind::Lost as u8);
        assert_eq!((taken[3].wide(0), taken[3].wide(2)), (3, 3));
        shelf.put(&record(7, Kind::TcpLimits));
        taken.clear();
        feed.take(5, &mut taken);
        assert_eq!(taken, [record(7, Kind::TcpLimits)]);
    }
}
