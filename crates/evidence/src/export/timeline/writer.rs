//! Events in order of time, as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

/// An event of the trace event format.
#[derive(Debug, Clone)]
pub(super) struct ChromeTraceEvent {
    phase: &'static str,
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
        phase: &'static str,
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
        let mut event = ChromeTraceEvent::new("M", what, 0, process, thread);
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
        write!(out, "{separator}{{\"ph\":\"{}\",\"name\":{name}", event.phase)?;
        write!(out, ",\"pid\":{process},\"tid\":{thread}")?;
        if event.phase != "M" {
            let since = i128::from(event.time) - i128::from(self.origin_ns);
            write!(out, ",\"cat\":\"{}\",\"ts\":{}", category(event.phase), micros(since))?;
        }
        if let Some(duration) = event.duration_ns {
            write!(out, ",\"dur\":{}", micros(duration.into()))?;
        }
        if let Some(id) = event.id {
            write!(out, ",\"id\":{id}")?;
        }
        match event.phase {
            "f" => out.write_all(b",\"bp\":\"e\"")?,
            "i" => out.write_all(b",\"s\":\"p\"")?,
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

fn category(phase: &str) -> &'static str {
    match phase {
        "b" | "e" => "packet",
        "s" | "t" | "f" => "bytes",
        "C" => "tcp",
        _ => "record",
    }
}

/// Microseconds with three decimals.
fn micros(ns: i128) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:03}", ns / 1000, ns % 1000)
}
