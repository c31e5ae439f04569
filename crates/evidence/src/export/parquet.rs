//! Parquet: the columns of CSV, numbers as INT64, names as dictionaries; without compression.
//!
//! Row groups are written as they fill. Layout:
//! <https://parquet.apache.org/docs/file-format/>.

mod column;
mod thrift;

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::rows::{RecordFormatter, columns};
use crate::{AttributedRecord, RecordedRun};
use column::{ParquetColumnBuffer, ParquetColumnChunk};
use thrift::Struct;

/// Rows that are held before they are written.
const GROUP_ROWS: usize = 1 << 16;

const MAGIC: &[u8] = b"PAR1";

/// Writes the records as a file of Parquet.
///
/// # Errors
/// Those of writing.
pub fn parquet<'a>(
    evidence: &RecordedRun,
    entries: impl Iterator<Item = &'a AttributedRecord>,
    out: &mut impl Write,
) -> io::Result<()> {
    in_groups(GROUP_ROWS, evidence, entries, out)
}

/// With `group_rows` rows in each row group but the last.
pub(super) fn in_groups<'a>(
    group_rows: usize,
    evidence: &RecordedRun,
    entries: impl Iterator<Item = &'a AttributedRecord>,
    out: &mut impl Write,
) -> io::Result<()> {
    let rows = RecordFormatter::new(evidence);
    let mut columns: Vec<ParquetColumnBuffer> =
        columns().into_iter().map(ParquetColumnBuffer::new).collect();
    let position: BTreeMap<&str, usize> =
        columns.iter().enumerate().map(|(at, column)| (column.name(), at)).collect();
    out.write_all(MAGIC)?;
    let (mut written, mut groups) = (MAGIC.len() as u64, Vec::new());
    let mut in_group = 0;
    for entry in entries {
        rows.fields(entry, &mut |name, value| {
            if let Some(at) = position.get(name) {
                columns[*at].push(value);
            }
        });
        in_group += 1;
        columns.iter_mut().for_each(|column| column.end_row(in_group));
        if in_group == group_rows {
            groups.push(group(&mut columns, in_group, &mut written, out)?);
            in_group = 0;
        }
    }
    if in_group > 0 {
        groups.push(group(&mut columns, in_group, &mut written, out)?);
    }
    let footer = footer(&columns, &groups);
    out.write_all(&footer)?;
    out.write_all(&u32::try_from(footer.len()).unwrap_or(u32::MAX).to_le_bytes())?;
    out.write_all(MAGIC)
}

/// A row group that has been written.
struct ParquetRowGroup {
    chunks: Vec<ParquetColumnChunk>,
    rows: usize,
}

fn group(
    columns: &mut [ParquetColumnBuffer],
    rows: usize,
    written: &mut u64,
    out: &mut impl Write,
) -> io::Result<ParquetRowGroup> {
    let mut chunks = Vec::with_capacity(columns.len());
    for column in columns {
        let (bytes, chunk) = column.take(rows, *written);
        out.write_all(&bytes)?;
        *written += bytes.len() as u64;
        chunks.push(chunk);
    }
    Ok(ParquetRowGroup { chunks, rows })
}

fn footer(columns: &[ParquetColumnBuffer], groups: &[ParquetRowGroup]) -> Vec<u8> {
    let rows: usize = groups.iter().map(|group| group.rows).sum();
    let mut file = Struct::new();
    file.int32(1, 2);
    let root = Struct::build(|root| {
        root.text(4, "records");
        root.int32(5, i64::try_from(columns.len()).unwrap_or(i64::MAX));
    });
    let schema = std::iter::once(root).chain(columns.iter().map(ParquetColumnBuffer::schema));
    file.structs(2, schema.collect());
    file.int64(3, rows as u64);
    let groups = groups.iter().map(|group| {
        Struct::build(|of| {
            let chunks = columns.iter().zip(&group.chunks).map(|(column, c)| column.metadata(c));
            of.structs(1, chunks.collect());
            of.int64(2, group.chunks.iter().map(|chunk| chunk.bytes).sum());
            of.int64(3, group.rows as u64);
        })
    });
    file.structs(4, groups.collect());
    file.text(6, "windtunnel");
    file.end()
}
