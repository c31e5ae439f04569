//! The entries of a layer's tar file, each with all that the headers before it say.
//!
//! The library `tar` knows the fields of a header; this knows what stands around it, as layers have
//! it. Values of PAX records are taken by their length, because a capability is binary and may have a
//! newline inside. Of a sparse file, the parts that have data are known, in each of the four formats
//! that GNU tar writes: holes cost neither time nor room. What a header may say is bounded.
//!
//! Sources: POSIX.1-2017, pax, "pax Interchange Format"; GNU tar manual, "Storing Sparse Files".

mod pax;
mod sparse;

use std::io::{self, Read};

use tar::{EntryType, Header};

use pax::PaxRecords;
pub(crate) use sparse::SparseFileExtent;

/// What is left of a tar file.
pub(crate) struct TarEntryReader<R> {
    from: R,
    /// Bytes of the last entry's data that have not been read.
    data: u64,
    /// What fills its last block.
    padding: u64,
}

/// An entry, but for its data.
#[derive(Debug)]
pub(crate) struct TarEntryHeader {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: EntryType,
    /// Where a link leads.
    pub(crate) link: Vec<u8>,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    pub(crate) mode: u32,
    pub(crate) modified: UnixTimestamp,
    /// Extended attributes.
    pub(crate) extended: Vec<(String, Vec<u8>)>,
    /// Bytes of a file, with its holes.
    pub(crate) size: u64,
    /// The parts of a file that have data, in the order of the data.
    pub(crate) extents: Vec<SparseFileExtent>,
}

/// Since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UnixTimestamp {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

impl<R: Read> TarEntryReader<R> {
    pub(crate) fn new(from: R) -> Self {
        TarEntryReader { from, data: 0, padding: 0 }
    }

    /// The next entry; what has not been read of the last one's data is passed over.
    pub(crate) fn next(&mut self) -> io::Result<Option<TarEntryHeader>> {
        let mut before = TarExtensionHeaders::default();
        loop {
            self.skip()?;
            let Some(header) = self.header()? else { return Ok(None) };
            self.have(header.entry_size()?)?;
            match header.entry_type() {
                EntryType::XHeader => before.records.extend(&self.text()?)?,
                EntryType::GNULongName => before.name = Some(until_zero(self.text()?)),
                EntryType::GNULongLink => before.link = Some(until_zero(self.text()?)),
                // As Docker and Go have it: `git archive` writes a comment there.
                EntryType::XGlobalHeader => {}
                _ => return self.member(&header, before).map(Some),
            }
        }
    }

