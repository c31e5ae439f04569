//! Thrift's compact protocol, as far as Parquet's metadata needs it.

/// A struct that is being written; fields come in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

const INT32: u8 = 5;
const INT64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Struct {
    pub(super) fn new() -> Struct {
        Struct::default()
    }

    /// The bytes of a struct with the fields that `fill` writes.
    pub(super) fn build(fill: impl FnOnce(&mut Struct)) -> Vec<u8> {
        let mut of = Struct::new();
        fill(&mut of);
        of.end()
    }

    pub(super) fn int32(&mut self, field: u8, value: i64) {
        self.header(field, INT32);
        varint(&mut self.bytes, zigzag(value));
    }

    pub(super) fn int64(&mut self, field: u8, value: u64) {
        self.header(field, INT64);
        varint(&mut self.bytes, zigzag(i64::try_from(value).unwrap_or(i64::MAX)));
    }

    pub(super) fn text(&mut self, field: u8, text: &str) {
        self.header(field, BINARY);
        put_text(&mut self.bytes, text);
    }

    /// A field that is a struct, as [`end`](Struct::end) gave it.
    pub(super) fn nested(&mut self, field: u8, bytes: &[u8]) {
        self.header(field, STRUCT);
        self.bytes.extend(bytes);
    }

    pub(super) fn structs(&mut self, field: u8, items: Vec<Vec<u8>>) {
        self.list(field, STRUCT, items.len());
        items.into_iter().for_each(|item| self.bytes.extend(item));
    }

    pub(super) fn int32s(&mut self, field: u8, items: &[i64]) {
        self.list(field, INT32, items.len());
        items.iter().for_each(|item| varint(&mut self.bytes, zigzag(*item)));
    }

    pub(super) fn texts(&mut self, field: u8, items: &[&str]) {
        self.list(field, BINARY, items.len());
        items.iter().for_each(|item| put_text(&mut self.bytes, item));
    }

    /// Ends the struct.
    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    fn header(&mut self, field: u8, kind: u8) {
        self.bytes.push((field - self.last) << 4 | kind);
        self.last = field;
    }

    fn list(&mut self, field: u8, kind: u8, items: usize) {
        self.header(field, LIST);
        match u8::try_from(items) {
            Ok(items) if items < 15 => self.bytes.push(items << 4 | kind),
            _ => {
                self.bytes.push(0xf0 | kind);
                varint(&mut self.bytes, items as u64);
            }
        }
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    varint(bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
}

/// Seven bits a byte, the lowest first.
pub(super) fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push((value & 0x7f) as u8);
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63).cast_unsigned()
}
