//! A file that is read as it grows.

use windtunnel_model::record::{BYTES, EventRecord};

use super::reader::{RecordFileCursor, split};
use super::{FileError, RecordFileElement, RecordFileHeader, RecordFileReader};

/// Takes the bytes of a file in pieces of any size.
#[derive(Debug, Default)]
pub struct RecordStreamDecoder {
    header: Option<(RecordFileHeader, usize)>,
    place: RecordFileCursor,
    /// What is no whole header or record yet.
    rest: Vec<u8>,
}

impl RecordStreamDecoder {
    /// Takes the next bytes of the file, and hands `each` the items that are whole now. Files of
    /// one member share a `reader`, one after the other.
    ///
    /// # Errors
    /// If the file is none of records.
    pub fn push(
        &mut self,
        bytes: &[u8],
        reader: &mut RecordFileReader,
        mut each: impl FnMut(&RecordFileHeader, RecordFileElement),
    ) -> Result<(), FileError> {
        self.rest.extend(bytes);
        if self.header.is_none() {
            if !has_header(&self.rest) {
                return Ok(());
            }
            let (header, stride, body) = split(&self.rest)?;
            let end = self.rest.len() - body.len();
            self.header = Some((header, stride));
            self.rest.drain(..end);
        }
        let Some((header, stride)) = &self.header else { return Ok(()) };
        let records = self.rest.chunks_exact(*stride);
        let left = records.remainder().len();
        for bytes in records {
            let Some(bytes) = bytes.first_chunk::<BYTES>() else { break };
            reader.take(&mut self.place, EventRecord::from_bytes(bytes), |item| each(header, item));
        }
        self.rest.drain(..self.rest.len() - left);
        Ok(())
    }
}

/// Whether so much of a file is there that its header can be read, or is known to be none.
#[must_use]
pub fn has_header(bytes: &[u8]) -> bool {
    let Some(end) = bytes.get(20..).and_then(|bytes| bytes.first_chunk()) else { return false };
    !bytes.starts_with(&super::MAGIC) || bytes.len() >= u32::from_le_bytes(*end) as usize
}
