//! A column of a row group: its values, and the pages that they become.

use std::collections::BTreeMap;

use super::thrift::{Struct, varint};
use crate::rows::{self, ExportFieldValue};

/// Values of the present row group.
#[derive(Debug)]
pub(super) struct ParquetColumnBuffer {
    of: rows::ExportColumn,
    /// By row: whether it has a value.
    present: Vec<bool>,
    numbers: Vec<i64>,
    /// By row that has a value: its name's number.
    names: Vec<u32>,
    dictionary: BTreeMap<String, u32>,
}

/// A column of a row group as it has been written.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParquetColumnChunk {
    dictionary_at: Option<u64>,
    data_at: u64,
    pub(super) bytes: u64,
    rows: usize,
}

// Numbers of Parquet's enumerations.
const TYPE_INT64: i64 = 2;
const TYPE_BYTE_ARRAY: i64 = 6;
const OPTIONAL: i64 = 1;
const UTF8: i64 = 0;
const PLAIN: i64 = 0;
const RLE: i64 = 3;
const RLE_DICTIONARY: i64 = 8;
const DATA_PAGE: i64 = 0;
const DICTIONARY_PAGE: i64 = 2;

impl ParquetColumnBuffer {
    pub(super) fn new(of: rows::ExportColumn) -> ParquetColumnBuffer {
        let (present, numbers, names) = (Vec::new(), Vec::new(), Vec::new());
        ParquetColumnBuffer { of, present, numbers, names, dictionary: BTreeMap::new() }
    }

    pub(super) fn name(&self) -> &'static str {
        self.of.name
    }

    /// The value of the present row.
    pub(super) fn push(&mut self, value: ExportFieldValue<'_>) {
        self.present.push(true);
        match value {
            ExportFieldValue::Number(number) => {
                self.numbers.push(i64::try_from(number).unwrap_or(i64::MAX));
            }
            ExportFieldValue::Signed(number) => self.numbers.push(number),
            ExportFieldValue::Text(text) => {
                let next = u32::try_from(self.dictionary.len()).unwrap_or(u32::MAX);
                let number = match self.dictionary.get(text) {
                    Some(number) => *number,
                    None => *self.dictionary.entry(text.to_owned()).or_insert(next),
                };
                self.names.push(number);
            }
        }
    }

    /// After that there are `rows` rows: the last one has no value unless it was given one.
    pub(super) fn end_row(&mut self, rows: usize) {
        self.present.resize(rows, false);
    }

    pub(super) fn schema(&self) -> Vec<u8> {
        Struct::build(|of| {
            of.int32(1, self.physical());
            of.int32(3, OPTIONAL);
            of.text(4, self.of.name);
            if self.of.is_text {
                of.int32(6, UTF8);
            }
        })
    }

    pub(super) fn metadata(&self, chunk: &ParquetColumnChunk) -> Vec<u8> {
        let encodings: &[i64] =
            if self.of.is_text { &[PLAIN, RLE, RLE_DICTIONARY] } else { &[PLAIN, RLE] };
        let metadata = Struct::build(|of| {
            of.int32(1, self.physical());
            of.int32s(2, encodings);
            of.texts(3, &[self.of.name]);
            of.int32(4, 0);
            of.int64(5, chunk.rows as u64);
            of.int64(6, chunk.bytes);
            of.int64(7, chunk.bytes);
            of.int64(9, chunk.data_at);
            if let Some(at) = chunk.dictionary_at {
                of.int64(11, at);
            }
        });
        Struct::build(|of| {
            of.int64(2, chunk.data_at);
            of.nested(3, &metadata);
        })
    }

    fn physical(&self) -> i64 {
        if self.of.is_text { TYPE_BYTE_ARRAY } else { TYPE_INT64 }
    }

    /// The pages of the values so far, which are to stand at `at`; the column is empty then.
    pub(super) fn take(&mut self, rows: usize, at: u64) -> (Vec<u8>, ParquetColumnChunk) {
        let mut bytes = Vec::new();
        let mut dictionary_at = None;
        let mut body = self.levels();
        let encoding = if self.of.is_text {
            dictionary_at = Some(at);
            bytes = self.dictionary_page();
            let width = width_of(self.dictionary.len());
            body.push(width);
            packed(&self.names, width, &mut body);
            RLE_DICTIONARY
        } else {
            body.extend(self.numbers.iter().flat_map(|number| number.to_le_bytes()));
            PLAIN
        };
        let data_at = at + bytes.len() as u64;
        bytes.extend(page(DATA_PAGE, &body, 5, |of| {
            of.int32(1, i64::try_from(rows).unwrap_or(i64::MAX));
            of.int32(2, encoding);
            of.int32(3, RLE);
            of.int32(4, RLE);
        }));
        self.present.clear();
        self.numbers.clear();
        self.names.clear();
        self.dictionary.clear();
        let chunk = ParquetColumnChunk { dictionary_at, data_at, bytes: bytes.len() as u64, rows };
        (bytes, chunk)
    }

    /// Which rows have a value, behind the length of that.
    fn levels(&self) -> Vec<u8> {
        let levels: Vec<u32> = self.present.iter().map(|present| u32::from(*present)).collect();
        let mut bytes = vec![0; 4];
        packed(&levels, 1, &mut bytes);
        let length = u32::try_from(bytes.len() - 4).unwrap_or(u32::MAX);
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    fn dictionary_page(&self) -> Vec<u8> {
        let mut names: Vec<(&u32, &String)> =
            self.dictionary.iter().map(|(name, number)| (number, name)).collect();
        names.sort_unstable();
        let mut body = Vec::new();
        for (_, name) in &names {
            body.extend(u32::try_from(name.len()).unwrap_or(u32::MAX).to_le_bytes());
            body.extend(name.as_bytes());
        }
        page(DICTIONARY_PAGE, &body, 7, |of| {
            of.int32(1, i64::try_from(names.len()).unwrap_or(i64::MAX));
            of.int32(2, PLAIN);
        })
    }
}

