//! An object for each record, one a line, with the fields that it has.

use std::io::{self, Write};

use crate::rows::{ExportFieldValue, RecordFormatter};
use crate::{AttributedRecord, RecordedRun};

/// Writes the records as JSON lines.
///
/// # Errors
/// Those of writing.
pub fn json_lines<'a>(
    evidence: &RecordedRun,
    entries: impl Iterator<Item = &'a AttributedRecord>,
    out: &mut impl Write,
) -> io::Result<()> {
    let rows = RecordFormatter::new(evidence);
    let mut line = Vec::new();
    for entry in entries {
        line.clear();
        json_line(&rows, entry, &mut line);
        out.write_all(&line)?;
    }
    Ok(())
}

/// Adds a record's line.
pub fn json_line(rows: &RecordFormatter<'_>, entry: &AttributedRecord, line: &mut Vec<u8>) {
    let mut separator = b'{';
    rows.fields(entry, &mut |name, value| {
        line.push(separator);
        separator = b',';
        line.push(b'"');
        line.extend(name.as_bytes());
        line.extend(b"\":");
        put(value, line);
    });
    line.extend(b"}\n");
}

/// Writing to memory cannot fail.
fn put(value: ExportFieldValue<'_>, line: &mut Vec<u8>) {
    let _ = match value {
        ExportFieldValue::Number(number) => write!(line, "{number}"),
        ExportFieldValue::Signed(number) => write!(line, "{number}"),
        ExportFieldValue::Text(text) => serde_json::to_writer(line, text).map_err(io::Error::from),
    };
}
