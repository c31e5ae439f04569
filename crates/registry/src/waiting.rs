//! Work that waits for another machine, while its user sees that it does.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;
use std::{fs, io, panic};

/// Does some work in a thread, and calls `tick` again and again while that takes. The thread is gone when
/// this returns: what follows may fork.
///
/// # Errors
/// If no thread can be started.
pub(crate) fn shown<T: Send>(
    work: impl FnOnce() -> T + Send,
    tick: &mut dyn FnMut(),
) -> io::Result<T> {
    thread::scope(|scope| {
        let (end, ended) = channel::<()>();
        let own = move || {
            // Goes with the thread, also if the work panics.
            let _end = end;
            (fs::read_link("/proc/thread-self").ok(), work())
        };
        let worker = thread::Builder::new().name("registry".into()).spawn_scoped(scope, own)?;
        while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            tick();
        }
        Ok(joined(worker))
    })
}

/// What a thread has come to, when it is gone.
fn joined<T>(worker: ScopedJoinHandle<'_, (Option<PathBuf>, T)>) -> T {
    let (own, result) = worker.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked));
    let Some(own) = own else { return result };
    // The kernel wakes who joins before it takes the thread off the list, in which forks look for others.
    let own = Path::new("/proc").join(own);
    for _ in 0..LOOKS_MAX {
        if !own.exists() {
            break;
        }
        thread::sleep(LOOK);
    }
    result
}

/// How often it is shown that something is waited for.
const TICK: Duration = Duration::from_millis(500);
/// The end of a thread takes some microseconds of a processor, which others may have.
const LOOK: Duration = Duration::from_micros(100);
const LOOKS_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_long_is_shown_to_be_waited_for() {
        let (enough, is_enough) = channel();
        let mut ticks = 0;
        let work = move || is_enough.recv().is_ok();
        let mut tick = || {
            ticks += 1;
            if ticks == 2 {
                enough.send(()).unwrap();
            }
        };
        assert!(shown(work, &mut tick).unwrap());
        assert!(ticks >= 2, "{ticks}");
    }

    #[test]
    fn a_thread_is_gone_when_its_work_is_done() {
        for _ in 0..100 {
            let work = || fs::read_link("/proc/thread-self").unwrap();
            let own = shown(work, &mut || ()).unwrap();
            assert!(!Path::new("/proc").join(&own).exists(), "{own:?}");
        }
    }

    #[test]
    #[should_panic(expected = "as it is")]
    fn a_panic_is_passed_on() {
        let _ = shown(|| panic!("as it is"), &mut || ());
    }
}
