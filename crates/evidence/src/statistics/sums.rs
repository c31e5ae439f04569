//! Counters that grow with each record.

use std::collections::BTreeMap;

use windtunnel_model::record::kind::Call;
use windtunnel_model::record::{Kind, flag};

use super::{FlowDirectionCounters, FlowSum, LaneSum, RecordingGap, lost_events};
use crate::file::FlowDirection;
use crate::rows::{is_packet, signed};
use crate::{AttributedRecord, RecordedRun};

#[derive(Debug)]
pub(super) struct EvidenceTotals<'e> {
    evidence: &'e RecordedRun,
    /// By origin.
    pub(super) records: Vec<u64>,
    pub(super) lost: Vec<u64>,
    /// By flow.
    flows: Vec<[DirectionCount; 2]>,
    of_flow: Vec<u64>,
    /// By member and lane.
    lanes: Vec<Vec<DirectedLinkTotals>>,
    lost_entries: Vec<AttributedRecord>,
    pub(super) unknown_offsets: u64,
}

/// A direction, and what is needed to see that bytes come again.
#[derive(Debug, Clone, Copy, Default)]
struct DirectionCount {
    way: FlowDirectionCounters,
    /// Where its packets come first: member and lane; and the offset after the highest byte there.
    first_lane: Option<(u16, u32)>,
    high: Option<u32>,
}

#[derive(Debug, Clone, Default)]
struct DirectedLinkTotals {
    offered: (u64, u64),
    sent: u64,
    delivered: (u64, u64),
    marked: u64,
    /// By the reason's number.
    dropped: BTreeMap<u32, u64>,
}

impl<'e> EvidenceTotals<'e> {
    pub(super) fn new(evidence: &'e RecordedRun) -> EvidenceTotals<'e> {
        let lanes = evidence
            .members()
            .iter()
            .map(|m| vec![DirectedLinkTotals::default(); m.header.lanes.len()]);
        EvidenceTotals {
            evidence,
            records: vec![0; evidence.origins().len()],
            lost: vec![0; evidence.origins().len()],
            flows: vec![<[DirectionCount; 2]>::default(); evidence.flows().len()],
            of_flow: vec![0; evidence.flows().len()],
            lanes: lanes.collect(),
            lost_entries: Vec::new(),
            unknown_offsets: 0,
        }
    }

    pub(super) fn add(&mut self, entry: &AttributedRecord) {
        if let Some(events) = lost_events(entry) {
            self.lost[entry.origin()] += events;
            self.lost_entries.push(*entry);
            return;
        }
        self.records[entry.origin()] += 1;
        self.unknown_offsets +=
            u64::from(is_call(entry) && entry.record.flags & flag::OFFSET_UNKNOWN != 0);
        let member = self.evidence.origin_of(entry).member;
        if entry.kind().is_some_and(is_packet)
            && let Some(lane) =
                self.lanes[usize::from(member)].get_mut(entry.record.args[2] as usize)
        {
            lane.add(entry);
        }
        if let Some(flow) = entry.flow() {
            self.of_flow[flow] += 1;
            let way = usize::from(entry.direction() == FlowDirection::Reverse);
            self.flows[flow][way].add(member, entry);
        }
    }

    pub(super) fn flows(&self, since: impl Fn(u64) -> i64) -> Vec<FlowSum> {
        let flows = self.evidence.flows().iter().enumerate();
        let seen = flows.filter(|(number, _)| self.of_flow[*number] > 0);
        // A socket that only listened has nothing to sum up.
        let moved = seen.filter(|(number, flow)| {
            let ways = self.flows[*number].map(|direction| direction.way);
            !flow.is_unconnected()
                || ways.iter().any(|way| *way != FlowDirectionCounters::default())
        });
        moved
            .map(|(number, flow)| FlowSum {
                flow: number,
                protocol: flow.protocol_name(),
                from: flow.from.map(|end| self.evidence.end_name(&end)),
                to: flow.to.map(|end| self.evidence.end_name(&end)),
                first_ns: since(flow.begin_ns),
                last_ns: since(flow.end_ns),
                records: self.of_flow[number],
                forward: self.flows[number][0].way,
                reverse: self.flows[number][1].way,
            })
            .collect()
    }

    pub(super) fn lanes(&self) -> Vec<LaneSum> {
        let mut sums = Vec::new();
        for (member, counts) in self.evidence.members().iter().zip(&self.lanes) {
            for (lane, count) in member.header.lanes.iter().zip(counts) {
                if count.offered.0 == 0 && count.delivered.0 == 0 {
                    continue;
                }
                let reason = |number: &u32| {
                    let name = member.header.drop_reasons.get(*number as usize);
                    name.cloned().unwrap_or_else(|| number.to_string())
                };
                let dropped =
                    count.dropped.iter().map(|(number, packets)| (reason(number), *packets));
                sums.push(LaneSum {
                    link: lane.link.clone(),
                    from: lane.from.clone(),
                    to: lane.to.clone(),
                    offered_packets: count.offered.0,
                    offered_bytes: count.offered.1,
                    sent_packets: count.sent,
                    delivered_packets: count.delivered.0,
                    delivered_bytes: count.delivered.1,
                    marked_packets: count.marked,
                    dropped_packets: dropped.collect(),
                });
            }
        }
        sums
    }

    pub(super) fn gaps(&self, since: impl Fn(u64) -> i64) -> Vec<RecordingGap> {
        let gap = |entry: &AttributedRecord| {
            let origin = self.evidence.origin_of(entry);
            RecordingGap {
                layer: origin
                    .layer()
                    .map_or_else(|| origin.source.layer.to_string(), |l| l.name().to_owned()),
                node: self.evidence.node_name(origin).map(str::to_owned),
                begin_ns: since(entry.record.wide(0)),
                end_ns: since(entry.record.time),
                events: entry.record.wide(2),
            }
        };
        self.lost_entries.iter().map(gap).collect()
    }
}

impl DirectionCount {
    fn add(&mut self, member: u16, entry: &AttributedRecord) {
        let segments = u64::from(entry.record.extra.max(1));
        match entry.kind() {
            Some(Kind::Call) => self.call(entry),
            Some(Kind::Offered) => self.offered(member, entry, segments),
            Some(Kind::Dropped) => self.way.dropped_packets += segments,
            Some(Kind::Marked) => self.way.marked_packets += segments,
            _ => {}
        }
    }

