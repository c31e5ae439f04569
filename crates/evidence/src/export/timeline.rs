//! Chrome's trace event format, which Perfetto opens.
//!
//! | in the viewer | what it is |
//! | --- | --- |
//! | process | a node; each link |
//! | thread of a node | calls that send, or that receive, on its end of a flow |
//! | slice of a thread | a call |
//! | slice of a link | queue, transmission, propagation of a packet |
//! | arrow | from a call that sends, over the packets with its first byte, to the call that receives it |
//! | counter | congestion window and smoothed round trip time of a connection |
//!
//! Times are microseconds since the run began, with three decimals. Events are in order of time.

mod arrows;
mod writer;

use std::collections::BTreeMap;
use std::io::{self, Write};

use windtunnel_model::record::kind::{Call, MACHINE};
use windtunnel_model::record::{Kind, flag};

use super::offers::PendingLaneOffers;
use crate::rows::{self, RecordFormatter};
use crate::{AttributedRecord, RecordedRun};
use arrows::TimelineArrows;
use writer::{ChromeTraceEvent, ChromeTraceEventQueue, ChromeTracePhase};

/// Writes the records as a timeline.
///
/// # Errors
/// Those of writing.
pub fn timeline<'a>(
    evidence: &'a RecordedRun,
    entries: impl Iterator<Item = &'a AttributedRecord> + Clone,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut timeline = ChromeTraceExporter {
        evidence,
        rows: RecordFormatter::new(evidence),
        events: ChromeTraceEventQueue::new(evidence.origin_ns()),
        arrows: TimelineArrows::new(evidence, entries.clone()),
        offers: PendingLaneOffers::default(),
        waiting: BTreeMap::new(),
        links: BTreeMap::new(),
        tracks: BTreeMap::new(),
        numbers: 0,
    };
    timeline.events.begin(out)?;
    let mut last = 0;
    for entry in entries {
        timeline.events.advance(entry.record.time, out)?;
        timeline.entry(entry);
        last = last.max(entry.record.time);
    }
    timeline.finish(last);
    timeline.events.end(out)
}

struct ChromeTraceExporter<'a> {
    evidence: &'a RecordedRun,
    rows: RecordFormatter<'a>,
    events: ChromeTraceEventQueue,
    arrows: TimelineArrows,
    offers: PendingLaneOffers,
    /// Packets in a queue: the process of their link, by the number of the offer.
    waiting: BTreeMap<u64, u32>,
    /// By member and lane: the process.
    links: BTreeMap<(u16, u32), u32>,
    /// By process and name: tracks, and until when each is used.
    tracks: BTreeMap<(u32, String), Vec<(u32, u64)>>,
    numbers: u64,
}

/// Processes below are nodes, by number plus 1.
const FIRST_LINK: u32 = 1 << 24;
/// The process of records that belong to no node.
const OUTSIDE: u32 = 1 << 30;

