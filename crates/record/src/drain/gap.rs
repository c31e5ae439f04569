//! Events of a source that could not be written.

use windtunnel_evidence::file::events_of;
use windtunnel_model::record::{EventRecord, Kind, halves};

/// How many events, and from when to when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct EventTally {
    pub(super) events: u64,
    /// Those that were not lost before.
    pub(super) fresh: u64,
    begin: u64,
    end: u64,
}

impl EventTally {
    /// Adds events. A [`Kind::Lost`] among them counts as what it stands for.
    pub(super) fn add(&mut self, records: &[EventRecord]) {
        for record in records {
            let begin = if record.kind == Kind::Lost as u8 { record.wide(0) } else { record.time };
            if self.events == 0 || begin < self.begin {
                self.begin = begin;
            }
            self.end = self.end.max(record.time);
            self.events += events_of(record);
            self.fresh += u64::from(record.kind != Kind::Lost as u8);
        }
    }

    /// Adds those of another gap.
    pub(super) fn join(&mut self, other: &EventTally) {
        if other.events == 0 {
            return;
        }
        self.begin = if self.events == 0 { other.begin } else { self.begin.min(other.begin) };
        self.end = self.end.max(other.end);
        self.events += other.events;
        self.fresh += other.fresh;
    }

    /// As it stands in a file.
    pub(super) fn record(&self) -> EventRecord {
        let ([begin_low, begin_high], [low, high]) = (halves(self.begin), halves(self.events));
        EventRecord {
            // A time of 0 is none.
            time: self.end.max(1),
            kind: Kind::Lost as u8,
            args: [begin_low, begin_high, low, high],
            ..EventRecord::default()
        }
    }
}
