//! A line for each record, a column for each field of any kind; RFC 4180, with line feeds.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::rows::{ExportFieldValue, RecordFormatter, columns};
use crate::{AttributedRecord, RecordedRun};

/// Writes the records as CSV, behind a line of headings.
///
/// # Errors
/// Those of writing.
pub fn csv<'a>(
    evidence: &RecordedRun,
    entries: impl Iterator<Item = &'a AttributedRecord>,
    out: &mut impl Write,
) -> io::Result<()> {
    let columns = columns();
    let position: BTreeMap<&str, usize> =
        columns.iter().enumerate().map(|(at, column)| (column.name, at)).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    writeln!(out, "{}", names.join(","))?;
    let rows = RecordFormatter::new(evidence);
    let mut cells: Vec<Option<ExportFieldValue<'_>>> = vec![None; columns.len()];
    for entry in entries {
        cells.fill(None);
        rows.fields(entry, &mut |name, value| {
            if let Some(at) = position.get(name) {
                cells[*at] = Some(value);
            }
        });
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                out.write_all(b",")?;
            }
            put(*cell, out)?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn put(cell: Option<ExportFieldValue<'_>>, out: &mut impl Write) -> io::Result<()> {
    match cell {
        None => Ok(()),
        Some(ExportFieldValue::Number(number)) => write!(out, "{number}"),
        Some(ExportFieldValue::Signed(number)) => write!(out, "{number}"),
        Some(ExportFieldValue::Text(text)) if text.contains([',', '"', '\n', '\r']) => {
            write!(out, "\"{}\"", text.replace('"', "\"\""))
        }
        Some(ExportFieldValue::Text(text)) => out.write_all(text.as_bytes()),
    }
}
