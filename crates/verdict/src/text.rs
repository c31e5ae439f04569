//! Quantities as reports and messages have them.

use windtunnel_model::Span;

pub(crate) fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// A span with three significant digits: `84.2us`.
#[must_use]
pub fn rounded(span: Span) -> String {
    let nanos = span.as_nanos();
    let (unit, name) = match nanos {
        0..1_000 => return format!("{nanos}ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let (whole, tenth) = (nanos / unit, nanos % unit * 10 / unit);
    let hundredth = nanos % unit * 100 / unit % 10;
    match whole {
        0..10 => format!("{whole}.{tenth}{hundredth}{name}"),
        10..100 => format!("{whole}.{tenth}{name}"),
        _ => format!("{whole}{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_rounded_to_three_digits() {
        let shown = |nanos| rounded(Span::from_nanos(nanos));
        assert_eq!(shown(999), "999ns");
        assert_eq!(shown(84_240), "84.2us");
        assert_eq!(shown(1_005_000), "1.00ms");
        assert_eq!(shown(232_000_000), "232ms");
        assert_eq!(shown(61_000_000_000), "61.0s");
    }
}
