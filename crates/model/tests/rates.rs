//! Serialisation times: exact over any number of packets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use windtunnel_model::{Rate, Span};

fn rate(bits_per_second: u64) -> Rate {
    Rate::from_bits_per_second(bits_per_second).unwrap()
}

/// A full frame takes 4 101 333 1/3 ns at 3 Mbit/s; the 877 764th passes the hour, and as three
/// frames are 12 304 000 ns, it ends at 292 588 · 12 304 000 ns.
#[test]
fn an_hour_of_frames_ends_at_the_exact_nanosecond() {
    let (rate, frame) = (rate(3_000_000), 1538u64);
    let (mut carry, mut clock, mut frames) = (0, 0u64, 0u64);
    while clock < 3_600_000_000_000 {
        clock += rate.serialise(frame, &mut carry).as_nanos();
        frames += 1;
    }
    assert_eq!((frames, clock), (877_764, 3_600_002_752_000));
}

#[test]
fn rounding_down_each_time_would_have_lost_time() {
    let rate = rate(3_000_000);
    let mut carry = 0;
    let times: Vec<u64> = (0..3).map(|_| rate.serialise(1538, &mut carry).as_nanos()).collect();
    assert_eq!(times, [4_101_333, 4_101_333, 4_101_334]);
    assert_eq!(rate.time_for(1538).as_nanos(), 4_101_333);
    assert_eq!(carry, 0);
}

#[test]
fn the_slowest_and_the_fastest_rates_hold() {
    assert_eq!(rate(1).time_for(1), Span::from_secs(8));
    assert_eq!(rate(u64::MAX).time_for(1500), Span::ZERO);
    assert_eq!(rate(1).time_for(u64::MAX), Span::from_nanos(u64::MAX));
    assert_eq!(Rate::from_bits_per_second(0), None);
}

#[test]
fn a_span_holds_whole_bytes_only() {
    assert_eq!(rate(100_000_000).bytes_in(Span::from_millis(50)), 625_000);
    assert_eq!(rate(1).bytes_in(Span::from_secs(15)), 1);
    assert_eq!(rate(u64::MAX).bytes_in(Span::from_nanos(u64::MAX)), u64::MAX);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The sum of the times is the time of the sum, rounded down once.
    #[test]
    fn no_fraction_is_lost_or_won(
        bits in 1u64..1_000_000_000_000,
        sizes in prop::collection::vec(0u64..70_000, 1..200),
    ) {
        let rate = rate(bits);
        let mut carry = 0;
        let sum: u128 = sizes.iter().map(|size| u128::from(rate.serialise(*size, &mut carry).as_nanos())).sum();
        let bytes: u128 = sizes.iter().map(|size| u128::from(*size)).sum();
        prop_assert_eq!(sum, bytes * 8_000_000_000 / u128::from(bits));
        prop_assert!(carry < bits);
    }
}
