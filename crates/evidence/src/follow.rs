//! Records of a run that goes on, as its files grow.
//!
//! Flows are numbered as they appear, by their two ends: what is known of the whole only when it is
//! over (a port that was used again, a socket's own address that another layer sees) is not awaited.

mod rates;
#[cfg(test)]
mod tests;

pub use rates::{FlowRate, LaneRate, RateAccumulator};

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use windtunnel_model::record::kind::RecordSource;
use windtunnel_model::record::{EventRecord, Kind};

use crate::evidence::{sample, shifted};
use crate::file::{
    EventSource, FileError, RecordFileElement, RecordFileHeader, RecordFileReader,
    RecordStreamDecoder,
};
use crate::flows::{FlowEndpoint, GlobalFlow};
use crate::{AttributedRecord, EventOrigin, RecordedRun, RecordingMachine};

/// Takes the bytes of a run's files as they come, and gives out what is new.
#[derive(Debug, Default)]
pub struct RecordFileFollower {
    evidence: RecordedRun,
    /// By member's name.
    members: BTreeMap<Option<String>, u16>,
    readers: Vec<RecordFileReader>,
    origins: BTreeMap<(u16, EventSource), u32>,
    /// By member, layer, node and number.
    locals: BTreeMap<(u16, u8, u32, u32), FlowNumberBinding>,
    /// By protocol and sides, in their order.
    numbers: BTreeMap<(u8, FlowEndpoint, FlowEndpoint), u32>,
}

/// A file that grows, of [`RecordFileFollower`].
#[derive(Debug, Default)]
pub struct GrowingRecordFile {
    tail: RecordStreamDecoder,
    /// The file's bytes before its header is whole.
    begin: Vec<u8>,
    member: Option<u16>,
}

#[derive(Debug, Clone, Copy, Default)]
struct FlowNumberBinding {
    protocol: u8,
    from: Option<FlowEndpoint>,
    /// The flow, and whether its `from` is the other side here.
    flow: Option<(u32, bool)>,
}

impl RecordFileFollower {
    /// Without files.
    #[must_use]
    pub fn new() -> RecordFileFollower {
        RecordFileFollower::default()
    }

    /// What is known so far: members, sources and flows. It holds no records.
    #[must_use]
    pub fn evidence(&self) -> &RecordedRun {
        &self.evidence
    }

    /// Takes the next bytes of a file; what is new of records goes to `new`, in the order of the
    /// file. Files of a member come one after the other.
    ///
    /// # Errors
    /// If the file is none of records.
    pub fn push(
        &mut self,
        file: &mut GrowingRecordFile,
        bytes: &[u8],
        new: &mut Vec<AttributedRecord>,
    ) -> Result<(), FileError> {
        let Some(member) = file.member else {
            file.begin.extend(bytes);
            if !crate::file::has_header(&file.begin) {
                return Ok(());
            }
            let header = crate::file::read_header(&file.begin)?;
            file.member = Some(self.member(header));
            let begin = std::mem::take(&mut file.begin);
            return self.push(file, &begin, new);
        };
        let mut reader = std::mem::take(&mut self.readers[usize::from(member)]);
        let taken = file.tail.push(bytes, &mut reader, |_, item| {
            self.item(member, item, new);
        });
        self.readers[usize::from(member)] = reader;
        taken
    }

    fn member(&mut self, header: RecordFileHeader) -> u16 {
        let next = u16::try_from(self.members.len()).unwrap_or(u16::MAX);
        let name = header.member.clone();
        *self.members.entry(name).or_insert_with(|| {
            self.evidence.members.push(RecordingMachine {
                header,
                files: 1,
                missing: Vec::new(),
                stray: 0,
            });
            self.readers.push(RecordFileReader::new());
            next
        })
    }

