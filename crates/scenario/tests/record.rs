//! What is recorded of a run.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/load.rs"]
mod common;

use common::load_text;
use windtunnel_model::plan::{OnRecordLoss, RecordDirection, RecordMode, RecordingPolicy};
use windtunnel_model::record::kind::RecordSource;
use windtunnel_model::{Bytes, NodeId, Plan, Span};
use windtunnel_scenario::plan_hash;

fn plan(record: &str) -> Plan {
    let text = format!(
        "allow-unreachable: true\nnodes: {{a: {{}}, b: {{count: 2}}}}\nlinks: [{{between: [a, b]}}]\n{record}"
    );
    load_text("test", text.as_bytes()).unwrap_or_else(|errors| panic!("{errors}")).plan
}

#[test]
fn a_word_says_whether_a_run_is_recorded() {
    let mode = |word: &str| plan(&format!("record: {word}")).record;
    assert_eq!(mode("true"), RecordingPolicy::of(RecordMode::On));
    assert_eq!(mode("standby"), RecordingPolicy::of(RecordMode::Standby));
    assert_eq!(
        (mode("off"), mode("false")),
        (RecordingPolicy::default(), RecordingPolicy::default())
    );
}

#[test]
fn a_file_without_the_key_has_the_plan_and_the_hash_that_it_had() {
    let (plain, off) = (plan(""), plan("record: off"));
    assert!(!serde_json::to_string(&plain).unwrap().contains("record"));
    assert_eq!(plan_hash(&plain), plan_hash(&off));
    assert_ne!(plan_hash(&plain), plan_hash(&plan("record: true")));
}

#[test]
fn a_list_names_layers_and_a_map_says_all() {
    let layers = plan("record: [tcp, engine]").record.choice.layers;
    assert_eq!(layers.iter().collect::<Vec<_>>(), [RecordSource::Engine, RecordSource::Tcp]);
    let plan = plan(
        "record: {layers: [calls], nodes: b, flows: [tcp a b-1:80, ':53'], direction: reverse, \
         tcp-interval: 5ms, max: 1GB, rotate: 64MB, keep: 3, anonymous: true, on-loss: fail}",
    );
    let RecordingPolicy { mode, choice, .. } = &plan.record;
    assert_eq!((*mode, &choice.nodes[..]), (RecordMode::On, &[NodeId(1), NodeId(2)][..]));
    let flows: Vec<String> = choice.flows.iter().map(ToString::to_string).collect();
    assert_eq!(flows, ["tcp a b-1:80", ":53"]);
    assert_eq!(choice.direction, Some(RecordDirection::Reverse));
    let expected = RecordingPolicy {
        mode: RecordMode::On,
        choice: choice.clone(),
        tcp_interval: Span::from_millis(5),
        max: Bytes(1_000_000_000),
        rotate: Bytes(64_000_000),
        keep: Some(3),
        anonymous: true,
        on_loss: OnRecordLoss::Fail,
    };
    assert_eq!(plan.record, expected);
    assert!(plan.validate().is_ok());
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}
