//! Records of extended headers (POSIX.1-2017, pax): `LENGTH KEY=VALUE`, a newline behind each.

use std::io::{self, Read};

use super::sparse::SparseFileMap;
use super::{TarEntryReader, UnixTimestamp, wrong};

/// The records before an entry.
#[derive(Debug, Default)]
pub(super) struct PaxRecords {
    all: Vec<(String, Vec<u8>)>,
}

impl PaxRecords {
    /// Adds those of a header.
    pub(super) fn extend(&mut self, mut text: &[u8]) -> io::Result<()> {
        let malformed = || wrong("a malformed extended header");
        while !text.is_empty() {
            let blank = text.iter().take(LENGTH_DIGITS_MAX + 1).position(|byte| *byte == b' ');
            let blank = blank.ok_or_else(malformed)?;
            let length = std::str::from_utf8(&text[..blank]).ok().and_then(|it| it.parse().ok());
            let length: usize = length.ok_or_else(malformed)?;
            let record = text.get(blank + 1..length).and_then(|it| it.strip_suffix(b"\n"));
            let record = record.ok_or_else(malformed)?;
            let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(malformed)?;
            // What is not UTF-8 is none that we know.
            if let Ok(key) = std::str::from_utf8(&record[..equals]) {
                self.all.push((key.to_owned(), record[equals + 1..].to_vec()));
            }
            text = &text[length..];
        }
        Ok(())
    }

    /// The last value of a key; an empty one takes it back.
    fn value(&self, key: &str) -> Option<&[u8]> {
        let found = self.all.iter().rev().find(|(other, _)| other == key);
        found.map(|(_, value)| &value[..]).filter(|value| !value.is_empty())
    }

    fn text(&self, key: &str) -> Option<&str> {
        std::str::from_utf8(self.value(key)?).ok()
    }

    fn number(&self, key: &str) -> Option<u64> {
        self.text(key)?.parse().ok()
    }

    /// Of a sparse file, the entry itself is called otherwise.
    pub(super) fn name(&self) -> Option<&[u8]> {
        self.value("GNU.sparse.name").or_else(|| self.value("path"))
    }

    pub(super) fn link(&self) -> Option<&[u8]> {
        self.value("linkpath")
    }

    /// Bytes of data.
    pub(super) fn size(&self) -> Option<u64> {
        self.number("size")
    }

    pub(super) fn uid(&self) -> Option<u64> {
        self.number("uid")
    }

    pub(super) fn gid(&self) -> Option<u64> {
        self.number("gid")
    }

    /// `-1.5` is half a second before `-1`.
    pub(super) fn modified(&self) -> Option<UnixTimestamp> {
        let text = self.text("mtime")?;
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let seconds: i64 = whole.parse().ok()?;
        let digits: String = part.chars().chain("000000000".chars()).take(9).collect();
        let nanoseconds: u32 = digits.parse().ok()?;
        if nanoseconds > 0 && whole.starts_with('-') {
            return Some(UnixTimestamp {
                seconds: seconds.checked_sub(1)?,
                nanoseconds: 1_000_000_000 - nanoseconds,
            });
        }
        Some(UnixTimestamp { seconds, nanoseconds })
    }

    pub(super) fn extended(&self) -> Vec<(String, Vec<u8>)> {
        let own = |(key, value): &(String, Vec<u8>)| {
            Some((key.strip_prefix("SCHILY.xattr.")?.to_owned(), value.clone()))
        };
        self.all.iter().filter_map(own).collect()
    }

