//! Reports with names.

use crate::evidence::tests::{conversation, load};
use crate::explain::RequestKind;
use crate::explain::report::{LatencyBreakdown, RequestSelection};

#[test]
fn a_report_names_ends_links_and_the_request() {
    let report = LatencyBreakdown::of(&load(&[conversation()]), RequestSelection::Slowest(5), None);
    let value = serde_json::to_value(&report).unwrap();
    assert_eq!(value["requests_in_all"], 2, "{value:#}");
    let request = &value["requests"][0];
    assert_eq!(request["request"], "0:1");
    assert_eq!(request["client"], "client:4000");
    assert_eq!(request["server"], "server:80");
    // The write began 1300 ns after the run; the last byte was read at 2400 + 700.
    assert_eq!(request["begin_ns"], 1300);
    assert_eq!(request["duration_ns"], 800);
    let sum: u64 =
        request["parts"].as_array().unwrap().iter().map(|part| part["ns"].as_u64().unwrap()).sum();
    assert_eq!(sum, 800);
    let propagation = request["parts"]
        .as_array()
        .unwrap()
        .iter()
        .find(|part| part["part"] == "propagation" && part["lane"]["from"] == "server");
    assert_eq!(propagation.unwrap()["ns"], 100);
    assert_eq!(report.problems, Vec::<String>::new());
}

#[test]
fn one_request_can_be_picked_by_flow_and_number() {
    let evidence = load(&[conversation()]);
    let report =
        LatencyBreakdown::of(&evidence, RequestSelection::One { flow: 0, number: 0 }, None);
    assert_eq!(report.requests.len(), 1);
    assert_eq!(report.requests[0].kind, RequestKind::Connect);
    assert!(
        LatencyBreakdown::of(&evidence, RequestSelection::One { flow: 7, number: 0 }, None)
            .requests
            .is_empty()
    );
}
