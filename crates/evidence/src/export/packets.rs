//! pcapng from records: each packet's headers are made from its flow, offset and flags.

mod frame;

use std::collections::BTreeMap;
use std::io::{self, Write};

use windtunnel_model::record::Kind;

use super::offers::PendingLaneOffers;
use super::pcapng::{self, CapturedPacketDirection, PcapngInterface, PcapngPacket};
use crate::file::LaneName;
use crate::rows::is_packet;
use crate::{AttributedRecord, RecordedRun};
use frame::CaptureFrameBuilder;

/// Where packets are seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureLocation {
    /// Everywhere.
    All,
    /// As these nodes send and receive them.
    Nodes(Vec<String>),
    /// At both ends of these links.
    Links(Vec<String>),
}

/// How often a packet is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapturePointSelection {
    /// Once: as a capture there would see it. Everywhere, that is where a node sends it; at a node, what
    /// it sends and what it receives; on a link, what is offered to it.
    Once,
    /// At each lane that it is offered to, comes out of, or is dropped by.
    All,
}

/// What happens to a packet at a lane, each an interface of its own.
const POINTS: [(Kind, &str, CapturedPacketDirection); 3] = [
    (Kind::Offered, "offered", CapturedPacketDirection::Outbound),
    (Kind::Delivered, "delivered", CapturedPacketDirection::Inbound),
    (Kind::Dropped, "dropped", CapturedPacketDirection::Outbound),
];

const COMMENT: &str = "Made from records of Windtunnel. Packets have no payload, and no headers were \
    recorded: these are made from each packet's flow, stream offset, acknowledgement and flags. \
    Ethernet addresses, checksums of TCP and UDP, windows and options are not those of the packet. \
    The original length is that without options. Each lane of a link has up to three \
    interfaces: packets as they are offered, delivered and dropped. Trains of segments are one packet.";

/// Writes the packets at `place` among `entries` as pcapng. Nothing but packets in lanes is
/// written.
///
/// # Errors
/// Those of writing.
pub fn packets<'a>(
    evidence: &RecordedRun,
    entries: impl Iterator<Item = &'a AttributedRecord>,
    place: &CaptureLocation,
    points: CapturePointSelection,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut buffer = Vec::new();
    let program = evidence.members().first().map_or("", |member| member.header.program.as_str());
    pcapng::section(&mut buffer, program, COMMENT);
    let interfaces = interfaces(evidence, place, points, &mut buffer);
    let frames = CaptureFrameBuilder::new(evidence);
    let mut offers = PendingLaneOffers::default();
    for entry in entries.filter(|entry| entry.kind().is_some_and(is_packet)) {
        let member = evidence.origin_of(entry).member;
        let ack = match entry.kind() {
            Some(Kind::Offered) => {
                offers.offered(member, entry, 0);
                Some(entry.record.args[3])
            }
            Some(Kind::Delivered | Kind::Dropped) => {
                offers.take(member, entry).map(|(offer, _)| offer.ack)
            }
            _ => continue,
        };
        let (lane, kind) = (entry.record.args[2], entry.record.kind);
        let Some(interface) = interfaces.get(&CapturePointKey { member, lane, kind }) else {
            continue;
        };
        put(evidence, &frames, entry, *interface, ack, &mut buffer);
        out.write_all(&buffer)?;
        buffer.clear();
    }
    out.write_all(&buffer)
}

impl CaptureLocation {
    /// Whether it is where a packet is, of which a lane has a record of this kind.
    fn has(&self, lane: &LaneName, kind: Kind) -> bool {
        let at = if kind == Kind::Delivered { &lane.to } else { &lane.from };
        match self {
            CaptureLocation::All => true,
            CaptureLocation::Nodes(nodes) => nodes.contains(at),
            CaptureLocation::Links(links) => links.contains(&lane.link),
        }
    }
}

impl CapturePointSelection {
    /// Whether a packet is written for a record of this kind of a lane which begins at a node, or not.
    fn has(self, place: &CaptureLocation, kind: Kind, is_node: bool) -> bool {
        match (self, place) {
            (CapturePointSelection::All, _) => true,
            (CapturePointSelection::Once, CaptureLocation::All) => kind == Kind::Offered && is_node,
            (CapturePointSelection::Once, CaptureLocation::Nodes(_)) => kind != Kind::Dropped,
            (CapturePointSelection::Once, CaptureLocation::Links(_)) => kind == Kind::Offered,
        }
    }
}

/// Where packets are seen: an interface of the capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CapturePointKey {
    member: u16,
    lane: u32,
    /// Of the records.
    kind: u8,
}

#[derive(Debug, Clone, Copy)]
struct CaptureInterface {
    number: u32,
    heading: CapturedPacketDirection,
}

fn interfaces(
    evidence: &RecordedRun,
    place: &CaptureLocation,
    points: CapturePointSelection,
    out: &mut Vec<u8>,
) -> BTreeMap<CapturePointKey, CaptureInterface> {
    let mut interfaces = BTreeMap::new();
    for (member, of) in (0..).zip(evidence.members()) {
        for (index, lane) in (0..).zip(&of.header.lanes) {
            let is_node = of.header.nodes.contains(&lane.from);
            for (kind, name, heading) in POINTS {
                if !place.has(lane, kind) || !points.has(place, kind, is_node) {
                    continue;
                }
                let number = u32::try_from(interfaces.len()).unwrap_or(u32::MAX);
                let key = CapturePointKey { member, lane: index, kind: kind as u8 };
                interfaces.insert(key, CaptureInterface { number, heading });
                let interface = PcapngInterface {
                    name: format!("{} {}-{} {name}", lane.link, lane.from, lane.to),
                    description: format!(
                        "link {}, from {} to {}: packets {name}",
                        lane.link, lane.from, lane.to
                    ),
                    snap_bytes: frame::SNAP_BYTES,
                };
                pcapng::interface(out, &interface);
            }
        }
    }
    interfaces
}

fn put(
    evidence: &RecordedRun,
    frames: &CaptureFrameBuilder,
    entry: &AttributedRecord,
    interface: CaptureInterface,
    ack: Option<u32>,
    out: &mut Vec<u8>,
) {
    let header = evidence.header_of(evidence.origin_of(entry));
    let since = i128::from(entry.record.time) - i128::from(evidence.origin_ns());
    let unix_ns = u64::try_from(i128::from(header.origin_unix_ns) + since).unwrap_or(0);
    let comment = comment(evidence, entry);
    let (bytes, original_bytes) = frames.frame(entry, ack);
    pcapng::packet(
        out,
        &PcapngPacket {
            interface: interface.number,
            unix_ns,
            bytes: &bytes,
            original_bytes,
            direction: Some(interface.heading),
            comment: comment.as_deref(),
        },
    );
}

fn comment(evidence: &RecordedRun, entry: &AttributedRecord) -> Option<String> {
    let mut parts = Vec::new();
    if entry.kind() == Some(Kind::Dropped) {
        let header = evidence.header_of(evidence.origin_of(entry));
        let reason = header.drop_reasons.get(entry.record.args[3] as usize);
        parts.push(format!("dropped: {}", reason.map_or("?", String::as_str)));
    }
    if entry.record.extra > 1 {
        parts.push(format!("train of {} segments", entry.record.extra));
    }
    if entry.record.flags & windtunnel_model::record::flag::COPY != 0 {
        parts.push("copy made by the link".to_owned());
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}
