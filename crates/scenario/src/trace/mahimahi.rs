//! The format of mahimahi's link: on each line the millisecond of one delivery opportunity.

use windtunnel_model::trace::{DeliveryOpportunities, TraceColumn};

use super::syntax_error::TraceSyntaxError;
use crate::text::shorten;

/// The longest trace, in milliseconds: a year.
const LONGEST_MS: u64 = 366 * 24 * 3_600_000;

pub(super) fn parse(text: &str) -> Result<DeliveryOpportunities, TraceSyntaxError> {
    let mut trace =
        DeliveryOpportunities { delta_ms: TraceColumn::default(), count: TraceColumn::default() };
    let mut before = 0;
    let mut last_line = 1;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let at = millisecond(line, number)?;
        if at < before {
            let message = format!("`{at}` is earlier than the line before, {before}");
            let wrong = TraceSyntaxError::at(number, 1, line.trim().chars().count(), message);
            return Err(wrong.hint("the milliseconds of a trace do not decrease"));
        }
        match trace.count.0.last_mut() {
            Some(count) if at == before => *count += 1,
            _ => {
                trace.delta_ms.0.push(at - before);
                trace.count.0.push(1);
            }
        }
        (before, last_line) = (at, number);
    }
    if trace.count.0.is_empty() {
        return Err(TraceSyntaxError::at(1, 1, 1, "the trace is empty"));
    }
    if before == 0 {
        let wrong =
            TraceSyntaxError::at(last_line, 1, 1, "the trace lasts for no time: it ends at 0");
        return Err(wrong.hint("the last line is the time after which the trace repeats"));
    }
    Ok(trace)
}

fn millisecond(line: &str, number: usize) -> Result<u64, TraceSyntaxError> {
    let text = line.trim();
    let column = line.chars().take_while(|c| c.is_whitespace()).count() + 1;
    let wrong =
        |message: String| TraceSyntaxError::at(number, column, text.chars().count(), message);
    if text.is_empty() {
        return Err(wrong("an empty line: each line is a millisecond".to_owned()));
    }
    match text.parse::<u64>() {
        Ok(at) if text.bytes().all(|b| b.is_ascii_digit()) && at <= LONGEST_MS => Ok(at),
        Ok(_) => Err(wrong(format!("`{}` ms is more than a year", shorten(text)))),
        Err(_) => {
            let message = format!("`{}` is not a whole number of milliseconds", shorten(text));
            let table = number == 1 && text.contains("time");
            let hint = "a table is named by `trace: {file: …}` on the link, not by `rate`";
            Err(if table { wrong(message).hint(hint) } else { wrong(message) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_millisecond_are_counted_together() {
        let trace = parse("0\n0\n3\n7\n7\n7\n").expect("it is a trace");
        assert_eq!(trace.delta_ms.0, [0, 3, 4]);
        assert_eq!(trace.count.0, [2, 1, 3]);
        assert_eq!(parse("5\r\n5\r\n").expect("it is a trace").count.0, [2]);
    }

    #[test]
    fn a_malformed_trace_is_refused_with_its_place() {
        let place = |text: &str| parse(text).expect_err(text).place;
        assert_eq!((place("1\n 2x\n").line, place("1\n 2x\n").column), (2, 2));
        assert_eq!(place("1\n\n2\n").line, 2);
        assert_eq!(place("2\n1\n").line, 2);
        assert_eq!(place("0\n0\n").line, 2);
        assert_eq!(place("").line, 1);
        assert_eq!(place("-1\n").line, 1);
        assert_eq!(place("99999999999999999999\n").line, 1);
    }
}
