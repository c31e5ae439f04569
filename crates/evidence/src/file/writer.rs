//! Records in the order in which they come, as bytes of files.

use std::collections::BTreeMap;

use windtunnel_model::record::{BYTES, EventRecord, Kind, halves};

use super::{EventSource, RecordFileHeader};

/// Turns batches of records into bytes of one file after the other. It keeps the definitions of
/// flows, and repeats them at the begin of each file.
#[derive(Debug)]
pub struct RecordFileWriter {
    header: RecordFileHeader,
    /// By source: its events so far, recorded or lost.
    events: BTreeMap<EventSource, u64>,
    /// By source, flow and kind: the latest definition.
    definitions: BTreeMap<(EventSource, u32, u8), EventRecord>,
}

impl RecordFileWriter {
    /// A writer of files of which `header` says what they are; its `part` is counted here.
    #[must_use]
    pub fn new(header: RecordFileHeader) -> RecordFileWriter {
        let header = RecordFileHeader { part: 0, ..header };
        RecordFileWriter { header, events: BTreeMap::new(), definitions: BTreeMap::new() }
    }

    /// The header of the present file.
    #[must_use]
    pub fn header(&self) -> &RecordFileHeader {
        &self.header
    }

    /// Begins a file at `now` (ns of the records' clock).
    pub fn begin(&mut self, now: u64, out: &mut Vec<u8>) {
        self.header.part += 1;
        out.extend(self.header.to_bytes(now));
        self.repeat(now, out);
    }

    /// Writes all definitions again: for a file whose reader may not have had them.
    pub fn repeat(&self, now: u64, out: &mut Vec<u8>) {
        let mut of_source: BTreeMap<EventSource, Vec<EventRecord>> = BTreeMap::new();
        for ((source, ..), record) in &self.definitions {
            of_source.entry(*source).or_default().push(*record);
        }
        for (source, records) in of_source {
            let before = self.events.get(&source).copied().unwrap_or(0);
            put(out, &batch(now, source, before, records.len(), true));
            records.iter().for_each(|record| put(out, record));
        }
    }

    /// Keeps the definitions among records that are not written; a [`Kind::Lost`] is to count them
    /// later.
    pub fn keep_definitions(&mut self, source: EventSource, records: &[EventRecord]) {
        for record in records {
            if Kind::from_number(record.kind).is_some_and(Kind::is_definition) {
                self.definitions.insert((source, record.flow, record.kind), *record);
            }
        }
    }

    /// Takes back so many of a source's latest events: what was made of them could not be written.
    pub fn take_back(&mut self, source: EventSource, events: u64) {
        let known = self.events.entry(source).or_default();
        *known = known.saturating_sub(events);
    }

    /// Writes records of a source that came at `now` or before; among them may be
    /// [`Kind::Lost`].
    pub fn add(
        &mut self,
        now: u64,
        source: EventSource,
        records: &[EventRecord],
        out: &mut Vec<u8>,
    ) {
        if records.is_empty() {
            return;
        }
        let events = self.events.entry(source).or_default();
        put(out, &batch(now, source, *events, records.len(), false));
        for record in records {
            *events += events_of(record);
            put(out, record);
        }
        self.keep_definitions(source, records);
    }

    /// Events of all sources so far, recorded or lost.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events.values().sum()
    }
}

/// How many events of its source a record stands for.
#[must_use]
pub fn events_of(record: &EventRecord) -> u64 {
    if record.kind == Kind::Lost as u8 { record.wide(2) } else { 1 }
}

fn batch(
    now: u64,
    source: EventSource,
    before: u64,
    records: usize,
    repeated: bool,
) -> EventRecord {
    let [low, high] = halves(before);
    EventRecord {
        time: now,
        kind: Kind::Batch as u8,
        flags: source.layer,
        extra: source.instance,
        flow: source.node,
        args: [low, high, u32::try_from(records).unwrap_or(u32::MAX), u32::from(repeated)],
    }
}

fn put(out: &mut Vec<u8>, record: &EventRecord) {
    let bytes: [u8; BYTES] = record.to_bytes();
    out.extend_from_slice(&bytes);
}
