//! Ticks: threads that wake for a moment, one on each processor, so that the kernel looks again who
//! should run there.
//!
//! The packet loop's thread has short slices: when it wakes, it takes the processor from one that
//! has longer slices, unless the slice of that one ends even sooner (EEVDF, which compares
//! deadlines). The kernel notices that end when its clock ticks next, up to 4 ms later (`HZ=250`),
//! or when some thread wakes on that processor. In 2 of 100 wake-ups beside busy programs it is so.
//! A real-time thread needs no ticks, and so does one that finds an idle processor.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use windtunnel_sys::limits;

/// The threads. They end with it.
#[derive(Debug, Default)]
pub(super) struct ProcessorTickThreads {
    shared: Arc<TickThreadControl>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct TickThreadControl {
    state: AtomicU8,
    lock: Mutex<()>,
    changed: Condvar,
}

impl ProcessorTickThreads {
    /// One for each processor that the calling thread may use. Where a thread cannot be made, its
    /// processor has none.
    pub(super) fn begin() -> ProcessorTickThreads {
        let mut ticks = ProcessorTickThreads::default();
        for cpu in limits::cpus().unwrap_or_default() {
            let shared = Arc::clone(&ticks.shared);
            let tick = move || {
                // The processor may be gone meanwhile.
                if limits::set_cpus(&[cpu]).is_ok() {
                    shared.work();
                }
            };
            let made = std::thread::Builder::new().name("tick".to_owned()).spawn(tick);
            ticks.threads.extend(made);
        }
        ticks
    }

    /// Whether they wake.
    pub(super) fn set(&self, ticking: bool) {
        self.shared.set(if ticking { TICKING } else { RESTING });
    }
}

impl Drop for ProcessorTickThreads {
    fn drop(&mut self) {
        self.shared.set(ENDED);
        for thread in self.threads.drain(..) {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

impl TickThreadControl {
    fn set(&self, state: u8) {
        if self.state.load(Ordering::Relaxed) == state {
            return;
        }
        let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.store(state, Ordering::Relaxed);
        drop(guard);
        self.changed.notify_all();
    }

    fn work(&self) {
        loop {
            match self.state.load(Ordering::Relaxed) {
                ENDED => return,
                TICKING => std::thread::sleep(EVERY),
                _ => {
                    let guard = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
                    let rests = |_: &mut ()| self.state.load(Ordering::Relaxed) == RESTING;
                    drop(self.changed.wait_while(guard, rests));
                }
            }
        }
    }
}

const RESTING: u8 = 0;
const TICKING: u8 = 1;
const ENDED: u8 = 2;
/// A tick takes 2 µs of a processor.
const EVERY: Duration = Duration::from_micros(500);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_for_each_processor_and_all_end() {
        let ticks = ProcessorTickThreads::begin();
        assert_eq!(ticks.threads.len(), limits::cpus().unwrap().len());
        ticks.set(true);
        ticks.set(false);
        ticks.set(true);
        let shared = Arc::clone(&ticks.shared);
        drop(ticks);
        assert_eq!(Arc::strong_count(&shared), 1, "the threads have ended");
    }
}
