//! Keys for runs over several machines, and what changes when there are several.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/load.rs"]
mod common;

use common::load_text;
use windtunnel_model::demand::Demand;
use windtunnel_model::placement::{DelayRequirement, OnHostLoss, Strategy};
use windtunnel_model::plan::{BandwidthSharing, NetworkModel};
use windtunnel_model::{Bytes, Plan, Span};
use windtunnel_scenario::plan_hash;

const PAIR: &str = "nodes: {a: {}, b: {}}\nlinks: [{between: [a, b]}]\n";

fn plan(name: &str, text: &str) -> Plan {
    load_text(name, text.as_bytes()).unwrap_or_else(|errors| panic!("{errors}")).plan
}

fn notices(name: &str, text: &str) -> Vec<String> {
    let loaded = load_text(name, text.as_bytes()).unwrap_or_else(|errors| panic!("{errors}"));
    loaded.notices.iter().map(ToString::to_string).collect()
}

#[test]
fn a_node_says_where_it_is_and_what_it_will_use() {
    let plan = plan(
        "test",
        "defaults: {node: {cpu: 25%, memory: 64MB}}\n\
         nodes:\n  a: {pin: rack=2, cpu: 1.5}\n  b: {count: 2, cpu: '2', memory: 1MB}\n  c: {forward: true}\n\
         links:\n  - {between: [a, c]}\n  - {between: [b, c]}\n",
    );
    let said = |name: &str| {
        let node = &plan.nodes[plan.node_named(name).unwrap().index()];
        let Demand { cpu_millis, memory, .. } = node.demand;
        (node.pin.as_deref(), cpu_millis, memory)
    };
    assert_eq!(said("a"), (Some("rack=2"), Some(1500), Some(Bytes(64_000_000))));
    assert_eq!(said("b-2"), (None, Some(2000), Some(Bytes(1_000_000))));
    assert_eq!(said("c"), (None, Some(250), Some(Bytes(64_000_000))));
}

#[test]
fn a_file_says_how_nodes_are_put_on_machines_and_what_a_loss_means() {
    let of = |head: &str| {
        let plan = plan("machines-test", &format!("{head}{PAIR}"));
        (plan.placement, plan.on_host_loss)
    };
    assert_eq!(of(""), (Strategy::Auto, OnHostLoss::Fail));
    assert_eq!(of("placement: auto\non-host-loss: fail\n"), (Strategy::Auto, OnHostLoss::Fail));
    assert_eq!(of("placement: pack\n"), (Strategy::Pack, OnHostLoss::Fail));
    assert_eq!(of("placement: spread\non-host-loss: continue\n").0, Strategy::Spread);
    assert_eq!(of("on-host-loss: continue\n").1, OnHostLoss::Continue);
}

#[test]
fn a_file_says_whether_delays_one_way_or_only_round_trips_have_to_be_right() {
    let of = |head: &str| plan("machines-test", &format!("{head}{PAIR}")).delays;
    assert_eq!(of(""), DelayRequirement::OneWay);
    assert_eq!(of("delays: one-way\n"), DelayRequirement::OneWay);
    assert_eq!(of("delays: round-trips\n"), DelayRequirement::RoundTrips);
}

#[test]
fn a_file_says_how_long_a_machine_may_be_silent() {
    let of = |head: &str| plan("machines-test", &format!("{head}{PAIR}")).host_timeout;
    assert_eq!(of(""), None);
    assert_eq!(of("host-timeout: 2.5s\n"), Some(Span::from_millis(2500)));
    for (wrong, shown) in [("499ms", "499ms"), ("10001ms", "10.001s"), ("0s", "0ns")] {
        let text = format!("host-timeout: {wrong}\n{PAIR}");
        let errors = load_text("machines-test", text.as_bytes()).unwrap_err().to_string();
        let expected = format!("host-timeout: {shown} is not from 500ms to 10s");
        assert!(errors.contains(&expected), "{errors}");
    }
}

#[test]
fn absent_keys_leave_the_plan_and_its_hash_as_they_were() {
    let plain = plan("test", PAIR);
    let json = serde_json::to_string(&plain).unwrap();
    for key in ["placement", "on_host_loss", "delays", "host_timeout", "pin", "demand"] {
        assert!(!json.contains(key), "{key} in {json}");
    }
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plain);
    let same = format!("placement: auto\non-host-loss: fail\n{PAIR}");
    assert_eq!(plan_hash(&plan("test", &same)), plan_hash(&plain));
    let other = format!("placement: pack\n{PAIR}");
    assert_ne!(plan_hash(&plan("test", &other)), plan_hash(&plain));
}

#[test]
fn a_plan_with_all_of_it_survives_json() {
    let text = "placement: spread\non-host-loss: continue\n\
                nodes: {a: {pin: m1, cpu: 0.5, memory: 1GB}, b: {cpu: 2}}\nlinks: [{between: [a, b]}]\n";
    let plan = plan("machines-test", text);
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn several_machines_use_the_model_of_paths_also_if_the_file_names_none() {
    let model = |name: &str, head: &str| plan(name, &format!("{head}{PAIR}")).model;
    assert_eq!(model("test", ""), NetworkModel::Hops);
    assert_eq!(model("machines-test", ""), NetworkModel::Paths(BandwidthSharing::RttAware));
    assert_eq!(
        model("machines-test", "sharing: equal\n"),
        NetworkModel::Paths(BandwidthSharing::Equal)
    );
    assert_eq!(
        model("machines-test", "model: paths\n"),
        NetworkModel::Paths(BandwidthSharing::RttAware)
    );
}

#[test]
fn over_several_machines_a_freeze_is_noticed_to_be_of_one() {
    let text = format!("on-overload: freeze\n{PAIR}");
    let noticed = notices("machines-test", &text);
    assert_eq!(noticed.len(), 1, "{noticed:?}");
    assert!(
        noticed[0].starts_with("line 1: ") && noticed[0].contains("the machine that is behind"),
        "{noticed:?}"
    );
    assert_eq!(notices("test", &text), [""; 0]);
    assert_eq!(notices("machines-test", &format!("on-overload: abort\n{PAIR}")), [""; 0]);
}

#[test]
fn on_one_machine_one_notice_lists_the_keys_without_effect() {
    let text = "placement: pack\nnodes: {a: {pin: m1, cpu: 20%}, b: {pin: m2, memory: 1GB}}\nlinks: [{between: [a, b]}]\n";
    let expected = ["line 1: `placement`, `pin` are for several machines: on one they do nothing"];
    assert_eq!(notices("test", text), expected);
    assert_eq!(notices("machines-test", text), [] as [&str; 0]);
    let text = "nodes:\n  a: {}\n  b: {pin: m2}\nlinks: [{between: [a, b]}]\n";
    assert_eq!(
        notices("test", text),
        ["line 3: `pin` is for several machines: on one it does nothing"]
    );
}
