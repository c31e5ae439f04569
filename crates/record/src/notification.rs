//! The calls of programs that a preload library cannot enter: static ones, and those of Go.
//!
//! Such a program is started under a filter ([`windtunnel_sys::seccomp`]), and its calls on
//! descriptors wait until this thread has looked at them. Every call goes on unchanged. Its result
//! is not known then; but how far the socket's streams are is (`TCP_INFO`, `SIOCINQ`), exactly. So
//! each call has its begin and its offset, and its result is where its direction is when the same
//! thread, or another call in that direction, shows up next. When a call ended is never known.
//!
//! Nothing of the program is kept: a copy of its socket lives from when a call is shown until it
//! goes on, so that closing, ends of connections and ports are as without a recorder.
//!
//! What a call would do ([`call::InterceptedSystemCall`]), whose it is ([`process::SupervisedProcessTable`]) and how far a socket
//! is ([`SocketStreamPosition`]) serve the supervisor of a limit as well.
//!
//! The kernel refuses calls that nothing can look at any more (`ENOSYS`), so the thread lives as
//! long as the process: a [`CallSupervisionThread`] that is dropped leaves it, and [`CallSupervisionThread::finish`] is
//! for when the programs have ended. If looking panics, calls still go on, unseen.

pub mod call;
mod node;
pub mod process;
mod socket;
mod work;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use windtunnel_evidence::file::EventSource;
use windtunnel_model::NodeId;
use windtunnel_model::record::kind::RecordSource;
use windtunnel_sys::poll::{EpollSet, EventFd};

use crate::drain::Feed;
use crate::shelf::SourceRecordBuffer;
pub use socket::SocketStreamPosition;
use work::CallSupervisionWorker;

/// A thread that lets calls go on, and records them.
#[derive(Debug)]
pub struct CallSupervisionThread {
    stop: Arc<EventFd>,
    recording: Arc<AtomicBool>,
    findings: Arc<Mutex<CallSupervisionReport>>,
    thread: JoinHandle<()>,
}

/// What a [`CallSupervisionThread`] has done, and what it could not see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallSupervisionReport {
    /// Programs that were started under a filter.
    pub programs: u64,
    /// Filters under which programs live now: their calls need the thread.
    pub living: u64,
    /// Calls shown.
    pub shown: u64,
    /// Time that this took, from when the thread has seen a call until it goes on, in nanoseconds.
    pub spent_ns: u64,
    /// Programs of which calls are not seen: the node, the program, and why.
    pub unseen: Vec<(NodeId, String, String)>,
    /// Programs for which that list had no more room.
    pub unseen_more: u64,
    /// Calls that could not be looked at, and why the first could not.
    pub failed: u64,
    pub failure: Option<String>,
}

/// The instance of the source, beside that of the preload library.
pub const INSTANCE: u16 = 1;

/// Flows are numbered from here, as the preload library numbers its own from 1 for the same layer.
pub const FLOW_FIRST: u32 = 1 << 31;

impl CallSupervisionThread {
    /// Starts the thread, recording, with the sockets of
    /// `windtunnel_node::Node::supervise`; a feed for each node, with room for so many records.
    ///
    /// # Errors
    /// If the thread, or what wakes it, cannot be made.
    pub fn start(
        nodes: Vec<(NodeId, OwnedFd)>,
        room: usize,
    ) -> io::Result<(CallSupervisionThread, Vec<Box<dyn Feed>>)> {
        let mut feeds: Vec<Box<dyn Feed>> = Vec::new();
        let mut shelves = Vec::new();
        for (node, socket) in nodes {
            let (shelf, feed) = SourceRecordBuffer::new(
                EventSource::of_node(RecordSource::Calls, node.0, INSTANCE),
                room,
            );
            shelves.push((node, socket, shelf));
            feeds.push(Box::new(feed));
        }
        let stop = Arc::new(EventFd::open()?);
        let (recording, findings) = (Arc::new(AtomicBool::new(true)), Arc::default());
        let set = EpollSet::open()?;
        let work = CallSupervisionWorker::new(
            set,
            &stop,
            shelves,
            Arc::clone(&recording),
            Arc::clone(&findings),
        )?;
        let thread = std::thread::Builder::new().name("supervisor".to_owned());
        let thread = thread.spawn(move || work.run())?;
        Ok((CallSupervisionThread { stop, recording, findings, thread }, feeds))
    }

    /// Records from now on, or only lets calls go on.
    pub fn set_recording(&self, on: bool) {
        self.recording.store(on, Ordering::Relaxed);
    }

    /// What has been done so far.
    #[must_use]
    pub fn findings(&self) -> CallSupervisionReport {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends. The programs must have ended: the calls of those that have not will fail.
    #[must_use]
    pub fn finish(self) -> CallSupervisionReport {
        // The counter of an event cannot overflow by one.
        let _ = self.stop.raise();
        // A panic there has been printed.
        let _ = self.thread.join();
        self.findings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
