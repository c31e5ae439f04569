//! The programs of a limit that the preload library cannot enter: static ones, and those of Go.
//!
//! Such a program runs under the filter by which recording sees its calls
//! ([`windtunnel_sys::seccomp`]). A thread gets each call before the kernel does it, and lets it go
//! on, unchanged, once its bytes may move. It never sleeps for one call: what waits is kept by its
//! time, and other calls go on meanwhile.
//!
//! As a call comes before its result is known, the bytes that it can move are claimed: all that a
//! call sends that may block, no more than the socket has room for of one that must not, and what
//! there is to receive. How far a stream of TCP is shows exactly at the next call on it, and the
//! difference is charged or given back then. What is no TCP has no such position: a datagram is
//! taken to be sent, and a call that would wait for one is let go when it has come.
//!
//! | module | what it knows |
//! | --- | --- |
//! | `judge` | whether a call may go on that names where it sends to |
//! | `transfer` | what a call would move, and through which descriptor |
//! | `look` | whether a call goes on, and when; what becomes of those that are tried again |
//! | `sockets` | how far streams are, and what they were let do |
//! | `waits` | calls that wait, by their time |
//! | `edges` | which sockets programs watch by edges |
//! | `retries` | calls that failed with `EAGAIN` and are to be tried again |
//! | `work` | the thread |

mod edges;
mod judge;
mod look;
mod retries;
mod sockets;
mod transfer;
mod waits;
mod work;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

use windtunnel_limit::SeccompCallLedger;
use windtunnel_sys::limited::MappedPacingRegion;
use windtunnel_sys::poll::{EpollSet, EventFd, Timer};
use windtunnel_sys::unix;

pub(super) use judge::DestinationPolicy;
pub use judge::RefusedDestinations;
use look::CallInspector;
use work::CallLimiterLoop;

/// The thread, which the calls of programs need: it has to live as long as they do.
#[derive(Debug)]
pub(super) struct CallLimiterThread {
    stop: Arc<EventFd>,
    /// The end at which the command hands over its listener.
    socket: OwnedFd,
    /// Filters under which programs live.
    living: Arc<AtomicUsize>,
    thread: JoinHandle<RefusedDestinations>,
}

/// What calls are held to.
#[derive(Debug)]
pub(super) struct CallLimiterSettings {
    /// What judges where programs send to, if that is limited.
    pub(super) judge: Option<DestinationPolicy>,
    /// Whether bytes are limited.
    pub(super) moves: bool,
    /// Where a keeper finds what is not answered, of programs that ran already.
    pub(super) ledger: Option<SeccompCallLedger>,
}

impl CallLimiterThread {
    /// Starts the thread. Preload libraries, or a keeper, hand over listeners at `door`.
    pub(super) fn start(
        region: MappedPacingRegion,
        door: Option<OwnedFd>,
        terms: CallLimiterSettings,
    ) -> io::Result<CallLimiterThread> {
        let (ours, socket) = unix::seqpacket_pair()?;
        let stop = Arc::new(EventFd::open()?);
        let (set, timer) = (EpollSet::open()?, Timer::open()?);
        let doors = [ours].into_iter().chain(door).collect();
        let living = Arc::new(AtomicUsize::new(0));
        let of_thread = Arc::clone(&living);
        let work = CallLimiterLoop::new(
            set,
            timer,
            &stop,
            CallInspector::new(region),
            terms,
            doors,
            of_thread,
        )?;
        let thread = std::thread::Builder::new().name("supervisor".to_owned());
        let thread = thread.spawn(move || work.run())?;
        Ok(CallLimiterThread { stop, socket, living, thread })
    }

    /// Whether programs live under a filter.
    pub(super) fn has_programs(&self) -> bool {
        self.living.load(Ordering::Acquire) > 0
    }

    /// Where the command hands over its listener.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Ends. Calls of programs that are left will fail (`ENOSYS`), but for those
    /// that a keeper has. Returns what was refused.
    pub(super) fn finish(self) -> RefusedDestinations {
        // The counter of an event cannot overflow by one.
        let _ = self.stop.raise();
        // A panic there has been printed.
        self.thread.join().unwrap_or_default()
    }
}
