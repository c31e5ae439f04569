//! The reader's end of a BPF ring buffer. Source: Documentation/bpf/ringbuf.rst and
//! kernel/bpf/ringbuf.c of Linux.
//!
//! The map's first page holds the reader's position, its second the writers'; then come the entries,
//! mapped twice in a row, so that one that goes beyond the end can be read in one piece. Positions
//! only grow. An entry has a header of 8 bytes, of which the first four are its length and two bits.

use std::io;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rustix::mm::{MapFlags, ProtFlags};

/// A mapped ring buffer, of which this is the only reader.
#[derive(Debug)]
pub struct Ring {
    /// INVARIANT: the start of a live mapping of a page that can be written, until drop.
    reader: NonNull<u8>,
    /// INVARIANT: the start of a live mapping of `page + 2 * bytes` until drop.
    writers: NonNull<u8>,
    page: usize,
    /// A power of two.
    bytes: usize,
}

// SAFETY: the mappings belong to this value alone, and no thread has a part in them.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps the ring of a map of type `BPF_MAP_TYPE_RINGBUF` with so many bytes.
    ///
    /// # Errors
    /// `InvalidInput` if that is no power of two; what mmap(2) says, also if the map is another.
    pub fn map(map: impl AsFd, bytes: usize) -> io::Result<Ring> {
        // SAFETY: sysconf(3) takes a number and touches no memory.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).map_err(io::Error::other)?;
        if !bytes.is_power_of_two() || bytes < page {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{bytes} bytes")));
        }
        let both = ProtFlags::READ | ProtFlags::WRITE;
        let map_part = |length, protection, offset| {
            let (fd, flags) = (map.as_fd(), MapFlags::SHARED);
            // SAFETY: the kernel chooses a place where nothing is mapped.
            let base =
                unsafe { rustix::mm::mmap(ptr::null_mut(), length, protection, flags, fd, offset) };
            let base = base.map_err(io::Error::from)?;
            NonNull::new(base.cast::<u8>()).ok_or_else(|| io::Error::other("mapped at zero"))
        };
        let reader = map_part(page, both, 0)?;
        match map_part(page + 2 * bytes, ProtFlags::READ, page as u64) {
            Ok(writers) => Ok(Ring { reader, writers, page, bytes }),
            Err(error) => {
                // SAFETY: mapped above with this length, and used nowhere.
                let _ = unsafe { rustix::mm::munmap(reader.as_ptr().cast(), page) };
                Err(error)
            }
        }
    }

    /// Bytes of entries that wait, with their headers.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let written = self.written().load(Ordering::Acquire);
        written.wrapping_sub(self.position().load(Ordering::Relaxed))
    }

    /// Bytes of the ring.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reads the entries that are there now, up to one that is still written. Their place is free
    /// again afterwards.
    pub fn read(&mut self, mut each: impl FnMut(&[u8])) {
        let end = self.written().load(Ordering::Acquire);
        let mut at = self.position().load(Ordering::Relaxed);
        let mut freed = at;
        while at != end {
            let offset = at & (self.bytes - 1);
            let header = self.writers.as_ptr().wrapping_add(self.page + offset);
            // SAFETY: a header lies below `end`, within the mapping; writers align it to 8 bytes
            // and change its first word atomically.
            let word = unsafe { &*header.cast::<AtomicU32>() }.load(Ordering::Acquire);
            if word & BUSY != 0 {
                break;
            }
            let length = (word & !(BUSY | DISCARDED)) as usize;
            if word & DISCARDED == 0 && length <= self.bytes - HEADER_BYTES {
                // SAFETY: the entry is written (acquired above), and within the mapping, because
                // the entries are mapped twice. No writer changes it before the position passes it.
                each(unsafe { slice::from_raw_parts(header.wrapping_add(HEADER_BYTES), length) });
            }
            at = at.wrapping_add((length + HEADER_BYTES).next_multiple_of(8));
            if at.wrapping_sub(freed) > self.bytes / 16 {
                self.position().store(at, Ordering::Release);
                freed = at;
            }
        }
        self.position().store(at, Ordering::Release);
    }

    fn position(&self) -> &AtomicUsize {
        // SAFETY: the mapping is live and page-aligned, and begins with this word.
        unsafe { &*self.reader.as_ptr().cast() }
    }

    fn written(&self) -> &AtomicUsize {
        // SAFETY: the mapping is live and page-aligned, and begins with this word; loads only.
        unsafe { &*self.writers.as_ptr().cast() }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for (base, length) in [(self.reader, self.page), (self.writers, self.page + 2 * self.bytes)]
        {
            // SAFETY: mapped in `map` with this length; nothing refers to it any more. An error is
            // not possible for such a range.
            let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), length) };
        }
    }
}

/// Of the first word of an entry's header, as linux/bpf.h defines them.
const BUSY: u32 = 1 << 31;
const DISCARDED: u32 = 1 << 30;
const HEADER_BYTES: usize = 8;
