//! A BPF map of type array that is mapped into this process. Source: `BPF_F_MMAPABLE` in
//! Documentation/bpf/map_array.rst of Linux.
//!
//! Its values lie one after the other from the start of the mapping, each on a multiple of 8 bytes.
//! BPF programs write to it at any time, so that here it is read and written as atomic words.

use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags};

/// The mapped values of an array.
#[derive(Debug)]
pub struct BpfArray {
    /// INVARIANT: the start of a live mapping of `bytes` for reading and writing until drop.
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value, is only used by atomic words, and no thread has a part
// in it.
unsafe impl Send for BpfArray {}

impl BpfArray {
    /// Maps the values of a map of type `BPF_MAP_TYPE_ARRAY` that has the flag `BPF_F_MMAPABLE`.
    ///
    /// # Errors
    /// What mmap(2) says, also if the map is another or has fewer bytes.
    pub fn map(array: impl AsFd, bytes: usize) -> io::Result<BpfArray> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a place where nothing is mapped.
        let base = unsafe {
            rustix::mm::mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, array, 0)
        }?;
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at zero"))?;
        Ok(BpfArray { base, bytes })
    }

    /// The word at an offset in bytes.
    ///
    /// # Panics
    /// If the offset is no multiple of 8 within the mapping.
    #[must_use]
    #[inline]
    pub fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset < self.bytes, "offset {offset} of an array");
        // SAFETY: the offset is within the mapping, as checked above, with the seven bytes after
        // it: a mapping has whole pages.
        let word = unsafe { self.base.as_ptr().add(offset) };
        // SAFETY: mapped until drop, aligned as checked above, and only ever used atomically.
        unsafe { AtomicU64::from_ptr(word.cast()) }
    }
}

impl Drop for BpfArray {
    fn drop(&mut self) {
        // SAFETY: mapped in `map` with this length, and words do not outlive this value. An error
        // is not possible for such a range.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
