//! The files of one machine: one after the other, up to a size, as far as the disk has room.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use windtunnel_evidence::file::{EventSource, RecordFileHeader, RecordFileWriter, events_of};
use windtunnel_model::record::kind::RecordSource;
use windtunnel_model::record::{EventRecord, Kind};

use super::gap::EventTally;
use super::status::{LayerStatus, RecordDrainStatus};

/// How much may lie on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordFileLimits {
    /// The most bytes of all files together.
    pub max: u64,
    /// A file that has so many is followed by another.
    pub rotate: u64,
    /// How many are kept, the newest; `None`: all.
    pub keep: Option<u32>,
}

/// The files. What is added waits in memory until it is flushed.
#[derive(Debug)]
pub(super) struct RotatingRecordFiles {
    folder: PathBuf,
    prefix: String,
    limits: RecordFileLimits,
    writer: RecordFileWriter,
    present: Option<CurrentRecordFile>,
    /// Earlier ones that are still there.
    kept: VecDeque<FinishedRecordFile>,
    state: RecordWriteState,
    /// Bytes that wait to be written.
    staged: Vec<u8>,
    /// By source: the events in them.
    staged_events: BTreeMap<EventSource, EventTally>,
    /// By source: events for which a record is yet to say that they are lost.
    unsaid: BTreeMap<EventSource, EventTally>,
    layers: BTreeMap<u8, LayerStatus>,
    totals: RecordDrainStatus,
}

/// The file that is written.
#[derive(Debug)]
struct CurrentRecordFile {
    file: File,
    path: PathBuf,
    created: u64,
    /// Bytes that are surely in it.
    bytes: u64,
    events: u64,
}

#[derive(Debug)]
struct FinishedRecordFile {
    path: PathBuf,
    bytes: u64,
    events: u64,
}

/// Whether events can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordWriteState {
    Writing,
    /// The disk did not take them; it is asked again then.
    Refused {
        again_at: u64,
    },
    /// There are as many as there may be.
    Full,
}

impl RotatingRecordFiles {
    pub(super) fn new(
        folder: PathBuf,
        prefix: String,
        header: RecordFileHeader,
        limits: RecordFileLimits,
    ) -> Self {
        RotatingRecordFiles {
            folder,
            prefix,
            limits,
            writer: RecordFileWriter::new(header),
            present: None,
            kept: VecDeque::new(),
            state: RecordWriteState::Writing,
            staged: Vec::new(),
            staged_events: BTreeMap::new(),
            unsaid: BTreeMap::new(),
            layers: BTreeMap::new(),
            totals: RecordDrainStatus::default(),
        }
    }

