//! The table: results, errors, and long chains of bottlenecks.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::cast_possible_truncation, reason = "of small random numbers")]

use std::collections::BTreeMap;

use windtunnel_model::flow::FlowTerms;
use windtunnel_model::random::RandomStream;
use windtunnel_model::{Bytes, Rate, Span};
use windtunnel_sharing::{
    DemandEstimator, FlowId, FlowPeriodUsage, MaxMinShares, ShareConstraint, SharesError,
    SharingModelKind,
};

const TERMS: FlowTerms = FlowTerms::new(Span::from_millis(100));

fn mbit(rate: u64) -> Option<Rate> {
    Rate::from_bits_per_second(rate * 1_000_000)
}

fn shares(lanes: usize) -> MaxMinShares<SharingModelKind> {
    MaxMinShares::new(SharingModelKind::RttAware, &vec![mbit(10); lanes]).unwrap()
}

#[test]
fn a_flow_that_nothing_limits_has_no_limit() {
    let mut table = MaxMinShares::new(SharingModelKind::Equal, &[None, mbit(1)]).unwrap();
    table.start(FlowId(1), &[0], TERMS).unwrap();
    table.start(FlowId(2), &[], TERMS).unwrap();
    table.start(FlowId(3), &[0], TERMS.with_window(Bytes(12_500))).unwrap();
    assert_eq!(table.share(FlowId(1)), None, "not settled yet");
    let changes: Vec<_> = table.settle().iter().map(|change| change.share).collect();
    assert_eq!(changes, [None, None, mbit(1)]);
    assert_eq!(table.limit(FlowId(1)), Some(ShareConstraint::Nothing));
    assert_eq!(table.limit(FlowId(3)), Some(ShareConstraint::Ceiling));
    table.set_capacity(0, mbit(3)).unwrap();
    let changes: Vec<_> =
        table.settle().iter().map(|change| (change.flow.0, change.share)).collect();
    assert_eq!(changes, [(1, mbit(2))], "the window leaves that of 3 Mbit/s");
    table.set_capacity(0, None).unwrap();
    assert_eq!(table.settle().len(), 1);
    assert_eq!(table.share(FlowId(1)), Some(None));
}

#[test]
fn only_changes_are_reported_and_a_flow_that_starts_anew_is_one() {
    let mut table = shares(2);
    table.start(FlowId(1), &[0], TERMS).unwrap();
    table.start(FlowId(2), &[1, 1], TERMS).unwrap();
    assert_eq!(table.settle().len(), 2);
    assert!(table.settle().is_empty());
    table.change(FlowId(1), FlowTerms::new(Span::from_millis(5))).unwrap();
    assert!(table.settle().is_empty(), "alone on its lane, with any round trip");
    table.stop(FlowId(1)).unwrap();
    assert!(table.settle().is_empty(), "the other is on another lane");
    table.stop(FlowId(2)).unwrap();
    table.start(FlowId(2), &[1], TERMS).unwrap();
    assert_eq!(table.settle().len(), 1);
    table.start(FlowId(3), &[1], TERMS).unwrap();
    table.stop(FlowId(3)).unwrap();
    assert!(table.settle().is_empty(), "came and went in between");
    assert_eq!((table.len(), table.is_empty()), (1, false));
    assert_eq!(table.flows().collect::<Vec<_>>(), [FlowId(2)]);
}

#[test]
fn an_invalid_call_is_refused_and_changes_nothing() {
    let mut table = shares(1);
    table.start(FlowId(7), &[0], TERMS).unwrap();
    table.settle();
    let refused = [
        (table.start(FlowId(7), &[0], TERMS), "flow 7 has started already"),
        (table.start(FlowId(8), &[0, 1], TERMS), "no lane 1: the table has 1"),
        (table.stop(FlowId(8)), "no flow 8"),
        (table.change(FlowId(8), TERMS), "no flow 8"),
        (table.set_capacity(1, None), "no lane 1: the table has 1"),
        (
            table.set_capacity(0, Rate::from_bits_per_second(1 << 48)),
            "281474976710.656kbit for lane 0 is too much: a limited lane has less than 2^48 bit/s (281 tbit)",
        ),
    ];
    for (result, text) in refused {
        assert_eq!(result.unwrap_err().to_string(), text);
    }
    assert!(table.settle().is_empty());
    assert_eq!((table.share(FlowId(7)), table.share(FlowId(8))), (Some(mbit(10)), None));
    let wide = MaxMinShares::new(SharingModelKind::Equal, &[Rate::from_bits_per_second(u64::MAX)]);
    assert!(matches!(wide, Err(SharesError::CapacityTooLarge { lane: 0, .. })));
}

