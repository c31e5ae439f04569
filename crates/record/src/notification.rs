//! The calls of programs that a preload library cannot enter: static ones, and those of Go.
//!
//! Such a program is started under a filter ([`windtunnel_sys::seccomp`]), and its calls on
//! descriptors wait until the thread of [`windtunnel_notification`] has shown them here. Every call
//! goes on unchanged. Its result is not known then; but how far the socket's streams are is
//! (`TCP_INFO`, `SIOCINQ`), exactly. So each call has its begin and its offset, and its result is
//! where its direction is when the same thread, or another call in that direction, shows up next.
//! When a call ended is never known.
//!
//! Nothing of the program is kept: a copy of its socket lives from when a call is shown until it
//! goes on, so that closing, ends of connections and ports are as without a recorder.
//!
//! If looking at a call panics, calls still go on, unseen.

mod node;
mod socket;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use windtunnel_evidence::file::EventSource;
use windtunnel_model::NodeId;
use windtunnel_model::record::kind::RecordSource;
use windtunnel_notification::NotificationThread;
use windtunnel_notification::watcher::{CallAnswer, CallWatcher, WaitingCall};
use windtunnel_sys::clock;

use crate::drain::RecordFeed;
use crate::shelf::SourceRecordBuffer;
use node::SupervisedNode;

/// Records calls of programs under a filter, while their thread lets them go on.
#[derive(Debug)]
pub struct CallRecorder {
    recording: Arc<AtomicBool>,
    thread: NotificationThread<CallRecordingWatcher>,
}

/// What a [`CallRecorder`] has done, and what it could not see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallRecordingReport {
    /// Programs that were started under a filter.
    pub programs: u64,
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

impl CallRecorder {
    /// Starts the thread, recording, with the sockets of
    /// `windtunnel_node::RunningNode::supervise`; a feed for each node, with room for so many records.
    ///
    /// # Errors
    /// If the thread, or what wakes it, cannot be made.
    pub fn start(
        nodes: Vec<(NodeId, OwnedFd)>,
        room: usize,
    ) -> io::Result<(CallRecorder, Vec<Box<dyn RecordFeed>>)> {
        let mut feeds: Vec<Box<dyn RecordFeed>> = Vec::new();
        let (mut supervised, mut doors) = (Vec::new(), Vec::new());
        for (node, socket) in nodes {
            let (shelf, feed) = SourceRecordBuffer::new(
                EventSource::of_node(RecordSource::Calls, node.0, INSTANCE),
                room,
            );
            supervised.push(SupervisedNode::new(node, shelf));
            doors.push(socket);
            feeds.push(Box::new(feed));
        }
        let recording = Arc::new(AtomicBool::new(true));
        let watcher = CallRecordingWatcher {
            nodes: supervised,
            recording: Arc::clone(&recording),
            report: CallRecordingReport::default(),
        };
        let thread = NotificationThread::start(watcher, doors)?;
        Ok((CallRecorder { recording, thread }, feeds))
    }

    /// Records from now on, or only lets calls go on.
    pub fn set_recording(&self, on: bool) {
        self.recording.store(on, Ordering::Relaxed);
    }

    /// Filters under which programs live now: their calls need the thread.
    #[must_use]
    pub fn living(&self) -> u64 {
        self.thread.living()
    }

    /// Ends. The programs must have ended: the calls of those that have not will fail.
    #[must_use]
    pub fn finish(self) -> CallRecordingReport {
        self.thread.finish().map(|watcher| watcher.report).unwrap_or_default()
    }
}

/// The watcher: each door is one of a node.
#[derive(Debug)]
struct CallRecordingWatcher {
    nodes: Vec<SupervisedNode>,
    recording: Arc<AtomicBool>,
    report: CallRecordingReport,
}

impl CallWatcher for CallRecordingWatcher {
    fn listener_added(&mut self, _listener: u64) {
        self.report.programs += 1;
    }

    fn program_missed(&mut self, door: usize, program: String, why: String) {
        let CallRecordingReport { unseen, unseen_more, .. } = &mut self.report;
        let missed = (self.nodes[door].id(), program, why);
        if unseen.contains(&missed) {
        } else if unseen.len() < UNSEEN_MAX {
            unseen.push(missed);
        } else {
            *unseen_more += 1;
        }
    }

    fn listener_ended(&mut self, listener: u64, door: usize) {
        self.nodes[door].end(listener);
    }

    fn look(&mut self, call: &WaitingCall) -> io::Result<CallAnswer> {
        if self.recording.load(Ordering::Relaxed)
            && let Some((program, why)) = self.nodes[call.door].look(call)?
        {
            self.program_missed(call.door, program, why);
        }
        Ok(CallAnswer::Continue)
    }

    fn cannot_look(&mut self, _call: &WaitingCall, why: String) {
        self.report.failed += 1;
        self.report.failure.get_or_insert(why);
    }

    fn answered(&mut self, call: &WaitingCall) {
        self.report.shown += 1;
        self.report.spent_ns += clock::monotonic_ns().saturating_sub(call.since_ns);
    }
}

/// Programs that are named.
const UNSEEN_MAX: usize = 100;
