//! The cases of the tutorial "Why was it slow?": what it says is what is explained.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::support::evidence::{explain, requests, sum};
use super::support::{Lab, is_missing, users};

/// All that `explain` says of a run of an example.
fn explain_example(lab: &Lab, name: &str) -> Value {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for file in [name, "bulk.py", "quickstart.yaml"] {
        lab.write(file, fs::read(examples.join(file)).unwrap());
    }
    let outcome = lab.start_file(name, &[]).finish();
    outcome.assert_code(0);
    let report = outcome.report();
    assert_eq!(report["verdict"]["incomplete"], Value::Null, "{}", report["verdict"]);
    explain(lab, &outcome, &["--all"])
}

/// The slowest request of a kind that the node `reader` made.
fn slowest(report: &Value, kind: &str) -> Value {
    let mut requests = requests(report, kind);
    requests.retain(|request| request["client"].as_str().unwrap().starts_with("reader:"));
    let slowest = requests.into_iter().max_by_key(|request| request["duration_ns"].as_u64());
    slowest.unwrap_or_else(|| panic!("a request of the reader: {report:#}"))
}

/// The share of a request's time that these parts have, in per cent.
fn share(request: &Value, wanted: impl Fn(&Value) -> bool) -> u64 {
    100 * sum(&request["parts"], wanted) / request["duration_ns"].as_u64().unwrap()
}

#[test]
fn a_page_behind_a_download_waits_in_the_lines_deep_queue() {
    if is_missing(&["python3", "curl"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let report = explain_example(&lab, "slow-bufferbloat.yaml");
    let request = slowest(&report, "request");
    let queue = |part: &Value| part["part"] == "queue" && part["lane"]["link"] == "line";
    assert!(share(&request, queue) > 60, "{request:#}");
}

#[test]
fn a_connection_whose_first_packet_was_lost_waits_for_the_timeout() {
    if is_missing(&["python3", "curl"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let report = explain_example(&lab, "slow-syn.yaml");
    let request = slowest(&report, "connect");
    let recovery = |part: &Value| part["part"] == "recovery" && part["lane"]["link"] == "line";
    assert!(share(&request, recovery) > 80, "{request:#}");
    assert_eq!(request["losses"][0]["notice"], "retransmission timeout");
}

#[test]
fn a_server_without_a_processor_has_not_read_what_came() {
    if is_missing(&["python3", "curl", "pkill"]) {
        return;
    }
    let lab = Lab::new(users()[0]);
    let report = explain_example(&lab, "slow-server.yaml");
    let request = slowest(&report, "request");
    let unread = |part: &Value| part["part"] == "unread" && part["side"] == "server";
    assert!(share(&request, unread) > 60, "{request:#}");
}