    /// The next bytes of the last entry's data; 0: there are no more.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.data).unwrap_or(usize::MAX).min(buffer.len());
        if most == 0 {
            return Ok(0);
        }
        match self.from.read(&mut buffer[..most])? {
            0 => Err(ended()),
            read => {
                self.data -= read as u64;
                Ok(read)
            }
        }
    }

    fn member(
        &mut self,
        header: &Header,
        before: TarExtensionHeaders,
    ) -> io::Result<TarEntryHeader> {
        let TarExtensionHeaders { records, name, link } = before;
        let mut kind = header.entry_type();
        let name = records.name().map(<[u8]>::to_vec).or(name);
        let name = name.unwrap_or_else(|| header.path_bytes().into_owned());
        if header.as_bytes()[KIND_AT] == 0 && name.ends_with(b"/") {
            // Before POSIX had a letter for folders.
            kind = EntryType::Directory;
        }
        let size = if has_data(kind) { records.size().unwrap_or(header.entry_size()?) } else { 0 };
        self.have(size)?;
        let map = match kind {
            EntryType::GNUSparse => Some(self.old_map(header)?),
            _ if is_file(kind) => records.map(self)?,
            _ => None,
        };
        let (extents, size) = match map {
            Some(map) => map.checked(self.data)?,
            None => (vec![SparseFileExtent { at: 0, length: size }], size),
        };
        let link = records.link().map(<[u8]>::to_vec).or(link);
        let link = link.or_else(|| Some(header.link_name_bytes()?.into_owned()));
        Ok(TarEntryHeader {
            kind,
            link: link.unwrap_or_default(),
            uid: records.uid().map_or_else(|| header.uid(), Ok)?,
            gid: records.gid().map_or_else(|| header.gid(), Ok)?,
            mode: header.mode()? & 0o7777,
            modified: match records.modified() {
                Some(time) => time,
                None => UnixTimestamp {
                    seconds: i64::try_from(header.mtime()?).unwrap_or(0),
                    nanoseconds: 0,
                },
            },
            extended: records.extended(),
            name,
            size,
            extents,
        })
    }

    /// The map of a sparse file in the format that has no records: the rest of it comes in blocks
    /// between the header and the data.
    fn old_map(&mut self, header: &Header) -> io::Result<sparse::SparseFileMap> {
        let header = header.as_gnu().ok_or_else(|| wrong("a sparse file without GNU's header"))?;
        let mut map = sparse::SparseFileMap::new(header.real_size()?);
        map.extend(&header.sparse)?;
        let mut more = header.is_extended();
        while more {
            let mut block = tar::GnuExtSparseHeader::new();
            self.from.read_exact(block.as_mut_bytes()).map_err(|_| ended())?;
            map.extend(block.sparse())?;
            more = block.is_extended();
        }
        Ok(map)
    }

    /// The next header; `None` at the end.
    fn header(&mut self) -> io::Result<Option<Header>> {
        let mut header = Header::new_old();
        let bytes = header.as_mut_bytes();
        let mut filled = 0;
        while filled < bytes.len() {
            match self.from.read(&mut bytes[filled..]) {
                Ok(0) if filled == 0 => return Ok(None),
                Ok(0) => return Err(ended()),
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        let sum = |at: usize, byte: u8| u32::from(if CHECKSUM.contains(&at) { b' ' } else { byte });
        let sum = bytes.iter().enumerate().map(|(at, byte)| sum(at, *byte)).sum::<u32>();
        if header.cksum()? != sum {
            return Err(wrong("a header whose sum is another one than it says"));
        }
        Ok(Some(header))
    }

    /// From here on so many bytes are data.
    fn have(&mut self, bytes: u64) -> io::Result<()> {
        let whole = bytes.checked_next_multiple_of(BLOCK_BYTES);
        let whole = whole.ok_or_else(|| wrong("an entry that is larger than any file"))?;
        (self.data, self.padding) = (bytes, whole - bytes);
        Ok(())
    }

    fn skip(&mut self) -> io::Result<()> {
        let rest = self.data.saturating_add(self.padding);
        (self.data, self.padding) = (0, 0);
        match io::copy(&mut (&mut self.from).take(rest), &mut io::sink())? {
            skipped if skipped == rest => Ok(()),
            _ => Err(ended()),
        }
    }

    /// All data, where it belongs to the next header.
    fn text(&mut self) -> io::Result<Vec<u8>> {
        if self.data > TEXT_BYTES_MAX {
            let why = format!("a header of {} bytes, which may have 1 MiB", self.data);
            return Err(wrong(&why));
        }
        let mut text = Vec::new();
        (&mut self.from).take(self.data).read_to_end(&mut text)?;
        if (text.len() as u64) < self.data {
            return Err(ended());
        }
        self.data = 0;
        Ok(text)
    }
}

/// What headers say of the one that follows them.
#[derive(Default)]
struct TarExtensionHeaders {
    records: PaxRecords,
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

/// Whether it is a file, sparse or not.
pub(crate) fn is_file(kind: EntryType) -> bool {
    matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse)
}

/// Links and folders may name a size, of which nothing follows.
fn has_data(kind: EntryType) -> bool {
    !matches!(
        kind,
        EntryType::Link
            | EntryType::Symlink
            | EntryType::Char
            | EntryType::Block
            | EntryType::Directory
            | EntryType::Fifo
    )
}

fn until_zero(mut text: Vec<u8>) -> Vec<u8> {
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    text.truncate(end);
    text
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it has {what}"))
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it ends too early")
}

const BLOCK_BYTES: u64 = 512;
/// Where a header has its own sum, and its kind.
const CHECKSUM: std::ops::Range<usize> = 148..156;
const KIND_AT: usize = 156;
/// What Go's reader takes, which Docker and Podman use.
const TEXT_BYTES_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests;