    fn item(&mut self, member: u16, item: RecordFileElement, new: &mut Vec<AttributedRecord>) {
        let (source, record, is_new) = match item {
            RecordFileElement::Record(source, record) => (source, record, true),
            RecordFileElement::Repeated(source, record) => (source, record, false),
            RecordFileElement::Gap { source, events } => {
                let [low, high] = windtunnel_model::record::halves(events);
                let args = [0, 0, low, high];
                (
                    source,
                    EventRecord { time: 1, kind: Kind::Lost as u8, args, ..EventRecord::default() },
                    true,
                )
            }
            RecordFileElement::Stray(_) => {
                return self.evidence.members[usize::from(member)].stray += 1;
            }
        };
        let header = &mut self.evidence.members[usize::from(member)].header;
        if let Some((_, ahead_ns)) = sample(&record) {
            header.clock_offset_ns = ahead_ns;
            return;
        }
        let record = shifted(record, header.clock_offset_ns);
        let origin = self.origin(member, source);
        let kind = Kind::from_number(record.kind);
        if kind.is_some_and(Kind::is_definition) {
            return self.define(member, source, &record);
        }
        if is_new {
            let mut entry = AttributedRecord::new(record, origin);
            let local = self.locals.get(&(member, source.layer, source.node, record.flow));
            if let Some((flow, flipped)) = local.and_then(|local| local.flow)
                && kind != Some(Kind::Lost)
            {
                entry.bind(flow, flipped);
            }
            new.push(entry);
        }
    }

    fn origin(&mut self, member: u16, source: EventSource) -> u32 {
        let origins = &mut self.evidence.origins;
        *self.origins.entry((member, source)).or_insert_with(|| {
            origins.push(EventOrigin { member, source });
            u32::try_from(origins.len() - 1).unwrap_or(u32::MAX)
        })
    }

    fn define(&mut self, member: u16, source: EventSource, record: &EventRecord) {
        let key = (member, source.layer, source.node, record.flow);
        match Kind::from_number(record.kind) {
            Some(Kind::FlowFrom) => {
                let end = self.end(source, record, source.layer != RecordSource::Engine as u8);
                let flow = None;
                let local = FlowNumberBinding { protocol: record.flags, from: Some(end), flow };
                self.locals.insert(key, local);
            }
            Some(Kind::FlowTo) => {
                let to = self.end(source, record, false);
                let known = self.locals.get(&key).copied().unwrap_or_default();
                let Some(from) = known.from else { return };
                let flow = Some(self.flow(known.protocol, from, to, record.time));
                self.locals.insert(key, FlowNumberBinding { flow, ..known });
            }
            _ => {}
        }
    }

    /// A side of a definition. A socket's own address that is not known is the first of its node.
    fn end(&self, source: EventSource, record: &EventRecord, is_own: bool) -> FlowEndpoint {
        let mut address = Ipv6Addr::from(record.arg_bytes());
        let members = || self.evidence.members.iter();
        let of_node = |node: u32| {
            members()
                .find_map(|member| member.header.addresses.get(node as usize)?.first().copied())
        };
        if is_own && address.to_canonical().is_unspecified() {
            address = match of_node(source.node) {
                Some(IpAddr::V4(own)) => own.to_ipv6_mapped(),
                Some(IpAddr::V6(own)) => own,
                None => address,
            };
        }
        let mut named = members().flat_map(|member| (0..).zip(&member.header.addresses));
        let ip = address.to_canonical();
        let found = named.find(|(_, addresses)| addresses.contains(&ip)).map(|(node, _)| node);
        let node = if is_own { Some(source.node) } else { found };
        FlowEndpoint { address, port: record.extra, node }
    }

    fn flow(
        &mut self,
        protocol: u8,
        from: FlowEndpoint,
        to: FlowEndpoint,
        time: u64,
    ) -> (u32, bool) {
        let key = (protocol, from.min(to), from.max(to));
        let flows = &mut self.evidence.flows;
        let number = *self.numbers.entry(key).or_insert_with(|| {
            let (begin_ns, end_ns) = (time, time);
            let (parts, reused) = (Vec::new(), false);
            let (from, to) = (Some(from), Some(to));
            flows.push(GlobalFlow { protocol, from, to, begin_ns, end_ns, parts, reused });
            u32::try_from(flows.len() - 1).unwrap_or(u32::MAX)
        });
        (number, flows[number as usize].from != Some(from))
    }
}
