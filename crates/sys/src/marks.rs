//! A mark for each process number, in memory that a process shares with those that it forks.
//! Source: mmap(2).

use std::fmt;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags};
use rustix::process::Pid;

/// Marks of processes. What was never marked takes no memory.
pub struct Marks {
    /// INVARIANT: the start of a live mapping of `WORDS` words until drop.
    base: NonNull<AtomicU64>,
}

impl Marks {
    /// No process is marked.
    ///
    /// # Errors
    /// What mmap(2) says.
    pub fn new() -> io::Result<Marks> {
        let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let mapped = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), LENGTH, access, flags) }?;
        let base = NonNull::new(mapped.cast()).expect("mmap never maps address 0 unasked");
        Ok(Marks { base })
    }

    /// Marks a process, or takes its mark away.
    pub fn set(&self, process: Pid, marked: bool) {
        let number = process.as_raw_nonzero().get().unsigned_abs() as usize;
        // The kernel has no greater numbers.
        let Some(word) = self.words().get(number / BITS) else { return };
        let bit = 1 << (number % BITS);
        if marked {
            word.fetch_or(bit, Ordering::SeqCst);
        } else {
            word.fetch_and(!bit, Ordering::SeqCst);
        }
    }

    /// All that are marked.
    pub fn marked(&self) -> Vec<Pid> {
        let words = self.words().iter().enumerate();
        let words = words.map(|(at, word)| (at, word.load(Ordering::SeqCst)));
        let bits = words.filter(|(_, word)| *word != 0).flat_map(|(at, word)| {
            let set = (0..BITS).filter(move |bit| word & (1 << bit) != 0);
            set.map(move |bit| at * BITS + bit)
        });
        bits.filter_map(|number| Pid::from_raw(i32::try_from(number).ok()?)).collect()
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped until drop at the beginning of a page, and any bytes are such words.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), WORDS) }
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Marks").finish_non_exhaustive()
    }
}

// SAFETY: the mapping belongs to no thread, and all of it is accessed atomically.
unsafe impl Send for Marks {}
// SAFETY: as for `Send`.
unsafe impl Sync for Marks {}

impl Drop for Marks {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nothing that refers to it outlives
        // this value. An error could only mean that this is not a mapping, against the invariant.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), LENGTH) };
    }
}

/// The most processes that a kernel numbers (`PID_MAX_LIMIT`).
const NUMBERS: usize = 1 << 22;
const BITS: usize = 64;
const WORDS: usize = NUMBERS / BITS;
const LENGTH: usize = WORDS * size_of::<AtomicU64>();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_kept_for_each_process_by_itself() {
        let marks = Marks::new().unwrap();
        let processes = [1, 63, 64, 4_194_303].map(|number| Pid::from_raw(number).unwrap());
        processes.iter().for_each(|process| marks.set(*process, true));
        assert_eq!(marks.marked(), processes);
        marks.set(processes[1], false);
        marks.set(processes[3], false);
        assert_eq!(marks.marked(), [processes[0], processes[2]]);
        marks.set(Pid::from_raw(i32::MAX).unwrap(), true);
        assert_eq!(marks.marked().len(), 2);
    }
}
