//! Tables over time: a header that names the columns, then a row for each time, values with units.

use std::fmt;
use std::str::FromStr;

use windtunnel_model::trace::{TraceColumn, TraceSeries};
use windtunnel_model::{Probability, QuantityError, Rate, Span};

use super::syntax_error::TraceSyntaxError;
use crate::text::{nearest, shorten};

/// The columns that a table may have.
const COLUMNS: [&str; 4] = ["time", "rate", "latency", "loss"];

/// A cell with the place where it stands.
#[derive(Debug, Clone, Copy)]
struct CsvCell<'t> {
    text: &'t str,
    line: usize,
    column: usize,
}

impl CsvCell<'_> {
    fn wrong(&self, message: impl Into<String>) -> TraceSyntaxError {
        TraceSyntaxError::at(self.line, self.column, self.text.chars().count(), message)
    }
}

pub(super) fn parse(text: &str) -> Result<TraceSeries, TraceSyntaxError> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let mut lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    let Some((number, header)) = lines.next() else {
        return Err(TraceSyntaxError::at(1, 1, 1, "the trace is empty").hint(HEADER_HINT));
    };
    let names = header_of(&cells(header, number))?;
    let mut columns: [Option<TraceColumn>; 4] = [None, None, None, None];
    for name in &names {
        columns[*name] = Some(TraceColumn::default());
    }
    for (number, line) in lines {
        let row = cells(line, number);
        if row.len() != names.len() {
            let message = format!("{} values, but the header names {}", row.len(), names.len());
            return Err(TraceSyntaxError::at(number, 1, line.chars().count(), message));
        }
        for (cell, name) in row.iter().zip(&names) {
            let value = value(cell, *name)?;
            let Some(TraceColumn(values)) = columns[*name].as_mut() else { continue };
            if let (0, Some(before)) = (*name, values.last().filter(|before| **before >= value)) {
                let before = Span::from_nanos(*before);
                return Err(cell.wrong(format!("`{}` is not later than {before}", cell.text)));
            }
            values.push(value);
        }
    }
    let [time, rate_bit_per_s, latency_ns, loss_ppb] = columns;
    let time_ns = time.unwrap_or_default();
    if time_ns.0.is_empty() {
        return Err(TraceSyntaxError::at(
            number,
            1,
            header.chars().count(),
            "no row follows the header",
        ));
    }
    Ok(TraceSeries { time_ns, rate_bit_per_s, latency_ns, loss_ppb })
}

/// The columns that a header names, as positions among the known.
fn header_of(cells: &[CsvCell<'_>]) -> Result<Vec<usize>, TraceSyntaxError> {
    let mut names = Vec::new();
    for cell in cells {
        let Some(name) = COLUMNS.iter().position(|known| *known == cell.text) else {
            return Err(unknown_column(cell));
        };
        if names.contains(&name) {
            return Err(cell.wrong(format!("the column `{}` is there twice", cell.text)));
        }
        names.push(name);
    }
    let first = CsvCell { text: COLUMNS[0], ..cells[0] };
    if !names.contains(&0) {
        return Err(first.wrong("the column `time` is missing").hint(HEADER_HINT));
    }
    if names.len() == 1 {
        return Err(first.wrong("no column beside `time`").hint(HEADER_HINT));
    }
    Ok(names)
}

fn unknown_column(cell: &CsvCell<'_>) -> TraceSyntaxError {
    let wrong = cell.wrong(format!("`{}` is not a column of a trace", shorten(cell.text)));
    if cell.line == 1 && !cell.text.is_empty() && cell.text.bytes().all(|b| b.is_ascii_digit()) {
        return wrong.hint("a file of milliseconds is named by `rate: {trace: …}` on the link");
    }
    match nearest(cell.text, COLUMNS) {
        Some(near) => wrong.hint(format!("did you mean `{near}`?")),
        None => wrong.hint(HEADER_HINT),
    }
}

fn cells(line: &str, number: usize) -> Vec<CsvCell<'_>> {
    let mut column = 1;
    let cells = line.split(',').map(|part| {
        let blanks = part.chars().take_while(|c| c.is_whitespace()).count();
        let cell = CsvCell { text: part.trim(), line: number, column: column + blanks };
        column += part.chars().count() + 1;
        cell
    });
    cells.collect()
}

