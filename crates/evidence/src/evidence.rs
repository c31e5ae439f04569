//! What a run's records say, in memory: all members' files merged in order of time.

mod clock;
mod load;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use clock::{sample, shifted};
pub use load::EvidenceLoader;

use std::collections::BTreeMap;

use windtunnel_model::record::kind::{MACHINE, NO_FLOW, RecordSource};
use windtunnel_model::record::{EventRecord, Kind, flag};

use crate::file::{EventSource, FlowDirection, RecordFileHeader};
use crate::flows::{FlowEndpoint, GlobalFlow};

/// A record, its source and its flow. Times are those of the first member's clock.
///
/// Definitions and batches are no entries. A [`Kind::Lost`] is one, also where the file does not
/// hold it and the gap follows from the numbers of its batches; its begin is then the time of the
/// source's record before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributedRecord {
    /// As recorded, with times on the common clock. Its `flow` is the source's own number.
    pub record: EventRecord,
    flow: u32,
    /// The lower 31 bits: its position; the highest: flipped.
    origin: u32,
}

const FLIPPED: u32 = 1 << 31;

/// Where an entry comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EventOrigin {
    /// The machine, by its position in [`RecordedRun::members`].
    pub member: u16,
    /// Layer, node and instance.
    pub source: EventSource,
}

/// A machine of the run, and what its files held beside records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordingMachine {
    /// Of its first file.
    pub header: RecordFileHeader,
    /// How many files were read.
    pub files: u32,
    /// Numbers of files that are missing between those that were read, or before them.
    pub missing: Vec<u32>,
    /// Records of which it is not known whose they are.
    pub stray: u64,
}

/// Records and flows of a run.
#[derive(Debug, Clone, Default)]
pub struct RecordedRun {
    pub(crate) members: Vec<RecordingMachine>,
    pub(crate) origins: Vec<EventOrigin>,
    pub(crate) events: Vec<u64>,
    pub(crate) entries: Vec<AttributedRecord>,
    pub(crate) flows: Vec<GlobalFlow>,
    /// By member, node and number: a process' name.
    pub(crate) processes: BTreeMap<(u16, u32, u32), String>,
}

impl AttributedRecord {
    pub(crate) fn new(record: EventRecord, origin: u32) -> AttributedRecord {
        AttributedRecord { record, flow: NO_FLOW, origin: origin & !FLIPPED }
    }

    pub(crate) fn bind(&mut self, flow: u32, flipped: bool) {
        self.flow = flow;
        self.origin = self.origin & !FLIPPED | u32::from(flipped) << 31;
    }

    /// The global flow: a position in [`RecordedRun::flows`].
    #[must_use]
    pub fn flow(&self) -> Option<usize> {
        (self.flow != NO_FLOW).then_some(self.flow as usize)
    }

    /// The direction in its global flow of the bytes that the record is about.
    #[must_use]
    pub fn direction(&self) -> FlowDirection {
        match (self.record.flags & flag::REVERSE != 0) ^ self.flipped() {
            false => FlowDirection::Forward,
            true => FlowDirection::Reverse,
        }
    }

    /// Whether the `from` of the source's own definition is the `to` of the global flow. Of a
    /// socket's record (all layers but the engine) it says which end's socket it is: that of `from`
    /// if clear.
    #[must_use]
    pub fn flipped(&self) -> bool {
        self.origin & FLIPPED != 0
    }

    /// `None`: of a later version.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        Kind::from_number(self.record.kind)
    }

    /// The position of its origin in [`RecordedRun::origins`].
    #[must_use]
    pub fn origin(&self) -> usize {
        (self.origin & !FLIPPED) as usize
    }
}

impl RecordedRun {
    /// All records in order of time; of one time: as they came.
    #[must_use]
    pub fn records(&self) -> &[AttributedRecord] {
        &self.entries
    }

    /// All flows in order of their begin.
    #[must_use]
    pub fn flows(&self) -> &[GlobalFlow] {
        &self.flows
    }

    /// The flow of a record.
    #[must_use]
    pub fn flow_of(&self, entry: &AttributedRecord) -> Option<&GlobalFlow> {
        self.flows.get(entry.flow()?)
    }

    /// The machines, in the order of their names. Times are on the clock of the one whose
    /// `clock_offset_ns` is 0.
    #[must_use]
    pub fn members(&self) -> &[RecordingMachine] {
        &self.members
    }

    /// All sources.
    #[must_use]
    pub fn origins(&self) -> &[EventOrigin] {
        &self.origins
    }

    /// The source of a record.
    #[must_use]
    pub fn origin_of(&self, entry: &AttributedRecord) -> EventOrigin {
        self.origins[entry.origin()]
    }

    /// Events of a source, by its position in [`origins`](RecordedRun::origins): definitions, records
    /// and lost ones.
    #[must_use]
    pub fn events(&self, origin: usize) -> u64 {
        self.events.get(origin).copied().unwrap_or(0)
    }

    /// The header of the machine that recorded it.
    #[must_use]
    pub fn header_of(&self, origin: EventOrigin) -> &RecordFileHeader {
        &self.members[usize::from(origin.member)].header
    }

    /// When the run began, on the clock of all times; 0 if there are no files.
    #[must_use]
    pub fn origin_ns(&self) -> u64 {
        let Some(member) = self.members.first() else { return 0 };
        member.header.origin_ns.saturating_add_signed(member.header.clock_offset_ns)
    }

    /// The name of the node of a source; `None` for a source of no node.
    #[must_use]
    pub fn node_name(&self, origin: EventOrigin) -> Option<&str> {
        (origin.source.node != MACHINE).then(|| self.name_of(origin.source.node).unwrap_or("?"))
    }

    /// The name of an end of a flow: `node:port` where the node is known, else the address.
    #[must_use]
    pub fn end_name(&self, end: &FlowEndpoint) -> String {
        match end.node.and_then(|node| self.name_of(node)) {
            Some(name) => format!("{name}:{}", end.port),
            None => end.to_string(),
        }
    }

    /// The name of a process of a node by the number that its records of calls give it.
    #[must_use]
    pub fn process_name(&self, origin: EventOrigin, number: u32) -> Option<&str> {
        let key = (origin.member, origin.source.node, number);
        self.processes.get(&key).map(String::as_str)
    }

    /// The name of a node by its number.
    #[must_use]
    pub fn name_of(&self, node: u32) -> Option<&str> {
        let mut names = self.members.iter().filter_map(|m| m.header.nodes.get(node as usize));
        names.next().map(String::as_str)
    }
}

impl EventOrigin {
    /// `None`: of a later version.
    #[must_use]
    pub fn layer(&self) -> Option<RecordSource> {
        RecordSource::from_number(self.source.layer)
    }
}
