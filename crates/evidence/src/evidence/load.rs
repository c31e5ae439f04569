//! Files of records, read and merged.

use std::collections::BTreeMap;

use windtunnel_model::record::{BYTES, EventRecord, Kind, halves};

use super::clock::MachineClock;
use super::{AttributedRecord, EventOrigin, RecordedRun, RecordingMachine};
use crate::file::{
    EventSource, FileError, RecordFileElement, RecordFileHeader, RecordFileReader, read_header,
};
use crate::flows::FlowCorrelator;

/// Takes the bytes of files, in any order, and makes [`RecordedRun`] of them. Files of one member are
/// those whose headers have the same `member`.
#[derive(Debug, Default)]
pub struct EvidenceLoader<'a> {
    files: BTreeMap<Option<String>, BTreeMap<u32, &'a [u8]>>,
}

impl<'a> EvidenceLoader<'a> {
    /// Without files.
    #[must_use]
    pub fn new() -> EvidenceLoader<'a> {
        EvidenceLoader::default()
    }

    /// Adds a file.
    ///
    /// # Errors
    /// If it is none of records.
    pub fn add(&mut self, bytes: &'a [u8]) -> Result<(), FileError> {
        let header = read_header(bytes)?;
        self.files.entry(header.member).or_default().insert(header.part, bytes);
        Ok(())
    }

    /// Reads all files.
    ///
    /// # Errors
    /// If a header is damaged.
    pub fn finish(self) -> Result<RecordedRun, FileError> {
        let mut load = EvidenceAssembler::default();
        let bytes: usize = self.files.values().flat_map(BTreeMap::values).map(|f| f.len()).sum();
        load.evidence.entries.reserve(bytes / BYTES);
        for parts in self.files.values() {
            load.member(parts)?;
        }
        Ok(load.finish())
    }
}

#[derive(Debug, Default)]
struct EvidenceAssembler {
    evidence: RecordedRun,
    flows: FlowCorrelator,
    /// By member and source: its position among the origins.
    origins: BTreeMap<(u16, EventSource), u32>,
    /// By origin: the time of its latest record.
    latest: Vec<u64>,
    /// By origin: how many events are missing before its next record.
    missing: Vec<u64>,
}

impl EvidenceAssembler {
    fn member(&mut self, parts: &BTreeMap<u32, &[u8]>) -> Result<(), FileError> {
        let number = u16::try_from(self.evidence.members.len()).unwrap_or(u16::MAX);
        let mut reader = RecordFileReader::new();
        let mut member: Option<RecordingMachine> = None;
        let clock = MachineClock::of(parts)?;
        for bytes in parts.values() {
            let mut stray = 0;
            let mut present: Option<(EventSource, u32)> = None;
            let header = reader.read(bytes, |_, item| match item {
                RecordFileElement::Record(source, record) => {
                    let origin = self.origin_cached(&mut present, number, source);
                    self.record(origin, clock.shift(record), true);
                }
                RecordFileElement::Repeated(source, record) => {
                    let origin = self.origin_cached(&mut present, number, source);
                    self.record(origin, clock.shift(record), false);
                }
                RecordFileElement::Gap { source, events } => {
                    let origin = self.origin_cached(&mut present, number, source);
                    self.missing[origin as usize] += events;
                }
                RecordFileElement::Stray(_) => stray += 1,
            })?;
            let member = member.get_or_insert_with(|| {
                let mut member = member_of(header, parts);
                member.header.clock_offset_ns = clock.ahead_ns(member.header.origin_ns);
                member
            });
            member.stray += stray;
        }
        for (source, events) in reader.events() {
            let origin = self.origin(number, *source);
            self.evidence.events[origin as usize] = *events;
        }
        self.evidence.members.extend(member);
        Ok(())
    }

    fn origin_cached(
        &mut self,
        present: &mut Option<(EventSource, u32)>,
        member: u16,
        source: EventSource,
    ) -> u32 {
        match present {
            Some((known, origin)) if *known == source => *origin,
            _ => {
                let origin = self.origin(member, source);
                *present = Some((source, origin));
                origin
            }
        }
    }

    fn origin(&mut self, member: u16, source: EventSource) -> u32 {
        let evidence = &mut self.evidence;
        *self.origins.entry((member, source)).or_insert_with(|| {
            evidence.origins.push(EventOrigin { member, source });
            evidence.events.push(0);
            self.latest.push(0);
            self.missing.push(0);
            self.flows.add_origin(EventOrigin { member, source });
            u32::try_from(evidence.origins.len() - 1).unwrap_or(u32::MAX)
        })
    }

    fn record(&mut self, origin: u32, record: EventRecord, new: bool) {
        match Kind::from_number(record.kind) {
            Some(Kind::Process) => {
                let EventOrigin { member, source } = self.evidence.origins[origin as usize];
                let key = (member, source.node, record.flow);
                self.evidence.processes.insert(key, name_of(&record));
            }
            Some(Kind::Clock) => {}
            Some(kind) if kind.is_definition() => self.flows.define(origin, kind, &record),
            _ if new => self.push(origin, record),
            _ => {}
        }
    }

    fn push(&mut self, origin: u32, record: EventRecord) {
        let latest = &mut self.latest[origin as usize];
        let missing = std::mem::take(&mut self.missing[origin as usize]);
        if missing > 0 {
            let lost = lost(*latest, record.time.max(*latest), missing);
            self.evidence.entries.push(AttributedRecord::new(lost, origin));
        }
        *latest = (*latest).max(record.time);
        self.evidence.entries.push(AttributedRecord::new(record, origin));
    }

    fn finish(mut self) -> RecordedRun {
        self.evidence.entries.sort_by_key(|entry| entry.record.time);
        self.flows.bind(&mut self.evidence.entries);
        for member in &self.evidence.members {
            self.flows.name_addresses(&member.header.addresses);
        }
        self.evidence.flows = self.flows.unify(&mut self.evidence.entries);
        self.evidence
    }
}

fn member_of(header: RecordFileHeader, parts: &BTreeMap<u32, &[u8]>) -> RecordingMachine {
    let last = parts.keys().next_back().copied().unwrap_or(0);
    let missing = (1..=last).filter(|part| !parts.contains_key(part)).collect();
    let files = u32::try_from(parts.len()).unwrap_or(u32::MAX);
    RecordingMachine { header, files, missing, stray: 0 }
}

fn lost(begin: u64, end: u64, events: u64) -> EventRecord {
    let ([begin_low, begin_high], [low, high]) = (halves(begin), halves(events));
    let args = [begin_low, begin_high, low, high];
    EventRecord { time: end, kind: Kind::Lost as u8, args, ..EventRecord::default() }
}

fn name_of(process: &EventRecord) -> String {
    let bytes = process.arg_bytes();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
