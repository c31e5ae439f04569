//! Events in order of time, as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// What an event is in the trace event format, which calls this its phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChromeTracePhase {
    /// A slice with its duration.
    Complete,
    /// The begin of a slice that may overlap others, and its end.
    AsyncBegin,
    AsyncEnd,
    /// The tail of an arrow between slices, a point on its way, and its head.
    FlowStart,
    FlowStep,
    FlowEnd,
    Instant,
    Counter,
    /// The name of a process or thread.
    Metadata,
}

impl ChromeTracePhase {
    const fn letter(self) -> char {
        match self {
            ChromeTracePhase::Complete => 'X',
            ChromeTracePhase::AsyncBegin => 'b',
            ChromeTracePhase::AsyncEnd => 'e',
            ChromeTracePhase::FlowStart => 's',
            ChromeTracePhase::FlowStep => 't',
            ChromeTracePhase::FlowEnd => 'f',
            ChromeTracePhase::Instant => 'i',
            ChromeTracePhase::Counter => 'C',
            ChromeTracePhase::Metadata => 'M',
        }
    }

    /// By which viewers can leave events out; names of processes are of none.
    const fn category(self) -> Option<&'static str> {
        match self {
            ChromeTracePhase::AsyncBegin | ChromeTracePhase::AsyncEnd => Some("packet"),
            ChromeTracePhase::FlowStart
            | ChromeTracePhase::FlowStep
            | ChromeTracePhase::FlowEnd => Some("bytes"),
            ChromeTracePhase::Counter => Some("tcp"),
            ChromeTracePhase::Complete | ChromeTracePhase::Instant => Some("record"),
            ChromeTracePhase::Metadata => None,
        }
    }
}

/// An event of the trace event format.
#[derive(Debug, Clone)]
pub(super) struct ChromeTraceEvent {
    phase: ChromeTracePhase,
    name: String,
    time: u64,
    process: u32,
    thread: u32,
    pub(super) duration_ns: Option<u64>,
    pub(super) id: Option<u64>,
    arguments: Vec<(&'static str, String)>,
}

impl ChromeTraceEvent {
    pub(super) fn new(
        phase: ChromeTracePhase,
        name: &str,
        time: u64,
        process: u32,
        thread: u32,
    ) -> ChromeTraceEvent {
        let name = name.to_owned();
        let (duration_ns, id, arguments) = (None, None, Vec::new());
        ChromeTraceEvent { phase, name, time, process, thread, duration_ns, id, arguments }
    }

    /// A number.
    pub(super) fn argument(&mut self, name: &'static str, value: String) {
        self.arguments.push((name, value));
    }
}

/// Holds events that are to come later than what is written, or may be preceded by others.
#[derive(Debug)]
pub(super) struct ChromeTraceEventQueue {
    origin_ns: u64,
    /// By time and order of arrival.
    held: BTreeMap<(u64, u64), ChromeTraceEvent>,
    arrived: u64,
    named: BTreeSet<(u32, u32)>,
    is_first: bool,
}

/// Arguments of records are 32 bits: a slice begins at most so much before its record.
const HELD_NS: u64 = 5_000_000_000;

impl ChromeTraceEventQueue {
    pub(super) fn new(origin_ns: u64) -> ChromeTraceEventQueue {
        let (held, named) = (BTreeMap::new(), BTreeSet::new());
        ChromeTraceEventQueue { origin_ns, held, arrived: 0, named, is_first: true }
    }

    pub(super) fn put(&mut self, event: ChromeTraceEvent) {
        self.arrived += 1;
        self.held.insert((event.time, self.arrived), event);
    }

    /// Names a process, or a thread of it, once.
    pub(super) fn name(&mut self, what: &'static str, process: u32, thread: u32, name: &str) {
        if !self.named.insert((process, thread)) {
            return;
        }
        let mut event = ChromeTraceEvent::new(ChromeTracePhase::Metadata, what, 0, process, thread);
        let quoted = serde_json::to_string(name).unwrap_or_default();
        event.argument("name", quoted);
        self.put(event);
    }

    pub(super) fn begin(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")
    }

    /// Writes what nothing can precede any more, now that records are at `time`.
    pub(super) fn advance(&mut self, time: u64, out: &mut impl Write) -> io::Result<()> {
        let until = time.saturating_sub(HELD_NS);
        while let Some(first) = self.held.first_entry() {
            if first.key().0 > until {
                break;
            }
            let event = first.remove();
            self.write(&event, out)?;
        }
        Ok(())
    }

    pub(super) fn end(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.advance(u64::MAX, out)?;
        while let Some((_, event)) = self.held.pop_first() {
            self.write(&event, out)?;
        }
        out.write_all(b"\n]}\n")
    }

    fn write(&mut self, event: &ChromeTraceEvent, out: &mut impl Write) -> io::Result<()> {
        let separator = if self.is_first { "" } else { ",\n" };
        self.is_first = false;
        let (process, thread) = (event.process, event.thread);
        let name = serde_json::to_string(&event.name)?;
        write!(out, "{separator}{{\"ph\":\"{}\",\"name\":{name}", event.phase.letter())?;
        write!(out, ",\"pid\":{process},\"tid\":{thread}")?;
        if let Some(category) = event.phase.category() {
            let since = i128::from(event.time) - i128::from(self.origin_ns);
            write!(out, ",\"cat\":\"{category}\",\"ts\":{}", micros(since))?;
        }
        if let Some(duration) = event.duration_ns {
            write!(out, ",\"dur\":{}", micros(duration.into()))?;
        }
        if let Some(id) = event.id {
            write!(out, ",\"id\":{id}")?;
        }
        match event.phase {
            ChromeTracePhase::FlowEnd => out.write_all(b",\"bp\":\"e\"")?,
            ChromeTracePhase::Instant => out.write_all(b",\"s\":\"p\"")?,
            _ => {}
        }
        if !event.arguments.is_empty() {
            out.write_all(b",\"args\":{")?;
            for (at, (name, value)) in event.arguments.iter().enumerate() {
                write!(out, "{}\"{name}\":{value}", if at > 0 { "," } else { "" })?;
            }
            out.write_all(b"}")?;
        }
        out.write_all(b"}")
    }
}

/// Microseconds with three decimals.
fn micros(ns: i128) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:03}", ns / 1000, ns % 1000)
}
