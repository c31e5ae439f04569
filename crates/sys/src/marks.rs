//! A mark for each process number, in memory that a process shares with those that it forks.

use std::io;
use std::sync::atomic::Ordering;

use rustix::process::Pid;

use crate::shared_words::SharedWords;

/// Marks of processes. What was never marked takes no memory.
#[derive(Debug)]
pub struct Marks(SharedWords);

impl Marks {
    /// No process is marked.
    ///
    /// # Errors
    /// What mmap(2) says.
    pub fn new() -> io::Result<Marks> {
        SharedWords::new(NUMBERS / BITS).map(Marks)
    }

    /// Marks a process, or takes its mark away.
    pub fn set(&self, process: Pid, marked: bool) {
        let number = process.as_raw_nonzero().get().unsigned_abs() as usize;
        // The kernel has no greater numbers.
        let Some(word) = self.0.get(number / BITS) else { return };
        let bit = 1 << (number % BITS);
        if marked {
            word.fetch_or(bit, Ordering::SeqCst);
        } else {
            word.fetch_and(!bit, Ordering::SeqCst);
        }
    }

    /// All that are marked.
    pub fn marked(&self) -> Vec<Pid> {
        let words = self.0.iter().enumerate();
        let words = words.map(|(at, word)| (at, word.load(Ordering::SeqCst)));
        let bits = words.filter(|(_, word)| *word != 0).flat_map(|(at, word)| {
            let set = (0..BITS).filter(move |bit| word & (1 << bit) != 0);
            set.map(move |bit| at * BITS + bit)
        });
        bits.filter_map(|number| Pid::from_raw(i32::try_from(number).ok()?)).collect()
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
