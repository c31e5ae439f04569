//! From a run's records to the histories of its flows.

use windtunnel_model::record::kind::Call;
use windtunnel_model::record::{EventRecord, Kind, flag};

use super::{
    CallSpan, DirectedLinkEnds, EndpointRole, FlowHistory, FlowSocketType, PacketEvent, PacketKind,
    TcpSample,
};
use super::{is_read, is_write, widen};
use crate::evidence::{AttributedRecord, RecordedRun};
use crate::file::LaneName;
use crate::flows::UDP;

/// The histories of all flows, in the order of [`RecordedRun::flows`].
#[must_use]
pub fn histories(evidence: &RecordedRun) -> Vec<FlowHistory> {
    let mut collected: Vec<FlowHistoryBuilder> = evidence
        .flows()
        .iter()
        .zip(0..)
        .map(|(flow, number)| FlowHistoryBuilder::new(flow.protocol, number))
        .collect();
    for entry in evidence.records() {
        if let Some(collected) = entry.flow().and_then(|flow| collected.get_mut(flow)) {
            collected.add(entry);
        }
    }
    let of_clocks = if evidence.members().len() > 1 { CLOCK_ERROR_NS } else { 0 };
    let finish = |one: FlowHistoryBuilder| {
        let history = one.finish();
        FlowHistory { order_error_ns: history.order_error_ns.max(of_clocks), ..history }
    };
    collected.into_iter().map(finish).collect()
}

/// A call whose end is not known has ended within this time, if it did not wait.
const CALL_NS: u64 = 1_000_000;

/// Machines of one network know each other's clock to some 0.1 ms; this leaves a margin.
const CLOCK_ERROR_NS: u64 = 1_000_000;

/// The lanes of the run, and their ends by number.
#[must_use]
pub fn lanes(evidence: &RecordedRun) -> (Vec<LaneName>, Vec<DirectedLinkEnds>) {
    let headers = evidence.members().iter().map(|member| &member.header);
    let names = headers.map(|header| &header.lanes).max_by_key(|lanes| lanes.len());
    let names = names.cloned().unwrap_or_default();
    let mut places: Vec<&str> = names.iter().flat_map(|lane| [&*lane.from, &*lane.to]).collect();
    places.sort_unstable();
    places.dedup();
    let place = |name: &str| {
        let at = places.partition_point(|known| *known < name);
        u32::try_from(at).unwrap_or(u32::MAX)
    };
    let lanes =
        names.iter().map(|lane| DirectedLinkEnds { from: place(&lane.from), to: place(&lane.to) });
    let lanes = lanes.collect();
    (names, lanes)
}

/// A history that grows, record by record.
#[derive(Debug)]
struct FlowHistoryBuilder {
    history: FlowHistory,
    /// By direction: the last offset of packets, and of calls.
    near_packets: [u64; 2],
    near_calls: [u64; 2],
    /// Whether offsets of some records are not those of others.
    is_apart: bool,
}

impl FlowHistoryBuilder {
    fn new(protocol: u8, flow: u32) -> FlowHistoryBuilder {
        let transport =
            if protocol == UDP { FlowSocketType::Datagrams } else { FlowSocketType::Stream };
        let history = FlowHistory { flow, transport, ..FlowHistory::default() };
        FlowHistoryBuilder { history, near_packets: [0; 2], near_calls: [0; 2], is_apart: false }
    }

    fn add(&mut self, entry: &AttributedRecord) {
        let (record, direction) = (&entry.record, entry.direction() as usize);
        let side = if entry.flipped() { EndpointRole::Server } else { EndpointRole::Client };
        let Some(kind) = entry.kind() else { return };
        match kind {
            Kind::Offered => self.packet(PacketKind::Offered, direction, record),
            Kind::Sent => self.packet(PacketKind::Sent, direction, record),
            Kind::Delivered => self.packet(PacketKind::Delivered, direction, record),
            Kind::Dropped => self.packet(PacketKind::Dropped, direction, record),
            Kind::Call => self.call(side, direction, record),
            Kind::CallEnd => {
                let calls = self.history.calls[side.index()].iter_mut().rev();
                let mut calls = calls.filter(|call| call.begin == record.wide(0));
                calls.next().into_iter().for_each(|call| call.end = record.time);
            }
            Kind::TcpWindows | Kind::TcpProgress | Kind::TcpLimits | Kind::TcpQueues => {
                sample(&mut self.history.samples[side.index()], kind, record);
            }
            _ => {}
        }
    }