    /// The map of a sparse file, if it is one: in its records (formats 0.0 and 0.1), or at the
    /// beginning of its data (1.0), of which it is taken.
    pub(super) fn map<R: Read>(
        &self,
        data: &mut TarEntryReader<R>,
    ) -> io::Result<Option<SparseFileMap>> {
        let version = (self.text("GNU.sparse.major"), self.text("GNU.sparse.minor"));
        let size = self.number("GNU.sparse.size").or_else(|| self.number("GNU.sparse.realsize"));
        let size = || size.ok_or_else(|| wrong("a sparse file whose size is not said"));
        match version {
            (Some("1"), Some("0")) => {
                let mut map = SparseFileMap::new(size()?);
                read_map(data, &mut map)?;
                Ok(Some(map))
            }
            (Some("0"), Some("0" | "1")) | (None, None) => match self.map_in_records()? {
                None => Ok(None),
                Some(numbers) => {
                    let mut map = SparseFileMap::new(size()?);
                    numbers.chunks_exact(2).try_for_each(|pair| map.push(pair[0], pair[1]))?;
                    Ok(Some(map))
                }
            },
            _ => Err(wrong("a sparse file of an unknown format")),
        }
    }

    /// Offsets and lengths in turn: one list (0.1), or a record each (0.0).
    fn map_in_records(&self) -> io::Result<Option<Vec<u64>>> {
        let malformed = || wrong("a malformed map of a sparse file");
        let number = |text: &str| text.parse::<u64>().map_err(|_| malformed());
        let numbers: Vec<u64> = match self.text("GNU.sparse.map") {
            Some(list) => list.split(',').map(number).collect::<io::Result<_>>()?,
            None => {
                let mut numbers = Vec::new();
                for (key, value) in &self.all {
                    let is_length = match key.as_str() {
                        "GNU.sparse.offset" => false,
                        "GNU.sparse.numbytes" => true,
                        _ => continue,
                    };
                    if is_length == numbers.len().is_multiple_of(2) {
                        return Err(malformed());
                    }
                    numbers.push(number(std::str::from_utf8(value).map_err(|_| malformed())?)?);
                }
                numbers
            }
        };
        let parts = self.number("GNU.sparse.numblocks");
        if numbers.is_empty() {
            // A file that is one hole has no part.
            return Ok((parts == Some(0)).then_some(numbers));
        }
        let expected = parts.and_then(|parts| parts.checked_mul(2));
        if !numbers.len().is_multiple_of(2) || expected.is_some_and(|it| it != numbers.len() as u64)
        {
            return Err(malformed());
        }
        Ok(Some(numbers))
    }
}

/// Lines of decimal numbers: how many parts, then the offset and the length of each. The data begins
/// with the next block.
fn read_map<R: Read>(data: &mut TarEntryReader<R>, map: &mut SparseFileMap) -> io::Result<()> {
    let mut lines = SparseMapLineReader { data, block: Vec::new(), at: 0 };
    for _ in 0..lines.number()? {
        let (at, length) = (lines.number()?, lines.number()?);
        map.push(at, length)?;
    }
    Ok(())
}

struct SparseMapLineReader<'a, R> {
    data: &'a mut TarEntryReader<R>,
    block: Vec<u8>,
    at: usize,
}

impl<R: Read> SparseMapLineReader<'_, R> {
    fn number(&mut self) -> io::Result<u64> {
        let malformed = || wrong("a malformed map of a sparse file");
        let mut number: u64 = 0;
        for digits in 0..=LENGTH_DIGITS_MAX {
            match self.byte()? {
                b'\n' if digits > 0 => return Ok(number),
                byte @ b'0'..=b'9' => {
                    let next = number
                        .checked_mul(10)
                        .and_then(|it| it.checked_add(u64::from(byte - b'0')));
                    number = next.ok_or_else(malformed)?;
                }
                _ => break,
            }
        }
        Err(malformed())
    }

    fn byte(&mut self) -> io::Result<u8> {
        if self.at == self.block.len() {
            self.block.resize(512, 0);
            let mut filled = 0;
            while filled < self.block.len() {
                match self.data.read(&mut self.block[filled..])? {
                    0 => return Err(wrong("a malformed map of a sparse file")),
                    read => filled += read,
                }
            }
            self.at = 0;
        }
        self.at += 1;
        Ok(self.block[self.at - 1])
    }
}

/// Of a number of 64 bits.
const LENGTH_DIGITS_MAX: usize = 20;
