//! Properties on the command line.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use windtunnel_model::plan::{EventAction, NodeVerb, Plan, ScheduledEvent};
use windtunnel_model::profile::{
    FlowQueues, LossModel, PropertySetting, QueueDiscipline, QueueLimit,
};
use windtunnel_model::{Bytes, LinkPatch, NodeId, Probability, Rate, Span};
use windtunnel_scenario::{
    LiveRunMoment, ScenarioSource, check_patch, load, parse_events, parse_patch,
};

fn refused(pairs: &[(&str, &str)]) -> (String, Option<String>) {
    let error = parse_patch(pairs).unwrap_err();
    (error.message, error.hint)
}

#[test]
fn values_are_read_as_in_a_file() {
    let patch = parse_patch(&[
        ("latency", "20ms"),
        ("loss", "5%"),
        ("queue", "256KB"),
        ("jitter", "{spread: 2ms, distribution: normal}"),
        ("discipline", "drop-head"),
    ])
    .unwrap();
    assert_eq!(patch.latency, Some(Span::from_millis(20)));
    let five = Probability::from_parts_per_billion(50_000_000).unwrap();
    assert_eq!(patch.loss, Some(LossModel::Independent(five)));
    assert_eq!(patch.queue, Some(PropertySetting::To(QueueLimit::Bytes(Bytes(256_000)))));
    assert_eq!(patch.jitter.unwrap().spread, Span::from_millis(2));
    assert_eq!(patch.discipline, Some(QueueDiscipline::DropHead));
    assert_eq!(patch.rate, None);
}

#[test]
fn disciplines_are_changed_with_their_parameters() {
    let discipline = |value| parse_patch(&[("discipline", value)]).unwrap().discipline.unwrap();
    assert_eq!(discipline("fq-codel"), QueueDiscipline::FqCodel(FlowQueues::default()));
    let queues = FlowQueues { flows: 8, ..FlowQueues::default() };
    assert_eq!(discipline("{fq-codel: {flows: 8}}"), QueueDiscipline::FqCodel(queues));
    let error = parse_patch(&[("discipline", "fqcodel")]).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("did you mean `fq-codel`?"));
}

#[test]
fn none_takes_a_rate_away_and_default_a_queue() {
    let patch = parse_patch(&[("rate", "none"), ("queue", "default")]).unwrap();
    assert_eq!(
        (patch.rate, patch.queue),
        (Some(PropertySetting::Default), Some(PropertySetting::Default))
    );
    let patch = parse_patch(&[("rate", "1.5mbit")]).unwrap();
    assert_eq!(patch.rate, Rate::from_bits_per_second(1_500_000).map(PropertySetting::To));
}

