//! Texts with units: what is read, what is refused, and that printing gives the value back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use windtunnel_model::{Bytes, Packets, Probability, QuantityError, Rate, Span};

fn span(text: &str) -> Result<u64, QuantityError> {
    text.parse::<Span>().map(Span::as_nanos)
}

fn rate(text: &str) -> Result<u64, QuantityError> {
    text.parse::<Rate>().map(Rate::bits_per_second)
}

fn bytes(text: &str) -> Result<u64, QuantityError> {
    text.parse::<Bytes>().map(|bytes| bytes.0)
}

fn parts(text: &str) -> Result<u32, QuantityError> {
    text.parse::<Probability>().map(Probability::parts_per_billion)
}

#[test]
fn times_are_read_in_every_unit() {
    let table = [
        ("0ms", 0),
        ("1ns", 1),
        ("3us", 3_000),
        ("3µs", 3_000),
        ("10ms", 10_000_000),
        ("1.5s", 1_500_000_000),
        ("2min", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        (" 10 ms ", 10_000_000),
        ("0.000000001s", 1),
        ("1.500000000000s", 1_500_000_000),
        ("18446744073709551615ns", u64::MAX),
    ];
    for (text, nanos) in table {
        assert_eq!(span(text), Ok(nanos), "{text}");
    }
}

#[test]
fn rates_are_bits_unless_they_say_bytes() {
    let table = [
        ("1bit", 1),
        ("10mbit", 10_000_000),
        ("10Mbit/s", 10_000_000),
        ("1.5gbit", 1_500_000_000),
        ("2tbit", 2_000_000_000_000),
        ("1MB/s", 8_000_000),
        ("0.5KB/s", 4_000),
    ];
    for (text, bits) in table {
        assert_eq!(rate(text), Ok(bits), "{text}");
    }
}

#[test]
fn sizes_know_powers_of_ten_and_of_two() {
    let table = [
        ("42B", 42),
        ("256KB", 256_000),
        ("256kB", 256_000),
        ("1KiB", 1_024),
        ("1.5MiB", 1_572_864),
        ("2GB", 2_000_000_000),
    ];
    for (text, count) in table {
        assert_eq!(bytes(text), Ok(count), "{text}");
    }
    assert_eq!("100p".parse::<Packets>(), Ok(Packets(100)));
}

#[test]
fn probabilities_are_percent_or_parts() {
    let table = [
        ("0%", 0),
        ("0.1%", 1_000_000),
        ("100%", 1_000_000_000),
        ("0.0000001%", 1),
        ("1ppm", 1_000),
        ("7ppb", 7),
    ];
    for (text, expected) in table {
        assert_eq!(parts(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_bare_number_is_refused_with_the_units() {
    let error = span("100").unwrap_err();
    let text = "`100` has no unit: a time needs one of ns, us, µs, ms, s, min, h";
    assert_eq!(error.to_string(), text);
    assert!(matches!(rate("100"), Err(QuantityError::NoUnit { .. })));
    assert!(matches!(parts("0.1"), Err(QuantityError::NoUnit { .. })));
}

#[test]
fn a_malformed_number_is_refused() {
    for text in
        ["", "ms", "-5ms", "+5ms", ".5ms", "5.ms", "1.2.3ms", "1e3ms", "five", "٣ms", "1,5ms"]
    {
        let error = span(text).unwrap_err();
        let refused =
            matches!(error, QuantityError::NoNumber { .. } | QuantityError::UnknownUnit { .. });
        assert!(refused, "{text}: {error}");
    }
}

#[test]
fn an_unknown_unit_is_refused_by_name() {
    let error = span("5 msec").unwrap_err();
    let text = "`msec` in `5 msec` is not a unit of a time: use one of ns, us, µs, ms, s, min, h";
    assert_eq!(error.to_string(), text);
    for ambiguous in ["10mbps", "10MBit", "10m", "10Mb/s"] {
        assert!(matches!(rate(ambiguous), Err(QuantityError::UnknownUnit { .. })), "{ambiguous}");
    }
    assert!(matches!(bytes("64kb"), Err(QuantityError::UnknownUnit { .. })));
}

#[test]
fn a_value_between_two_base_units_is_refused() {
    for text in ["0.5ns", "0.0000000001s", "1.0000000001s"] {
        assert!(matches!(span(text), Err(QuantityError::Inexact { .. })), "{text}");
    }
    assert!(matches!(parts("0.00000001%"), Err(QuantityError::Inexact { .. })));
    assert!(matches!(bytes("0.0001KB"), Err(QuantityError::Inexact { .. })));
}

#[test]
fn a_value_far_below_the_base_unit_is_inexact_and_not_too_large() {
    let zeros = "0".repeat(50);
    for text in
        [format!("0.{zeros}1s"), format!("1.{}1h", &zeros[..37]), format!("12345678.{zeros}9ms")]
    {
        assert!(matches!(span(&text), Err(QuantityError::Inexact { .. })), "{text}");
    }
    let huge = format!("99999999999999999999.{zeros}1s");
    assert!(matches!(span(&huge), Err(QuantityError::TooLarge { .. })));
}

#[test]
fn a_number_that_does_not_fit_is_refused() {
    for text in ["18446744073709551616ns", "99999999999h", &format!("{}ns", "9".repeat(60))] {
        assert!(matches!(span(text), Err(QuantityError::TooLarge { .. })), "{text}");
    }
    assert!(matches!(rate("99999999999gbit"), Err(QuantityError::TooLarge { .. })));
    let error = parts("100.1%").unwrap_err().to_string();
    assert_eq!(error, "`100.1%` is too large for a probability: the most is 100%");
}

#[test]
fn a_rate_of_zero_is_refused() {
    let error = rate("0mbit").unwrap_err().to_string();
    assert!(error.starts_with("`0mbit` is zero: a rate must be more than zero"), "{error}");
}

#[test]
fn megabytes_of_nonsense_make_a_short_message() {
    let text = "x".repeat(1 << 20);
    assert!(span(&text).unwrap_err().to_string().len() < 200);
    let text = format!("5{}", "x".repeat(1 << 20));
    assert!(span(&text).unwrap_err().to_string().len() < 250);
}

#[test]
fn the_largest_unit_is_printed_that_needs_three_decimals_at_most() {
    assert_eq!(Span::from_nanos(1_500_000).to_string(), "1.5ms");
    assert_eq!(Span::from_secs(90).to_string(), "90s");
    assert_eq!(Span::from_secs(120).to_string(), "2min");
    assert_eq!(Span::ZERO.to_string(), "0ns");
    assert_eq!(Rate::from_bits_per_second(1_500_000_000).unwrap().to_string(), "1.5gbit");
    assert_eq!(Probability::from_parts_per_billion(1_234_500).unwrap().to_string(), "0.12345%");
    assert_eq!(Bytes(256_000).to_string(), "256KB");
    assert_eq!(format!("{:>8}", Packets(100)), "    100p");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_printed_value_parses_to_itself(
        value in prop_oneof![any::<u64>(), (0u64..1_000_000).prop_map(|n| n * 1_000_000_000)],
        parts in 0u32..=1_000_000_000,
    ) {
        let span = Span::from_nanos(value);
        prop_assert_eq!(span.to_string().parse::<Span>(), Ok(span));
        prop_assert_eq!(Bytes(value).to_string().parse::<Bytes>(), Ok(Bytes(value)));
        prop_assert_eq!(Packets(value).to_string().parse::<Packets>(), Ok(Packets(value)));
        if let Some(rate) = Rate::from_bits_per_second(value) {
            prop_assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate));
        }
        let probability = Probability::from_parts_per_billion(parts).unwrap();
        prop_assert_eq!(probability.to_string().parse::<Probability>(), Ok(probability));
    }

    #[test]
    fn a_value_written_as_json_is_read_back(value in any::<u64>()) {
        let span = Span::from_nanos(value);
        let json = serde_json::to_string(&span).unwrap();
        prop_assert_eq!(serde_json::from_str::<Span>(&json).unwrap(), span);
    }

    #[test]
    fn no_text_causes_a_panic(text in "[0-9.]{0,50} ?[a-zA-Z%µ/]{0,6}") {
        let _ = (span(&text), rate(&text), bytes(&text), parts(&text));
    }
}
