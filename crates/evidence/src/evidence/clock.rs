//! How a machine's clock stands to the one of all times.

use std::collections::BTreeMap;

use windtunnel_model::record::{EventRecord, Kind, halves};

use crate::file::{FileError, RecordFileElement, RecordFileReader, read_header};

/// A machine's clock over the time of a recording.
#[derive(Debug, Default)]
pub(crate) struct MachineClock {
    /// What holds where there are no samples.
    constant_ns: i64,
    /// On its own clock: by how much the common one is ahead. In order of time.
    samples: Vec<(u64, i64)>,
}

impl MachineClock {
    /// That of a machine's files.
    ///
    /// # Errors
    /// If a header is damaged.
    pub(crate) fn of(files: &BTreeMap<u32, &[u8]>) -> Result<MachineClock, FileError> {
        let mut clock = MachineClock::default();
        let mut reader = RecordFileReader::new();
        for bytes in files.values() {
            let header = read_header(bytes)?;
            clock.constant_ns = header.clock_offset_ns;
            if header.member.is_none() {
                break;
            }
            reader.read(bytes, |_, item| match item {
                RecordFileElement::Record(_, record) | RecordFileElement::Repeated(_, record) => {
                    clock.samples.extend(sample(&record));
                }
                _ => {}
            })?;
        }
        clock.samples.sort_unstable();
        clock.samples.dedup_by_key(|(time, _)| *time);
        Ok(clock)
    }

    /// By how much the common clock is ahead when this one shows `time`: between two samples on a
    /// straight line, before the first and after the last as they say.
    pub(crate) fn ahead_ns(&self, time: u64) -> i64 {
        let next = self.samples.partition_point(|(at, _)| *at <= time);
        let before = next.checked_sub(1).and_then(|at| self.samples.get(at));
        match (before, self.samples.get(next)) {
            (None, None) => self.constant_ns,
            (Some((_, ahead)), None) | (None, Some((_, ahead))) => *ahead,
            (Some((from, low)), Some((to, high))) => {
                let (part, whole) = (i128::from(time - from), i128::from(to - from));
                let rise = i128::from(*high) - i128::from(*low);
                low.saturating_add(i64::try_from(rise * part / whole).unwrap_or(0))
            }
        }
    }

    /// A record with its times on the common clock.
    pub(crate) fn shift(&self, record: EventRecord) -> EventRecord {
        shifted(record, self.ahead_ns(record.time))
    }
}

/// What a record says of its machine's clock: when, and by how much the common one is ahead.
pub(crate) fn sample(record: &EventRecord) -> Option<(u64, i64)> {
    let is_clock = record.kind == Kind::Clock as u8;
    is_clock.then(|| (record.time, record.wide(0).cast_signed()))
}

/// With times that are later by this.
pub(crate) fn shifted(mut record: EventRecord, ahead_ns: i64) -> EventRecord {
    if ahead_ns == 0 {
        return record;
    }
    record.time = record.time.saturating_add_signed(ahead_ns).max(1);
    if record.kind == Kind::Lost as u8 || record.kind == Kind::CallEnd as u8 {
        let [low, high] = halves(record.wide(0).saturating_add_signed(ahead_ns));
        (record.args[0], record.args[1]) = (low, high);
    }
    record
}
