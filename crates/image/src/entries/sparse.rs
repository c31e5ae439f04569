//! Maps of sparse files: which parts have data.

use std::io;

use tar::GnuSparseHeader;

use super::wrong;

/// A part of a file that has data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SparseFileExtent {
    pub(crate) at: u64,
    pub(crate) length: u64,
}

/// The parts of a file, as the archive says.
#[derive(Debug)]
pub(super) struct SparseFileMap {
    size: u64,
    extents: Vec<SparseFileExtent>,
}

impl SparseFileMap {
    /// Of a file that has so many bytes with its holes.
    pub(super) fn new(size: u64) -> SparseFileMap {
        SparseFileMap { size, extents: Vec::new() }
    }

    pub(super) fn push(&mut self, at: u64, length: u64) -> io::Result<()> {
        if self.extents.len() >= EXTENTS_MAX {
            return Err(wrong("a sparse file with more than a million parts"));
        }
        self.extents.push(SparseFileExtent { at, length });
        Ok(())
    }

    /// Adds those of a header, up to the first that is empty.
    pub(super) fn extend(&mut self, slots: &[GnuSparseHeader]) -> io::Result<()> {
        let used = slots.iter().take_while(|slot| !slot.is_empty());
        used.into_iter().try_for_each(|slot| self.push(slot.offset()?, slot.length()?))
    }

    /// The parts and the size, where the parts follow each other within the file and are all of the
    /// `data` that the archive has.
    pub(super) fn checked(self, data: u64) -> io::Result<(Vec<SparseFileExtent>, u64)> {
        let (mut end, mut sum) = (0_u64, 0_u64);
        for extent in &self.extents {
            let next = extent.at.checked_add(extent.length).filter(|next| *next <= self.size);
            match next {
                Some(next) if extent.at >= end => end = next,
                _ => return Err(wrong("a sparse file whose parts do not follow each other")),
            }
            sum += extent.length;
        }
        if sum != data {
            return Err(wrong("a sparse file whose parts are not its data"));
        }
        Ok((self.extents, self.size))
    }
}

/// GNU tar makes one for each run of blocks; this is 4 GiB of single ones.
const EXTENTS_MAX: usize = 1 << 20;
