//! A record as a line for people.

use std::fmt::Write as _;

use windtunnel_evidence::file::FlowDirection;
use windtunnel_evidence::rows::{ExportFieldValue, RecordFormatter, errno, is_packet, signed};
use windtunnel_evidence::{AttributedRecord, RecordedRun};
use windtunnel_model::record::kind::Call;
use windtunnel_model::record::{Kind, flag};

use crate::render::quantity::nanos;

/// Turns records into lines whose columns line up.
#[derive(Debug)]
pub(crate) struct RecordLineFormatter<'e> {
    evidence: &'e RecordedRun,
    rows: RecordFormatter<'e>,
    node_width: usize,
    flow_width: usize,
}

impl<'e> RecordLineFormatter<'e> {
    pub(crate) fn new(evidence: &'e RecordedRun) -> Self {
        let rows = RecordFormatter::new(evidence);
        let nodes = evidence.origins().iter().filter_map(|origin| evidence.node_name(*origin));
        let node_width = nodes.map(|name| name.chars().count()).max().unwrap_or(0).max(4);
        let flows = (0..evidence.flows().len()).map(|flow| {
            let (from, to) = rows.ends(flow);
            from.chars().count() + to.chars().count() + 3
        });
        let flow_width = flows.max().unwrap_or(0).max(4);
        let number = evidence.flows().len().to_string().len() + 1;
        RecordLineFormatter {
            evidence,
            rows,
            node_width,
            flow_width: (flow_width + number).min(FLOW_WIDTH_MAX),
        }
    }

    /// The headings.
    pub(crate) fn headings(&self) -> String {
        format!(
            "{:>14}  {:<6}  {:<nodes$}  {:<flows$}  what",
            "time [s]",
            "layer",
            "node",
            "flow",
            nodes = self.node_width,
            flows = self.flow_width
        )
    }

    /// The record's line; `paint` colours its layer's name.
    pub(crate) fn line(&self, entry: &AttributedRecord, paint: impl Fn(&str) -> String) -> String {
        let origin = self.evidence.origin_of(entry);
        let layer = origin.layer().map_or("?", windtunnel_model::record::kind::RecordSource::name);
        let mut line = seconds(self.rows.since_origin(entry.record.time));
        // Writing to memory cannot fail.
        let _ = write!(
            line,
            "  {}  {:<nodes$}  {:<flows$}  {}",
            paint(&format!("{layer:<6}")),
            self.evidence.node_name(origin).unwrap_or("-"),
            self.flow(entry),
            self.what(entry),
            nodes = self.node_width,
            flows = self.flow_width
        );
        line
    }

    /// `3 client:4000 → web:80`, in the direction of the record's bytes.
    fn flow(&self, entry: &AttributedRecord) -> String {
        let Some(flow) = entry.flow() else { return "-".to_owned() };
        let (from, to) = self.rows.ends(flow);
        match entry.direction() {
            FlowDirection::Forward => format!("{flow} {from} → {to}"),
            FlowDirection::Reverse => format!("{flow} {from} ← {to}"),
        }
    }

    fn what(&self, entry: &AttributedRecord) -> String {
        match entry.kind() {
            Some(Kind::Call) => call(entry, self.rows.flags(entry)),
            Some(Kind::Lost) => format!("{} events lost", entry.record.wide(2)),
            Some(kind) if is_packet(kind) => self.packet(kind, entry),
            _ => self.fields(entry),
        }
    }

    fn packet(&self, kind: Kind, entry: &AttributedRecord) -> String {
        let record = &entry.record;
        let [offset, length, _, last] = record.args;
        let lane = self.rows.lane(entry);
        let lane = lane.map_or("?".to_owned(), |lane| format!("{} → {}", lane.from, lane.to));
        let mut text = format!("{} {lane}", kind.name());
        let flags = self.rows.flags(entry);
        let _ = match flags {
            "" => write!(text, " {length} B at {offset}"),
            flags => write!(text, " [{flags}] {length} B at {offset}"),
        };
        if record.extra > 1 {
            let _ = write!(text, " in {} segments", record.extra);
        }
        let _ = match kind {
            Kind::Offered if record.flags & flag::ACK != 0 => write!(text, ", ack {last}"),
            Kind::Sent => write!(text, ", transmission {}", nanos(last.into())),
            Kind::Delivered => write!(text, ", delay {}", nanos(last.into())),
            Kind::Dropped => write!(text, ": {}", self.rows.reason(entry).unwrap_or("?")),
            _ => Ok(()),
        };
        text
    }

    /// The kind, and what its arguments are.
    fn fields(&self, entry: &AttributedRecord) -> String {
        let mut text = String::new();
        self.rows.fields(entry, &mut |name, value| {
            let _ = match (name, value) {
                ("kind", ExportFieldValue::Text(kind)) => write!(text, "{kind}"),
                _ if COLUMNS.contains(&name) => Ok(()),
                (_, ExportFieldValue::Text(value)) => write!(text, " {name}={value}"),
                (_, ExportFieldValue::Number(value)) => write!(text, " {name}={value}"),
                (_, ExportFieldValue::Signed(value)) => write!(text, " {name}={value}"),
            };
        });
        text
    }
}

fn call(entry: &AttributedRecord, flags: &str) -> String {
    let record = &entry.record;
    let [offset, asked, result, duration] = record.args;
    let name = Call::from_number(record.extra).map_or("call", Call::name);
    let mut text = name.to_owned();
    let moves = record.extra >= Call::Write as u16;
    let _ = match errno(record) {
        // What a socket that does not block answers when it has begun to connect.
        Some(EINPROGRESS) => write!(text, " begun"),
        Some(errno) => write!(text, " failed with errno {errno}"),
        None if moves => write!(text, " {} of {asked} B at {offset}", signed(result)),
        None => Ok(()),
    };
    if !flags.is_empty() {
        let _ = write!(text, " [{flags}]");
    }
    if record.flags & flag::END_UNKNOWN == 0 {
        let _ = write!(text, ", {}", nanos(duration.into()));
    }
    text
}

/// Seconds with nine decimals, flush right.
fn seconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    let text = format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000);
    format!("{text:>14}")
}

/// Fields that have a column of their own.
const COLUMNS: [&str; 11] = [
    "time_ns",
    "clock_ns",
    "member",
    "layer",
    "node",
    "instance",
    "flow",
    "protocol",
    "from",
    "to",
    "direction",
];
const FLOW_WIDTH_MAX: usize = 64;
const EINPROGRESS: u16 = 115;
