//! Numbers in memory that a process shares with those that it forks. Source: mmap(2).

use std::fmt;
use std::io;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags};

/// Numbers, 0 at first. What was never written takes no memory.
pub struct SharedWords {
    /// INVARIANT: the start of a live mapping of `count` words until drop.
    base: NonNull<AtomicU64>,
    count: usize,
}

impl SharedWords {
    /// So many numbers.
    ///
    /// # Errors
    /// What mmap(2) says: `EINVAL` for none.
    pub fn new(count: usize) -> io::Result<SharedWords> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        let length = count * size_of::<AtomicU64>();
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let mapped = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), length, access, flags) }?;
        let base = NonNull::new(mapped.cast()).expect("mmap never maps address 0 unasked");
        Ok(SharedWords { base, count })
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: mapped until drop at the beginning of a page, and any bytes are such words.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.count) }
    }
}

impl fmt::Debug for SharedWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedWords").field("count", &self.count).finish_non_exhaustive()
    }
}

// SAFETY: the mapping belongs to no thread, and all of it is accessed atomically.
unsafe impl Send for SharedWords {}
// SAFETY: as for `Send`.
unsafe impl Sync for SharedWords {}

impl Drop for SharedWords {
    fn drop(&mut self) {
        let length = self.count * size_of::<AtomicU64>();
        // SAFETY: the mapping was made with this length, and nothing that refers to it outlives
        // this value. An error could only mean that this is not a mapping, against the invariant.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), length) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn words_are_zero_until_they_are_written() {
        let words = SharedWords::new(1000).unwrap();
        words[999].store(7, Ordering::Relaxed);
        assert_eq!((words.len(), words[0].load(Ordering::Relaxed)), (1000, 0));
        assert_eq!(words[999].load(Ordering::Relaxed), 7);
        assert!(SharedWords::new(0).is_err());
    }
}