#[test]
fn the_greatest_rates_and_weights_fit() {
    let most = Rate::from_bits_per_second((1 << 48) - 1);
    let mut table = MaxMinShares::new(SharingModelKind::RttAware, &[most, None]).unwrap();
    for id in 0..1000 {
        let rtt = Span::from_nanos(if id % 2 == 0 { 1 } else { u64::MAX });
        table.start(FlowId(id), &[0], FlowTerms::new(rtt).with_demand(most.unwrap())).unwrap();
    }
    let all = Rate::from_bits_per_second(u64::MAX);
    table.start(FlowId(1000), &[1], FlowTerms { demand: all, ..TERMS }).unwrap();
    table.settle();
    assert_eq!(table.share(FlowId(1000)), Some(all));
    let given = table.given(0);
    assert!(given < 1 << 48 && given > (1 << 48) - 1000, "{given}");
}

/// A flow that uses a tenth of its share leaves the rest to the other one, until it wants it again.
#[test]
fn capacity_that_a_flow_does_not_use_goes_to_others() {
    let mut table = shares(1);
    table.start(FlowId(1), &[0], TERMS).unwrap();
    table.start(FlowId(2), &[0], TERMS).unwrap();
    table.settle();
    let mut estimator = DemandEstimator::new();
    let mut period = |wants: u64| {
        let share = table.share(FlowId(1)).unwrap();
        let used = share.map_or(wants, |share| share.bits_per_second().min(wants));
        let seen = FlowPeriodUsage { bytes: used / 160, period: Span::from_millis(50), share };
        table.change(FlowId(1), FlowTerms { demand: estimator.observe(seen), ..TERMS }).unwrap();
        table.settle();
        table.share(FlowId(2)).unwrap().unwrap().bits_per_second()
    };
    let others: Vec<u64> = (0..40).map(|_| period(1_000_000)).collect();
    assert!(others.is_sorted() && others[0] > 5_000_000, "{others:?}");
    assert!((8_571_000..=8_625_000).contains(&others[20]), "10 less 11/8 to 10/7: {others:?}");
    assert_eq!(others[20], others[39], "and it stays");
    let again: Vec<u64> = (0..3).map(|_| period(10_000_000)).collect();
    assert_eq!(again[2], 5_000_000, "{again:?}");
}

/// Chains of bottlenecks over many lanes, paths of up to 12: after each change, all shares are
/// those that are found from nothing.
#[test]
fn long_chains_of_changes_end_where_a_new_table_begins() {
    let mut draws = 0;
    let stream = RandomStream::named(1, &["chains"]);
    let mut below = |end: u64| {
        draws += 1;
        stream.at(draws) % end
    };
    let capacities: Vec<_> = (0..60).map(|_| mbit([1, 2, 10, 100][below(4) as usize])).collect();
    for model in [SharingModelKind::RttAware, SharingModelKind::Equal] {
        let mut table = MaxMinShares::new(model, &capacities).unwrap();
        let mut reported = BTreeMap::new();
        for step in 0..600 {
            let id = FlowId(below(300));
            if table.stop(id).is_err() || step % 3 > 0 {
                let path: Vec<u32> = (0..=below(12)).map(|_| below(60) as u32).collect();
                let rtt = Span::from_micros(500 + below(300_000));
                let window = (below(5) == 0).then(|| Bytes(below(100_000)));
                table.start(id, &path, FlowTerms { window, ..FlowTerms::new(rtt) }).unwrap();
            } else {
                reported.remove(&id);
            }
            reported.extend(table.settle().iter().map(|change| (change.flow, Some(change.share))));
            let mut anew = table.clone();
            assert!(anew.settle_from_nothing().is_empty(), "step {step}");
            assert!(reported.iter().all(|(id, share)| table.share(*id) == *share), "step {step}");
            assert_eq!(reported.len(), table.len());
        }
    }
}
