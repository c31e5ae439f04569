//! Changes of links, defaults that depend on the rate, and that everything survives JSON.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use windtunnel_model::profile::{
    CodelParameters, GilbertElliott, Jitter, JitterDistribution, LossModel, Overhead,
    PacketReordering, PropertySetting, QueueDiscipline, QueueLimit,
};
use windtunnel_model::{Bytes, LinkPatch, LinkProfile, Packets, Probability, Rate, Span};

fn percent(percent: u32) -> Probability {
    Probability::from_parts_per_billion(percent * 10_000_000).unwrap()
}

/// Every property, none of them the default.
fn full() -> LinkPatch {
    LinkPatch {
        traces: windtunnel_model::Traces::default(),
        latency: Some(Span::from_millis(10)),
        jitter: Some(Jitter {
            spread: Span::ZERO,
            distribution: JitterDistribution::Table(vec![Span::ZERO, Span::from_millis(1)]),
        }),
        loss: Some(LossModel::Listed(vec![3, 7])),
        duplicate: Some(percent(1)),
        corrupt: Some(percent(2)),
        reorder: Some(PacketReordering {
            by_jitter: true,
            probability: percent(3),
            extra: Span::from_millis(5),
            correlation: percent(25),
        }),
        rate: Some(PropertySetting::To("10mbit".parse().unwrap())),
        overhead: Some(PropertySetting::To(Overhead(42))),
        mtu: Some(1400),
        queue: Some(PropertySetting::To(QueueLimit::Bytes(Bytes(256_000)))),
        discipline: Some(QueueDiscipline::Codel(CodelParameters::default())),
    }
}

fn applied(patch: &LinkPatch) -> LinkProfile {
    let mut profile = LinkProfile::default();
    patch.apply_to(&mut profile);
    profile
}

#[test]
fn a_full_patch_sets_every_property() {
    let profile = applied(&full());
    assert_eq!(profile.latency, Span::from_millis(10));
    assert_eq!(Some(profile.jitter), full().jitter);
    assert_eq!(profile.loss, LossModel::Listed(vec![3, 7]));
    assert_eq!((profile.duplicate, profile.corrupt), (percent(1), percent(2)));
    assert_eq!(Some(profile.reorder), full().reorder);
    assert_eq!(profile.rate, Rate::from_bits_per_second(10_000_000));
    assert_eq!((profile.overhead, profile.mtu), (Some(Overhead(42)), 1400));
    assert_eq!(profile.queue, Some(QueueLimit::Bytes(Bytes(256_000))));
    assert_eq!(profile.discipline, QueueDiscipline::Codel(CodelParameters::default()));
}

#[test]
fn only_what_is_named_changes() {
    let mut profile = applied(&full());
    let before = profile.clone();
    LinkPatch::default().apply_to(&mut profile);
    assert_eq!(profile, before);
    LinkPatch { loss: Some(LossModel::None), ..LinkPatch::default() }.apply_to(&mut profile);
    assert_eq!(profile, LinkProfile { loss: LossModel::None, ..before });
}

#[test]
fn a_setting_goes_back_to_the_default() {
    let mut profile = applied(&full());
    let patch = LinkPatch {
        rate: Some(PropertySetting::Default),
        overhead: Some(PropertySetting::Default),
        queue: Some(PropertySetting::Default),
        ..LinkPatch::default()
    };
    assert!(!patch.is_empty() && LinkPatch::default().is_empty());
    patch.apply_to(&mut profile);
    assert_eq!((profile.rate, profile.overhead, profile.queue), (None, None, None));
}

#[test]
fn without_a_rate_there_is_no_queue_and_no_overhead() {
    let profile = LinkProfile::default();
    assert_eq!(profile.effective_queue(), None);
    assert_eq!(profile.effective_overhead(), Overhead::NONE);
}

/// 50 ms of 1 Gbit/s are 6 250 000 bytes: 4063.7 frames of 1538 bytes; of 10 Mbit/s only 40.6.
#[test]
fn the_default_queue_is_a_hundred_packets_or_fifty_milliseconds() {
    let queue = |rate: &str| {
        let profile = LinkProfile { rate: rate.parse().ok(), ..LinkProfile::default() };
        profile.effective_queue()
    };
    assert_eq!(queue("10mbit"), Some(QueueLimit::Packets(Packets(100))));
    assert_eq!(queue("1gbit"), Some(QueueLimit::Packets(Packets(4064))));
}

#[test]
fn an_asked_queue_and_overhead_stay() {
    let rate = "1gbit".parse().ok();
    let queue = Some(QueueLimit::Time(Span::from_millis(1)));
    let overhead = Some(Overhead::NONE);
    let profile = LinkProfile { rate, queue, overhead, ..LinkProfile::default() };
    assert_eq!(profile.effective_queue(), queue);
    assert_eq!(profile.effective_overhead(), Overhead::NONE);
    let profile = LinkProfile { rate, ..LinkProfile::default() };
    assert_eq!(profile.effective_overhead(), Overhead(38));
}

/// (r·g + p·b)/(p + r) with p = 1 %, r = 9 %, g = 0, b = 50 %: 5 %.
#[test]
fn bursts_lose_their_stationary_share() {
    let chain = GilbertElliott {
        good_to_bad: percent(1),
        bad_to_good: percent(9),
        loss_in_good: Probability::NEVER,
        loss_in_bad: percent(50),
    };
    assert_eq!(LossModel::GilbertElliott(chain).long_run(), percent(5));
    let always = GilbertElliott {
        good_to_bad: percent(100),
        bad_to_good: percent(100),
        loss_in_good: percent(100),
        loss_in_bad: percent(100),
    };
    assert_eq!(always.long_run(), Probability::ALWAYS);
    assert_eq!(LossModel::Listed(vec![1]).long_run(), Probability::NEVER);
}

#[test]
fn a_patch_survives_json_and_says_only_what_changes() {
    let json = serde_json::to_string(&full()).unwrap();
    assert_eq!(serde_json::from_str::<LinkPatch>(&json).unwrap(), full());
    let patch = LinkPatch { rate: Some(PropertySetting::Default), ..LinkPatch::default() };
    let json = serde_json::to_string(&patch).unwrap();
    assert_eq!(json, r#"{"rate":"default"}"#);
    assert_eq!(serde_json::from_str::<LinkPatch>(&json).unwrap(), patch);
    assert_eq!(serde_json::to_string(&LinkPatch::default()).unwrap(), "{}");
}

#[test]
fn a_profile_survives_json() {
    let profile = applied(&full());
    let json = serde_json::to_string(&profile).unwrap();
    assert_eq!(serde_json::from_str::<LinkProfile>(&json).unwrap(), profile);
}

#[test]
fn a_malformed_quantity_is_refused_in_json() {
    let error = serde_json::from_str::<LinkPatch>(r#"{"latency":"5"}"#).unwrap_err().to_string();
    assert!(error.starts_with("`5` has no unit"), "{error}");
}
