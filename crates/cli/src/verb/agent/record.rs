//! Notices of an agent, as JSON.

use serde_json::{Value, json};
use windtunnel_cluster::AgentNotice;
use windtunnel_cluster::protocol::run::text_of;

use crate::output;

/// Writes a line of JSON to standard output. Errors of writing are ignored.
pub(super) fn print(notice: &AgentNotice) {
    let _ = output::data(&format!("{}\n", record(notice)));
}

/// A notice: `event` is its kind, `text` the line for people.
fn record(notice: &AgentNotice) -> Value {
    let text = super::text(notice);
    match notice {
        AgentNotice::Listening { listen, advertise } => {
            json!({"event": "listening", "text": text, "listen": listen, "advertise": advertise})
        }
        AgentNotice::NotFound { name, why } => {
            json!({"event": "not-found", "text": text, "name": name, "why": why.to_string()})
        }
        AgentNotice::Joined(address) => {
            json!({"event": "joined", "text": text, "address": address})
        }
        AgentNotice::Left(address) => json!({"event": "left", "text": text, "address": address}),
        AgentNotice::Lost(address) => json!({"event": "lost", "text": text, "address": address}),
        AgentNotice::Refused { from, why } => {
            json!({"event": "refused", "text": text, "from": from, "why": why.to_string()})
        }
        AgentNotice::RunBegun { begun, outcome } => json!({
            "event": "run-begun",
            "text": text,
            "run": text_of(begun.run),
            "name": begun.name,
            "from": begun.from,
            "by": begun.by,
            "nodes": begun.nodes,
            "programs": begun.programs,
            "refused": outcome.as_ref().err(),
        }),
        AgentNotice::Executes(command) => json!({
            "event": "executes",
            "text": text,
            "run": text_of(command.run),
            "node": command.node,
            "from": command.from,
            "program": command.argv.first(),
        }),
        AgentNotice::Expired { run, name, removed } => json!({
            "event": "expired",
            "text": text,
            "run": text_of(*run),
            "name": name,
            "removed": removed.is_ok(),
        }),
        AgentNotice::Unfit(unfit) => {
            json!({"event": "unfit", "text": text, "why": unfit.why, "hint": unfit.hint})
        }
        AgentNotice::NotHeld { why } => json!({"event": "not-held", "text": text, "why": why}),
        AgentNotice::Ends => json!({"event": "ends", "text": text}),
        _ => json!({"event": "other", "text": text}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_an_event_and_its_text() {
        let address = "192.0.2.1:7447".parse().expect("an address");
        let line = record(&AgentNotice::Joined(address));
        assert_eq!(
            line,
            json!({"event": "joined", "text": "agent: 192.0.2.1:7447 is there", "address": "192.0.2.1:7447"})
        );
    }
}
