//! A mark for each process number, in memory that a process shares with those that it forks.

use std::io;
use std::sync::atomic::Ordering;

use rustix::process::Pid;

use crate::shared_words::SharedWords;

/// Marks of processes, which stay. What was never marked takes no memory.
#[derive(Debug)]
pub struct ProcessMarkTable {
    /// A bit for each number, which one pass finds without touching the memory of `began`.
    marked: SharedWords,
    /// When the last process that was marked began which had the number.
    began: SharedWords,
}

impl ProcessMarkTable {
    /// No process is marked.
    ///
    /// # Errors
    /// What mmap(2) says.
    pub fn new() -> io::Result<ProcessMarkTable> {
        Ok(ProcessMarkTable {
            marked: SharedWords::new(NUMBERS / BITS)?,
            began: SharedWords::new(NUMBERS)?,
        })
    }

    /// Marks a process that began then.
    pub fn set(&self, process: Pid, began: u64) {
        let number = process.as_raw_nonzero().get().unsigned_abs() as usize;
        // The kernel has no greater numbers.
        let Some(word) = self.began.get(number) else { return };
        word.fetch_max(began, Ordering::SeqCst);
        self.marked[number / BITS].fetch_or(1 << (number % BITS), Ordering::SeqCst);
    }

    /// All that are marked, with when they began.
    pub fn marked(&self) -> Vec<(Pid, u64)> {
        let words = self.marked.iter().enumerate();
        let words = words.map(|(at, word)| (at, word.load(Ordering::SeqCst)));
        let bits = words.filter(|(_, word)| *word != 0).flat_map(|(at, word)| {
            let set = (0..BITS).filter(move |bit| word & (1 << bit) != 0);
            set.map(move |bit| at * BITS + bit)
        });
        let began = |number: usize| self.began[number].load(Ordering::SeqCst);
        let marked = bits.filter_map(|number| {
            Some((Pid::from_raw(i32::try_from(number).ok()?)?, began(number)))
        });
        marked.collect()
    }
}

/// The most processes that a kernel numbers (`PID_MAX_LIMIT`).
const NUMBERS: usize = 1 << 22;
const BITS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_kept_for_each_process_by_itself() {
        let marks = ProcessMarkTable::new().unwrap();
        let processes = [1, 63, 64, 4_194_303].map(|number| Pid::from_raw(number).unwrap());
        processes.iter().zip(100..).for_each(|(process, began)| marks.set(*process, began));
        let expected: Vec<(Pid, u64)> = processes.into_iter().zip(100..).collect();
        assert_eq!(marks.marked(), expected);
        marks.set(Pid::from_raw(i32::MAX).unwrap(), 1);
        assert_eq!(marks.marked(), expected, "no kernel has that number");
    }

    #[test]
    fn a_number_that_another_process_has_now_is_marked_for_that_one() {
        let marks = ProcessMarkTable::new().unwrap();
        let number = Pid::from_raw(7).unwrap();
        marks.set(number, 100);
        marks.set(number, 200);
        marks.set(number, 150);
        assert_eq!(marks.marked(), [(number, 200)]);
    }
}
