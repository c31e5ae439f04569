//! What a machine leaves of its part of a run, for the tests of this room and of those above it.

use std::collections::BTreeMap;

use serde_json::json;
use windtunnel_dataplane::phase::LanePhase;
use windtunnel_dataplane::{LaneResult, Tally};
use windtunnel_model::{DropReason, LinkProfile, Plan, Span, Time};
use windtunnel_trace::lateness::LatenessHistogram;
use windtunnel_trace::sample::LinkSampleRow;
use windtunnel_trace::series::{LinkSample, LinkSampleSeries};

use crate::evidence::{
    DeviceDrops, FreezeTotals, MemberClockBounds, OutputCollectionSummary, PunctualitySummary,
    RunEndReason, RunRecorderSummary, ServicesEnded, WhenLate, programs_of,
};
use crate::results::PartResults;

/// Results of the only part of a run, with something of everything.
#[must_use]
pub fn sample(plan: &Plan) -> Vec<u8> {
    let row =
        LinkSampleRow { offered_packets: 3, delivered_wire_bytes: 900, ..LinkSampleRow::default() };
    let sample = |tenth: u64| LinkSample {
        at: Time::from_nanos(tenth * 100_000_000),
        row,
        dropped: vec![(DropReason::Loss, 1)],
        rate_bit_per_s: Some(1_000_000),
    };
    let mut lateness = LatenessHistogram::new();
    lateness.record(Span::from_micros(5));
    let phase = |tenth: u64| LanePhase {
        until: Time::from_nanos(tenth * 100_000_000),
        asked: LinkProfile::default(),
        counters: Default::default(),
        lateness: LatenessHistogram::new(),
    };
    let lane = |_| LaneResult {
        no_memory: 0,
        counters: Default::default(),
        lateness: lateness.clone(),
        late: Some((Time::from_nanos(5), Time::from_nanos(9))),
        phases: vec![phase(2)],
        series: Some(LinkSampleSeries((1..4).map(sample).collect())),
    };
    let programs = programs_of(plan);
    let results = PartResults {
        member: 0,
        host: "a".into(),
        kernel: "6".into(),
        cpus: 2,
        began_unix_s: 1_700_000_000,
        setup: Span::from_millis(5),
        elapsed: Span::from_secs(3),
        ending: RunEndReason::Finished,
        tally: Tally {
            lanes: (0..plan.links.len() * 2).map(lane).collect(),
            routers: vec![Default::default(); plan.routers.len()],
            kernel_drops: vec![(Time::from_nanos(5), 2)],
            remote: Some(Default::default()),
            ..Tally::default()
        },
        records: None,
        recorded: RunRecorderSummary {
            peak_bytes_per_s: vec![7; plan.links.len() * 2],
            ..RunRecorderSummary::default()
        },
        carried: OutputCollectionSummary::default(),
        programs,
        echoes: Vec::new(),
        origin: Time::from_nanos(77),
        clocks: MemberClockBounds::default(),
        planned: PunctualitySummary::default(),
        load: WhenLate::default(),
        freezes: FreezeTotals::default(),
        limits: Vec::new(),
        bounds: Vec::new(),
        services: ServicesEnded::default(),
        device_drops: DeviceDrops { packets: 1, backlog_packets: 2 },
        busy: 3,
        idle: 4,
        stolen: 5,
        notes: vec!["x".into()],
        lost: BTreeMap::from([(1, Span::from_secs(1))]),
        apart: false,
        began_late: Span::ZERO,
    };
    let mut json = serde_json::to_value(&results).unwrap_or_default();
    let counts: Vec<(u64, u64)> = (1..4).map(|tenth| (tenth * 100_000_000, 500)).collect();
    json["tally"]["flows"] =
        json!([{"from": 0, "to": 1, "payload": {"start": 0, "counts": counts}, "counted": 5}]);
    let key = json!({"node": 0, "program": 0});
    json["carried"]["volumes"] = json!([[key, {"bytes": 5, "discarded": 1}]]);
    json["carried"]["logs"] = json!([{"expectation": 3, "key": key, "file": "/x/stdout", "lines": 2,
        "first": {"number": 1, "at_ns": 99, "text": "ok"}}]);
    json["echoes"] = json!([[{"from": 0, "to": 1, "during": null},
        {"echoes": [["0ns", "5ms"], ["0ns", null]], "error": null}]]);
    serde_json::to_vec(&json).unwrap_or_default()
}
