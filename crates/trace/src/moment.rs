//! Times of a run as people read them.

/// A time after the run began, in seconds: `12.345`.
///
/// It is cut to milliseconds, as a clock shows it, and so are all times of a run wherever they are
/// shown: what comes first is never shown as the later. Files have the nanoseconds.
#[must_use]
pub fn seconds(nanos: u64) -> String {
    let millis = nanos / 1_000_000;
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_cut_to_milliseconds() {
        let cases = [
            (0, "0.000"),
            (999_999, "0.000"),
            (62_999_999_999, "62.999"),
            (63_000_000_000, "63.000"),
        ];
        for (nanos, shown) in cases {
            assert_eq!(seconds(nanos), shown);
        }
        assert_eq!(seconds(u64::MAX), "18446744073.709");
    }
}