    fn call(&mut self, entry: &AttributedRecord) {
        let record = &entry.record;
        let moved = u64::try_from(signed(record.args[2])).unwrap_or(0);
        let is_transfer = Call::from_number(record.extra).is_some_and(|call| call as u16 >= 16);
        if !is_transfer || moved == 0 || record.flags & flag::PEEK != 0 {
            return;
        }
        if record.flags & flag::REVERSE == 0 {
            self.way.writes += 1;
            self.way.written_bytes += moved;
        } else {
            self.way.reads += 1;
            self.way.read_bytes += moved;
        }
    }

    fn offered(&mut self, member: u16, entry: &AttributedRecord, segments: u64) {
        let [offset, length, lane, _] = entry.record.args;
        if *self.first_lane.get_or_insert((member, lane)) != (member, lane)
            || entry.record.flags & flag::COPY != 0
        {
            return;
        }
        self.way.packets += segments;
        self.way.payload_bytes += u64::from(length);
        let end = offset.wrapping_add(length);
        let high = *self.high.get_or_insert(offset);
        // Offsets wrap around: less than half of their range apart.
        let behind = high.wrapping_sub(offset);
        if behind < 1 << 31 {
            self.way.resent_bytes += u64::from(behind.min(length));
        }
        if end.wrapping_sub(high) < 1 << 31 {
            self.high = Some(end);
        }
    }
}

impl DirectedLinkTotals {
    fn add(&mut self, entry: &AttributedRecord) {
        let segments = u64::from(entry.record.extra.max(1));
        let bytes = u64::from(entry.record.args[1]);
        match entry.kind() {
            Some(Kind::Offered) => {
                self.offered.0 += segments;
                self.offered.1 += bytes;
            }
            Some(Kind::Sent) => self.sent += segments,
            Some(Kind::Delivered) => {
                self.delivered.0 += segments;
                self.delivered.1 += bytes;
            }
            Some(Kind::Marked) => self.marked += segments,
            Some(Kind::Dropped) => {
                *self.dropped.entry(entry.record.args[3]).or_default() += segments;
            }
            _ => {}
        }
    }
}

fn is_call(entry: &AttributedRecord) -> bool {
    entry.kind() == Some(Kind::Call)
}
