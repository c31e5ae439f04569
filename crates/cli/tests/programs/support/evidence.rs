//! What the verbs that read records say of a run.

use serde_json::Value;

use super::{Lab, Outcome};

/// What `windtunnel explain --json` says of a run.
#[track_caller]
pub(crate) fn explain(lab: &Lab, outcome: &Outcome, words: &[&str]) -> Value {
    let folder = outcome.folder.to_str().unwrap();
    let output =
        lab.windtunnel(&[&["explain", folder, "--json"], words].concat()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Nanoseconds of the parts that are wanted.
pub(crate) fn sum(parts: &Value, wanted: impl Fn(&Value) -> bool) -> u64 {
    let parts = parts.as_array().unwrap().iter();
    parts.filter(|part| wanted(part)).map(|part| part["ns"].as_u64().unwrap()).sum()
}

/// All of a run's requests of a kind, each of which adds up.
pub(crate) fn requests(report: &Value, kind: &str) -> Vec<Value> {
    let requests = report["requests"].as_array().unwrap();
    for request in requests {
        assert_eq!(sum(&request["parts"], |_| true), request["duration_ns"], "{request:#}");
        assert_eq!(sum(&request["timeline"], |_| true), request["duration_ns"], "{request:#}");
    }
    requests.iter().filter(|request| request["kind"] == kind).cloned().collect()
}

/// What `windtunnel records stats --json` says of a run.
#[track_caller]
pub(crate) fn statistics(lab: &Lab, outcome: &Outcome) -> Value {
    let folder = outcome.folder.to_str().unwrap();
    let output = lab.windtunnel(&["records", "stats", folder, "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What `windtunnel records workload` makes of a run: a connection each.
#[track_caller]
pub(crate) fn workload(lab: &Lab, outcome: &Outcome) -> (String, Vec<Value>) {
    let folder = outcome.folder.to_str().unwrap();
    let output = lab.windtunnel(&["records", "workload", folder]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let connections = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (lines, connections)
}
