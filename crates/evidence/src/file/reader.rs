//! A file's bytes as records.

use std::collections::BTreeMap;

use windtunnel_model::record::{BYTES, EventRecord, Kind};

use super::writer::events_of;
use super::{BYTE_ORDER, EventSource, FIXED_BYTES, MAGIC, RecordFileHeader, VERSION};

/// Why bytes are not a file of records.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FileError {
    /// It does not begin like one.
    #[error("this is not a file of records: it does not begin with WTRECORD")]
    NotRecords,
    /// Of a version whose layout is another.
    #[error("records of version {0}; this program reads version {VERSION}")]
    Version(u32),
    /// Of a machine with the other byte order.
    #[error("the byte order is not little-endian")]
    ByteOrder,
    /// The header contradicts itself, or the file.
    #[error("the header is damaged: {0}")]
    Header(String),
}

/// What a file holds, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFileElement {
    /// A record of a source; of any kind but [`Kind::Batch`]. It may be of a kind that this version
    /// does not know.
    Record(EventSource, EventRecord),
    /// A definition that an earlier file had, too.
    Repeated(EventSource, EventRecord),
    /// Events of a source of which the file says nothing: it is damaged, or a file is missing.
    Gap {
        /// Whose they are.
        source: EventSource,
        /// How many.
        events: u64,
    },
    /// Records before the first [`Kind::Batch`]: it is not known whose they are.
    Stray(EventRecord),
}

/// Where a reader is in a file: whose records come, and how many of them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecordFileCursor {
    present: Option<(EventSource, bool)>,
    left: u32,
}

/// Reads one file, or several of one member in their order.
#[derive(Debug, Default)]
pub struct RecordFileReader {
    events: BTreeMap<EventSource, u64>,
}

impl RecordFileReader {
    /// A reader that has read nothing.
    #[must_use]
    pub fn new() -> RecordFileReader {
        RecordFileReader::default()
    }

    /// Reads a file: hands `each` its items, and returns what it says of itself. A part of a record
    /// at the end is left out.
    ///
    /// # Errors
    /// If the header is none.
    pub fn read(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&RecordFileHeader, RecordFileElement),
    ) -> Result<RecordFileHeader, FileError> {
        let (header, stride, body) = split(bytes)?;
        let mut place = RecordFileCursor::default();
        for bytes in body.chunks_exact(stride) {
            let Some(bytes) = bytes.first_chunk::<BYTES>() else { break };
            self.take(&mut place, EventRecord::from_bytes(bytes), |item| each(&header, item));
        }
        Ok(header)
    }

    /// Takes the next record of a file.
    pub(crate) fn take(
        &mut self,
        place: &mut RecordFileCursor,
        record: EventRecord,
        mut each: impl FnMut(RecordFileElement),
    ) {
        if record.kind == Kind::Batch as u8 && place.left == 0 {
            let (source, repeated) = source_of(&record);
            place.left = record.args[2];
            if !repeated {
                self.check_sequence(source, record.wide(0), &mut each);
            }
            place.present = Some((source, repeated));
            return;
        }
        let Some((source, repeated)) = place.present.filter(|_| place.left > 0) else {
            return each(RecordFileElement::Stray(record));
        };
        place.left -= 1;
        if repeated {
            each(RecordFileElement::Repeated(source, record));
        } else {
            *self.events.entry(source).or_default() += events_of(&record);
            each(RecordFileElement::Record(source, record));
        }
    }

    /// Events of each source so far, recorded or lost.
    #[must_use]
    pub fn events(&self) -> &BTreeMap<EventSource, u64> {
        &self.events
    }

    fn check_sequence(
        &mut self,
        source: EventSource,
        before: u64,
        mut each: impl FnMut(RecordFileElement),
    ) {
        let known = self.events.entry(source).or_default();
        if before > *known {
            each(RecordFileElement::Gap { source, events: before - *known });
        }
        *known = before;
    }
}

/// What a file says of itself.
///
/// # Errors
/// If it is none of records, or of a version that this program does not know.
pub fn read_header(bytes: &[u8]) -> Result<RecordFileHeader, FileError> {
    split(bytes).map(|(header, ..)| header)
}

fn source_of(batch: &EventRecord) -> (EventSource, bool) {
    let source = EventSource { layer: batch.flags, node: batch.flow, instance: batch.extra };
    (source, batch.args[3] != 0)
}

pub(super) fn split(bytes: &[u8]) -> Result<(RecordFileHeader, usize, &[u8]), FileError> {
    let fixed = bytes.get(..FIXED_BYTES).ok_or(FileError::NotRecords)?;
    if fixed[..8] != MAGIC {
        return Err(FileError::NotRecords);
    }
    let word =
        |at: usize| u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    if word(12) != BYTE_ORDER {
        return Err(FileError::ByteOrder);
    }
    if word(8) != VERSION {
        return Err(FileError::Version(word(8)));
    }
    let damaged = |what: &str| FileError::Header(what.to_owned());
    let (stride, end) = (word(16) as usize, word(20) as usize);
    if !(BYTES..=STRIDE_MAX).contains(&stride) {
        return Err(damaged("the length of a record is not possible"));
    }
    let json = bytes.get(FIXED_BYTES..end).ok_or_else(|| damaged("it ends early"))?;
    let header = serde_json::from_slice(json).map_err(|error| damaged(&error.to_string()))?;
    Ok((header, stride, &bytes[end..]))
}

/// No version will have longer records.
const STRIDE_MAX: usize = 4096;