/// A page: its header, whose field `field` is `own`, and the body.
fn page(kind: i64, body: &[u8], field: u8, own: impl FnOnce(&mut Struct)) -> Vec<u8> {
    let length = i64::try_from(body.len()).unwrap_or(i64::MAX);
    let mut bytes = Struct::build(|of| {
        of.int32(1, kind);
        of.int32(2, length);
        of.int32(3, length);
        of.nested(field, &Struct::build(own));
    });
    bytes.extend(body);
    bytes
}

/// Bits that hold numbers below `count`; at least 1.
fn width_of(count: usize) -> u8 {
    let bits = usize::BITS - count.saturating_sub(1).leading_zeros();
    u8::try_from(bits.max(1)).unwrap_or(32)
}

/// Numbers of `width` bits in the hybrid of runs and packed groups: one run where all are the same,
/// else groups of eight.
fn packed(numbers: &[u32], width: u8, out: &mut Vec<u8>) {
    let Some(first) = numbers.first() else { return };
    if numbers.iter().all(|number| number == first) {
        varint(out, (numbers.len() as u64) << 1);
        out.extend(&first.to_le_bytes()[..usize::from(width.div_ceil(8))]);
        return;
    }
    varint(out, (numbers.len().div_ceil(8) as u64) << 1 | 1);
    let (mut bits, mut held) = (0u64, 0u32);
    let padding = numbers.len().next_multiple_of(8) - numbers.len();
    for number in numbers.iter().copied().chain(std::iter::repeat_n(0, padding)) {
        bits |= u64::from(number) << held;
        held += u32::from(width);
        while held >= 8 {
            out.push((bits & 0xff) as u8);
            bits >>= 8;
            held -= 8;
        }
    }
}