#[test]
fn no_pairs_are_no_change() {
    assert_eq!(parse_patch(&[]), Ok(LinkPatch::default()));
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest() {
    let (message, hint) = refused(&[("latancy", "5ms")]);
    assert_eq!(message, "unknown key `latancy` of a link");
    assert_eq!(hint.as_deref(), Some("did you mean `latency`?"));
}

#[test]
fn a_key_given_twice_is_refused() {
    let (message, _) = refused(&[("loss", "1%"), ("loss", "2%")]);
    assert_eq!(message, "`loss` is given twice");
}

#[test]
fn a_value_that_is_wrong_is_refused_as_in_a_file() {
    let (message, _) = refused(&[("rate", "0mbit")]);
    assert!(message.starts_with("rate: `0mbit` is zero"), "{message}");
    let (message, _) = refused(&[("latency", "5ms\nrate: 3mbit")]);
    assert!(message.starts_with("latency: `5ms"), "{message}");
    let (message, hint) = refused(&[("latency", "")]);
    assert_eq!(message, "`latency` has no value");
    assert_eq!(hint.as_deref(), Some("write `latency=VALUE`"));
    let (message, _) = refused(&[("jitter", "{spread: 2ms")]);
    assert!(message.starts_with("jitter: `{spread: 2ms`: "), "{message}");
}

#[test]
fn a_small_mtu_is_refused_where_the_plan_has_ipv6() {
    let load = |head: &str| {
        let text = format!("{head}nodes: {{a: {{}}, b: {{}}}}\nlinks: [{{between: [a, b]}}]\n");
        let source = ScenarioSource {
            name: "net.yaml",
            text: text.as_bytes(),
            default_name: "net",
            base_dir: "/",
        };
        load(&source).unwrap().plan
    };
    let patch = parse_patch(&[("mtu", "576")]).unwrap();
    assert_eq!(patch.mtu, Some(576));
    assert!(check_patch(&patch, &load("")).is_err());
    assert_eq!(check_patch(&patch, &load("ipv6: false\n")), Ok(()));
}

/// A run of two nodes and a group of four; only the seed and the names count.
fn run() -> Plan {
    let text = "nodes: {a: {run: x}, b: {}, peers: {count: 4, run: y}}\nrouters: [r]\n\
                links: [{between: [a, r], name: near}, {between: [b, r]}, {between: [peers, r], name: access}]\n";
    let source =
        ScenarioSource { name: "t.yaml", text: text.as_bytes(), default_name: "t", base_dir: "/" };
    load(&source).unwrap().plan
}

fn now(text: &str) -> Result<Vec<ScheduledEvent>, String> {
    let (plan, absent) = (run(), [NodeId(5)].into());
    let moment = LiveRunMoment { plan: &plan, now: Span::from_secs(100), absent: &absent };
    let parsed = parse_events(text, &|_| Err("none here".to_owned()), &moment);
    parsed.map(|(events, _)| events).map_err(|errors| errors.to_string())
}

#[test]
fn an_event_means_the_same_as_in_a_file() {
    let in_file = "nodes: {a: {run: x}, b: {}, peers: {count: 4, run: y}}\nrouters: [r]\n\
                links: [{between: [a, r], name: near}, {between: [b, r]}, {between: [peers, r], name: access}]\n\
                events:\n";
    for event in [
        "link: near, down: true",
        "link: access, direction: up, down: true",
        "link: access-2, set: {loss: 5%}",
        "link: b--r, up: true",
        "partition: [[a, b], [r]]",
        "partition: {from: peers, to: r}",
        "heal: true",
        "node: [a, peers], do: pause",
        "flap: {link: access, every: 1s, down: 200ms, times: 3}",
    ] {
        let text = format!("{in_file}  - {{at: 0s, {event}}}\n");
        let source = ScenarioSource {
            name: "t.yaml",
            text: text.as_bytes(),
            default_name: "t",
            base_dir: "/",
        };
        let planned = load(&source).unwrap_or_else(|e| panic!("{e}")).plan.events;
        assert_eq!(now(&format!("{{{event}}}")), Ok(planned), "{event}");
    }
}

#[test]
fn several_events_happen_at_one_instant_and_repetitions_count_from_now() {
    let events = now("[{heal: true}, {every: 2s, times: 2, node: a, do: kill}]").unwrap();
    let times: Vec<Span> = events.iter().map(|event| event.at).collect();
    assert_eq!(times, [Span::ZERO, Span::ZERO, Span::from_secs(2)]);
    // `until` is a time of the run, which is at 100 s.
    let events = now("{every: 2s, until: 105s, node: a, do: kill}").unwrap();
    assert_eq!(events.len(), 3);
}

#[test]
fn churn_knows_which_nodes_are_present() {
    // peers-4 (node 5) is absent: it is the only one that can join.
    let events = now("churn: {nodes: peers, script: at 1s join 1}").unwrap();
    let join =
        |node| EventAction::Churn { leave: Vec::new(), by: NodeVerb::Kill, join: vec![node] };
    assert_eq!(events, [ScheduledEvent { at: Span::from_secs(1), action: join(NodeId(5)) }]);
    let error = now("churn: {nodes: peers, script: at 1s join 2}").unwrap_err();
    assert!(error.contains("no node is left to join: all 4 are there"), "{error}");
}

#[test]
fn a_mistake_in_an_event_is_reported_as_in_a_file() {
    assert_eq!(
        now("{link: naer, down: true}").unwrap_err(),
        "event:1:8: no link is called `naer`
    1 | {link: naer, down: true}
      |        ^^^^
hint: did you mean `near`?"
    );
    for (text, part) in [
        ("{at: 1s, heal: true}", "`at`: this event happens now"),
        ("heal", "here an event such as {link: NAME, down: true} is needed"),
        ("", "there is no event"),
        ("{every: 1s, node: a, do: kill}", "this would go on for ever"),
        ("{every: 1s, until: 99s, node: a, do: kill}", "this is over before it begins"),
        ("{node: b, do: kill}", "`b` has no program to kill"),
        (
            "{churn: {nodes: peers, script: at 1s join 1, present: 1}}",
            "which nodes are present is known",
        ),
        ("[heal: true", "does not end"),
        ("{link: near, set: {rate: {trace: x.down}}}", "x.down"),
    ] {
        let error = now(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}
