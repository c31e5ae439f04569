//! The region of a limit ([`windtunnel_budget::pacing::PacingRegion`]) in a file that programs share.
//! Source: mmap(2), futex(2).
//!
//! What another process writes to it can spoil the limit and its counts, but nothing else: all of it
//! is atomic words. One that makes the file shorter ends all that use it (SIGBUS).

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::ptr::{self, NonNull};

use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::futex;
use windtunnel_budget::pacing::PacingRegion;

/// A mapped region.
pub struct MappedPacingRegion {
    /// INVARIANT: the start of a live mapping of a region's size until drop.
    base: NonNull<PacingRegion>,
}

impl MappedPacingRegion {
    /// Zeroed memory of a file, of which nothing is kept: [`PacingRegion::begin`] makes it a region.
    ///
    /// # Errors
    /// What ftruncate(2) and mmap(2) say.
    pub fn create_in(file: &File) -> io::Result<MappedPacingRegion> {
        file.set_len(0)?;
        file.set_len(size_of::<PacingRegion>() as u64)?;
        MappedPacingRegion::map(file)
    }

    /// The region that another process made.
    ///
    /// # Errors
    /// `InvalidData` if this is no region of this version; what fstat(2) and mmap(2) say.
    pub fn open(file: &File) -> io::Result<MappedPacingRegion> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "the file is not of a limit");
        if file.metadata()?.len() < size_of::<PacingRegion>() as u64 {
            return Err(invalid());
        }
        let mapped = MappedPacingRegion::map(file)?;
        if mapped.is_valid() { Ok(mapped) } else { Err(invalid()) }
    }

    /// Wakes all that wait, after the rates have changed.
    ///
    /// # Errors
    /// What futex(2) says.
    pub fn wake(&self) -> io::Result<()> {
        futex::wake(&self.generation, futex::Flags::empty(), i32::MAX.cast_unsigned())?;
        Ok(())
    }

    fn map(file: &File) -> io::Result<MappedPacingRegion> {
        let (length, flags) = (size_of::<PacingRegion>(), ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let mapped =
            unsafe { rustix::mm::mmap(ptr::null_mut(), length, flags, MapFlags::SHARED, file, 0) }?;
        let base = NonNull::new(mapped.cast()).expect("mmap never maps address 0 unasked");
        Ok(MappedPacingRegion { base })
    }
}

impl Deref for MappedPacingRegion {
    type Target = PacingRegion;

    fn deref(&self) -> &PacingRegion {
        // SAFETY: mapped until drop at the beginning of a page, and any bytes are a region.
        unsafe { self.base.as_ref() }
    }
}

impl fmt::Debug for MappedPacingRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limited").finish_non_exhaustive()
    }
}

// SAFETY: the mapping belongs to no thread, and all of it is accessed atomically.
unsafe impl Send for MappedPacingRegion {}
// SAFETY: as for `Send`.
unsafe impl Sync for MappedPacingRegion {}

impl Drop for MappedPacingRegion {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nothing that refers to it outlives
        // this value. An error could only mean that this is not a mapping, against the invariant.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), size_of::<PacingRegion>()) };
    }
}
