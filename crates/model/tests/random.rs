//! Random streams: known answers, uniformity, independence. Bounds are the 0.1 % and 99.9 %
//! quantiles of chi-square with 255 degrees of freedom; the draws are fixed, so these tests cannot
//! fail at random.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use windtunnel_model::random::RandomStream;
use windtunnel_model::{LinkDirection, Probability};

const DRAWS: u64 = 1 << 18;

fn loss() -> RandomStream {
    RandomStream::derive(1, "a--b", LinkDirection::Up, "loss")
}

/// Chi-square of the numbers 0 to 255 that `bin` gives, against the uniform distribution.
fn chi_square(bin: impl Fn(u64) -> u64) -> f64 {
    let mut counts = [0u32; 256];
    for index in 0..DRAWS {
        counts[usize::try_from(bin(index)).unwrap()] += 1;
    }
    let expected = 1024.0;
    counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum()
}

fn assert_uniform(statistic: f64) {
    assert!((190.9..330.5).contains(&statistic), "chi-square {statistic}");
}

/// Computed by another program (SHA-256 and SplitMix64 in Python, whose SplitMix64 gives the
/// published 6457827717110365317, 3203168211198807973 … for the seed 1234567).
#[test]
fn the_draws_are_the_known_ones() {
    let stream = loss();
    assert_eq!(stream.at(0), 0xefb6_4bd9_dc05_1de5);
    assert_eq!(stream.at(1), 0xeef3_5974_b61f_6c6d);
    assert_eq!(stream.at(2), 0x5786_511a_4113_da16);
    assert_eq!(stream.at(u64::MAX), 0xae02_b9b8_b786_61d8);
    let ocean = RandomStream::derive(7, "ocean", LinkDirection::Down, "jitter");
    assert_eq!(ocean.at(0), 0x81a1_5bd7_6d77_d6c1);
    assert_eq!(RandomStream::derive(0, "", LinkDirection::Up, "").at(0), 0x133b_c56e_ca64_d342);
}

#[test]
fn draws_are_uniform_in_their_high_and_low_bits() {
    let stream = loss();
    assert_uniform(chi_square(|index| stream.at(index) >> 56));
    assert_uniform(chi_square(|index| stream.at(index) & 0xff));
}

#[test]
fn a_draw_is_independent_of_the_next() {
    let stream = loss();
    assert_uniform(chi_square(|index| (stream.at(index) >> 60) << 4 | stream.at(index + 1) >> 60));
}

#[test]
fn streams_of_other_names_are_independent() {
    let others = [
        RandomStream::derive(1, "a--c", LinkDirection::Up, "loss"),
        RandomStream::derive(1, "a--b", LinkDirection::Down, "loss"),
        RandomStream::derive(1, "a--b", LinkDirection::Up, "jitter"),
        RandomStream::derive(2, "a--b", LinkDirection::Up, "loss"),
    ];
    for other in others {
        let pair = |index| (loss().at(index) >> 60) << 4 | other.at(index) >> 60;
        assert_uniform(chi_square(pair));
    }
}

#[test]
fn names_cannot_run_into_each_other() {
    let one = RandomStream::derive(1, "ab", LinkDirection::Up, "c");
    assert_ne!(one, RandomStream::derive(1, "a", LinkDirection::Up, "bc"));
}

#[test]
fn a_probability_decides_in_its_share_of_draws() {
    let stream = loss();
    let tenth = Probability::from_parts_per_billion(100_000_000).unwrap();
    let hits = (0..DRAWS).filter(|index| tenth.decides(stream.at(*index))).count();
    // 26 214.4 expected with a standard deviation of 153.6; four of them are allowed.
    assert!((25_600..26_829).contains(&hits), "{hits}");
}

#[test]
fn never_is_never_and_always_is_always() {
    for draw in [0, 1, u64::MAX / 2, u64::MAX] {
        assert!(!Probability::NEVER.decides(draw));
        assert!(Probability::ALWAYS.decides(draw));
    }
    let least = Probability::from_parts_per_billion(1).unwrap();
    assert!(least.decides(0) && !least.decides(u64::MAX / 1_000_000));
    assert_eq!(Probability::from_parts_per_billion(1_000_000_001), None);
}