fn value(cell: &CsvCell<'_>, column: usize) -> Result<u64, TraceSyntaxError> {
    match column {
        0 => quantity::<Span>(cell).map(Span::as_nanos),
        1 => {
            let ours = rate_of_tool(cell.text);
            match ours.as_deref().unwrap_or(cell.text).parse::<Rate>() {
                Ok(rate) => Ok(rate.bits_per_second()),
                // An outage: the rates of a trace may be zero, those of a file are not.
                Err(QuantityError::Zero { .. }) => Ok(0),
                Err(_) => quantity::<Rate>(cell).map(Rate::bits_per_second),
            }
        }
        2 => quantity::<Span>(cell).map(Span::as_nanos),
        _ => quantity::<Probability>(cell).map(|loss| u64::from(loss.parts_per_billion())),
    }
}

/// A rate with a unit of bits as other tools write it, such as `2.2Mbps`, in our words; `None`: it has
/// none. `import` reads the same.
fn rate_of_tool(text: &str) -> Option<String> {
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(at);
    let size = unit.strip_suffix("bps").or_else(|| unit.strip_suffix("b/s"))?;
    let size = size.to_ascii_lowercase();
    ["", "k", "m", "g", "t"].contains(&&*size).then(|| format!("{}{size}bit", number.trim_end()))
}

fn quantity<T>(cell: &CsvCell<'_>) -> Result<T, TraceSyntaxError>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    cell.text.parse().map_err(|error: T::Err| cell.wrong(error.to_string()))
}

const HEADER_HINT: &str =
    "the first line names the columns: `time`, and some of `rate`, `latency`, `loss`";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_in_any_order_and_some_may_be_missing() {
        let text = "# measured\nlatency, time ,loss\n40ms,0s,0.1%\n\n50ms, 500ms ,0%\n";
        let table = parse(text).expect("it is a table");
        assert_eq!(table.time_ns.0, [0, 500_000_000]);
        assert_eq!(table.latency_ns, Some(TraceColumn(vec![40_000_000, 50_000_000])));
        assert_eq!(table.loss_ppb, Some(TraceColumn(vec![1_000_000, 0])));
        assert_eq!(table.rate_bit_per_s, None);
        let outage = parse("time,rate\n0s,10mbit\n1s,0mbit\n").expect("it is a table");
        assert_eq!(outage.rate_bit_per_s, Some(TraceColumn(vec![10_000_000, 0])));
    }

    #[test]
    fn rates_may_be_written_as_other_tools_do() {
        let text = "time,rate\n0s,2.2Mbps\n1s,512 kbps\n2s,1Gb/s\n3s,0Mbps\n4s,9bps\n5s,1Kbps\n";
        let table = parse(text).expect("it is a table");
        let bits = vec![2_200_000, 512_000, 1_000_000_000, 0, 9, 1_000];
        assert_eq!(table.rate_bit_per_s, Some(TraceColumn(bits)));
        // Bits or bytes? `import` does not guess either.
        for ambiguous in ["2MBPS", "2MB", "2xbps", "Mbps"] {
            let wrong = parse(&format!("time,rate\n0s,{ambiguous}\n")).expect_err(ambiguous);
            assert_eq!((wrong.place.line, wrong.place.column), (2, 4));
        }
    }

    #[test]
    fn a_malformed_table_is_refused_with_its_place() {
        let place = |text: &str| {
            let place = parse(text).expect_err(text).place;
            (place.line, place.column, place.length)
        };
        assert_eq!(place("time,rat\n"), (1, 6, 3));
        assert_eq!(place("time,rate\n0s,10mbit\n1s, 10\n"), (3, 5, 2));
        assert_eq!(place("time,rate\n1s,1mbit\n1s,2mbit\n"), (3, 1, 2));
        assert_eq!(place("time,rate\n1s\n"), (2, 1, 2));
        assert_eq!(place("time,rate\n"), (1, 1, 9));
        assert_eq!(place("time\n"), (1, 1, 4));
        assert_eq!(place("rate\n"), (1, 1, 4));
        assert_eq!(place("time,time\n"), (1, 6, 4));
        assert_eq!(place(""), (1, 1, 1));
    }
}
