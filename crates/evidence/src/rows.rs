//! A record as named fields: what tables, JSON lines, CSV and Parquet show.

mod flags;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use windtunnel_model::record::kind::{Call, MACHINE};
use windtunnel_model::record::{EventRecord, Kind};

use crate::file::{FlowDirection, LaneName};
use crate::{AttributedRecord, EventOrigin, RecordedRun};
use flags::FlagNameTable;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFieldValue<'a> {
    /// A count, an offset or a time.
    Number(u64),
    /// A number that may be below zero.
    Signed(i64),
    /// A name.
    Text(&'a str),
}

/// A column of exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportColumn {
    /// Units come last: `_ns`, `_us`.
    pub name: &'static str,
    /// Whether its values are names; else they are whole numbers.
    pub is_text: bool,
}

/// Turns records into fields. It holds the names that they refer to.
#[derive(Debug)]
pub struct RecordFormatter<'e> {
    evidence: &'e RecordedRun,
    origin_ns: u64,
    origins: Vec<OriginNames<'e>>,
    flows: Vec<FlowEndpointNames>,
    flags: FlagNameTable,
}

#[derive(Debug)]
struct OriginNames<'e> {
    member: Option<&'e str>,
    layer: &'e str,
    node: Option<&'e str>,
}

#[derive(Debug)]
struct FlowEndpointNames {
    protocol: String,
    from: Option<String>,
    to: Option<String>,
}

/// Columns that any record may have, or that have a name of their own where the record has a
/// number.
const COMMON: [(&str, bool); 23] = [
    ("time_ns", false),
    ("clock_ns", false),
    ("member", true),
    ("layer", true),
    ("node", true),
    ("instance", false),
    ("kind", true),
    ("flow", false),
    ("protocol", true),
    ("from", true),
    ("to", true),
    ("direction", true),
    ("flags", true),
    ("link", true),
    ("lane_from", true),
    ("lane_to", true),
    ("segments", false),
    ("call", true),
    ("errno", false),
    ("reason", true),
    ("state", false),
    ("avoidance", false),
    ("segment_size", false),
];

/// All columns, in their order: common ones, then the arguments of all kinds.
#[must_use]
pub fn columns() -> Vec<ExportColumn> {
    let mut columns: Vec<ExportColumn> =
        COMMON.map(|(name, is_text)| ExportColumn { name, is_text }).to_vec();
    let mut known: BTreeSet<&str> = columns.iter().map(|column| column.name).collect();
    for kind in Kind::ALL.iter().filter(|kind| is_shown(**kind)) {
        for name in kind.arguments().into_iter().filter_map(column_of) {
            if known.insert(name) {
                columns.push(ExportColumn { name, is_text: false });
            }
        }
    }
    columns.push(ExportColumn { name: "extra", is_text: false });
    columns
}

/// Kinds that are entries of [`RecordedRun`].
fn is_shown(kind: Kind) -> bool {
    kind != Kind::Batch && !kind.is_definition()
}