    fn packet(&mut self, kind: PacketKind, direction: usize, record: &EventRecord) {
        let [low, length, lane, value] = record.args;
        // A closed port answers with a reset of sequence number 0, whatever the flow's are.
        let is_data = record.flags & flag::RST == 0 || length > 0;
        self.is_apart |= is_data && record.flags & flag::OFFSET_UNKNOWN != 0;
        if self.history.packets[direction].is_empty() && self.is_apart {
            self.near_packets[direction] = u64::from(low);
        }
        let offset = widen(self.near_packets[direction], low);
        if kind == PacketKind::Offered {
            self.near_packets[direction] = offset;
        }
        let value = match kind {
            PacketKind::Offered => widen(self.near_packets[1 - direction], value),
            _ => u64::from(value),
        };
        let (time, flags, segments) = (record.time, record.flags, record.extra.max(1));
        let event = PacketEvent { time, offset, value, length, segments, lane, kind, flags };
        self.history.packets[direction].push(event);
    }

    fn call(&mut self, side: EndpointRole, direction: usize, record: &EventRecord) {
        let [low, asked, result, duration] = record.args;
        let Some(call) = Call::from_number(record.extra) else { return };
        self.history.calls_recorded[side.index()] = true;
        if record.flags & flag::PEEK != 0 {
            return;
        }
        self.is_apart |= record.flags & flag::OFFSET_UNKNOWN != 0;
        let near = &mut self.near_calls[direction];
        let offset = if is_read(call) || is_write(call) { widen(*near, low) } else { 0 };
        *near = offset.max(*near);
        let is_known = record.flags & flag::END_UNKNOWN == 0;
        if !is_known {
            self.history.order_error_ns = CALL_NS;
        }
        let end = record.time + if is_known { u64::from(duration) } else { 0 };
        let result = match call {
            // The answer of the other side shows when it ended.
            Call::Connect if !is_known => -IN_PROGRESS,
            _ => i32::from_le_bytes(result.to_le_bytes()),
        };
        let span = CallSpan { begin: record.time, end, call, offset, asked, result };
        self.history.calls[side.index()].push(span);
    }

    fn finish(self) -> FlowHistory {
        let FlowHistoryBuilder { mut history, is_apart, .. } = self;
        if is_apart {
            history.keep_packets();
        }
        history
    }
}

impl FlowHistory {
    /// Forgets calls: their offsets and those of the packets do not join, because the flow was
    /// there before recording began. Offsets of packets count from the first one.
    fn keep_packets(&mut self) {
        self.is_joined = false;
        self.calls = <[Vec<CallSpan>; 2]>::default();
        self.calls_recorded = [false; 2];
        let first = |packets: &[PacketEvent]| {
            let data = packets.iter().filter(|packet| packet.length > 0);
            data.map(|packet| packet.offset).min()
        };
        let first = self.packets.each_ref().map(|packets| first(packets).unwrap_or(0));
        for (direction, packets) in self.packets.iter_mut().enumerate() {
            for packet in packets {
                packet.offset = packet.offset.saturating_sub(first[direction]);
                if packet.kind == PacketKind::Offered {
                    packet.value = packet.value.saturating_sub(first[1 - direction]);
                }
            }
        }
    }
}

/// Adds a record of TCP's state; those of one time are one sample.
fn sample(samples: &mut Vec<TcpSample>, kind: Kind, record: &EventRecord) {
    let before = samples.last().copied().unwrap_or_default();
    if before.time != record.time {
        samples.push(TcpSample { time: record.time, ..before });
    }
    let Some(sample) = samples.last_mut() else { return };
    let [first, _, third, fourth] = record.args;
    match kind {
        Kind::TcpWindows => {
            (sample.cwnd, sample.srtt_us, sample.rto_us) = (first, third, fourth);
        }
        Kind::TcpProgress => sample.segment = u32::from(record.extra),
        Kind::TcpLimits => sample.send_window = fourth,
        Kind::TcpQueues => sample.unread = first,
        _ => {}
    }
}

/// `EINPROGRESS` of Linux.
const IN_PROGRESS: i32 = 115;
