//! `internet.csv`: a line for each flow that has ended.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use windtunnel_sys::clock;

/// A flow from its beginning to its end.
#[derive(Debug, Clone)]
pub(crate) struct FlowLine {
    pub(crate) protocol: &'static str,
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
    pub(crate) fn new(protocol: &'static str, inside: SocketAddr, outside: SocketAddr) -> FlowLine {
        let began_ns = clock::monotonic_ns();
        FlowLine { protocol, inside, outside, began_ns, sent_bytes: 0, received_bytes: 0 }
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
    pub(crate) fn ended(&mut self, flow: &FlowLine, why: &str) {
        let origin_ns = self.origin_ns.unwrap_or(flow.began_ns);
        let began = seconds(flow.began_ns.saturating_sub(origin_ns));
        let lasted = seconds(clock::monotonic_ns().saturating_sub(flow.began_ns));
        let FlowLine { protocol, inside, outside, sent_bytes, received_bytes, .. } = flow;
        self.write(&format!(
            "{began},{lasted},{protocol},{inside},{outside},{sent_bytes},{received_bytes},{why}\n"
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

const COLUMNS: &str = "time_s,duration_s,protocol,inside,outside,sent_bytes,received_bytes,end\n";