impl ChromeTraceExporter<'_> {
    fn entry(&mut self, entry: &AttributedRecord) {
        match entry.kind() {
            Some(Kind::Call) => self.call(entry),
            Some(Kind::Offered) => self.offered(entry),
            Some(Kind::Sent) => self.sent(entry),
            Some(Kind::Delivered) => self.delivered(entry),
            Some(Kind::Dropped) => self.dropped(entry),
            Some(Kind::TcpWindows) => self.windows(entry),
            Some(Kind::Lost) => self.lost(entry),
            _ => {}
        }
    }

    fn call(&mut self, entry: &AttributedRecord) {
        let record = &entry.record;
        let process = self.node(entry);
        let call = Call::from_number(record.extra).map_or("call", Call::name);
        let duration = u64::from(record.args[3]);
        let way = if record.flags & flag::REVERSE != 0 { "receives" } else { "sends" };
        let (from, to) = entry.flow().map_or(("?", "?"), |flow| self.rows.ends(flow));
        let track = match entry.flow() {
            Some(flow) => format!("#{flow} {from} → {to} {way}"),
            None => format!("no flow {way}"),
        };
        let end = record.time + duration;
        let thread = self.track(process, &track, record.time, end);
        let result = rows::signed(record.args[2]);
        let mut event =
            ChromeTraceEvent::new(ChromeTracePhase::Complete, call, record.time, process, thread);
        event.duration_ns = Some(duration);
        event.argument("offset", u64::from(record.args[0]).to_string());
        event.argument("asked", u64::from(record.args[1]).to_string());
        event.argument("result", result.to_string());
        self.events.put(event);
        for (phase, time, number) in self.arrows.of_call(entry) {
            self.arrow(phase, time, number, process, thread);
        }
    }

    /// A track of this name that is free from `begin` on.
    fn track(&mut self, process: u32, name: &str, begin: u64, end: u64) -> u32 {
        let known = self.tracks.values().map(Vec::len).sum::<usize>();
        let tracks = self.tracks.entry((process, name.to_owned())).or_default();
        if let Some((thread, busy_until)) = tracks.iter_mut().find(|(_, until)| *until <= begin) {
            *busy_until = end;
            return *thread;
        }
        let thread = u32::try_from(known + 1).unwrap_or(u32::MAX);
        tracks.push((thread, end));
        self.events.name("thread_name", process, thread, name);
        thread
    }

    fn offered(&mut self, entry: &AttributedRecord) {
        self.numbers += 1;
        let (process, number) = (self.link(entry), self.numbers);
        let member = self.evidence.origin_of(entry).member;
        self.offers.offered(member, entry, number);
        self.waiting.insert(number, process);
        self.span(ChromeTracePhase::AsyncBegin, "queue", entry, entry.record.time, number);
    }

    /// The packet leaves the queue.
    fn unqueued(&mut self, entry: &AttributedRecord) {
        let member = self.evidence.origin_of(entry).member;
        if let Some((offer, true)) = self.offers.take(member, entry) {
            self.waiting.remove(&offer.number);
            self.span(ChromeTracePhase::AsyncEnd, "queue", entry, entry.record.time, offer.number);
        }
    }

    fn sent(&mut self, entry: &AttributedRecord) {
        self.unqueued(entry);
        let record = &entry.record;
        let (process, end) = (self.link(entry), record.time + u64::from(record.args[3]));
        let thread = self.track(process, &self.lane_name(entry, "transmission"), record.time, end);
        let mut event = ChromeTraceEvent::new(
            ChromeTracePhase::Complete,
            &self.packet_name(entry),
            record.time,
            process,
            thread,
        );
        event.duration_ns = Some(u64::from(record.args[3]));
        event.argument("offset", record.args[0].to_string());
        event.argument("length", record.args[1].to_string());
        self.events.put(event);
        for number in self.arrows.of_packet(entry) {
            self.arrow(ChromeTracePhase::FlowStep, record.time, number, process, thread);
        }
    }

    /// The delay is known at its end: the slice begins in the past, and is written as a whole.
    fn delivered(&mut self, entry: &AttributedRecord) {
        let record = &entry.record;
        let begin = record.time.saturating_sub(record.args[3].into());
        let process = self.link(entry);
        let thread = self.track(process, &self.lane_name(entry, "propagation"), begin, record.time);
        let mut event = ChromeTraceEvent::new(
            ChromeTracePhase::Complete,
            &self.packet_name(entry),
            begin,
            process,
            thread,
        );
        event.duration_ns = Some(record.time - begin);
        event.argument("offset", record.args[0].to_string());
        event.argument("length", record.args[1].to_string());
        self.events.put(event);
    }

    fn dropped(&mut self, entry: &AttributedRecord) {
        self.unqueued(entry);
        let process = self.link(entry);
        let reason = self.rows.reason(entry).unwrap_or("?");
        let time = entry.record.time;
        let thread = self.track(process, &self.lane_name(entry, "transmission"), time, time);
        let mut event = ChromeTraceEvent::new(
            ChromeTracePhase::Instant,
            &format!("dropped: {reason}"),
            time,
            process,
            thread,
        );
        event.argument("offset", entry.record.args[0].to_string());
        event.argument("length", entry.record.args[1].to_string());
        self.events.put(event);
    }

    fn windows(&mut self, entry: &AttributedRecord) {
        let process = self.node(entry);
        let Some(flow) = entry.flow() else { return };
        for (name, value) in [("cwnd", entry.record.args[0]), ("srtt_us", entry.record.args[2])] {
            let name = format!("{name} #{flow}");
            let mut event = ChromeTraceEvent::new(
                ChromeTracePhase::Counter,
                &name,
                entry.record.time,
                process,
                0,
            );
            event.argument("value", value.to_string());
            self.events.put(event);
        }
    }

    fn lost(&mut self, entry: &AttributedRecord) {
        let process = self.node(entry);
        let name = format!("{} events lost", entry.record.wide(2));
        self.events.put(ChromeTraceEvent::new(
            ChromeTracePhase::Instant,
            &name,
            entry.record.time,
            process,
            0,
        ));
    }

    /// What is in a queue when the records end.
    fn finish(&mut self, last: u64) {
        for (number, process) in std::mem::take(&mut self.waiting) {
            let mut event =
                ChromeTraceEvent::new(ChromeTracePhase::AsyncEnd, "queue", last, process, 0);
            event.id = Some(number);
            self.events.put(event);
        }
    }

    fn span(
        &mut self,
        phase: ChromeTracePhase,
        name: &str,
        entry: &AttributedRecord,
        time: u64,
        number: u64,
    ) {
        let process = self.link(entry);
        let mut event = ChromeTraceEvent::new(phase, name, time, process, 0);
        event.id = Some(number);
        if phase == ChromeTracePhase::AsyncBegin {
            event.argument("offset", entry.record.args[0].to_string());
            event.argument("length", entry.record.args[1].to_string());
        }
        self.events.put(event);
    }

    fn arrow(
        &mut self,
        phase: ChromeTracePhase,
        time: u64,
        number: u64,
        process: u32,
        thread: u32,
    ) {
        let mut event = ChromeTraceEvent::new(phase, "bytes", time, process, thread);
        event.id = Some(number);
        self.events.put(event);
    }

    fn node(&mut self, entry: &AttributedRecord) -> u32 {
        let origin = self.evidence.origin_of(entry);
        let (process, name) = match self.evidence.node_name(origin) {
            Some(name) if origin.source.node != MACHINE => (origin.source.node + 1, name),
            _ => (OUTSIDE, "records of no node"),
        };
        self.events.name("process_name", process, 0, name);
        process
    }

    fn link(&mut self, entry: &AttributedRecord) -> u32 {
        let Some(lane) = self.rows.lane(entry) else { return self.node(entry) };
        let next = FIRST_LINK + u32::try_from(self.links.len()).unwrap_or(0);
        let key = (self.evidence.origin_of(entry).member, entry.record.args[2]);
        let process = *self.links.entry(key).or_insert(next);
        let name = format!("{} {} → {}", lane.link, lane.from, lane.to);
        self.events.name("process_name", process, 0, &name);
        process
    }

    fn lane_name(&self, entry: &AttributedRecord, stage: &str) -> String {
        let lane = self.rows.lane(entry).map_or("?", |lane| lane.to.as_str());
        format!("{stage} to {lane}")
    }

    fn packet_name(&self, entry: &AttributedRecord) -> String {
        let flags = self.rows.flags(entry);
        let flow = entry.flow().map_or_else(|| "?".to_owned(), |flow| flow.to_string());
        match flags {
            "" => format!("#{flow}"),
            flags => format!("#{flow} {flags}"),
        }
    }
}
