//! `internet.csv`: a line for each flow that has ended.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use serde::{Deserialize, Serialize};
use windtunnel_sys::clock;

/// What a flow through the gateway is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InternetFlowKind {
    /// A question for a name.
    Dns,
    /// Echo requests of ICMP.
    Echo,
    /// A connection from outside to a published port.
    Publish,
    Tcp,
    Udp,
}

impl InternetFlowKind {
    /// The word for it in the log and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            InternetFlowKind::Dns => "dns",
            InternetFlowKind::Echo => "echo",
            InternetFlowKind::Publish => "publish",
            InternetFlowKind::Tcp => "tcp",
            InternetFlowKind::Udp => "udp",
        }
    }
}

/// How a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InternetFlowEnd {
    /// By both ends.
    Closed,
    RunEnded,
    Reset,
    Refused,
    TimedOut,
    Unreachable,
    /// There were no descriptors, or no memory.
    Exhausted,
    Failed,
    /// The client has gone before it was connected.
    Abandoned,
    Answered,
    Unanswered,
    /// Nothing was carried for a while.
    Idle,
    /// It made room for another one.
    Displaced,
}

impl InternetFlowEnd {
    const fn name(self) -> &'static str {
        match self {
            InternetFlowEnd::Closed => "closed",
            InternetFlowEnd::RunEnded => "run ended",
            InternetFlowEnd::Reset => "reset",
            InternetFlowEnd::Refused => "refused",
            InternetFlowEnd::TimedOut => "timed out",
            InternetFlowEnd::Unreachable => "unreachable",
            InternetFlowEnd::Exhausted => FAILED,
            InternetFlowEnd::Failed => "failed",
            InternetFlowEnd::Abandoned => "abandoned",
            InternetFlowEnd::Answered => "answered",
            InternetFlowEnd::Unanswered => "unanswered",
            InternetFlowEnd::Idle => "idle",
            InternetFlowEnd::Displaced => "displaced",
        }
    }
}

/// A flow from its beginning to its end.
#[derive(Debug, Clone)]
pub(crate) struct FlowLine {
    pub(crate) kind: InternetFlowKind,
    /// The end in the network; of echo, with the identifier as port.
    pub(crate) inside: SocketAddr,
    /// The end outside, as the network knows it.
    pub(crate) outside: SocketAddr,
    pub(crate) began_ns: u64,
    /// From the network to the outside, payload only.
    pub(crate) sent_bytes: u64,
    pub(crate) received_bytes: u64,
}

/// The file, which is a whole number of lines at any time.
#[derive(Debug)]
pub(crate) struct InternetFlowLog {
    file: File,
    origin_ns: Option<u64>,
    lost: u64,
}

impl FlowLine {
    pub(crate) fn new(kind: InternetFlowKind, inside: SocketAddr, outside: SocketAddr) -> FlowLine {
        let began_ns = clock::monotonic_ns();
        FlowLine { kind, inside, outside, began_ns, sent_bytes: 0, received_bytes: 0 }
    }
}

impl InternetFlowLog {
    pub(crate) fn new(descriptor: OwnedFd) -> InternetFlowLog {
        let mut log = InternetFlowLog { file: File::from(descriptor), origin_ns: None, lost: 0 };
        log.write(COLUMNS);
        log
    }

    /// Times count from here on.
    pub(crate) fn begin(&mut self, origin_ns: u64) {
        self.origin_ns = Some(origin_ns);
    }

    /// Writes the line of a flow that has ended, and why.
    pub(crate) fn ended(&mut self, flow: &FlowLine, end: InternetFlowEnd) {
        let origin_ns = self.origin_ns.unwrap_or(flow.began_ns);
        let began = seconds(flow.began_ns.saturating_sub(origin_ns));
        let lasted = seconds(clock::monotonic_ns().saturating_sub(flow.began_ns));
        let FlowLine { inside, outside, sent_bytes, received_bytes, .. } = flow;
        let (protocol, end) = (flow.kind.name(), end.name());
        self.write(&format!(
            "{began},{lasted},{protocol},{inside},{outside},{sent_bytes},{received_bytes},{end}\n"
        ));
    }

    /// Lines that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    fn write(&mut self, line: &str) {
        if self.file.write_all(line.as_bytes()).is_err() {
            self.lost += 1;
        }
    }
}

fn seconds(time_ns: u64) -> String {
    format!("{}.{:06}", time_ns / 1_000_000_000, time_ns % 1_000_000_000 / 1000)
}

/// What is lost by the gateway for this reason is counted by it.
pub(crate) const FAILED: &str = "no descriptors or memory";
const COLUMNS: &str = "time_s,duration_s,protocol,inside,outside,sent_bytes,received_bytes,end\n";
