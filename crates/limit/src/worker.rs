//! A thread of a node's init that works for its programs, such as one that delivers their packets.
//! Its processor time is theirs, and it pauses while they are stopped.

use std::sync::atomic::{AtomicBool, Ordering};

use windtunnel_sys::limits;
use windtunnel_sys::poll::{self, EventFd, PollFd, PollFlags};
use windtunnel_sys::process::Pid;

/// What the thread shares with the duty cycle.
#[derive(Debug)]
pub struct PausableThread {
    thread: Pid,
    paused: AtomicBool,
    /// Raised when it may go on.
    resumed: EventFd,
}

impl PausableThread {
    /// The calling thread.
    ///
    /// # Errors
    /// If there is no descriptor left.
    pub fn of_this_thread() -> std::io::Result<PausableThread> {
        let (thread, resumed) = (limits::current_thread(), EventFd::open()?);
        Ok(PausableThread { thread, paused: AtomicBool::new(false), resumed })
    }

    /// Waits as long as the programs are stopped. To be called by the thread, between two small
    /// pieces of work.
    pub fn wait_while_paused(&self) {
        while self.paused.load(Ordering::Acquire) {
            // Interrupted, or raised before: it looks again.
            let _ = poll::wait(&mut [PollFd::new(&self.resumed, PollFlags::IN)], None);
            let _ = self.resumed.clear();
        }
    }

    /// The programs are stopped, or go on.
    pub(crate) fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Release);
        if !paused {
            // It fails only if it is raised already.
            let _ = self.resumed.raise();
        }
    }

    /// Nanoseconds of processor time that the thread has used.
    pub(crate) fn used_ns(&self) -> u64 {
        limits::schedule_of(self.thread).map_or(0, |schedule| schedule.run_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_worker_pauses_until_it_may_go_on_and_its_time_is_known() {
        let (send, receive) = channel();
        let (go, went) = channel();
        let thread = std::thread::spawn(move || {
            let worker = Arc::new(PausableThread::of_this_thread().unwrap());
            worker.pause(true);
            send.send(Arc::clone(&worker)).unwrap();
            worker.wait_while_paused();
            let computed = (0..1_000_000_u64).fold(1, |sum, it| std::hint::black_box(sum ^ it));
            go.send(computed).unwrap();
        });
        let worker = receive.recv().unwrap();
        assert!(went.try_recv().is_err());
        worker.pause(false);
        went.recv().unwrap();
        assert!(worker.used_ns() > 0 || thread.is_finished());
        thread.join().unwrap();
    }
}