/// The column of an argument; `None`: it is the upper half of the one before, or none.
fn column_of(argument: &'static str) -> Option<&'static str> {
    match argument {
        "" | "lane" => None,
        "begin_low" => Some("begin_ns"),
        "count_low" => Some("count"),
        _ if argument.ends_with("_high") => None,
        _ => Some(argument.strip_suffix("_low").unwrap_or(argument)),
    }
}

impl<'e> RecordFormatter<'e> {
    /// Rows of the records of `evidence`.
    #[must_use]
    pub fn new(evidence: &'e RecordedRun) -> RecordFormatter<'e> {
        let origins = evidence.origins().iter().map(|origin| OriginNames {
            member: evidence.header_of(*origin).member.as_deref(),
            layer: origin.layer().map_or("?", windtunnel_model::record::kind::RecordSource::name),
            node: evidence.node_name(*origin),
        });
        let flows = evidence.flows().iter().map(|flow| FlowEndpointNames {
            protocol: flow.protocol_name(),
            from: flow.from.map(|end| evidence.end_name(&end)),
            to: flow.to.map(|end| evidence.end_name(&end)),
        });
        RecordFormatter {
            evidence,
            origin_ns: evidence.origin_ns(),
            origins: origins.collect(),
            flows: flows.collect(),
            flags: FlagNameTable::new(),
        }
    }

    /// Nanoseconds since the run began; below zero before it.
    #[must_use]
    pub fn since_origin(&self, time: u64) -> i64 {
        let apart = i128::from(time) - i128::from(self.origin_ns);
        i64::try_from(apart).unwrap_or(i64::MAX)
    }

    /// The ends of a record's flow, in its global direction.
    #[must_use]
    pub fn ends(&self, flow: usize) -> (&str, &str) {
        let names = self.flows.get(flow);
        let from = names.and_then(|names| names.from.as_deref());
        let to = names.and_then(|names| names.to.as_deref());
        (from.unwrap_or("?"), to.unwrap_or("?"))
    }

    /// The lane of a record of a packet, and the link that it is of.
    #[must_use]
    pub fn lane(&self, entry: &AttributedRecord) -> Option<&'e LaneName> {
        is_packet(entry.kind()?).then_some(())?;
        self.lane_of(self.evidence.origin_of(entry).member, entry.record.args[2])
    }

    /// A lane by its number in a member's header.
    #[must_use]
    pub fn lane_of(&self, member: u16, lane: u32) -> Option<&'e LaneName> {
        let member = self.evidence.members().get(usize::from(member))?;
        member.header.lanes.get(lane as usize)
    }

    /// Why a packet was dropped.
    #[must_use]
    pub fn reason(&self, entry: &AttributedRecord) -> Option<&'e str> {
        (entry.kind()? == Kind::Dropped).then_some(())?;
        let header = self.evidence.header_of(self.evidence.origin_of(entry));
        header.drop_reasons.get(entry.record.args[3] as usize).map(String::as_str)
    }

    /// The flags of a record as names, with a blank between.
    #[must_use]
    pub fn flags(&self, entry: &AttributedRecord) -> &str {
        self.flags.of(entry)
    }

    /// Hands the fields of a record to `each`, in the order of [`columns`] with those of its kind
    /// last.
    pub fn fields<'a>(
        &'a self,
        entry: &AttributedRecord,
        each: &mut dyn FnMut(&'static str, ExportFieldValue<'a>),
    ) {
        let record = &entry.record;
        let origin = self.evidence.origin_of(entry);
        each("time_ns", ExportFieldValue::Signed(self.since_origin(record.time)));
        each("clock_ns", ExportFieldValue::Number(record.time));
        self.source_fields(entry, origin, each);
        let kind = match entry.kind() {
            Some(kind) => kind.name(),
            None => self.later_kind(entry),
        };
        each("kind", ExportFieldValue::Text(kind));
        self.flow_fields(entry, each);
        let flags = self.flags.of(entry);
        if !flags.is_empty() {
            each("flags", ExportFieldValue::Text(flags));
        }
        match entry.kind() {
            Some(kind) => self.kind_fields(kind, entry, each),
            None => unknown_fields(record, each),
        }
    }

    fn source_fields<'a>(
        &'a self,
        entry: &AttributedRecord,
        origin: EventOrigin,
        each: &mut dyn FnMut(&'static str, ExportFieldValue<'a>),
    ) {
        let names = &self.origins[entry.origin()];
        if let Some(member) = names.member {
            each("member", ExportFieldValue::Text(member));
        }
        each("layer", ExportFieldValue::Text(names.layer));
        if let Some(node) = names.node.filter(|_| origin.source.node != MACHINE) {
            each("node", ExportFieldValue::Text(node));
        }
        each("instance", ExportFieldValue::Number(origin.source.instance.into()));
    }

    fn flow_fields<'a>(
        &'a self,
        entry: &AttributedRecord,
        each: &mut dyn FnMut(&'static str, ExportFieldValue<'a>),
    ) {
        let Some(flow) = entry.flow() else { return };
        let names = &self.flows[flow];
        each("flow", ExportFieldValue::Number(flow as u64));
        each("protocol", ExportFieldValue::Text(&names.protocol));
        if let Some(from) = &names.from {
            each("from", ExportFieldValue::Text(from));
        }
        if let Some(to) = &names.to {
            each("to", ExportFieldValue::Text(to));
        }
        let direction = match entry.direction() {
            FlowDirection::Forward => "forward",
            FlowDirection::Reverse => "reverse",
        };
        each("direction", ExportFieldValue::Text(direction));
    }

    fn kind_fields<'a>(
        &'a self,
        kind: Kind,
        entry: &AttributedRecord,
        each: &mut dyn FnMut(&'static str, ExportFieldValue<'a>),
    ) {
        let record = &entry.record;
        if let Some(lane) = self.lane(entry) {
            each("link", ExportFieldValue::Text(&lane.link));
            each("lane_from", ExportFieldValue::Text(&lane.from));
            each("lane_to", ExportFieldValue::Text(&lane.to));
        }
        let extra = u64::from(record.extra);
        match kind {
            Kind::Call => {
                let call = Call::from_number(record.extra).map_or("?", Call::name);
                each("call", ExportFieldValue::Text(call));
                if let Some(errno) = errno(record) {
                    each("errno", ExportFieldValue::Number(errno.into()));
                }
            }
            Kind::TcpWindows => {
                each("state", ExportFieldValue::Number(extra & 0xff));
                each("avoidance", ExportFieldValue::Number(extra >> 8));
            }
            Kind::TcpProgress => each("segment_size", ExportFieldValue::Number(extra)),
            kind if is_packet(kind) => each("segments", ExportFieldValue::Number(extra)),
            _ if extra != 0 => each("extra", ExportFieldValue::Number(extra)),
            _ => {}
        }
        for (position, argument) in kind.arguments().into_iter().enumerate() {
            let Some(name) = column_of(argument) else { continue };
            match name {
                "reason" => each(name, ExportFieldValue::Text(self.reason(entry).unwrap_or("?"))),
                "result" => each(name, ExportFieldValue::Signed(signed(record.args[position]))),
                _ if argument.ends_with("_low") => {
                    each(name, ExportFieldValue::Number(record.wide(position)));
                }
                _ => each(name, ExportFieldValue::Number(record.args[position].into())),
            }
        }
    }

    fn later_kind(&self, entry: &AttributedRecord) -> &str {
        let header = self.evidence.header_of(self.evidence.origin_of(entry));
        let known = header.kinds.iter().find(|kind| kind.number == entry.record.kind);
        known.map_or("?", |kind| kind.name.as_str())
    }
}

/// Whether it is one of the engine's, about a packet in a lane.
#[must_use]
pub fn is_packet(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Offered
            | Kind::Sent
            | Kind::Delivered
            | Kind::Dropped
            | Kind::Marked
            | Kind::Duplicated
            | Kind::Corrupted
            | Kind::Fragmented
    )
}

/// The error that a call ended with.
#[must_use]
pub fn errno(record: &EventRecord) -> Option<u16> {
    u16::try_from(-signed(record.args[2])).ok().filter(|errno| *errno > 0)
}

/// An argument that may be below zero.
#[must_use]
pub fn signed(argument: u32) -> i64 {
    i32::from_le_bytes(argument.to_le_bytes()).into()
}

fn unknown_fields<'a>(
    record: &EventRecord,
    each: &mut dyn FnMut(&'static str, ExportFieldValue<'a>),
) {
    each("extra", ExportFieldValue::Number(record.extra.into()));
}
