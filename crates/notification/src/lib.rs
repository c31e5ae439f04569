//! Calls of programs that wait for an answer, under a seccomp filter ([`windtunnel_sys::seccomp`]).
//!
//! **Promises:** one thread owns the listeners of all programs that are handed to it, until the last
//! of these has ended. Each call that is shown goes to a [`CallWatcher`], and is answered as that
//! decides: it goes on, fails, or is held for a while. A call that is held delays no other. Where
//! looking at a call fails, or panics, the call goes on.
//!
//! **Refuses:** to do a call for a program, or to change what one does; to know what it is watched for.
//!
//! Listeners come by *doors*: sockets at which a program hands over its own, as
//! [`SeccompListenerHandover`](windtunnel_sys::seccomp::SeccompListenerHandover) says, before it runs.
//!
//! The kernel refuses calls that nothing can answer any more (`ENOSYS`), so the thread has to live as
//! long as the programs: a [`NotificationThread`] that is dropped leaves it.
//!
//! | module | what it knows |
//! | --- | --- |
//! | [`call`] | what a call would do |
//! | [`position`] | how far the streams of a socket are |
//! | [`process`] | the processes whose calls are shown: their descriptors and their memory |
//! | [`tcp_info`] | what the kernel says of one connection |
//! | [`watcher`] | what is asked about calls, and what it may answer |
//! | `held` | calls that wait for their time |
//! | `work` | the thread: which listener has a call |

pub mod call;
mod held;
pub mod position;
pub mod process;
pub mod tcp_info;
pub mod watcher;
mod work;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use windtunnel_sys::poll::EventFd;
use windtunnel_sys::seccomp::SeccompListener;

use watcher::CallWatcher;
use work::NotificationLoop;

/// The thread that answers calls, and who is asked about them.
#[derive(Debug)]
pub struct NotificationThread<W> {
    stop: EventFd,
    /// Filters under which programs live.
    living: Arc<AtomicU64>,
    thread: JoinHandle<W>,
}

impl<W: CallWatcher> NotificationThread<W> {
    /// Starts the thread. Listeners come by these doors, which are numbered as they are given.
    ///
    /// # Errors
    /// If the thread, or what wakes it, cannot be made.
    pub fn start(
        watcher: W,
        doors: impl IntoIterator<Item = OwnedFd>,
    ) -> io::Result<NotificationThread<W>> {
        let stop = EventFd::open()?;
        let mut work = NotificationLoop::new(watcher)?;
        work.end_by(&stop)?;
        for (number, socket) in doors.into_iter().enumerate() {
            work.open_door(number, socket)?;
        }
        let living = work.living();
        let thread = std::thread::Builder::new().name("supervisor".to_owned());
        let thread = thread.spawn(move || work.run())?;
        Ok(NotificationThread { stop, living, thread })
    }

    /// Filters under which programs live now: their calls need the thread.
    #[must_use]
    pub fn living(&self) -> u64 {
        self.living.load(Ordering::Acquire)
    }

    /// Ends: calls of programs that have not ended will fail, unless another process has a copy of
    /// their listener. Returns the watcher; `None` if the thread has panicked.
    #[must_use]
    pub fn finish(self) -> Option<W> {
        // The counter of an event cannot overflow by one.
        let _ = self.stop.raise();
        // A panic there has been printed.
        self.thread.join().ok()
    }
}

/// Answers calls in the calling thread, until all programs of these listeners have ended.
///
/// # Errors
/// If nothing can be waited for.
pub fn serve<W: CallWatcher>(
    watcher: W,
    listeners: impl IntoIterator<Item = SeccompListener>,
) -> io::Result<W> {
    let mut work = NotificationLoop::new(watcher)?;
    for listener in listeners {
        // One that cannot be waited for is none.
        let _ = work.add_listener(0, listener);
    }
    Ok(work.run())
}