    /// Begins a file at `now`, ns of the records' clock.
    ///
    /// # Errors
    /// If it cannot be made; the one before goes on then.
    pub(super) fn open(&mut self, now: u64) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let part = self.totals.files + 1;
        let path = self.folder.join(format!("{}{part:04}.wtr", self.prefix));
        let file = File::create_new(&path)?;
        self.totals.files = part;
        let present = CurrentRecordFile { file, path, created: now, bytes: 0, events: 0 };
        if let Some(CurrentRecordFile { path, bytes, events, .. }) = self.present.replace(present) {
            self.kept.push_back(FinishedRecordFile { path, bytes, events });
        }
        self.writer.begin(now, &mut self.staged);
        Ok(())
    }

    /// Adds records of a source, of which some may be [`Kind::Lost`].
    pub(super) fn add(&mut self, now: u64, source: EventSource, records: &[EventRecord]) {
        if records.is_empty() {
            return;
        }
        let layer = self.layers.entry(source.layer).or_default();
        for record in records {
            let events = events_of(record);
            layer.events += events;
            if record.kind == Kind::Lost as u8 {
                layer.lost += events;
                layer.lost_at_source += events;
            } else {
                layer.records += 1;
            }
        }
        if self.state == RecordWriteState::Writing {
            self.staged_events.entry(source).or_default().add(records);
            self.writer.add(now, source, records, &mut self.staged);
            if self.staged.len() >= STAGED_MAX {
                self.flush(now);
            }
        } else {
            self.writer.keep_definitions(source, records);
            let mut gap = EventTally::default();
            gap.add(records);
            self.lose(source, &gap);
        }
    }

    /// How full a source was when it was looked at.
    pub(super) fn note_fill(&mut self, source: EventSource, waiting: u64, room: u64) {
        let permille = waiting.saturating_mul(1000).checked_div(room).unwrap_or(0);
        let permille = u32::try_from(permille).unwrap_or(u32::MAX);
        let layer = self.layers.entry(source.layer).or_default();
        let before = layer.fill_permille;
        layer.fill_permille = (before - before.div_ceil(64)).max(permille);
        layer.fill_max_permille = layer.fill_max_permille.max(permille);
    }

    /// Writes what waits.
    pub(super) fn flush(&mut self, now: u64) {
        if let RecordWriteState::Refused { again_at } = self.state
            && now >= again_at
        {
            self.resume(now);
        }
        if self.staged.is_empty() || self.state != RecordWriteState::Writing {
            return;
        }
        if !self.fits() {
            self.state = RecordWriteState::Full;
            let why = format!("there are {} bytes, as many as there may be", self.on_disk());
            self.totals.failure.get_or_insert(why);
            return self.drop_staged();
        }
        match self.write() {
            Ok(()) => self.rotate(now),
            Err(error) => {
                self.refuse(now, &error);
                self.drop_staged();
            }
        }
    }

    /// More or less may lie on the disk from now on.
    pub(super) fn limit(&mut self, limits: RecordFileLimits) {
        self.limits = limits;
        if self.state == RecordWriteState::Full {
            self.state = RecordWriteState::Refused { again_at: 0 };
        }
    }

    /// Writes what waits, and what is lost, also beyond the limit.
    pub(super) fn finish(&mut self, now: u64) {
        self.flush(now);
        if self.state != RecordWriteState::Writing && !self.unsaid.is_empty() {
            self.limits.max = u64::MAX;
            self.resume(now);
            self.flush(now);
        }
    }

    pub(super) fn status(&self) -> RecordDrainStatus {
        // The clock's source is of no layer.
        let layers = self.layers.iter().filter_map(|(number, layer)| {
            RecordSource::from_number(*number).map(|source| (source, *layer))
        });
        RecordDrainStatus {
            layers: layers.collect(),
            kept_bytes: self.on_disk(),
            ..self.totals.clone()
        }
    }

    fn on_disk(&self) -> u64 {
        let former: u64 = self.kept.iter().map(|former| former.bytes).sum();
        former + self.present.as_ref().map_or(0, |present| present.bytes)
    }

    /// Whether what waits has a place, once the oldest files are gone that need not be kept.
    fn fits(&mut self) -> bool {
        let more = self.staged.len() as u64;
        while self.limits.keep.is_some() && self.on_disk() + more > self.limits.max {
            if !self.remove_oldest() {
                break;
            }
        }
        self.on_disk() + more <= self.limits.max
    }

    fn write(&mut self) -> io::Result<()> {
        let present = self.present.as_mut().ok_or(io::ErrorKind::NotFound)?;
        present.file.write_all_at(&self.staged, present.bytes)?;
        let bytes = self.staged.len() as u64;
        present.bytes += bytes;
        self.totals.written_bytes += bytes;
        present.events += self.staged_events.values().map(|gap| gap.events).sum::<u64>();
        self.staged.clear();
        self.staged_events.clear();
        Ok(())
    }

    /// Begins the next file where this one is large enough, and removes those that are too many.
    fn rotate(&mut self, now: u64) {
        let full = |present: &CurrentRecordFile| present.bytes >= self.limits.rotate;
        if !self.present.as_ref().is_some_and(full) || self.open(now).is_err() {
            return;
        }
        let most = self.limits.keep.map_or(usize::MAX, |keep| keep as usize);
        while self.kept.len() + 1 > most && self.remove_oldest() {}
    }

    fn remove_oldest(&mut self) -> bool {
        let Some(former) = self.kept.pop_front() else { return false };
        // That it is gone already is as good.
        let _ = fs::remove_file(&former.path);
        self.totals.removed_files += 1;
        self.totals.removed_events += former.events;
        true
    }

    /// The disk did not take what waits: a part of it may be behind the end, where it is cut off.
    fn refuse(&mut self, now: u64, error: &io::Error) {
        self.state = RecordWriteState::Refused { again_at: now + AGAIN_NS };
        if let Some(present) = &self.present {
            let why = format!("cannot write {}: {error}", present.path.display());
            self.totals.failure.get_or_insert(why);
            // What cannot be cut off is overwritten later.
            let _ = present.file.set_len(present.bytes);
        }
    }

    /// What waits cannot be written, and is lost.
    fn drop_staged(&mut self) {
        self.staged.clear();
        for (source, gap) in std::mem::take(&mut self.staged_events) {
            self.writer.take_back(source, gap.events);
            self.lose(source, &gap);
        }
    }

    /// Counts events as lost that have been counted as records.
    fn lose(&mut self, source: EventSource, gap: &EventTally) {
        let layer = self.layers.entry(source.layer).or_default();
        layer.records -= gap.fresh;
        layer.lost += gap.fresh;
        self.unsaid.entry(source).or_default().join(gap);
    }

    /// Tries to write again: first, what is lost.
    fn resume(&mut self, now: u64) {
        let Some(present) = &self.present else { return };
        self.staged.clear();
        if present.bytes == 0 {
            self.staged.extend(self.writer.header().to_bytes(present.created));
        }
        self.writer.repeat(now, &mut self.staged);
        let unsaid = std::mem::take(&mut self.unsaid);
        for (source, gap) in &unsaid {
            self.writer.add(now, *source, &[gap.record()], &mut self.staged);
        }
        let fits = self.fits();
        if fits && self.write().is_ok() {
            self.state = RecordWriteState::Writing;
            return;
        }
        self.state = if fits {
            RecordWriteState::Refused { again_at: now + AGAIN_NS }
        } else {
            RecordWriteState::Full
        };
        self.staged.clear();
        for (source, gap) in &unsaid {
            self.writer.take_back(*source, gap.events);
        }
        self.unsaid = unsaid;
    }
}

#[cfg(test)]
impl RotatingRecordFiles {
    /// Writes to another file from now on.
    pub(super) fn divert(&mut self, to: File) -> Option<File> {
        self.present.as_mut().map(|present| std::mem::replace(&mut present.file, to))
    }
}

/// What waits at the most before it is written.
const STAGED_MAX: usize = 1 << 20;
/// From one attempt to write to a full disk to the next.
const AGAIN_NS: u64 = 250_000_000;
