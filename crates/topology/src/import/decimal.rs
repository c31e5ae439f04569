//! Decimal numbers of other tools, as whole numbers of a smaller unit, without floating point.

use windtunnel_model::{Probability, Rate, Span};

/// `text` in units of 1/`scale`, to the nearest whole one; `None` if it is not a number, negative,
/// or too large.
pub(super) fn scaled(text: &str, scale: u64) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_prefix('+').unwrap_or(text);
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    // Beyond this many digits nothing changes the result: the unit is no finer than 10^-12.
    let kept = &digits[..digits.len().min(24)];
    let cut = i32::try_from(digits.len() - kept.len()).ok()?;
    let decimals = i32::try_from(fraction.len()).ok()?;
    let exponent = exponent.checked_sub(decimals)?.checked_add(cut)?;
    shift(kept.parse().ok()?, scale, exponent)
}

/// `digits · scale · 10^exponent`, rounded to the nearest.
fn shift(digits: u128, scale: u64, exponent: i32) -> Option<u64> {
    let wide = match exponent {
        0.. => digits
            .checked_mul(10_u128.checked_pow(exponent.unsigned_abs())?)?
            .checked_mul(scale.into())?,
        _ => {
            // 24 digits and a scale below 10^14 fit in 38 digits.
            let product = digits.checked_mul(scale.into())?;
            match 10_u128.checked_pow(exponent.unsigned_abs()) {
                Some(divisor) => product.checked_add(divisor / 2)? / divisor,
                None => 0,
            }
        }
    };
    u64::try_from(wide).ok()
}

/// A time: a number and a unit, or a bare number of `bare` nanoseconds.
pub(super) fn time(text: &str, bare: Option<u64>) -> Option<Span> {
    let (number, unit) = split(text);
    let scale = match unit {
        "" => bare?,
        "ns" | "nanosecond" | "nanoseconds" => 1,
        "us" | "µs" | "μs" | "microsecond" | "microseconds" => 1_000,
        "ms" | "millisecond" | "milliseconds" => 1_000_000,
        "s" | "sec" | "secs" | "second" | "seconds" => 1_000_000_000,
        "m" | "min" | "mins" | "minute" | "minutes" => 60_000_000_000,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3_600_000_000_000,
        _ => return None,
    };
    scaled(number, scale).map(Span::from_nanos)
}

/// A rate: a number and a unit of bits, or a bare number of `bare` bit/s. Zero is none.
pub(super) fn rate(text: &str, bare: Option<u64>) -> Option<Rate> {
    let (number, unit) = split(text);
    let unit = unit.to_ascii_lowercase();
    let scale = match unit.trim_end_matches("/s").trim_end_matches("ps").trim_end_matches("it") {
        "" if unit.is_empty() => bare?,
        "b" => 1,
        "kb" | "k" => 1_000,
        "kib" => 1 << 10,
        "mb" | "m" => 1_000_000,
        "mib" => 1 << 20,
        "gb" | "g" => 1_000_000_000,
        "gib" => 1 << 30,
        "tb" | "t" => 1_000_000_000_000,
        "tib" => 1 << 40,
        _ => return None,
    };
    scaled(number, scale).and_then(Rate::from_bits_per_second)
}

/// A probability from 0 to 1.
pub(super) fn probability(text: &str) -> Option<Probability> {
    let parts = scaled(text, 1_000_000_000)?;
    Probability::from_parts_per_billion(u32::try_from(parts).ok()?)
}

/// The number and what stands behind it.
pub(super) fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    // An `e` belongs to the number only where an exponent follows.
    let number = |(at, c): &(usize, char)| {
        let exponent =
            || text[at + 1..].starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c));
        let after_e = || *at > 0 && text[..*at].ends_with(['e', 'E']);
        !(c.is_ascii_digit()
            || *c == '.'
            || ("eE".contains(*c) && *at > 0 && exponent())
            || ("+-".contains(*c) && (*at == 0 || after_e())))
    };
    let end = text.char_indices().find(number).map_or(text.len(), |(at, _)| at);
    (&text[..end], text[end..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_scaled_to_the_nearest_unit() {
        let cases = [
            ("284.78622436523", 1_000_000, Some(284_786_224)),
            ("10000000000.0", 1, Some(10_000_000_000)),
            ("2.5e-05", 1_000_000_000, Some(25_000)),
            ("1E3", 1, Some(1_000)),
            (".5", 10, Some(5)),
            ("0.49999", 1, Some(0)),
            ("0.5", 1, Some(1)),
            ("0.0000000000000000000000000000000000000000000001", 1_000_000, Some(0)),
            ("99999999999999999999999999", 1, None),
            ("1e400", 1, None),
            ("1e-400", 1, Some(0)),
            ("-1", 1, None),
            ("", 1, None),
            (".", 1, None),
            ("1.2.3", 1, None),
            ("nan", 1, None),
        ];
        for (text, scale, value) in cases {
            assert_eq!(scaled(text, scale), value, "{text}");
        }
    }

    #[test]
    fn times_and_rates_are_read_as_their_tools_write_them() {
        assert_eq!(time("50 ms", None), Some(Span::from_millis(50)));
        assert_eq!(time("1.5", Some(1_000_000)), Some(Span::from_micros(1_500)));
        assert_eq!(time("2e-3 s", None), Some(Span::from_millis(2)));
        assert_eq!(time("50", None), None);
        let bits = |text| rate(text, None).map(Rate::bits_per_second);
        assert_eq!(bits("100 Mbit"), Some(100_000_000));
        assert_eq!(bits("1 Gibit"), Some(1 << 30));
        assert_eq!(bits("10Mbps"), Some(10_000_000));
        assert_eq!(bits("2.5 Gbps"), Some(2_500_000_000));
        assert_eq!(bits("155 Mb/s"), Some(155_000_000));
        assert_eq!(bits("512kbps"), Some(512_000));
        assert_eq!(bits("0 Mbit"), None);
        assert_eq!(bits("Peering"), None);
        assert_eq!(bits("10"), None);
    }
}
