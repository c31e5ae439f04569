//! Which packets and calls have the first byte of a call that sends.

use std::collections::BTreeMap;

use windtunnel_model::record::kind::Call;
use windtunnel_model::record::{Kind, flag};

use super::writer::ChromeTracePhase;
use crate::file::FlowDirection;
use crate::flows::UDP;
use crate::rows::signed;
use crate::{AttributedRecord, RecordedRun};

/// Calls that send, by the first byte or datagram; each has an arrow.
#[derive(Debug, Default)]
pub(super) struct TimelineArrows {
    /// By flow and direction: offset and number, in order of the offsets.
    begins: BTreeMap<(usize, FlowDirection), Vec<TimelineArrowStart>>,
    is_udp: Vec<bool>,
}

#[derive(Debug, Clone, Copy)]
struct TimelineArrowStart {
    offset: u32,
    number: u64,
    begin_ns: u64,
    end_ns: Option<u64>,
}

impl TimelineArrows {
    pub(super) fn new<'a>(
        evidence: &RecordedRun,
        entries: impl Iterator<Item = &'a AttributedRecord>,
    ) -> TimelineArrows {
        let mut begins: BTreeMap<_, Vec<TimelineArrowStart>> = BTreeMap::new();
        for (number, entry) in (1..).zip(entries.filter(|entry| is_transfer(entry))) {
            if let Some(flow) = entry.flow().filter(|_| entry.record.flags & flag::REVERSE == 0) {
                let offset = entry.record.args[0];
                let begin_ns = entry.record.time;
                let begin = TimelineArrowStart { offset, number, begin_ns, end_ns: None };
                begins.entry((flow, entry.direction())).or_default().push(begin);
            }
        }
        begins.values_mut().for_each(|begins| begins.sort_by_key(|begin| begin.offset));
        let is_udp = evidence.flows().iter().map(|flow| flow.protocol == UDP).collect();
        TimelineArrows { begins, is_udp }
    }

    /// The arrow that begins with a call, or those that end with it: phase, time and number.
    pub(super) fn of_call(
        &mut self,
        entry: &AttributedRecord,
    ) -> Vec<(ChromeTracePhase, u64, u64)> {
        let Some(flow) = entry.flow().filter(|_| is_transfer(entry)) else { return Vec::new() };
        let is_udp = self.is_udp[flow];
        let record = &entry.record;
        let Some(begins) = self.begins.get_mut(&(flow, entry.direction())) else {
            return Vec::new();
        };
        if record.flags & flag::REVERSE == 0 {
            let same = within(begins, record.args[0], 1);
            let begin = same.iter().find(|begin| begin.begin_ns == record.time);
            return begin
                .map(|begin| (ChromeTracePhase::FlowStart, record.time, begin.number))
                .into_iter()
                .collect();
        }
        let length = if is_udp { 1 } else { u32::try_from(signed(record.args[2])).unwrap_or(0) };
        let end = record.time + u64::from(record.args[3]);
        let ended = within(begins, record.args[0], length);
        ended.iter_mut().filter_map(|begin| begin.end(end)).collect()
    }

    /// The arrows that a packet carries on.
    pub(super) fn of_packet(&mut self, entry: &AttributedRecord) -> Vec<u64> {
        let Some(flow) = entry.flow() else { return Vec::new() };
        let length = if self.is_udp[flow] { 1 } else { entry.record.args[1] };
        let Some(begins) = self.begins.get_mut(&(flow, entry.direction())) else {
            return Vec::new();
        };
        let carried = within(begins, entry.record.args[0], length);
        let on_its_way = |begin: &&mut TimelineArrowStart| {
            let until = begin.end_ns.unwrap_or(u64::MAX);
            (begin.begin_ns..=until).contains(&entry.record.time)
        };
        carried.iter_mut().filter(on_its_way).map(|begin| begin.number).collect()
    }
}

impl TimelineArrowStart {
    fn end(&mut self, time: u64) -> Option<(ChromeTracePhase, u64, u64)> {
        let is_first = self.end_ns.is_none() && time >= self.begin_ns;
        self.end_ns = self.end_ns.or(is_first.then_some(time));
        is_first.then_some((ChromeTracePhase::FlowEnd, time, self.number))
    }
}

/// Those with an offset from `first` on, of `length` bytes.
fn within(begins: &mut [TimelineArrowStart], first: u32, length: u32) -> &mut [TimelineArrowStart] {
    let end = first.saturating_add(length);
    let from = begins.partition_point(|begin| begin.offset < first);
    let to = begins.partition_point(|begin| begin.offset < end);
    &mut begins[from..to.max(from)]
}

/// A call that sent or received something at a known place of the stream.
fn is_transfer(entry: &AttributedRecord) -> bool {
    let record = &entry.record;
    let unknown = record.flags & (flag::OFFSET_UNKNOWN | flag::PEEK) != 0;
    let moves = Call::from_number(record.extra).is_some_and(|call| call as u16 >= 16);
    entry.kind() == Some(Kind::Call) && !unknown && moves && signed(record.args[2]) > 0
}
