//! Properties on the command line.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use windtunnel_model::profile::{Discipline, FlowQueues, Loss, QueueLimit, Setting};
use windtunnel_model::{Bytes, LinkPatch, Probability, Rate, Span};
use windtunnel_scenario::{check_patch, parse_patch};

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
    assert_eq!(patch.loss, Some(Loss::Independent(five)));
    assert_eq!(patch.queue, Some(Setting::To(QueueLimit::Bytes(Bytes(256_000)))));
    assert_eq!(patch.jitter.unwrap().spread, Span::from_millis(2));
    assert_eq!(patch.discipline, Some(Discipline::DropHead));
    assert_eq!(patch.rate, None);
}

#[test]
fn disciplines_are_changed_with_their_parameters() {
    let discipline = |value| parse_patch(&[("discipline", value)]).unwrap().discipline.unwrap();
    assert_eq!(discipline("fq-codel"), Discipline::FqCodel(FlowQueues::default()));
    let queues = FlowQueues { flows: 8, ..FlowQueues::default() };
    assert_eq!(discipline("{fq-codel: {flows: 8}}"), Discipline::FqCodel(queues));
    let error = parse_patch(&[("discipline", "fqcodel")]).unwrap_err();
    assert_eq!(error.hint.as_deref(), Some("did you mean `fq-codel`?"));
}

#[test]
fn none_takes_a_rate_away_and_default_a_queue() {
    let patch = parse_patch(&[("rate", "none"), ("queue", "default")]).unwrap();
    assert_eq!((patch.rate, patch.queue), (Some(Setting::Default), Some(Setting::Default)));
    let patch = parse_patch(&[("rate", "1.5mbit")]).unwrap();
    assert_eq!(patch.rate, Rate::from_bits_per_second(1_500_000).map(Setting::To));
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
        let source = windtunnel_scenario::Source {
            name: "net.yaml",
            text: text.as_bytes(),
            default_name: "net",
            base_dir: "/",
        };
        windtunnel_scenario::load(&source).unwrap().plan
    };
    let patch = parse_patch(&[("mtu", "576")]).unwrap();
    assert_eq!(patch.mtu, Some(576));
    assert!(check_patch(&patch, &load("")).is_err());
    assert_eq!(check_patch(&patch, &load("ipv6: false\n")), Ok(()));
}
