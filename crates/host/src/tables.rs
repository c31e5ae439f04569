//! What expectations of paths are judged by, as tables of the run folder.

use std::fmt::Write;

use windtunnel_model::{NodeId, Plan, Span, Time};

use crate::dataplane::Flow;
use crate::echo::{EchoesSeen, Probe};

/// File names and contents; none where nothing was measured.
pub(crate) fn tables(
    plan: &Plan,
    echoes: &[(Probe, EchoesSeen)],
    flows: &[Flow],
) -> Vec<(&'static str, String)> {
    let name = |node: NodeId| plan.nodes[node.index()].name.as_str();
    let mut tables = Vec::new();
    if !echoes.is_empty() {
        let mut table = "from,to,sent_s,rtt_s\n".to_owned();
        for (probe, seen) in echoes {
            let (from, to) = (name(probe.from), name(probe.to));
            for (sent, rtt) in &seen.echoes {
                let sent = probe.during.map_or_else(String::new, |_| micros(*sent));
                let rtt = rtt.map_or_else(String::new, micros);
                // Writing to a text cannot fail.
                let _ = writeln!(table, "{from},{to},{sent},{rtt}");
            }
        }
        tables.push(("echoes.csv", table));
    }
    if !flows.is_empty() {
        let mut table = "time_s,from,to,payload_bytes\n".to_owned();
        for flow in flows {
            let (from, to) = (name(flow.from), name(flow.to));
            for (at, bytes) in &flow.payload.counts {
                let at = micros(at.since(Time::ZERO));
                let _ = writeln!(table, "{at},{from},{to},{bytes}");
            }
        }
        tables.push(("paths.csv", table));
    }
    tables
}

/// Seconds with six decimals.
fn micros(span: Span) -> String {
    let micros = span.as_nanos() / 1000;
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}
